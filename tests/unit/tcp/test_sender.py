"""Rules of the model's sender and receiver that seldom change the length of a transfer."""

from __future__ import annotations

import pytest

from firstflight.model.congestion import WindowUse, additive_increase
from firstflight.model.receiver import Receiver, receive_window, window_unit
from firstflight.model.sender import Sender
from firstflight.model.simulate import ReadCalls
from firstflight.model.timers import LossTimer
from firstflight.model.transfer import Secure
from firstflight.model.window import Cubic
from firstflight.net.buffers import RECEIVE_BUFFERS
from firstflight.net.headers import MSS
from firstflight.net.path import NEVER, Clock, RoundTrip, Sent
from firstflight.net.segments import MS
from tests.transfers import transfer

CLOCK = Clock(phase_ns=0)


@pytest.fixture
def timer() -> LossTimer:
    """The timer of a connection with one sample of the RTT, 100 ms: its timeout is 300 ms."""
    round_trip = RoundTrip()
    round_trip.sample(100_000, new_round=False)
    timer = LossTimer(CLOCK, round_trip, probes=True)
    timer.update_timeout()
    return timer


@pytest.fixture
def sender() -> Sender:
    return Sender(mss=MSS, window=10, window_end=500_000, clock=CLOCK, handshake_us=100_000,
                  hystart=True)


@pytest.fixture
def receiver() -> Receiver:
    return Receiver(initrwnd=44, mss=MSS, connected=100 * MS, handshake_us=100_000, clock=CLOCK,
                    buffers=RECEIVE_BUFFERS, unit=128)


def test_two_acknowledgements_in_one_packet_use_one_quick_acknowledgement(receiver: Receiver
                                                                          ) -> None:
    """tcp_dec_quickack_mode"""
    receiver.received = 1000
    receiver.receive_duplicate(0, Sent(500, pushed=False, retransmitted=1000), echo=0, sent_at=0)
    receiver.acknowledge()
    assert receiver.quick == 15


def test_a_tail_loss_probe_sends_a_waiting_fin(sender: Sender) -> None:
    """tcp_send_fin, tcp_send_loss_probe"""
    sender.write(0, 10 * MSS, last=True)
    assert sender.write_fin(0) == []
    assert sender.expire(250 * MS) == [Sent(0, pushed=False)]
    assert sender.in_flight == 11 and not sender.retransmitted
    assert [segment.retransmitted for segment in sender.expire(10_000 * MS)] == [MSS]


def test_a_timeout_ends_hystarts_round(sender: Sender) -> None:
    """bictcp_reset"""
    sender.cubic.least_us, sender.cubic.epoch_ms, sender.cubic.credit = 100_000, 5, 7
    sender.write(0, 3 * MSS, last=True)
    sender.timer.probe = False
    assert [segment.retransmitted for segment in sender.expire(300 * MS)] == [MSS]
    assert (sender.cubic.least_us, sender.cubic.epoch_ms, sender.cubic.credit) == (0, None, 0)
    assert sender.retransmitted == 1 and sender.timer.timeout == 600


@pytest.mark.parametrize(("least_us", "pacing", "segments"), [
    (511, 0, 45), (512, 0, 22), (1023, 0, 22), (1024, 0, 11), (1536, 0, 5), (2048, 0, 2),
    (100_000, 0, 2), (100_000, 10_000_000, 6), (1536, 10_000_000, 12), (511, 10**9, 45),
    (100_000, 2_965_503, 2), (100_000, 4_448_256, 3)])
def test_an_skb_holds_a_millisecond_of_the_pacing_rate_and_more_on_short_paths(
        sender: Sender, least_us: int, pacing: int, segments: int) -> None:
    """tcp_tso_autosize adds 64 kB, halved for every 512 µs of the least RTT.

    pacing: in bytes a second.
    """
    sender.round_trip.least_us, sender.pacing = least_us, pacing
    assert sender.batch_segments() == segments


def test_a_connection_without_any_answer_is_given_up(sender: Sender) -> None:
    """A prediction that goes wrong would otherwise never end."""
    sender.write(0, 3 * MSS, last=True)
    fired: list[int] = []
    while sender.timer.at is not None and len(fired) < 100:
        fired.append(sender.timer.at)
        sent = sender.expire(sender.timer.at)
    assert not sent
    # The first is a probe. Timeouts follow until one comes 924.6 s after the first timeout.
    assert fired[-2] - fired[1] < 924_600 * MS <= fired[-1] - fired[1]


def test_an_unsent_probe_leaves_the_rest_of_the_timeout(timer: LossTimer) -> None:
    timer.resume(100 * MS, oldest_sent_at=0)
    assert not timer.probe and timer.due - CLOCK.jiffies(100 * MS) == 200


def test_an_acknowledgement_resets_the_give_up_timer(timer: LossTimer) -> None:
    timer.back_off(0)
    assert not timer.gives_up(924_599 * MS) and timer.gives_up(924_600 * MS)
    timer.back_off(500_000 * MS)
    assert timer.gives_up(924_600 * MS), "time counts from the first of successive timeouts"
    timer.note_acknowledged(600_000 * MS, packets=1)
    assert not timer.gives_up(924_600 * MS)


# Windows: CUBIC, and the rules by which a window grows --------------------------------

SLOW = 1e6  # a pacing rate in bytes a second, at which HyStart's cushion is its largest, 1 ms


def begun(window: int = 100, least_us: int = 100_000, acknowledged: int = 1) -> Cubic:
    """CUBIC that has left slow start at 0 ms."""
    cubic = Cubic(threshold=2, least_us=least_us)
    cubic.grow(0, window, acknowledged)
    return cubic


# Growth ------------------------------------------------------------------------------


@pytest.mark.parametrize("acknowledged, friendly, per_segment", [
    (187, 100, 20), (188, 101, 20), (11 * 187, 110, 10), (11 * 187 + 1, 111, 9),
    (60 * 187, 159, 2)])
def test_cubic_grows_no_slower_than_reno_would(acknowledged: int, friendly: int,
                                               per_segment: int) -> None:
    """Reno's window grows by a segment for every 15/8 windows (beta_scale).

    friendly: the window of Reno. per_segment: acknowledged segments for each of growth, 2 at least.
    """
    cubic = begun(acknowledged=0)
    cubic._update(1, 100, acknowledged)
    cubic.updated_ms = -99
    cubic._update(1, 100, 0)
    assert (cubic.friendly, cubic.per_segment) == (friendly, per_segment)


def test_a_timeout_resets_cubic_except_its_threshold() -> None:
    cubic = begun(acknowledged=1000)
    cubic.threshold, cubic.samples, cubic.round_least_us = 77, 5, 9
    cubic.reset(4_000_000, 3000)
    assert cubic == Cubic(threshold=77, round_start_us=4_000_000, last_ack_us=4_000_000,
                          round_end=3000, credit=cubic.credit)
    assert cubic.round_least_us == NEVER


# HyStart -----------------------------------------------------------------------------

def round_of(cubic: Cubic, *samples_us: int, window: int = 16, start_us: int = 0,
             every_us: int = 3000) -> int:
    """The threshold after a round with these RTTs.

    Acknowledgements come every_us apart, which is too far apart for HyStart's ACK train.
    """
    for place, us in enumerate(samples_us):
        cubic.sample(start_us + place * every_us, us, window, 1000 * (start_us + 1) + place,
                     1000 * (start_us + 2), SLOW)
    return cubic.threshold


@pytest.mark.parametrize("least_us, late_us", [
    (16_000, 4000), (32_000, 4000), (48_000, 6000), (128_000, 16_000), (800_000, 16_000)])
def test_slow_start_ends_when_nine_samples_of_a_round_are_late(least_us: int, late_us: int) -> None:
    """A sample is late by an eighth of the least RTT, by 4 ms at least and 16 ms at most."""
    for more_us, ends in ((0, False), (1, True)):
        cubic = Cubic()
        round_of(cubic, least_us)
        late = least_us + late_us + more_us
        assert round_of(cubic, *[late] * 8, start_us=10**6) == 1 << 30
        assert (round_of(cubic, *[late] * 9, start_us=2 * 10**6) == 16) == ends
        assert cubic.ended_at == (16 if ends else 0)


# The sender's window ------------------------------------------------------------------

def made(**more: object) -> Sender:
    """A sender with an initial window of 10, an RTT of 100 ms and a timeout of 300 ms."""
    return Sender(mss=MSS, window_end=500_000, clock=CLOCK, handshake_us=100_000, hystart=True,
                  **{"window": 10, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(("idle_ms", "restarts", "window", "noted"), [
    (300, True, 40, False), (301, True, 20, True), (601, True, 10, True), (5000, True, 10, True),
    (301, False, 40, False), (5000, False, 40, False)])
def test_a_window_is_halved_for_every_timeout_of_silence(idle_ms: int, restarts: bool,
                                                         window: int, noted: bool) -> None:
    """tcp_cwnd_restart halves it down to the initial window.

    noted: whether three quarters of the window became the threshold.
    """
    sender = made(restart_after_idle=restarts)
    sender.window, sender.cubic.threshold, sender.used = 40, 5, 7
    sender.sent, sender.last_sent_at = 1, 1000 * MS
    sender.restart_idle((1000 + idle_ms) * MS)
    assert sender.window == window
    assert (sender.cubic.threshold, sender.used) == ((30, 0) if noted else (5, 7))


@pytest.mark.parametrize(("idle_ms", "epoch_ms"), [(250, 950), (800, 1200)])
def test_cubics_epoch_moves_by_the_pause_but_not_beyond_now(idle_ms: int, epoch_ms: int) -> None:
    """See cubictcp_cwnd_event_tx_start. The epoch moves even where the window stays."""
    sender = made(restart_after_idle=False)
    sender.sent, sender.last_sent_at = 1, (1200 - idle_ms) * MS
    sender.cubic.epoch_ms = 700
    sender.restart_idle(1200 * MS)
    assert (sender.cubic.epoch_ms, sender.window) == (epoch_ms, 10)


def test_reserved_options_make_a_full_segment_shorter() -> None:
    sender = made()
    sender.reserved = 12
    assert sender.mss_now == MSS - 12


def test_a_window_that_is_not_used_shrinks_once_a_timeout() -> None:
    """tcp_cwnd_application_limited notes the time in snd_cwnd_stamp."""
    sender = made()
    sender.window, sender.use = 40, WindowUse(False, 2)
    windows = []
    for at_ms in (4000, 4299, 4300, 4301, 4600):
        sender.note_use(at_ms * MS, limited=False)
        windows.append(sender.window)
    assert windows == [25, 25, 17, 17, 13]


def test_a_window_does_not_shrink_while_the_send_buffer_limits() -> None:
    """SOCK_NOSPACE is set then. The next timeout counts from that moment."""
    sender = made()
    sender.window, sender.use, sender.starved = 40, WindowUse(False, 2), True
    sender.note_use(4000 * MS, limited=False)
    sender.starved = False
    sender.note_use(4299 * MS, limited=False)
    assert sender.window == 40
    sender.note_use(4300 * MS, limited=False)
    assert sender.window == 25


@pytest.mark.parametrize(("used", "window", "threshold"), [(12, 12, 8), (12, 13, 9), (3, 10, 8)])
def test_only_a_window_that_shrinks_leaves_three_quarters_of_itself_as_threshold(
        used: int, window: int, threshold: int) -> None:
    sender = made()
    sender.window, sender.used, sender.cubic.threshold = window, used, 8
    sender.note_use(4000 * MS, limited=False)
    assert (sender.window, sender.cubic.threshold) == ((window + max(used, 10)) // 2, threshold)


@pytest.mark.parametrize(("threshold", "percent"), [(1 << 30, 200), (22, 200), (21, 120), (5, 120)])
def test_pacing_is_at_200_percent_below_half_the_threshold_and_at_120_above(
        threshold: int, percent: int) -> None:
    """Percent of a window for each smoothed RTT: tcp_pacing_ss_ratio, tcp_pacing_ca_ratio."""
    sender = made()
    sender.cubic.threshold = threshold
    sender._pace()
    assert sender.pacing == 10 * MSS * 10 * percent // 100


def test_a_timeout_keeps_three_quarters_of_the_window_as_threshold() -> None:
    """See tcp_current_ssthresh, which undoing the timeout needs. A larger threshold stays."""
    for threshold, kept in ((8, 30), (35, 35)):
        sender = made()
        sender.window, sender.cubic.threshold = 40, threshold
        sender.enter_loss(500 * MS)
        assert sender.before_timeout == (40, kept)


# The client's receive window, and growth in congestion avoidance ----------------------

@pytest.mark.parametrize(("clamp", "threshold", "at_once"), [
    (19_968, 19_968, True), (19_967, 19_968, False), (19_968, 19_841, True),
    (19_968, 19_840, False)])
def test_a_receive_window_that_could_double_is_offered_at_once(clamp: int, threshold: int,
                                                               at_once: bool) -> None:
    """tcp_cleanup_rbuf acknowledges at once where the offered window could be twice what is left.

    9,984 bytes are left. Windows are offered in units of 128 bytes, rounded up.
    """
    receiver = Receiver(initrwnd=44, mss=MSS, connected=0, handshake_us=100_000, clock=CLOCK,
                        buffers=RECEIVE_BUFFERS, unit=128)
    receiver.full, receiver.quick, receiver.window = MSS, 0, 9_984 + MSS
    receiver.clamp, receiver.threshold, receiver.received = clamp, threshold, MSS
    assert receiver.read(1 * MS, Sent(MSS, pushed=False)) == at_once


@pytest.mark.parametrize(("credit", "acknowledged", "grown", "left"), [
    (0, 9, 0, 9), (0, 10, 1, 0), (9, 1, 1, 0), (3, 25, 2, 8),
    (14, 9, 1, 9), (14, 10, 2, 0)])  # credit from a time when the window was larger
def test_congestion_avoidance_grows_by_one_for_ten_acknowledged_segments(
        credit: int, acknowledged: int, grown: int, left: int) -> None:
    """tcp_cong_avoid_ai with a window of 10. left: the credit afterwards."""
    assert additive_increase(10, credit, 10, acknowledged) == (10 + grown, left)


# When a receiver acknowledges and what it offers --------------------------------------

START = 1000 * MS


def connected_receiver(rtt_us: int = 100_000, initrwnd: int = 44) -> Receiver:
    """A receiver whose connection exists since START."""
    receiver = Receiver(initrwnd=initrwnd, mss=MSS, connected=START, handshake_us=rtt_us,
                        clock=CLOCK, buffers=RECEIVE_BUFFERS, unit=128)
    receiver.last_ms = CLOCK.jiffies(START)
    return receiver


def data(receiver: Receiver, payload: int = MSS, at_ms: int = 1000, pushed: bool = False) -> bool:
    """Lets a segment arrive. Returns whether it is acknowledged at once."""
    segment = Sent(payload, pushed)
    receiver.take(at_ms * MS, segment, echo=START, sent_at=0)
    return receiver.read(at_ms * MS, segment)


@pytest.mark.parametrize("initrwnd, quick", [(44, 16), (8, 10), (2, 2), (1, 2)])
def test_the_first_acknowledgements_are_quick(initrwnd: int, quick: int) -> None:
    """tcp_incr_quickack: as many as half of the segments that the window holds, at most 16."""
    receiver = connected_receiver(initrwnd=initrwnd)
    assert data(receiver, payload=90)
    assert receiver.quick is not None and receiver.quick >> 1 << 1 == min(
        receiver.window // (2 * receiver.full) or 2, 16) >> 1 << 1
    assert abs(receiver.quick - quick) <= 1


def test_a_request_right_after_data_makes_the_receiver_interactive() -> None:
    """tcp_event_data_sent: within the timeout of acknowledgements, which then wait for data."""
    for after_ms, interactive in ((39, True), (40, False)):
        receiver = connected_receiver()
        for _ in range(3):
            data(receiver)
            receiver.acknowledge()
        receiver.ack_timeout_ms = 40
        receiver.acknowledge_with_data((1000 + after_ms) * MS)
        assert receiver.interactive == interactive
    receiver = connected_receiver()
    receiver.acknowledge_with_data(1000 * MS)
    assert not receiver.interactive  # before any data


def test_a_timer_that_is_set_again_for_the_same_time_stays_in_its_slot() -> None:
    """__mod_timer: slots 100 ms ahead are 8 ms wide, and slots 50 ms ahead 1 ms."""
    receiver = Receiver(initrwnd=44, mss=MSS, connected=0, handshake_us=200_000, clock=CLOCK,
                        buffers=RECEIVE_BUFFERS, unit=128)
    receiver.ack_timeout_ms = 100
    assert receiver._delay(0)
    first_at = receiver.timer_at
    receiver.ack_timeout_ms = 50
    assert receiver._delay(50 * MS)
    assert receiver.timer_at == first_at != CLOCK.expiry(50 * MS, receiver.timer_due)


def test_the_delayed_acknowledgement_waits_no_longer_than_the_timeout() -> None:
    receiver = connected_receiver(rtt_us=1000)
    receiver.sent_round_trip.variance_4 = 69_001
    receiver.timer.update_timeout()
    receiver.ack_timeout_ms = 40
    receiver.lengthen_delay()
    assert receiver.ack_timeout_ms == 71  # 1 + 69.001 ms, rounded up


def test_the_unit_of_windows_follows_from_the_largest_possible_one() -> None:
    assert window_unit((131072, 6291456)) == 128 == window_unit((20 << 20, 6291456)) // 2
    assert window_unit((4096, 4096)) == 128  # net.core.rmem_max
    assert receive_window(10, unit=4) == 14_600
    assert receive_window(10) % 128 == 0 and 0 <= receive_window(10) - 14_600 < 128
    assert receive_window(500) == receive_window(44)  # half of the buffer is the limit
    assert receive_window(100, (1 << 20, 1 << 20), unit=1) == 65535  # net.ipv4.tcp_window_scaling=0


# The calls by which a client reads records --------------------------------------------

PLAIN = transfer(rtt_ms=100, bandwidth_kbps=1000, uplink_kbps=1000, initcwnd=10, initrwnd=64,
                 response_bytes=1244, request_bytes=100)
SECURE = transfer(rtt_ms=100, bandwidth_kbps=1000, uplink_kbps=1000, initcwnd=10, initrwnd=64,
                  response_bytes=1244, request_bytes=100, writes=(622, 622),
                  secure=Secure(240, (1000, 564), 80, (255,), 622))


# begin, end: the bytes of the stream that arrived together. upto: where the first call ends, 0 for
# a call that reads all of them.
@pytest.mark.parametrize(("begin", "end", "upto"), [
    (0, 1448, 5), (3, 1448, 5), (5, 1448, 0), (5, 1564, 0), (1448, 1700, 1564),
    (1564, 1819, 1569), (1819, 2441, 1824), (1824, 2441, 0), (2000, 3063, 2441), (2446, 3063, 0)])
def test_the_first_call_reads_a_records_head_or_the_rest_of_a_record(
        begin: int, end: int, upto: int) -> None:
    assert ReadCalls(SECURE).first(begin, end) == upto
    assert ReadCalls(PLAIN).first(begin, end) == 0
