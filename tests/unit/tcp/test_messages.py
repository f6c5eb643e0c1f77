"""Where messages begin and end, and the round trips in which their bytes leave."""

from __future__ import annotations

import pytest

from firstflight.model.predict import predict
from firstflight.model.transfer import Secure, Transfer
from firstflight.net.headers import ACK, PUSH, SYN
from firstflight.wire.flights import FlightCounter, split_into_flights
from firstflight.wire.messages import Messages, find_messages
from tests.transfers import changed, transfer
from tests.unit.tcp.conversation import MSS, Conversation, plain


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
