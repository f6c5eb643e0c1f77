"""Where packets of a command were dropped outside of its queues' limits, and why."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from base.words import short
from findings.findings import Statement
from net.tc import FULL_FRAME_BYTES
from wire.capture.links import LinkDirection, Spaces, nodes
from wire.capture.pcapng import Capture

_SHARE = 0.25  # of a queue's packets: if fewer propagate, no note
# The kernel's reasons for drops that a program notices (dropreason-core.h), in words.
_LOSSES = {
    "SOCKET_RCVBUF": "the receive buffer of a socket was full",
    "PROTO_MEM": "the memory for sockets was used up",
    "TCP_BACKLOG": "a socket's backlog was full",
    "TCP_RETRANSMIT": "a segment had come before",
    "IP_OUTNOROUTES": "there was no route", "IP_INNOROUTES": "there was no route",
    "PKT_TOO_BIG": "the packet was larger than the MTU",
    "TCP_CSUM": "TCP's checksum was wrong", "UDP_CSUM": "UDP's checksum was wrong",
    "IP_RPFILTER": "the reverse path filter refused it",
    "NETFILTER_DROP": "a packet filter dropped it",
    "BRIDGE_INGRESS_STP_STATE": "the bridge's port did not forward yet: with STP it waits for two"
                                " forward delays, 30 s by default",
    "NEIGH_FAILED": "no host answered ARP", "NEIGH_QUEUEFULL": "too many packets waited for ARP"}


def drops(capture: Capture, links: Sequence[LinkDirection], spaces: Spaces) -> list[Statement]:
    """The most surprising first; [] for none."""
    names = nodes(capture.devices, spaces)
    return [*_own_queue(links), *_propagating(links), *_elsewhere(capture, names)]


def _own_queue(links: Sequence[LinkDirection]) -> Iterable[Statement]:
    """A shaper on the sending host itself, whose TCP learns of each drop."""
    receiving = Counter(link.to_node for link in links)
    hosts = [link for link in links if receiving[link.from_node] == 1 and link.queue_drops]
    for link in hosts[:3]:
        yield Statement(
            "The bottleneck in the host:",
            f"{link.sender} dropped {_packets(link.queue_drops)} of its own host, whose TCP learns"
            " of it at once, and slows down without a loss on the wire. A bottleneck in the network"
            " loses them: put the limit on the switch's port.")


def _propagating(links: Sequence[LinkDirection]) -> Iterable[Statement]:
    for link in links:
        setting = link.setting
        limits = [queue.limit_packets for queue in setting.queues
                  if queue.kind == "netem" and queue.limit_packets]
        if not limits or math.isinf(setting.rate_kbps) or not link.queue_drops:
            continue
        propagating = setting.delay_ms * setting.rate_kbps / 8 / FULL_FRAME_BYTES
        if propagating >= _SHARE * limits[0]:
            yield Statement(
                "A queue that holds what propagates:",
                f"of the {limits[0]} packets of {link.sender}, {propagating:.0f} are on their way"
                f" during the {short(setting.delay_ms)} ms of delay: netem counts both. A router's"
                " queue is what is left.")


def _elsewhere(capture: Capture, names: Mapping[int, str]) -> Iterable[Statement]:
    """What the kernel dropped in no queue."""
    for device, reason, count in sorted(capture.dropped, key=lambda dropped: -dropped[2])[:8]:
        if reason in _LOSSES and count > 0:
            yield Statement(f"Dropped at {names.get(device, '')}:",
                            f"{_packets(count)}, since {_LOSSES[reason]} ({reason}).")


def _packets(count: int) -> str:
    return "1 packet" if count == 1 else f"{count} packets"
