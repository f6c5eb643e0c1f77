"""When the bytes of a page arrived, as its packets show.

Over HTTP/1.1 the responses of a connection follow one another, so each byte has a known sequence
number. That holds in TLS's records, too, whose lengths follow from the text
(tls_records.sealed_sizes). A byte in a record can be read when all of the record has come. Over
HTTP/2 responses are interleaved, and captures have headers only: a time can only be compared with
the arrivals of packets.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from firstflight.net.headers import SYN
from firstflight.net.segments import Segment
from firstflight.testbed.hosts.tls_records import sealed_sizes
from firstflight.testbed.messages import Download
from firstflight.wire.exchange import Exchange
from firstflight.wire.messages import response_end


@dataclass(frozen=True)
class Loaded:
    """An object as the client reported it."""

    number: int  # in the page, from 1
    report: Download

    def time_ms(self, name: str) -> float:
        """One of the report's times, in ms. Raises KeyError where the report lacks it."""
        value = self.report[name]  # type: ignore[literal-required]
        if not isinstance(value, (int, float)):
            raise KeyError(name)
        return value


@dataclass(frozen=True)
class ConnectionTimes:
    """One connection, and the objects that arrived on it."""

    exchange: Exchange
    objects: tuple[Loaded, ...]  # in the order of their requests
    record_bytes: int = 0  # the most text in one record of TLS; 0 without TLS

    @cached_property
    def opened_ns(self) -> int:
        """When the first SYN left the client, in ns; 0 without a SYN."""
        return self.exchange.syns[0].time_ns if self.exchange.syns else 0

    @cached_property
    def steps(self) -> tuple[list[int], list[int]]:
        """How far data had arrived without a gap, step by step.

        The first list has rising sequence numbers, the second when each was reached, in ns.
        """
        ends, times = [1], [0]
        for segment, complete in with_arrived(self.exchange.at_client, to_client=True):
            if segment.payload_bytes and complete > ends[-1]:
                ends.append(complete)
                times.append(segment.time_ns)
        return ends, times

    def arrived_ns(self, end: int) -> int | None:
        """When everything before a sequence number had arrived, in ns; None for never."""
        ends, times = self.steps
        place = bisect_left(ends, end)
        return times[place] if place < len(times) else None

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The sequence number of each response's first byte over HTTP/1.1, and of the last end.

        Over TLS they are counted backwards: the last response ends where the server's data ends.
        """
        sizes = [self._on_wire(loaded.report["header_bytes"] + loaded.report["size"])
                 for loaded in self.objects]
        first = response_end(self.exchange) - sum(sizes) if self.record_bytes else 1
        return tuple(accumulate(sizes, initial=first))

    def _on_wire(self, text_bytes: int) -> int:
        """The bytes that a text takes, in records if it goes over TLS."""
        if not self.record_bytes:
            return text_bytes
        return sum(sealed_sizes(text_bytes, self.record_bytes))

    def readable(self, place: int, text_bytes: int) -> int:
        """The sequence number up to which data has to come before part of a response can be read.

        place: of the response on the connection, from 0. text_bytes: how many bytes of its headers
        and body shall be read.
        """
        report = self.objects[place].report
        if self.record_bytes:
            in_whole_records = -(-text_bytes // self.record_bytes) * self.record_bytes
            text_bytes = min(in_whole_records, report["header_bytes"] + report["size"])
        return self.starts[place] + self._on_wire(text_bytes)

    @property
    def sent_end(self) -> int:
        """The sequence number after the last byte that the server sent."""
        return max((segment.end for segment in self.exchange.at_server
                    if segment.to_client and segment.payload_bytes), default=1)

    @cached_property
    def sent(self) -> list[Segment]:
        """The client's segments of data, without retransmissions."""
        return new_data(self.exchange.at_client)

    @cached_property
    def requests(self) -> list[Segment]:
        """The client's segments of data, without retransmissions and TLS's handshake.

        Over HTTP/1.1 each request is one segment.
        """
        if self.finished is None:
            return self.sent
        return self.sent[self.sent.index(self.finished) + 1:]

    @cached_property
    def requested_ns(self) -> tuple[int, ...]:
        """When each segment of `requests` left the client, in ns."""
        return tuple(segment.time_ns for segment in self.requests)

    @cached_property
    def finished(self) -> Segment | None:
        """The client's segment with the end of TLS's handshake; None without TLS.

        It is the client's first data that acknowledges data of the server.
        """
        if not self.record_bytes:
            return None
        return next((segment for segment in self.sent if (segment.ack or 0) > 1), None)

    @property
    def flight_bytes(self) -> int:
        """How many bytes the server's messages up to its Finished have; 0 without TLS.

        These are the bytes that the client acknowledges with its own Finished.
        """
        return (self.finished.ack or 1) - 1 if self.finished is not None else 0


# A host discards data whose time stamp is older than the last one that it noted by more than so
# many ticks (TCP_PAWS_WINDOW). With jitter a retransmitted segment may overtake the first one.
PAWS_WINDOW = 1


def with_arrived(at_host: Sequence[Segment], to_client: bool) -> Iterator[tuple[Segment, int]]:
    """Yield each segment at a host, with the sequence number below which all data had arrived.

    That number is 0 before a SYN arrived. to_client: whether the host is the client. Data that the
    host discards by its time stamp has not arrived (RFC 7323, 5.3; tcp_paws_discard,
    tcp_replace_ts_recent).
    """
    waiting: dict[int, int] = {}  # data behind a gap: its end by its first sequence number
    complete = acknowledged = 0
    noted: int | None = None  # the last time stamp
    for segment in at_host:
        if segment.to_client != to_client:
            acknowledged = segment.ack or acknowledged
            yield segment, complete
            continue

        is_old = (noted is not None and segment.stamp is not None and segment.payload_bytes > 0
                  and noted - segment.stamp > PAWS_WINDOW)
        if segment.flags & SYN:
            complete = max(complete, 0 if segment.seq else 1)
        elif not is_old and segment.seq > complete:
            waiting[segment.seq] = max(segment.end_with_fin, waiting.get(segment.seq, 0))
        elif not is_old:
            complete = max(complete, segment.end_with_fin)
            while waiting and min(waiting) <= complete:
                complete = max(complete, waiting.pop(min(waiting)))

        # The host notes the time stamp of a segment that is neither behind a gap nor acknowledged.
        is_next = segment.seq <= acknowledged <= segment.end_with_fin
        if segment.stamp is not None and (noted is None or is_next):
            noted = max(segment.stamp, noted or 0)
        yield segment, complete


def unfounded_acks(exchange: Exchange) -> Iterator[Segment]:
    """Segments that acknowledge more than had arrived at the host that sent them."""
    for at_host, to_client in ((exchange.at_client, True), (exchange.at_server, False)):
        for segment, complete in with_arrived(at_host, to_client):
            if segment.to_client != to_client and (segment.ack or 0) > complete:
                yield segment


def new_data(at_client: Sequence[Segment]) -> list[Segment]:
    """The client's data segments, without retransmissions."""
    new: list[Segment] = []
    highest = 1
    for segment in at_client:
        if not segment.to_client and segment.payload_bytes and segment.end > highest:
            highest = segment.end
            new.append(segment)
    return new


def by_connection(objects: Sequence[Download], exchanges: Mapping[int, Exchange],
                  record_bytes: int = 0) -> dict[int, ConnectionTimes]:
    """The connections with their objects, by the client's port, in the order of their SYNs.

    record_bytes: as in ConnectionTimes.
    """
    by_port: dict[int, list[Loaded]] = {port: [] for port in exchanges}
    for number, report in enumerate(objects, start=1):
        by_port.setdefault(report["port"], []).append(Loaded(number, report))

    connections = {}
    for port, exchange in exchanges.items():
        in_order = sorted(by_port[port], key=lambda loaded: loaded.time_ms("start_ms"))
        connections[port] = ConnectionTimes(exchange, tuple(in_order), record_bytes)
    return dict(sorted(connections.items(), key=lambda item: item[1].opened_ns))
