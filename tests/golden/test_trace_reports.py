"""What is told of traces: tables, statements and charts of stored data."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from lab import registry
from lab.core.errors import FirstFlightError
from lab.core.findings.charts import LineChart, TraceChart
from lab.core.findings.findings import Finding, Report, Rounded
from lab.core.results.records import PASS
from lab.core.run.kinds import NOTHING, Overrides, RunData, Study
from lab.core.scenario import scenario_file
from lab.trace.findings import findings
from lab.trace.record import TraceRecord
from lab.trace.scenario import TraceCurve
from lab.trace.study import KIND
from lab.trace.trial import TraceTrial
from tests.golden import stored_trace

@pytest.fixture(scope="module")
def report() -> Report:
    return stored_trace.packetdrill().report(stored_trace.run())


def chart_of(finding: Finding) -> TraceChart:
    assert isinstance(finding.chart, TraceChart)
    return finding.chart


# A stored run ------------------------------------------------------------------------

def test_a_failed_verdict_is_told() -> None:
    run = stored_trace.run()
    flagged = [replace(run.records[0], verdict="fail", verdict_reason="window: observed 2 of 8",
                       rule_wrong=2), *run.records[1:]]
    report = stored_trace.packetdrill().report(replace(run, records=flagged))
    (finding,) = report.findings
    chart = chart_of(finding)
    assert [row.flagged for row in chart.rows] == [True, *[False] * 5]
    assert chart.alarm == "2 samples of the window differ from the rules"
    assert report.summary[:2] == ("traces: 1 fail, 7 pass, 1 skipped",
                                  "  idle-linux-iw10: fail: window: observed 2 of 8")
    assert finding.tables[0].notes[0].startswith("idle-linux-iw10: fail: window: observed 2 of 8. ")
    assert [(each.word, "Linux does not count (window" in each.found)
            for each in finding.statements[:2]] == [("not reproduced", True)] * 2


def test_a_claim_that_does_not_hold_is_not_reproduced() -> None:
    scenario = stored_trace.packetdrill().scenario
    first = replace(scenario.claims[0], relation="larger", published=None,
                    second=TraceCurve("idle", "off"))
    (finding,) = findings(replace(scenario, claims=(first,)), stored_trace.run())
    assert [each.word for each in finding.statements] == ["not reproduced"]


def test_a_lost_file_is_one_line(tmp_path: Path) -> None:
    run = shutil.copytree(stored_trace.RUN, tmp_path / "run")
    (run / "files" / "idle-off-iw10-window.csv").unlink()
    with pytest.raises(FirstFlightError, match="idle-off-iw10-window.csv: cannot be read") as error:
        stored_trace.packetdrill().report(replace(stored_trace.run(), folder=run))
    assert "\n" not in str(error.value)


def test_a_partial_run_tests_no_sentence_and_shows_what_it_measured() -> None:
    file = scenario_file.read(stored_trace.FOLDER / "packetdrill.toml")
    partial = KIND.study(file, Overrides({"rtt_ms": [50.0]}), 1)
    run = stored_trace.run()
    assert not partial.whole
    (finding,) = partial.report(run).findings
    assert finding.title == "Two seconds idle (except what the command line gives)"
    assert finding.tables and not finding.statements
    without = [record for record in run.records if record.trial.tcp != "cwv"]
    assert not partial.report(replace(run, records=without)).findings


def test_curves_with_the_same_title_are_told_apart() -> None:
    packetdrill, run = stored_trace.packetdrill(), stored_trace.run()
    alike = replace(packetdrill, scenario=replace(packetdrill.scenario, tcps=tuple(
        replace(tcp, title="TCP") for tcp in packetdrill.scenario.tcps)))
    (finding,) = alike.report(run).findings
    names = finding.tables[0].column("TCP")
    assert len(names) == len(set(names)) > 1 and all(
        str(name).startswith("TCP (") for name in names)


# A warm connection, from records -----------------------------------------------------

@pytest.fixture(scope="module")
def warm() -> Study:
    file = scenario_file.find("handley1999_warm")
    assert registry.study_of(file, NOTHING) == KIND.study(file, NOTHING, 1)
    return KIND.study(file, NOTHING, 1)


def warm_record(trial: TraceTrial) -> TraceRecord:
    """As if latency were 100 ms for each halving of a window of 64 below 16."""
    halvings = int(trial.think_s or 0) if trial.validation else 0
    window = max(64 >> min(halvings, 6), trial.initcwnd)
    return TraceRecord(trial, True, latency_ms=100.0 + (200.0 if window < 16 else 0.0),
                       last_window=window, last_retransmissions=int(window == 64), verdict=PASS)


def found(warm: Study, records: list[TraceRecord]) -> tuple[Finding, LineChart]:
    (finding,) = findings(warm.scenario, RunData(Path("/nonexistent"), {}, records))
    assert isinstance(finding.chart, LineChart)
    return finding, finding.chart


def test_the_answer_names_think_times_and_windows(warm: Study) -> None:
    finding, _ = found(warm, list(map(warm_record, warm.trials)))
    on, off, *_ = finding.statements
    assert on.found == ("IW 16 is faster than IW 10 from 3 s of thinking on (100.0 instead of"
                        " 300.0 ms after 300 s).")
    assert off.found.startswith("Never") and off.word == ""
    table = finding.tables[0]
    assert table.rows[0] == (Rounded(0.1, 1), *["100.0 (64 → 1)"] * 4)
    assert table.rows[-1] == (Rounded(300, 0), "300.0 (3)", "300.0 (10)", "100.0 (16)",
                              "100.0 (32)")
    assert [bool(each.notes) for each in finding.tables] == [False, False, False, True]


def test_the_chart_has_a_row_for_each_curve_and_a_line_for_each_window(warm: Study) -> None:
    _, chart = found(warm, list(map(warm_record, warm.trials)))
    assert (chart.foot, chart.alarm) == (
        "128 connections verified on the wire, none excluded", "")
    assert (chart.legend, chart.palette) == (True, "ordered")
    latency, window, again = chart.columns
    assert [plot.title for plot in latency] == [
        "Linux (CUBIC), validation on, queue of 1000 packets",
        "Linux (CUBIC), validation off, queue of 1000 packets",
        "Linux (CUBIC), validation on, queue of 15 packets",
        "Linux (CUBIC), validation off, queue of 15 packets"]
    assert [plot.x_label for plot in again] == ["", "", "", "think time (s)"]
    assert [line.name for line in window[0].lines] == ["IW 3", "IW 10", "IW 16", "IW 32"]
    assert window[0].lines[0].y == (64, 64, 32, 8, 3, 3, 3, 3)
    assert again[0].lines[0].y == (1, 1, 0, 0, 0, 0, 0, 0)
    assert latency[0].lines[0].x == (0.1, 0.3, 1, 3, 10, 30, 60, 300)
    assert latency[0].ticks[0] == (0.1, "0.1") and latency[0].ticks[-1] == (300, "300")
    assert latency[0].x_scale == "log" and latency[0].y_ends is not None
    assert latency[0].y_ends == pytest.approx((0, 324))


def test_what_does_not_count_is_left_out(warm: Study) -> None:
    records = list(map(warm_record, warm.trials))
    first = records[0].trial
    assert (first.trace, first.tcp, first.initcwnd, first.think_s) == ("deep", "linux", 3, 0.1)
    records[0] = replace(records[0], verdict="fail")
    finding, chart = found(warm, records)
    assert finding.tables[0].rows[0][1:3] == (None, "100.0 (64 → 1)")
    assert chart.columns[0][0].lines[0].x[0] == 0.3
    assert (chart.foot, chart.alarm) == ("127 connections verified on the wire", "1 excluded")
