"""Linux TCP's sender on a path that loses nothing, segment by segment.

The rules are those of Linux 6.1 to 7.2 with the sysctls that testbed/network/kernel.py pins. The
kernel's functions are named where they are followed. Times are integer nanoseconds since the first
SYN left. Sequence numbers count the bytes that this side sends, from 0.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from firstflight.model.window import Windowed
from firstflight.model.writer import SENDING_OVERHEAD, Batch
from firstflight.net.path import Sent
from firstflight.net.segments import MS


@dataclass(kw_only=True)
class Sender(Windowed):
    """One side of a connection: which segments leave when (tcp_write_xmit)."""

    probe_segments: int = 0  # how many segments of new data left alone, each as a probe
    # Bytes of memory in the host's own queue (sk_wmem_alloc). None while the program writes: the
    # queue is then emptied at once.
    queued: int | None = None
    throttled: bool = False  # whether that queue holds so much that data waits
    retransmitted: int = 0  # segments
    reserved: int = 0  # bytes of options for which every segment leaves room
    carried: int = 0  # bytes of options that the next skb carries

    def write(self, now: int, *sizes: int, last: bool) -> list[Sent]:
        """Let the program write; return the segments that leave meanwhile.

        sizes: bytes of each call. last: whether the program shuts the connection down after these
        calls.
        """
        self.restart_idle(now)
        self.calls.extend(sizes)
        self.last_write = last
        return self.copy(now)

    def join_waiting_write(self, size: int) -> bool:
        """Add bytes to a write that waits for room in the buffer; return whether there was one."""
        if self.calls:
            self.calls[-1] += size
        return bool(self.calls)

    def write_fin(self, now: int) -> list[Sent]:
        """Shut down; return the FIN if it leaves now and alone (tcp_send_fin).

        While the buffer has no room for all writes, no FIN is sent: the writes come first.
        """
        if self.calls:
            return []
        self.fin_waiting = not self.waiting
        return self.transmit(now)

    def release_waiting(self, now: int, option_bytes: int = 0) -> list[Sent]:
        """Send waiting data at once after an acknowledgement (tcp_data_snd_check).

        Meanwhile no packet leaves the host's own queue. option_bytes: of an acknowledgement that is
        due. The first skb carries these options, and every segment that leaves now is shorter by
        them (tcp_current_mss).
        """
        self.queued, self.reserved, self.carried = 0, option_bytes, option_bytes
        out = self.transmit(now)
        self.queued, self.reserved, self.carried = None, 0, 0
        return out

    def release_written(self, now: int) -> list[Sent]:
        """Send what a woken program writes, then what the host's own queue has delayed."""
        was_throttled, had_calls = self.throttled, bool(self.calls)
        out = self.copy(now)
        if had_calls and self.last_write:
            out += self.write_fin(now)
        self.throttled = was_throttled
        return out + self.release_held(now)

    def release_held(self, now: int) -> list[Sent]:
        """Send what the host's own queue has delayed (tcp_tsq_write)."""
        out: list[Sent] = []
        while self.throttled:
            out += self.release_waiting(now)
        return out

    @property
    def mss_now(self) -> int:
        """Bytes of a full segment that leaves now."""
        return self.mss - self.reserved

    def transmit(self, now: int, only_one: bool = False, probe: bool = False) -> list[Sent]:
        """Send what both windows allow, as skbs of a few segments each.

        only_one: one skb at most. probe: one skb at most, even if the congestion window is full.
        """
        out: list[Sent] = []
        self.throttled = False
        if not self.waiting and not self.fin_waiting:
            return out

        was_idle = not self.batches
        limited = False  # whether the congestion window keeps data from leaving
        most = self.batch_segments()
        while self.waiting and not self.before_timeout and (self.in_flight < self.window or probe):
            allowed = min(max(self.window // 2, 1), max(self.window - self.in_flight, 1))
            quota = min(allowed, most) * self.mss_now
            self.fill(quota)
            size = self.waiting[0].size
            room = self.window_end - self.sent  # in the receiver's window
            if room < min(size, self.mss_now):
                break

            if (size > self.mss_now and not (only_one or probe)
                    and self._should_wait(now, room, most)):
                limited = self._congestion_room() < min(room, size + 1)
                break

            self.split(min(size, room, quota))
            if self._is_throttled():
                self.throttled = True
                break

            out += self._take(now)
            if only_one or probe:
                break

        if self.fin_waiting and (self.in_flight < self.window or probe) and (
                not self.before_timeout and self.sent < self.window_end):
            out += self._take_fin(now)

        limited |= self.in_flight >= self.window or self.before_timeout is not None
        if out or limited:
            self.note_use(now, limited)
        if out and not probe:
            self._start_timer(now, was_idle)
        return out

    def _is_throttled(self) -> bool:
        """Whether the host's own queue holds enough of this sender (tcp_small_queue_check)."""
        memory = self.waiting[0].size + SENDING_OVERHEAD
        return (self.queued is not None and len(self.batches) > 1
                and self.queued >= max(2 * memory, self.pacing >> 10))

    def _start_timer(self, now: int, was_idle: bool) -> None:
        """Start or adapt the timer after new data was sent."""
        oldest = self.batches[0].sent_at if self.batches else now
        self.timer.note_sent(now, was_idle, self.in_flight, oldest)

    def expire(self, now: int) -> list[Sent]:
        """Handle the timer, which has fired; return the segments that it sends."""
        if not self.timer.probe:
            return self._time_out(now)

        self.timer.at = None
        out = [] if self.timer.probed_upto else self._probe(now)
        if out:
            self.timer.probed_upto = self.sent
            self.timer.repeated = out[0].retransmitted > 0
            self.timer.restart(now)
        else:
            self.timer.resume(now, self.batches[0].sent_at if self.batches else now)
        return out

    def _probe(self, now: int) -> list[Sent]:
        """Send new data as a probe (tcp_send_loss_probe).

        If the receiver's window has no room for it, the last segment is repeated.
        """
        room = self.window_end - self.sent
        if self.waiting:
            has_room = min(self.waiting[0].size, self.mss) <= room
        else:
            has_room = self.fin_waiting and room > 0
        if not has_room:
            return self._repeat_last(now)

        out = self.transmit(now, probe=True)
        self.probe_segments += len(out) == 1 and out[0].payload > 0
        return out

    def _repeat_last(self, now: int) -> list[Sent]:
        """Retransmit the last segment as a probe, cut from its skb."""
        batch = self.batches[-1]
        if len(batch.ends) > 1:
            end, call_end = batch.ends.pop(), 0
            if batch.call_end > batch.ends[-1]:
                batch.call_end, call_end = 0, batch.call_end
            self.batches.append(Batch(deque([end]), now, call_end=call_end))

        return self._retransmit(now, self.batches[-1])

    def _time_out(self, now: int) -> list[Sent]:
        """Retransmit the first segment (tcp_retransmit_timer).

        Its acknowledgement undoes the timeout.
        """
        self.timer.at = None
        if not self.batches or self.timer.gives_up(now):
            return []

        self.enter_loss(now)
        self.timer.probed_upto, self.timer.open = 0, False
        batch = self.batches[0]
        if len(batch.ends) > 1:
            end, call_end = batch.ends.popleft(), 0
            if 0 < batch.call_end <= end:
                batch.call_end, call_end = 0, batch.call_end
            self.batches.appendleft(Batch(deque([end]), now, batch.retransmitted, call_end))

        out = self._retransmit(now, self.batches[0])
        self.timer.back_off(now)
        return out

    def _retransmit(self, now: int, batch: Batch) -> list[Sent]:
        """Retransmit an skb that has one segment only, or the FIN."""
        batch.sent_at, batch.retransmitted = now, True
        self.last_sent_at = now
        if self.fin_sent and batch is self.batches[-1]:
            return [Sent(0, False, retransmitted=self.sent)]

        self.retransmitted += 1
        begin = self.acknowledged if batch is self.batches[0] else self.batches[-2].ends[-1]
        return [Sent(batch.ends[-1] - begin, False, retransmitted=batch.ends[-1])]

    def acknowledge(self, now: int, upto: int, window_end: int, stamp: int,
                    duplicate: bool = False) -> None:
        """Take an acknowledgement (tcp_ack, tcp_clean_rtx_queue).

        stamp: the time stamp that it echoes. duplicate: whether it reports a segment that arrived
        twice (DSACK).
        """
        count, retransmitted = 0, False  # segments that are acknowledged now
        first_sent = last_sent = 0  # when the first and the last of them left
        while self.batches and self.batches[0].ends[0] <= upto:
            batch = self.batches[0]
            first_sent = last_sent if count else batch.sent_at
            last_sent = batch.sent_at
            retransmitted |= batch.retransmitted
            while batch.ends and batch.ends[0] <= upto:
                batch.ends.popleft()
                count += 1
            if not batch.ends:
                self.batches.popleft()
                self._note_call_acknowledged(batch, upto)
        if self.batches:
            self._note_call_acknowledged(self.batches[0], upto)

        self.note_offer(window_end - upto)
        self.window_end = max(self.window_end, window_end)

        if self.timer.probed_upto and upto >= self.timer.probed_upto and (
                duplicate or not self.timer.repeated):
            self.timer.probed_upto = 0
        if duplicate or not self.timer.open:  # tcp_try_keep_open
            self.timer.open = not (self.batches and self.batches[0].retransmitted)
        if not count:
            return

        self.acknowledged = upto
        self.in_flight -= count
        if retransmitted:  # then only time stamps show the RTT, in ms (tcp_rtt_tsopt_us)
            elapsed_ms = max(self.clock.jiffies(now) - self.clock.jiffies(stamp), 1)
            first_sent = last_sent = now - elapsed_ms * MS
        # A segment that came twice counts as two (tcp_dsack_seen).
        self.grow(now, count + duplicate, first_sent, last_sent)

    def _note_call_acknowledged(self, batch: Batch, upto: int) -> None:
        """Note whether the end of one of the program's writes was acknowledged (tcp_ack_tstamp)."""
        self.call_acknowledged |= self.acknowledged < batch.call_end <= upto

    def _take_fin(self, now: int) -> list[Sent]:
        """Send the FIN alone."""
        self.fin_waiting, self.fin_sent = False, True
        self.sent += 1
        self.in_flight += 1
        self.batches.append(Batch(deque([self.sent]), now))
        return [Sent(0, False)]

    def _take(self, now: int) -> list[Sent]:
        """Send the first skb that waits; return its segments."""
        skb = self.waiting.popleft()
        payloads = [self.mss_now] * (skb.size // self.mss_now)
        if skb.size % self.mss_now:  # the last segment is not full
            payloads.append(skb.size % self.mss_now)

        batch = Batch(deque(), now, call_end=skb.call_end)
        for payload in payloads:
            self.sent += payload
            batch.ends.append(self.sent)
        self.batches.append(batch)
        self.in_flight += len(payloads)
        if self.queued is not None:  # each segment takes its own memory there (tcp_gso_segment)
            self.queued += skb.size + len(payloads) * SENDING_OVERHEAD
        self.make_room(now)
        self.last_sent_at = now

        # Every skb of several segments ends with PSH (__tcp_transmit_skb).
        pushed = len(payloads) > 1 or skb.pushed
        options, self.carried = self.carried, 0
        return [*(Sent(payload, False, option_bytes=options) for payload in payloads[:-1]),
                Sent(payloads[-1], pushed, option_bytes=options)]

    def _congestion_room(self) -> int:
        """How many bytes the congestion window still lets leave."""
        return (self.window - self.in_flight) * self.mss

    def _should_wait(self, now: int, room: int, most: int) -> bool:
        """Whether to wait for an acknowledgement that lets a larger skb leave.

        It follows tcp_tso_should_defer. room: bytes that the receiver's window still lets leave.
        most: segments of an skb.
        """
        if now - self.last_sent_at > MS or not self.batches:
            return False

        size, limit = self.waiting[0].size, min(room, self._congestion_room())
        is_last = len(self.waiting) == 1
        if limit >= most * self.mss or (not is_last and limit >= size):
            return False

        offered = self.window_end - self.acknowledged
        if limit >= min(offered, self.window * self.mss) // 3:  # tcp_tso_win_divisor
            return False

        smoothed_ns = self.round_trip.smoothed_8 * 125  # 8 times the RTT in µs, × 1000 / 8
        if self.batches[0].sent_at + smoothed_ns - now > min(smoothed_ns // 2, MS):
            return False
        return limit <= size or not (is_last and self.closed)
