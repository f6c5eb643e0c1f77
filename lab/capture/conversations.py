"""The packets of a capture by conversation: TCP connections, flows of datagrams, and the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from lab.capture.links import LinkDirection
from lab.capture.pcapng import Capture, CapturedPacket
from lab.tcp.packets import RawSegment
from net import headers
from net.headers import ACK, ICMP, ICMPV6, SYN, TCP, UDP, Headers

_ECHO, _ECHO_REPLY, _ECHO6, _ECHO6_REPLY = 8, 0, 128, 129
_ECHO_BYTES = 8  # of its header
_UNKNOWN_PORT = 1024  # from it on ports are a client's, where no SYN shows who is
End = tuple[str, int]  # address and port


@dataclass
class TcpPackets:
    """One connection: its packets as its two ends saw them.

    client: who sent the first SYN, or the end with the higher port; server: the other. at_client,
    at_server: all segments, in order of time. carried: each packet with data, and each that was
    dropped, with the link that it passed or was dropped at, as a segment as well.
    """

    client: End
    server: End
    client_node: str
    server_node: str
    at_client: list[RawSegment] = field(default_factory=list)
    at_server: list[RawSegment] = field(default_factory=list)
    carried: list[tuple[LinkDirection, CapturedPacket, RawSegment]] = field(default_factory=list)
    syn: int | None = None


@dataclass
class Flow:
    """Datagrams one way between two ends, or pings; times in ns.

    kind: "UDP" or "ping". sent_ns, came_ns: by what identifies a datagram, when it left one host
    and came to the other; a ping comes when its answer does. copies: how many datagrams of the same
    content were counted so far, at either host.
    """

    kind: str
    sender: End
    receiver: End
    from_node: str
    to_node: str
    bytes: int = 0
    sent_ns: dict[tuple[object, ...], int] = field(default_factory=dict)
    came_ns: dict[tuple[object, ...], int] = field(default_factory=dict)
    copies: Counter[tuple[object, ...]] = field(default_factory=Counter)

    @cached_property
    def delays_ms(self) -> list[float]:
        """Of those that came, in the order in which they were sent."""
        return [(self.came_ns[key] - sent) / 1e6 for key, sent in self.sent_ns.items()
                if key in self.came_ns]


class Resolution(NamedTuple):
    """How long a node waited for the address of a neighbour (ARP)."""

    node: str
    wait_ns: int


@dataclass
class Conversations:
    """connections, flows: in the order in which they began. resolutions: ARP requests that were
    answered. excluded: packets that belong to none of them, by kind."""

    connections: list[TcpPackets] = field(default_factory=list)
    flows: list[Flow] = field(default_factory=list)
    resolutions: list[Resolution] = field(default_factory=list)
    excluded: Counter[str] = field(default_factory=Counter)


class _Reader:
    def __init__(self, links: Sequence[LinkDirection]) -> None:
        self.link = {link.device: link for link in links}
        self.home: dict[str, str] = {}  # of an address: the node that first sent from it
        self.result = Conversations()
        self.latest: dict[tuple[End, End], TcpPackets] = {}
        self.flows: dict[tuple[object, ...], Flow] = {}
        self.requested_ns: dict[tuple[str, str], int] = {}  # of ARP: (source, target)

    def read(self, packets: Iterable[CapturedPacket]) -> Conversations:
        ordered = sorted((packet for packet in packets if packet.device in self.link),
                         key=lambda packet: (packet.queued_ns, packet.number))
        parsed = [(packet, headers.headers(packet.head, packet.frame_bytes)) for packet in ordered]
        for packet, header in parsed:
            if header:
                self.home.setdefault(header.source, self.link[packet.device].from_node)
        for packet, header in parsed:
            if header is None:
                self._other(packet)
            elif header.protocol == TCP:
                self._tcp(packet, header)
            elif header.protocol == UDP:
                self._datagram(packet, header)
            elif header.protocol in (ICMP, ICMPV6):
                self._icmp(packet, header)
            else:
                self.result.excluded[f"IP protocol {header.protocol}"] += 1
        for connection in self.result.connections:
            for side in (connection.at_client, connection.at_server):
                side.sort(key=lambda segment: segment.time_ns)
        return self.result

    # TCP

    def _tcp(self, packet: CapturedPacket, parsed: Headers) -> None:
        link = self.link[packet.device]
        sender = parsed.source, parsed.from_port
        receiver = parsed.destination, parsed.to_port
        connection = self._connection(sender, receiver, parsed.flags, parsed.seq)
        to_client = sender == connection.server
        origin, goal, sent, came = (
            (connection.server_node, connection.client_node, connection.at_server,
             connection.at_client) if to_client else
            (connection.client_node, connection.server_node, connection.at_client,
             connection.at_server))
        address, port = connection.client
        segment = RawSegment(
            packet.queued_ns, to_client, address, port, parsed.seq, parsed.ack, parsed.flags,
            parsed.window, parsed.options, parsed.payload_bytes, packet.frame_bytes,
            parsed.identification)
        if link.from_node == origin:
            sent.append(segment)
        if link.to_node == goal and not packet.reason:
            came.append(segment._replace(time_ns=packet.time_ns))
        if parsed.payload_bytes or packet.reason:
            connection.carried.append((link, packet, segment))

    def _connection(self, sender: End, receiver: End, flags: int, seq: int) -> TcpPackets:
        key = min((sender, receiver), (receiver, sender))
        known = self.latest.get(key)
        opens = bool(flags & SYN) and not flags & ACK
        if known and not (opens and known.syn not in (None, seq) and sender == known.client):
            if opens and known.syn is None:
                known.syn = seq
            return known
        if opens or not flags & SYN and sender[1] >= _UNKNOWN_PORT and sender[1] > receiver[1]:
            client, server = sender, receiver
        else:
            client, server = receiver, sender
        connection = TcpPackets(client, server, self._home(client), self._home(server),
                                syn=seq if opens else None)
        self.latest[key] = connection
        self.result.connections.append(connection)
        return connection

    def _home(self, end: End) -> str:
        return self.home.get(end[0], "")

    # Others

    def _datagram(self, packet: CapturedPacket, parsed: Headers) -> None:
        flow = self._flow("UDP", (parsed.source, parsed.from_port),
                          (parsed.destination, parsed.to_port))
        # The same datagram on each link that it passes: by what it holds, and how often before.
        link, key = self.link[packet.device], (parsed.identification, parsed.body)
        if link.from_node == flow.from_node:
            flow.bytes += parsed.payload_bytes
            _add(flow, flow.sent_ns, key, packet.queued_ns)
        if link.to_node == flow.to_node and not packet.reason:
            _add(flow, flow.came_ns, key, packet.time_ns)

    def _icmp(self, packet: CapturedPacket, parsed: Headers) -> None:
        kind = parsed.body[0] if len(parsed.body) >= _ECHO_BYTES else -1
        name, request, reply = (("ICMP", _ECHO, _ECHO_REPLY) if parsed.protocol == ICMP else
                                ("ICMPv6", _ECHO6, _ECHO6_REPLY))
        if kind in (request, reply):
            self._ping(packet, parsed, kind == reply)
        else:
            self.result.excluded[f"of {name} but pings"] += 1

    def _ping(self, packet: CapturedPacket, parsed: Headers, is_reply: bool) -> None:
        identity = int.from_bytes(parsed.body[4:6], "big")
        ends = (parsed.source, identity), (parsed.destination, identity)
        flow = self._flow("ping", *(reversed(ends) if is_reply else ends))
        link, number = self.link[packet.device], int.from_bytes(parsed.body[6:8], "big")
        if not is_reply and link.from_node == flow.from_node:
            flow.sent_ns.setdefault((number,), packet.queued_ns)
            flow.bytes += parsed.payload_bytes
        elif is_reply and link.to_node == flow.from_node and not packet.reason:
            flow.came_ns.setdefault((number,), packet.time_ns)

    def _flow(self, kind: str, sender: End, receiver: End) -> Flow:
        key = (kind, sender, receiver)
        if key not in self.flows:
            self.flows[key] = Flow(kind, sender, receiver, self._home(sender),
                                   self.home.get(receiver[0], receiver[0]))
            self.result.flows.append(self.flows[key])
        return self.flows[key]

    def _other(self, packet: CapturedPacket) -> None:
        parsed, link = headers.arp(packet.head), self.link[packet.device]
        if parsed is None:
            kind = headers.network(packet.head)[0]
            self.result.excluded["fragments" if kind in (headers.IPV4, headers.IPV6)
                                 else f"EtherType 0x{kind:04x}"] += 1
        elif parsed.is_request:
            self.requested_ns.setdefault((parsed.source, parsed.target), packet.queued_ns)
        elif not packet.reason and link.to_node == self.home.get(parsed.target):
            requested_ns = self.requested_ns.pop((parsed.target, parsed.source), None)
            if requested_ns is not None:
                self.result.resolutions.append(
                    Resolution(link.to_node, packet.time_ns - requested_ns))


def _add(flow: Flow, times: dict[tuple[object, ...], int], key: tuple[object, ...], time_ns: int
         ) -> None:
    """One more datagram of that content."""
    counted = (times is flow.sent_ns, *key)
    times[(*key, flow.copies[counted])] = time_ns
    flow.copies[counted] += 1


def conversations(capture: Capture, links: Sequence[LinkDirection]) -> Conversations:
    """The packets on the links of a capture, by conversation."""
    return _Reader(links).read(capture.packets)


def written(end: End) -> str:
    """An address and a port as people write them."""
    address, port = end
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
