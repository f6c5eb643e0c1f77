"""Which workers can measure, as they pause and die, by a clock that the test sets."""

from __future__ import annotations

import pytest

from engines.cluster import cluster as module
from engines.cluster.cluster import LOST_S, MOST_DEATHS, PAUSED_S, Members
from engines.cluster.node import OK
from engines.job import EngineError
from tests.unit.cluster.test_cluster import Link, answer, cluster, results


class Clock:
    now = 1000.0


@pytest.fixture(name="clock")
def _clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module.time, "monotonic", lambda: clock.now)
    return clock


def made(*names: str) -> tuple[Members, Link]:
    link = Link(lambda worker, batch: b"")
    link.names, link.states = list(names), dict.fromkeys(names, "running")
    return Members(link), link  # type: ignore[arg-type]


@pytest.mark.parametrize(("deaths", "later_s", "ends"), [
    (2 * MOST_DEATHS, LOST_S + 1, False), (2 * MOST_DEATHS + 1, LOST_S + 1, True),
    (2 * MOST_DEATHS + 1, LOST_S - 1, False)])
def test_so_many_deaths_of_each_worker_are_borne_and_so_long(clock: Clock, deaths: int,
                                                             later_s: float, ends: bool) -> None:
    """Of two workers, each another that a nanny has started, since the last result."""
    members, link = made("one", "two")
    for place in range(deaths):
        link.names[0] = f"one'{place}"
        link.states[link.names[0]] = "running"
        clock.now += later_s / deaths
        if ends and place == deaths - 1:
            with pytest.raises(EngineError, match="die before they measure"):
                members.call()
        else:
            members.call()
    assert members.deaths == deaths


def test_a_result_forgives_the_deaths_before_it(clock: Clock) -> None:
    of, _ = cluster(lambda worker, batch: answer(OK, worker, batch))
    of.members.deaths, clock.now = 99, clock.now + 5
    assert [each for _, each in results(of, 1)] == [0]
    assert (of.members.deaths, of.members.last_result) == (0, clock.now)


def test_where_nobody_is_yet_one_worker_is_reckoned_with() -> None:
    assert made()[0].most_deaths == MOST_DEATHS
    assert made("one", "two", "three")[0].most_deaths == 3 * MOST_DEATHS


def test_a_worker_is_left_aside_that_is_held_back_without_a_break(clock: Clock) -> None:
    members, link = made("one", "two")
    for state, step_s in (("paused", PAUSED_S - 1), ("running", 1), ("paused", PAUSED_S - 1)):
        link.states["one"] = state
        members.call()
        clock.now += step_s
        members.call()
    assert not link.refused  # twice, but never for so long at a time
    clock.now += 1
    members.call()
    assert list(link.refused) == ["one"] and members.able == {"two"}
