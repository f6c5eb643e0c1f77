"""How long trials are expected to take, by kind, and what a finished run says that it took."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab import registry
from lab.core.run import runs
from lab.core.run.kinds import HOST_OVERHEAD_S, Overrides
from lab.core.run.measuring import GUEST_START_S, MeasureOptions, OneMachine, expected_s, measure
from lab.core.scenario import scenario_file
from tests.unit.core.example import study
from tests.unit.core.example_run import Engine


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


def test_a_trace_takes_its_schedule_its_think_times_and_its_bytes() -> None:
    study = study_of("handley1999_idle")
    trial = study.trials[0]
    assert study.kind.network_s(trial) == pytest.approx(
        HOST_OVERHEAD_S + trial.schedule_s + sum(trial.thinks_s)
        + trial.size_bytes * 8 / (trial.bandwidth_kbps * 1000))
    longer = max(study.trials, key=lambda each: each.size_bytes / each.mss)
    assert study.kind.guest_s(longer) >= study.kind.guest_s(trial) > 0


def test_a_load_run_takes_its_duration_and_grows_with_its_connections() -> None:
    study = study_of("ietf78_load")
    first, last = (sorted(study.trials, key=lambda trial: trial.responses_per_s)[place]
                   for place in (0, -1))
    assert study.kind.network_s(first) > first.duration_s
    assert study.kind.guest_s(last) > study.kind.guest_s(first) > 0


def test_a_run_is_shared_by_its_guests_and_one_at_a_time_on_the_host() -> None:
    study = study_of("zhao2019")
    study = replace(study, trials=study.trials[:3])
    each = [study.kind.guest_s(trial) for trial in study.trials]
    assert sum(each) > 0
    for jobs, at_once in ((1, 1), (2, 2), (3, 3), (8, 3)):  # no more guests than trials
        assert expected_s(study, "uml", jobs) == pytest.approx(GUEST_START_S + sum(each) / at_once)
    on_host = sum(study.kind.network_s(trial) for trial in study.trials)
    assert expected_s(study, "host", 2) == on_host > 0
    assert expected_s(replace(study, trials=()), "uml", 2) == 0


def test_a_run_adds_up_what_it_took_over_its_parts(tmp_path: Path) -> None:
    """In emulated time a second each, here; begun, stopped and resumed."""
    requested = study(10, 20, 30)
    run = measure(requested, OneMachine(Engine(10)), MeasureOptions(tmp_path, 1, False, False, {}))
    facts = json.loads((run.folder / runs.RUN_JSON).read_text())
    assert facts["emulated_s"] == 3.0 and 0 < facts["wall_s"] < 60
    assert 0 <= facts["first_record_after_s"] <= facts["wall_s"]
    assert (facts["jobs"], facts["virtual_time"], facts["partial"]) == (1, True, False)
