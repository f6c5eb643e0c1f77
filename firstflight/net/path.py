"""What model and judge share of a path: the clock, serialisation, delays and RTT estimates.

Times are integer nanoseconds since the first SYN left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from firstflight.net.segments import MS
from firstflight.net.tc import TICK_NS, bits, ticks

LEAST_TIMEOUT_US = 200_000  # TCP_RTO_MIN
# A packet may leave netem so much after its time.
STAMP_MS = 0.005
LEAST_TIMER_NS = 501  # between two timers of a guest (TIMER_MIN_DELTA)
NEVER = 1 << 62  # ns: later than any time, even one since the epoch
# Jiffies begin at −300 s (INITIAL_JIFFIES), and trials start on a grid of 4096 jiffies, one slot of
# the timer wheel's fifth level (testbed.guests.ALIGN_S).
START_JIFFIES = -300_000 % 4096


@dataclass(frozen=True)
class Clock:
    """The kernel's clock, whose timers count in jiffies; HZ is 1000.

    `now` is in ns, as all times in this file.
    """

    phase_ns: int  # from the beginning of a jiffy to the first SYN

    def jiffies(self, now: int) -> int:
        """Jiffies since one that begins a slot on each of the timer wheel's five lowest levels."""
        return START_JIFFIES + (now + self.phase_ns) // MS

    def us(self, now: int) -> int:
        """The time in whole microseconds, as the kernel subtracts times."""
        return (now + self.phase_ns) // 1000

    def expiry(self, now: int, due: int) -> int:
        """When a timer fires that is set now and due in jiffy `due` (calc_wheel_index).

        The wheel never fires early: it fires in the slot that begins after that jiffy, even if
        slots are one jiffy wide. Slots of timers due within 63, 504, 4032 jiffies are 1, 8, 64
        jiffies wide, and so on.
        """
        level = 0
        while due - self.jiffies(now) >= 63 << 3 * level:
            level += 1
        fires = ((due >> 3 * level) + 1) << 3 * level
        return (fires - START_JIFFIES) * MS - self.phase_ns


class Sent(NamedTuple):
    """A segment of data on its way."""

    payload: int  # bytes
    pushed: bool  # whether it has PSH
    # Sequence number at the end of its data if this is a retransmission, else 0.
    retransmitted: int = 0
    option_bytes: int = 0  # options besides the time stamps


def bytes_per_s(rate_kbps: float) -> float:
    """A rate as netem rounds it, to whole bytes a second."""
    return rate_kbps if math.isinf(rate_kbps) else bits(rate_kbps) // 8


def serialised_ms(size_bytes: int, rate_kbps: float) -> float:
    """How long a link of this rate takes to serialise a packet, ms."""
    return size_bytes * 1000 / bytes_per_s(rate_kbps)


def delay_ns(delay_ms: float) -> int:
    """A delay as netem rounds it: to whole microseconds, then to ticks (PSCHED_TICKS2NS)."""
    return ticks(round(delay_ms * 1000)) * TICK_NS


@dataclass
class RoundTrip:
    """A sender's RTT estimate in µs (tcp_rtt_estimator, tcp_set_rto)."""

    smoothed_8: int = 0  # 8 times the smoothed RTT (srtt_us)
    deviation_4: int = 0  # 4 times the mean deviation (mdev_us)
    worst_4: int = 0  # the largest deviation_4 in this round trip (mdev_max_us)
    variance_4: int = 0  # 4 times the deviation that the timeout uses (rttvar_us)
    least_us: int = NEVER  # the smallest measured RTT

    def sample(self, us: int, new_round: bool) -> None:
        """Take a measured RTT. new_round: whether it is the first one of a round trip."""
        self.least_us = min(self.least_us, us)
        if not self.smoothed_8:
            self.smoothed_8, self.deviation_4 = us * 8, us * 2
            self.variance_4 = self.worst_4 = max(self.deviation_4, LEAST_TIMEOUT_US)
            return

        error = us - (self.smoothed_8 >> 3)
        self.smoothed_8 += error
        change = abs(error) - (self.deviation_4 >> 2)
        # A falling RTT raises the deviation by an eighth of the change only.
        self.deviation_4 += change >> 3 if error < 0 < change else change
        if self.deviation_4 > self.worst_4:
            self.worst_4 = self.deviation_4
            self.variance_4 = max(self.variance_4, self.worst_4)

        if new_round:
            if self.worst_4 < self.variance_4:
                self.variance_4 -= (self.variance_4 - self.worst_4) >> 2
            self.worst_4 = LEAST_TIMEOUT_US

    @property
    def timeout_us(self) -> int:
        """The retransmission timeout."""
        return (self.smoothed_8 >> 3) + self.variance_4
