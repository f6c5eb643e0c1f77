"""Rows of kernels in one sweep, and their figure with what was published."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from firstflight.base.errors import UsageError
from firstflight.findings.charts import LineChart
from firstflight.runs import scenario_file
from firstflight.runs.kinds import Overrides, RunData
from firstflight.runs.results.records import PASS, SKIPPED
from firstflight.study import registry
from firstflight.study.fetches.figures import kinds
from firstflight.study.fetches.findings import analyse
from firstflight.study.fetches.record import Record

SCENARIO = Path(scenario_file.find("slow_start_exit").where)
ROWS = [("default", "tcp_cubic.hystart=0"), ("default", "none"),
        ("rfc9406", "tcp_cubic.hystart=2"), ("suss", "tcp_cubic.suss=1"), ("search", "none")]


def study(**lists: list[Any]) -> Any:
    return registry.study_of(scenario_file.find("slow_start_exit"), Overrides(lists), 1)


def changed(folder: Path, old: str, new: str) -> Any:
    text = SCENARIO.read_text(encoding="utf-8")
    assert text.count(old) == 1
    (folder / "changed.toml").write_text(text.replace(old, new), encoding="utf-8")
    return registry.study_of(scenario_file.find(str(folder / "changed.toml")), Overrides({}), 1)


def figure(of: Any) -> Any:
    """The figure of a run without the kernels suss and search: of n-th kernel n ms, n lost."""
    records = [
        Record(trial, True, verdict=SKIPPED, verdict_reason="no kernel")
        if trial.kernel in ("suss", "search") else
        Record(trial, True, verdict=PASS, latency_ms=1000.0 + place, lost_segments=10 * place)
        for trial in of.trials
        for place in [ROWS.index((trial.kernel, trial.module_parameter))]]
    run = RunData(Path("run"), {"kernel": "7.2", "virtual_time": True}, records)
    ((_, (found,)),) = kinds.figures(analyse(of.scenario, run, True))
    return found


def test_a_row_has_a_kernel_and_what_is_set_in_its_modules() -> None:
    """No other combination is measured: HyStart++ is in one kernel only."""
    kernels = [(trial.kernel, trial.module_parameter) for trial in study().trials]
    assert list(dict.fromkeys(kernels)) == ROWS and len(kernels) == 2 * len(ROWS)
    (sweep,) = study().scenario.sweeps
    assert sweep.count == len(kernels)
    assert set(sweep.counted("kernel", "module_parameter").items()) == {(row, 2) for row in ROWS}


def test_a_kernel_of_the_command_line_takes_the_place_of_the_rows() -> None:
    trials = study(kernel=["mine"]).trials
    assert {trial.kernel for trial in trials} == {"mine"}
    assert len({trial.module_parameter for trial in trials}) == 4


@pytest.mark.parametrize(("old", "new", "why"), [
    ('["default", "none"]', '["default"]', r"list of \[kernel, module_parameter\]"),
    ('["default", "none"]', '["../x", "none"]', "no name of a kernel"),
    ('["default", "none"]', '["default", "hystart=0"]', "parameter of a module"),
    ('["default", "none"]', '["other", "none"]', "unknown 'default'.*published: bucket|bucket"),
    ('by = "response_bytes"', 'by = "kernel"', "another quantity than kernel"),
    ('metric = "latency_ms"', 'metric = "total_ms"', "published: panel"),
    ("rtt_ms = 100", "rtt_ms = [100, 200]", "several cells")])
def test_rows_and_figures_that_do_not_fit_are_refused(tmp_path: Path, old: str, new: str,
                                                      why: str) -> None:
    with pytest.raises(UsageError, match=why):
        changed(tmp_path, old, new)


def test_each_kernel_has_a_bar_next_to_what_was_published() -> None:
    found = figure(study())
    assert isinstance(found.chart, LineChart)
    times, lost, times_of_20_mb, lost_of_20_mb = found.chart.columns[0]
    bars, published = times.lines
    assert (bars.x, bars.y) == ((0, 1, 2), (1000, 1001, 1002))
    assert (published.x, published.y) == ((0, 1, 2, 3), (1600, 1390, 1600, 1210))
    assert [label for _, label in times.ticks] == [
        "default, hystart=0", "default", "rfc9406, hystart=2", "suss, suss=1, skipped",
        "search, skipped"]
    assert len(lost.lines) == len(times_of_20_mb.lines) == 1, "nothing is published of these"
    assert lost_of_20_mb.lines[1].y == (1105, 40, 704, 35)
    (table,) = found.tables
    assert table.rows[0][:4] == (5_000_000, "default with tcp_cubic.hystart=0", 1000, 1600)
    assert table.rows[3][1:4] == ("suss with tcp_cubic.suss=1", None, 1210)
    assert "default 1001 ms (published 1390), 10 lost" in found.sentence


def test_kernels_of_which_nothing_is_published_have_a_figure(tmp_path: Path) -> None:
    found = figure(changed(tmp_path, 'published = "suss2024_exit.csv"\n', ""))
    assert [len(plot.lines) for plot in found.chart.columns[0]] == [1, 1, 1, 1]
    assert [column.name for column in found.tables[0].columns] == [
        "size", "kernel", "latency", "lost segments"]
