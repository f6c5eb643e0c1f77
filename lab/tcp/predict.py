"""The lossless transfer, computed: what a fetch must take if nothing goes wrong.

`predict` follows every segment and every acknowledgement of one fetch on an
idle path, by the rules of Linux (sender.py, cubic.py, receiver.py), and is
exact to microseconds.

What `predict` knows: the handshake, the request and the server's immediate
acknowledgement of it; store-and-forward serialisation both ways; slow start
and its end by HyStart, then CUBIC's growth; the send buffer; the receiver's
quick and delayed acknowledgements, its window from initrwnd on, and its
buffer, which grows with the transfer; a response in two writes, and one that
follows another on the same connection.

It knows the timers as well, which some networks outlast: tail loss probes,
timeouts and their undoing at the server, a request that the client repeats.

What it does not know: loss; SYNs that are sent again, where the RTT exceeds a
second; other congestion controls than cubic and reno; computing time at the
hosts. Timers count in milliseconds of the kernel's clock: `clock_phase_ns`
says how they fall.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

from lab.tcp.packets import HEADER_BYTES, MSS, SYN_BYTES, TIMESTAMP_BYTES
from lab.tcp.path import Clock, Link, Sent
from lab.tcp.receiver import RECEIVE_BUFFERS, Receiver, receive_window
from lab.tcp.sender import Sender
from lab.tcp.timers import LossTimer
from lab.tcp.writer import SEND_BUFFERS

DSACK_BYTES = 12  # one block, with padding (RFC 2018)
CONGESTION_CONTROLS = ("cubic", "reno")  # those that `predict` follows


@dataclass(frozen=True)
class Transfer:
    """What decides a lossless fetch.

    rtt_ms: propagation both ways; bandwidth_kbps, uplink_kbps: towards and
        from the client, Ethernet headers counted, math.inf for no limit.
    initcwnd, initrwnd: segments.
    response_bytes, request_bytes: payload, HTTP headers included.
    burst_bytes, gap_ms: a response in two writes: so much of it at once, the
        rest after that time; gap_ms 0 for one write.
    restart_after_idle: tcp_slow_start_after_idle; loss_probes: whether
        tcp_early_retrans allows any.
    earlier_bytes, earlier_request_bytes: of a response fetched before on the
        same connection; 0 for none.
    clock_phase_ns: how far into a millisecond of the kernel's clock the first
        SYN leaves (exchange.clock_phase_ns).
    receive_buffers, send_buffers: bytes, at first and at most (tcp_rmem, tcp_wmem).
    """

    rtt_ms: float
    bandwidth_kbps: float
    uplink_kbps: float
    initcwnd: int
    initrwnd: int
    response_bytes: int
    request_bytes: int
    burst_bytes: int = 0
    gap_ms: float = 0.0
    restart_after_idle: bool = True
    loss_probes: bool = True
    earlier_bytes: int = 0
    earlier_request_bytes: int = 0
    mss: int = MSS
    congestion_control: str = "cubic"
    clock_phase_ns: int = 2_000
    receive_buffers: tuple[int, int] = RECEIVE_BUFFERS
    send_buffers: tuple[int, int] = SEND_BUFFERS


@dataclass(frozen=True)
class Prediction:
    """When a lossless fetch gets where, in ms from its start.

    started_ms: of this fetch, from the first SYN; 0 on a connection of its own.
    connect_ms, first_byte_ms, total_ms: at the client; connect_ms is 0 on a
        connection that is there already. latency_ms: the paper's metric at
        the server, first segment sent to last one acknowledged.
    first_flight: segments sent before the connection's first acknowledgement
        of data.
    peak_queue: packets at the bottleneck at most, the one being sent included.
    slow_start_end: the window at which HyStart ended slow start, 0 if it did not.
    retransmissions: segments that the server's timers send again, all of them in vain.
    """

    started_ms: float
    connect_ms: float
    first_byte_ms: float
    total_ms: float
    latency_ms: float
    first_flight: int
    peak_queue: int
    slow_start_end: int
    retransmissions: int = 0


@lru_cache(maxsize=4096)
def predict(transfer: Transfer) -> Prediction:
    """Follow one lossless fetch segment by segment; see the module's docstring."""
    down = Link(transfer.rtt_ms, transfer.bandwidth_kbps)
    up = Link(transfer.rtt_ms, transfer.uplink_kbps)
    asked = up.send(0, SYN_BYTES)
    connected = down.send(asked, SYN_BYTES)
    accepted = up.send(connected, HEADER_BYTES)
    course = _Course(transfer, down, up, connected, accepted - asked)
    course.run()
    started = course.started
    return Prediction(
        started_ms=started / 1e6, connect_ms=0.0 if started else connected / 1e6,
        first_byte_ms=(course.first_arrival - started) / 1e6,
        total_ms=(course.last_arrival - started) / 1e6,
        latency_ms=(course.last_acknowledged - course.first_sent) / 1e6,
        first_flight=course.first_flight, peak_queue=down.peak_queue,
        slow_start_end=course.sender.cubic.ended_at,
        retransmissions=course.sender.retransmitted)


class _Course:
    """A connection from its first request on: events in order of time, until all is acknowledged.

    started: when the client began the fetch that counts, 0 for the first;
    first_sent: its first segment at the server. Both, and the arrivals, are
    overwritten by a later fetch on the connection.
    """

    def __init__(self, transfer: Transfer, down: Link, up: Link, connected: int,
                 handshake_ns: int) -> None:
        self.clock = clock = Clock(transfer.clock_phase_ns)
        self.sender = Sender(
            mss=transfer.mss, window=transfer.initcwnd,
            window_end=receive_window(transfer.initrwnd, transfer.receive_buffers,
                                      transfer.mss + TIMESTAMP_BYTES),
            buffers=transfer.send_buffers, handshake_us=handshake_ns // 1000,
            clock=clock, hystart=transfer.congestion_control == "cubic",
            restart_after_idle=transfer.restart_after_idle, probes=transfer.loss_probes)
        self.receiver = Receiver(transfer.initrwnd, transfer.mss, connected, clock,
                                 transfer.receive_buffers)
        self.request_timer = LossTimer(clock, self.receiver.sent_round_trip, transfer.loss_probes)
        self.transfer, self.down, self.up = transfer, down, up
        self.connected = connected
        self.echo = connected  # when the client sent what the server heard last
        self.expected = 0  # bytes, when all that was asked for has arrived
        self.events: list[tuple[int, int, Callable[[int], None]]] = []
        self.count = 0
        self.timer_set: int | None = None
        self.started = self.first_arrival = self.last_arrival = 0
        self.first_sent = self.last_acknowledged = 0
        self.first_flight = 0

    def run(self) -> None:
        if self.transfer.earlier_bytes:
            self.expected = self.transfer.earlier_bytes
            asked = self.transfer.earlier_request_bytes
        else:
            self.expected = self.transfer.response_bytes
            asked = self.transfer.request_bytes
        self._at(self.up.send(self.connected, HEADER_BYTES + asked), self._first_request)
        while self.events:
            now, _, happen = heapq.heappop(self.events)
            happen(now)

    def _at(self, when: int, happen: Callable[[int], None]) -> None:
        self.count += 1  # keeps what happens at one time in order
        heapq.heappush(self.events, (when, self.count, happen))

    def _first_request(self, now: int) -> None:
        # The server's kernel acknowledges the first request before it is answered.
        acknowledged = self.down.send(now, HEADER_BYTES)
        self.receiver.sent_round_trip.sample((acknowledged - self.connected) // 1000,
                                             new_round=True)
        if self.transfer.earlier_bytes:
            self._send(now, self.sender.write(now, self.transfer.earlier_bytes, last=False))
        else:
            self._answer(now)

    def _next_request(self, now: int) -> None:
        """Right after the earlier response; its acknowledgement rides on the answer."""
        upto, window_end = self.receiver.ask(now)
        self.started, self.first_arrival = now, 0
        self.expected += self.transfer.response_bytes
        arrival = self.up.send(now, HEADER_BYTES + self.transfer.request_bytes)
        self._at(arrival, partial(self._acknowledged, upto, window_end, now, False))
        self._at(arrival, self._answer)
        self.request_timer.sampled()
        self.request_timer.sent(now, was_idle=True, packets=1, oldest_sent_at=now)
        self._at(self.request_timer.at or now, self._ask_again)

    def _ask_again(self, now: int) -> None:
        """The client's timer is due, and the answer is not there."""
        timer = self.request_timer
        if timer.at != now:
            return
        self._at(self.up.send(now, HEADER_BYTES + self.transfer.request_bytes),
                 self._refuse)
        timer.at, timer.repeated = None, True
        if timer.probe:
            timer.restart(now)
        else:
            timer.back_off(now)
        self._at(timer.at or now, self._ask_again)

    def _refuse(self, now: int) -> None:
        """The server has the request already, and says so (DSACK)."""
        self.down.send(now, HEADER_BYTES + DSACK_BYTES)

    def _take_answer(self, now: int) -> None:
        """The answer acknowledges the request; if that was repeated only stamps tell the RTT."""
        us = (now - self.started) // 1000
        if self.request_timer.repeated:
            us = 1000 * (self.clock.jiffies(now) - self.clock.jiffies(self.started))
        self.receiver.sent_round_trip.sample(us, new_round=True)
        self.request_timer.at = None

    def _answer(self, now: int) -> None:
        self.first_sent = now
        size, gap_ns = self.transfer.response_bytes, round(self.transfer.gap_ms * 1e6)
        if gap_ns and self.transfer.burst_bytes < size:
            self._send(now, self.sender.write(now, self.transfer.burst_bytes, last=False))
            self._at(now + gap_ns, self._answer_rest)
        else:
            self._write_last(now, size)

    def _answer_rest(self, now: int) -> None:
        self._write_last(now, self.transfer.response_bytes - self.transfer.burst_bytes)

    def _write_last(self, now: int, size: int) -> None:
        closes = not self.transfer.earlier_bytes
        self._send(now, self.sender.write(now, size, last=closes))
        if closes and self.sender.write_fin(now):
            self.down.send(now, HEADER_BYTES)  # no data is left for the FIN to ride on

    def _send(self, now: int, segments: list[Sent]) -> None:
        for segment in segments:
            arrival = self.down.send(now, HEADER_BYTES + segment.payload)
            if segment.payload:
                self._at(arrival, partial(self._receive_again if segment.again else
                                          self._receive, segment, self.echo))
        due = self.sender.timer.at
        if due is not None and due != self.timer_set:
            self.timer_set = due
            self._at(due, self._expire)

    def _expire(self, now: int) -> None:
        """The sender's timer is due, unless it was set anew meanwhile."""
        if self.sender.timer.at == now:
            self._send(now, self.sender.expire(now))

    def _receive_again(self, _segment: Sent, _echo: int, now: int) -> None:
        """A segment that is there already is acknowledged at once, as such (DSACK, RFC 2883)."""
        self.receiver.receive_again()
        self._acknowledge(now, DSACK_BYTES)

    def _receive(self, segment: Sent, echo: int, now: int) -> None:
        if self.started and not self.first_arrival:
            self._take_answer(now)
        self.first_arrival = self.first_arrival or now
        self.last_arrival = now
        at_once = self.receiver.receive(now, segment, echo)
        complete = self.receiver.received == self.expected
        is_last = complete and self.expected == (self.transfer.earlier_bytes
                                                 + self.transfer.response_bytes)
        if at_once or is_last:  # with its last byte the client closes: that FIN acknowledges
            self._acknowledge(now)
        elif not complete:
            due = self.receiver.delay(now)
            if due is None:
                self._acknowledge(now)
            else:
                self._at(due, self._acknowledge_late)
        if complete and not is_last:
            self._next_request(now)

    def _acknowledge_late(self, now: int) -> None:
        if self.receiver.timer_at == now:
            self.receiver.lose_patience()
            self._acknowledge(now)

    def _acknowledge(self, now: int, option_bytes: int = 0) -> None:
        upto, window_end = self.receiver.acknowledge()
        self._at(self.up.send(now, HEADER_BYTES + option_bytes),
                 partial(self._acknowledged, upto, window_end, now, bool(option_bytes)))

    def _acknowledged(self, upto: int, window_end: int, sent_at: int, duplicate: bool, now: int
                      ) -> None:
        self.first_flight = self.first_flight or self.sender.in_flight - self.sender.beyond
        self.echo = sent_at
        if upto > self.sender.acknowledged:
            self.last_acknowledged = now
        self.sender.acknowledge(now, upto, window_end, duplicate)
        self._send(now, self.sender.transmit(now))
        self._send(now, self.sender.write_on(now))
