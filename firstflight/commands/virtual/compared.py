"""`./run.sh --kernel A,B -- COMMAND`: runs one command on two kernels, and compares its packets."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import FrameType

import vtime
from firstflight.base import files
from firstflight.base.errors import FAILED, INTERRUPTED, OK
from firstflight.base.signals import interrupt_on
from firstflight.base.terminal import print_while_read, say
from firstflight.commands.virtual.command_line import CommandLine
from firstflight.commands.virtual.records import (CAPTURE_BYTES, COMMAND_JSON, MOST_SHOWN,
                                                  facts_of, kernel_of, new_folder)
from firstflight.wire.capture import differing, pcapng
from firstflight.wire.capture.differing import FirstDifference, Totals
from vtime import CommandRequest, Result
from vtime.command.guest import CommandGuest

DIFFERENCE_JSON = "difference.json"


@dataclass
class Machines(vtime.Watcher):
    """Runs the command on one kernel after the other. A signal stops the machine that runs."""

    request: CommandRequest
    quiet: bool
    folder: Path
    running: CommandGuest | None = None
    status: int = OK  # the exit status for the signal that stopped a machine; OK without one
    results: dict[str, Result] = field(default_factory=dict)  # by the kernel's name

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal: stop the machine that runs, and start no other one."""
        self.status = INTERRUPTED if number == signal.SIGINT else 128 + number
        if self.running:
            self.running.stop_soon(self.status, "stopped")

    def begin(self, guest: CommandGuest) -> None:
        self.running = guest
        if self.status:
            guest.stop_soon(self.status, "stopped")

    def run(self, name: str, kernel: Path) -> pcapng.Capture | None:
        """Run the command on a kernel; return its packets, None if it was stopped or left none.

        name, kernel: the kernel's name and file. Raises WriteError, EngineError, and
        FirstFlightError if the capture cannot be read.
        """
        into = self.folder / name
        files.make_new_folder(into)
        result = vtime.run(self.request, into, watcher=self, kernel=kernel)
        if self.status:
            return None
        self.results[name] = result
        facts = facts_of(self.request, result, kernel)
        files.save(into, COMMAND_JSON, json.dumps({"kernel": name, **facts}, indent=1) + "\n")
        if not self.quiet:
            say(f"run.sh: kernel {name}: status {result.status}, {result.clock_s:.1f} s of virtual"
                f" time in {result.wall_s:.1f} s")
        for line in result.troubles[:MOST_SHOWN]:
            say(f"run.sh: kernel {name}: {line}")
        return pcapng.read(into / pcapng.NAME) if result.capture else None


def run(line: CommandLine) -> int:
    """Run the command on both kernels, and print the first packet that differs.

    Returns the exit status. line: its request has the date at which the machine's clock begins,
    the same on both kernels. Raises EngineError, FirstFlightError, WriteError.
    """
    request = replace(line.request, capture_bytes=line.request.capture_bytes or CAPTURE_BYTES)
    assert request.begins_s is not None
    kernels = {name: kernel_of(name) for name in line.kernels}

    folder = new_folder(line.results, "commands")
    machines = Machines(request, line.quiet, folder)
    interrupt_on(signal.SIGTERM, signal.SIGHUP, signal.SIGINT, by=machines.interrupt)
    began, captures = time.monotonic(), []
    for name, kernel in kernels.items():
        capture = machines.run(name, kernel)
        if machines.status:
            say("run.sh: stopped: nothing is compared")
            return machines.status
        if capture is None:
            say(f"run.sh: kernel {name}: the command left no capture: nothing is compared")
            return FAILED
        captures.append(capture)

    first, second = captures
    begins_ns = request.begins_s * 1_000_000_000
    found = differing.find_first_difference(first, second, begins_ns)
    totals = [differing.add_up(capture, begins_ns) for capture in captures]
    results = [machines.results[name] for name in kernels]
    print_while_read(render(tuple(kernels), found, totals, results))
    difference = {"kernels": list(kernels), "seed": request.seed,
                  "first": asdict(found) if found else None,
                  "totals": [asdict(of_capture) for of_capture in totals]}
    files.save(folder, DIFFERENCE_JSON,
               json.dumps(difference, indent=1, ensure_ascii=False) + "\n")

    if not line.quiet:
        say(f"run.sh: two kernels in {time.monotonic() - began:.1f} s; {DIFFERENCE_JSON}, and each"
            f" one's output and packets in {os.path.relpath(folder)}")
    statuses = (result.status for result in results)
    return next((status for status in statuses if status != OK), OK)


def render(names: Sequence[str], found: FirstDifference | None, totals: Sequence[Totals],
           results: Sequence[Result]) -> str:
    """The answer in lines.

    names: of the two kernels. found: the first packet that differs, None where none does. totals,
    results: of each kernel.
    """
    rows = [("packets that left", *(f"{of_capture.packets}" for of_capture in totals)),
            ("bytes", *(f"{of_capture.frame_bytes}" for of_capture in totals)),
            ("dropped", *(f"{of_capture.dropped}" for of_capture in totals)),
            ("last packet, s", *(f"{of_capture.last_s:.9f}" for of_capture in totals)),
            ("the command's clock, s", *(f"{result.clock_s:.6f}" for result in results)),
            ("exit status", *(f"{result.status}" for result in results))]
    differing_rows, same_names = [], []
    for name, first, second in rows:
        if first == second:
            same_names.append(name)
        else:
            differing_rows.append((name, first, second))

    lines = _first_lines(names, found, totals[0].packets + totals[0].dropped)
    if not differing_rows:
        lines.append("In the end nothing differs: packets, bytes, drops, times.")
    else:
        lines += ["In the end:", *_aligned([("", *names), *differing_rows])]
        if same_names:
            lines.append(f"  the same: {', '.join(same_names)}")
    return "\n".join(lines)


def _first_lines(names: Sequence[str], found: FirstDifference | None, count: int) -> list[str]:
    """The lines on the first packet that differs.

    names: of the two kernels. count: how many packets the first capture has.
    """
    if found is None:
        return [f"Kernels {names[0]} and {names[1]}: no packet differs, of {count}."]
    lines = [f"Kernels {names[0]} and {names[1]}: packet {found.number} is the first that differs,"
             f" on {found.link} after {found.at_s:.9f} s: {found.what}."]
    width = max(map(len, ("both", *names)))
    for packet in found.before:
        lines.append(f"  {'both'.ljust(width)}  {packet}")
    for name, packet in zip(names, (found.first, found.second)):
        lines.append(f"  {name.ljust(width)}  {packet}")
    return lines


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """The rows as lines: the first cell to the left, the other ones to the right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = []
    for name, *cells in rows:
        numbers = [cell.rjust(width) for cell, width in zip(cells, widths[1:])]
        lines.append("  " + "  ".join([name.ljust(widths[0]), *numbers]).rstrip())
    return lines
