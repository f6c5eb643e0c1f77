"""What a panel is: the rows of one figure, each a bucket, and what entered none of them.

An improvement is the paper's (section 2): baseline less experiment, and that
as a percentage of the baseline; of a metric of which more is better, its gain.
Others print base / experiment − 1; their percentages are converted where they
are read, which is exact (see of_baseline).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from firstflight.base.errors import FirstFlightError, UsageError
from firstflight.base.quantity import Quantity
from firstflight.base.words import plain
from firstflight.findings.difference import Ends, Excluded, of_baseline, percent_of
from firstflight.findings.quantities import quantity
from firstflight.runs.results.cells import grouped
from firstflight.study.fetches.scenario.scenario import JOINT, OF_EXPERIMENT, Axis, Figure, Scenario
from firstflight.study.fetches.scenario.sweep import Cell, Sweep, Value, bucket_value, cell_of
from firstflight.study.fetches.verify.record import Record
from firstflight.study.scenario import published

JOINT_SHARES = "joint_shares.csv"  # of paper/: paper.draw.bucket_shares computed them


class NoPanel(FirstFlightError):
    """The records do not give the rows of a figure; the message has the reason."""


@dataclass(frozen=True)
class Published:
    """What was published of a bucket, in the unit of the figure's metric.

    absolute, percent: the improvement, of the baseline, converted where it was
    printed otherwise; level: of a window sweep, the value under this window.
    error, error_points: see study.scenario.published.
    """

    absolute: float | None = None
    percent: float | None = None
    level: float | None = None
    error: float = 0.0
    error_points: float = 0.0


@dataclass(frozen=True)
class SameResponses:
    """What the window alone changes: the same responses under both, each with the same weight.

    absolute, percent: the improvement, with the 95 % interval of absolute.
    """

    absolute: float
    percent: float
    interval: Ends | None


@dataclass(frozen=True)
class Bucket:
    """One bucket of an improvement figure, or one window of a window sweep.

    Values in the unit of the figure's metric; sign: -1 where more of it is
    better. n: fetches that entered, of both windows; cells: how many of the
    cells_requested had counting records of both windows and carry the weight.
    base, experiment: weighted means; the medians are of all responses of the
    bucket, weighted likewise. Intervals are 95 % bootstrap intervals, None
    where a cell was measured but once; draws: how many independent values of a window they
    rest on: clients of a population, else fetches. In a window sweep the experiment is the
    bucket's window. lossless: nothing in the bucket is left to chance. same: None where the
    windows were measured side by side; else the baseline had a week with other responses of its
    own, as the paper's, and base is a mean over those.
    """

    label: str
    value: Value
    share_percent: float | None
    n: int
    excluded: Excluded
    cells: int
    cells_requested: int
    base: float
    experiment: float
    base_median: float
    experiment_median: float
    absolute_interval: Ends | None
    percent_interval: Ends | None
    published: Published = Published()
    lossless: bool = False
    sign: int = 1
    draws: int = 0
    same: SameResponses | None = None

    @property
    def absolute(self) -> float:
        return self.sign * (self.base - self.experiment)

    @property
    def paired_interval(self) -> Ends | None:
        """The experiment's value at the ends of the interval of what is saved of the base."""
        if self.absolute_interval is None:
            return None
        first, last = sorted(self.base - self.sign * end for end in self.absolute_interval)
        return first, last

    @property
    def is_unsure(self) -> bool:
        """Whether the interval of what is saved holds zero."""
        ends = self.absolute_interval
        return ends is not None and ends[0] < 0 < ends[1]

    @property
    def percent(self) -> float:
        return percent_of(self.base, self.experiment, self.sign)

    @property
    def median_absolute(self) -> float:
        return self.sign * (self.base_median - self.experiment_median)


@dataclass(frozen=True)
class Sample:
    """The values behind one window of a panel, for a drawing of their distribution.

    values, weights: arrays of one length; the values in the unit of the panel's metric.
    """

    initcwnd: int
    values: Any
    weights: Any

    @property
    def name(self) -> str:
        return f"IW {self.initcwnd}"


@dataclass(frozen=True)
class Panel:
    """The rows of one figure, and which client and algorithm measured them.

    counted, left_out: fetches in all, where one can enter several buckets;
    None where it enters one at most. samples: the values behind it, by window.
    remarks: what else than the windows decided on what is behind it. is_of_loss: whether its
    bars are shown beyond the lossless one (study.fetches.figures.recovery).
    """

    figure: Figure
    buckets: tuple[Bucket, ...]
    client: str
    congestion_control: str
    counted: int | None = None
    left_out: Excluded | None = None
    samples: tuple[Sample, ...] = field(default=(), compare=False)
    remarks: tuple[str, ...] = ()
    is_of_loss: bool = False

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

    @property
    def metric(self) -> Quantity:
        return quantity(self.figure.metric)

    @property
    def by(self) -> Quantity:
        """What the buckets are of."""
        return quantity(self.figure.by)

    @property
    def is_sweep(self) -> bool:
        """Whether the buckets are windows."""
        return self.figure.is_of_windows

    def is_baseline(self, bucket: Bucket) -> bool:
        """Whether a bucket is the window that the others are compared with."""
        return self.is_sweep and bucket.value == self.figure.baseline_initcwnd

    def named(self, bucket: Bucket) -> str:
        """A bucket by its label and unit, such as "20 ms"."""
        return f"{bucket.label} {self.by.unit}".strip()


def sign_of(metric: str) -> int:
    """1 where less of the metric is better, -1 where more is."""
    return -1 if quantity(metric).more_is_better else 1


def published_bars(figure: Figure) -> dict[str, Published]:
    """The figure's published bars by label, percentages as parts of the baseline.

    Of other windows than the published ones the bars have no values.
    """
    if not figure.published:
        return {}
    printed = published.buckets(figure.published, figure.panel)
    if figure.other_windows:
        return dict.fromkeys(printed, Published())
    bars = {}
    for label, bar in printed.items():
        percent = bar.percent
        if percent is not None and figure.percent_of == OF_EXPERIMENT:
            percent = of_baseline(percent, sign_of(figure.metric))
        bars[label] = Published(bar.absolute_ms, percent, bar.total_ms, bar.error_ms,
                                bar.error_points)
    return bars


def beside_baseline(panel: Panel) -> tuple[Bucket, ...]:
    """The buckets; of a window sweep, each published value as an improvement on the baseline's."""
    base = next((bucket.published for bucket in panel.buckets if panel.is_baseline(bucket)),
                Published())
    made = []
    for bucket in panel.buckets:
        own = bucket.published
        if base.level is not None and own.level is not None and own is not base:
            bucket = replace(bucket, published=replace(
                own, absolute=bucket.sign * (base.level - own.level),
                percent=percent_of(base.level, own.level, bucket.sign),
                error=base.error + own.error))
        made.append(bucket)
    return tuple(made)


ByCell = dict[tuple[Cell, int], list[Record]]


def by_cell(scenario: Scenario, figure: Figure, windows: Sequence[int],
            records: Sequence[Record], is_whole: bool = True) -> tuple[list[Record], ByCell]:
    """The records of the figure's sweep, also by cell and window.

    Raises NoPanel where a cell was not measured; of a part of a scenario, where none was.
    """
    sweep = scenario.sweep(figure.sweep)
    chosen, cells = of_sweep(sweep, records), sweep.cells
    made = grouped(chosen, lambda record: (cell_of(record.trial), record.trial.initcwnd))
    missing = [cell for cell in cells
               if any((cell, initcwnd) not in made for initcwnd in windows)]
    if missing and (is_whole or len(missing) == len(cells)):
        named = ", ".join(f"RTT {plain(cell.rtt_ms)} ms at {plain(cell.bandwidth_kbps)} kbit/s"
                          for cell in missing[:3]) + (", …" if len(missing) > 3 else "")
        raise NoPanel(f"{len(missing)} of {len(cells)} cells ({named}) of {scenario.name}"
                      f" {figure.name} were not measured; measure with"
                      f" {_command(scenario, missing)}")
    return chosen, made


def of_sweep(sweep: Sweep, records: Iterable[Record]) -> list[Record]:
    """The records whose trial the sweep asks for.

    A run may have been made with another client than the sweep names; then
    all of its records have to agree. Raises NoPanel.
    """
    cells = set(sweep.cells)
    made = grouped([record for record in records if not (trial := record.trial).part
                    and trial.initcwnd in sweep.initcwnd and cell_of(trial) in cells],
                   lambda record: record.trial.client)
    if sweep.client in made or not made:
        return made.get(sweep.client, [])
    if len(made) > 1:
        raise NoPanel(f"the records mix {' and '.join(sorted(made))} in sweep {sweep.name!r};"
                      " measure again with --fresh")
    return next(iter(made.values()))


def _command(scenario: Scenario, cells: Sequence[Cell]) -> str:
    """The command line that measures the cells."""
    line = f"./run.sh --scenario {scenario.name}"
    if {cell for sweep in scenario.sweeps for cell in sweep.cells} <= set(cells):
        return line
    rtts, bandwidths = (",".join(map(plain, dict.fromkeys(values))) for values in
                        zip(*((cell.rtt_ms, cell.bandwidth_kbps) for cell in cells)))
    return f"{line} --rtt {rtts} --bw {bandwidths}"


WeightedCells = list[list[tuple[Cell, float]]]  # of each bucket


def weighted_cells(scenario: Scenario, figure: Figure, axis: Axis) -> WeightedCells:
    """The cells of every bucket of the axis, each with its weight: a share in percent, or 1."""
    if figure.weights == JOINT:
        return _joint_cells(scenario, figure, axis)
    cells = scenario.sweep(figure.sweep).cells
    members = [[cell for cell in cells if bucket_value(figure.by, cell) == value]
               for value in axis.values]
    if not figure.weights:
        return [[(cell, 1.0) for cell in bucket] for bucket in members]
    weights = scenario.axis(figure.weights)
    assert weights is not None  # the reader of the scenario has looked
    return [[(cell, weights.share_percent(bucket_value(figure.weights, cell)) or 0.0)
             for cell in bucket] for bucket in members]


def _joint_cells(scenario: Scenario, figure: Figure, axis: Axis) -> WeightedCells:
    """The cells of every BDP bucket, weighted by the joint distribution of RTT and bandwidth.

    A cell stands for the responses of its RTT bucket and its bandwidth
    bucket. Some of them are in one BDP bucket and some in the next, so that a
    cell can enter several. Raises UsageError where the axes are not the paper's.
    """
    check_joint_labels(scenario, scenario.name)
    columns = ("RTT", "BW", "BDP", "share")
    shares = {(row["RTT"], row["BW"], row["BDP"]): published.number(row, "share", JOINT_SHARES)
              for row in published.rows(published.path_of(JOINT_SHARES), columns)}
    rtts, bandwidths = (known for by in ("rtt_ms", "bandwidth_kbps")
                        if (known := scenario.axis(by)) is not None)  # both: the check has looked
    return [[(cell, 100 * share) for cell in scenario.sweep(figure.sweep).cells
             if (share := shares.get((rtts.label(cell.rtt_ms),
                                      bandwidths.label(cell.bandwidth_kbps), label)))]
            for label in axis.labels]


def check_joint_labels(scenario: Scenario, where: str) -> None:
    """The axes have the buckets of the joint distribution. Raises UsageError."""
    for by in published.SHARES_PANELS:
        axis, known = scenario.axis(by), tuple(published.shares(by))
        if axis and axis.labels != known:
            raise UsageError(f"{where}: the axis of {by} has the buckets {', '.join(axis.labels)};"
                             f" the joint distribution has {', '.join(known)}")
