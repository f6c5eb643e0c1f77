"""The packets of a page on one link: its idle time, its queue, and which connections shared it."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from firstflight.net.path import serialised_ms
from firstflight.net.segments import MS, Segment
from firstflight.wire.exchange import Exchange

NEAR_NS = 1_000  # times that differ by less count as equal: a guest's timers are no more exact


class Crossing(NamedTuple):
    """A packet that crossed the network from one host to the other."""

    sent_ns: int  # when it left its host
    came_ns: int  # when it reached the other host
    frame_bytes: int
    port: int  # the client's, which names the packet's connection


def crossings_of(exchanges: Mapping[int, Exchange], to_client: bool) -> list[Crossing]:
    """The packets of one direction that arrived, in the order of their arrival."""
    def packet_key(segment: Segment) -> tuple[int, int, int, int]:
        return segment.identification, segment.seq, segment.payload_bytes, segment.flags

    packets: list[Crossing] = []
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
                packets.append(Crossing(times_ns.popleft(), segment.time_ns,
                                        frame_bytes=segment.frame_bytes, port=port))
    return sorted(packets, key=lambda crossing: crossing.came_ns)


def idle_ms(packets: Iterable[Crossing], rate_kbps: float, from_ns: int, to_ns: int) -> float:
    """How long a link sent nothing between two times, in ms.

    packets: sorted by arrival.
    """
    busy_ns = 0
    free_ns = from_ns  # when the link has sent the packets so far
    for packet in packets:
        end_ns = min(packet.came_ns, to_ns)
        begin_ns = max(_begin_ns(packet, rate_kbps), free_ns)
        if end_ns > begin_ns:
            busy_ns += end_ns - begin_ns
            free_ns = end_ns
    return (to_ns - from_ns - busy_ns) / MS


def _begin_ns(packet: Crossing, rate_kbps: float) -> int:
    """When the link began to send a packet, in ns."""
    return packet.came_ns - round(serialised_ms(packet.frame_bytes, rate_kbps) * MS)


def longest_queue(packets: Sequence[Crossing], delay_ms: float) -> int:
    """The most packets at a bottleneck at once, including the one that it sends.

    delay_ms: of the way from the sender to the bottleneck.
    """
    delay_ns, longest = round(delay_ms * MS), 0
    queued: deque[int] = deque()  # when each packet at the bottleneck will have left, in ns
    for reached_ns, left_ns in sorted((packet.sent_ns + delay_ns, packet.came_ns)
                                      for packet in packets):
        while queued and queued[0] <= reached_ns:
            queued.popleft()
        queued.append(left_ns)
        longest = max(longest, len(queued))
    return longest


def shared_since(packets: Iterable[Crossing], delay_ms: float, rate_kbps: float) -> dict[int, int]:
    """When a packet of a connection first waited behind one of another connection; ns, by port.

    packets: those of one direction, sorted by arrival. delay_ms: of the way from the sender to the
    bottleneck. Connections whose packets never waited like that have no entry.
    """
    first: dict[int, int] = {}
    ahead: set[int] = set()  # the connections of the packets that the link sent without a pause
    free_ns = -NEAR_NS
    for packet in packets:
        begin_ns = _begin_ns(packet, rate_kbps)
        if begin_ns > free_ns + NEAR_NS:
            ahead.clear()
        has_waited = begin_ns > packet.sent_ns + round(delay_ms * MS) + NEAR_NS
        if has_waited and ahead - {packet.port}:
            first.setdefault(packet.port, packet.came_ns)
        ahead.add(packet.port)
        free_ns = packet.came_ns
    return first
