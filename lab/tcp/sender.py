"""Linux TCP's sender on a path that loses nothing, segment by segment.

The rules are those of Linux 6.1 to 7.2 with the sysctls that topo.py pins;
the kernel's functions are named where they are followed. Times are integer
nanoseconds since the first SYN left, sequence numbers are bytes of the
response from 0.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from lab.tcp.cubic import MAX_BATCH_BYTES, Cubic
from lab.tcp.packets import MS
from lab.tcp.path import RoundTrip, Sent

SENDING_OVERHEAD = 832  # memory of an skb to be sent beyond its payload
BUFFER_PER_SEGMENT = 2 * 2304  # of the send buffer (tcp_sndbuf_expand)
SEND_BUFFERS = (16384, 4194304)  # tcp_wmem[1], tcp_wmem[2]


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


@dataclass
class Sender:
    """The server: which segments leave when (tcp_write_xmit).

    window: initcwnd at first, segments; window_end: what the receiver offers;
    handshake_us: SYN-ACK to its acknowledgement; phase_ns: into a millisecond
    of the kernel's clock at 0; hystart: whether CUBIC has it;
    restart_after_idle: tcp_slow_start_after_idle; buffers: bytes that the send
    buffer has at first and at most (tcp_wmem).
    """

    mss: int
    window: int
    window_end: int
    handshake_us: int
    phase_ns: int
    hystart: bool
    restart_after_idle: bool = True
    buffers: tuple[int, int] = SEND_BUFFERS
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
        self.buffer = self.buffers[0]
        self._expand_buffer()
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
            self._expand_buffer()
        memory = self._memory()
        if self.buffer - memory < memory // 2:  # sk_stream_is_writeable
            return []
        return self._copy(now)

    def _expand_buffer(self) -> None:
        """tcp_sndbuf_expand"""
        wanted = max(self.window, 10) * BUFFER_PER_SEGMENT
        self.buffer = max(self.buffer, min(wanted, self.buffers[1]))

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
