"""What of a command's network would be different on real machines, as far as its packets show."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from lab.capture.exchanges import Exchanges
from lab.capture.links import Link, nodes
from lab.capture.pcapng import Capture
from lab.core.findings.findings import Statement
from lab.core.words import short

_FULL_BYTES = 1514
_STP = "BRIDGE_INGRESS_STP_STATE"
_SHARE = 0.25  # of a queue's packets that are on their way, from which on it is told
# What of the kernel's reasons says that a packet was lost to a program (dropreason-core.h).
_LOSSES = {
    "SOCKET_RCVBUF": "the receive buffer of a socket was full",
    "PROTO_MEM": "the memory for sockets was used up",
    "TCP_BACKLOG": "a socket's backlog was full",
    "TCP_RETRANSMIT": "a segment had come before",
    "NO_SOCKET": "nothing listened on the port",
    "IP_OUTNOROUTES": "there was no route", "IP_INNOROUTES": "there was no route",
    "PKT_TOO_BIG": "the packet was larger than the MTU",
    "TCP_CSUM": "TCP's checksum was wrong", "UDP_CSUM": "UDP's checksum was wrong",
    "IP_RPFILTER": "the reverse path filter refused it",
    "NETFILTER_DROP": "a packet filter dropped it",
    "NEIGH_FAILED": "nobody answered to ARP", "NEIGH_QUEUEFULL": "too many waited for ARP"}


def remarks(capture: Capture, found: Sequence[Link], exchanges: Exchanges) -> list[Statement]:
    """The most surprising first; [] for none."""
    return [*_offloads(found), *_own_queue(found), *_propagating(found), *_asked(exchanges),
            *_bridges(capture), *_too_large(capture, exchanges), *_dropped(capture)]


def _offloads(found: Sequence[Link]) -> Iterable[Statement]:
    packets = [packet for link in found for packet in link.packets]
    large = [packet for packet in packets if packet.segments > 1]
    if large:
        most = max(packet.frame_bytes for packet in large)
        hosts = sorted({link.sender for link in found
                        if any(packet.segments > 1 for packet in link.packets)})
        yield Statement(
            "Offloads (TSO, GSO):",
            f"{len(large)} of {len(packets)} packets crossed a link as several TCP segments in one,"
            f" up to {most} bytes. A real link carries each by itself, and a queue counts each."
            f" Without them: ethtool -K {hosts[0]} tso off gso off, on that host"
            + (f", and so on {', '.join(hosts[1:4])}{' …' if len(hosts) > 4 else ''}."
               if len(hosts) > 1 else "."))


def _own_queue(found: Sequence[Link]) -> Iterable[Statement]:
    """A shaper on the sending host itself: its TCP is told of each drop."""
    receiving = Counter(link.to_node for link in found)
    hosts = [link for link in found if receiving[link.from_node] == 1 and link.queue_drops]
    for link in hosts[:3]:
        yield Statement(
            "The bottleneck in the host:",
            f"{link.sender} dropped {_packets(link.queue_drops)} of its own host, whose TCP learns"
            " of it at once, and slows down without a loss on the wire. A bottleneck in the network"
            " loses them: put the limit on the switch's port.")


def _propagating(found: Sequence[Link]) -> Iterable[Statement]:
    for link in found:
        setting = link.setting
        limits = [queue.limit_packets for queue in setting.queues
                  if queue.kind == "netem" and queue.limit_packets]
        if not limits or math.isinf(setting.rate_kbps) or not link.queue_drops:
            continue
        flying = setting.delay_ms * setting.rate_kbps / 8 / _FULL_BYTES
        if flying >= _SHARE * limits[0]:
            yield Statement(
                "A queue that holds what propagates:",
                f"of the {limits[0]} packets of {link.sender}, {flying:.0f} are on their way"
                f" during the {short(setting.delay_ms)} ms of delay: netem counts both. A router's"
                " queue is what is left.")


def _asked(exchanges: Exchanges) -> Iterable[Statement]:
    if exchanges.asked:
        node, asked_ns, knew_ns = max(exchanges.asked, key=lambda each: each[2] - each[1])
        yield Statement(
            "ARP before the first packet:",
            f"{_times(len(exchanges.asked))} a host first asked for an address; {node} waited"
            f" {short((knew_ns - asked_ns) / 1e6)} ms, and its first packet with it. Hosts that"
            " have talked before know the address: mn --arp, or Mininet(autoStaticArp=True).")


def _bridges(capture: Capture) -> Iterable[Statement]:
    count = sum(number for _, reason, number in capture.dropped if reason == _STP)
    if count:
        yield Statement(
            "Spanning tree:",
            f"{_packets(count)} came to ports of a bridge that did not forward yet: with STP a"
            " port waits for two forward delays, 30 s by default. Wait before the first packet.")


def _too_large(capture: Capture, exchanges: Exchanges) -> Iterable[Statement]:
    names = nodes(capture.devices)
    sizes = {names[device.number]: state.mtu for device in capture.devices
             if (state := device.state) and state.mtu != 1500 and state.kind == "veth"}
    if sizes:
        told = ", ".join(f"{node} {mtu}" for node, mtu in list(sizes.items())[:6])
        yield Statement("MTU:", f"not 1500 bytes everywhere: {told}.")
    if count := exchanges.left_out.get("fragments", 0):
        yield Statement("Fragments:", f"{_packets(count)} of larger ones: who sends UDP"
                                      " above the MTU loses all of it with one of them.")


def _dropped(capture: Capture) -> Iterable[Statement]:
    names = nodes(capture.devices)
    for device, reason, count in sorted(capture.dropped, key=lambda each: -each[2])[:8]:
        if reason in _LOSSES:
            yield Statement(f"Dropped at {names.get(device, '')}:",
                            f"{_packets(count)}, since {_LOSSES[reason]} ({reason}).")


def _packets(count: int) -> str:
    return "1 packet" if count == 1 else f"{count} packets"


def _times(count: int) -> str:
    return "Once" if count == 1 else f"{count} times"
