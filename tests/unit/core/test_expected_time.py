"""How long trials are expected to take, by kind, and what a finished run says that it took."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firstflight.base import files
from firstflight.runs import measuring, scenario_file
from firstflight.runs.kinds import Overrides
from firstflight.runs.measuring import expected
from firstflight.study import registry


def study_of(name: str, **lists: Any) -> Any:
    return registry.study_of(scenario_file.find(name), Overrides(
        {key: (value,) for key, value in lists.items()}))


@pytest.mark.parametrize("client, guest_s", [("curl", 0.025), ("wget", 0.014), ("libcurl", 0.006)])
def test_a_fetch_takes_its_programs_time_in_a_guest(client: str, guest_s: float) -> None:
    study = study_of("zhao2019")
    assert study.kind.guest_s(replace(study.trials[0], client=client)) == guest_s


def test_it_takes_as_long_as_the_last_such_run_took(tmp_path: Path,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    study = study_of("ietf78_connections")
    count = len(study.trials)
    monkeypatch.setattr(measuring, "KEPT", tmp_path)
    assert expected(study, "uml", 2, tmp_path).startswith("unknown, since no such run")

    def stored(name: str, wall_s: float, rows: int, **facts: Any) -> None:
        files.write(tmp_path / study.head.name / name / "run.json", json.dumps({
            "state": "complete", "engine": "uml", "scenario_file": study.head.text, "jobs": 2,
            "wall_s": wall_s, "trials": {"rows": rows}} | facts))
    stored("20260101T000000.000Z-uml", 9, count, engine="host")
    stored("20260102T000000.000Z-uml", 9, count, state="running")
    stored("20260104T000000.000Z-uml", 9, 1)
    assert expected(study, "uml", 2, tmp_path).startswith("unknown, since no such run")
    stored("20260105T000000.000Z-uml", 2100, count, scenario_file="with another comment")
    stored("20260106T000000.000Z-uml", 2, 2 * count)
    assert expected(study, "uml", 2, tmp_path) == "about 2100 s, as the last such run took"
    assert expected(study, "uml", 4, tmp_path).startswith("about 1050 s")
    half = replace(study, trials=study.trials[:count // 2])
    assert expected(half, "uml", 2, tmp_path).startswith(
        f"about {2100 * (count // 2) / count:.0f} s")
    monkeypatch.setattr(scenario_file, "names", list)
    assert expected(study, "uml", 2, tmp_path).startswith("about 1 s"), "of a file or question"


@pytest.mark.parametrize("name", scenario_file.names())
def test_a_fresh_clone_names_what_the_kept_run_took(name: str, tmp_path: Path) -> None:
    study = study_of(name)
    wall_s = json.loads((measuring.KEPT / f"{name}.json").read_text())["facts"]["wall_s"]
    assert expected(study, "uml", 2, tmp_path).startswith(
        f"about {wall_s:.0f} s, as the run of docs/results took on ")
    for others in (expected(study, "host", 2, tmp_path),
                   expected(replace(study, whole=False), "uml", 2, tmp_path)):
        assert others.startswith("unknown, since no such run")


def test_minutes_in_questions_are_those_of_the_kept_run() -> None:
    """That follow a scenario's command there, as words."""
    text = (files.PROJECT / "docs" / "QUESTIONS.md").read_text(encoding="utf-8")
    promised = re.findall(r"\./run\.sh (\w+)(?: --full)?\n(?:(?!    \./run).*\n)*?"
                          r"(\w+) minutes?\. ", text)
    assert promised
    for name, word in promised:
        wall_s = json.loads((measuring.KEPT / f"{name}.json").read_text())["facts"]["wall_s"]
        assert ("Zero", "One", "Two", "Three", "Four", "Five")[round(wall_s / 60)] == word, name
