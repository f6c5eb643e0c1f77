"""Which timer sent a segment again, in stored trials; and what no timer explains."""

from __future__ import annotations

import pytest

from firstflight.net.headers import ACK, PUSH, SYN
from firstflight.net.segments import Segment
from firstflight.wire.exchange import read_exchange
from firstflight.wire.retransmissions import (ARP_AND_SYN_TIMER, FALLBACK_TIMER, PROBE,
                                              RETRANSMISSION_TIMER, SYN_ACK_TIMER, SYN_TIMER,
                                              Retransmission, explain_retransmissions)
from tests.golden import stored
from tests.golden.stored import Stored, nth_data, sent_again
from tests.unit.tcp.conversation import MS, Conversation


@pytest.fixture
def good() -> Stored:
    """RTT 100 ms, 1000 kbit/s, window 3, 9000 bytes; nothing sent again."""
    return stored.load("iw3")


def explained(trial: Stored) -> tuple[Retransmission, ...]:
    return explain_retransmissions(read_exchange(trial.client, trial.server))


def causes(trial: Stored) -> set[str | None]:
    return {again.cause for again in explained(trial)}


def unexplained(trial: Stored) -> list[Segment]:
    return [again.segment for again in explained(trial) if again.cause is None]


def test_a_timer_explains_nothing_before_its_time() -> None:
    early = stored.load("queue_timer")
    moved = []
    for packets, later_ns in ((stored.read(early.client), 1_000_000_000),
                              (stored.read(early.server), 150_000_000)):
        first = nth_data(packets, 1)
        again = next(packet for packet in packets if packet is not first
                     and packet.frame[38:42] == first.frame[38:42]
                     and packet.payload_bytes and packet.to_client)
        packets.remove(again)
        moved.append([*packets, first.retransmitted(later_ns, 65000)])
    assert unexplained(early.captured(*moved))


@pytest.mark.parametrize(("flags", "later_ms"), [(0x02, 20), (0x02, 1100), (0x12, 20),
                                                 (0x12, 1100)])
def test_a_repeated_handshake_that_nothing_explains(good: Stored, flags: int,
                                                    later_ms: int) -> None:
    """A SYN or SYN-ACK again, though the answer took but 100 ms."""
    copies = []
    for packets in (stored.read(good.client), stored.read(good.server)):
        first = next(packet for packet in packets if packet.frame[47] == flags)
        copies.append([*packets, first.retransmitted(later_ms * 1_000_000, 65000)])
    assert unexplained(good.captured(*copies))


def test_a_probe_explains_nothing_before_two_round_trips(good: Stored) -> None:
    assert unexplained(sent_again(good, 2, later_ms=100))  # the flight's last


@pytest.mark.parametrize(("probed_ms", "cause"), [(345, None), (390, None), (399, PROBE)])
def test_a_probe_comes_when_the_timer_of_the_head_would_run_out(probed_ms: float,
                                                                cause: str | None) -> None:
    """The head waits since 100 ms, so its timer runs out at 400; the tail was sent at 330."""
    talk = Conversation().handshake()
    for seq, at_ms in ((1, 100), (1449, 330)):
        talk.send(at_ms, True, ACK | PUSH, seq=seq, ack=96, payload=1448)
    talk.send(probed_ms, True, ACK | PUSH, seq=1449, ack=96, payload=1448)
    talk.send(401, False, ACK, seq=96, ack=1449).send(402, False, ACK, seq=96, ack=2897)
    assert {again.cause for again in explain_retransmissions(talk.read())} == {cause}


def test_a_timer_explains_its_own_window_only() -> None:
    """What was sent after the timer ran out is not sent again because of it."""
    trial = sent_again(stored.load("queue_timer"), 6, later_ms=60)
    assert causes(trial) == {RETRANSMISSION_TIMER, None}
    assert [(segment.seq, segment.end) for segment in unexplained(trial)] == [(7241, 8689)]


@pytest.mark.parametrize(("again_ms", "cause"), [(298, RETRANSMISSION_TIMER), (297.99, None)])
def test_the_heads_timer_waits_a_round_trip_and_200_ms(again_ms: float, cause: str | None) -> None:
    """TCP_RTO_MIN beyond the handshake's 100 ms, less what two clocks in milliseconds round off."""
    talk = Conversation().handshake().flight(0, 1).flight(0, at_ms=150 + again_ms)
    (again,) = explain_retransmissions(talk.acknowledge(700, 2).read())
    assert again.cause == cause


@pytest.mark.parametrize(("syn_ack_ms", "cause"), [(2600, FALLBACK_TIMER), (0, None)])
def test_three_seconds_explain_the_head_only_after_a_second_syn_ack(syn_ack_ms: float,
                                                                   cause: str | None) -> None:
    """RFC 6298, 5.7; the RTT of 3.2 s leaves no other timer that could have run out."""
    talk = shaken(1600, syn_ack_ms=syn_ack_ms).flight(0, 1, at_ms=4800).flight(0, at_ms=7800)
    copies = explain_retransmissions(talk.read())
    assert [copy.cause for copy in copies if copy.segment.payload_bytes] == [cause]


def test_no_cause_is_empty() -> None:
    """That is what a loss is told by."""
    assert all((ARP_AND_SYN_TIMER, FALLBACK_TIMER, PROBE, RETRANSMISSION_TIMER, SYN_ACK_TIMER,
                SYN_TIMER))


def test_a_fallback_timer_is_named() -> None:
    """Without time stamps a repeated SYN-ACK leaves a timer of 3 s, which a long RTT outlasts."""
    assert FALLBACK_TIMER in causes(sent_again(stored.load("long_rtt"), 0, later_ms=3050))


def shaken(one_way_ms: int, syn_ms: float = 0.0, syn_ack_ms: float = 0.0) -> Conversation:
    """A handshake over a long way; when its SYN and its SYN-ACK left again, if they did."""
    talk = Conversation(one_way_ns=one_way_ms * MS).send(0, False, SYN)
    if syn_ms:
        talk.send(syn_ms, False, SYN)
    talk.send(one_way_ms, True, SYN | ACK, ack=1)
    if syn_ack_ms:
        talk.send(syn_ack_ms, True, SYN | ACK, ack=1)
    talk.send(2 * one_way_ms, False, ACK, seq=1, ack=1)
    return talk.send(2 * one_way_ms, False, ACK | PUSH, seq=1, ack=1, payload=95)


@pytest.mark.parametrize(("one_way_ms", "arp_ms", "syn_ms", "cause"), [
    (600, 0, 1000, SYN_TIMER), (600, 0, 999, None), (500, 0, 1000, SYN_TIMER),
    (499, 0, 1000, None),  # the answer was there before
    (350, 400, 600, ARP_AND_SYN_TIMER), (350, 400, 599, None), (299, 400, 600, None)])
def test_a_syn_leaves_again_a_second_after_the_client_began(
        one_way_ms: int, arp_ms: float, syn_ms: float, cause: str | None) -> None:
    """arp_ms: what its question for an address took (ARP), before its first SYN left."""
    (again,) = explain_retransmissions(shaken(one_way_ms, syn_ms=syn_ms).read(), arp_ms)
    assert again.cause == cause and not again.segment.to_client


@pytest.mark.parametrize(("syn_ms", "syn_ack_ms", "cause"), [
    (0, 1600, SYN_ACK_TIMER), (0, 1599, None),
    (1003, 1603, SYN_TIMER), (1003, 1603.5, SYN_TIMER),  # it answers the second SYN
    (1003, 1604, SYN_ACK_TIMER), (990, 1598, None)])
def test_a_syn_ack_leaves_again_for_its_timer_or_for_another_syn(
        syn_ms: float, syn_ack_ms: float, cause: str | None) -> None:
    copies = explain_retransmissions(shaken(600, syn_ms, syn_ack_ms).read())
    assert [copy.cause for copy in copies if copy.segment.to_client] == [cause]


@pytest.mark.parametrize(("later_ms", "cause"), [(197, None), (199, PROBE)])
def test_a_client_repeats_its_request_when_its_own_timer_runs_out(later_ms: int, cause: str | None
                                                                  ) -> None:
    """No sooner than two RTTs after it left."""
    talk = Conversation().handshake()
    talk.send(100 + later_ms, False, ACK | PUSH, seq=1, ack=1, payload=95)
    talk.send(500, True, ACK, seq=1, ack=96, payload=1448).acknowledge(560, 1)
    (again,) = explain_retransmissions(talk.read())
    assert again.cause == cause and not again.segment.to_client


@pytest.mark.parametrize(("acknowledged", "second"), [(2, PROBE), (0, None)])
def test_after_progress_there_may_be_another_probe(acknowledged: int, second: str | None) -> None:
    talk = Conversation().handshake().flight(0, 1).flight(1, at_ms=360)
    if acknowledged:
        talk.acknowledge(420, acknowledged).flight(2, at_ms=480).flight(2, at_ms=690)
    else:
        talk.flight(1, at_ms=440)  # no progress: a second one so soon no timer explains
    talk.acknowledge(900, 3)
    assert [copy.cause for copy in explain_retransmissions(talk.read())] == [PROBE, second]
