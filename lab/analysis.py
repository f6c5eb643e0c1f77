"""From records to the rows of figures and tables.

Only a record that counts (its transfer succeeded and its verdict is pass)
enters a number; all others are counted beside it. An improvement is the
paper's (section 2): baseline less experiment, and that as a percentage of
the baseline. Others print base / experiment − 1; their percentages are
converted where they are read, which is exact (see of_baseline).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lab import published, stats
from lab.errors import FirstFlightError
from lab.records import PASS, Record
from lab.scenario import (JOINT, OF_EXPERIMENT, WINDOW_SWEEP, Axis, Cell, Figure,
                          Scenario, Sweep, bucket_value, plain)
from lab.trial import Trial


class MissingCells(FirstFlightError):
    """A figure needs cells that were not measured.

    lacking: which; the message adds the command that measures them.
    """

    def __init__(self, lacking: str, measure: str) -> None:
        super().__init__(f"{lacking}; measure with {measure}")
        self.lacking = lacking


class NothingCounts(FirstFlightError):
    """Everything that was measured for a bucket failed, so it has no mean."""


@dataclass(frozen=True)
class Excluded:
    """Records that enter no mean, by reason.

    failed_transfers: not ok; failed_verdicts: ok, but the packets are not
    what was asked, or could not be judged; without_value: lack the figure's
    metric; unpaired: count, but no record of the other window does.
    """

    failed_transfers: int = 0
    failed_verdicts: int = 0
    without_value: int = 0
    unpaired: int = 0

    @property
    def total(self) -> int:
        return (self.failed_transfers + self.failed_verdicts + self.without_value
                + self.unpaired)

    def __add__(self, other: Excluded) -> Excluded:
        return Excluded(self.failed_transfers + other.failed_transfers,
                        self.failed_verdicts + other.failed_verdicts,
                        self.without_value + other.without_value,
                        self.unpaired + other.unpaired)

    def __str__(self) -> str:
        """Such as "1 failed transfer, 2 failed verdicts"; "" for none."""
        counted = ((self.failed_transfers, "failed transfer", "failed transfers"),
                   (self.failed_verdicts, "failed verdict", "failed verdicts"),
                   (self.without_value, "record without a value", "records without a value"),
                   (self.unpaired, "record without its counterpart",
                    "records without their counterpart"))
        return ", ".join(f"{count} {one if count == 1 else several}"
                         for count, one, several in counted if count)


@dataclass(frozen=True)
class Bucket:
    """One bucket of an improvement figure, or one window of a window sweep. Times in ms.

    n: fetches that entered, of both windows; cells: how many of the
    cells_asked had counting records of both windows and carry the weight.
    base_ms, experiment_ms: weighted means; absolute_ms = base − experiment;
    percent = absolute / base × 100. The medians are of all responses of the
    bucket, weighted likewise. Intervals are 95 % bootstrap intervals, None
    where a cell was measured but once. In a window sweep the experiment is
    the bucket's window, experiment_interval_ms its time's, and
    published_ms the published time; lab.comparison makes improvements of those.

    published_percent is of the baseline, converted where it was printed
    otherwise. published_error_ms, published_error_points: see
    lab.published. lossless: nothing in the bucket is left to chance.
    """

    label: str
    value: float
    share_percent: float | None
    n: int
    excluded: Excluded
    cells: int
    cells_asked: int
    base_ms: float
    experiment_ms: float
    absolute_ms: float
    percent: float
    base_median_ms: float
    experiment_median_ms: float
    median_absolute_ms: float
    median_percent: float
    published_absolute_ms: float | None
    published_percent: float | None
    absolute_interval_ms: tuple[float, float] | None
    percent_interval: tuple[float, float] | None
    experiment_interval_ms: tuple[float, float] | None = None
    published_ms: float | None = None
    published_error_ms: float = 0.0
    published_error_points: float = 0.0
    lossless: bool = False


@dataclass(frozen=True)
class Panel:
    """The rows of one figure, and which client and algorithm measured them.

    counted, left_out: fetches in all, where one can enter several buckets;
    None where it enters one at most.
    """

    figure: Figure
    buckets: tuple[Bucket, ...]
    client: str
    congestion_control: str
    counted: int | None = None
    left_out: Excluded | None = None

    @property
    def n(self) -> int:
        if self.counted is not None:
            return self.counted
        return sum(bucket.n for bucket in self.buckets)

    @property
    def excluded(self) -> Excluded:
        if self.left_out is not None:
            return self.left_out
        return sum((bucket.excluded for bucket in self.buckets), Excluded())


@dataclass(frozen=True)
class Pair:
    """The values (ms) of one cell that count, by window, and what was excluded.

    matched: base and experiment of the same repeat, which met the same random
    numbers; empty unless every value has its counterpart.
    """

    weight: float
    base: tuple[float, ...]
    experiment: tuple[float, ...]
    excluded: Excluded
    matched: tuple[tuple[float, float], ...]
    lossless: bool


ByCell = dict[tuple[Cell, int], list[Record]]


def panels(scenario: Scenario, records: Sequence[Record]) -> list[Panel]:
    """The rows of all figures of the scenario. Raises MissingCells, NothingCounts."""
    return [panel(scenario, figure, records) for figure in scenario.figures]


def drawable(scenario: Scenario, records: Sequence[Record]) -> tuple[list[Panel], list[str]]:
    """The rows of the figures of which every bucket has a mean, and why the others have none.

    Raises MissingCells: what was not measured can be measured, what failed cannot be drawn.
    """
    made, faults = [], []
    for figure in scenario.figures:
        try:
            made.append(panel(scenario, figure, records))
        except NothingCounts as error:
            faults.append(str(error))
    return made, faults


def panel(scenario: Scenario, figure: Figure, records: Sequence[Record]) -> Panel:
    """The rows of one figure of any kind. Raises MissingCells, NothingCounts."""
    if scenario.population(figure.sweep) is not None:
        from lab import population_analysis  # which needs the classes of this module
        return population_analysis.panel(scenario, figure, records)
    if figure.kind == WINDOW_SWEEP:
        return window_sweep(scenario, figure, records)
    return improvement(scenario, figure, records)


def improvement(scenario: Scenario, figure: Figure, records: Sequence[Record]) -> Panel:
    """The rows of one improvement figure.

    A bucket is the mean over its cells, weighted by the shares of the other
    axis. A cell of which nothing counts loses its weight to the others, and
    shows in `cells` and `excluded`. Raises MissingCells where a cell was not
    measured at all, NothingCounts where nothing of a bucket counts.
    """
    windows = (figure.baseline_initcwnd, figure.experiment_initcwnd)
    chosen, by_cell = _by_cell(scenario, figure, windows, records)
    axis = scenario.axis_of(figure)
    rows = _published(figure)
    buckets = []
    every: dict[Cell, Pair] = {}
    for value, weighted in zip(axis.values, _weighted_cells(scenario, figure, axis)):
        pairs = [_pair(figure, by_cell, cell, weight, windows) for cell, weight in weighted]
        every.update((cell, pair) for (cell, _), pair in zip(weighted, pairs))
        buckets.append(_bucket(figure, axis, value, pairs, rows.get(axis.label(value))))
    return Panel(figure, tuple(buckets), client=chosen[0].trial.client,
                 congestion_control=chosen[0].trial.congestion_control,
                 counted=sum(len(pair.base) + len(pair.experiment) for pair in every.values()),
                 left_out=sum((pair.excluded for pair in every.values()), Excluded()))


def window_sweep(scenario: Scenario, figure: Figure, records: Sequence[Record]) -> Panel:
    """The rows of a figure of times against windows: each window against the baseline's.

    n counts a window's own fetches. Raises as `improvement`.
    """
    sweep = scenario.sweep(figure.sweep)
    chosen, by_cell = _by_cell(scenario, figure, sweep.initcwnd, records)
    (cell,) = sweep.cells
    axis = scenario.axis_of(figure)
    rows = _published(figure)
    buckets = []
    for initcwnd in sweep.initcwnd:
        pair = _pair(figure, by_cell, cell, 1.0, (figure.baseline_initcwnd, initcwnd))
        row = rows.get(axis.label(initcwnd))
        own, excluded = _counting(by_cell[cell, initcwnd], figure.metric)
        buckets.append(replace(
            _bucket(figure, axis, initcwnd, [pair], row), n=len(own), excluded=excluded,
            published_ms=row.total_ms if row else None,
            experiment_interval_ms=_mean_interval(pair.experiment)))
    return Panel(figure, tuple(buckets), client=chosen[0].trial.client,
                 congestion_control=chosen[0].trial.congestion_control)


def _published(figure: Figure) -> dict[str, published.PublishedBucket]:
    """The figure's published bars by label, percentages as parts of the baseline."""
    if not figure.published:
        return {}
    rows = published.buckets(figure.published, figure.panel)
    if figure.percent_of != OF_EXPERIMENT:
        return rows
    return {label: replace(row, percent=None if row.percent is None else of_baseline(row.percent))
            for label, row in rows.items()}


def of_baseline(percent: float) -> float:
    """A percentage of the experiment's time (base / experiment − 1) as one of the baseline's."""
    return percent / (100 + percent) * 100


def of_experiment(percent: float) -> float:
    """The reverse of of_baseline."""
    return percent / (100 - percent) * 100


def _by_cell(scenario: Scenario, figure: Figure, windows: Sequence[int],
             records: Sequence[Record]) -> tuple[list[Record], ByCell]:
    """The records of the figure's sweep, also by cell and window. Raises MissingCells."""
    chosen = of_sweep(scenario.sweep(figure.sweep), records)
    by_cell: ByCell = {}
    for record in chosen:
        by_cell.setdefault((_cell(record), record.trial.initcwnd), []).append(record)
    _check_cells(scenario, figure, windows, by_cell)
    return chosen, by_cell


def of_sweep(sweep: Sweep, records: Iterable[Record]) -> list[Record]:
    """The records whose trial the sweep asks for.

    A run may have been made with another client or algorithm than the sweep
    names; then all of its records have to agree. Raises FirstFlightError.
    """
    cells = set(sweep.cells)
    made: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        trial = record.trial
        uplink_kbps = trial.bandwidth_kbps if sweep.uplink_kbps is None else sweep.uplink_kbps
        if (_cell(record) in cells and trial.initcwnd in sweep.initcwnd
                and (trial.uplink_kbps, trial.queue_packets, trial.initrwnd, trial.part)
                == (uplink_kbps, sweep.queue_packets, sweep.initrwnd, "")):
            made.setdefault((trial.client, trial.congestion_control), []).append(record)
    own = (sweep.client, sweep.congestion_control)
    if own in made or not made:
        return made.get(own, [])
    if len(made) > 1:
        raise FirstFlightError("the records mix "
                               + " and ".join(" with ".join(each) for each in sorted(made))
                               + f" in sweep {sweep.name!r}; measure again with --fresh")
    return next(iter(made.values()))


# Buckets -----------------------------------------------------------------------

def _cell(record: Record) -> Cell:
    trial = record.trial
    return Cell(trial.rtt_ms, trial.bandwidth_kbps, trial.response_bytes, trial.loss_percent)


def _weighted_cells(scenario: Scenario, figure: Figure,
                    axis: Axis) -> list[list[tuple[Cell, float]]]:
    """The cells of every bucket of the axis, each with its weight: a share in percent, or 1."""
    cells = scenario.sweep(figure.sweep).cells
    if figure.weights == JOINT:
        return _joint_cells(scenario, cells, axis)
    members = [[cell for cell in cells if bucket_value(figure.by, cell) == value]
               for value in axis.values]
    if not figure.weights:
        return [[(cell, 1.0) for cell in bucket] for bucket in members]
    weights = _axis(scenario, figure.weights)
    return [[(cell, weights.share_percent(bucket_value(figure.weights, cell)) or 0.0)
             for cell in bucket] for bucket in members]


def _axis(scenario: Scenario, by: str) -> Axis:
    axis = scenario.axis(by)
    assert axis is not None  # lab.scenario_file has looked
    return axis


def _joint_cells(scenario: Scenario, cells: Sequence[Cell],
                 axis: Axis) -> list[list[tuple[Cell, float]]]:
    """The cells of every BDP bucket, weighted by the joint distribution of RTT and bandwidth.

    A cell stands for the responses of its RTT bucket and its bandwidth
    bucket. Some of them are in one BDP bucket and some in the next, so that a
    cell can enter several. Raises FirstFlightError where the axes are not the paper's.
    """
    import numpy  # only where needed, as lab.population

    from lab.population import average_datacenter

    joint = average_datacenter()
    axes = [_axis(scenario, by) for by in ("rtt_ms", "bandwidth_kbps", "bdp_bytes")]
    for own, marginal in zip(axes, joint.marginals):
        if own.labels != marginal.labels:
            raise FirstFlightError(f"{scenario.name}: the axis of {own.by} has the buckets"
                                   f" {', '.join(own.labels)}; the joint distribution has"
                                   f" {', '.join(marginal.labels)}")
    of_rtt, of_bandwidth, of_product = (
        marginal.bucket(values) for marginal, values in
        zip(joint.marginals, (joint.rtt_ms, joint.bandwidth_kbps, joint.bdp_bytes)))
    shares = numpy.zeros([len(own.values) for own in axes])
    numpy.add.at(shares, (of_rtt[:, None], of_bandwidth[None, :], of_product), joint.share)
    rtts, bandwidths, _ = axes
    weighted = [[(cell, float(shares[rtts.values.index(cell.rtt_ms),
                                     bandwidths.values.index(cell.bandwidth_kbps), bucket]))
                 for cell in cells] for bucket in range(len(axis.values))]
    return [[(cell, weight * 100) for cell, weight in bucket if weight > 0]
            for bucket in weighted]


def _check_cells(scenario: Scenario, figure: Figure, windows: Sequence[int],
                 by_cell: ByCell) -> None:
    """Raise MissingCells unless every cell was measured with every window."""
    asked = scenario.sweep(figure.sweep).cells
    missing = [cell for cell in asked
               if any((cell, initcwnd) not in by_cell for initcwnd in windows)]
    if missing:
        raise MissingCells(f"{_listed(missing, len(asked))} of {scenario.name} {figure.name}"
                           " were not measured", command(scenario, missing))


def _listed(missing: Sequence[Cell], asked: int) -> str:
    shown = ", ".join(f"RTT {plain(cell.rtt_ms)} ms at {plain(cell.bandwidth_kbps)} kbit/s"
                      for cell in missing[:3])
    more = ", …" if len(missing) > 3 else ""
    return f"{len(missing)} of {asked} cells ({shown}{more})"


def command(scenario: Scenario, cells: Sequence[Cell]) -> str:
    """The command line that measures the cells, or all where there are none or all."""
    everything = {cell for sweep in scenario.sweeps for cell in sweep.cells}
    line = f"./run.sh --scenario {scenario.name}"
    if not cells or set(cells) >= everything:
        return line
    rtts = ",".join(plain(rtt) for rtt in dict.fromkeys(cell[0] for cell in cells))
    bandwidths = ",".join(plain(bw) for bw in dict.fromkeys(cell[1] for cell in cells))
    return f"{line} --rtt {rtts} --bw {bandwidths}"


def _pair(figure: Figure, by_cell: ByCell, cell: Cell, weight: float,
          windows: tuple[int, int]) -> Pair:
    base_records, experiment_records = (by_cell[cell, initcwnd] for initcwnd in windows)
    base, base_excluded = _counting(base_records, figure.metric)
    experiment, excluded = _counting(experiment_records, figure.metric)
    excluded += base_excluded
    if not base or not experiment:
        excluded += Excluded(unpaired=len(base) + len(experiment))
        base, experiment = [], []
    matched: tuple[tuple[float, float], ...] = ()
    counterparts = dict(experiment)
    if len(counterparts) == len(base) == len(experiment) and dict(base).keys() == counterparts.keys():
        matched = tuple((value, counterparts[key]) for key, value in base)
    return Pair(weight, tuple(value for _, value in base),
                tuple(value for _, value in experiment), excluded, matched,
                lossless=cell.loss_percent == 0)


def _counting(records: Iterable[Record],
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
        elif record.verdict != PASS:
            excluded += Excluded(failed_verdicts=1)
        elif value is None:
            excluded += Excluded(without_value=1)
        else:
            values.append(((record.trial.repeat, record.trial.seed), value))
    return sorted(values), excluded


def _bucket(figure: Figure, axis: Axis, value: float, pairs: Sequence[Pair],
            row: published.PublishedBucket | None) -> Bucket:
    label = axis.label(value)
    excluded = sum((pair.excluded for pair in pairs), Excluded())
    used = [pair for pair in pairs if pair.base and pair.weight > 0]
    if not used:
        raise NothingCounts(f"{figure.name}: no record of bucket {label} counts ({excluded});"
                           " see verdict_reason and error in trials.csv, then measure again"
                           " with --fresh")
    weights = [pair.weight for pair in used]
    base_ms, experiment_ms = (
        stats.weighted_mean([sum(values) / len(values) for values in side], weights)
        for side in ([pair.base for pair in used], [pair.experiment for pair in used]))
    base_median_ms, experiment_median_ms = (
        _median(side, weights)
        for side in ([pair.base for pair in used], [pair.experiment for pair in used]))
    absolute_interval_ms, percent_interval = _intervals(used, weights)
    return Bucket(
        label=label, value=value, share_percent=axis.share_percent(value),
        n=sum(len(pair.base) + len(pair.experiment) for pair in used), excluded=excluded,
        cells=len(used), cells_asked=len(pairs), base_ms=base_ms, experiment_ms=experiment_ms,
        absolute_ms=base_ms - experiment_ms, percent=percent_of(base_ms, experiment_ms),
        base_median_ms=base_median_ms, experiment_median_ms=experiment_median_ms,
        median_absolute_ms=base_median_ms - experiment_median_ms,
        median_percent=percent_of(base_median_ms, experiment_median_ms),
        published_absolute_ms=row.absolute_ms if row else None,
        published_percent=row.percent if row else None,
        absolute_interval_ms=absolute_interval_ms, percent_interval=percent_interval,
        published_error_ms=row.error_ms if row else 0.0,
        published_error_points=row.error_points if row else 0.0,
        lossless=all(pair.lossless for pair in pairs))


def percent_of(base_ms: float, experiment_ms: float) -> float:
    """The paper's percentage (section 2): the improvement as a part of the baseline."""
    return (base_ms - experiment_ms) / base_ms * 100 if base_ms else 0.0


def _median(cells: Sequence[tuple[float, ...]], weights: Sequence[float]) -> float:
    """Median over all responses, where a cell's weight is shared by its repeats."""
    values = [value for cell in cells for value in cell]
    shared = [weight / len(cell) for cell, weight in zip(cells, weights) for _ in cell]
    return stats.weighted_quantile(values, shared, 0.5)


def _intervals(pairs: Sequence[Pair], weights: Sequence[float],
               ) -> tuple[tuple[float, float] | None, tuple[float, float] | None]:
    """95 % intervals of the absolute (ms) and the relative (%) improvement."""
    if any(len(side) < 2 for pair in pairs for side in (pair.base, pair.experiment)):
        return None, None
    if all(len(set(side)) == 1 for pair in pairs for side in (pair.base, pair.experiment)):
        # Every repeat gave the same: there is nothing to resample.
        base_ms, experiment_ms = (stats.weighted_mean([side[0] for side in sides], weights)
                                  for sides in ([pair.base for pair in pairs],
                                                [pair.experiment for pair in pairs]))
        percent = percent_of(base_ms, experiment_ms)
        return (base_ms - experiment_ms,) * 2, (percent,) * 2
    generator = stats.generator(seed=1)
    if all(pair.matched for pair in pairs):
        base, experiment = stats.resampled_pairs([pair.matched for pair in pairs], weights,
                                                 generator)
    else:
        base = stats.resampled_means([pair.base for pair in pairs], weights, generator)
        experiment = stats.resampled_means([pair.experiment for pair in pairs], weights,
                                           generator)
    absolute = base - experiment
    return (stats.percentile_interval(absolute),
            stats.percentile_interval(absolute / base * 100))


def _mean_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """95 % interval of the mean of one cell's values, None of a single one."""
    if len(values) < 2:
        return None
    if len(set(values)) == 1:
        return values[0], values[0]
    return stats.percentile_interval(
        stats.resampled_means([values], [1.0], stats.generator(seed=1)))


# Settings: a partial run ---------------------------------------------------------

@dataclass(frozen=True)
class Setting:
    """All records of one setting of network, window and client; means over those that count.

    asked: the trial, its repeat and seed left aside. A mean is None where nothing
    counts or the value could not be had. deviation_ms: total_ms less
    model_ms. causes, reasons: why segments were retransmitted although none
    was lost, and why records do not count; each once.
    """

    asked: Trial
    n: int
    excluded: Excluded
    seen_rtt_ms: float | None
    seen_bandwidth_kbps: float | None
    seen_initcwnd: float | None
    seen_first_flight: float | None
    total_ms: float | None
    latency_ms: float | None
    model_ms: float | None
    deviation_ms: float | None
    retransmissions: float | None
    causes: tuple[str, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Change:
    """What a larger window changed in one cell, by the means of total_ms."""

    base: Setting
    experiment: Setting
    absolute_ms: float
    percent: float


def settings(records: Iterable[Record]) -> list[Setting]:
    """One row per setting, in the order of the records, windows together and ascending."""
    grouped: dict[Trial, dict[Trial, list[Record]]] = {}
    for record in records:
        asked = replace(record.trial, repeat=1, seed=0)
        grouped.setdefault(replace(asked, initcwnd=1), {}).setdefault(asked, []).append(record)
    return [_setting(asked, windows[asked])
            for windows in grouped.values()
            for asked in sorted(windows, key=lambda trial: trial.initcwnd)]


def changes(rows: Iterable[Setting]) -> list[Change]:
    """Every window of a cell against the smallest that counts there."""
    cells: dict[Trial, list[Setting]] = {}
    for row in rows:
        if row.total_ms is not None:
            cells.setdefault(replace(row.asked, initcwnd=1), []).append(row)
    return [Change(base, experiment, base_ms - experiment_ms, percent_of(base_ms, experiment_ms))
            for base, *larger in cells.values() for experiment in larger
            if (base_ms := base.total_ms) is not None
            and (experiment_ms := experiment.total_ms) is not None]


def _setting(asked: Trial, records: Sequence[Record]) -> Setting:
    # What was seen is worth telling of a failed verdict too: it says what was wrong.
    counting = [record for record in records if record.counts]
    values, excluded = _counting(records, "total_ms")
    total_ms, model_ms = _mean(counting, "total_ms"), _mean(counting, "model_ms")
    return Setting(
        asked=asked, n=len(values), excluded=excluded,
        seen_rtt_ms=_mean(records, "seen_rtt_ms"),
        seen_bandwidth_kbps=_mean(records, "seen_bandwidth_kbps"),
        seen_initcwnd=_mean(records, "seen_initcwnd"),
        seen_first_flight=_mean(records, "seen_first_flight"),
        total_ms=total_ms, latency_ms=_mean(counting, "latency_ms"), model_ms=model_ms,
        deviation_ms=None if total_ms is None or model_ms is None else total_ms - model_ms,
        retransmissions=_mean(records, "retransmissions"),
        causes=_distinct(record.retransmission_cause for record in records),
        reasons=_distinct(record.error or record.verdict_reason for record in records
                          if not record.counts))


def _mean(records: Iterable[Record], column: str) -> float | None:
    values = [value for record in records if (value := getattr(record, column)) is not None]
    return sum(values) / len(values) if values else None


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for text in texts if text))


# Published raw values ------------------------------------------------------------

@dataclass(frozen=True)
class RawRow:
    """One published raw value beside ours. Times in ms.

    measured_ms: mean of what counts, None where nothing does; n: how many.
    deviation_ms = measured − published. comparable_ms: the published value
    without the round trips that it holds besides; None where the published
    value has a defect, which mark then names.
    """

    initcwnd: int
    rtt_ms: float
    bandwidth_kbps: float
    n: int
    measured_ms: float | None
    published_ms: float
    deviation_ms: float | None
    comparable_ms: float | None
    mark: str


def raw_comparison(scenario: Scenario, records: Sequence[Record]) -> list[RawRow]:
    """Every published raw value, in the order of its file; [] where the scenario has none."""
    raw = scenario.raw
    if raw is None:
        return []
    values: dict[tuple[int, float, float], list[float]] = {}
    for record in of_sweep(scenario.sweep(raw.sweep), records):
        value = getattr(record, raw.metric)
        if record.counts and value is not None:
            trial = record.trial
            values.setdefault((trial.initcwnd, trial.rtt_ms, trial.bandwidth_kbps),
                              []).append(value)
    rows = []
    for fetch in published.fetches(raw.file):
        seen = values.get((fetch.initcwnd, fetch.rtt_ms, fetch.bandwidth_kbps), [])
        measured_ms = sum(seen) / len(seen) if seen else None
        mark = next((defect.mark for defect in reversed(raw.defects)
                     if bucket_value(defect.by, Cell(fetch.rtt_ms, fetch.bandwidth_kbps, 0))
                     in defect.values), "")
        rows.append(RawRow(
            initcwnd=fetch.initcwnd, rtt_ms=fetch.rtt_ms, bandwidth_kbps=fetch.bandwidth_kbps,
            n=len(seen), measured_ms=measured_ms, published_ms=fetch.total_ms,
            deviation_ms=None if measured_ms is None else measured_ms - fetch.total_ms,
            comparable_ms=None if mark else fetch.total_ms - raw.extra_rtts * fetch.rtt_ms,
            mark=mark))
    return rows


@dataclass(frozen=True)
class RawSummary:
    """Ours against the comparable published values: median and largest of |difference|."""

    compared: int
    median_ms: float
    largest_ms: float


def raw_summary(rows: Iterable[RawRow]) -> RawSummary | None:
    """None where no published value can be compared with one of ours."""
    differences = [abs(row.measured_ms - row.comparable_ms) for row in rows
                   if row.measured_ms is not None and row.comparable_ms is not None]
    if not differences:
        return None
    median_ms = stats.weighted_quantile(differences, [1.0] * len(differences), 0.5)
    return RawSummary(len(differences), median_ms, max(differences))
