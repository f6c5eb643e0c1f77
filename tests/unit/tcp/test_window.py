"""Windows: CUBIC, and the rules by which a window grows."""

from __future__ import annotations

import pytest

from firstflight.model.congestion import WindowUse, additive_increase
from firstflight.model.receiver import Receiver
from firstflight.model.sender import Sender
from firstflight.model.window import Cubic
from firstflight.net.buffers import RECEIVE_BUFFERS
from firstflight.net.headers import MSS
from firstflight.net.path import NEVER, Clock, Sent
from firstflight.net.segments import MS


SLOW = 1e6  # bytes a second; a cushion of a millisecond
FAST = 1e9  # a cushion of 0.26 ms


def begun(window: int = 100, least_us: int = 100_000, acknowledged: int = 1) -> Cubic:
    """Beyond slow start, since 0 ms."""
    cubic = Cubic(threshold=2, least_us=least_us)
    cubic.grow(0, window, acknowledged)
    return cubic


# Growth ------------------------------------------------------------------------------

def test_slow_start_grows_by_what_is_acknowledged_up_to_the_threshold() -> None:
    cubic = Cubic(threshold=12)
    assert cubic.grow(0, 10, 1) == 11 and cubic.grow(0, 10, 2) == 12
    assert cubic.epoch_ms is None  # not a step beyond
    assert cubic.grow(7, 10, 5) == 12
    assert (cubic.epoch_ms, cubic.credit, cubic.counted, cubic.origin) == (7, 3, 3, 12)


@pytest.mark.parametrize("now_ms, per_segment", [
    # 410 · t³ / 2⁴⁰ segments above the origin, t in 1/1024 s with the least RTT added.
    (31, 20), (1500, 20), (2400, 16), (3000, 9), (4000, 3), (5000, 2), (9000, 2)])
def test_the_window_grows_as_the_cube_of_time(now_ms: int, per_segment: int) -> None:
    cubic = begun()
    assert cubic.per_segment == 20  # 5 % a round trip at least
    cubic.grow(now_ms, 100, 1)
    assert cubic.per_segment == per_segment


def test_a_window_that_stays_is_looked_at_every_32_ms() -> None:
    """HZ / 32 jiffies."""
    cubic = begun()
    cubic.epoch_ms = -5000
    cubic.grow(31, 100, 1)
    assert (cubic.per_segment, cubic.updated_ms) == (20, 0)
    cubic.grow(32, 100, 1)
    assert (cubic.per_segment, cubic.updated_ms) == (2, 32)


def test_a_window_that_grew_is_looked_at_at_once_but_not_twice_in_a_millisecond() -> None:
    cubic = begun()
    cubic.epoch_ms = -5000
    cubic.grow(1, 101, 1)
    assert (cubic.per_segment, cubic.updated_ms, cubic.updated_window) == (2, 1, 101)
    cubic.epoch_ms = 0
    cubic.grow(1, 102, 1)
    assert cubic.per_segment == 2 and cubic.updated_window == 101


@pytest.mark.parametrize("acknowledged, friendly, per_segment", [
    (187, 100, 20), (188, 101, 20), (11 * 187, 110, 10), (11 * 187 + 1, 111, 9),
    (60 * 187, 159, 2)])
def test_it_grows_no_slower_than_reno_would(acknowledged: int, friendly: int,
                                            per_segment: int) -> None:
    """By a segment for every 15/8 windows: beta_scale. Never for fewer than two segments."""
    cubic = begun(acknowledged=0)
    cubic._update(1, 100, acknowledged)
    cubic.updated_ms = -99
    cubic._update(1, 100, 0)
    assert (cubic.friendly, cubic.per_segment) == (friendly, per_segment)


def test_credit_for_a_part_of_a_segment_is_kept() -> None:
    """tcp_cong_avoid_ai()"""
    cubic = begun(acknowledged=19)
    assert cubic.credit == 19
    assert cubic.grow(1, 100, 1) == 101 and cubic.credit == 0
    assert cubic.grow(2, 101, 45) == 103 and cubic.credit == 5
    cubic.credit = 20  # as many as are needed are left over from a larger count
    assert cubic.grow(3, 103, 1) == 104 and cubic.credit == 1


def test_a_pause_does_not_count() -> None:
    cubic = begun()
    cubic.shift(900, 500)
    assert cubic.epoch_ms == 500
    cubic.shift(900, 500)
    assert cubic.epoch_ms == 900, "no later than now"
    fresh = Cubic()
    fresh.shift(900, 500)
    assert fresh.epoch_ms is None


def test_a_timeout_forgets_all_but_the_threshold() -> None:
    cubic = begun(acknowledged=1000)
    cubic.threshold, cubic.samples, cubic.round_least_us = 77, 5, 9
    cubic.reset(4_000_000, 3000)
    assert cubic == Cubic(threshold=77, round_start_us=4_000_000, last_ack_us=4_000_000,
                          round_end=3000, credit=cubic.credit)
    assert cubic.round_least_us == NEVER


# HyStart -----------------------------------------------------------------------------

def round_of(cubic: Cubic, *samples_us: int, window: int = 16, start_us: int = 0,
             every_us: int = 3000) -> int:
    """A round's acknowledgements, too far apart for a train; → the threshold."""
    for place, us in enumerate(samples_us):
        cubic.sample(start_us + place * every_us, us, window, 1000 * (start_us + 1) + place,
                     1000 * (start_us + 2), SLOW)
    return cubic.threshold


@pytest.mark.parametrize("least_us, late_us", [
    (16_000, 4000), (32_000, 4000), (48_000, 6000), (128_000, 16_000), (800_000, 16_000)])
def test_slow_start_ends_when_nine_of_a_round_are_late(least_us: int, late_us: int) -> None:
    """By an eighth of the least RTT, at least 4 ms, at most 16 ms."""
    for more_us, ends in ((0, False), (1, True)):
        cubic = Cubic()
        round_of(cubic, least_us)
        late = least_us + late_us + more_us
        assert round_of(cubic, *[late] * 8, start_us=10**6) == 1 << 30
        assert (round_of(cubic, *[late] * 9, start_us=2 * 10**6) == 16) == ends
        assert cubic.ended_at == (16 if ends else 0)


def test_one_of_a_round_that_is_not_late_keeps_slow_start() -> None:
    cubic = Cubic()
    round_of(cubic, 50_000)
    assert round_of(cubic, *[90_000] * 5, 50_000, *[90_000] * 5, start_us=10**6) == 1 << 30
    # The next round forgets it.
    assert round_of(cubic, *[90_000] * 9, start_us=2 * 10**6) == 16


@pytest.mark.parametrize("window, hystart, ends", [(16, True, True), (15, True, False),
                                                   (16, False, False)])
def test_hystart_begins_at_16_segments(window: int, hystart: bool, ends: bool) -> None:
    cubic = Cubic(hystart=hystart)
    round_of(cubic, 50_000)
    assert (round_of(cubic, *[90_000] * 9, start_us=10**6, window=window) == window) == ends


@pytest.mark.parametrize("spacing_us, pacing, needed_us", [
    (1000, SLOW, 50_500), (2000, SLOW, 50_500), (1000, FAST, 50_130), (2001, SLOW, None)])
def test_slow_start_ends_when_a_train_lasts_half_an_rtt(
        spacing_us: int, pacing: float, needed_us: int | None) -> None:
    """And half of a cushion more: four bursts at the pacing rate, a millisecond at most."""
    cubic = Cubic(least_us=100_000)
    now_us, start_us = 0, 0
    while now_us <= 60_000 and not cubic.ended_at:
        cubic.sample(now_us, 100_000, 20, now_us + 1, 10**9, pacing)
        now_us += spacing_us
    ended_us = now_us - spacing_us if cubic.ended_at else None
    if needed_us is None:
        assert ended_us is None
    else:
        assert ended_us is not None and needed_us < ended_us <= needed_us + spacing_us
    assert start_us == 0


def test_a_train_that_breaks_off_counts_from_the_rounds_begin_on() -> None:
    cubic = Cubic(least_us=100_000)
    cubic.sample(0, 100_000, 20, 1, 10**9, SLOW)
    assert not cubic._is_train(2001, SLOW)  # too late, and not taken for its last
    assert not cubic._is_train(2000, SLOW) and cubic.last_ack_us == 2000


def test_nothing_is_sampled_right_after_slow_start() -> None:
    """cubictcp_acked: for a second of the epoch (as jiffies), its delays are of no use."""
    cubic = Cubic(epoch_ms=5000, least_us=100)
    for now_us, least_us in ((5_999_999, 100), (6_000_000, 50)):
        cubic.sample(now_us, 50, 5, 1, 1, SLOW)
        assert cubic.least_us == least_us


def test_the_least_rtt_is_one_microsecond_at_least() -> None:
    cubic = Cubic()
    cubic.sample(0, 0, 5, 1, 1, SLOW)
    assert cubic.least_us == 1


def test_beyond_the_threshold_hystart_is_over() -> None:
    cubic = Cubic(threshold=16)
    round_of(cubic, 50_000)
    round_of(cubic, *[90_000] * 9, start_us=10**6)
    assert (cubic.threshold, cubic.ended_at, cubic.samples) == (16, 0, 0)


# The window ---------------------------------------------------------------------------

CLOCK = Clock(phase_ns=0)


def made(**more: object) -> Sender:
    """Initial window 10, RTT 100 ms: its timeout is 300 ms."""
    return Sender(mss=MSS, window_end=500_000, clock=CLOCK, handshake_us=100_000, hystart=True,
                  **{"window": 10, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(("idle_ms", "epoch_ms"), [(250, 950), (800, 1200)])
def test_cubics_epoch_moves_by_the_pause_but_not_beyond_now(idle_ms: int, epoch_ms: int) -> None:
    """cubictcp_cwnd_event_tx_start: also where the window stays."""
    sender = made(restart_after_idle=False)
    sender.sent, sender.last_sent_at = 1, (1200 - idle_ms) * MS
    sender.cubic.epoch_ms = 700
    sender.restart_idle(1200 * MS)
    assert (sender.cubic.epoch_ms, sender.window) == (epoch_ms, 10)


@pytest.mark.parametrize(("idle_ms", "restarts", "window", "noted"), [
    (300, True, 40, False), (301, True, 20, True), (601, True, 10, True), (5000, True, 10, True),
    (301, False, 40, False), (5000, False, 40, False)])
def test_a_window_is_halved_for_every_timeout_of_silence(idle_ms: int, restarts: bool,
                                                         window: int, noted: bool) -> None:
    """tcp_cwnd_restart: down to the initial one; three quarters of it are remembered."""
    sender = made(restart_after_idle=restarts)
    sender.window, sender.cubic.threshold, sender.used = 40, 5, 7
    sender.sent, sender.last_sent_at = 1, 1000 * MS
    sender.restart_idle((1000 + idle_ms) * MS)
    assert sender.window == window
    assert (sender.cubic.threshold, sender.used) == ((30, 0) if noted else (5, 7))


def test_options_take_their_place_in_a_full_segment() -> None:
    sender = made()
    sender.reserved = 12
    assert sender.mss_now == MSS - 12


def test_a_window_that_is_not_used_shrinks_once_a_timeout() -> None:
    """tcp_cwnd_application_limited notes when (snd_cwnd_stamp)."""
    sender = made()
    sender.window, sender.use = 40, WindowUse(False, 2)
    windows = []
    for at_ms in (4000, 4299, 4300, 4301, 4600):
        sender.note_use(at_ms * MS, limited=False)
        windows.append(sender.window)
    assert windows == [25, 25, 17, 17, 13]


def test_a_window_without_room_to_write_stays_for_another_timeout() -> None:
    """SOCK_NOSPACE: what limits is the send buffer."""
    sender = made()
    sender.window, sender.use, sender.starved = 40, WindowUse(False, 2), True
    sender.note_use(4000 * MS, limited=False)
    sender.starved = False
    sender.note_use(4299 * MS, limited=False)
    assert sender.window == 40
    sender.note_use(4300 * MS, limited=False)
    assert sender.window == 25


@pytest.mark.parametrize(("used", "window", "threshold"), [(12, 12, 8), (12, 13, 9), (3, 10, 8)])
def test_a_window_that_was_used_up_leaves_the_threshold(used: int, window: int,
                                                        threshold: int) -> None:
    """Only one that shrinks remembers three quarters of itself."""
    sender = made()
    sender.window, sender.used, sender.cubic.threshold = window, used, 8
    sender.note_use(4000 * MS, limited=False)
    assert (sender.window, sender.cubic.threshold) == ((window + max(used, 10)) // 2, threshold)


@pytest.mark.parametrize(("threshold", "percent"), [(1 << 30, 200), (22, 200), (21, 120), (5, 120)])
def test_it_is_paced_twice_as_fast_far_below_the_threshold(threshold: int, percent: int) -> None:
    """tcp_pacing_ss_ratio, tcp_pacing_ca_ratio: of the window each smoothed RTT."""
    sender = made()
    sender.cubic.threshold = threshold
    sender._pace()
    assert sender.pacing == 10 * MSS * 10 * percent // 100


def test_a_timeout_keeps_three_quarters_of_the_window_as_threshold() -> None:
    """tcp_current_ssthresh, for what is undone later; a larger one stays."""
    for threshold, kept in ((8, 30), (35, 35)):
        sender = made()
        sender.window, sender.cubic.threshold = 40, threshold
        sender.time_out(500 * MS)
        assert sender.before_timeout == (40, kept)


@pytest.mark.parametrize(("buffers", "buffer"), [
    ((16_384, 4_194_304), 46_080), ((100_000, 4_194_304), 100_000), ((16_384, 30_000), 30_000)])
def test_a_send_buffer_holds_ten_segments_and_what_tcp_wmem_says(buffers: tuple[int, int],
                                                                 buffer: int) -> None:
    """tcp_sndbuf_expand: 2 × 2304 bytes of memory for each of ten segments at least."""
    assert made(window=3, buffers=buffers).buffer == buffer


@pytest.mark.parametrize(("room", "sent_again"), [(1, 0), (0, MSS)])
def test_a_fin_is_a_byte_of_the_receive_window(room: int, sent_again: int) -> None:
    """tcp_send_loss_probe, tcp_snd_wnd_test: without room the last segment leaves again."""
    sender = made()
    sender.write(0, 10 * MSS, last=True)
    sender.write_fin(0)
    sender.window_end = 10 * MSS + room
    (probe,) = sender.expire(250 * MS)
    assert (probe.payload, probe.retransmitted) == (sent_again, 10 * MSS if sent_again else 0)


# The client's ------------------------------------------------------------------------

@pytest.mark.parametrize(("clamp", "threshold", "at_once"), [
    (19_968, 19_968, True), (19_967, 19_968, False), (19_968, 19_841, True),
    (19_968, 19_840, False)])
def test_a_window_that_could_double_is_told_at_once(clamp: int, threshold: int,
                                                    at_once: bool) -> None:
    """tcp_cleanup_rbuf: no more than half of what may be is left, and twice that can be offered.

    9,984 bytes are left; windows are offered in units of 128 bytes, rounded up.
    """
    receiver = Receiver(initrwnd=44, mss=MSS, connected=0, handshake_us=100_000, clock=CLOCK,
                        buffers=RECEIVE_BUFFERS, unit=128)
    receiver.full, receiver.quick, receiver.window = MSS, 0, 9_984 + MSS
    receiver.clamp, receiver.threshold, receiver.received = clamp, threshold, MSS
    assert receiver.read(1 * MS, Sent(MSS, pushed=False)) == at_once


def test_an_acknowledgement_that_is_due_at_the_same_time_stays_in_its_slot() -> None:
    """__mod_timer: 100 ms ahead slots are 8 ms wide, 50 ms ahead one."""
    receiver = Receiver(initrwnd=44, mss=MSS, connected=0, handshake_us=200_000, clock=CLOCK,
                        buffers=RECEIVE_BUFFERS, unit=128)
    receiver.patience_ms = 100
    assert receiver._delay(0)
    set_for = receiver.timer_at
    receiver.patience_ms = 50
    assert receiver._delay(50 * MS)
    assert receiver.timer_at == set_for != CLOCK.expiry(50 * MS, receiver.timer_due)


@pytest.mark.parametrize(("credit", "acknowledged", "grown", "left"), [
    (0, 9, 0, 9), (0, 10, 1, 0), (9, 1, 1, 0), (3, 25, 2, 8),
    (14, 9, 1, 9), (14, 10, 2, 0)])  # credit that was gathered under a larger window
def test_congestion_avoidance_grows_by_one_for_so_many_segments(
        credit: int, acknowledged: int, grown: int, left: int) -> None:
    """tcp_cong_avoid_ai: what grew before leaves the number of segments as it was."""
    assert additive_increase(10, credit, 10, acknowledged) == (10 + grown, left)
