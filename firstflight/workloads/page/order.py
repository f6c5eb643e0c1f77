"""Checks the order in which a page was loaded: when each object was named and requested."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from typing import NamedTuple

from firstflight.net.segments import MS, Segment
from firstflight.setting.server import HTTP_1, HTTP_2
from firstflight.wire.delivery.host import PAUSE_LATE_NS, Pauses, find_uncaused_of
from firstflight.workloads.page.record import PageEvidence
from firstflight.workloads.page.timing import ConnectionTimes, Loaded

# When data arrives, libcurl tries to read each stream of HTTP/2, and over TLS each transfer. The
# guest has one CPU, so the server waits meanwhile. Each failed attempt takes so long by the guest's
# clock:
READ_NS = 1_000
# From this version on libcurl tries to read each transfer, also over HTTP/1.1 without TLS, in each
# round of its work.
FIRST_NEWER = 8
NEWER_ROUNDS = 3  # the most rounds before a request (observed with 8.14 and 8.23)
# Over HTTP/2 nginx tries in vain to read more before it writes. The longest time observed:
NGINX_NS = 5_000
# connect() returns at once (EINPROGRESS), after so long by the guest's clock. While the client
# connects to hundreds of hosts in a row it notices no arrivals, and the server waits for the one
# CPU.
CONNECT_NS = 1_000


def time_faults(evidence: PageEvidence, allowed_ms: float) -> Iterator[str]:
    """The times that the client reports and packets do not show, in words."""
    for connection in evidence.connections.values():
        for place, loaded in enumerate(connection.objects):
            if evidence.trial.http == HTTP_2:
                times_ns = _times_over_2(evidence, connection, loaded, allowed_ms=allowed_ms)
            else:
                times_ns = _times_over_1(connection, place)
            for name, at_ns in times_ns.items():
                reported_ms, at_ms = loaded.time_ms(name), _since_begun_ms(evidence, at_ns)
                if at_ms is None or abs(reported_ms - at_ms) > allowed_ms:
                    yield (f"object {loaded.number} {name} {reported_ms:.3f}, by its packets"
                           f" {_in_words(at_ms)}")


def _times_over_1(connection: ConnectionTimes, place: int) -> dict[str, int | None]:
    """An object's times over HTTP/1.1 as packets show them, in ns; None where no packet shows one.

    place: of the object on its connection, from 0. The first object starts with the connection.
    """
    start_ns: int | None = connection.opened_ns
    if place:
        requested_ns = connection.requested_ns
        start_ns = requested_ns[place] if place < len(requested_ns) else None
    return {"start_ms": start_ns,
            "first_byte_ms": connection.arrived_ns(connection.readable(place, 1)),
            "end_ms": connection.arrived_ns(connection.starts[place + 1])}


def _times_over_2(evidence: PageEvidence, connection: ConnectionTimes, loaded: Loaded, *,
                  allowed_ms: float) -> dict[str, int | None]:
    """The arrivals at about an object's times over HTTP/2, in ns; None where nothing arrived."""
    times_ns = {}
    for name in ("first_byte_ms", "end_ms"):
        at_ns = evidence.begun_ns + round(loaded.time_ms(name) * MS)
        times_ns[name] = arrival_near(connection, at_ns, allowed_ms)
    return times_ns


def _since_begun_ms(evidence: PageEvidence, at_ns: int | None) -> float | None:
    """A packet's time in ms since the page began; None for no packet."""
    return None if at_ns is None else (at_ns - evidence.begun_ns) / MS


def _in_words(at_ms: float | None) -> str:
    """A packet's time in ms as messages have it."""
    return "no packet" if at_ms is None else f"{at_ms:.3f}"


def arrival_near(connection: ConnectionTimes, at_ns: int, allowed_ms: float, later_ms: float = 0.0
                 ) -> int | None:
    """When in-order data first arrived at about a time, in ns; None where nothing arrived then.

    It may arrive up to allowed_ms after the time, and up to allowed_ms + later_ms before it.
    """
    _, times = connection.steps
    place = bisect_left(times, at_ns - round((allowed_ms + later_ms) * MS))
    is_near = place < len(times) and times[place] <= at_ns + allowed_ms * MS
    return times[place] if is_near else None


def naming_faults(evidence: PageEvidence, allowed_ms: float) -> Iterator[str]:
    """Objects that the client knew of before the bytes with the name arrived, or long after."""
    came_on: dict[int, tuple[ConnectionTimes, int]] = {}  # by number: connection, and place on it
    for connection in evidence.connections.values():
        for place, loaded in enumerate(connection.objects):
            came_on[loaded.number] = connection, place

    for number, (report, requested) in enumerate(
            zip(evidence.objects, evidence.trial.requested), start=1):
        named_ms = report["named_ms"] or 0.0
        at_ms: float | None = 0.0
        if requested.named_by:
            connection, place = came_on[requested.named_by]
            if evidence.trial.http == HTTP_1:
                header_bytes = connection.objects[place].report["header_bytes"]
                name_end = connection.readable(place, header_bytes + max(requested.at_byte, 1))
                at_ns = connection.arrived_ns(name_end)
            else:
                reported_ns = evidence.begun_ns + round(named_ms * MS)
                at_ns = arrival_near(connection, reported_ns, allowed_ms)
            at_ms = _since_begun_ms(evidence, at_ns)
        if at_ms is None or abs(named_ms - at_ms) > allowed_ms:
            yield (f"object {number} named at {named_ms:.3f}, by its packets"
                   f" {_in_words(at_ms)}")


def order_faults(evidence: PageEvidence, allowed_ms: float) -> Iterator[str]:
    """Objects that were not requested in their turn and as soon as possible, in words."""
    yield from naming_faults(evidence, allowed_ms)
    trial = evidence.trial
    by_host: dict[int, list[_Turn]] = {}
    for number, (report, requested) in enumerate(zip(evidence.objects, trial.requested), start=1):
        due_ms = (report["named_ms"] or 0.0) + requested.parse_ms
        turn = _Turn(number, due_ms, report["start_ms"] or 0.0, report["end_ms"] or 0.0)
        by_host.setdefault(requested.host, []).append(turn)

    most = trial.connections if trial.http == HTTP_1 else len(evidence.objects)
    for turns in by_host.values():
        yield from _host_faults(turns, most, allowed_ms)


class _Turn(NamedTuple):
    """When an object was transferred."""

    number: int
    due_ms: float  # when it could be requested
    start_ms: float
    end_ms: float


def _host_faults(turns: Sequence[_Turn], most: int, allowed_ms: float) -> Iterator[str]:
    """Objects of one host that start too soon, too late, or before one whose turn it was.

    most: how many transfers may run at once.
    """
    def running(at_ms: float) -> int:
        return sum(turn.start_ms <= at_ms < turn.end_ms for turn in turns)

    ends_ms = sorted(turn.end_ms for turn in turns)
    for number, due_ms, start_ms, _ in turns:
        if start_ms < due_ms - allowed_ms:
            yield f"object {number} was requested at {start_ms:.3f} and named at {due_ms:.3f}"
        elif running(start_ms) > most:
            yield f"object {number} was one of {running(start_ms)} at once, of {most}"
        elif start_ms > due_ms + allowed_ms:
            # At these times something changed: just after one it starts, if a connection is free.
            chances_ms = [due_ms, *(end_ms for end_ms in ends_ms
                                    if due_ms < end_ms < start_ms - allowed_ms)]
            was_overtaken = any(
                other.due_ms > due_ms + allowed_ms and other.start_ms < start_ms - allowed_ms
                for other in turns)
            if any(running(at_ms + allowed_ms / 2) < most for at_ms in chances_ms):
                yield f"object {number} waited from {due_ms:.3f} to {start_ms:.3f} without need"
            elif was_overtaken:
                yield f"object {number} was overtaken by one that was named later"


def uncaused_data(evidence: PageEvidence) -> list[Segment]:
    """The data segments that left a host without a cause there.

    Data that reach the client on one connection may let it send on another one. At the server each
    response depends on its own connection only. Where a timer spreads responses (pacing), the
    server is not judged.
    """
    trial, tick_ns = evidence.trial, evidence.tick_ns
    reads_ns, exchanges = reading_ns(evidence), evidence.all_exchanges.values()
    thinks_ns = {round(requested.think_ms * MS) for requested in trial.requested
                 if requested.think_ms}
    parses_ns = {round(requested.parse_ms * MS) for requested in trial.requested
                 if requested.parse_ms}
    pauses = Pauses(thinks_ns, parses_ns, PAUSE_LATE_NS + reads_ns)

    # A packet that arrives in the same nanosecond in which another one leaves is its cause.
    at_client = sorted(chain.from_iterable(exchange.at_client for exchange in exchanges),
                       key=lambda segment: (segment.time_ns, not segment.to_client))
    without_cause = list(find_uncaused_of(at_client, False, tick_ns, pauses=pauses,
                                          more_ns=reads_ns))
    if trial.paces:
        return without_cause

    waits_ns = reads_ns if _is_newer(evidence) else 0
    if trial.http == HTTP_2:
        waits_ns += NGINX_NS
    busy = _connecting_spans(evidence)
    for exchange in exchanges:
        at_server = _with_waits(exchange.at_server, busy)
        without_cause += find_uncaused_of(at_server, True, tick_ns, pauses=pauses, more_ns=waits_ns)
    return without_cause


def _with_waits(at_server: Sequence[Segment], busy: Sequence[tuple[int, int]]) -> list[Segment]:
    """A server's segments, with copies of those that arrived while the client had the CPU.

    A copy arrives when the CPU is free. busy: from when to when the client had the CPU, in ns.
    """
    waited = []
    for segment in at_server:
        span = _span_around(busy, segment.time_ns)
        if span is not None and not segment.to_client:
            _, free_ns = span
            waited.append(segment._replace(time_ns=free_ns))
    return sorted((*waited, *at_server), key=lambda segment: segment.time_ns)


def _span_around(spans: Sequence[tuple[int, int]], at_ns: int) -> tuple[int, int] | None:
    """The span that contains a time; None where no span does. spans: from when to when, sorted."""
    place = bisect_left(spans, (at_ns + 1,)) - 1  # of the last span that begins up to then
    return spans[place] if place >= 0 and at_ns <= spans[place][1] else None


def reading_ns(evidence: PageEvidence) -> int:
    """How long the client may try in vain to read, in ns of a guest's clock."""
    if _is_newer(evidence):
        return READ_NS * NEWER_ROUNDS * _most_transfers(evidence)
    tries_each = evidence.trial.http == HTTP_2 or evidence.trial.is_secure
    return READ_NS * _most_transfers(evidence) if tries_each else 0


def connecting_ns(evidence: PageEvidence) -> int:
    """The longest time that the client opened connections in a row, in ns of a guest's clock."""
    spans = _connecting_spans(evidence)
    return max((until_ns - since_ns for since_ns, until_ns in spans), default=0)


def _connecting_spans(evidence: PageEvidence) -> list[tuple[int, int]]:
    """From when to when the client opened several connections in a row, in ns."""
    spans: list[tuple[int, int]] = []
    for connection in evidence.connections.values():
        opened_ns = connection.opened_ns
        until_ns = opened_ns + CONNECT_NS
        if spans and opened_ns - spans[-1][1] <= CONNECT_NS:
            spans[-1] = spans[-1][0], until_ns
        else:
            spans.append((opened_ns, until_ns))
    return [(since_ns, until_ns) for since_ns, until_ns in spans
            if until_ns - since_ns > CONNECT_NS]


def _is_newer(evidence: PageEvidence) -> bool:
    """Whether the client's libcurl tries to read every transfer in each round."""
    major = evidence.observation.get("libcurl", "").partition(".")[0]
    return major.isdecimal() and int(major) >= FIRST_NEWER


def _most_transfers(evidence: PageEvidence) -> int:
    """The most objects that were under way at once."""
    changes = []
    for loaded in evidence.objects:
        changes += [(loaded["end_ms"] or 0.0, -1), (loaded["start_ms"] or 0.0, 1)]
    return max(accumulate(change for _, change in sorted(changes)))
