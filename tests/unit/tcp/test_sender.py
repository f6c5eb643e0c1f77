"""The sender's and the receiver's rules that a transfer's length seldom shows, one by one."""

from __future__ import annotations

from collections import deque

import pytest

from firstflight.model.receiver import Receiver
from firstflight.model.sender import Sender
from firstflight.model.timers import LONGEST_TIMEOUT, LossTimer
from firstflight.model.writer import Waiting
from firstflight.net.buffers import BUFFER_PER_SEGMENT, RECEIVE_BUFFERS, SEND_BUFFERS
from firstflight.net.headers import MSS
from firstflight.net.path import Clock, RoundTrip, Sent
from firstflight.net.segments import MS

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
    return Receiver(initrwnd=44, mss=MSS, connected=100 * MS, handshake_us=100_000, clock=CLOCK,
                    buffers=RECEIVE_BUFFERS, unit=128)


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


def test_a_timeout_is_two_minutes_at_most(timer: LossTimer) -> None:
    """tcp_bound_rto"""
    timer.round_trip.sample(500_000_000, new_round=True)
    timer.sampled()
    assert timer.timeout == LONGEST_TIMEOUT


def test_timeouts_double_up_to_two_minutes(timer: LossTimer) -> None:
    for expected in (600, 1200, 2400):
        timer.back_off(0)
        assert timer.timeout == due_after(timer, 0) == expected
    timer.timeout = LONGEST_TIMEOUT
    timer.back_off(0)
    assert timer.timeout == LONGEST_TIMEOUT


@pytest.mark.parametrize(("end", "left"), [(1000, 15), (500, 16)])
def test_a_segment_twice_makes_acknowledgements_quick(receiver: Receiver, end: int, left: int
                                                      ) -> None:
    """tcp_enter_quickack_mode; of one before the window tcp_validate_incoming counts none."""
    receiver.received = receiver.acknowledged = 1000
    receiver.interactive, receiver.patience_ms, receiver.quick = True, 200, 0
    receiver.receive_duplicate(0, Sent(500, pushed=False, retransmitted=end), echo=0, sent_at=0)
    assert (receiver.interactive, receiver.patience_ms) == (False, 40)
    receiver.acknowledge()
    assert receiver.quick == left


def test_what_comes_twice_and_what_waits_uses_up_one_quick_acknowledgement(receiver: Receiver
                                                                           ) -> None:
    """tcp_dec_quickack_mode"""
    receiver.received = 1000
    receiver.receive_duplicate(0, Sent(500, pushed=False, retransmitted=1000), echo=0, sent_at=0)
    receiver.acknowledge()
    assert receiver.quick == 15


def test_after_a_pause_longer_than_the_timeout_acknowledgements_are_quick(receiver: Receiver
                                                                        ) -> None:
    """tcp_event_data_recv: the timeout counts as backed off, before the answer tells the RTT."""
    receiver.quick, receiver.last_ms = 0, CLOCK.jiffies(0)
    receiver.timer.back_off(0)  # 300 ms to 600
    receiver.take(500 * MS, Sent(MSS, pushed=False), echo=0, sent_at=0)
    assert receiver.quick < 2
    receiver.take(1200 * MS, Sent(MSS, pushed=False), echo=0, sent_at=0)
    assert receiver.quick > 10


def test_a_window_is_offered_in_whole_units(receiver: Receiver) -> None:
    """tcp_select_window: also where it is no more than what is left of the last one."""
    receiver.received, receiver.threshold = 91, 1000
    window = receiver.window
    assert receiver.acknowledge() == (91, 91 + window)
    assert window % receiver.unit == 0


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
    assert [skb.call_end for skb in sender.waiting] == [200]


def test_the_end_of_a_call_stays_with_its_skb(sender: Sender) -> None:
    """tcp_skb_collapse_tstamp, tcp_fragment_tstamp"""
    sender.waiting = deque([Waiting(MSS), Waiting(2 * MSS, call_end=2 * MSS),
                            Waiting(MSS, call_end=4 * MSS)])
    sender.fill(2 * MSS)  # takes the bytes of the call's end, not its mark
    assert [skb.call_end for skb in sender.waiting] == [0, 2 * MSS, 4 * MSS]
    sender.fill(3 * MSS)
    assert [skb.call_end for skb in sender.waiting] == [2 * MSS, 4 * MSS]
    sender.split(MSS)
    assert [skb.call_end for skb in sender.waiting] == [0, 2 * MSS, 4 * MSS]


@pytest.mark.parametrize(("call_end", "upto", "heard"), [
    (100, MSS, True), (100, 2 * MSS, True), (MSS + 100, MSS, False), (0, 2 * MSS, False)])
def test_the_server_hears_of_a_call_whose_end_is_acknowledged(
        sender: Sender, call_end: int, upto: int, heard: bool) -> None:
    """tcp_ack_tstamp: also while the rest of the skb is not."""
    sender.write(0, 2 * MSS, last=False)
    sender.batches[0].call_end = call_end
    sender.acknowledge(100 * MS, upto, 500_000, stamp=0)
    assert sender.call_acknowledged == heard


def test_the_hosts_own_queue_holds_back_what_is_more_than_two_skbs(sender: Sender) -> None:
    """tcp_small_queue_check, tcp_tsq_write"""
    sender.write(0, 100 * MSS, last=False)
    sender.window, sender.queued, sender.pacing = 40, 0, 0
    first = sender.transmit(0)
    # Each segment takes 832 bytes beside its own: two skbs of two are more than the third's limit.
    assert len(first) == 4 and sender.throttled
    sender.pacing = 10**9
    assert len(sender.transmit(0)) == 26 and not sender.throttled


def test_what_was_held_back_follows_a_server_that_writes(sender: Sender) -> None:
    """tcp_tsq_write runs after the server, and once more fills the first skb (tcp_grow_skb)."""
    sender.write(0, 20 * MSS, last=False)
    sender.window, sender.pacing = 20, 0
    sent = sender.release_waiting(MS // 2)
    assert len(sent) == 4 and sender.throttled
    sent += sender.release_written(MS // 2)
    assert len(sent) == 10 and not sender.throttled and not sender.waiting


def test_a_call_without_memory_marks_nothing(sender: Sender) -> None:
    """tcp_sendmsg_locked: only what was copied is pushed and stamped."""
    sender.in_flight = sender.window
    sender.write(0, 10**6, last=False)
    written = sender.written
    assert sender.waiting[-1].call_end == written < 10**6
    sender.waiting[-1].call_end = 0
    sender.copy(0)
    assert sender.written == written and not sender.waiting[-1].call_end


def test_a_fin_that_waits_is_what_a_probe_sends(sender: Sender) -> None:
    """tcp_send_fin, tcp_send_loss_probe"""
    sender.write(0, 10 * MSS, last=True)
    assert sender.write_fin(0) == []
    assert sender.expire(250 * MS) == [Sent(0, pushed=False)]
    assert sender.in_flight == 11 and not sender.retransmitted
    assert [segment.retransmitted for segment in sender.expire(10_000 * MS)] == [MSS]


def test_what_comes_twice_counts_as_delivered_twice(sender: Sender) -> None:
    """tcp_dsack_seen"""
    sender.write(0, 10 * MSS, last=False)
    sender.acknowledge(100 * MS, MSS, 500_000, stamp=0)
    assert sender.window == 11
    sender.acknowledge(101 * MS, 2 * MSS, 500_000, stamp=0, duplicate=True)
    assert sender.window == 13


def test_nothing_probes_behind_a_segment_that_was_sent_again(sender: Sender) -> None:
    """tcp_try_keep_open: TCP_CA_Disorder"""
    sender.write(0, 3 * MSS, last=False)
    sender.expire(202 * MS)  # the third again, as a probe
    assert sender.timer.open
    sender.acknowledge(300 * MS, 2 * MSS, 500_000, stamp=0)
    assert sender.timer.open and sender.timer.probe
    sender.acknowledge(301 * MS, 2 * MSS, 500_000, stamp=0, duplicate=True)
    assert not sender.timer.open


def test_a_timeout_forgets_the_round(sender: Sender) -> None:
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
def test_an_skb_holds_a_millisecond_and_more_on_short_paths(
        sender: Sender, least_us: int, pacing: int, segments: int) -> None:
    """tcp_tso_autosize: 64 kB more, halved for every 512 µs of the least RTT."""
    sender.round_trip.least_us, sender.pacing = least_us, pacing
    assert sender.batch_segments() == segments


def test_a_connection_that_nobody_answers_is_given_up(sender: Sender) -> None:
    """Else a prediction that goes wrong would never end."""
    sender.write(0, 3 * MSS, last=True)
    fired: list[int] = []
    while sender.timer.at is not None and len(fired) < 100:
        fired.append(sender.timer.at)
        sent = sender.expire(sender.timer.at)
    assert not sent
    # After the probe a timeout, and those that follow within 924.6 s of it.
    assert fired[-2] - fired[1] < 924_600 * MS <= fired[-1] - fired[1]


def test_whom_somebody_answers_starts_to_count_anew(timer: LossTimer) -> None:
    timer.back_off(0)
    assert not timer.gives_up(924_599 * MS) and timer.gives_up(924_600 * MS)
    timer.back_off(500_000 * MS)
    assert timer.gives_up(924_600 * MS), "from the first of a row"
    timer.acknowledged(600_000 * MS, packets=1)
    assert not timer.gives_up(924_600 * MS)
