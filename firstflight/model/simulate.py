"""The simulation of a connection that loses nothing: every segment, acknowledgement and timer.

Times are integer nanoseconds since the first SYN left.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import partial
from itertools import accumulate

from firstflight.model.endpoints import Endpoints
from firstflight.model.network import Events, Happening
from firstflight.model.transfer import Secure, Transfer
from firstflight.net.headers import HEADER_BYTES
from firstflight.net.path import Sent
from firstflight.net.waiting import waited_ns
from firstflight.wire.flights import FlightCounts

RECORD_HEADER_BYTES = 5  # RFC 8446, 5.1


class ReadCalls:
    """The places at which the client's read calls end, in bytes from the server's first byte on.

    OpenSSL reads the header of a record, then the rest of the record (ssl3_read_n, without read
    ahead). The server's first messages count as one record, since the certificate chain is nearly
    all of them. Without TLS one call reads everything.
    """

    def __init__(self, transfer: Transfer) -> None:
        self.ends: list[int] = []
        secure = transfer.secure
        if secure is None:
            return

        records = (sum(secure.flight), *secure.tickets, *transfer.writes)
        for end, size in zip(accumulate(records), records):
            header_end = end - size + RECORD_HEADER_BYTES
            self.ends += [header_end, end]

    def first(self, begin: int, end: int) -> int:
        """The end of the first call that reads bytes which arrived together; 0 if it reads all.

        begin, end: of these bytes.
        """
        place = bisect_right(self.ends, begin)
        return self.ends[place] if place < len(self.ends) and self.ends[place] < end else 0


DSACK_BYTES = 12  # one block, with padding (RFC 2018)
# How long a failing system call takes in virtual time (um_udelay in UML's handle_syscall). Before
# the server answers, it tries to read time stamps, and fails.
FAILED_CALL_NS = 1000
# From an acknowledgement until the server has read its time stamp and waits again.
STAMP_READ_NS = 2 * FAILED_CALL_NS


class LateRest:
    """The rest of a response, for which the server waits because its back-end has it later."""

    def __init__(self, events: Events, answer: Happening) -> None:
        """answer: called when the server stops waiting."""
        self.events, self.answer = events, answer
        self.due = 0  # when the rest is ready; 0 where there is no rest
        self.woken = 0  # when the server wakes for the rest

    def wait_until(self, due: int, now: int) -> None:
        """Wait until the rest is ready."""
        self.due = due
        self.wait_again(now)

    def wait_again(self, now: int) -> None:
        """Begin to wait again, as after every acknowledgement, if there is a rest to wait for."""
        if self.due:
            self.woken = now + waited_ns(self.due - now) + FAILED_CALL_NS
            self.events.at(self.woken, self._end)

    def _end(self, now: int) -> None:
        """Answer, unless the server has begun to wait again meanwhile."""
        if now == self.woken and self.due:
            self.due = 0
            self.answer(now)


class Simulation(Endpoints):
    """A connection from its first request on, until all is acknowledged.

    Its results are those of the last fetch on the connection, which overwrites earlier results.
    """

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        secure = transfer.secure
        handshake_bytes = sum(secure.flight) if secure is not None else 0
        tickets_bytes = sum(secure.tickets) if secure is not None else 0

        # How many bytes have arrived at the client when its current wait is over (expected), when
        # it can read the response (readable), and when all has arrived (end).
        self.expected = transfer.first_bytes
        self.end = (handshake_bytes + tickets_bytes
                    + transfer.earlier_count * transfer.earlier_bytes + transfer.response_bytes)
        self.readable = self.end
        if secure is not None:
            self.readable = handshake_bytes + tickets_bytes + secure.first_bytes
        self.read_calls = ReadCalls(transfer)

        # How many earlier responses the client has still to request (to_request), and the server
        # has still to write (to_answer).
        self.to_request = self.to_answer = transfer.earlier_count if transfer.earlier_bytes else 0
        self.is_answered = True  # whether the client's last request was acknowledged
        self.requested_bytes = transfer.first_request_bytes  # of all requests so far
        self.rest = LateRest(self, self._answer_rest)  # of a response in two writes
        self.stamp_read_at = 0  # when the server last read an acknowledgement's time stamp
        self.writes_at = 0  # when the woken server continues to write

        # Results.
        self.started = 0  # when the client began the fetch; 0 for the first one
        self.first_arrival = self.last_arrival = 0  # of the response's data
        self.handshake_end = 0  # of TLS, at the client
        self.first_sent = 0  # when the response's first segment left the server
        self.last_acknowledged = 0  # when the server last got an acknowledgement of new data
        self.first_flight = self.window_after_handshake = 0  # segments
        self.flights = FlightCounts(handshake_bytes, self.end - transfer.response_bytes)

        self.at(self.handshake.requested, self._take_first_request)
        for left, arrived in self.handshake.challenges:
            self.at(arrived, partial(self._take_challenge, left))

    def _take_challenge(self, left: int, now: int) -> None:
        """Take the client's answer to a repeated SYN-ACK, which acknowledges nothing new."""
        self.echo = left
        self._release(now)

    def _take_first_request(self, now: int) -> None:
        """Take the client's first message: a request, or TLS's hello."""
        self._take_first_message(now)
        if self.transfer.secure is not None:
            self.at(now + FAILED_CALL_NS, partial(self._write, self.transfer.secure.flight))
        else:
            self.at(now + FAILED_CALL_NS, self._answer)

    def _write(self, sizes: tuple[int, ...], now: int) -> None:
        """Write messages after which the server writes more."""
        self._send(now, self.sender.write(now, *sizes, last=False))

    def _finish_handshake(self, secure: Secure, now: int) -> None:
        """Send the client's Finished and its request, now that the client has the server's flight.
        """
        self.handshake_end = now
        self.expected = self.end
        self._send_message(secure.finished_bytes, partial(self._delay_by_call, self._take_finished),
                           now)
        self.receiver.timer.note_sent(now, was_idle=True, packets=1, oldest_sent_at=now)
        self._send_message(self.transfer.request_bytes, partial(self._delay_by_call, self._answer),
                           now)
        self.receiver.timer.note_sent(now, was_idle=False, packets=2, oldest_sent_at=now)
        self.messages_sent_at = now
        self.at(self.receiver.timer.at or now, self._expire_client)

    def _send_message(self, size: int, take: Happening, now: int) -> None:
        """Send a message of the client, which also acknowledges.

        take: called when the message has arrived, after the acknowledgement was handled.
        """
        upto, window_end = self.receiver.acknowledge_with_data(now)
        take_acknowledgement = partial(self._take_acknowledgement, upto, window_end, now,
                                       self.receiver.stamp)
        self.up.send(now, HEADER_BYTES + size,
                     partial(self._take_message, size, take_acknowledgement), take)

    def _delay_by_call(self, happen: Happening, now: int) -> None:
        """Call `happen` after a system call of the server that fails."""
        self.at(now + FAILED_CALL_NS, happen)

    def _take_finished(self, now: int) -> None:
        """Send the server's tickets, now that the server has the client's Finished."""
        self.window_after_handshake = self.sender.window
        if self.transfer.secure is not None and self.transfer.secure.tickets:
            self._write(self.transfer.secure.tickets, now)

    def _next_request(self, now: int) -> None:
        """Send the next request on the connection. As a rule the answer acknowledges the request.

        A server that got the last request twice acknowledges at once (tcp_send_dupack).
        """
        self.started, self.first_arrival = now, 0
        self.to_request -= 1
        self.expected += (self.transfer.earlier_bytes if self.to_request
                          else self.transfer.response_bytes)
        self.is_answered = self.receiver.timer.repeated = False
        self.requested_bytes += self._request_bytes
        self._send_message(self._request_bytes, self._take_request, now)
        self.receiver.timer.note_sent(now, was_idle=True, packets=1, oldest_sent_at=now)
        self.at(self.receiver.timer.at or now, self._expire_client)

    @property
    def _request_bytes(self) -> int:
        """How many bytes the client's last request has."""
        if self.to_request:
            return self.transfer.earlier_request_bytes
        return self.transfer.request_bytes

    def _take_request(self, now: int) -> None:
        """Answer a request, after the server has handled an acknowledgement that came just before.

        To handle an acknowledgement, the server reads a time stamp, then fails to read another one
        and fails to read a request. It answers a request that has come by then.
        """
        answers_at = self.stamp_read_at + FAILED_CALL_NS
        if now > answers_at:
            answers_at = max(now, self.stamp_read_at + STAMP_READ_NS) + FAILED_CALL_NS
        self.at(answers_at, self._answer)

    def _expire_client(self, now: int) -> None:
        """Handle the client's timer: no answer has come."""
        timer = self.receiver.timer
        if timer.at != now or timer.gives_up(now):
            return

        if timer.probe and timer.probed_upto:
            timer.resume(now, self.messages_sent_at)
        else:
            self._retransmit_message(now, timer.probe)
        self.at(timer.at or now, self._expire_client)

    def _retransmit_message(self, now: int, probe: bool) -> None:
        """Send the client's last message again as a probe; at a timeout, its first message that is
        not acknowledged."""
        secure, size, end = self.transfer.secure, self._request_bytes, self.message_bytes
        if secure is not None and not probe:
            finished_end = secure.hello_bytes + secure.finished_bytes
            if self.acknowledged_bytes < finished_end:
                size, end = secure.finished_bytes, finished_end
        self.retransmitted_ends.add(end)

        upto, window_end = self.receiver.acknowledge_with_data(now)
        report = partial(self._report_duplicate, now)
        if secure is None:
            self.up.send(now, HEADER_BYTES + size, report)
        else:
            take_acknowledgement = partial(self._take_acknowledgement, upto, window_end, now,
                                           self.receiver.stamp, releases=False)
            self.up.send(now, HEADER_BYTES + size, take_acknowledgement, report)

        timer = self.receiver.timer
        timer.at, timer.repeated = None, True
        timer.probed_upto = int(secure is not None and probe)
        if probe:
            timer.restart(now)
        else:
            timer.back_off(now)

    def _report_duplicate(self, sent_at: int, now: int) -> None:
        """Report to the client that its request came twice (DSACK, tcp_ack_snd_check).

        Waiting data that may leave now carries the report (tcp_data_snd_check). If there is none,
        the report leaves alone, before any data that the server writes now.
        """
        self.echo = sent_at
        self.server.enter_quick_mode()
        waiting = self.sender.release_waiting(now, DSACK_BYTES)
        self._send(now, waiting)
        if not waiting:
            self._acknowledge_message(now, DSACK_BYTES)
        self._wake(now)

    def _take_request_acknowledgement(self, upto: int, now: int) -> None:
        """Take a packet of the server as an acknowledgement of the last request, if it is one.

        A packet that left before the request came is no such acknowledgement, and neither is a
        report (DSACK) of an earlier request. Only time stamps show the RTT of a repeated request.
        """
        if self.is_answered or upto < self.requested_bytes:
            return

        self.is_answered = True
        us = self.clock.us(now) - self.clock.us(self.started)
        if self.receiver.timer.repeated:
            us = 1000 * (self.clock.jiffies(now) - self.clock.jiffies(self.started))
        self.receiver.sample_round_trip(us)
        self.receiver.timer.at = None

    def _take_pure_acknowledgement(self, upto: int, echo: int, now: int) -> None:
        super()._take_pure_acknowledgement(upto, echo, now)
        self._take_request_acknowledgement(upto, now)

    def _answer(self, now: int) -> None:
        """Write the next response, or the first part of the last one."""
        if self.to_answer:
            self.to_answer -= 1
            return self._write((self.transfer.earlier_bytes,), now)

        size, gap_ns = self.transfer.response_bytes, round(self.transfer.gap_ms * 1e6)
        if gap_ns and self.transfer.burst_bytes < size:
            self._write((self.transfer.burst_bytes,), now)
            self.rest.wait_until(now + gap_ns, now)
        else:
            self._write_last(now, *(self.transfer.writes or (size,)))

    def _answer_rest(self, now: int) -> None:
        """Write the second part of the response."""
        rest_bytes = self.transfer.response_bytes - self.transfer.burst_bytes
        if self.sender.join_waiting_write(rest_bytes):
            self._write_last(now)
        else:
            self._write_last(now, rest_bytes)

    def _write_last(self, now: int, *sizes: int) -> None:
        """Write the last response, after which a server of one response shuts down."""
        closes = not self.transfer.earlier_bytes
        self._send(now, self.sender.write(now, *sizes, last=closes))
        if closes:
            self._send(now, self.sender.write_fin(now))

    def _send(self, now: int, segments: list[Sent]) -> None:
        """Send segments of the server, and set the sender's timer."""
        for segment in segments:
            self._acknowledge_with(segment, now)
            if self.flights.note(segment, self.sender.acknowledged):
                self.first_sent = now

            if not segment.payload:
                receive = partial(self._receive_fin, now)
            else:
                take = self._receive_duplicate if segment.retransmitted else self._receive
                receive = partial(take, segment, self.echo, self.server.received, now)
            self.down.send(now, HEADER_BYTES + segment.option_bytes + segment.payload,
                           *self._acknowledgement_handlers(), receive)

        due = self.sender.timer.at
        if due is not None and due != self.timer_set:
            self.timer_set = due
            self.at(due, self._expire)

    def _expire(self, now: int) -> None:
        """Handle the sender's timer, unless it was set again meanwhile."""
        if self.sender.timer.at == now:
            self._send(now, self.sender.expire(now))

    def _receive_duplicate(self, segment: Sent, echo: int, upto: int, sent_at: int,
                           now: int) -> None:
        """Take a segment that has come once already, and report this at once (DSACK, RFC 2883).

        upto: as for _receive.
        """
        self._take_request_acknowledgement(upto, now)
        self.receiver.receive_duplicate(now, segment, echo, sent_at)
        self._acknowledge(now, DSACK_BYTES)

    def _receive_fin(self, sent_at: int, now: int) -> None:
        """Take the server's FIN, and acknowledge it at once. A FIN counts as a byte."""
        self.receiver.note_stamp(self.receiver.received, sent_at)
        upto = self.receiver.acknowledged + 1
        self.up.send(now, HEADER_BYTES, partial(
            self._take_acknowledgement, upto, upto + self.receiver.window, now,
            self.receiver.stamp))

    def _receive(self, segment: Sent, echo: int, upto: int, sent_at: int, now: int) -> None:
        """Take a segment of new data.

        upto: how many of the client's bytes the server had when the segment left.
        """
        secure = self.transfer.secure
        self.receiver.take(now, segment, echo, sent_at)
        self._take_request_acknowledgement(upto, now)
        if not self.first_arrival and (secure is None
                                       or self.receiver.received >= self.readable):
            self.first_arrival = now
        self.last_arrival = now

        is_complete = self.receiver.received == self.expected
        is_last = is_complete and self.expected == self.end
        if is_last and secure and not (self.sender.fin_waiting or self.sender.fin_sent):
            self.receiver.take_fin()
        first_call_end = self.read_calls.first(self.receiver.received - segment.payload,
                                               self.receiver.received)
        at_once = self.receiver.read(now, segment, first_call_end)

        # The client closes after the last byte. If no packet has acknowledged that byte, the FIN
        # does.
        close_bytes = secure.close_bytes if secure is not None else 0
        if at_once:
            self._acknowledge(now)
            if is_last:
                self.up.send(now, HEADER_BYTES + close_bytes)
        elif is_last:
            self._acknowledge(now, payload_bytes=close_bytes)
        elif self.receiver.timer_at is not None:
            self.at(self.receiver.timer_at, self._acknowledge_late)

        if is_complete and not is_last:
            if secure is not None:
                self._finish_handshake(secure, now)
            elif self.to_request == 1 and self.transfer.idle_ms:
                self.at(now + round(self.transfer.idle_ms * 1e6), self._next_request)
            else:
                self._next_request(now)

    def _acknowledge_late(self, now: int) -> None:
        """Acknowledge because the delay is over (tcp_delack_timer_handler)."""
        if self.receiver.timer_at == now:
            self.receiver.lengthen_delay()
            self._acknowledge(now)

    def _acknowledge(self, now: int, option_bytes: int = 0, payload_bytes: int = 0) -> None:
        """Send an acknowledgement of the client. option_bytes: of a report (DSACK)."""
        upto, window_end = self.receiver.acknowledge()
        self.up.send(now, HEADER_BYTES + option_bytes + payload_bytes,
                     partial(self._take_acknowledgement, upto, window_end, now,
                             self.receiver.stamp, duplicate=bool(option_bytes)))

    def _take_acknowledgement(self, upto: int, window_end: int, sent_at: int, stamp: int, now: int,
                              duplicate: bool = False, releases: bool = True) -> None:
        """Take an acknowledgement at the server.

        stamp, duplicate: as for Sender.acknowledge. releases: whether data may leave now; if the
        acknowledgement came with a repeated request, _report_duplicate lets data leave.
        """
        self.first_flight = self.first_flight or (
            self.sender.in_flight - self.sender.probe_segments - self.sender.fin_sent)
        self.echo = sent_at
        if self.sender.acknowledged < min(upto, self.sender.written):
            self.last_acknowledged = now

        self.sender.acknowledge(now, upto, window_end, stamp, duplicate)
        if self.sender.call_acknowledged:
            self.stamp_read_at = now
            self.rest.wait_again(now + STAMP_READ_NS)
        if releases:
            self._release(now)

    def _release(self, now: int) -> None:
        """Send the data that an acknowledgement lets leave: waiting data at once, then data that
        the woken server writes."""
        self._send(now, self.sender.release_waiting(now))
        self._wake(now)

    def _wake(self, now: int) -> None:
        """Wake the server if there is room in its buffer.

        The server tries to read time stamps, fails, and writes.
        """
        if not self.sender.wakes(now):
            self._send(now, self.sender.release_held(now))
        elif self.writes_at <= now:
            self.writes_at = now + FAILED_CALL_NS
            self.at(self.writes_at, self._continue_writing)

    def _continue_writing(self, now: int) -> None:
        self._send(now, self.sender.release_written(now))
