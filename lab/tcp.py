"""Linux TCP on a path that loses nothing, segment by segment; lab.model drives it.

The rules are those of Linux 6.1 to 7.2 with the sysctls that topo.py pins;
the kernel's functions are named where they are followed. Times are integer
nanoseconds since the first SYN left, sequence numbers are bytes of the
response from 0.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

MS = 1_000_000  # nanoseconds

# The receiver.
SYN_MSS = 1460  # what initrwnd is counted in (tcp_select_initial_window)
WINDOW_SCALE = 128  # with the default tcp_rmem[2] of 6 MB
DEFAULT_WINDOW = 44 * SYN_MSS  # half of tcp_rmem[1], in whole segments
DEFAULT_THRESHOLD = 65536 - 1448  # and one segment reserved (tcp_init_buffer_space)
RECEIVE_BUFFER, MAX_RECEIVE_BUFFER = 131072, 6291456  # tcp_rmem[1], tcp_rmem[2]
SEGMENT_OVERHEAD = 832  # memory of a received segment beyond its payload (skb->truesize)
MAX_QUICK_ACKS = 16  # TCP_MAX_QUICKACKS
DELAYED_ACK_MS = 40  # TCP_DELACK_MIN, TCP_ATO_MIN
MAX_DELAYED_ACK_MS = 200  # TCP_DELACK_MAX

# The sender.
LEAST_TIMEOUT_US = 200_000  # TCP_RTO_MIN
SENDING_OVERHEAD = 832  # memory of an skb to be sent beyond its payload
BUFFER_PER_SEGMENT = 2 * 2304  # of the send buffer (tcp_sndbuf_expand)
MAX_BATCH_BYTES = 65536 - 320 - 1  # sk_gso_max_size
HYSTART_WINDOW = 16  # hystart_low_window, segments
HYSTART_SAMPLES = 8  # HYSTART_MIN_SAMPLES
HYSTART_SPACING_US = 2000  # hystart_ack_delta_us

_NEVER = 1 << 62


class Link:
    """One direction of the path: half the RTT, then a rate stage, store and forward."""

    def __init__(self, rtt_ms: float, rate_kbps: float) -> None:
        self.delay_ns = round(rtt_ms * MS / 2)
        # netem takes whole bytes a second.
        self.bytes_per_s = rate_kbps if math.isinf(rate_kbps) else round(rate_kbps * 1000) // 8
        self.departures: deque[int] = deque()
        self.peak_queue = 0  # packets at once, the one being sent included

    def send(self, now: int, frame_bytes: int) -> int:
        """When a frame that leaves now has arrived."""
        reached = now + self.delay_ns
        free_at = self.departures[-1] if self.departures else 0
        while self.departures and self.departures[0] <= reached:
            self.departures.popleft()
        arrival = max(reached, free_at) + int(frame_bytes * 1e9 / self.bytes_per_s)
        self.departures.append(arrival)
        self.peak_queue = max(self.peak_queue, len(self.departures))
        return arrival


@dataclass
class RoundTrip:
    """The server's RTT estimate in µs (tcp_rtt_estimator, tcp_set_rto).

    smoothed_8 is 8 times the smoothed RTT, the deviations are 4 times theirs.
    """

    smoothed_8: int = 0
    deviation_4: int = 0
    worst_4: int = 0
    variance_4: int = 0
    least_us: int = _NEVER

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
    def smoothed_us(self) -> int:
        return self.smoothed_8 >> 3

    @property
    def timeout_us(self) -> int:
        return self.smoothed_us + self.variance_4


@dataclass
class Cubic:
    """CUBIC as far as it goes without loss: HyStart, then growth from there (tcp_cubic.c).

    hystart: whether there is any; without, slow start never ends, as Reno's.
    threshold: ssthresh, segments. ended_at: the window at which HyStart ended
    slow start, 0 before.
    """

    hystart: bool = True
    threshold: int = 1 << 30
    ended_at: int = 0
    least_us: int = 0
    round_end: int = 0
    round_start_us: int = 0
    last_ack_us: int = 0
    samples: int = 0
    round_least_us: int = _NEVER
    epoch_ms: int | None = None
    origin: int = 0
    counted: int = 0
    friendly: int = 0
    updated_window: int = 0
    updated_ms: int = 0
    per_segment: int = 0
    credit: int = 0

    def sample(self, now_us: int, us: int, window: int, acknowledged: int, sent: int,
               pacing: float) -> None:
        """An acknowledgement's RTT (cubictcp_acked, hystart_update).

        acknowledged, sent: bytes; pacing: bytes a second.
        """
        if self.epoch_ms is not None and now_us // 1000 - self.epoch_ms < 1000:
            return
        us = max(us, 1)
        self.least_us = min(self.least_us, us) if self.least_us else us
        if window >= self.threshold or not self.hystart:
            return
        if acknowledged > self.round_end:
            self.round_start_us = self.last_ack_us = now_us
            self.round_end, self.samples, self.round_least_us = sent, 0, _NEVER
        if window >= HYSTART_WINDOW:
            train, delay = self._is_train(now_us, pacing), self._is_delayed(us)
            if train or delay:
                self.threshold = self.ended_at = window

    def shift(self, idle_ms: int) -> None:
        """Sending starts again after a pause (cubictcp_cwnd_event_tx_start)."""
        if self.epoch_ms is not None:
            self.epoch_ms += idle_ms

    def _is_train(self, now_us: int, pacing: float) -> bool:
        """Whether closely spaced acknowledgements last for half an RTT."""
        if now_us - self.last_ack_us > HYSTART_SPACING_US:
            return False
        self.last_ack_us = now_us
        cushion_us = min(1000, int(MAX_BATCH_BYTES * 4e6 / pacing))
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
            elapsed = ((now_ms - self.epoch_ms + self.least_us // 1000) << 10) // 1000
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


@dataclass
class _Waiting:
    """Written and not sent: one skb."""

    size: int = 0
    pushed: bool = False


@dataclass
class _Batch:
    """Segments that left together as one skb: where those not acknowledged end."""

    ends: deque[int]
    sent_at: int


@dataclass(frozen=True)
class Sent:
    """A segment of data on its way; pushed: with PSH."""

    payload: int
    pushed: bool


@dataclass
class Sender:
    """The server: which segments leave when (tcp_write_xmit).

    window: initcwnd at first, segments; window_end: what the receiver offers;
    handshake_us: SYN-ACK to its acknowledgement; phase_ns: into a millisecond
    of the kernel's clock at 0; hystart: whether CUBIC has it;
    restart_after_idle: tcp_slow_start_after_idle.
    """

    mss: int
    window: int
    window_end: int
    handshake_us: int
    phase_ns: int
    hystart: bool
    restart_after_idle: bool = True
    written: int = 0  # bytes, as all that follow
    sent: int = 0
    acknowledged: int = 0
    in_flight: int = 0  # segments
    waiting: deque[_Waiting] = field(default_factory=deque)
    batches: deque[_Batch] = field(default_factory=deque)
    round_trip: RoundTrip = field(default_factory=RoundTrip)
    cubic: Cubic = field(init=False)
    closed: bool = False  # the FIN waits behind the last byte
    # Whether the window is what limits the sender (tcp_cwnd_validate).
    limited: bool = False
    most_in_flight: int = 0
    usage_end: int = 0
    round_end: int = 0
    last_sent_at: int = -MS
    largest_offer: int = 0
    pushed_at: int = 0
    unwritten: int = 0
    last_write: bool = False

    def __post_init__(self) -> None:
        self.initial_window = self.window
        self.buffer = max(self.window, 10) * BUFFER_PER_SEGMENT
        self.largest_offer = self.window_end
        self.cubic = Cubic(self.hystart)
        self.round_trip.sample(self.handshake_us, new_round=False)

    def write(self, now: int, size: int, last: bool) -> list[Sent]:
        """The server writes `size` bytes; what leaves meanwhile.

        last: whether it shuts the connection down after them.
        """
        self._restart_after_idle(now)
        self.unwritten = size
        self.last_write = last
        return self._copy(now)

    def _copy(self, now: int) -> list[Sent]:
        """Copy what is to be written, as far as the send buffer goes (tcp_sendmsg_locked)."""
        half = self.largest_offer // 2
        goal = max(half // self.mss, 1) * self.mss
        out: list[Sent] = []
        while self.unwritten:
            if not self.waiting or self.waiting[-1].size >= goal:
                if self._memory() >= self.buffer:
                    return out + self._push(now)
                self.waiting.append(_Waiting())
            tail = self.waiting[-1]
            taken = min(goal - tail.size, self.unwritten)
            tail.size += taken
            tail.pushed = False
            self.written += taken
            self.unwritten -= taken
            if not self.unwritten or self.written > self.pushed_at + half:
                out += self._push(now)
            elif len(self.waiting) == 1:
                out += self.transmit(now, only_one=True)
        self.closed = self.last_write
        return out

    def _push(self, now: int) -> list[Sent]:
        if self.waiting:
            self.waiting[-1].pushed, self.pushed_at = True, self.written
        return self.transmit(now)

    def write_on(self, now: int) -> list[Sent]:
        """After an acknowledgement: write more if there is room again (tcp_check_space)."""
        if not self.unwritten:
            return []
        if self.in_flight < self.window:
            self.buffer = max(self.buffer, max(self.window, 10) * BUFFER_PER_SEGMENT)
        memory = self._memory()
        if self.buffer - memory < memory // 2:  # sk_stream_is_writeable
            return []
        return self._copy(now)

    def _memory(self) -> int:
        """What is written and not acknowledged takes (sk_wmem_queued)."""
        skbs = len(self.waiting) + len(self.batches)
        return self.written - self.acknowledged + skbs * SENDING_OVERHEAD

    def _restart_after_idle(self, now: int) -> None:
        """RFC 5681's restart window, halved for every timeout of silence (tcp_cwnd_restart)."""
        if self.in_flight or not self.sent:
            return
        timeout_ms = -(-self.round_trip.timeout_us // 1000)
        idle_ms = (now + self.phase_ns) // MS - (self.last_sent_at + self.phase_ns) // MS
        self.cubic.shift(idle_ms)
        if idle_ms <= timeout_ms or not self.restart_after_idle:
            return
        self.cubic.threshold = max(self.cubic.threshold, (self.window >> 1) + (self.window >> 2))
        restart = min(self.initial_window, self.window)
        while (idle_ms := idle_ms - timeout_ms) > 0 and self.window > restart:
            self.window >>= 1
        self.window = max(self.window, restart)

    def transmit(self, now: int, only_one: bool = False) -> list[Sent]:
        """Send what the windows allow, as skbs of a few segments each."""
        out: list[Sent] = []
        limited = False
        most = self._batch_segments()
        while self.waiting and self.in_flight < self.window:
            quota = min(max(self.window // 2, 1), self.window - self.in_flight, most) * self.mss
            self._fill(quota)
            size = self.waiting[0].size
            room = self.window_end - self.sent
            if room < min(size, self.mss):
                break
            if size > self.mss and not only_one and self._should_wait(now, room, most):
                limited = self._congestion_room() < room
                break
            out += self._take(now, min(size, room, quota))
            if only_one:
                break
        limited |= self.in_flight >= self.window
        if out or limited:
            self._note_use(limited)
        return out

    def acknowledge(self, now: int, upto: int, window_end: int) -> None:
        """Take an acknowledgement (tcp_ack, tcp_clean_rtx_queue)."""
        count, first_sent, last_sent = 0, 0, 0
        while self.batches and self.batches[0].ends[0] <= upto:
            batch = self.batches[0]
            first_sent = last_sent if count else batch.sent_at
            last_sent = batch.sent_at
            while batch.ends and batch.ends[0] <= upto:
                batch.ends.popleft()
                count += 1
            if not batch.ends:
                self.batches.popleft()
        self.largest_offer = max(self.largest_offer, window_end - upto)
        self.window_end = max(self.window_end, window_end)
        if count:
            self.acknowledged = upto
            self.in_flight -= count
            self._grow(now, count, first_sent, last_sent)

    def _grow(self, now: int, count: int, first_sent: int, last_sent: int) -> None:
        new_round = self.acknowledged > self.round_end
        if new_round:
            self.round_end = self.sent
        self.round_trip.sample((now - first_sent) // 1000, new_round)
        now_us = (now + self.phase_ns) // 1000
        self.cubic.sample(now_us, (now - last_sent) // 1000, self.window, self.acknowledged,
                          self.sent, self._pacing())
        in_slow_start = self.window < self.cubic.threshold
        # tcp_is_cwnd_limited
        if self.limited or (in_slow_start and self.window < 2 * self.most_in_flight):
            self.window = self.cubic.grow(now_us // 1000, self.window, count)

    def _pacing(self) -> float:
        """Bytes a second; nothing paces, but sizes follow it (tcp_update_pacing_rate)."""
        ratio = 2.0 if self.window < self.cubic.threshold // 2 else 1.2
        return (self.mss * ratio * max(self.window, self.in_flight) * 8e6
                / self.round_trip.smoothed_8)

    def _batch_segments(self) -> int:
        """Segments that may leave as one skb (tcp_tso_autosize)."""
        share = int(self._pacing()) >> 10
        shift = self.round_trip.least_us >> 9
        if shift < 32:
            share += MAX_BATCH_BYTES >> shift
        return max(min(share, MAX_BATCH_BYTES) // self.mss, 2)

    def _fill(self, wanted: int) -> None:
        """Top the first skb up from the one behind it (tcp_grow_skb)."""
        if self.waiting[0].size >= wanted or len(self.waiting) == 1:
            return
        first, second = self.waiting[0], self.waiting[1]
        moved = min(wanted - first.size, second.size)
        first.size += moved
        second.size -= moved
        if not second.size:
            first.pushed = second.pushed
            del self.waiting[1]

    def _take(self, now: int, size: int) -> list[Sent]:
        skb = self.waiting[0]
        skb.size -= size
        if not skb.size:
            self.waiting.popleft()
        payloads = [self.mss] * (size // self.mss)
        if size % self.mss:
            payloads.append(size % self.mss)
        batch = _Batch(deque(), now)
        for payload in payloads:
            self.sent += payload
            batch.ends.append(self.sent)
        self.batches.append(batch)
        self.in_flight += len(payloads)
        self.last_sent_at = now
        # Every skb of several segments ends with PSH (__tcp_transmit_skb).
        pushed = len(payloads) > 1 or (not skb.size and skb.pushed)
        return [Sent(payload, False) for payload in payloads[:-1]] + [Sent(payloads[-1], pushed)]

    def _congestion_room(self) -> int:
        return (self.window - self.in_flight) * self.mss

    def _should_wait(self, now: int, room: int, most: int) -> bool:
        """Whether an acknowledgement soon will let more leave at once (tcp_tso_should_defer)."""
        if now - self.last_sent_at > MS or not self.batches:
            return False
        size, limit = self.waiting[0].size, min(room, self._congestion_room())
        is_last = len(self.waiting) == 1
        if limit >= most * self.mss or (not is_last and limit >= size):
            return False
        offered = self.window_end - self.acknowledged
        if limit >= min(offered, self.window * self.mss) // 3:  # tcp_tso_win_divisor
            return False
        smoothed_ns = self.round_trip.smoothed_8 * 125
        if self.batches[0].sent_at + smoothed_ns - now > min(smoothed_ns // 2, MS):
            return False
        return limit <= size or not (is_last and self.closed)

    def _note_use(self, limited: bool) -> None:
        """Whether the window was used up (tcp_cwnd_validate)."""
        if (self.acknowledged >= self.usage_end or limited
                or (not self.limited and self.in_flight > self.most_in_flight)):
            self.limited = limited
            self.most_in_flight = self.in_flight
            self.usage_end = self.sent


class Receiver:
    """The client: when it acknowledges, and what window it offers (tcp_event_data_recv).

    It reads whatever arrives at once.
    """

    def __init__(self, initrwnd: int, mss: int, connected: int, phase_ns: int) -> None:
        """connected: when its handshake was done, which took one round trip."""
        self.mss = mss
        self.phase_ns = phase_ns
        self.smoothed_ms = connected // MS
        self.received = self.acknowledged = 0
        self.window = receive_window(initrwnd)
        self.threshold = min(initrwnd * SYN_MSS, DEFAULT_THRESHOLD)  # rcv_ssthresh
        self.buffer = RECEIVE_BUFFER
        self.payload_share = mss * 256 // (mss + SEGMENT_OVERHEAD)  # scaling_ratio
        self.quick: int | None = None
        self.interactive = False  # pingpong mode: acknowledgements wait for a ride
        self.short_or_pushed = 0  # ICSK_ACK_PUSHED, ICSK_ACK_PUSHED2
        self.patience_ms = DELAYED_ACK_MS  # icsk_ack.ato
        self.last_ms = 0
        self.timer_at: int | None = None
        # What was read in the last round trip, and how long that is (tcp_rcv_space_adjust).
        self.space = min(self.threshold, self.window, 10 * mss)
        self.measured_at, self.measured_from = connected, 0
        self.round_trip_8 = 0  # 8 times the RTT, µs; 0 before the first sample
        self.window_round: tuple[int, int] | None = None
        # The server's acknowledgement of the request has said it first.
        self.last_echo_ms = self._ms(connected)

    def receive(self, now: int, segment: Sent, echo: int) -> bool:
        """Take a segment and read it; whether to acknowledge at once.

        echo: when the client sent what the segment's time stamp echoes. A
        short segment or one with PSH is acknowledged when it has been read
        (tcp_measure_rcv_mss, tcp_cleanup_rbuf).
        """
        payload = segment.payload
        self._measure_echo(now, payload, echo)
        self.received += payload
        self._measure_window(now)
        self._adapt(now, payload)
        if payload >= 128:
            self._grow(payload)
        self._read(now)
        if payload < self.mss:
            self.short_or_pushed += 1
        elif segment.pushed:
            self.short_or_pushed = max(self.short_or_pushed, 1)
        return (self.received - self.acknowledged > self.mss or self.short_or_pushed > 1
                or (not self.interactive and (bool(self.quick) or self.short_or_pushed > 0)))

    def ask(self, now: int) -> tuple[int, int]:
        """Send a request, which acknowledges as well (tcp_event_data_sent)."""
        if self.quick is not None and self._ms(now) - self.last_ms < self.patience_ms:
            self.interactive = True
        return self.acknowledge()

    def acknowledge(self) -> tuple[int, int]:
        """Send an acknowledgement: what it acknowledges, and the end of the window."""
        if self.quick:
            self.quick -= 1
            if not self.quick:
                self.patience_ms = DELAYED_ACK_MS
        self.window = max(self.window - (self.received - self.acknowledged),
                          _scaled(self.threshold))
        self.acknowledged = self.received
        self.short_or_pushed = 0
        self.timer_at = None
        return self.acknowledged, self.acknowledged + self.window

    def delay(self, now: int) -> int | None:
        """Put the acknowledgement off (tcp_send_delayed_ack).

        Returns when it is due at the latest; None if that is too soon to wait for.
        """
        patience_ms = self.patience_ms
        if patience_ms > DELAYED_ACK_MS:
            patience_ms = min(patience_ms, max(self.smoothed_ms, DELAYED_ACK_MS))
        patience_ms = min(patience_ms, MAX_DELAYED_ACK_MS)
        due = (self._ms(now) + patience_ms) * MS - self.phase_ns
        if self.timer_at is not None:
            if self._ms(self.timer_at) <= self._ms(now) + patience_ms // 4:
                return None
            due = min(due, self.timer_at)
        self.timer_at = due
        return due

    def lose_patience(self) -> None:
        """The acknowledgement that was put off is due (tcp_delack_timer_handler)."""
        if self.interactive:
            self.interactive, self.patience_ms = False, DELAYED_ACK_MS
        else:
            self.patience_ms = min(2 * self.patience_ms, self._timeout_ms, MAX_DELAYED_ACK_MS)

    def _ms(self, now: int) -> int:
        """The kernel's clock in whole milliseconds."""
        return (now + self.phase_ns) // MS

    def _adapt(self, now: int, payload: int) -> None:
        """How many acknowledgements are quick, and how late the others may be."""
        gap_ms = self._ms(now) - self.last_ms
        self.last_ms += gap_ms
        if self.quick is None:
            self.quick = self._quick_acks(payload)
        elif gap_ms <= DELAYED_ACK_MS // 2:
            self.patience_ms = self.patience_ms // 2 + DELAYED_ACK_MS // 2
        elif gap_ms < self.patience_ms:
            self.patience_ms = min(self.patience_ms // 2 + gap_ms, MAX_DELAYED_ACK_MS)
        elif gap_ms > self._timeout_ms:
            self.quick = max(self.quick, self._quick_acks(self.mss))

    @property
    def _timeout_ms(self) -> int:
        return self.smoothed_ms + max(2 * self.smoothed_ms, LEAST_TIMEOUT_US // 1000)

    def _quick_acks(self, payload: int) -> int:
        """tcp_incr_quickack"""
        return min(self.window // (2 * payload) or 2, MAX_QUICK_ACKS)

    def _grow(self, payload: int) -> None:
        """Offer two segments more while the buffer would hold them (tcp_grow_window)."""
        free = self.buffer - payload - SEGMENT_OVERHEAD
        room = (free * self.payload_share >> 8) - self.threshold
        if room > 0:
            self.threshold += min(room, 2 * self.mss)
            self.quick = (self.quick or 0) | 1

    def _measure_echo(self, now: int, payload: int, echo: int) -> None:
        """RTT by the time stamps, whole milliseconds (tcp_rcv_rtt_measure_ts)."""
        if self._ms(echo) == self.last_echo_ms:
            return
        self.last_echo_ms = self._ms(echo)
        sample_us = (self._ms(now) - self.last_echo_ms) * 1000
        if payload < self.mss or sample_us <= 0:
            return
        if not self.round_trip_8 or sample_us * 8 < self.round_trip_8:
            self.round_trip_8 = sample_us * 8
        else:
            self.round_trip_8 += sample_us - (self.round_trip_8 >> 3)

    def _measure_window(self, now: int) -> None:
        """RTT as the time that a window takes, if that is less (tcp_rcv_rtt_measure)."""
        if self.window_round is not None:
            end, since = self.window_round
            if self.received < end:
                return
            sample_8 = max((now - since) // 1000, 1) * 8
            if not self.round_trip_8 or sample_8 < self.round_trip_8:
                self.round_trip_8 = sample_8
        self.window_round = (self.received + self.window, now)

    def _read(self, now: int) -> None:
        """Once a round trip, let the buffer follow what was read (tcp_rcv_space_adjust)."""
        elapsed_us = (now - self.measured_at) // 1000
        if not self.round_trip_8 or elapsed_us < self.round_trip_8 >> 3:
            return
        copied = self.received - self.measured_from
        if copied > self.space:
            self._enlarge(copied)
        self.measured_at, self.measured_from = now, self.received

    def _enlarge(self, copied: int) -> None:
        """Room for twice what came in a round trip, and its growth (tcp_rcvbuf_grow)."""
        before, self.space = self.space, copied
        window = 2 * copied
        us = self.round_trip_8 >> 3
        if us < 1000:  # tcp_rcvbuf_low_rtt
            window += window * us // 1000
        else:
            window += 2 * window * (copied - before) // before
        buffer = min((window << 8) // self.payload_share, MAX_RECEIVE_BUFFER)
        self.buffer = max(self.buffer, buffer)


def receive_window(initrwnd: int) -> int:
    """Bytes that the client's first acknowledgement offers, for a route's initrwnd."""
    return _scaled(min(initrwnd * SYN_MSS, DEFAULT_WINDOW))


def _scaled(window: int) -> int:
    """A window as the header can say it, rounded up (__tcp_select_window)."""
    return -(-window // WINDOW_SCALE) * WINDOW_SCALE
