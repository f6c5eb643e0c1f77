"""A write that a back-end delayed belongs to the first flight; a timer's probe does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lab.fetches.evidence import Evidence
from lab.fetches.tolerances import EXACT
from lab.tcp.packets import ACK
from tests.golden import stored
from tests.unit.tcp.conversation import MSS, Conversation


@pytest.mark.parametrize("gap_ms, initcwnd, left_ms, flight", [
    # The response begins at 150 ms: a back-end of 110 ms has answered by 260 ms, or two later.
    (110.0, 3, 259.9, 2), (110.0, 3, 260.0, 3), (110.0, 3, 262.0, 3), (110.0, 3, 262.1, 2),
    (0.0, 3, 260.0, 2), (110.0, 2, 260.0, 2)])
def test_a_lone_segment_when_the_back_end_has_answered_is_of_the_first_flight(
        gap_ms: float, initcwnd: int, left_ms: float, flight: int) -> None:
    packets = Conversation().handshake().flight(0, 1)
    packets.send(left_ms, True, ACK, seq=1 + 2 * MSS, ack=96, payload=MSS)
    packets.acknowledge(330, 3)
    trial = replace(stored.load("iw3").trial, gap_ms=gap_ms, initcwnd=initcwnd)
    assert Evidence(trial, {}, {}, packets.read(), EXACT, {}).first_flight == flight


def test_before_an_earlier_response_nothing_is_told_of_the_first_flights_pause() -> None:
    packets = Conversation().handshake()
    trial = replace(stored.load("iw3").trial, gap_ms=110.0)
    assert Evidence(trial, {}, {}, packets.read(), EXACT, {}).first_flight is None
