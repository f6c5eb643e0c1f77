"""Guest kernels under names, and parameters of their modules, as parameters of a trial."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firstflight.base.errors import UsageError
from firstflight.parameters import PARAMETERS
from firstflight.runs.kinds import Overrides
from firstflight.runs.measuring import build_of
from firstflight.study import registry
from firstflight.study.fetches.figures.cells import settings
from firstflight.study.fetches.figures.kernels import kernel_answer, kernel_changes, kernels_table
from firstflight.study.fetches.scenario.trial import Trial
from firstflight.study.fetches.verify.notes import run_notes
from firstflight.testbed import engine
from firstflight.testbed.guests import Place, UmlEngine, place_of
from firstflight.testbed.network.kernel import KernelLacks
from firstflight.testbed.worker.worker import check_modules
from tests.golden import stored
from vtime import uml

GOOD = stored.load("iw10")


def trials(**lists: list[Any]) -> list[Trial]:
    one = {"rtt_ms": [100], "initcwnd": [10]}
    return list(registry.own_question("own", Overrides({**one, **lists}, repeat=1)).trials)


@pytest.mark.parametrize("name", ["", "..", ".", "a/b", "../x", "a b", "-a", "a..b", "a;b", "a$b",
                                  "a\n", "x" * 41, 7])
def test_what_is_no_name_of_a_kernel_reaches_no_path(name: Any) -> None:
    with pytest.raises(UsageError, match="is no name of a kernel"):
        PARAMETERS["kernel"].quantity.check(name, "kernel")
    if isinstance(name, str):
        with pytest.raises(uml.KernelMissing, match="is no name"):
            uml.named_kernel(name)


@pytest.mark.parametrize("value", ["tcp_cubic.hystart", "hystart=0", "tcp_cubic.hystart=0 init=/x",
                                   "a.b=1,c.d=2", "a.b=../x", "a.b=1+a.b=2", "hostfs=/", ""])
def test_what_is_no_parameter_of_a_module_reaches_no_command_line(value: str) -> None:
    with pytest.raises(UsageError, match="no parameter of a module|twice"):
        PARAMETERS["module_parameter"].quantity.check(value, "module_parameter")


def test_trials_that_differ_in_the_kernel_alone_have_one_seed_and_two_guests() -> None:
    made = trials(kernel=["default", "mine"], module_parameter=["none", "tcp_cubic.beta=512"],
                  loss_percent=[1])
    assert len({trial.seed for trial in made}) == 1
    assert len({trial.id for trial in made}) == len(made)
    assert {place_of(trial.job()) for trial in made} == {
        Place("here", kernel, parameters) for kernel in ("default", "mine")
        for parameters in ((), ("tcp_cubic.beta=512",))}
    assert not {"kernel", "module_parameters"} & made[0].job().keys(), "jobs stay what they were"


def test_a_kernel_that_is_not_there_skips_its_trials_and_says_how_to_build_it(
        monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def absent(name: str) -> Path:
        raise uml.KernelMissing(f"there is no kernel {name}: ./install.sh --kernel {name} …")

    monkeypatch.setattr(UmlEngine, "_start", lambda *_: pytest.fail("a guest was started"))
    (tmp_path / "x").mkdir()
    (skipped,) = UmlEngine(tmp_path / "x" / "linux", 1, named_kernel=absent).run(
        [trials(kernel=["mine"])[0].job()], {}, tmp_path)
    assert skipped.content["skipped"].startswith("there is no kernel mine: ./install.sh")
    host = next(engine.HostEngine().run([trials(kernel=["mine"])[0].job()], {}, tmp_path))
    assert "guests only" in host.content["skipped"]


class Measurer:
    """Who has kernels of these digests."""

    build = "592093dca475af24"

    def __init__(self, **linux: str) -> None:
        self.linux = linux

    def recipes(self, names: set[str]) -> dict[str, dict[str, str]]:
        return {name: {"linux": self.linux[name]} for name in names if name in self.linux}


def test_runs_of_two_kernels_are_never_one_run() -> None:
    """Whatever they are called: what a run is resumed by has what was built."""
    class Study:
        trials = ()

    study: Any = Study()
    assert build_of(study, Measurer(mine="ab" * 32)) == Measurer.build  # type: ignore[arg-type]
    study.trials = trials(kernel=["default", "mine"])
    builds = [build_of(study, measurer) for measurer in (  # type: ignore[arg-type]
        Measurer(mine="ab" * 32), Measurer(mine="cd" * 32), Measurer())]
    assert len({*builds, Measurer.build}) == 4 and all(Measurer.build in build for build in builds)


@pytest.mark.parametrize("recipe, known", [
    ("digest ab\nsource cd\n", True), ("digest ab\nsource cd\npatch ef a.patch\n", False),
    ("digest ab\nsource cd\noption CONFIG_X=y\n", False)])
def test_the_model_knows_a_kernel_whose_source_nobody_changed(recipe: str, known: bool,
                                                              tmp_path: Path) -> None:
    for name, text in (("recipe", recipe), ("source", "linux-source-7.2 7.2.11-1\n"),
                       ("version", "7.2.11\n"), ("inputs", f"source cd\nlinux {'12' * 32}\n")):
        (tmp_path / name).write_text(text)
    assert uml.recipe_of(tmp_path / "linux")["known"] is known


def test_the_model_is_silent_on_kernels_that_it_does_not_know_and_says_so() -> None:
    other = replace(GOOD, trial=replace(GOOD.trial, kernel="mine"))
    assert GOOD.judge().model_ms is not None
    assert other.judge(known_kernel=True).model_ms is not None, "its source is unchanged"
    silent = other.judge(known_kernel=False)
    assert silent.model_ms is None
    assert any("predicts nothing for the kernel mine in 1 of 1 trials" in note
               for note in run_notes([silent]))
    tuned = replace(GOOD, trial=replace(GOOD.trial, module_parameter="tcp_cubic.hystart=0")).judge()
    assert tuned.model_ms is None and "tcp_cubic.hystart=0 in 1" in " ".join(run_notes([tuned]))


def test_a_parameter_that_the_kernel_does_not_have_is_no_trial(tmp_path: Path) -> None:
    """Linux says nothing of a parameter that it does not know, and boots."""
    (tmp_path / "tcp_cubic/parameters").mkdir(parents=True)
    (tmp_path / "tcp_cubic/parameters/hystart").write_text("0\n")
    (tmp_path / "tcp_cubic/parameters/fast").write_text("Y\n")
    check_modules(["tcp_cubic.hystart=0", "tcp_cubic.fast=1"], tmp_path)
    for wrong, why in (("tcp_cubic.hystar=0", "has no parameter"),
                       ("tcp_cubic.hystart=1", "is 0 in")):
        with pytest.raises(KernelLacks, match=why):
            check_modules([wrong], tmp_path)


def test_the_answer_is_the_difference_of_the_kernels() -> None:
    records = [replace(record, trial=replace(record.trial, kernel=kernel),
                       total_ms=(record.total_ms or 0) - saved_ms)
               for record in (GOOD.judge(),) for kernel, saved_ms in (
                   ("default", 0.0), ("same", 0.0), ("mine", 10.0))]
    changes = kernel_changes(settings(records))
    assert [(change.base.requested.kernel, change.experiment.requested.kernel,
             round(change.saved_ms, 6)) for change in changes] == [
        ("default", "same", 0.0), ("default", "mine", 10.0)]
    answer = kernel_answer(changes)
    assert "Kernel default → same: no difference" in answer
    assert "Kernel default → mine saves 10.0 ms" in answer
    table = kernels_table(changes, 20)
    place = [column.name for column in table.columns].index("kernel")
    assert [row[place] for row in table.rows] == ["default → same", "default → mine"]
