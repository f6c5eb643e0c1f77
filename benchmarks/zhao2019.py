#!/usr/bin/env python3
"""Time the whole of zhao2019 as a user runs it: ./run.sh, figures drawn.

    /usr/bin/python3 benchmarks/zhao2019.py [--runs 5]

Prints the median, least and most over the runs of: wall time from the command
to its end, time to the first fetch done, emulated seconds per wall second,
memory of one guest, and how many trials were verified. Machines differ and
are noisy: compare runs on one machine, not numbers from two.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Timing:
    """One run of the driver. guest_mb: largest proportional set size of one guest."""

    wall_s: float
    first_record_s: float
    emulated_s: float
    guest_mb: float
    trials: int
    verified: int


def run_once(folder: Path) -> Timing:
    """Run the driver once into `folder`. Raises RuntimeError with its words if it fails."""
    results = folder / "results"
    start = time.monotonic()
    process = subprocess.Popen(
        [str(PROJECT / "run.sh"), "--scenario", "zhao2019", "--fresh", "--results", str(results),
         "--figures", str(folder / "figures")],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    trials = results / "zhao2019" / "latest" / "trials.csv"
    first_s, guest_mb = 0.0, 0.0
    while process.poll() is None:
        if not first_s and trials.exists() and trials.read_bytes().count(b"\n") > 1:
            first_s = time.monotonic() - start
        if first_s and not guest_mb:
            guest_mb = largest_guest_mb(str(results))
        time.sleep(0.01)
    wall_s = time.monotonic() - start
    if process.returncode != 0:
        assert process.stderr is not None
        raise RuntimeError(f"run.sh ended with status {process.returncode}:"
                           f" {process.stderr.read().strip()}")
    facts = json.loads((trials.parent / "run.json").read_text())
    with trials.open(newline="") as file:
        verdicts = [row["verdict"] for row in csv.DictReader(file)]
    return Timing(wall_s, first_s, facts["emulated_s"], guest_mb, len(verdicts),
                  verdicts.count("pass"))


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


def main() -> int:
    parser = argparse.ArgumentParser(description="Time the whole of zhao2019.")
    parser.add_argument("--runs", type=int, default=5, help="counted runs (default 5)")
    runs = parser.parse_args().runs
    timings = []
    for number in range(runs + 1):  # the first warms the page cache and is not counted
        with tempfile.TemporaryDirectory() as folder:
            timing = run_once(Path(folder))
        if number > 0:
            timings.append(timing)
    print(f"{'':<38} {'median':>8} {'least':>8} {'most':>8}")
    show("command to end, figures drawn", [timing.wall_s for timing in timings], "s")
    show("command to first fetch done", [timing.first_record_s for timing in timings], "s")
    show("emulated seconds per wall second",
         [timing.emulated_s / timing.wall_s for timing in timings], "")
    show("memory of one guest", [timing.guest_mb for timing in timings], "MB")
    show("trials verified on the wire", [float(timing.verified) for timing in timings],
         f"of {timings[0].trials}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
