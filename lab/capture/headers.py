"""What a packet's first bytes say: addresses, ports, TCP's header; IPv4, IPv6, VLANs."""

from __future__ import annotations

import socket
import struct
from typing import NamedTuple

ARP, IPV4, IPV6 = 0x0806, 0x0800, 0x86DD
_VLANS = (0x8100, 0x88A8)
ICMP, TCP, UDP, ICMPV6 = 1, 6, 17, 58
_EXTENSIONS = (0, 43, 60)  # IPv6: hop by hop, routing, destination (RFC 8200, 4)
_FRAGMENT = 44
_TCP = struct.Struct(">HHIIHHHH")
_ARP = struct.Struct(">HHBBH6s4s6s4s")
_MOST_EXTENSIONS = 8


class Headers(NamedTuple):
    """protocol: of IP's next header. source, destination: addresses as text; ports 0 where there
    are none. payload_bytes: behind the transport's header. body: from the transport's header on,
    as far as it was kept. identification: of IPv4, else 0."""

    protocol: int
    source: str
    destination: str
    from_port: int
    to_port: int
    payload_bytes: int
    body: bytes
    identification: int


class TcpHeader(NamedTuple):
    """Sequence and acknowledgement numbers as they stand in the packet; options as bytes."""

    seq: int
    ack: int
    flags: int
    window: int
    options: bytes


class Arp(NamedTuple):
    """asks: whether it is a request."""

    asks: bool
    source: str
    target: str


def network(head: bytes) -> tuple[int, int]:
    """The packet's EtherType, and where what it stands for begins."""
    place = 12
    for _ in range(3):
        kind = int.from_bytes(head[place:place + 2], "big")
        if kind not in _VLANS:
            break
        place += 4
    return kind, place + 2


def headers(head: bytes, frame_bytes: int) -> Headers | None:
    """What it says. frame_bytes: of all of it.

    None for what is no IP, for fragments, and for what was cut before the transport's header.
    """
    kind, place = network(head)
    if kind == IPV4:
        return _ipv4(head[place:], frame_bytes - place)
    if kind == IPV6:
        return _ipv6(head[place:])
    return None


def _ipv4(packet: bytes, whole_bytes: int) -> Headers | None:
    if len(packet) < 20:
        return None
    # A length of 0 stands for more than 64 kB, as offloads make them.
    own_bytes = (packet[0] & 15) * 4
    length = int.from_bytes(packet[2:4], "big") or whole_bytes
    if own_bytes < 20 or int.from_bytes(packet[6:8], "big") & 0x3FFF:  # a fragment
        return None
    return _transport(packet[9], socket.inet_ntop(socket.AF_INET, packet[12:16]),
                      socket.inet_ntop(socket.AF_INET, packet[16:20]), packet[own_bytes:],
                      length - own_bytes, int.from_bytes(packet[4:6], "big"))


def _ipv6(packet: bytes) -> Headers | None:
    if len(packet) < 40:
        return None
    protocol, length, place = packet[6], int.from_bytes(packet[4:6], "big"), 40
    for _ in range(_MOST_EXTENSIONS):
        if protocol not in _EXTENSIONS or len(packet) < place + 2:
            break
        size = (packet[place + 1] + 1) * 8
        protocol, place, length = packet[place], place + size, length - size
    if protocol == _FRAGMENT:
        return None
    return _transport(protocol, socket.inet_ntop(socket.AF_INET6, packet[8:24]),
                      socket.inet_ntop(socket.AF_INET6, packet[24:40]), packet[place:], length, 0)


def _transport(protocol: int, source: str, destination: str, body: bytes, length: int,
               identification: int) -> Headers | None:
    ports, own_bytes = (0, 0), 8
    if protocol in (TCP, UDP):
        if len(body) < (_TCP.size if protocol == TCP else 8):
            return None
        ports = int.from_bytes(body[:2], "big"), int.from_bytes(body[2:4], "big")
        if protocol == TCP:
            own_bytes = (body[12] >> 4) * 4
            if own_bytes < _TCP.size:
                return None
    return Headers(protocol, source, destination, *ports, max(0, length - own_bytes), body,
                   identification)


def tcp_header(found: Headers) -> TcpHeader:
    """Of a TCP packet."""
    _, _, seq, ack, flags, window, _, _ = _TCP.unpack_from(found.body)
    return TcpHeader(seq, ack, flags & 0x1FF, window, found.body[20:(flags >> 12) * 4])


def arp(head: bytes) -> Arp | None:
    kind, place = network(head)
    if kind != ARP or len(head) < place + _ARP.size:
        return None
    _, network_kind, _, _, asks, _, source, _, target = _ARP.unpack_from(head, place)
    if network_kind != IPV4:
        return None
    return Arp(asks == 1, socket.inet_ntop(socket.AF_INET, source),
               socket.inet_ntop(socket.AF_INET, target))
