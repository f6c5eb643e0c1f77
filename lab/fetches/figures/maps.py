"""Figures of single cells: bars of a metric by one quantity, maps of its improvement by two."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

from lab.core.findings.charts import GroupChart, Map, MapChart, Square, TimeBar, is_wide
from lab.core.findings.findings import Cell as Shown
from lab.core.findings.findings import Column, Finding, Table
from lab.core.run.kinds import RunData
from lab.core.scenario.quantities import quantity
from lab.core.scenario.quantity import Quantity
from lab.core.stats import Estimate
from lab.core.words import number, plain, short
from lab.fetches.figures import analysis
from lab.fetches.figures.buckets import Bucket, ByCell, NoPanel, by_cell
from lab.fetches.figures.figure import heading, interval
from lab.fetches.scenario.scenario import GROUPS, Figure, Scenario
from lab.fetches.scenario.sweep import SWEPT, Cell, Sweep

MOST_MAPS = 12  # of one figure: more are not compared, and a page is not read to its end
NOTHING_COUNTS = "Nothing that was measured counts"

Squares = dict[tuple[Any, Any], Bucket | None]  # by value across and down


def findings(scenario: Scenario, figure: Figure, run: RunData) -> list[Finding]:
    """One finding, with a map for every larger window and what else the sweep varies; or none."""
    sweep = scenario.sweep(figure.sweep)
    others = [window for window in sweep.initcwnd if window != figure.baseline_initcwnd]
    try:
        chosen, cells = by_cell(scenario, figure, sweep.initcwnd, run.records)
    except NoPanel as error:
        return [Finding(figure.name, figure.title, missing=str(error))]
    if figure.kind == GROUPS:
        return [_groups(figure, sweep, cells, heading(chosen))]
    if not others:
        return []
    columns, rows = values(sweep.cells, figure.by), values(sweep.cells, figure.down)
    varied = besides(figure, sweep)
    maps: list[Map] = []
    tables: list[Table] = []
    every = list(product(others, *(values(sweep.cells, name) for name in varied)))
    left_out = _left_out(len(every), varied)
    for window, *combination in every[:MOST_MAPS]:
        title = ", ".join([f"{window} instead of {figure.baseline_initcwnd} segments",
                           *(named(name, value) for name, value in zip(varied, combination))])
        squares: Squares = {
            (getattr(cell, figure.by), getattr(cell, figure.down, "")): analysis.square(
                figure, cells, cell, (figure.baseline_initcwnd, window))
            for cell in sweep.cells
            if [getattr(cell, name) for name in varied] == combination}
        maps.append(Map(title, tuple(tuple(_square(squares.get((column, row)))
                                           for column in columns) for row in rows)))
        tables.append(_table(figure, title, columns, rows, squares))
    if len(maps) == 1:
        maps = [replace(maps[0], title="")]
    metric = quantity(figure.metric)
    chart = MapChart(
        figure.title, (heading(chosen),), maps=tuple(maps), unit=metric.unit,
        foot=f"{metric.axis} {metric.improved}, and percent of it; blue: {metric.improved},"
             f" orange: lost; in brackets: the 95 % interval holds zero.{left_out}",
        columns=tuple(map(plain, columns)), rows=tuple(map(plain, rows)),
        x_label=quantity(figure.by).axis, y_label=quantity(figure.down).axis if figure.down else "")
    return [Finding(figure.name, figure.title, tables=tuple(tables),
                    sentence=_sentence(metric, maps) + left_out, text=_sentence(metric, maps),
                    chart=chart)]


def _left_out(count: int, besides: list[str]) -> str:
    """Which maps have no room, in a sentence; "" where all have."""
    if count <= MOST_MAPS:
        return ""
    named = " and ".join(["window", *(quantity(name).head for name in besides)])
    return (f" The first {MOST_MAPS} of {count} maps are shown, one for each {named}; the table of"
            " cells has all of them, and so has trials.csv.")


def _groups(figure: Figure, sweep: Sweep, cells: ByCell, context: str) -> Finding:
    """The metric under each window by one quantity, with 95 % intervals."""
    by, metric, base = quantity(figure.by), quantity(figure.metric), figure.baseline_initcwnd
    saved, unit = metric.improved, metric.unit
    windows = [base, *(window for window in sweep.initcwnd if window != base)]
    columns = [Column(by.head, by.unit)]
    for window in windows:
        columns += [Column(f"IW{window}", unit, "mean"),
                    Column("95 % interval", f"IW{window}{f', {unit}' if unit else ''}", rank=2),
                    Column(saved, unit, f"with {window}"), Column(saved, "%", f"with {window}"),
                    Column("95 % interval", unit, f"with {window}", rank=3)]
    groups, rows = [], []
    for cell in sweep.cells:
        found = [_bar(figure, cells, cell, (base, window)) for window in windows]
        groups.append((plain(getattr(cell, figure.by)), tuple(bar for bar, _ in found)))
        rows.append((groups[-1][0], *(value for window, (bar, bucket) in zip(windows, found)
                                      for value in _row(bar, bucket, window == base))))
    table = Table(figure.title, tuple(columns), tuple(rows)).without_empty()
    said = "; ".join(f"{by.head} {label} {by.unit}: " + (", ".join(
        f"{metric.with_unit(short(bar.time.value))} with {window}"
        for window, bar in zip(windows, bars) if bar) or "nothing counts")
        for label, bars in groups)
    return Finding(figure.name, figure.title, tables=(table,), sentence=f"{said}.", text=said,
                   chart=GroupChart(figure.title, (context,),
                                    windows=tuple(map(str, windows)), groups=tuple(groups),
                                    axis=by.axis, unit=unit,
                                    measured=f"{metric.axis[0].lower()}{metric.axis[1:]}",
                                    foot="Below the bars: the mean and what percentage of the"
                                         f" first window's is {saved}, in brackets where the 95 %"
                                         " interval of that holds zero; n: transfers."))


def _bar(figure: Figure, cells: ByCell, cell: Cell,
         windows: tuple[int, int]) -> tuple[TimeBar | None, Bucket | None]:
    """The metric under the second window, compared with the first."""
    bucket = analysis.square(figure, cells, cell, windows)
    if bucket is None:
        return None, None
    records = cells[cell, windows[1]]
    values = tuple(value for _, value in analysis.counting(records, figure.metric)[0])
    return TimeBar(str(windows[1]), Estimate(bucket.experiment, analysis.mean_interval(values),
                                             len(values)),
                   None if windows[0] == windows[1] else bucket.percent, n=len(values),
                   left_out=len(records) - len(values), unsure=bucket.is_unsure), bucket


def _row(bar: TimeBar | None, bucket: Bucket | None, is_base: bool) -> tuple[Shown, ...]:
    if bar is None or bucket is None:
        return (None, "", "", "", "")
    mean = (bar.time.value, interval(bar.time.interval) if is_wide(bar.time.interval) else "")
    if is_base:
        return (*mean, "", "", "")
    ends = bucket.absolute_interval
    return (*mean, bucket.absolute, bucket.percent, interval(ends) if is_wide(ends) else "")


def values(cells: list[Cell], name: str) -> list[Any]:
    """What a sweep has of a quantity, in its order; one value where there is none."""
    return list(dict.fromkeys(getattr(cell, name) for cell in cells)) if name else [""]


def besides(figure: Figure, sweep: Sweep) -> list[str]:
    """What the sweep varies beside a map's two quantities: a map for each combination of it."""
    return [name for name in SWEPT if name not in (figure.by, figure.down, "uplink_kbps")
            and len(values(sweep.cells, name)) > 1]


def named(name: str, value: Any) -> str:
    """A value with the name and the unit of its quantity."""
    named = quantity(name)
    return f"{named.head} {plain(value)} {named.unit}".rstrip()


def _square(bucket: Bucket | None) -> Square | None:
    if bucket is None:
        return None
    return Square(bucket.absolute, bucket.percent, bucket.is_unsure, bucket.n,
                  bucket.excluded.total)


def _table(figure: Figure, title: str, columns: list[Any], rows: list[Any],
           squares: Squares) -> Table:
    """Rows of a map, "12.3 ms 4.5 %" in a cell."""
    across, down, metric = map(quantity, (figure.by, figure.down, figure.metric))
    head = (Column(down.head, down.unit),) if figure.down else ()
    return Table(f"{metric.improved.capitalize()}, {title}; {across.head} across", (
        *head, *(Column(plain(column), across.unit, is_text=True) for column in columns)), tuple(
            (*((plain(row),) if figure.down else ()),
             *(_shown(metric, squares.get((column, row))) for column in columns)) for row in rows))


def _shown(metric: Quantity, bucket: Bucket | None) -> Shown:
    return None if bucket is None else (f"{metric.with_unit(short(bucket.absolute))}"
                                        f" {number(bucket.percent, 0)} %")


def _sentence(metric: Quantity, maps: list[Map]) -> str:
    """The least and the most of each map."""
    said = []
    for each in maps:
        known = [square for row in each.rows for square in row if square is not None]
        if known:
            low, high = (choose(known, key=lambda square: square.absolute)
                         for choose in (min, max))
            said.append(f"{each.title}{': ' if each.title else ''}{short(low.absolute)} to"
                        f" {metric.with_unit(short(high.absolute))} {metric.improved},"
                        f" {short(min(square.percent for square in known))} to"
                        f" {short(max(square.percent for square in known))} %")
    return f"{'. '.join(said) or NOTHING_COUNTS}."
