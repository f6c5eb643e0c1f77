"""The values of load's findings against those that were rendered before lab/core was made."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy
import pytest

from lab.core.findings.charts import LineChart, Plot
from lab.core.findings.findings import Cell, Column, Finding, Interval, Rounded, Table
from lab.core.stats import Estimate
from lab.core.words import number
from lab.load import findings as load_findings
from lab.load.record import PERCENTILES
from tests.golden import stored_load

RENDERED = Path(__file__).resolve().parent / "rendered"
POINTS: dict[str, Any] = json.loads((RENDERED / "points.json").read_text())["load"]
FINDINGS = {finding.name: finding for finding in stored_load.report().findings}


def plots(name: str) -> list[Plot]:
    chart = FINDINGS[name].chart
    assert isinstance(chart, LineChart)
    return [plot for column in chart.columns for plot in column]


def as_point(found: Cell) -> Any:
    """An estimate as points.json has it: the value, its interval, how many seeds."""
    if not isinstance(found, Estimate):
        return found
    return [found.value, list(found.interval or ()), found.n]


def near(expected: Any) -> Any:
    """The same up to the last bits of a float; interval by interval."""
    if isinstance(expected, list):
        return [near(each) for each in expected]
    return pytest.approx(expected, rel=1e-9, abs=1e-9) if isinstance(expected, float) else expected


def as_text(column: Column, cell: Cell) -> str:
    """A cell as text, number by number."""
    digits = column.digits
    if isinstance(cell, Rounded):
        return as_text(Column("", digits=cell.digits, signed=cell.signed), cell.value)
    if isinstance(cell, Estimate):
        half = "" if cell.interval is None else (
            f" ± {number((cell.interval[1] - cell.interval[0]) / 2, digits)}")
        return number(cell.value, digits, column.signed) + half
    if isinstance(cell, str):
        return cell
    assert not isinstance(cell, Interval)
    return number(cell, 0 if isinstance(cell, int) else digits, column.signed)


def lines_of(table: Table) -> list[str]:
    return [" ".join(filter(None, map(as_text, table.columns, row))).strip()
            for row in table.rows]


@pytest.mark.parametrize("name", ["distribution", "mix", "percentiles"])
def test_distributions_are_those_that_were_drawn(name: str) -> None:
    unmixed = [each for each in POINTS[name] if not each["name"].startswith("mix")]
    assert len(unmixed) == 2
    for point, line in zip(unmixed, plots(name)[0].lines, strict=False):  # groups of a mix follow
        assert line.name == f"{point['name']} (n = {point['count']})"
        assert [line.x[0], line.x[-1]] == near([point["first_ms"], point["last_ms"]])


@pytest.mark.parametrize("name", ["distribution", "mix"])
def test_percentiles_are_those_that_were_rendered(name: str) -> None:
    for point in POINTS[name][:2]:
        row = next(row for row in FINDINGS[name].tables[0].rows
                   if row[0] == f"{point['name']}, ms")
        assert [row[1], as_point(row[2])] == near([point["count"], point["mean"]])
        for percentile, cell in zip(PERCENTILES, row[3:], strict=True):
            assert as_point(cell) == near(point["percentiles"][f"{percentile:g}"])


def test_gains_are_those_that_were_drawn() -> None:
    saved, again = plots("gain")
    ((line,), (with_window, faint)) = saved.lines, again.lines
    points = POINTS["gain"][0]["points"]
    for place, point in enumerate(points):
        assert [line.y[place], list(line.ends[place] or ())] == near(point["mean"][:2])
        assert [with_window.y[place], list(with_window.ends[place] or ())] == near(
            point["retransmission"][:2])
        assert faint.y[place] == near(point["base_retransmission"][0])
    assert line.x == with_window.x == faint.x == tuple(range(len(points)))


def test_hit_transfers_are_those_that_were_drawn() -> None:
    for plot, which in zip(plots("hit"), ("own", "same"), strict=True):
        known = [(place, point[which]) for place, point in enumerate(POINTS["hit"])
                 if point[which] is not None]
        for side, line in enumerate(plot.lines):
            assert line.style == "bars" and line.x == tuple(place for place, _ in known)
            for y, ends, (_, pair) in zip(line.y, line.ends, known, strict=True):
                assert [y, list(ends or ())] == near(pair[side][:2])
    assert FINDINGS["hit"].tables[0].column("n") == [point["n"] for point in POINTS["hit"]]


def test_a_curve_ends_at_the_share_that_completed() -> None:
    curve = plots("distribution")[0].lines[1]  # IW 10: 4 of 431 had not
    assert curve.y[-1] == pytest.approx(100 * 427 / 431)
    assert numpy.all(numpy.diff(curve.x) >= 0) and numpy.all(numpy.diff(curve.y) > 0)


# The numbers of the text ------------------------------------------------------------

@pytest.mark.parametrize(("file", "findings"), [
    ("load.txt", list(FINDINGS.values())),
    ("load_cells.txt", [load_findings.partial(stored_load.run().records)])])
def test_tables_hold_the_numbers_of_the_text(file: str, findings: list[Finding]) -> None:
    text = [" ".join(line.split()) for line in (RENDERED / file).read_text().splitlines()]
    rows = [line for finding in findings for table in finding.tables
            for line in lines_of(table)]
    assert len(rows) > 15
    for row in rows:
        assert row in text


def test_statements_are_those_of_the_text() -> None:
    text = re.sub(r"\s+", " ", (RENDERED / "load.txt").read_text())
    for finding in FINDINGS.values():
        for statement in finding.statements:
            said = f"“{statement.says}” Here:" if statement.word else statement.says
            assert f"{said} {statement.found}" in text
