"""The goodput of a transfer: a column of its record, and a metric of figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from firstflight.findings.charts import BarChart
from firstflight.findings.render import text
from firstflight.runs.kinds import RunData, Study
from firstflight.study.fetches.figures import kinds
from firstflight.study.fetches.scenario.scenario import Scenario
from firstflight.study.fetches.study import KIND
from firstflight.study.fetches.verify.record import Record
from tests.golden import stored as trials, stored_questions
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
    study = Study(KIND, replace(scenario, figures=(figure,), claims=(), users=None, drawn=None,
                                raw=None, as_published=None), (), whole=True)
    run = RunData(trials.FOLDER, FACTS, records)
    (finding,) = (each for each in study.report(run).findings if each.name == "fig5_rtt")
    assert isinstance(finding.chart, BarChart) and finding.chart.unit == "kbit/s"
    changes = [bar.difference for bar in finding.chart.bars]
    assert all(min(change.absolute.value, change.percent.value) >= 0 for change in changes)
    improved = finding.tables[0].column("", "improved")
    assert improved[2] == pytest.approx(  # RTT 100 ms: more bits a ms with 10 segments
        changes[2].absolute.value)
    assert "gain" in finding.sentence and "kbit/s" in finding.sentence


# Every kind of figure -------------------------------------------------------------------

def test_every_kind_of_figure_has_one_of_goodput() -> None:
    """But packets, which have no metric, and percentiles, which are of a population."""
    of_goodput = {figure.kind for figure in stored_questions.goodput_study().scenario.figures}
    assert of_goodput == {*kinds.FIGURES} - {"packets", "percentiles"}, (
        "tests/golden/fetches/goodput.toml needs a [[figure]] of each kind")


def test_no_kind_of_figure_calls_a_rate_a_time() -> None:
    report = stored_questions.goodput()
    told = text.text(report) + str([
        (each.sentence, each.chart) for each in report.findings])
    for wrong in ("saved", "fastest", "total time", "Mean time", "kbit/s less"):
        assert wrong not in told.replace("where times are saved", ""), wrong
