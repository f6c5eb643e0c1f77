"""CUBIC's rules by hand, from tcp_cubic.c: HyStart, and growth where nothing was lost yet."""

from __future__ import annotations

import pytest

from firstflight.model.window import Cubic
from firstflight.net.path import NEVER

SLOW = 1e6  # bytes a second; a cushion of a millisecond
FAST = 1e9  # a cushion of 0.26 ms


def begun(window: int = 100, least_us: int = 100_000, acknowledged: int = 1) -> Cubic:
    """Beyond slow start, since 0 ms."""
    cubic = Cubic(threshold=2, least_us=least_us)
    cubic.grow(0, window, acknowledged)
    return cubic


# Growth ------------------------------------------------------------------------------

def test_slow_start_grows_by_what_is_acknowledged_up_to_the_threshold() -> None:
    cubic = Cubic(threshold=12)
    assert cubic.grow(0, 10, 1) == 11 and cubic.grow(0, 10, 2) == 12
    assert cubic.epoch_ms is None  # not a step beyond
    assert cubic.grow(7, 10, 5) == 12
    assert (cubic.epoch_ms, cubic.credit, cubic.counted, cubic.origin) == (7, 3, 3, 12)


@pytest.mark.parametrize("now_ms, per_segment", [
    # 410 · t³ / 2⁴⁰ segments above the origin, t in 1/1024 s with the least RTT added.
    (31, 20), (1500, 20), (2400, 16), (3000, 9), (4000, 3), (5000, 2), (9000, 2)])
def test_the_window_grows_as_the_cube_of_time(now_ms: int, per_segment: int) -> None:
    cubic = begun()
    assert cubic.per_segment == 20  # 5 % a round trip at least
    cubic.grow(now_ms, 100, 1)
    assert cubic.per_segment == per_segment


def test_a_window_that_stays_is_looked_at_every_32_ms() -> None:
    """HZ / 32 jiffies."""
    cubic = begun()
    cubic.epoch_ms = -5000
    cubic.grow(31, 100, 1)
    assert (cubic.per_segment, cubic.updated_ms) == (20, 0)
    cubic.grow(32, 100, 1)
    assert (cubic.per_segment, cubic.updated_ms) == (2, 32)


def test_a_window_that_grew_is_looked_at_at_once_but_not_twice_in_a_millisecond() -> None:
    cubic = begun()
    cubic.epoch_ms = -5000
    cubic.grow(1, 101, 1)
    assert (cubic.per_segment, cubic.updated_ms, cubic.updated_window) == (2, 1, 101)
    cubic.epoch_ms = 0
    cubic.grow(1, 102, 1)
    assert cubic.per_segment == 2 and cubic.updated_window == 101


@pytest.mark.parametrize("acknowledged, friendly, per_segment", [
    (187, 100, 20), (188, 101, 20), (11 * 187, 110, 10), (11 * 187 + 1, 111, 9),
    (60 * 187, 159, 2)])
def test_it_grows_no_slower_than_reno_would(acknowledged: int, friendly: int,
                                            per_segment: int) -> None:
    """By a segment for every 15/8 windows: beta_scale. Never for fewer than two segments."""
    cubic = begun(acknowledged=0)
    cubic._update(1, 100, acknowledged)
    cubic.updated_ms = -99
    cubic._update(1, 100, 0)
    assert (cubic.friendly, cubic.per_segment) == (friendly, per_segment)


def test_credit_for_a_part_of_a_segment_is_kept() -> None:
    """tcp_cong_avoid_ai()"""
    cubic = begun(acknowledged=19)
    assert cubic.credit == 19
    assert cubic.grow(1, 100, 1) == 101 and cubic.credit == 0
    assert cubic.grow(2, 101, 45) == 103 and cubic.credit == 5
    cubic.credit = 20  # as many as are needed are left over from a larger count
    assert cubic.grow(3, 103, 1) == 104 and cubic.credit == 1


def test_a_pause_does_not_count() -> None:
    cubic = begun()
    cubic.shift(900, 500)
    assert cubic.epoch_ms == 500
    cubic.shift(900, 500)
    assert cubic.epoch_ms == 900, "no later than now"
    fresh = Cubic()
    fresh.shift(900, 500)
    assert fresh.epoch_ms is None


def test_a_timeout_forgets_all_but_the_threshold() -> None:
    cubic = begun(acknowledged=1000)
    cubic.threshold, cubic.samples, cubic.round_least_us = 77, 5, 9
    cubic.reset(4_000_000, 3000)
    assert cubic == Cubic(threshold=77, round_start_us=4_000_000, last_ack_us=4_000_000,
                          round_end=3000, credit=cubic.credit)
    assert cubic.round_least_us == NEVER


# HyStart -----------------------------------------------------------------------------

def round_of(cubic: Cubic, *samples_us: int, window: int = 16, start_us: int = 0,
             every_us: int = 3000) -> int:
    """A round's acknowledgements, too far apart for a train; → the threshold."""
    for place, us in enumerate(samples_us):
        cubic.sample(start_us + place * every_us, us, window, 1000 * (start_us + 1) + place,
                     1000 * (start_us + 2), SLOW)
    return cubic.threshold


@pytest.mark.parametrize("least_us, late_us", [
    (16_000, 4000), (32_000, 4000), (48_000, 6000), (128_000, 16_000), (800_000, 16_000)])
def test_slow_start_ends_when_nine_of_a_round_are_late(least_us: int, late_us: int) -> None:
    """By an eighth of the least RTT, at least 4 ms, at most 16 ms."""
    for more_us, ends in ((0, False), (1, True)):
        cubic = Cubic()
        round_of(cubic, least_us)
        late = least_us + late_us + more_us
        assert round_of(cubic, *[late] * 8, start_us=10**6) == 1 << 30
        assert (round_of(cubic, *[late] * 9, start_us=2 * 10**6) == 16) == ends
        assert cubic.ended_at == (16 if ends else 0)


def test_one_of_a_round_that_is_not_late_keeps_slow_start() -> None:
    cubic = Cubic()
    round_of(cubic, 50_000)
    assert round_of(cubic, *[90_000] * 5, 50_000, *[90_000] * 5, start_us=10**6) == 1 << 30
    # The next round forgets it.
    assert round_of(cubic, *[90_000] * 9, start_us=2 * 10**6) == 16


@pytest.mark.parametrize("window, hystart, ends", [(16, True, True), (15, True, False),
                                                   (16, False, False)])
def test_hystart_begins_at_16_segments(window: int, hystart: bool, ends: bool) -> None:
    cubic = Cubic(hystart=hystart)
    round_of(cubic, 50_000)
    assert (round_of(cubic, *[90_000] * 9, start_us=10**6, window=window) == window) == ends


@pytest.mark.parametrize("spacing_us, pacing, needed_us", [
    (1000, SLOW, 50_500), (2000, SLOW, 50_500), (1000, FAST, 50_130), (2001, SLOW, None)])
def test_slow_start_ends_when_a_train_lasts_half_an_rtt(
        spacing_us: int, pacing: float, needed_us: int | None) -> None:
    """And half of a cushion more: four bursts at the pacing rate, a millisecond at most."""
    cubic = Cubic(least_us=100_000)
    now_us, start_us = 0, 0
    while now_us <= 60_000 and not cubic.ended_at:
        cubic.sample(now_us, 100_000, 20, now_us + 1, 10**9, pacing)
        now_us += spacing_us
    ended_us = now_us - spacing_us if cubic.ended_at else None
    if needed_us is None:
        assert ended_us is None
    else:
        assert ended_us is not None and needed_us < ended_us <= needed_us + spacing_us
    assert start_us == 0


def test_a_train_that_breaks_off_counts_from_the_rounds_begin_on() -> None:
    cubic = Cubic(least_us=100_000)
    cubic.sample(0, 100_000, 20, 1, 10**9, SLOW)
    assert not cubic._is_train(2001, SLOW)  # too late, and not taken for its last
    assert not cubic._is_train(2000, SLOW) and cubic.last_ack_us == 2000


def test_nothing_is_sampled_right_after_slow_start() -> None:
    """cubictcp_acked: for a second of the epoch (as jiffies), its delays are of no use."""
    cubic = Cubic(epoch_ms=5000, least_us=100)
    for now_us, least_us in ((5_999_999, 100), (6_000_000, 50)):
        cubic.sample(now_us, 50, 5, 1, 1, SLOW)
        assert cubic.least_us == least_us


def test_the_least_rtt_is_one_microsecond_at_least() -> None:
    cubic = Cubic()
    cubic.sample(0, 0, 5, 1, 1, SLOW)
    assert cubic.least_us == 1


def test_beyond_the_threshold_hystart_is_over() -> None:
    cubic = Cubic(threshold=16)
    round_of(cubic, 50_000)
    round_of(cubic, *[90_000] * 9, start_us=10**6)
    assert (cubic.threshold, cubic.ended_at, cubic.samples) == (16, 0, 0)
