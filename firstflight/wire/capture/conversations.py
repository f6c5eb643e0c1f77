"""Sorts the packets of a capture by conversation: TCP connections, UDP flows, pings, the rest."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
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
    """The two ends of a TCP connection."""

    client: End  # the end that sent the first SYN, or without a SYN the one with the higher port
    server: End  # the other end
    client_node: str  # name of its host, "" if not known
    server_node: str  # name of its host, "" if not known
    also: tuple[End, ...] = ()  # other addresses that a NAT gave to an end


class TcpPackets(NamedTuple):
    """All packets of TCP connections, in arrays: a row for each packet on each link.

    Rows are sorted by connection, then in the order in which packets came to queues.
    """

    connection: Numbers  # its place in the list of connections
    to_client: Flags
    is_sent: Flags  # whether the link begins at the packet's sender
    has_arrived: Flags  # whether the link ends at its receiver and the packet arrived
    link: Numbers  # place of the link in the list of all
    time_ns: Numbers
    queued_ns: Numbers
    number: Numbers  # as Packets.number
    seq: Numbers  # absolute
    ack: Numbers  # absolute
    flags: Numbers
    payload_bytes: Numbers
    frame_bytes: Numbers
    options: Numbers  # offset of TCP's options in the file
    options_bytes: Numbers  # how many of them were kept
    dropped: Flags  # as Packets.is_dropped
    at_once: Flags  # as Packets.is_dropped_at_once
    discarded: Flags  # as Packets.is_discarded


@dataclass
class Flow:
    """Datagrams from one end to another, or pings."""

    kind: str  # "UDP" or "ping"
    sender: End
    receiver: End
    from_node: str
    to_node: str
    sent: int = 0
    bytes: int = 0
    came: int = 0  # how many arrived; a ping arrives when its answer does
    # Of the delays of those that arrived:
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
    """The conversations of a capture. Connections and flows are in the order of their beginning."""

    connections: list[Endpoints] = field(default_factory=list)
    tcp: TcpPackets | None = None  # None without a connection
    flows: list[Flow] = field(default_factory=list)
    excluded: Counter[str] = field(default_factory=Counter)  # packets in none of them, by kind


class _Segments(NamedTuple):
    """The segments of TCP in the order in which they came to queues, in arrays."""

    sender: Numbers  # an address's number and a port, as 16 + 16 bits
    receiver: Numbers  # likewise
    seq: Numbers
    is_syn: Flags  # whether it opens a connection
    has_syn: Flags  # whether it is a SYN or a SYN-ACK
    link: Numbers  # place of the link that it passed

    def legs(self) -> Numbers:
        """The number of each segment's leg, from 0 on.

        A leg is a connection between two addresses: with NAT a connection has several.
        """
        count = len(self.sender)
        _, codes = numpy.unique(numpy.concatenate((self.sender, self.receiver)),
                                return_inverse=True)
        one, other = codes[:count], codes[count:]
        key = numpy.minimum(one, other) * (int(codes.max()) + 1) + numpy.maximum(one, other)

        order = numpy.argsort(key, kind="stable")
        begins = numpy.zeros(count, bool)
        begins[0], begins[1:] = True, numpy.diff(key[order]) != 0

        # A SYN with a new sequence number begins another connection of the same ends.
        opens = numpy.flatnonzero(self.is_syn[order])
        before, after = order[opens[:-1]], order[opens[1:]]
        are_same_ends = (key[before] == key[after]) & (self.sender[before] == self.sender[after])
        begins[opens[1:][are_same_ends & (self.seq[before] != self.seq[after])]] = True

        leg = numpy.empty(count, numpy.int64)
        leg[order] = numpy.cumsum(begins) - 1
        return leg

    def ends_of(self, first: int, syn: int | None) -> tuple[int, int]:
        """Client and server of a leg, by its first segment and the first SYN, None without one."""
        row = first if syn is None else syn
        client, server = int(self.sender[row]), int(self.receiver[row])
        has_client_port = (client & 0xFFFF) >= max(_UNKNOWN_PORT, server & 0xFFFF)
        if syn is None and (self.has_syn[first] or not has_client_port):
            return server, client
        return client, server


class _Connection(NamedTuple):
    """A connection as its legs show it: its ends, their other addresses behind a NAT, its links."""

    client: int
    server: int
    others: frozenset[int]
    links: frozenset[int]

    def joined(self, ends: tuple[int, int], links: frozenset[int]) -> _Connection:
        """The connection with one more leg, between these ends."""
        server = ends[1]
        others = (self.others | {self.server, *ends}) - {self.client, server}
        return _Connection(self.client, server, others, self.links | links)


def _connect_legs(segments: _Segments, leg: Numbers, firsts: Numbers
                  ) -> tuple[list[_Connection], Numbers, Numbers]:
    """The connections; and of each leg its connection and its server.

    firsts: the first segment of each leg.
    """
    syns = numpy.flatnonzero(segments.is_syn)[::-1]
    first_syn = dict(zip(leg[syns].tolist(), syns.tolist()))
    passed: list[set[int]] = [set() for _ in firsts]  # the links of each leg
    for number, at in zip(*numpy.unique(numpy.stack((leg, segments.link)), axis=1).tolist()):
        passed[number].add(at)

    connection_of, server_of = numpy.zeros_like(firsts), numpy.zeros_like(firsts)
    connections: list[_Connection] = []
    known: dict[tuple[int, int], int] = {}  # the connection of a SYN with one of its ends
    for number, first in enumerate(firsts.tolist()):
        syn, links = first_syn.get(number), frozenset(passed[number])
        ends = segments.ends_of(first, syn)
        names = [] if syn is None else [(int(segments.seq[syn]), end) for end in ends]

        # If a connection of one of its ends has the same SYN on other links, the leg belongs to
        # that connection, behind a NAT.
        candidates = (known[name] for name in names if name in known)
        place = next((candidate for candidate in candidates
                      if links.isdisjoint(connections[candidate].links)), len(connections))
        if place == len(connections):
            connections.append(_Connection(*ends, frozenset(), links))
        else:
            connections[place] = connections[place].joined(ends, links)
        connection_of[number], server_of[number] = place, ends[1]
        known.update((name, place) for name in names)
    return connections, connection_of, server_of


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

        senders = [direction.from_node for direction in links]
        receivers = [direction.to_node for direction in links]
        names = list(dict.fromkeys(chain.from_iterable(zip(senders, receivers))))
        self.names = [*names, ""]
        places = {name: place for place, name in enumerate(self.names)}
        from_places = [places[node] for node in senders] or [0]
        to_places = [places[node] for node in receivers] or [0]
        self.from_node = numpy.array(from_places)[self.link]
        self.to_node = numpy.array(to_places)[self.link]

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
        """The conversations of the capture, and how many packets belong to none, by kind."""
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
        """Add the TCP connections, up to MOST_CONNECTIONS, and their packets. rows: those of TCP.

        A leg is what one link shows of a connection; a NAT may give its legs other addresses.
        """
        if not len(rows):
            return
        headers = self.headers.at(rows)
        seq, flags = headers.u32(headers.body + 4), headers.u16(headers.body + 12) & 0x1FF
        segments = _Segments(
            sender=headers.source << 16 | headers.from_port,
            receiver=headers.destination << 16 | headers.to_port,
            seq=seq, is_syn=(flags & (SYN | ACK)) == SYN, has_syn=(flags & SYN) != 0,
            link=self.link[rows])
        leg = segments.legs()

        # Legs are in the order in which they began; `firsts` has the first packet of each.
        firsts = numpy.unique(leg, return_index=True)[1]
        if len(firsts) > MOST_CONNECTIONS:
            kept = numpy.isin(leg, leg[numpy.sort(firsts)[:MOST_CONNECTIONS]])
            self.result.excluded["packets of TCP connections after the first"
                                 f" {MOST_CONNECTIONS}"] += int((~kept).sum())
            self._tcp(rows[kept])
            return

        turns = numpy.argsort(firsts)
        leg, firsts = numpy.argsort(turns)[leg], firsts[turns]

        connections, connection_of, server_of = _connect_legs(segments, leg, firsts)
        for one in connections:
            also = tuple(map(self._end, sorted(one.others)))
            self.result.connections.append(Endpoints(
                client=self._end(one.client), server=self._end(one.server),
                client_node=self._node(one.client), server_node=self._node(one.server), also=also))

        connection, to_client = connection_of[leg], segments.sender == server_of[leg]
        ends = numpy.array([(one.client, one.server) for one in connections])
        homes = self.home[ends >> 16]
        origin = homes[connection, to_client * 1]
        goal = homes[connection, 1 - to_client]
        self._keep_tcp(rows, connection, to_client,
                       is_sent=self.from_node[rows] == origin, is_end=self.to_node[rows] == goal,
                       seq=seq, flags=flags)

    def _keep_tcp(self, rows: Numbers, connection: Numbers, to_client: Flags, *, is_sent: Flags,
                  is_end: Flags, seq: Numbers, flags: Numbers) -> None:
        """Keep the packets of TCP in the result, sorted by connection."""
        headers, packets = self.headers.at(rows), self.packets.at(rows)
        tcp_bytes = (headers.byte(headers.body + 12) >> 4) * 4
        kept = TcpPackets(
            connection=connection, to_client=to_client, is_sent=is_sent,
            has_arrived=is_end & ~packets.is_dropped, link=self.link[rows],
            time_ns=packets.time_ns, queued_ns=packets.queued_ns, number=packets.number,
            seq=seq, ack=headers.u32(headers.body + 8), flags=flags,
            payload_bytes=headers.payload_bytes, frame_bytes=packets.frame_bytes,
            options=headers.body + 20, options_bytes=numpy.minimum(tcp_bytes, headers.kept) - 20,
            dropped=packets.is_dropped, at_once=packets.is_dropped_at_once,
            discarded=packets.is_discarded)
        order = numpy.argsort(connection, kind="stable")
        self.result.tcp = TcpPackets(*(column[order] for column in kept))

    # Others

    def _datagrams(self, rows: Numbers) -> None:
        """Add the flows of UDP. rows: its packets."""
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
        self._match("UDP", rows, is_sent=self.from_node[rows] == self.home[source],
                    has_arrived=is_end & ~self.dropped[rows], keys=(content, self.home[goal]),
                    ends=ends)

    def _pings(self, rows: Numbers) -> None:
        """Add pings as flows, and count other ICMP as excluded. rows: of ICMP and ICMPv6."""
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

        is_sent = is_request & (self.from_node[rows] == self.home[source])
        is_end = is_reply & (self.to_node[rows] == self.home[goal])
        self._match("ping", rows, is_sent=is_sent, has_arrived=is_end & ~self.dropped[rows],
                    keys=(*ends, headers.u16(body + 6)), ends=ends)

    def _match(self, kind: str, rows: Numbers, *, is_sent: Flags, has_arrived: Flags,
               keys: Sequence[Numbers], ends: Sequence[Numbers]) -> None:
        """Add flows, by matching packets that arrive with packets that were sent.

        keys: equal for both. ends: of the flow.
        """
        flows: dict[tuple[int, ...], Flow] = {}
        # By key, the flow and the time of each packet that is under way.
        waiting: OrderedDict[int, deque[tuple[Flow, int]]] = OrderedDict()

        for time_ns, is_sending, size, one, other, *key in self._in_time(
                rows, is_sent, has_arrived, (*ends, *keys)):
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
                self.result.excluded[f"packets of {kind} flows after the first {MOST_FLOWS}"] += 1
                continue
            if known is None:
                known = flows[one, other] = Flow(
                    kind, self._end(one), self._end(other), from_node=self._node(one),
                    to_node=self._node(other) or self._end(other)[0])
            known.sent, known.bytes = known.sent + 1, known.bytes + size
            waiting.setdefault(name, deque()).append((known, time_ns))
            if len(waiting) > _MOST_WAITING:
                waiting.popitem(last=False)
        self.result.flows += flows.values()

    def _in_time(self, rows: Numbers, is_sent: Flags, has_arrived: Flags,
                 columns: Sequence[Numbers]) -> Iterator[tuple[int, ...]]:
        """Each sending and each arrival in time: when, whether it is sent, size, and its columns.

        Sent packets come first: on a link between two hosts a packet is both at the same time.
        """
        sent, came = numpy.flatnonzero(is_sent), numpy.flatnonzero(has_arrived)
        chosen = numpy.append(sent, came)
        is_first = numpy.arange(len(chosen)) < len(sent)
        at = numpy.append(self.packets.queued_ns[rows[sent]], self.packets.time_ns[rows[came]])
        size = self.headers.payload_bytes[rows[chosen]]
        merged = (at, is_first, size, *(column[chosen] for column in columns))

        order = numpy.argsort(at, kind="stable")
        for begin in range(0, len(order), _AT_ONCE):
            piece = order[begin:begin + _AT_ONCE]
            yield from zip(*(column[piece].tolist() for column in merged))


def find_conversations(capture: Capture, headers: Headers, links: Sequence[LinkDirection]
                       ) -> Conversations:
    """The conversations of the packets on a capture's links."""
    return _Reader(capture, headers, links).read()


def format_end(end: End) -> str:
    """An address and a port: "10.0.0.1:80", "[::1]:80"."""
    address, port = end
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
