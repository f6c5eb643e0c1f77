"""Finds the messages of a connection in its packets, for servers that report nothing.

TLS 1.3 shows the order of messages although they are encrypted (RFC 8446, 2). The client's hello
leaves before it acknowledges anything of the server. Its Finished leaves once the server's whole
first flight is there, whose length the acknowledgement shows. Then the request leaves, after the
settings of HTTP/2 and before the client has anything more of the server.

A request in early data is answered before the client's Finished is there, so that the order of
acknowledgements does not distinguish the messages. Then two other facts do: the record of the hello
has its length unencrypted (RFC 8446, 5.1), and a server's first flight without certificates is one
write of less than a segment.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from firstflight.net.headers import RST, TCP, headers
from firstflight.net.path import NEVER
from firstflight.net.segments import CaptureError, Packets, Segment, frames
from firstflight.wire.exchange import Exchange, response_times
from firstflight.wire.flights import split_into_flights


@dataclass(frozen=True)
class Messages:
    """Where the messages of a connection are."""

    flight_bytes: int  # length of the server's first flight over TLS; 0 without TLS
    before_request_bytes: int  # bytes of the client before its request, its Finished included
    # The response in the server's bytes, from 0. What the server sends before it once the request
    # is there (tickets, settings) is included.
    start: int
    end: int


def find_messages(exchange: Exchange, is_secure: bool, before: int = 0) -> Messages | None:
    """The messages in the packets; None if there is no whole request, or no answer to it.

    before: number of requests before the one that counts, each a packet; 0 over TLS.
    """
    requested = _new_data(exchange.at_server)
    flight_bytes = before_request_bytes = 0
    if is_secure:
        finished = next((s for s in requested if (s.ack or 0) > 1), None)
        if finished is None:
            return None
        flight_bytes, before_request_bytes = (finished.ack or 1) - 1, finished.end - 1
        request = [s for s in requested if s.seq >= finished.seq and s.ack == finished.ack][-1]
    else:
        if len(requested) <= before:
            return None
        request = requested[before]

    place = exchange.at_server.index(request)
    start = max((s.end for s in exchange.at_server[:place] if s.to_client and s.payload_bytes),
                default=1)
    end = response_end(exchange)
    if end <= start:
        return None
    return Messages(flight_bytes, before_request_bytes, start - 1, end=end - 1)


def retime(exchange: Exchange, response: Messages) -> Exchange:
    """The exchange, its times of the response those of the bytes that `response` marks."""
    sent, acknowledged = response_times(exchange.at_server, 1 + response.start, 1 + response.end)
    return replace(exchange, response_start_ns=sent, response_acknowledged_ns=acknowledged)


def _new_data(segments: tuple[Segment, ...]) -> list[Segment]:
    """The client's data segments, without retransmissions."""
    new: list[Segment] = []
    highest = 1
    for segment in segments:
        if not segment.to_client and segment.payload_bytes and segment.end > highest:
            new.append(segment)
            highest = segment.end
    return new


def response_end(exchange: Exchange) -> int:
    """The sequence number after the response: as much as the client had when it closed.

    What a server sends to a client that has closed (an alert, GOAWAY) is not part of it.
    """
    last = max((s.end for s in exchange.at_server if s.to_client and s.payload_bytes),
               default=1)
    closed = next((s.ack for s in exchange.at_client if not s.to_client
                   and (s.is_fin or s.flags & RST) and s.ack is not None), None)
    return last if closed is None else min(last, closed)


# Early data (0-RTT) -------------------------------------------------------------------

# A client that offers early data sends a change_cipher_spec after its hello (RFC 8446, D.4).
CHANGE_BYTES = 6
_HANDSHAKE, _RECORD_HEAD_BYTES = 0x16, 5
_OFFSET_AT = 12  # in TCP's header, the byte with the header's length


@dataclass(frozen=True)
class Early:
    """What the packets show of early data."""

    messages: Messages
    wire_bytes: int  # encrypted early data that left before anything came from the server
    answer_ms: float  # from the arrival of all early data at the server to the response
    round_trips: int  # flights in which the hello and the early data left
    segments: int  # segments in which they left


def find_early(exchange: Exchange, client_pcap: Packets, sealed_bytes: int) -> Early:
    """The messages of a connection whose early data was accepted. Raises CaptureError.

    sealed_bytes: length of the early data on the wire, encrypted.
    """
    hello_bytes = _hello_bytes(client_pcap, exchange.client_port) + CHANGE_BYTES
    end = hello_bytes + sealed_bytes
    requested = next((s for s in exchange.at_server
                      if not s.to_client and s.payload_bytes and s.end > end), None)
    sent = [s for s in exchange.at_server if s.to_client and s.payload_bytes]
    if requested is None or not sent:
        raise CaptureError("no whole early data with an answer to it")

    flight_bytes = sent[0].payload_bytes
    start = max([flight_bytes, *(s.end - 1 for s in sent if s.time_ns < requested.time_ns)])
    answer = next((s for s in sent if s.end > 1 + start), None)
    if answer is None:
        raise CaptureError("no answer to the early data")
    messages = Messages(flight_bytes, end, start, end=response_end(exchange) - 1)

    heard_ns = next((s.time_ns for s in exchange.at_client if s.to_client and s.payload_bytes),
                    NEVER)
    left_bytes = max((s.end - 1 for s in exchange.at_client
                      if not s.to_client and s.payload_bytes and s.time_ns < heard_ns), default=0)
    flights = split_into_flights(exchange.at_client, 0, end, to_client=False)
    return Early(messages, wire_bytes=min(left_bytes, end) - hello_bytes,
                 answer_ms=(answer.time_ns - requested.time_ns) / 1e6,
                 round_trips=len(flights), segments=sum(map(len, flights)))


def _hello_bytes(client_pcap: Packets, client_port: int) -> int:
    """The length of a client's first record, from its head. Raises CaptureError."""
    first = b""
    for _, frame, frame_bytes in frames(client_pcap, "client"):
        parsed = headers(frame, frame_bytes)
        if parsed is None or (parsed.protocol, parsed.from_port) != (TCP, client_port):
            continue
        first = parsed.body[(parsed.body[_OFFSET_AT] >> 4) * 4:]
        if first:
            break

    if len(first) < _RECORD_HEAD_BYTES or first[0] != _HANDSHAKE:
        raise CaptureError("a connection that does not begin with a hello of TLS")
    return _RECORD_HEAD_BYTES + int.from_bytes(first[3:_RECORD_HEAD_BYTES], "big")
