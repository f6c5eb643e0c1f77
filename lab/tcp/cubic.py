"""CUBIC on a path that loses nothing (tcp_cubic.c), with its HyStart."""

from __future__ import annotations

from dataclasses import dataclass

from lab.tcp.path import NEVER
from lab.tcp.writer import MAX_BATCH_BYTES

HYSTART_WINDOW = 16  # hystart_low_window, segments
HYSTART_SAMPLES = 8  # HYSTART_MIN_SAMPLES
HYSTART_SPACING_US = 2000  # hystart_ack_delta_us


@dataclass
class Cubic:
    """CUBIC as far as it goes without loss: HyStart, then growth from there (tcp_cubic.c).

    hystart: whether there is any; without, slow start never ends, as Reno's.
    threshold: ssthresh, segments. ended_at: the window at which HyStart ended
    slow start, 0 before; found: whether it did since the last timeout.
    """

    hystart: bool = True
    threshold: int = 1 << 30
    ended_at: int = 0
    found: bool = False
    least_us: int = 0
    round_end: int = 0
    round_start_us: int = 0
    last_ack_us: int = 0
    samples: int = 0
    round_least_us: int = NEVER
    epoch_ms: int | None = None
    origin: int = 0
    counted: int = 0
    friendly: int = 0
    updated_window: int = 0
    updated_ms: int = 0
    per_segment: int = 0
    credit: int = 0

    def sample(self, now_us: int, us: int, window: int, acknowledged: int, sent: int,
               pacing: int) -> None:
        """An acknowledgement's RTT (cubictcp_acked, hystart_update).

        acknowledged, sent: bytes; pacing: bytes a second.
        """
        if self.epoch_ms is not None and now_us // 1000 - self.epoch_ms < 1000:
            return
        us = max(us, 1)
        self.least_us = min(self.least_us, us) if self.least_us else us
        if window >= self.threshold or self.found or not self.hystart:
            return
        if acknowledged > self.round_end:
            self.round_start_us = self.last_ack_us = now_us
            self.round_end, self.samples, self.round_least_us = sent, 0, NEVER
        if window >= HYSTART_WINDOW:
            train, delay = self._is_train(now_us, pacing), self._is_delayed(us)
            if train or delay:
                self.found, self.threshold, self.ended_at = True, window, window

    def shift(self, now_ms: int, idle_ms: int) -> None:
        """Sending starts again after a pause (cubictcp_cwnd_event_tx_start).

        The epoch moves by the pause, but never beyond now: the pause counts
        from what was sent last, and the epoch may have begun after that.
        """
        if self.epoch_ms is not None:
            self.epoch_ms = min(self.epoch_ms + idle_ms, now_ms)

    def reset(self, now_us: int, sent: int) -> None:
        """A timeout forgets all but the threshold (bictcp_reset, bictcp_hystart_reset)."""
        self.epoch_ms, self.least_us, self.per_segment = None, 0, 0
        self.origin = self.counted = self.friendly = self.credit = 0
        self.found = False
        self.updated_window = self.updated_ms = 0
        self.round_start_us = self.last_ack_us = now_us
        self.round_end, self.samples, self.round_least_us = sent, 0, NEVER

    def _is_train(self, now_us: int, pacing: int) -> bool:
        """Whether closely spaced acknowledgements last for half an RTT."""
        if now_us - self.last_ack_us > HYSTART_SPACING_US:
            return False
        self.last_ack_us = now_us
        cushion_us = min(1000, MAX_BATCH_BYTES * 4_000_000 // pacing)
        return now_us - self.round_start_us > (self.least_us + cushion_us) // 2

    def _is_delayed(self, us: int) -> bool:
        """Whether even the quickest of a round's acknowledgements was late."""
        self.round_least_us = min(self.round_least_us, us)
        if self.samples < HYSTART_SAMPLES:
            self.samples += 1
            return False
        return self.round_least_us > self.least_us + min(max(self.least_us // 8, 4000), 16000)

    def grow(self, now_ms: int, window: int, acknowledged: int) -> int:
        """The window after so many segments were acknowledged (cubictcp_cong_avoid)."""
        if window < self.threshold:
            grown = min(window + acknowledged, self.threshold)
            acknowledged -= grown - window
            window = grown
            if not acknowledged:
                return window
        self._update(now_ms, window, acknowledged)
        if self.credit >= self.per_segment:  # tcp_cong_avoid_ai
            self.credit = 0
            window += 1
        self.credit += acknowledged
        window += self.credit // self.per_segment
        self.credit %= self.per_segment
        return window

    def _update(self, now_ms: int, window: int, acknowledged: int) -> None:
        """How many acknowledged segments grow the window by one (bictcp_update)."""
        self.counted += acknowledged
        if self.updated_window == window and now_ms - self.updated_ms <= 31:  # HZ / 32
            return
        if self.epoch_ms is None or now_ms != self.updated_ms:
            self.updated_window, self.updated_ms = window, now_ms
            if self.epoch_ms is None:
                self.epoch_ms, self.counted = now_ms, acknowledged
                self.friendly = self.origin = window
            elapsed = ((now_ms - self.epoch_ms - -self.least_us // 1000) << 10) // 1000
            target = self.origin + (410 * elapsed ** 3 >> 40)
            # As nothing was lost yet, by 5 % a round trip at least.
            self.per_segment = min(window // (target - window) if target > window else 20, 20)
        step = window * 15 >> 3  # beta_scale
        while self.counted > step:
            self.counted -= step
            self.friendly += 1
        if self.friendly > window:
            self.per_segment = min(self.per_segment, window // (self.friendly - window))
        self.per_segment = max(self.per_segment, 2)
