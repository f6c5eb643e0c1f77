"""What is told of traces: tables, statements and charts of stored data."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from firstflight.base.errors import FirstFlightError
from firstflight.findings.charts import LineChart
from firstflight.runs import scenario_file
from firstflight.runs.kinds import Overrides
from firstflight.runs.results.records import FAIL
from firstflight.study.trace.study import KIND
from tests.golden import stored_trace


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
    assert not partial.report(replace(run, measured=without)).findings


def test_what_does_not_count_is_left_out() -> None:
    run = stored_trace.warm_run()
    first, *others = run.records
    finding, *_ = stored_trace.warm_study().report(
        replace(run, measured=[replace(first, verdict=FAIL), *others])).findings
    assert finding.tables[0].rows[0][1:3] == (None, "141.9 (140)")
    assert isinstance(finding.chart, LineChart)
    assert finding.chart.columns[0][0].lines[0].x[0] == 0.3
    assert finding.chart.alarm == "1 excluded"
