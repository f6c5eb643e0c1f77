"""The simulation of a connection whose client uploads: requests with bodies, then responses.

Both hosts have a sender and a receiver, which share a socket: the sender's segments carry the
receiver's acknowledgements. Nothing is lost. Times are integer nanoseconds since the first SYN
left. model/simulate.py simulates requests of one segment, and TLS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

from firstflight.base.quantity import OWN_WINDOW
from firstflight.model.endpoints import Handshake
from firstflight.model.network import Events, Happening, SimulatedLink
from firstflight.model.receiver import (MOST_IN_A_HEADER, Receiver, first_window, receive_window,
                                        window_unit)
from firstflight.model.sender import Sender
from firstflight.model.simulate import DSACK_BYTES, FAILED_CALL_NS, STAMP_READ_NS, LateRest
from firstflight.model.transfer import Transfer
from firstflight.net.headers import HEADER_BYTES, MSS, TIMESTAMP_BYTES
from firstflight.net.path import Clock, Sent
from firstflight.wire.flights import FlightCounts

NO_ROUTE = 1 << 30  # segments: no route limits the window that the server offers


@dataclass(frozen=True)
class Packet:
    """A packet on its way."""

    segment: Sent | None  # its data; None for an acknowledgement alone
    acknowledged: int  # sequence number
    window_end: int  # sequence number
    sent_at: int  # its time stamp
    echo: int  # the time stamp that it echoes
    is_report: bool = False  # whether it reports data that came twice (DSACK)


class Host:
    """One end of the connection."""

    def __init__(self, sender: Sender, receiver: Receiver, out: SimulatedLink, take: Happening,
                 is_server: bool) -> None:
        """out: the link to the other end. take: called when new data has come for the program.

        is_server: whether the program is server.py, which asks when its writes were acknowledged.
        """
        self.sender, self.receiver, self.out = sender, receiver, out
        self.take, self.is_server = take, is_server
        # One socket sends and receives.
        receiver.sent_round_trip, receiver.timer = sender.round_trip, sender.timer
        self.timer_set: int | None = None  # the time of the last event for the sender's timer
        self.writes_at = 0  # when its woken program continues to write


class Opening(Handshake):
    """A handshake after which the client sends more than one segment."""

    def __init__(self, events: Events, clock: Clock, up: SimulatedLink, down: SimulatedLink,
                 *, connect: Happening, accept: Happening, challenge: Callable[[int, int], None]
                 ) -> None:
        """connect: called when the client is connected. accept: called when the server is.

        challenge: called when the server receives an answer to a repeated SYN-ACK, with the times
        at which the answer left and arrived.
        """
        self.connect, self.accept, self.challenge = connect, accept, challenge
        super().__init__(events, clock, up, down, request_bytes=0)

    def _begin(self, now: int) -> None:
        self.connect(now)

    def _accept(self, now: int) -> None:
        super()._accept(now)
        self.accept(now)

    def _take_challenge(self, left: int, now: int) -> None:
        self.challenge(left, now)


class Upload(Events):
    """A connection from the first SYN until all is acknowledged."""

    client: Host
    server: Host

    def __init__(self, transfer: Transfer) -> None:
        super().__init__()
        self.transfer = transfer
        self.clock = Clock(transfer.clock_phase_ns)
        self.down = SimulatedLink(self, transfer.path.down)
        self.up = SimulatedLink(self, transfer.path.up)

        earlier_count = transfer.earlier_count if transfer.earlier_bytes else 0
        self.requests = [*[transfer.earlier_writes] * earlier_count, transfer.request_writes]
        self.request_ends = list(accumulate(sum(writes) for writes in self.requests))
        self.responses = [*[transfer.earlier_bytes] * earlier_count, transfer.response_bytes]
        self.response_ends = list(accumulate(self.responses))
        self.requested = self.answered = 0  # how many requests were begun, and how many answered
        self.rest = LateRest(self, self._answer_rest)  # as in simulate.Simulation

        # Results, as in simulate.Simulation.
        self.started = self.connected = self.first_arrival = self.last_arrival = 0
        self.first_sent = self.last_acknowledged = self.first_flight = 0
        self.handshake_end = self.window_after_handshake = 0  # without TLS
        self.flights = FlightCounts(0, self.response_ends[-1] - transfer.response_bytes)
        # Segments that the client sends before the first acknowledgement of its data.
        self.upload_flight = 0

        self.handshake = Opening(self, self.clock, self.up, self.down, connect=self._connect,
                                 accept=self._accept, challenge=self._take_challenge)

    @property
    def sender(self) -> Sender:
        """The server's sender."""
        return self.server.sender

    # Both hosts --------------------------------------------------------------------------

    def _connect(self, now: int) -> None:
        """Make the client, now that it is connected, and send its first request."""
        transfer, us = self.transfer, self.handshake.client_us
        self.connected = now
        offered = first_window(NO_ROUTE, transfer.server_receive_buffers, MSS)
        sender = self._make_sender(
            MSS, transfer.client_initcwnd, min(offered, MOST_IN_A_HEADER),
            buffers=transfer.client_send_buffers, handshake_us=us, polls=True)
        receiver = Receiver(
            transfer.initrwnd, transfer.mss, now, handshake_us=us, clock=self.clock,
            buffers=transfer.receive_buffers, unit=transfer.window_unit,
            probes=transfer.loss_probes, most_window=transfer.most_window_bytes)
        self.client = Host(sender, receiver, self.up, take=self._take_response, is_server=False)

        # The SYN-ACK is acknowledged before the route's window is read (tcp_finish_connect).
        self.client.sender.pace(OWN_WINDOW)
        self._request(now)

    def _accept(self, now: int) -> None:
        """Make the server, now that it has accepted the connection."""
        transfer, us = self.transfer, self.handshake.server_us
        window = receive_window(transfer.initrwnd, transfer.receive_buffers,
                                syn_mss=transfer.mss + TIMESTAMP_BYTES, unit=transfer.window_unit)
        sender = self._make_sender(transfer.mss, transfer.initcwnd, window,
                                   buffers=transfer.send_buffers,
                                   handshake_us=transfer.handshake_us or us)
        buffers = transfer.server_receive_buffers
        receiver = Receiver(
            NO_ROUTE, MSS, now, handshake_us=us, clock=self.clock, buffers=buffers,
            unit=window_unit(buffers), probes=transfer.loss_probes, window_mss=MSS)
        self.server = Host(sender, receiver, self.down, take=self._take_upload, is_server=True)

    def _make_sender(self, mss: int, window: int, window_end: int, buffers: tuple[int, int],
                     handshake_us: int, polls: bool = False) -> Sender:
        transfer = self.transfer
        return Sender(mss=mss, window=window, window_end=window_end, buffers=buffers, polls=polls,
                      handshake_us=handshake_us, clock=self.clock,
                      hystart=transfer.congestion_control == "cubic",
                      restart_after_idle=transfer.restart_after_idle,
                      probes=transfer.loss_probes)

    def _peer(self, host: Host) -> Host:
        """The other host."""
        return self.client if host.is_server else self.server

    def _take_challenge(self, left: int, now: int) -> None:
        """Take an answer of the client to a repeated SYN-ACK, which left before any data."""
        self.server.receiver.note_stamp(self.server.receiver.received, left)

    # The programs --------------------------------------------------------------------------

    def _request(self, now: int) -> None:
        """Write the client's next request."""
        if self.requested:
            self.started = now
        self.first_arrival = 0
        writes = self.requests[self.requested]
        self.requested += 1
        self._send(self.client, now, self.client.sender.write(now, *writes, last=False))

    def _take_upload(self, now: int) -> None:
        """Answer once the server has a complete request."""
        if self.server.receiver.received == self.request_ends[self.answered]:
            self.at(now + FAILED_CALL_NS, self._answer)

    def _answer(self, now: int) -> None:
        """Write the next response, or the first part of the last one."""
        size, gap_ns = self.responses[self.answered], round(self.transfer.gap_ms * 1e6)
        self.answered += 1
        if self.answered < len(self.responses):
            self._write(now, size)
        elif gap_ns and self.transfer.burst_bytes < size:
            self._write(now, self.transfer.burst_bytes)
            self.rest.wait_until(now + gap_ns, now)
        else:
            self._write_last(now, size)

    def _answer_rest(self, now: int) -> None:
        """Write the second part of the response."""
        rest_bytes = self.transfer.response_bytes - self.transfer.burst_bytes
        if self.sender.join_waiting_write(rest_bytes):
            self._write_last(now)
        else:
            self._write_last(now, rest_bytes)

    def _write(self, now: int, *sizes: int, last: bool = False) -> None:
        self._send(self.server, now, self.sender.write(now, *sizes, last=last))

    def _write_last(self, now: int, *sizes: int) -> None:
        """Write the last response, after which a server of one response shuts down."""
        closes = len(self.responses) == 1
        self._write(now, *sizes, last=closes)
        if closes:
            self._send(self.server, now, self.sender.write_fin(now))

    def _take_response(self, now: int) -> None:
        """Read at the client. After a complete response it requests the next one, or closes."""
        received = self.client.receiver.received
        self.first_arrival = self.first_arrival or now
        self.last_arrival = now
        if received < self.response_ends[self.requested - 1]:
            return

        if self.requested == len(self.requests):
            if self.client.receiver.acknowledged < received:  # its FIN acknowledges
                self._acknowledge(self.client, now)
        elif self.requested == len(self.requests) - 1 and self.transfer.idle_ms:
            self.at(now + round(self.transfer.idle_ms * 1e6), self._request)
        else:
            self._request(now)

    # TCP -----------------------------------------------------------------------------------

    def _send(self, host: Host, now: int, segments: list[Sent]) -> None:
        """Send segments, each of which acknowledges as well, and set the sender's timer."""
        for segment in segments:
            if host.is_server and self.flights.note(segment, host.sender.acknowledged):
                self.first_sent = now

            if segment.payload:
                acknowledged, window_end = host.receiver.acknowledge_with_data(now)
            else:
                acknowledged, window_end = host.receiver.acknowledge()
            self._put(host, now, HEADER_BYTES + segment.option_bytes + segment.payload,
                      Packet(segment, acknowledged, window_end, now, host.receiver.stamp))

        due = host.sender.timer.at
        if due is not None and due != host.timer_set:
            host.timer_set = due
            self.at(due, partial(self._expire, host))

    def _put(self, host: Host, now: int, frame_bytes: int, packet: Packet) -> None:
        """Put a packet of a host on its link."""
        host.out.send(now, frame_bytes, lambda at: self._arrive(self._peer(host), packet, at))

    def _acknowledge(self, host: Host, now: int, option_bytes: int = 0) -> None:
        """Send an acknowledgement without data.

        option_bytes: of a report of data that came twice; 0 for no report.
        """
        acknowledged, window_end = host.receiver.acknowledge()
        self._put(host, now, HEADER_BYTES + option_bytes,
                  Packet(None, acknowledged, window_end, now, host.receiver.stamp,
                         is_report=bool(option_bytes)))

    def _expire(self, host: Host, now: int) -> None:
        """Handle the sender's timer, unless it was set again meanwhile."""
        if host.sender.timer.at == now:
            self._send(host, now, host.sender.expire(now))

    def _arrive(self, host: Host, packet: Packet, now: int) -> None:
        """Take a packet: its data, then its acknowledgement, which may let data leave."""
        segment, receiver = packet.segment, host.receiver
        is_new = segment is not None and segment.payload > 0 and not segment.retransmitted
        if segment is None or not segment.payload:
            receiver.note_stamp(receiver.received, packet.sent_at)
            receiver.note_echo(packet.echo)
        elif is_new:
            receiver.take(now, segment, packet.echo, packet.sent_at)
        else:
            receiver.receive_duplicate(now, segment, packet.echo, packet.sent_at)

        self._take_acknowledgement(host, packet, now)

        if segment is not None and not segment.payload:
            self._take_fin(host, now)
        elif segment is not None and not is_new:
            self._acknowledge(host, now, DSACK_BYTES)
        elif segment is not None:
            self._read(host, segment, now)

    def _read(self, host: Host, segment: Sent, now: int) -> None:
        """Let the program read. Acknowledge now or later, if no segment that left has acknowledged.
        """
        receiver = host.receiver
        if receiver.received > receiver.acknowledged:
            if receiver.read(now, segment):
                self._acknowledge(host, now)
            elif receiver.timer_at is not None:
                self.at(receiver.timer_at, partial(self._acknowledge_late, host))
        host.take(now)

    def _take_fin(self, host: Host, now: int) -> None:
        """Acknowledge a FIN. It counts as a byte."""
        upto = host.receiver.acknowledged + 1
        self._put(host, now, HEADER_BYTES, Packet(None, upto, upto + host.receiver.window, now,
                                                  host.receiver.stamp))

    def _acknowledge_late(self, host: Host, now: int) -> None:
        """Acknowledge because the delay is over (tcp_delack_timer_handler)."""
        if host.receiver.timer_at == now:
            host.receiver.lengthen_delay()
            self._acknowledge(host, now)

    def _take_acknowledgement(self, host: Host, packet: Packet, now: int) -> None:
        """Take the acknowledgement of a packet, and send the data that it lets leave."""
        sender, upto = host.sender, packet.acknowledged
        is_news = upto > sender.acknowledged
        if is_news and host.is_server:
            self.first_flight = self.first_flight or (
                sender.in_flight - sender.probe_segments - sender.fin_sent)
            if sender.acknowledged < min(upto, sender.written):
                self.last_acknowledged = now
        elif is_news:
            self.upload_flight = self.upload_flight or sender.in_flight - sender.probe_segments

        if not (is_news or packet.segment is None or packet.window_end > sender.window_end):
            return

        sender.acknowledge(now, upto, packet.window_end, stamp=packet.echo,
                           duplicate=packet.is_report)
        if not host.is_server:
            sender.call_acknowledged = False
        elif sender.call_acknowledged:
            self.rest.wait_again(now + STAMP_READ_NS)

        self._send(host, now, sender.release_waiting(now))
        if not sender.wakes(now):
            self._send(host, now, sender.release_held(now))
        elif host.writes_at <= now:
            host.writes_at = now + FAILED_CALL_NS
            self.at(host.writes_at, partial(self._continue_writing, host))

    def _continue_writing(self, host: Host, now: int) -> None:
        self._send(host, now, host.sender.release_written(now))
