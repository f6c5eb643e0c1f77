"""What limited a first flight: by the packets, of stored trials that were tampered with."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.golden import stored
from tests.golden.stored import Packet, Stored

Tamper = Callable[[Stored], Stored]


@pytest.fixture
def good() -> Stored:
    """A window of 3; 7 segments are to be sent."""
    return stored.load("iw3")


def offering(trial: Stored, window: int) -> Stored:
    """As if all packets of the client had this in their header's window."""
    def changed(packet: Packet) -> Packet:
        if packet.to_client:
            return packet
        return replace(packet, frame=packet.frame[:48] + struct.pack(">H", window)
                       + packet.frame[50:])
    return trial.captured(*([changed(packet) for packet in stored.read(side)]
                            for side in (trial.client, trial.server)))


def paced(trial: Stored) -> Stored:
    """As if the second segment had left 2 ms later than the first."""
    sent = stored.read(trial.server)
    late = [stored.nth_data(sent, number) for number in (1, 2)]
    return trial.captured(server=[replace(packet, time_ns=packet.time_ns + 2_000_000)
                                  if packet in late else packet for packet in sent])


@pytest.mark.parametrize(("limit", "tampered"), [
    ("", lambda good: good),
    ("congestion window", lambda good: good.requested(initcwnd=5)),
    # SYN-ACKs were sent again, after which the kernel began with less than was asked.
    ("repeated handshake", lambda good: stored.load("syn_timer").requested(initcwnd=5)),
    ("send buffer", lambda good: good.requested(initcwnd=5).said("server", initial_window=5)),
    # 3 segments of 1448 bytes, and less than another one
    ("receive window", lambda good: offering(
        good.requested(initcwnd=5).said("server", initial_window=5), (4344 + 1447) // 128)),
    ("send buffer", lambda good: offering(
        good.requested(initcwnd=5).said("server", initial_window=5), (4344 + 1448) // 128 + 1)),
    ("pacing", lambda good: paced(good.requested(initcwnd=5).said("server", initial_window=5))),
    ("wait for an acknowledgement", lambda good: paced(
        good.requested(initcwnd=5, gap_ms=50.0, burst_bytes=1000).said("server", initial_window=5))),
    ("response size", lambda good: stored.load("iw10")),
    ("response size", lambda good: stored.load("iw10").requested(initcwnd=12).said(
        "server", initial_window=12)),
    ("first write", lambda good: good.requested(
        initcwnd=5, gap_ms=50.0, burst_bytes=4344 - good.observation["server"]["header_bytes"])
        .said("server", initial_window=5)),
])
def test_the_packets_say_what_limited_the_first_flight(limit: str, tampered: Tamper,
                                                       good: Stored) -> None:
    assert tampered(good).judge().limited_by == limit


@pytest.mark.parametrize("sent", [1, 2, 3])
def test_one_segment_after_a_handshake_that_was_repeated_is_by_right(sent: int,
                                                                     good: Stored) -> None:
    """Any SYN-ACK but the first is a repetition; else the kernel set another window."""
    of_server = stored.read(good.server)
    syn_ack = next(packet for packet in of_server if packet.to_client)
    again = [syn_ack.again(1000 * number, 65000 + number) for number in range(1, sent)]
    trial = good.captured(*([*stored.read(side), *again] for side in (good.client, good.server)))
    assert trial.requested(initcwnd=5).judge().limited_by == (
        "congestion window" if sent == 1 else "repeated handshake")


def test_a_later_flight_that_waits_for_the_window_is_counted(good: Stored) -> None:
    """A first flight of 3 passes; before the second the client has room for less than 3 more."""
    usual = good.judge()
    assert (usual.least_offered_segments, usual.most_offered_segments) == (27.2, 39.2)
    assert usual.receive_window_waits == 0
    first = stored.load("receive_window").judge()
    assert (first.limited_by, first.receive_window_waits) == ("receive window", 2)
    short = offering(good, (3 * 1448 + 100) // 128).judge()
    assert short.receive_window_waits and not short.limited_by
    assert short.least_offered_segments == short.most_offered_segments == 3.0
