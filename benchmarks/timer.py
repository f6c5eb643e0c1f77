"""Times a command of ./run.sh, alone, or in turns with another version or with ns-3.

    /usr/bin/python3 -m benchmarks.timer [--runs 5] [-- --scenario zhao2019 …]
    /usr/bin/python3 -m benchmarks.timer --before FOLDER -- --scenario dukkipati2010
    /usr/bin/python3 -m benchmarks.timer --ns3

Prints the least, the median and the largest value over the runs. The two sides run in turns, so
that other load on the machine affects both alike; the ratio is the median over the pairs. The
processor time of all processes is counted by a control group, which needs root. Machines differ and
are noisy, so compare only runs on one machine.

--before FOLDER: FOLDER is the working tree of another version (git worktree add FOLDER COMMIT).
--ns3: the grid of zhao2019 runs next to the same fetches in ns-3 (Debian's libns3-dev, 3.37, and
g++). There benchmarks/ns3_grid.cc is one process for all cells, with ns-3's own TCP.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import command, processor
from firstflight.base import PROJECT
from firstflight.base.argument_types import positive_number
from firstflight.base.errors import OK, CannotError, FirstFlightError
from firstflight.base.parser import Parser
from firstflight.runs import scenario_file
from firstflight.runs.results.records import read_records
from firstflight.study import registry
from firstflight.workloads.fetch.record.record import Record


@dataclass(frozen=True)
class Timing:
    """What one run of a command took."""

    wall_s: float
    processor_s: float | None  # None: it cannot be counted
    emulated_s: float = 0.0


Look = Callable[[Path], object]  # takes the folder of a run


def watched(words: Sequence[str], given: str = "") -> tuple[Timing, str]:
    """Run a command with an input (given); return what it took and its output.

    Raises FirstFlightError with the command's last line if the command fails.
    """
    with processor.group() as group:
        start = time.monotonic()
        done = subprocess.run(group.command([*words]) if group else words, input=given, text=True,
                              capture_output=True, check=False)
        timing = Timing(time.monotonic() - start, group.used_s if group else None)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["without a word"])[-1]
        raise FirstFlightError(f"{words[0]} ended with status {done.returncode}: {last}")
    return timing, done.stdout


def timed(flags: Sequence[str], project: Path = PROJECT, look: Look = lambda run: None) -> Timing:
    """Time run.sh with figures, in a temporary folder; calls `look` with each run's folder.

    Raises FirstFlightError if run.sh fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        timing, _ = watched([str(project / "run.sh"), "--results", f"{folder}/results",
                             "--figures", f"{folder}/figures", *flags])
        runs = [path.parent for path in Path(folder, "results").glob("*/*-*/run.json")
                if not path.parent.is_symlink()]
        for run in runs:
            look(run)
        return Timing(timing.wall_s, timing.processor_s, sum(
            json.loads((run / "run.json").read_text()).get("emulated_s", 0.0) for run in runs))


# The grid in ns-3 ---------------------------------------------------------------------

GRID = "zhao2019"
LIBRARIES = ("point-to-point", "internet", "network", "core")
CONTROL = "TcpCubic"
HEADER_BYTES, REQUEST_BYTES = 42, 78  # of the header of our server, and of curl's request
NEAR_PERCENT = 2
Cell = tuple[float, float, int]  # RTT in ms, kbit/s, initial window in segments


def compiled(folder: Path) -> Path:
    """Compile the program that fetches the grid in ns-3. Raises CannotError."""
    command.need("g++")
    if not Path("/usr/include/ns3/core-module.h").exists():
        raise CannotError("no ns-3: apt-get install --no-install-recommends libns3-dev")
    target = folder / "ns3_grid"
    done = subprocess.run(
        ["g++", "-std=c++17", "-O2", "-o", str(target), str(PROJECT / "benchmarks/ns3_grid.cc"),
         *(f"-lns3-{library}" for library in LIBRARIES)], capture_output=True, text=True,
        check=False)
    if done.returncode:
        raise CannotError(f"g++: {done.stderr.strip().splitlines()[0]}")
    return target


def simulated(program: Path) -> tuple[Timing, dict[Cell, float]]:
    """Run the grid in ns-3; return what it took, and each cell's ms from SYN to last byte."""
    trials = registry.study_of(scenario_file.find(GRID)).trials
    timing, output = watched(
        [str(program), CONTROL, str(REQUEST_BYTES), str(trials[0].response_bytes + HEADER_BYTES),
         str(trials[0].queue_packets)],
        "".join(f"{trial.rtt_ms:g} {trial.bandwidth_kbps:g} {trial.initcwnd}\n"
                for trial in trials))
    total_ms = {(float(rtt_ms), float(kbps), int(window)): float(total)
                for rtt_ms, kbps, window, total in map(str.split, output.splitlines())}
    if len(total_ms) != len(trials) or min(total_ms.values()) < 0:
        raise FirstFlightError(f"ns-3 fetched {len(total_ms)} of {len(trials)} cells")
    return timing, total_ms


def cells_of(run: Path) -> dict[Cell, float]:
    """curl's time in ms of each cell, in a stored run of the grid."""
    return {(trial.rtt_ms, trial.bandwidth_kbps, trial.initcwnd): record.total_ms
            for record in read_records(run / "trials.csv", Record)
            if (trial := record.trial) and record.total_ms is not None}


def difference(ours: Mapping[Cell, float], theirs: Mapping[Cell, float]) -> str:
    """How far ns-3's times are from ours, over the cells of both, in one line."""
    percent = sorted((theirs[cell] / ours[cell] - 1) * 100 for cell in ours.keys() & theirs.keys())
    near = sum(abs(deviation) <= NEAR_PERCENT for deviation in percent)
    return (f"{len(percent)} cells, ns-3's times against ours: median"
            f" {statistics.median(percent):+.2f} %, {near} within {NEAR_PERCENT} %,"
            f" least {percent[0]:+.1f} %, most {percent[-1]:+.1f} %")


# The table ----------------------------------------------------------------------------

SHOWN: tuple[tuple[str, Callable[[Timing], float | None]], ...] = (
    ("wall time, s", lambda run: run.wall_s), ("processor time, s", lambda run: run.processor_s),
    ("emulated seconds a second", lambda run: run.emulated_s / run.wall_s or None))


def table(ours: Sequence[Timing], others: Sequence[Timing], name: str) -> list[str]:
    """A line for each quantity; others are as many runs of the other side, of that name, or none.
    """
    lines = [f"{'':<28} {'least':>8} {'median':>8} {'most':>8}"
             + (f" {name:>8} {'ratio':>6}" if others else "")]
    for quantity, value in SHOWN:
        values = [number for run in ours if (number := value(run)) is not None]
        pairs = [(own, other) for run, other_run in zip(ours, others)
                 if (own := value(run)) and (other := value(other_run))]
        if not values:
            continue
        cells = [min(values), statistics.median(values), max(values),
                 *([statistics.median(other for _, other in pairs)] if pairs else [])]
        lines.append(f"{quantity:<28} {' '.join(f'{cell:8.2f}' for cell in cells)}" + (
            f" {statistics.median(own / other for own, other in pairs):6.2f}" if pairs else ""))
    return lines


def main(words: Sequence[str]) -> int:
    parser = Parser(prog="timer", description="Time a command of run.sh.")
    add = parser.add_argument
    add("--runs", type=positive_number, default=5, help="counted runs (default 5)")
    add("--before", type=Path, metavar="FOLDER", help="another version, run in turns with this one")
    add("--ns3", action="store_true", help=f"{GRID}, each time next to ns-3")
    add("flags", nargs="*", metavar="FLAG",
        help=f"what run.sh is given, after -- (default --scenario {GRID})")
    requested = parser.parse_args(words)
    if requested.ns3 and (requested.flags or requested.before):
        parser.error(f"--ns3 takes {GRID} as it stands: no flags and no --before")
    flags = requested.flags or ["--scenario", GRID]
    ours: dict[Cell, float] = {}
    timings: list[Timing] = []
    others: list[Timing] = []
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(Path(folder)) if requested.ns3 else None
        for number in range(requested.runs + 1):
            look: Look = (lambda run: ours.update(cells_of(run))) if program else lambda run: None
            timings.append(timed(flags, look=look))
            if program:
                timing, theirs = simulated(program)
                others.append(timing)
                if number == requested.runs:
                    print(difference(ours, theirs))
            elif requested.before:
                others.append(timed(flags, requested.before))
    # The first one warms the page cache and is not counted.
    print("\n".join(table(timings[1:], others[1:],
                          "ns-3" if program else "before" if requested.before else "")))
    if timings[0].processor_s is None:
        print("processor time is not counted: no control group can be made (it takes root)")
    return OK


if __name__ == "__main__":
    command.run("timer", main)
