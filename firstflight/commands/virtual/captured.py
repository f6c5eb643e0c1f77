"""`./run.sh --report FOLDER`: what a command's network really did, from its stored packets."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType

from firstflight.base import files
from firstflight.base.argument_types import file_path
from firstflight.base.errors import OK, UsageError
from firstflight.base.parser import Parser
from firstflight.base.terminal import say, terminal_width
from firstflight.commands.virtual.records import COMMAND_JSON
from firstflight.findings.render import data, page, text
from firstflight.runs.results.facts import COMMAND, read_facts_file
from firstflight.wire.capture import pcapng
from firstflight.wire.capture.report import report_capture
from vtime.command.beginning import EARLIEST_S
from vtime.command.guest import TIMED_OUT

LEAST_S = 5.0  # of wall time that a report has, even if the command used up its time limit
PROGRESS_S = 5.0  # of wall time between two lines
_M_MMAP_THRESHOLD = -3  # malloc.h
LARGE_BYTES = 1 << 20  # memory of this size is returned when it is freed
SHORT = """\
usage: ./run.sh --report FOLDER

Build report.html, links.csv and connections.csv again from capture.pcapng. FOLDER is the folder
in results/commands of a command that ran with ./run.sh --capture -- COMMAND.
"""
SYNONYMS = {"--connection": "open capture.pcapng in Wireshark, which draws the packets of each"
                            " connection: Statistics, TCP Stream Graphs"}


def run(argv: Sequence[str]) -> int:
    """Build the page of a stored capture again. Raises UsageError, FirstFlightError."""
    folder = parse(argv)
    write(folder, stored_facts(folder))
    return OK


def read(argv: Sequence[str]) -> int:
    """Check the flags. Raises UsageError."""
    parse(argv)
    return OK


def parse(argv: Sequence[str]) -> Path:
    """The folder that a command line names, which has a capture. Raises UsageError."""
    parser = Parser(SYNONYMS, SHORT, prog="run.sh", allow_abbrev=False)
    parser.add_argument("--report", type=file_path, required=True)
    requested: Path = parser.parse_args(list(argv)).report
    folder = requested.parent if os.path.isfile(requested) else requested
    if not os.path.isfile(folder / pcapng.NAME):
        raise UsageError(f"--report: {requested} has no {pcapng.NAME}: name the folder of a"
                         " command that ran with ./run.sh --capture -- COMMAND")
    return folder


def stored_facts(folder: Path) -> Mapping[str, object]:
    """What command.json of a command's folder says; {} without that file. Raises RecordsError."""
    path = folder / COMMAND_JSON
    return read_facts_file(path, COMMAND) if os.path.lexists(path) else {}


class Stopped(BaseException):
    """Raised when a signal or the time limit ends the report. status: the exit status."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def write_in_time(folder: Path, stored: Mapping[str, object], left_s: float | None, quiet: bool
                  ) -> int:
    """Write the report of a command that has just ended; return OK, or the status of an error.

    left_s: how much wall time the command left of its limit, None without a limit; the report has
    LEAST_S in any case. Ctrl-C, SIGTERM and SIGHUP stop the report at once. Raises what `write`
    raises.
    """
    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped(128 + number, signal.strsignal(number) or "stopped")

    def time_out(number: int, frame: FrameType | None) -> None:
        raise Stopped(TIMED_OUT, "--timeout")

    previous_handlers = {}
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup sets it
            previous_handlers[number] = signal.signal(number, stop)
    previous_handlers[signal.SIGALRM] = signal.signal(signal.SIGALRM, time_out)

    try:
        if left_s is not None:
            signal.setitimer(signal.ITIMER_REAL, max(left_s, LEAST_S))
        write(folder, stored, quiet=quiet)
    except Stopped as stopped:
        say(f"run.sh: no report was written: {stopped}; ./run.sh --report"
            f" {os.path.relpath(folder)} makes it")
        return stopped.status
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)
    return OK


def _return_freed_memory() -> None:
    """Have libc return large arrays to the machine as soon as they are freed, where libc can.

    Left alone, glibc keeps each freed array that is smaller than the largest one freed before it
    (mallopt(3)).
    """
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)


def write(folder: Path, stored: Mapping[str, object], quiet: bool = False) -> None:
    """Write report.html, links.csv and connections.csv next to a capture, and print the answer.

    stored: as stored_facts returns it. Raises FirstFlightError, OSError.
    """
    _return_freed_memory()
    capture = pcapng.read(folder / pcapng.NAME)
    next_s = time.monotonic() + PROGRESS_S

    def show_progress(what: str) -> None:
        nonlocal next_s
        if not quiet and time.monotonic() >= next_s:
            next_s = time.monotonic() + PROGRESS_S
            say(f"run.sh: the report of {capture.packets.size} packets: {what}")

    begins_s = int(str(stored.get("clock", EARLIEST_S)))
    rendered = report_capture(capture, stored, str(folder), begins_s * 1_000_000_000,
                              show_progress)
    *_, path = files.save_all(folder, {
        "links.csv": data.table_csv(rendered.links),
        "connections.csv": data.table_csv(rendered.connections),
        page.PAGE: page.page(rendered.report, {})})
    sys.stdout.flush()
    for line in text.brief(rendered.report, terminal_width()).splitlines():
        say(line)
    say(f"run.sh: the page is {os.path.relpath(path)}")
