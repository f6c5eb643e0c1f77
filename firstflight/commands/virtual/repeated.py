"""`./run.sh --repeat N -- COMMAND`: runs a command several times with noise like a machine's."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path
from types import FrameType

import vtime
from firstflight.base import files, reading
from firstflight.base.errors import FAILED, INTERRUPTED, OK, FirstFlightError, WriteError
from firstflight.base.signals import interrupt_on
from firstflight.base.terminal import print_while_read, say
from firstflight.commands.virtual.command_line import CommandLine
from firstflight.commands.virtual.records import (CAPTURE_BYTES, COMMAND_JSON, MOST_SHOWN, RUN,
                                                  facts_of, new_folder)
from firstflight.commands.virtual.spread import Row, as_json, line_rows, table
from firstflight.wire.capture import pcapng
from firstflight.wire.capture.conversations import format_end
from firstflight.wire.capture.report import observed_connections
from vtime import Result
from vtime.command.guest import CommandGuest
from vtime.memory import guests

SPREAD_JSON = "spread.json"
MOST_LINES = 200_000  # lines of a run's output that are compared
SMALL = 0.01  # share of the largest connection's data: smaller connections are in the JSON only


@dataclass(frozen=True)
class Conversation:
    """The compared numbers of a connection.

    name: its ends without the client's port, and a number, since several may have the same ends.
    """

    name: str
    goodput_mbps: float | None
    retransmitted: int
    is_small: bool


@dataclass(frozen=True)
class Run:
    """A run that ended by itself. number: from 1."""

    number: int
    seed: int
    result: Result
    lines: Sequence[str]
    conversations: Sequence[Conversation] = ()


@dataclass
class Runs(vtime.Watcher):
    """Starts the runs of a command, stops them at a signal, and keeps those that have ended.

    requested: how many runs. at_once: how many of them run at the same time.
    """

    line: CommandLine
    requested: int
    at_once: int
    kernel: Path
    folder: Path
    ended: dict[int, Run] = field(default_factory=dict)
    running: list[CommandGuest] = field(default_factory=list)
    status: int = OK  # the exit status for the signal that stopped them
    lock: threading.Lock = field(default_factory=threading.Lock)

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal: stop all runs, and keep those that have ended."""
        self.stop(INTERRUPTED if number == signal.SIGINT else 128 + number)

    def stop(self, status: int) -> None:
        """Start no further run, and stop those under way, which then end within seconds."""
        self.status = self.status or status
        for guest in tuple(self.running):
            guest.stop_soon(self.status, "stopped")

    def begin(self, guest: CommandGuest) -> None:
        """A guest starts; vtime calls this (class Watcher in vtime)."""
        self.running.append(guest)
        if self.status:
            guest.stop_soon(self.status, "stopped")

    def attempt(self, number: int) -> None:
        """Run the command, unless runs are stopped; an exception stops the other runs, too."""
        if self.status:
            return
        try:
            self.run(number)
        except BaseException:
            self.stop(FAILED)
            raise

    def run(self, number: int) -> None:
        """Run the command once, with its own seed. Raises WriteError, EngineError."""
        once = self.line.request
        into = self.folder / f"{RUN}{number:0{len(str(self.requested))}}"
        files.make_new_folder(into)
        request = replace(
            once, seed=once.seed + number - 1, link_times=once.link_times.with_noise(),
            capture_bytes=once.capture_bytes or CAPTURE_BYTES, guest=number % self.at_once)
        result = vtime.run(request, into, watcher=self, kernel=self.kernel)
        if self.status:
            return

        facts = facts_of(request, result, self.kernel)
        files.save(into, COMMAND_JSON, json.dumps(facts, indent=1) + "\n")
        conversations = self._conversations(into, facts) if result.capture else []
        if not once.capture_bytes:
            files.remove(into / pcapng.NAME)
        with self.lock:
            self.ended[number] = Run(number, request.seed, result, lines_printed(result.output),
                                     conversations)
        if not self.line.quiet:
            say(f"run.sh: run {number} of {self.requested}: seed {request.seed},"
                f" status {result.status}, {result.clock_s:.1f} s of virtual time"
                f" in {result.wall_s:.1f} s")

    def _conversations(self, into: Path, facts: Mapping[str, object]) -> list[Conversation]:
        """The connections in a run's capture; [] where it cannot be read."""
        try:
            return conversations(pcapng.read(into / pcapng.NAME), facts)
        except FirstFlightError as error:
            say(f"run.sh: {os.path.relpath(into)}: {error}")
            return []


def conversations(capture: pcapng.Capture, facts: Mapping[str, object]) -> list[Conversation]:
    """The TCP connections of a capture, in the order in which they began."""
    connections = sorted(observed_connections(capture, facts), key=attrgetter("begun_ns"))
    largest = max((connection.main.bytes for connection in connections), default=0)

    counts: Counter[str] = Counter()
    made = []
    for connection in connections:
        ends = connection.ends
        client = format_end(ends.client).rpartition(":")[0]
        name = (f"{ends.client_node} {client} → {ends.server_node} {format_end(ends.server)}"
                .replace("  ", " ").strip())
        counts[name] += 1

        rate = connection.main.goodput_kbps
        made.append(Conversation(
            f"{name} ({counts[name]})", None if rate is None else rate / 1000,
            connection.retransmitted.total(), connection.main.bytes < SMALL * largest))
    return made


def connection_rows(runs: Sequence[Run]) -> list[Row]:
    """Goodput and retransmissions of each connection that is not small in all runs."""
    by_run = []
    for run in runs:
        by_run.append({conversation.name: conversation for conversation in run.conversations})
    names = dict.fromkeys(chain.from_iterable(by_run))

    rows = []
    for name in names:
        of_runs = [of_run.get(name) for of_run in by_run]
        if all(one is None or one.is_small for one in of_runs):
            continue

        rates = tuple(None if one is None else one.goodput_mbps for one in of_runs)
        if any(rate is not None for rate in rates):
            rows.append(Row(f"{name}: goodput", rates, "Mbit/s"))
        counts = tuple(None if one is None else float(one.retransmitted) for one in of_runs)
        rows.append(Row(f"{name}: retransmitted segments", counts))
    return rows


def lines_printed(output: Path) -> list[str]:
    """The lines of output.txt without their times."""
    with reading.opened(output) as file:
        return [line[15:].partition(" ")[2].rstrip("\n")
                for line in islice(reading.lines(file), MOST_LINES)]


def run(line: CommandLine, kernel: Path) -> int:
    """Run a command line.repeat times, print the spread, and return the exit status.

    Raises CannotError, FirstFlightError, WriteError.
    """
    requested = line.repeat or 1
    at_once = 1
    if line.jobs:
        at_once = min(requested, guests(line.jobs, memory_mb=line.request.memory_mb))
    folder = new_folder(line.results, "commands")
    runs = Runs(line, requested, at_once, kernel, folder)
    interrupt_on(signal.SIGTERM, signal.SIGHUP, signal.SIGINT, by=runs.interrupt)
    began = time.monotonic()
    try:
        with ThreadPoolExecutor(at_once) as pool:
            wait_for([pool.submit(runs.attempt, number) for number in range(1, requested + 1)])
    except BaseException:
        if runs.ended:
            show(runs, time.monotonic() - began)
        raise
    return show(runs, time.monotonic() - began)


def wait_for(started: Sequence[Future[None]]) -> None:
    """Wait in short steps, so that signals are handled at once. Raises what a run raised."""
    for future in started:
        while not future.done():
            time.sleep(0.02)
        future.result()


def show(runs: Runs, wall_s: float) -> int:
    """Print the spread of the runs that have ended, store it, and return the exit status."""
    ended = [runs.ended[number] for number in sorted(runs.ended)]
    if not ended:
        say("run.sh: no run has ended: there is nothing to compare")
        return runs.status or FAILED

    connections = connection_rows(ended)
    lines = line_rows([run.lines for run in ended])
    failed = [run for run in ended if run.result.status]
    seeds = f"seeds {ended[0].seed} to {ended[-1].seed}"
    text = (f"{len(ended)} run{'s' * (len(ended) > 1)}, {seeds}\n\n"
            f"{table(connections, lines, len(ended))}")

    facts = {"command": list(runs.line.request.words), "runs": len(ended),
             "requested": runs.requested,
             "seeds": [run.seed for run in ended],
             "status": [run.result.status for run in ended],
             "virtual_s": [round(run.result.clock_s, 9) for run in ended],
             "wall_s": round(wall_s, 3), "connections": as_json(connections),
             "lines": as_json(lines)}
    print_while_read(text.rstrip("\n"))

    status = runs.status
    try:
        files.save(runs.folder, SPREAD_JSON,
                   json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
    except WriteError as error:
        say(f"run.sh: {error}")
        status = status or FAILED

    for line, count in islice(_counted_troubles(ended).items(), MOST_SHOWN):
        say(f"run.sh: {line}{f' ({count} runs)' if count > 1 else ''}")
    if failed:
        say(f"run.sh: run {failed[0].number} (seed {failed[0].seed}) ended with status"
            f" {failed[0].result.status}; {len(failed)} of {len(ended)} did not end with 0")
    if runs.status:
        say(f"run.sh: stopped: {len(ended)} of {runs.requested} runs had ended")
    if not runs.line.quiet:
        say(f"run.sh: {len(ended)} runs in {wall_s:.1f} s; {SPREAD_JSON} and each run's output in"
            f" {os.path.relpath(runs.folder)}")
    return status or (failed[0].result.status if failed else OK)


def _counted_troubles(runs: Sequence[Run]) -> Counter[str]:
    """What went wrong in these runs, a line each, and in how many of them."""
    counts: Counter[str] = Counter()
    for run in runs:
        counts.update(run.result.troubles)
        counts.update(f"{name} spins: it waits without sleeping, so its clock was moved on"
                      " (vtime/MININET.md)" for name in run.result.spinning)
    return counts
