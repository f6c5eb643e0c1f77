"""Packets are read many at a time: none is lost, each with its time and no more than its head."""

from __future__ import annotations

import io
import socket
import struct
import time
from collections.abc import Iterator

import pytest

from net.pcap import SNAP_BYTES
from testbed.worker.tap import PacketBuffers, Tap

SO_TIMESTAMPNS = 35


@pytest.fixture(name="pair")
def fixture_pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A sender of datagrams, and a receiver who is told when each came."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver, \
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        receiver.bind(("127.0.0.1", 0))
        receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        sender.connect(receiver.getsockname())
        yield sender, receiver


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 16, 20])
def test_all_that_waits_is_read_in_order(pair: tuple[socket.socket, socket.socket],
                                         count: int) -> None:
    sender, receiver = pair
    sent = [bytes([number]) * (10 * number) for number in range(1, count + 1)]
    before = time.time_ns()
    for data in sent:
        sender.send(data)
    came = list(PacketBuffers(8).packets_of(receiver))
    after = time.time_ns()
    assert [head for _, _, head in came] == [data[:SNAP_BYTES] for data in sent]
    stamps = [seconds * 1_000_000_000 + nanoseconds for seconds, nanoseconds, _ in came]
    # The stamps are the kernel's, of the clock of the day, which may be set meanwhile.
    slack_ns = 1_000_000_000
    assert stamps == sorted(stamps)
    assert all(before - slack_ns <= stamp <= after + slack_ns for stamp in stamps)


def test_a_packet_without_a_time_is_refused(pair: tuple[socket.socket, socket.socket]) -> None:
    sender, receiver = pair
    batch = PacketBuffers(8)
    sender.send(b"x")
    assert len(list(batch.packets_of(receiver))) == 1  # whose stamp is still in the buffer
    receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 0)
    sender.send(b"x")
    with pytest.raises(OSError, match="without a time stamp"):
        list(batch.packets_of(receiver))


def test_a_closed_socket_is_told(pair: tuple[socket.socket, socket.socket]) -> None:
    _, receiver = pair
    receiver.close()
    with pytest.raises(OSError, match="recvmmsg"):
        list(PacketBuffers(8).packets_of(receiver))


def test_what_is_saved_is_ip_with_its_length_on_the_wire(
        pair: tuple[socket.socket, socket.socket]) -> None:
    sender, receiver = pair
    head = bytes(12) + b"\x08\x00\x45\x00" + struct.pack(">H", 1500)
    other = bytes(12) + b"\x86\xdd" + bytes(30)  # IPv6
    arp = bytes(12) + b"\x08\x06" + bytes(28)
    for packet in (head.ljust(300, b"\0"), other, head.ljust(60, b"\0"), arp):
        sender.send(packet)
    tap = Tap.__new__(Tap)  # without an interface, which takes root
    tap.socket, tap.batch = receiver, PacketBuffers(2)
    file = io.BytesIO()
    assert tap.save(file) == 3
    saved = file.getvalue()
    assert struct.unpack_from("<II", saved, 8) == (SNAP_BYTES, 1514)
    assert struct.unpack_from("<II", saved, 16 + SNAP_BYTES + 8) == (60, 1514)
    assert struct.unpack_from("<II", saved, 16 + SNAP_BYTES + 16 + 60 + 8) == (42, 42)
    assert len(saved) == 16 + SNAP_BYTES + 16 + 60 + 16 + 42
