"""The zhao2019 grid in ns-3 beside ours: how long it takes, and whether its times are plausible.

Optional: Debian's libns3-dev (3.37 in Debian 12) and g++. benchmarks/speed/ns3_grid.cc is
compiled into a temporary folder; one process runs all cells, with ns-3's own TCP.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchmarks import processor
from engines.job import PROJECT
from lab import registry
from lab.core.errors import CannotError, FirstFlightError
from lab.core.results.records import read_records
from lab.core.run.kinds import NOTHING
from lab.core.scenario import scenario_file
from lab.fetches.verify.record import Record

GRID = "zhao2019"
SOURCE = PROJECT / "benchmarks/speed/ns3_grid.cc"
LIBRARIES = ("point-to-point", "internet", "network", "core")
CONTROLS = {"cubic": "TcpCubic", "reno": "TcpNewReno"}
HEADER_BYTES, REQUEST_BYTES = 42, 78  # of our server's answer and of curl's request
NEAR_PERCENT = 2
Cell = tuple[float, float, int]  # RTT in ms, kbit/s, initial window in segments


@dataclass(frozen=True)
class Ns3Grid:
    """One run of the grid. total_ms: by cell, from the SYN to the last byte."""

    wall_s: float
    processor_s: float | None
    total_ms: dict[Cell, float]


class Ns3:
    """The compiled program. Raises CannotError where ns-3 or a compiler is missing."""

    def __init__(self, folder: Path) -> None:
        self.program = folder / "ns3_grid"
        if not Path("/usr/include/ns3/core-module.h").exists() or not shutil.which("g++"):
            raise CannotError("no ns-3: apt-get install --no-install-recommends libns3-dev g++")
        done = subprocess.run(
            ["g++", "-std=c++17", "-O2", "-o", str(self.program), str(SOURCE),
             *(f"-lns3-{library}" for library in LIBRARIES)],
            capture_output=True, text=True, check=False)
        if done.returncode:
            raise CannotError(f"g++: {done.stderr.strip().splitlines()[0]}")

    @cached_property
    def cells(self) -> list[Cell]:
        """Those of the scenario, each once."""
        study = registry.study_of(scenario_file.find(GRID), NOTHING, 1)
        self.trial = study.trials[0]
        return [(each.rtt_ms, each.bandwidth_kbps, each.initcwnd) for each in study.trials]

    def run(self, control: str = "cubic") -> Ns3Grid:
        """All cells under a congestion control of CONTROLS. Raises FirstFlightError."""
        requested = "".join(f"{rtt_ms:g} {kbps:g} {window}\n"
                            for rtt_ms, kbps, window in self.cells)
        words = [str(self.program), CONTROLS[control], str(REQUEST_BYTES),
                 str(self.trial.response_bytes + HEADER_BYTES), str(self.trial.queue_packets)]
        with processor.group() as group:
            start = time.monotonic()
            done = subprocess.run(group.command(words) if group else words, input=requested,
                                  capture_output=True, text=True, check=False)
            wall_s = time.monotonic() - start
            used_s = group.used_s if group else None
        total_ms = {(float(rtt_ms), float(kbps), int(window)): float(total)
                    for rtt_ms, kbps, window, total in map(str.split, done.stdout.splitlines())}
        if done.returncode or len(total_ms) != len(self.cells) or min(total_ms.values()) < 0:
            raise FirstFlightError(f"ns-3 fetched {len(total_ms)} of {len(self.cells)} cells:"
                                   f" {done.stderr.strip()[-200:]}")
        return Ns3Grid(wall_s, used_s, total_ms)


def of_run(run: Path) -> dict[Cell, float]:
    """What curl told of each cell in a stored run of the grid."""
    return {(each.trial.rtt_ms, each.trial.bandwidth_kbps, each.trial.initcwnd): each.total_ms
            for each in read_records(run / "trials.csv", Record) if each.total_ms is not None}


def difference(ours: Mapping[Cell, float], theirs: Mapping[Cell, float]) -> str:
    """How far theirs is from ours over the cells of both, in one line."""
    percent = sorted((theirs[cell] / ours[cell] - 1) * 100 for cell in ours.keys() & theirs.keys())
    near = sum(abs(each) <= NEAR_PERCENT for each in percent)
    return (f"{len(percent)} cells, ns-3's times against ours: median"
            f" {statistics.median(percent):+.2f} %, {near} within {NEAR_PERCENT} %,"
            f" least {percent[0]:+.1f} %, most {percent[-1]:+.1f} %")
