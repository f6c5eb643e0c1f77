"""A write that a back-end delayed belongs to the first flight; a timer's probe does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from firstflight.net.headers import ACK, PUSH, SYN
from firstflight.net.segments import MS
from firstflight.study.fetches.verify import verify
from firstflight.study.fetches.verify.evidence import Evidence
from firstflight.study.fetches.verify.observed import EXACT
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


SAID = {"latency_ms": 0.0, "header_bytes": 57, "request_bytes": 95}
GAP_MS, DUE_MS = 150.0, 300.1


def paused(segments: int, initcwnd: int = 9, control: str = "cubic", lost: bool = True,
           **otherwise: float) -> Evidence:
    """Headers of 57 bytes that are lost, and so many segments when the back-end has answered.

    otherwise: ms at which the headers are repeated, a duplicate ACK arrives, or one more leaves.
    """
    packets = Conversation().handshake()
    packets.send(150, True, ACK, seq=1, ack=96, payload=57, lost=lost)
    if "acknowledged" in otherwise:
        packets.send(otherwise["acknowledged"] - 50, False, ACK, seq=96, ack=58)
    if "again" in otherwise:
        packets.send(otherwise["again"], True, ACK, seq=1, ack=96, payload=57, lost=True)
    for number in range(segments):
        packets.send(DUE_MS, True, ACK, seq=58 + number * MSS, ack=96, payload=MSS)
    if "more" in otherwise:
        packets.send(otherwise["more"], True, ACK, seq=58 + segments * MSS, ack=96, payload=MSS)
    trial = replace(stored.load("iw3").trial, gap_ms=GAP_MS, initcwnd=initcwnd, initrwnd=64,
                    response_bytes=30_000, congestion_control=control)
    return Evidence(trial, {}, SAID, packets.read(), EXACT, {})


def compared(evidence: Evidence) -> tuple[bool, str, str]:
    (found,) = verify._compare_first_flight(evidence)
    return found.passed, found.observed, found.requested


@pytest.mark.parametrize("segments, otherwise, holds", [
    (8, {}, True), (7, {}, False), (9, {}, False),  # one flight: the lost segment counts
    (9, {"acknowledged": 250.0, "lost": False}, True),  # two: of the first nothing is lost
    (7, {"again": 290.0}, True), (8, {"again": 290.0}, True), (9, {"again": 290.0}, False),
    (8, {"more": 330.0}, True),  # of a timer: neither write was then
    (7, {"control": "bbr"}, True), (9, {"control": "bbr"}, True), (10, {"control": "bbr"}, False),
])
def test_a_write_whose_acknowledgement_is_lost_is_of_one_flight_with_the_next(
        segments: int, otherwise: dict[str, float], holds: bool) -> None:
    assert compared(paused(segments, **otherwise))[0] is holds  # type: ignore[arg-type]


def test_the_first_of_two_flights_is_the_headers_alone() -> None:
    evidence = paused(9, acknowledged=250.0, lost=False)
    evidence = replace(evidence, trial=replace(evidence.trial, jitter_ms=1.0))
    assert compared(evidence) == (True, "1 segments", "1")
    assert compared(paused(12)) == (False, "13 segments", "9")
    assert compared(paused(12, again=200.0)) == (False, "13 segments", "1 to 9")


@pytest.mark.parametrize("later_ms, holds", [(0.0, True), (0.059, False)])
def test_the_rtt_of_the_handshake_decides_how_much_waits(later_ms: float, holds: bool) -> None:
    """tcp_tso_autosize: batches of ten after 4.148 ms, where fq_codel let the SYN-ACK through.

    It waited 59 µs for the link of an idle path: then batches of nine leave, and three wait.
    """
    packets = Conversation(one_way_ns=round(2.074 * MS)).send(0, False, SYN)
    packets.send(2.107, True, SYN | ACK, ack=1, takes_ms=2.074 + later_ms)
    packets.send(4.181 + later_ms, False, ACK | PUSH, seq=1, ack=1, payload=121)
    for place in range(8):
        packets.send(6.3, True, ACK, seq=1 + place * MSS, ack=122, payload=MSS)
    packets.send(6.301, True, ACK | PUSH, seq=11585, ack=122, payload=109)
    for place in range(10):
        packets.send(9.599, True, ACK, seq=11694 + place * MSS, ack=122, payload=MSS)
    packets.send(8.4, False, ACK, seq=122, ack=1449)
    trial = replace(stored.load("iw3").trial, rtt_ms=4.096, bandwidth_kbps=10062.765,
                    uplink_kbps=10062.765, gap_ms=3.295, initcwnd=21, initrwnd=100,
                    qdisc="fq_codel", burst_bytes=11632, response_bytes=58317)
    said = {"latency_ms": 0.0, "header_bytes": 61, "request_bytes": 121}
    assert compared(Evidence(trial, {}, said, packets.read(), EXACT, {}))[0] is holds


def test_a_lone_segment_behind_the_first_acknowledgement_is_of_no_first_flight() -> None:
    packets = Conversation().handshake().flight(0)
    packets.acknowledge(200, 1)
    packets.send(420, True, ACK, seq=1 + MSS, ack=96, payload=MSS)
    packets.acknowledge(520, 2)
    trial = replace(stored.load("iw3").trial, gap_ms=270.0)
    assert Evidence(trial, {}, {}, packets.read(), EXACT, {}).first_flight == 1
