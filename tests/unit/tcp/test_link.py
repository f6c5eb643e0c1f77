"""Parts of the model of TCP: links, the clock, handshakes, the estimate of the RTT."""

from __future__ import annotations

import pytest

from firstflight.model.endpoints import Handshake
from firstflight.model.network import Events, SimulatedLink
from firstflight.net import path
from firstflight.net.link import Path
from firstflight.net.path import START_JIFFIES, Clock, RoundTrip
from firstflight.net.segments import MS
from firstflight.net.waiting import waited_ns


FAST_KBPS = 3_488_510  # 74 bytes take 169 ns, 1514 take 3471


def link_of(events: Events, rtt_ms: float, rate_kbps: float) -> SimulatedLink:
    return SimulatedLink(events, Path.between(rtt_ms, rate_kbps, rate_kbps, 1000).down)


def arrivals(link: SimulatedLink, *frames: tuple[int, int]) -> list[int]:
    """When frames arrive, in ns. frames: when each is sent, in ns, and its bytes."""
    found: list[int] = []
    for sent_ns, size in frames:
        link.events.at(sent_ns, lambda now, size=size: link.send(now, size, found.append))
    link.events.run()
    return found


def test_a_link_serialises_and_queues() -> None:
    link = link_of(Events(), 20, 56)
    late_ns = 2  # one for each netem
    large_ns, small_ns = 216_285_714, 9_428_571  # 1514 and 66 bytes at 56 kbit/s
    assert arrivals(link, (0, 1514), (0, 66), (1_000_000_000, 66)) == [
        10_000_000 + large_ns + late_ns,
        10_000_000 + large_ns + small_ns + late_ns,
        1_000_000_000 + 10_000_000 + small_ns + late_ns]
    assert link.peak_queue == 2


def test_an_unlimited_link_has_no_queue() -> None:
    link = link_of(Events(), 10, float("inf"))
    assert arrivals(link, *[(0, 1514)] * 3) == [link.delay_ns + 1] * 3
    assert link.peak_queue == 0


def test_frames_leave_at_the_rate_and_waiting_ones_count_in_the_queue() -> None:
    """A link of 8 kbit/s passes 100 bytes on in 100 ms."""
    link = link_of(Events(), 0, 8)
    first, second, third = arrivals(link, *[(0, 100)] * 3)
    assert first == pytest.approx(100 * MS, abs=600)
    assert second - first == pytest.approx(100 * MS, abs=600)
    assert third - second == pytest.approx(100 * MS, abs=600)
    assert link.peak_queue == 3
    arrivals(link, (link.free_at + MS, 100))
    assert link.peak_queue == 3  # the last frame waits for no other


def test_timers_of_the_guest_are_half_a_microsecond_apart() -> None:
    """Small frames on a fast link take longer than their bytes, as measured in guests."""
    link = link_of(Events(), 11.761, FAST_KBPS)
    first, second = arrivals(link, (0, 74), (600, 1514))
    assert first == link.delay_ns + 1 + 501
    # The second frame waits as well, as it arrives within half a microsecond of the first.
    assert second == first + 501 + 3471 + 1
    assert link.peak_queue == 1


@pytest.mark.parametrize(("comes_before_ns", "late_ns"), [
    (502, 1), (501, 1), (499, 2), (2, 499), (1, 500), (0, 0), (-1, 1)])
def test_a_packet_that_is_due_waits_for_one_that_arrives(comes_before_ns: int,
                                                         late_ns: int) -> None:
    """The clock has just fired for the arrival, and cannot fire again within half a microsecond.

    See clockevents_program_event. Events of one moment need the clock once.
    """
    link = link_of(Events(), 11.761, FAST_KBPS)
    due = link.delay_ns + 1 + 3471
    first, _ = arrivals(link, (0, 1514), (3471 - comes_before_ns, 1514))
    assert first - due == late_ns


def test_both_directions_have_one_clock() -> None:
    events = Events()
    down, up = (link_of(events, 11.761, FAST_KBPS) for _ in range(2))
    events.at(3471 - 100, lambda now: up.send(now, 1514))
    assert arrivals(down, (0, 1514)) == [down.delay_ns + 1 + 3471 - 100 + 501]


def test_a_packet_that_waits_for_its_timer_counts_in_the_queue() -> None:
    link = link_of(Events(), 11.761, FAST_KBPS)
    arrived_ns, = arrivals(link, (0, 74))
    for before_ns, peak in ((3, 2), (1, 1)):
        link = link_of(Events(), 11.761, FAST_KBPS)
        arrivals(link, (0, 74), (arrived_ns - link.delay_ns - before_ns, 74))
        assert link.peak_queue == peak


# Delays and the clock -----------------------------------------------------------------

# RTTs, and how long half of each took in a guest.
@pytest.mark.parametrize(("rtt_ms", "delay_ns"), [
    (32.103, 16_051_968), (6.335, 3_168_000), (53.449, 26_723_968), (435.842, 217_920_960)])
def test_a_delay_is_whole_microseconds_in_ticks_of_64_ns(rtt_ms: float, delay_ns: int) -> None:
    assert path.delay_ns(rtt_ms / 2) == delay_ns


# Pauses, and how late the server wrote after each, as measured in guests.
@pytest.mark.parametrize(("pause_ms", "late_ns"), [
    (1.331, 1332), (3.156, 3157), (5.108, 105), (305.427, 3127), (750.432, 686)])
def test_the_server_waits_up_to_a_thousandth_longer(pause_ms: float, late_ns: int) -> None:
    pause_ns = round(pause_ms * 1e6)
    assert waited_ns(pause_ns) - pause_ns == pytest.approx(late_ns, abs=2)


def test_a_timer_fires_in_the_slot_after_its_jiffy() -> None:
    """Times were measured in guests whose SYN left 12 µs after the beginning of a jiffy.

    Trials start on a grid of 4096 jiffies. See calc_wheel_index for the slots.
    """
    clock = Clock(phase_ns=12_000)
    sent = 455_400_000
    assert clock.jiffies(sent) == START_JIFFIES + 455
    assert clock.expiry(sent, clock.jiffies(sent) + 40) == 495_988_000
    assert clock.expiry(0, clock.jiffies(0) + 62) == 62_988_000
    assert clock.expiry(0, clock.jiffies(0) + 1000) == 1_055_988_000  # a SYN's timer
    assert clock.expiry(1_424_816_000, clock.jiffies(1_424_816_000) + 300) == 1_727_988_000


# Handshakes that take longer than their timers, with times that guests captured -------

CLOCK = Clock(phase_ns=2002)


def handshake_of(rtt_ms: float, bandwidth_kbps: float, uplink_kbps: float) -> Handshake:
    """A handshake that has ended, and its challenge ACKs as well."""
    events = Events()
    path = Path.between(rtt_ms, bandwidth_kbps, uplink_kbps, 1000)
    handshake = Handshake(events, CLOCK, SimulatedLink(events, path.up),
                          SimulatedLink(events, path.down), 97)
    events.run()
    return handshake


def test_no_handshake_below_a_second_is_repeated() -> None:
    handshake = handshake_of(900, 1000, 1000)
    assert (handshake.syns, handshake.syn_acks, handshake.challenges) == (1, 1, [])
    assert handshake.client_us == 901_184 and handshake.server_us == 901_120


def test_at_an_rtt_of_1045_ms_each_side_repeats_its_handshake_once() -> None:
    """The second copy of the SYN-ACK comes within half a second of the first, without an answer."""
    handshake = handshake_of(1044.821, 275.85, 54.194)
    assert (handshake.syns, handshake.syn_acks) == (2, 3)
    assert handshake.connected == 1_057_890_202
    assert handshake.accepted == 1_599_075_240
    assert handshake.challenges == [(2_092_554_093, 2_624_707_214)]
    assert handshake.client_us == 1_057_000  # from time stamps, in whole milliseconds


def test_at_an_rtt_of_3082_ms_the_client_repeats_its_syn_three_times() -> None:
    """The server answers every SYN, and then sets its own timer again."""
    handshake = handshake_of(3081.775, 29.419, 29.419)
    assert (handshake.syns, handshake.syn_acks, handshake.timeouts) == (4, 5, 1)
    assert handshake.connected == 3_122_026_206 and handshake.accepted == 4_682_960_516
    assert [left for left, _ in handshake.challenges] == [
        4_153_011_101, 5_202_024_204, 6_226_024_204]
    assert handshake.server_us == 3_121_000


# The estimate of the RTT --------------------------------------------------------------

def after(*samples: tuple[int, bool]) -> RoundTrip:
    """The estimate after these samples: µs, and whether each begins a round."""
    estimate = RoundTrip()
    for us, new_round in samples:
        estimate.sample(us, new_round)
    return estimate


FIRST, EQUAL = (200_000, False), (200_000, True)


@pytest.mark.parametrize("samples, smoothed_us, deviation_us, variance_us", [
    ([FIRST], 200_000, 100_000, 400_000),
    # Each sample that equals the mean takes a quarter from the deviation.
    ([FIRST, EQUAL], 200_000, 75_000, 400_000),
    # At the end of a round the variance moves by a quarter towards the round's largest deviation.
    ([FIRST, EQUAL, EQUAL], 200_000, 56_250, 356_250),
    ([FIRST, EQUAL, EQUAL, EQUAL], 200_000, 42_187.5, 317_188),
    # Within a round the variance stays.
    ([FIRST, EQUAL, (200_000, False), (200_000, False)], 200_000, 42_187.5, 400_000),
    # A shorter RTT moves the mean by an eighth, and the deviation by an eighth of its own change.
    ([FIRST, EQUAL, EQUAL, (100_000, False)], 187_500, 57_617, 356_250),
    # A longer RTT changes the deviation in full, and the variance at once.
    ([FIRST, (600_000, False)], 250_000, 175_000, 700_000),
    # The variance is at least 200 ms (TCP_RTO_MIN).
    ([(10_000, False)], 10_000, 5000, 200_000)])
def test_each_sample_moves_the_rtt_estimate(samples: list[tuple[int, bool]], smoothed_us: float,
                                            deviation_us: float, variance_us: int) -> None:
    estimate = after(*samples)
    assert estimate.smoothed_8 == smoothed_us * 8
    assert estimate.deviation_4 / 4 == pytest.approx(deviation_us, abs=0.25)
    assert estimate.variance_4 == variance_us
    assert estimate.timeout_us == int(smoothed_us) + variance_us


def test_the_estimator_keeps_the_least_rtt() -> None:
    assert after(FIRST, (150_000, True), (300_000, True)).least_us == 150_000


# The phase of the clock ---------------------------------------------------------------

@pytest.mark.parametrize("phase_ns, now, jiffies, us", [
    (0, 0, 0, 0), (0, 999_999, 0, 999), (1, 999_999, 1, 1000), (400_000, 600_000, 1, 1000),
    (400_000, 599_999, 0, 999)])
def test_the_next_jiffy_begins_a_millisecond_less_the_phase_after_the_first_syn(
        phase_ns: int, now: int, jiffies: int, us: int) -> None:
    clock = Clock(phase_ns)
    assert clock.jiffies(now) - Clock(0).jiffies(0) == jiffies and clock.us(now) == us
