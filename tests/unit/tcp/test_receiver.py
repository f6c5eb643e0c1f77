"""When a receiver acknowledges and what it offers, from tcp_input.c and tcp_timer.c."""

from __future__ import annotations

import pytest

from firstflight.model.receiver import Receiver, receive_window, window_unit
from firstflight.model.simulate import ReadCalls
from firstflight.model.transfer import Secure
from firstflight.net.buffers import RECEIVE_BUFFERS
from firstflight.net.headers import MSS
from firstflight.net.path import Clock, Sent
from firstflight.net.segments import MS
from tests.transfers import transfer


CLOCK = Clock(phase_ns=0)
START = 1000 * MS


def made(rtt_us: int = 100_000, initrwnd: int = 44) -> Receiver:
    receiver = Receiver(initrwnd=initrwnd, mss=MSS, connected=START, handshake_us=rtt_us,
                        clock=CLOCK, buffers=RECEIVE_BUFFERS, unit=128)
    receiver.last_ms = CLOCK.jiffies(START)
    return receiver


def data(receiver: Receiver, payload: int = MSS, at_ms: int = 1000, pushed: bool = False) -> bool:
    """A segment arrives; whether it is acknowledged at once."""
    segment = Sent(payload, pushed)
    receiver.take(at_ms * MS, segment, echo=START, sent_at=0)
    return receiver.read(at_ms * MS, segment)


def test_what_was_not_acknowledged_yet_is_echoed_first_and_its_copy_in_its_place() -> None:
    """tcp_replace_ts_recent: what begins beyond the last acknowledgement changes nothing."""
    receiver = made()
    for sent_at in (1 * MS, 2 * MS):
        receiver.take(1000 * MS, Sent(MSS, pushed=False), echo=START, sent_at=sent_at)
    assert receiver.stamp == 1 * MS
    receiver.receive_duplicate(1000 * MS, Sent(MSS, False, retransmitted=2 * MSS),
                               echo=START, sent_at=3 * MS)
    assert receiver.stamp == 1 * MS
    receiver.receive_duplicate(1000 * MS, Sent(MSS, False, retransmitted=MSS),
                               echo=START, sent_at=4 * MS)
    assert receiver.stamp == 4 * MS
    receiver.acknowledge()
    receiver.receive_duplicate(1000 * MS, Sent(MSS, False, retransmitted=MSS),
                               echo=START, sent_at=5 * MS)
    assert receiver.stamp == 4 * MS  # before the window: tcp_validate_incoming
    receiver.take(1000 * MS, Sent(MSS, pushed=False), echo=START, sent_at=6 * MS)
    assert receiver.stamp == 6 * MS


@pytest.mark.parametrize("initrwnd, quick", [(44, 16), (8, 10), (2, 2), (1, 2)])
def test_the_first_acknowledgements_are_quick(initrwnd: int, quick: int) -> None:
    """tcp_incr_quickack: half of the segments that the window has room for, at most 16."""
    receiver = made(initrwnd=initrwnd)
    assert data(receiver, payload=90)
    assert receiver.quick is not None and receiver.quick >> 1 << 1 == min(
        receiver.window // (2 * receiver.full) or 2, 16) >> 1 << 1
    assert abs(receiver.quick - quick) <= 1


@pytest.mark.parametrize("gap_ms, before_ms, patience_ms", [
    # Within half of the least delay, then within the patience: halfway to it, and to the gap.
    (0, 100, 70), (20, 100, 70), (21, 100, 71), (99, 100, 149), (100, 100, 100), (190, 200, 200),
    (150, 160, 200)])
def test_the_patience_follows_the_gaps_between_segments(gap_ms: int, before_ms: int,
                                                        patience_ms: int) -> None:
    """tcp_event_data_recv"""
    receiver = made()
    receiver.quick, receiver.patience_ms = 0, before_ms
    receiver._adapt(START + gap_ms * MS, MSS)
    assert (receiver.patience_ms, receiver.quick) == (patience_ms, 0)
    assert receiver.last_ms == CLOCK.jiffies(START) + gap_ms


@pytest.mark.parametrize("gap_ms, quick", [(300, 0), (301, 16)])
def test_after_a_timeouts_silence_acknowledgements_are_quick_again(gap_ms: int,
                                                                   quick: int) -> None:
    receiver = made()
    receiver.quick, receiver.full = 0, 536
    receiver._adapt(START + gap_ms * MS, MSS)
    assert receiver.quick == quick


@pytest.mark.parametrize("interactive, patience_ms, after_ms", [
    (True, 160, 40), (False, 40, 80), (False, 99, 198), (False, 120, 200)])
def test_a_delayed_acknowledgement_that_is_due_doubles_the_patience(
        interactive: bool, patience_ms: int, after_ms: int) -> None:
    """tcp_delack_timer_handler"""
    receiver = made(rtt_us=200_000)
    receiver.interactive, receiver.patience_ms = interactive, patience_ms
    receiver.lose_patience()
    assert (receiver.interactive, receiver.patience_ms) == (False, after_ms)


def test_the_patience_is_no_longer_than_the_timeout() -> None:
    receiver = made(rtt_us=1000)
    receiver.sent_round_trip.variance_4 = 69_001
    receiver.timer.sampled()
    receiver.patience_ms = 40
    receiver.lose_patience()
    assert receiver.patience_ms == 71  # 1 + 69.001 ms, rounded up


@pytest.mark.parametrize("patience_ms, rtt_us, due_ms", [
    (40, 5_000, 40), (160, 5_000, 40), (160, 99_001, 100), (160, 150_000, 150),
    (200, 500_000, 199)])
def test_an_acknowledgement_waits_for_a_round_trip_at_most(patience_ms: int, rtt_us: int,
                                                           due_ms: int) -> None:
    """tcp_send_delayed_ack: where it waits longer than the least."""
    receiver = made(rtt_us=rtt_us)
    receiver.patience_ms = patience_ms
    assert receiver._delay(START)
    assert receiver.timer_due - CLOCK.jiffies(START) == due_ms
    assert receiver.timer_at == CLOCK.expiry(START, receiver.timer_due)


@pytest.mark.parametrize("due_ms, waits, due_after_ms", [
    (10, False, 10), (11, True, 11), (40, True, 40), (41, True, 40)])
def test_one_that_is_due_soon_is_sent_and_none_is_put_off_further(
        due_ms: int, waits: bool, due_after_ms: int) -> None:
    receiver = made()
    now = CLOCK.jiffies(START)
    receiver.timer_due, receiver.timer_at = now + due_ms, START + due_ms * MS
    assert receiver._delay(START) == waits
    assert receiver.timer_due - now == due_after_ms


def full(receiver: Receiver) -> Receiver:
    """After segments enough for it to know how long they are, all acknowledged, none quick."""
    for _ in range(3):
        data(receiver)
        receiver.acknowledge()
    receiver.quick = 0
    receiver.window = receiver.threshold = receiver.clamp
    return receiver


def test_every_second_full_segment_is_acknowledged() -> None:
    receiver = full(made())
    receiver.threshold = receiver.clamp = 70_000
    receiver.window = 60_000
    assert not data(receiver) and data(receiver)


@pytest.mark.parametrize("payload, pushed, interactive, at_once", [
    (MSS, False, False, False), (MSS, True, False, True), (MSS - 1, False, False, True),
    (MSS, True, True, False), (MSS - 1, False, True, False)])
def test_a_short_or_pushed_segment_is_acknowledged_unless_an_answer_will_carry_it(
        payload: int, pushed: bool, interactive: bool, at_once: bool) -> None:
    """tcp_measure_rcv_mss, tcp_cleanup_rbuf"""
    receiver = full(made())
    receiver.interactive = interactive
    assert data(receiver, payload, pushed=pushed) == at_once


def test_two_short_segments_are_acknowledged_anyway() -> None:
    receiver = full(made())
    receiver.interactive = True
    assert not data(receiver, 100) and data(receiver, 100)
    receiver.acknowledge()
    assert not data(receiver, 100)  # they count from the last acknowledgement on


def test_a_larger_segment_tells_the_share_of_payload_in_memory() -> None:
    receiver = made()
    receiver._measure_full(536)
    assert (receiver.full, receiver.payload_share) == (536, 128)
    receiver._measure_full(MSS)
    assert (receiver.full, receiver.payload_share) == (MSS, 256 * MSS // (MSS + 832))
    assert receiver.clamp == RECEIVE_BUFFERS[0] * receiver.payload_share >> 8
    assert receiver.space == min(10 * MSS, receiver.clamp)


def test_the_window_offered_opens_by_two_segments_up_to_what_the_buffer_holds() -> None:
    """tcp_grow_window"""
    receiver = made(initrwnd=10)
    receiver._measure_full(MSS)
    receiver.quick, before = 4, receiver.threshold
    receiver._grow(MSS)
    assert receiver.threshold == before + 2 * MSS and receiver.quick == 5
    free = (receiver.buffer - MSS - 832) * receiver.payload_share >> 8
    receiver.threshold, receiver.quick = free - 1000, 4
    receiver._grow(MSS)
    receiver._grow(MSS)
    assert receiver.threshold == free < receiver.clamp and receiver.quick == 5


def test_a_segment_of_less_than_128_bytes_opens_no_window() -> None:
    for payload, opens in ((127, False), (128, True)):
        receiver = made(initrwnd=10)
        before = receiver.threshold
        data(receiver, payload)
        assert (receiver.threshold > before) == opens


@pytest.mark.parametrize("sample_ms, round_trip_8", [(90, 720_000), (180, 810_000)])
def test_the_round_trip_by_time_stamps_falls_at_once_and_rises_slowly(
        sample_ms: int, round_trip_8: int) -> None:
    """tcp_rcv_rtt_update: by an eighth."""
    receiver = made()
    receiver.round_trip_8 = 800_000
    if sample_ms > 100:
        round_trip_8 = 800_000 + (sample_ms * 1000 - 100_000)
    receiver.full = MSS
    echo = START + 5 * MS
    receiver._measure_echo(echo + sample_ms * MS, MSS, echo)
    assert receiver.round_trip_8 == round_trip_8
    receiver._measure_echo(echo + 20 * MS, MSS, echo)  # the same stamp once more
    receiver._measure_echo(echo + 30 * MS, MSS - 1, echo + MS)  # a short segment
    receiver._measure_echo(echo + 2 * MS, MSS, echo + 2 * MS)  # no time at all
    assert receiver.round_trip_8 == round_trip_8


def test_the_round_trip_is_what_a_window_takes_if_that_is_less() -> None:
    """tcp_rcv_rtt_measure"""
    receiver = made()
    receiver.window, receiver.received = 10_000, 1000
    receiver._measure_window(START)
    receiver.received = 10_999
    receiver._measure_window(START + 50 * MS)
    assert receiver.round_trip_8 == 0
    receiver.received = 11_000
    receiver._measure_window(START + 60 * MS)
    assert receiver.round_trip_8 == 60_000 * 8
    receiver.received = 21_000
    receiver._measure_window(START + 130 * MS)  # 70 ms: more
    receiver.received = 31_000
    receiver._measure_window(START + 180 * MS)
    assert receiver.round_trip_8 == 50_000 * 8


def test_the_buffer_follows_what_was_read_once_a_round_trip() -> None:
    """tcp_rcv_space_adjust, tcp_rcvbuf_grow: twice that, and as much more as it grew."""
    receiver = made()
    receiver._measure_full(MSS)
    receiver.round_trip_8, receiver.space, receiver.received = 100_000 * 8, 40_000, 60_000
    receiver._read(START + 100 * MS - 1000, receiver.received)
    assert receiver.space == 40_000
    receiver._read(START + 100 * MS, receiver.received)
    wanted = 120_000 + 2 * 120_000 * 20_000 // 40_000
    assert receiver.space == 60_000 and receiver.measured_from == 60_000
    assert receiver.buffer == (wanted << 8) // receiver.payload_share
    assert receiver.clamp == receiver.buffer * receiver.payload_share >> 8
    before = receiver.buffer
    receiver.received += 60_000  # no more than last time
    receiver._read(START + 200 * MS, receiver.received)
    assert receiver.buffer == before and receiver.measured_from == 120_000


def test_within_a_millisecond_the_buffer_grows_less_and_never_past_tcp_rmem() -> None:
    receiver = made()
    receiver._measure_full(MSS)
    receiver.round_trip_8 = 500 * 8
    receiver._enlarge(60_000)
    assert receiver.buffer == (120_000 + 60_000 << 8) // receiver.payload_share
    receiver._enlarge(1 << 30)
    assert receiver.buffer == RECEIVE_BUFFERS[1]


def test_windows_are_counted_in_units_of_the_largest_that_may_be() -> None:
    assert window_unit((131072, 6291456)) == 128 == window_unit((20 << 20, 6291456)) // 2
    assert window_unit((4096, 4096)) == 128  # net.core.rmem_max
    assert receive_window(10, unit=4) == 14_600
    assert receive_window(10) % 128 == 0 and 0 <= receive_window(10) - 14_600 < 128
    assert receive_window(500) == receive_window(44)  # half of the buffer
    assert receive_window(100, (1 << 20, 1 << 20), unit=1) == 65535  # net.ipv4.tcp_window_scaling=0


def test_a_request_right_after_data_makes_acknowledgements_wait_for_a_ride() -> None:
    """tcp_event_data_sent: within the patience."""
    for after_ms, interactive in ((39, True), (40, False)):
        receiver = full(made())
        receiver.patience_ms = 40
        receiver.ask(START + after_ms * MS)
        assert receiver.interactive == interactive
    receiver = made()
    receiver.ask(START)
    assert not receiver.interactive  # before any data


# The calls by which a client reads records --------------------------------------------

PLAIN = transfer(rtt_ms=100, bandwidth_kbps=1000, uplink_kbps=1000, initcwnd=10, initrwnd=64,
                 response_bytes=1244, request_bytes=100)
SECURE = transfer(rtt_ms=100, bandwidth_kbps=1000, uplink_kbps=1000, initcwnd=10, initrwnd=64,
                  response_bytes=1244, request_bytes=100, writes=(622, 622),
                  secure=Secure(240, (1000, 564), 80, (255,), 622))


@pytest.mark.parametrize(("begin", "end", "upto"), [
    (0, 1448, 5), (3, 1448, 5), (5, 1448, 0), (5, 1564, 0), (1448, 1700, 1564),
    (1564, 1819, 1569), (1819, 2441, 1824), (1824, 2441, 0), (2000, 3063, 2441), (2446, 3063, 0)])
def test_the_first_call_reads_a_header_or_what_is_left_of_a_record(
        begin: int, end: int, upto: int) -> None:
    assert ReadCalls(SECURE).first(begin, end) == upto
    assert ReadCalls(PLAIN).first(begin, end) == 0


@pytest.mark.parametrize(("upto", "offered"), [(0, 82_048), (2000, 81_536)])
def test_what_a_call_leaves_unread_still_takes_memory(upto: int, offered: int) -> None:
    """tcp_cleanup_rbuf acknowledges after the first call; sk_rmem_alloc has the segment yet."""
    receiver = Receiver(64, 1448, 0, 100_000, Clock(0), (131072, 6291456), 128)
    receiver._measure_full(1448)
    receiver.quick, receiver.received, receiver.threshold = 0, 1448, 82_023
    receiver.window = 82_048
    receiver.received += 1448
    assert receiver.read(0, Sent(1448, pushed=False), upto)
    assert receiver.offer == offered


@pytest.mark.parametrize(("upto", "space"), [(60_000, 60_000), (59_000, 58_000), (49_000, 40_000)])
def test_what_waits_counts_against_what_was_read(upto: int, space: int) -> None:
    """tcp_rcv_space_adjust: rcv_nxt - copied_seq."""
    receiver = Receiver(64, 1448, 0, 100_000, Clock(0), (131072, 6291456), 128)
    receiver._measure_full(1448)
    receiver.round_trip_8, receiver.space, receiver.received = 8, 40_000, 60_000
    receiver._read(1_000_000_000, upto)
    assert (receiver.space, receiver.measured_from) == (space, upto)
