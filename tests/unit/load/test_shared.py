"""Figures of kind share: what one part's window does to the other part of a link."""

from __future__ import annotations

from dataclasses import replace

import pytest

from base.errors import UsageError
from findings.findings import Finding
from study.load import analysis, findings
from study.load.analysis import Runs
from study.load.trial import distribution, points_of, sizes_text
from tests.golden import stored_load
from tests.golden.stored_load import SHARED
from tests.unit.load.test_scenario import DEFAULTS, made


@pytest.fixture(name="runs")
def _runs() -> Runs:
    return stored_load.mixed()


def test_the_cost_is_what_the_second_part_takes_longer(runs: Runs) -> None:
    base, other = analysis.shared_costs(runs)
    assert base.initcwnd == 3 and other.initcwnd == 16
    assert base.first.percent.value == base.second.percent.value == other.first.percent.value == 0
    assert other.second.percent.value == pytest.approx(-10)
    # Of the stored run's slowest connections some never ended: nobody knows their time.
    assert other.second_p99 is None and other.second.absolute.n == 2
    whole = analysis.whole(runs, "3+10")
    parts = analysis.parts(runs, "3+10")
    assert [part.name for part in parts] == ["part 1", "part 2"]
    assert sum(part.count for part in parts) == whole.count and base.count == parts[1].count


def test_a_link_that_loses_much_whatever_the_window_is_answers_nothing(
        runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    again = analysis.shared_costs(runs)[0].retransmission.value
    monkeypatch.setattr(findings, "MOST_RETRANSMITTED_PERCENT", again - 0.1)
    with pytest.raises(analysis.MissingRuns, match="^shared: with 3 segments for everybody .* % of"
                                                   " the bytes are already retransmitted, more than"):
        findings.SHOWN["share"](runs)


@pytest.mark.parametrize("windows", [["3", "10"], ["3+10", "10"]])
def test_its_windows_are_mixes_of_two_parts(windows: list[str]) -> None:
    with pytest.raises(UsageError, match="have to be mixes of two parts, like 10\\+10"):
        made({"figure": [{"name": "f", "title": "t", "kind": "share", "sweep": "only",
                          "windows": windows}]}, mixes=[[[3, 0.5], [10, 0.5]]])


def test_sizes_may_be_points_of_their_distribution() -> None:
    points = [[0, 500], [0.5, 9000], [1, 60000]]
    (sweep,) = made(sizes=points).sweeps
    assert sweep.sizes == "0:500;0.5:9000;1:60000"
    assert distribution(sweep.sizes) == ((0, 500), (0.5, 9000), (1, 60000))
    assert sizes_text(points_of(points, "x")) == sweep.sizes
    assert DEFAULTS["response_bytes"] == [50000]
    assert {trial.response_bytes for trial in sweep.trials("s", 1)} == {19625}


@pytest.mark.parametrize("points", [[], [[0, 500]], [[0.1, 500], [1, 600]], [[0, 500], [0.9, 600]],
                                    [[0, 700], [1, 600]], [[0, 0], [1, 600]], [[0, 5, 6], [1, 6]],
                                    [[0, 500], [0.5, 600], [0.4, 700], [1, 800]], [["a", 1], [1, 2]]])
def test_points_that_are_no_distribution(points: list[list[float]]) -> None:
    with pytest.raises(UsageError, match="sizes"):
        made(sizes=points)


def test_what_it_rests_on_is_said(runs: Runs) -> None:
    scenario = replace(stored_load.study().scenario, figures=(SHARED,))
    noted = replace(scenario, head=replace(scenario.head, note="Half of them are yours"))
    finding = Finding("shared", "Cost")
    assert findings._assumed(scenario, SHARED, finding) == finding
    (statement,) = findings._assumed(noted, SHARED, finding).statements
    assert statement.found == "Half of them are yours."
    assert findings._assumed(noted, replace(SHARED, kind="mix"), finding) == finding
