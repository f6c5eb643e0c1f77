"""TCP segments, read from the captures of a trial.

A trial leaves two captures, one at each host's interface (testbed/worker/tap.py). The same kernel
clock stamps both, in nanoseconds. So a packet that left the server can be found at the client, and
the time between the two is the network's.

Sequence and acknowledgement numbers are relative to each side's SYN, as in Wireshark: the SYN is 0,
and the first byte of data is 1.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Union

from firstflight.base.errors import FirstFlightError
from firstflight.net import headers, pcap
from firstflight.net.headers import (ACK, FIN, OPTION_SACK, OPTION_SCALE, OPTION_TIMESTAMP, RST,
                                     SYN, TCP)

CapturedFrame = tuple[int, bytes, int]  # its time in ns, its kept bytes, its length on the wire
Packets = Union[bytes, Sequence[CapturedFrame]]  # a capture, or the frames parsed from it

# Recorded sites listen on MOST_GROUPS ports from these on, without TLS and with it. No client has a
# port below 1024.
PLAIN_SITE_PORTS, SECURE_SITE_PORTS, MOST_GROUPS = 600, 800, 200
# Where servers listen, with HTTP and TLS: server.py, then other servers, then recorded sites.
SECURE_PORTS = frozenset((443, 8443,
                          *range(SECURE_SITE_PORTS, SECURE_SITE_PORTS + MOST_GROUPS)))
SERVER_PORTS = SECURE_PORTS | {80, 8080, *range(PLAIN_SITE_PORTS, PLAIN_SITE_PORTS + MOST_GROUPS)}

MS = 1_000_000  # nanoseconds
FORGETS_NS = 999 * MS  # a server keeps a SYN for at least a second of its timers (TCP_TIMEOUT_INIT)

_STAMPS = struct.Struct(">II")
# How options begin that have only time stamps: two bytes of padding, then kind and length (RFC
# 7323, appendix A).
_ONLY_STAMPS = bytes((1, 1, 8, 10))
_ONLY_STAMPS_BYTES = len(_ONLY_STAMPS) + _STAMPS.size
_NO_BLOCKS: tuple[tuple[int, int], ...] = ()
_SEQUENCE_SPACE, _HALF = 1 << 32, 1 << 31


class CaptureError(FirstFlightError):
    """A capture is cut or damaged, or lacks the requested connection."""


class Segment(NamedTuple):
    """One TCP segment as one tap recorded it."""

    time_ns: int  # since the epoch, by the kernel's clock
    to_client: bool
    client_port: int
    seq: int  # relative to the sender's SYN
    ack: int | None  # relative to the receiver's SYN; None without an acknowledgement
    payload_bytes: int
    frame_bytes: int  # on the wire, Ethernet header included, as netem counts
    flags: int
    window: int  # from the header, not scaled
    # The timestamp option (RFC 7323); None without it.
    stamp: int | None
    echo: int | None
    # Relative (start, end) of each SACK block. A first block below `ack` reports a duplicate
    # (RFC 2883).
    sacked: tuple[tuple[int, int], ...]
    identification: int  # of the IPv4 header; a retransmission has a new one
    # Of a SYN: by how many bits to shift later windows of its sender (RFC 7323, 2); 0 without the
    # option.
    scale: int = 0
    options: bytes = b""  # of a SYN; b"" for other segments

    @property
    def end(self) -> int:
        """The sequence number after the segment's last byte of data."""
        return self.seq + self.payload_bytes

    @property
    def end_with_fin(self) -> int:
        """`end`, plus one if the segment has a FIN, which counts as a byte."""
        return self.end + bool(self.flags & FIN)

    @property
    def is_fin(self) -> bool:
        """Whether the segment has a FIN."""
        return bool(self.flags & FIN)

    @property
    def kind(self) -> str:
        """SYN, SYN-ACK, RST, data, request (data to the server), FIN or ACK."""
        if self.flags & SYN:
            return "SYN-ACK" if self.flags & ACK else "SYN"
        if self.flags & RST:
            return "RST"
        if self.payload_bytes:
            return "data" if self.to_client else "request"
        return "FIN" if self.is_fin else "ACK"

    def ms_after(self, other: Segment) -> float:
        """How many ms after the other segment this one was recorded."""
        return (self.time_ns - other.time_ns) / 1e6


@dataclass(frozen=True)
class Connection:
    """All segments of one connection at each of the two taps, in order of time."""

    client_port: int
    at_client: tuple[Segment, ...]
    at_server: tuple[Segment, ...]


class RawSegment(NamedTuple):
    """A TCP segment with absolute sequence numbers, and with its options as bytes."""

    time_ns: int
    to_client: bool  # whether it goes to the side that sent the first SYN
    client_address: str
    client_port: int
    seq: int
    ack: int
    flags: int
    window: int
    options: bytes
    payload_bytes: int
    frame_bytes: int
    identification: int


def read_connection(client_pcap: Packets, server_pcap: Packets, client_port: int = 0) -> Connection:
    """The connection from `client_port`; 0 for the only one in the captures.

    client_pcap, server_pcap: the pcap records of one trial, with or without the file's header.
    Raises CaptureError.
    """
    at_client, at_server = _packets(client_pcap, "client"), _packets(server_pcap, "server")

    port = client_port or _only_port(at_client + at_server)
    at_client = [packet for packet in at_client if packet.client_port == port]
    at_server = [packet for packet in at_server if packet.client_port == port]
    if not at_client and not at_server:
        raise CaptureError(f"no packet from or to client port {port} in the captures")
    return connection_of(port, at_client, at_server)


def read_connections(client_pcap: Packets, server_pcap: Packets
                     ) -> dict[tuple[str, int], Connection]:
    """All connections in two captures, by the client's address and port.

    Connections of a port that was used more than once are excluded. Raises CaptureError.
    """
    # By the client's address and port: the segments at the client, and at the server.
    by_client: dict[tuple[str, int], tuple[list[RawSegment], list[RawSegment]]] = {}
    for side, packets in enumerate((client_pcap, server_pcap)):
        for packet in _packets(packets, ("client", "server")[side]):
            client = packet.client_address, packet.client_port
            by_client.setdefault(client, ([], []))[side].append(packet)

    connections = {}
    for (address, port), (at_client, at_server) in by_client.items():
        syns = {packet.seq for packet in at_client
                if packet.flags & SYN and not packet.to_client}
        if len(syns) <= 1:
            connections[address, port] = connection_of(port, at_client, at_server)
    return connections


def client_ports(pcap: bytes) -> list[int]:
    """The client ports of all connections in a capture, in order of appearance."""
    return list(dict.fromkeys(packet.client_port for packet in _packets(pcap, "the")))


def capture_file(packets: bytes) -> bytes:
    """The packets of one trial as a pcap file of their own, for Wireshark or tcpdump."""
    return packets if pcap.has_header(packets) else pcap.HEADER + packets


def _packets(packets: Packets, side: str) -> list[RawSegment]:
    """The TCP segments of a capture. Raises CaptureError."""
    return [segment for time_ns, frame, frame_bytes in frames(packets, side)
            if (segment := _raw_segment(time_ns, frame, frame_bytes)) is not None]


def frames(packets: Packets, side: str) -> Sequence[CapturedFrame]:
    """The frames of a capture; frames that are parsed already are returned as they are.

    side: the capture's name in messages. Raises CaptureError.
    """
    if not isinstance(packets, bytes):
        return packets
    try:
        return list(pcap.frames(packets))
    except ValueError as error:
        raise CaptureError(f"{side} capture {error}") from error


def frames_of(client_pcap: bytes, server_pcap: bytes
              ) -> tuple[Sequence[CapturedFrame], Sequence[CapturedFrame]]:
    """The frames of a trial's two captures, parsed once for all readers. Raises CaptureError."""
    return frames(client_pcap, "client"), frames(server_pcap, "server")


# A packet that arrives is in both captures of its trial, and is parsed once.
_headers = lru_cache(maxsize=4096)(headers.headers)


def _raw_segment(time_ns: int, frame: bytes, frame_bytes: int) -> RawSegment | None:
    """The TCP segment in a frame; None if it is not to or from a port of SERVER_PORTS."""
    parsed = _headers(frame, frame_bytes)
    if parsed is None or parsed.protocol != TCP:
        return None
    to_client = parsed.from_port in SERVER_PORTS
    if not (to_client or parsed.to_port in SERVER_PORTS):
        return None
    # Fields by position, for speed: every packet of every capture comes here.
    return RawSegment(time_ns, to_client, parsed.destination if to_client else parsed.source,
                      parsed.to_port if to_client else parsed.from_port, parsed.seq, parsed.ack,
                      parsed.flags, parsed.window, parsed.options, parsed.payload_bytes,
                      frame_bytes, parsed.identification)


def _only_port(packets: list[RawSegment]) -> int:
    """The client port of the only connection. Raises CaptureError if there are more or none."""
    ports = sorted({packet.client_port for packet in packets})
    if not ports:
        raise CaptureError("the captures hold no connection")
    if len(ports) > 1:
        raise CaptureError(f"the captures hold {len(ports)} connections, from client ports"
                           f" {', '.join(map(str, ports))}: name one of them")
    return ports[0]


def connection_of(port: int, at_client: list[RawSegment], at_server: list[RawSegment]
                  ) -> Connection:
    """The connection with relative numbers. Raises CaptureError if the port was used twice."""
    starts = initial_numbers(at_client + at_server, port)
    return Connection(port, tuple(_segment(packet, starts) for packet in at_client),
                      tuple(_segment(packet, starts) for packet in at_server))


def initial_numbers(packets: list[RawSegment], port: int) -> dict[bool, int]:
    """The sequence number of each side's SYN, by direction (True: to the client).

    Without a SYN it is taken to be one below the first sequence number of that side. Raises
    CaptureError if the port was used twice.
    """
    starts: dict[bool, int] = {}
    for to_client in (False, True):
        sent = [packet for packet in packets if packet.to_client == to_client]
        numbers = {packet.seq for packet in sent if packet.flags & SYN}
        if len(numbers) > 1 and not to_client:
            raise CaptureError(f"client port {port} was used for more than one connection")
        if numbers:
            starts[to_client] = numbers.pop() if len(numbers) == 1 else _accepted(packets, port)
        elif sent:
            starts[to_client] = min(sent, key=lambda packet: packet.time_ns).seq - 1

    for to_client in (False, True):
        if to_client not in starts:  # this side sent nothing: go by what the other acknowledges
            acks = [packet.ack for packet in packets if packet.flags & ACK]
            starts[to_client] = acks[0] - 1 if acks else 0
    return starts


def _accepted(packets: list[RawSegment], port: int) -> int:
    """The sequence number of the SYN-ACK that the client acknowledges; of the last one if of none.

    A server forgets a SYN after its last SYN-ACK (tcp_synack_retries; a minute by default), and
    answers the client's next SYN with another number (reqsk_timer_handler, tcp_conn_request).
    Raises CaptureError where that does not explain a second number.
    """
    packets = sorted(packets, key=lambda packet: packet.time_ns)
    first_ns: dict[int, int] = {}  # when each number was first observed
    for packet in packets:
        if packet.to_client and packet.flags & SYN:
            first_ns.setdefault(packet.seq, packet.time_ns)
    times = list(first_ns.values())
    if any(later - earlier < FORGETS_NS for earlier, later in zip(times, times[1:])):
        raise CaptureError(f"client port {port} was used for more than one connection")

    for packet in packets:
        if not packet.to_client and packet.flags & ACK:
            number = (packet.ack - 1) % _SEQUENCE_SPACE
            if number in first_ns:
                return number
            raise CaptureError(f"the client of port {port} acknowledges a SYN that no server sent")
    return list(first_ns)[-1]


def _segment(packet: RawSegment, starts: dict[bool, int]) -> Segment:
    """The segment with relative numbers. starts: from initial_numbers."""
    own_start, other_start = starts[packet.to_client], starts[not packet.to_client]
    options = packet.options
    if len(options) == _ONLY_STAMPS_BYTES and options.startswith(_ONLY_STAMPS):
        stamp, echo = _STAMPS.unpack_from(options, len(_ONLY_STAMPS))  # nearly every packet
        sacked, scale = _NO_BLOCKS, 0
    else:
        stamp, echo, sacked, scale = _read_options(options, other_start)
    # Fields by position, for speed: every packet of every capture comes here.
    return Segment(packet.time_ns, packet.to_client, packet.client_port,
                   distance(packet.seq, own_start),
                   distance(packet.ack, other_start) if packet.flags & ACK else None,
                   packet.payload_bytes, packet.frame_bytes, packet.flags, packet.window,
                   stamp, echo, sacked, packet.identification, scale,
                   options if packet.flags & SYN else b"")


def _read_options(options: bytes, other_start: int
                  ) -> tuple[int | None, int | None, tuple[tuple[int, int], ...], int]:
    """stamp, echo, sacked and scale of a Segment. other_start: the other side's initial number."""
    stamp, echo, sacked, scale = None, None, _NO_BLOCKS, 0
    try:
        for kind, data in headers.tcp_options(options):
            if kind == OPTION_TIMESTAMP and len(data) == 8:
                stamp, echo = _STAMPS.unpack(data)
            elif kind == OPTION_SCALE and len(data) == 1:
                scale = data[0]
            elif kind == OPTION_SACK and len(data) % 8 == 0:
                sacked = tuple((distance(start, other_start), distance(end, other_start))
                               for start, end in _STAMPS.iter_unpack(data))
    except ValueError as error:
        raise CaptureError(f"a capture holds a broken packet: {error}") from error
    return stamp, echo, sacked, scale


def distance(number: int, start: int) -> int:
    """number − start in TCP's 32-bit circle (RFC 9293, 3.4), −2³¹ … 2³¹−1."""
    return (number - start + _HALF) % _SEQUENCE_SPACE - _HALF
