"""`./run.sh -- COMMAND`: runs anybody's command in virtual time, and keeps what it wrote."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import FrameType

import vtime
from firstflight.base import files
from firstflight.base.errors import FAILED, OK, WriteError
from firstflight.base.signals import interrupt_on
from firstflight.base.terminal import say
from firstflight.testbed.engine_errors import engine_errors
from firstflight.commands.virtual.command_line import CommandLine, parse
from firstflight.commands.virtual.records import (COMMAND_JSON, DEFAULT_KERNEL, MOST_SHOWN,
                                                  facts_of, kernel_of, new_folder)
from firstflight.commands.virtual.script import advice, hidden_programs
from vtime import Result
from vtime.command.beginning import beginning_s
from vtime.command.guest import CommandGuest
from vtime.command.terminal import RawTerminal, in_foreground
from vtime.session import MOST_LINE_BYTES

# The least speed that is printed, in virtual time by real time. A lower one says only how long a
# machine takes to start.
LEAST_SPEED = 0.1
PROGRESS_S = 30.0  # of wall time between two lines


def run(argv: Sequence[str]) -> int:
    """Run the command of a command line; return its exit status.

    Raises UsageError, CannotError, FirstFlightError, WriteError.
    """
    line = with_beginning(parse(argv))
    words, readable = line.request.words, [path.resolve() for path in line.request.readable]
    for advised in (*advice(words, shutil.which), *hidden_programs(words, Path.cwd(), readable)):
        say(f"run.sh: {advised}")

    with engine_errors():
        if len(line.kernels) > 1:
            from firstflight.commands.virtual import compared
            return compared.run(line)
        (name,) = line.kernels
        kernel = kernel_of(name)
        if line.repeat:
            from firstflight.commands.virtual import repeated  # imports numpy, which is slow
            return repeated.run(line, kernel)
        return run_once(line, kernel)


def run_once(line: CommandLine, kernel: Path) -> int:
    """Run the command in one machine; return its exit status.

    Raises EngineError, FirstFlightError, WriteError.
    """
    folder = new_folder(line.results, "commands")
    with Terminal(line.quiet) as terminal:
        result = vtime.run(line.request, folder, watcher=terminal, kernel=kernel)

    facts = facts_of(line.request, result, kernel)
    is_whole = result.is_whole
    try:
        files.save(folder, COMMAND_JSON, json.dumps(facts, indent=1) + "\n")
    except WriteError as error:
        is_whole = False
        say(f"run.sh: {error}")
    show_end(folder, result, line.quiet)

    if result.capture:
        from firstflight.commands.virtual import captured  # imports matplotlib, which is slow
        limit_s = line.request.wall_limit_s
        left_s = None if limit_s is None else limit_s - result.wall_s
        if status := captured.write_in_time(folder, facts, left_s, line.quiet):
            return result.status or status
    return result.status or (OK if is_whole else FAILED)


def read(argv: Sequence[str]) -> int:
    """Check that the command can be run: its flags, and that named kernels are there.

    The default kernel may be missing: run.sh builds it. Raises UsageError, CannotError.
    """
    line = parse(argv)
    with engine_errors():
        for name in {*line.kernels} - {DEFAULT_KERNEL}:
            kernel_of(name)
    return OK


def with_beginning(line: CommandLine) -> CommandLine:
    """The command line with a date at which the machine's clock begins, if no flag gives one."""
    request = line.request
    if request.begins_s is not None:
        return line
    begins_s = beginning_s([request.folder, *request.readable], line.results)
    return replace(line, request=replace(request, begins_s=begins_s))


def show_end(folder: Path, result: Result, quiet: bool) -> None:
    """Print what a user has to know once the command has ended, on standard error."""
    if result.cut_lines:
        plural, them = ("s", "them") if result.cut_lines > 1 else ("", "it")
        say(f"run.sh: {result.cut_lines} line{plural} of output longer than"
            f" {MOST_LINE_BYTES >> 10} kB: {result.output.name} has {them}"
            " in pieces, those after the first marked with +")

    for name in result.spinning:
        say(f"run.sh: {name} spins: it waits without sleeping, so its clock was moved on"
            " (vtime/MININET.md)")
    for line in result.troubles[:MOST_SHOWN]:
        say(f"run.sh: {line}")
    more = len(result.troubles) - MOST_SHOWN + result.omitted_count
    if more > 0:
        say(f"run.sh: {more} more such lines; command.json has"
            f" {'the first' if result.omitted_count else 'all'} {len(result.troubles)}")

    if not quiet:
        ratio = result.clock_s / result.wall_s if result.wall_s else 0.0
        speed = f" ({ratio:.1f} × real time)" if ratio >= LEAST_SPEED else ""
        count, files_kept = result.file_count, ""
        if count:
            files_kept = f" and {count} file{'s' if count > 1 else ''}"
        say(f"run.sh: {result.clock_s:.1f} s of virtual time in {result.wall_s:.1f} s"
            f"{speed}; output{files_kept} in {os.path.relpath(folder)}")


class Terminal(vtime.Watcher):
    """Connects the command with this program's input, output and signals, and prints progress.

    The first SIGINT goes to the command. The second one stops it, and so does SIGTERM or SIGHUP. A
    further signal ends the machine. A user who types Ctrl-C at a terminal sends no signal: the
    command reads it as a character like any other. Use as a context manager.
    """

    reads_input = True

    def __init__(self, quiet: bool) -> None:
        # Whether a user types to the command. In the background, what is typed is for another
        # program.
        self.terminal = sys.stdin.isatty() and sys.stdout.isatty() and in_foreground(0)
        self.quiet = quiet or self.terminal
        self.stack = ExitStack()
        self.started = self.shown = time.monotonic()
        self.unread = self.was_full = False

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    def begin(self, guest: CommandGuest) -> None:
        if self.terminal:
            self.stack.enter_context(RawTerminal())
            signal.signal(signal.SIGWINCH, lambda *_: guest.resize())

        def handle(number: int, frame: FrameType | None) -> None:
            if number == signal.SIGINT:
                was_stopped = guest.interrupt()
            else:
                was_stopped = guest.stop(128 + number, signal.strsignal(number) or "stopped")
            if was_stopped:  # by an earlier signal, and the command has not ended since
                raise KeyboardInterrupt

        interrupt_on(signal.SIGTERM, signal.SIGHUP, by=handle)
        if not self.terminal:
            interrupt_on(signal.SIGINT, by=handle)

    def print(self, is_error: bool, content: bytes) -> str:
        """Print what the command printed; return why it cannot be shown, or "".

        Once nobody reads this program's output, or it fails, only output.txt gets the rest.
        """
        rest = memoryview(content)
        while rest and not self.unread:
            try:
                rest = rest[os.write(2 if is_error else 1, rest):]
            except BlockingIOError:
                time.sleep(0.001)
            except BrokenPipeError:
                self.unread = True
            except OSError as error:
                self.unread = True
                return f"the output cannot be passed on: {error.strerror}"
        return ""

    def tick(self, clock_s: float, is_full: bool) -> None:
        """Print progress every PROGRESS_S, and at once when is_full changes.

        is_full: whether nearly all of the machine's memory is in use.
        """
        now = time.monotonic()
        is_early = now - self.shown < PROGRESS_S
        if self.quiet or (is_early and is_full == self.was_full):
            return
        self.shown, self.was_full = now, is_full
        wall_s = now - self.started
        say(f"run.sh: {clock_s:.0f} s of virtual time in {wall_s:.0f} s"
            f" ({clock_s / wall_s:.1f} × real time)"
            f"{'; nearly all of its memory is in use (--memory)' if is_full else ''}")

    def write(self, name: str) -> None:
        say(f"run.sh: writes back {name}")
