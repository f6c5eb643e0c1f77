"""Captures of a server: what each connection's RTT, bandwidth and size are, by hand."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from typing import Any

import dpkt
import pytest

from base.errors import UsageError
from study.fetches.features.users import captures
from study.fetches.features.users.rows import Users

SYN, ACK, FIN = dpkt.tcp.TH_SYN, dpkt.tcp.TH_ACK, dpkt.tcp.TH_FIN
MSS, SPACE = 1448, 1 << 32
Packet = tuple[float, bytes]
# Ten segments in a flight, acknowledged one by one, 10 ms apart: a link that takes 10 ms for
# 1514 bytes on the wire with Ethernet. RTT 100 ms.
STEP_S, RTT_S = 0.010, 0.100
KBPS = 1514 * 8 / STEP_S / 1000


def ip4(to_client: bool, tcp: Any, port: int = 4000) -> bytes:
    tcp.sport, tcp.dport = (80, port) if to_client else (port, 80)
    ip = dpkt.ip.IP(src=b"\x0a\0\0\1" if to_client else b"\xc0\0\2\7",
                    dst=b"\xc0\0\2\7" if to_client else b"\x0a\0\0\1", p=6, data=tcp)
    ip.len = len(ip)
    return bytes(ip)


def ip6(to_client: bool, tcp: Any, port: int = 4000) -> bytes:
    tcp.sport, tcp.dport = (80, port) if to_client else (port, 80)
    ip = dpkt.ip6.IP6(src=b"\1" * 16 if to_client else b"\2" * 16,
                      dst=b"\2" * 16 if to_client else b"\1" * 16, nxt=6, data=tcp)
    ip.plen = len(tcp)
    return bytes(ip)


def tcp(flags: int, seq: int = 0, ack: int = 0, payload: int = 0) -> Any:
    return dpkt.tcp.TCP(flags=flags, seq=seq % SPACE, ack=ack % SPACE, data=b"x" * payload)


def connection(first: int = 1000, segments: int = 10, start_s: float = 5.0, port: int = 4000,
               step_s: float = STEP_S, ip: Callable[..., bytes] = ip4) -> list[Packet]:
    """SYN-ACK at start_s with the sequence number first − 1, then one flight."""
    flight_s = start_s + RTT_S
    packets = [(start_s, ip(True, tcp(SYN | ACK, first - 1), port)),
               (flight_s, ip(False, tcp(ACK, 1, first), port))]
    packets += [(flight_s, ip(True, tcp(ACK, first + MSS * each, payload=MSS), port))
                for each in range(segments)]
    packets += [(flight_s + RTT_S + step_s * each, ip(False, tcp(ACK, 1, first + MSS * each), port))
                for each in range(1, segments + 1)]
    return packets


def read(packets: Iterable[Packet], link: int = dpkt.pcap.DLT_RAW, before: bytes = b"") -> Users:
    file = io.BytesIO()
    writer = dpkt.pcap.Writer(file, linktype=link, nano=True)
    for time_s, packet in packets:
        writer.writepkt(before + packet, time_s)
    file.seek(0)
    return captures.read(file, "server.pcap")


def test_a_flight_tells_rtt_bandwidth_and_size() -> None:
    users = read(connection())
    assert users.rtt_ms == pytest.approx([100])
    assert users.bandwidth_kbps == pytest.approx([KBPS], rel=1e-6)
    assert users.response_bytes.tolist() == [10 * MSS]
    assert users.format == "a capture of a server" and users.groups == ("",)
    assert users.estimated == {
        "bandwidth_kbps": "from how fast acknowledgements came back within a flight",
        "rtt_ms": "from the handshake"}


def test_numbers_that_wrap_are_told_right() -> None:
    users = read(connection(first=SPACE - 5 * MSS))
    assert users.response_bytes.tolist() == [10 * MSS]
    assert users.bandwidth_kbps == pytest.approx([KBPS], rel=1e-6)


@pytest.mark.parametrize("link, before", [
    (dpkt.pcap.DLT_EN10MB, bytes(12) + b"\x08\x00"),
    (dpkt.pcap.DLT_LINUX_SLL, bytes(14) + b"\x08\x00"),
    (dpkt.pcap.DLT_LINUX_SLL2, b"\x08\x00" + bytes(18)), (dpkt.pcap.DLT_RAW, b""), (12, b"")])
def test_every_known_link_is_read(link: int, before: bytes) -> None:
    assert read(connection(), link, before).response_bytes.tolist() == [10 * MSS]


def test_ipv6_is_read_too() -> None:
    users = read(connection(ip=ip6))
    assert users.response_bytes.tolist() == [10 * MSS]
    assert users.bandwidth_kbps == pytest.approx([KBPS], rel=1e-6)


def test_another_link_is_named() -> None:
    with pytest.raises(UsageError, match="^server.pcap: is a capture of link type 105; known:"):
        read(connection(), 105)


@pytest.mark.parametrize("segments, known", [(4, False), (5, True)])
def test_an_estimate_takes_three_gaps(segments: int, known: bool) -> None:
    """Of n acknowledgements: the first has no one before it within the flight."""
    assert bool(read(connection(segments=segments - 1)).missing()) is not known


@pytest.mark.parametrize("step_s, known", [(0.0499, True), (0.0501, False)])
def test_acknowledgements_half_an_rtt_apart_are_of_two_flights(step_s: float, known: bool) -> None:
    assert bool(read(connection(step_s=step_s)).missing()) is not known


def test_what_is_acknowledged_again_is_no_gap() -> None:
    packets = connection()
    again = packets[-1][0] + 0.001
    packets += [(again, ip4(False, tcp(ACK, 1, 1000 + 10 * MSS))),
                (again + 0.001, ip4(False, tcp(ACK, 1, 1000 + 2 * MSS)))]
    assert read(packets).bandwidth_kbps == pytest.approx([KBPS], rel=1e-6)


def test_what_is_sent_again_counts_once_and_what_is_no_tcp_not_at_all() -> None:
    packets = connection()
    end_s = packets[-1][0]
    packets += [(end_s, ip4(True, tcp(ACK, 1000 + MSS, payload=MSS))),
                (end_s, ip4(True, tcp(ACK, 1000 - MSS, payload=MSS // 2))),  # before the first
                (end_s, bytes(dpkt.ip.IP(p=17, data=dpkt.udp.UDP(sport=1, dport=2)))),
                (end_s, b"\x45"), (end_s, b""),
                (end_s, ip4(False, tcp(FIN)))]
    assert read(packets).response_bytes.tolist() == [10 * MSS]


def test_the_size_is_by_the_header_where_a_packet_was_cut() -> None:
    users = read([(time_s, packet[:60]) for time_s, packet in connection()])
    assert users.response_bytes.tolist() == [10 * MSS]


def test_a_packet_that_its_card_will_cut_has_no_length() -> None:
    """TSO: more than 64 kB in an IPv4 packet, whose header then says 0."""
    def large(to_client: bool, segment: Any, port: int = 4000) -> bytes:
        packet = ip4(to_client, segment, port)
        return packet[:2] + b"\0\0" + packet[4:] if segment.data else packet
    assert read(connection(ip=large)).response_bytes.tolist() == [10 * MSS]


def test_connections_are_told_apart_and_those_that_began_before_are_left_out() -> None:
    packets = [*connection(segments=3), *connection(port=4001, start_s=9.0),
               *connection(port=4002)[1:],  # without its handshake
               *connection(port=4003)[:2],  # without a response
               connection(port=4004)[0], *connection(port=4004)[2:12]]  # nothing was heard of it
    users = read(packets)
    assert users.response_bytes.tolist() == [3 * MSS, 10 * MSS] and not users.skipped
    with pytest.raises(UsageError, match="has no usable row"):
        read(connection()[1:])


def test_a_handshake_repeated_and_a_port_used_again() -> None:
    """The RTT is from the newest SYN-ACK; a new connection of the same port replaces the old."""
    early = (4.0, connection()[0][1])
    assert read([early, *connection()]).rtt_ms == pytest.approx([100])
    users = read([*connection(), *connection(start_s=20.0, segments=4)])
    assert users.response_bytes.tolist() == [4 * MSS]


def test_what_has_no_acknowledgement_is_not_heard() -> None:
    packets = connection()
    packets.insert(1, (5.010, ip4(False, tcp(SYN))))
    assert read(packets).rtt_ms == pytest.approx([100])


def test_a_file_that_ends_within_a_packet_is_damaged() -> None:
    file = io.BytesIO()
    dpkt.pcap.Writer(file, linktype=101).writepkt(b"x" * 50, 1.0)
    with pytest.raises(UsageError, match="server.pcap: is a damaged capture: "):
        captures.read(io.BytesIO(file.getvalue()[:30]), "server.pcap")
    with pytest.raises(UsageError, match="is a damaged capture: unknown pcap format"):
        captures.read(io.BytesIO(b"\xa1\xb2\xc3\xd5" + bytes(20)), "server.pcap")
