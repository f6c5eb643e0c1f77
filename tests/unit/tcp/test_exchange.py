"""What the packets of an exchange say, where messages begin and end, and their flights."""

from __future__ import annotations

import struct

import pytest

from firstflight.model.predict import predict
from firstflight.model.transfer import Secure, Transfer
from firstflight.net.headers import ACK, FIN, PUSH, RST, SYN
from firstflight.wire.exchange import (bandwidth_behind, clock_phase_ns, round_trip_ns, seen_rtt_ms,
                                       server_rtt_us)
from firstflight.wire.flights import FlightCounter, split_into_flights
from firstflight.wire.messages import Messages, find_messages
from tests.transfers import changed, transfer
from tests.unit.tcp.conversation import MS, MSS, Conversation, plain


def test_a_plain_exchange() -> None:
    seen = plain().read()
    assert seen.client_port == 40000
    assert (len(seen.at_client), len(seen.at_server)) == (10, 10)
    assert seen.handshake_ms == 100
    assert [s.seq for s in seen.first_flight] == [1, 1449, 2897]
    assert [s.seq for s in seen.flight_arrivals] == [1, 1449, 2897]
    assert seen.bandwidth_kbps == pytest.approx(1502 * 8 / 12.112, rel=1e-9)
    assert seen.latency_ms == pytest.approx(286.336 - 150)
    assert not (seen.retransmissions or seen.fin_retransmissions or seen.probes
                or seen.client_retransmissions or seen.lost_to_client or seen.lost_to_server)
    assert seen.handshake_retransmissions == 0


def test_the_rtt_is_the_handshake_less_serialisation() -> None:
    """The SYN takes 74 bytes of the uplink, the SYN-ACK 74 of the downlink."""
    sending_ms = 74 * 8 / 80 + 74 * 8 / 800
    assert seen_rtt_ms(plain().read(), 80, 800) == pytest.approx(100 - sending_ms)
    # netem takes whole bytes a second: 12.151 kbit/s are 1518.
    slow_ms = 74 * 1000 / 1518
    assert seen_rtt_ms(plain().read(), 12.151, 80) == pytest.approx(100 - slow_ms - 7.4)
    lost = Conversation().send(0, False, SYN, lost=True).send(1000, False, SYN)
    lost.send(1050, True, SYN | ACK, ack=1)
    assert lost.read().handshake_ms == 1100
    assert seen_rtt_ms(lost.read(), 80, 800) is None


def test_without_a_handshake() -> None:
    conversation = Conversation().send(100, False, ACK | PUSH, seq=1, ack=1, payload=95)
    conversation.flight(0, 1).acknowledge(212, 1).acknowledge(224, 2)
    seen = conversation.read()
    assert seen.handshake_ms is None and seen.syns == seen.syn_acks == ()
    assert [s.seq for s in seen.first_flight] == [1, 1449]
    assert seen.latency_ms == pytest.approx(274 - 150)


def test_a_client_that_got_no_answer() -> None:
    conversation = Conversation()
    for at_ms in (0, 1000, 3000):
        conversation.send(at_ms, False, SYN, lost=True)
    seen = conversation.read()
    assert seen.handshake_ms is None and seen.latency_ms is None
    assert seen.handshake_retransmissions == 2 and seen.handshake_was_lost
    assert len(seen.lost_to_server) == 3
    assert seen.first_flight == () and seen.bandwidth_kbps is None


def test_a_reset_is_no_retransmission() -> None:
    seen = plain().send(300, True, RST | ACK, seq=4345, ack=96).read()
    assert not seen.retransmissions


def test_retransmissions() -> None:
    conversation = plain().flight(1, at_ms=260)
    conversation.send(300, True, FIN | ACK, seq=1 + 3 * MSS, ack=96)
    conversation.send(400, True, FIN | ACK, seq=1 + 3 * MSS, ack=96)
    conversation.send(500, False, ACK | PUSH, seq=1, ack=4345, payload=95)
    seen = conversation.read()
    assert [s.seq for s in seen.retransmissions] == [1449]
    assert len(seen.fin_retransmissions) == len(seen.client_retransmissions) == 1
    assert [s.seq for s in seen.first_flight] == [1, 1449, 2897]


def test_a_segment_resent_with_its_fin_is_data() -> None:
    conversation = plain().send(300, True, FIN | PUSH | ACK, seq=1 + 2 * MSS, ack=96, payload=MSS)
    assert len(conversation.read().retransmissions) == 1


def test_repeated_handshake_packets() -> None:
    conversation = plain()
    conversation.send(1000, False, SYN).send(1050, True, SYN | ACK, ack=1)
    seen = conversation.read()
    assert (len(seen.syns), len(seen.syn_acks)) == (2, 2)
    assert seen.handshake_retransmissions == 2
    assert seen.handshake_ms == 100 and not seen.handshake_was_lost
    assert not seen.retransmissions and not seen.client_retransmissions


def test_losses_are_found_by_transmission() -> None:
    """A segment that was lost once and arrived the second time was still lost once."""
    conversation = Conversation().handshake().flight(0)
    conversation.send(150, True, ACK, seq=1449, ack=96, payload=MSS, lost=True)
    conversation.flight(2).acknowledge(212, 1).flight(1, at_ms=400).acknowledge(500, 3)
    conversation.send(600, False, ACK, seq=96, ack=4345, lost=True)
    seen = conversation.read()
    assert [s.seq for s in seen.lost_data] == [1449]
    assert len(seen.lost_to_client) == len(seen.lost_to_server) == 1
    assert [s.seq for s in seen.retransmissions] == [1449]
    assert [s.seq for s in seen.first_flight] == [1, 1449, 2897]
    assert [s.seq for s in seen.flight_arrivals] == [1, 2897]


def test_the_first_flight_ends_with_the_first_acknowledgement_of_data() -> None:
    conversation = Conversation().handshake().flight(0, 1)
    conversation.send(140, False, ACK, seq=96, ack=1)  # of no data
    conversation.send(195, True, ACK, seq=2897, ack=96, payload=MSS, takes_ms=60)
    conversation.acknowledge(212, 1).flight(3, at_ms=262.5)
    assert [s.seq for s in conversation.read().first_flight] == [1, 1449, 2897]


def test_a_probe_is_not_of_the_flight() -> None:
    """New data without any cause but time: beyond the window, by a timer."""
    conversation = Conversation().handshake().flight(0, 1).flight(2, at_ms=360)
    conversation.acknowledge(400, 1).flight(3, at_ms=450)
    seen = conversation.read()
    assert [s.seq for s in seen.first_flight] == [1, 1449]
    assert [s.seq for s in seen.probes] == [2897]


def test_a_write_after_a_pause_is_no_probe() -> None:
    conversation = Conversation().handshake().flight(0, 1).flight(2, 3, at_ms=360)
    seen = conversation.acknowledge(450, 1).read()
    assert len(seen.first_flight) == 4 and not seen.probes
    # Only the first two kept the link busy: the pace of the rest is the server's.
    assert len(seen.flight_arrivals) == 2
    assert seen.bandwidth_kbps == pytest.approx(1502 * 8 / 12.112, rel=1e-9)


def test_bandwidth_needs_two_arrivals() -> None:
    seen = Conversation().handshake().flight(0).acknowledge(212, 1).read()
    assert len(seen.first_flight) == 1 and seen.bandwidth_kbps is None
    assert seen.latency_ms == pytest.approx(112)


def test_bandwidth_counts_all_that_the_link_carried() -> None:
    conversation = Conversation().handshake().flight(0)
    took = 40 * 8 / 1000 + 14 * 8 / 1000  # a SYN-ACK without options, in between
    conversation.send(150, True, SYN | ACK, ack=1, takes_ms=50 + 12.112 + took)
    conversation.send(150, True, ACK, seq=1449, ack=96, payload=MSS,
                      takes_ms=50 + 12.112 + took + 1502 * 8 / 1000)
    assert conversation.acknowledge(230, 2).read().bandwidth_kbps == pytest.approx(1000, rel=1e-6)


def test_a_paced_flight_shows_no_bandwidth() -> None:
    conversation = Conversation().handshake()
    for number in range(3):
        conversation.flight(number, at_ms=150 + 30 * number)
    seen = conversation.acknowledge(250, 1).read()
    assert len(seen.first_flight) == 3 and seen.bandwidth_kbps is None


def test_latency_of_the_last_response_of_several() -> None:
    conversation = plain()
    conversation.send(290, False, ACK | PUSH, seq=96, ack=1 + 3 * MSS, payload=95)
    conversation.send(340, True, ACK | PUSH, seq=1 + 3 * MSS, ack=191, payload=1000)
    conversation.send(400, False, ACK, seq=191, ack=1001 + 3 * MSS)
    assert conversation.read(response_bytes=1000).latency_ms == pytest.approx(110)
    assert conversation.read().latency_ms == pytest.approx(300)


def test_the_phase_of_the_clock() -> None:
    """Stamps count whole milliseconds: packets at the right times tell where one starts."""
    phase_ns = 300_000
    conversation = Conversation()
    for at_ms in (0.0, 10.65, 20.71, 33.69, 50.72):
        stamp = int(at_ms + phase_ns / MS)
        conversation.send(at_ms, False, ACK if at_ms else SYN, seq=1 if at_ms else 0, ack=1,
                          options=b"\x01\x01\x08\x0a" + struct.pack(">II", stamp, 0))
    phase = clock_phase_ns(conversation.read())
    assert phase == pytest.approx(phase_ns, abs=10_000)
    assert clock_phase_ns(plain().read()) is None  # no stamps


def test_the_server_takes_its_handshake_for_the_rtt() -> None:
    assert server_rtt_us(plain().read()) == (100_000, 100_001)
    assert server_rtt_us(Conversation().send(0, False, SYN).read()) is None


@pytest.mark.parametrize("echo, spans", [(50, (100_000, 100_000)), (80, (70_000, 70_000))])
def test_of_a_syn_ack_that_was_repeated_its_stamp_tells_the_rtt(
        echo: int, spans: tuple[int, int]) -> None:
    """In whole milliseconds of the server's clock, which the packets show to have a phase."""
    talk, phase_ms = Conversation().send(0, False, SYN), 0.3
    for at_ms in (50.0, 80.0, 150.6, 160.75):
        talk.send(at_ms, True, ACK if at_ms > 100 else SYN | ACK, seq=int(at_ms > 100), ack=1,
                  options=b"\x01\x01\x08\x0a" + struct.pack(">II", int(at_ms + phase_ms), 0))
    stamps = b"\x01\x01\x08\x0a" + struct.pack(">II", 0, echo)
    assert server_rtt_us(talk.send(100, False, ACK, seq=1, ack=1, options=stamps).read()) == spans
    assert server_rtt_us(Conversation().send(0, False, SYN).send(50, True, SYN | ACK, ack=1)
                         .send(80, True, SYN | ACK, ack=1).send(100, False, ACK, seq=1, ack=1)
                         .read()) is None  # no stamps


def test_stamps_that_contradict_each_other_give_no_phase() -> None:
    conversation = Conversation()
    for at_ms, stamp in ((0.0, 5), (10.0, 99)):
        conversation.send(at_ms, False, ACK if at_ms else SYN, seq=1 if at_ms else 0, ack=1,
                          options=b"\x01\x01\x08\x0a" + struct.pack(">II", stamp, 0))
    assert clock_phase_ns(conversation.read()) is None


@pytest.mark.parametrize(("pause_ms", "follows_ms", "probes"), [
    (100, None, 1), (99.999, None, 0), (100, 1.001, 1), (100, 1, 0)])
def test_a_timer_sends_alone_after_a_round_trip_without_any_event(
        pause_ms: float, follows_ms: float | None, probes: int) -> None:
    talk = Conversation().handshake().flight(0, 1).flight(2, at_ms=150 + pause_ms)
    if follows_ms is not None:
        talk.flight(3, at_ms=150 + pause_ms + follows_ms)
    assert len(talk.acknowledge(600, 4).read().probes) == probes


@pytest.mark.parametrize(("answers", "probes"), [(True, 1), (False, 0)])
def test_a_copy_of_a_request_and_its_answer_are_no_event(answers: bool, probes: int) -> None:
    """Without an answer of that moment what leaves next could be for the copy."""
    talk = Conversation().handshake().flight(0, 1)
    talk.send(200, False, ACK | PUSH, seq=95, ack=1, payload=1)
    talk.send(250 if answers else 251, True, ACK, seq=2897, ack=96, options=b"\x01" * 12)
    talk.flight(2, at_ms=300)  # a round trip after what was sent, half of one after the copy
    assert len(talk.acknowledge(600, 3).read().probes) == probes


@pytest.mark.parametrize(("options", "segments"), [(b"\x01\x01\x04\x02", 3),
                                                   (b"\x02\x04\x05\xb4", 2)])
def test_without_sack_a_duplicate_acknowledgement_ends_the_first_flight(
        options: bytes, segments: int) -> None:
    """It lets new data leave (RFC 3042). With SACK it names what arrived, or nothing did."""
    talk = Conversation().send(0, False, SYN, options=options)
    talk.send(50, True, SYN | ACK, ack=1, options=options)
    talk.send(100, False, ACK, seq=1, ack=1)
    talk.send(100, False, ACK | PUSH, seq=1, ack=1, payload=95).flight(0, 1)
    talk.send(230, False, ACK, seq=96, ack=1).flight(2, at_ms=290)
    assert len(talk.acknowledge(350, 3).read().first_flight) == segments


def test_what_is_acknowledged_by_a_sack_alone_ends_the_first_flight() -> None:
    """The first segment was lost: the acknowledgement of the second says so in its options."""
    block = struct.pack(">BBBBII", 1, 1, 5, 10, 9000 + 1449, 9000 + 2897)
    talk = Conversation().handshake().flight(0, 1)
    talk.send(230, False, ACK, seq=96, ack=1, options=block).flight(2, at_ms=290)
    assert [each.seq for each in talk.read().first_flight] == [1, 1449]


@pytest.mark.parametrize(("apart_ms", "payload", "arrivals"), [
    (6, MSS, 2), (6.1, MSS, 1), (6, 500, 2), (6.1, 500, 1)])
def test_a_link_was_busy_where_the_next_had_left_by_half_of_the_time(
        apart_ms: float, payload: int, arrivals: int) -> None:
    """Two arrivals are 12 ms apart; whoever left later than half of that may have found it idle,
    also a short one, though the one before it took most of the time."""
    talk = Conversation().handshake().send(150, True, ACK, seq=1, ack=96, payload=MSS, takes_ms=62)
    talk.send(150 + apart_ms, True, ACK, seq=1449, ack=96, payload=payload, takes_ms=74 - apart_ms)
    assert len(talk.acknowledge(300, 2).read().flight_arrivals) == arrivals


def test_behind_a_token_bucket_a_packet_waits_for_the_one_before_it() -> None:
    """Sizes 1502, 1502, 554: after the first two the time is that of the second."""
    talk = Conversation().handshake().flight(0, 1, each_ms=1)
    talk.send(150.001, True, ACK | PUSH, seq=2897, ack=96, payload=500, takes_ms=64.015)
    seen = talk.acknowledge(300, 2).read()
    assert len(seen.flight_arrivals) == 3
    assert bandwidth_behind(seen, 1) == pytest.approx(1000, rel=1e-6)
    assert bandwidth_behind(seen, 2) is None


def test_each_side_tells_the_round_trip_of_its_own_handshake() -> None:
    seen = Conversation().handshake().read()
    assert round_trip_ns(seen.at_client, to_client=False) == 100 * MS
    assert round_trip_ns(seen.at_server, to_client=True) == 100 * MS
    slow = Conversation().send(0, False, SYN).send(55, True, SYN | ACK, ack=1)
    slow.send(105, False, ACK, seq=1, ack=1)  # its SYN-ACK left 5 ms after the SYN had come
    assert round_trip_ns(slow.read().at_server, to_client=True) == 100 * MS
    alone = Conversation().send(0, False, SYN).read()
    assert round_trip_ns(alone.at_client, to_client=False) is None
    assert round_trip_ns(alone.at_server, to_client=True) is None


def test_what_the_network_doubles_was_not_lost_by_the_other_side() -> None:
    talk = plain()
    for tap in (talk.client, talk.server):
        time_ns, *packet = tap[-1]
        tap.append((time_ns + MS, *packet))  # type: ignore[arg-type]
    seen = talk.read()
    assert not seen.lost_to_server and not seen.lost_to_client


def test_copies_that_look_alike_are_counted() -> None:
    """Linux numbers every SYN-ACK zero (ip_build_and_send_pkt): of two that left one came."""
    talk = Conversation().send(0, False, SYN)
    for at_ms, lost in ((50, True), (1050, False)):
        talk.identification = -1
        talk.send(at_ms, True, SYN | ACK, ack=1, lost=lost)
    assert [s.to_client for s in talk.read().lost_to_client] == [True]


# Messages, and the round trips in which their bytes leave -----------------------------

HELLO, FINISHED, REQUEST = 300, 80, 120


def secure(with_finished: int = 0) -> Conversation:
    """A hello, a flight of two segments, the Finished, and a request with an answer of two.

    with_finished: bytes of the request that leave in the Finished's own packet.
    """
    talk = Conversation().send(0, False, SYN).send(50, True, SYN | ACK, ack=1)
    talk.send(100, False, ACK | PUSH, seq=1, ack=1, payload=HELLO)
    for number in range(2):
        talk.send(150, True, ACK, seq=1 + number * MSS, ack=1 + HELLO, payload=MSS)
    seen, first = 1 + 2 * MSS, FINISHED + with_finished
    talk.send(201, False, ACK | PUSH, seq=1 + HELLO, ack=seen, payload=first)
    if not with_finished:
        talk.send(202, False, ACK | PUSH, seq=1 + HELLO + FINISHED, ack=seen, payload=REQUEST)
    requested = 1 + HELLO + FINISHED + (with_finished or REQUEST)
    for number in range(2, 4):
        talk.send(260, True, ACK | PUSH, seq=1 + number * MSS, ack=requested, payload=MSS)
    return talk.send(320, False, ACK, seq=requested, ack=1 + 4 * MSS)


@pytest.mark.parametrize(("with_finished", "asked_bytes"), [
    (0, HELLO + FINISHED), (REQUEST, HELLO + FINISHED + REQUEST)])
def test_over_tls_the_request_comes_with_or_behind_the_finished(with_finished: int,
                                                                asked_bytes: int) -> None:
    found = find_messages(secure(with_finished).read(), True)
    assert found == Messages(2 * MSS, asked_bytes, 2 * MSS, 4 * MSS)


def test_without_tls_the_response_is_all_behind_the_request_that_counts() -> None:
    assert find_messages(plain().read(), False) == Messages(0, 0, 0, 3 * MSS)
    assert find_messages(plain().read(), False, before=1) is None, "one request only"
    again = plain().send(300, False, ACK | PUSH, seq=96, ack=1 + 3 * MSS, payload=95)
    assert find_messages(again.read(), False, before=1) is None, "without an answer"
    again.send(350, True, ACK | PUSH, seq=1 + 3 * MSS, ack=191, payload=MSS)
    assert find_messages(again.read(), False, before=1) == Messages(0, 0, 3 * MSS, 4 * MSS)


def test_without_a_flight_or_an_answer_there_are_none() -> None:
    assert find_messages(plain().read(), True) is None, "nothing of the server's was acknowledged"
    talk = Conversation().handshake()
    assert find_messages(talk.read(), False) is None


# Flights ------------------------------------------------------------------------------

BASE = transfer(rtt_ms=100, bandwidth_kbps=100_000, uplink_kbps=100_000, initcwnd=10, initrwnd=64,
                response_bytes=10_100, request_bytes=118, writes=(10_100,))


def tls_transfer(*flight: int, tickets: tuple[int, ...] = (255, 255)) -> Transfer:
    return changed(BASE, secure=Secure(517, flight, 80, tickets, 10_100))


def test_a_flight_ends_with_an_acknowledgement_of_what_it_began_with() -> None:
    rounds = FlightCounter()
    assert rounds.note(500, 500)  # all before is acknowledged
    assert not rounds.note(1948, 500)
    assert rounds.note(3396, 1948)  # the second flight begins at 3396
    assert not rounds.note(4844, 3396)  # an acknowledgement of the first one
    assert rounds.note(6292, 3397)
    assert rounds.count == 3


# Writes of OpenSSL's, their segments, and what they need of a window of 10.
@pytest.mark.parametrize(("flight", "round_trips"), [
    ((4096, 8688, 168), 1), ((4096, 8689, 168), 2), ((12_952,), 1), ((14_480,), 1),
    ((14_481,), 2), ((1448,) * 10, 1), ((100,) * 10, 1), ((100,) * 11, 2)])
def test_each_write_ends_in_a_segment_of_its_own(flight: tuple[int, ...],
                                                 round_trips: int) -> None:
    prediction = predict(tls_transfer(*flight))
    assert prediction.handshake_round_trips == round_trips
    assert prediction.first_flight == min(10, sum(-(-size // MSS) for size in flight))
    # Handshakes of TCP and TLS, and what the link takes for the bytes.
    assert prediction.appconnect_ms == pytest.approx(100 * (1 + round_trips), abs=2.0)


def test_tickets_take_slots_of_the_window() -> None:
    """Seven segments of response behind two tickets or five, in a window of 10."""
    for tickets, round_trips in (((255,) * 2, 1), ((255,) * 3, 1), ((255,) * 4, 2)):
        assert predict(tls_transfer(2400, tickets=tickets)).response_round_trips == round_trips


def test_a_full_flight_leaves_a_larger_window() -> None:
    """In slow start it grows up to twice what was under way (tcp_is_cwnd_limited)."""
    windows = [predict(tls_transfer(*flight)).window_after_handshake
               for flight in ((2400,), (4096, 4096), (4096, 8688, 168))]
    assert windows == [10, 12, 20]


@pytest.mark.parametrize(("start", "end", "numbers"), [
    (0, 6 * MSS, [[0, 1, 2], [3, 4], [5]]),
    (0, 3 * MSS, [[0, 1, 2]]), (0, 3 * MSS + 1, [[0, 1, 2], [3]]),
    (MSS, 6 * MSS, [[1, 2], [3, 4], [5]]), (3 * MSS, 6 * MSS, [[3, 4], [5]])])
def test_packets_are_told_by_the_round_trip_in_which_they_left(start: int, end: int,
                                                               numbers: list[list[int]]) -> None:
    """Whatever is sent again is in no flight."""
    talk = Conversation().handshake().flight(0, 1, 2).acknowledge(260, 1).acknowledge(270, 2)
    talk.flight(3, 2, 4, at_ms=330).acknowledge(400, 5).flight(5, at_ms=460)
    seen = split_into_flights(talk.read().at_server, start, end)
    assert [[(each.seq - 1) // MSS for each in flight] for flight in seen] == numbers
