"""The lossless transfer, computed: what a fetch must take if nothing goes wrong.

Two models. The paper's closed forms count rounds and add the time to send.
`predict` follows every segment and every acknowledgement of one fetch on an
idle path by the rules of Linux (6.1 to 7.2; functions are named where they
are followed), and is exact to microseconds.

What `predict` knows: the handshake, the request and the server's immediate
acknowledgement of it; store-and-forward serialisation both ways; slow start
and its end by HyStart, then CUBIC's growth; the receiver's quick and delayed
acknowledgements; its window from initrwnd on, and the receive buffer that
grows with the transfer.

What it does not know: loss, and any timer of the sender, which `timer_causes`
only foresees; a send buffer that runs dry; computing time at the hosts.
Delayed acknowledgements and CUBIC's clock tick in milliseconds of the
kernel's: where either matters the model may be off by one.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from dataclasses import dataclass, field
from functools import lru_cache

ETHERNET_BYTES = 14
# IPv4, TCP and the timestamp option, with padding (RFC 7323).
HEADER_BYTES = ETHERNET_BYTES + 20 + 20 + 12
# IPv4, TCP and the options of a SYN: MSS, SACK permitted, timestamp, scale.
SYN_BYTES = ETHERNET_BYTES + 20 + 20 + 20
MSS = 1448  # Ethernet's 1500 bytes less IPv4, TCP and timestamps

# Why TCP sends again what was not lost.
SYN_TIMER = "SYN timer (1 s) shorter than the RTT"
SYN_ACK_TIMER = "SYN-ACK timer (1 s) shorter than the RTT"
FALLBACK_TIMER = "retransmission timer (3 s after a retransmitted SYN-ACK) shorter than the RTT"
RETRANSMISSION_TIMER = "retransmission timer shorter than the wait in the queue"
PROBE = "tail loss probe: the acknowledgement takes longer than 2 SRTT"

_SYN_TIMER_NS = 1_000_000_000  # TCP_TIMEOUT_INIT
_LEAST_TIMER_US = 200_000  # TCP_RTO_MIN
_MS, _S = 1_000_000, 1_000_000_000  # nanoseconds

# The receiver.
_SYN_MSS = 1460  # what the receive window is counted in (tcp_select_initial_window)
_WINDOW_SCALE = 128  # with the default tcp_rmem[2] of 6 MB
_DEFAULT_WINDOW = 44 * _SYN_MSS  # half of tcp_rmem[1], in whole segments
_DEFAULT_LIMIT = 65536 - MSS  # and a segment less for itself (tcp_init_buffer_space)
_RECEIVE_BUFFER, _MAX_RECEIVE_BUFFER = 131072, 6291456  # tcp_rmem[1], tcp_rmem[2]
# Memory that a received segment takes beyond its payload, and the share of payload
# in 256ths (sk_buff.truesize, tcp_measure_rcv_mss).
_SEGMENT_OVERHEAD = 832
_PAYLOAD_SHARE = MSS * 256 // (MSS + _SEGMENT_OVERHEAD)
_MAX_QUICK_ACKS = 16  # TCP_MAX_QUICKACKS
_DELAYED_ACK_MS = 40  # TCP_DELACK_MIN, TCP_ATO_MIN
_MAX_DELAYED_ACK_MS = 200  # TCP_DELACK_MAX

# The sender.
_HYSTART_WINDOW = 16  # hystart_low_window, segments
_HYSTART_SAMPLES = 8
_HYSTART_SPACING_US = 2000  # hystart_ack_delta_us
_MAX_SUPER_SEGMENT = 65536 - 320 - 1  # sk_gso_max_size


@dataclass(frozen=True)
class Transfer:
    """What decides a lossless fetch.

    rtt_ms: propagation both ways; bandwidth_kbps, uplink_kbps: towards and
        from the client, Ethernet headers counted, math.inf for no limit.
    initcwnd, initrwnd: segments.
    response_bytes, request_bytes: payload, HTTP headers included.
    clock_phase_ns: how far into a millisecond of the kernel's clock the first
        SYN left (lab.wire.clock_phase_ns); matters to long responses alone.
    """

    rtt_ms: float
    bandwidth_kbps: float
    uplink_kbps: float
    initcwnd: int
    initrwnd: int
    response_bytes: int
    request_bytes: int
    clock_phase_ns: int = 500_000
    mss: int = MSS


@dataclass(frozen=True)
class Prediction:
    """When a lossless fetch gets where, in ms from the first SYN.

    connect_ms, first_byte_ms, total_ms: at the client; latency_ms: the
        paper's metric at the server, first segment sent to last one
        acknowledged.
    first_flight: segments sent before the first acknowledgement of data.
    peak_queue: packets at the bottleneck at most, the one being sent included.
    largest_window: the congestion window at the end, segments.
    slow_start_end: the window at which HyStart ended slow start, 0 if it did not.
    timer_causes: see the function of that name.
    """

    connect_ms: float
    first_byte_ms: float
    total_ms: float
    latency_ms: float
    first_flight: int
    peak_queue: int
    largest_window: int
    slow_start_end: int
    timer_causes: tuple[str, ...]


def eq1_latency_s(response_segments: float, initcwnd: int, rtt_s: float,
                  sending_s: float, gamma: float = 1.5) -> float:
    """Equation 1 of the paper (section 1).

    latency = ⌈log_γ(S(γ−1)/IW + 1)⌉·RTT + S/C, seconds; sending_s is S/C.
    γ is 1.5 with delayed acknowledgements, 2 with one for every segment.
    """
    return rounds(response_segments, initcwnd, gamma) * rtt_s + sending_s


def eq2_latency_s(slow_start_rounds: int, rtt_s: float, response_bytes: int,
                  bandwidth_kbps: float) -> float:
    """Equation 2 of the paper (section 4.1): N_slowstart·RTT + size/BW, seconds."""
    return slow_start_rounds * rtt_s + response_bytes * 8 / (bandwidth_kbps * 1000)


def rounds(segments: float, initcwnd: int, gamma: float = 2.0) -> int:
    """Round trips to send that many segments from that initial window: ⌈log_γ(S(γ−1)/IW + 1)⌉.

    gamma: what a window grows by per round trip; 2 where every segment is
    acknowledged, 1.5 with delayed acknowledgements.
    """
    if segments <= 0 or initcwnd <= 0 or gamma <= 1:
        raise ValueError(f"rounds of {segments} segments from window {initcwnd}, gamma {gamma}")
    count = math.log(segments * (gamma - 1) / initcwnd + 1, gamma)
    # A window that fits exactly must not need one round more by rounding.
    return max(1, math.ceil(count - 1e-9))


@lru_cache(maxsize=4096)
def predict(transfer: Transfer) -> Prediction:
    """Follow one lossless fetch segment by segment; see the module's docstring."""
    down = _Link(transfer.rtt_ms, transfer.bandwidth_kbps)
    up = _Link(transfer.rtt_ms, transfer.uplink_kbps)
    asked = up.send(0, SYN_BYTES)
    connected = down.send(asked, SYN_BYTES)
    accepted = up.send(connected, HEADER_BYTES)
    requested = up.send(connected, HEADER_BYTES + transfer.request_bytes)
    down.send(requested, HEADER_BYTES)  # the request is acknowledged before it is answered
    course = _Course(transfer, down, up, connected, requested, accepted - asked)
    course.run()
    causes = [cause for cause, waited in ((SYN_TIMER, connected), (SYN_ACK_TIMER,
                                                                   accepted - asked))
              if waited > _SYN_TIMER_NS] + course.sender.timers.causes
    return Prediction(
        connect_ms=connected / 1e6, first_byte_ms=course.first_arrival / 1e6,
        total_ms=course.last_arrival / 1e6,
        latency_ms=(course.last_acknowledged - requested) / 1e6,
        first_flight=course.first_flight, peak_queue=down.peak_queue,
        largest_window=course.sender.window, slow_start_end=course.sender.cubic.ended_at,
        timer_causes=tuple(causes))


def timer_causes(transfer: Transfer) -> tuple[str, ...]:
    """Why this fetch may send something again though nothing is lost; () for most.

    A timer of a second on the first SYN and SYN-ACK (RFC 6298, 2.1; Linux
    keeps it, RTTs above it are repeated for); the tail loss probe after two
    smoothed RTTs (RFC 8985, 7.2) and the retransmission timer, both of which
    know nothing but the handshake's small packets when the first full
    segments queue at a slow bottleneck. Foreseen on the course without them,
    so that after the first the later ones are possible rather than certain.
    Linux rounds timers up by as much as an eighth, and keeps still while the
    first copy is in a queue of the same machine (skb_still_in_host_queue).
    """
    return predict(transfer).timer_causes


class _Link:
    """One direction: half the RTT, then a rate stage, store and forward. Times in ns."""

    def __init__(self, rtt_ms: float, rate_kbps: float) -> None:
        self.delay_ns = round(rtt_ms * 1e6 / 2)
        # netem takes whole bytes a second.
        self.bytes_per_s = rate_kbps if math.isinf(rate_kbps) else round(rate_kbps * 1000) // 8
        self.departures: deque[int] = deque()
        self.free_at = 0
        self.peak_queue = 0

    def send(self, now: int, frame_bytes: int) -> int:
        """When a frame that leaves now has arrived."""
        reached = now + self.delay_ns
        while self.departures and self.departures[0] <= reached:
            self.departures.popleft()
        self.free_at = max(reached, self.free_at) + int(frame_bytes * 1e9 / self.bytes_per_s)
        self.departures.append(self.free_at)
        self.peak_queue = max(self.peak_queue, len(self.departures))
        return self.free_at


@dataclass
class _RoundTrip:
    """The server's RTT estimate, µs (tcp_rtt_estimator)."""

    smoothed_8: int = 0
    deviation_4: int = 0
    worst_4: int = 0
    variance_4: int = 0
    least: int = 1 << 62

    def sample(self, us: int, new_round: bool) -> None:
        self.least = min(self.least, us)
        if not self.smoothed_8:
            self.smoothed_8, self.deviation_4 = us * 8, us * 2
            self.variance_4 = self.worst_4 = max(self.deviation_4, _LEAST_TIMER_US)
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
            self.worst_4 = _LEAST_TIMER_US

    @property
    def smoothed_us(self) -> int:
        return self.smoothed_8 >> 3

    @property
    def timeout_us(self) -> int:
        return self.smoothed_us + self.variance_4


@dataclass
class _Timers:
    """When the server's timers would run out; `causes` collects those that would."""

    probe_at: int = 0
    timeout_at: int = 0
    causes: list[str] = field(default_factory=list)

    def check(self, now: int) -> None:
        for at, cause in ((self.probe_at, PROBE), (self.timeout_at, RETRANSMISSION_TIMER)):
            if at and now > at and cause not in self.causes:
                self.causes.append(cause)

    def set(self, now: int, first_sent: int, in_flight: int, round_trip: _RoundTrip) -> None:
        """After a transmission or an acknowledgement (tcp_schedule_loss_probe)."""
        if not in_flight:
            self.probe_at = self.timeout_at = 0
            return
        probe_us = 2 * round_trip.smoothed_us + (_LEAST_TIMER_US if in_flight == 1 else 2000)
        self.timeout_at = first_sent + round_trip.timeout_us * 1000
        self.probe_at = min(now + probe_us * 1000, now + round_trip.timeout_us * 1000)


@dataclass
class _Cubic:
    """CUBIC as far as it goes without loss: HyStart, then growth from that point (tcp_cubic.c)."""

    threshold: int = 1 << 30  # ssthresh, segments
    ended_at: int = 0
    least_us: int = 0
    round_end: int = 0
    round_start_us: int = 0
    last_ack_us: int = 0
    samples: int = 0
    round_least_us: int = 1 << 62
    epoch_ms: int | None = None
    origin: int = 0
    counted: int = 0
    friendly: int = 0
    fresh_at: tuple[int, int] = (0, 0)  # window and ms of the last update
    per_segment: int = 0
    credit: int = 0

    def sample(self, now: int, us: int, window: int, acknowledged: int, sent: int,
               pacing: float) -> None:
        """An acknowledgement's RTT (cubictcp_acked, hystart_update)."""
        if self.epoch_ms is not None and now // _MS - self.epoch_ms < 1000:
            return
        us = max(us, 1)
        self.least_us = min(self.least_us, us) if self.least_us else us
        if self.ended_at or window >= self.threshold:
            return
        now_us = now // 1000
        if acknowledged > self.round_end:
            self.round_start_us = self.last_ack_us = now_us
            self.round_end, self.samples, self.round_least_us = sent, 0, 1 << 62
        if window >= _HYSTART_WINDOW and (self._train(now_us, pacing) | self._delay(us)):
            self.threshold = self.ended_at = window

    def _train(self, now_us: int, pacing: float) -> bool:
        if now_us - self.last_ack_us > _HYSTART_SPACING_US:
            return False
        self.last_ack_us = now_us
        cushion_us = min(1000, int(_MAX_SUPER_SEGMENT * 4e6 / pacing)) if pacing else 0
        return now_us - self.round_start_us > (self.least_us + cushion_us) // 2

    def _delay(self, us: int) -> bool:
        self.round_least_us = min(self.round_least_us, us)
        if self.samples < _HYSTART_SAMPLES:
            self.samples += 1
            return False
        return self.round_least_us > self.least_us + min(max(self.least_us // 8, 4000), 16000)

    def grow(self, now: int, window: int, acknowledged: int) -> int:
        """The window after that many segments were acknowledged (cubictcp_cong_avoid)."""
        if window < self.threshold:
            grown = min(window + acknowledged, self.threshold)
            acknowledged -= grown - window
            window = grown
            if not acknowledged:
                return window
        self._update(now // _MS, window, acknowledged)
        # tcp_cong_avoid_ai
        if self.credit >= self.per_segment:
            self.credit = 0
            window += 1
        self.credit += acknowledged
        if self.credit >= self.per_segment:
            more = self.credit // self.per_segment
            self.credit -= more * self.per_segment
            window += more
        return window

    def _update(self, now_ms: int, window: int, acknowledged: int) -> None:
        """How many acknowledged segments grow the window by one (bictcp_update)."""
        self.counted += acknowledged
        if self.fresh_at[0] == window and now_ms - self.fresh_at[1] <= 31:
            return
        if self.epoch_ms is None or now_ms != self.fresh_at[1]:
            self.fresh_at = (window, now_ms)
            if self.epoch_ms is None:
                self.epoch_ms, self.counted = now_ms, acknowledged
                self.friendly = self.origin = window
            offset = ((now_ms - self.epoch_ms + self.least_us // 1000) << 10) // 1000
            target = self.origin + (410 * offset ** 3 >> 40)
            # Nothing was lost yet: no slower than 5 % a round trip.
            self.per_segment = min(window // (target - window) if target > window
                                   else 100 * window, 20)
        step = window * 15 >> 3
        while self.counted > step:
            self.counted -= step
            self.friendly += 1
        if self.friendly > window:
            self.per_segment = min(self.per_segment, window // (self.friendly - window))
        self.per_segment = max(self.per_segment, 2)


@dataclass
class _Batch:
    """Segments that left together as one skb, until they are acknowledged."""

    ends: deque[int]
    sent_at: int


class _Sender:
    """The server: what leaves when (tcp_sendmsg_locked, tcp_write_xmit)."""

    def __init__(self, transfer: Transfer, handshake_ns: int) -> None:
        self.mss = transfer.mss
        self.size = transfer.response_bytes
        self.window = transfer.initcwnd
        self.window_end = receive_window(transfer.initrwnd)
        self.waiting: deque[list[int]] = deque()  # unsent skbs: [bytes, pushed]
        self.batches: deque[_Batch] = deque()
        self.written = self.sent = self.acknowledged = 0  # bytes
        self.in_flight = 0  # segments
        self.round_end = 0
        self.limited = False
        self.most_in_flight = self.usage_end = 0
        self.round_trip = _RoundTrip()
        self.round_trip.sample(handshake_ns // 1000, False)
        self.cubic = _Cubic()
        self.timers = _Timers()
        self.last_sent_at = 0

    def write(self, now: int) -> list[tuple[int, bool]]:
        """The response in one write; the segments (bytes, PSH) that leave during it."""
        half = self.window_end // 2
        goal = max(half // self.mss, 1) * self.mss
        left, pushed, out = self.size, 0, []
        while left:
            if not self.waiting or self.waiting[-1][0] >= goal:
                self.waiting.append([0, False])
            tail = self.waiting[-1]
            taken = min(goal - tail[0], left)
            tail[0] += taken
            self.written += taken
            left -= taken
            if not left or self.written > pushed + half:
                tail[1], pushed = True, self.written
                out += self.transmit(now)
            elif len(self.waiting) == 1:
                out += self.transmit(now, one=True)
        return out

    def transmit(self, now: int, one: bool = False) -> list[tuple[int, bool]]:
        """Take what the windows allow; the segments (bytes, PSH) that leave."""
        out: list[tuple[int, bool]] = []
        limited = False
        most = self._super_segment()
        while self.waiting and self.in_flight < self.window:
            quota = min(max(self.window // 2, 1), self.window - self.in_flight, most)
            self._fill(quota * self.mss)
            skb = self.waiting[0]
            room = self.window_end - self.sent
            if room < min(skb[0], self.mss):
                break
            if skb[0] > self.mss and not one and self._may_defer(now, room, most):
                congestion_room = (self.window - self.in_flight) * self.mss
                if congestion_room < room and congestion_room <= skb[0]:
                    limited = True
                    break
                if congestion_room >= room and room <= skb[0]:
                    break
                if len(self.waiting) > 1:  # the last one carries the FIN
                    break
            out += self._take(now, min(skb[0], room, quota * self.mss))
            if one:
                break
        limited |= self.in_flight >= self.window
        if out or limited:
            self._note_use(limited)
        self._set_timers(now)
        return out

    def acknowledge(self, now: int, upto: int, window: int) -> None:
        count, first_sent, last_sent = 0, 0, 0
        while self.batches and self.batches[0].ends[0] <= upto:
            batch = self.batches[0]
            first_sent, last_sent = first_sent or batch.sent_at, batch.sent_at
            while batch.ends and batch.ends[0] <= upto:
                batch.ends.popleft()
                count += 1
            if not batch.ends:
                self.batches.popleft()
        self.timers.check(now)
        self.window_end = max(self.window_end, upto + window)
        if count:
            self.acknowledged = upto
            self.in_flight -= count
            self._count(now, count, first_sent, last_sent)
        self._set_timers(now)

    def _count(self, now: int, count: int, first_sent: int, last_sent: int) -> None:
        new_round = self.acknowledged > self.round_end
        if new_round:
            self.round_end = self.sent
        self.round_trip.sample((now - first_sent) // 1000, new_round)
        self.cubic.sample(now, (now - last_sent) // 1000, self.window, self.acknowledged,
                          self.sent, self._pacing())
        in_slow_start = self.window < self.cubic.threshold
        if self.limited or in_slow_start and self.window < 2 * self.most_in_flight:
            self.window = self.cubic.grow(now, self.window, count)

    def _pacing(self) -> float:
        """Bytes a second (tcp_update_pacing_rate)."""
        ratio = 2.0 if self.window < self.cubic.threshold // 2 else 1.2
        return (self.mss * ratio * max(self.window, self.in_flight) * 8e6
                / self.round_trip.smoothed_8)

    def _super_segment(self) -> int:
        """Segments that may leave as one skb (tcp_tso_autosize)."""
        share = int(self._pacing()) >> 10
        shift = self.round_trip.least >> 9
        if shift < 32:
            share += _MAX_SUPER_SEGMENT >> shift
        return max(min(share, _MAX_SUPER_SEGMENT) // self.mss, 2)

    def _fill(self, wanted: int) -> None:
        """Top the first skb up from those behind it (tcp_grow_skb looks at one)."""
        if self.waiting[0][0] >= wanted or len(self.waiting) == 1:
            return
        first, second = self.waiting[0], self.waiting[1]
        moved = min(wanted - first[0], second[0])
        first[0] += moved
        second[0] -= moved
        if not second[0]:
            first[1] = second[1]
            del self.waiting[1]

    def _take(self, now: int, size: int) -> list[tuple[int, bool]]:
        skb = self.waiting[0]
        skb[0] -= size
        whole = not skb[0]
        if whole:
            self.waiting.popleft()
        payloads = [self.mss] * (size // self.mss)
        if size % self.mss:
            payloads.append(size % self.mss)
        ends = deque[int]()
        for payload in payloads:
            self.sent += payload
            ends.append(self.sent)
        self.in_flight += len(payloads)
        self.batches.append(_Batch(ends, now))
        self.last_sent_at = now
        # Every skb of several segments ends with PSH (tcp_transmit_skb).
        pushed = len(payloads) > 1 or (whole and bool(skb[1]))
        return [(payload, False) for payload in payloads[:-1]] + [(payloads[-1], pushed)]

    def _may_defer(self, now: int, room: int, most: int) -> bool:
        """Whether an acknowledgement soon lets more leave at once (tcp_tso_should_defer)."""
        if now - self.last_sent_at > _MS or not self.batches:
            return False
        limit = min(room, (self.window - self.in_flight) * self.mss)
        if limit >= most * self.mss or (len(self.waiting) > 1 and limit >= self.waiting[0][0]):
            return False
        offered = self.window_end - self.acknowledged
        if limit >= min(offered, self.window * self.mss) // 3:
            return False
        smoothed_ns = self.round_trip.smoothed_8 * 125
        return self.batches[0].sent_at + smoothed_ns - now <= min(smoothed_ns // 2, _MS)

    def _note_use(self, limited: bool) -> None:
        """Whether the window was used up (tcp_cwnd_validate)."""
        if (self.acknowledged >= self.usage_end or limited
                or (not self.limited and self.in_flight > self.most_in_flight)):
            self.limited = limited
            self.most_in_flight = self.in_flight
            self.usage_end = self.sent

    def _set_timers(self, now: int) -> None:
        first_sent = self.batches[0].sent_at if self.batches else 0
        self.timers.set(now, first_sent, self.in_flight, self.round_trip)


class _Receiver:
    """The client: when it acknowledges, and what window it offers (tcp_event_data_recv)."""

    def __init__(self, transfer: Transfer, connected: int) -> None:
        self.mss = transfer.mss
        self.size = transfer.response_bytes
        self.phase_ns = transfer.clock_phase_ns
        self.smoothed_ms = connected // _MS
        self.received = self.acknowledged = 0
        self.window = receive_window(transfer.initrwnd)
        self.threshold = min(transfer.initrwnd * _SYN_MSS, _DEFAULT_LIMIT)
        self.buffer = _RECEIVE_BUFFER
        self.quick: int | None = None
        self.patience_ms = _DELAYED_ACK_MS
        self.last_ms = 0
        self.timer_at: int | None = None
        # tcp_rcv_space_adjust: what was read in a round trip, and how long that is.
        self.space = min(self.threshold, self.window, 10 * self.mss)
        self.measured_at, self.measured_from = connected, 0
        self.round_trip_8 = 0
        self.window_round: tuple[int, int] | None = None
        # The server's acknowledgement of the request has said it first.
        self.last_echo_ms = self._ms(connected)

    def receive(self, now: int, payload: int, pushed: bool, echo: int) -> bool:
        """Take a segment and read it; whether to acknowledge at once.

        A short segment or one with PSH is, once read (tcp_measure_rcv_mss,
        tcp_cleanup_rbuf).
        """
        self._measure_echo(now, payload, echo)
        self.received += payload
        self._measure_window(now)
        self._adapt(now, payload)
        if payload >= 128:
            self._grow(payload)
        at_once = (bool(self.quick) or self.received - self.acknowledged > self.mss
                   or pushed or payload < self.mss)
        self._read(now)
        return at_once

    def acknowledge(self) -> tuple[int, int]:
        """Send an acknowledgement: what it acknowledges, and the window."""
        if self.quick:
            self.quick -= 1
            if not self.quick:
                self.patience_ms = _DELAYED_ACK_MS
        self.window = max(self.window - (self.received - self.acknowledged),
                          _scaled(self.threshold))
        self.acknowledged = self.received
        self.timer_at = None
        return self.acknowledged, self.window

    def delay(self, now: int) -> int:
        """When a delayed acknowledgement is due, ns (tcp_send_delayed_ack)."""
        patience = self.patience_ms
        if patience > _DELAYED_ACK_MS:
            patience = min(patience, max(self.smoothed_ms, _DELAYED_ACK_MS), 500)
        due_ms = self._ms(now) + min(patience, _MAX_DELAYED_ACK_MS)
        due = due_ms * _MS - self.phase_ns
        self.timer_at = due if self.timer_at is None else min(due, self.timer_at)
        return self.timer_at

    def late(self) -> None:
        """The delayed acknowledgement's timer ran out (tcp_delack_timer_handler)."""
        self.patience_ms *= 2

    def _ms(self, now: int) -> int:
        """The kernel's clock in whole milliseconds."""
        return (now + self.phase_ns) // _MS

    def _adapt(self, now: int, payload: int) -> None:
        gap_ms = self._ms(now) - self.last_ms
        self.last_ms += gap_ms
        if self.quick is None:
            self.quick = min(max(self.window // (2 * payload), 2), _MAX_QUICK_ACKS)
        elif gap_ms <= _DELAYED_ACK_MS // 2:
            self.patience_ms = self.patience_ms // 2 + _DELAYED_ACK_MS // 2
        elif gap_ms < self.patience_ms:
            self.patience_ms = min(self.patience_ms // 2 + gap_ms, _MAX_DELAYED_ACK_MS)
        elif gap_ms > self.smoothed_ms + max(2 * self.smoothed_ms, 200):
            self.quick = max(self.quick, min(max(self.window // (2 * self.mss), 2),
                                             _MAX_QUICK_ACKS))

    def _grow(self, payload: int) -> None:
        """Offer two segments more, as long as the buffer would hold them (tcp_grow_window)."""
        space = (self.buffer - payload - _SEGMENT_OVERHEAD) * _PAYLOAD_SHARE >> 8
        room = space - self.threshold
        if room > 0:
            self.threshold += min(room, 2 * self.mss)
            self.quick = (self.quick or 0) | 1

    def _measure_echo(self, now: int, payload: int, echo: int) -> None:
        """RTT from the time stamps, whole ms (tcp_rcv_rtt_measure_ts)."""
        if self._ms(echo) == self.last_echo_ms:
            return
        self.last_echo_ms = self._ms(echo)
        sample = (self._ms(now) - self.last_echo_ms) * 1000
        if payload >= self.mss and sample > 0:
            if not self.round_trip_8 or sample * 8 < self.round_trip_8:
                self.round_trip_8 = sample * 8
            else:
                self.round_trip_8 += sample - (self.round_trip_8 >> 3)

    def _measure_window(self, now: int) -> None:
        """RTT as the time to receive a window, if that is less (tcp_rcv_rtt_measure)."""
        if self.window_round is not None:
            if self.received < self.window_round[0]:
                return
            sample = max((now - self.window_round[1]) // 1000, 1) * 8
            if not self.round_trip_8 or sample < self.round_trip_8:
                self.round_trip_8 = sample
        self.window_round = (self.received + self.window, now)

    def _read(self, now: int) -> None:
        """The client reads at once; let the buffer follow the rate (tcp_rcv_space_adjust)."""
        if not self.round_trip_8 or (now - self.measured_at) // 1000 < self.round_trip_8 >> 3:
            return
        copied = self.received - self.measured_from
        if copied > self.space:
            self._enlarge(copied)
        self.measured_at, self.measured_from = now, self.received

    def _enlarge(self, copied: int) -> None:
        """Room for twice what came in a round trip, and for its growth (tcp_rcvbuf_grow)."""
        before, self.space = self.space, copied
        window = 2 * copied
        us = self.round_trip_8 >> 3
        if us < 1000:  # tcp_rcvbuf_low_rtt
            window += window * us // 1000
        else:
            window += 2 * window * (copied - before) // before
        self.buffer = max(self.buffer,
                          min((window << 8) // _PAYLOAD_SHARE, _MAX_RECEIVE_BUFFER))


def receive_window(initrwnd: int) -> int:
    """Bytes that the client's first acknowledgement offers, for a route's initrwnd."""
    return _scaled(min(initrwnd * _SYN_MSS, _DEFAULT_WINDOW))


def _scaled(window: int) -> int:
    """A window as the header can say it, rounded up (__tcp_select_window)."""
    return -(-window // _WINDOW_SCALE) * _WINDOW_SCALE


class _Course:
    """The response on its way: events in order of time, until all is acknowledged."""

    def __init__(self, transfer: Transfer, down: _Link, up: _Link, connected: int,
                 requested: int, handshake_ns: int) -> None:
        self.sender = _Sender(transfer, handshake_ns)
        self.receiver = _Receiver(transfer, connected)
        self.down, self.up = down, up
        self.start = requested
        self.echo = connected  # when the client sent what the server heard last
        self.events: list[tuple[int, int, str, tuple[int, ...]]] = []
        self.count = 0
        self.first_arrival = self.last_arrival = self.last_acknowledged = 0
        self.first_flight = 0

    def run(self) -> None:
        self._send(self.start, self.sender.write(self.start))
        self.first_flight = self.sender.in_flight
        if not self.sender.waiting and self.first_flight < self.sender.window:
            self.down.send(self.start, HEADER_BYTES)  # nothing is left for the FIN to ride on
        while self.events:
            now, _, kind, details = heapq.heappop(self.events)
            if kind == "data":
                self._data(now, *details)
            elif kind == "ack":
                self._acknowledged(now, *details)
            elif self.receiver.timer_at == now:
                self.receiver.late()
                self._acknowledge(now)

    def _at(self, when: int, kind: str, *details: int) -> None:
        self.count += 1
        heapq.heappush(self.events, (when, self.count, kind, details))

    def _send(self, now: int, segments: list[tuple[int, bool]]) -> None:
        for payload, pushed in segments:
            self._at(self.down.send(now, HEADER_BYTES + payload), "data", payload, pushed,
                     self.echo)

    def _data(self, now: int, payload: int, pushed: int, echo: int) -> None:
        self.first_arrival = self.first_arrival or now
        self.last_arrival = now
        if self.receiver.receive(now, payload, bool(pushed), echo):
            self._acknowledge(now)
        else:
            self._at(self.receiver.delay(now), "timer")

    def _acknowledge(self, now: int) -> None:
        upto, window = self.receiver.acknowledge()
        self._at(self.up.send(now, HEADER_BYTES), "ack", upto, window, now)

    def _acknowledged(self, now: int, upto: int, window: int, sent_at: int) -> None:
        self.echo = sent_at
        self.sender.acknowledge(now, upto, window)
        if upto >= self.sender.size:
            self.last_acknowledged = now
        self._send(now, self.sender.transmit(now))
