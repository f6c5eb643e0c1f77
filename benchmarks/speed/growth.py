"""How time and memory grow with the number of trials of one sort, measured and stored."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from benchmarks.speed.scenario import Timing, timed, watched
from engines.job import PROJECT
from engines.uml import built_kernel
from lab import registry
from lab.core.results.records import read_records
from lab.core.run import runs
from lab.core.run.kinds import NOTHING
from lab.core.scenario import scenario_file
from lab.fetches.verify.record import Record

SEED = 1
# One network, two windows, one process that fetches: what differs between trials is their number.
# A cell may be repeated ten thousand times: beyond that come cells with a little longer RTT.
MOST_REPEATS = 10_000
SCENARIO = """\
# Trials of one sort: how time and memory grow with their number.

title = "Trials of one sort"
source = "benchmarks/speed/growth.py"

[defaults]
response_bytes = [9000]
initcwnd = [3, 10]
initrwnd = 27
congestion_control = "cubic"
client = "libcurl"
repeat = {repeat}
queue_packets = 1000
loss_percent = 0
uplink = "same"

[[sweep]]
name = "grid"
rtt_ms = {rtts_ms}
bandwidth_kbps = [1000]

[[axis]]
by = "rtt_ms"
values = {rtts_ms}
labels = {labels}

[[figure]]
name = "rtt"
title = "Improvement by RTT"
kind = "improvement"
sweep = "grid"
by = "rtt_ms"
baseline_initcwnd = 3
experiment_initcwnd = 10
metric = "total_ms"
"""


class Point(NamedTuple):
    """What a number of trials took."""

    what: str
    trials: int
    timing: Timing


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Of the power law that fits best, by least squares of the logarithms; nan where none can."""
    if len(sizes) < 2 or min(values) <= 0:
        return math.nan
    logs = [(math.log(size), math.log(value)) for size, value in zip(sizes, values)]
    mean_x, mean_y = (sum(log[place] for log in logs) / len(logs) for place in (0, 1))
    return (sum((x - mean_x) * (y - mean_y) for x, y in logs)
            / sum((x - mean_x) ** 2 for x, _ in logs))


def exponent_beyond_start(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Of N in c + a·N^p, where each size is the same multiple of the one before.

    What every run has to pay once, c, is no part of the differences between
    neighbours, and these grow by the same power. nan where one of them is not positive.
    """
    return exponent(sizes[1:], [after - before for before, after in zip(values, values[1:])])


def scenario_of(trials: int, folder: Path) -> Path:
    path = folder / f"trials{trials}.toml"
    of_window = max(1, trials // 2)
    rtts_ms = list(range(100, 100 + math.ceil(of_window / MOST_REPEATS)))
    path.write_text(SCENARIO.format(repeat=of_window // len(rtts_ms), rtts_ms=rtts_ms,
                                    labels=json.dumps(list(map(str, rtts_ms)))))
    return path


def measured(trials: int, project: Path = PROJECT) -> Point:
    """So many trials, measured, rendered and drawn by one command."""
    with tempfile.TemporaryDirectory() as name:
        return Point("measure, tell, draw", trials,
                     timed(["--yes", str(scenario_of(trials, Path(name)))], project))


def stored(trials: int) -> list[Point]:
    """List, resume and draw so many trials that have been measured, as far as records go.

    Two are measured; their records stand for all. The run is left as one that was
    stopped after its last trial: the command that resumes it finds nothing to measure.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = scenario_of(trials, folder)
        words = [str(PROJECT / "run.sh"), "--results", f"{folder}/results", "--figures",
                 f"{folder}/figures", "--yes", str(path)]
        write_run(path, folder)
        run, = (folder / "results" / path.stem).glob("*-*")
        commands = [("list", [*words, "--dry-run"]), ("resume, analyse, draw", words),
                    ("draw", ["/usr/bin/python3", str(PROJECT / "plot.py"), "--run", str(run),
                              "--figures", f"{folder}/figures"])]
        return [Point(what, trials, watched(command, folder)) for what, command in commands]


def write_run(path: Path, folder: Path) -> None:
    """The run of a scenario as it stands when all is measured, but not rendered."""
    small = scenario_of(2, folder)
    timed_results = folder / "small"
    watched([str(PROJECT / "run.sh"), "--results", str(timed_results), "--no-figures",
             str(small)], folder)
    one = runs.newest_whole(small.stem, timed_results)
    study = registry.study_of(scenario_file.find(str(path)), NOTHING, SEED)
    of_window = {record.trial.initcwnd: record
                 for record in read_records(one / runs.TRIALS_CSV, Record)}
    requested = runs.request(study, "uml", built_kernel().parent.name, SEED)
    run = runs.open_run(folder / "results", study, requested, fresh=True)
    try:
        run.facts.update({**runs.read_facts(one), **run.facts, "scenario": study.head.name,
                          "scenario_file": study.head.text})
        file = run.open_records()
        for trial in study.trials:
            file.append(replace(of_window[trial.initcwnd], trial=trial))
        run.seal(file)
        file.close()
    finally:
        run.close()


def table(points: Sequence[Point]) -> list[str]:
    """A line a point, and below each sort of them how it grows."""
    lines = [f"{'growth':<22} {'trials':>8} {'wall, s':>9} {'processor, s':>13}"
             f" {'memory, MB':>11} {'measuring, MB':>14} {'work folder, MB':>16}"]
    for what in dict.fromkeys(point.what for point in points):
        of_it = [point for point in points if point.what == what]
        times = [point.timing for point in of_it]
        lines += [f"{what:<22} {point.trials:8d} {took.wall_s:9.2f}"
                  f" {'–' if took.processor_s is None else f'{took.processor_s:.2f}':>13}"
                  f" {took.main_mb:11.0f} {took.measuring_mb:14.0f} {took.work_mb:16.1f}"
                  for point, took in zip(of_it, times)]
        sizes = [point.trials for point in of_it]
        counted = [took.wall_s if took.processor_s is None else took.processor_s for took in times]
        exponents = {"time beyond the start": exponent_beyond_start(sizes, counted),
                     "with it": exponent(sizes, counted),
                     "memory": exponent(sizes, [took.main_mb for took in times]),
                     "measuring": exponent(sizes, [took.measuring_mb for took in times]),
                     "disk": exponent(sizes, [took.work_mb for took in times])}
        lines.append(f"{'':<22} " + ", ".join(f"{name} ∝ N^{power:.2f}" for name, power
                                              in exponents.items() if not math.isnan(power)))
    return lines
