"""What each TCP connection of a capture did: first flights, and why segments were retransmitted."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy

from firstflight.net.headers import ACK, FIN, MSS, OPTION_SACK, RST, SYN
from firstflight.net.path import LEAST_TIMEOUT_US
from firstflight.net.segments import MS
from firstflight.wire.capture.conversations import Endpoints, TcpPackets
from firstflight.wire.capture.direction import LinkDirection
from firstflight.wire.capture.pcapng import Flags, Numbers

ARRIVED, UNDER_WAY = "the first copy had arrived", "the first copy was still under way"
REFUSED, NOT_ANSWERED, RESET, BEFORE, OPEN = (
    "refused", "not answered", "reset", "begun before the capture", "not closed")
_CAME, _SENT, _LOST = range(3)  # kinds of events; events of the same time are in this order
_AT_ONCE_NS = MS  # an acknowledgement released a packet that leaves so soon after it
_MOST_FRAME_BYTES = 1600  # a larger frame has several segments, merged by an offload
_LEAST_MSS = 536  # RFC 9293, 3.7.1
_LARGEST = 1 << 62
_ELSEWHERE = "lost elsewhere"
# Qdiscs that report a drop to a sender on their own host (NET_XMIT_DROP): for TCP the segment was
# not sent, so that it counts no retransmission. Others report congestion (NET_XMIT_CN).
_REPORTING_QDISCS = frozenset(("netem", "tbf", "htb", "hfsc", "prio", "pfifo", "bfifo",
                               "pfifo_fast"))


class Flight(NamedTuple):
    """The data that a side sent before any of its data was acknowledged."""

    bytes: int
    segments: int
    # Whether the window limited it: its last segment is full, and the acknowledgement released
    # another one.
    at_once: bool


@dataclass(frozen=True)
class Direction:
    """What one side of a connection sent."""

    bytes: int = 0  # new data
    mss: int = 0  # of its segments, bytes
    segments: int = 0
    first_flight: Flight | None = None
    retransmitted: Counter[str] = field(default_factory=Counter)  # segments by cause
    # From the first data until all is acknowledged; None if that takes no time.
    goodput_kbps: float | None = None


@dataclass(frozen=True)
class ObservedConnection:
    """One connection as it was observed."""

    ends: Endpoints
    begun_ns: int  # of its first packet, since the epoch
    ended_ns: int  # of its last packet, since the epoch
    handshake_ms: float | None  # None if the handshake was not observed
    to_client: Direction
    to_server: Direction
    state: str  # "" if it was opened and closed, otherwise what was missing

    @property
    def main(self) -> Direction:
        """The direction in which most of its data went."""
        return max(self.to_client, self.to_server, key=lambda direction: direction.bytes)

    @property
    def retransmitted(self) -> Counter[str]:
        """Segments of both directions, by cause."""
        return self.to_client.retransmitted + self.to_server.retransmitted


def observe_connections(connections: Sequence[Endpoints], packets: TcpPackets,
                        links: Sequence[LinkDirection], data: Numbers
                        ) -> list[ObservedConnection | None]:
    """All connections; None for one of which neither host is known.

    links: all directions of the capture. data: the bytes of its file.
    """
    events = _PacketEvents(packets, links, data, len(connections))
    down, up = events.directions()
    result: list[ObservedConnection | None] = []
    states, handshakes = events.states(), events.handshakes_ns()
    began, ended = events.ends_ns()
    for number, names in enumerate(connections):
        if began[number] >= _LARGEST:
            result.append(None)
            continue
        waited_ns = int(handshakes[number])
        result.append(ObservedConnection(
            names, began[number], ended[number],
            handshake_ms=waited_ns / 1e6 if waited_ns > 0 else None, to_client=down[number],
            to_server=up[number], state=states[number]))
    return result


class _PacketEvents:
    """The events of all connections in one array, sorted by host and time.

    Host 2 × n is the client of connection n, host 2 × n + 1 its server. An event is a packet that
    the host sent, one that arrived there, or one of the host's that was lost anywhere.
    """

    def __init__(self, packets: TcpPackets, links: Sequence[LinkDirection], data: Numbers,
                 count: int) -> None:
        self.packets, self.links, self.hosts = packets, links, 2 * count
        self.dropped_on_arrival = [Counter(link.dropped_on_arrival) for link in links]
        sender = 2 * packets.connection + packets.to_client
        self._number(sender)

        sent = _first_copies(packets.number, self.seq, numpy.flatnonzero(packets.is_sent))
        came = numpy.flatnonzero(packets.has_arrived)
        lost = numpy.flatnonzero(packets.dropped)
        rows = numpy.concatenate((came, sent, lost))
        host = numpy.concatenate((sender[came] ^ 1, sender[sent], sender[lost]))
        times = numpy.concatenate(
            (packets.time_ns[came], packets.queued_ns[sent], packets.time_ns[lost]))
        kinds = numpy.repeat((_CAME, _SENT, _LOST), (len(came), len(sent), len(lost)))

        order = numpy.lexsort((times, host))
        self.row, self.host, self.time_ns, self.kind = (
            column[order] for column in (rows, host, times, kinds))
        self.begins = numpy.searchsorted(self.host, numpy.arange(self.hosts + 1))

        self.payload = packets.payload_bytes[self.row].astype(numpy.int64)
        self.end = self.seq[self.row] + self.payload
        self.is_data = (self.kind == _SENT) & (self.payload > 0)
        self.has_arrived = self.kind == _CAME
        self.flags = packets.flags[self.row]

        self.highest = self._running_maximum(numpy.where(self.is_data, self.end, 1))
        self.highest_before = numpy.ones_like(self.highest)
        self.highest_before[1:] = numpy.where(self.host[1:] == self.host[:-1],
                                              self.highest[:-1], 1)

        # The SACK option follows the timestamps, or is alone.
        first, second = (data[numpy.minimum(packets.options + place, len(data) - 1)]
                         for place in (2, 14))
        sacked = (packets.options_bytes >= 12) & (first == OPTION_SACK) | (
            packets.options_bytes >= 24) & (second == OPTION_SACK)
        self.sacked = sacked[self.row] & (self.flags & SYN == 0)

    def _number(self, sender: Numbers) -> None:
        """Set seq and ack, relative to each side's SYN and not wrapped; ack is -1 for none.

        Without a SYN its number is taken to be one below the side's first number.
        """
        packets = self.packets
        acks = numpy.flatnonzero(packets.flags & ACK)
        syns = numpy.flatnonzero(packets.flags & SYN)
        starts = numpy.zeros(self.hosts, numpy.int64)
        for rows, side, numbers in ((acks, sender[acks] ^ 1, packets.ack - 1),
                                    (numpy.arange(len(sender)), sender, packets.seq - 1),
                                    (syns, sender[syns], packets.seq)):
            starts[side[::-1]] = numbers[rows[::-1]]  # the first of each remains
        self.seq = _unwrapped(packets.seq, sender, starts)
        self.ack = numpy.full(len(sender), -1)
        self.ack[acks] = _unwrapped(packets.ack[acks], sender[acks] ^ 1, starts)

    def _running_maximum(self, values: Numbers) -> Numbers:
        """The largest value of each host up to each event. values: -1 or more."""
        room = int(values.max(initial=0)) + 2
        most: Numbers = numpy.maximum.accumulate(values + self.host * room) - self.host * room
        return most

    def _first(self, chosen: Flags) -> Numbers:
        """The place of each host's first chosen event; the number of events if it has none."""
        places = numpy.flatnonzero(chosen)[::-1]
        first = numpy.full(self.hosts, len(self.row))
        first[self.host[places]] = places
        return first

    def _last(self, chosen: Flags) -> Numbers:
        """The place of each host's last chosen event; -1 if it has none."""
        places = numpy.flatnonzero(chosen)
        last = numpy.full(self.hosts, -1)
        last[self.host[places]] = places
        return last

    def states(self) -> list[str]:
        """The state of each connection, as in ObservedConnection."""
        packets = self.packets
        there = packets.is_sent | packets.has_arrived
        bits = numpy.zeros((2, self.hosts // 2), numpy.int64)  # flags by the client, by the server
        numpy.bitwise_or.at(bits, (packets.to_client[there] * 1, packets.connection[there]),
                            packets.flags[there])
        by_client, by_server = bits
        return list(numpy.select(
            [by_client & SYN == 0, (by_server & SYN == 0) & (by_server & RST > 0),
             by_server & SYN == 0, (by_client | by_server) & RST > 0,
             by_client & by_server & FIN > 0],
            [BEFORE, REFUSED, NOT_ANSWERED, RESET, ""], OPEN).tolist())

    def ends_ns(self) -> tuple[list[int], list[int]]:
        """The times of each connection's first and last packet at one of its hosts.

        The first is _LARGEST for a connection without packets there.
        """
        there = self.kind <= _SENT
        began = numpy.full(self.hosts // 2, _LARGEST)
        ended = numpy.full(self.hosts // 2, -1)
        numpy.minimum.at(began, self.host[there] // 2, self.time_ns[there])
        numpy.maximum.at(ended, self.host[there] // 2, self.time_ns[there])
        return began.tolist(), ended.tolist()

    def handshakes_ns(self) -> Numbers:
        """Each connection's time from the client's last SYN to the SYN-ACK, ns; 0 without both."""
        has_syn = self.flags & SYN > 0
        syn = self._last(has_syn & (self.kind == _SENT))[::2]
        answer = self._first(has_syn & self.has_arrived)[::2]
        times = numpy.append(self.time_ns, 0)
        return numpy.where((syn >= 0) & (answer < len(self.row)), times[answer] - times[syn], 0)

    def directions(self) -> tuple[list[Direction], list[Direction]]:
        """What each connection's server sent, and what its client did."""
        size = self._largest(self.end, self.is_data, 1) - 1
        single = self.is_data & (self.packets.frame_bytes[self.row] <= _MOST_FRAME_BYTES)
        merged = self._first(self.is_data & ~single) < len(self.row)

        # Bytes of a full segment: those of the largest frame that is a single segment.
        mss = numpy.maximum(self._largest(self.payload, single, 0),
                            numpy.where(merged, MSS, _LEAST_MSS))
        segments = -(-self.payload // mss[self.host])
        count = numpy.bincount(self.host, segments * self.is_data, self.hosts).astype(int).tolist()

        took = self._durations_ns(size + 1).tolist()
        flights = self._first_flights(mss, segments)
        retransmitting = set(self.host[
            self.is_data & (self.seq[self.row] < self.highest_before)].tolist())

        directions = []
        for host, (bytes_sent, took_ns) in enumerate(zip(size.tolist(), took)):
            if not count[host]:
                directions.append(Direction())
                continue
            causes: Counter[str] = Counter()
            if host in retransmitting:
                causes = self._retransmitted(host, int(mss[host]))
            goodput_kbps = bytes_sent * 8e6 / took_ns if took_ns > 0 else None
            directions.append(Direction(
                bytes_sent, int(mss[host]), count[host], first_flight=flights[host],
                retransmitted=causes, goodput_kbps=goodput_kbps))
        return directions[1::2], directions[::2]

    def _largest(self, values: Numbers, chosen: Flags, least: int) -> Numbers:
        """The largest of each host's chosen values, at least `least`."""
        most = numpy.full(self.hosts, least, numpy.int64)
        numpy.maximum.at(most, self.host[chosen], values[chosen])
        return most

    def _durations_ns(self, end: Numbers) -> Numbers:
        """The time from each host's first data until all is acknowledged, or to its last event.

        end: by host, the sequence number that follows its last byte.
        """
        acknowledged = self._running_maximum(numpy.where(self.has_arrived, self.ack[self.row], 0))
        first, last = self._first(self.is_data), self.begins[1:] - 1
        done = numpy.minimum(self._first(acknowledged >= end[self.host]), last)
        times = numpy.append(self.time_ns, 0)
        return numpy.where(first < len(self.row), times[done] - times[first], 0)

    def _first_flights(self, mss: Numbers, segments: Numbers) -> list[Flight | None]:
        """Each host's first flight; None if it sent no data."""
        places = numpy.arange(len(self.row))
        fresh = self.is_data & (self.end > self.highest_before)
        begin = self._first(fresh)
        end = self._first(self.has_arrived & ((self.ack[self.row] > 1) | self.sacked)
                          & (places > begin[self.host]))

        flight = fresh & (places < end[self.host])
        size = self._largest(self.end, flight, 1) - 1
        count = numpy.bincount(self.host, segments * flight, self.hosts).astype(int)
        last, following = self._last(flight), self._first(fresh & (places > end[self.host]))

        times = numpy.append(self.time_ns, _LARGEST)
        # Also a full segment: Nagle's algorithm may have delayed a shorter one. The appended one is
        # for hosts without such a packet, and there may be no packet at all.
        payload = numpy.append(self.payload, 0)
        at_once = (payload[following] >= mss) & (last >= 0) & (
            payload[last] % mss == 0) & (times[following] - times[end] <= _AT_ONCE_NS)

        return [Flight(*flight) if flight[1] else None
                for flight in zip(size.tolist(), count.tolist(), at_once.tolist())]

    def _retransmitted(self, host: int, mss: int) -> Counter[str]:
        """A host's retransmitted segments by cause: where the first copy was lost, or not at all.
        """
        causes: Counter[str] = Counter()
        packets = self.packets
        mine = slice(*self.begins[host:host + 2].tolist())
        data = mine.start + numpy.flatnonzero(self.is_data[mine])
        begins, ends, times = self.seq[self.row[data]], self.end[data], self.time_ns[data]
        highest = self.highest_before[data]
        again = numpy.flatnonzero(begins < highest)

        theirs = slice(*self.begins[host ^ 1:(host ^ 1) + 2].tolist())
        came = theirs.start + numpy.flatnonzero(
            self.has_arrived[theirs] & (self.payload[theirs] > 0))
        came_begins, came_ends = self.seq[self.row[came]], self.end[came]

        lost = self.row[mine][self.kind[mine] == _LOST]
        lost = lost[numpy.lexsort((packets.number[lost], packets.time_ns[lost]))]
        lost_begins = self.seq[lost]
        lost_ends = lost_begins + numpy.maximum(1, packets.payload_bytes[lost])

        # For each retransmitted byte: copies sent, less those lost and those that arrived, ever.
        missing = (_count_covering(begins, ends, begins[again])
                   - _count_covering(lost_begins, lost_ends, begins[again])
                   - _count_covering(came_begins, came_ends, begins[again]))
        arrived = _first_arrivals(came_begins, came_ends, self.time_ns[came], begins[again])
        passed = numpy.unique(packets.link[self.row[mine]]).tolist()
        corrupting = next((self.links[link].name for link in passed
                           if _corrupts(self.links[link])), "")
        had_arrived = ARRIVED + (f", or was corrupted, {corrupting}" if corrupting else "")

        holes: list[tuple[int, int, int]] = []  # bytes lost so far: begin, end, number of the loss
        drops = zip(packets.time_ns[lost].tolist(), packets.number[lost].tolist(),
                    lost_begins.tolist(), lost_ends.tolist())
        next_drop, next_lost = next(drops, None), 0
        for turn, place in enumerate(again.tolist()):
            now, begin = int(times[place]), int(begins[place])
            end = int(min(ends[place], highest[place]))

            # A packet may be dropped and retransmitted at the same time.
            turn_there = now, int(packets.number[self.row[data[place]]])
            while next_drop is not None and next_drop[:2] < turn_there:
                _, _, lost_begin, lost_end = next_drop
                _add_hole(holes, lost_begin, lost_end, next_lost)
                next_drop, next_lost = next(drops, None), next_lost + 1

            near = bisect_left(holes, (begin + 1, 0, 0)) - 1
            inside = [hole for hole in holes[max(near, 0):near + 2]
                      if hole[0] < end and hole[1] > begin]
            if inside and all(self._was_refused(int(lost[hole[2]])) for hole in inside):
                continue

            if inside:
                latest = max(hole[2] for hole in inside)
                cause = self._loss_in_words(int(lost[latest]))
            elif arrived[turn] < now:
                cause = self._dropped_behind(passed, is_lost=False) or had_arrived
            elif missing[turn] <= 0:
                cause = UNDER_WAY
            else:
                cause = self._dropped_behind(passed, is_lost=True) or _ELSEWHERE
            has_waited = place and now - int(times[place - 1]) >= 1000 * LEAST_TIMEOUT_US
            timer = ", after a timeout" if has_waited else ""
            causes[cause + timer] += -(-(end - begin) // mss)
        return causes

    def _was_refused(self, row: int) -> bool:
        """Whether a full queue of the sender's own device refused a packet, and TCP knows it."""
        packets, queues = self.packets, self.links[self.packets.link[row]].setting.queues
        return bool(queues and packets.is_sent[row] and not packets.at_once[row]
                    and not packets.discarded[row]
                    and all(queue.kind in _REPORTING_QDISCS for queue in queues))

    def _dropped_behind(self, passed: Sequence[int], is_lost: bool) -> str:
        """The cause of a packet that a receiver dropped on arrival; "" if no such drop is left.

        The kernel counts these drops by device and reason, not by packet. is_lost: whether the
        packet is known to be lost; if it may have arrived, no more packets than were counted get
        this cause.
        """
        for place in passed:
            link = self.links[place]
            for reason, left in self.dropped_on_arrival[place].items():
                if left > 0 or is_lost:
                    self.dropped_on_arrival[place][reason] -= 1
                    return f"dropped on arrival at {link.receiver} ({reason})"
        return ""

    def _loss_in_words(self, row: int) -> str:
        link = self.links[self.packets.link[row]]
        if link.random_drops and self.packets.at_once[row]:
            return f"lost at random, {link.name}"
        if self.packets.discarded[row]:
            return f"discarded, {link.name}"
        return f"dropped by the queue, {link.name}"


def _corrupts(link: LinkDirection) -> bool:
    """Whether a queue of the link was set to corrupt packets."""
    return any("corrupt" in word for queue in link.setting.queues for word in queue.also)


def _unwrapped(numbers: Numbers, side: Numbers, starts: Numbers) -> Numbers:
    """Sequence numbers relative to the start of their side, and not wrapped at 32 bits."""
    order = numpy.argsort(side, kind="stable")
    raw, side = numbers[order], side[order]
    begins = numpy.ones(len(raw), bool)
    begins[1:] = side[1:] != side[:-1]
    before = numpy.where(begins, starts[side], numpy.roll(raw, 1))
    steps = (raw - before + (1 << 31)) % (1 << 32) - (1 << 31)
    sums = numpy.cumsum(steps)
    base = (sums - steps)[begins]
    relative: Numbers = numpy.empty_like(sums)
    relative[order] = sums - base[numpy.cumsum(begins) - 1]
    return relative


def _first_copies(number: Numbers, seq: Numbers, rows: Numbers) -> Numbers:
    """The rows without those of duplicates, which have the number of their first copy."""
    order = numpy.lexsort((rows, seq[rows], number[rows]))
    ordered = rows[order]
    is_first = numpy.ones(len(rows), bool)
    is_first[1:] = (number[ordered[1:]] != number[ordered[:-1]]) | (
        seq[ordered[1:]] != seq[ordered[:-1]]) | (number[ordered[1:]] == 0)
    return numpy.sort(ordered[is_first])


def _first_arrivals(begins: Numbers, ends: Numbers, times: Numbers, bytes_at: Numbers) -> Numbers:
    """When each byte first arrived, _LARGEST for never.

    It is exact if retransmissions begin where the original segments began.
    """
    order = numpy.lexsort((times, begins))
    if not len(order):
        return numpy.full(len(bytes_at), _LARGEST)
    place = numpy.searchsorted(begins[order], bytes_at, "right") - 1
    begin = begins[order][numpy.maximum(place, 0)]
    found = order[numpy.searchsorted(begins[order], begin)]
    reaches = numpy.maximum.accumulate(ends[order])[numpy.maximum(place, 0)]
    return numpy.where((place >= 0) & (reaches > bytes_at), times[found], _LARGEST)


def _count_covering(begins: Numbers, ends: Numbers, bytes_at: Numbers) -> Numbers:
    """How many intervals contain each byte."""
    return (numpy.searchsorted(numpy.sort(begins), bytes_at, "right")
            - numpy.searchsorted(numpy.sort(ends), bytes_at, "right"))


def _add_hole(holes: list[tuple[int, int, int]], begin: int, end: int, which: int) -> None:
    """Add an interval to sorted, disjoint ones; it replaces what it overlaps."""
    place = max(bisect_left(holes, (begin, 0, 0)) - 1, 0)
    while place < len(holes) and holes[place][0] < end:
        first, last, older = holes[place]
        if last <= begin:
            place += 1
            continue
        del holes[place]
        for rest in ((first, begin, older), (end, last, older)):
            if rest[0] < rest[1]:
                insort(holes, rest)
                place += rest[1] <= begin
    insort(holes, (begin, end, which))
