"""Schedules as the scenario writes them, and as the server and the verdict read them."""

from __future__ import annotations

import pytest

from hosts.request import parse_writes
from lab.core import scenario_file
from lab.trace.scenario import read
from lab.trace.schedule import Write, due_times_s

MSS = 1000


@pytest.mark.parametrize("write", [
    Write(0.0, 5), Write(2.4, None, 6, 3.5, 0.02), Write(0.045, 1, None, 2.2, 0.01),
    Write(0.0, 36, None, 10.0, 0.2), Write(1.0, 7, None, 1.0005, 0.0005),
    Write(0.0, 1, None, 0.3, 0.1)])
def test_both_sides_read_a_schedule_alike(write: Write) -> None:
    text = write.text(MSS)
    heard = parse_writes(text)
    assert len(heard) == write.count
    assert sum(size for _, size in heard) == write.count * write.bytes_each(MSS) > 0
    assert [due_ms / 1000 for due_ms, _ in heard] == pytest.approx(due_times_s(text))
    assert heard[-1][0] / 1000 == pytest.approx(write.last_s)


def test_a_trial_knows_when_its_schedule_ends() -> None:
    trials = {trial.id: trial for trial
              in read(scenario_file.find("handley1999_idle")).trials()}
    trial = trials["periods-cwv-iw1"]
    assert trial.schedule_s == 5.8 and trial.deadline_s > 120
    assert due_times_s(trial.schedule)[-1] == 5.8
