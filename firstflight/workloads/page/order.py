"""Checks the order in which a page was loaded: when each object was named and requested."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

from firstflight.net.segments import MS, Segment
from firstflight.setting.server import HTTP_1, HTTP_2
from firstflight.wire.delivery.host import PAUSE_LATE_NS, Pauses, uncaused
from firstflight.workloads.page.record import PageEvidence
from firstflight.workloads.page.timing import ConnectionTimes, Loaded

# When data arrive, libcurl tries to read each stream of HTTP/2, over TLS each transfer, and each
# failed attempt takes a microsecond of the guest's clock. From 8 on it tries each transfer of any
# version, in each round of its work, of which up to three come before a request (observed with 8.14
# and 8.23). A guest has one CPU, so a server waits for it as long.
READ_NS = 1_000
NEWER_ROUNDS = 3
FIRST_NEWER = 8
# Over HTTP/2 nginx asks in vain for more between what comes and what it writes; 5 µs were observed.
NGINX_NS = 5_000
# connect() does not wait, and fails by that (EINPROGRESS). While the client connects to hundreds of
# hosts in a row it notes nothing that comes, and the server waits for the one CPU.
CONNECT_NS = 1_000


def time_faults(evidence: PageEvidence, allowed_ms: float) -> Iterator[str]:
    """Times that the client reports and its packets do not show, in words."""
    for connection in evidence.connections.values():
        for place, loaded in enumerate(connection.objects):
            for name, at_ms in _packet_times(evidence, connection, place, loaded, allowed_ms):
                said_ms = loaded.time_ms(name)
                if at_ms is None or abs(said_ms - at_ms) > allowed_ms:
                    packet = "no packet" if at_ms is None else f"{at_ms:.3f}"
                    yield f"object {loaded.number} {name} {said_ms:.3f}, by its packets {packet}"


def _packet_times(evidence: PageEvidence, connection: ConnectionTimes, place: int,
                  loaded: Loaded, allowed_ms: float) -> Iterator[tuple[str, float | None]]:
    """Each of an object's times by the packets, in ms; None where no packet is near it."""
    def since(at_ns: int | None) -> float | None:
        return None if at_ns is None else (at_ns - evidence.begun_ns) / MS

    if evidence.trial.http == HTTP_2:
        for name in ("first_byte_ms", "end_ms"):
            yield name, since(near(connection, evidence.begun_ns
                                    + round(loaded.time_ms(name) * MS), allowed_ms))
        return
    starts, requests = connection.starts, connection.requested_ns
    if not place:
        yield "start_ms", since(connection.opened_ns)
    else:
        yield "start_ms", since(requests[place] if place < len(requests) else None)
    yield "first_byte_ms", since(connection.arrived_ns(connection.readable(place, 1)))
    yield "end_ms", since(connection.arrived_ns(starts[place + 1]))


def near(connection: ConnectionTimes, at_ns: int, allowed_ms: float, later_ms: float = 0.0
         ) -> int | None:
    """The arrival of in-order data next to a time, in ns; None where nothing arrived near it.

    later_ms: by how much more the time may be later than the arrival.
    """
    _, times = connection.steps
    place = bisect_left(times, at_ns - round((allowed_ms + later_ms) * MS))
    return times[place] if place < len(times) and times[place] <= at_ns + allowed_ms * MS else None


def named_faults(evidence: PageEvidence, allowed_ms: float) -> Iterator[str]:
    """Objects that the client named before the bytes with the name arrived, or long after."""
    where = {}
    for connection in evidence.connections.values():
        for place, loaded in enumerate(connection.objects):
            where[loaded.number] = connection, place

    for number, (report, requested) in enumerate(
            zip(evidence.objects, evidence.trial.requested), start=1):
        named_ms = report["named_ms"] or 0.0
        at_ms: float | None = 0.0
        if requested.named_by:
            connection, place = where[requested.named_by]
            if evidence.trial.http == HTTP_1:
                header_bytes = connection.objects[place].report["header_bytes"]
                named_at = connection.readable(place, header_bytes + max(requested.at_byte, 1))
                at_ns = connection.arrived_ns(named_at)
            else:
                at_ns = near(connection, evidence.begun_ns + round(named_ms * MS), allowed_ms)
            at_ms = None if at_ns is None else (at_ns - evidence.begun_ns) / MS
        if at_ms is None or abs(named_ms - at_ms) > allowed_ms:
            by_packets = "no packet" if at_ms is None else f"{at_ms:.3f}"
            yield f"object {number} named at {named_ms:.3f}, by its packets {by_packets}"


def order_faults(evidence: PageEvidence, allowed_ms: float) -> Iterator[str]:
    """Objects that were not requested in their turn and as soon as possible, in words."""
    yield from named_faults(evidence, allowed_ms)
    trial = evidence.trial
    by_host: dict[int, list[tuple[int, float, float, float]]] = {}
    for number, (report, requested) in enumerate(zip(evidence.objects, trial.requested), start=1):
        due_ms = (report["named_ms"] or 0.0) + requested.parse_ms
        by_host.setdefault(requested.host, []).append(
            (number, due_ms, report["start_ms"] or 0.0, report["end_ms"] or 0.0))
    most = trial.connections if trial.http == HTTP_1 else len(evidence.objects)
    for objects in by_host.values():
        yield from _host_faults(objects, most, allowed_ms)


def _host_faults(objects: Sequence[tuple[int, float, float, float]], most: int,
                 allowed_ms: float) -> Iterator[str]:
    """Objects of one host that start too soon, too late, or before one whose turn it was.

    objects: (number, due, start, end) in ms. most: how many transfers may run at once.
    """
    def running(at_ms: float) -> int:
        return sum(start <= at_ms and end > at_ms for _, _, start, end in objects)

    ends = sorted(end for _, _, _, end in objects)
    for number, due, start, _ in objects:
        if start < due - allowed_ms:
            yield f"object {number} was requested at {start:.3f} and named at {due:.3f}"
        elif running(start) > most:
            yield f"object {number} was one of {running(start)} at once, of {most}"
        elif start > due + allowed_ms:
            waited = [due + allowed_ms / 2, *(end + allowed_ms / 2 for end in ends
                                              if due < end < start - allowed_ms)]
            if any(running(at_ms) < most for at_ms in waited):
                yield f"object {number} waited from {due:.3f} to {start:.3f} without need"
            elif any(other_due > due + allowed_ms and other_start < start - allowed_ms
                     for _, other_due, other_start, _ in objects):
                yield f"object {number} was overtaken by one that was named later"


def uncaused_data(evidence: PageEvidence) -> list[Segment]:
    """The data segments that left a host without a cause there.

    At the client, data that arrive on one connection may let it send on another one. At the server
    each response depends on its own connection only, unless a timer spreads it (pacing).
    """
    reads_ns, requested = reading_ns(evidence), evidence.trial.requested
    pauses = Pauses({round(each.think_ms * MS) for each in requested if each.think_ms},
                    {round(each.parse_ms * MS) for each in requested if each.parse_ms},
                    PAUSE_LATE_NS + reads_ns)
    exchanges = {**evidence.every, **evidence.exchanges}.values()
    # A packet that arrives in the same nanosecond in which another one leaves is its cause.
    at_client = sorted((segment for exchange in exchanges for segment in exchange.at_client),
                       key=lambda segment: (segment.time_ns, not segment.to_client))
    found = list(uncaused(at_client, False, evidence.tick_ns, pauses, reads_ns))
    if not evidence.trial.paces:
        waits_ns = reads_ns if _is_newer(evidence) else 0
        if evidence.trial.http == HTTP_2:
            waits_ns += NGINX_NS
        busy = _connecting(evidence)
        found += [segment for exchange in exchanges for segment in uncaused(
            _with_waits(exchange.at_server, busy), True, evidence.tick_ns, pauses, waits_ns)]
    return found


def _with_waits(at_server: Sequence[Segment], busy: Sequence[tuple[int, int]]) -> list[Segment]:
    """A server's segments; what came while the client had the CPU comes again when it was free.

    busy: from when to when, in ns.
    """
    waited = [segment._replace(time_ns=until_ns) for segment in at_server if not segment.to_client
              for _, until_ns in _around(busy, segment.time_ns)]
    return sorted((*waited, *at_server), key=lambda segment: segment.time_ns)


def _around(spans: Sequence[tuple[int, int]], at_ns: int) -> Sequence[tuple[int, int]]:
    """Those of the spans, in order of time, in which a time lies."""
    place = bisect_left(spans, (at_ns + 1,))
    return [span for span in spans[max(0, place - 1):place] if at_ns <= span[1]]


def reading_ns(evidence: PageEvidence) -> int:
    """How long the client may try to read what has nothing for it, in ns of a guest's clock."""
    if _is_newer(evidence):
        return READ_NS * NEWER_ROUNDS * _most_transfers(evidence)
    tries_each = evidence.trial.http == HTTP_2 or evidence.trial.is_secure
    return READ_NS * _most_transfers(evidence) if tries_each else 0


def connecting_ns(evidence: PageEvidence) -> int:
    """The longest time that the client opened connections in a row, in ns of a guest's clock."""
    return max((until_ns - since_ns for since_ns, until_ns in _connecting(evidence)), default=0)


def _connecting(evidence: PageEvidence) -> list[tuple[int, int]]:
    """From when to when the client opened several connections in a row, in ns."""
    spans: list[tuple[int, int]] = []
    for opened_ns in (connection.opened_ns for connection in evidence.connections.values()):
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
    steps = sorted((at_ms or 0.0, change) for each in evidence.objects
                   for at_ms, change in ((each["end_ms"], -1), (each["start_ms"], 1)))
    return max(accumulate(change for _, change in steps))
