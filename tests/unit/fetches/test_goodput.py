"""The goodput of a transfer: a column of its record, and a metric of figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lab.core.findings.charts import BarChart, GroupChart, SquareChart, TimeChart
from lab.core.findings.findings import Finding
from lab.core.run.kinds import RunData, Study
from lab.fetches.figures import kinds
from lab.fetches.scenario.scenario import Scenario
from lab.fetches.study import KIND
from lab.fetches.verify.record import Record
from lab.render import text
from tests.golden import stored as trials
from tests.golden import stored_questions
from tests.golden.stored_fetches import FACTS


def test_a_record_has_the_bits_of_the_body_over_the_total_time() -> None:
    record = trials.load("iw10").judge()
    assert record.total_ms is not None
    assert record.goodput_kbps == pytest.approx(
        record.trial.response_bytes * 8 / record.total_ms)
    assert trials.load("iw10").said("fetch", ok=False).judge().goodput_kbps is None


def test_a_figure_of_goodput_gains_where_times_are_saved(
        scenario: Scenario, stored: list[Record]) -> None:
    figure = replace(scenario.figures[0], metric="goodput_kbps", published="", panel="")
    records = [replace(record, goodput_kbps=72_000 / (record.total_ms or 1))
               for record in stored]
    study = Study(KIND, replace(scenario, figures=(figure,), claims=(), parts=()), (), whole=True)
    run = RunData(trials.FOLDER, FACTS, records)
    (finding,) = (each for each in study.report(run).findings if each.name == "fig5_rtt")
    assert isinstance(finding.chart, BarChart) and finding.chart.unit == "kbit/s"
    assert all(bar.absolute.value >= 0 and bar.percent.value >= 0 for bar in finding.chart.bars)
    improved = finding.tables[0].column("", "improved")
    assert improved[2] == pytest.approx(  # RTT 100 ms: more bits a ms with 10 segments
        finding.chart.bars[2].absolute.value)
    assert "gain" in finding.sentence and "kbit/s" in finding.sentence


# Every kind of figure -------------------------------------------------------------------

@pytest.fixture(name="found", scope="module")
def _found() -> dict[str, Finding]:
    return {finding.name: finding for finding in stored_questions.goodput().findings}


def test_every_kind_of_figure_has_one_of_goodput() -> None:
    """But packets, which have no metric, and percentiles, which are of a population."""
    of_goodput = {figure.kind for figure in stored_questions.goodput_study().scenario.figures}
    assert of_goodput == {*kinds.FIGURES} - {"packets", "percentiles"}


def test_no_kind_of_figure_calls_a_rate_a_time() -> None:
    report = stored_questions.goodput()
    told = text.text(report) + str([
        (each.sentence, each.text, each.chart) for each in report.findings])
    for wrong in ("saved", "fastest", "total time", "Mean time", "kbit/s less"):
        assert wrong not in told.replace("where times are saved", ""), wrong


def test_a_map_of_goodput_gains_in_its_unit(found: dict[str, Finding]) -> None:
    chart = found["map"].chart
    assert isinstance(chart, SquareChart) and chart.unit == "kbit/s"
    assert all(square and square.value > 0 and square.percent > 0
               for each in chart.maps for row in each.rows for square in row)
    assert "744 kbit/s gained" in found["map"].sentence
    assert found["map"].tables[0].title.startswith("Gained, 10 instead of 3 segments")
    assert found["map"].tables[0].rows[1][1] == "744 kbit/s 19 %"
    assert chart.foot.startswith("Goodput (kbit/s) gained, and percent of it; blue: gained")


def test_the_best_window_is_the_one_with_the_most_goodput(found: dict[str, Finding]) -> None:
    chart = found["best"].chart
    assert isinstance(chart, SquareChart)
    assert {square.value for each in chart.maps for row in each.rows for square in row
            if square} == {40}
    assert "3 segments is enough in 0 of 4 cells" in found["best"].sentence
    assert "within 2 % of the highest" in chart.foot
    long = found["best"].tables[-1]
    assert [column.unit for column in long.columns][-3:] == ["kbit/s", "kbit/s", "%"]
    assert all(float(str(percent)) > 0 for percent in long.column("gained", "of 3's"))


def test_bars_of_goodput_have_its_unit_and_name(found: dict[str, Finding]) -> None:
    groups, windows = found["groups"].chart, found["windows"].chart
    assert isinstance(groups, GroupChart) and isinstance(windows, TimeChart)
    assert (groups.unit, groups.measured) == ("kbit/s", "goodput (kbit/s)")
    assert (windows.unit, windows.measured, windows.improved) == ("kbit/s", "goodput", "gained")
    assert found["groups"].tables[0].column("gained", "with 40")[0] == pytest.approx(627.9, abs=0.1)
    assert "20 ms: 2449 kbit/s with 3" in found["groups"].sentence


def test_the_context_counts_the_transfers_of_the_figures_own_sweep(found: dict[str, Finding]
                                                                   ) -> None:
    """Not those of the whole run, which has 51."""
    assert {name: found[name].chart.context[0].split(",")[1] for name in (  # type: ignore[union-attr]
        "map", "best", "groups")} == {"map": " 12 of 12 transfers verified on the wire",
                                      "best": " 12 of 12 transfers verified on the wire",
                                      "groups": " 9 of 9 transfers verified on the wire"}


def test_repeats_under_loss_that_are_alike_do_not_decide_on_recovery(found: dict[str, Finding]
                                                                     ) -> None:
    """Three of each rate: an interval of no width, by chance or as here by a formula."""
    assert found["loss"].tables[0].column("word", "recovery") == ["", "undecided", "undecided"]
