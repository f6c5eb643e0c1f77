"""The path: what a frame waits for."""

from __future__ import annotations

from lab.tcp.path import START_JIFFIES, Clock, Link


def test_a_link_serialises_and_queues() -> None:
    link = Link(rtt_ms=20, rate_kbps=56)
    assert link.send(0, 1514) == 10_000_000 + 216_285_714
    assert link.send(0, 66) == 10_000_000 + 216_285_714 + 9_428_571
    assert link.peak_queue == 2
    assert link.send(1_000_000_000, 66) == 1_000_000_000 + 10_000_000 + 9_428_571
    assert link.peak_queue == 2


def test_a_timer_fires_in_the_slot_after_its_jiffy() -> None:
    """As seen in guests whose SYN left 12 µs into a jiffy, on a grid of 4096 (calc_wheel_index)."""
    clock = Clock(phase_ns=12_000)
    sent = 455_400_000
    assert clock.jiffies(sent) == START_JIFFIES + 455
    assert clock.expiry(sent, clock.jiffies(sent) + 40) == 495_988_000
    assert clock.expiry(0, clock.jiffies(0) + 62) == 62_988_000
    assert clock.expiry(0, clock.jiffies(0) + 1000) == 1_055_988_000  # of a SYN
    assert clock.expiry(1_424_816_000, clock.jiffies(1_424_816_000) + 300) == 1_727_988_000
