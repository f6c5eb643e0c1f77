"""Linux TCP's receiver on a path that loses nothing: its acknowledgements and its window.

The rules are those of Linux 6.1 to 7.2 with the sysctls that testbed/network/kernel.py pins. The
kernel's functions are named where they are followed. Times are integer nanoseconds since the first
SYN left. Windows and buffers are in bytes.
"""

from __future__ import annotations

from firstflight.model.timers import LossTimer
from firstflight.net.buffers import RECEIVE_BUFFERS
from firstflight.net.headers import TIMESTAMP_BYTES
from firstflight.net.path import Clock, RoundTrip, Sent

SEGMENT_OVERHEAD = 832  # memory of a received segment beyond its payload (skb->truesize)
LEAST_FULL = 524  # bytes of a full segment, at least: TCP_MSS_DEFAULT without the time stamps
MAX_QUICK_ACKS = 16  # TCP_MAX_QUICKACKS
DELAYED_ACK_MS = 40  # TCP_DELACK_MIN, TCP_ATO_MIN
MAX_DELAYED_ACK_MS = 200  # TCP_DELACK_MAX
SYN_MSS = 1460  # the unit of initrwnd, bytes (tcp_select_initial_window)
MAX_WINDOW_SCALE = 14  # TCP_MAX_WSCALE
MOST_IN_A_HEADER = 65535  # the largest window in a header, in units of the window scale
# The scale is large enough for a window of these bytes: net.core.rmem_max, which has been this
# since Linux 6.18, and 212992 before.
LEAST_SCALED_FOR = 4 << 20


class Receiver:
    """A receiver whose program reads at once (tcp_data_queue).

    It decides when to acknowledge, and which window to offer.
    """

    def __init__(self, initrwnd: int, mss: int, connected: int, handshake_us: int, clock: Clock,
                 buffers: tuple[int, int], unit: int, probes: bool = True,
                 most_window: int = 0, window_mss: int = 0) -> None:
        """initrwnd: of the route, segments. mss: of full segments, bytes.
        connected: when this side was connected. handshake_us: the RTT that it measured then.
        buffers: the first and the largest size of its receive buffer (tcp_rmem).
        unit: how many bytes a unit of the header's window is. probes: as in LossTimer.
        most_window: as most_window_bytes of Transfer.
        window_mss: the first window is a multiple of these bytes; 0 for a client, whose SYN leaves
        before time stamps are agreed on (tcp_openreq_init_rwin).
        """
        self.mss = mss
        self.clock = clock
        # The RTT of packets that this side sends, such as the SYN or a request, and their timer.
        self.sent_round_trip = RoundTrip()
        self.timer = LossTimer(clock, self.sent_round_trip, probes)
        self.sample_round_trip(handshake_us)

        self.received = self.acknowledged = 0  # bytes
        self.stamp = 0  # the time stamp that it echoes (ts_recent)
        self.has_ended = False  # whether a FIN came

        # The window.
        self.unit = unit
        first = first_window(initrwnd, buffers, window_mss or mss + TIMESTAMP_BYTES)
        self.window = first if window_mss else round_to_unit(first, unit)  # a SYN-ACK has no unit
        self.offer: int | None = None  # the window to offer if it acknowledges before reading
        self.buffer, self.most_buffer = buffers
        self.payload_share = 128  # of memory, in 256ths (scaling_ratio)
        # The largest window of the buffer (window_clamp), with one segment reserved if two remain
        # (tcp_init_buffer_space).
        self.clamp = max(self.buffer // 2 - mss, min(self.buffer // 2, 2 * mss))
        self.most_window = most_window
        if most_window:
            self.clamp = min(self.clamp, most_window)
        self.threshold = min(first, self.clamp)  # the largest window for now (rcv_ssthresh)

        # The size of segments. A segment of `full` bytes or more counts as full
        # (tcp_initialize_rcv_mss).
        self.full = max(min(mss, self.window // 2, 536), 88)
        self.last_size = 0  # bytes of the last segment if it was short (last_seg_size)
        self.repeated = False  # whether two short segments in a row had the same size
        # Short segments since the last acknowledgement, or 1 for a full one with PSH
        # (ICSK_ACK_PUSHED, ICSK_ACK_PUSHED2).
        self.short_or_pushed = 0

        # Acknowledgements.
        self.scheduled = False  # whether an acknowledgement of repeated data is due
        self.quick: int | None = None  # quick acknowledgements left
        self.interactive = False  # pingpong mode: acknowledgements wait for data to carry them
        self.ack_timeout_ms = DELAYED_ACK_MS  # icsk_ack.ato
        self.last_ms = 0  # when data came last, jiffies
        # The timer of a delayed acknowledgement: when it is due, in jiffies, and when it fires;
        # None while it does not run.
        self.timer_due = 0
        self.timer_at: int | None = None

        # How fast the program reads (tcp_rcv_space_adjust).
        self.space = min(self.threshold, self.window, 10 * mss)  # bytes read in the last round trip
        # When the current measurement began, and the byte at which it began.
        self.measured_at, self.measured_from = connected, 0
        self.round_trip_8 = 0  # 8 times the RTT, µs; 0 before the first sample
        # The byte at the end of the window that is measured now, and when it began to arrive.
        self.window_round: tuple[int, int] | None = None
        # The last time stamp that a packet echoed. The server's acknowledgement of the request was
        # the first to echo this one.
        self.last_echo_ms = self.clock.jiffies(connected)

    def sample_round_trip(self, us: int) -> None:
        """Take the RTT of a packet that this side sent and that was acknowledged (tcp_ack)."""
        self.sent_round_trip.sample(us, new_round=bool(self.sent_round_trip.smoothed_8))
        self.timer.update_timeout()

    def take(self, now: int, segment: Sent, echo: int, sent_at: int) -> None:
        """Take a segment (tcp_event_data_recv).

        echo: when this side sent the packet whose time stamp the segment echoes. sent_at: the
        segment's own time stamp.
        """
        payload = segment.payload
        self.note_stamp(self.received, sent_at)
        self._measure_echo(now, payload, echo)
        self.received += payload
        self._measure_full(payload)
        self._measure_window(now)
        self._adapt(now, payload)
        if payload >= 128:
            self._grow(payload)

    def read(self, now: int, segment: Sent, upto: int = 0) -> bool:
        """Read the segment; return whether to acknowledge it at once (__tcp_ack_snd_check).

        A short segment, a segment with PSH, and a segment after which less than half of the
        possible window is left are acknowledged once they are read (tcp_measure_rcv_mss,
        tcp_cleanup_rbuf). upto: the byte up to which the first of several calls reads; 0 for one
        call.
        """
        # A segment that is acknowledged before it is read takes memory (__tcp_select_window).
        memory = segment.payload + SEGMENT_OVERHEAD
        self.offer = self._offer(memory)
        has_full = self.received + self.has_ended - self.acknowledged > self.full
        at_once = ((bool(self.quick) and not self.interactive)
                   or (has_full and self.offer >= self.window) or not self._delay(now))

        self._adjust_space(now, upto or self.received)
        self._note_short(segment)
        due = at_once or (upto > 0 and self._is_due(has_full, memory)) or self._is_due(has_full, 0)
        if self.most_window:  # the program sets it again once it has read (tcp_set_window_clamp)
            self.clamp = self.most_window
            self.threshold = min(self.threshold, self.most_window)
        return due

    def _is_due(self, has_full: bool, unread: int) -> bool:
        """Set the window to offer; return whether a read call acknowledges (tcp_cleanup_rbuf).

        has_full: whether more than a full segment is not acknowledged. unread: memory of a segment
        of which the call read only a part.
        """
        self.offer = self._offer(unread)
        left = self.window - (self.received - self.acknowledged)
        doubles = 2 * left <= self.clamp and self.offer >= 2 * left
        is_pushed = self.short_or_pushed > 1 or (not self.interactive and self.short_or_pushed > 0)
        due = has_full or doubles or (not unread and is_pushed)
        self.offer = self.offer if due else None
        return due

    def _note_short(self, segment: Sent) -> None:
        """Note a segment that is short or has PSH (tcp_measure_rcv_mss)."""
        if segment.payload < self.full:
            self.short_or_pushed += 1
        elif segment.pushed and not self.repeated:
            self.short_or_pushed = max(self.short_or_pushed, 1)

    def _offer(self, unread: int) -> int:
        """The window to offer (__tcp_select_window). unread: memory of data that is not read yet.

        Without a scale the window is a multiple of a segment, and stays as it is while less than
        one segment is free.
        """
        free = min(self.threshold, (self.buffer - unread) * self.payload_share >> 8)
        if self.unit > 1:
            return round_to_unit(free, self.unit)

        most = min(self.buffer * self.payload_share >> 8, self.clamp)
        segment = min(self.full, most)
        if self.window <= free - segment or self.window > free:
            return round_to_unit(free // segment * segment, self.unit)
        return free if segment == most and free > self.window + most // 2 else self.window

    def note_stamp(self, begin: int, sent_at: int) -> None:
        """Echo the time stamp of a segment, unless an earlier segment is not acknowledged yet.

        begin: the segment's first byte. A copy of the first segment that is not acknowledged
        replaces that segment's stamp (tcp_replace_ts_recent; RFC 7323, 4.3).
        """
        if begin <= self.acknowledged:
            self.stamp = max(self.stamp, sent_at)

    def receive_duplicate(self, now: int, segment: Sent, echo: int, sent_at: int) -> None:
        """Take a segment that has come once already, and acknowledge it at once
        (tcp_enter_quickack_mode).

        If it was acknowledged already, nothing else happens (tcp_validate_incoming). If not, its
        time stamp is measured, and its acknowledgement counts as an acknowledgement of data.
        """
        self.enter_quick_mode()
        if segment.retransmitted >= self.acknowledged:
            self.note_stamp(segment.retransmitted - segment.payload, sent_at)
            self._measure_echo(now, segment.payload, echo)
            self.scheduled = True

    def take_fin(self) -> None:
        """Take a FIN (tcp_fin). It counts as a byte."""
        self.interactive = self.has_ended = True

    def enter_quick_mode(self) -> None:
        """Acknowledge quickly, since data has come twice (tcp_enter_quickack_mode)."""
        self.quick = max(self.quick or 0, self._quick_acks())
        self.interactive, self.ack_timeout_ms = False, DELAYED_ACK_MS

    def acknowledge_with_data(self, now: int) -> tuple[int, int]:
        """Send data that acknowledges as well (tcp_event_data_sent).

        Returns the same as `acknowledge`.
        """
        if self.quick is not None and self.clock.jiffies(now) - self.last_ms < self.ack_timeout_ms:
            self.interactive = True
        return self.acknowledge()

    def acknowledge(self) -> tuple[int, int]:
        """Send an acknowledgement; return its number and the end of the window."""
        self.scheduled |= self.received > self.acknowledged
        if self.quick and self.scheduled:  # tcp_dec_quickack_mode
            self.quick -= 1
            if not self.quick:
                self.ack_timeout_ms = DELAYED_ACK_MS

        # The end of the window never moves back.
        offer, self.offer = self.offer, None
        left = round_to_unit(self.window - (self.received - self.acknowledged), self.unit)
        self.window = max(left, self._offer(0) if offer is None else offer)

        self.acknowledged, self.scheduled = self.received, False
        self.short_or_pushed = 0
        self.timer_at = None
        return self.acknowledged, self.acknowledged + self.window

    def _delay(self, now: int) -> bool:
        """Delay the acknowledgement; False if it would be due too soon (tcp_send_delayed_ack)."""
        delay_ms = min(self.ack_timeout_ms, max(self._smoothed_ms, DELAYED_ACK_MS),
                       MAX_DELAYED_ACK_MS - 1)  # tcp_delack_max
        due = self.clock.jiffies(now) + delay_ms
        if self.timer_at is not None:
            if self.timer_due <= self.clock.jiffies(now) + delay_ms // 4:
                return False
            if self.timer_due <= due:
                return True

        self.timer_due = due
        self.timer_at = self.clock.expiry(now, due)
        return True

    def lengthen_delay(self) -> None:
        """Adapt the delay: a delayed acknowledgement is due (tcp_delack_timer_handler)."""
        if self.interactive:
            self.interactive, self.ack_timeout_ms = False, DELAYED_ACK_MS
        else:
            self.ack_timeout_ms = min(2 * self.ack_timeout_ms, self.timer.timeout,
                                      MAX_DELAYED_ACK_MS)

    def _adapt(self, now: int, payload: int) -> None:
        """Adapt acknowledgements to the gap since the last data (tcp_event_data_recv).

        It changes how many are quick, and how long others are delayed.
        """
        gap_ms = self.clock.jiffies(now) - self.last_ms
        self.last_ms += gap_ms
        if self.quick is None:
            self.quick = self._quick_acks()
        elif gap_ms <= DELAYED_ACK_MS // 2:
            self.ack_timeout_ms = self.ack_timeout_ms // 2 + DELAYED_ACK_MS // 2
        elif gap_ms < self.ack_timeout_ms:
            self.ack_timeout_ms = min(self.ack_timeout_ms // 2 + gap_ms, MAX_DELAYED_ACK_MS)
        elif gap_ms > self.timer.timeout:
            self.quick = max(self.quick, self._quick_acks())

    @property
    def _smoothed_ms(self) -> int:
        """The smoothed RTT, rounded up."""
        return -(-(self.sent_round_trip.smoothed_8 >> 3) // 1000)

    def _quick_acks(self) -> int:
        """How many acknowledgements may be quick now (tcp_incr_quickack)."""
        return min(self.window // (2 * self.full) or 2, MAX_QUICK_ACKS)

    def _measure_full(self, payload: int) -> None:
        """Learn the size of a full segment, and how much of the memory is payload.

        Two shorter segments of the same size in a row count as full from then on
        (tcp_measure_rcv_mss).
        """
        last, self.last_size, self.repeated = self.last_size, 0, False
        if payload > self.full:
            self.full = payload
            before = self.payload_share
            self.payload_share = payload * 256 // (payload + SEGMENT_OVERHEAD)
            if self.payload_share != before:  # else one segment stays reserved
                self.clamp = self.buffer * self.payload_share >> 8
                self.space = min(self.space, self.clamp)
        elif LEAST_FULL <= payload < self.full:
            self.last_size, self.repeated = payload, payload == last
            if self.repeated:
                self.full = payload

    def _grow(self, payload: int) -> None:
        """Offer two segments more while the buffer would hold them (tcp_grow_window)."""
        free = self.buffer - payload - SEGMENT_OVERHEAD
        room = min(self.clamp, free * self.payload_share >> 8) - self.threshold
        if room > 0:
            self.threshold += min(room, 2 * self.mss)
            self.quick = (self.quick or 0) | 1

    def note_echo(self, echo: int) -> bool:
        """Note the time that a packet echoes; return whether it is a new one."""
        echo_ms = self.clock.jiffies(echo)
        is_new = echo_ms != self.last_echo_ms
        self.last_echo_ms = echo_ms
        return is_new

    def _measure_echo(self, now: int, payload: int, echo: int) -> None:
        """Measure the RTT by time stamps, in whole milliseconds (tcp_rcv_rtt_measure_ts)."""
        if not self.note_echo(echo):
            return

        sample_us = (self.clock.jiffies(now) - self.last_echo_ms) * 1000
        if payload < self.full or sample_us <= 0:
            return

        if not self.round_trip_8 or sample_us * 8 < self.round_trip_8:
            self.round_trip_8 = sample_us * 8
        else:
            self.round_trip_8 += sample_us - (self.round_trip_8 >> 3)

    def _measure_window(self, now: int) -> None:
        """Measure the RTT as the time of a whole window, if that is less (tcp_rcv_rtt_measure)."""
        if self.window_round is not None:
            end, since = self.window_round
            if self.received < end:
                return

            sample_8 = max(self.clock.us(now) - self.clock.us(since), 1) * 8
            if not self.round_trip_8 or sample_8 < self.round_trip_8:
                self.round_trip_8 = sample_8
        self.window_round = (self.received + self.window, now)

    def _adjust_space(self, now: int, upto: int) -> None:
        """Once a round trip, adapt the buffer to the bytes read (tcp_rcv_space_adjust)."""
        elapsed_us = self.clock.us(now) - self.clock.us(self.measured_at)
        if not self.round_trip_8 or elapsed_us < self.round_trip_8 >> 3:
            return

        copied = upto - self.measured_from - (self.received - upto)  # without bytes that still wait
        if copied > self.space:
            self._enlarge(copied)
        self.measured_at, self.measured_from = now, upto

    def _enlarge(self, copied: int) -> None:
        """Make room for twice a round trip's bytes and their growth (tcp_rcvbuf_grow)."""
        before, self.space = self.space, copied

        window = 2 * copied
        us = self.round_trip_8 >> 3
        if us < 1000:  # tcp_rcvbuf_low_rtt
            window += window * us // 1000
        else:
            window += 2 * window * (copied - before) // before

        buffer = min((window << 8) // self.payload_share, self.most_buffer)
        if buffer > self.buffer:
            self.buffer, self.clamp = buffer, buffer * self.payload_share >> 8


# The window -----------------------------------------------------------------------------

def window_unit(buffers: tuple[int, int], most_window: int = 0) -> int:
    """Bytes in a unit of the header's window (tcp_select_initial_window).

    most_window: bytes to which the program has limited the window; 0 for no limit. On an older
    kernel a unit may have fewer bytes, by net.core.rmem_max; the kernel's SYN shows how many.
    """
    space = max(buffers[0] // 2, buffers[1], LEAST_SCALED_FOR)
    space = min(space, most_window or space)
    return int(1 << min(max(space.bit_length() - 16, 0), MAX_WINDOW_SCALE))


def receive_window(initrwnd: int, buffers: tuple[int, int] = RECEIVE_BUFFERS,
                   syn_mss: int = SYN_MSS, unit: int = 0) -> int:
    """How many bytes the client's first acknowledgement offers, for a route's initrwnd.

    unit: bytes in a unit of the header's window; 0 for the result of window_unit.
    """
    return round_to_unit(first_window(initrwnd, buffers, syn_mss), unit or window_unit(buffers))


def enlarge_buffers(awaited_bytes: int, buffers: tuple[int, int]) -> tuple[int, int]:
    """A receive buffer's first and largest size if the program awaits `awaited_bytes` at once.

    The buffer has to hold these bytes, as far as its largest size allows (tcp_set_rcvlowat).
    """
    first, most = buffers
    return max(first, 2 * min(awaited_bytes, most // 2)), most


def first_window(initrwnd: int, buffers: tuple[int, int], syn_mss: int = SYN_MSS) -> int:
    """The first window: half of the buffer, or the route's window if that is smaller.

    It is a multiple of syn_mss.
    """
    return min(initrwnd, buffers[0] // 2 // syn_mss) * syn_mss


def round_to_unit(window: int, unit: int) -> int:
    """A window rounded up to whole units, as the header's 16 bits hold it (__tcp_select_window)."""
    return min(-(-window // unit), MOST_IN_A_HEADER) * unit
