"""One command in a machine of its own: what it printed, wrote and sent goes into a folder."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from firstflight.base import files
from firstflight.base.errors import FAILED
from firstflight.base.files import WriteError
from vtime.command.frames import CONTENT, ENTRY, ERROR, FULL, OUTPUT, TICK, Room
from vtime.command.guest import BEGINS_S, CAPTURE, CommandEnd, CommandGuest, CommandRequest
from vtime.command.received import Received
from vtime.console import EngineCannot, EngineError
from vtime.readable import OF_COMMANDS, ReadablePaths
from vtime.result import Result, Watcher
from vtime.uml import built_kernel_for_commands

GUEST = ".guest"  # of a command's folder: what is shared with its guest while it runs
OUTPUT_FILE, WRITTEN = "output.txt", "files"
KEPT_BYTES = 1 << 30  # of output
NOT_KEPT = b"the rest is not kept: the output is larger than 1 GB\n"
MOST_LINE_BYTES = 1 << 16  # of output, in one line of output.txt
PIECE_BYTES = 1 << 20
LAST_BLOCK = 1 << 16  # bytes: of a capture that is full, the block that filled it stays whole


def attend(request: CommandRequest, into: Path, write_back: bool, watcher: Watcher,
           kernel: Path | None) -> Result:
    """Run the request until its guest has ended; see vtime.run."""
    places = ReadablePaths(OF_COMMANDS)  # looks at them while the kernel is found
    kernel = kernel or built_kernel_for_commands()
    began = time.time()
    with ExitStack() as stack:
        guest = stack.enter_context(CommandGuest(kernel, into / GUEST, request, watcher.terminal,
                                                 places))
        outcome = guest.outcome
        output = stack.enter_context(OutputFile(into / OUTPUT_FILE, outcome))
        watcher.begin(guest)
        received = stack.enter_context(Received(
            request.folder if write_back else into / WRITTEN,
            Room(request.most_bytes, request.most_files), began - BEGINS_S, outcome,
            watcher.write if write_back else None))

        def carry(kind: bytes, at_s: float, content: bytes) -> None:
            if kind in (ENTRY, CONTENT):
                received.take(kind, content)
            elif kind == TICK:
                watcher.tick(at_s, content == FULL)
            else:
                if why := watcher.print(kind == ERROR, content):
                    outcome.lose(why)
                output.store(kind, at_s, content)
        try:
            guest.attend(carry)
        except EngineError as error:
            if isinstance(error, EngineCannot) or not guest.is_up:
                raise
            outcome.status = FAILED
            outcome.note(str(error))
        is_captured = request.capture_bytes > 0 and keep_capture(guest, into)
    return Result(outcome.status, into / OUTPUT_FILE, received.path, received.count,
                  into / CAPTURE if is_captured else None, outcome.virtual_s, outcome.wall_s,
                  tuple(outcome.troubles), outcome.untold, not outcome.unsaved,
                  tuple(outcome.spinning), output.cut, tuple(outcome.namespaces))


def keep_capture(guest: CommandGuest, into: Path) -> bool:
    """Copy the packets that the guest's kernel captured, no more than it may; whether it was done.

    The command, which is root in the guest, may have put anything in their place.
    """
    try:
        packets = guest.capture()
    except (OSError, ValueError) as error:
        guest.outcome.lose(f"{CAPTURE}: the guest took it away: {error}")
        return False
    most_bytes = guest.request.capture_bytes + LAST_BLOCK
    try:
        with packets, files.Folder(into) as opened, opened.replacing(CAPTURE) as file:
            while most_bytes and (piece := packets.read(min(PIECE_BYTES, most_bytes))):
                files.write_all(file, piece)
                most_bytes -= len(piece)
            if packets.read(1):
                guest.outcome.note(f"{CAPTURE}: the guest wrote more than --capture allows; the"
                                   " rest is not recorded")
    except WriteError as error:
        guest.outcome.lose(str(error))
        return False
    return True


@dataclass
class BegunLine:
    """The beginning of a line that has not ended. at_s: when its first byte came.

    is_rest: whether it continues a line that was cut.
    """

    at_s: float = 0.0
    content: bytearray = field(default_factory=bytearray)
    is_rest: bool = False


class OutputFile:
    """Stores the command's output, each line with the guest's clock.

    A line of more than MOST_LINE_BYTES is stored in pieces, so that no more of it is ever held:
    each piece after the first has a + behind its stream's name.
    """

    def __init__(self, path: Path, outcome: CommandEnd) -> None:
        """outcome: takes a note, once, if output cannot be stored."""
        self.path, self.outcome = path, outcome
        self.file = files.append(path)
        self.room = KEPT_BYTES
        self.lines = {kind: BegunLine() for kind in (OUTPUT, ERROR)}
        self.whole: list[bytes] = []  # what is to be stored
        self.cut = 0  # lines

    def __enter__(self) -> OutputFile:
        return self

    def __exit__(self, *_: object) -> None:
        for kind, line in self.lines.items():
            if line.content:
                self._end(kind)
        self._store()
        self.file.close()

    def store(self, kind: bytes, at_s: float, content: bytes) -> None:
        """Take what was printed at a time of the guest's clock."""
        *ends, rest = content.split(b"\n")
        for end in ends:
            self._add(kind, at_s, end)
            self._end(kind)
        self._add(kind, at_s, rest)
        self._store()

    def _add(self, kind: bytes, at_s: float, piece: bytes) -> None:
        """Take a piece of a line; what is as long as a line may be ends where the next begins."""
        line = self.lines[kind]
        while True:
            if not line.content:
                line.at_s = at_s
            room = MOST_LINE_BYTES - len(line.content)
            line.content += piece[:room]
            if len(piece) <= room:
                return
            piece = piece[room:]
            self.cut += not line.is_rest
            self._end(kind)
            line.is_rest = True

    def _end(self, kind: bytes) -> None:
        """A line has ended, or is cut."""
        line = self.lines[kind]
        self.whole.append(b"%14.6f %s%s %s\n" % (
            line.at_s, b"out" if kind == OUTPUT else b"err", b"+" * line.is_rest, line.content))
        line.content.clear()
        line.is_rest = False

    def _store(self) -> None:
        """Write what has ended, as far as there is room."""
        text = b"".join(self.whole)
        self.whole.clear()
        if self.room < len(text):
            text = text[:text.rfind(b"\n", 0, self.room) + 1] + NOT_KEPT if self.room >= 0 else b""
            self.room = -1
        else:
            self.room -= len(text)
        try:
            with files.writing(self.path):
                files.write_all(self.file, text)
        except WriteError as error:
            self.room = -1
            self.outcome.lose(str(error))
