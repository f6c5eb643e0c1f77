"""Flights: what a sender sends in one round trip, and what is acknowledged, by its packets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from firstflight.net.path import Sent
from firstflight.net.segments import Segment

Point = tuple[float, float]
MOST_LISTED = 8  # flights; a ninth of slow start has 256 times the initial window


@dataclass
class Flights:
    """The same of what the model sends: how many flights handshake and response take.

    handshake_bytes: of the server's first messages; response_start: all that it
    sends before its response, tickets included, or an earlier one.
    """

    handshake_bytes: int
    response_start: int
    of_handshake: Rounds = field(default_factory=lambda: Rounds())
    of_response: Rounds = field(default_factory=lambda: Rounds())
    sent: int = 0

    def note(self, segment: Sent, acknowledged: int) -> bool:
        """A segment leaves, while so many bytes are acknowledged; whether it begins the response"""
        if segment.retransmitted or not segment.payload:
            return False
        begin, self.sent = self.sent, self.sent + segment.payload
        if begin < self.handshake_bytes:
            self.of_handshake.note(begin, acknowledged)
        if self.sent <= self.response_start:
            return False
        return self.of_response.note(begin, acknowledged) and self.of_response.count == 1


@dataclass
class Rounds:
    """Flights of a part of what is sent, counted.

    A flight ends with an acknowledgement of what it began with; the first also
    with one of what left right before it, such as tickets.
    """

    count: int = 0
    until: int = 0  # acknowledged, up to which the flight goes on

    def note(self, begin: int, acknowledged: int) -> bool:
        """A new segment leaves; whether it begins a flight."""
        if self.count and acknowledged <= self.until:
            return False
        self.until = begin if self.count else acknowledged
        self.count += 1
        return True


def flights(at_sender: Iterable[Segment], start: int, end: int,
            to_client: bool = True) -> list[list[Segment]]:
    """A sender's bytes from start to end, from 0, by the flight in which they left (Rounds).

    at_sender: all segments there, both directions. Those that are retransmitted are in no flight.
    """
    by_flight: list[list[Segment]] = []
    rounds, highest, acknowledged = Rounds(), 1 + start, 1
    for segment in at_sender:
        if segment.to_client != to_client:
            acknowledged = max(acknowledged, segment.ack or 0)
        elif segment.payload_bytes and segment.end > highest and segment.seq <= end:
            if rounds.note(segment.seq, acknowledged):
                by_flight.append([])
            by_flight[-1].append(segment)
            highest = segment.end
    return by_flight


def acknowledged_and_offered(at_sender: Iterable[Segment], to_client: bool, origin_ns: int,
                             scale: int) -> tuple[list[Point], list[Point]]:
    """What the receiver has acknowledged, and up to where its window reaches, over time.

    at_sender: all segments there, both directions. to_client: which way data go; scale: of the
    receiver's window. Points: ms since origin_ns, and a byte.
    """
    acknowledged, points, offered = 1, list[Point](), list[Point]()
    for segment in at_sender:
        if segment.to_client != to_client and (segment.ack or 0) >= acknowledged:
            acknowledged = segment.ack or 0
            ms = (segment.time_ns - origin_ns) / 1e6
            points.append((ms, acknowledged))
            offered.append((ms, acknowledged + (segment.window << scale)))
    return points, offered


FLIGHTS = r"(\d{1,9}(\+\d{1,9})*(\+…)?)?"  # what listed_flights has


def listed_flights(flights: Sequence[Sequence[Segment]]) -> str:
    """Segments of each flight, as "10+20+40"; of more than MOST_LISTED the first, then "+…"."""
    sizes = [str(len(flight)) for flight in flights[:MOST_LISTED]]
    return "+".join([*sizes, *(["…"] if len(flights) > MOST_LISTED else [])])
