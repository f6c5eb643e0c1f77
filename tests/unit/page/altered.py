"""Changes of a page's capture: packets are removed, or come later.

A packet is named by its number, from 0, among the packets with data of one direction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.golden.stored import Packet


def data(packets: list[Packet], to_client: bool = True) -> list[Packet]:
    """The packets with data of one direction."""
    return [packet for packet in packets if packet.payload_bytes and packet.to_client == to_client]


def without(number: int, to_client: bool = True) -> Callable[[list[Packet]], list[Packet]]:
    """Returns what removes a packet with data."""
    return lambda packets: [packet for packet in packets
                            if packet is not data(packets, to_client)[number]]


def later(number: int, by_ns: int, to_client: bool = True
          ) -> Callable[[list[Packet]], list[Packet]]:
    """Returns what makes a packet with data come by_ns later."""
    return lambda packets: [replace(packet, time_ns=packet.time_ns + by_ns)
                            if packet is data(packets, to_client)[number] else packet
                            for packet in packets]
