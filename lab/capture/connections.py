"""What each TCP connection of a capture did: first flights, retransmissions, what limited it."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from lab.capture.conversations import TcpPackets
from lab.capture.links import wire_bytes
from lab.core.errors import FirstFlightError
from lab.tcp.packets import MS, MSS, Connection, Segment, connection_of, distance, initial_numbers
from lab.tcp.path import LEAST_TIMEOUT_US
from net.headers import RST, SYN

# What limits a transfer, in words.
LINK, RECEIVER, SENDER, RECOVERY, WINDOW, NOTHING = (
    "the link", "the receive window", "the sender", "loss recovery", "the congestion window",
    "the round trip")
_WAITING_NS = 50_000  # beyond propagation and serialisation: it waited in the queue
_AT_ONCE_NS = MS  # what leaves so soon after an acknowledgement was released by it
_MOST_BYTES = (1 << 31) - (1 << 20)  # of one direction: relative numbers have 32 bits
_MOST_FRAME_BYTES = 1600  # of a segment that no offload has merged with others
_LEAST_MSS = 536  # RFC 9293, 3.7.1


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


@dataclass(frozen=True)
class ObservedConnection:
    """One connection as it was observed. Times in ns since the epoch.

    begun_ns, ended_ns: of its first and its last packet. handshake_ms: None where it was not
    observed. state: "" for one that was opened and closed, else what was missing. wire: its
    segments with relative numbers.
    """

    packets: TcpPackets
    begun_ns: int
    ended_ns: int
    handshake_ms: float | None
    to_client: Direction
    to_server: Direction
    state: str
    wire: Connection

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


def observed(packets: TcpPackets) -> ObservedConnection | None:
    """None where its packets contradict each other, or for more than 2 GB."""
    port = packets.client[1]
    try:
        starts = initial_numbers(packets.at_client + packets.at_server, port)
        wire = connection_of(port, packets.at_client, packets.at_server)
    except FirstFlightError:
        return None
    segments = sorted(wire.at_client + wire.at_server, key=lambda segment: segment.time_ns)
    if not segments or abs(segments[-1].seq) >= _MOST_BYTES:
        return None
    lost = list(_lost(packets, starts))
    waits = _waits(packets)
    down, up = (_direction(wire, to_client, [loss for loss in lost if loss.to_client == to_client],
                           waits[to_client]) for to_client in (True, False))
    return ObservedConnection(packets, segments[0].time_ns, segments[-1].time_ns,
                              _handshake_ms(wire), down, up, _state(wire), wire)


def _handshake_ms(wire: Connection) -> float | None:
    syns = [s for s in wire.at_client if not s.to_client and s.flags & SYN]
    answers = [s for s in wire.at_client if s.to_client and s.flags & SYN]
    return answers[0].ms_after(syns[-1]) if syns and answers and \
        answers[0].time_ns > syns[-1].time_ns else None


def _state(wire: Connection) -> str:
    opened = [s for s in wire.at_client + wire.at_server if s.flags & SYN]
    if not any(not s.to_client for s in opened):
        return "begun before the capture"
    if any(s.flags & RST and s.to_client for s in wire.at_client) and not any(
            s.to_client for s in opened):
        return "refused"
    if not any(s.to_client for s in opened):
        return "not answered"
    if any(s.flags & RST for s in wire.at_client + wire.at_server):
        return "reset"
    fins = {s.to_client for s in wire.at_client + wire.at_server if s.is_fin}
    return "" if len(fins) == 2 else "not closed"


# Packets that were dropped or had to wait ------------------------------------------------

class _Lost(NamedTuple):
    """A packet that was dropped. start, end: relative numbers of what it held. cause: in words."""

    to_client: bool
    start: int
    end: int
    time_ns: int
    cause: str


def _lost(packets: TcpPackets, starts: Mapping[bool, int]) -> Iterable[_Lost]:
    """starts: the number before the first byte of each side (True: to the client)."""
    for link, packet, segment in packets.carried:
        if packet.reason:
            how = ("lost at random" if link.random_drops and packet.is_dropped_at_once else
                   "discarded" if packet.is_discarded else "dropped by the queue")
            seq = distance(segment.seq, starts[segment.to_client])
            yield _Lost(segment.to_client, seq, seq + max(1, segment.payload_bytes),
                        packet.time_ns, f"{how}, {link.name}")


def _waits(packets: TcpPackets) -> Mapping[bool, list[tuple[int, int]]]:
    """By direction, when data of it waited in a queue, merged, in order."""
    waits: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
    for link, packet, segment in packets.carried:
        rate = link.setting.rate_kbps
        own_ns = 0 if math.isinf(rate) else int(wire_bytes(packet) * 8e6 / rate)
        propagated = packet.queued_ns + int(link.setting.delay_ms * 1e6)
        if not packet.reason and packet.time_ns > propagated + own_ns + _WAITING_NS:
            waits[segment.to_client].append((propagated, packet.time_ns))
    return {to_client: merged(intervals) for to_client, intervals in waits.items()}


def merged(intervals: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Intervals that do not overlap, in order, with the same union."""
    union: list[tuple[int, int]] = []
    for begin, end in sorted(intervals):
        if union and begin <= union[-1][1]:
            union[-1] = union[-1][0], max(end, union[-1][1])
        else:
            union.append((begin, end))
    return union


# One direction ---------------------------------------------------------------------------

def _direction(wire: Connection, to_client: bool, lost: Sequence[_Lost],
               waits: Sequence[tuple[int, int]]) -> Direction:
    """lost, waits: of this direction."""
    at_sender, at_receiver = ((wire.at_server, wire.at_client) if to_client else
                              (wire.at_client, wire.at_server))
    sent, came = ([s for s in side if s.to_client == to_client and s.payload_bytes]
                  for side in (at_sender, at_receiver))
    if not sent:
        return Direction()
    mss, size = _mss(sent), max(s.end for s in sent) - 1
    shares, took_ns = _shares(at_sender, to_client, mss, waits, lost)
    return Direction(size, mss, sum(_segments(s.payload_bytes, mss) for s in sent),
                     _first_flight(at_sender, to_client, mss),
                     _retransmitted(sent, came, lost, mss), shares,
                     size * 8e6 / took_ns if took_ns else None)


def _segments(payload_bytes: int, mss: int) -> int:
    return -(-payload_bytes // mss)


def _mss(sent: Sequence[Segment]) -> int:
    """Bytes of a full segment: of the largest that no offload has merged with others."""
    single = [s.payload_bytes for s in sent if s.frame_bytes <= _MOST_FRAME_BYTES]
    return max([*single, _LEAST_MSS if len(single) == len(sent) else MSS])


def _first_flight(at_sender: Sequence[Segment], to_client: bool, mss: int) -> Flight:
    highest, sent, segments, is_full = 1, 0, 0, False
    ended_ns = None
    for segment in at_sender:
        if segment.to_client == to_client:
            if segment.payload_bytes and segment.end > highest:
                if ended_ns is not None:
                    return Flight(sent, segments,
                                  is_full and segment.time_ns - ended_ns <= _AT_ONCE_NS)
                sent, highest = sent + segment.end - highest, segment.end
                segments += _segments(segment.payload_bytes, mss)
                is_full = segment.payload_bytes % mss == 0
        elif sent and ended_ns is None and segment.ack is not None and (
                segment.ack > 1 or segment.sacked):
            ended_ns = segment.time_ns
    return Flight(sent, segments, False)


def _retransmitted(sent: Sequence[Segment], came: Sequence[Segment], lost: Sequence[_Lost],
                   mss: int) -> Counter[str]:
    """Retransmitted segments by cause: where the first copy was lost, or that it was not."""
    causes: Counter[str] = Counter()
    arrivals: dict[int, int] = {}  # of what begins at a number, when the first came
    ends: dict[int, int] = {}
    for segment in came:
        arrivals.setdefault(segment.seq, segment.time_ns)
        ends[segment.seq] = max(segment.end, ends.get(segment.seq, 0))
    starts = sorted(arrivals)
    least_ns = min((c.time_ns - s.time_ns for s, c in zip(sent[:1], came[:1])), default=0)
    by_start = sorted(lost, key=lambda loss: loss.start)
    highest, last_ns = 1, 0
    for segment in sent:
        if segment.seq < highest:
            timer = (", after a timeout" if segment.time_ns - last_ns >= 1000 * LEAST_TIMEOUT_US
                     else "")
            before = [loss for loss in by_start if loss.start < min(segment.end, highest)
                      and loss.end > segment.seq and loss.time_ns < segment.time_ns]
            place = bisect_right(starts, segment.seq) - 1
            arrived = place >= 0 and ends[starts[place]] > segment.seq and \
                arrivals[starts[place]] < segment.time_ns + least_ns
            cause = before[-1].cause if before else \
                "the first copy had arrived" if arrived else "lost elsewhere"
            causes[cause + timer] += _segments(min(segment.end, highest) - segment.seq, mss)
        highest, last_ns = max(highest, segment.end), segment.time_ns
    return causes


def _shares(at_sender: Sequence[Segment], to_client: bool, mss: int,
            waits: Sequence[tuple[int, int]], lost: Sequence[_Lost]
            ) -> tuple[dict[str, float], int]:
    """What limited a sender, as shares of its time, and that time, ns."""
    holes = deque(sorted(lost, key=lambda loss: loss.time_ns))
    hole_end = 0  # of what was lost so far
    data = [s for s in at_sender if s.to_client == to_client and s.payload_bytes]
    end, begun_ns = max(s.end for s in data), data[0].time_ns
    scales = {s.to_client: s.scale for s in at_sender if s.flags & SYN}
    scale = scales.get(not to_client, 0) if len(scales) == 2 else 0
    highest, acknowledged, window, now = 1, 1, math.inf, begun_ns
    spent: Counter[str] = Counter()
    place = 0
    for segment in at_sender:
        if segment.time_ns > now and acknowledged < end:
            place, waited = _overlap(waits, place, now, segment.time_ns)
            spent[LINK] += waited
            while holes and holes[0].time_ns <= now:
                hole_end = max(hole_end, holes.popleft().end)
            state = (RECOVERY if hole_end > acknowledged else NOTHING if highest >= end else
                     SENDER if acknowledged >= highest else
                     RECEIVER if highest - acknowledged + mss > window else WINDOW)
            spent[state] += segment.time_ns - now - waited
            now = segment.time_ns
        if segment.to_client == to_client:
            highest = max(highest, segment.end) if segment.payload_bytes else highest
        elif segment.ack is not None:
            acknowledged = max(acknowledged, segment.ack)
            window = segment.window if segment.flags & SYN else segment.window << scale
    whole = sum(spent.values())
    return ({name: time / whole for name, time in spent.items() if time} if whole else {}), whole


def _overlap(intervals: Sequence[tuple[int, int]], place: int, begin: int, end: int
             ) -> tuple[int, int]:
    """From which of the intervals on to look next, and how much of begin to end they cover."""
    while place < len(intervals) and intervals[place][1] <= begin:
        place += 1
    covered = 0
    for first, last in islice(intervals, place, None):
        if first >= end:
            break
        covered += min(end, last) - max(begin, first)
    return place, covered
