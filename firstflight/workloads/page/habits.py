"""Checks that a client uses its connections again."""

from __future__ import annotations

from collections.abc import Iterator

from firstflight.base.comparison import Comparison
from firstflight.setting.server import HTTP_1
from firstflight.workloads.page.record import PageEvidence


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
