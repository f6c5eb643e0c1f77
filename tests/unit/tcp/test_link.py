"""A link of the model: what a frame waits for, and the clock that its timers share."""

from __future__ import annotations

import pytest

from firstflight.model.network import Events, SimulatedLink
from firstflight.net.link import Path
from firstflight.net.segments import MS

FAST_KBPS = 3_488_510  # 74 bytes take 169 ns, 1514 take 3471


def link_of(events: Events, rtt_ms: float, rate_kbps: float) -> SimulatedLink:
    return SimulatedLink(events, Path.between(rtt_ms, rate_kbps, rate_kbps, 1000).down)


def arrivals(link: SimulatedLink, *frames: tuple[int, int]) -> list[int]:
    """Of frames, each when it leaves and its bytes."""
    found: list[int] = []
    for leaves, size in frames:
        link.events.at(leaves, lambda now, size=size: link.send(now, size, found.append))
    link.events.run()
    return found


def test_a_link_serialises_and_queues() -> None:
    link = link_of(Events(), 20, 56)
    late = 2  # ns, one for each netem
    assert arrivals(link, (0, 1514), (0, 66), (1_000_000_000, 66)) == [
        10_000_000 + 216_285_714 + late,
        10_000_000 + 216_285_714 + 9_428_571 + late,
        1_000_000_000 + 10_000_000 + 9_428_571 + late]
    assert link.peak_queue == 2


def test_an_unlimited_link_has_no_queue() -> None:
    link = link_of(Events(), 10, float("inf"))
    assert arrivals(link, *[(0, 1514)] * 3) == [link.delay_ns + 1] * 3
    assert link.peak_queue == 0


def test_frames_follow_each_other_at_the_rate_and_the_queue_counts_who_waits() -> None:
    """8 kbit/s: a thousand bytes a second."""
    link = link_of(Events(), 0, 8)
    first, second, third = arrivals(link, *[(0, 100)] * 3)
    assert first == pytest.approx(100 * MS, abs=600)
    assert second - first == pytest.approx(100 * MS, abs=600)
    assert third - second == pytest.approx(100 * MS, abs=600)
    assert link.peak_queue == 3
    arrivals(link, (link.free_at + MS, 100))
    assert link.peak_queue == 3  # nobody waited for the last


def test_timers_of_the_guest_are_half_a_microsecond_apart() -> None:
    """As measured: small frames on a fast link take longer than their bytes."""
    link = link_of(Events(), 11.761, FAST_KBPS)
    first, second = arrivals(link, (0, 74), (600, 1514))
    assert first == link.delay_ns + 1 + 501
    # What comes within half a microsecond of that is late, too.
    assert second == first + 501 + 3471 + 1
    assert link.peak_queue == 1


@pytest.mark.parametrize(("comes_before_ns", "late_ns"), [
    (502, 1), (501, 1), (499, 2), (2, 499), (1, 500), (0, 0), (-1, 1)])
def test_a_packet_that_is_due_waits_behind_one_that_comes(comes_before_ns: int, late_ns: int
                                                          ) -> None:
    """The clock that has just fired for the latter is not set sooner (clockevents_program_event).

    Of what is due at one moment it sees to all.
    """
    link = link_of(Events(), 11.761, FAST_KBPS)
    due = link.delay_ns + 1 + 3471
    first, _ = arrivals(link, (0, 1514), (3471 - comes_before_ns, 1514))
    assert first - due == late_ns


def test_both_directions_have_one_clock() -> None:
    events = Events()
    down, up = (link_of(events, 11.761, FAST_KBPS) for _ in range(2))
    events.at(3471 - 100, lambda now: up.send(now, 1514))
    assert arrivals(down, (0, 1514)) == [down.delay_ns + 1 + 3471 - 100 + 501]


def test_a_late_timer_keeps_a_packet_in_the_queue() -> None:
    link = link_of(Events(), 11.761, FAST_KBPS)
    left, = arrivals(link, (0, 74))
    for before_ns, peak in ((3, 2), (1, 1)):
        link = link_of(Events(), 11.761, FAST_KBPS)
        arrivals(link, (0, 74), (left - link.delay_ns - before_ns, 74))
        assert link.peak_queue == peak
