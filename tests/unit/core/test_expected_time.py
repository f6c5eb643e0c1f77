"""How long trials are expected to take, by kind, and what a finished run says that it took."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from base import files
from runs import scenario_file
from runs.kinds import HOST_OVERHEAD_S, Overrides
from runs.measuring import GUEST_START_S, expected, expected_s
from study import registry


def study_of(name: str, **lists: Any) -> Any:
    return registry.study_of(scenario_file.find(name), Overrides(
        {key: (value,) for key, value in lists.items()}))


@pytest.mark.parametrize("client, guest_s", [("curl", 0.025), ("wget", 0.014), ("libcurl", 0.006)])
def test_a_fetch_takes_its_programs_time_in_a_guest(client: str, guest_s: float) -> None:
    study = study_of("zhao2019")
    assert study.kind.guest_s(replace(study.trials[0], client=client)) == guest_s


def test_a_fetch_takes_five_round_trips_and_its_bytes_on_the_host() -> None:
    study = study_of("zhao2019", rtt_ms=200, bandwidth_kbps=1000)
    trial = study.trials[0]
    assert study.kind.network_s(trial) == pytest.approx(
        HOST_OVERHEAD_S + 5 * 0.2 + trial.response_bytes * 8 / 1e6)


def test_a_run_is_shared_by_its_guests_and_one_at_a_time_on_the_host() -> None:
    study = study_of("zhao2019")
    study = replace(study, trials=study.trials[:3])
    guests_s = [study.kind.guest_s(trial) for trial in study.trials]
    assert sum(guests_s) > 0
    for jobs, at_once in ((1, 1), (2, 2), (3, 3), (8, 3)):  # no more guests than trials
        assert expected_s(study, "uml", jobs) == pytest.approx(
            GUEST_START_S + sum(guests_s) / at_once)
    on_host = sum(study.kind.network_s(trial) for trial in study.trials)
    assert expected_s(study, "host", 2) == on_host > 0
    assert expected_s(replace(study, trials=()), "uml", 2) == 0


def test_it_takes_as_long_as_the_last_such_run_took(tmp_path: Path,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    study = study_of("ietf78_connections")
    count = len(study.trials)
    assert expected(study, "uml", 2, tmp_path).startswith("roughly ")

    def stored(name: str, wall_s: float, rows: int, **facts: Any) -> None:
        files.write(tmp_path / study.head.name / name / "run.json", json.dumps({
            "state": "complete", "engine": "uml", "scenario_file": study.head.text, "jobs": 2,
            "wall_s": wall_s, "trials": {"rows": rows}} | facts))
    stored("20260101T000000.000Z-uml", 9, count, engine="host")
    stored("20260102T000000.000Z-uml", 9, count, state="running")
    stored("20260104T000000.000Z-uml", 9, 1)
    assert expected(study, "uml", 2, tmp_path).startswith("roughly ")
    stored("20260105T000000.000Z-uml", 2100, count, scenario_file="with another comment")
    stored("20260106T000000.000Z-uml", 2, 2 * count)
    assert expected(study, "uml", 2, tmp_path) == "about 2100 s, as the last such run took"
    assert expected(study, "uml", 4, tmp_path).startswith("about 1050 s")
    half = replace(study, trials=study.trials[:count // 2])
    assert expected(half, "uml", 2, tmp_path).startswith(
        f"about {2100 * (count // 2) / count:.0f} s")
    monkeypatch.setattr(scenario_file, "names", list)
    assert expected(study, "uml", 2, tmp_path).startswith("about 1 s"), "of a file or question"
