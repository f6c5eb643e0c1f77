"""Shares of work in processes of their own: in order, told where they fail, and none left."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path

import pytest

from firstflight.base import forked


@pytest.fixture(autouse=True)
def three_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2})


def children() -> str:
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text()


def square(number: int) -> tuple[int, bytes]:
    return number * number, bytes(100_000)  # more than a pipe holds


@pytest.mark.parametrize("count", [0, 1, 2, 3, 8])
def test_results_come_in_the_order_of_the_tasks(count: int) -> None:
    before = children()
    found = forked.results([partial(square, number) for number in range(count)])
    assert [number for number, _ in found] == [number * number for number in range(count)]
    assert children() == before


def test_they_are_other_processes() -> None:
    assert len(set(forked.results([os.getpid] * 6))) == 3


@pytest.mark.parametrize("place", [0, 1, 2])
def test_what_a_task_raises_is_raised(place: int) -> None:
    tasks = [partial(square, 1)] * 3
    tasks[place] = partial(int, "none")  # type: ignore[call-overload]
    before = children()
    with pytest.raises(ValueError, match="none"):
        forked.results(tasks)
    assert children() == before


def test_a_share_whose_process_is_killed_is_done_again() -> None:
    parent = os.getpid()

    def dies_elsewhere() -> int:
        if os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return 7
    assert forked.results([dies_elsewhere] * 3) == [7, 7, 7]
