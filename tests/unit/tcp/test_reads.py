"""The calls by which a client reads records, and what they change of what it acknowledges."""

from __future__ import annotations

import pytest

from firstflight.model.receiver import Receiver
from firstflight.model.simulate import ReadCalls
from firstflight.model.transfer import Secure
from firstflight.net.path import Clock, Sent
from tests.transfers import transfer

PLAIN = transfer(rtt_ms=100, bandwidth_kbps=1000, uplink_kbps=1000, initcwnd=10, initrwnd=64,
                 response_bytes=1244, request_bytes=100)
SECURE = transfer(rtt_ms=100, bandwidth_kbps=1000, uplink_kbps=1000, initcwnd=10, initrwnd=64,
                  response_bytes=1244, request_bytes=100, writes=(622, 622),
                  secure=Secure(240, (1000, 564), 80, (255,), 622))


@pytest.mark.parametrize(("begin", "end", "upto"), [
    (0, 1448, 5), (3, 1448, 5), (5, 1448, 0), (5, 1564, 0), (1448, 1700, 1564),
    (1564, 1819, 1569), (1819, 2441, 1824), (1824, 2441, 0), (2000, 3063, 2441), (2446, 3063, 0)])
def test_the_first_call_reads_a_header_or_what_is_left_of_a_record(
        begin: int, end: int, upto: int) -> None:
    assert ReadCalls(SECURE).first(begin, end) == upto
    assert ReadCalls(PLAIN).first(begin, end) == 0


@pytest.mark.parametrize(("upto", "offered"), [(0, 82_048), (2000, 81_536)])
def test_what_a_call_leaves_unread_still_takes_memory(upto: int, offered: int) -> None:
    """tcp_cleanup_rbuf acknowledges after the first call; sk_rmem_alloc has the segment yet."""
    receiver = Receiver(64, 1448, 0, 100_000, Clock(0), (131072, 6291456), 128)
    receiver._measure_full(1448)
    receiver.quick, receiver.received, receiver.threshold = 0, 1448, 82_023
    receiver.window = 82_048
    receiver.received += 1448
    assert receiver.read(0, Sent(1448, pushed=False), upto)
    assert receiver.offer == offered


@pytest.mark.parametrize(("upto", "space"), [(60_000, 60_000), (59_000, 58_000), (49_000, 40_000)])
def test_what_waits_counts_against_what_was_read(upto: int, space: int) -> None:
    """tcp_rcv_space_adjust: rcv_nxt - copied_seq."""
    receiver = Receiver(64, 1448, 0, 100_000, Clock(0), (131072, 6291456), 128)
    receiver._measure_full(1448)
    receiver.round_trip_8, receiver.space, receiver.received = 8, 40_000, 60_000
    receiver._read(1_000_000_000, upto)
    assert (receiver.space, receiver.measured_from) == (space, upto)
