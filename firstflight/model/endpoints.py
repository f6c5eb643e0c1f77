"""Both endpoints of a connection and its path: the handshake, and the client's messages.

The handshake loses nothing. Still, if the RTT is longer than a second, SYN and SYN-ACK are
retransmitted. The copies take their time on the link, and copies of the SYN-ACK are answered. Times
are integer nanoseconds since the first SYN left.
"""

from __future__ import annotations

from functools import partial

from firstflight.model.network import Events, Happening, SimulatedLink
from firstflight.model.receiver import Receiver, receive_window
from firstflight.model.sender import Sender
from firstflight.model.transfer import Transfer
from firstflight.net.headers import HEADER_BYTES, SYN_BYTES, TIMESTAMP_BYTES
from firstflight.net.path import Clock, Sent

FIRST_TIMEOUT = 1000  # jiffies (TCP_TIMEOUT_INIT)
LINEAR_TIMEOUTS = 4  # retransmitted SYNs before the timeout doubles (tcp_syn_linear_timeouts)
LEAST_BETWEEN = 500  # jiffies between two challenge acknowledgements (tcp_invalid_ratelimit)


class Handshake:
    """The handshake, from the first SYN to the first request at the server."""

    def __init__(self, events: Events, clock: Clock, up: SimulatedLink, down: SimulatedLink,
                 request_bytes: int) -> None:
        """request_bytes: of the first request."""
        self.events, self.clock, self.up, self.down = events, clock, up, down
        self.request_bytes = request_bytes
        self.connected = 0  # when the client receives the first SYN-ACK
        self.accepted = 0  # when the server receives the acknowledgement of the SYN-ACK
        # When the server receives the request, which left together with that acknowledgement.
        self.requested = 0
        # For each answer to a repeated SYN-ACK, when it left and when it arrived.
        self.challenges: list[tuple[int, int]] = []
        self.syns = self.syn_acks = 0  # how many were sent
        self.timeouts = 0  # of the server's timer (num_timeout)
        self.syn_arrived_at = 0  # when the first SYN reached the server
        self.challenged: int | None = None  # the jiffy of the last challenge acknowledgement
        self.server_due: int | None = None  # when the server's timer fires
        self._send_syn(0)

    @property
    def client_us(self) -> int:
        """The RTT that the client measures."""
        return self._round_trip_us(0, self.connected, self.syns)

    @property
    def server_us(self) -> int:
        """The RTT that the server measures."""
        return self._round_trip_us(self.syn_arrived_at, self.accepted, self.syn_acks)

    def _round_trip_us(self, sent: int, answered: int, copies: int) -> int:
        """The RTT in µs. After a retransmission only time stamps show it (tcp_rtt_tsopt_us).

        sent, answered: when the packet first left, and when its answer came. copies: how many
        times it was sent.
        """
        if copies > 1:
            return 1000 * (self.clock.jiffies(answered) - self.clock.jiffies(sent))
        return self.clock.us(answered) - self.clock.us(sent)

    def _send_syn(self, now: int) -> None:
        """Send the first SYN, or repeat it when the timer fires (tcp_retransmit_timer)."""
        if self.connected:
            return

        self.syns += 1
        self.up.send(now, SYN_BYTES, self._take_syn)
        wait = FIRST_TIMEOUT << max(0, self.syns - 1 - LINEAR_TIMEOUTS)
        self.events.at(self.clock.expiry(now, self.clock.jiffies(now) + wait), self._send_syn)

    def _take_syn(self, now: int) -> None:
        """Answer a SYN, and start the server's timer again (tcp_check_req)."""
        self.syn_arrived_at = self.syn_arrived_at or now
        self._send_syn_ack(now)

    def _send_syn_ack(self, now: int) -> None:
        self.syn_acks += 1
        self.down.send(now, SYN_BYTES, self._take_syn_ack)
        due = self.clock.jiffies(now) + (FIRST_TIMEOUT << self.timeouts)
        self.server_due = self.clock.expiry(now, due)
        self.events.at(self.server_due, self._expire)

    def _expire(self, now: int) -> None:
        """Send the SYN-ACK again if the server's timer is due (reqsk_timer_handler)."""
        if now == self.server_due and not self.accepted:
            self.timeouts += 1
            self._send_syn_ack(now)

    def _take_syn_ack(self, now: int) -> None:
        """Connect with the first SYN-ACK; answer at most one later SYN-ACK in half a second."""
        if not self.connected:
            self.connected = now
            self.up.send(now, HEADER_BYTES, self._accept)
            self._begin(now)
            return

        jiffies = self.clock.jiffies(now)
        if self.challenged is None or jiffies - self.challenged >= LEAST_BETWEEN:
            self.challenged = jiffies
            self.up.send(now, HEADER_BYTES, partial(self._take_challenge, now))

    def _begin(self, now: int) -> None:
        """Send the first request."""
        self.up.send(now, HEADER_BYTES + self.request_bytes, self._take_request)

    def _take_challenge(self, left: int, now: int) -> None:
        self.challenges.append((left, now))

    def _accept(self, now: int) -> None:
        self.accepted = now

    def _take_request(self, now: int) -> None:
        self.requested = now


# Both endpoints -----------------------------------------------------------------------

# Segments. No route limits the server's window, and with this number its buffer does.
SERVER_WINDOW = 64


class Endpoints(Events):
    """The two endpoints: the server as a sender and as a receiver, and the client as a receiver.

    With TLS the client sends several messages. If the answer to a message is late, the server's
    kernel acknowledges the message before the answer.
    """

    def __init__(self, transfer: Transfer) -> None:
        super().__init__()
        self.transfer = transfer
        self.clock = clock = Clock(transfer.clock_phase_ns)
        self.down = SimulatedLink(self, transfer.path.down)
        self.up = SimulatedLink(self, transfer.path.up)
        self.handshake = handshake = Handshake(self, clock, self.up, self.down,
                                               request_bytes=transfer.first_request_bytes)
        self.run()

        window_end = receive_window(transfer.initrwnd, transfer.receive_buffers,
                                    syn_mss=transfer.mss + TIMESTAMP_BYTES,
                                    unit=transfer.window_unit)
        self.sender = Sender(
            mss=transfer.mss, window=transfer.initcwnd, window_end=window_end,
            buffers=transfer.send_buffers,
            handshake_us=transfer.handshake_us or handshake.server_us,
            clock=clock, hystart=transfer.congestion_control == "cubic",
            restart_after_idle=transfer.restart_after_idle, probes=transfer.loss_probes)
        self.receiver = Receiver(
            transfer.initrwnd, transfer.mss, handshake.connected,
            handshake_us=handshake.client_us, clock=clock, buffers=transfer.receive_buffers,
            unit=transfer.window_unit, probes=transfer.loss_probes,
            most_window=transfer.most_window_bytes)
        self.server = Receiver(
            SERVER_WINDOW, transfer.mss, handshake.accepted,
            handshake_us=handshake.server_us, clock=clock, buffers=transfer.receive_buffers,
            unit=transfer.window_unit, probes=transfer.loss_probes)
        # One socket sends and receives.
        self.server.sent_round_trip, self.server.timer = self.sender.round_trip, self.sender.timer

        self.connected = handshake.connected
        self.echo = handshake.connected  # when the client sent the last packet that the server has
        self.timer_set: int | None = None  # the time of the last event for the sender's timer
        self.messages_sent_at = 0  # when the client sent its last messages
        # How many bytes the client sends in all, and how many of them were acknowledged.
        self.message_bytes = transfer.first_request_bytes + transfer.request_bytes
        if transfer.secure is not None:
            self.message_bytes += transfer.secure.finished_bytes
        self.acknowledged_bytes = 0
        # Sequence numbers at the end of each of the client's retransmissions.
        self.retransmitted_ends: set[int] = set()

    def _take_first_message(self, now: int) -> None:
        """Take the client's first message; the server's kernel acknowledges it before the answer.
        """
        size = self.transfer.first_request_bytes
        self._read_message(size, now)
        self.acknowledged_bytes = size
        self.down.send(now, HEADER_BYTES, self._take_first_acknowledgement)

    def _take_first_acknowledgement(self, now: int) -> None:
        self.receiver.sample_round_trip(self.clock.us(now) - self.clock.us(self.connected))

    def _read_message(self, size: int, now: int) -> None:
        """Take a message at the server, let the program read it, and acknowledge it."""
        self.server.take(now, Sent(size, True), echo=now, sent_at=now)
        self.server.read(now, Sent(size, True))
        self.server.acknowledge()

    def _take_message(self, size: int, take_acknowledgement: Happening, now: int) -> None:
        """Take a later message of the client, which also acknowledges data of the server.

        take_acknowledgement: handles that acknowledgement. Segments that it lets leave acknowledge
        the message.
        """
        segment = Sent(size, True)
        self.server.take(now, segment, echo=now, sent_at=now)
        take_acknowledgement(now)
        if self.server.received == self.server.acknowledged:
            return

        if self.server.read(now, segment):
            self._acknowledge_message(now)
        elif self.server.timer_at is not None:
            self.at(self.server.timer_at, self._acknowledge_message_late)

    def _acknowledge_message_late(self, now: int) -> None:
        """Acknowledge a message because no segment has done so in time (tcp_delack_timer_handler).
        """
        if self.server.timer_at == now:
            self.server.lengthen_delay()
            self._acknowledge_message(now)

    def _acknowledge_message(self, now: int, option_bytes: int = 0) -> None:
        """Send an acknowledgement of the server without data. option_bytes: of a report (DSACK)."""
        self.server.acknowledge()
        self.down.send(now, HEADER_BYTES + option_bytes, *self._acknowledgement_handlers(),
                       partial(self._take_pure_acknowledgement, self.server.received, self.echo))

    def _acknowledge_with(self, segment: Sent, now: int) -> None:
        """Note that a segment of the server acknowledges the client's data (tcp_event_data_sent).
        """
        if segment.payload:
            self.server.acknowledge_with_data(now)
        else:
            self.server.acknowledge()

    def _acknowledgement_handlers(self) -> tuple[Happening, ...]:
        """The functions to call when a segment of the server arrives at the client.

        They handle the acknowledgement of later messages; () if the client has sent none.
        """
        if not self.messages_sent_at:
            return ()
        return (partial(self._take_message_acknowledgement, self.server.received, self.echo),)

    def _take_message_acknowledgement(self, upto: int, echo: int, now: int) -> None:
        """Take an acknowledgement of the client's messages.

        Only time stamps show the RTT of a retransmission. After a timeout there is no probe while
        another retransmission is not acknowledged (tcp_try_keep_open).
        """
        if upto <= self.acknowledged_bytes:
            return

        before, self.acknowledged_bytes = self.acknowledged_bytes, upto
        us = self.clock.us(now) - self.clock.us(self.messages_sent_at)
        if any(before < end <= upto for end in self.retransmitted_ends):
            us = 1000 * max(self.clock.jiffies(now) - self.clock.jiffies(echo), 1)

        timer = self.receiver.timer
        in_flight = int(upto < self.message_bytes)
        if not in_flight:
            timer.probed_upto = 0
        timer.open = timer.backed_off_at is None or all(
            end <= upto for end in self.retransmitted_ends)
        self.receiver.sample_round_trip(us)
        timer.note_acknowledged(now, in_flight)
        if timer.at is not None:
            self.at(timer.at, self._expire_client)

    def _expire_client(self, now: int) -> None:
        """Handle the client's timer, which is due; Simulation does."""
        raise NotImplementedError

    def _take_pure_acknowledgement(self, upto: int, echo: int, now: int) -> None:
        """Take an acknowledgement without data from the server.

        upto: how many of the client's bytes the server has.
        """
        self.receiver.note_echo(echo)
