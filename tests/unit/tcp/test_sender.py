"""The sender's and the receiver's rules that a transfer's length seldom shows, one by one."""

from __future__ import annotations

import pytest

from lab.tcp.packets import MS, MSS
from lab.tcp.path import Clock, RoundTrip
from lab.tcp.receiver import RECEIVE_BUFFERS, Receiver
from lab.tcp.sender import Sender
from lab.tcp.timers import LONGEST_TIMEOUT, LossTimer
from lab.tcp.writer import BUFFER_PER_SEGMENT, SEND_BUFFERS

CLOCK = Clock(phase_ns=0)


@pytest.fixture
def timer() -> LossTimer:
    round_trip = RoundTrip()
    round_trip.sample(100_000, new_round=False)
    timer = LossTimer(CLOCK, round_trip, probes=True)
    timer.sampled()
    return timer


@pytest.fixture
def sender() -> Sender:
    return Sender(mss=MSS, window=10, window_end=500_000, clock=CLOCK, handshake_us=100_000,
                  hystart=True)


@pytest.fixture
def receiver() -> Receiver:
    return Receiver(initrwnd=44, mss=MSS, connected=100 * MS, clock=CLOCK,
                    buffers=RECEIVE_BUFFERS)


def due_after(timer: LossTimer, now: int) -> int:
    return timer.due - CLOCK.jiffies(now)


def test_probes_wait_two_round_trips_and_longer_for_a_lone_segment(timer: LossTimer) -> None:
    assert timer.timeout == 300  # tcp_set_rto: 100 ms and four times its deviation
    timer.sent(0, was_idle=True, packets=5, oldest_sent_at=0)
    assert timer.probe and due_after(timer, 0) == 202
    timer.sent(0, was_idle=False, packets=1, oldest_sent_at=0)
    assert due_after(timer, 0) == 300  # 400, but the timeout comes first


def test_a_timer_set_for_the_same_jiffy_keeps_its_slot(timer: LossTimer) -> None:
    timer.sent(0, was_idle=True, packets=1, oldest_sent_at=0)
    first = timer.at
    later = 250 * MS  # from here the wheel would put it into a finer slot
    timer.sent(later, was_idle=False, packets=1, oldest_sent_at=0)
    assert timer.at == first != CLOCK.expiry(later, timer.due)


def test_a_probe_that_is_not_sent_leaves_what_is_left_of_the_timeout(timer: LossTimer) -> None:
    timer.resume(100 * MS, oldest_sent_at=0)
    assert not timer.probe and due_after(timer, 100 * MS) == 200


def test_timeouts_double_up_to_two_minutes(timer: LossTimer) -> None:
    for expected in (600, 1200, 2400):
        timer.back_off(0)
        assert timer.timeout == due_after(timer, 0) == expected
    timer.timeout = LONGEST_TIMEOUT
    timer.back_off(0)
    assert timer.timeout == LONGEST_TIMEOUT


def test_acknowledgements_wait_199_ms_at_most(receiver: Receiver) -> None:
    """tcp_delack_max: a millisecond less than the sender's least timeout."""
    receiver.sent_round_trip.sample(4_000_000, new_round=True)
    receiver.patience_ms = 200
    receiver.delay(0)
    assert receiver.timer_due - CLOCK.jiffies(0) == 199


def test_a_segment_twice_makes_acknowledgements_quick(receiver: Receiver) -> None:
    """tcp_enter_quickack_mode"""
    receiver.interactive, receiver.patience_ms, receiver.quick = True, 200, 0
    receiver.receive_again()
    assert (receiver.interactive, receiver.patience_ms, receiver.quick) == (False, 40, 15)


def test_an_skb_holds_64_kilobytes_at_most(sender: Sender) -> None:
    """tcp_xmit_size_goal"""
    sender.in_flight = sender.window  # nothing leaves
    sender.write(0, 150_000, last=True)
    assert sender.waiting[0].size == 45 * MSS


def test_the_send_buffer_ends_at_tcp_wmem(sender: Sender) -> None:
    sender.window, sender.starved = 2 * SEND_BUFFERS[1] // BUFFER_PER_SEGMENT, True
    sender.make_room(0)
    assert sender.buffer == SEND_BUFFERS[1]


def test_a_server_that_waits_hears_of_a_full_buffer(sender: Sender) -> None:
    """tcp_poll sets SOCK_NOSPACE where less than a third is left."""
    sender.in_flight = sender.window
    sender.write(0, 25_000, last=False)
    assert not sender.starved
    sender.write(0, 10_000, last=True)
    assert sender.starved


def test_an_skb_remembers_the_last_call_only(sender: Sender) -> None:
    """tcp_tx_timestamp"""
    sender.in_flight = sender.window
    sender.write(0, 100, last=False)
    sender.write(0, 100, last=True)
    assert list(sender.call_ends) == [200]


def test_a_window_that_is_not_used_shrinks(sender: Sender) -> None:
    """tcp_cwnd_application_limited (RFC 2861)"""
    sender.window, sender.limited, sender.most_in_flight = 40, False, 2
    sender.note_use(4000 * MS, limited=False)
    assert sender.window == (40 + 10) // 2


def test_a_timeout_forgets_the_round(sender: Sender) -> None:
    """bictcp_reset"""
    sender.cubic.least_us, sender.cubic.epoch_ms = 100_000, 5
    sender.write(0, 3 * MSS, last=True)
    sender.timer.probe = False
    assert [segment.again for segment in sender.expire(300 * MS)] == [True]
    assert (sender.cubic.least_us, sender.cubic.epoch_ms) == (0, None)
    assert sender.retransmitted == 1 and sender.timer.timeout == 600
