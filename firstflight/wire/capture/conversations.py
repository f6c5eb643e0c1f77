"""Sorts the packets of a capture by conversation: TCP connections, UDP flows, pings, the rest."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy

from firstflight.net.headers import ACK, ARP, ICMP, ICMPV6, IPV4, IPV6, SYN, TCP, UDP
from firstflight.wire.capture.fields import FRAGMENT, OTHER, Headers
from firstflight.wire.capture.direction import LinkDirection
from firstflight.wire.capture.pcapng import Capture, Flags, Numbers

_ECHO, _ECHO_REPLY, _ECHO6, _ECHO6_REPLY = 8, 0, 128, 129
_UNKNOWN_PORT = 1024  # without a SYN, an end with this port or a higher one counts as the client
_UDP_HEADER, _ALIKE_BYTES = 8, 16  # the first bytes of a datagram's content identify it
_MIX = 0x9E3779B97F4A7C15  # an odd factor that spreads the bits of a hash
# The most that a report follows: a stranger's capture may have as many as it has packets.
MOST_CONNECTIONS, MOST_FLOWS = 20_000, 10_000
_MOST_WAITING = 100_000  # datagrams that may still arrive; older ones are taken for lost
_AT_ONCE = 100_000  # datagrams that are read at a time
End = tuple[str, int]  # address and port


class Endpoints(NamedTuple):
    """The two ends of a TCP connection.

    client: the end that sent the first SYN, or without a SYN the one with the higher port. server:
    the other end. client_node, server_node: names of their hosts, "" if not known. also: other
    addresses that a NAT gave to an end.
    """

    client: End
    server: End
    client_node: str
    server_node: str
    also: tuple[End, ...] = ()


class TcpPackets(NamedTuple):
    """All packets of TCP connections, in arrays: a row for each packet on each link.

    Rows are sorted by connection, then in the order in which packets came to queues. connection:
    its place in the list of connections. is_sent: whether the link begins at the packet's sender.
    has_arrived: whether the link ends at its receiver and the packet arrived. link: place of the
    link in the list of all. seq, ack: absolute. options: offset of TCP's options in the file.
    options_bytes: how many of them were kept. number, dropped, at_once, discarded: as number,
    is_dropped, is_dropped_at_once, is_discarded of Packets.
    """

    connection: Numbers
    to_client: Flags
    is_sent: Flags
    has_arrived: Flags
    link: Numbers
    time_ns: Numbers
    queued_ns: Numbers
    number: Numbers
    seq: Numbers
    ack: Numbers
    flags: Numbers
    payload_bytes: Numbers
    frame_bytes: Numbers
    options: Numbers
    options_bytes: Numbers
    dropped: Flags
    at_once: Flags
    discarded: Flags


@dataclass
class Flow:
    """Datagrams from one end to another, or pings.

    kind: "UDP" or "ping". came: how many arrived; a ping arrives when its answer does. least_ms,
    sum_ms, longest_ms: of the delays of those that arrived.
    """

    kind: str
    sender: End
    receiver: End
    from_node: str
    to_node: str
    sent: int = 0
    bytes: int = 0
    came: int = 0
    least_ms: float = math.inf
    sum_ms: float = 0.0
    longest_ms: float = 0.0

    def add(self, delay_ms: float) -> None:
        """Note one that arrived."""
        self.came += 1
        self.sum_ms += delay_ms
        self.least_ms, self.longest_ms = (min(self.least_ms, delay_ms),
                                          max(self.longest_ms, delay_ms))


@dataclass
class Conversations:
    """The conversations of a capture.

    connections, flows: in the order in which they began. tcp: None without a connection.
    excluded: number of packets in none of them, by kind.
    """

    connections: list[Endpoints] = field(default_factory=list)
    tcp: TcpPackets | None = None
    flows: list[Flow] = field(default_factory=list)
    excluded: Counter[str] = field(default_factory=Counter)


class _Reader:
    """Reads conversations from arrays of all packets on links.

    Packets are in the order in which they came to queues.
    """

    def __init__(self, capture: Capture, headers: Headers, links: Sequence[LinkDirection]) -> None:
        packets = capture.packets
        link = numpy.full(packets.size, -1)
        for place, direction in enumerate(links):
            if direction.receiver:
                link[direction.places] = place
        chosen = numpy.lexsort((packets.number, packets.queued_ns))
        chosen = chosen[link[chosen] >= 0]
        self.link = link[chosen]
        self.packets, self.headers = packets.at(chosen), headers.at(chosen)
        self.dropped = self.packets.is_dropped
        names = list(dict.fromkeys(node for direction in links
                                   for node in (direction.from_node, direction.to_node)))
        self.names = [*names, ""]
        places = {name: place for place, name in enumerate(self.names)}
        self.from_node, self.to_node = (numpy.array([places[node] for node in ends] or [0])[
            self.link] for ends in ([direction.from_node for direction in links],
                                    [direction.to_node for direction in links]))
        # By address, the node that first sent from it.
        self.home = numpy.full(len(headers.addresses) + 1, len(names))
        found, first = numpy.unique(self.headers.source, return_index=True)
        self.home[found] = self.from_node[first]
        self.home[-1] = len(names)
        self.result = Conversations()

    def _end(self, code: int) -> End:
        return self.headers.addresses[code >> 16], code & 0xFFFF

    def _node(self, code: int) -> str:
        return self.names[int(self.home[code >> 16])]

    def read(self) -> Conversations:
        headers, excluded = self.headers, self.result.excluded
        self._tcp(numpy.flatnonzero(headers.protocol == TCP))
        self._datagrams(numpy.flatnonzero(headers.protocol == UDP))
        icmp = (headers.protocol == ICMP) | (headers.protocol == ICMPV6)
        self._pings(numpy.flatnonzero(icmp))
        rest = (headers.protocol >= 0) & ~icmp & (headers.protocol != TCP) & (
            headers.protocol != UDP)
        excluded.update(f"IP protocol {protocol}" for protocol in headers.protocol[rest].tolist())
        excluded["fragments"] += int((headers.protocol == FRAGMENT).sum())
        other = (headers.protocol == OTHER) & (headers.kind != ARP)
        excluded.update("packets that are cut" if kind in (IPV4, IPV6) else
                        f"EtherType 0x{kind:04x}" for kind in headers.kind[other].tolist())
        return self.result

    # TCP

    def _tcp(self, rows: Numbers) -> None:
        if not len(rows):
            return
        headers, packets = self.headers.at(rows), self.packets.at(rows)
        sender, receiver = (headers.source << 16 | headers.from_port,
                            headers.destination << 16 | headers.to_port)
        _, codes = numpy.unique(numpy.concatenate((sender, receiver)), return_inverse=True)
        one, other = codes[:len(rows)], codes[len(rows):]
        key = numpy.minimum(one, other) * (int(codes.max()) + 1) + numpy.maximum(one, other)
        seq, flags = headers.u32(headers.body + 4), headers.u16(headers.body + 12) & 0x1FF
        order, link = numpy.argsort(key, kind="stable"), self.link[rows]
        # A SYN with a new sequence number begins another connection of the same ends.
        begins = numpy.zeros(len(rows), bool)
        begins[0], begins[1:] = True, numpy.diff(key[order]) != 0
        opens = numpy.flatnonzero((flags[order] & (SYN | ACK)) == SYN)
        before, after = order[opens[:-1]], order[opens[1:]]
        again = (key[before] == key[after]) & (sender[before] == sender[after]) & (
            seq[before] != seq[after])
        begins[opens[1:][again]] = True
        leg = numpy.empty(len(rows), numpy.int64)
        leg[order] = numpy.cumsum(begins) - 1
        # A leg is a connection between two addresses: with NAT a connection has several. Legs are
        # in the order in which they began; `firsts` has the first packet of each.
        firsts = numpy.unique(leg, return_index=True)[1]
        if len(firsts) > MOST_CONNECTIONS:
            kept = numpy.isin(leg, leg[numpy.sort(firsts)[:MOST_CONNECTIONS]])
            self.result.excluded["packets of TCP connections after the first"
                                 f" {MOST_CONNECTIONS}"] += int((~kept).sum())
            self._tcp(rows[kept])
            return
        turns = numpy.argsort(firsts)
        leg, firsts = numpy.argsort(turns)[leg], firsts[turns]
        syns = numpy.flatnonzero((flags & (SYN | ACK)) == SYN)
        first_syn = dict(zip(leg[syns[::-1]].tolist(), syns[::-1].tolist()))
        server, place_of = numpy.zeros(len(firsts), numpy.int64), numpy.zeros_like(firsts)
        passed: list[set[int]] = [set() for _ in firsts]  # the links of each leg
        for number, at in zip(*numpy.unique(numpy.stack((leg, link)), axis=1).tolist()):
            passed[number].add(at)
        # Of each connection: client, server, their other addresses, its links.
        clients: list[tuple[int, int, set[int], set[int]]] = []
        known: dict[tuple[int, int], int] = {}  # the connection of a SYN with one of its ends
        for number, first in enumerate(firsts.tolist()):
            syn = first_syn.get(number)
            ends = (int(sender[row := first if syn is None else syn]), int(receiver[row]))
            if syn is None and (flags[first] & SYN or (ends[0] & 0xFFFF) < max(
                    _UNKNOWN_PORT, ends[1] & 0xFFFF)):
                ends = ends[::-1]
            names = [] if syn is None else [(int(seq[syn]), end) for end in ends]
            # If a connection of one of its ends has the same SYN on other links, the leg belongs
            # to that connection, behind a NAT.
            place = next((known[name] for name in names if name in known
                          and passed[number].isdisjoint(clients[known[name]][3])), len(clients))
            if place == len(clients):
                clients.append((*ends, set(), passed[number]))
            else:
                client, before, others, links = clients[place]
                clients[place] = (client, ends[1], others | {before, *ends} - {client, ends[1]},
                                  links | passed[number])
            server[number], place_of[number] = ends[1], place
            known.update((name, place) for name in names)
        self.result.connections = [Endpoints(
            self._end(client), self._end(goal), self._node(client), self._node(goal),
            tuple(map(self._end, sorted(others)))) for client, goal, others, _ in clients]
        connection, to_client = place_of[leg], sender == server[leg]
        homes = self.home[numpy.array([ends[:2] for ends in clients]) >> 16]
        origin, goal = (homes[connection, column] for column in (to_client * 1, 1 - to_client))
        tcp_bytes = (headers.byte(headers.body + 12) >> 4) * 4
        whole = numpy.argsort(connection, kind="stable")
        self.result.tcp = TcpPackets(*(column[whole] for column in (
            connection, to_client, self.from_node[rows] == origin,
            (self.to_node[rows] == goal) & ~packets.is_dropped, link, packets.time_ns,
            packets.queued_ns, packets.number, seq, headers.u32(headers.body + 8), flags,
            headers.payload_bytes, packets.frame_bytes, headers.body + 20,
            numpy.minimum(tcp_bytes, headers.kept) - 20,
            packets.is_dropped, packets.is_dropped_at_once, packets.is_discarded)))

    # Others

    def _datagrams(self, rows: Numbers) -> None:
        headers, body = self.headers, self.headers.body[rows]
        # A hash of each datagram's content: it is the same on every link that it passes.
        content = headers.identification[rows].astype(numpy.uint64)
        for word in range(_UDP_HEADER, _UDP_HEADER + _ALIKE_BYTES, 4):
            kept = headers.u32(body + word) * (word + 4 <= headers.kept[rows])
            content = (content ^ content >> numpy.uint64(29)) * numpy.uint64(_MIX) \
                + kept.astype(numpy.uint64)
        source, goal = headers.source[rows], headers.destination[rows]
        ends = source << 16 | headers.from_port[rows], goal << 16 | headers.to_port[rows]
        is_end = self.to_node[rows] == self.home[goal]
        self._match("UDP", rows, self.from_node[rows] == self.home[source], is_end & (
            ~self.dropped[rows]), (content, self.home[goal]), ends)

    def _pings(self, rows: Numbers) -> None:
        headers = self.headers
        kinds, is_4 = headers.byte(headers.body[rows]), headers.protocol[rows] == ICMP
        is_request = kinds == numpy.where(is_4, _ECHO, _ECHO6)
        is_reply = kinds == numpy.where(is_4, _ECHO_REPLY, _ECHO6_REPLY)
        for name, chosen in (("ICMP", is_4), ("ICMPv6", ~is_4)):
            self.result.excluded[f"of {name} but pings"] += int(
                (~is_request & ~is_reply & chosen).sum())
        source, goal, body = headers.source[rows], headers.destination[rows], headers.body[rows]
        identity = headers.u16(body + 4)
        ends = tuple(numpy.where(is_reply, back, there) << 16 | identity
                     for there, back in ((source, goal), (goal, source)))
        self._match("ping", rows, is_request & (self.from_node[rows] == self.home[source]),
                    is_reply & (self.to_node[rows] == self.home[goal]) & ~self.dropped[rows],
                    (*ends, headers.u16(body + 6)), ends)

    def _match(self, kind: str, rows: Numbers, is_sent: Flags, has_arrived: Flags,
               keys: Sequence[Numbers], ends: Sequence[Numbers]) -> None:
        """Add flows, by matching packets that arrive with packets that were sent.

        keys: equal for both. ends: of the flow.
        """
        flows: dict[tuple[int, ...], Flow] = {}
        # By key, the flow and the time of each packet that is under way.
        waiting: OrderedDict[int, deque[tuple[Flow, int]]] = OrderedDict()
        # Sent packets come first: on a link between two hosts a packet is both at the same time.
        sent, came = numpy.flatnonzero(is_sent), numpy.flatnonzero(has_arrived)
        chosen, is_first = numpy.append(sent, came), numpy.arange(len(sent) + len(came)) < len(sent)
        at = numpy.append(self.packets.queued_ns[rows[sent]], self.packets.time_ns[rows[came]])
        order = numpy.argsort(at, kind="stable")
        columns = (at, is_first, self.headers.payload_bytes[rows[chosen]], *(
            column[chosen] for column in (*ends, *keys)))
        for begin in range(0, len(order), _AT_ONCE):
            piece = order[begin:begin + _AT_ONCE]
            for time_ns, is_sending, size, one, other, *key in zip(
                    *(column[piece].tolist() for column in columns)):
                name = hash(tuple(key))
                if not is_sending:
                    if name in waiting:
                        flow, sent_ns = waiting[name].popleft()
                        if not waiting[name]:
                            del waiting[name]
                        flow.add((time_ns - sent_ns) / 1e6)
                    continue
                known = flows.get((one, other))
                if known is None and len(flows) == MOST_FLOWS:
                    self.result.excluded[f"packets of {kind} flows after the first"
                                         f" {MOST_FLOWS}"] += 1
                    continue
                if known is None:
                    known = flows[one, other] = Flow(
                        kind, self._end(one), self._end(other), self._node(one),
                        self._node(other) or self._end(other)[0])
                known.sent, known.bytes = known.sent + 1, known.bytes + size
                waiting.setdefault(name, deque()).append((known, time_ns))
                if len(waiting) > _MOST_WAITING:
                    waiting.popitem(last=False)
        self.result.flows += flows.values()


def find_conversations(capture: Capture, headers: Headers, links: Sequence[LinkDirection]
                       ) -> Conversations:
    """The conversations of the packets on a capture's links."""
    return _Reader(capture, headers, links).read()


def format_end(end: End) -> str:
    """An address and a port: "10.0.0.1:80", "[::1]:80"."""
    address, port = end
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
