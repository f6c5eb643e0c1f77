"""Divides data into flights. A flight is the data that a sender sends in one round trip."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from firstflight.net.path import Sent
from firstflight.net.segments import Segment

Point = tuple[float, float]


@dataclass
class FlightCounts:
    """Counts the flights of a handshake and of a response, for the model of TCP."""

    handshake_bytes: int  # of the server's first messages
    # Bytes that the server sends before its response, with tickets and earlier responses.
    response_start: int
    handshake: FlightCounter = field(default_factory=lambda: FlightCounter())
    response: FlightCounter = field(default_factory=lambda: FlightCounter())
    sent: int = 0  # bytes so far

    def note(self, segment: Sent, acknowledged: int) -> bool:
        """Note that a segment leaves; return whether it begins the response.

        acknowledged: bytes acknowledged so far.
        """
        if segment.retransmitted or not segment.payload:
            return False

        begin, self.sent = self.sent, self.sent + segment.payload
        if begin < self.handshake_bytes:
            self.handshake.note(begin, acknowledged)
        if self.sent <= self.response_start:
            return False
        return self.response.note(begin, acknowledged) and self.response.count == 1


@dataclass
class FlightCounter:
    """Counts the flights of a part of the data.

    A flight ends when its first byte is acknowledged. The first flight also ends when data that
    left right before it is acknowledged, such as tickets.
    """

    count: int = 0  # flights that have begun
    until: int = 0  # the last flight ends when more bytes than this are acknowledged

    def note(self, begin: int, acknowledged: int) -> bool:
        """Note that new data from byte `begin` on leaves; return whether it begins a flight."""
        if self.count and acknowledged <= self.until:
            return False
        self.until = begin if self.count else acknowledged
        self.count += 1
        return True


def split_into_flights(at_sender: Iterable[Segment], start: int, end: int,
                       to_client: bool = True) -> list[list[Segment]]:
    """A sender's segments from byte start to end, counted from 0, by flight (FlightCounter).

    Retransmissions are in no flight. A SACK block counts as an acknowledgement: if the first
    segment is lost or late, the acknowledgement of the segments after it lets new data leave.
    at_sender: all segments at that host, in both directions.
    """
    by_flight: list[list[Segment]] = []
    counter, highest, acknowledged = FlightCounter(), 1 + start, 1
    for segment in at_sender:
        if segment.to_client != to_client:
            sacked = max((block_end for _, block_end in segment.sacked), default=0)
            acknowledged = max(acknowledged, segment.ack or 0, sacked)
        elif segment.payload_bytes and segment.end > highest and segment.seq <= end:
            if counter.note(segment.seq, acknowledged):
                by_flight.append([])
            by_flight[-1].append(segment)
            highest = segment.end
    return by_flight


def acknowledgements_and_window_ends(at_sender: Iterable[Segment], to_client: bool, origin_ns: int,
                             scale: int) -> tuple[list[Point], list[Point]]:
    """The receiver's acknowledgements, and the ends of its window, over time.

    Each point has ms since origin_ns, and a sequence number. at_sender: all segments at the host
    that sends the data, in both directions. to_client: the direction of the data. scale: of the
    receiver's window, bits.
    """
    acknowledged = 1
    acknowledgements, window_ends = list[Point](), list[Point]()
    for segment in at_sender:
        if segment.to_client != to_client and (segment.ack or 0) >= acknowledged:
            acknowledged = segment.ack or 0
            ms = (segment.time_ns - origin_ns) / 1e6
            acknowledgements.append((ms, acknowledged))
            window_ends.append((ms, acknowledged + (segment.window << scale)))
    return acknowledgements, window_ends
