"""The simulation of a connection that loses nothing: every segment, acknowledgement and timer.

Times are integer nanoseconds since the first SYN left.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import partial
from itertools import accumulate

from firstflight.model.endpoints import Ends
from firstflight.model.network import Happening
from firstflight.model.transfer import Secure, Transfer
from firstflight.net.path import Sent
from firstflight.net.segments import HEADER_BYTES
from firstflight.net.waiting import waited_ns
from firstflight.wire.flights import Flights

RECORD_HEADER_BYTES = 5  # RFC 8446, 5.1


class Reads:
    """Where they may end, counted from the first byte that the server sends.

    OpenSSL reads the header of a record, then the rest of it (ssl3_read_n, without read
    ahead). The server's first messages count as one record, which nearly all of them are: the
    chain. Without TLS one call takes all.
    """

    def __init__(self, transfer: Transfer) -> None:
        secure = transfer.secure
        records = () if secure is None else (sum(secure.flight), *secure.tickets, *transfer.writes)
        self.ends = [place for end, size in zip(accumulate(records), records)
                     for place in (end - size + RECORD_HEADER_BYTES, end)]

    def first(self, begin: int, end: int) -> int:
        """How far the first call reads of what arrived at once; 0 if it reads all."""
        place = bisect_right(self.ends, begin)
        return self.ends[place] if place < len(self.ends) and self.ends[place] < end else 0


DSACK_BYTES = 12  # one block, with padding (RFC 2018)
# A system call that fails takes so long in virtual time (um_udelay in UML's handle_syscall); the
# server reads time stamps in vain before it answers.
FAILED_CALL_NS = 1000
HEARD_NS = 2 * FAILED_CALL_NS  # from an acknowledgement until the server waits again


class Simulation(Ends):
    """A connection from its first request on: events in order of time, until all is acknowledged.

    started: when the client began the fetch that counts, 0 for the first;
    first_sent: when its first segment left the server. Both, and the arrivals, are
    overwritten by a later fetch on the connection.
    """

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        # Bytes: when what the client waits for has arrived, and when all has.
        self.expected = transfer.first_bytes
        self.readable = self.end = (transfer.response_bytes
                                    + transfer.earlier_count * transfer.earlier_bytes)
        # Of kept connections: how many responses the client has to request, the server to write.
        self.to_request = self.to_answer = transfer.earlier_count if transfer.earlier_bytes else 0
        if transfer.secure is not None:
            before = sum(transfer.secure.flight) + sum(transfer.secure.tickets)
            self.readable = before + transfer.secure.first_bytes
            self.end += before
        self.reads = Reads(transfer)
        self.started = self.first_arrival = self.last_arrival = self.shaken = 0
        self.first_sent = self.last_acknowledged = 0
        self.first_flight = self.window_shaken = 0
        self.is_answered = True  # whether the client knows that its last request is there
        self.requested_bytes = transfer.first_request_bytes  # in all, the last one's included
        self.flights = Flights(sum(transfer.secure.flight) if transfer.secure else 0,
                               self.end - transfer.response_bytes)
        self.rest_due = self.rest_at = 0  # of a response in two writes
        self.heard_at = 0  # when the server last heard of an acknowledgement
        self.writes_at = 0  # when the server, woken up, writes on
        self.at(self.shaken_hands.requested, self._first_request)
        for left, arrived in self.shaken_hands.challenges:
            self.at(arrived, partial(self._hear, left))

    def _hear(self, left: int, now: int) -> None:
        """Hear from the client without a new acknowledgement."""
        self.echo = left
        self._release(now)

    def _first_request(self, now: int) -> None:
        self._take_first_message(now)
        if self.transfer.secure is not None:
            self.at(now + FAILED_CALL_NS, partial(self._write, self.transfer.secure.flight))
        else:
            self.at(now + FAILED_CALL_NS, self._answer)

    def _write(self, sizes: tuple[int, ...], now: int) -> None:
        """Write messages that are not the server's last ones."""
        self._send(now, self.sender.write(now, *sizes, last=False))

    def _finish_handshake(self, secure: Secure, now: int) -> None:
        """The client has the server's flight: its Finished and its request, in two packets."""
        self.shaken = now
        self.expected = self.end
        for number, size in enumerate((secure.finished_bytes, self.transfer.request_bytes)):
            upto, window_end = self.receiver.ask(now)
            self.up.send(now, HEADER_BYTES + size, partial(self._take_message, size, partial(
                self._acknowledged, upto, window_end, now, self.receiver.stamp)), partial(
                    self._fail_first, self._answer if number else self._take_finished))
            self.receiver.timer.sent(now, number == 0, number + 1, now)
        self.messages_sent_at = now
        self.at(self.receiver.timer.at or now, self._expire_client)

    def _fail_first(self, happen: Happening, now: int) -> None:
        self.at(now + FAILED_CALL_NS, happen)

    def _take_finished(self, now: int) -> None:
        """The server has heard that its flight is there; its tickets follow."""
        self.window_shaken = self.sender.window
        if self.transfer.secure is not None and self.transfer.secure.tickets:
            self._write(self.transfer.secure.tickets, now)

    def _next_request(self, now: int) -> None:
        """After an earlier response; its acknowledgement rides on the answer, as a rule.

        A server that was requested the last one twice acknowledges at once (tcp_send_dupack).
        """
        upto, window_end = self.receiver.ask(now)
        self.started, self.first_arrival = now, 0
        self.to_request -= 1
        self.expected += (self.transfer.earlier_bytes if self.to_request
                          else self.transfer.response_bytes)
        self.is_answered = self.receiver.timer.repeated = False
        size = self._request_bytes
        self.requested_bytes += size
        self.up.send(now, HEADER_BYTES + size, partial(self._take_message, size, partial(
            self._acknowledged, upto, window_end, now, self.receiver.stamp)), self._take_request)
        self.receiver.timer.sent(now, was_idle=True, packets=1, oldest_sent_at=now)
        self.at(self.receiver.timer.at or now, self._expire_client)

    @property
    def _request_bytes(self) -> int:
        """The bytes of the last request."""
        return (self.transfer.earlier_request_bytes if self.to_request
                else self.transfer.request_bytes)

    def _take_request(self, now: int) -> None:
        """Answer, or first end what an acknowledgement just before began.

        Having read its time stamp the server fails to read another, then to
        read a request. What is there by then it answers.
        """
        since = now - self.heard_at
        at = self.heard_at + FAILED_CALL_NS if since <= FAILED_CALL_NS else max(
            now, self.heard_at + HEARD_NS) + FAILED_CALL_NS
        self.at(at, self._answer)

    def _expire_client(self, now: int) -> None:
        """The client's timer is due, and the answer is not there."""
        timer = self.receiver.timer
        if timer.at != now or timer.gives_up(now):
            return
        if timer.probe and timer.probed_upto:
            timer.resume(now, self.messages_sent_at)
        else:
            self._retransmit_message(now, timer.probe)
        self.at(timer.at or now, self._expire_client)

    def _retransmit_message(self, now: int, probe: bool) -> None:
        """A probe is the last message, a timeout repeats the first that is not acknowledged."""
        timer, secure, size = self.receiver.timer, self.transfer.secure, self._request_bytes
        end = self.message_bytes
        finished = secure.hello_bytes + secure.finished_bytes if secure else 0
        if secure and not probe and self.acknowledged_bytes < finished:
            size, end = secure.finished_bytes, finished
        self.retransmitted_ends.add(end)
        upto, window_end = self.receiver.ask(now)
        heard = (partial(self._acknowledged, upto, window_end, now, self.receiver.stamp,
                         releases=False),)
        self.up.send(now, HEADER_BYTES + size, *heard * bool(secure), partial(self._refuse, now))
        timer.at, timer.repeated, timer.probed_upto = None, True, int(bool(secure) and probe)
        if probe:
            timer.restart(now)
        else:
            timer.back_off(now)

    def _refuse(self, sent_at: int, now: int) -> None:
        """The server has the request already, and reports it (DSACK, tcp_ack_snd_check).

        What waits and may leave by then takes that along (tcp_data_snd_check); else it leaves
        alone, before what is written then.
        """
        self.echo = sent_at
        self.server.hurry()
        waiting = self.sender.release_waiting(now, DSACK_BYTES)
        self._send(now, waiting)
        if not waiting:
            self._acknowledge_message(now, DSACK_BYTES)
        self._wake(now)

    def _hear_of_request(self, upto: int, now: int) -> None:
        """The server has the last request, unless what it sent left before.

        So does a report (DSACK) of the request before, which was sent twice. Only time stamps show
        the RTT of a repeated one.
        """
        if self.is_answered or upto < self.requested_bytes:
            return
        self.is_answered = True
        us = self.clock.us(now) - self.clock.us(self.started)
        if self.receiver.timer.repeated:
            us = 1000 * (self.clock.jiffies(now) - self.clock.jiffies(self.started))
        self.receiver.hear(us)
        self.receiver.timer.at = None

    def _see(self, upto: int, echo: int, now: int) -> None:
        super()._see(upto, echo, now)
        self._hear_of_request(upto, now)

    def _answer(self, now: int) -> None:
        if self.to_answer:
            self.to_answer -= 1
            return self._write((self.transfer.earlier_bytes,), now)
        size, gap_ns = self.transfer.response_bytes, round(self.transfer.gap_ms * 1e6)
        if gap_ns and self.transfer.burst_bytes < size:
            self._write((self.transfer.burst_bytes,), now)
            self.rest_due = now + gap_ns
            self._wait(now)
        else:
            self._write_last(now, *(self.transfer.writes or (size,)))

    def _wait(self, now: int) -> None:
        """The server waits until the rest is due; hearing of an acknowledgement it begins anew."""
        self.rest_at = now + waited_ns(self.rest_due - now) + FAILED_CALL_NS
        self.at(self.rest_at, self._answer_rest)

    def _answer_rest(self, now: int) -> None:
        if now != self.rest_at or not self.rest_due:
            return
        self.rest_due = 0
        rest = self.transfer.response_bytes - self.transfer.burst_bytes
        if self.sender.calls:  # one write with what there was no room for
            self.sender.calls[-1] += rest
            self._write_last(now)
        else:
            self._write_last(now, rest)

    def _write_last(self, now: int, *sizes: int) -> None:
        closes = not self.transfer.earlier_bytes
        self._send(now, self.sender.write(now, *sizes, last=closes))
        if closes:
            self._send(now, self.sender.write_fin(now))

    def _send(self, now: int, segments: list[Sent]) -> None:
        for segment in segments:
            self._ride(now, segment)
            if self.flights.note(segment, self.sender.acknowledged):
                self.first_sent = now
            receive = partial(self._receive_fin, now) if not segment.payload else partial(
                self._receive_duplicate if segment.retransmitted else self._receive,
                segment, self.echo, self.server.received, now)
            self.down.send(now, HEADER_BYTES + segment.option_bytes + segment.payload,
                           *self._acknowledging(), receive)
        due = self.sender.timer.at
        if due is not None and due != self.timer_set:
            self.timer_set = due
            self.at(due, self._expire)

    def _expire(self, now: int) -> None:
        """The sender's timer is due, unless it was set anew meanwhile."""
        if self.sender.timer.at == now:
            self._send(now, self.sender.expire(now))

    def _receive_duplicate(self, segment: Sent, echo: int, has_of_client: int, sent_at: int,
                           now: int) -> None:
        """A segment that is there already is acknowledged at once, as such (DSACK, RFC 2883)."""
        self._hear_of_request(has_of_client, now)
        self.receiver.receive_duplicate(now, segment, echo, sent_at)
        self._acknowledge(now, DSACK_BYTES)

    def _receive_fin(self, sent_at: int, now: int) -> None:
        """The server's FIN, alone, is acknowledged at once, as a byte more."""
        self.receiver.note_stamp(self.receiver.received, sent_at)
        upto = self.receiver.acknowledged + 1
        self.up.send(now, HEADER_BYTES, partial(
            self._acknowledged, upto, upto + self.receiver.window, now, self.receiver.stamp))

    def _receive(self, segment: Sent, echo: int, has_of_client: int, sent_at: int,
                 now: int) -> None:
        """has_of_client: bytes of the client's that the server had when the segment left."""
        self.receiver.take(now, segment, echo, sent_at)
        self._hear_of_request(has_of_client, now)
        if not self.first_arrival and (self.transfer.secure is None
                                       or self.receiver.received >= self.readable):
            self.first_arrival = now
        self.last_arrival = now
        complete = self.receiver.received == self.expected
        is_last = complete and self.expected == self.end
        if is_last and self.transfer.secure and not (self.sender.fin_waiting
                                                     or self.sender.fin_sent):
            self.receiver.end()
        at_once = self.receiver.read(now, segment, self.reads.first(
            self.receiver.received - segment.payload, self.receiver.received))
        # With its last byte the client closes: what it sends acknowledges, unless that was done.
        closing = self.transfer.secure.close_bytes if self.transfer.secure is not None else 0
        if at_once:
            self._acknowledge(now)
            if is_last:
                self.up.send(now, HEADER_BYTES + closing)
        elif is_last:
            self._acknowledge(now, payload_bytes=closing)
        elif self.receiver.timer_at is not None:
            self.at(self.receiver.timer_at, self._acknowledge_late)
        if complete and not is_last:
            if self.transfer.secure is not None:
                self._finish_handshake(self.transfer.secure, now)
            elif self.to_request == 1 and self.transfer.idle_ms:
                self.at(now + round(self.transfer.idle_ms * 1e6), self._next_request)
            else:
                self._next_request(now)

    def _acknowledge_late(self, now: int) -> None:
        if self.receiver.timer_at == now:
            self.receiver.lose_patience()
            self._acknowledge(now)

    def _acknowledge(self, now: int, option_bytes: int = 0, payload_bytes: int = 0) -> None:
        upto, window_end = self.receiver.acknowledge()
        self.up.send(now, HEADER_BYTES + option_bytes + payload_bytes,
                     partial(self._acknowledged, upto, window_end, now, self.receiver.stamp,
                             duplicate=bool(option_bytes)))

    def _acknowledged(self, upto: int, window_end: int, sent_at: int, stamp: int, now: int,
                      duplicate: bool = False, releases: bool = True) -> None:
        """releases: not where what it comes with is acknowledged by what leaves (_refuse)."""
        self.first_flight = self.first_flight or (
            self.sender.in_flight - self.sender.beyond - self.sender.fin_sent)
        self.echo = sent_at
        if self.sender.acknowledged < min(upto, self.sender.written):
            self.last_acknowledged = now
        self.sender.acknowledge(now, upto, window_end, stamp, duplicate)
        if self.sender.call_acknowledged:
            self.heard_at = now
            if self.rest_due:
                self._wait(now + HEARD_NS)
        if releases:
            self._release(now)

    def _release(self, now: int) -> None:
        """What an acknowledgement lets leave, at once and by the server."""
        self._send(now, self.sender.release_waiting(now))
        self._wake(now)

    def _wake(self, now: int) -> None:
        """The server, woken up, first fails to read time stamps, then writes."""
        if not self.sender.wakes(now):
            self._send(now, self.sender.release_held(now))
        elif self.writes_at <= now:
            self.writes_at = now + FAILED_CALL_NS
            self.at(self.writes_at, self._write_on)

    def _write_on(self, now: int) -> None:
        self._send(now, self.sender.release_written(now))
