"""Guest kernels as a parameter of pages and loads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firstflight.runs.kinds import Overrides, RunData
from firstflight.scenario.requested import expand
from firstflight.study.loads import KIND
from firstflight.study.questions.page import RequestedPage, scenario
from firstflight.testbed.guests import Place, place_of
from firstflight.workloads.load import findings as load_findings
from firstflight.workloads.page.analysis import group_settings, kernel_changes, labels
from firstflight.workloads.page.findings import answer, findings
from firstflight.workloads.page.scenario import TAKEN
from tests.golden import stored_load, stored_page

TUNED = "tcp_cubic.hystart=0"


def page_scenario(**lists: list[Any]) -> Any:
    """The scenario of a question about a page of three objects and one window."""
    return scenario("own", RequestedPage(None, 3), Overrides({"initcwnd": [10], **lists}))


@pytest.mark.parametrize("trials", [
    expand(page_scenario(kernel=["default", "mine"], module_parameter=["none", TUNED],
                      loss_percent=[1]), TAKEN),
    [replace(stored_load.study().trials[0], kernel=kernel, module_parameter=parameter)
     for kernel in ("default", "mine") for parameter in ("none", TUNED)]], ids=["page", "load"])
def test_trials_that_differ_in_the_kernel_alone_have_one_seed_and_guests_of_their_own(
        trials: list[Any]) -> None:
    assert len({trial.seed for trial in trials}) == len({trial.repeat for trial in trials})
    assert len({trial.id for trial in trials}) == len(trials)
    assert {place_of(trial.job()) for trial in trials} == {
        Place("here", kernel, parameters) for kernel in ("default", "mine")
        for parameters in ((), (TUNED,))}
    assert not {"kernel", "module_parameters"} & trials[0].job().keys(), "the default is not named"


def test_a_load_scenario_takes_kernels_by_flag() -> None:
    loads = stored_load.study().scenario
    trials = KIND.expand(loads, Overrides({"kernel": ["default", "mine"]}), 1)
    assert len(trials) == 2 * len(KIND.expand(loads, Overrides({}), 1))


def of_kernels(record: Any, column: str, *, same_ms: float, mine_ms: float) -> list[Any]:
    """Records of the kernels default, same and mine.

    column: the time that a kernel changes. same_ms, mine_ms: what the two save of it.
    """
    saved_ms = {"default": 0.0, "same": same_ms, "mine": mine_ms}
    return [replace(record, trial=replace(record.trial, kernel=kernel),
                    **{column: getattr(record, column) - saved_ms[kernel]})
            for kernel in saved_ms]


def test_each_kernels_saving_on_a_page_is_reported_against_the_default() -> None:
    page = stored_page.load("one").judge()
    records = of_kernels(page, "page_ms", same_ms=0.0, mine_ms=30.0)
    (same, mine) = kernel_changes(group_settings(records), {})
    assert (same.pair, same.saved_ms, mine.pair, mine.place) == (
        "default → same", 0.0, "default → mine", "")
    assert mine.saved_ms == pytest.approx(30.0)
    assert labels(group_settings(records), {}) == ["kernel default", "kernel same", "kernel mine"]
    run = RunData(Path(), {}, records)
    made = replace(page_scenario(), figures=())
    (found,) = findings(made, run)
    assert "default → same: no difference" in found.sentence
    assert [row[0] for row in found.tables[0].rows] == ["default → same", "default → mine"]
    assert answer(made, run).sentence.startswith("Kernel default → same: no difference")
    assert findings(made, RunData(Path(), {}, records[:1])) == ()


def test_a_kernels_saving_on_a_load_is_reported_against_the_default() -> None:
    record = next(record for record in stored_load.run().records if record.counts)
    records = of_kernels(record, "mean_ms", same_ms=0.0, mine_ms=9.0)
    (found,) = load_findings.kernel_findings(records)
    assert "default → mine saves 9.0 ms" in found.sentence
    assert load_findings.kernel_findings([record]) == ()


def test_the_model_predicts_nothing_for_a_kernel_with_module_parameters() -> None:
    """The model knows the defaults of these parameters only, and would fail a page with others."""
    page = stored_page.load("one")
    assert page.judge().model_objects
    assert not page.requested(module_parameter=TUNED).judge().model_objects
