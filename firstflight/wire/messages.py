"""Finds the messages of a connection in its packets, for servers that report nothing.

TLS 1.3 shows the order of messages although they are encrypted (RFC 8446, 2). The client's hello
leaves before the client acknowledges anything of the server. The client's Finished leaves once all
of the server's first flight has arrived; its acknowledgement shows the length of that flight. Then
the request leaves, after the settings of HTTP/2 and before anything else of the server arrives.

A request in early data is answered before the client's Finished has arrived. Then the order of
acknowledgements does not distinguish the messages, but two other facts do. The record of the hello
has its length unencrypted (RFC 8446, 5.1). And a server's first flight without certificates is one
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
    """The places of a connection's messages in the bytes of both sides."""

    flight_bytes: int  # length of the server's first flight over TLS; 0 without TLS
    before_request_bytes: int  # bytes that the client sends before its request, with its Finished
    # The response in the server's bytes, which count from 0. It includes the tickets and settings
    # that the server sends before it once the request has arrived.
    start: int
    end: int


def find_messages(exchange: Exchange, is_secure: bool, earlier_requests: int = 0
                  ) -> Messages | None:
    """The messages in the packets; None if there is no whole request, or no answer to it.

    earlier_requests: how many requests there are before the one that counts, each in one packet; 0
    over TLS.
    """
    client_data = _new_data(exchange.at_server)
    flight_bytes = before_request_bytes = 0
    if is_secure:
        finished = next((s for s in client_data if (s.ack or 0) > 1), None)
        if finished is None:
            return None
        flight_bytes, before_request_bytes = (finished.ack or 1) - 1, finished.end - 1
        request = [s for s in client_data if s.seq >= finished.seq and s.ack == finished.ack][-1]
    else:
        if len(client_data) <= earlier_requests:
            return None
        request = client_data[earlier_requests]

    place = exchange.at_server.index(request)
    start = max((s.end for s in exchange.at_server[:place] if s.to_client and s.payload_bytes),
                default=1)
    end = response_end(exchange)
    if end <= start:
        return None
    return Messages(flight_bytes, before_request_bytes, start - 1, end=end - 1)


def retime(exchange: Exchange, response: Messages) -> Exchange:
    """The exchange with the times of the response that `response` marks."""
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
    """The sequence number after the response: after the data that the client had when it closed.

    An alert or GOAWAY that a server sends to a client that has closed is no part of the response.
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
    """The early data of a connection, and its answer, as packets show them."""

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
    early_end = hello_bytes + sealed_bytes
    request = next((s for s in exchange.at_server
                    if not s.to_client and s.payload_bytes and s.end > early_end), None)
    sent = [s for s in exchange.at_server if s.to_client and s.payload_bytes]
    if request is None or not sent:
        raise CaptureError("no whole early data with an answer to it")

    flight_bytes = sent[0].payload_bytes
    start = max([flight_bytes, *(s.end - 1 for s in sent if s.time_ns < request.time_ns)])
    answer = next((s for s in sent if s.end > 1 + start), None)
    if answer is None:
        raise CaptureError("no answer to the early data")
    messages = Messages(flight_bytes, before_request_bytes=early_end, start=start,
                        end=response_end(exchange) - 1)

    # How much the client had sent when the server's first data came.
    first_data_ns = next((s.time_ns for s in exchange.at_client
                          if s.to_client and s.payload_bytes), NEVER)
    left_bytes = max((s.end - 1 for s in exchange.at_client if not s.to_client
                      and s.payload_bytes and s.time_ns < first_data_ns), default=0)
    flights = split_into_flights(exchange.at_client, 0, early_end, to_client=False)
    return Early(messages, wire_bytes=min(left_bytes, early_end) - hello_bytes,
                 answer_ms=(answer.time_ns - request.time_ns) / 1e6,
                 round_trips=len(flights), segments=sum(map(len, flights)))


def _hello_bytes(client_pcap: Packets, client_port: int) -> int:
    """The length of a client's first record, its head included. Raises CaptureError."""
    first = b""  # the payload of the client's first segment with data
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
