"""What stands behind a fit: it is of the parameters that the rows were drawn with."""

from __future__ import annotations

from pathlib import Path

import pytest

from firstflight.base.errors import FirstFlightError
from firstflight.base.words import plain
from firstflight.findings.charts import LineChart
from firstflight.runs import scenario_file
from firstflight.study.fetches import reading
from firstflight.study.fetches.scenario import rows
from firstflight.study.population import findings as fit

NAME = "dukkipati2010"


def test_the_parameters_that_are_told_are_those_that_the_rows_were_drawn_with() -> None:
    drawn = {table["name"]: table for table in scenario_file.read(
        rows.FOLDER / f"{NAME}.toml", "x").raw["population"]}
    told = dict(zip(*(fit.fit_findings(NAME)[0].tables[0].column(name)
                      for name in ("parameter", "value"))))

    def word(value: object) -> str:
        return ("yes" if value is True else ", ".join(map(str, value)) if isinstance(value, list)
                else plain(value))  # type: ignore[arg-type]

    assert {name: told[name] for name in list(told)[:17]} == {
        name: word(value) for name, value in drawn["avgdc"]["mechanism"].items()}
    own = {"windows": "AvgDC, six windows", "slowdc": "SlowDC"}
    assert {name: told[name] for name in list(told)[17:]} == {
        f"{name}, {title}": word(value) for part, title in own.items() for name, value in (
            *drawn[part]["mechanism"].items(), *((name, drawn[part][name]) for name in drawn[part]
                                                 if name == "rtt_at_most_ms"))}


def test_what_is_held_out_has_no_parameter_of_its_own() -> None:
    """Every figure that says so is of a population with all of the fitted one's values."""
    scenario = reading.read_scenario(scenario_file.find(NAME))
    held_out = {figure.sweep for figure in scenario.figures if figure.held_out}
    assert held_out == {"slowdc_held_out"}
    avgdc, _, slowdc, apart = scenario_file.read(rows.FOLDER / f"{NAME}.toml", "x").raw["population"]
    assert {**avgdc["mechanism"], **slowdc["mechanism"], **apart["mechanism"]} == avgdc["mechanism"]
    slow = {figure.name for figure in scenario.figures if figure.sweep == "slowdc"}
    assert slow == {"fig6", "table3_slowdc", "table4"}  # fitted: three parameters of their own


def test_three_findings_are_told_of_the_fit() -> None:
    fitted, profiles, without = fit.fit_findings(NAME)
    parameters, free, numbers, held = fitted.tables
    assert free.column("how many") == [15, 2, 2, 79] and "correlated" in free.notes[0]
    rests_on = parameters.column("from")
    assert (rests_on[:17].count("fitted"), rests_on[:17].count("by hand")) == (15 - 1, 1)
    assert sum(int(str(count)) for used, count in zip(numbers.column("used"),
               numbers.column("how many")) if str(used).startswith("fitted")) == 79
    assert fitted.sentence.startswith("15 parameters are fitted to 79 correlated numbers, 2 are"
                                      " set by hand, and 2 belong to SlowDC. They are compatible")
    assert "Table 3, SlowDC 0 of 7" in fitted.sentence  # those of its own parameters are not held out
    chart = profiles.chart
    assert len(held.rows) == 15 and isinstance(chart, LineChart)
    assert sum(map(len, chart.columns)) == 15
    off, tried = without.tables
    assert len(off.rows) == 13 and tried.rows


def test_a_damaged_file_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(fit, "FITS", tmp_path)
    assert fit.fit_findings(NAME) == ()
    for damaged in ("{", "[]", '{"is": "Finding"}'):
        (tmp_path / f"{NAME}.json").write_text(damaged, encoding="utf-8")
        with pytest.raises(FirstFlightError, match="dukkipati2010.json: holds no findings"):
            fit.fit_findings(NAME)
