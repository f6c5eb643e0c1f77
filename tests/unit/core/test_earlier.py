"""What earlier runs measured is not measured again where its content is the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from firstflight.base.errors import FirstFlightError
from firstflight.runs import measuring, runs
from firstflight.runs.measuring import CAPTURES, MeasureOptions, OneMachine, Refining, measure
from tests.unit.core import example, example_run
from tests.unit.core.example import Trial
from tests.unit.core.test_measured import KIND

SYSCTLS = '# A claim.\nkind = "fetches"\ntitle = "t"\nsource = "s"\n'


@dataclass
class Engine(example_run.Engine):
    capture_bytes: int = 10
    dies_before: int = 1000
    ran: list[str] = field(default_factory=list)

    def run(self, trials: list[dict[str, Any]], sysctls: dict[str, str],
            folder: Path) -> Iterator[Any]:
        for number, seen in enumerate(super().run(trials, sysctls, folder)):
            if number == self.dies_before:
                raise FirstFlightError("the guest died")
            self.ran.append(seen.trial_id)
            yield seen


def content(trial: Trial) -> tuple[float, int]:
    return trial.rtt_ms, trial.repeat


def nothing(records: Sequence[Any]) -> str:
    return ""


def requested(results: Path, version: str = "1", fresh: bool = False,
              answer: Callable[[Sequence[Any]], str] = nothing, **more: Any) -> MeasureOptions:
    """The trial of the largest RTT first."""
    return MeasureOptions(results, 7, fresh, True, {"project": {"version": version}}, **{
        "refining": Refining(content, lambda trial: -trial.rtt_ms, answer), **more})


def study(count: int, first: int = 1, claim: str = "", sysctls: str = "") -> Any:
    made = example.study(*map(float, range(first, count + 1)), kind=KIND,
                         text=f"{SYSCTLS}note = {claim!r}\n{sysctls}")
    if sysctls:
        head = replace(made.scenario.head, sysctls={"net.ipv4.tcp_sack": "0"})
        return replace(made, scenario=replace(made.scenario, head=head))
    return made


def test_a_list_that_grows_keeps_what_is_measured(tmp_path: Path,
                                                  capsys: pytest.CaptureFixture[str]) -> None:
    measure(study(4), OneMachine(Engine()), requested(tmp_path / "grown"))
    engine = Engine()
    capsys.readouterr()
    grown = measure(study(6, claim="more"), OneMachine(engine), requested(tmp_path / "grown"))
    assert engine.ran == ["rtt6-1", "rtt5-1"]
    assert "4 of 6 trials are measured already" in capsys.readouterr().err
    whole = measure(study(6, claim="more"), OneMachine(Engine()), requested(tmp_path / "whole"))
    assert grown.facts["trials"]["numbers_sha256"] == whole.facts["trials"]["numbers_sha256"]
    assert [record.trial for record in grown.records] == list(study(6).trials)
    for folder in (grown.folder, whole.folder):
        assert len(list((folder / CAPTURES).iterdir())) == 6
    fewer = Engine()
    measure(study(5, first=3, claim="fewer"), OneMachine(fewer), requested(tmp_path / "grown"))
    assert fewer.ran == []


def test_what_an_interrupted_run_of_a_shorter_list_has_is_kept(tmp_path: Path) -> None:
    with pytest.raises(FirstFlightError, match="the guest died"):
        measure(study(4), OneMachine(Engine(dies_before=2)), requested(tmp_path))
    engine = Engine()
    measure(study(6, claim="more"), OneMachine(engine), requested(tmp_path))
    assert engine.ran == ["rtt6-1", "rtt5-1", "rtt2-1", "rtt1-1"]


@pytest.mark.parametrize("other", [
    {"version": "2"}, {"fresh": True}, {"refining": None}, {"kernel": "7.3"}, {"edited": True},
    {"sysctls": "[sysctls]\n\"net.ipv4.tcp_sack\" = 0\n"}, {"failed": True}, {"no capture": True}])
def test_what_is_not_the_same_is_measured(tmp_path: Path, other: dict[str, Any],
                                          monkeypatch: pytest.MonkeyPatch) -> None:
    kept = requested(tmp_path) if "no capture" not in other else replace(
        requested(tmp_path), keep_captures=False)
    if "no capture" in other:
        monkeypatch.setattr(measuring, "CAPTURES_KEPT", 0)
    begun = study(2)
    if "failed" in other:
        begun = replace(begun, kind=example.changed(KIND, judge=lambda trial, *_: (
            example.record(trial.rtt_ms, ok=False, error="x"), {})))
    first = measure(begun, OneMachine(Engine()), kept)
    if "edited" in other:
        path = first.folder / runs.TRIALS_CSV
        path.write_text(path.read_text().replace(",3,", ",4,"))
        assert "4" in path.read_text()
    engine = Engine()
    engine.build = other.get("kernel", engine.build)
    measure(study(2, claim="more", sysctls=other.get("sysctls", "")), OneMachine(engine),
            requested(tmp_path, **{name: value for name, value in other.items()
                                   if name in ("version", "fresh", "refining")}))
    assert len(engine.ran) == 2


def test_answers_come_early_and_then_ever_less_often(tmp_path: Path,
                                                     monkeypatch: pytest.MonkeyPatch,
                                                     capsys: pytest.CaptureFixture[str]) -> None:
    ticks = iter(range(10_000))
    monkeypatch.setattr(measuring.time, "monotonic", lambda: float(next(ticks)))
    counts: list[int] = []

    def answer(records: Sequence[Any]) -> str:
        counts.append(len(records))
        return f"{len(records)} so far"

    measure(study(40), OneMachine(Engine()), requested(tmp_path, answer=answer))
    assert 1 < len(counts) < 6 and counts == sorted(counts) and counts[0] < 8
    assert f"{counts[0]} so far" in capsys.readouterr().err
