"""Time a command of run.sh as a user gives it, figures drawn.

    /usr/bin/python3 -m benchmarks.speed.scenario [--runs 5] [-- --scenario zhao2019 …]
    python3 -m benchmarks.speed.scenario --runs 3 -- --scenario ietf78_completion --repeat 1

Prints the median, least and most over the runs of: wall time from the command to
its end, to the first trial done and to the first figure, emulated seconds per wall
second, memory of the process that measures and of one guest, disk for what engines
keep meanwhile, processor time of all processes (benchmarks/processor.py; it takes
root), and how many trials were verified; for load also the connections. Machines differ
and are noisy: compare runs on one machine, not numbers from two.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import command, processor
from engines.job import PROJECT
from lab.core.command_line import Parser, positive
from lab.core.errors import OK, FirstFlightError

POLL_S, LOOK_S = 0.01, 0.5  # between looks at what there is, and at what takes longer to count


@dataclass
class Timing:
    """One run of the driver, or of another program.

    first_record_s, first_figure_s: 0 where there was none. main_mb: most resident
    memory of the process that measures, measuring_mb: until all was measured; guest_mb:
    largest proportional set size of a guest; work_mb: most disk of what engines keep while
    they measure. processor_s: None where it cannot be counted.
    """

    wall_s: float = 0.0
    processor_s: float | None = None
    first_record_s: float = 0.0
    first_figure_s: float = 0.0
    emulated_s: float = 0.0
    main_mb: float = 0.0
    measuring_mb: float = 0.0
    guest_mb: float = 0.0
    work_mb: float = 0.0
    verdicts: list[str] = field(default_factory=list)
    connections: int = 0


def timed(flags: Sequence[str], project: Path = PROJECT,
          environment: Mapping[str, str] | None = None,
          look: Callable[[Path], object] = lambda run: None) -> Timing:
    """One run of run.sh in a folder of its own. Raises FirstFlightError if it fails.

    look: is given each run's folder before it is thrown away.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        timing = watched([str(project / "run.sh"), "--results", str(folder / "results"),
                          "--figures", str(folder / "figures"), *flags], folder, environment)
        for run in (folder / "results").glob("*/*-*/run.json"):
            if not run.parent.is_symlink():
                _add(timing, run.parent)
                look(run.parent)
        return timing


def watched(words: list[str], folder: Path, environment: Mapping[str, str] | None = None
            ) -> Timing:
    """Run a command to its end, looking at what it takes, and makes in `folder`.

    Raises FirstFlightError with its last words if it fails.
    """
    timing = Timing()
    with processor.group() as group, (folder / "log").open("w+") as log:
        start = time.monotonic()
        process = subprocess.Popen(group.command(words) if group else words, text=True,
                                   stdout=subprocess.DEVNULL, stderr=log,
                                   env={**os.environ, **(environment or {})})
        look = start
        while process.poll() is None:
            _look(timing, process.pid, folder, time.monotonic() - start)
            if time.monotonic() > look:
                timing.guest_mb = max(timing.guest_mb, largest_guest_mb(str(folder)))
                timing.work_mb = max(timing.work_mb, _megabytes(folder.glob("results/*/*/work")))
                look = time.monotonic() + LOOK_S
            time.sleep(POLL_S)
        timing.wall_s = time.monotonic() - start
        timing.processor_s = group.used_s if group else None
        log.seek(0)
        if process.returncode != 0:
            last = (log.read().strip().splitlines() or ["without a word"])[-1]
            raise FirstFlightError(f"{words[0]} ended with status {process.returncode}: {last}")
    return timing


def _look(timing: Timing, pid: int, folder: Path, now_s: float) -> None:
    """What can be observed at any moment: memory, and the first record and figure."""
    try:
        status = Path("/proc", str(pid), "status").read_text()
        timing.main_mb = max(timing.main_mb, *(int(line.split()[1]) / 1024 for line in
                                               status.splitlines() if line.startswith("VmHWM")))
    except (OSError, TypeError):  # it ends, and has no memory any more
        pass
    if any(folder.glob("results/*/*/work")):  # which goes when all is measured
        timing.measuring_mb = timing.main_mb
    if not timing.first_record_s and any(path.stat().st_size > 4096 for path in
                                         folder.glob("results/*/*/trials.csv")):
        timing.first_record_s = now_s
    if not timing.first_figure_s and any(folder.glob("figures/*.png")):
        timing.first_figure_s = now_s


def _add(timing: Timing, run: Path) -> None:
    """Add what the files of a run record."""
    timing.emulated_s += json.loads((run / "run.json").read_text()).get("emulated_s", 0.0)
    with (run / "trials.csv").open(newline="") as file:
        timing.verdicts += [row["verdict"] for row in csv.DictReader(file)]
    timing.connections += sum(gzip.decompress(path.read_bytes()).count(b"\n") - 1 for path in
                              (run / "files").glob("*-connections.csv.gz"))


def _megabytes(folders: Iterable[Path]) -> float:
    total = 0
    for folder in folders:
        for path in folder.rglob("*"):
            try:
                total += path.stat().st_blocks * 512
            except OSError:  # gone meanwhile
                continue
    return total / 1e6


def largest_guest_mb(word: str) -> float:
    """Proportional set size of the largest guest whose working folder has `word` in its path.

    A guest is one process with helpers in the same session that map the same memory.
    """
    sessions: dict[int, int] = {}
    processes = [entry for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    for of_guests in (True, False):
        for entry in processes:
            try:
                session = int((entry / "stat").read_text().rpartition(")")[2].split()[3])
                if of_guests and session not in sessions:
                    if (b"uml_dir" in (entry / "cmdline").read_bytes()
                            and word in os.readlink(entry / "cwd")):
                        sessions[session] = 0
                elif not of_guests and session in sessions:
                    rollup = (entry / "smaps_rollup").read_text()
                    sessions[session] += next(int(line.split()[1]) for line in
                                              rollup.splitlines() if line.startswith("Pss:"))
            except (OSError, StopIteration):
                continue
    return max(sessions.values(), default=0) / 1024


SHOWN: tuple[tuple[str, str, Callable[[Timing], float | None]], ...] = (
    ("command to end, figures drawn", "s", lambda run: run.wall_s),
    ("command to first trial done", "s", lambda run: run.first_record_s),
    ("command to first figure", "s", lambda run: run.first_figure_s),
    ("emulated seconds per wall second", "", lambda run: run.emulated_s / run.wall_s),
    ("memory of the process that measures", "MB", lambda run: run.main_mb),
    ("  until all is measured", "MB", lambda run: run.measuring_mb),
    ("memory of one guest", "MB", lambda run: run.guest_mb),
    ("disk of what engines keep meanwhile", "MB", lambda run: run.work_mb),
    ("processor time, all processes", "s", lambda run: run.processor_s),
    ("trials", "", lambda run: len(run.verdicts)),
    ("trials verified on the wire", "", lambda run: run.verdicts.count("pass")),
    ("connections", "", lambda run: run.connections or None),
    ("processor time a connection", "ms", lambda run: None if not run.connections else
     run.processor_s and run.processor_s * 1000 / run.connections))


def main(words: Sequence[str]) -> int:
    parser = Parser(prog="scenario", description="Time a command of run.sh.")
    parser.add_argument("--runs", type=positive, default=5, help="counted runs (default 5)")
    parser.add_argument("flags", nargs="*", metavar="FLAG",
                        help="what run.sh is given, after -- (default --scenario zhao2019)")
    arguments = parser.parse_args(words)
    flags = arguments.flags or ["--scenario", "zhao2019"]
    # The first one warms the page cache and is not counted.
    runs = [timed(flags) for _ in range(arguments.runs + 1)][1:]
    print(f"{'':<38} {'median':>8} {'least':>8} {'most':>8}")
    for name, unit, value in SHOWN:
        values = [number for run in runs if (number := value(run)) is not None]
        if values:
            print(f"{name:<38} {statistics.median(values):8.2f} {min(values):8.2f}"
                  f" {max(values):8.2f}  {unit}")
    if runs[0].processor_s is None:
        print("processor time is not counted: no control group can be made (it takes root)")
    return OK


if __name__ == "__main__":
    command.run("scenario", main)
