"""What each TCP connection of a capture did: first flights, retransmissions, what limited it."""

from __future__ import annotations


from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy

from lab.capture.conversations import TcpPackets
from lab.capture.links import LinkDirection
from lab.capture.pcapng import Capture, Flags, Numbers
from lab.tcp.packets import ACK, FIN, MS, MSS, RST, SYN
from lab.tcp.path import LEAST_TIMEOUT_US

# What limits a transfer, in words.
LINK, RECEIVER, SENDER, RECOVERY, WINDOW, NOTHING = (
    "the link", "the receive window", "the sender", "loss recovery", "the congestion window",
    "the round trip")
ARRIVED, UNDER_WAY = "the first copy had arrived", "the first copy was still under way"
REFUSED, NOT_ANSWERED, RESET, BEFORE, OPEN = (
    "refused", "not answered", "reset", "begun before the capture", "not closed")
_WAITING_NS = 50_000  # beyond propagation and serialisation: it waited in the queue
_AT_ONCE_NS = MS  # what leaves so soon after an acknowledgement was released by it
_MOST_FRAME_BYTES = 1600  # of a segment that no offload has merged with others
_LEAST_MSS = 536  # RFC 9293, 3.7.1
_LARGEST = 1 << 62
_SACK, _SCALE = 5, 3  # options of TCP

class Flight(NamedTuple):
    """The data that a side sent before any of its data was acknowledged.

    at_once: whether it ended with a full segment, and the acknowledgement released more: then the
    window was what ended it.
    """

    bytes: int
    segments: int
    at_once: bool


@dataclass(frozen=True)
class Direction:
    """What one side of a connection sent.

    bytes: new data. mss: of its segments, bytes. retransmitted: segments, by cause. shares: of the
    time from its first data to the last acknowledgement, by what limited it. goodput_kbps: of its
    data in that time; None where it takes none.
    """

    bytes: int = 0
    mss: int = 0
    segments: int = 0
    first_flight: Flight | None = None
    retransmitted: Counter[str] = field(default_factory=Counter)
    shares: Mapping[str, float] = field(default_factory=dict)
    goodput_kbps: float | None = None

    @property
    def limited_by(self) -> str:
        """What limited it for the longest time; "" where it sent nothing."""
        return max(self.shares, key=lambda name: self.shares[name]) if self.shares else ""


class Seen(NamedTuple):
    """The packets of a connection at one of its hosts, in order of time, as arrays.

    own: whether the host sent it. seq, end: of its data, relative to its side's SYN; ack: relative
    to the other's, -1 without one. number: in the order of coming to queues. sacked: whether it
    has SACK blocks.
    """

    time_ns: Numbers
    own: Flags
    seq: Numbers
    end: Numbers
    ack: Numbers
    flags: Numbers
    window: Numbers
    payload_bytes: Numbers
    frame_bytes: Numbers
    number: Numbers
    sacked: Flags


@dataclass(frozen=True)
class ObservedConnection:
    """One connection as it was observed. Times in ns since the epoch.

    begun_ns, ended_ns: of its first and its last packet. handshake_ms: None where it was not
    observed. state: "" for one that was opened and closed, else what was missing. at_client,
    at_server: its packets there. scales: of windows, by side (True: the client's).
    """

    packets: TcpPackets
    begun_ns: int
    ended_ns: int
    handshake_ms: float | None
    to_client: Direction
    to_server: Direction
    state: str
    at_client: Seen
    at_server: Seen
    scales: Mapping[bool, int]

    @property
    def is_to_client(self) -> bool:
        """Whether most of its data went to the client."""
        return self.to_client.bytes >= self.to_server.bytes

    @property
    def main(self) -> Direction:
        """The direction in which most of its data went."""
        return self.to_client if self.is_to_client else self.to_server

    @property
    def retransmitted(self) -> Counter[str]:
        """Segments of both directions, by cause."""
        return self.to_client.retransmitted + self.to_server.retransmitted


def observed(packets: TcpPackets, links: Sequence[LinkDirection], capture: Capture
             ) -> ObservedConnection | None:
    """None where neither of its hosts is known.

    links: all; their places are in the packets. capture: its file has TCP's options.
    """
    seq, ack = _relative(packets)
    sacked, scales = _options(packets, capture)
    at_client, at_server = (
        _at_host(packets, seq, ack, sacked,
                 numpy.array([link.from_node == node for link in links]),
                 numpy.array([link.to_node == node for link in links]), is_client)
        for node, is_client in ((packets.client_node, True), (packets.server_node, False)))
    times = numpy.concatenate((at_client.time_ns, at_server.time_ns))
    if not len(times):
        return None
    down, up = (_direction(packets, seq, at_sender, at_receiver, to_client, links,
                           scales.get(to_client, 0) if len(scales) == 2 else 0)
                for to_client, at_sender, at_receiver in (
                    (True, at_server, at_client), (False, at_client, at_server)))
    return ObservedConnection(packets, int(times.min()), int(times.max()),
                              _handshake_ms(at_client), down, up, _state(at_client, at_server),
                              at_client, at_server, scales)


def _relative(packets: TcpPackets) -> tuple[Numbers, Numbers]:
    """Numbers relative to each side's SYN, which go on above 32 bits; ack -1 where there is none.

    Without a SYN its number is taken to be one below the first number observed.
    """
    seq, ack = packets.seq.copy(), packets.ack.copy()
    has_ack = (packets.flags & ACK) != 0
    ack[~has_ack] = -1
    for to_client in (True, False):
        own = numpy.flatnonzero(packets.to_client == to_client)
        acks = numpy.flatnonzero((packets.to_client != to_client) & has_ack)
        syns = own[(packets.flags[own] & SYN) != 0]
        start = int(packets.seq[syns[0]] if len(syns) else packets.seq[own[0]] - 1 if len(own)
                    else packets.ack[acks[0]] - 1 if len(acks) else 0)
        for places, numbers in ((own, seq), (acks, ack)):
            raw = numbers[places]
            steps = numpy.diff(raw, prepend=start)
            numbers[places] = numpy.cumsum((steps + (1 << 31)) % (1 << 32) - (1 << 31))
    return seq, ack


def _options(packets: TcpPackets, capture: Capture) -> tuple[Flags, dict[bool, int]]:
    """Which packets have SACK blocks, behind timestamps or alone; the windows' scales by side.

    Scales are by whom the windows are for: True for data to the client.
    """
    def kind(place: int) -> Numbers:
        values: Numbers = capture.data[
            numpy.minimum(packets.options + place, len(capture.data) - 1)]
        return values
    sacked = ((packets.flags & SYN) == 0) & (
        (packets.options_bytes >= 12) & (kind(2) == _SACK)
        | (packets.options_bytes >= 24) & (kind(14) == _SACK))
    scales: dict[bool, int] = {}
    for row in numpy.flatnonzero(packets.flags & SYN).tolist():
        to_client = bool(packets.to_client[row])
        if to_client not in scales:
            begin = int(packets.options[row])
            options = bytes(capture.data[begin:begin + int(packets.options_bytes[row])])
            place = 0
            while place + 2 < len(options) and options[place]:
                if options[place] == _SCALE:
                    scales[to_client] = min(options[place + 2], 14)
                place += 1 if options[place] == 1 else max(2, options[place + 1])
    return sacked, {not to_client: scale for to_client, scale in scales.items()}


def _at_host(packets: TcpPackets, seq: Numbers, ack: Numbers, sacked: Flags, from_nodes: Flags,
             to_nodes: Flags, is_client: bool) -> Seen:
    """What a host sent and what came to it. from_nodes, to_nodes: which links are its own."""
    sent = numpy.flatnonzero((packets.to_client != is_client) & from_nodes[packets.link])
    came = numpy.flatnonzero((packets.to_client == is_client) & to_nodes[packets.link]
                             & ~packets.dropped)
    # What a queue duplicates, or drops in pieces, has one number, and was sent once.
    _, first = numpy.unique(numpy.stack((packets.number[sent], seq[sent])), axis=1,
                            return_index=True)
    sent = sent[numpy.sort(first)] if len(sent) and packets.number[sent].all() else sent
    # At one time what comes is first: the host answers it.
    rows = numpy.concatenate((came, sent))
    times = numpy.concatenate((packets.time_ns[came], packets.queued_ns[sent]))
    order = numpy.argsort(times, kind="stable")
    rows, own = rows[order], order >= len(came)
    return Seen(times[order], own, seq[rows], seq[rows] + packets.payload_bytes[rows], ack[rows],
                packets.flags[rows], packets.window[rows], packets.payload_bytes[rows],
                packets.frame_bytes[rows], packets.number[rows], sacked[rows])


def _handshake_ms(at_client: Seen) -> float | None:
    syns = at_client.time_ns[at_client.own & ((at_client.flags & SYN) != 0)]
    answers = at_client.time_ns[~at_client.own & ((at_client.flags & SYN) != 0)]
    if not len(syns) or not len(answers) or answers[0] <= syns[-1]:
        return None
    return int(answers[0] - syns[-1]) / 1e6


def _state(at_client: Seen, at_server: Seen) -> str:
    def has(flag: int, by_client: bool) -> bool:
        return bool(((at_client.flags & flag) != 0)[at_client.own == by_client].any()
                    or ((at_server.flags & flag) != 0)[at_server.own != by_client].any())
    if not has(SYN, True):
        return BEFORE
    if not has(SYN, False):
        return REFUSED if has(RST, False) else NOT_ANSWERED
    if has(RST, True) or has(RST, False):
        return RESET
    return "" if has(FIN, True) and has(FIN, False) else OPEN


# One direction ---------------------------------------------------------------------------

def _direction(packets: TcpPackets, seq: Numbers, at_sender: Seen, at_receiver: Seen,
               to_client: bool, links: Sequence[LinkDirection], scale: int) -> Direction:
    """scale: of the receiver's windows, where both sides have one."""
    has_data = at_sender.own & (at_sender.payload_bytes > 0)
    if not has_data.any():
        return Direction()
    payload = at_sender.payload_bytes[has_data]
    single = payload[at_sender.frame_bytes[has_data] <= _MOST_FRAME_BYTES]
    # Bytes of a full segment: of the largest that no offload has merged with others.
    mss = int(single.max(initial=_LEAST_MSS if len(single) == len(payload) else MSS))
    rows = numpy.flatnonzero((packets.to_client == to_client) & (
        (packets.payload_bytes > 0) | packets.dropped))
    size = int(at_sender.end[has_data].max()) - 1
    shares, took_ns = _shares(packets, seq, at_sender, rows, links, mss, scale)
    return Direction(size, mss, int((-(-payload // mss)).sum()),
                     _first_flight(at_sender, mss),
                     _retransmitted(packets, seq, at_sender, at_receiver, rows, links, mss), shares,
                     size * 8e6 / took_ns if took_ns else None)


def _first_flight(seen: Seen, mss: int) -> Flight:
    data = numpy.flatnonzero(seen.own & (seen.payload_bytes > 0))
    highest = numpy.maximum.accumulate(numpy.insert(seen.end[data], 0, 1))
    fresh = data[seen.end[data] > highest[:-1]]
    ends = numpy.flatnonzero(~seen.own & ((seen.ack > 1) | seen.sacked))
    ends = ends[ends > fresh[0]] if len(fresh) else ends
    flight = fresh[fresh < ends[0]] if len(ends) else fresh
    if not len(flight):
        return Flight(0, 0, False)
    segments = int((-(-seen.payload_bytes[flight] // mss)).sum())
    at_once = False
    if len(flight) < len(fresh):
        waited_ns = int(seen.time_ns[fresh[len(flight)]] - seen.time_ns[ends[0]])
        at_once = seen.payload_bytes[flight[-1]] % mss == 0 and waited_ns <= _AT_ONCE_NS
    return Flight(int(seen.end[flight].max()) - 1, segments, bool(at_once))


def _retransmitted(packets: TcpPackets, seq: Numbers, at_sender: Seen, at_receiver: Seen,
                   rows: Numbers, links: Sequence[LinkDirection], mss: int) -> Counter[str]:
    """Retransmitted segments by cause: where the first copy was lost, or that it was not.

    rows: the packets with data of this direction on all links, and those that were dropped.
    """
    causes: Counter[str] = Counter()
    data = numpy.flatnonzero(at_sender.own & (at_sender.payload_bytes > 0))
    begins, ends, times = at_sender.seq[data], at_sender.end[data], at_sender.time_ns[data]
    highest = numpy.maximum.accumulate(numpy.insert(ends, 0, 1))[:-1]
    again = numpy.flatnonzero(begins < highest)
    if not len(again):
        return causes
    came = ~at_receiver.own & (at_receiver.payload_bytes > 0)
    came_begins, came_ends = at_receiver.seq[came], at_receiver.end[came]
    came_ns = at_receiver.time_ns[came]
    lost = rows[packets.dropped[rows]]
    lost = lost[numpy.lexsort((packets.number[lost], packets.time_ns[lost]))]
    lost_ends = seq[lost] + numpy.maximum(1, packets.payload_bytes[lost])
    # Of each byte that is sent again: copies that were sent, came and were lost, of all times.
    missing = (_covering(begins, ends, begins[again]) - _covering(seq[lost], lost_ends,
                                                                  begins[again])
               - _covering(came_begins, came_ends, begins[again]))
    arrived = numpy.full(len(again), _LARGEST)
    order = numpy.lexsort((came_ns, came_begins))
    if len(order):
        place = numpy.searchsorted(came_begins[order], begins[again], "right") - 1
        first = numpy.searchsorted(came_begins[order], came_begins[order][numpy.maximum(place, 0)])
        found = order[first]
        reaches = numpy.maximum.accumulate(came_ends[order])[numpy.maximum(place, 0)]
        arrived = numpy.where((place >= 0) & (reaches > begins[again]), came_ns[found], _LARGEST)
    corrupting = [links[link].name for link in numpy.unique(packets.link[rows]).tolist()
                  if any("corrupt" in word for queue in links[link].setting.queues
                         for word in queue.also)]
    had_arrived = ARRIVED + (f", or was corrupted, {corrupting[0]}" if corrupting else "")
    holes: list[tuple[int, int, int]] = []  # what was lost so far: begin, end, which; apart
    next_lost = 0
    for turn, place in enumerate(again.tolist()):
        now, begin = int(times[place]), int(begins[place])
        end = int(min(ends[place], highest[place]))
        number = int(at_sender.number[data[place]])  # at one time it may be dropped, and sent again
        while next_lost < len(lost) and (
                packets.time_ns[lost[next_lost]], packets.number[lost[next_lost]]) < (now, number):
            _dig(holes, int(seq[lost[next_lost]]), int(lost_ends[next_lost]), next_lost)
            next_lost += 1
        timer = (", after a timeout" if place and now - int(times[place - 1])
                 >= 1000 * LEAST_TIMEOUT_US else "")
        near = bisect_left(holes, (begin + 1, 0, 0)) - 1
        inside = [hole for hole in holes[max(near, 0):near + 2]
                  if hole[0] < end and hole[1] > begin]
        causes[(_loss_in_words(packets, int(lost[max(hole[2] for hole in inside)]), links) if inside
                else had_arrived if arrived[turn] < now else
                UNDER_WAY if missing[turn] <= 0 else "lost elsewhere") + timer] += -(
                    -(end - begin) // mss)
    return causes


def _covering(begins: Numbers, ends: Numbers, bytes_at: Numbers) -> Numbers:
    """How many intervals hold each byte."""
    return (numpy.searchsorted(numpy.sort(begins), bytes_at, "right")
            - numpy.searchsorted(numpy.sort(ends), bytes_at, "right"))


def _dig(holes: list[tuple[int, int, int]], begin: int, end: int, which: int) -> None:
    """Add an interval to a sorted list of such that do not overlap: where it lies, it is newer."""
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


def _loss_in_words(packets: TcpPackets, row: int, links: Sequence[LinkDirection]) -> str:
    link = links[packets.link[row]]
    how = ("lost at random" if link.random_drops and packets.at_once[row] else
           "discarded" if packets.discarded[row] else "dropped by the queue")
    return f"{how}, {link.name}"


def _shares(packets: TcpPackets, seq: Numbers, at_sender: Seen, rows: Numbers,
            links: Sequence[LinkDirection], mss: int, scale: int) -> tuple[dict[str, float], int]:
    """What limited a sender, as shares of its time, and that time, ns."""
    seen = at_sender
    has_data = seen.own & (seen.payload_bytes > 0)
    end = int(seen.end[has_data].max())
    first = int(numpy.flatnonzero(has_data)[0])
    highest = numpy.maximum.accumulate(numpy.where(has_data, seen.end, 1))
    acknowledged = numpy.maximum.accumulate(numpy.where(seen.own, 1, numpy.maximum(seen.ack, 1)))
    windows = numpy.where(seen.flags & SYN, seen.window, seen.window << scale)
    last = numpy.maximum.accumulate(numpy.where(~seen.own & (seen.ack >= 0),
                                                numpy.arange(len(seen.own)), -1))
    window = numpy.where(last >= 0, windows[last], _LARGEST)
    lost = rows[packets.dropped[rows]]
    lost = lost[numpy.argsort(packets.time_ns[lost], kind="stable")]
    hole_ends = numpy.maximum.accumulate(numpy.insert(
        seq[lost] + numpy.maximum(1, packets.payload_bytes[lost]), 0, 0))
    hole_end = hole_ends[numpy.searchsorted(packets.time_ns[lost], seen.time_ns, "right")]
    waited = numpy.diff(_waited(packets, rows[~packets.dropped[rows]], links, seen.time_ns))
    spent = numpy.diff(seen.time_ns)
    counts = (numpy.arange(len(seen.own) - 1) >= first) & (acknowledged[:-1] < end)
    states = numpy.select(
        [hole_end > acknowledged, highest >= end, acknowledged >= highest,
         highest - acknowledged + mss > window], [0, 1, 2, 3], 4)[:-1]
    sums = {LINK: int(waited[counts].sum())}
    for state, name in enumerate((RECOVERY, NOTHING, SENDER, RECEIVER, WINDOW)):
        chosen = counts & (states == state)
        sums[name] = int((spent - waited)[chosen].sum())
    whole = sum(sums.values())
    return ({name: time / whole for name, time in sums.items() if time > 0} if whole else {}), whole


def _waited(packets: TcpPackets, rows: Numbers, links: Sequence[LinkDirection], times: Numbers
            ) -> Numbers:
    """For how long, until each time, any data had waited in a queue, ns. rows: of packets sent."""
    used, places = numpy.unique(packets.link[rows], return_inverse=True)
    delays = numpy.array([int(links[link].setting.delay_ms * 1e6) for link in used.tolist()] or [0])
    per_byte = numpy.array([8e6 / links[link].setting.rate_kbps for link in used.tolist()] or [0.0])
    begin = packets.queued_ns[rows] + delays[places]
    end = packets.time_ns[rows]
    own_ns = (packets.wire_bytes[rows] * per_byte[places]).astype(numpy.int64)
    is_waiting = end > begin + own_ns + _WAITING_NS
    begins, ends = merged(begin[is_waiting], end[is_waiting])
    if not len(begins):
        return numpy.zeros(len(times), numpy.int64)
    whole = numpy.insert(numpy.cumsum(ends - begins), 0, 0)
    place = numpy.searchsorted(begins, times, "right") - 1
    inside = numpy.minimum(times, ends[place]) - begins[place]
    return numpy.where(place >= 0, whole[place] + inside, 0)


def merged(begins: Numbers, ends: Numbers) -> tuple[Numbers, Numbers]:
    """Intervals that do not overlap, in order, with the same union."""
    order = numpy.argsort(begins, kind="stable")
    begins, reaches = begins[order], numpy.maximum.accumulate(ends[order])
    apart = numpy.flatnonzero(begins[1:] > reaches[:-1])
    if not len(begins):
        return begins, reaches
    return begins[numpy.insert(apart + 1, 0, 0)], reaches[numpy.append(apart, len(begins) - 1)]
