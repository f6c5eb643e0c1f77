"""Questions about a kernel's default initial window, which no route sets."""

from __future__ import annotations

from typing import Any

import pytest

from firstflight.base.errors import UsageError
from firstflight.figures.kernel_changes import note_on_windows
from firstflight.findings.charts import TimeChart
from firstflight.runs.kinds import Overrides
from firstflight.runs.results.records import FAIL, PASS
from firstflight.study import fetches
from firstflight.study.questions import question
from firstflight.testbed.network.links import star_routes
from firstflight.workloads.fetch.figures import bars
from firstflight.workloads.fetch.figures.figure import heading
from firstflight.workloads.fetch.figures.swept_bars import window_sweep
from firstflight.workloads.fetch.record.record import Record
from tests.golden import stored

LISTS: dict[str, Any] = {"rtt_ms": (50.0,), "bandwidth_kbps": (3000.0,), "initcwnd": (10,),
                         "kernel": ("default", "mine")}


def study_of(own_window: bool, **lists: Any) -> Any:
    """The study of a question about two kernels. own_window: whether each has its default."""
    return fetches.KIND.study_of(question.scenario("own", Overrides(
        {**LISTS, **lists}, own_window=own_window)))


def test_a_route_has_no_window_where_the_kernels_default_is_requested() -> None:
    jobs = [trial.job() for own in (True, False) for trial in study_of(own).trials]
    assert [job["initcwnd"] for job in jobs] == [0, 0, 10, 10]
    metrics = [star_routes(job["initcwnd"], 40, "cubic")[0].metrics for job in jobs]
    assert metrics == [{"congctl": "cubic"}] * 2 + [{"initcwnd": 10, "congctl": "cubic"}] * 2
    assert len({trial.id for own in (True, False) for trial in study_of(own).trials}) == 4


def test_another_window_than_10_is_refused_where_the_kernels_default_is_requested() -> None:
    with pytest.raises(UsageError, match="initcwnd has to be 10, its own"):
        study_of(True, initcwnd=(10, 20))


def test_only_a_kernel_that_was_changed_may_have_another_default_than_10() -> None:
    """The other checks take the window that the kernel reports."""
    with_window_3 = stored.load("iw3").requested(initcwnd=10, window_by="kernel")
    changed, linux = with_window_3.judge(known_kernel=False), with_window_3.judge()
    assert (changed.verdict, changed.seen_initcwnd) == (PASS, 3)
    assert changed.trial == with_window_3.trial
    assert linux.verdict == FAIL and "initial window" in linux.failed_checks
    other_report = with_window_3.said("server", initial_window=4).judge(known_kernel=False)
    assert other_report.verdict == FAIL


def test_an_answer_about_kernels_has_a_note_where_a_route_sets_the_window() -> None:
    assert len(note_on_windows(study_of(False).trials, "")) == 1
    assert not note_on_windows(study_of(True).trials, "")
    assert not note_on_windows(study_of(False, kernel=("default",)).trials, "")


def test_figures_call_a_window_that_no_route_sets_the_kernels_default() -> None:
    """A kernel with another default would otherwise be labelled "10"."""
    lists = {**LISTS, "kernel": ("default",)}
    for own, label in ((True, "kernel's default (12)"), (False, "10")):
        made = question.scenario("own", Overrides(lists, own_window=own))
        (trial,) = fetches.KIND.study_of(made).trials
        records = [Record(trial, ok=True, verdict=PASS, total_ms=300.0, seen_initcwnd=12)]
        found = window_sweep(made, made.figures[0], records)
        drawn = bars.chart(made, found)
        assert isinstance(drawn, TimeChart)
        assert [bar.label for bar in drawn.bars] == [drawn.baseline] == [label]
        assert found.windows == {10} and bars.figure_table(made, found).rows[0][0] == label
        assert heading(records)[0].endswith("IW kernel's default (12)" if own else
                                            "IW 10 segments")
