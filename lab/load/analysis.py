"""What load runs say: estimates over independent seeds, and the numbers of each figure.

A quantity is computed for every run by itself; its estimate is the mean over
the seeds with a 95 % Student interval. Windows meet the same arrivals, so
differences are taken seed by seed (common random numbers), which leaves less
to chance than either value has.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from lab.errors import FirstFlightError
from lab.load.connections import (FILE, OK, QUEUE_FILE, Bottleneck, Connections, read_bottleneck,
                                  read_file)
from lab.load.record import PERCENTILES, LoadRecord
from lab.load.scenario import Figure
from lab.load.trial import DROPTAIL, LoadTrial

CONFIDENCE = 0.95
QUEUE_SMOOTHED_S = 2.0
FILES = "files"  # folder of a run, see experiment.py


class MissingRuns(FirstFlightError):
    """A figure lacks runs; its text says which."""


@dataclass(frozen=True)
class Estimate:
    """A mean over n seeds and its 95 % interval, None where there is but one seed."""

    value: float
    interval: tuple[float, float] | None
    n: int

    @property
    def sign(self) -> int:
        """1 or -1 where the interval excludes 0, else 0."""
        if self.interval is None:
            return 0
        return 1 if self.interval[0] > 0 else -1 if self.interval[1] < 0 else 0


def estimate(values: Sequence[float]) -> Estimate:
    """Raises ValueError for no values."""
    if not values:
        raise ValueError("no values to estimate from")
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return Estimate(mean, None, 1)
    from scipy import stats
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * spread / math.sqrt(
        len(values))
    return Estimate(mean, (mean - half, mean + half), len(values))


def variant(trial: LoadTrial) -> str:
    """What sends and what queues: "cubic", "cubic paced by fq", "cubic through cake"."""
    queue = "" if trial.queue == DROPTAIL else f" through {trial.queue}"
    return f"{trial.congestion_control}{' paced by fq' if trial.paced else ''}{queue}"


def axis_value(trial: LoadTrial, axis: str) -> Any:
    """A trial's place on an axis of lab.load.scenario.AXES; "" for no axis."""
    if axis == "variant":
        return variant(trial)
    return getattr(trial, axis) if axis else ""


@dataclass(frozen=True)
class Runs:
    """The runs of one figure: those that count, by window and seed.

    folder: the run folder; left_out: runs that do not count. _read: by id,
    the connections read so far, since a figure's tables and claims each ask.
    """

    figure: Figure
    folder: Path
    records: tuple[LoadRecord, ...]
    left_out: int
    _read: dict[str, Connections] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, figure: Figure, records: Iterable[LoadRecord], folder: Path) -> Runs:
        mine = [record for record in records if record.trial.part in figure.sweeps
                and record.trial.window in figure.windows]
        counting = tuple(record for record in mine if record.counts)
        missing = [window for window in figure.windows
                   if not any(record.trial.window == window for record in counting)]
        if missing:
            raise MissingRuns(f"{figure.name}: no run with the window {missing[0]} counts;"
                              " measure the whole scenario again with --fresh")
        return cls(figure, folder, counting, len(mine) - len(counting))

    def values(self, axis: str) -> list[Any]:
        """The values on an axis, in the order of the file."""
        return list(dict.fromkeys(axis_value(record.trial, axis) for record in self.records))

    def at(self, window: str, **places: Any) -> dict[int, LoadRecord]:
        """The runs with a window at a place on some axes, by repeat.

        Raises MissingRuns where several cells share the place.
        """
        found: dict[int, LoadRecord] = {}
        for record in self.records:
            trial = record.trial
            if trial.window == window and all(axis_value(trial, axis) == value
                                              for axis, value in places.items() if axis):
                if trial.repeat in found:
                    raise MissingRuns(f"{self.figure.name}: several runs fall on one place; say"
                                      " by which axis they differ (by, series)")
                found[trial.repeat] = record
        return found

    def connections(self, record: LoadRecord) -> Connections:
        """The connections of a run that count. Raises ConnectionsError."""
        trial = record.trial
        if trial.id not in self._read:
            path = self.folder / FILES / f"{trial.id}-{FILE}"
            self._read[trial.id] = read_file(path).counted(trial.counted_s)
        return self._read[trial.id]

    def queue(self, record: LoadRecord) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64]]:
        """The bottleneck's queue: times in s, and the mean of QUEUE_SMOOTHED_S in packets."""
        path = self.folder / FILES / f"{record.trial.id}-{QUEUE_FILE}"
        seen: Bottleneck = read_bottleneck(path.read_bytes(), str(path))
        bins = (seen.time_s // QUEUE_SMOOTHED_S).astype(int)
        counts = numpy.maximum(numpy.bincount(bins), 1)
        means = numpy.bincount(bins, weights=seen.queue_packets) / counts
        return (numpy.arange(len(means)) + 0.5) * QUEUE_SMOOTHED_S, means


# Quantities of records -----------------------------------------------------------

def over_seeds(records: dict[int, LoadRecord], quantity: str) -> Estimate | None:
    """A column over the seeds; None where a run has no value."""
    values = [getattr(record, quantity) for record in records.values()]
    if not values or any(value is None for value in values):
        return None
    return estimate(values)


@dataclass(frozen=True)
class Gain:
    """What the second window changes of a quantity: base − experiment.

    absolute in the quantity's unit, percent of the base's mean.
    """

    base: Estimate
    experiment: Estimate
    absolute: Estimate
    percent: Estimate


def gain(base: dict[int, LoadRecord], experiment: dict[int, LoadRecord],
         quantity: str) -> Gain | None:
    """By pairs of one seed; None where either lacks a value."""
    return paired({repeat: getattr(record, quantity) for repeat, record in base.items()},
                  {repeat: getattr(record, quantity) for repeat, record in experiment.items()})


def paired(base: dict[int, float | None], experiment: dict[int, float | None]) -> Gain | None:
    """The gain by seeds that both have; None without one, or where a value is missing."""
    both = [(base[repeat], experiment[repeat]) for repeat in sorted(set(base) & set(experiment))]
    pairs = [(first, second) for first, second in both
             if first is not None and second is not None]
    if not pairs or len(pairs) < len(both):
        return None
    firsts, seconds = [first for first, _ in pairs], [second for _, second in pairs]
    mean = math.fsum(firsts) / len(firsts)
    differences = [first - second for first, second in pairs]
    return Gain(estimate(firsts), estimate(seconds), estimate(differences),
                estimate([difference / mean * 100 if mean else 0.0
                          for difference in differences]))


# What figures show -----------------------------------------------------------------

@dataclass(frozen=True)
class Point:
    """One place of a line: what a window changes there."""

    x: Any
    mean: Gain
    p99: Gain | None
    retransmission: Gain


@dataclass(frozen=True)
class Line:
    """The points of one window against the baseline, for one value of the series."""

    window: str
    series: Any
    points: tuple[Point, ...]


def lines(runs: Runs) -> list[Line]:
    """For a figure of kind gain: a line for each window but the first, and series value.

    Along the axis "window" the line's points are the windows themselves.
    """
    figure, baseline = runs.figure, runs.figure.windows[0]
    found = []
    for series in runs.values(figure.series):
        at = {figure.series: series}
        if figure.by == "window":
            found.append(Line("", series, tuple(
                point for window in figure.windows if (point := _point(
                    window, runs.at(baseline, **at), runs.at(window, **at))) is not None)))
            continue
        for window in figure.windows[1:]:
            found.append(Line(window, series, tuple(
                point for x in runs.values(figure.by) if (point := _point(
                    x, runs.at(baseline, **at, **{figure.by: x}),
                    runs.at(window, **at, **{figure.by: x}))) is not None)))
    return found


def _point(x: Any, base: dict[int, LoadRecord],
           experiment: dict[int, LoadRecord]) -> Point | None:
    mean = gain(base, experiment, "mean_ms")
    again = gain(base, experiment, "retransmission_percent")
    if mean is None or again is None:
        return None
    return Point(x, mean, gain(base, experiment, "p99_ms"), again)


@dataclass(frozen=True)
class Distribution:
    """Completion times of some connections: of a window, or of a window's part of a mix.

    curve_ms: sorted, pooled over the seeds, those that completed. percentiles:
    by PERCENTILES, None where a connection that never completed stands there.
    """

    name: str
    curve_ms: NDArray[numpy.float64]
    count: int
    unfinished: int
    mean: Estimate
    percentiles: dict[float, Estimate | None]
    retransmission: Estimate
    by_seed: dict[int, dict[float, float | None]]
    mean_by_seed: dict[int, float]
    rate_kbps: float

    def gain_over(self, base: Distribution, percentile: float | None) -> Gain | None:
        """Of a percentile, or of the mean for None: base − this."""
        if percentile is None:
            return paired(dict(base.mean_by_seed), dict(self.mean_by_seed))
        return paired({seed: values[percentile] for seed, values in base.by_seed.items()},
                      {seed: values[percentile] for seed, values in self.by_seed.items()})


def distribution(name: str, by_seed: dict[int, Connections]) -> Distribution:
    """Of connections by seed. Raises MissingRuns where none completed."""
    done = {seed: each.ended(OK) for seed, each in by_seed.items()}
    if not by_seed or not all(len(each) for each in done.values()):
        raise MissingRuns(f"{name}: no connection completed")
    percentiles = {seed: {percentile: each.percentile_ms(percentile)
                          for percentile in PERCENTILES} for seed, each in by_seed.items()}
    means = {seed: float(each.total_ms.mean()) for seed, each in done.items()}
    pooled = numpy.sort(numpy.concatenate([each.total_ms for each in done.values()]))
    bits = numpy.concatenate([each.asked_bytes * 8 for each in done.values()])
    times = numpy.concatenate([each.total_ms for each in done.values()])
    return Distribution(
        name, pooled, sum(map(len, by_seed.values())),
        sum(len(by_seed[seed]) - len(done[seed]) for seed in by_seed), estimate(list(means.values())),
        {percentile: _estimate_all([each[percentile] for each in percentiles.values()])
         for percentile in PERCENTILES},
        estimate([each.retransmission_percent for each in by_seed.values()]),
        percentiles, means, float((bits / times).mean()))


def _estimate_all(values: Sequence[float | None]) -> Estimate | None:
    known = [value for value in values if value is not None]
    return estimate(known) if known and len(known) == len(values) else None


def distributions(runs: Runs, with_handshake: bool = True) -> list[Distribution]:
    """One for each window of the figure, a mix as a whole."""
    return [unmixed(runs, window, with_handshake) for window in runs.figure.windows]


def unmixed(runs: Runs, window: str, with_handshake: bool = True) -> Distribution:
    """All connections of the runs with a window."""
    def times(connections: Connections) -> Connections:
        return connections if with_handshake else replace(
            connections, total_ms=connections.total_ms - connections.connect_ms)

    return distribution(window_label(window), {
        repeat: times(runs.connections(record)) for repeat, record in runs.at(window).items()})


def groups_of_mix(runs: Runs, window: str) -> list[Distribution]:
    """The parts of a mix, by initial window, ascending."""
    records = runs.at(window)
    parts = sorted({host.initcwnd for record in records.values() for host in record.trial.hosts})
    return [distribution(f"IW {initcwnd} in the mix", {
        repeat: runs.connections(record).of_hosts(
            {number for number, host in enumerate(record.trial.hosts)
             if host.initcwnd == initcwnd})
        for repeat, record in records.items()}) for initcwnd in parts]


def window_label(window: str) -> str:
    return f"IW {window}" if "+" not in window else f"mix of IW {window.replace('+', ' and ')}"


def jain(values: Sequence[float]) -> float:
    """Jain's fairness index: 1 where all have the same, 1/n where one has all.

    (Jain, Chiu, Hawe: A quantitative measure of fairness, DEC-TR-301, 1984.)
    """
    total, squares = math.fsum(values), math.fsum(value * value for value in values)
    return total * total / (len(values) * squares) if squares else 1.0


@dataclass(frozen=True)
class Hit:
    """Transfers that retransmitted, at one place of the axis.

    share_percent: of all, by window. own: mean completion time of those that
    each window hit. same: of the arrivals that either window hit, so that the
    same transfers are compared; counted for pairs of one seed.
    """

    x: Any
    base_share_percent: float
    experiment_share_percent: float
    own: Gain | None
    same: Gain | None
    same_count: int


def hits(runs: Runs) -> list[Hit]:
    """For a figure of kind hit: the first window against the second."""
    base, experiment = runs.figure.windows[:2]
    return [_hit(runs, x, runs.at(base, **{runs.figure.by: x}),
                 runs.at(experiment, **{runs.figure.by: x}))
            for x in runs.values(runs.figure.by)]


def _hit(runs: Runs, x: Any, base: dict[int, LoadRecord],
         experiment: dict[int, LoadRecord]) -> Hit:
    own: tuple[dict[int, float | None], dict[int, float | None]] = ({}, {})
    same: tuple[dict[int, float | None], dict[int, float | None]] = ({}, {})
    shares: tuple[list[float], list[float]] = ([], [])
    count = 0
    for repeat in sorted(set(base) & set(experiment)):
        first, second = (runs.connections(record[repeat]) for record in (base, experiment))
        was_hit = [numpy.nan_to_num(each.retransmitted_bytes) > 0 for each in (first, second)]
        either = was_hit[0] | was_hit[1]
        count += int(either.sum())
        for place, each in enumerate((first, second)):
            shares[place].append(float(was_hit[place].mean() * 100))
            own[place][repeat] = _mean_ms(each, was_hit[place])
            same[place][repeat] = _mean_ms(each, either)
    return Hit(x, estimate(shares[0]).value, estimate(shares[1]).value, paired(*own),
               paired(*same), count)


def _mean_ms(connections: Connections, chosen: NDArray[numpy.bool_]) -> float | None:
    done = connections.where(chosen).ended(OK)
    return float(done.total_ms.mean()) if len(done) else None
