"""The path: what a frame waits for."""

from __future__ import annotations

from lab.tcp.path import Link


def test_a_link_serialises_and_queues() -> None:
    link = Link(rtt_ms=20, rate_kbps=56)
    assert link.send(0, 1514) == 10_000_000 + 216_285_714
    assert link.send(0, 66) == 10_000_000 + 216_285_714 + 9_428_571
    assert link.peak_queue == 2
    assert link.send(1_000_000_000, 66) == 1_000_000_000 + 10_000_000 + 9_428_571
    assert link.peak_queue == 2
