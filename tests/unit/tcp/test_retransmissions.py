"""Which timer sent a segment again, in stored trials; and what no timer explains."""

from __future__ import annotations

import pytest

from lab.tcp.exchange import read_exchange
from lab.tcp.packets import ACK, PUSH, Segment
from lab.tcp.retransmissions import (FALLBACK_TIMER, PROBE, RETRANSMISSION_TIMER, SYN_TIMER,
                                     Retransmission, explain)
from tests.golden import stored
from tests.golden.stored import Stored, nth_data, sent_again
from tests.unit.tcp.conversation import Conversation


@pytest.fixture
def good() -> Stored:
    """RTT 100 ms, 1000 kbit/s, window 3, 9000 bytes; nothing sent again."""
    return stored.load("iw3")


def explained(trial: Stored) -> tuple[Retransmission, ...]:
    return explain(read_exchange(trial.client, trial.server))


def causes(trial: Stored) -> set[str | None]:
    return {found.cause for found in explained(trial)}


def unexplained(trial: Stored) -> list[Segment]:
    return [found.segment for found in explained(trial) if found.cause is None]


def test_nothing_was_sent_again(good: Stored) -> None:
    assert explained(good) == ()


def test_after_a_loss_nothing_needs_explaining() -> None:
    assert causes(stored.load("random_loss")) == {""}


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
        moved.append([*packets, first.again(later_ns, 65000)])
    assert unexplained(early.captured(*moved))


@pytest.mark.parametrize(("flags", "later_ms"), [(0x02, 20), (0x02, 1100), (0x12, 20),
                                                 (0x12, 1100)])
def test_a_repeated_handshake_that_nothing_explains(good: Stored, flags: int,
                                                    later_ms: int) -> None:
    """A SYN or SYN-ACK again, though the answer took but 100 ms."""
    copies = []
    for packets in (stored.read(good.client), stored.read(good.server)):
        first = next(packet for packet in packets if packet.frame[47] == flags)
        copies.append([*packets, first.again(later_ms * 1_000_000, 65000)])
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
    assert {found.cause for found in explain(talk.read())} == {cause}


def test_a_timer_explains_its_own_window_only() -> None:
    """What was sent after the timer ran out is not sent again because of it."""
    trial = sent_again(stored.load("queue_timer"), 6, later_ms=60)
    assert causes(trial) == {RETRANSMISSION_TIMER, None}
    assert [(segment.seq, segment.end) for segment in unexplained(trial)] == [(7241, 8689)]


@pytest.mark.parametrize(("name", "cause"), [
    ("queue_timer", RETRANSMISSION_TIMER), ("tail_probe", PROBE), ("syn_timer", SYN_TIMER)])
def test_timers_are_named(name: str, cause: str) -> None:
    assert cause in causes(stored.load(name))


def test_a_fallback_timer_is_named() -> None:
    """Without time stamps a repeated SYN-ACK leaves a timer of 3 s, which a long RTT outlasts."""
    assert FALLBACK_TIMER in causes(sent_again(stored.load("long_rtt"), 0, later_ms=3050))
