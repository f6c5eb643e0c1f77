"""Reads the headers of all packets of a capture at once: Ethernet, IPv4, IPv6, TCP, UDP."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy

from firstflight.net.headers import ETHERNET_BYTES, IPV4, IPV6, TCP, UDP
from firstflight.wire.capture.pcapng import Capture, Flags, Numbers

# In place of a protocol: the packet is a fragment; it is not IP, or cut within its headers.
FRAGMENT, OTHER = -1, -2
_VLANS = (0x8100, 0x88A8)
_EXTENSIONS = (0, 43, 60)  # IPv6: hop by hop, routing, destination (RFC 8200, 4)
_FRAGMENT_HEADER, _MOST_EXTENSIONS = 44, 8
_VLAN_BYTES, _IPV4_BYTES, _IPV6_BYTES, _UDP_BYTES, _TCP_BYTES = 4, 20, 40, 8, 20


@dataclass(frozen=True)
class Headers:
    """The headers of all packets, in arrays with one number for each packet.

    byte, u16 and u32 give the numbers at offsets of the file.
    """

    kind: Numbers  # EtherType after VLAN tags
    is_tagged: Flags  # whether it has a VLAN tag
    protocol: Numbers  # IP's, or FRAGMENT, or OTHER
    source: Numbers  # place in `addresses`, -1 without IP
    destination: Numbers  # place in `addresses`, -1 without IP
    from_port: Numbers  # of TCP and UDP
    to_port: Numbers
    header_bytes: Numbers  # all headers, Ethernet's included
    payload_bytes: Numbers  # what follows them
    body: Numbers  # offset of the transport's header in the file
    kept: Numbers  # captured bytes from there on
    identification: Numbers  # of IPv4
    addresses: tuple[str, ...]  # as text
    byte: Callable[[Numbers], Numbers]

    def u16(self, at: Numbers) -> Numbers:
        """The numbers of 16 bits at these offsets, big-endian."""
        return self.byte(at) << 8 | self.byte(at + 1)

    def u32(self, at: Numbers) -> Numbers:
        """The numbers of 32 bits at these offsets, big-endian."""
        return self.u16(at) << 16 | self.u16(at + 2)

    def at(self, places: Numbers | Flags) -> Headers:
        """The headers of some packets only."""
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
    begin, end = packets.place, packets.place + packets.kept
    network = begin + ETHERNET_BYTES
    kind = u16(network - 2)
    for _ in range(2):
        network = network + _VLAN_BYTES * numpy.isin(kind, _VLANS)
        kind = u16(network - 2)
    is_4 = (kind == IPV4) & (network + _IPV4_BYTES <= end)
    is_6 = (kind == IPV6) & (network + _IPV6_BYTES <= end)
    own = (byte(network) & 15) * 4
    is_4 &= own >= _IPV4_BYTES
    protocol = numpy.where(is_4, byte(network + 9), OTHER)
    protocol[is_4 & ((u16(network + 6) & 0x3FFF) != 0)] = FRAGMENT
    body = network + own
    whole = u16(network + 2)  # IP's length; 0 for an offloaded packet of more than 64 kB
    if is_6.any():
        long, six = u16(network + 4), network + _IPV6_BYTES
        following = byte(network + 6)
        for _ in range(_MOST_EXTENSIONS):
            is_more = is_6 & numpy.isin(following, _EXTENSIONS) & (six + 2 <= end)
            if not is_more.any():
                break
            following, six = (numpy.where(is_more, byte(six), following),
                              numpy.where(is_more, six + (byte(six + 1) + 1) * 8, six))
        following[following == _FRAGMENT_HEADER] = FRAGMENT
        protocol, body = numpy.where(is_6, following, protocol), numpy.where(is_6, six, body)
        whole = numpy.where(is_6, (long + _IPV6_BYTES) * (long > 0), whole)
    least = numpy.where(protocol == TCP, _TCP_BYTES, _UDP_BYTES)
    transport = numpy.where(protocol == TCP, (byte(body + 12) >> 4) * 4, _UDP_BYTES)
    protocol[(protocol >= 0) & ((transport < least) | (body + least > end) & (
        (protocol == TCP) | (protocol == UDP)))] = OTHER
    is_ip = protocol >= 0
    whole = numpy.where(whole == 0, packets.frame_bytes - (network - begin), whole)
    payload = numpy.where(is_ip, numpy.maximum(0, whole - (body - network) - transport), 0)

    addresses = dict[bytes, int]()
    source, destination = numpy.full((2, packets.size), -1)
    for chosen, places, size in ((is_ip & is_4, (12, 16), 4), (is_ip & is_6, (8, 24), 16)):
        for column, place in zip((source, destination), places):
            column[chosen] = _codes(data, (network + place)[chosen], size, addresses)
    printed = []
    for address in addresses:
        family = socket.AF_INET if len(address) == 4 else socket.AF_INET6
        printed.append(socket.inet_ntop(family, address))

    def small(column: Numbers) -> Numbers:
        return column.astype(numpy.int32)

    has_ports = (protocol == TCP) | (protocol == UDP)
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
    """The places of addresses in `addresses`; new ones are added to it."""
    if not len(at):
        return at
    whole = data[at[:, None] + numpy.arange(size)].view(f"V{size}").ravel()
    found, where = numpy.unique(whole.view("<u4") if size == 4 else whole.view(f"S{size}"),
                                return_inverse=True)
    codes = [addresses.setdefault(address.tobytes().ljust(size, b"\0"), len(addresses))
             for address in found]
    return numpy.array(codes)[where]
