"""Runs one command in a machine of its own, and stores its output, files and packets in a folder.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from firstflight.base import files, places
from firstflight.base.errors import FAILED, WriteError
from vtime.command.beginning import beginning_s
from vtime.command.frames import CONTENT, ENTRY, ERROR, FULL, OUTPUT, TICK, Room
from vtime.command.guest import CAPTURE, CommandGuest, CommandOutcome
from vtime.command.received import Received
from vtime.console import EngineCannot, EngineError
from vtime.readable import OF_COMMANDS, ReadablePaths
from vtime.request import CommandRequest
from vtime.result import Result, Watcher
from vtime.uml import built_kernel_for_commands

GUEST = ".guest"  # the folder, below a command's folder, that is shared with its guest
OUTPUT_FILE, WRITTEN = "output.txt", "files"
KEPT_BYTES = 1 << 30  # the most output that is stored
NOT_KEPT = b"the rest is not kept: the output is larger than 1 GB\n"
MOST_LINE_BYTES = 1 << 16  # of output in one line of output.txt
PIECE_BYTES = 1 << 20
LAST_BLOCK = 1 << 16  # bytes: the last block of a full capture may exceed the limit by so many


def attend(request: CommandRequest, into: Path, watcher: Watcher, kernel: Path | None) -> Result:
    """Run the request until its guest has ended; see vtime.run. Its paths are without links."""
    begins_s = request.begins_s
    if begins_s is None:
        begins_s = beginning_s([request.folder, *request.readable], left_out=into)

    places = ReadablePaths(OF_COMMANDS)  # searches while the kernel is looked up
    kernel = kernel or built_kernel_for_commands()
    began = time.time()
    with ExitStack() as stack:
        guest = stack.enter_context(CommandGuest(
            kernel, into / GUEST, request, begins_s, terminal=watcher.terminal,
            reads_input=watcher.reads_input, places=places))
        outcome = guest.outcome
        output = stack.enter_context(OutputFile(into / OUTPUT_FILE, outcome))
        watcher.begin(guest)
        target, announce = into / WRITTEN, None
        if request.write_back:
            target, announce = request.folder, watcher.write
        received = stack.enter_context(Received(
            target, Room(request.most_bytes, request.most_files), ahead_s=began - begins_s,
            outcome=outcome, announce=announce))

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

    return Result(
        status=outcome.status, output=into / OUTPUT_FILE, files=received.path,
        file_count=received.count, capture=into / CAPTURE if is_captured else None,
        clock_s=outcome.clock_s, wall_s=outcome.wall_s, troubles=tuple(outcome.troubles),
        omitted_count=outcome.omitted_count, is_whole=not outcome.unsaved,
        spinning=tuple(outcome.spinning), cut_lines=output.cut,
        namespaces=tuple(outcome.namespaces),
        calls=tuple(outcome.calls.decode(errors="replace").splitlines()))


def keep_capture(guest: CommandGuest, into: Path) -> bool:
    """Copy the guest's capture into the folder, up to its limit; return whether that worked.

    The command is root in the guest, and may have replaced the file by anything.
    """
    try:
        packets = guest.capture()
    except (OSError, ValueError) as error:
        guest.outcome.lose(f"{CAPTURE}: the guest removed it: {error}")
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
    """The beginning of a line that is not complete."""

    at_s: float = 0.0  # when its first byte came
    content: bytearray = field(default_factory=bytearray)
    is_rest: bool = False  # whether it continues a line that was cut


class OutputFile:
    """Stores the command's output, each line with the time on the guest's clock.

    A line of more than MOST_LINE_BYTES is stored in pieces, so that memory never holds more of it.
    Each piece after the first has a + after its stream's name.
    """

    def __init__(self, path: Path, outcome: CommandOutcome) -> None:
        """outcome: takes a note, once, if output cannot be stored."""
        self.path, self.outcome = path, outcome
        self.file = files.open_to_append(path)
        self.room = KEPT_BYTES
        self.lines = {kind: BegunLine() for kind in (OUTPUT, ERROR)}
        self.whole: list[bytes] = []  # complete lines that are not stored yet
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
        """Store what was printed at a time of the guest's clock."""
        *ends, rest = content.split(b"\n")
        for end in ends:
            self._add(kind, at_s, end)
            self._end(kind)
        self._add(kind, at_s, rest)
        self._store()

    def _add(self, kind: bytes, at_s: float, piece: bytes) -> None:
        """Take a piece of a line; a line that is too long is cut, and its rest begins a new one."""
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
        """End a line, or cut it."""
        line = self.lines[kind]
        stream = b"out" if kind == OUTPUT else b"err"
        if line.is_rest:
            stream += b"+"
        self.whole.append(b"%14.6f %s %s\n" % (line.at_s, stream, line.content))
        line.content.clear()
        line.is_rest = False

    def _store(self) -> None:
        """Write the complete lines, as long as there is room."""
        text = b"".join(self.whole)
        self.whole.clear()
        if self.room < 0:  # the room was used up before
            text = b""
        elif self.room < len(text):
            text = text[:text.rfind(b"\n", 0, self.room) + 1] + NOT_KEPT
            self.room = -1
        else:
            self.room -= len(text)

        try:
            with places.writing(self.path):
                files.write_all(self.file, text)
        except WriteError as error:
            self.room = -1
            self.outcome.lose(str(error))
