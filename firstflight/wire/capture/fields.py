"""Reads the headers of all packets of a capture at once: Ethernet, IPv4, IPv6, TCP, UDP."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy

from firstflight.net.headers import ETHERNET_BYTES, IPV4, IPV6, TCP, UDP
from firstflight.wire.capture.pcapng import Capture, Flags, Numbers

# These two stand in place of IP's number of a protocol.
FRAGMENT = -1  # the packet is a fragment
OTHER = -2  # the packet is not IP, or the capture cuts it within its headers

_VLANS = (0x8100, 0x88A8)  # EtherTypes that a VLAN tag follows
_EXTENSIONS = (0, 43, 60)  # headers of IPv6: hop by hop, routing, destination (RFC 8200, 4)
_FRAGMENT_HEADER = 44  # of IPv6 (RFC 8200, 4.5)
_MOST_EXTENSIONS = 8  # of a packet; headers after them are not read
_VLAN_BYTES, _IPV4_BYTES, _IPV6_BYTES, _UDP_BYTES, _TCP_BYTES = 4, 20, 40, 8, 20


@dataclass(frozen=True)
class Headers:
    """The headers of all packets of a capture.

    Each array has one number for each packet. byte, u16 and u32 return the numbers of 8, 16 and 32
    bits that begin at offsets in the file.
    """

    kind: Numbers  # EtherType after VLAN tags
    is_tagged: Flags  # whether the packet has a VLAN tag
    protocol: Numbers  # IP's, or FRAGMENT, or OTHER
    source: Numbers  # place in `addresses`, -1 without IP
    destination: Numbers  # place in `addresses`, -1 without IP
    from_port: Numbers  # of TCP or UDP, otherwise 0
    to_port: Numbers  # of TCP or UDP, otherwise 0
    header_bytes: Numbers  # all headers, Ethernet's included; 0 without IP
    payload_bytes: Numbers  # what follows the headers
    body: Numbers  # offset of the transport's header in the file
    kept: Numbers  # captured bytes from the transport's header on
    identification: Numbers  # of IPv4, otherwise 0
    addresses: tuple[str, ...]  # of all packets, as text, each address once
    byte: Callable[[Numbers], Numbers]

    def u16(self, at: Numbers) -> Numbers:
        """The numbers of 16 bits at these offsets, big-endian."""
        return self.byte(at) << 8 | self.byte(at + 1)

    def u32(self, at: Numbers) -> Numbers:
        """The numbers of 32 bits at these offsets, big-endian."""
        return self.u16(at) << 16 | self.u16(at + 2)

    def at(self, places: Numbers | Flags) -> Headers:
        """The headers of the packets at these places only."""
        return replace(self, kind=self.kind[places], is_tagged=self.is_tagged[places],
                       protocol=self.protocol[places], source=self.source[places],
                       destination=self.destination[places], from_port=self.from_port[places],
                       to_port=self.to_port[places], header_bytes=self.header_bytes[places],
                       payload_bytes=self.payload_bytes[places], body=self.body[places],
                       kept=self.kept[places], identification=self.identification[places])


def read_headers(capture: Capture) -> Headers:
    """The headers of all packets of a capture."""
    packets, data = capture.packets, capture.data
    last = max(len(data) - 1, 0)

    def byte(at: Numbers) -> Numbers:
        values: Numbers = data[numpy.minimum(at, last)].astype(numpy.int64)
        return values

    def u16(at: Numbers) -> Numbers:
        return byte(at) << 8 | byte(at + 1)

    # Ethernet. The EtherType is in the two bytes before IP's header; VLAN tags move both.
    begin, end = packets.place, packets.place + packets.kept
    network = begin + ETHERNET_BYTES
    kind = u16(network - 2)
    for _ in range(2):
        network = network + _VLAN_BYTES * numpy.isin(kind, _VLANS)
        kind = u16(network - 2)
    is_4 = (kind == IPV4) & (network + _IPV4_BYTES <= end)
    is_6 = (kind == IPV6) & (network + _IPV6_BYTES <= end)

    # IPv4. The mask keeps the offset of a fragment and its bit "more fragments".
    ipv4_bytes = (byte(network) & 15) * 4
    is_4 &= ipv4_bytes >= _IPV4_BYTES
    protocol = numpy.where(is_4, byte(network + 9), OTHER)
    protocol[is_4 & ((u16(network + 6) & 0x3FFF) != 0)] = FRAGMENT
    body = network + ipv4_bytes
    ip_bytes = u16(network + 2)  # the length of header and payload

    # IPv6. Its length does not include its first header.
    if is_6.any():
        after_first_header, ipv6_body = u16(network + 4), network + _IPV6_BYTES
        following = byte(network + 6)
        for _ in range(_MOST_EXTENSIONS):
            is_extension = is_6 & numpy.isin(following, _EXTENSIONS) & (ipv6_body + 2 <= end)
            if not is_extension.any():
                break
            extension_bytes = (byte(ipv6_body + 1) + 1) * 8
            following = numpy.where(is_extension, byte(ipv6_body), following)
            ipv6_body = numpy.where(is_extension, ipv6_body + extension_bytes, ipv6_body)
        following[following == _FRAGMENT_HEADER] = FRAGMENT
        protocol = numpy.where(is_6, following, protocol)
        body = numpy.where(is_6, ipv6_body, body)
        ipv6_bytes = (after_first_header + _IPV6_BYTES) * (after_first_header > 0)
        ip_bytes = numpy.where(is_6, ipv6_bytes, ip_bytes)

    # The transport
    has_ports = (protocol == TCP) | (protocol == UDP)
    least_bytes = numpy.where(protocol == TCP, _TCP_BYTES, _UDP_BYTES)
    transport_bytes = numpy.where(protocol == TCP, (byte(body + 12) >> 4) * 4, _UDP_BYTES)
    is_wrong = transport_bytes < least_bytes
    is_cut = has_ports & (body + least_bytes > end)
    protocol[(protocol >= 0) & (is_wrong | is_cut)] = OTHER
    is_ip = protocol >= 0
    has_ports &= is_ip

    # An offloaded packet of more than 64 kB has the length 0.
    ip_bytes = numpy.where(ip_bytes == 0, packets.frame_bytes - (network - begin), ip_bytes)
    payload = numpy.maximum(0, ip_bytes - (body - network) - transport_bytes)
    payload = numpy.where(is_ip, payload, 0)

    addresses = dict[bytes, int]()
    source, destination = numpy.full((2, packets.size), -1)
    # The offsets of both addresses in IP's header, and the bytes of an address.
    for chosen, offsets, size in ((is_ip & is_4, (12, 16), 4), (is_ip & is_6, (8, 24), 16)):
        for column, offset in zip((source, destination), offsets):
            column[chosen] = _codes(data, (network + offset)[chosen], size, addresses)
    printed = []
    for address in addresses:
        family = socket.AF_INET if len(address) == 4 else socket.AF_INET6
        printed.append(socket.inet_ntop(family, address))

    def small(column: Numbers) -> Numbers:
        return column.astype(numpy.int32)

    return Headers(
        kind=small(kind), is_tagged=network - begin > ETHERNET_BYTES, protocol=small(protocol),
        source=source, destination=destination,
        from_port=small(numpy.where(has_ports, u16(body), 0)),
        to_port=small(numpy.where(has_ports, u16(body + 2), 0)),
        header_bytes=small(numpy.where(is_ip, packets.frame_bytes - payload, 0)),
        payload_bytes=small(payload), body=body, kept=small(numpy.maximum(0, end - body)),
        identification=small(numpy.where(is_4, u16(network + 4), 0)),
        addresses=tuple(printed), byte=byte)


def _codes(data: Numbers, at: Numbers, size: int, addresses: dict[bytes, int]) -> Numbers:
    """The place in `addresses` of each address of `size` bytes that begins at an offset.

    Addresses that are new are added to `addresses`.
    """
    if not len(at):
        return at
    raw = data[at[:, None] + numpy.arange(size)].view(f"V{size}").ravel()
    sortable = raw.view("<u4") if size == 4 else raw.view(f"S{size}")
    distinct, which = numpy.unique(sortable, return_inverse=True)

    codes = []
    for address in distinct:
        content = address.tobytes().ljust(size, b"\0")  # numpy takes zeros off the end of an S
        codes.append(addresses.setdefault(content, len(addresses)))
    return numpy.array(codes)[which]
