"""Computes the numbers of load runs: estimates over independent seeds, for each figure.

A quantity is computed for each run. Its estimate is the mean over the seeds, with Student's 95 %
interval. All windows meet the same arrivals, so differences are taken seed by seed (common random
numbers) and vary less than either value.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from firstflight.base.stats import Estimate, estimate
from firstflight.base.words import plain
from firstflight.figures.compare import Row, difference, student_by_seed
from firstflight.figures.making import NothingToShow
from firstflight.findings.difference import Difference
from firstflight.findings.quantities import quantity
from firstflight.runs.measuring import trial_file_path, read_trial_file
from firstflight.runs.results.cells import Cells
from firstflight.runs.results.records import value_of
from firstflight.workloads.load.record import (FILE, OK, PERCENTILES, QUEUE_FILE, Connections,
                                               LoadRecord, parse_connections, read_bottleneck)
from firstflight.workloads.load.scenario import LoadFigure
from firstflight.workloads.load.traffic import Window, single

Numbers = NDArray[numpy.float64]
BySeed = dict[int, LoadRecord]  # the runs of one cell, by repeat
Sides = tuple[dict[int, float | None], dict[int, float | None]]  # values by repeat

QUEUE_SMOOTHED_S = 2.0  # the time over which lengths of the queue are averaged


class MissingRuns(NothingToShow):
    """Raised where a figure lacks runs. The message names them."""


@dataclass(frozen=True)
class Runs:
    """The runs of one figure that count."""

    figure: LoadFigure
    folder: Path  # the run folder
    records: tuple[LoadRecord, ...]
    excluded: int  # how many runs do not count
    # The connections that were read already, by the run's id: several numbers need them.
    _read: dict[str, Connections] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of_figure(cls, figure: LoadFigure, records: Iterable[LoadRecord], folder: Path) -> Runs:
        """The runs of a figure. Raises MissingRuns where a window has no run that counts."""
        of_figure = [record for record in records if record.trial.part in figure.sweeps
                     and record.trial.window in figure.windows]
        counting = tuple(record for record in of_figure if record.counts)
        measured = {record.trial.window for record in counting}
        missing = [window for window in figure.windows if window not in measured]
        if missing:
            raise MissingRuns(f"{figure.name}: no run with the window {missing[0]} counts;"
                              " measure the whole scenario again with --fresh")
        return cls(figure, folder, counting, excluded=len(of_figure) - len(counting))

    @property
    def exclusion_notes(self) -> tuple[str, ...]:
        """A note on the runs that do not count; () where all do."""
        if not self.excluded:
            return ()
        are = "run is" if self.excluded == 1 else "runs are"
        return (f"{self.excluded} {are} excluded: not measured, or not verified",)

    def values(self, axis: str) -> list[Any]:
        """The values on an axis, in the order of the file; [""] if the axis is ""."""
        return Cells(self.records).values(axis)

    def at(self, window: str, **values: object) -> BySeed:
        """The runs with a window and the given values on axes, by repeat.

        Raises MissingRuns where several cells have these values.
        """
        chosen = Cells(self.records).at(window=window, **values).records
        by_seed = {record.trial.repeat: record for record in chosen}
        if len(by_seed) < len(chosen):
            raise MissingRuns(f"{self.figure.name}: several runs fall on one place; say by which"
                              " axis they differ (by, down)")
        return by_seed

    def window(self, name: str) -> Window:
        """The window that a figure has by this name."""
        return next(record.trial.requested_window for record in self.records
                    if record.trial.window == name)

    def connections(self, record: LoadRecord) -> Connections:
        """The connections of a run that arrived in its counted span. Raises FirstFlightError."""
        trial = record.trial
        if trial.id not in self._read:
            path = trial_file_path(self.folder, trial.id, FILE)
            connections = parse_connections(read_trial_file(path), str(path))
            self._read[trial.id] = connections.counted(trial.counted_s)
        return self._read[trial.id]

    def queue(self, record: LoadRecord) -> tuple[Numbers, Numbers]:
        """The bottleneck's queue: times in s, and means over QUEUE_SMOOTHED_S in packets.

        Raises FirstFlightError.
        """
        path = trial_file_path(self.folder, record.trial.id, QUEUE_FILE)
        samples = read_bottleneck(read_trial_file(path), str(path))
        bins = (samples.time_s / QUEUE_SMOOTHED_S).astype(int)
        counts = numpy.maximum(numpy.bincount(bins), 1)
        means = numpy.bincount(bins, weights=samples.queue_packets) / counts
        return (numpy.arange(len(means)) + 0.5) * QUEUE_SMOOTHED_S, means


# Names of axes and their values --------------------------------------------------------

def name_of(axis: str) -> str:
    """The name of an axis, for columns and charts."""
    known = quantity(axis)
    return known.label or known.head


def format_value(axis: str, value: Any) -> str:
    """A value on an axis in words: "50 kB", "0.95", "2 BDP"."""
    if axis == "response_bytes":
        return f"{plain(value / 1000)} kB"
    if axis == "queue_bdp":
        return f"{plain(value)} BDP"
    return plain(value) if isinstance(value, (int, float)) else str(value)


def format_named(axis: str, value: Any) -> str:
    """A value with the name of its axis, such as "buffer 2 BDP". A variant has no name."""
    name = "" if axis == "variant" else f"{name_of(axis)} "
    return name + format_value(axis, value)


# Quantities of records -----------------------------------------------------------

def over_seeds(values: Collection[float | None]) -> Estimate | None:
    """The mean over the seeds; None where a run has no value."""
    known = [value for value in values if value is not None]
    return estimate(known) if known and len(known) == len(values) else None


def gain(base: BySeed, experiment: BySeed, column: str) -> Difference | None:
    """What the experiment changes of a column, seed by seed; None where a run lacks the value."""
    def values(records: BySeed) -> dict[int, float | None]:
        return {repeat: value_of(record, column) for repeat, record in records.items()}

    return paired(values(base), values(experiment))


def paired(base: Mapping[int, float | None],
           experiment: Mapping[int, float | None]) -> Difference | None:
    """The difference over the seeds of both sides; None without a seed or with a missing value."""
    rows = []
    for seed in base.keys() & experiment.keys():
        first, second = base[seed], experiment[seed]
        if first is None or second is None:
            return None
        rows += [Row(None, 0, unit=seed, weight=1.0, value=first),
                 Row(None, 1, unit=seed, weight=1.0, value=second)]
    return difference(rows, 0, 1, student_by_seed) if rows else None


# What is reported of a distribution: its mean, for which None stands, and percentiles.
MEAN_AND_PERCENTILES: tuple[float | None, ...] = (None, *PERCENTILES)


# Figures ---------------------------------------------------------------------------

@dataclass(frozen=True)
class GainPoint:
    """What a window changes at one point of a line."""

    window: str  # of the line; "" where the points of the line are the windows
    series: Any  # of the line
    x: Any  # the point's value on the axis
    mean: Difference
    p99: Difference | None
    retransmission: Difference


def points(runs: Runs) -> list[GainPoint]:
    """The points of a figure of kind gain, ordered by series, then by window."""
    figure = runs.figure
    found = []
    for series in runs.values(figure.down):
        place = {figure.down: series}
        if figure.by == "window":
            # There is one line, whose axis are the windows.
            for window in figure.windows:
                found += _point(runs, window, place, line="", x=window)
            continue

        for window in figure.windows[1:]:
            for x in runs.values(figure.by):
                found += _point(runs, window, {**place, figure.by: x}, line=window, x=x)
    return found


def _point(runs: Runs, window: str, place: Mapping[str, Any], line: str,
           x: Any) -> list[GainPoint]:
    """What a window changes, compared with the figure's first window; [] where a run lacks a value.

    place: the values on axes at which the two windows are compared. line, x: the point's in the
    chart (GainPoint).
    """
    base = runs.at(runs.figure.windows[0], **place)
    experiment = runs.at(window, **place)
    mean = gain(base, experiment, "mean_ms")
    p99 = gain(base, experiment, "p99_ms")
    retransmission = gain(base, experiment, "retransmission_percent")
    if mean is None or retransmission is None:
        return []
    return [GainPoint(line, place[runs.figure.down], x, mean=mean, p99=p99,
                      retransmission=retransmission)]


@dataclass(frozen=True)
class Distribution:
    """Completion times of the connections of a window, or of a group within a mix."""

    name: str
    window: Window  # for a group of a mix: the window that unmixed runs with its window have
    curve_ms: NDArray[numpy.float64]  # completion times, sorted and pooled over the seeds
    count: int  # of all connections, completed or not
    retransmission: Estimate
    # The values of each of MEAN_AND_PERCENTILES by seed. A percentile is None where the connection
    # with that rank never completed.
    by_seed: dict[float | None, Mapping[int, float | None]]
    rate_kbps: float  # the mean over connections of bits per time

    def at(self, percentile: float | None) -> Estimate | None:
        """The estimate of a percentile, or of the mean for None."""
        return over_seeds(self.by_seed[percentile].values())

    @property
    def mean(self) -> Estimate:
        """The mean over the connections that completed."""
        return estimate([mean for mean in self.by_seed[None].values() if mean is not None])

    def gain_over(self, base: Distribution, percentile: float | None = None) -> Difference | None:
        """How much shorter a percentile is than that of the base. None stands for the mean."""
        return paired(base.by_seed[percentile], self.by_seed[percentile])


def distribution(name: str, window: Window, by_seed: dict[int, Connections]) -> Distribution:
    """The distribution of connections, given by seed. Raises MissingRuns where none completed."""
    done = {seed: connections.ended(OK) for seed, connections in by_seed.items()}
    if not by_seed or not all(len(connections) for connections in done.values()):
        raise MissingRuns(f"{name}: no connection completed")

    values: dict[float | None, Mapping[int, float | None]] = {
        None: {seed: float(connections.total_ms.mean()) for seed, connections in done.items()}}
    for percentile in PERCENTILES:
        values[percentile] = {seed: connections.percentile_of_all_ms(percentile)
                              for seed, connections in by_seed.items()}

    times_ms = numpy.concatenate([connections.total_ms for connections in done.values()])
    bits = numpy.concatenate([connections.asked_bytes * 8 for connections in done.values()])
    retransmission = [connections.retransmission_percent for connections in by_seed.values()]
    return Distribution(
        name, window, numpy.sort(times_ms), count=sum(map(len, by_seed.values())),
        retransmission=estimate(retransmission), by_seed=values,
        rate_kbps=float((bits / times_ms).mean()))


def distributions(runs: Runs, with_handshake: bool = True) -> list[Distribution]:
    """The distribution of each window of the figure; a mix is one distribution.

    with_handshake: whether completion times begin with the SYN, not with the request.
    """
    return [all_connections(runs, window, with_handshake) for window in runs.figure.windows]


def all_connections(runs: Runs, window: str, with_handshake: bool = True) -> Distribution:
    """The distribution of all connections of the runs with a window or mix."""
    by_seed = {}
    for repeat, record in runs.at(window).items():
        connections = runs.connections(record)
        if not with_handshake:
            transfer_ms = connections.total_ms - connections.connect_ms
            connections = replace(connections, total_ms=transfer_ms)
        by_seed[repeat] = connections
    requested = runs.window(window)
    return distribution(requested.label, requested, by_seed)


def groups_of_mix(runs: Runs, window: str) -> list[Distribution]:
    """The distributions of a mix's groups, by initial window, ascending."""
    hosts_of: dict[int, dict[int, set[int]]] = {}  # numbers of clients, by window and repeat
    records = runs.at(window)
    for repeat, record in records.items():
        for number, host in enumerate(record.trial.clients):
            hosts_of.setdefault(host.initcwnd, {}).setdefault(repeat, set()).add(number)

    groups = []
    for initcwnd in sorted(hosts_of):
        by_seed = {repeat: runs.connections(records[repeat]).select_hosts(hosts)
                   for repeat, hosts in hosts_of[initcwnd].items()}
        groups.append(distribution(f"IW {initcwnd} in the mix", single(initcwnd), by_seed))
    return groups


@dataclass(frozen=True)
class Mixes:
    """The distributions of a figure of kind mix."""

    alone: dict[str, Distribution]  # of runs where everybody has one window, by window
    groups: dict[str, list[Distribution]]  # of the groups of each mix, by the mix's name
    labels: dict[str, str]  # each window or mix in words


def mixes(runs: Runs) -> Mixes:
    """The distributions of a figure of kind mix."""
    alone, groups, labels = {}, {}, {}
    for window in runs.figure.windows:
        requested = runs.window(window)
        labels[window] = requested.label
        if requested.is_mix:
            groups[window] = groups_of_mix(runs, window)
        else:
            alone[window] = all_connections(runs, window)
    return Mixes(alone, groups, labels)


def jain(values: Sequence[float]) -> float:
    """Jain's fairness index: 1 where all values are equal, 1/n where one of n has everything.

    (Jain, Chiu, Hawe: A quantitative measure of fairness, DEC-TR-301, 1984.)
    """
    total = math.fsum(values)
    squares = math.fsum(value * value for value in values)
    return total * total / (len(values) * squares) if squares else 1.0


@dataclass(frozen=True)
class Hit:
    """Transfers that retransmitted ("were hit", in the deck), at one point of the axis."""

    x: object
    share: Difference  # how many of all transfers were hit, in percent
    # The mean completion time over the transfers hit under each window, which are not the same.
    own: Difference | None
    # The mean completion time over the arrivals hit under either window, which are the same under
    # both; and how many these are.
    same: Difference | None
    same_count: int


def hits(runs: Runs) -> list[Hit]:
    """The points of a figure of kind hit: the first window against the second."""
    base, experiment = runs.figure.windows[:2]
    found = []
    for x in runs.values(runs.figure.by):
        place = {runs.figure.by: x}
        found.append(_hit(runs, x, runs.at(base, **place), runs.at(experiment, **place)))
    return found


def _hit(runs: Runs, x: object, base: BySeed, experiment: BySeed) -> Hit:
    """The transfers that retransmitted at x, under both windows."""
    common = sorted(set(base) & set(experiment))
    if not common:
        raise MissingRuns(f"{runs.figure.name}: no seed was measured with both windows at"
                          f" {format_value(runs.figure.by, x)}; measure the whole scenario again"
                          " with --fresh")

    share: Sides = ({}, {})
    own: Sides = ({}, {})
    same: Sides = ({}, {})
    count = 0
    for repeat in common:
        both = [runs.connections(record[repeat]) for record in (base, experiment)]
        if len(both[0]) != len(both[1]):
            raise MissingRuns(f"{runs.figure.name}: {base[repeat].trial.id} and"
                              f" {experiment[repeat].trial.id} had other arrivals; measure again"
                              " with --fresh")

        was_hit = [numpy.nan_to_num(connections.retransmitted_bytes) > 0 for connections in both]
        either = was_hit[0] | was_hit[1]
        count += int(either.sum())
        for side, connections in enumerate(both):
            share[side][repeat] = float(was_hit[side].mean() * 100)
            own[side][repeat] = _mean_ms(connections, was_hit[side])
            same[side][repeat] = _mean_ms(connections, either)

    of_all = paired(*share)
    assert of_all is not None  # each seed in common has its shares
    return Hit(x, of_all, paired(*own), same=paired(*same), same_count=count)


def _mean_ms(connections: Connections, chosen: NDArray[numpy.bool_]) -> float | None:
    """The mean completion time of the chosen connections; None where none completed."""
    done = connections.select(chosen).ended(OK)
    return float(done.total_ms.mean()) if len(done) else None
