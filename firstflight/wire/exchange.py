"""Summarises the two captures of a connection: handshake, first flight, losses, retransmissions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from firstflight.net.headers import FIN, OPTION_SACK_PERMITTED, RST, SYN, SYN_BYTES, tcp_options
from firstflight.net.path import NEVER, serialised_ms
from firstflight.net.segments import (MS, Connection, Packets, Segment, distance, read_connection,
                                      read_connections)

SAME_WRITE_NS = MS  # segments that leave this close together leave for the same reason
_USUAL_MSS = 536  # bytes (TCP_MSS_DEFAULT)
_COOKIE_MS = 3  # a time stamp with a larger error holds a SYN cookie's options


@dataclass(frozen=True)
class Exchange:
    """One connection of a trial, from its two captures."""

    client_port: int
    # Every segment that the host's tap recorded, in both directions, in order of time.
    at_client: tuple[Segment, ...]
    at_server: tuple[Segment, ...]
    syns: tuple[Segment, ...]  # that the client sent
    syn_acks: tuple[Segment, ...]  # that the server sent
    handshake_ms: float | None  # from the first SYN to the first SYN-ACK, at the client
    # Data that the server sent before the first acknowledgement of data, and when that
    # acknowledgement reached the server; path.NEVER if none did.
    first_flight: tuple[Segment, ...]
    first_flight_end_ns: int
    # The flight's segments at the client, up to the first that found the link idle.
    flight_arrivals: tuple[Segment, ...]
    # The link's bandwidth: the bytes of flight_arrivals after the first segment, over the time that
    # they took; None for fewer than two segments.
    bandwidth_kbps: float | None
    # New data, or a first FIN, that a timer sent beyond the window (tail loss probe, RFC 8985, 7).
    probes: tuple[Segment, ...]
    retransmissions: tuple[Segment, ...]  # data that the server retransmitted
    fin_retransmissions: tuple[Segment, ...]  # the server's FIN without data
    client_retransmissions: tuple[Segment, ...]  # data or a FIN that the client retransmitted
    # Segments that were sent and never received.
    lost_to_client: tuple[Segment, ...]
    lost_to_server: tuple[Segment, ...]
    # At the server; None if it did not happen.
    response_start_ns: int | None  # when the first segment of the response left
    response_acknowledged_ns: int | None  # when all of the response was acknowledged

    @property
    def handshake_retransmissions(self) -> int:
        """How many SYNs and SYN-ACKs were retransmissions."""
        return max(0, len(self.syns) - 1) + max(0, len(self.syn_acks) - 1)

    @property
    def handshake_was_lost(self) -> bool:
        """Whether a SYN or SYN-ACK was lost, so that handshake_ms is no round trip."""
        return any(segment.flags & SYN for segment in self.lost_to_client + self.lost_to_server)

    @property
    def lost_data(self) -> tuple[Segment, ...]:
        """Lost segments to the client that had data."""
        return tuple(segment for segment in self.lost_to_client if segment.payload_bytes)

    @property
    def latency_ms(self) -> float | None:
        """T_ACK − T_Res1 (the paper's section 2) at the server's interface; None without both."""
        if self.response_start_ns is None or self.response_acknowledged_ns is None:
            return None
        return (self.response_acknowledged_ns - self.response_start_ns) / 1e6


def read_exchange(client_pcap: Packets, server_pcap: Packets, client_port: int = 0,
                  response_bytes: int = 0) -> Exchange:
    """The exchange from `client_port`; 0 for the only one in the captures.

    client_pcap, server_pcap: the pcap records of one trial, with or without the file's header.
    response_bytes: how many of the last bytes on the connection are the response, its headers
    included; 0 for all bytes. Raises CaptureError.
    """
    return _summarise(read_connection(client_pcap, server_pcap, client_port), response_bytes)


def read_exchanges(client_pcap: Packets, server_pcap: Packets) -> dict[tuple[str, int], Exchange]:
    """Every exchange in two captures, by the client's address and port.

    Connections of a port that the client used more than once are excluded. Raises CaptureError.
    """
    connections = read_connections(client_pcap, server_pcap)
    return {client: _summarise(connection, response_bytes=0)
            for client, connection in connections.items()}


def clock_phase_ns(exchange: Exchange) -> int | None:
    """The middle of the possible phases of the kernel's clock (clock_phases_ns), or None."""
    phases = clock_phases_ns(exchange)
    return None if phases is None else sum(phases) // 2


def clock_phases_ns(exchange: Exchange) -> tuple[int, int] | None:
    """The time from a tick of the kernel's clock to the client's first packet: least and most, ns.

    The client's time stamps (RFC 7323) count whole milliseconds of that clock. So each packet shows
    in which millisecond it left, and all packets together narrow the phase down. None without time
    stamps, or if the time stamps contradict each other.
    """
    return _phases_ns([s for s in exchange.at_client if not s.to_client and s.stamp is not None])


def _phases_ns(sent: Sequence[Segment]) -> tuple[int, int] | None:
    """The possible phases for the segments of one host, which all have time stamps."""
    if not sent:
        return None
    first = sent[0]
    low, high = 0, MS - 1
    for segment in sent:
        ticks = distance(segment.stamp or 0, first.stamp or 0)
        # phase + elapsed lies within [ticks, ticks + 1) milliseconds
        start = ticks * MS - (segment.time_ns - first.time_ns)
        low, high = max(low, start), min(high, start + MS - 1)
    return (low, high) if low <= high else None


def nearest_phase_ns(phases_ns: tuple[int, int], expected_ns: int) -> int:
    """The time nearest to the expected one whose phase is possible; never below 0.

    phases_ns: the least and the most possible phase. Phases lie on a circle of a millisecond: a
    phase just before a tick is near to a phase just after it.
    """
    least, most = phases_ns
    phase_ns = expected_ns % MS
    if least <= phase_ns <= most:
        return expected_ns
    later_ns, earlier_ns = (least - phase_ns) % MS, (phase_ns - most) % MS
    nearest_ns = expected_ns + later_ns if later_ns <= earlier_ns else expected_ns - earlier_ns
    return nearest_ns if nearest_ns >= 0 else nearest_ns + MS


def observed_rtt_ms(exchange: Exchange, uplink_kbps: float, bandwidth_kbps: float) -> float | None:
    """The observed RTT: the handshake at the client, less the serialisation of its two packets.

    None if there was no handshake, or a packet of it was lost.
    """
    if exchange.handshake_ms is None or exchange.handshake_was_lost:
        return None
    syn_ms = serialised_ms(SYN_BYTES, uplink_kbps)
    syn_ack_ms = serialised_ms(SYN_BYTES, bandwidth_kbps)
    return exchange.handshake_ms - (syn_ms + syn_ack_ms)


def bandwidth_after_burst(exchange: Exchange, unshaped: int) -> float | None:
    """The rate of a token bucket, kbit/s, from the packets after its burst; None for too few.

    unshaped: how many packets the bucket lets through at once after a pause. Each later packet
    waits for as long as the packet before it takes. So the bytes of the last one do not count.
    """
    all_but_last = slice(-1)
    return _bandwidth_kbps(exchange.flight_arrivals[unshaped:], exchange.at_client, all_but_last)


def server_rtt_us(exchange: Exchange) -> tuple[int, int] | None:
    """The least and the most RTT that the server can have measured in the handshake, µs, or None.

    TCP subtracts whole µs. If SYN-ACKs were retransmitted, only the echoed time stamp shows the
    RTT, in whole milliseconds (tcp_synack_rtt_meas, tcp_rtt_tsopt_us). The same holds after a SYN
    cookie.
    """
    stamped = [s for s in exchange.at_server if s.to_client and s.stamp is not None]
    answer = next((s for s in exchange.at_server if not s.to_client and s.ack == 1), None)
    if answer is None or not exchange.syn_acks:
        return None

    if len(exchange.syn_acks) == 1:
        us = (answer.time_ns - exchange.syn_acks[0].time_ns) // 1000
        return _rtt_after_cookie_us(exchange, answer) or (us, us + 1)

    phases_ns = _phases_ns(stamped)
    if phases_ns is None or answer.echo is None:
        return None
    # Both in ms on the server's clock, counted from its first time stamp: when the segment left
    # that the answer echoes, and when the answer came.
    echoed = distance(answer.echo, stamped[0].stamp or 0)
    came_ns = answer.time_ns - stamped[0].time_ns
    least, most = ((came_ns + phase_ns) // MS - echoed for phase_ns in phases_ns)
    return 1000 * max(least, 1), 1000 * max(most, 1)


def _rtt_after_cookie_us(exchange: Exchange, answer: Segment) -> tuple[int, int] | None:
    """The least and the most RTT that the server measures after a SYN cookie; None without one.

    A listener whose backlog is full of half-open connections remembers no further connection. Then
    the time stamp of its SYN-ACK holds options in its lowest bits (cookie_init_timestamp). So that
    stamp has an error of up to 64 ms, and the RTT has the same error. answer: the client's
    acknowledgement of the SYN-ACK.
    """
    syn_ack, = exchange.syn_acks
    later = next((s for s in exchange.at_server if s.to_client and s.stamp is not None
                  and s.time_ns >= answer.time_ns), None)
    if later is None or later.stamp is None or syn_ack.stamp is None:
        return None

    stamped_ms = distance(later.stamp, syn_ack.stamp)
    if abs(stamped_ms - (later.time_ns - syn_ack.time_ns) / MS) < _COOKIE_MS:
        return None

    since_answer_ms = math.ceil((later.time_ns - answer.time_ns) / MS)
    return 1000 * max(stamped_ms - since_answer_ms, 1), 1000 * max(stamped_ms, 1)


def round_trip_ns(at_sender: tuple[Segment, ...], to_client: bool) -> int | None:
    """The time from the first SYN or SYN-ACK to its acknowledgement, at the side that sent it.

    at_sender: all segments at that side. to_client: whether that side is the server. None if the
    SYN was not sent or not acknowledged.
    """
    sent = next((s.time_ns for s in at_sender if s.to_client == to_client and s.flags & SYN), None)
    answered = next((s.time_ns for s in at_sender if s.to_client != to_client and s.ack == 1), None)
    return None if sent is None or answered is None else answered - sent


def mirror(segments: Iterable[Segment]) -> tuple[Segment, ...]:
    """The segments as if the client were the server: what it sends goes to the client."""
    return tuple(segment._replace(to_client=not segment.to_client) for segment in segments)


def upload_flight(exchange: Exchange) -> tuple[Segment, ...]:
    """The segments with data that the client sent before any of the data was acknowledged.

    They are mirrored: to_client is true in each of them.
    """
    has_sack = _has_sack(exchange.syns, exchange.syn_acks)
    at_client = mirror(exchange.at_client)
    flight, _ = _first_flight(at_client, _probes(at_client), has_sack)
    return flight


def _has_sack(syns: tuple[Segment, ...], syn_acks: tuple[Segment, ...]) -> bool:
    """Whether both sides offer SACK, as far as their first SYNs show."""
    return all(OPTION_SACK_PERMITTED in dict(tcp_options(syn.options))
               for syn in (*syns[:1], *syn_acks[:1]) if syn.options)


def _summarise(connection: Connection, response_bytes: int) -> Exchange:
    """The exchange of a connection. response_bytes: as for read_exchange."""
    at_client, at_server = connection.at_client, connection.at_server
    by_client = [s for s in at_client if not s.to_client]
    by_server = [s for s in at_server if s.to_client]
    syns = tuple(s for s in by_client if s.flags & SYN)
    syn_acks = tuple(s for s in by_server if s.flags & SYN)

    probes = _probes(at_server)
    flight, flight_end_ns = _first_flight(at_server, probes, _has_sack(syns, syn_acks))
    arrivals = _busy_arrivals(flight, at_client)
    retransmitted = _retransmitted(by_server)

    start_ns = acknowledged_ns = None
    end = max((s.end for s in by_server if s.payload_bytes), default=0)
    if end:
        start = end - response_bytes if response_bytes else 1
        start_ns, acknowledged_ns = response_times(at_server, start, end)

    return Exchange(
        client_port=connection.client_port, at_client=at_client, at_server=at_server,
        syns=syns, syn_acks=syn_acks, handshake_ms=_handshake_ms(at_client),
        first_flight=flight, first_flight_end_ns=flight_end_ns, flight_arrivals=arrivals,
        bandwidth_kbps=_bandwidth_kbps(arrivals, at_client), probes=probes,
        retransmissions=tuple(s for s in retransmitted if s.payload_bytes),
        fin_retransmissions=tuple(s for s in retransmitted if not s.payload_bytes),
        client_retransmissions=_retransmitted(by_client),
        lost_to_client=_lost(by_server, [s for s in at_client if s.to_client]),
        lost_to_server=_lost(by_client, [s for s in at_server if not s.to_client]),
        response_start_ns=start_ns, response_acknowledged_ns=acknowledged_ns)


def _handshake_ms(at_client: tuple[Segment, ...]) -> float | None:
    """From the first SYN to the first SYN-ACK at the client; None without both."""
    sent = next((s.time_ns for s in at_client if not s.to_client and s.flags & SYN), None)
    answered = next((s.time_ns for s in at_client if s.to_client and s.flags & SYN), None)
    return None if sent is None or answered is None else (answered - sent) / 1e6


def _probes(at_server: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """New data or a first FIN that a timer of the server sent.

    TCP sends new data when an acknowledgement allows it or when the server writes. A single
    segment that leaves after a round trip without any event was sent by a timer. A repeated
    request is no event, and neither is the acknowledgement that answers it.
    """
    rtt_ns = round_trip_ns(at_server, to_client=True)
    probes: list[Segment] = []
    sent_end, request_end, acknowledged = 1, 1, 1  # sequence numbers so far
    last_event_ns = 0
    repeated_ns = -1  # when the last repeated request came
    for segment, following in zip(at_server, (*at_server[1:], None)):
        if segment.to_client and segment.end_with_fin > sent_end:
            is_alone = (following is None or not following.to_client
                        or following.time_ns - segment.time_ns > SAME_WRITE_NS)
            if (rtt_ns and is_alone and sent_end > 1
                    and segment.time_ns - last_event_ns >= rtt_ns):
                probes.append(segment)
            sent_end = segment.end_with_fin
        elif segment.to_client and segment.time_ns == repeated_ns and not segment.payload_bytes:
            continue

        if not segment.to_client:
            is_repeated = (0 < segment.payload_bytes <= request_end - segment.seq
                           and not segment.is_fin)
            request_end = max(request_end, segment.end_with_fin)
            if is_repeated and (segment.ack or 0) <= acknowledged:
                repeated_ns = segment.time_ns
                continue
            acknowledged = max(acknowledged, segment.ack or 0)

        last_event_ns = segment.time_ns
    return tuple(probes)


def _first_flight(at_server: tuple[Segment, ...], probes: tuple[Segment, ...], has_sack: bool
                  ) -> tuple[tuple[Segment, ...], int]:
    """The segments with new data before any of the data was acknowledged, and when that was, ns.

    Probes do not count. The acknowledgement may be by SACK only. Without SACK a duplicate
    acknowledgement counts: it lets new data leave (RFC 3042, tcp_limit_transmit). The time is NEVER
    if no acknowledgement arrived.
    """
    flight: list[Segment] = []
    highest, window = 1, -1  # where the sent data ends, and the client's last window
    for segment in at_server:
        if not segment.to_client:
            is_duplicate = not has_sack and segment.window == window and not (
                segment.payload_bytes or segment.flags & (SYN | FIN))
            window = segment.window
            # With SACK the first segment may be lost, and the next ones acknowledged.
            if flight and segment.ack is not None and (
                    segment.ack > flight[0].seq or segment.sacked or is_duplicate):
                return tuple(flight), segment.time_ns
        elif segment.payload_bytes and segment.end > highest:
            highest = segment.end
            if segment not in probes:
                flight.append(segment)
    return tuple(flight), NEVER


def _key(segment: Segment) -> tuple[int, int, int, int]:
    """The fields that identify one transmission in both captures."""
    return segment.identification, segment.seq, segment.payload_bytes, segment.flags


def _busy_arrivals(flight: tuple[Segment, ...], at_client: tuple[Segment, ...]
                   ) -> tuple[Segment, ...]:
    """The segments of the flight at the client, up to the first that found the link idle.

    A segment waits for the link if it leaves the server before the link has sent the segment before
    it. On a busy link the time between two arrivals is what the later segment takes, and the
    earlier one takes a share of that, by their sizes. Half of the share counts, since clocks may
    not be exact.
    """
    sent_ns = {_key(segment): segment.time_ns for segment in flight}
    arrivals = tuple(s for s in at_client
                     if s.to_client and s.payload_bytes and _key(s) in sent_ns)

    for count, (before, segment) in enumerate(zip(arrivals, arrivals[1:]), start=1):
        left_apart_ns = sent_ns[_key(segment)] - sent_ns[_key(before)]
        share = min(1.0, before.frame_bytes / segment.frame_bytes)
        if 2 * left_apart_ns > share * (segment.time_ns - before.time_ns):
            return arrivals[:count]
    return arrivals


def _bandwidth_kbps(run: tuple[Segment, ...], at_client: tuple[Segment, ...],
                    counted: slice = slice(1, None)) -> float | None:
    """The rate at which a run of segments arrived, kbit/s; None for fewer than two.

    counted: which of the arrivals have their bytes sent by the link between the first arrival and
    the last one; by default all but the first.
    """
    if len(run) < 2 or run[-1].time_ns == run[0].time_ns:
        return None
    arrived = [s.frame_bytes for s in at_client
               if s.to_client and run[0].time_ns <= s.time_ns <= run[-1].time_ns]
    return sum(arrived[counted]) * 8e6 / (run[-1].time_ns - run[0].time_ns)


def _retransmitted(sent: Iterable[Segment]) -> tuple[Segment, ...]:
    """Segments that repeat data or a FIN. Keep-alives and SYNs do not count."""
    retransmitted = []
    highest, fin_sent = 1, False
    for segment in sent:
        if segment.flags & (SYN | RST):
            continue
        repeats_data = segment.payload_bytes > 0 and segment.seq < highest
        repeats_fin = segment.payload_bytes == 0 and segment.is_fin and fin_sent
        if repeats_data or repeats_fin:
            retransmitted.append(segment)
        highest = max(highest, segment.end)
        fin_sent = fin_sent or segment.is_fin
    return tuple(retransmitted)


def _lost(sent: Sequence[Segment], received: Sequence[Segment]) -> tuple[Segment, ...]:
    """The sent segments that the other side has not received."""
    arrived = Counter([_key(segment) for segment in received])
    lost = []
    for segment in sent:
        key = _key(segment)
        if arrived[key] > 0:
            arrived[key] -= 1
        else:
            lost.append(segment)
    return tuple(lost)


def response_times(at_server: tuple[Segment, ...], start: int, end: int
                   ) -> tuple[int | None, int | None]:
    """T_Res1 and T_ACK of a response, ns: when its first data left, and when all was acknowledged.

    start, end: sequence numbers of its first byte and after its last one.
    """
    sent = next((s.time_ns for s in at_server
                 if s.to_client and s.payload_bytes and s.end > start), None)
    acknowledged = next((s.time_ns for s in at_server if not s.to_client
                         and s.ack is not None and s.ack >= end), None)
    return sent, acknowledged


# The receive window -----------------------------------------------------------------------

def first_mss(exchange: Exchange, mss: int) -> int:
    """The MSS of the server's socket before it sends: at most half of the window that was offered.

    A window of at most _USUAL_MSS is not halved (tcp_bound_to_half_wnd). mss: bytes, what the
    options allow.
    """
    scale = next((segment.scale for segment in exchange.syns), 0)
    offered = 0
    for segment in exchange.at_server:
        if segment.to_client and segment.payload_bytes > 0:
            break
        if not (segment.to_client or segment.flags & SYN):
            offered = max(offered, segment.window << scale)

    most = offered // 2 if offered > _USUAL_MSS else offered
    return min(mss, most or mss)


def count_early_data(at_client: Sequence[Segment]) -> int:
    """How many data segments reached the client before the data that precedes them."""
    expected, early = 1, 0
    waiting: list[tuple[int, int]] = []  # begin and end of data that came early
    for segment in at_client:
        if not segment.to_client or not segment.payload_bytes:
            continue

        early += segment.seq > expected
        heappush(waiting, (segment.seq, segment.end))
        while waiting and waiting[0][0] <= expected:
            _, end = heappop(waiting)
            expected = max(expected, end)
    return early


@dataclass(frozen=True)
class OfferedWindows:
    """The windows that a client offered on one connection, at its server."""

    # The smallest and the largest window while data was to be sent.
    least_bytes: int
    most_bytes: int
    # How often the server had more to send but no room for a full segment in the window, until the
    # client offered more.
    waits: int


def offered_windows(at_server: Sequence[Segment], scale: int, mss: int) -> OfferedWindows | None:
    """The offered windows of a connection, from the packets at its server; None without any.

    scale: from the client's SYN, bits. mss: bytes of a full segment.
    """
    end = max((segment.end for segment in at_server
               if segment.to_client and segment.payload_bytes), default=0)
    windows, waits = [], 0
    sent = 1  # where the sent data ends
    edge = 0  # where the offered window ends
    for segment in at_server:
        if segment.to_client:
            sent = max(sent, segment.end)
        elif segment.ack is not None and not segment.flags & SYN and segment.ack < end:
            window = segment.window << scale
            has_no_room = edge and sent < end and edge - sent < mss
            if has_no_room and segment.ack + window > edge:
                waits += 1
            edge = max(edge, segment.ack + window)
            windows.append(window)
    if not windows:
        return None
    return OfferedWindows(min(windows), max(windows), waits)
