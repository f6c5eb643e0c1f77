"""TCP_INFO: the kernel's layout, and samples only where something has changed."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest

from firstflight.testbed.hosts.kernel import SAMPLE_FIELDS, InfoTrace, TcpInfo, sample_of

# Offsets in struct tcp_info (include/uapi/linux/tcp.h), each field's own number there.
OFFSETS = {"congestion_state": 1, "flags": 7, "retransmission_timeout_us": 8, "mss": 16,
           "unacknowledged": 24, "selectively_acknowledged": 28, "lost": 32,
           "retransmitted_in_flight": 36, "rtt_us": 68, "slow_start_threshold": 76,
           "congestion_window": 80, "reordering": 88, "retransmissions": 100,
           "pacing_rate": 104, "most_pacing_rate": 112, "unsent_bytes": 144,
           "min_rtt_us": 148, "sent_bytes": 200, "retransmitted_bytes": 208,
           "send_window_bytes": 228}


@pytest.fixture
def connection() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with socket.create_connection(listener.getsockname()) as near, listener.accept()[0]:
            yield near


def test_every_field_is_read_where_the_kernel_has_it() -> None:
    raw = bytearray(240)
    for number, offset in enumerate(OFFSETS.values(), start=1):
        raw[offset] = number
    assert TcpInfo.read(bytes(raw[:232]))._asdict() == {
        name: number for number, name in enumerate(OFFSETS, start=1)}


def test_what_an_older_kernel_does_not_tell_is_0() -> None:
    raw = bytearray(struct.pack("=I", 7) * 48)  # up to tcpi_delivered, as Linux 4.18 has it
    info = TcpInfo.read(bytes(raw))
    assert (info.congestion_window, info.sent_bytes, info.send_window_bytes) == (7, 0, 0)


def test_a_connection_of_the_running_kernel(connection: socket.socket) -> None:
    connection.send(b"five!")
    info = TcpInfo.of_socket(connection)
    assert info.congestion_window > 0 and info.mss > 500 and info.sent_bytes == 5


def test_a_sample_is_kept_only_where_something_has_changed(connection: socket.socket) -> None:
    info = TcpInfo.of_socket(connection)
    assert len(sample_of(info, 1)) == len(SAMPLE_FIELDS)
    trace = InfoTrace(interval_ns=1_000_000)
    assert not trace.take(connection) and not trace.take(connection)
    assert len(trace.samples) == 1
