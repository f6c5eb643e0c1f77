"""The congestion window of a Linux TCP sender: how it grows, and shrinks when it is not used.

The rules are those of Linux 6.1 to 7.2 with the sysctls that topo.py pins.
Times are integer nanoseconds since the first SYN left.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lab.tcp.cubic import Cubic
from lab.tcp.packets import MS
from lab.tcp.path import Clock, RoundTrip
from lab.tcp.timers import LossTimer
from lab.tcp.writer import MAX_BATCH_BYTES, Writer


@dataclass(kw_only=True)
class Windowed(Writer):
    """A writer with a congestion window.

    handshake_us: SYN-ACK to its acknowledgement; hystart: whether CUBIC has
    it; restart_after_idle: tcp_slow_start_after_idle; probes: whether there
    are tail loss probes (tcp_early_retrans).
    """

    clock: Clock
    handshake_us: int
    hystart: bool
    restart_after_idle: bool = True
    probes: bool = True
    round_trip: RoundTrip = field(default_factory=RoundTrip)
    cubic: Cubic = field(init=False)
    timer: LossTimer = field(init=False)
    # Whether the window is what limits the sender (tcp_cwnd_validate).
    limited: bool = False
    most_in_flight: int = 0
    usage_end: int = 0
    used: int = 0  # snd_cwnd_used, segments
    used_at: int = 0  # snd_cwnd_stamp, jiffies
    round_end: int = 0
    pacing: int = 0  # bytes a second: nothing paces, but sizes follow it
    last_sent_at: int = -MS
    # The window and threshold before a timeout, until an acknowledgement undoes that.
    before_timeout: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.initial_window = self.window
        self.cubic = Cubic(self.hystart)
        self.round_trip.sample(self.handshake_us, new_round=False)
        self.timer = LossTimer(self.clock, self.round_trip, self.probes)
        self.timer.sampled()
        self._pace()

    def restart_idle(self, now: int) -> None:
        """RFC 5681's restart window, halved for every timeout of silence (tcp_cwnd_restart)."""
        if self.in_flight or not self.sent:
            return
        timeout_ms = self.timer.timeout
        idle_ms = self.clock.jiffies(now) - self.clock.jiffies(self.last_sent_at)
        self.cubic.shift(self.clock.us(now) // 1000, idle_ms)
        if idle_ms <= timeout_ms or not self.restart_after_idle:
            return
        self.cubic.threshold = max(self.cubic.threshold, (self.window >> 1) + (self.window >> 2))
        restart = min(self.initial_window, self.window)
        while (idle_ms := idle_ms - timeout_ms) > 0 and self.window > restart:
            self.window >>= 1
        self.window = max(self.window, restart)
        self.used, self.used_at = 0, self.clock.jiffies(now)

    def time_out(self, now: int) -> None:
        """Nothing was heard for the timer's time (tcp_enter_loss)."""
        if self.before_timeout is None:
            threshold = max(self.cubic.threshold, (self.window >> 1) + (self.window >> 2))
            self.before_timeout = self.window, threshold
        self.cubic.reset(self.clock.us(now), self.sent)

    def grow(self, now: int, count: int, first_sent: int, last_sent: int) -> None:
        new_round = self.acknowledged > self.round_end
        if new_round:
            self.round_end = self.sent
        now_us = self.clock.us(now)
        self.round_trip.sample(now_us - self.clock.us(first_sent), new_round)
        self.timer.sampled()
        self.cubic.sample(now_us, now_us - self.clock.us(last_sent),
                          1 if self.before_timeout else self.window, self.acknowledged,
                          self.sent, self.pacing)
        if self.before_timeout:  # tcp_try_undo_loss: the time stamp shows that it was in vain
            self.window, self.cubic.threshold = self.before_timeout
            self.before_timeout = None
        self.timer.acknowledged(now, self.in_flight)
        if self._is_limited():
            self.window = self.cubic.grow(now_us // 1000, self.window, count)
        self.used_at = self.clock.jiffies(now)  # tcp_cong_avoid
        self._pace()

    def _pace(self) -> None:
        """tcp_update_pacing_rate"""
        percent = 200 if self.window < self.cubic.threshold // 2 else 120
        self.pacing = (self.mss * percent * max(self.window, self.in_flight) * 80_000
                       // self.round_trip.smoothed_8)

    def batch_segments(self) -> int:
        """Segments that may leave as one skb (tcp_tso_autosize)."""
        share = self.pacing >> 10
        shift = self.round_trip.least_us >> 9
        if shift < 32:
            share += MAX_BATCH_BYTES >> shift
        return max(min(share, MAX_BATCH_BYTES) // self.mss, 2)

    def note_use(self, now: int, limited: bool) -> None:
        """Whether the window was used up (tcp_cwnd_validate)."""
        if (self.acknowledged >= self.usage_end or limited
                or (not self.limited and self.in_flight > self.most_in_flight)):
            self.limited = limited
            self.most_in_flight = self.in_flight
            self.usage_end = self.sent
        jiffies = self.clock.jiffies(now)
        if self._is_limited():
            self.used, self.used_at = 0, jiffies
            return
        self.used = max(self.used, self.in_flight)
        if not self.restart_after_idle or jiffies - self.used_at < self.timer.timeout:
            return
        if not self.starved:  # tcp_cwnd_application_limited (RFC 2861)
            used = max(self.used, self.initial_window)
            if used < self.window:
                self.cubic.threshold = max(self.cubic.threshold,
                                           (self.window >> 1) + (self.window >> 2))
                self.window = (self.window + used) >> 1
            self.used = 0
        self.used_at = jiffies

    def _is_limited(self) -> bool:
        """tcp_is_cwnd_limited"""
        return self.limited or (self.window < self.cubic.threshold
                                and self.window < 2 * self.most_in_flight)

    def make_room(self, now: int) -> bool:
        grows = super().make_room(now)
        if grows:
            self.used_at = self.clock.jiffies(now)
        return grows
