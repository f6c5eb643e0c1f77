"""Figures of single cells: groups of bars by one quantity, and maps of squares by two."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, product, starmap
from typing import Any, TypeVar

from firstflight.base import stats
from firstflight.base.quantity import Quantity
from firstflight.base.stats import Estimate
from firstflight.base.words import format_brief, format_number, plain
from firstflight.figures.shared import format_named
from firstflight.findings.charts import GroupChart, Square, SquareChart, SquareMap, is_wide
from firstflight.findings.claims import Ends
from firstflight.findings.difference import Difference, percent_of
from firstflight.findings.findings import Cell, Column, Finding, Table
from firstflight.parameters import SWEPT
from firstflight.workloads.fetch.figures.bar_cells import ByCell, by_cell, sign_of
from firstflight.workloads.fetch.figures.figure import Analysis, heading, interval
from firstflight.workloads.fetch.figures.swept_bars import counting, difference_of, rows_of
from firstflight.workloads.fetch.record.record import Record, own_window, quantity
from firstflight.workloads.fetch.scenario.scenario import Figure
from firstflight.workloads.fetch.scenario.sweep import CellKey, Sweep

MOST_MAPS = 12  # in one figure: nobody compares more maps
NOTHING_COUNTS = "Nothing that was measured counts"
# A window suffices if its mean is at most this far from the best one: saving less is not worth a
# larger window.
WITHIN_PERCENT = 2.0
MOST_ROWS = 24  # of the table of all cells, in a terminal and a document

T = TypeVar("T")
Place = tuple[Any, Any]  # of a square in a map: a value of `by` and one of `down`
Group = tuple[Difference | None, ...]  # the bars of one cell: what each window changes


@dataclass(frozen=True)
class Grid:
    """The cells of a figure's sweep: a column for each value of `by`, a row for each of `down`.

    A figure without `down` has one row, "".
    """

    figure: Figure
    sweep: Sweep
    records: Sequence[Record]  # of the sweep
    by_cell: ByCell  # these records by cell and window

    @classmethod
    def gather(cls, analysis: Analysis, figure: Figure) -> Grid:
        """The grid of a figure's sweep. Raises NoBars where a cell was not measured."""
        sweep = analysis.scenario.sweep(figure.sweep)
        records, cells = by_cell(analysis.scenario, figure, sweep.initcwnd, analysis.records)
        return cls(figure, sweep, records, cells)

    def values(self, name: str) -> list[Any]:
        """The values of a quantity in the order of the sweep; only "" for the quantity ""."""
        if not name:
            return [""]
        return list(dict.fromkeys(getattr(cell, name) for cell in self.cells))

    @cached_property
    def cells(self) -> list[CellKey]:
        """The cells of the sweep, which may be a thousand."""
        return self.sweep.cells

    @cached_property
    def varied(self) -> list[str]:
        """The quantities that the sweep varies besides `by` and `down`.

        Each combination of their values has a map.
        """
        return [name for name in SWEPT
                if name not in (self.figure.by, self.figure.down, "uplink_kbps")
                and len(self.values(name)) > 1]

    def combinations(self) -> Iterator[tuple[list[str], dict[Place, CellKey]]]:
        """Each combination of values of the varied quantities, in words, with its cells by place.
        """
        for values in product(*map(self.values, self.varied)):
            wanted = dict(zip(self.varied, values))
            cells = {}
            for cell in self.cells:
                if all(getattr(cell, name) == value for name, value in wanted.items()):
                    place = getattr(cell, self.figure.by), getattr(cell, self.figure.down, "")
                    cells[place] = cell
            yield list(starmap(format_named, wanted.items())), cells

    def map(self, title: str, values: Mapping[Place, T | None],
            square: Callable[[T], Square]) -> SquareMap:
        """A map with a square for each place that has a value. square: makes one of the value."""
        known = {place: square(value) for place, value in values.items() if value is not None}
        columns = self.values(self.figure.by)
        labels, _ = quantity(self.figure.by).ticks(columns)
        rows = []
        for row in self.values(self.figure.down):
            rows.append(tuple(known.get((column, row)) for column in columns))
        return SquareMap(title, tuple(labels), tuple(rows))

    def table(self, title: str, values: Mapping[Place, T | None],
              text: Callable[[T], str]) -> Table:
        """A table of a map's values, the first row at the top. text: writes a value."""
        across = quantity(self.figure.by)
        across_values = self.values(self.figure.by)
        columns = [Column(plain(value), across.unit, is_text=True) for value in across_values]
        if self.figure.down:
            down = quantity(self.figure.down)
            columns.insert(0, Column(down.head, down.unit))

        rows = []
        for row in self.values(self.figure.down):
            in_row = [values.get((column, row)) for column in across_values]
            texts = [None if value is None else text(value) for value in in_row]
            rows.append((plain(row), *texts) if self.figure.down else tuple(texts))
        return Table(f"{title}; {across.head} across", tuple(columns), tuple(rows))

    def chart(self, maps: Sequence[SquareMap], foot: str, **fields: Any) -> SquareChart:
        """The chart of these maps. fields: further fields of SquareChart."""
        figure = self.figure
        _, x_label = quantity(figure.by).ticks(self.values(figure.by))
        rows, y_label = [""], ""
        if figure.down:
            rows, y_label = quantity(figure.down).ticks(self.values(figure.down))
        return SquareChart(
            figure.title, heading(self.records), foot, maps=tuple(maps), rows=tuple(rows),
            x_label=x_label, y_label=y_label, **fields)


def cell_difference(figure: Figure, cells: ByCell, cell: CellKey,
                    windows: tuple[int, int]) -> Difference | None:
    """What the second window changes in one cell; None where no record counts under both."""
    rows = rows_of(figure, cells, cell, weight=1.0, windows=windows)
    return difference_of(figure, [rows], windows)


def mean_interval(values: Sequence[float]) -> Ends | None:
    """The 95 % interval of the mean of one cell's values; None for a single value."""
    if len(values) < 2:
        return None
    if len(set(values)) == 1:
        return values[0], values[0]
    means = stats.resampled_means([values], [1.0], stats.generator(seed=1))
    return stats.percentile_interval(means)


# What a larger window changes --------------------------------------------------------

def improvements(analysis: Analysis, figure: Figure) -> list[Finding]:
    """A map for each other window and each combination of what else the sweep varies.

    [] where the sweep has the baseline only. Raises NoBars where a cell was not measured.
    """
    grid = Grid.gather(analysis, figure)
    base = figure.baseline_initcwnd
    metric = quantity(figure.metric)
    other_windows = [window for window in grid.sweep.initcwnd if window != base]
    all_maps = list(product(other_windows, grid.combinations()))
    if not all_maps:
        return []

    def square(change: Difference) -> Square:
        return Square(change.absolute.value, change.percent.value, change.is_unsure,
                      n=change.n, excluded=change.excluded.total)

    def text(change: Difference) -> str:
        saved = metric.with_unit(format_brief(change.absolute.value))
        return f"{saved} {format_number(change.percent.value, 0)} %"

    maps, tables = [], []
    for window, (words, cells) in all_maps[:MOST_MAPS]:
        title = ", ".join([f"{window} instead of {base} segments", *words])
        changes = {place: cell_difference(figure, grid.by_cell, cell, (base, window))
                   for place, cell in cells.items()}
        maps.append(grid.map(title, changes, square))
        tables.append(grid.table(f"{metric.improved.capitalize()}, {title}", changes, text))

    if len(maps) == 1:
        maps = [replace(maps[0], title="")]
    omitted = _omitted_maps(len(all_maps), grid.varied)
    foot = (f"{metric.axis}, and percent of it: blue {metric.improved}, orange lost; in brackets:"
            f" the 95 % interval holds zero.{omitted}")
    return [Finding(figure.name, figure.title, tables=tuple(tables),
                    sentence=_range_of(metric, maps) + omitted,
                    chart=grid.chart(maps, foot, unit=metric.unit))]


def _omitted_maps(count: int, varied: list[str]) -> str:
    """A sentence on the maps for which there is no room; "" where there is room for all."""
    if count <= MOST_MAPS:
        return ""
    names = " and ".join(["window", *(quantity(name).head for name in varied)])
    return (f" The first {MOST_MAPS} of {count} maps are shown, one for each {names}; the table of"
            " cells has all of them, and so has trials.csv.")


def _range_of(metric: Quantity, maps: Sequence[SquareMap]) -> str:
    """The smallest and the largest improvement of each map, in words."""
    ranges = []
    for shown in maps:
        known = [square for square in chain.from_iterable(shown.rows) if square is not None]
        if known:
            title = f"{shown.title}: " if shown.title else ""
            values = [square.value for square in known]
            percents = [square.percent for square in known]
            ranges.append(f"{title}{format_brief(min(values))}"
                          f" to {metric.with_unit(format_brief(max(values)))} {metric.improved},"
                          f" {format_brief(min(percents))} to {format_brief(max(percents))} %")
    return f"{'. '.join(ranges) or NOTHING_COUNTS}."


# The smallest sufficient window ------------------------------------------------------

@dataclass(frozen=True)
class SufficientWindow:
    """The smallest window of one cell whose mean is within WITHIN_PERCENT of the best one."""

    window: int
    means: Mapping[int, float]  # the metric's mean under each window
    excluded: int  # records that do not count
    sign: int = 1  # 1 where less of the metric is better, −1 where more is

    def improved_percent(self, baseline: int) -> float | None:
        """How much better the window is than the baseline; None where the baseline has no mean."""
        if baseline not in self.means:
            return None
        return percent_of(self.means[baseline], self.means[self.window], self.sign)


def sufficient_windows(analysis: Analysis, figure: Figure) -> list[Finding]:
    """A map of sufficient windows for each combination of what else the sweep varies.

    Raises NoBars where a cell was not measured.
    """
    grid = Grid.gather(analysis, figure)
    metric = quantity(figure.metric)
    windows = sorted(grid.sweep.initcwnd)
    sufficient = {cell: sufficient_window(figure, grid.by_cell, cell, windows)
                  for cell in grid.cells}

    def square(cell: SufficientWindow) -> Square:
        return Square(cell.window, cell.improved_percent(figure.baseline_initcwnd) or 0.0,
                      excluded=cell.excluded)

    maps, tables = [], []
    for words, cells in grid.combinations():
        title = ", ".join(words)
        by_place = {place: sufficient[cell] for place, cell in cells.items()}
        maps.append(grid.map(title, by_place, square))
        tables.append(grid.table(f"Smallest sufficient window, segments: {title or figure.title}",
                                 by_place, lambda cell: str(cell.window)))

    best = "highest" if metric.more_is_better else "lowest"
    foot = (f"The smallest window whose mean {metric.label or metric.head} is within"
            f" {WITHIN_PERCENT:g} % of the {best} of {', '.join(map(str, windows))} segments.")
    sentence = _needed(figure, [cell for cell in sufficient.values() if cell is not None])
    return [Finding(
        figure.name, figure.title, sentence=sentence,
        chart=grid.chart(maps, foot, scale="window", windows=tuple(windows)),
        tables=(*tables, _all_cells(figure, grid.varied, sufficient).first(MOST_ROWS)))]


def sufficient_window(figure: Figure, cells: ByCell, cell: CellKey,
                      windows: Sequence[int]) -> SufficientWindow | None:
    """The sufficient window of a cell; None where no record of the cell counts."""
    means = {}
    excluded = 0
    for window in windows:
        records = cells[cell, window]
        values = [value for _, value in counting(records, figure.metric)[0]]
        excluded += len(records) - len(values)
        if values:
            means[window] = sum(values) / len(values)
    if not means:
        return None

    sign = sign_of(figure.metric)
    best = min(sign * mean for mean in means.values())
    worst_sufficient = best + WITHIN_PERCENT / 100 * abs(best)
    smallest = min(window for window, mean in means.items() if sign * mean <= worst_sufficient)
    return SufficientWindow(smallest, means, excluded, sign=sign)


def _all_cells(figure: Figure, varied: Sequence[str],
               sufficient: Mapping[CellKey, SufficientWindow | None]) -> Table:
    """A row for every cell, for those who export the numbers."""
    names = (*varied, figure.by, figure.down)
    base, metric = figure.baseline_initcwnd, quantity(figure.metric)
    columns = (*(Column(quantity(name).head, quantity(name).unit, is_filter=True)
                 for name in names),
               Column("window", "segments"), Column("mean", metric.unit, "with it"),
               Column("mean", metric.unit, f"with {base}"),
               Column(metric.improved, "%", f"of {base}'s"))
    rows: list[tuple[Cell, ...]] = []
    for cell, found in sufficient.items():
        if found is not None:
            rows.append((*(plain(getattr(cell, name)) for name in names), found.window,
                         found.means[found.window], found.means.get(base),
                         found.improved_percent(base)))
    return Table("Every network and response", columns, tuple(rows))


def _needed(figure: Figure, sufficient: Sequence[SufficientWindow]) -> str:
    """A sentence on how many cells the baseline suffices for, and how many need the largest window.
    """
    if not sufficient:
        return f"{NOTHING_COUNTS}."
    base = figure.baseline_initcwnd
    largest = max(max(cell.means) for cell in sufficient)
    enough = sum(cell.window <= base for cell in sufficient)
    needed = sum(cell.window == largest for cell in sufficient)
    return (f"A window of {base} segments is enough in {enough} of {len(sufficient)} cells"
            f" ({100 * enough / len(sufficient):.0f} %); {needed} need{'s' if needed == 1 else ''}"
            f" the largest, {largest}.")


# The metric under each window, by one quantity ---------------------------------------

def groups(analysis: Analysis, figure: Figure) -> list[Finding]:
    """A group of bars for each value of `by`, with a bar for each window and its 95 % interval.

    Raises NoBars where a cell was not measured.
    """
    grid = Grid.gather(analysis, figure)
    by, metric = quantity(figure.by), quantity(figure.metric)
    base = figure.baseline_initcwnd
    windows = [base, *(window for window in grid.sweep.initcwnd if window != base)]
    default_window = own_window(grid.records)
    values = [getattr(cell, figure.by) for cell in grid.cells]
    bars: list[Group] = []
    rows, parts = [], []
    for cell, value in zip(grid.cells, values):
        group = tuple(_bar(figure, grid.by_cell, cell, (base, window)) for window in windows)
        bars.append(group)
        row: list[Cell] = [plain(value)]
        means = []
        for window, change in zip(windows, group):
            row += _row(change, window == base)
            if change is not None:
                mean = metric.with_unit(format_brief(change.experiment.value))
                means.append(f"{mean} with {default_window or window}")
        rows.append(tuple(row))
        parts.append(f"{by.head} {plain(value)} {by.unit}: "
                     f"{', '.join(means) or 'nothing counts'}")

    columns = _group_columns(by, metric, windows, default_window)
    table = Table(figure.title, tuple(columns), tuple(rows))
    bucket_names, axis = by.bucket_names(values)
    chart = GroupChart(
        figure.title, heading(grid.records), _foot(metric, bars), axis=axis, unit=metric.unit,
        windows=tuple(windows), own_window=default_window, groups=tuple(zip(bucket_names, bars)),
        measured=f"{metric.axis[0].lower()}{metric.axis[1:]}")
    return [Finding(figure.name, figure.title, tables=(table.without_empty(),),
                    sentence=f"{'; '.join(parts)}.", chart=chart)]


def _group_columns(by: Quantity, metric: Quantity, windows: Sequence[int], default_window: str
                   ) -> list[Column]:
    """The column of `by`, and five columns for each window, whose cells _row() returns.

    default_window: how to name the window that no route sets, else "".
    """
    saved, unit = metric.improved, metric.unit
    columns = [Column(by.head, by.unit)]
    for window in windows:
        head = f"IW {default_window}" if default_window else f"IW{window}"
        columns += [Column(head, unit, "mean"),
                    Column("95 % interval", f"{head}, {unit}" if unit else head, rank=2),
                    Column(saved, unit, f"with {window}"), Column(saved, "%", f"with {window}"),
                    Column("95 % interval", unit, f"with {window}", rank=3)]
    return columns


def _foot(metric: Quantity, bars: Sequence[Group]) -> str:
    """A sentence on the numbers below the bars."""
    if len(bars[0]) == 1:
        return "Below the bars: the mean."
    is_unsure = any(change is not None and change.is_unsure for group in bars for change in group)
    brackets = ", in brackets where its 95 % interval holds zero" if is_unsure else ""
    return (f"Below the bars: the mean and what percentage of the first window's is"
            f" {metric.improved}{brackets}.")


def _bar(figure: Figure, cells: ByCell, cell: CellKey,
         windows: tuple[int, int]) -> Difference | None:
    """What the second window changes in a cell; None where no record counts.

    The experiment has the interval of its mean, too. n and excluded are those of the second window.
    """
    change = cell_difference(figure, cells, cell, windows)
    if change is None:
        return None
    numbered, excluded = counting(cells[cell, windows[1]], figure.metric)
    values = [value for _, value in numbered]
    mean = Estimate(change.experiment.value, mean_interval(values), len(values))
    return replace(change, n=len(values), excluded=excluded, experiment=mean)


def _row(change: Difference | None, is_base: bool) -> tuple[Cell, ...]:
    """The five cells of one window: its mean with the interval, and the improvement with its own.

    The improvement has a value in the metric's unit and one in percent. The baseline has none.
    """
    if change is None:
        return (None, "", "", "", "")
    mean = (change.experiment.value, _wide_interval(change.experiment.interval))
    if is_base:
        return (*mean, "", "", "")
    return (*mean, change.absolute.value, change.percent.value,
            _wide_interval(change.absolute.interval))


def _wide_interval(ends: Ends | None) -> Cell:
    """The cell of an interval; "" where it would print as a single value."""
    return interval(ends) if is_wide(ends) else ""
