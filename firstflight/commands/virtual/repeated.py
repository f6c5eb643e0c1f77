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
MOST_LINES = 200_000  # of a run's output are compared
# Of a line of output.txt, the time and a space take so many. The stream's name follows, then what
# the command printed (vtime/session.py).
TIME_CHARACTERS = 15
# Connections with less than this share of the largest connection's data are in the JSON only.
SMALL = 0.01


@dataclass(frozen=True)
class Conversation:
    """The numbers of a connection that are compared between runs."""

    # Its ends without the client's port, and a number, since several may have the same ends.
    name: str
    goodput_mbps: float | None
    retransmitted: int
    is_small: bool


@dataclass(frozen=True)
class Run:
    """A run that ended by itself."""

    number: int  # from 1 on
    seed: int
    result: Result
    lines: Sequence[str]  # that the command printed
    conversations: Sequence[Conversation] = ()


@dataclass
class Runs(vtime.Watcher):
    """Starts the runs of a command, stops them at a signal, and keeps those that have ended."""

    line: CommandLine
    requested: int  # how many runs
    at_once: int  # how many of them run at the same time
    kernel: Path
    folder: Path
    ended: dict[int, Run] = field(default_factory=dict)  # by their numbers
    running: list[CommandGuest] = field(default_factory=list)  # every guest that was started
    status: int = OK  # the exit status for the signal or error that stopped the runs
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
        """Run the command, unless the runs were stopped. An exception stops the other runs, too."""
        if self.status:
            return
        try:
            self.run(number)
        except BaseException:
            self.stop(FAILED)
            raise

    def run(self, number: int) -> None:
        """Run the command once, with its own seed. number: from 1 on. Raises WriteError,
        EngineError.
        """
        once = self.line.request
        digits = len(str(self.requested))
        into = self.folder / f"{RUN}{number:0{digits}}"
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
        if not once.capture_bytes:  # the packets were kept only to be compared
            files.remove(into / pcapng.NAME)
        lines = lines_printed(result.output)
        with self.lock:
            self.ended[number] = Run(number, request.seed, result, lines, conversations)
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

        goodput_kbps = connection.main.goodput_kbps
        made.append(Conversation(
            f"{name} ({counts[name]})",
            goodput_mbps=None if goodput_kbps is None else goodput_kbps / 1000,
            retransmitted=connection.retransmitted.total(),
            is_small=connection.main.bytes < SMALL * largest))
    return made


def connection_rows(runs: Sequence[Run]) -> list[Row]:
    """The goodput and the retransmissions of each connection, in all runs.

    A connection that is small in every run has no row. A run without the connection has None.
    """
    by_run = []
    for run in runs:
        by_run.append({conversation.name: conversation for conversation in run.conversations})
    names = dict.fromkeys(chain.from_iterable(by_run))

    rows = []
    for name in names:
        found = [of_run.get(name) for of_run in by_run]
        if all(conversation is None or conversation.is_small for conversation in found):
            continue

        rates_mbps = tuple(conversation.goodput_mbps if conversation else None
                           for conversation in found)
        if any(rate is not None for rate in rates_mbps):
            rows.append(Row(f"{name}: goodput", rates_mbps, "Mbit/s"))
        counts = tuple(float(conversation.retransmitted) if conversation else None
                       for conversation in found)
        rows.append(Row(f"{name}: retransmitted segments", counts))
    return rows


def lines_printed(output: Path) -> list[str]:
    """The first MOST_LINES lines that a command printed. output: its output.txt."""
    with reading.opened(output) as file:
        return [line[TIME_CHARACTERS:].partition(" ")[2].rstrip("\n")
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
    """Wait until all runs have ended, in short steps, so that signals are handled at once.

    Raises what a run raised.
    """
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
    """Lines on what went wrong, and for each in how many of the runs it did."""
    counts: Counter[str] = Counter()
    for run in runs:
        counts.update(run.result.troubles)
        counts.update(f"{name} spins: it waits without sleeping, so its clock was moved on"
                      " (vtime/MININET.md)" for name in run.result.spinning)
    return counts
