"""Finds out what each TCP connection of a capture did: its first flights, and its retransmissions
with their causes."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy

from firstflight.net.headers import ACK, FIN, MSS, OPTION_SACK, RST, SYN
from firstflight.net.path import LEAST_TIMEOUT_US, NEVER
from firstflight.net.segments import MS
from firstflight.wire.capture.byte_ranges import Hole, add_hole, count_covering, first_arrivals
from firstflight.wire.capture.conversations import Endpoints, TcpPackets
from firstflight.wire.capture.direction import LinkDirection
from firstflight.wire.capture.pcapng import Flags, Numbers

ARRIVED, UNDER_WAY = "the first copy had arrived", "the first copy was still under way"
REFUSED, NOT_ANSWERED, RESET, BEFORE, OPEN = (
    "refused", "not answered", "reset", "begun before the capture", "not closed")
_CAME, _SENT, _LOST = range(3)  # kinds of events; events of the same time are in this order
_AT_ONCE_NS = MS  # a packet that leaves this soon after an acknowledgement was released by it
_MOST_FRAME_BYTES = 1600  # a larger frame has several segments, merged by an offload
_LEAST_MSS = 536  # RFC 9293, 3.7.1
_ELSEWHERE = "lost elsewhere"
# Qdiscs that report a drop to a sender on their own host (NET_XMIT_DROP). TCP then takes the
# segment for not sent, and does not count the next copy as a retransmission. Other qdiscs report
# congestion (NET_XMIT_CN).
_REPORTING_QDISCS = frozenset(("netem", "tbf", "htb", "hfsc", "prio", "pfifo", "bfifo",
                               "pfifo_fast"))


class Flight(NamedTuple):
    """The data that a side sent before any of its data was acknowledged."""

    bytes: int
    segments: int
    # Whether the window limited it: its last segment is full, and the acknowledgement released
    # another segment.
    is_window: bool


@dataclass(frozen=True)
class Direction:
    """The data that one side of a connection sent."""

    bytes: int = 0  # without retransmissions
    mss: int = 0  # bytes of a full segment
    segments: int = 0  # retransmissions included
    first_flight: Flight | None = None  # None if it sent no data
    retransmitted: Counter[str] = field(default_factory=Counter)  # segments by cause
    # Mean from the first data until all is acknowledged; None if that takes no time.
    goodput_kbps: float | None = None


@dataclass(frozen=True)
class ObservedConnection:
    """One connection as it was observed."""

    ends: Endpoints
    begun_ns: int  # time of its first packet, since the epoch
    ended_ns: int  # time of its last packet, since the epoch
    handshake_ms: float | None  # None if the handshake was not observed
    to_client: Direction
    to_server: Direction
    state: str  # "" if it was opened and closed, otherwise one of the constants REFUSED to OPEN

    @property
    def main(self) -> Direction:
        """The direction in which more data went."""
        return max(self.to_client, self.to_server, key=lambda direction: direction.bytes)

    @property
    def retransmitted(self) -> Counter[str]:
        """Retransmitted segments of both directions, by cause."""
        return self.to_client.retransmitted + self.to_server.retransmitted


def observe_connections(connections: Sequence[Endpoints], packets: TcpPackets,
                        links: Sequence[LinkDirection], data: Numbers
                        ) -> list[ObservedConnection | None]:
    """Observe each connection; None stands for a connection of which neither host is known.

    links: all directions of links in the capture. data: the bytes of the capture's file.
    """
    events = _PacketEvents(packets, links, data, len(connections))
    to_client, to_server = events.directions()
    result: list[ObservedConnection | None] = []
    states, handshakes_ns = events.states(), events.handshakes_ns()
    began, ended = events.begins_and_ends_ns()
    for number, ends in enumerate(connections):
        if began[number] >= NEVER:
            result.append(None)
            continue
        waited_ns = int(handshakes_ns[number])
        result.append(ObservedConnection(
            ends, began[number], ended[number],
            handshake_ms=waited_ns / 1e6 if waited_ns > 0 else None, to_client=to_client[number],
            to_server=to_server[number], state=states[number]))
    return result


class _PacketEvents:
    """The events of all connections, in arrays that are sorted by host and time.

    Host 2 × n is the client of connection n, host 2 × n + 1 its server, so host ^ 1 is the other
    host of the same connection. An event is a packet that the host sent, a packet that arrived at
    the host, or a packet of the host that was lost anywhere.
    """

    def __init__(self, packets: TcpPackets, links: Sequence[LinkDirection], data: Numbers,
                 count: int) -> None:
        """links, data: as for observe_connections. count: of connections."""
        self.packets, self.links, self.hosts = packets, links, 2 * count
        # Drops on arrival that no retransmission has been explained by so far.
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

        # Each event: the row of its packet, its host, time and kind.
        order = numpy.lexsort((times, host))
        self.row, self.host, self.time_ns, self.kind = (
            column[order] for column in (rows, host, times, kinds))
        # The events of host n are those from begins[n] to before begins[n + 1].
        self.begins = numpy.searchsorted(self.host, numpy.arange(self.hosts + 1))

        self.payload = packets.payload_bytes[self.row].astype(numpy.int64)
        self.end = self.seq[self.row] + self.payload
        self.is_data = (self.kind == _SENT) & (self.payload > 0)
        self.has_arrived = self.kind == _CAME
        self.flags = packets.flags[self.row]

        # Where the data ends that the host has sent up to each event, and before it.
        self.highest = self._running_maximum(numpy.where(self.is_data, self.end, 1))
        self.highest_before = numpy.ones_like(self.highest)
        self.highest_before[1:] = numpy.where(self.host[1:] == self.host[:-1],
                                              self.highest[:-1], 1)

        # The SACK option is alone, after 2 bytes of padding, or follows the timestamps, which take
        # 12 bytes. With one block it takes 12 bytes as well.
        kind_alone = data[numpy.minimum(packets.options + 2, len(data) - 1)]
        kind_after_stamps = data[numpy.minimum(packets.options + 14, len(data) - 1)]
        is_alone = (packets.options_bytes >= 12) & (kind_alone == OPTION_SACK)
        is_after_stamps = (packets.options_bytes >= 24) & (kind_after_stamps == OPTION_SACK)
        has_sack = is_alone | is_after_stamps
        self.has_sack = has_sack[self.row] & (self.flags & SYN == 0)

    def _number(self, sender: Numbers) -> None:
        """Set seq and ack, relative to each host's SYN and not wrapped; ack is -1 for none.

        A host whose SYN was not captured gets one below its first sequence number, or else below
        the first number that the other host acknowledged.
        """
        packets = self.packets
        acks = numpy.flatnonzero(packets.flags & ACK)
        syns = numpy.flatnonzero(packets.flags & SYN)
        starts = numpy.zeros(self.hosts, numpy.int64)
        # A later line replaces what an earlier one set, and within a line the first row remains.
        for rows, host, numbers in ((acks, sender[acks] ^ 1, packets.ack - 1),
                                    (numpy.arange(len(sender)), sender, packets.seq - 1),
                                    (syns, sender[syns], packets.seq)):
            starts[host[::-1]] = numbers[rows[::-1]]
        self.seq = _unwrapped(packets.seq, sender, starts)
        self.ack = numpy.full(len(sender), -1)
        self.ack[acks] = _unwrapped(packets.ack[acks], sender[acks] ^ 1, starts)

    def _running_maximum(self, values: Numbers) -> Numbers:
        """The largest value of the event's host up to each event. values: -1 or more."""
        # Each host's values lie above those of the hosts before it, so one pass over all is enough.
        offset = self.host * (int(values.max(initial=0)) + 2)
        most: Numbers = numpy.maximum.accumulate(values + offset) - offset
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
        at_hosts = packets.is_sent | packets.has_arrived
        # All flags that either side of each connection ever set: the client's row, the server's.
        flags = numpy.zeros((2, self.hosts // 2), numpy.int64)
        numpy.bitwise_or.at(flags, (packets.to_client[at_hosts] * 1, packets.connection[at_hosts]),
                            packets.flags[at_hosts])
        client, server = flags

        # The first condition that holds decides.
        conditions = [client & SYN == 0,
                      (server & SYN == 0) & (server & RST > 0),
                      server & SYN == 0,
                      (client | server) & RST > 0,
                      client & server & FIN > 0]
        states = [BEFORE, REFUSED, NOT_ANSWERED, RESET, ""]
        return list(numpy.select(conditions, states, OPEN).tolist())

    def begins_and_ends_ns(self) -> tuple[list[int], list[int]]:
        """When each connection's first packet and its last one were sent or arrived.

        The begin is NEVER for a connection of which no packet was seen at either host.
        """
        at_hosts = self.kind <= _SENT
        began = numpy.full(self.hosts // 2, NEVER)
        ended = numpy.full(self.hosts // 2, -1)
        numpy.minimum.at(began, self.host[at_hosts] // 2, self.time_ns[at_hosts])
        numpy.maximum.at(ended, self.host[at_hosts] // 2, self.time_ns[at_hosts])
        return began.tolist(), ended.tolist()

    def handshakes_ns(self) -> Numbers:
        """Each connection's time from the client's last SYN to the SYN-ACK, ns; 0 without both."""
        has_syn = self.flags & SYN > 0
        syn = self._last(has_syn & (self.kind == _SENT))[::2]  # of clients
        answer = self._first(has_syn & self.has_arrived)[::2]
        times = numpy.append(self.time_ns, 0)
        return numpy.where((syn >= 0) & (answer < len(self.row)), times[answer] - times[syn], 0)

    def directions(self) -> tuple[list[Direction], list[Direction]]:
        """The data that each connection's server sent, and the data that its client sent."""
        size = self._largest(self.end, self.is_data, 1) - 1  # bytes of each host's data
        is_single = self.is_data & (self.packets.frame_bytes[self.row] <= _MOST_FRAME_BYTES)
        has_merged = self._first(self.is_data & ~is_single) < len(self.row)

        # Bytes of a full segment: those of the largest frame that is a single segment.
        mss = numpy.maximum(self._largest(self.payload, is_single, 0),
                            numpy.where(has_merged, MSS, _LEAST_MSS))
        segments = -(-self.payload // mss[self.host])
        count = numpy.bincount(self.host, segments * self.is_data, self.hosts).astype(int).tolist()

        durations_ns = self._durations_ns(size + 1).tolist()
        flights = self._first_flights(mss, segments)
        is_retransmission = self.is_data & (self.seq[self.row] < self.highest_before)
        retransmitting = set(self.host[is_retransmission].tolist())

        directions = []
        for host, (bytes_sent, took_ns) in enumerate(zip(size.tolist(), durations_ns)):
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

        end: of each host, the sequence number that follows its last byte.
        """
        acknowledged = self._running_maximum(numpy.where(self.has_arrived, self.ack[self.row], 0))
        first, last = self._first(self.is_data), self.begins[1:] - 1
        done = numpy.minimum(self._first(acknowledged >= end[self.host]), last)
        times = numpy.append(self.time_ns, 0)
        return numpy.where(first < len(self.row), times[done] - times[first], 0)

    def _first_flights(self, mss: Numbers, segments: Numbers) -> list[Flight | None]:
        """Each host's first flight; None if it sent no data.

        mss: of each host. segments: of each event's packet, how many full segments it takes.
        """
        places = numpy.arange(len(self.row))
        is_new = self.is_data & (self.end > self.highest_before)
        begin = self._first(is_new)
        acknowledges = self.has_arrived & ((self.ack[self.row] > 1) | self.has_sack)
        end = self._first(acknowledges & (places > begin[self.host]))

        is_in_flight = is_new & (places < end[self.host])
        size = self._largest(self.end, is_in_flight, 1) - 1
        count = numpy.bincount(self.host, segments * is_in_flight, self.hosts).astype(int)

        # The window was full if the acknowledgement released a full segment at once, and the last
        # segment of the flight is full: Nagle's algorithm may have held a shorter one back. The
        # values that are appended stand for a packet that does not exist.
        last, following = self._last(is_in_flight), self._first(is_new & (places > end[self.host]))
        times = numpy.append(self.time_ns, NEVER)
        payload = numpy.append(self.payload, 0)
        is_released = (payload[following] >= mss) & (times[following] - times[end] <= _AT_ONCE_NS)
        is_window = is_released & (last >= 0) & (payload[last] % mss == 0)

        flights: list[Flight | None] = []
        for bytes_sent, sent, limited in zip(size.tolist(), count.tolist(), is_window.tolist()):
            flights.append(Flight(bytes_sent, sent, limited) if sent else None)
        return flights

    def _retransmitted(self, host: int, mss: int) -> Counter[str]:
        """A host's retransmitted segments by cause: where the first copy was lost, or that it was
        not lost.

        Segments that a full queue of the host itself refused are left out.
        """
        causes: Counter[str] = Counter()
        packets = self.packets

        # The host's data packets: where each begins and ends, when it left, and where the data
        # before it ended. `again` has the places of retransmissions among them.
        events = slice(*self.begins[host:host + 2].tolist())
        data = events.start + numpy.flatnonzero(self.is_data[events])
        begins, ends, times = self.seq[self.row[data]], self.end[data], self.time_ns[data]
        highest = self.highest_before[data]
        again = numpy.flatnonzero(begins < highest)

        # The data that arrived at the other host, and the packets that were lost, in time.
        receiver = host ^ 1
        receiver_events = slice(*self.begins[receiver:receiver + 2].tolist())
        came = receiver_events.start + numpy.flatnonzero(
            self.has_arrived[receiver_events] & (self.payload[receiver_events] > 0))
        came_begins, came_ends = self.seq[self.row[came]], self.end[came]
        lost = self.row[events][self.kind[events] == _LOST]
        lost = lost[numpy.lexsort((packets.number[lost], packets.time_ns[lost]))]
        lost_begins = self.seq[lost]
        lost_ends = lost_begins + numpy.maximum(1, packets.payload_bytes[lost])

        # For the first byte of each retransmission: how many of all its copies neither were lost on
        # a link nor arrived, and when the first of them arrived.
        missing = (count_covering(begins, ends, begins[again])
                   - count_covering(lost_begins, lost_ends, begins[again])
                   - count_covering(came_begins, came_ends, begins[again]))
        arrived_ns = first_arrivals(came_begins, came_ends, self.time_ns[came], begins[again])

        passed = numpy.unique(packets.link[self.row[events]]).tolist()
        corrupting = [self.links[link].name for link in passed if _corrupts(self.links[link])]
        had_arrived = f"{ARRIVED}, or was corrupted, {corrupting[0]}" if corrupting else ARRIVED

        holes: list[Hole] = []  # bytes that were lost so far
        losses = zip(packets.time_ns[lost].tolist(), packets.number[lost].tolist(),
                     lost_begins.tolist(), lost_ends.tolist())
        next_loss, next_number = next(losses, None), 0
        for number, place in enumerate(again.tolist()):
            now, begin = int(times[place]), int(begins[place])
            end = int(min(ends[place], highest[place]))  # of the bytes that were sent before

            # A packet may be dropped and retransmitted at the same time: then its number decides.
            now_and_number = now, int(packets.number[self.row[data[place]]])
            while next_loss is not None and next_loss[:2] < now_and_number:
                _, _, lost_begin, lost_end = next_loss
                add_hole(holes, lost_begin, lost_end, next_number)
                next_loss, next_number = next(losses, None), next_number + 1

            near = bisect_left(holes, (begin + 1, 0, 0)) - 1
            filled = [hole for hole in holes[max(near, 0):near + 2]
                      if hole[0] < end and hole[1] > begin]
            if filled and all(self._was_refused(int(lost[hole[2]])) for hole in filled):
                continue

            if filled:
                latest = max(hole[2] for hole in filled)
                cause = self._loss_in_words(int(lost[latest]))
            elif arrived_ns[number] < now:
                cause = self._drop_on_arrival(passed, is_lost=False) or had_arrived
            elif missing[number] <= 0:
                cause = UNDER_WAY
            else:
                cause = self._drop_on_arrival(passed, is_lost=True) or _ELSEWHERE
            has_waited = place and now - int(times[place - 1]) >= 1000 * LEAST_TIMEOUT_US
            timer = ", after a timeout" if has_waited else ""
            causes[cause + timer] += -(-(end - begin) // mss)
        return causes

    def _was_refused(self, row: int) -> bool:
        """Whether a full queue of the sender's own device refused a packet, and TCP knows it."""
        packets, queues = self.packets, self.links[self.packets.link[row]].setting.queues
        was_full = packets.is_sent[row] and not packets.at_once[row] and not packets.discarded[row]
        return bool(was_full and queues
                    and all(queue.kind in _REPORTING_QDISCS for queue in queues))

    def _drop_on_arrival(self, passed: Sequence[int], is_lost: bool) -> str:
        """The cause of a packet that a receiver dropped on arrival; "" if no such drop is left.

        The kernel counts these drops by device and reason, not by packet. passed: places of the
        links that the connection passed. is_lost: whether the packet is known to be lost; if it may
        have arrived, no more packets than were counted get this cause.
        """
        for place in passed:
            link = self.links[place]
            for reason, left in self.dropped_on_arrival[place].items():
                if left > 0 or is_lost:
                    self.dropped_on_arrival[place][reason] -= 1
                    return f"dropped on arrival at {link.receiver} ({reason})"
        return ""

    def _loss_in_words(self, row: int) -> str:
        """How and on which link a packet was lost."""
        link = self.links[self.packets.link[row]]
        if link.random_drops and self.packets.at_once[row]:
            return f"lost at random, {link.name}"
        if self.packets.discarded[row]:
            return f"discarded, {link.name}"
        return f"dropped by the queue, {link.name}"


def _corrupts(link: LinkDirection) -> bool:
    """Whether a queue of the link was set to corrupt packets."""
    return any("corrupt" in words for queue in link.setting.queues
               for words in queue.other_settings)


def _unwrapped(numbers: Numbers, host: Numbers, starts: Numbers) -> Numbers:
    """Sequence numbers relative to the start of their host, and not wrapped at 32 bits.

    host: of each number. starts: of each host, the number that counts as 0.
    """
    order = numpy.argsort(host, kind="stable")
    raw, host = numbers[order], host[order]
    begins = numpy.ones(len(raw), bool)  # at the first number of a host
    begins[1:] = host[1:] != host[:-1]

    # The step from each number to the next one of its host, at most half of the 32 bits long; and
    # for each host the sum of its steps.
    before = numpy.where(begins, starts[host], numpy.roll(raw, 1))
    steps = (raw - before + (1 << 31)) % (1 << 32) - (1 << 31)
    sums = numpy.cumsum(steps)
    sums_before_host = (sums - steps)[begins]
    relative: Numbers = numpy.empty_like(sums)
    relative[order] = sums - sums_before_host[numpy.cumsum(begins) - 1]
    return relative


def _first_copies(number: Numbers, seq: Numbers, rows: Numbers) -> Numbers:
    """The rows of packets, without the duplicates that netem made.

    A duplicate has the number of the packet that it copies. Segments that a queue cut from one
    packet share a number as well, but not a sequence number.
    """
    order = numpy.lexsort((rows, seq[rows], number[rows]))
    ordered = rows[order]
    is_first = numpy.ones(len(rows), bool)
    is_first[1:] = (number[ordered[1:]] != number[ordered[:-1]]) | (
        seq[ordered[1:]] != seq[ordered[:-1]]) | (number[ordered[1:]] == 0)
    return numpy.sort(ordered[is_first])
