"""The server's estimate of the RTT, sample by sample, by hand (tcp_rtt_estimator, tcp_set_rto)."""

from __future__ import annotations

import pytest

from firstflight.net.path import Clock, RoundTrip

MS = 1_000_000


def after(*samples: tuple[int, bool]) -> RoundTrip:
    found = RoundTrip()
    for us, new_round in samples:
        found.sample(us, new_round)
    return found


FIRST, QUIET = (200_000, False), (200_000, True)


@pytest.mark.parametrize("samples, smoothed_us, deviation_us, variance_us", [
    ([FIRST], 200_000, 100_000, 400_000),
    # A quarter less of the deviation with each sample that is as expected.
    ([FIRST, QUIET], 200_000, 75_000, 400_000),
    # At the end of a round the variance loses a quarter of what it has more than the round's worst.
    ([FIRST, QUIET, QUIET], 200_000, 56_250, 356_250),
    ([FIRST, QUIET, QUIET, QUIET], 200_000, 42_187.5, 317_188),
    # Within a round it loses nothing.
    ([FIRST, QUIET, (200_000, False), (200_000, False)], 200_000, 42_187.5, 400_000),
    # A shorter RTT moves the mean by an eighth, the deviation by an eighth of what it is off.
    ([FIRST, QUIET, QUIET, (100_000, False)], 187_500, 57_617, 356_250),
    # A longer one counts in full, and the variance follows at once.
    ([FIRST, (600_000, False)], 250_000, 175_000, 700_000),
    # Never below 200 ms (TCP_RTO_MIN), as a variance.
    ([(10_000, False)], 10_000, 5000, 200_000)])
def test_each_sample_moves_the_estimate(samples: list[tuple[int, bool]], smoothed_us: float,
                                        deviation_us: float, variance_us: int) -> None:
    found = after(*samples)
    assert found.smoothed_8 == smoothed_us * 8
    assert found.deviation_4 / 4 == pytest.approx(deviation_us, abs=0.25)
    assert found.variance_4 == variance_us
    assert found.timeout_us == int(smoothed_us) + variance_us


def test_the_least_is_kept() -> None:
    assert after(FIRST, (150_000, True), (300_000, True)).least_us == 150_000


# The path -----------------------------------------------------------------------------

@pytest.mark.parametrize("phase_ns, now, jiffies, us", [
    (0, 0, 0, 0), (0, 999_999, 0, 999), (1, 999_999, 1, 1000), (400_000, 600_000, 1, 1000),
    (400_000, 599_999, 0, 999)])
def test_a_jiffy_begins_where_the_phase_says(phase_ns: int, now: int, jiffies: int, us: int
                                             ) -> None:
    clock = Clock(phase_ns)
    assert clock.jiffies(now) - Clock(0).jiffies(0) == jiffies and clock.us(now) == us
