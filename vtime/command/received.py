"""Writes the files that a command wrote in its guest to a folder of the host, as they arrive."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from io import FileIO
from pathlib import Path, PurePosixPath

from firstflight.base import files
from firstflight.base.errors import WriteError, one_line
from firstflight.base.words import is_visible
from vtime.command.frames import ENTRY, FILE, FOLDER, LINK, MOST_NAME, Entry, Room
from vtime.command.guest import CommandOutcome

MODES = 0o777  # permissions that are kept: no set-user-ID, set-group-ID or sticky bit
# The characters by which os.fsdecode stands for bytes that are not UTF-8, such as Latin-1 letters.
_OTHER_LETTERS = frozenset(map(chr, range(0xDCA0, 0xDD00)))
LAST_NS = (1 << 63) - 1  # since 1970: the largest time in 64 bits, in the year 2262


class Received:
    """Writes entries and their content from frames, which are not trusted: names may lead anywhere.

    A file gets its name once it is complete. An entry that is wrong, or cannot be written, is
    skipped and noted; others are not affected. Use it as a context manager.
    """

    def __init__(self, folder: Path, room: Room, ahead_s: float, outcome: CommandOutcome,
                 announce: Callable[[str], None] | None = None) -> None:
        """folder: where files are written.

        room: limits what is taken. ahead_s: how far the wall's clock is ahead of the guest's, since
        files get the wall's times. outcome: notes what was skipped, and what could not be saved.
        announce: takes each name before it is written.
        """
        self.path, self.room, self.outcome, self.announce = folder, room, outcome, announce
        self.ahead_ns = round(ahead_s * 1e9)
        self.count = 0  # files and links written so far
        self.folder: files.Folder | None = None  # made for the first entry
        self.entry = Entry(FILE, b"")  # the last one
        self.file: FileIO | None = None  # the file of that entry, while its content arrives
        self.rest = 0  # bytes of the content that are missing
        self.stack = ExitStack()  # gives the file its name at the end, or removes it

    def __enter__(self) -> Received:
        return self

    def __exit__(self, *_: object) -> None:
        self._finish()
        if self.folder is not None:
            self.folder.close()

    def take(self, kind: bytes, content: bytes) -> None:
        """Take a frame, ENTRY or CONTENT. Raises ValueError for an ENTRY that cannot be read."""
        if kind == ENTRY:
            self._finish()
            self.entry = Entry.read(content)
            self._take_entry(self.entry)
        elif self.file is not None:
            self._take_content(self.file, content)

    def _take_entry(self, entry: Entry) -> None:
        """Begin to write an entry, unless it may not be written."""
        if why := self.room.refuses(entry):
            self.outcome.lose(self._line(why))
        elif why := refusal(entry):
            self.outcome.note(self._line(why))
        else:
            self._write(entry)

    def _take_content(self, file: FileIO, content: bytes) -> None:
        """Write a piece of a file."""
        self.rest -= len(content)
        if self.rest < 0:
            self._give_up("it has more bytes than were announced")
            return
        try:
            files.write_all(file, content)
        except OSError as error:
            self._give_up(error.strerror or str(error))
            return
        if self.rest == 0:
            self._finish()

    def _finish(self) -> None:
        """Complete the file of the last entry, or skip it if content is missing."""
        if self.file is None:
            return
        if self.rest > 0:
            self._give_up("it changed while it was read, or the guest ended before")
            return

        at_ns = max(0, min(self.entry.modified_ns + self.ahead_ns, LAST_NS))
        try:
            os.fchmod(self.file.fileno(), self.entry.mode & MODES)
            os.utime(self.file.fileno(), ns=(at_ns, at_ns))
        except OSError as error:
            self._give_up(error.strerror or str(error))
            return

        self.file = None
        try:
            self.stack.close()
            self.count += 1
        except WriteError as error:
            self.outcome.lose(str(error))

    def _write(self, entry: Entry) -> None:
        """Make a folder or a link, or begin a file."""
        name = os.fsdecode(entry.name)
        if self.announce is not None and entry.kind != FOLDER:
            self.announce(one_line(name))

        try:
            self.folder = self.folder or files.Folder(self.path)
            if entry.kind == FOLDER:
                self.folder.make(name, replace_link=True)
            elif entry.kind == LINK:
                self.folder.link(name, os.fsdecode(entry.target))
                self.count += 1
            else:
                self.stack = ExitStack()
                self.file = self.stack.enter_context(self.folder.replacing(name))
                self.rest = entry.size
                if self.rest == 0:
                    self._finish()
        except WriteError as error:
            self.outcome.lose(str(error))

    def _give_up(self, why: str) -> None:
        """Skip the file that has begun; a file that had its name before stays."""
        self.file = None
        self.outcome.lose(self._line(why))
        self.stack.__exit__(WriteError, WriteError(why), None)

    def _line(self, why: str) -> str:
        """A line on the last entry: its name, and why it was skipped."""
        return f"{one_line(os.fsdecode(self.entry.name))}: {why}"


def refusal(entry: Entry) -> str:
    """Why an entry must not be written; "" if it may be."""
    path = PurePosixPath(os.fsdecode(entry.name))
    if len(entry.name) > MOST_NAME:
        return "its name is too long"
    if has_controls(entry.name) or has_controls(entry.target):
        return "its name, or what it leads to, has a control character"
    if not path.parts or path.is_absolute() or ".." in path.parts:
        return "its name leads elsewhere"
    if entry.kind == LINK and not leads_inside(str(path), os.fsdecode(entry.target)):
        return "a link that leads elsewhere"
    return ""


def has_controls(name: bytes) -> bool:
    """Whether a name has characters that move a cursor, end a line, or hide or reorder text.

    Bytes that are not UTF-8 count if they are controls in older character sets.
    """
    return any(not is_visible(character) and character not in _OTHER_LETTERS
               for character in os.fsdecode(name))


def leads_inside(name: str, target: str) -> bool:
    """Whether a link's target stays in the folder, whatever other links the folder has.

    So ".." is allowed at the beginning only: behind the name of a link it could lead anywhere.
    """
    parts = PurePosixPath(target).parts
    up = 0
    while up < len(parts) and parts[up] == "..":
        up += 1
    is_relative = bool(target) and not target.startswith("/")
    return is_relative and ".." not in parts[up:] and up < len(PurePosixPath(name).parts)
