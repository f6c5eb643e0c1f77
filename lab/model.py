"""The lossless transfer, computed: what a fetch must take if nothing goes wrong.

Two models. The paper's closed forms count rounds and add the time to send.
`predict` follows every segment and every acknowledgement of one fetch on an
idle path, with the rules that Linux has, and is exact to microseconds.

What `predict` does: the handshake, the request and the server's immediate
acknowledgement of it; slow start that adds a segment for each one that is
acknowledged (RFC 5681, tcp_slow_start) as long as the window is used
(tcp_is_cwnd_limited); store-and-forward serialisation both ways; the
receiver's quick acknowledgements, then delayed ones (tcp_incr_quickack,
__tcp_ack_snd_check); its window from initrwnd on (tcp_grow_window).

What it does not do: loss, and any timer of the sender (probes,
retransmissions); HyStart, which may end slow start at windows of 16 segments
and more (hystart_low_window) while data is still to be sent; a send buffer
that runs dry; the receive buffer's growth beyond its default size
(tcp_rcv_space_adjust); computing time at the hosts.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from dataclasses import dataclass
from functools import lru_cache

ETHERNET_BYTES = 14
# IPv4, TCP and the timestamp option, with padding (RFC 7323).
HEADER_BYTES = ETHERNET_BYTES + 20 + 20 + 12
# IPv4, TCP and the options of a SYN: MSS, SACK permitted, timestamp, scale.
SYN_BYTES = ETHERNET_BYTES + 20 + 20 + 20
MSS = 1448  # Ethernet's 1500 bytes less IPv4, TCP and timestamps

# Of Linux 6.1 to 7.2.
_SYN_MSS = 1460  # what the receive window is counted in (tcp_select_initial_window)
_WINDOW_SCALE = 128  # with the default tcp_rmem[2] of 6 MB
_DEFAULT_WINDOW = 44 * _SYN_MSS  # half of tcp_rmem[1], in whole segments
_HYSTART_WINDOW = 16  # hystart_low_window, segments
_MAX_QUICK_ACKS = 16  # TCP_MAX_QUICKACKS
_DELAYED_ACK_NS = 40_000_000  # TCP_DELACK_MIN
# The window's limit until the receive buffer grows: tcp_rmem[1] times the
# share of a received skb that is payload (scaling_ratio, in 256ths).
_RECEIVE_BUFFER = 131072

# Why TCP sends again what was not lost.
SYN_TIMER = "SYN timer (1 s) shorter than the RTT"
SYN_ACK_TIMER = "SYN-ACK timer (1 s) shorter than the RTT"
FALLBACK_TIMER = "retransmission timer (3 s after a retransmitted SYN-ACK) shorter than the RTT"
RETRANSMISSION_TIMER = "retransmission timer shorter than the wait in the queue"
PROBE = "tail loss probe: the acknowledgement takes longer than 2 SRTT"


@dataclass(frozen=True)
class Transfer:
    """What decides a lossless fetch.

    rtt_ms: propagation both ways; bandwidth_kbps, uplink_kbps: towards and
        from the client, Ethernet headers counted, math.inf for no limit.
    initcwnd, initrwnd: segments.
    response_bytes, request_bytes: payload, HTTP headers included.
    """

    rtt_ms: float
    bandwidth_kbps: float
    uplink_kbps: float
    initcwnd: int
    initrwnd: int
    response_bytes: int
    request_bytes: int
    mss: int = MSS


@dataclass(frozen=True)
class Prediction:
    """When a lossless fetch gets where, in ms from the first SYN.

    connect_ms, first_byte_ms, total_ms: at the client; latency_ms: the
        paper's metric at the server, first segment sent to last one
        acknowledged.
    first_flight: segments sent before the first acknowledgement of data.
    largest_window: congestion window when the last segment left.
    peak_queue: packets that waited at the bottleneck at most, the one being
        sent included.
    is_slow_start_only: whether HyStart had no say: no acknowledgement met a
        window of 16 segments with data left to send.
    """

    connect_ms: float
    first_byte_ms: float
    total_ms: float
    latency_ms: float
    first_flight: int
    largest_window: int
    peak_queue: int
    is_slow_start_only: bool


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
    connected = down.send(up.send(0, SYN_BYTES), SYN_BYTES)
    up.send(connected, HEADER_BYTES)
    requested = up.send(connected, HEADER_BYTES + transfer.request_bytes)
    down.send(requested, HEADER_BYTES)  # the request is acknowledged before it is answered
    course = _Course(transfer, down, up, requested)
    course.run()
    return Prediction(
        connect_ms=connected / 1e6, first_byte_ms=course.first_arrival / 1e6,
        total_ms=course.last_arrival / 1e6,
        latency_ms=(course.last_acknowledged - requested) / 1e6,
        first_flight=course.first_flight, largest_window=course.sender.window,
        peak_queue=down.peak_queue, is_slow_start_only=not course.met_hystart)


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


class _Sender:
    """The server's side of slow start: tcp_write_xmit and tcp_cwnd_validate."""

    def __init__(self, transfer: Transfer) -> None:
        self.mss = transfer.mss
        self.size = transfer.response_bytes
        self.window = transfer.initcwnd
        self.window_end = receive_window(transfer.initrwnd)
        self.sent = 0  # bytes
        self.acknowledged = 0  # bytes
        self.in_flight: deque[int] = deque()  # the end of each segment
        self.limited = False
        self.most_in_flight = 0
        self.usage_end = 0

    def acknowledge(self, upto: int, window: int) -> None:
        count = 0
        while self.in_flight and self.in_flight[0] <= upto:
            self.in_flight.popleft()
            count += 1
        self.acknowledged = max(self.acknowledged, upto)
        self.window_end = max(self.window_end, upto + window)
        if count and (self.limited or self.window < 2 * self.most_in_flight):
            self.window += count

    def segments(self) -> list[int]:
        """Take the segments that may leave now; their payload bytes."""
        taken = []
        while self.sent < self.size and len(self.in_flight) < self.window:
            payload = min(self.mss, self.size - self.sent)
            room = self.window_end - self.sent
            # Room for less than a segment is left alone, unless it follows a
            # full one within the same pair (tcp_snd_wnd_test, tcp_mss_split_point).
            if room < payload and not (taken and len(taken) % 2 and room > 0):
                break
            payload = min(payload, room)
            self.sent += payload
            self.in_flight.append(self.sent)
            taken.append(payload)
        self._note_use(bool(taken))
        return taken

    def _note_use(self, sent_any: bool) -> None:
        limited = len(self.in_flight) >= self.window
        if not (sent_any or limited):
            return
        if (self.acknowledged >= self.usage_end or limited
                or (not self.limited and len(self.in_flight) > self.most_in_flight)):
            self.limited = limited
            self.most_in_flight = len(self.in_flight)
            self.usage_end = self.sent


class _Receiver:
    """The client's side: when it acknowledges, and what window it offers."""

    def __init__(self, transfer: Transfer) -> None:
        self.mss = transfer.mss
        self.size = transfer.response_bytes
        self.received = 0
        self.acknowledged = 0
        self.threshold = min(transfer.initrwnd * _SYN_MSS, _DEFAULT_WINDOW)
        self.window = receive_window(transfer.initrwnd)
        self.limit = _RECEIVE_BUFFER * 160 // 256
        self.quick: int | None = None

    def receive(self, payload: int) -> bool:
        """Take a segment; whether to acknowledge at once."""
        self.received += payload
        if self.quick is None:
            self.quick = min(max(self.window // (2 * payload), 2), _MAX_QUICK_ACKS)
        if payload >= 128 and self.threshold < self.limit:
            self.threshold = min(self.threshold + 2 * self.mss, self.limit)
            self.quick |= 1
        return (self.quick > 0 or self.received - self.acknowledged > self.mss
                or self.received >= self.size)

    def acknowledge(self) -> tuple[int, int]:
        """Send an acknowledgement: what it acknowledges, and the window."""
        if self.quick:
            self.quick -= 1
        self.acknowledged = self.received
        self.window = max(self.window, _scaled(self.threshold))
        return self.acknowledged, self.window


def receive_window(initrwnd: int) -> int:
    """Bytes that the client's first acknowledgement offers, for a route's initrwnd."""
    return _scaled(min(initrwnd * _SYN_MSS, _DEFAULT_WINDOW))


def _scaled(window: int) -> int:
    """A window as the header can say it, rounded up (__tcp_select_window)."""
    return -(-window // _WINDOW_SCALE) * _WINDOW_SCALE


class _Course:
    """The response on its way: events in order of time, until all is acknowledged."""

    def __init__(self, transfer: Transfer, down: _Link, up: _Link, start: int) -> None:
        self.sender = _Sender(transfer)
        self.receiver = _Receiver(transfer)
        self.down, self.up = down, up
        self.start = start
        self.events: list[tuple[int, int, str, tuple[int, ...]]] = []
        self.count = 0
        self.first_arrival = self.last_arrival = self.last_acknowledged = 0
        self.first_flight = 0
        self.met_hystart = False

    def run(self) -> None:
        self._transmit(self.start)
        self.first_flight = len(self.sender.in_flight)
        if self.sender.sent == self.sender.size and self.first_flight < self.sender.window:
            self.down.send(self.start, HEADER_BYTES)  # nothing is left for the FIN to ride on
        while self.events:
            now, _, kind, details = heapq.heappop(self.events)
            if kind == "data":
                self._data(now, details[0])
            elif kind == "ack":
                self._acknowledged(now, *details)
            elif self.receiver.acknowledged == details[0] < self.receiver.received:
                self._acknowledge(now)  # the delayed acknowledgement's timer

    def _at(self, when: int, kind: str, *details: int) -> None:
        self.count += 1
        heapq.heappush(self.events, (when, self.count, kind, details))

    def _transmit(self, now: int) -> None:
        for payload in self.sender.segments():
            self._at(self.down.send(now, HEADER_BYTES + payload), "data", payload)

    def _data(self, now: int, payload: int) -> None:
        self.first_arrival = self.first_arrival or now
        self.last_arrival = now
        if self.receiver.receive(payload):
            self._acknowledge(now)
        else:
            self._at(now + _DELAYED_ACK_NS, "timer", self.receiver.acknowledged)

    def _acknowledge(self, now: int) -> None:
        upto, window = self.receiver.acknowledge()
        self._at(self.up.send(now, HEADER_BYTES), "ack", upto, window)

    def _acknowledged(self, now: int, upto: int, window: int) -> None:
        if self.sender.window >= _HYSTART_WINDOW and self.sender.sent < self.sender.size:
            self.met_hystart = True
        self.sender.acknowledge(upto, window)
        if upto >= self.sender.size:
            self.last_acknowledged = now
        self._transmit(now)
