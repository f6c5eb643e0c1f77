"""Scenarios of kind fetches: what to measure, and which figures to make.

docs/examples/fetches.toml describes a file, docs/REFERENCE.md the keys that no example has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeVar

from firstflight.base.errors import UsageError
from firstflight.base.words import plain
from firstflight.findings.quantities import quantity
from firstflight.parameters import SWEPT
from firstflight.runs import schema
from firstflight.runs.schema import key
from firstflight.scenario import claims, figure_kinds, grammar
from firstflight.scenario.claims import ALIKE, AT_MOST, LESS, MORE, MORE_WHERE, MOST
from firstflight.scenario.published import SHARES_TOLERANCE_PERCENT
from firstflight.workloads.fetch.record.record import METRICS
from firstflight.workloads.fetch.scenario import causes
from firstflight.workloads.fetch.scenario.causes import AsPublished
from firstflight.workloads.fetch.scenario.population import Population, Populations
from firstflight.workloads.fetch.scenario.sweep import Sweep, Value
from firstflight.workloads.fetch.scenario.users import UserSample

BUCKETED = (*SWEPT, "queue_packets", "bdp_bytes", "initcwnd", "response_segments", "percentile")
JOINT = "joint"  # weights by the joint distribution of RTT and bandwidth (published.shares)
OF_BASELINE, OF_EXPERIMENT = "baseline", "experiment"  # a percentage is of this window's value

T = TypeVar("T")
_BY = schema.word(BUCKETED)
_METRIC = schema.word(tuple(METRICS))


# What claims may expect of bars, and of the trials of figures of steps and levels.
OF_BARS, OF_TRIALS = (LESS, MORE, ALIKE, MOST), (AT_MOST, MORE_WHERE)


@dataclass(frozen=True)
class Axis:
    """The buckets of one quantity.

    labels: by default the values; shares_percent: () for none.
    """

    by: str = key(reader=_BY)
    values: tuple[Value, ...] = key(quantity_in="by")
    labels: tuple[str, ...] = ()
    shares_percent: tuple[float, ...] = key((), reader=schema.values(
        schema.number("shares_percent"), distinct=False))

    def __post_init__(self) -> None:
        if not self.labels:
            object.__setattr__(self, "labels", tuple(map(plain, self.values)))

    def check(self, where: str) -> None:
        """Check that labels and shares fit the values. Raises UsageError."""
        for name in ("labels", "shares_percent"):
            count = len(getattr(self, name))
            if count not in (0, len(self.values)):
                raise UsageError(f"{where}: {count} {name} for {len(self.values)} values")
        total = sum(self.shares_percent)
        if self.shares_percent and abs(total - 100) > SHARES_TOLERANCE_PERCENT:
            raise UsageError(f"{where}: shares_percent sum to {total:.2f}, not to 100 ±"
                             f" {SHARES_TOLERANCE_PERCENT:g}")

    def share_percent(self, value: Value) -> float | None:
        """The share of a value's bucket; None where the axis has no shares."""
        return self.shares_percent[self.values.index(value)] if self.shares_percent else None

    def label(self, value: Value) -> str:
        """The label of a value's bucket."""
        return self.labels[self.values.index(value)]


@dataclass(frozen=True, kw_only=True)
class Claim(claims.Claim):
    """A claim on bars, or on the trials of a figure. Its metric is that of the figure.

    compares: bars by their labels, columns of trials. Of bars less, more and most are of the
    improvement in percent, alike of that in ms, within 1 % of the baseline. Published is the
    largest percentage of all bars.
    """

    compares: tuple[str, ...] = key((), reader=schema.values(schema.text, "labels or columns",
                                                             distinct=False))
    published: float | None = key(None, quantity="shares_percent")
    within: None = key(None, absent=True)

    def check(self, where: str) -> None:
        """Check that only a claim on the largest bar has a published number. Raises UsageError."""
        super().check(where)
        if self.published is not None and self.expects != MOST:
            raise UsageError(f'{where}: published goes with expects = "{MOST}" on fetches')


@dataclass(frozen=True, kw_only=True)
class Figure(figure_kinds.Figure):
    """One figure: which trials it shows, and what it is compared with.

    kind: of workloads.fetch.scenario.figures.FIGURES.
    by: the quantity of its buckets.
    down: that of the rows of a map, or of the lines of steps instead of windows; "" for none.
    windows: the baseline alone for kinds that compare all windows.
    weights: the quantity over which each bucket is averaged, by the shares of its axis; or JOINT;
        "" for one cell a bucket.
    also: names of further charts.
    published, panel: a file in paper/ and the panel in it, "" for none.
    percent_of: OF_BASELINE or OF_EXPERIMENT, for the published percentages.
    held_out: no parameter of the scenario was chosen by the published values.
    bandwidth_at_most_kbps: of a population, only clients up to this bandwidth; 0 for all.
    other_windows: the run compared other windows than the published ones; then the published file
        only names the bars.
    """

    QUANTITIES: ClassVar[tuple[str, ...]] = BUCKETED
    by: str = key("", reader=_BY)
    down: str = key("", reader=_BY)
    weights: str = ""
    sweep: str
    windows: tuple[int, ...] = key(reader=schema.values(schema.number("initcwnd")))
    metric: str = key(reader=_METRIC)
    also: tuple[str, ...] = key((), reader=schema.values(schema.file_name, "names"))
    published: str = ""
    panel: str = ""
    percent_of: Literal["baseline", "experiment"] = "baseline"
    held_out: bool = False
    bandwidth_at_most_kbps: float = key(0.0, quantity="bandwidth_kbps")
    other_windows: bool = key(False, absent=True)

    @property
    def baseline_initcwnd(self) -> int:
        """The window with which the figure compares others."""
        return self.windows[0]

    @property
    def experiment_initcwnd(self) -> int:
        """The window that is compared with the baseline; 0 for kinds that compare all windows."""
        return self.windows[1] if len(self.windows) > 1 else 0

    @property
    def is_published(self) -> bool:
        """Whether the figure's bars have published values."""
        return bool(self.published) and not self.other_windows

    @property
    def is_of_windows(self) -> bool:
        """Whether each bar of the figure is a window."""
        return self.by == "initcwnd"


@dataclass(frozen=True)
class Defect:
    """Published values that cannot be compared: those of some values of one quantity."""

    by: str = key(reader=_BY)
    values: tuple[float, ...] = key(quantity_in="by")
    mark: str = key()  # one letter, for the values in a table
    why: str = key()


@dataclass(frozen=True)
class Raw:
    """Published raw values of a sweep's cells, one fetch each.

    file: in paper/. extra_rtts: round trips that only the published values include.
    """

    file: str
    sweep: str
    metric: str = key(reader=_METRIC)
    extra_rtts: float = key(0.0, reader=quantity("extra_rtts").check)
    extra_why: str = ""
    defects: tuple[Defect, ...] = key((), name="defect")


@dataclass(frozen=True)
class Scenario(grammar.Scenario[Sweep, Figure, Claim]):
    """One published experiment, or a question: what to measure and which figures to make."""

    axes: tuple[Axis, ...] = ()  # the buckets of the figures
    cells: bool = False  # whether every cell is reported first, with reasons
    drawn: Populations | None = None
    users: UserSample | None = None  # a site's own users
    raw: Raw | None = None  # published values of single cells
    # Another scenario, whose published numbers this scenario explains.
    as_published: AsPublished | None = None

    @property
    def levels(self) -> list[tuple[Sweep, ...]]:
        """The sweeps of each level.

        The first level has the sweeps as they are. With [as_published], each further level has one
        more cause switched on.
        """
        switched = self.as_published.causes if self.as_published else ()
        return [level.sweeps for level in causes.levels(self.sweeps, switched)]

    @property
    def count(self) -> int:
        """How many trials there are on all levels, with those of users and populations."""
        swept = sum(sweep.count for level in self.levels for sweep in level)
        return swept + sum(sample.count for sample in (self.users, self.drawn) if sample)

    @property
    def is_grid(self) -> bool:
        """Whether the scenario's cells can be compared one by one.

        They cannot in a population, a sample of users, or a set-up with causes.
        """
        return self.drawn is None and self.users is None and self.as_published is None

    def population(self, name: str) -> Population | None:
        """The population that a figure's `sweep` names; None where it names a sweep."""
        return self.drawn.population(name) if self.drawn else None

    def axis(self, by: str) -> Axis | None:
        """The [[axis]] of a quantity, None without one."""
        return next((axis for axis in self.axes if axis.by == by), None)

    def axis_of(self, figure: Figure) -> Axis:
        """The buckets of a figure: those of the [[axis]], or else the sweep's own values."""
        axis = self.axis(figure.by)
        if axis is not None and not figure.is_of_windows:
            return axis
        sweep = self.sweep(figure.sweep)
        values: Iterable[Value] = sweep.initcwnd
        if not figure.is_of_windows:
            values = (value for value, in sweep.counted(figure.by))
        return Axis(figure.by, tuple(values))


def read_published(where: str, read: Callable[[], T]) -> T:
    """The content that `read` returns of a file of paper/.

    Raises UsageError that begins with `where`: the place that names the file.
    """
    try:
        return read()
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error
