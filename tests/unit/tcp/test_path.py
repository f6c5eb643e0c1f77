"""The path: what a frame waits for."""

from __future__ import annotations

import pytest

from firstflight.net import path
from firstflight.net.path import START_JIFFIES, Clock
from firstflight.net.waiting import waited_ns


# RTTs, and how long half of them took in a guest, in ns.
@pytest.mark.parametrize(("rtt_ms", "delay_ns"), [
    (32.103, 16_051_968), (6.335, 3_168_000), (53.449, 26_723_968), (435.842, 217_920_960)])
def test_a_delay_is_whole_microseconds_in_ticks_of_64_ns(rtt_ms: float, delay_ns: int) -> None:
    assert path.delay_ns(rtt_ms / 2) == delay_ns


# Pauses, and how much later the server wrote than it had to, in ns; measured in guests.
@pytest.mark.parametrize(("pause_ms", "late_ns"), [
    (1.331, 1332), (3.156, 3157), (5.108, 105), (305.427, 3127), (750.432, 686)])
def test_the_server_waits_up_to_a_thousandth_longer(pause_ms: float, late_ns: int) -> None:
    pause_ns = round(pause_ms * 1e6)
    assert waited_ns(pause_ns) - pause_ns == pytest.approx(late_ns, abs=2)


def test_a_timer_fires_in_the_slot_after_its_jiffy() -> None:
    """As seen in guests whose SYN left 12 µs into a jiffy, on a grid of 4096 (calc_wheel_index)."""
    clock = Clock(phase_ns=12_000)
    sent = 455_400_000
    assert clock.jiffies(sent) == START_JIFFIES + 455
    assert clock.expiry(sent, clock.jiffies(sent) + 40) == 495_988_000
    assert clock.expiry(0, clock.jiffies(0) + 62) == 62_988_000
    assert clock.expiry(0, clock.jiffies(0) + 1000) == 1_055_988_000  # of a SYN
    assert clock.expiry(1_424_816_000, clock.jiffies(1_424_816_000) + 300) == 1_727_988_000
