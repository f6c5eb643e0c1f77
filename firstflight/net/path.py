"""The path and what both ends know of it; segments on their way.

Times are integer nanoseconds since the first SYN left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from firstflight.net.segments import MS
from firstflight.net.tc import TICK_NS, bits, ticks

LEAST_TIMEOUT_US = 200_000  # TCP_RTO_MIN
# A packet may leave netem a few microseconds after its time.
STAMP_MS = 0.005
LEAST_TIMER_NS = 501  # from one timer of the guest's to the next (TIMER_MIN_DELTA)
NEVER = 1 << 62  # ns: also later than any time since the epoch
# Jiffies begin at −300 s (INITIAL_JIFFIES); trials start on a grid of the wheel's fourth level
# (testbed.guests.ALIGN_S).
START_JIFFIES = -300_000 % 4096


@dataclass(frozen=True)
class Clock:
    """The kernel's clock in jiffies, which its timers count in; HZ is 1000.

    phase_ns: how far into a jiffy the first SYN leaves.
    """

    phase_ns: int

    def jiffies(self, now: int) -> int:
        """Since one that begins a slot of every level of the timer wheel up to the fourth."""
        return START_JIFFIES + (now + self.phase_ns) // MS

    def us(self, now: int) -> int:
        """The kernel's microsecond: it takes times as differences of whole ones."""
        return (now + self.phase_ns) // 1000

    def expiry(self, now: int, due: int) -> int:
        """When a timer fires that is set now for a jiffy (calc_wheel_index).

        The wheel never fires early, so it fires in the slot that begins after
        that jiffy, even if the slots are one jiffy wide. Those of what is due
        in less than 63, 504, 4032 jiffies are 1, 8, 64 jiffies wide, and so on.
        """
        level = 0
        while due - self.jiffies(now) >= 63 << 3 * level:
            level += 1
        fires = ((due >> 3 * level) + 1) << 3 * level
        return (fires - START_JIFFIES) * MS - self.phase_ns


@dataclass(frozen=True)
class Sent:
    """A segment of data on its way; pushed: with PSH.

    retransmitted: where the data of a retransmission ends, 0 for a new segment.
    option_bytes: of options beside the time stamps.
    """

    payload: int
    pushed: bool
    retransmitted: int = 0
    option_bytes: int = 0


def bytes_per_s(rate_kbps: float) -> float:
    """A rate as netem has it: whole bytes a second."""
    return rate_kbps if math.isinf(rate_kbps) else bits(rate_kbps) // 8


def serialised_ms(size_bytes: int, rate_kbps: float) -> float:
    """How long a link of this rate takes to serialise a packet."""
    return size_bytes * 1000 / bytes_per_s(rate_kbps)


def delay_ns(delay_ms: float) -> int:
    """A delay as netem has it: whole microseconds, in ticks (PSCHED_TICKS2NS)."""
    return ticks(round(delay_ms * 1000)) * TICK_NS


@dataclass
class RoundTrip:
    """The server's RTT estimate in µs (tcp_rtt_estimator, tcp_set_rto).

    smoothed_8 is 8 times the smoothed RTT, the deviations are 4 times theirs.
    """

    smoothed_8: int = 0
    deviation_4: int = 0
    worst_4: int = 0
    variance_4: int = 0
    least_us: int = NEVER

    def sample(self, us: int, new_round: bool) -> None:
        self.least_us = min(self.least_us, us)
        if not self.smoothed_8:
            self.smoothed_8, self.deviation_4 = us * 8, us * 2
            self.variance_4 = self.worst_4 = max(self.deviation_4, LEAST_TIMEOUT_US)
            return
        error = us - (self.smoothed_8 >> 3)
        self.smoothed_8 += error
        change = abs(error) - (self.deviation_4 >> 2)
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
        return (self.smoothed_8 >> 3) + self.variance_4
