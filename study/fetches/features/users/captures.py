"""A capture of a server, pcap or pcapng: RTT, bandwidth and size of each connection.

Seen at the server, the RTT is from its SYN-ACK to the client's first
acknowledgement; it holds no queueing of the response. The bandwidth is
estimated from how fast acknowledgements come back within one flight (Keshav
1991, packet pair, at the receiver of ACKs): what they acknowledge over the
time between them. The size is all that the server sent on the connection.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import dpkt

from base.errors import UsageError
from study.fetches.features.users.rows import Row, Users, collect

FEWEST_GAPS = 3  # between acknowledgements, for an estimate of the bandwidth
SAME_FLIGHT = 0.5  # of an RTT: acknowledgements closer than this are of one flight
HEADER_BYTES = 66  # of a full segment beside its data, with Ethernet and time stamps
MSS = 1448
ESTIMATED = {"bandwidth_kbps": "from how fast acknowledgements came back within a flight",
             "rtt_ms": "from the handshake"}
MOST_BLOCK_BYTES = 1 << 19  # of a capture: libpcap keeps at most 2¹⁸ of a packet (MAXIMUM_SNAPLEN)
MOST_EMPTY = 1000  # packets without a byte: zeros behind the end of what was written look so
_SPACE = 1 << 32
Endpoint = tuple[bytes, int]  # address and port
_LINKS = {dpkt.pcap.DLT_EN10MB: dpkt.ethernet.Ethernet, dpkt.pcap.DLT_LINUX_SLL: dpkt.sll.SLL,
          dpkt.pcap.DLT_LINUX_SLL2: dpkt.sll2.SLL2}
_RAW = (dpkt.pcap.DLT_RAW, 12, 101, 228, 229)  # of any system, IPv4 and IPv6 by themselves
# What dpkt raises where a file or a packet is damaged: it looks at little before it unpacks it.
_DAMAGED = (dpkt.Error, struct.error, ValueError, TypeError, AttributeError, LookupError,
            ArithmeticError, RecursionError)


@dataclass
class _Connection:
    """One connection as far as it was observed; times in seconds."""

    syn_ack_s: float | None = None
    rtt_s: float | None = None
    first_seq: int = 0
    sent_bytes: int = 0
    acked: int | None = None
    acked_s: float = 0.0
    gaps: list[tuple[float, int]] = field(default_factory=list)  # seconds, bytes acknowledged

    def from_server(self, at_s: float, tcp: dpkt.tcp.TCP, payload_bytes: int) -> None:
        if tcp.flags & dpkt.tcp.TH_SYN:
            self.syn_ack_s, self.first_seq = at_s, (tcp.seq + 1) % _SPACE
        elif self.syn_ack_s is not None:
            end = (tcp.seq + payload_bytes - self.first_seq) % _SPACE
            self.sent_bytes = max(self.sent_bytes, end if end < _SPACE // 2 else 0)

    def from_client(self, at_s: float, tcp: dpkt.tcp.TCP) -> None:
        if self.syn_ack_s is None or not tcp.flags & dpkt.tcp.TH_ACK:
            return
        if self.rtt_s is None:
            self.rtt_s = at_s - self.syn_ack_s
        acked = (tcp.ack - self.first_seq) % _SPACE
        if self.acked is not None and self.acked < acked < _SPACE // 2:
            if self.acked:
                self.gaps.append((at_s - self.acked_s, acked - self.acked))
        elif self.acked is not None:
            return
        self.acked, self.acked_s = acked, at_s

    def row(self) -> Row | None:
        """None for a connection without a handshake or a response."""
        if self.rtt_s is None or not self.sent_bytes:
            return None
        return Row(1000 * self.rtt_s, self._bandwidth_kbps(), self.sent_bytes)

    def _bandwidth_kbps(self) -> float | None:
        assert self.rtt_s is not None
        within = [gap for gap in self.gaps if 0 < gap[0] < SAME_FLIGHT * self.rtt_s]
        if len(within) < FEWEST_GAPS:
            return None
        seconds = sum(gap[0] for gap in within)
        acked = sum(gap[1] for gap in within)
        return acked * (1 + HEADER_BYTES / MSS) * 8 / seconds / 1000


class _InBlocks:
    """A file that is read in blocks of some size only, whatever its damaged lengths say."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file

    def read(self, count: int) -> bytes:
        if not 0 <= count <= MOST_BLOCK_BYTES:
            raise ValueError(f"it has a block of {count} bytes")
        return self.file.read(count)

    def seek(self, place: int) -> int:
        return self.file.seek(place)


def read(file: BinaryIO, where: str) -> Users:
    """The connections of a capture that begin in it. Raises UsageError."""
    connections: dict[tuple[Endpoint, Endpoint], _Connection] = {}
    for at_s, ip in _packets(file, where):
        _add(connections, at_s, ip)
    return collect(connections.values(), _Connection.row, "a capture of a server", where,
                   dict(ESTIMATED))


def _packets(file: BinaryIO, where: str) -> Iterator[tuple[float, dpkt.Packet | None]]:
    """When each frame was captured, in seconds, and what it carries (_ip_of). Raises UsageError."""
    try:
        reader = dpkt.pcap.UniversalReader(_InBlocks(file))
        link = reader.datalink()
        if link not in (*_LINKS, *_RAW):
            raise UsageError(f"{where}: is a capture of link type {link}; known: Ethernet, Linux"
                             " cooked, raw IP")
        empty = 0
        for at_s, frame in reader:
            empty += not frame
            if empty > MOST_EMPTY:
                raise ValueError(f"more than {empty - 1} of its packets have no byte")
            yield float(at_s), _ip_of(frame, link)
    except _DAMAGED as error:
        why = str(error) or "it is cut short"
        raise UsageError(f"{where}: is a damaged capture: {why}") from error


def _add(connections: dict[tuple[Endpoint, Endpoint], _Connection], at_s: float,
         ip: dpkt.Packet | None) -> None:
    tcp = getattr(ip, "data", None)
    if ip is None or not isinstance(tcp, dpkt.tcp.TCP):
        return
    sender, receiver = (ip.src, tcp.sport), (ip.dst, tcp.dport)
    if tcp.flags & dpkt.tcp.TH_SYN and tcp.flags & dpkt.tcp.TH_ACK:
        connections[sender, receiver] = _Connection()
    if (sender, receiver) in connections:
        connections[sender, receiver].from_server(at_s, tcp, _payload_bytes(ip, tcp))
    elif (receiver, sender) in connections:
        connections[receiver, sender].from_client(at_s, tcp)


def _payload_bytes(ip: dpkt.Packet, tcp: dpkt.tcp.TCP) -> int:
    """By the header's length: a capture may keep the first bytes of a packet only."""
    if isinstance(ip, dpkt.ip.IP):
        return int(ip.len - 4 * ip.hl - 4 * tcp.off) if ip.len else len(tcp.data)
    return int(ip.plen - 4 * tcp.off)


def _ip_of(frame: bytes, link: int) -> dpkt.Packet | None:
    """What a frame carries, None where it is damaged or no IP packet."""
    try:
        if link in _LINKS:
            return _LINKS[link](frame).data
        return (dpkt.ip.IP if frame[:1] and frame[0] >> 4 == 4 else dpkt.ip6.IP6)(frame)
    except _DAMAGED:
        return None
