"""Who gets the processor of a guest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from firstflight.testbed import turns


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, int]]:
    """Process, policy and priority of each call."""
    calls: list[tuple[int, int, int]] = []
    monkeypatch.setattr(os, "sched_setscheduler", lambda process, policy, parameters: calls.append(
        (process, policy, parameters.sched_priority)))
    return calls


def test_in_a_guest_programs_queue_and_packets_come_first(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[tuple[int, int, int]]
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

    (packets, first, high), (own, second, low) = asked
    assert (packets, first, own, second) == (7, os.SCHED_FIFO, 0, os.SCHED_RR)
    assert high > low
    assert (tmp_path / "sched_rt_runtime_us").read_text() == "-1", "or they would be throttled"
    assert (tmp_path / "sched_rr_timeslice_ms").read_text() == "1"


def test_outside_a_guest_the_order_does_not_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                   asked: list[tuple[int, int, int]]) -> None:
    monkeypatch.setattr(turns, "SEED_FILE", tmp_path / "none")
    turns.take_turns()
    assert not asked
