"""Maps of windows: the smallest one that is about as good as the best, by two quantities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from lab.core.findings.charts import Map, MapChart, Square
from lab.core.findings.findings import Column, Finding, Table
from lab.core.run.kinds import RunData
from lab.core.scenario.quantities import quantity
from lab.core.words import plain
from lab.fetches.figures import analysis
from lab.fetches.figures.buckets import ByCell, NoPanel, by_cell, percent_of, sign_of
from lab.fetches.figures.figure import heading
from lab.fetches.figures.maps import NOTHING_COUNTS, besides, named, values
from lab.fetches.scenario.scenario import Figure, Scenario
from lab.fetches.scenario.sweep import Cell

WITHIN_PERCENT = 2.0  # of the best: less is not worth a larger window
MOST_ROWS = 24  # of the long table that a terminal and a document show


@dataclass(frozen=True)
class Choice:
    """The window of one cell: the smallest within WITHIN_PERCENT of the best.

    means: of the metric, of each window that has one; left_out: records that do not count;
    sign: -1 where more is better.
    """

    window: int
    means: Mapping[int, float]
    left_out: int
    sign: int = 1

    def improved_percent(self, baseline: int) -> float | None:
        """What it improves, of the baseline's mean."""
        if baseline not in self.means:
            return None
        return percent_of(self.means[baseline], self.means[self.window], self.sign)


def findings(scenario: Scenario, figure: Figure, run: RunData) -> list[Finding]:
    """One finding: a map for every combination of what else the sweep varies."""
    sweep = scenario.sweep(figure.sweep)
    try:
        chosen_records, cells = by_cell(scenario, figure, sweep.initcwnd, run.records)
    except NoPanel as error:
        return [Finding(figure.name, figure.title, missing=str(error))]
    windows = sorted(sweep.initcwnd)
    choices = {cell: choice(figure, cells, cell, windows) for cell in sweep.cells}
    columns, rows = values(sweep.cells, figure.by), values(sweep.cells, figure.down)
    varied = besides(figure, sweep)
    maps, tables = [], []
    for combination in product(*(values(sweep.cells, name) for name in varied)):
        title = ", ".join(named(name, value) for name, value in zip(varied, combination))
        of = {(getattr(cell, figure.by), getattr(cell, figure.down)): chosen
              for cell, chosen in choices.items()
              if tuple(getattr(cell, name) for name in varied) == combination}
        maps.append(Map(title, tuple(tuple(_square(of.get((column, row)), figure)
                                           for column in columns) for row in rows)))
        tables.append(_table(figure, title, columns, rows, of))
    metric = quantity(figure.metric)
    foot = (f"The smallest window whose mean {metric.label or metric.head} is within"
            f" {WITHIN_PERCENT:g} % of the {'highest' if metric.more_is_better else 'lowest'} of"
            f" {', '.join(map(str, windows))} segments.")
    chart = MapChart(figure.title, (heading(chosen_records),), maps=tuple(maps), foot=foot,
                     columns=tuple(map(plain, columns)), rows=tuple(map(plain, rows)),
                     x_label=quantity(figure.by).axis, y_label=quantity(figure.down).axis,
                     windows=tuple(windows))
    sentence = _sentence(figure, list(choices.values()))
    return [Finding(figure.name, figure.title, sentence=sentence, text=sentence, chart=chart,
                    tables=(*tables, _long(figure, varied, choices).first(MOST_ROWS)))]


def choice(figure: Figure, cells: ByCell, cell: Cell, windows: Sequence[int]) -> Choice | None:
    """The window of a cell; None where nothing of it counts."""
    means, left_out = {}, 0
    for window in windows:
        records = cells[cell, window]
        found = [value for _, value in analysis.counting(records, figure.metric)[0]]
        left_out += len(records) - len(found)
        if found:
            means[window] = sum(found) / len(found)
    if not means:
        return None
    sign = sign_of(figure.metric)
    best = min(sign * mean for mean in means.values())
    bound = best + WITHIN_PERCENT / 100 * abs(best)
    return Choice(min(window for window, mean in means.items() if sign * mean <= bound),
                  means, left_out, sign)


def _square(chosen: Choice | None, figure: Figure) -> Square | None:
    if chosen is None:
        return None
    saved = chosen.improved_percent(figure.baseline_initcwnd)
    return Square(0.0, 0.0 if saved is None else saved, left_out=chosen.left_out,
                  window=chosen.window)


def _table(figure: Figure, title: str, columns: Sequence[Any], rows: Sequence[Any],
           of: Mapping[tuple[Any, Any], Choice | None]) -> Table:
    across, down = quantity(figure.by), quantity(figure.down)
    return Table(f"Smallest sufficient window, segments: {title or figure.title};"
                 f" {across.head} across", (
        Column(down.head, down.unit),
        *(Column(plain(column), across.unit, is_text=True) for column in columns)), tuple(
            (plain(row), *(None if (chosen := of.get((column, row))) is None
                           else str(chosen.window) for column in columns)) for row in rows))


def _long(figure: Figure, varied: Sequence[str], choices: Mapping[Cell, Choice | None]) -> Table:
    """A row for every cell, as data: what to export."""
    names = (*varied, figure.by, figure.down)
    base, metric = figure.baseline_initcwnd, quantity(figure.metric)
    columns = (*(Column(quantity(name).head, quantity(name).unit, is_filter=True)
                 for name in names),
               Column("window", "segments"), Column("mean", metric.unit, "with it"),
               Column("mean", metric.unit, f"with {base}"),
               Column(metric.improved, "%", f"of {base}'s"))
    return Table("Every network and response", columns, tuple(
        (*(plain(getattr(cell, name)) for name in names), chosen.window,
         chosen.means[chosen.window], chosen.means.get(base), chosen.improved_percent(base))
        for cell, chosen in choices.items() if chosen is not None))


def _sentence(figure: Figure, choices: Sequence[Choice | None]) -> str:
    """How often the baseline is enough, how often the largest is needed."""
    found = [chosen for chosen in choices if chosen is not None]
    if not found:
        return f"{NOTHING_COUNTS}."
    base, largest = figure.baseline_initcwnd, max(max(each.means) for each in found)
    enough = sum(each.window <= base for each in found)
    needed = sum(each.window == largest for each in found)
    return (f"A window of {base} segments is enough in {enough} of {len(found)} cells"
            f" ({100 * enough / len(found):.0f} %); {needed} need{'s' if needed == 1 else ''} the"
            f" largest, {largest}.")
