"""Each value that a chart draws stands in a table of its finding, with its label and its unit.

Goldens have the tables as text (tests/golden/rendered/*.txt). So a chart that differs from its
table in a value, order, sign, label or unit is found here. Curves and the lines next to them are
not compared, since they are drawn from samples. Neither are packets over time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from firstflight.base.words import MINUS, plain
from firstflight.findings.charts import (BarChart, Chart, GroupChart, LineChart, Plot,
                                         SquareChart, StepChart, TimeChart)
from firstflight.findings.drawing import style
from firstflight.findings.findings import Table
from firstflight.findings.render.values import bare, written
from tests.golden.rendering import BY_HAND, REPORTS

FROM_SAMPLES = ("curve", "dashed", "faint")  # styles of lines
LEAST_VALUES = 1000  # that have to be compared in all charts together
# Charts whose points have other names than the rows of their tables. A golden has their values, or
# the tests of their kind do.
NAMED_OTHERWISE = (
    "load: mix", "load: percentiles", "load_axes: half", "load_axes: unpublished",
    "load_one_seed: mix", "load_one_seed: deck",  # load.parts has the lines by percentile
    "steps: steps",  # sizes in bytes, where the table has the chains' names
    "compared: comparison")
ONLY_IN_LEGENDS = {  # words that no table has
    "the", "deck", "offered", "load", "buffer", "measured", "everywhere", "all", "IW"}
_UNIT = re.compile(r"\(([^()]+)\)$")
_NUMBER = re.compile(rf"[+\-{MINUS}]?\d+(?:\.\d+)?")
_WORD = re.compile(r"[^\W_]+(?:\.\d+)?")
_PLACE = re.compile(r"^\d+  ")  # of a row, in front of its name
_LETTERS = re.compile(r"\b(?:IW|p)(?=\d)")  # of IW10 and p50, whose numbers stand alone elsewhere
_KBPS = {"kbit/s": 1, "Mbit/s": 1000, "Gbit/s": 1_000_000}


@dataclass(frozen=True)
class Value:
    """A value of a table or a chart."""

    value: float
    words: frozenset[str]  # that say which value it is
    unit: str  # "" for any
    within: float = 0.001  # half of the last decimal that a table shows


    def stands_for(self, drawn: Value) -> bool:
        """Whether this value of a table is the one that is drawn, to the decimal it is shown with.
        """
        return (abs(self.value - drawn.value) <= 1.001 * self.within + 1e-6 * abs(drawn.value)
                and drawn.words <= self.words
                and (self.unit == drawn.unit or not self.unit or not drawn.unit))


def words(*labels: str) -> frozenset[str]:
    """The words and numbers of labels. A bandwidth becomes its number of kbit/s, as in tables."""
    found: set[str] = set()
    for label in labels:
        number, _, unit = label.partition(" ")
        if unit in _KBPS:
            found.add(plain(float(number) * _KBPS[unit]))
        else:
            label = _PLACE.sub("", label)
            found.update(_WORD.findall(_LETTERS.sub("", label.partition(" (")[0])))
    return frozenset(found - ONLY_IN_LEGENDS)


def cells(table: Table) -> Iterator[Value]:
    """Every number of a table; of a text such as "141.9 (141)" all of them."""
    for row in table.rows:
        texts = [written(cell, column) for cell, column in zip(row, table.columns)]
        for cell, column in zip(row, table.columns):
            value = bare(cell)
            named = words(*texts, column.group, column.name, table.title)
            if isinstance(value, (int, float)):
                yield Value(value, named, column.unit)
            elif isinstance(value, str):
                for number in _NUMBER.findall(value):
                    decimals = len(number.partition(".")[2])
                    yield Value(float(number.replace(MINUS, "-")), named, column.unit,
                                within=0.5 * 10.0 ** -decimals)


def drawn(chart: Chart | None) -> Iterator[Value]:
    """Every value that a chart draws."""
    if isinstance(chart, (BarChart, TimeChart)):
        for bar in chart.bars:
            yield Value(bar.difference.absolute.value, words(bar.label), chart.unit)
            yield Value(bar.difference.percent.value, words(bar.label), "%")
    elif isinstance(chart, GroupChart):
        for label, changes in chart.groups:
            yield from (Value(change.experiment.value, words(label), chart.unit)
                        for change in changes if change is not None)
    elif isinstance(chart, StepChart):
        for step in chart.steps:
            known = () if step.sure == "start" else (step.sure,)
            yield Value(step.value, words(step.label, *known), "")
    elif isinstance(chart, SquareChart):
        for squares in chart.maps:
            for label, row in zip(chart.rows, squares.rows, strict=True):
                yield from (Value(square.value, words(label, column), "")
                            for column, square in zip(squares.columns, row) if square is not None)
    elif isinstance(chart, LineChart):
        for plot in (plot for column in chart.columns for plot in column):
            yield from on_lines(plot)


def on_lines(plot: Plot) -> Iterator[Value]:
    unit = _UNIT.search(plot.y_label)
    for line in plot.lines:
        if unit and line.style not in FROM_SAMPLES:
            for x, y in zip(line.x, line.y, strict=True):
                label = plain(x)
                if plot.ticks:
                    _, label = min(plot.ticks, key=lambda tick: abs(tick[0] - x))
                # Tables leave out that a baseline saves 0, and a logarithmic axis begins at 1.
                if y and (plot.y_scale == "linear" or y > 1):
                    yield Value(y, words(line.name, label), unit[1])


def test_every_value_that_a_chart_draws_stands_in_its_table() -> None:
    looked_at, lacking = 0, []
    findings = {f"{name}: {finding.name}": finding for name, make in REPORTS.items()
                if name not in BY_HAND for finding in make().findings}
    for name, finding in findings.items():
        there = [cell for table in finding.tables for cell in cells(table)]
        for value in drawn(finding.chart):
            looked_at += 1
            if name not in NAMED_OTHERWISE and not any(cell.stands_for(value) for cell in there):
                lacking.append(f"{name}: {value}")
    assert not lacking
    assert looked_at > LEAST_VALUES


def test_no_subtitle_of_a_stored_run_is_cut() -> None:
    """Two lines have room for what a figure shows. Longer texts stand on its page."""
    subtitles = {f"{name}: {finding.name}": style.subtitle(finding.chart.context)
                 for name, make in REPORTS.items() for finding in make().findings if finding.chart}
    assert len(subtitles) > 30
    assert not [name for name, lines in subtitles.items()
                if len(lines) > style.SUBTITLE_LINES or any(line.endswith("…") for line in lines)]
