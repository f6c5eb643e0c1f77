"""What each TCP connection of a capture did: first flights, retransmissions, what limited it."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lab.capture import headers
from lab.capture.exchanges import TcpPackets
from lab.capture.headers import Headers
from lab.capture.links import Link, wire_bytes
from lab.capture.pcapng import Packet
from lab.core.errors import FirstFlightError
from lab.tcp.packets import MS, RST, SYN, Connection, Segment, connection_of, distance

# What limits a transfer, as a reader is told it.
LINK, RECEIVER, SENDER, RECOVERY, WINDOW, NOTHING = (
    "the link", "the receive window", "the sender", "loss recovery", "the congestion window",
    "the round trip")
_WAITING_NS = 50_000  # beyond propagation and serialisation: it waited in the queue
_LEAST_TIMEOUT_NS = 200 * MS  # TCP_RTO_MIN
_AT_ONCE_NS = MS  # what leaves so soon after an acknowledgement was let go by it
_HEADERS = 40  # of IPv4 and TCP, by which an MSS is counted
_STAMPS = 12
_MOST_BYTES = 1 << 31  # of one direction: sequence numbers come again after twice as many


class Flight(NamedTuple):
    """The data that a side sent before any of its data was acknowledged.

    at_once: whether it ended with a full segment, and the acknowledgement let more go: then the
    window was what ended it.
    """

    bytes: int
    segments: int
    at_once: bool


@dataclass
class Direction:
    """What one side of a connection sent.

    bytes: new data. mss: of its segments, bytes. again: segments that it retransmitted, by cause.
    shares: of the time from its first data to the last acknowledgement, by what limited it.
    goodput_kbps: of its data in that time; None where it takes none.
    """

    bytes: int = 0
    mss: int = 0
    segments: int = 0
    first_flight: Flight | None = None
    again: Counter[str] = field(default_factory=Counter)
    shares: dict[str, float] = field(default_factory=dict)
    goodput_kbps: float | None = None

    @property
    def limited_by(self) -> str:
        """What limited it for the longest time; "" where it sent nothing."""
        return max(self.shares, key=lambda name: self.shares[name]) if self.shares else ""


@dataclass
class Observed:
    """One connection as it was seen. Times in ns since the epoch; None where it was not seen.

    ended_ns: when the last of its data or its FIN was acknowledged. state: "" for one that was
    opened and closed, else what was missing.
    """

    packets: TcpPackets
    begun_ns: int
    ended_ns: int
    handshake_ms: float | None
    to_client: Direction
    to_server: Direction
    state: str
    wire: Connection | None = None


def observed(packets: TcpPackets) -> Observed | None:
    """None where its packets contradict each other, or for more than 2 GB."""
    try:
        wire = connection_of(packets.client[1], packets.at_client, packets.at_server)
    except FirstFlightError:
        return None
    everything = sorted(wire.at_client + wire.at_server, key=lambda segment: segment.time_ns)
    if not everything or any(abs(segment.seq) >= _MOST_BYTES - (1 << 20)
                             for segment in everything[-1:]):
        return None
    starts = _starts(packets)
    lost = list(_lost(packets, starts))
    waits = _waits(packets, starts)
    down, up = (_direction(wire, to_client, lost, waits[to_client]) for to_client in (True, False))
    return Observed(packets, everything[0].time_ns, everything[-1].time_ns, _handshake_ms(wire),
                    down, up, _state(wire), wire)


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
    to_client: bool
    start: int
    end: int
    time_ns: int
    where: str


def _starts(packets: TcpPackets) -> Mapping[bool, int]:
    """The number before the first byte of each side (True: to the client), as connection_of."""
    found: dict[bool, int] = {}
    for segment in sorted(packets.at_client + packets.at_server, key=lambda s: s.time_ns):
        if segment.to_client not in found or segment.flags & SYN:
            found.setdefault(segment.to_client, segment.seq - (not segment.flags & SYN))
    return found


def _carried(packets: TcpPackets, starts: Mapping[bool, int]
             ) -> Iterable[tuple[Link, Packet, Headers, bool, int]]:
    """Each packet with its direction and its first relative number."""
    for link, packet, found in packets.carried:
        to_client = (found.source, found.from_port) == packets.server
        seq = distance(headers.tcp_header(found).seq, starts.get(to_client, 0))
        yield link, packet, found, to_client, seq


def _lost(packets: TcpPackets, starts: Mapping[bool, int]) -> Iterable[_Lost]:
    for link, packet, found, to_client, seq in _carried(packets, starts):
        if packet.reason:
            how = ("lost at random" if packet.accepted and packet.time_ns == packet.queued_ns
                   and link.random_drops else
                   "discarded" if packet.is_discarded else "dropped by the queue")
            yield _Lost(to_client, seq, seq + max(1, found.payload_bytes), packet.time_ns,
                        f"{how}, {link.name}")


def _waits(packets: TcpPackets, starts: Mapping[bool, int]
           ) -> Mapping[bool, list[tuple[int, int]]]:
    """By direction, when data of it waited in a queue, merged, in order."""
    found: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
    for link, packet, _, to_client, _ in _carried(packets, starts):
        rate = link.setting.rate_kbps
        own_ns = 0 if math.isinf(rate) else int(wire_bytes(packet) * 8e6 / rate)
        propagated = packet.queued_ns + int(link.setting.delay_ms * 1e6)
        if not packet.reason and packet.time_ns > propagated + own_ns + _WAITING_NS:
            found[to_client].append((propagated, packet.time_ns))
    return {to_client: merged(each) for to_client, each in found.items()}


def merged(intervals: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Intervals that do not overlap, in order, with the same union."""
    found: list[tuple[int, int]] = []
    for begin, end in sorted(intervals):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((begin, end))
    return found


# One direction ---------------------------------------------------------------------------

def _direction(wire: Connection, to_client: bool, lost: Sequence[_Lost],
               waits: Sequence[tuple[int, int]]) -> Direction:
    at_sender, at_receiver = ((wire.at_server, wire.at_client) if to_client else
                              (wire.at_client, wire.at_server))
    sent = [s for s in at_sender if s.to_client == to_client and s.payload_bytes]
    if not sent:
        return Direction()
    mss = _mss(at_sender, to_client, sent)
    came = [s for s in at_receiver if s.to_client == to_client and s.payload_bytes]
    direction = Direction(max(s.end for s in sent) - 1, mss,
                          sum(_segments(s.payload_bytes, mss) for s in sent),
                          _first_flight(at_sender, to_client, mss))
    own_lost = [each for each in lost if each.to_client == to_client]
    direction.again = _again(sent, came, own_lost, mss)
    direction.shares, took_ns = _shares(at_sender, to_client, mss, waits, own_lost)
    direction.goodput_kbps = direction.bytes * 8e6 / took_ns if took_ns else None
    return direction


def _segments(payload_bytes: int, mss: int) -> int:
    return -(-payload_bytes // mss)


def _mss(at_sender: Sequence[Segment], to_client: bool, sent: Sequence[Segment]) -> int:
    """Of full segments: by the frames of those that no offload has put together."""
    single = [s.payload_bytes for s in sent if s.frame_bytes <= 1600]
    whole = max(single, default=0)
    together = [s.payload_bytes for s in sent if s.frame_bytes > 1600]
    return max(whole, 1448) if together else max(whole, 536)


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


def _again(sent: Sequence[Segment], came: Sequence[Segment], lost: Sequence[_Lost], mss: int
           ) -> Counter[str]:
    """Retransmitted segments by cause: where the first copy was lost, or that it was not."""
    causes: Counter[str] = Counter()
    firsts: dict[int, int] = {}
    for segment in came:
        firsts.setdefault(segment.seq, segment.time_ns)
    starts = sorted(firsts)
    ends: dict[int, int] = {}
    for segment in came:
        ends[segment.seq] = max(segment.end, ends.get(segment.seq, 0))
    least_ns = min((c.time_ns - s.time_ns for s, c in zip(sent[:1], came[:1])), default=0)
    by_start = sorted(lost, key=lambda each: each.start)
    highest, last_ns = 1, 0
    for segment in sent:
        if segment.seq < highest:
            timer = ", after a timeout" if segment.time_ns - last_ns >= _LEAST_TIMEOUT_NS else ""
            before = [each for each in by_start if each.start < min(segment.end, highest)
                      and each.end > segment.seq and each.time_ns < segment.time_ns]
            place = bisect_right(starts, segment.seq) - 1
            arrived = place >= 0 and ends[starts[place]] > segment.seq and \
                firsts[starts[place]] < segment.time_ns + least_ns
            cause = before[-1].where if before else \
                "the first copy had arrived" if arrived else "lost elsewhere"
            causes[cause + timer] += _segments(min(segment.end, highest) - segment.seq, mss)
        highest, last_ns = max(highest, segment.end), segment.time_ns
    return causes


def _shares(at_sender: Sequence[Segment], to_client: bool, mss: int,
            waits: Sequence[tuple[int, int]], lost: Sequence[_Lost]
            ) -> tuple[dict[str, float], int]:
    """What limited a sender, as shares of its time, and that time, ns."""
    holes = deque(sorted(lost, key=lambda each: each.time_ns))
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
    """How much of begin to end the intervals cover, and from which of them on to look next."""
    while place < len(intervals) and intervals[place][1] <= begin:
        place += 1
    covered, each = 0, place
    while each < len(intervals) and intervals[each][0] < end:
        covered += min(end, intervals[each][1]) - max(begin, intervals[each][0])
        each += 1
    return place, covered
