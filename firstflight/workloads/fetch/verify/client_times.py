"""Checks the client's times (connect, first byte, TLS, total) against the capture at the client.

curl's clock begins with the SYN, or with the request on a connection that is open already. It ends
when the packet arrives that completes what the client waits for. wget's time is that of its
process, which starts earlier and ends later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from firstflight.base.comparison import Comparison
from firstflight.judge.checklist import Judging
from firstflight.net.headers import SYN
from firstflight.net.path import serialised_ms
from firstflight.net.segments import MS, Segment
from firstflight.setting.server import OWN
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.record.evidence import Evidence
from firstflight.workloads.fetch.verify.integrity import is_on_wire
from firstflight.workloads.fetch.record.transfers import wire_bytes

_ARP_BYTES = 42  # the length of an ARP request, and that of its reply


def _compare_client_times(evidence: Evidence) -> Iterable[Comparison]:
    """Compare the times that the client reports."""
    at_client, fetch, trial = evidence.wire.at_client, evidence.fetch, evidence.trial
    response = _response(evidence)
    if response is None:
        return
    start, first_end, end = response
    begun_ns = next((segment.time_ns for segment in at_client if not segment.to_client), None)
    if trial.before:
        begun_ns = _requested_ns(at_client, start)
    if begun_ns is None:
        return
    begun_ns -= round(evidence.arp_wait_ms * MS)

    first = _arrivals(at_client, first_end)
    completed = _arrivals(at_client, end + (trial.framing == "close"))
    # The end of a response by the user's own server is not known, nor is the length of nginx's
    # first record.
    yield from _compare(evidence, "total", begun_ns, reported_ms=fetch.get("total_ms"),
                        earliest=first[:1] if trial.server == OWN else completed,
                        latest=completed[-1:])
    if trial.client == "wget":
        return

    is_known = evidence.has_report or not trial.is_secure
    yield from _compare(evidence, "first byte", begun_ns, reported_ms=fetch.get("first_byte_ms"),
                        earliest=first, latest=first[-1:] if is_known else completed[-1:])

    answered = [begun_ns]
    if not trial.before:
        answered = [segment.time_ns for segment in at_client
                    if segment.to_client and segment.flags & SYN][:1]
    yield from _compare(evidence, "connect", begun_ns, reported_ms=fetch.get("connect_ms"),
                        earliest=answered, latest=answered)

    if "tls" in evidence.report:
        finished = _arrivals(at_client, 1 + sum(evidence.report["tls"]["flight"]))
        yield from _compare(evidence, "TLS", begun_ns, reported_ms=fetch.get("appconnect_ms"),
                            earliest=finished, latest=finished[-1:])


def _response(evidence: Evidence) -> tuple[int, int, int] | None:
    """Three sequence numbers: the response's begin, the end of its first readable part, its end.

    A TLS record can be read only when all of it has arrived. None where the response has no bytes.
    """
    if evidence.messages is not None:
        start, end = evidence.messages.start, evidence.messages.end
        return 1 + start, 2 + start, 1 + end

    size = wire_bytes(evidence.report)
    end = max((segment.end for segment in evidence.wire.at_server
               if segment.to_client and segment.payload_bytes), default=1)
    if not size:
        return None
    records = evidence.report["tls"]["response"] if "tls" in evidence.report else (1,)
    return end - size, end - size + records[0], end


def _requested_ns(at_client: Sequence[Segment], start: int) -> int | None:
    """When the request left whose response begins at sequence number `start`.

    It is for connections with earlier responses. None where no such request is found.
    """
    begun_ns: int | None = None
    # Sequence numbers: the end of what was requested and received, and received_before, the end of
    # what was received when the last request began.
    requested, received, received_before = 1, 1, 0
    for segment in at_client:
        if segment.to_client:
            if segment.payload_bytes and segment.end > start:
                break
            received = max(received, segment.end)
        elif segment.payload_bytes and segment.end > requested:
            if received > received_before:  # otherwise another segment of the same request
                begun_ns, received_before = segment.time_ns, received
            requested = segment.end
    return begun_ns


def _arrivals(at_client: Sequence[Segment], end: int) -> list[int]:
    """When all data before sequence number `end` had arrived, in ns; [] where it never had.

    Arrivals after that follow in the list, until the client acknowledges the data: a receiver that
    is short of memory drops segments that arrived out of order (tcp_prune_ofo_queue), and waits for
    a retransmission.
    """
    complete = 1  # the sequence number up to which all data has arrived
    waiting: dict[int, int] = {}  # the ends of segments that arrived out of order, by their begins
    times: list[int] = []
    for segment in at_client:
        if not segment.to_client:
            if times and (segment.ack or 0) >= end:
                break
            continue
        if not (segment.payload_bytes or segment.is_fin):
            continue

        if segment.seq <= complete:
            complete = max(complete, segment.end_with_fin)
            while waiting and min(waiting) <= complete:
                complete = max(complete, waiting.pop(min(waiting)))
        else:
            waiting[segment.seq] = max(segment.end_with_fin, waiting.get(segment.seq, 0))
        if complete >= end:
            times.append(segment.time_ns)
    return times


def _compare(evidence: Evidence, name: str, begun_ns: int, *, reported_ms: float | None,
             earliest: Sequence[int], latest: Sequence[int]) -> Iterable[Comparison]:
    """Compare a time of the client with its capture.

    The time ends with one of the packets of `earliest`, or between the first of them and the last
    of `latest`. Both are the times of packets, in ns. begun_ns: when the client's clock started.
    name: the time's, for the message.
    """
    if reported_ms is None or not earliest or not latest:
        return
    trial, tolerances = evidence.trial, evidence.tolerances
    early_ms = max(tolerances.client_ms, tolerances.client_share * reported_ms)
    late_ms = early_ms
    if trial.client == "wget":
        late_ms += tolerances.process_ms
    if trial.arp_ms:
        late_ms += serialised_ms(_ARP_BYTES, trial.up_kbps)
        late_ms += serialised_ms(_ARP_BYTES, trial.down_kbps)

    ends_ms = [(time_ns - begun_ns) / MS for time_ns in earliest]
    passed = any(-early_ms <= reported_ms - end_ms <= late_ms for end_ms in ends_ms)
    expected = f"{ends_ms[0]:.3f} ms by its capture"
    if latest[-1] not in earliest:
        last_ms = (latest[-1] - begun_ns) / MS
        passed |= ends_ms[0] - early_ms <= reported_ms <= last_ms + late_ms
        expected = f"{ends_ms[0]:.3f} to {last_ms:.3f} ms by its capture"
    yield Comparison(passed, f"{name} {reported_ms:.3f} ms", expected)


JUDGED: dict[str, Judging[Evidence, Record]] = {
    "client times": Judging(is_on_wire, _compare_client_times)}
