"""Notes on a command's network: what would be different on real machines, by its packets."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from base.words import short
from findings.findings import Statement
from net.tc import FULL_FRAME_BYTES
from wire.capture.conversations import Conversations
from wire.capture.links import LinkDirection, Spaces, nodes
from wire.capture.pcapng import Capture

_STP = "BRIDGE_INGRESS_STP_STATE"
_SHARE = 0.25  # of a queue's packets: if fewer propagate, no note
# The kernel's reasons for drops that a program notices (dropreason-core.h), in words.
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
    "NEIGH_FAILED": "no host answered ARP", "NEIGH_QUEUEFULL": "too many packets waited for ARP"}


def notes(capture: Capture, links: Sequence[LinkDirection], conversations: Conversations,
          spaces: Spaces) -> list[Statement]:
    """The most surprising first; [] for none."""
    names = nodes(capture.devices, spaces)
    return [*_offloads(links), *_own_queue(links), *_propagating(links),
            *_resolutions(conversations), *_bridges(capture),
            *_sizes(capture, conversations, names), *_dropped(capture, conversations, names)]


def _offloads(links: Sequence[LinkDirection]) -> Iterable[Statement]:
    large = {link.sender: link.packets.frame_bytes[link.packets.segments > 1] for link in links}
    hosts = sorted(sender for sender, sizes in large.items() if len(sizes))
    if hosts:
        count = sum(len(sizes) for sizes in large.values())
        yield Statement(
            "Offloads (TSO, GSO):",
            f"{count} of {sum(link.packets.size for link in links)} packets crossed a link as"
            f" several TCP segments in one, up to {max(large[host].max() for host in hosts)} bytes."
            " A real link carries each by itself, and a queue counts each."
            f" Without them: ethtool -K {hosts[0]} tso off gso off, on that host"
            + (f", and so on {', '.join(hosts[1:4])}{' …' if len(hosts) > 4 else ''}."
               if len(hosts) > 1 else "."))


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


def _resolutions(conversations: Conversations) -> Iterable[Statement]:
    if conversations.resolutions:
        node, wait_ns = max(conversations.resolutions, key=lambda resolution: resolution.wait_ns)
        yield Statement(
            "ARP before the first packet:",
            f"{_times(len(conversations.resolutions))} a host first asked for an address; {node}"
            f" waited {short(wait_ns / 1e6)} ms, and its first packet with it. Hosts that have"
            " talked before know the address: mn --arp, or Mininet(autoStaticArp=True).")


def _bridges(capture: Capture) -> Iterable[Statement]:
    count = sum(number for _, reason, number in capture.dropped if reason == _STP)
    if count:
        yield Statement(
            "Spanning tree:",
            f"{_packets(count)} came to ports of a bridge that did not forward yet: with STP a"
            " port waits for two forward delays, 30 s by default. Wait before the first packet.")


def _sizes(capture: Capture, conversations: Conversations, names: Mapping[int, str]
           ) -> Iterable[Statement]:
    sizes = {names[device.number]: state.mtu for device in capture.devices
             if (state := device.state) and state.mtu != 1500 and state.kind == "veth"}
    if sizes:
        listed = ", ".join(f"{node} {mtu}" for node, mtu in list(sizes.items())[:6])
        yield Statement("MTU:", f"not 1500 bytes everywhere: {listed}.")
    if count := conversations.excluded.get("fragments", 0):
        yield Statement("Fragments:", f"{_packets(count)} of larger ones: who sends UDP"
                                      " above the MTU loses all of it with one of them.")


def _dropped(capture: Capture, conversations: Conversations, names: Mapping[int, str]
             ) -> Iterable[Statement]:
    # The kernel says so of answers to pings as well, which a socket of ping's own takes.
    answers = Counter[str]()
    for flow in conversations.flows:
        answers[flow.from_node] += len(flow.delays_ms) if flow.kind == "ping" else 0
    for device, reason, count in sorted(capture.dropped, key=lambda drops: -drops[2])[:8]:
        node = names.get(device, "")
        if reason == "NO_SOCKET":
            count, answers[node] = count - answers[node], max(0, answers[node] - count)
        if reason in _LOSSES and count > 0:
            yield Statement(f"Dropped at {node}:",
                            f"{_packets(count)}, since {_LOSSES[reason]} ({reason}).")


def _packets(count: int) -> str:
    return "1 packet" if count == 1 else f"{count} packets"


def _times(count: int) -> str:
    return "Once" if count == 1 else f"{count} times"
