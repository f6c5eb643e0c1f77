"""Changes of a page's capture: packets are removed, or come later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.golden.stored import Packet


def data(packets: list[Packet], to_client: bool = True) -> list[Packet]:
    return [packet for packet in packets if packet.payload_bytes and packet.to_client == to_client]


def without(number: int, to_client: bool = True) -> Callable[[list[Packet]], list[Packet]]:
    return lambda packets: [packet for packet in packets
                            if packet is not data(packets, to_client)[number]]


def later(number: int, by_ns: int, to_client: bool = True
          ) -> Callable[[list[Packet]], list[Packet]]:
    return lambda packets: [replace(packet, time_ns=packet.time_ns + by_ns)
                            if packet is data(packets, to_client)[number] else packet
                            for packet in packets]
