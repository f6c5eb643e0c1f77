"""Handshakes longer than their timers, as guests captured them."""

from __future__ import annotations

from firstflight.model.endpoints import Handshake
from firstflight.model.network import Events, SimulatedLink
from firstflight.net.link import Path
from firstflight.net.path import Clock

CLOCK = Clock(phase_ns=2002)


def shaken(rtt_ms: float, bandwidth_kbps: float, uplink_kbps: float) -> Handshake:
    events = Events()
    path = Path.between(rtt_ms, bandwidth_kbps, uplink_kbps, 1000)
    return Handshake(events, CLOCK, SimulatedLink(events, path.up),
                     SimulatedLink(events, path.down), 97)


def test_below_a_second_nothing_is_sent_again() -> None:
    handshake = shaken(900, 1000, 1000)
    assert (handshake.syns, handshake.syn_acks, handshake.challenges) == (1, 1, [])
    assert handshake.client_us == 901_184 and handshake.server_us == 901_120


def test_one_timer_of_each_side() -> None:
    """RTT 1045 ms: the second copy of the SYN-ACK comes within half a second of the first."""
    handshake = shaken(1044.821, 275.85, 54.194)
    assert (handshake.syns, handshake.syn_acks) == (2, 3)
    assert handshake.connected == 1_057_890_202
    assert handshake.accepted == 1_599_075_240
    assert handshake.challenges == [(2_092_554_093, 2_624_707_214)]
    assert handshake.client_us == 1_057_000  # by the time stamps, whole milliseconds


def test_three_timers_of_the_client() -> None:
    """RTT 3082 ms: every SYN is answered, and puts the server's own timer off."""
    handshake = shaken(3081.775, 29.419, 29.419)
    assert (handshake.syns, handshake.syn_acks, handshake.timeouts) == (4, 5, 1)
    assert handshake.connected == 3_122_026_206 and handshake.accepted == 4_682_960_516
    assert [left for left, _ in handshake.challenges] == [
        4_153_011_101, 5_202_024_204, 6_226_024_204]
    assert handshake.server_us == 3_121_000
