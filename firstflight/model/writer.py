"""The data that a program has written and TCP has not sent yet: skbs, limited by the send buffer.

The rules are those of Linux 6.1 to 7.2 with the sysctls that testbed/network/kernel.py pins.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from firstflight.net.buffers import SEND_BUFFERS, buffer_per_segment
from firstflight.net.path import Sent

# sk_gso_max_size: GSO_LEGACY_MAX_SIZE less MAX_TCP_HEADER and one. The header is 192 bytes in a
# kernel without wireless networks and tunnels, as the guest's is, and 320 in a distribution's.
MAX_BATCH_BYTES = 65536 - 192 - 1
SENDING_OVERHEAD = 832  # bytes of memory that an skb takes besides its payload
USUAL_MSS = 536  # bytes (TCP_MSS_DEFAULT)


@dataclass
class Waiting:
    """One skb that was written and not sent."""

    size: int = 0  # bytes
    pushed: bool = False
    # Sequence number at the end of the last write that ends in this skb; 0 if none does.
    call_end: int = 0


@dataclass
class Batch:
    """Segments that left together as one skb."""

    ends: deque[int]  # the sequence number at the end of each segment that is not acknowledged
    sent_at: int  # when the skb left the last time, ns
    retransmitted: bool = False
    call_end: int = 0  # as in Waiting


@dataclass
class Writer:
    """The program's side of a socket that sends (tcp_sendmsg_locked); the sender extends it.

    Counts are bytes unless another unit is named.
    """

    mss: int  # of a full segment; smaller if the largest offered window is small
    window: int  # the congestion window, segments; initcwnd at first
    window_end: int  # sequence number at the end of the receiver's window
    buffers: tuple[int, int] = SEND_BUFFERS  # the send buffer at first and at most (tcp_wmem)
    # Whether the program waits before each write until the socket is writable, as curl does.
    # Another program waits only when the buffer is full.
    polls: bool = False
    written: int = 0
    sent: int = 0
    acknowledged: int = 0
    in_flight: int = 0  # segments
    waiting: deque[Waiting] = field(default_factory=deque)  # written and not sent
    batches: deque[Batch] = field(default_factory=deque)  # sent and not acknowledged
    closed: bool = False  # whether the FIN waits behind the last byte
    # Whether the FIN waits alone, since the last byte has left. A FIN counts as a byte.
    fin_waiting: bool = False
    fin_sent: bool = False
    largest_offer: int = 0  # the largest window that the receiver has offered
    pushed_at: int = 0  # how much was written when data last got PSH
    calls: deque[int] = field(default_factory=deque)  # how many bytes of each write are not copied
    starved: bool = False  # whether the buffer is full (SOCK_NOSPACE)
    # Whether the end of a write was acknowledged, and the program does not know it yet.
    call_acknowledged: bool = False
    last_write: bool = False  # whether the program shuts the connection down after its writes
    buffer: int = 0  # the size of the send buffer
    full_mss: int = 0  # the MSS if the offered window is large enough
    per_segment: int = 0  # how much of the buffer a segment takes

    def __post_init__(self) -> None:
        self.buffer = self.buffers[0]
        self.full_mss = self.mss
        self.per_segment = buffer_per_segment(self.mss)
        self._expand_buffer()
        self.note_offer(self.window_end)

    def note_offer(self, window: int) -> None:
        """Adapt the MSS to the window that the receiver offers (tcp_sync_mss)."""
        self.largest_offer = max(self.largest_offer, window)
        self.mss = min(self.full_mss, self._most_at_once)

    @property
    def _most_at_once(self) -> int:
        """Half of the largest offered window, or all of a small window (tcp_bound_to_half_wnd)."""
        return self.largest_offer // 2 if self.largest_offer > USUAL_MSS else self.largest_offer

    def transmit(self, now: int, only_one: bool = False) -> list[Sent]:
        """Send what the windows allow (Sender)."""
        raise NotImplementedError

    def copy(self, now: int) -> list[Sent]:
        """Copy the program's writes into the buffer while it has room.

        Returns the segments that leave meanwhile.
        """
        out: list[Sent] = []
        while self.calls:
            if self.polls and not self._is_writable():
                return out

            sent, is_whole = self._copy_call(now)
            out += sent
            if not is_whole:
                return out

            if len(self.calls) == 1:
                self.closed = self.last_write
            self._note_call()
            self.calls.popleft()

        self._is_writable()  # the program checks this as it waits next (tcp_poll)
        return out

    def _copy_call(self, now: int) -> tuple[list[Sent], bool]:
        """Copy the program's first write (tcp_sendmsg_locked).

        Returns the segments that leave meanwhile, and whether all of the write was copied.
        """
        half = self.largest_offer // 2
        most = min(self._most_at_once, MAX_BATCH_BYTES)
        goal = max(most // self.mss, 1) * self.mss  # tcp_xmit_size_goal

        out: list[Sent] = []
        call_began = self.written
        while self.calls[0]:
            if not self.waiting or self.waiting[-1].size >= goal:
                if self._memory() >= self.buffer:
                    self.starved = True
                    if self.written == call_began:
                        return out, False
                    # The kernel pushes twice: for lack of memory, and as the call ends.
                    out += self._push(now)
                    self._note_call()
                    out += self._push(now)
                    # The program's next call fills up the last skb if some of its bytes have left.
                    call_began = self.written
                    continue
                self.waiting.append(Waiting())

            tail = self.waiting[-1]
            taken = min(goal - tail.size, self.calls[0])
            tail.size += taken
            tail.pushed = tail.pushed and self.written > call_began  # a call's first bytes clear it
            self.written += taken
            self.calls[0] -= taken

            if not self.calls[0] or self.written > self.pushed_at + half:
                out += self._push(now)
            elif len(self.waiting) == 1:
                out += self.transmit(now, only_one=True)
        return out, True

    def wakes(self, now: int) -> bool:
        """Whether an acknowledgement wakes a program that has more to write (tcp_check_space).

        If the buffer was not full, only a time stamp wakes the program, which then polls (tcp_poll)
        and finds the socket writable.
        """
        self.make_room(now)
        is_stamped, self.call_acknowledged = self.call_acknowledged, False
        return ((self.starved or is_stamped) and (self._is_writable() or is_stamped)
                and bool(self.calls))

    def make_room(self, now: int) -> bool:
        """Enlarge a full buffer if the window is not full (tcp_check_space, tcp_new_space).

        Returns whether it was enlarged.
        """
        grows = self.starved and self.in_flight < self.window
        if grows:
            self._expand_buffer()
        return grows

    def fill(self, wanted: int) -> None:
        """Fill the first skb up to `wanted` bytes from the second one (tcp_grow_skb)."""
        if self.waiting[0].size >= wanted or len(self.waiting) == 1:
            return

        first, second = self.waiting[0], self.waiting[1]
        moved = min(wanted - first.size, second.size)
        first.size += moved
        second.size -= moved
        if not second.size:
            first.pushed = second.pushed
            first.call_end = second.call_end or first.call_end  # tcp_skb_collapse_tstamp
            del self.waiting[1]

    def split(self, size: int) -> None:
        """Cut the first skb after `size` bytes (tso_fragment)."""
        first = self.waiting[0]
        if first.size <= size:
            return

        rest = Waiting(first.size - size, first.pushed)
        if first.call_end > self.sent + size:  # tcp_fragment_tstamp
            first.call_end, rest.call_end = 0, first.call_end
        self.waiting.insert(1, rest)
        first.size, first.pushed = size, False

    def _push(self, now: int) -> list[Sent]:
        """Set PSH on the data that was written last, and send what may leave (tcp_push)."""
        if self.waiting:
            self.waiting[-1].pushed, self.pushed_at = True, self.written
        return self.transmit(now)

    def _note_call(self) -> None:
        """Note where a write ends (tcp_tx_timestamp).

        When its end is acknowledged, the program gets a time stamp.
        """
        (self.waiting or self.batches)[-1].call_end = self.written

    def _is_writable(self) -> bool:
        """Whether the program may write (sk_stream_is_writeable)."""
        memory = self._memory()
        self.starved = self.buffer - memory < memory // 2
        return not self.starved

    def _expand_buffer(self) -> None:
        """Adapt the buffer's size to the window (tcp_sndbuf_expand)."""
        wanted = max(self.window, 10) * self.per_segment
        self.buffer = max(self.buffer, min(wanted, self.buffers[1]))

    def _memory(self) -> int:
        """Memory of data that was written and not acknowledged (sk_wmem_queued)."""
        skbs = len(self.waiting) + len(self.batches)
        return self.written - self.acknowledged + skbs * SENDING_OVERHEAD
