"""The timer of a Linux TCP sender, which serves both tail loss probes and retransmissions.

Times are integer nanoseconds since the first SYN left.
"""

from __future__ import annotations

from dataclasses import dataclass

from firstflight.net.path import LEAST_TIMEOUT_US, Clock, RoundTrip

FIRST_PROBE = 1000  # jiffies, without a sample of the RTT (TCP_TIMEOUT_INIT)
LONGEST_TIMEOUT = 120_000  # jiffies (TCP_RTO_MAX)
# After this time from the first of successive timeouts a connection is given up. It is the time
# that 15 timeouts take if the first one is the shortest possible (tcp_retries2, tcp_model_timeout).
GIVEN_UP_MS = 924_600


@dataclass
class LossTimer:
    """The timer by which a sender without acknowledgements retransmits or sends a probe."""

    clock: Clock
    round_trip: RoundTrip
    probes: bool  # whether the sender sends probes at all (tcp_early_retrans)
    timeout: int = 0  # jiffies (icsk_rto)
    at: int | None = None  # when the timer fires; None while it does not run
    probe: bool = False  # whether it fires for a probe (ICSK_TIME_LOSS_PROBE)
    due: int = 0  # when it is due, jiffies, before the timer wheel rounds them up
    # Bytes that were sent when the last probe left; 0 once they are acknowledged (tlp_high_seq).
    probed_upto: int = 0
    repeated: bool = False  # whether the last probe repeated data
    open: bool = True  # whether nothing counts as lost or retransmitted (TCP_CA_Open)
    # When the first of successive timeouts retransmitted, jiffies (retrans_stamp).
    backed_off_at: int | None = None

    def update_timeout(self) -> None:
        """Follow a new estimate of the RTT (tcp_set_rto)."""
        self.timeout = min(-(-self.round_trip.timeout_us // 1000), LONGEST_TIMEOUT)  # rounded up

    def restart(self, now: int) -> None:
        """Start the full retransmission timeout now (tcp_rearm_rto)."""
        self._start(now, self.timeout, probe=False)

    def resume(self, now: int, oldest_sent_at: int) -> None:
        """Start the rest of the timeout, after a probe that was not sent (tcp_rearm_rto)."""
        self._start(now, -(-max(self._left_us(now, oldest_sent_at), 1) // 1000), probe=False)

    def note_sent(self, now: int, was_idle: bool, packets: int, oldest_sent_at: int) -> None:
        """Note that new data left (tcp_event_new_data_sent, tcp_write_xmit).

        was_idle: whether nothing was in flight before. packets: how many packets are in flight now.
        oldest_sent_at: when the oldest packet in flight left.
        """
        if was_idle:
            self.restart(now)
        elif self.probe and self.at is not None:
            self.resume(now, oldest_sent_at)
        if self.probes and self.open:
            self._start_probe(now, packets, self._left_us(now, oldest_sent_at))

    def note_acknowledged(self, now: int, packets: int) -> None:
        """Note that new data was acknowledged (tcp_set_xmit_timer).

        packets: how many packets are still in flight.
        """
        self.backed_off_at = None
        if not packets:
            self.at = None
        elif self.probes and self.open:
            self._start_probe(now, packets, self.timeout * 1000)
        else:
            self.restart(now)

    def back_off(self, now: int) -> None:
        """Double the timeout after it has fired and data was retransmitted (tcp_retransmit_timer).
        """
        if self.backed_off_at is None:
            self.backed_off_at = self.clock.jiffies(now)
        self.timeout = min(2 * self.timeout, LONGEST_TIMEOUT)
        self.restart(now)

    def gives_up(self, now: int) -> bool:
        """Whether the timer fires for the last time, so the connection ends (tcp_write_timeout)."""
        return (self.backed_off_at is not None
                and self.clock.jiffies(now) - self.backed_off_at >= GIVEN_UP_MS)

    def _start_probe(self, now: int, packets: int, until_timeout_us: int) -> None:
        """Start the timer for a probe (tcp_schedule_loss_probe).

        packets: how many packets are in flight. until_timeout_us: the retransmission timeout; the
        probe does not come later.
        """
        wait = FIRST_PROBE
        if self.round_trip.smoothed_8:
            # Two RTTs. The acknowledgement of a single segment may be delayed.
            spare_us = LEAST_TIMEOUT_US if packets == 1 else 2000
            wait = -(-((self.round_trip.smoothed_8 >> 2) + spare_us) // 1000)

        if until_timeout_us > 0:
            wait = min(wait, -(-until_timeout_us // 1000))
        self._start(now, wait, probe=True)

    def _start(self, now: int, wait: int, probe: bool) -> None:
        """Start the timer. wait: jiffies from now."""
        due = self.clock.jiffies(now) + wait
        self.probe = probe
        if self.at is None or due != self.due:  # else the timer stays in its slot (__mod_timer)
            self.due, self.at = due, self.clock.expiry(now, due)

    def _left_us(self, now: int, oldest_sent_at: int) -> int:
        """The time left until the timeout of the oldest packet in flight (tcp_rto_delta_us)."""
        return self.clock.us(oldest_sent_at) + self.timeout * 1000 - self.clock.us(now)
