"""Predictions of transfers, some with times that guests measured; and flights of packets."""

from __future__ import annotations

import math
import struct
from dataclasses import replace
from typing import Any

import pytest

from firstflight.model.network import Happening
from firstflight.model.predict import first_flight, predict
from firstflight.model.receiver import window_unit
from firstflight.model.simulate import Simulation
from firstflight.model.timers import GIVEN_UP_MS
from firstflight.model.transfer import Secure, Transfer
from firstflight.net.buffers import RECEIVE_BUFFERS, SEND_BUFFERS
from firstflight.net.headers import ACK, MSS
from firstflight.net.segments import MS
from firstflight.wire.flights import FlightCounter, split_into_flights
from tests.transfers import changed, transfer
from tests.unit.tcp.conversation import Conversation

WINDOWS = (3, 6, 10, 16, 26, 42)  # the paper's Figure 2
# Round trips by the number of segments, for each of these windows, where every segment is
# acknowledged.
ROUNDS = {3: (1, 1, 1, 1, 1, 1), 4: (2, 1, 1, 1, 1, 1), 7: (2, 2, 1, 1, 1, 1),
          10: (3, 2, 1, 1, 1, 1), 15: (3, 2, 2, 1, 1, 1), 30: (4, 3, 2, 2, 2, 1),
          50: (5, 4, 3, 3, 2, 2), 100: (6, 5, 4, 3, 3, 2)}
BASE = transfer(rtt_ms=100, bandwidth_kbps=1000, uplink_kbps=1000, initcwnd=3, initrwnd=27,
                response_bytes=9060, request_bytes=95)


def unlimited(segments: int, initcwnd: int) -> Transfer:
    """A server that never waits for room in its buffer."""
    return changed(BASE, bandwidth_kbps=math.inf, uplink_kbps=math.inf, initcwnd=initcwnd,
                   initrwnd=100, response_bytes=segments * MSS, send_buffers=(1 << 20, 1 << 22))


def rounds(segments: int, initcwnd: int) -> int:
    """Round trips by the paper's equation 1: ⌈log_γ(S(γ−1)/IW + 1)⌉ with γ = 2.

    A window doubles in a round trip where every segment is acknowledged.
    """
    # A window that fits exactly must not need one round more by rounding.
    return max(1, math.ceil(math.log2(segments / initcwnd + 1) - 1e-9))


@pytest.mark.parametrize("segments", ROUNDS)
def test_equation_1_gives_the_round_trips_of_the_table(segments: int) -> None:
    assert tuple(rounds(segments, window) for window in WINDOWS) == ROUNDS[segments]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("segments", ROUNDS)
def test_a_transfer_of_unlimited_bandwidth_takes_its_round_trips_only(segments: int, window: int
                                                                      ) -> None:
    prediction = predict(unlimited(segments, window))
    expected = rounds(segments, window)
    if (segments, window) == (100, 42):
        expected += 1  # the receive window does not hold the other 58 segments yet
    # Each packet is a nanosecond late, and the server answers after a microsecond.
    assert prediction.latency_ms == pytest.approx(expected * 100, abs=2e-3)
    assert prediction.connect_ms == pytest.approx(100, abs=2e-3)
    assert prediction.first_byte_ms == pytest.approx(200, abs=2e-3)
    assert prediction.total_ms == pytest.approx((1 + expected) * 100, abs=2e-3)
    assert prediction.first_flight == min(window, segments)
    assert prediction.slow_start_end == 0


def test_one_segment_takes_the_time_computed_by_hand() -> None:
    """SYNs have 74 bytes, other packets 66 and their data. Each waits for those before it."""
    one = changed(BASE, response_bytes=500, bandwidth_kbps=800, uplink_kbps=80)
    up_ms, down_ms = 0.1, 0.01  # for a byte
    connect_ms = 100 + 74 * (up_ms + down_ms)
    request_ms = connect_ms + 50 + (66 + 66 + 95) * up_ms
    first_byte_ms = request_ms + 50 + (66 + 66 + 500) * down_ms
    prediction = predict(one)
    assert prediction.connect_ms == pytest.approx(connect_ms, abs=1e-5)
    assert prediction.first_byte_ms == pytest.approx(first_byte_ms, abs=1e-5)
    assert prediction.total_ms == prediction.first_byte_ms
    # The latency begins when the response leaves, 1 µs after the request arrived.
    assert prediction.latency_ms == pytest.approx(
        first_byte_ms - request_ms + 50 + 66 * up_ms - 0.001, abs=1e-5)


def test_the_receive_window_limits_the_first_flight() -> None:
    wide = changed(BASE, initcwnd=42, response_bytes=60_000)
    flights = [predict(changed(wide, initrwnd=segments)).first_flight
               for segments in (4, 10, 27, 44)]
    # A window of 10 · 1460 bytes has room for ten segments of 1448 bytes and a shorter one.
    assert flights == [4, 11, 27, 42]


# Measured with RTT 100 ms, 50 Mbit/s, 300 kB. By initial window, receive window, tcp_rmem and
# tcp_wmem: the segments of the first flight, and the total time in ms where it was noted.
BUFFERS = {
    (64, 27, RECEIVE_BUFFERS, SEND_BUFFERS): (27, 430.95),
    (64, 64, RECEIVE_BUFFERS, SEND_BUFFERS): (44, None),
    (64, 64, (189800, 6291456), SEND_BUFFERS): (64, 415.7),
    (64, 64, (65536, 65536), SEND_BUFFERS): (23, 907.431),
    (64, 64, (189800, 6291456), (16384, 32768)): (34, 542.318),
}


@pytest.mark.parametrize("windows_and_buffers", BUFFERS)
def test_the_buffers_limit_the_first_flight(windows_and_buffers: tuple[Any, ...]) -> None:
    flight, total_ms = BUFFERS[windows_and_buffers]
    initcwnd, initrwnd, receive_buffers, send_buffers = windows_and_buffers
    prediction = predict(transfer(
        100, 50_000, 50_000, initcwnd, initrwnd, response_bytes=300_062, request_bytes=97,
        receive_buffers=receive_buffers, send_buffers=send_buffers))
    assert prediction.first_flight == flight
    assert total_ms is None or prediction.total_ms == pytest.approx(total_ms, abs=0.05)


@pytest.mark.parametrize(("most", "unit"), [
    (65536, 128), (6291456, 128), (8762920, 256), (1 << 40, 1 << 14)])
def test_the_windows_unit_follows_from_the_largest_buffer(most: int, unit: int) -> None:
    assert window_unit((65536, most)) == unit
    requested = changed(BASE, receive_buffers=(65536, most))
    assert requested.window_unit == unit
    assert changed(requested, window_scale=2).window_unit == 4  # a kernel before Linux 6.18


def test_hystart_ends_slow_start_only_of_cubic_and_from_16_segments_on() -> None:
    long = changed(BASE, bandwidth_kbps=5000, uplink_kbps=5000, initcwnd=16, rtt_ms=70,
                   response_bytes=300_000, initrwnd=44)
    assert predict(long).slow_start_end >= 16
    assert predict(changed(long, congestion_control="reno")).slow_start_end == 0
    assert predict(changed(long, response_bytes=9060, initcwnd=10)).slow_start_end == 0


def test_a_pause_of_the_back_end_delays_the_rest() -> None:
    paused = changed(BASE, initcwnd=10, burst_bytes=4300, gap_ms=300)
    with_pause, without_pause = predict(paused), predict(changed(BASE, initcwnd=10))
    assert with_pause.first_byte_ms == without_pause.first_byte_ms
    assert with_pause.latency_ms > 300 + 100
    # In the pause the acknowledgements of the burst enlarge a window of 3 enough.
    assert predict(changed(paused, initcwnd=3)).latency_ms == with_pause.latency_ms


def test_a_later_response_finds_the_window_grown() -> None:
    later = changed(BASE, earlier_bytes=20_000, earlier_request_bytes=96)
    prediction = predict(later)
    assert prediction.connect_ms == 0 and prediction.started_ms > 300
    assert prediction.latency_ms < predict(BASE).latency_ms - 70
    assert prediction.first_flight == 3  # of the connection, not of this response


@pytest.mark.parametrize("otherwise", [
    {}, {"initcwnd": 10}, {"mss": 300}, {"gap_ms": 20.0, "burst_bytes": 60},
    {"gap_ms": 500.0, "burst_bytes": 60}, {"earlier_bytes": 5000, "earlier_request_bytes": 90}])
def test_the_first_flight_predicted_alone_equals_that_of_the_transfer(
        otherwise: dict[str, Any]) -> None:
    transfer = changed(BASE, **otherwise)
    assert first_flight(transfer) == predict(transfer).first_flight > 0


def test_the_first_flight_fills_a_small_receive_window_and_skbs_hold_half_of_a_larger_one(
        ) -> None:
    """Measured: 512 bytes hold five segments of 95. In a window of 640 bytes an skb has half."""
    small = changed(BASE, mss=95, initcwnd=25, initrwnd=4, response_bytes=2000)
    assert predict(small).first_flight == 5
    assert predict(changed(small, initrwnd=5)).first_flight == 7
    # A window of 536 bytes is small and one of 537 is not, so two skbs leave, each less than a
    # segment.
    bytes_counted = changed(BASE, mss=524, initrwnd=1, window_scale=0, response_bytes=2000)
    assert predict(bytes_counted).first_flight == 1
    assert predict(changed(bytes_counted, mss=525)).first_flight == 2


@pytest.mark.parametrize("count", [1, 2, 5])
def test_each_earlier_response_takes_a_round_trip_and_a_pause_follows_the_last(count: int) -> None:
    """Earlier requests have 100 bytes, the last one 300, with headers of 66. A SYN has 74.

    The uplink of 100 kbit/s takes 0.08 ms for a byte.
    """
    byte_ms = 0.08
    kept = changed(BASE, initcwnd=10, bandwidth_kbps=math.inf, uplink_kbps=100.0,
                   response_bytes=1000, request_bytes=300, earlier_bytes=200,
                   earlier_request_bytes=100, earlier_count=count)
    # The first request leaves after the handshake's acknowledgement.
    first_ms = 100 + (66 + 166) * byte_ms
    earlier_ms = 100 + 166 * byte_ms
    last_ms = 100 + 366 * byte_ms
    # An acknowledgement of its own follows the first response, and the next request waits for it.
    # Later responses are acknowledged by requests.
    acknowledged_ms = 66 * byte_ms
    waited_ms = acknowledged_ms if count > 1 else 0.0
    started_ms = 100 + 74 * byte_ms + first_ms + (count - 1) * earlier_ms + waited_ms

    without_pause, with_pause = predict(kept), predict(changed(kept, idle_ms=2000.0))
    assert without_pause.started_ms == pytest.approx(started_ms, abs=0.01)
    assert without_pause.total_ms == pytest.approx(last_ms + acknowledged_ms - waited_ms, abs=0.01)
    assert with_pause.started_ms == pytest.approx(started_ms + 2000, abs=0.01)
    assert with_pause.total_ms == pytest.approx(last_ms, abs=0.01)


def test_the_predicted_peak_of_a_queue_is_that_of_the_fuller_direction() -> None:
    # To the client: the acknowledgement of the request, seven segments, and the FIN.
    assert predict(changed(BASE, initcwnd=10, bandwidth_kbps=100)).peak_queue == 9
    assert predict(changed(BASE, initcwnd=3, bandwidth_kbps=100)).peak_queue < 9
    # To the server: seven acknowledgements, a FIN, and the acknowledgement of the server's FIN.
    fast_downlink = changed(BASE, initcwnd=10, bandwidth_kbps=math.inf)
    assert predict(fast_downlink).peak_queue == 9
    assert predict(changed(fast_downlink, uplink_kbps=math.inf)).peak_queue == 0


def test_without_window_scaling_64_kib_limit_the_first_flight() -> None:
    """45 full segments are 65,160 bytes; a part of one more fills the window."""
    wide = replace(BASE, initcwnd=64, initrwnd=100, response_bytes=200_000,
                   receive_buffers=(1 << 20, 1 << 20))
    assert [first_flight(replace(wide, window_scale=scale)) for scale in (7, 0)] == [64, 46]


def test_a_request_without_an_answer_is_given_up() -> None:
    class UnansweredSimulation(Simulation):
        def _take_message(self, size: int, take_acknowledgement: Happening, now: int) -> None:
            pass

        def _take_request(self, now: int) -> None:
            pass

        def _report_duplicate(self, sent_at: int, now: int) -> None:
            pass

    simulation = UnansweredSimulation(changed(BASE, earlier_bytes=20_000, earlier_request_bytes=96))
    simulation.run()
    timer = simulation.receiver.timer
    assert timer.backed_off_at is not None and not simulation.events
    assert timer.at is not None and timer.gives_up(timer.at)
    assert timer.at // MS - timer.backed_off_at < 2 * GIVEN_UP_MS


@pytest.mark.parametrize(("parameters", "total_ms", "started_ms"), [
    (dict(rtt_ms=0.307, bandwidth_kbps=23.0, uplink_kbps=23.0, initcwnd=1, response_bytes=613,
          request_bytes=75, earlier_bytes=613, earlier_request_bytes=75, earlier_count=4),
     378.124, 1850.355),
    (dict(rtt_ms=134.2, bandwidth_kbps=21.0, uplink_kbps=21.0, initcwnd=3, response_bytes=8774,
          request_bytes=76, earlier_bytes=8774, earlier_request_bytes=76, earlier_count=5,
          idle_ms=15555.0), 3706.772, 35_057.344)])
def test_a_dsack_of_the_request_before_is_no_answer_to_the_next_request(
        parameters: dict[str, Any], total_ms: float, started_ms: float) -> None:
    """On a slow link the client retransmits a request that was not lost.

    The DSACK for it comes after the response, when the next request is on its way. It gives no
    sample of the RTT, and ends no timer. The times were measured in guests.
    """
    predicted = predict(transfer(initrwnd=1000, **parameters))
    assert predicted.total_ms == pytest.approx(total_ms, abs=0.002)
    assert predicted.started_ms == pytest.approx(started_ms, abs=0.01)


# Times and queues that guests measured ------------------------------------------------

def test_a_server_that_is_woken_up_writes_a_microsecond_later() -> None:
    """The server waits for room in its send buffer. The guest took the same time."""
    assert predict(transfer(
        rtt_ms=6.647, bandwidth_kbps=90024.006, uplink_kbps=90024.006, initcwnd=12, initrwnd=64,
        response_bytes=1553947, request_bytes=98, congestion_control="reno",
        receive_buffers=(189800, 6291456))).total_ms == pytest.approx(167.474315, abs=2e-5)


def test_a_queue_holds_what_slow_start_has_sent_when_it_ends() -> None:
    """The time of a batch decides at which acknowledgement slow start ends (hystart_ack_delay).

    The guest lost a packet with a queue of 164, and none with one of 165.
    """
    assert predict(transfer(
        rtt_ms=1.138, bandwidth_kbps=757191.792, uplink_kbps=757191.792, initcwnd=44, initrwnd=14,
        response_bytes=1045003, request_bytes=98)).peak_queue == 165


# Flights ------------------------------------------------------------------------------

SECURE = transfer(rtt_ms=100, bandwidth_kbps=100_000, uplink_kbps=100_000, initcwnd=10,
                  initrwnd=64, response_bytes=10_100, request_bytes=118, writes=(10_100,))


def tls_transfer(*flight: int, tickets: tuple[int, ...] = (255, 255)) -> Transfer:
    """A transfer over TLS. flight: bytes of each write of the server's flight. tickets: bytes."""
    return changed(SECURE, secure=Secure(517, flight, 80, tickets, 10_100))


def test_a_flight_ends_when_its_first_byte_is_acknowledged() -> None:
    flights = FlightCounter()
    # Each note has the next sequence number, and the lowest one that is not acknowledged.
    assert flights.note(500, 500)  # nothing is outstanding
    assert not flights.note(1948, 500)
    assert flights.note(3396, 1948)  # the second flight begins at 3396
    assert not flights.note(4844, 3396)  # only the first flight is acknowledged
    assert flights.note(6292, 3397)
    assert flights.count == 3


# Writes of OpenSSL, and the round trips that they take under a window of 10 segments.
@pytest.mark.parametrize(("flight", "round_trips"), [
    ((4096, 8688, 168), 1), ((4096, 8689, 168), 2), ((12_952,), 1), ((14_480,), 1),
    ((14_481,), 2), ((1448,) * 10, 1), ((100,) * 10, 1), ((100,) * 11, 2)])
def test_each_write_of_a_handshake_ends_in_a_segment_of_its_own(flight: tuple[int, ...],
                                                                round_trips: int) -> None:
    prediction = predict(tls_transfer(*flight))
    assert prediction.handshake_round_trips == round_trips
    assert prediction.first_flight == min(10, sum(-(-size // MSS) for size in flight))
    # Handshakes of TCP and TLS take whole round trips, and the bytes less than 2 ms.
    assert prediction.appconnect_ms == pytest.approx(100 * (1 + round_trips), abs=2.0)


def test_each_ticket_takes_a_segment_of_the_window() -> None:
    """A response of seven segments follows two, three or four tickets, under a window of 10."""
    for tickets, round_trips in (((255,) * 2, 1), ((255,) * 3, 1), ((255,) * 4, 2)):
        assert predict(tls_transfer(2400, tickets=tickets)).response_round_trips == round_trips


def test_a_fuller_flight_leaves_a_larger_window() -> None:
    """In slow start a window grows up to twice the flight (tcp_is_cwnd_limited)."""
    windows = [predict(tls_transfer(*flight)).window_after_handshake
               for flight in ((2400,), (4096, 4096), (4096, 8688, 168))]
    assert windows == [10, 12, 20]


@pytest.mark.parametrize(("start", "end", "numbers"), [
    (0, 6 * MSS, [[0, 1, 2], [3, 4], [5]]),
    (0, 3 * MSS, [[0, 1, 2]]), (0, 3 * MSS + 1, [[0, 1, 2], [3]]),
    (MSS, 6 * MSS, [[1, 2], [3, 4], [5]]), (3 * MSS, 6 * MSS, [[3, 4], [5]])])
def test_packets_are_split_into_flights_by_the_round_trip_of_leaving(
        start: int, end: int, numbers: list[list[int]]) -> None:
    """Retransmissions, such as segment 2 at 330 ms, are in no flight.

    numbers: of the segments in each flight between two bytes of the response.
    """
    talk = Conversation().handshake().flight(0, 1, 2).acknowledge(260, 1).acknowledge(270, 2)
    talk.flight(3, 2, 4, at_ms=330).acknowledge(400, 5).flight(5, at_ms=460)
    flights = split_into_flights(talk.read().at_server, start, end)
    assert [[(segment.seq - 1) // MSS for segment in flight] for flight in flights] == numbers


def test_segments_released_by_a_sack_are_the_next_flight() -> None:
    """The first segment is late, and the second one is acknowledged by SACK only."""
    talk = Conversation().handshake().flight(0, 1, 2)
    edges = struct.pack("!II", talk.server_start + 1 + MSS, talk.server_start + 1 + 2 * MSS)
    talk.send(260, False, ACK, seq=96, ack=1, options=bytes((1, 1, 5, 10)) + edges)
    talk.flight(3, at_ms=310).acknowledge(320, 3).flight(4, at_ms=370)
    flights = split_into_flights(talk.read().at_server, 0, 5 * MSS)
    assert [[(segment.seq - 1) // MSS for segment in flight] for flight in flights] == [
        [0, 1, 2], [3, 4]]
