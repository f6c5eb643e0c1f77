"""What spreading trials over a cluster costs: dispatch, records through the main process, memory.

Workers answer with made-up results of real size, so that nothing is measured but the way:
Dask's scheduler and its processes, this process's reading, checking and writing of records.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks import command
from engines.cluster.cluster import Cluster
from engines.cluster.link import SchedulerLink, quiet_dask
from engines.cluster.node import OK
from engines.job import PROJECT
from lab import registry
from lab.core.command_line import Parser, positive
from lab.core.results.record_file import RecordFile
from lab.core.results.records import columns_of
from lab.core.run import batches
from lab.core.run.batches import TrialBatch
from lab.core.run.kinds import Overrides
from lab.core.scenario.quantities import FLAGS
from lab.fetches.scenario.trial import Trial
from lab.fetches.verify.record import Record

STORED = PROJECT / "tests" / "golden" / "zhao2019_trials.csv"  # rows of real length
TRIAL_S = 0.0075  # of one core, a response of dukkipati2010 (docs/PERFORMANCE.md)
BATCH_S = batches.BATCH_S
PARTS = 5  # of a run, whose memory is printed one by one
WORKERS = (64, 256, 1024)


def answer(batch: bytes, row: list[str], seconds: float) -> bytes:
    """A task: a result of every trial of a batch, made up, after some time."""
    time.sleep(seconds)
    requested = batches.unpacked(batch)
    columns = columns_of(Record)
    replies = []
    for parameters in requested["trials"]:
        trial = Trial(**parameters)
        values = list(row)
        for field in fields(Trial):
            values[columns.index(field.name)] = _text(getattr(trial, field.name))
        replies.append({"row": values, "captures": {}, "files": {}, "emulated_s": 0.5})
    head = {"status": OK, "worker": "made up", "machine": "made up"}
    return json.dumps(head).encode() + b"\n" + batches.packed({"facts": {}, "trials": replies})


def _text(value: Any) -> str:
    from lab.core.results.records import to_text
    from lab.core.words import exact
    return to_text(value, exact)


class MadeUp(SchedulerLink):
    """To processes of this machine that make results up."""

    def __init__(self, processes: int, threads: int, seconds: float) -> None:
        dask = quiet_dask()
        self.address, self.build, self.name = "made up", "none", "none"
        self.refused: dict[str, str] = {}
        self.guard = ExitStack()
        self.local = dask.LocalCluster(n_workers=processes, threads_per_worker=threads,
                                       dashboard_address="127.0.0.1:0")
        self.client = dask.Client(self.local, set_as_default=False)
        self.count(self.workers())
        self.seconds = seconds
        with STORED.open(newline="") as file:
            stored = next(csv.DictReader(file))
        self.row = [stored.get(column, "") for column in columns_of(Record)]

    def submit(self, batch: bytes, avoid: Sequence[str], urgent: bool,
               attempts: int) -> tuple[Any, frozenset[str]]:
        return (self.client.submit(answer, batch, self.row, self.seconds, pure=False),
                frozenset())


def batches_of(study: Any, size: int, count: int) -> Iterator[TrialBatch]:
    """Batches of the study's trials, over and over: the main process holds none of its own."""
    for _ in range(count):
        yield TrialBatch(study, study.trials[:size], [])


def through(link: SchedulerLink, study: Any, size: int, count: int, path: Path) -> Iterator[float]:
    """Let so many batches through, their records into a file; yields the time of each."""
    cluster = Cluster(link)
    file = RecordFile(path, Record)
    try:
        for _, (judged, _) in cluster.results(batches_of(study, size, count), TrialBatch.payload,
                                              TrialBatch.read, TrialBatch.failed):
            for trial in judged:
                file.append(trial.record)
            yield time.perf_counter()
    finally:
        file.close()


def memory_mb() -> float:
    """What this process has in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def example(size: int) -> Any:
    """A study of so many trials."""
    lists = {name: [FLAGS[name].check(value, name) for value in values] for name, values in
             {"rtt_ms": range(1, size // 2 + 1), "initcwnd": (3, 10)}.items()}
    return registry.own_question("own", Overrides(lists, many=True))


def measured_rate(records: int, size: int) -> float:
    """Records a second through scheduler and main process, with the memory on the way."""
    link, count = MadeUp(2, 1, 0.0), max(PARTS, records // size)
    study = example(size)
    try:
        with tempfile.TemporaryDirectory() as folder:
            times = through(link, study, size, count, Path(folder) / "trials.csv")
            next(times)
            began, done = time.perf_counter(), 0
            for part in range(PARTS):
                done += sum(1 for _ in islice(times, (count - 1) // PARTS))
                print(f"  {done * size:9,} records, {memory_mb():5.0f} MB", flush=True)
            list(times)
            rate = (count - 1) * size / (time.perf_counter() - began)
    finally:
        link.close()
    print(f"records through scheduler and main process: {rate:,.0f} a second, of {size} in a batch")
    return rate


def measured_dispatch_s(count: int) -> float:
    """Seconds of the main process for a batch of one trial."""
    link = MadeUp(2, 1, 0.0)
    study = example(2)
    try:
        with tempfile.TemporaryDirectory() as folder:
            times = list(through(link, study, 1, count, Path(folder) / "trials.csv"))
    finally:
        link.close()
    dispatch_s = (times[-1] - times[0]) / (count - 1)
    print(f"dispatch: {1000 * dispatch_s:.1f} ms a batch, {1 / dispatch_s:,.0f} batches a second")
    return dispatch_s


def show_efficiency(guests: int, seconds: float, rounds: int) -> None:
    """Batches that only wait, on as many threads as a cluster has guests."""
    link = MadeUp(4, -(-guests // 4), seconds)
    study = example(round(seconds / TRIAL_S / 2) * 2)
    try:
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            times = list(through(link, study, len(study.trials), link.guests * rounds,
                                 Path(folder) / "trials.csv"))
    finally:
        link.close()
    part = seconds * rounds / (times[-1] - began)
    print(f"{link.guests} guests, batches of {seconds:g} s that only wait, {rounds} each:"
          f" {100 * part:.0f} % efficient")


def show_calculated(rate: float, dispatch_s: float) -> None:
    """Print what the parts come to for more workers than this machine has."""
    size = BATCH_S / TRIAL_S
    main_s = size / rate + dispatch_s
    print(f"\nby calculation, batches of {BATCH_S:g} s and {size:,.0f} trials of"
          f" {1000 * TRIAL_S:g} ms; booting 1 s each:")
    for workers in WORKERS:
        wanted = workers / (BATCH_S + 1.0)  # batches a second, if nothing held them up
        part = BATCH_S / (BATCH_S + 1.0) * min(1.0, 1.0 / (wanted * main_s))
        print(f"  {workers:5} workers: {100 * part:.0f} % efficient; the main process is busy"
              f" {100 * min(1.0, wanted * main_s):.0f} % of the time")
    print(f"  the main process keeps up with {(BATCH_S + 1.0) / main_s:,.0f} workers")


def main(argv: Sequence[str]) -> int:
    arguments = parse(argv)
    dispatch_s = measured_dispatch_s(arguments.batches)
    rate = measured_rate(arguments.records, arguments.size)
    show_efficiency(arguments.guests, arguments.seconds, 4)
    show_calculated(rate, dispatch_s)
    return 0


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = Parser(prog="cluster", description=__doc__.splitlines()[0],
                    formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    add = parser.add_argument
    add("--records", type=positive, default=1_000_000, help="to let through")
    add("--size", type=positive, default=2000, help="records in a batch")
    add("--batches", type=positive, default=500, help="of one trial, for the cost of dispatch")
    add("--guests", type=positive, default=64, help="that only wait, for the efficiency")
    add("--seconds", type=float, default=3.0, help="that each of their batches takes")
    return parser.parse_args(argv)


if __name__ == "__main__":
    # Workers import it by this name.
    sys.modules["benchmarks.speed.cluster"] = sys.modules["__main__"]
    command.run("cluster", main)
