"""The congestion window of a Linux TCP sender: how it grows, and shrinks when it is not used.

The rules are those of Linux 6.1 to 7.2 with the sysctls that testbed/network/kernel.py pins. Rules
that do not depend on CUBIC are in model/congestion.py. Times are integer nanoseconds since the
first SYN left.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from firstflight.model.congestion import (WindowUse, additive_increase, remembered_threshold,
                                          restarted_window, shrunk_window, slow_start)
from firstflight.model.timers import LossTimer
from firstflight.model.writer import MAX_BATCH_BYTES, Writer
from firstflight.net.path import NEVER, Clock, RoundTrip
from firstflight.net.segments import MS

HYSTART_WINDOW = 16  # hystart_low_window, segments
HYSTART_SAMPLES = 8  # HYSTART_MIN_SAMPLES
HYSTART_SPACING_US = 2000  # hystart_ack_delta_us


@dataclass
class Cubic:
    """The part of CUBIC that acts without losses: HyStart, and growth after it (tcp_cubic.c)."""

    # Whether HyStart is used. Without HyStart slow start never ends, as in Reno.
    hystart: bool = True
    threshold: int = 1 << 30  # ssthresh, segments
    ended_at: int = 0  # the window at which HyStart ended slow start; 0 before
    has_ended: bool = False  # whether HyStart has ended slow start since the last timeout
    least_us: int = 0  # the least RTT; 0 before the first sample (delay_min)
    # HyStart's round trip.
    round_end: int = 0  # it ends when more bytes than this are acknowledged
    round_start_us: int = 0
    last_ack_us: int = 0  # when the last of closely spaced acknowledgements came
    samples: int = 0  # of the RTT, up to HYSTART_SAMPLES
    round_least_us: int = NEVER  # the least RTT (curr_rtt)
    # Growth after slow start.
    epoch_ms: int | None = None  # when it began (epoch_start)
    origin: int = 0  # the window from which it began (bic_origin_point)
    counted: int = 0  # acknowledged segments by which Reno's window has not grown yet (ack_cnt)
    friendly: int = 0  # the window that Reno would have (tcp_cwnd)
    # The window and the time of the last computation (last_cwnd, last_time).
    updated_window: int = 0
    updated_ms: int = 0
    per_segment: int = 0  # how many acknowledged segments grow the window by one (cnt)
    credit: int = 0  # as in congestion.additive_increase

    def sample(self, now_us: int, us: int, window: int, acknowledged: int, sent: int,
               pacing: int) -> None:
        """Take the RTT of an acknowledgement (cubictcp_acked, hystart_update).

        us: the RTT. acknowledged, sent: bytes so far. pacing: the pacing rate, bytes a second.
        """
        if self.epoch_ms is not None and now_us // 1000 - self.epoch_ms < 1000:
            return

        us = max(us, 1)
        self.least_us = min(self.least_us, us) if self.least_us else us
        if window >= self.threshold or self.has_ended or not self.hystart:
            return

        if acknowledged > self.round_end:
            self.round_start_us = self.last_ack_us = now_us
            self.round_end, self.samples, self.round_least_us = sent, 0, NEVER
        if window >= HYSTART_WINDOW:
            is_train, is_delayed = self._is_train(now_us, pacing), self._is_delayed(us)
            if is_train or is_delayed:
                self.has_ended, self.threshold, self.ended_at = True, window, window

    def shift(self, now_ms: int, idle_ms: int) -> None:
        """Move the epoch by a pause when sending resumes (cubictcp_cwnd_event_tx_start).

        The pause counts from the last segment that was sent, and the epoch may have begun after
        that segment. So the epoch never moves beyond the present time.
        """
        if self.epoch_ms is not None:
            self.epoch_ms = min(self.epoch_ms + idle_ms, now_ms)

    def reset(self, now_us: int, sent: int) -> None:
        """Forget everything but the threshold after a timeout (bictcp_reset, bictcp_hystart_reset).
        """
        self.epoch_ms, self.least_us, self.per_segment = None, 0, 0
        self.origin = self.counted = self.friendly = self.credit = 0
        self.has_ended = False
        self.updated_window = self.updated_ms = 0
        self.round_start_us = self.last_ack_us = now_us
        self.round_end, self.samples, self.round_least_us = sent, 0, NEVER

    def _is_train(self, now_us: int, pacing: int) -> bool:
        """Whether closely spaced acknowledgements have come for half an RTT."""
        if now_us - self.last_ack_us > HYSTART_SPACING_US:
            return False
        self.last_ack_us = now_us
        cushion_us = min(1000, MAX_BATCH_BYTES * 4_000_000 // pacing)
        return now_us - self.round_start_us > (self.least_us + cushion_us) // 2

    def _is_delayed(self, us: int) -> bool:
        """Whether even a round trip's quickest acknowledgement was late."""
        self.round_least_us = min(self.round_least_us, us)
        if self.samples < HYSTART_SAMPLES:
            self.samples += 1
            return False
        return self.round_least_us > self.least_us + min(max(self.least_us // 8, 4000), 16000)

    def grow(self, now_ms: int, window: int, acknowledged: int) -> int:
        """The window after an acknowledgement (cubictcp_cong_avoid). acknowledged: segments."""
        if window < self.threshold:
            window, acknowledged = slow_start(window, self.threshold, acknowledged)
            if not acknowledged:
                return window
        self._update(now_ms, window, acknowledged)
        window, self.credit = additive_increase(window, self.credit, self.per_segment,
                                                acknowledged)
        return window

    def _update(self, now_ms: int, window: int, acknowledged: int) -> None:
        """Compute how many acknowledged segments grow the window by one (bictcp_update)."""
        self.counted += acknowledged
        if self.updated_window == window and now_ms - self.updated_ms <= 31:  # HZ / 32
            return

        if self.epoch_ms is None or now_ms != self.updated_ms:
            self.updated_window, self.updated_ms = window, now_ms
            if self.epoch_ms is None:
                self.epoch_ms, self.counted = now_ms, acknowledged
                self.friendly = self.origin = window

            # In 1/1024 s, and with the least RTT in ms, rounded up, as the kernel adds it.
            elapsed = ((now_ms - self.epoch_ms - -self.least_us // 1000) << 10) // 1000
            target = self.origin + (410 * elapsed ** 3 >> 40)  # cube_rtt_scale: C = 0.4
            # Before the first loss the window grows by at least 5 % a round trip.
            self.per_segment = min(window // (target - window) if target > window else 20, 20)

        # No slower than Reno.
        step = window * 15 >> 3  # beta_scale
        while self.counted > step:
            self.counted -= step
            self.friendly += 1
        if self.friendly > window:
            self.per_segment = min(self.per_segment, window // (self.friendly - window))
        self.per_segment = max(self.per_segment, 2)


@dataclass(kw_only=True)
class Windowed(Writer):
    """A writer with a congestion window."""

    clock: Clock
    handshake_us: int  # the RTT that this side measured in the handshake
    hystart: bool  # as in Cubic
    restart_after_idle: bool = True  # tcp_slow_start_after_idle
    probes: bool = True  # as in LossTimer
    round_trip: RoundTrip = field(default_factory=RoundTrip)
    cubic: Cubic = field(init=False)
    timer: LossTimer = field(init=False)
    use: WindowUse = field(default_factory=WindowUse)  # whether the window is filled
    used: int = 0  # the most segments in flight since used_at (snd_cwnd_used)
    used_at: int = 0  # when the window last counted as used, jiffies (snd_cwnd_stamp)
    round_end: int = 0  # the sequence number whose acknowledgement ends this round trip
    # The pacing rate, bytes a second. Nothing is paced, but the size of skbs follows from the rate.
    pacing: int = 0
    last_sent_at: int = -MS
    # The window and the threshold before a timeout, until an acknowledgement undoes the timeout.
    before_timeout: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.initial_window = self.window
        self.cubic = Cubic(self.hystart)
        self.round_trip.sample(self.handshake_us, new_round=False)
        self.timer = LossTimer(self.clock, self.round_trip, self.probes)
        self.timer.update_timeout()
        self._pace()

    def restart_idle(self, now: int) -> None:
        """Shrink the window after a pause, before new data is sent (tcp_cwnd_restart)."""
        if self.in_flight or not self.sent:
            return

        idle_ms = self.clock.jiffies(now) - self.clock.jiffies(self.last_sent_at)
        self.cubic.shift(self.clock.us(now) // 1000, idle_ms)
        if idle_ms <= self.timer.timeout or not self.restart_after_idle:
            return

        self.cubic.threshold = remembered_threshold(self.window, self.cubic.threshold)
        self.window = restarted_window(self.window, self.initial_window, idle_ms,
                                       timeout=self.timer.timeout)
        self.used, self.used_at = 0, self.clock.jiffies(now)

    def enter_loss(self, now: int) -> None:
        """Remember the window at a timeout until the timeout is undone (tcp_enter_loss)."""
        if self.before_timeout is None:
            self.before_timeout = (self.window,
                                   remembered_threshold(self.window, self.cubic.threshold))
        self.cubic.reset(self.clock.us(now), self.sent)

    def grow(self, now: int, count: int, first_sent: int, last_sent: int) -> None:
        """Grow the window after an acknowledgement of `count` segments (tcp_cong_avoid).

        first_sent, last_sent: when the first and the last of these segments left.
        """
        new_round = self.acknowledged > self.round_end
        if new_round:
            self.round_end = self.sent

        now_us = self.clock.us(now)
        self.round_trip.sample(now_us - self.clock.us(first_sent), new_round)
        self.timer.update_timeout()
        self.cubic.sample(now_us, now_us - self.clock.us(last_sent),
                          window=1 if self.before_timeout else self.window,
                          acknowledged=self.acknowledged, sent=self.sent, pacing=self.pacing)

        # The time stamp of the acknowledgement shows that nothing was lost (tcp_try_undo_loss).
        if self.before_timeout:
            self.window, self.cubic.threshold = self.before_timeout
            self.before_timeout = None

        self.timer.note_acknowledged(now, self.in_flight)
        if self._is_limited():
            self.window = self.cubic.grow(now_us // 1000, self.window, count)
        self.used_at = self.clock.jiffies(now)
        self._pace()

    def _pace(self) -> None:
        """Compute the pacing rate of the window, or of what is in flight if that is more."""
        self.pace(max(self.window, self.in_flight))

    def pace(self, segments: int) -> None:
        """Compute the pacing rate of `segments` in a round trip (tcp_update_pacing_rate)."""
        percent = 200 if self.window < self.cubic.threshold // 2 else 120
        self.pacing = self.mss * percent * segments * 80_000 // self.round_trip.smoothed_8

    def batch_segments(self) -> int:
        """How many segments may leave as one skb (tcp_tso_autosize)."""
        size = self.pacing >> 10
        shift = self.round_trip.least_us >> 9
        if shift < 32:
            size += MAX_BATCH_BYTES >> shift
        return max(min(size, MAX_BATCH_BYTES) // self.mss, 2)

    def note_use(self, now: int, limited: bool) -> None:
        """Shrink a window that was not filled for a timeout (tcp_cwnd_validate).

        limited: whether the window kept more data from leaving.
        """
        self.use.note(self.acknowledged, self.sent, self.in_flight, limited)
        jiffies = self.clock.jiffies(now)
        if self._is_limited():
            self.used, self.used_at = 0, jiffies
            return

        self.used = max(self.used, self.in_flight)
        if not self.restart_after_idle or jiffies - self.used_at < self.timer.timeout:
            return

        if not self.starved:
            window = shrunk_window(self.window, self.initial_window, self.used)
            if window < self.window:
                self.cubic.threshold = remembered_threshold(self.window, self.cubic.threshold)
                self.window = window
            self.used = 0
        self.used_at = jiffies

    def _is_limited(self) -> bool:
        """Whether the window is filled, so that it may grow."""
        return self.use.may_grow(self.window, self.cubic.threshold)

    def make_room(self, now: int) -> bool:
        """Enlarge a full buffer (Writer); the window then counts as used."""
        grows = super().make_room(now)
        if grows:
            self.used_at = self.clock.jiffies(now)
        return grows
