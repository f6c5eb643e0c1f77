"""Mistakes of users are refused before anything is measured, in one line and with their status."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

import experiment
import vtime
from firstflight.base.errors import MESSAGE_CHARACTERS
from firstflight.base.main import run_main
from firstflight.base.removed import REMOVED
from firstflight.commands import measure
from tests.refusals import (Refusal, browsed, fetches, flags, pages, parameters, scenario_files,
                            slips, traces, users)

MODULES = (scenario_files, flags, parameters, slips, fetches, pages, browsed, traces, users)
REFUSALS: list[Refusal] = [row for module in MODULES for row in module.REFUSALS]


@pytest.mark.parametrize("refusal", REFUSALS, ids=str)
def test_a_mistake_is_answered_in_one_line_and_with_its_status(
        refusal: Refusal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str]) -> None:
    for name, content in refusal.files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["run.sh", *shlex.split(refusal.command)])
    monkeypatch.setattr(measure, "run_study", lambda *_: pytest.fail("it is measured"))
    monkeypatch.setattr(vtime, "run", lambda *_, **__: pytest.fail("a guest is booted"))
    with pytest.raises(SystemExit) as ended:
        run_main("run.sh", experiment.main)
    answer = capsys.readouterr().err
    assert refusal.words in answer
    assert ended.value.code == refusal.status
    assert answer.startswith("run.sh: ") and answer.count("\n") == 1
    assert len(answer) < MESSAGE_CHARACTERS + 50
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()} == {
        *refusal.files}, "a file was written"


def test_every_flag_of_earlier_versions_has_a_refusal() -> None:
    assert flags.EARLIER.keys() == REMOVED.keys()
