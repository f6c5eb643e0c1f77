"""When a response begins to leave that waits behind session tickets: by the server, by the packets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from firstflight.net.headers import ACK
from firstflight.study.fetches.verify import verify
from firstflight.study.fetches.verify.evidence import Evidence
from firstflight.study.fetches.verify.observed import EXACT
from firstflight.study.fetches.verify.record import Record
from tests.golden import stored
from tests.unit.tcp.conversation import Conversation

TICKET, RESPONSE = 255, 500


def evidence(latency_ms: float, qdisc: str = "fifo", tls: bool = True,
             control: str = "cubic") -> Evidence:
    """A ticket at 150 ms; the response waits until 260, and is all acknowledged at 460.

    What is acknowledged at 260 and 300 ms is a part of the ticket, and all of it.
    """
    packets = Conversation().handshake()
    packets.send(150, True, ACK, seq=1, ack=96, payload=TICKET)
    packets.send(210, False, ACK, seq=96, ack=100)
    packets.send(260, True, ACK, seq=1 + TICKET, ack=96, payload=RESPONSE)
    packets.send(250, False, ACK, seq=96, ack=1 + TICKET)
    packets.send(410, False, ACK, seq=96, ack=1 + TICKET + RESPONSE)
    trial = replace(stored.load("iw3").trial, qdisc=qdisc, congestion_control=control)
    said: dict[str, Any] = {"latency_ms": latency_ms, **({"tls": {"tickets": [TICKET]}} if tls else {})}
    return Evidence(trial, {}, said, packets.read(response_bytes=RESPONSE), EXACT, {})


def passes(seen: Evidence) -> bool:
    (compared,) = verify._compare_server_latency(seen)
    return compared.passed


@pytest.mark.parametrize("latency_ms, otherwise, right", [
    (200.0, {}, True), (200.04, {}, True), (200.06, {}, False), (199.94, {}, False),
    (160.0, {}, True), (159.9, {}, False), (0.0, {}, True),  # heard at 300 ms, or at the very end
    (250.0, {}, False),  # before any of it left
    (160.0, {"tls": False}, False), (200.0, {"tls": False}, True),
    (160.0, {"tls": False, "control": "bbr"}, True),
    (310.0, {}, False), (310.0, {"qdisc": "fq"}, True), (309.9, {"qdisc": "fq"}, True),
    (310.1, {"qdisc": "fq"}, False),
])
def test_a_beginning_is_that_of_the_packets_or_when_the_server_could_hear_of_it(
        latency_ms: float, otherwise: dict[str, str], right: bool) -> None:
    assert passes(evidence(latency_ms, **otherwise)) is right  # type: ignore[arg-type]


def test_the_latency_is_the_packets_where_the_server_heard_late() -> None:
    assert evidence(160.0).latency_ms == 200.0
    assert evidence(160.0, tls=False, control="bbr").latency_ms == 200.0
    assert evidence(160.0, tls=False).latency_ms == 160.0  # nothing delays it: a fault to be shown
    assert evidence(200.02).latency_ms == 200.02
    assert evidence(310.0, qdisc="fq").latency_ms == 310.0


@pytest.mark.parametrize("latency_ms, right", [(190.0, True), (188.1, True), (179.9, False)])
def test_of_two_writes_that_share_an_skb_the_second_one_is_heard_of(latency_ms: float,
                                                                    right: bool) -> None:
    """It was written a pause later, 12 ms here."""
    seen = evidence(latency_ms)
    assert not passes(seen)
    assert passes(replace(seen, trial=replace(seen.trial, gap_ms=12.0))) is right


def test_what_paces_may_have_a_segment_more_under_way_or_fewer() -> None:
    paced = stored.load("paced")
    assert paced.judge().counts

    def with_window(window: int, bbrs_rate: int) -> Record:
        return paced.requested(initcwnd=window).said(
            "server", initial_window=window, pacing_bytes_per_s=bbrs_rate).judge()

    assert with_window(9, 618_361).counts
    assert (with_window(8, 549_545).verdict_reason
            == "first flight: observed 10 segments, expected 1 to 9")
    assert "initial window" in paced.requested(initcwnd=9).judge().verdict_reason
