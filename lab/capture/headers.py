"""A packet's headers: addresses, ports, TCP's header; IPv4, IPv6, VLANs."""

from __future__ import annotations

import socket
import struct
from typing import NamedTuple

ARP, IPV4, IPV6 = 0x0806, 0x0800, 0x86DD
_VLANS = (0x8100, 0x88A8)
ICMP, TCP, UDP, ICMPV6 = 1, 6, 17, 58
_EXTENSIONS = (0, 43, 60)  # IPv6: hop by hop, routing, destination (RFC 8200, 4)
_FRAGMENT = 44
_IPV4_BYTES, _IPV6_BYTES, _TCP_BYTES, _UDP_BYTES = 20, 40, 20, 8
_TCP = struct.Struct(">4xIIHH4x")  # numbers, length and flags, window
_ARP = struct.Struct(">HHBBH6s4s6s4s")
_MOST_EXTENSIONS = 8


class Headers(NamedTuple):
    """The headers of an IP packet.

    protocol: of IP's next header. source, destination: addresses as text; ports 0 where there
    are none. payload_bytes: behind the transport's header. body: from the transport's header on,
    as far as it was kept. identification: of IPv4, else 0.
    """

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
    """is_request: whether it asks for the target's address, and does not answer."""

    is_request: bool
    source: str
    target: str


def network(head: bytes) -> tuple[int, int]:
    """The packet's EtherType, and where the header of that begins."""
    place = 12
    for _ in range(3):
        kind = int.from_bytes(head[place:place + 2], "big")
        if kind not in _VLANS:
            break
        place += 4
    return kind, place + 2


def headers(head: bytes, frame_bytes: int) -> Headers | None:
    """The headers of a packet. head: its first bytes; frame_bytes: of all of it.

    None for what is no IP, for fragments, and for what was cut before the transport's header.
    """
    layers = _layers(head, frame_bytes)
    if layers is None:
        return None
    kind, at, protocol, body, payload_bytes = layers
    family, sources, size = ((socket.AF_INET, at + 12, 4) if kind == IPV4 else
                             (socket.AF_INET6, at + 8, 16))
    source, destination = (socket.inet_ntop(family, head[place:place + size])
                           for place in (sources, sources + size))
    ports = ((int.from_bytes(body[:2], "big"), int.from_bytes(body[2:4], "big"))
             if protocol in (TCP, UDP) else (0, 0))
    return Headers(protocol, source, destination, *ports, payload_bytes, body,
                   int.from_bytes(head[at + 4:at + 6], "big") if kind == IPV4 else 0)


def header_bytes(head: bytes, frame_bytes: int) -> int:
    """Bytes of all headers of a packet, Ethernet's included; 0 where `headers` gives None."""
    layers = _layers(head, frame_bytes)
    return 0 if layers is None else frame_bytes - layers[-1]


def _layers(head: bytes, frame_bytes: int) -> tuple[int, int, int, bytes, int] | None:
    """EtherType and where IP's header begins; the transport's protocol, its header and what was
    kept behind it, and its payload in bytes. None as of `headers`.
    """
    kind, at = network(head)
    packet = head[at:]
    if kind == IPV4 and len(packet) >= _IPV4_BYTES:
        begin, protocol = (packet[0] & 15) * 4, packet[9]
        if begin < _IPV4_BYTES or int.from_bytes(packet[6:8], "big") & 0x3FFF:  # a fragment
            return None
        end = int.from_bytes(packet[2:4], "big")
    elif kind == IPV6 and len(packet) >= _IPV6_BYTES:
        begin, protocol = _IPV6_BYTES, packet[6]
        for _ in range(_MOST_EXTENSIONS):
            if protocol not in _EXTENSIONS or len(packet) < begin + 2:
                break
            protocol, begin = packet[begin], begin + (packet[begin + 1] + 1) * 8
        if protocol == _FRAGMENT:
            return None
        length = int.from_bytes(packet[4:6], "big")
        end = length and _IPV6_BYTES + length
    else:
        return None
    body, own_bytes = packet[begin:], _UDP_BYTES
    if len(body) < {TCP: _TCP_BYTES, UDP: _UDP_BYTES}.get(protocol, 0):
        return None
    if protocol == TCP:
        own_bytes = (body[12] >> 4) * 4
        if own_bytes < _TCP_BYTES:
            return None
    # A length of 0 stands for more than 64 kB, as offloads make them.
    return kind, at, protocol, body, max(0, (end or frame_bytes - at) - begin - own_bytes)


def tcp_header(parsed: Headers) -> TcpHeader:
    """Of a TCP packet."""
    seq, ack, flags, window = _TCP.unpack_from(parsed.body)
    return TcpHeader(seq, ack, flags & 0x1FF, window,
                     parsed.body[_TCP_BYTES:(flags >> 12) * 4])


def arp(head: bytes) -> Arp | None:
    """The addresses of an ARP packet for IPv4; None for any other."""
    kind, place = network(head)
    if kind != ARP or len(head) < place + _ARP.size:
        return None
    _, network_kind, _, _, operation, _, source, _, target = _ARP.unpack_from(head, place)
    if network_kind != IPV4:
        return None
    return Arp(operation == 1, socket.inet_ntop(socket.AF_INET, source),
               socket.inet_ntop(socket.AF_INET, target))
