"""Packets are read many at a time: none is lost, and those that the filter wants."""

from __future__ import annotations

import io
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import dpkt
import pytest

from firstflight.net import bpf
from firstflight.net.pcap import HEADER, SNAP_BYTES
from firstflight.testbed.worker.tap import PacketBuffers, Tap, open_capture, sample_filter, save_all


# Many at a time ----------------------------------------------------------------------

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


# The filter --------------------------------------------------------------------------

CLIENTS, SERVER = ("10.0.0.1", "10.0.0.7"), "10.1.0.1"
Program = list[tuple[int, int, int, int]]


def run(program: Program, frame: bytes) -> int:
    """How many bytes of a frame a classic BPF program keeps (Documentation/networking/filter.rst).

    A load beyond the frame ends it with 0.
    """
    accumulator = index = place = 0
    while True:
        code, yes, no, value = program[place]
        place += 1
        try:
            if code == 0x28:  # ldh [k]
                (accumulator,) = struct.unpack_from(">H", frame, value)
            elif code == 0x20:  # ld [k]
                (accumulator,) = struct.unpack_from(">I", frame, value)
            elif code == 0x48:  # ldh [x + k]
                (accumulator,) = struct.unpack_from(">H", frame, index + value)
            elif code == 0xB1:  # ldx 4*([k]&0xf)
                index = 4 * (frame[value] & 0xF)
            elif code == 0x54:  # and
                accumulator &= value
            elif code == 0x15:  # jeq
                place += yes if accumulator == value else no
            else:
                assert code == 0x06  # ret
                return value
        except (struct.error, IndexError):
            return 0


def frame(source: tuple[str, int], target: tuple[str, int], options: int = 0,
          kind: int = 0x0800) -> bytes:
    """A TCP segment over IPv4 with so many bytes of IPv4's options."""
    tcp = dpkt.tcp.TCP(sport=source[1], dport=target[1], data=b"x" * 200)
    ip = dpkt.ip.IP(src=socket.inet_aton(source[0]), dst=socket.inet_aton(target[0]), p=6,
                    opts=bytes(options), data=tcp)
    ip.hl = 5 + options // 4
    return bytes(dpkt.ethernet.Ethernet(type=kind, data=bytes(ip)))


@pytest.mark.parametrize("every, port, taken", [
    (2, 4000, True), (2, 4001, False), (16, 4000, True), (16, 4008, False), (16, 4015, False),
    (4096, 4096, True), (4096, 4000, False)])
@pytest.mark.parametrize("client", [*CLIENTS, "10.0.0.2"])
@pytest.mark.parametrize("options", [0, 8])
def test_a_sample_is_of_ports_and_hosts(every: int, port: int, taken: bool, client: str,
                                        options: int) -> None:
    program = sample_filter(every, CLIENTS)
    kept = SNAP_BYTES if taken and client in CLIENTS else 0
    assert run(program, frame((client, port), (SERVER, 80), options)) == kept
    assert run(program, frame((SERVER, 80), (client, port), options)) == kept


def test_what_is_no_http_of_the_sample_is_dropped() -> None:
    program = sample_filter(16, CLIENTS)
    for other in (frame((CLIENTS[0], 4000), (SERVER, 80), kind=0x86DD),
                  frame((CLIENTS[0], 4000), (SERVER, 80), kind=0x0806),
                  frame((SERVER, 81), (CLIENTS[0], 4001)), b"", bytes(20)):
        assert run(program, other) == 0
    # A server's own port may be a multiple: it is the client's that counts.
    assert run(program, frame((SERVER, 80), (CLIENTS[1], 4016))) == SNAP_BYTES
    assert run(program, frame((SERVER, 80), (CLIENTS[1], 4001))) == 0


def test_the_kernel_runs_the_same_program() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        bpf.attach(theirs, sample_filter(16, CLIENTS))
        theirs.setblocking(False)
        for port in (4000, 4001, 4016):
            try:
                ours.send(frame((CLIENTS[0], port), (SERVER, 80)))
            except PermissionError:  # as a socket of this kind tells its sender
                assert port == 4001
        heard = [theirs.recv(1000) for _ in range(2)]
        with pytest.raises(BlockingIOError):
            theirs.recv(1000)
    assert [dpkt.ethernet.Ethernet(each).ip.tcp.sport for each in heard] == [4000, 4016]
    assert {len(each) for each in heard} == {SNAP_BYTES}


def test_a_capture_begins_as_libpcap_has_it(tmp_path: Path) -> None:
    """pcap-savefile(5): nanoseconds, version 2.4, Ethernet."""
    with open_capture(tmp_path / "a.pcap") as capture:
        capture.write(struct.pack("<IIII", 5, 7, 3, 9) + b"abc")
    content = (tmp_path / "a.pcap").read_bytes()
    reader = dpkt.pcap.Reader(io.BytesIO(content))
    assert (reader.snaplen, reader.datalink()) == (SNAP_BYTES, dpkt.pcap.DLT_EN10MB)
    assert [(float(stamp), packet) for stamp, packet in reader] == [(5.000000007, b"abc")]
    assert content.startswith(HEADER) and len(HEADER) == 24
    assert HEADER[:8] == b"\x4d\x3c\xb2\xa1\x02\x00\x04\x00"


def test_where_several_taps_lie_in_a_capture() -> None:
    class Recorded(Tap):
        def __init__(self, packets: int) -> None:
            self.packets = packets

        def save(self, capture: object) -> int:
            file.write(b"p" * self.packets)
            return self.packets
    file = io.BytesIO(b"before")
    file.seek(6)
    assert save_all([Recorded(3), Recorded(4)], file) == {"offset": 6, "bytes": 7, "packets": 7}
