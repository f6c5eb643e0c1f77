"""The packets of a capture by who talked with whom: TCP connections, other flows, and the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from lab.capture import headers
from lab.capture.headers import ICMP, ICMPV6, TCP, UDP, Headers
from lab.capture.links import Link
from lab.capture.pcapng import Capture, Packet
from lab.tcp.packets import ACK, SYN, RawSegment

_ECHO, _ECHO_REPLY, _ECHO6, _ECHO6_REPLY = 8, 0, 128, 129
_UNKNOWN_PORT = 1024  # from it on ports are a client's, where no SYN says who is
End = tuple[str, int]  # address and port


@dataclass
class TcpPackets:
    """One connection: its packets as its two ends saw them.

    client: who sent the first SYN, or the end with the higher port; server: the other. at_client,
    at_server: all segments, in order of time. carried: (link, packet) of each packet of it with
    data, whichever link it passed or was dropped at.
    """

    client: End
    server: End
    client_node: str
    server_node: str
    at_client: list[RawSegment] = field(default_factory=list)
    at_server: list[RawSegment] = field(default_factory=list)
    carried: list[tuple[Link, Packet, Headers]] = field(default_factory=list)
    syn: int | None = None


@dataclass
class Flow:
    """Datagrams one way between two ends, or pings; times in ns.

    sent_ns, came_ns: of each datagram, by its place in the flow, when it left one host and came to
    the other; a ping comes when its answer does.
    """

    what: str
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


@dataclass
class Exchanges:
    """connections, flows: in the order in which they began. asked: ARP requests that were answered,
    (node, when it asked, when it knew). left_out: packets that belong to none of them, by kind."""

    connections: list[TcpPackets] = field(default_factory=list)
    flows: list[Flow] = field(default_factory=list)
    asked: list[tuple[str, int, int]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


class _Reader:
    def __init__(self, found: Sequence[Link]) -> None:
        self.link = {link.device: link for link in found}
        self.home: dict[str, str] = {}  # of an address: the node that first sent from it
        self.exchanges = Exchanges()
        self.latest: dict[tuple[End, End], TcpPackets] = {}
        self.flows: dict[tuple[object, ...], Flow] = {}
        self.asking: dict[tuple[str, str], int] = {}

    def read(self, packets: Iterable[Packet]) -> Exchanges:
        ordered = sorted((packet for packet in packets if packet.device in self.link),
                         key=lambda packet: (packet.queued_ns, packet.number))
        parsed = [(packet, headers.headers(packet.head, packet.frame_bytes)) for packet in ordered]
        for packet, found in parsed:
            if found:
                self.home.setdefault(found.source, self.link[packet.device].from_node)
        for packet, found in parsed:
            if found is None:
                self._other(packet)
            elif found.protocol == TCP:
                self._tcp(packet, found)
            elif found.protocol in (UDP, ICMP, ICMPV6):
                self._datagram(packet, found)
            else:
                self.exchanges.left_out[f"IP protocol {found.protocol}"] += 1
        for connection in self.exchanges.connections:
            for side in (connection.at_client, connection.at_server):
                side.sort(key=lambda segment: segment.time_ns)
        return self.exchanges

    # TCP

    def _tcp(self, packet: Packet, found: Headers) -> None:
        link, header = self.link[packet.device], headers.tcp_header(found)
        sender = found.source, found.from_port
        receiver = found.destination, found.to_port
        connection = self._connection(sender, receiver, header.flags, header.seq)
        to_client = sender == connection.server
        origin, goal = ((connection.server_node, connection.client_node) if to_client else
                        (connection.client_node, connection.server_node))
        sent, came = ((connection.at_server, connection.at_client) if to_client else
                      (connection.at_client, connection.at_server))
        address = connection.client
        for at, side, time_ns in ((link.from_node == origin, sent, packet.queued_ns),
                                  (link.to_node == goal and not packet.reason, came,
                                   packet.time_ns)):
            if at:
                side.append(RawSegment(
                    time_ns, to_client, address[0].encode(), address[1], header.seq, header.ack,
                    header.flags, header.window, header.options, found.payload_bytes,
                    packet.frame_bytes, found.identification))
        if found.payload_bytes or packet.reason:
            connection.carried.append((link, packet, found))

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
        self.exchanges.connections.append(connection)
        return connection

    def _home(self, end: End) -> str:
        return self.home.get(end[0], "")

    # Others

    def _datagram(self, packet: Packet, found: Headers) -> None:
        kind = found.body[0] if found.body else -1
        if found.protocol == UDP:
            what, ends = "UDP", ((found.source, found.from_port),
                                 (found.destination, found.to_port))
        elif kind in (_ECHO, _ECHO_REPLY if found.protocol == ICMP else _ECHO6, _ECHO6_REPLY) \
                and len(found.body) >= 8:
            self._ping(packet, found, kind in (_ECHO_REPLY, _ECHO6_REPLY))
            return
        else:
            self.exchanges.left_out["of ICMP but pings" if found.protocol == ICMP
                                    else "of ICMPv6 but pings"] += 1
            return
        flow = self._flow(what, *ends)
        # The same datagram on each link that it passes: by what it holds, and how often before.
        link, key = self.link[packet.device], (found.identification, found.body)
        # The same datagram on each link that it passes: by what it holds, and how often before.
        if link.from_node == flow.from_node:
            flow.bytes += found.payload_bytes
            _add(flow, flow.sent_ns, key, packet.queued_ns)
        if link.to_node == flow.to_node and not packet.reason:
            _add(flow, flow.came_ns, key, packet.time_ns)

    def _ping(self, packet: Packet, found: Headers, is_reply: bool) -> None:
        identity = int.from_bytes(found.body[4:6], "big")
        ends = (found.source, identity), (found.destination, identity)
        flow = self._flow("ping", *(reversed(ends) if is_reply else ends))
        link, number = self.link[packet.device], int.from_bytes(found.body[6:8], "big")
        if not is_reply and link.from_node == flow.from_node:
            flow.sent_ns.setdefault((number,), packet.queued_ns)
            flow.bytes += found.payload_bytes
        elif is_reply and link.to_node == flow.from_node and not packet.reason:
            flow.came_ns.setdefault((number,), packet.time_ns)

    def _flow(self, what: str, sender: End, receiver: End) -> Flow:
        key = (what, sender, receiver)
        if key not in self.flows:
            self.flows[key] = Flow(what, sender, receiver, self._home(sender),
                                   self.home.get(receiver[0], receiver[0]))
            self.exchanges.flows.append(self.flows[key])
        return self.flows[key]

    def _other(self, packet: Packet) -> None:
        found, link = headers.arp(packet.head), self.link[packet.device]
        if found is None:
            kind = headers.network(packet.head)[0]
            self.exchanges.left_out["fragments" if kind in (headers.IPV4, headers.IPV6)
                                    else f"EtherType 0x{kind:04x}"] += 1
        elif found.asks:
            self.asking.setdefault((found.source, found.target), packet.queued_ns)
        elif not packet.reason:
            asked = self.asking.get((found.target, found.source))
            if asked is not None and link.to_node == self.home.get(found.target):
                self.exchanges.asked.append((link.to_node, asked, packet.time_ns))
                del self.asking[found.target, found.source]


def _add(flow: Flow, times: dict[tuple[object, ...], int], key: tuple[object, ...], time_ns: int
         ) -> None:
    """One more datagram of that content."""
    counted = (times is flow.sent_ns, *key)
    times[(*key, flow.copies[counted])] = time_ns
    flow.copies[counted] += 1


def exchanges(capture: Capture, found: Sequence[Link]) -> Exchanges:
    """Who talked with whom, over the links of a capture."""
    return _Reader(found).read(capture.packets)


def written(end: End) -> str:
    """An address and a port as people write them."""
    address, port = end
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
