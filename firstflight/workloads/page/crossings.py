"""The packets of a page on one link: its idle time, its queue, and which connections shared it."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from firstflight.net.path import serialised_ms
from firstflight.net.segments import MS, Segment
from firstflight.wire.exchange import Exchange

NEAR_NS = 1_000  # times that differ by less are equal: a guest's timers are no more exact


class Crossing(NamedTuple):
    """A packet that arrived: when it left its host and reached the other one.

    port: the client's port of its connection.
    """

    sent_ns: int
    came_ns: int
    frame_bytes: int
    port: int


def crossings(exchanges: Mapping[int, Exchange], to_client: bool) -> list[Crossing]:
    """The packets of one direction that arrived, in the order of their arrival."""
    def packet_key(segment: Segment) -> tuple[int, int, int, int]:
        return segment.identification, segment.seq, segment.payload_bytes, segment.flags

    found: list[Crossing] = []
    for port, exchange in exchanges.items():
        sender, receiver = exchange.at_client, exchange.at_server
        if to_client:
            sender, receiver = receiver, sender
        left_ns: dict[tuple[int, int, int, int], deque[int]] = defaultdict(deque)
        for segment in sender:
            if segment.to_client == to_client:
                left_ns[packet_key(segment)].append(segment.time_ns)

        for segment in receiver:
            times_ns = left_ns[packet_key(segment)]
            if segment.to_client == to_client and times_ns:
                found.append(Crossing(times_ns.popleft(), segment.time_ns,
                                      frame_bytes=segment.frame_bytes, port=port))
    return sorted(found, key=lambda crossing: crossing.came_ns)


def idle_ms(packets: Iterable[Crossing], rate_kbps: float, from_ns: int, to_ns: int) -> float:
    """How long a link sent nothing between two times, in ms.

    packets: in the order of their arrival.
    """
    busy_ns, free_ns = 0, from_ns
    for packet in packets:
        ends = min(packet.came_ns, to_ns)
        begins = max(packet.came_ns - round(serialised_ms(packet.frame_bytes, rate_kbps) * MS),
                     free_ns)
        if ends > begins:
            busy_ns += ends - begins
            free_ns = ends
    return (to_ns - from_ns - busy_ns) / MS


def longest_queue(packets: Sequence[Crossing], delay_ms: float) -> int:
    """The most packets at a bottleneck at once, the one being sent included."""
    leaving: deque[int] = deque()
    longest = 0
    for reaches, leaves in sorted((packet.sent_ns + round(delay_ms * MS), packet.came_ns)
                                  for packet in packets):
        while leaving and leaving[0] <= reaches:
            leaving.popleft()
        leaving.append(leaves)
        longest = max(longest, len(leaving))
    return longest


def shared_since(packets: Iterable[Crossing], delay_ms: float, rate_kbps: float) -> dict[int, int]:
    """When a packet of each connection first waited behind one of another; ns, by port.

    packets: of one direction, in the order of their arrival. Connections whose packets never
    waited like that have no entry.
    """
    first: dict[int, int] = {}
    ahead: set[int] = set()  # the connections of the packets that the link sent without a pause
    free_ns = -NEAR_NS
    for packet in packets:
        begins = packet.came_ns - round(serialised_ms(packet.frame_bytes, rate_kbps) * MS)
        if begins > free_ns + NEAR_NS:
            ahead.clear()
        has_waited = begins > packet.sent_ns + round(delay_ms * MS) + NEAR_NS
        if has_waited and ahead - {packet.port}:
            first.setdefault(packet.port, packet.came_ns)
        ahead.add(packet.port)
        free_ns = packet.came_ns
    return first
