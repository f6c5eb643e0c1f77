"""The model: closed forms against published tables, the stepped course against both."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from lab import model, tcp
from lab.model import Transfer, predict, rounds

WINDOWS = (3, 6, 10, 16, 26, 42)  # the paper's Figure 2
# Round trips with an acknowledgement for every segment, by segments and window.
ROUNDS = {3: (1, 1, 1, 1, 1, 1), 4: (2, 1, 1, 1, 1, 1), 7: (2, 2, 1, 1, 1, 1),
          10: (3, 2, 1, 1, 1, 1), 15: (3, 2, 2, 1, 1, 1), 30: (4, 3, 2, 2, 2, 1),
          50: (5, 4, 3, 3, 2, 2), 100: (6, 5, 4, 3, 3, 2)}
# RFC 6928, 5.1: segments, round trips with IW 3 and with IW 10, delayed acknowledgements.
RFC_6928 = [(3, 1, 1), (6, 2, 1), (10, 3, 1), (12, 3, 2), (21, 4, 2), (25, 5, 2), (33, 5, 3),
            (46, 6, 3), (51, 6, 4), (78, 7, 4), (79, 8, 4), (120, 8, 5), (127, 9, 5)]
BASE = Transfer(rtt_ms=100, bandwidth_kbps=1000, uplink_kbps=1000, initcwnd=3, initrwnd=27,
                response_bytes=9060, request_bytes=95)


def unlimited(segments: int, initcwnd: int) -> Transfer:
    return replace(BASE, bandwidth_kbps=math.inf, uplink_kbps=math.inf, initcwnd=initcwnd,
                   initrwnd=100, response_bytes=segments * model.MSS)


@pytest.mark.parametrize("segments", ROUNDS)
def test_rounds_with_quick_acknowledgements(segments: int) -> None:
    assert tuple(rounds(segments, window) for window in WINDOWS) == ROUNDS[segments]


@pytest.mark.parametrize(("segments", "iw3", "iw10"), RFC_6928)
def test_rounds_with_delayed_acknowledgements(segments: int, iw3: int, iw10: int) -> None:
    # The RFC steps through whole segments: at 79 and 127 a window of 3 is one
    # segment short, which the closed form does not see.
    rounded_down = {79: 1, 127: 1}.get(segments, 0)
    assert rounds(segments, 3, 1.5) == iw3 - rounded_down
    assert rounds(segments, 10, 1.5) == iw10


def test_the_largest_saving_is_three_round_trips() -> None:
    """Section 1 of the paper: ⌈log_1.5(10/3)⌉."""
    savings = {rounds(segments, 3, 1.5) - rounds(segments, 10, 1.5)
               for segments in range(10, 2000)}
    assert max(savings) == math.ceil(math.log(10 / 3, 1.5)) == 3


def test_equation_1() -> None:
    # Ten segments of 1430 B, 70 ms, 1.2 Mbit/s: the paper's average user.
    sending_s = 10 * 1430 * 8 / 1.2e6
    assert model.eq1_latency_s(10, 3, 0.070, sending_s) == pytest.approx(3 * 0.07 + sending_s)
    assert model.eq1_latency_s(10, 10, 0.070, sending_s) == pytest.approx(0.07 + sending_s)
    assert model.eq1_latency_s(10, 3, 0.070, 0, gamma=2) == pytest.approx(0.21)


def test_equation_2() -> None:
    assert model.eq2_latency_s(2, 0.1, 12500, 1000) == pytest.approx(0.3)


@pytest.mark.parametrize(("segments", "window", "gamma"), [(0, 3, 2), (3, 0, 2), (3, 3, 1)])
def test_rounds_of_nothing(segments: int, window: int, gamma: float) -> None:
    with pytest.raises(ValueError, match="rounds of"):
        rounds(segments, window, gamma)


def test_a_window_that_fits_exactly() -> None:
    for window in range(1, 60):
        for count in range(1, 12):
            full = window * (2 ** count - 1)
            assert (rounds(full, window), rounds(full + 1, window)) == (count, count + 1)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("segments", ROUNDS)
def test_unlimited_bandwidth_leaves_the_rounds(segments: int, window: int) -> None:
    prediction = predict(unlimited(segments, window))
    expected = rounds(segments, window)
    if (segments, window) == (100, 42):
        expected += 1  # 58 segments are more than the receive window has grown to
    assert prediction.latency_ms == expected * 100
    assert prediction.connect_ms == 100 and prediction.first_byte_ms == 200
    assert prediction.total_ms == (1 + expected) * 100
    assert prediction.first_flight == min(window, segments)
    assert prediction.slow_start_end == 0 and prediction.timer_causes == ()


def test_one_segment_by_hand() -> None:
    """Handshake, request, acknowledgement and segment, each store and forward."""
    one = replace(BASE, response_bytes=500, bandwidth_kbps=800, uplink_kbps=80)
    up, down = 0.1, 0.01  # ms a byte
    connect = 100 + 74 * (up + down)
    request = connect + 50 + (66 + 66 + 95) * up
    first_byte = request + 50 + (66 + 66 + 500) * down
    prediction = predict(one)
    assert prediction.connect_ms == pytest.approx(connect, abs=1e-5)
    assert prediction.first_byte_ms == pytest.approx(first_byte, abs=1e-5)
    assert prediction.total_ms == prediction.first_byte_ms
    assert prediction.latency_ms == pytest.approx(first_byte - request + 50 + 66 * up, abs=1e-5)


def test_a_slow_link_is_never_idle() -> None:
    """Where the link sets the pace, the window makes no difference to the total."""
    slow = replace(BASE, rtt_ms=20, bandwidth_kbps=256, uplink_kbps=256)
    totals = {predict(replace(slow, initcwnd=window)).total_ms for window in (3, 6, 10)}
    assert len(totals) == 1
    sending_ms = (9060 + 7 * 66) * 8 / 256
    first_byte_ms = predict(slow).first_byte_ms
    assert totals.pop() == pytest.approx(first_byte_ms + sending_ms - 1514 * 8 / 256, abs=1e-3)


def test_windows_help_up_to_the_response() -> None:
    totals = [predict(replace(BASE, initcwnd=window)).total_ms for window in range(1, 12)]
    assert totals == sorted(totals, reverse=True)
    assert totals[6] == totals[-1]  # seven segments


def test_the_receive_window_limits_the_first_flight() -> None:
    wide = replace(BASE, initcwnd=42, response_bytes=60_000)
    flights = [predict(replace(wide, initrwnd=segments)).first_flight
               for segments in (4, 10, 27, 44)]
    # A window of 10 · 1460 bytes has room for ten segments of 1448 and a short one.
    assert flights == [4, 11, 27, 42]


def test_hystart_ends_slow_start_from_16_segments_on() -> None:
    long = replace(BASE, bandwidth_kbps=5000, uplink_kbps=5000, initcwnd=16, rtt_ms=70,
                   response_bytes=300_000, initrwnd=44)
    assert predict(long).slow_start_end >= 16
    assert predict(replace(long, congestion_control="reno")).slow_start_end == 0
    assert predict(replace(long, response_bytes=9060, initcwnd=10)).slow_start_end == 0


def test_a_pause_of_the_back_end_delays_the_rest() -> None:
    paused = replace(BASE, initcwnd=10, burst_bytes=4300, gap_ms=300)
    late, at_once = predict(paused), predict(replace(BASE, initcwnd=10))
    assert late.first_byte_ms == at_once.first_byte_ms
    assert late.latency_ms > 300 + 100
    # Meanwhile the acknowledgements of the burst have made IW 3 as good as IW 10.
    assert predict(replace(paused, initcwnd=3)).latency_ms == late.latency_ms


def test_a_later_response_finds_the_window_grown() -> None:
    later = replace(BASE, earlier_bytes=20_000, earlier_request_bytes=96)
    prediction = predict(later)
    assert prediction.connect_ms == 0 and prediction.started_ms > 300
    assert prediction.latency_ms < predict(BASE).latency_ms - 70
    assert prediction.first_flight == 3  # the connection's


@pytest.mark.parametrize(("changes", "causes"), [
    ({}, ()),
    ({"rtt_ms": 900}, ()),
    ({"rtt_ms": 1001}, (model.SYN_TIMER, model.SYN_ACK_TIMER)),
    ({"rtt_ms": 20, "bandwidth_kbps": 256}, (model.PROBE,)),
    ({"rtt_ms": 20, "bandwidth_kbps": 56, "uplink_kbps": 56},
     (model.PROBE, model.RETRANSMISSION_TIMER)),
    ({"rtt_ms": 500, "bandwidth_kbps": 56, "uplink_kbps": 56}, ()),
])
def test_timers_that_physics_makes_fire(changes: dict[str, float],
                                        causes: tuple[str, ...]) -> None:
    assert model.timer_causes(replace(BASE, **changes)) == causes


def test_a_link_serialises_and_queues() -> None:
    link = tcp.Link(rtt_ms=20, rate_kbps=56)
    assert link.send(0, 1514) == 10_000_000 + 216_285_714
    assert link.send(0, 66) == 10_000_000 + 216_285_714 + 9_428_571
    assert link.peak_queue == 2
    assert link.send(1_000_000_000, 66) == 1_000_000_000 + 10_000_000 + 9_428_571
    assert link.peak_queue == 2


def test_the_peak_of_the_queue() -> None:
    # Seven segments behind the acknowledgement of the request, and the FIN.
    assert predict(replace(BASE, initcwnd=10, bandwidth_kbps=100)).peak_queue == 9
    assert predict(replace(BASE, initcwnd=3, bandwidth_kbps=100)).peak_queue < 9
    assert predict(replace(BASE, initcwnd=10, bandwidth_kbps=math.inf)).peak_queue == 1
