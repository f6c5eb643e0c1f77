"""The simulation of a connection that loses nothing: every segment, acknowledgement and timer.

Times are integer nanoseconds since the first SYN left.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import partial
from itertools import accumulate

from firstflight.model.endpoints import Ends
from firstflight.model.network import Events, Happening
from firstflight.model.transfer import Secure, Transfer
from firstflight.net.headers import HEADER_BYTES
from firstflight.net.path import Sent
from firstflight.net.waiting import waited_ns
from firstflight.wire.flights import FlightCounts

RECORD_HEADER_BYTES = 5  # RFC 8446, 5.1


class ReadCalls:
    """Where the client's read calls end, in bytes from the first one that the server sends.

    OpenSSL reads the header of a record, then the rest of it (ssl3_read_n, without read ahead).
    The server's first messages count as one record, since the certificate chain is nearly all of
    them. Without TLS one call reads everything.
    """

    def __init__(self, transfer: Transfer) -> None:
        secure = transfer.secure
        records = () if secure is None else (sum(secure.flight), *secure.tickets, *transfer.writes)
        self.ends = [place for end, size in zip(accumulate(records), records)
                     for place in (end - size + RECORD_HEADER_BYTES, end)]

    def first(self, begin: int, end: int) -> int:
        """How far the first call reads in bytes that arrived together; 0 if it reads all."""
        place = bisect_right(self.ends, begin)
        return self.ends[place] if place < len(self.ends) and self.ends[place] < end else 0


DSACK_BYTES = 12  # one block, with padding (RFC 2018)
# How long a failing system call takes in virtual time (um_udelay in UML's handle_syscall). The
# server tries to read time stamps, without success, before it answers.
FAILED_CALL_NS = 1000
HEARD_NS = 2 * FAILED_CALL_NS  # from an acknowledgement until the server waits again


class LateRest:
    """The rest of a response, which the server's back-end has ready later.

    The server waits for it. answer: what happens when that is over.
    """

    def __init__(self, events: Events, answer: Happening) -> None:
        self.events, self.answer = events, answer
        self.due = self.woken = 0  # when it is ready, and when the server sees that; 0 for nothing

    def wait_until(self, due: int, now: int) -> None:
        """Wait until the rest is ready."""
        self.due = due
        self.wait_again(now)

    def wait_again(self, now: int) -> None:
        """Wait from now on, as after every acknowledgement, where there is something to wait for.
        """
        if self.due:
            self.woken = now + waited_ns(self.due - now) + FAILED_CALL_NS
            self.events.at(self.woken, self._end)

    def _end(self, now: int) -> None:
        if now == self.woken and self.due:
            self.due = 0
            self.answer(now)


class Simulation(Ends):
    """A connection from its first request on: events in order of time, until all is acknowledged.

    started: when the client began the fetch, 0 for the first one. first_sent: when the fetch's
    first segment left the server. A later fetch on the connection overwrites both, and the
    arrivals.
    """

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        # Bytes that have arrived when the client's current wait is over, and when all is there.
        self.expected = transfer.first_bytes
        self.readable = self.end = (transfer.response_bytes
                                    + transfer.earlier_count * transfer.earlier_bytes)
        # Earlier responses that the client has still to request, and the server to write.
        self.to_request = self.to_answer = transfer.earlier_count if transfer.earlier_bytes else 0
        if transfer.secure is not None:
            before = sum(transfer.secure.flight) + sum(transfer.secure.tickets)
            self.readable = before + transfer.secure.first_bytes
            self.end += before
        self.read_calls = ReadCalls(transfer)
        self.started = self.first_arrival = self.last_arrival = self.shaken = 0
        self.first_sent = self.last_acknowledged = 0
        self.first_flight = self.window_shaken = 0
        self.is_answered = True  # whether the client's last request was acknowledged
        self.requested_bytes = transfer.first_request_bytes  # of all requests so far
        self.flights = FlightCounts(sum(transfer.secure.flight) if transfer.secure else 0,
                                    self.end - transfer.response_bytes)
        # Of a response in two writes: when the second one is due, and when the server wakes for it.
        self.rest = LateRest(self, self._answer_rest)
        self.heard_at = 0  # when the server last read an acknowledgement's time stamp
        self.writes_at = 0  # when the woken server writes on
        self.at(self.shaken_hands.requested, self._first_request)
        for left, arrived in self.shaken_hands.challenges:
            self.at(arrived, partial(self._hear, left))

    def _hear(self, left: int, now: int) -> None:
        """Take a packet from the client that acknowledges nothing new."""
        self.echo = left
        self._release(now)

    def _first_request(self, now: int) -> None:
        self._take_first_message(now)
        if self.transfer.secure is not None:
            self.at(now + FAILED_CALL_NS, partial(self._write, self.transfer.secure.flight))
        else:
            self.at(now + FAILED_CALL_NS, self._answer)

    def _write(self, sizes: tuple[int, ...], now: int) -> None:
        """Write messages after which the server writes more."""
        self._send(now, self.sender.write(now, *sizes, last=False))

    def _finish_handshake(self, secure: Secure, now: int) -> None:
        """The client has the server's flight, and sends its Finished and its request."""
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
        """The server has the client's Finished, and sends its tickets."""
        self.window_shaken = self.sender.window
        if self.transfer.secure is not None and self.transfer.secure.tickets:
            self._write(self.transfer.secure.tickets, now)

    def _next_request(self, now: int) -> None:
        """Send the next request on the connection; as a rule its answer acknowledges it.

        A server that got the last request twice acknowledges at once (tcp_send_dupack).
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
        """Answer a request, after the server has handled an acknowledgement that came just before.

        For that it reads a time stamp, then fails to read another one and fails to read a
        request. It answers a request that has come by then.
        """
        since = now - self.heard_at
        at = self.heard_at + FAILED_CALL_NS if since <= FAILED_CALL_NS else max(
            now, self.heard_at + HEARD_NS) + FAILED_CALL_NS
        self.at(at, self._answer)

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
        """Send the last message again as a probe; at a timeout, the first unacknowledged one."""
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
        """Report to the client that its request came twice (DSACK, tcp_ack_snd_check).

        Waiting data that may leave now carries the report (tcp_data_snd_check); else the report
        leaves alone, before data that is written then.
        """
        self.echo = sent_at
        self.server.hurry()
        waiting = self.sender.release_waiting(now, DSACK_BYTES)
        self._send(now, waiting)
        if not waiting:
            self._acknowledge_message(now, DSACK_BYTES)
        self._wake(now)

    def _hear_of_request(self, upto: int, now: int) -> None:
        """Take an acknowledgement of the last request, if it is one.

        A packet that the server sent before is none, nor is a report (DSACK) of the request
        before. Only time stamps show the RTT of a repeated request.
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
            self.rest.wait_until(now + gap_ns, now)
        else:
            self._write_last(now, *(self.transfer.writes or (size,)))

    def _answer_rest(self, now: int) -> None:
        rest_bytes = self.transfer.response_bytes - self.transfer.burst_bytes
        has_joined = self.sender.join_waiting_write(rest_bytes)
        self._write_last(now, *(() if has_joined else (rest_bytes,)))

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
        """Handle the sender's timer, unless it was set again meanwhile."""
        if self.sender.timer.at == now:
            self._send(now, self.sender.expire(now))

    def _receive_duplicate(self, segment: Sent, echo: int, has_of_client: int, sent_at: int,
                           now: int) -> None:
        """Take a segment that came before, and report it at once (DSACK, RFC 2883)."""
        self._hear_of_request(has_of_client, now)
        self.receiver.receive_duplicate(now, segment, echo, sent_at)
        self._acknowledge(now, DSACK_BYTES)

    def _receive_fin(self, sent_at: int, now: int) -> None:
        """Take the server's FIN, and acknowledge it at once; it counts as a byte."""
        self.receiver.note_stamp(self.receiver.received, sent_at)
        upto = self.receiver.acknowledged + 1
        self.up.send(now, HEADER_BYTES, partial(
            self._acknowledged, upto, upto + self.receiver.window, now, self.receiver.stamp))

    def _receive(self, segment: Sent, echo: int, has_of_client: int, sent_at: int,
                 now: int) -> None:
        """Take a segment of new data.

        has_of_client: how many bytes of the client the server had when the segment left.
        """
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
        at_once = self.receiver.read(now, segment, self.read_calls.first(
            self.receiver.received - segment.payload, self.receiver.received))
        # The client closes after the last byte: its FIN acknowledges it, if nothing has before.
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
        """Take an acknowledgement at the server.

        releases: whether it lets data leave now; with a repeated request `_refuse` does so.
        """
        self.first_flight = self.first_flight or (
            self.sender.in_flight - self.sender.beyond - self.sender.fin_sent)
        self.echo = sent_at
        if self.sender.acknowledged < min(upto, self.sender.written):
            self.last_acknowledged = now
        self.sender.acknowledge(now, upto, window_end, stamp, duplicate)
        if self.sender.call_acknowledged:
            self.heard_at = now
            self.rest.wait_again(now + HEARD_NS)
        if releases:
            self._release(now)

    def _release(self, now: int) -> None:
        """Send what an acknowledgement lets leave: at once, then by the woken server."""
        self._send(now, self.sender.release_waiting(now))
        self._wake(now)

    def _wake(self, now: int) -> None:
        """Wake the server if there is room: it fails to read time stamps, then writes."""
        if not self.sender.wakes(now):
            self._send(now, self.sender.release_held(now))
        elif self.writes_at <= now:
            self.writes_at = now + FAILED_CALL_NS
            self.at(self.writes_at, self._write_on)

    def _write_on(self, now: int) -> None:
        self._send(now, self.sender.release_written(now))
