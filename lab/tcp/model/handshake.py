"""The handshake of a connection that loses nothing, also where its timers are shorter than the RTT.

A SYN and a SYN-ACK are retransmitted after a second, whatever crosses the path
meanwhile; the copies take their place on the link, and each copy of the
SYN-ACK is answered. Times are integer nanoseconds since the first SYN left.
"""

from __future__ import annotations

from functools import partial

from lab.tcp.model.events import Events
from lab.tcp.packets import HEADER_BYTES, SYN_BYTES
from lab.tcp.model.link import Link
from lab.tcp.path import Clock

FIRST_TIMEOUT = 1000  # jiffies (TCP_TIMEOUT_INIT)
LINEAR_TIMEOUTS = 4  # so many SYNs are retransmitted before that doubles (tcp_syn_linear_timeouts)
LEAST_BETWEEN = 500  # jiffies between answers to what is out of place (tcp_invalid_ratelimit)


class Handshake:
    """From the first SYN to the first request at the server.

    connected: when the client has the first SYN-ACK; accepted: when the server
    has its acknowledgement; requested: when the server has the request, which left
    with that. client_us, server_us: the RTT as each side takes it, in whole
    milliseconds where it sent twice. challenges: when each answer to a further
    SYN-ACK left, and when it arrived.
    """

    def __init__(self, events: Events, clock: Clock, up: Link, down: Link, request_bytes: int
                 ) -> None:
        self.events, self.clock, self.up, self.down = events, clock, up, down
        self.request_bytes = request_bytes
        self.connected = self.accepted = self.requested = 0
        self.challenges: list[tuple[int, int]] = []
        self.syns = self.syn_acks = 0
        self.timeouts = 0  # of the server's timer (num_timeout)
        self.requested_at = 0  # when the first SYN reached the server
        self.challenged: int | None = None  # jiffies
        self.server_due: int | None = None
        self._send_syn(0)
        events.run()

    @property
    def client_us(self) -> int:
        return self._round_trip_us(0, self.connected, self.syns)

    @property
    def server_us(self) -> int:
        return self._round_trip_us(self.requested_at, self.accepted, self.syn_acks)

    def _round_trip_us(self, sent: int, heard: int, times: int) -> int:
        """Of what was sent more than once only the time stamps tell it (tcp_rtt_tsopt_us)."""
        if times > 1:
            return 1000 * (self.clock.jiffies(heard) - self.clock.jiffies(sent))
        return self.clock.us(heard) - self.clock.us(sent)

    def _send_syn(self, now: int) -> None:
        """And again when the timer fires (tcp_retransmit_timer)."""
        if self.connected:
            return
        self.syns += 1
        self.up.send(now, SYN_BYTES, self._take_syn)
        wait = FIRST_TIMEOUT << max(0, self.syns - 1 - LINEAR_TIMEOUTS)
        self.events.at(self.clock.expiry(now, self.clock.jiffies(now) + wait), self._send_syn)

    def _take_syn(self, now: int) -> None:
        """Every SYN is answered, and the timer starts anew (tcp_check_req)."""
        self.requested_at = self.requested_at or now
        self._send_syn_ack(now)

    def _send_syn_ack(self, now: int) -> None:
        self.syn_acks += 1
        self.down.send(now, SYN_BYTES, self._take_syn_ack)
        due = self.clock.jiffies(now) + (FIRST_TIMEOUT << self.timeouts)
        self.server_due = self.clock.expiry(now, due)
        self.events.at(self.server_due, self._expire)

    def _expire(self, now: int) -> None:
        """The server has heard nothing for the timer's time (reqsk_timer_handler)."""
        if now == self.server_due and not self.accepted:
            self.timeouts += 1
            self._send_syn_ack(now)

    def _take_syn_ack(self, now: int) -> None:
        """The first one connects; of the others one in half a second is answered."""
        if not self.connected:
            self.connected = now
            self.up.send(now, HEADER_BYTES, self._accept)
            self.up.send(now, HEADER_BYTES + self.request_bytes, self._ask)
            return
        jiffies = self.clock.jiffies(now)
        if self.challenged is None or jiffies - self.challenged >= LEAST_BETWEEN:
            self.challenged = jiffies
            self.up.send(now, HEADER_BYTES, partial(self._hear_challenge, now))

    def _hear_challenge(self, left: int, now: int) -> None:
        self.challenges.append((left, now))

    def _accept(self, now: int) -> None:
        self.accepted = now

    def _ask(self, now: int) -> None:
        self.requested = now
