"""Where the messages of a connection begin and end, read off its packets."""

from __future__ import annotations

import pytest

from firstflight.net.headers import ACK, PUSH, SYN
from firstflight.wire.messages import Messages, find_messages
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
