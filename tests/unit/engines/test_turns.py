"""The order in which processes of a guest get its processor."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from firstflight.testbed import turns


@pytest.fixture
def scheduled(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, int]]:
    """The calls of sched_setscheduler: process, policy and priority of each."""
    calls: list[tuple[int, int, int]] = []
    monkeypatch.setattr(os, "sched_setscheduler", lambda process, policy, parameters: calls.append(
        (process, policy, parameters.sched_priority)))
    return calls


def test_in_a_guest_programs_take_turns_and_the_thread_of_packets_comes_first(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheduled: list[tuple[int, int, int]]
        ) -> None:
    names = {"7": "ksoftirqd/0", "8": "kworker/0:0", "90": "python3"}
    for number, name in names.items():
        (tmp_path / number).mkdir()
        (tmp_path / number / "comm").write_text(f"{name}\n")
    (tmp_path / "seed").touch()
    for name in ("sched_rt_runtime_us", "sched_rr_timeslice_ms"):
        (tmp_path / name).write_text("0")
    monkeypatch.setattr(turns, "SEED_FILE", tmp_path / "seed")
    turns.take_turns(processes=tmp_path, settings=tmp_path)

    of_packets, of_this_process = scheduled
    assert of_packets[:2] == (7, os.SCHED_FIFO) and of_this_process[:2] == (0, os.SCHED_RR)
    assert of_packets[2] > of_this_process[2], "packets have the higher priority"
    assert (tmp_path / "sched_rt_runtime_us").read_text() == "-1", "no process is throttled"
    assert (tmp_path / "sched_rr_timeslice_ms").read_text() == "1"


def test_outside_a_guest_the_order_does_not_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                   scheduled: list[tuple[int, int, int]]) -> None:
    monkeypatch.setattr(turns, "SEED_FILE", tmp_path / "none")
    turns.take_turns()
    assert not scheduled
