"""What is told of traces: tables, statements and charts of stored data."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from base.errors import FirstFlightError
from findings.charts import LineChart, TraceChart
from runs import scenario_file
from runs.kinds import Overrides
from runs.results.records import FAIL
from study.trace.findings import findings
from study.trace.scenario import TraceCurve
from study.trace.study import KIND
from tests.golden import stored_trace


def test_a_failed_verdict_is_told() -> None:
    run = stored_trace.run()
    flagged = [replace(run.records[0], verdict="fail", verdict_reason="window: observed 2 of 8",
                       rule_wrong=2), *run.records[1:]]
    report = stored_trace.packetdrill().report(replace(run, records=flagged))
    (finding,) = report.findings
    assert isinstance(finding.chart, TraceChart)
    assert [row.flagged for row in finding.chart.rows] == [True, *[False] * 5]
    assert finding.chart.alarm == "2 samples of the window differ from the rules"
    assert report.summary[:2] == ("traces: 1 fail, 7 pass, 1 skipped",
                                  "  idle-linux-iw10: fail: window: observed 2 of 8")
    assert finding.tables[0].notes[0].startswith("idle-linux-iw10: fail: window: observed 2 of 8. ")
    assert [(statement.word, "Linux does not count (window" in statement.found)
            for statement in finding.statements[:2]] == [("not reproduced", True)] * 2


def test_a_claim_that_does_not_hold_is_not_reproduced() -> None:
    scenario = stored_trace.packetdrill().scenario
    first = replace(scenario.claims[0], relation="larger", published=None,
                    second=TraceCurve("idle", "off"))
    (finding,) = findings(replace(scenario, claims=(first,)), stored_trace.run())
    assert [statement.word for statement in finding.statements] == ["not reproduced"]


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


def test_what_does_not_count_is_left_out() -> None:
    run = stored_trace.warm_run()
    first, *others = run.records
    (finding,) = stored_trace.warm_study().report(
        replace(run, records=[replace(first, verdict=FAIL), *others])).findings
    assert finding.tables[0].rows[0][1:3] == (None, "141.9 (140)")
    assert isinstance(finding.chart, LineChart)
    assert finding.chart.columns[0][0].lines[0].x[0] == 0.3
    assert finding.chart.foot.endswith(" 127 connections verified on the wire")
    assert finding.chart.alarm == "1 excluded"
