"""The path: what a frame waits for."""

from __future__ import annotations

import pytest

from lab.tcp.path import START_JIFFIES, Clock, Link, waited_ns


def test_a_link_serialises_and_queues() -> None:
    link = Link(rtt_ms=20, rate_kbps=56)
    late = 2  # ns, one for each netem
    assert link.send(0, 1514) == 10_000_000 + 216_285_714 + late
    assert link.send(0, 66) == 10_000_000 + 216_285_714 + 9_428_571 + late
    assert link.peak_queue == 2
    assert link.send(1_000_000_000, 66) == 1_000_000_000 + 10_000_000 + 9_428_571 + late
    assert link.peak_queue == 2


# RTTs, and how long half of them took in a guest, in ns.
@pytest.mark.parametrize(("rtt_ms", "delay_ns"), [
    (32.103, 16_051_968), (6.335, 3_168_000), (53.449, 26_723_968), (435.842, 217_920_960)])
def test_a_delay_is_whole_microseconds_in_ticks_of_64_ns(rtt_ms: float, delay_ns: int) -> None:
    assert Link(rtt_ms, 1000).delay_ns == delay_ns


# Pauses, and how much later the server wrote than it had to, in ns; measured in guests.
@pytest.mark.parametrize(("pause_ms", "late_ns"), [
    (1.331, 1332), (3.156, 3157), (5.108, 105), (305.427, 3127), (750.432, 686)])
def test_the_server_waits_up_to_a_thousandth_longer(pause_ms: float, late_ns: int) -> None:
    pause_ns = round(pause_ms * 1e6)
    assert waited_ns(pause_ns) - pause_ns == pytest.approx(late_ns, abs=2)


def test_timers_of_the_guest_are_half_a_microsecond_apart() -> None:
    """Small frames on a fast link, as measured: 66 bytes at 3.5 Gbit/s take 169 ns, and more."""
    link = Link(rtt_ms=11.761, rate_kbps=3_488_510)
    delay_ns = 5_880_000
    assert link.send(0, 74) == delay_ns + 1 + 501 + 1
    # What comes within half a microsecond of that is late, too.
    assert link.send(600, 1514) - (delay_ns + 1) == 502 + 501 + 3471 + 1
    assert link.peak_queue == 1


def test_a_late_timer_keeps_a_packet_in_the_queue() -> None:
    link = Link(rtt_ms=11.761, rate_kbps=3_488_510)
    left = link.send(0, 74)
    link.send(left - link.delay_ns - 2, 74)  # sent by its rate, and still there
    assert link.peak_queue == 2
    other = Link(rtt_ms=11.761, rate_kbps=3_488_510)
    other.send(0, 74)
    other.send(left - link.delay_ns - 1, 74)
    assert other.peak_queue == 1


def test_a_timer_fires_in_the_slot_after_its_jiffy() -> None:
    """As seen in guests whose SYN left 12 µs into a jiffy, on a grid of 4096 (calc_wheel_index)."""
    clock = Clock(phase_ns=12_000)
    sent = 455_400_000
    assert clock.jiffies(sent) == START_JIFFIES + 455
    assert clock.expiry(sent, clock.jiffies(sent) + 40) == 495_988_000
    assert clock.expiry(0, clock.jiffies(0) + 62) == 62_988_000
    assert clock.expiry(0, clock.jiffies(0) + 1000) == 1_055_988_000  # of a SYN
    assert clock.expiry(1_424_816_000, clock.jiffies(1_424_816_000) + 300) == 1_727_988_000
