"""Sorts the packets of a capture by conversation: TCP connections, UDP flows, pings.

Packets that belong to no conversation are counted by kind.
"""

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
_LEAST_CLIENT_PORT = 1024  # without a SYN, an end with a lower port is never taken for the client
_UDP_HEADER_BYTES = 8
_IDENTIFYING_BYTES = 16  # the first bytes of a datagram's content identify it
_MIX = 0x9E3779B97F4A7C15  # an odd factor that spreads the bits of a hash
# A report follows no more conversations: a stranger's capture may have as many as it has packets.
MOST_CONNECTIONS, MOST_FLOWS = 20_000, 10_000
_MOST_WAITING = 100_000  # datagrams that may still arrive; older ones are taken for lost
_AT_ONCE = 100_000  # datagrams that become Python's numbers at a time, to save memory
End = tuple[str, int]  # address and port


class Endpoints(NamedTuple):
    """The two ends of a TCP connection."""

    client: End  # the end that sent the first SYN, or without a SYN the one with the higher port
    server: End  # the other end
    client_node: str  # name of the client's host, "" if not known
    server_node: str  # name of the server's host, "" if not known
    nat_ends: tuple[End, ...] = ()  # other addresses and ports that a NAT gave to the two ends


class TcpPackets(NamedTuple):
    """All packets of TCP connections, in arrays: a row for each packet on each link.

    Rows are sorted by connection, then in the order in which packets came to queues.
    """

    connection: Numbers  # place of the packet's connection in the list of connections
    to_client: Flags
    is_sent: Flags  # whether the link begins at the packet's sender
    has_arrived: Flags  # whether the link ends at the packet's receiver and the packet arrived
    link: Numbers  # place of the link in the list of links
    time_ns: Numbers  # when the packet left the link's first device, or was dropped
    queued_ns: Numbers  # when it came to the device's queue
    number: Numbers  # counts the capture's packets as they come to queues (Packets.number)
    seq: Numbers  # as in the header: 32 bits, from a random start
    ack: Numbers  # as in the header
    flags: Numbers
    payload_bytes: Numbers
    frame_bytes: Numbers
    options: Numbers  # offset of TCP's options in the file
    options_bytes: Numbers  # how many bytes of the options were captured
    dropped: Flags  # whether the packet was dropped, for any reason
    at_once: Flags  # whether it was dropped as it came, by random loss (Packets.is_dropped_at_once)
    discarded: Flags  # whether it was still queued when the link or the queue was taken away


@dataclass
class Flow:
    """The datagrams, or the pings, from one end to another."""

    kind: str  # "UDP" or "ping"
    sender: End
    receiver: End
    from_node: str  # the sender's host
    to_node: str  # the receiver's host
    sent: int = 0  # packets
    bytes: int = 0  # payload of the sent packets
    came: int = 0  # packets that arrived; a ping arrives when its answer does
    # The delays of the packets that arrived; a ping's is its round-trip time.
    least_ms: float = math.inf
    sum_ms: float = 0.0
    longest_ms: float = 0.0

    def add(self, delay_ms: float) -> None:
        """Note a packet that arrived."""
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
    excluded: Counter[str] = field(default_factory=Counter)  # packets of no conversation, by kind


class _Segments(NamedTuple):
    """The segments of TCP in the order in which they came to queues, in arrays.

    An end is one number here: the upper bits are the address's place in Headers.addresses, the
    lower 16 bits are the port.
    """

    sender: Numbers  # an end
    receiver: Numbers  # an end
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
        from_end, to_end = codes[:count], codes[count:]
        lower, higher = numpy.minimum(from_end, to_end), numpy.maximum(from_end, to_end)
        pair = lower * (int(codes.max()) + 1) + higher  # one number for both directions

        order = numpy.argsort(pair, kind="stable")
        begins = numpy.zeros(count, bool)
        begins[0], begins[1:] = True, numpy.diff(pair[order]) != 0

        # A SYN with a new sequence number begins another connection of the same ends. Compare each
        # SYN with the one before it.
        syns = numpy.flatnonzero(self.is_syn[order])
        earlier, later = order[syns[:-1]], order[syns[1:]]
        is_same_pair = pair[earlier] == pair[later]
        are_same_ends = is_same_pair & (self.sender[earlier] == self.sender[later])
        is_new = are_same_ends & (self.seq[earlier] != self.seq[later])
        begins[syns[1:][is_new]] = True

        leg = numpy.empty(count, numpy.int64)
        leg[order] = numpy.cumsum(begins) - 1
        return leg

    def client_and_server(self, first: int, syn: int | None) -> tuple[int, int]:
        """The client's and the server's end of a leg.

        first: the leg's first segment. syn: its first SYN; None without one.
        """
        row = first if syn is None else syn
        sender, receiver = int(self.sender[row]), int(self.receiver[row])
        if syn is not None:
            return sender, receiver

        has_client_port = (sender & 0xFFFF) >= max(_LEAST_CLIENT_PORT, receiver & 0xFFFF)
        if self.has_syn[first] or not has_client_port:  # a SYN-ACK, which a server sends
            return receiver, sender
        return sender, receiver


class _Connection(NamedTuple):
    """A connection as its legs show it. Its ends are numbers as in _Segments."""

    client: int
    server: int
    nat_ends: frozenset[int]  # other addresses and ports that a NAT gave to the two ends
    links: frozenset[int]  # places of the links that it passed

    def join(self, ends: tuple[int, int], links: frozenset[int]) -> _Connection:
        """The connection with one more leg. ends: the leg's client and server."""
        _, server = ends  # the SYN came to this leg last, so it is nearer to the server
        nat_ends = (self.nat_ends | {self.server, *ends}) - {self.client, server}
        return _Connection(self.client, server, nat_ends, self.links | links)


def _connect_legs(segments: _Segments, leg: Numbers, firsts: Numbers
                  ) -> tuple[list[_Connection], Numbers, Numbers]:
    """Finds which legs are one connection, behind a NAT.

    leg: the number of each segment's leg. firsts: the first segment of each leg.
    Returns the connections, the place of each leg's connection among them, and each leg's server.
    """
    # Backwards, so that of a leg's SYNs the first one is the last that the dict takes.
    syns = numpy.flatnonzero(segments.is_syn)[::-1]
    first_syn = dict(zip(leg[syns].tolist(), syns.tolist()))
    links_of: list[set[int]] = [set() for _ in firsts]  # the links of each leg
    pairs = numpy.unique(numpy.stack((leg, segments.link)), axis=1)
    for number, link in zip(*pairs.tolist()):
        links_of[number].add(link)

    connection_of, server_of = numpy.zeros_like(firsts), numpy.zeros_like(firsts)
    connections: list[_Connection] = []
    # By a SYN's sequence number and one of its ends, the place of the connection.
    known: dict[tuple[int, int], int] = {}
    for number, first in enumerate(firsts.tolist()):
        syn, links = first_syn.get(number), frozenset(links_of[number])
        ends = segments.client_and_server(first, syn)
        names = [] if syn is None else [(int(segments.seq[syn]), end) for end in ends]

        # If a connection of one of its ends has the same SYN on other links, the leg belongs to
        # that connection, behind a NAT.
        candidates = [known[name] for name in names if name in known]
        on_other_links = [candidate for candidate in candidates
                          if links.isdisjoint(connections[candidate].links)]
        if on_other_links:
            place = on_other_links[0]
            connections[place] = connections[place].join(ends, links)
        else:
            place = len(connections)
            connections.append(_Connection(*ends, frozenset(), links))
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

        # The packets on links, and for each the place of its link.
        self.link = link[chosen]
        self.packets, self.headers = packets.at(chosen), headers.at(chosen)
        self.dropped = self.packets.is_dropped

        # The nodes between which each packet's link leads, as places in the list of names. The last
        # name, "", is of an unknown node.
        senders = [direction.from_node for direction in links]
        receivers = [direction.to_node for direction in links]
        names = list(dict.fromkeys(chain.from_iterable(zip(senders, receivers))))
        unknown = len(names)
        self.names = [*names, ""]
        places = {name: place for place, name in enumerate(self.names)}
        # Without a link no packet looks a place up, but an array of places has to have integers.
        from_places = [places[node] for node in senders] or [0]
        to_places = [places[node] for node in receivers] or [0]
        self.from_node = numpy.array(from_places)[self.link]
        self.to_node = numpy.array(to_places)[self.link]

        # For each address, the node that first sent from it. Packets without IP have the place -1.
        self.home = numpy.full(len(headers.addresses) + 1, unknown)
        addresses, first = numpy.unique(self.headers.source, return_index=True)
        self.home[addresses] = self.from_node[first]
        self.home[-1] = unknown
        self.result = Conversations()

    def _end(self, code: int) -> End:
        """An end that was one number, as in _Segments."""
        return self.headers.addresses[code >> 16], code & 0xFFFF

    def _node(self, code: int) -> str:
        """The name of the host at an end, "" if not known."""
        return self.names[int(self.home[code >> 16])]

    def read(self) -> Conversations:
        """The conversations of the capture."""
        headers, excluded = self.headers, self.result.excluded
        self._tcp(numpy.flatnonzero(headers.protocol == TCP))
        self._datagrams(numpy.flatnonzero(headers.protocol == UDP))
        icmp = (headers.protocol == ICMP) | (headers.protocol == ICMPV6)
        self._pings(numpy.flatnonzero(icmp))

        other_ip = (headers.protocol >= 0) & ~icmp & (headers.protocol != TCP) & (
            headers.protocol != UDP)
        excluded.update(f"IP protocol {protocol}"
                        for protocol in headers.protocol[other_ip].tolist())
        excluded["fragments"] += int((headers.protocol == FRAGMENT).sum())
        unread = (headers.protocol == OTHER) & (headers.kind != ARP)
        for kind in headers.kind[unread].tolist():
            is_cut = kind in (IPV4, IPV6)
            excluded["packets that are cut" if is_cut else f"EtherType 0x{kind:04x}"] += 1
        return self.result

    # TCP

    def _tcp(self, rows: Numbers) -> None:
        """Add the TCP connections, up to MOST_CONNECTIONS, and their packets.

        rows: of the packets of TCP.
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

        firsts = numpy.unique(leg, return_index=True)[1]  # the first segment of each leg
        if len(firsts) > MOST_CONNECTIONS:
            kept = numpy.isin(leg, leg[numpy.sort(firsts)[:MOST_CONNECTIONS]])
            self.result.excluded["packets of TCP connections after the first"
                                 f" {MOST_CONNECTIONS}"] += int((~kept).sum())
            self._tcp(rows[kept])
            return

        # Number the legs in the order in which they began.
        by_begin = numpy.argsort(firsts)
        leg, firsts = numpy.argsort(by_begin)[leg], firsts[by_begin]

        connections, connection_of, server_of = _connect_legs(segments, leg, firsts)
        for one in connections:
            nat_ends = tuple(map(self._end, sorted(one.nat_ends)))
            self.result.connections.append(Endpoints(
                client=self._end(one.client), server=self._end(one.server),
                client_node=self._node(one.client), server_node=self._node(one.server),
                nat_ends=nat_ends))

        connection, to_client = connection_of[leg], segments.sender == server_of[leg]
        ends = numpy.array([(one.client, one.server) for one in connections])
        homes = self.home[ends >> 16]  # a row for each connection: the client's, the server's
        client_home, server_home = homes[connection, 0], homes[connection, 1]
        sender_home = numpy.where(to_client, server_home, client_home)
        receiver_home = numpy.where(to_client, client_home, server_home)
        self._keep_tcp(rows, connection, to_client,
                       is_sent=self.from_node[rows] == sender_home,
                       is_last_link=self.to_node[rows] == receiver_home, seq=seq, flags=flags)

    def _keep_tcp(self, rows: Numbers, connection: Numbers, to_client: Flags, *, is_sent: Flags,
                  is_last_link: Flags, seq: Numbers, flags: Numbers) -> None:
        """Keep the packets of TCP in the result, sorted by connection."""
        headers, packets = self.headers.at(rows), self.packets.at(rows)
        tcp_bytes = (headers.byte(headers.body + 12) >> 4) * 4
        kept = TcpPackets(
            connection=connection, to_client=to_client, is_sent=is_sent,
            has_arrived=is_last_link & ~packets.is_dropped, link=self.link[rows],
            time_ns=packets.time_ns, queued_ns=packets.queued_ns, number=packets.number,
            seq=seq, ack=headers.u32(headers.body + 8), flags=flags,
            payload_bytes=headers.payload_bytes, frame_bytes=packets.frame_bytes,
            options=headers.body + 20, options_bytes=numpy.minimum(tcp_bytes, headers.kept) - 20,
            dropped=packets.is_dropped, at_once=packets.is_dropped_at_once,
            discarded=packets.is_discarded)
        order = numpy.argsort(connection, kind="stable")
        self.result.tcp = TcpPackets(*(column[order] for column in kept))

    # UDP and pings

    def _datagrams(self, rows: Numbers) -> None:
        """Add the flows of UDP. rows: of the packets of UDP."""
        headers, body = self.headers, self.headers.body[rows]
        # A hash of each datagram's content, which is the same on every link that the datagram
        # passes. Bytes that were not captured count as 0.
        content = headers.identification[rows].astype(numpy.uint64)
        for offset in range(_UDP_HEADER_BYTES, _UDP_HEADER_BYTES + _IDENTIFYING_BYTES, 4):
            kept = headers.u32(body + offset) * (offset + 4 <= headers.kept[rows])
            content = (content ^ content >> numpy.uint64(29)) * numpy.uint64(_MIX) \
                + kept.astype(numpy.uint64)

        source, goal = headers.source[rows], headers.destination[rows]
        ends = source << 16 | headers.from_port[rows], goal << 16 | headers.to_port[rows]
        is_last_link = self.to_node[rows] == self.home[goal]
        self._match("UDP", rows, is_sent=self.from_node[rows] == self.home[source],
                    has_arrived=is_last_link & ~self.dropped[rows],
                    keys=(content, self.home[goal]), ends=ends)

    def _pings(self, rows: Numbers) -> None:
        """Add pings as flows, and count other ICMP as excluded.

        rows: of the packets of ICMP and ICMPv6.
        """
        headers = self.headers
        kinds, is_4 = headers.byte(headers.body[rows]), headers.protocol[rows] == ICMP
        is_request = kinds == numpy.where(is_4, _ECHO, _ECHO6)
        is_reply = kinds == numpy.where(is_4, _ECHO_REPLY, _ECHO6_REPLY)

        for name, chosen in (("ICMP", is_4), ("ICMPv6", ~is_4)):
            self.result.excluded[f"of {name} but pings"] += int(
                (~is_request & ~is_reply & chosen).sum())

        # A ping's ends are an address and ICMP's identifier, in place of a port. Those of a reply
        # are those of its request.
        source, goal, body = headers.source[rows], headers.destination[rows], headers.body[rows]
        identifier, number = headers.u16(body + 4), headers.u16(body + 6)
        ends = (numpy.where(is_reply, goal, source) << 16 | identifier,
                numpy.where(is_reply, source, goal) << 16 | identifier)

        is_sent = is_request & (self.from_node[rows] == self.home[source])
        is_last_link = is_reply & (self.to_node[rows] == self.home[goal])
        self._match("ping", rows, is_sent=is_sent,
                    has_arrived=is_last_link & ~self.dropped[rows], keys=(*ends, number), ends=ends)

    def _match(self, kind: str, rows: Numbers, *, is_sent: Flags, has_arrived: Flags,
               keys: Sequence[Numbers], ends: Sequence[Numbers]) -> None:
        """Add flows, by matching packets that arrive with packets that were sent.

        keys: equal for a sent packet and its arrival. ends: the flow's sender and receiver.
        """
        flows: dict[tuple[int, ...], Flow] = {}
        # By key, the flow and the time of each packet that is under way.
        waiting: OrderedDict[int, deque[tuple[Flow, int]]] = OrderedDict()

        for time_ns, is_sending, size, sender, receiver, *key in self._in_time(
                rows, is_sent, has_arrived, (*ends, *keys)):
            name = hash(tuple(key))
            if not is_sending:
                if name in waiting:
                    flow, sent_ns = waiting[name].popleft()
                    if not waiting[name]:
                        del waiting[name]
                    flow.add((time_ns - sent_ns) / 1e6)
                continue

            known = flows.get((sender, receiver))
            if known is None and len(flows) == MOST_FLOWS:
                self.result.excluded[f"packets of {kind} flows after the first {MOST_FLOWS}"] += 1
                continue
            if known is None:
                known = flows[sender, receiver] = Flow(
                    kind, self._end(sender), self._end(receiver), from_node=self._node(sender),
                    to_node=self._node(receiver) or self._end(receiver)[0])
            known.sent, known.bytes = known.sent + 1, known.bytes + size
            waiting.setdefault(name, deque()).append((known, time_ns))
            if len(waiting) > _MOST_WAITING:
                waiting.popitem(last=False)
        self.result.flows += flows.values()

    def _in_time(self, rows: Numbers, is_sent: Flags, has_arrived: Flags,
                 columns: Sequence[Numbers]) -> Iterator[tuple[int, ...]]:
        """Each sending and each arrival, in the order of their times.

        Yields its time in ns, whether the packet is sent, the payload in bytes, and the packet's
        values in the columns. At the same time sendings come first: on a link between two hosts a
        packet may be sent and arrive in the same nanosecond.
        """
        sent, came = numpy.flatnonzero(is_sent), numpy.flatnonzero(has_arrived)
        chosen = numpy.append(sent, came)
        is_sending = numpy.arange(len(chosen)) < len(sent)
        at = numpy.append(self.packets.queued_ns[rows[sent]], self.packets.time_ns[rows[came]])
        size = self.headers.payload_bytes[rows[chosen]]
        merged = (at, is_sending, size, *(column[chosen] for column in columns))

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
