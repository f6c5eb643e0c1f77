"""Where the messages of a connection begin and end, by its packets alone.

For servers that say nothing of themselves. TLS 1.3 (RFC 8446, 2) gives the order away,
encrypted or not: the client's hello leaves before anything of the server's is
acknowledged; its Finished only once all of the server's first flight is there, which
its acknowledgement counts; then the request, behind the settings of HTTP/2, before the
client has anything more of the server's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lab.tcp.packets import RST, Segment
from lab.tcp.wire.exchange import Exchange


@dataclass(frozen=True)
class Messages:
    """Bytes of the server's, counted from 0, and of the client's.

    flight_bytes: of the server's first flight over TLS, 0 without TLS. asked_bytes: of
    the client's, its Finished included, before the request. start, end: of the response,
    with what the server says in front of it once the request is there (tickets, settings).
    """

    flight_bytes: int
    asked_bytes: int
    start: int
    end: int


def messages(exchange: Exchange, is_secure: bool, before: int = 0) -> Messages | None:
    """What the packets say; None where there is no whole request, or no answer to it.

    before: so many requests come before the one that counts, a packet each; over TLS none.
    """
    requested = _new_data(exchange.at_server)
    finished = next((s for s in requested if (s.ack or 0) > 1), None) if is_secure else None
    if is_secure and finished is None:
        return None
    if finished is None and len(requested) <= before:
        return None
    request = (requested[before] if finished is None else
               [s for s in requested if s.seq >= finished.seq and s.ack == finished.ack][-1])
    place = exchange.at_server.index(request)
    start = max((s.end for s in exchange.at_server[:place] if s.to_client and s.payload_bytes),
                default=1)
    end = response_end(exchange)
    if end <= start:
        return None
    return Messages((finished.ack or 1) - 1 if finished else 0,
                    finished.end - 1 if finished else 0, start - 1, end - 1)


def timed(exchange: Exchange, found: Messages) -> Exchange:
    """The exchange with the response's times as these messages have them."""
    sent = next((s.time_ns for s in exchange.at_server
                 if s.to_client and s.payload_bytes and s.end > 1 + found.start), None)
    acknowledged = next((s.time_ns for s in exchange.at_server if not s.to_client
                         and s.ack is not None and s.ack >= 1 + found.end), None)
    return replace(exchange, response_start_ns=sent, response_acknowledged_ns=acknowledged)


def _new_data(segments: tuple[Segment, ...]) -> list[Segment]:
    """The client's, those that repeat left out."""
    found: list[Segment] = []
    highest = 1
    for segment in segments:
        if not segment.to_client and segment.payload_bytes and segment.end > highest:
            found.append(segment)
            highest = segment.end
    return found


def response_end(exchange: Exchange) -> int:
    """The sequence number behind the response: what the client had when it closed.

    What a server says to a client that has closed (an alert, GOAWAY) is not part of it.
    """
    last = max((s.end for s in exchange.at_server if s.to_client and s.payload_bytes),
               default=1)
    closed = next((s.ack for s in exchange.at_client if not s.to_client
                   and (s.is_fin or s.flags & RST) and s.ack is not None), None)
    return last if closed is None else min(last, closed)
