"""The least that a response can cost in a guest: its use of the kernel, times what that costs.

    /usr/bin/python3 -m benchmarks.speed.floor

Costs: benchmarks/speed/floor.c in a guest on one processor, the least of many batches, by the
processor's cycle counter (a guest's clock stands still while it computes). Counts: the
worker runs responses of one sort, by libcurl and by curl. System calls by strace in the
guest, without what starting takes (two jobs of different length); page faults and
switches by the guest's kernel (/proc/<pid>/stat, /proc/stat); switches of this machine by
the guest's processes (/proc/<pid>/status), processor time by a control group, which
takes root. Needs gcc and strace.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import command, processor
from benchmarks.speed import growth
from engines.guest.init import RESULTS
from engines.job import PROJECT, JobFolder
from engines.uml import ALIGN_S, built_kernel, guest_command, processors
from lab import registry
from lab.core.command_line import Parser, positive
from lab.core.errors import OK, CannotError, FirstFlightError
from lab.core.run.kinds import NOTHING
from lab.core.scenario import scenario_file

POLL_S, DEADLINE_S = 0.02, 600.0
STRETCH = 0.1  # of the responses: the shortest stretch whose time is looked at
LEAST = "  of the quickest stretch"  # costs are the least of many, too
SHOWN = 10  # system calls that are named
NAMES = {"call": "a system call", "clock": "a look at the clock (clock_gettime)",
         "fault": "a page fault", "trip": "a byte to another process and back",
         "program": "a small program started (/bin/true)"}


@dataclass(frozen=True)
class Moment:
    """What a guest had taken when so many trials were done."""

    trials: int
    switches: int  # of this machine's, by the guest's processes
    processor_s: float


# In the guest -------------------------------------------------------------------------

def inside() -> None:
    """Run the worker's job; when the network is up, and when all is done, count."""
    from engines.worker import worker

    class Counted(worker.Worker):
        def write(self, line: dict[str, Any]) -> None:
            if line.get("stage") in ("ready", "done"):
                Path(RESULTS, f"{line['stage']}.json").write_text(json.dumps(counters()))
            super().write(line)

    worker.Worker = Counted  # type: ignore[misc]
    sys.exit(worker.main(Path(RESULTS), PROJECT))


def counters() -> dict[str, int]:
    """Page faults of all processes and of those that they waited for; switches."""
    faults = 0
    for entry in Path("/proc").glob("[0-9]*"):
        words = (entry / "stat").read_text().rpartition(")")[2].split()
        faults += int(words[7]) + int(words[8])  # minflt, cminflt
    switches = next(int(line.split()[1]) for line in Path("/proc/stat").read_text().splitlines()
                    if line.startswith("ctxt"))
    return {"page faults": faults, "switches in the guest": switches}


# On this machine ----------------------------------------------------------------------

def in_guest(folder: Path, words: Sequence[str]) -> list[Moment]:
    """Run a command in a guest whose folder this is; moments of its way."""
    (folder / "command.json").write_text(json.dumps(words))
    moments: list[Moment] = []
    with processor.group() as group, (folder / "console.log").open("w") as console:
        if group is None:
            raise CannotError("no control group can be made: it takes root")
        guest = subprocess.Popen(
            group.command(["taskset", "--cpu-list", str(processors()[0]),
                           *guest_command(built_kernel())]),
            cwd=folder, stdin=subprocess.DEVNULL, stdout=console, stderr=console)
        deadline = time.monotonic() + DEADLINE_S
        while guest.poll() is None:
            moments.append(Moment(done(folder), switches(group), group.used_s))
            if time.monotonic() > deadline:
                guest.kill()
                raise FirstFlightError(f"the guest did not end in {DEADLINE_S:g} s")
            time.sleep(POLL_S)
    if (folder / "status").read_text().strip() != "0":
        raise FirstFlightError(f"{words[0]} failed in the guest:"
                               f" {(folder / 'console.log').read_text().strip()[-300:]}")
    return moments


def done(folder: Path) -> int:
    lines = folder / "observations.jsonl"
    return lines.read_bytes().count(b'{"trial":') if lines.exists() else 0


def switches(group: processor.Group) -> int:
    """Of the guest's processes that are there now."""
    count = 0
    for pid in (group.folder / "cgroup.procs").read_text().split():
        try:
            count += sum(int(line.split()[1]) for line in Path("/proc", pid, "status").read_text(
            ).splitlines() if "ctxt_switches" in line)
        except OSError:
            continue
    return count


def costs_us(folder: Path) -> dict[str, float]:
    """Microseconds by the names of floor.c, in a guest."""
    program = command.compiled(folder / "floor", PROJECT / "benchmarks/speed/floor.c", "-O1")
    hertz = float(subprocess.run([str(program), "--hertz"], capture_output=True, text=True,
                                 check=True).stdout)
    in_guest(folder, ["/bin/sh", "-c", f"{RESULTS}/floor >{RESULTS}/costs"])
    return {name: float(cycles) / hertz * 1e6 for name, cycles in
            map(str.split, (folder / "costs").read_text().splitlines())}


def prepared(folder: Path, client: str, trials: int) -> None:
    """The job of so many responses of one sort in a guest's folder."""
    with tempfile.TemporaryDirectory() as name:
        path = growth.scenario_of(trials, Path(name))
        path.write_text(path.read_text().replace('"libcurl"', f'"{client}"'))
        study = registry.study_of(scenario_file.find(str(path)), NOTHING, 1)
    JobFolder(folder, [trial.job() for trial in study.trials], {}, ALIGN_S)


def system_calls(client: str, trials: int) -> Counter[str]:
    """By name, of all processes of a guest that runs so many responses."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "guest")
        prepared(folder, client, trials)
        in_guest(folder, ["strace", "-f", "-c", "-o", f"{RESULTS}/calls", sys.executable, "-m",
                          "benchmarks.speed.floor", "--inside"])
        return calls_in((folder / "calls").read_text())


def calls_in(table: str) -> Counter[str]:
    """What `strace -c` counted, by the name of the call."""
    rows = [line.split() for line in table.splitlines()]
    return Counter({row[-1]: int(row[3]) for row in rows
                    if len(row) in (5, 6) and row[3].isdecimal() and row[-1] != "total"})


def counted(client: str, trials: int) -> dict[str, float]:
    """A response's share of what a guest counts, and of what it takes of this machine."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "guest")
        prepared(folder, client, trials)
        moments = in_guest(folder, [sys.executable, "-m", "benchmarks.speed.floor", "--inside"])
        ready, end = (json.loads((folder / f"{stage}.json").read_text())
                      for stage in ("ready", "done"))
    some = [moment for moment in moments if 0 < moment.trials < trials]
    if not some or some[0].trials == some[-1].trials:
        raise FirstFlightError(f"{trials} responses are too few to be counted")
    first, last = some[0], some[-1]
    return {**{what: (end[what] - ready[what]) / trials for what in ready},
            "switches of this machine": (last.switches - first.switches)
            / (last.trials - first.trials),
            "processor time, ms": milliseconds(first, last),
            LEAST: min(milliseconds(one, other) for one in some for other in some
                       if other.trials - one.trials >= trials * STRETCH)}


def milliseconds(first: Moment, last: Moment) -> float:
    """Of processor time a response between two moments."""
    return (last.processor_s - first.processor_s) * 1000 / (last.trials - first.trials)


def floor_ms(counts: Mapping[str, float], costs: Mapping[str, float]) -> float:
    """Milliseconds: system calls, page faults and switches between processes, each at its cost.

    A trip is two switches and four calls.
    """
    switch_us = max(0.0, (costs["trip"] - 4 * costs["call"]) / 2)
    return (counts["system calls"] * costs["call"] + counts["page faults"] * costs["fault"]
            + counts["switches in the guest"] * switch_us) / 1000


def shown(client: str, trials: int, costs: Mapping[str, float]) -> list[str]:
    few = max(4, trials // 5)
    started, calls = system_calls(client, few), system_calls(client, trials)
    calls.subtract(started)
    per_response = {name: count / (trials - few) for name, count in calls.most_common()}
    counts = {"system calls": sum(per_response.values()), **counted(client, trials)}
    names = ", ".join(f"{name} {count:.0f}" for name, count in list(per_response.items())[:SHOWN])
    least_ms = floor_ms(counts, costs)
    return [f"a response by {client} (9 kB, {trials} of them)",
            *(f"  {what:<38} {number:8.1f}" for what, number in counts.items()),
            f"  floor: calls, faults, switches, in ms  {least_ms:8.2f}"
            f"  ({least_ms / counts[LEAST]:.0%} of the least time)",
            f"  system calls: {names}"]


def main(words: Sequence[str]) -> int:
    parser = Parser(prog="floor", description="What a response asks of a guest's kernel.")
    parser.add_argument("--responses", type=positive, default=300, help="counted (default 300)")
    parser.add_argument("--inside", action="store_true", help="in a guest: run its job")
    requested = parser.parse_args(words)
    if requested.inside:
        inside()
    command.need("gcc")
    command.need("strace")
    with tempfile.TemporaryDirectory() as name:
        costs = costs_us(Path(name))
    print("in a guest, the least of many, µs")
    for what, cost in costs.items():
        print(f"  {NAMES[what]:<38} {cost:8.1f}")
    for client in ("libcurl", "curl"):
        print("\n".join(shown(client, requested.responses, costs)), flush=True)
    return OK


if __name__ == "__main__":
    command.run("floor", main)
