"""Time a scenario as a user runs it: ./run.sh, figures drawn.

    /usr/bin/python3 -m benchmarks.scenario [--runs 5] [zhao2019 [-- FLAG …]]
    /usr/bin/python3 -m benchmarks.scenario --runs 3 ietf78_completion -- --repeat 1

Prints the median, least and most over the runs of: wall time from the command
to its end, time to the first trial done, emulated seconds per wall second,
memory of one guest, processor time of all processes (benchmarks/processor.py;
it takes root), and how many trials were verified; for a load scenario also its
connections, and the processor time that each took. Machines differ and
are noisy: compare runs on one machine, not numbers from two.
"""

from __future__ import annotations

import csv
import gzip
import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks import command, processor
from engines.job import PROJECT
from lab.core.command_line import Parser, positive
from lab.core.errors import OK, FirstFlightError


@dataclass(frozen=True)
class Timing:
    """One run of the driver.

    guest_mb: largest proportional set size of one guest. processor_s: None
    where it cannot be counted.
    """

    wall_s: float
    first_record_s: float
    emulated_s: float
    guest_mb: float
    trials: int
    verified: int
    connections: int
    processor_s: float | None


def run_once(folder: Path, scenario: str, flags: list[str]) -> Timing:
    """Run the driver once into `folder`. Raises FirstFlightError with its words if it fails."""
    command = [str(PROJECT / "run.sh"), "--scenario", scenario, "--fresh", "--results",
               str(folder / "results"), "--figures", str(folder / "figures"), *flags]
    with processor.group() as group:
        timing = watch(group.command(command) if group else command, folder, scenario)
        return replace(timing, processor_s=group.used_s if group else None)


def watch(command: list[str], folder: Path, scenario: str) -> Timing:
    """Run the command to its end, looking at what it has made and taken so far."""
    results = folder / "results"
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               text=True)
    home, trials = results / scenario, Path("none yet")
    first_s, guest_mb, look = 0.0, 0.0, start
    while process.poll() is None:
        trials = next(home.glob("*-uml/trials.csv"), trials)  # of the only run here
        if not first_s and trials.exists() and trials.read_bytes().count(b"\n") > 1:
            first_s = time.monotonic() - start
        # Once for a fetch scenario, whose guests soon have what they need; load runs grow.
        if (first_s and not guest_mb) or scenario.startswith("ietf78") and time.monotonic() > look:
            guest_mb = max(guest_mb, largest_guest_mb(str(results)))
            look = time.monotonic() + 1.0
        time.sleep(0.01)
    wall_s = time.monotonic() - start
    if process.returncode != 0:
        assert process.stderr is not None
        raise FirstFlightError(f"run.sh ended with status {process.returncode}:"
                               f" {process.stderr.read().strip()}")
    facts = json.loads((trials.parent / "run.json").read_text())
    with trials.open(newline="") as file:
        verdicts = [row["verdict"] for row in csv.DictReader(file)]
    connections = sum(gzip.decompress(path.read_bytes()).count(b"\n") - 1 for path in
                      (trials.parent / "files").glob("*-connections.csv.gz"))
    return Timing(wall_s, first_s, facts["emulated_s"], guest_mb, len(verdicts),
                  verdicts.count("pass"), connections, None)


def largest_guest_mb(word: str) -> float:
    """Proportional set size of the largest guest whose command line has `word`.

    A guest is one process with helpers in the same session that map the same memory.
    """
    sessions: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and word.encode() in (entry / "cmdline").read_bytes() \
                    and b"uml_dir" in (entry / "cmdline").read_bytes():
                session = int((entry / "stat").read_text().rpartition(")")[2].split()[3])
                sessions[session] = 0
        except OSError:
            continue
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal():
                session = int((entry / "stat").read_text().rpartition(")")[2].split()[3])
                if session in sessions:
                    rollup = (entry / "smaps_rollup").read_text()
                    sessions[session] += next(int(line.split()[1]) for line in
                                              rollup.splitlines() if line.startswith("Pss:"))
        except (OSError, StopIteration):
            continue
    return max(sessions.values(), default=0) / 1024


def show(name: str, values: list[float], unit: str) -> None:
    print(f"{name:<38} {statistics.median(values):8.2f} {min(values):8.2f}"
          f" {max(values):8.2f}  {unit}")


def main(words: Sequence[str]) -> int:
    parser = Parser(prog="scenario", description="Time a whole scenario.")
    parser.add_argument("--runs", type=positive, default=5, help="counted runs (default 5)")
    parser.add_argument("scenario", nargs="?", default="zhao2019")
    parser.add_argument("flags", nargs="*", metavar="FLAG", help="flags of run.sh, after --")
    arguments = parser.parse_args(words)
    runs = arguments.runs
    timings = []
    for number in range(runs + 1):  # the first warms the page cache and is not counted
        with tempfile.TemporaryDirectory() as folder:
            timing = run_once(Path(folder), arguments.scenario, arguments.flags)
        if number > 0:
            timings.append(timing)
    print(f"{'':<38} {'median':>8} {'least':>8} {'most':>8}")
    show("command to end, figures drawn", [timing.wall_s for timing in timings], "s")
    show("command to first trial done", [timing.first_record_s for timing in timings], "s")
    show("emulated seconds per wall second",
         [timing.emulated_s / timing.wall_s for timing in timings], "")
    show("memory of one guest", [timing.guest_mb for timing in timings], "MB")
    used_s = [timing.processor_s for timing in timings if timing.processor_s is not None]
    if used_s:
        show("processor time, all processes", used_s, "s")
    else:
        print("processor time is not counted: no control group can be made (it takes root)")
    show("trials verified on the wire", [float(timing.verified) for timing in timings],
         f"of {timings[0].trials}")
    if timings[0].connections:
        show("connections", [float(timing.connections) for timing in timings], "")
        if used_s:
            show("processor time a connection", [used * 1000 / timing.connections for used, timing
                                                 in zip(used_s, timings)], "ms")
    return OK


if __name__ == "__main__":
    command.run("scenario", main)
