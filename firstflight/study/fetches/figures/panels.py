"""From records to the rows of figures.

Only a record that counts (its transfer succeeded and its verdict is pass)
enters a number; all others are counted beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from firstflight.base import stats
from firstflight.base.errors import UsageError
from firstflight.findings.charts import Ends
from firstflight.findings.difference import Excluded, percent_of
from firstflight.runs.results.records import PASS
from firstflight.study.fetches.figures.buckets import (Bucket, ByCell, NoPanel, Panel, Published,
                                                       Sample, by_cell, check_joint_labels,
                                                       published_bars, sign_of, weighted_cells)
from firstflight.study.fetches.scenario.path import PathParameters
from firstflight.study.fetches.scenario.scenario import JOINT, Axis, Figure, Scenario
from firstflight.study.fetches.scenario.sweep import Cell, Sweep, Value
from firstflight.study.fetches.verify import notes
from firstflight.study.fetches.verify.record import Record
from firstflight.study.scenario import published

Values = tuple[float, ...]


@dataclass(frozen=True)
class CellPair:
    """The values of one cell that count, by window, and what was excluded.

    matched: base and experiment of the same repeat, which met the same random
    numbers; empty unless every value has its counterpart.
    """

    weight: float
    base: Values
    experiment: Values
    excluded: Excluded
    matched: tuple[tuple[float, float], ...]
    lossless: bool


def improvement(scenario: Scenario, figure: Figure, records: Sequence[Record],
                is_whole: bool = True) -> Panel:
    """The rows of one improvement figure.

    A bucket is the mean over its cells, weighted by the shares of the other
    axis. A cell of which nothing counts loses its weight to the others, and
    shows in `cells` and `excluded`. Raises NoPanel where a cell was not
    measured at all or nothing of a bucket counts. Of a part of a scenario there
    are the buckets of which every cell was measured.
    """
    windows = (figure.baseline_initcwnd, figure.experiment_initcwnd)
    chosen, cells = by_cell(scenario, figure, windows, records, is_whole)
    axis, bars = scenario.axis_of(figure), published_bars(figure)
    buckets = []
    every: dict[Cell, CellPair] = {}
    behind: list[tuple[CellPair, float]] = []
    for value, weighted in zip(axis.values, weighted_cells(scenario, figure, axis)):
        if not is_whole and any((cell, window) not in cells for cell, _ in weighted
                                for window in windows):
            continue
        pairs = [pair_of(figure, cells, cell, weight, windows) for cell, weight in weighted]
        every.update((cell, pair) for (cell, _), pair in zip(weighted, pairs))
        buckets.append(bucket_of(figure, axis, value, pairs, bars.get(axis.label(value))))
        share, total = axis.share_percent(value) or 1.0, sum(pair.weight for pair in pairs)
        behind += [(pair, share * pair.weight / total) for pair in pairs]
    if not buckets:
        raise NoPanel(f"{figure.name}: no bucket was measured in all of its cells")
    return Panel(figure, tuple(buckets), client=chosen[0].trial.client,
                 congestion_control=chosen[0].trial.congestion_control,
                 counted=sum(len(pair.base) + len(pair.experiment) for pair in every.values()),
                 left_out=sum((pair.excluded for pair in every.values()), Excluded()),
                 remarks=_remarks(cells, windows),
                 samples=(_sample(windows[0], [(pair.base, weight) for pair, weight in behind]),
                          _sample(windows[1], [(pair.experiment, weight)
                                               for pair, weight in behind])))


def window_sweep(scenario: Scenario, figure: Figure, records: Sequence[Record],
                 is_whole: bool = True) -> Panel:
    """The rows of a figure of values against windows: each window against the baseline's.

    n counts a window's own fetches. Raises as `improvement`.
    """
    sweep = scenario.sweep(figure.sweep)
    measured = {record.trial.initcwnd for record in records}
    windows = [window for window in sweep.initcwnd
               if is_whole or window in measured or window == figure.baseline_initcwnd]
    chosen, cells = by_cell(scenario, figure, windows, records)
    (cell,) = sweep.cells
    axis, bars = scenario.axis_of(figure), published_bars(figure)
    buckets, samples = [], []
    for initcwnd in windows:
        pair = pair_of(figure, cells, cell, 1.0, (figure.baseline_initcwnd, initcwnd))
        own, excluded = counting(cells[cell, initcwnd], figure.metric)
        buckets.append(replace(
            bucket_of(figure, axis, initcwnd, [pair], bars.get(axis.label(initcwnd))), n=len(own),
            excluded=excluded))
        samples.append(_sample(initcwnd, [(pair.experiment, 1.0)]))
    return Panel(figure, tuple(buckets), client=chosen[0].trial.client,
                 congestion_control=chosen[0].trial.congestion_control, samples=tuple(samples),
                 remarks=_remarks(cells, windows))


def _remarks(cells: ByCell, windows: Sequence[int]) -> tuple[str, ...]:
    """Remarks on the trials of these windows that count."""
    return notes.limiting_notes([record for (_, initcwnd), records in cells.items()
                                 if initcwnd in windows for record in records if record.counts])


def _sample(initcwnd: int, cells: Sequence[tuple[Values, float]]) -> Sample:
    """All values under one window; a cell's weight is shared by its repeats."""
    return Sample(initcwnd, [value for values, _ in cells for value in values],
                  [weight / len(values) for values, weight in cells for _ in values])


# Buckets -----------------------------------------------------------------------------

def pair_of(figure: Figure, cells: ByCell, cell: Cell, weight: float,
            windows: tuple[int, int]) -> CellPair:
    """One cell under two windows."""
    base_records, experiment_records = (cells[cell, initcwnd] for initcwnd in windows)
    base, base_excluded = counting(base_records, figure.metric)
    experiment, excluded = counting(experiment_records, figure.metric)
    if windows[0] != windows[1]:  # else they are the same records
        excluded += base_excluded
    if not base or not experiment:
        excluded += Excluded(unpaired=len(base) + len(experiment))
        base, experiment = [], []
    matched: tuple[tuple[float, float], ...] = ()
    counterparts = dict(experiment)
    if (len(counterparts) == len(base) == len(experiment)
            and dict(base).keys() == counterparts.keys()):
        matched = tuple((value, counterparts[key]) for key, value in base)
    return CellPair(weight, tuple(value for _, value in base),
                    tuple(value for _, value in experiment), excluded, matched,
                    lossless=repeats(cell))


def repeats(network: PathParameters) -> bool:
    """Whether a second measurement on a network gives the same, to the microsecond.

    cake drops at random for a while once its queue was full (BLUE, cobalt_should_drop of
    net/sched/sch_cake.c), with numbers that nobody can seed.
    """
    return not network.is_random and network.qdisc != "cake"


def counting(records: Iterable[Record],
             metric: str) -> tuple[list[tuple[tuple[int, int], float]], Excluded]:
    """The metric of the records that count, by repeat and seed, and what others lack.

    Sorted, so that resampling does not depend on which guest was the faster.
    """
    values: list[tuple[tuple[int, int], float]] = []
    excluded = Excluded()
    for record in records:
        value: float | None = getattr(record, metric)
        if not record.ok:
            excluded += Excluded(failed_transfers=1)
        elif record.was_skipped:
            excluded += Excluded(skipped=1)
        elif record.verdict != PASS:
            excluded += Excluded(failed_verdicts=1)
        elif value is None:
            excluded += Excluded(without_value=1)
        else:
            values.append(((record.trial.repeat, record.trial.seed), value))
    return sorted(values), excluded


def bucket_of(figure: Figure, axis: Axis, value: Value, pairs: Sequence[CellPair],
              bar: Published | None) -> Bucket:
    """The cells of a bucket, averaged. Raises NoPanel where nothing of them counts."""
    label = axis.label(value)
    excluded = sum((pair.excluded for pair in pairs), Excluded())
    used = [pair for pair in pairs if pair.base and pair.weight > 0]
    if not used:
        raise NoPanel(f"{figure.name}: no record of bucket {label} counts ({excluded}); see"
                      " verdict_reason and error in trials.csv, then measure again with --fresh")
    weights = [pair.weight for pair in used]
    sides = [pair.base for pair in used], [pair.experiment for pair in used]
    base, experiment = (stats.weighted_mean([sum(values) / len(values) for values in side],
                                            weights) for side in sides)
    base_median, experiment_median = (_median(side, weights) for side in sides)
    sign = sign_of(figure.metric)
    absolute_interval, percent_interval = _intervals(used, weights, sign)
    return Bucket(
        label=label, value=value, share_percent=axis.share_percent(value),
        n=sum(len(pair.base) + len(pair.experiment) for pair in used), excluded=excluded,
        cells=len(used), cells_requested=len(pairs), base=base, experiment=experiment,
        base_median=base_median, experiment_median=experiment_median,
        absolute_interval=absolute_interval, percent_interval=percent_interval,
        published=bar or Published(), lossless=all(pair.lossless for pair in pairs), sign=sign,
        draws=min(sum(map(len, side)) for side in sides))


def _median(cells: Sequence[Values], weights: Sequence[float]) -> float:
    """Median over all responses, where a cell's weight is shared by its repeats."""
    values = [value for cell in cells for value in cell]
    shared = [weight / len(cell) for cell, weight in zip(cells, weights) for _ in cell]
    return stats.weighted_quantile(values, shared, 0.5)


def _intervals(pairs: Sequence[CellPair], weights: Sequence[float],
               sign: int) -> tuple[Ends | None, Ends | None]:
    """95 % intervals of the absolute and the relative (%) improvement."""
    sides = [pair.base for pair in pairs], [pair.experiment for pair in pairs]
    if any(len(cell) < 2 for side in sides for cell in side):
        return None, None
    if all(len(set(cell)) == 1 for side in sides for cell in side):
        # Every repeat gave the same: there is nothing to resample.
        means = [stats.weighted_mean([cell[0] for cell in side], weights) for side in sides]
        percent = percent_of(means[0], means[1], sign)
        return (sign * (means[0] - means[1]),) * 2, (percent,) * 2
    import numpy
    generator = stats.generator(seed=1)
    if all(pair.matched for pair in pairs):
        base, experiment = stats.resampled_pairs([pair.matched for pair in pairs], weights,
                                                 generator)
    else:
        base, experiment = (stats.resampled_means(side, weights, generator) for side in sides)
    absolute = sign * (base - experiment)
    parts = absolute / numpy.where(base, base, math.inf)  # of nothing: 0, as percent_of
    return stats.percentile_interval(absolute), stats.percentile_interval(parts * 100)


# What goes with what -----------------------------------------------------------------

def check_one_network(scenario: Scenario, figure: Figure, where: str) -> None:
    sweep = scenario.sweep(figure.sweep)
    if sweep.combination_count() > 1 or figure.weights:
        raise UsageError(f"{where}: compares windows in one network; sweep {sweep.name!r} has"
                         f" {sweep.combination_count()}")


def check_buckets(scenario: Scenario, figure: Figure, where: str) -> None:
    """Each value of the sweep has its bucket, and one cell each unless they are weighted."""
    if figure.weights == JOINT:
        return _check_joint(scenario, figure, where)
    sweep = scenario.sweep(figure.sweep)
    counts = sweep.counted(figure.by)
    check_same_values(scenario.axis_of(figure).values, sweep, figure.by, where)
    if not figure.weights:
        if max(counts.values()) > 1:
            raise UsageError(f"{where}: several cells fall in one bucket of {figure.by};"
                             " say by which axis they are weighted")
        return
    weights = scenario.axis(figure.weights)
    if weights is None or not weights.shares_percent:
        raise UsageError(f"{where}: weights: there is no [[axis]] with"
                         f' by = "{figure.weights}" and shares_percent')
    check_same_values(weights.values, sweep, figure.weights, where)


def check_same_values(axis: Iterable[Value], sweep: Sweep, by: str, where: str) -> None:
    """The axis has the values of the sweep. Raises UsageError."""
    odd = sorted({*axis} ^ {value for value, in sweep.counted(by)}, key=str)
    if odd:
        raise UsageError(f"{where}: {by}: the axis and sweep {sweep.name!r} differ in"
                         f" {', '.join(Axis('', tuple(odd)).labels)}")


def _check_joint(scenario: Scenario, figure: Figure, where: str) -> None:
    """Weights from the joint distribution: RTT and bandwidth have axes, and BDP the buckets."""
    if figure.by != "bdp_bytes":
        raise UsageError(f'{where}: weights = "{JOINT}" needs by = "bdp_bytes"')
    sweep = scenario.sweep(figure.sweep)
    for by in published.SHARES_PANELS:
        axis = scenario.axis(by)
        if axis is None:
            raise UsageError(f'{where}: there is no [[axis]] with by = "{by}"')
        if by != "bdp_bytes":
            check_same_values(axis.values, sweep, by, where)
    if sweep.combination_count() > len(sweep.networks):
        raise UsageError(f'{where}: weights = "{JOINT}" takes one response size and loss rate')
    check_joint_labels(scenario, where)
