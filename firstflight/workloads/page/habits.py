"""Checks that a client reuses its connections."""

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
    # By host, for each connection: from when to when each of its objects was under way, in ms.
    spans_by_host: dict[int, list[list[tuple[float, float]]]] = {}
    for connection in evidence.connections.values():
        if connection.objects:
            host = trial.requested[connection.objects[0].number - 1].host
            spans = [(loaded.time_ms("start_ms"), loaded.time_ms("end_ms"))
                     for loaded in connection.objects]
            spans_by_host.setdefault(host, []).append(spans)

    for host, connections in spans_by_host.items():
        for opened in connections:
            opened_ms, _ = opened[0]
            free = 0  # earlier connections that had no object under way when this one was opened
            for spans in connections:
                first_ms, _ = spans[0]
                is_busy = any(start_ms <= opened_ms and end_ms > opened_ms - allowed_ms
                              for start_ms, end_ms in spans)
                free += first_ms < opened_ms and not is_busy
            yield Comparison(not free, f"one more to host {host} at {opened_ms:.3f} ms while {free}"
                             f" {'was' if free == 1 else 'were'} free", "none", "connections")
