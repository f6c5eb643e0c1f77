"""A packet's headers: Ethernet with VLANs, IPv4, IPv6, TCP with its options, UDP."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

ETHERNET_BYTES = 14
ARP, IPV4, IPV6 = 0x0806, 0x0800, 0x86DD
ICMP, TCP, UDP, ICMPV6 = 1, 6, 17, 58
FIN, SYN, RST, PUSH, ACK, ECE, CWR = 0x01, 0x02, 0x04, 0x08, 0x10, 0x40, 0x80
OPTION_MSS, OPTION_SCALE, OPTION_SACK_PERMITTED, OPTION_SACK, OPTION_TIMESTAMP = 2, 3, 4, 5, 8

# The headers of a segment: Ethernet, IPv4, TCP, and the timestamp option with padding (RFC 7323).
HEADER_BYTES = ETHERNET_BYTES + 20 + 20 + 12
# The headers of a SYN, whose options are MSS, SACK permitted, timestamp and scale.
SYN_BYTES = ETHERNET_BYTES + 20 + 20 + 20
MSS = 1448  # Ethernet's 1500 bytes less IPv4, TCP and timestamps
TIMESTAMP_BYTES = 12  # of the timestamp option; an advertised MSS includes them

_IPV4_TYPE = IPV4.to_bytes(2, "big")
_VLANS = (0x8100, 0x88A8)
_EXTENSIONS = (0, 43, 60)  # IPv6: hop by hop, routing, destination (RFC 8200, 4)
_FRAGMENT = 44
_IPV4_BYTES, _IPV6_BYTES, _TCP_BYTES, _UDP_BYTES = 20, 40, 20, 8
# Version and header's length, length, identification, fragment's offset, protocol, addresses.
_IPV4 = struct.Struct(">BxHHHxB2x4s4s")
_PORTS = struct.Struct(">HH")
_TCP = struct.Struct(">HHIIHH4x")  # ports, numbers, length and flags, window
_MOST_EXTENSIONS = 8
_OPTIONS_END, _OPTION_NONE = 0, 1


class Headers(NamedTuple):
    """The headers of an IP packet."""

    protocol: int  # IP's number of the transport, such as TCP
    source: str  # the address as text
    destination: str
    from_port: int  # 0 for a transport without ports
    to_port: int
    payload_bytes: int  # after the transport's header
    body: bytes  # the captured bytes from the transport's header on
    identification: int  # of IPv4; 0 for IPv6
    # Only of TCP. seq and ack are absolute numbers.
    seq: int = 0
    ack: int = 0
    flags: int = 0
    window: int = 0
    options: bytes = b""


def network_header(head: bytes) -> tuple[int, int]:
    """The EtherType after up to two VLAN tags, and the offset of the network header."""
    place = 12  # of Ethernet's type, which a tag precedes
    for _ in range(3):
        kind = int.from_bytes(head[place:place + 2], "big")
        if kind not in _VLANS:
            break
        place += 4
    return kind, place + 2


def headers(head: bytes, frame_bytes: int) -> Headers | None:
    """The headers of a frame. head: its first bytes. frame_bytes: the length of the whole frame.

    None if the frame is not IP, is a fragment, or was cut before the end of its headers.
    """
    if head[12:14] == _IPV4_TYPE:  # nearly every packet
        return ip_headers(head, ETHERNET_BYTES, IPV4, frame_bytes)

    kind, at = network_header(head)
    return ip_headers(head, at, kind, frame_bytes)


def ip_headers(head: bytes, at: int, kind: int, frame_bytes: int) -> Headers | None:
    """The headers of an IP packet that begins at offset `at`, after the header of any link.

    kind: IPV4 or IPV6; for any other EtherType the result is None.
    """
    if kind == IPV4:
        if len(head) < at + _IPV4_BYTES:
            return None
        version, length, identification, fragment, protocol, source, destination = \
            _IPV4.unpack_from(head, at)
        begin = at + (version & 15) * 4
        # A fragment has an offset, or says that more fragments follow.
        if begin < at + _IPV4_BYTES or fragment & 0x3FFF:
            return None
        end = at + length
    elif kind == IPV6:
        if len(head) < at + _IPV6_BYTES:
            return None
        protocol, begin, identification = head[at + 6], at + _IPV6_BYTES, 0
        source, destination = head[at + 8:at + 24], head[at + 24:at + 40]
        length = int.from_bytes(head[at + 4:at + 6], "big")
        end = begin + length
        for _ in range(_MOST_EXTENSIONS):
            if protocol not in _EXTENSIONS or len(head) < begin + 2:
                break
            protocol, begin = head[begin], begin + (head[begin + 1] + 1) * 8
        if protocol == _FRAGMENT:
            return None
    else:
        return None

    if not length:  # an offloaded packet of more than 64 kB
        end = frame_bytes
    body = head[begin:end]  # Ethernet may pad the frame after the packet
    if protocol == TCP:
        if len(body) < _TCP_BYTES:
            return None
        from_port, to_port, seq, ack, length_and_flags, window = _TCP.unpack_from(body)
        header_bytes = (length_and_flags >> 12) * 4
        if header_bytes < _TCP_BYTES:
            return None
        # Fields by position, for speed: every packet of every capture comes here.
        return Headers(TCP, _address(source), _address(destination), from_port, to_port,
                       max(0, end - begin - header_bytes), body, identification, seq, ack,
                       length_and_flags & 0x1FF, window, body[_TCP_BYTES:header_bytes])

    from_port = to_port = 0
    if protocol == UDP:
        if len(body) < _UDP_BYTES:
            return None
        from_port, to_port = _PORTS.unpack_from(body)
    return Headers(protocol, _address(source), _address(destination), from_port, to_port,
                   max(0, end - begin - _UDP_BYTES), body, identification)


@lru_cache(maxsize=4096)
def _address(raw: bytes) -> str:
    """An address of 4 or 16 bytes as text. Cached: a capture has few addresses."""
    family = socket.AF_INET if len(raw) == 4 else socket.AF_INET6
    return socket.inet_ntop(family, raw)


def tcp_options(options: bytes) -> Iterator[tuple[int, bytes]]:
    """Kind and value of each option of TCP (RFC 9293, 3.1), without padding.

    Raises ValueError if an option has no length.
    """
    place = 0
    while place < len(options) and options[place] != _OPTIONS_END:
        if options[place] == _OPTION_NONE:
            place += 1
            continue
        if place + 1 == len(options):
            raise ValueError("an option of TCP without a length")
        end = place + max(2, options[place + 1])
        yield options[place], options[place + 2:end]
        place = end
