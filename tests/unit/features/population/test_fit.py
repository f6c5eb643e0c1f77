"""What stands behind a fit: it belongs to today's parameters, and is told as simulated."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from lab.core.errors import UsageError
from lab.core.findings.charts import LineChart
from lab.core.scenario import scenario_file
from lab.fetches.features.population import fit
from lab.fetches.scenario.population import Population
from lab.fetches import reading
from lab.fetches.scenario.scenario import Scenario

NAME = "dukkipati2010"


@pytest.fixture
def scenario() -> Scenario:
    return reading.read(scenario_file.find(NAME))


@pytest.fixture
def found() -> dict[str, Any]:
    made = fit.stored(NAME)
    assert made is not None
    return made


def explained(scenario: Scenario) -> Population:
    return next(each for each in scenario.drawn.populations if each.explained)


def test_the_stored_evidence_is_of_todays_parameters(scenario: Scenario,
                                                     found: dict[str, Any]) -> None:
    """Else: write it anew, as fit.FITTED_BY's commit can."""
    assert fit.belongs(found, explained(scenario))
    slow = next(each for each in scenario.drawn.populations if each.name == "slowdc")
    *_, alone, weeks, own = found["holdouts"]
    assert own["mechanism"] == json.loads(json.dumps(asdict(slow.mechanism)))
    assert weeks["mechanism"] == {**own["mechanism"],
                                  "lossy_share": explained(scenario).mechanism.lossy_share}
    # Held out is only what nothing was chosen for by looking at it.
    assert alone["mechanism"] == found["mechanism"]
    assert [each["held_out"] for each in found["holdouts"]] == [True] * 4 + [False] * 2
    # Table 7, Web search at SlowDC: 10.44 % with ten segments, 10.17 % with three.
    assert dict(map(tuple, found["slow_losses"]))[slow.mechanism.lossy_share] == pytest.approx(
        10.3, abs=0.5)
    assert {name for name in found["profiles"]} <= set(fit.sources(NAME).rests_on)


def test_what_is_held_out_has_no_parameter_of_its_own(scenario: Scenario) -> None:
    """Every figure that says so is of a population with all of the fitted one's values."""
    held_out = [figure for figure in scenario.figures if figure.held_out]
    assert len(held_out) == 3
    for figure in held_out:
        made = scenario.drawn.population(figure.sweep)
        assert made is not None and made.mechanism == explained(scenario).mechanism
    slow = {figure.name for figure in scenario.figures if figure.sweep == "slowdc"}
    assert slow == {"fig6", "table3_slowdc", "table4"}  # fitted: three parameters of their own


def test_evidence_of_other_parameters_is_not_told(scenario: Scenario) -> None:
    made = explained(scenario)
    other = replace(made, mechanism=replace(made.mechanism, far_and_slow=0.9))
    (told,) = fit.fit_findings(scenario, replace(scenario.drawn, populations=(other,)))
    assert fit.FITTED_BY in told.missing and "paper.fit evidence" in told.missing
    farther = replace(made, name="far", mechanism=replace(made.mechanism, rtt_factor=2.0))
    (told,) = fit.fit_findings(scenario, replace(scenario.drawn, populations=(made, farther)))
    assert told.missing  # what nothing says where it is from


def test_every_parameter_says_what_it_rests_on(scenario: Scenario, found: dict[str, Any]) -> None:
    fitted, profiles, without = fit.fit_findings(scenario, scenario.drawn)
    parameters, free, numbers, held = fitted.tables
    names = [str(row[0]) for row in parameters.rows]
    assert names[:17] == list(vars(explained(scenario).mechanism))
    assert "lossy_share, SlowDC" in names[17:] and len(names) == 23
    assert free.column("how many") == [15, 2, 2, 79] and "correlated" in free.notes[0]
    assert fitted.sentence.startswith("15 parameters are fitted to 79 correlated numbers, 2 more"
                                      " are set by hand, and 2 of SlowDC's own: compatible")
    assert "Table 3, SlowDC 0 of 7" in fitted.sentence  # those of its own parameters are not held out
    assert len(held.rows) == sum(len(each["predicts"]) for each in found["holdouts"]) == 15
    chart = profiles.chart
    assert isinstance(chart, LineChart)
    assert sum(map(len, chart.columns)) == len(found["profiles"]) + 1 == 15
    off, tried = without.tables
    assert len(off.rows) == 13 and len(tried.rows) == len(found["tried"])
    assert off.rows[0][1:5] == tuple([*found["as_fitted"]["near"].values()][:3]
                                     + [found["as_fitted"]["figure5"]])


def test_a_parameter_along_which_nothing_changes_is_free(found: dict[str, Any]) -> None:
    near, loss = found["as_fitted"]["figure5"], found["as_fitted"]["loss"]

    def told(*counts: int) -> str:
        rows = [[value, count, loss] for value, count in zip(range(1, 8), counts)]
        return fit.free({**found, "profiles": {"some": rows}}, "some")

    assert told(*[near] * 7) == "no, free from 1 to 7 or more"
    assert told(0, 0, 0, near, 0, 0, 0) == "yes"
    assert told(0, near, near - 1, near, 0, 0, 0) == "roughly, free from 2 to 4"


def test_a_damaged_file_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(fit, "FITS", tmp_path)
    assert fit.stored(NAME) is None
    (tmp_path / f"{NAME}.json").write_text("{", encoding="utf-8")
    with pytest.raises(UsageError, match="scenarios/fits/dukkipati2010.json"):
        fit.stored(NAME)
    (tmp_path / f"{NAME}.json").write_text(json.dumps({"mechanism": {}}), encoding="utf-8")
    assert fit.stored(NAME) == {"mechanism": {}}


def test_what_parameters_rest_on_is_the_scenarios_own_file(monkeypatch: pytest.MonkeyPatch,
                                                           tmp_path: Path) -> None:
    found = fit.sources(NAME)
    assert found.fitted_to == 79 and found.rests_on["queue_packets"][0] == "by hand"
    assert found.of_their_own["slowdc", "lossy_share"][0] == "fitted"
    text = (fit.FITS / f"{NAME}.toml").read_text(encoding="utf-8")
    monkeypatch.setattr(fit, "FITS", tmp_path)
    for damaged in (text.replace("farthest", "nearest"), text.replace('["fitted"', '["a", "b"'),
                    text.replace("[rests_on]", "[rests_on"), "rests_on = 3"):
        (tmp_path / f"{NAME}.toml").write_text(damaged, encoding="utf-8")
        with pytest.raises(UsageError, match="^scenarios/fits/dukkipati2010.toml: "):
            fit.sources(NAME)
