"""The congestion window of a sender that pauses, is not used up, or is paced: rule by rule."""

from __future__ import annotations

import pytest

from firstflight.model.congestion import WindowUse, additive_increase
from firstflight.model.receiver import RECEIVE_BUFFERS, Receiver
from firstflight.model.sender import Sender
from firstflight.net.path import Clock, Sent
from firstflight.net.segments import MS, MSS

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
