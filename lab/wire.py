"""What was seen on the wire: the captures of one trial, read and summed up.

A trial leaves two captures, one at each host's interface (engines/tap.py),
stamped by the same kernel clock in nanoseconds: what left the server can be
looked for at the client, and the time between is the network's.

Sequence and acknowledgement numbers are given relative to each side's SYN, as
Wireshark shows them: the SYN is 0 and the first byte of data is 1.
"""

from __future__ import annotations

import socket
import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import dpkt

from lab.errors import FirstFlightError

HTTP_PORT = 80  # where server.py listens

FIN, SYN, RST, PUSH, ACK = 0x01, 0x02, 0x04, 0x08, 0x10

_SNAP_BYTES = 96
# Nanosecond stamps, Ethernet: the header that engines/tap.py writes.
PCAP_HEADER = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, _SNAP_BYTES, 1)
_RECORD = struct.Struct("<IIII")  # seconds, nanoseconds, bytes kept, bytes on the wire
_SEQUENCE_SPACE = 1 << 32
_MILLISECOND_NS = 1_000_000
_SAME_WRITE_NS = _MILLISECOND_NS  # what leaves this close together leaves for one reason
_OPTION_SACK, _OPTION_TIMESTAMP = 5, 8


class CaptureError(FirstFlightError):
    """A capture is cut, damaged, or does not hold the connection that was asked for."""


@dataclass(frozen=True)
class Segment:
    """One TCP segment as one tap saw it.

    time_ns: since the epoch, by the kernel's clock.
    seq, ack: relative to the SYN of the side that they count; ack is None
        where the segment acknowledges nothing.
    frame_bytes: on the wire, Ethernet header included, as netem counts.
    window: as the header has it, before scaling.
    stamp, echo: the timestamp option (RFC 7323), None without it.
    sacked: relative (start, end) of each SACK block; a first block below
        `ack` reports a duplicate (RFC 2883).
    identification: of the IPv4 header; a retransmission has a new one.
    """

    time_ns: int
    to_client: bool
    client_port: int
    seq: int
    ack: int | None
    payload_bytes: int
    frame_bytes: int
    flags: int
    window: int
    stamp: int | None
    echo: int | None
    sacked: tuple[tuple[int, int], ...]
    identification: int

    @property
    def end(self) -> int:
        """The sequence number after its last byte of data."""
        return self.seq + self.payload_bytes

    @property
    def end_with_fin(self) -> int:
        """`end`, and one more for a FIN, which takes a number too."""
        return self.end + bool(self.flags & FIN)

    @property
    def is_fin(self) -> bool:
        return bool(self.flags & FIN)


@dataclass(frozen=True)
class Exchange:
    """One connection of a trial, from its two captures.

    at_client, at_server: every segment that the tap saw, both directions, in
        order of time.
    syns: SYNs as the client sent them; syn_acks: as the server sent them.
    handshake_ms: first SYN to first SYN-ACK at the client.
    first_flight: data that the server sent before the first acknowledgement
        of data; flight_arrivals: the same segments at the client, as far as
        they kept the link busy.
    bandwidth_kbps: of the link, from flight_arrivals: the bytes after the
        first over the time that they took; None for fewer than two.
    probes: new data, or a first FIN, that a timer sent beyond the window
        (tail loss probe, RFC 8985 section 7).
    retransmissions: data that the server sent again; fin_retransmissions:
        its FIN alone, again; client_retransmissions: the client's request
        or FIN, again.
    lost_to_client, lost_to_server: sent and never received, whatever it was.
    response_start_ns, response_acknowledged_ns: at the server, the first
        segment of the response and the first acknowledgement of all of it.
    """

    client_port: int
    at_client: tuple[Segment, ...]
    at_server: tuple[Segment, ...]
    syns: tuple[Segment, ...]
    syn_acks: tuple[Segment, ...]
    handshake_ms: float | None
    first_flight: tuple[Segment, ...]
    flight_arrivals: tuple[Segment, ...]
    bandwidth_kbps: float | None
    probes: tuple[Segment, ...]
    retransmissions: tuple[Segment, ...]
    fin_retransmissions: tuple[Segment, ...]
    client_retransmissions: tuple[Segment, ...]
    lost_to_client: tuple[Segment, ...]
    lost_to_server: tuple[Segment, ...]
    response_start_ns: int | None
    response_acknowledged_ns: int | None

    @property
    def handshake_retransmissions(self) -> int:
        """SYNs and SYN-ACKs sent more than once."""
        return max(0, len(self.syns) - 1) + max(0, len(self.syn_acks) - 1)

    @property
    def handshake_was_lost(self) -> bool:
        """Whether a SYN or SYN-ACK was lost, so that handshake_ms is no round trip."""
        return any(segment.flags & SYN for segment in self.lost_to_client + self.lost_to_server)

    @property
    def lost_data(self) -> tuple[Segment, ...]:
        return tuple(segment for segment in self.lost_to_client if segment.payload_bytes)

    @property
    def latency_ms(self) -> float | None:
        """T_ACK − T_Res1 (the paper's section 2) at the server's interface."""
        if self.response_start_ns is None or self.response_acknowledged_ns is None:
            return None
        return (self.response_acknowledged_ns - self.response_start_ns) / 1e6


@dataclass(frozen=True)
class _Packet:
    """A segment as it stands in the packet: absolute numbers."""

    time_ns: int
    to_client: bool
    client_address: bytes
    client_port: int
    payload_bytes: int
    frame_bytes: int
    identification: int
    tcp: dpkt.tcp.TCP


def read_exchange(client_pcap: bytes, server_pcap: bytes, client_port: int = 0,
                  response_bytes: int = 0) -> Exchange:
    """The connection from `client_port`, or the only one there is if that is 0.

    client_pcap, server_pcap: the packets of one trial as they stand in a pcap
    file, with or without the file's header. response_bytes: the response that
    counts is the last so many bytes on the connection, headers included; 0
    for all of them. Raises CaptureError.
    """
    at_client, at_server = _packets(client_pcap, "client"), _packets(server_pcap, "server")
    port = client_port or _only_port(at_client + at_server)
    at_client = [packet for packet in at_client if packet.client_port == port]
    at_server = [packet for packet in at_server if packet.client_port == port]
    if not at_client and not at_server:
        raise CaptureError(f"no packet from or to client port {port} in the captures")
    starts = _initial_numbers(at_client + at_server, port)
    return _sum_up(port, tuple(_segment(packet, starts) for packet in at_client),
                   tuple(_segment(packet, starts) for packet in at_server), response_bytes)


def read_exchanges(client_pcap: bytes, server_pcap: bytes) -> dict[tuple[str, int], Exchange]:
    """All connections of captures of many, by the client's address and port.

    A port that was used more than once is left out. Raises CaptureError.
    """
    ends: dict[tuple[bytes, int], tuple[list[_Packet], list[_Packet]]] = {}
    for side, pcap in enumerate((client_pcap, server_pcap)):
        for packet in _packets(pcap, ("client", "server")[side]):
            client = packet.client_address, packet.client_port
            ends.setdefault(client, ([], []))[side].append(packet)
    exchanges = {}
    for (address, port), (at_client, at_server) in ends.items():
        syns = {packet.tcp.seq for packet in at_client
                if packet.tcp.flags & SYN and not packet.to_client}
        if len(syns) > 1:
            continue
        starts = _initial_numbers(at_client + at_server, port)
        exchanges[socket.inet_ntoa(address), port] = _sum_up(
            port, tuple(_segment(packet, starts) for packet in at_client),
            tuple(_segment(packet, starts) for packet in at_server), 0)
    return exchanges


def client_ports(pcap: bytes) -> list[int]:
    """The client ports of all connections in a capture, in order of appearance."""
    return list(dict.fromkeys(packet.client_port for packet in _packets(pcap, "the")))


def clock_phase_ns(exchange: Exchange) -> int | None:
    """How far into a millisecond of the kernel's clock the client's first packet left.

    The client's time stamps (RFC 7323) count whole milliseconds of that
    clock; each packet says within which one it left, and all of them together
    narrow the phase down. The middle of what remains; None without stamps, or
    where they contradict each other.
    """
    sent = [s for s in exchange.at_client if not s.to_client and s.stamp is not None]
    if not sent:
        return None
    first = sent[0]
    low, high = 0, _MILLISECOND_NS - 1
    for segment in sent:
        ticks = _distance(segment.stamp or 0, first.stamp or 0)
        # phase + elapsed lies within [ticks, ticks + 1) milliseconds
        start = ticks * _MILLISECOND_NS - (segment.time_ns - first.time_ns)
        low, high = max(low, start), min(high, start + _MILLISECOND_NS - 1)
    return (low + high) // 2 if low <= high else None


def write_capture(path: Path, packets: bytes) -> None:
    """Write the packets of one trial as a pcap file of their own, for Wireshark or tcpdump."""
    path.write_bytes(packets if packets.startswith(PCAP_HEADER[:4]) else PCAP_HEADER + packets)


def _packets(pcap: bytes, side: str) -> list[_Packet]:
    # The records are taken apart here: dpkt's reader would pass over a cut
    # last one in silence, and makes a Decimal of every time.
    packets = []
    position = len(PCAP_HEADER) if pcap.startswith(PCAP_HEADER[:4]) else 0
    while position < len(pcap):
        if position + _RECORD.size > len(pcap):
            raise CaptureError(f"{side} capture ends within a packet's header")
        seconds, nanoseconds, kept, on_wire = _RECORD.unpack_from(pcap, position)
        position += _RECORD.size
        if kept > on_wire or kept > _SNAP_BYTES or nanoseconds >= 1_000_000_000:
            raise CaptureError(f"{side} capture is damaged at byte {position}")
        if position + kept > len(pcap):
            raise CaptureError(f"{side} capture ends within a packet")
        packet = _packet(seconds * 1_000_000_000 + nanoseconds,
                         pcap[position:position + kept], on_wire, side)
        if packet is not None:
            packets.append(packet)
        position += kept
    return packets


def _packet(time_ns: int, frame: bytes, frame_bytes: int, side: str) -> _Packet | None:
    """One captured frame; None for what is not TCP to or from the HTTP server."""
    try:
        ip = dpkt.ethernet.Ethernet(frame).data
        if not isinstance(ip, dpkt.ip.IP) or not isinstance(ip.data, dpkt.tcp.TCP):
            return None
        tcp = ip.data
    except dpkt.UnpackError as error:
        raise CaptureError(f"{side} capture holds a broken packet: {error}") from error
    if HTTP_PORT not in (tcp.sport, tcp.dport):
        return None
    to_client = tcp.sport == HTTP_PORT
    return _Packet(time_ns, to_client, ip.dst if to_client else ip.src,
                   tcp.dport if to_client else tcp.sport,
                   ip.len - ip.hl * 4 - tcp.off * 4, frame_bytes, ip.id, tcp)


def _only_port(packets: list[_Packet]) -> int:
    ports = sorted({packet.client_port for packet in packets})
    if not ports:
        raise CaptureError("the captures hold no connection")
    if len(ports) > 1:
        raise CaptureError(f"the captures hold {len(ports)} connections, from client ports"
                           f" {', '.join(map(str, ports))}: say which")
    return ports[0]


def _initial_numbers(packets: list[_Packet], port: int) -> dict[bool, int]:
    """The sequence number of each side's SYN, by direction (True: to the client).

    Without a SYN it is taken to be one below the first number seen.
    """
    starts: dict[bool, int] = {}
    for to_client in (False, True):
        sent = [packet for packet in packets if packet.to_client == to_client]
        numbers = {packet.tcp.seq for packet in sent if packet.tcp.flags & SYN}
        if len(numbers) > 1:
            raise CaptureError(f"client port {port} was used for more than one connection")
        if numbers:
            starts[to_client] = numbers.pop()
        elif sent:
            starts[to_client] = min(sent, key=lambda packet: packet.time_ns).tcp.seq - 1
    for to_client in (False, True):
        if to_client not in starts:  # nothing sent: go by what the other side acknowledges
            acks = [packet.tcp.ack for packet in packets if packet.tcp.flags & ACK]
            starts[to_client] = acks[0] - 1 if acks else 0
    return starts


def _segment(packet: _Packet, starts: dict[bool, int]) -> Segment:
    tcp = packet.tcp
    own, other = starts[packet.to_client], starts[not packet.to_client]
    stamp = echo = None
    sacked: tuple[tuple[int, int], ...] = ()
    for kind, data in dpkt.tcp.parse_opts(tcp.opts):
        if kind == _OPTION_TIMESTAMP and len(data) == 8:
            stamp, echo = struct.unpack(">II", data)
        elif kind == _OPTION_SACK and len(data) % 8 == 0:
            sacked = tuple((_distance(start, other), _distance(end, other))
                           for start, end in struct.iter_unpack(">II", data))
    return Segment(packet.time_ns, packet.to_client, packet.client_port,
                   _distance(tcp.seq, own),
                   _distance(tcp.ack, other) if tcp.flags & ACK else None,
                   packet.payload_bytes, packet.frame_bytes, tcp.flags, tcp.win,
                   stamp, echo, sacked, packet.identification)


def _distance(number: int, start: int) -> int:
    """number − start in TCP's 32-bit circle (RFC 9293, 3.4), −2³¹ … 2³¹−1."""
    return (number - start + _SEQUENCE_SPACE // 2) % _SEQUENCE_SPACE - _SEQUENCE_SPACE // 2


def _sum_up(port: int, at_client: tuple[Segment, ...],
            at_server: tuple[Segment, ...], response_bytes: int) -> Exchange:
    syns = tuple(s for s in at_client if not s.to_client and s.flags & SYN)
    syn_acks = tuple(s for s in at_server if s.to_client and s.flags & SYN)
    probes = _probes(at_server)
    flight = _first_flight(at_server, probes)
    arrivals = _busy_arrivals(flight, at_client)
    again = _sent_again(s for s in at_server if s.to_client)
    start_ns, acknowledged_ns = _response_times(at_server, response_bytes)
    return Exchange(
        client_port=port, at_client=at_client, at_server=at_server,
        syns=syns, syn_acks=syn_acks, handshake_ms=_handshake_ms(at_client),
        first_flight=flight, flight_arrivals=arrivals,
        bandwidth_kbps=_bandwidth_kbps(arrivals, at_client), probes=probes,
        retransmissions=tuple(s for s in again if s.payload_bytes),
        fin_retransmissions=tuple(s for s in again if not s.payload_bytes),
        client_retransmissions=_sent_again(s for s in at_client if not s.to_client),
        lost_to_client=_lost((s for s in at_server if s.to_client), at_client),
        lost_to_server=_lost((s for s in at_client if not s.to_client), at_server),
        response_start_ns=start_ns, response_acknowledged_ns=acknowledged_ns)


def _handshake_ms(at_client: tuple[Segment, ...]) -> float | None:
    sent = next((s.time_ns for s in at_client if not s.to_client and s.flags & SYN), None)
    answered = next((s.time_ns for s in at_client if s.to_client and s.flags & SYN), None)
    if sent is None or answered is None:
        return None
    return (answered - sent) / 1e6


def _probes(at_server: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """New data or a FIN that a timer of the server sent.

    TCP sends what is new when an acknowledgement allows it or when the server
    writes. A lone segment that leaves after a round trip in which nothing
    happened at all was sent by neither.
    """
    pause_ns = _server_round_trip_ns(at_server)
    probes: list[Segment] = []
    highest, last_event_ns = 1, 0
    for segment, following in zip(at_server, (*at_server[1:], None)):
        if segment.to_client and segment.end_with_fin > highest:
            alone = (following is None or not following.to_client
                     or following.time_ns - segment.time_ns > _SAME_WRITE_NS)
            if pause_ns and alone and highest > 1 \
                    and segment.time_ns - last_event_ns >= pause_ns:
                probes.append(segment)
            highest = segment.end_with_fin
        last_event_ns = segment.time_ns
    return tuple(probes)


def _first_flight(at_server: tuple[Segment, ...], probes: tuple[Segment, ...]
                  ) -> tuple[Segment, ...]:
    """New data, probes left out, up to the first acknowledgement of any, also by SACK alone."""
    flight: list[Segment] = []
    highest = 1
    for segment in at_server:
        if not segment.to_client:
            if flight and segment.ack is not None and (
                    segment.ack > flight[0].seq or segment.sacked):
                break  # the first segment may be lost, and the next ones acknowledged
        elif segment.payload_bytes and segment.end > highest:
            highest = segment.end
            if segment not in probes:
                flight.append(segment)
    return tuple(flight)


def _server_round_trip_ns(at_server: tuple[Segment, ...]) -> int | None:
    """First SYN-ACK to the acknowledgement that ends the handshake, at the server."""
    sent = next((s.time_ns for s in at_server if s.to_client and s.flags & SYN), None)
    answered = next((s.time_ns for s in at_server
                     if not s.to_client and not s.flags & SYN and s.ack == 1), None)
    return None if sent is None or answered is None else answered - sent


def _key(segment: Segment) -> tuple[int, int, int, int]:
    """Tells one transmission from another on either capture."""
    return segment.identification, segment.seq, segment.payload_bytes, segment.flags


def _busy_arrivals(flight: tuple[Segment, ...], at_client: tuple[Segment, ...]
                   ) -> tuple[Segment, ...]:
    """The flight at the client, up to where the link fell idle.

    Segments that arrive further apart than they left have queued for the
    link; twice as far, to be safe from clocks that are not exact.
    """
    sent = {_key(segment): segment.time_ns for segment in flight}
    arrivals = tuple(s for s in at_client
                     if s.to_client and s.payload_bytes and _key(s) in sent)
    for place, (before, segment) in enumerate(zip(arrivals, arrivals[1:]), start=1):
        left_apart = sent[_key(segment)] - sent[_key(before)]
        if 2 * left_apart > segment.time_ns - before.time_ns:
            return arrivals[:place]
    return arrivals


def _bandwidth_kbps(run: tuple[Segment, ...], at_client: tuple[Segment, ...]) -> float | None:
    """All that arrived after the first up to the last, over the time that it took."""
    if len(run) < 2 or run[-1].time_ns == run[0].time_ns:
        return None
    carried = sum(s.frame_bytes for s in at_client
                  if s.to_client and run[0].time_ns < s.time_ns <= run[-1].time_ns)
    return carried * 8e6 / (run[-1].time_ns - run[0].time_ns)


def _sent_again(sent: Iterable[Segment]) -> tuple[Segment, ...]:
    """Segments with data or a FIN, none of it new. Keep-alives and SYNs do not count."""
    again = []
    highest, fin_sent = 1, False
    for segment in sent:
        if segment.flags & (SYN | RST):
            continue
        repeats_data = segment.payload_bytes > 0 and segment.seq < highest
        repeats_fin = segment.payload_bytes == 0 and segment.is_fin and fin_sent
        if repeats_data or repeats_fin:
            again.append(segment)
        highest = max(highest, segment.end)
        fin_sent = fin_sent or segment.is_fin
    return tuple(again)


def _lost(sent: Iterator[Segment], at_other_side: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """Of the segments sent, those that the other side's capture does not have."""
    arrived = Counter(_key(segment) for segment in at_other_side)
    lost = []
    for segment in sent:
        key = _key(segment)
        if arrived[key] > 0:
            arrived[key] -= 1
        else:
            lost.append(segment)
    return tuple(lost)


def _response_times(at_server: tuple[Segment, ...], response_bytes: int
                    ) -> tuple[int | None, int | None]:
    """T_Res1 and T_ACK, ns: first data sent, first acknowledgement of all data."""
    data = [s for s in at_server if s.to_client and s.payload_bytes]
    end = max((segment.end for segment in data), default=0)
    start = end - response_bytes if response_bytes else 1
    sent = next((s.time_ns for s in data if s.end > start), None)
    acknowledged = next((s.time_ns for s in at_server if data
                         and not s.to_client and s.ack is not None and s.ack >= end), None)
    return sent, acknowledged
