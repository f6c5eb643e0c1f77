"""Checks of what hosts do by habit: answer at once, use a connection again."""

from __future__ import annotations

from collections.abc import Iterator

from firstflight.base.comparison import Comparison
from firstflight.net.segments import MS, Segment
from firstflight.setting.server import HTTP_1
from firstflight.wire.delivery.host import SERVER_LATE_NS
from firstflight.workloads.page.record import PageEvidence


def late_answers(evidence: PageEvidence) -> list[Segment]:
    """Data of a server that paces which left long after the request, with nothing before it.

    What it sent before may make the pacer wait; after half an RTT without data it does not.
    """
    trial = evidence.trial
    if not trial.paces or trial.disorder or any(each.think_ms for each in trial.requested):
        return []
    idle_ns = round(trial.rtt_ms * MS / 2)
    found: list[Segment] = []
    for exchange in evidence.exchanges.values():
        if exchange.lost_to_client or exchange.lost_to_server or exchange.retransmissions:
            continue
        requested_ns = sent_ns = acknowledged = sent = 0
        for segment in exchange.at_server:
            if not segment.to_client:
                acknowledged = max(acknowledged, segment.ack or 0)
                if segment.payload_bytes:
                    requested_ns = segment.time_ns
                continue
            if not segment.payload_bytes:
                continue
            is_first = requested_ns > sent_ns and acknowledged >= sent
            if is_first and requested_ns - sent_ns > idle_ns and (
                    segment.time_ns - requested_ns > SERVER_LATE_NS):
                found.append(segment)
            sent_ns, sent = segment.time_ns, max(sent, segment.end)
    return found


def compare_reuse(evidence: PageEvidence, allowed_ms: float) -> Iterator[Comparison]:
    """Over HTTP/1.1 no connection is opened while one to the same host is free."""
    trial = evidence.trial
    if trial.http != HTTP_1:
        return
    by_host: dict[int, list[tuple[float, list[tuple[float, float]]]]] = {}
    for connection in evidence.connections.values():
        if connection.objects:
            host = trial.requested[connection.objects[0].number - 1].host
            spans = [(each.time_ms("start_ms"), each.time_ms("end_ms"))
                     for each in connection.objects]
            by_host.setdefault(host, []).append((spans[0][0], spans))

    for host, opened in by_host.items():
        for at_ms, _ in opened:
            free = sum(first < at_ms and not any(
                start <= at_ms and end > at_ms - allowed_ms for start, end in spans)
                for first, spans in opened)
            yield Comparison(not free, f"one more to host {host} at {at_ms:.3f} ms while {free}"
                             f" {'was' if free == 1 else 'were'} free", "none", "connections")
