"""Drops that no queue in the network made: by a host's own queue, or elsewhere in its kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from firstflight.findings.findings import Statement
from firstflight.wire.capture.direction import LinkDirection
from firstflight.wire.capture.spaces import NamespaceNames, name_nodes
from firstflight.wire.capture.pcapng import Capture

_MOST_HOSTS, _MOST_REASONS = 3, 8  # more are not listed
# The kernel's reasons for drops that a program notices (dropreason-core.h), in words.
LOSSES = {
    "SOCKET_RCVBUF": "the receive buffer of a socket was full",
    "PROTO_MEM": "the memory for sockets was used up",
    "TCP_BACKLOG": "a socket's backlog was full",
    "TCP_RETRANSMIT": "the segment had arrived before",
    "IP_OUTNOROUTES": "there was no route", "IP_INNOROUTES": "there was no route",
    "PKT_TOO_BIG": "the packet was larger than the MTU",
    "TCP_CSUM": "TCP's checksum was wrong", "UDP_CSUM": "UDP's checksum was wrong",
    "IP_RPFILTER": "the reverse path filter refused it",
    "NETFILTER_DROP": "a packet filter dropped it",
    "TC_INGRESS": "policing or a filter at its ingress dropped it",
    "OVS_DROP_METER": "a meter of Open vSwitch dropped it",
    "OVS_DROP_LAST_ACTION": "no flow of Open vSwitch sends it on",
    "OVS_DROP_EXPLICIT": "a flow of Open vSwitch drops it",
    "OVS_DROP_EXPLICIT_WITH_ERROR": "Open vSwitch could not send it on",
    "BRIDGE_INGRESS_STP_STATE": "the bridge's port did not forward yet: with STP it waits for two"
                                " forward delays, 30 s by default",
    "NEIGH_FAILED": "no host answered ARP", "NEIGH_QUEUEFULL": "too many packets waited for ARP"}


def drop_statements(capture: Capture, links: Sequence[LinkDirection], spaces: NamespaceNames
                    ) -> list[Statement]:
    """Statements on drops by hosts' own queues, then on drops by other reasons; [] for none."""
    names = name_nodes(capture.devices, spaces)
    return [*_drops_of_own_queues(links), *_drops_by_reason(capture, names)]


def _drops_of_own_queues(links: Sequence[LinkDirection]) -> Iterable[Statement]:
    """Statements on drops by a queue of the sending host itself, which no network has lost."""
    count_into = Counter(link.to_node for link in links)
    # A node that only one link leads to is a host; switches have several.
    from_hosts = [link for link in links if count_into[link.from_node] == 1 and link.queue_drops]
    for link in sorted(from_hosts, key=lambda link: -link.queue_drops)[:_MOST_HOSTS]:
        of_tcp = link.queue_drops - link.udp_drops
        of_udp = f" ({link.udp_drops} of UDP)" if link.udp_drops and of_tcp else ""
        effect = ("Its TCP learns of it at once and slows down, so no loss is seen on the wire."
                  if of_tcp else
                  "Its program does not notice, and no counter in the network shows it.")
        yield Statement(
            "The bottleneck is in the host:",
            f"{link.sender} dropped {_packets(link.queue_drops)}{of_udp} that its own host sent."
            f" {effect} To lose packets in the network, set the limit on the switch's port.")


def _drops_by_reason(capture: Capture, names: Mapping[int, str]) -> Iterable[Statement]:
    """Statements on packets that the kernel dropped outside of queues, by host and reason."""
    counts = Counter[tuple[str, str]]()
    for device, reason, count in capture.dropped:
        if reason in LOSSES:
            counts[names.get(device, ""), reason] += count
    for (name, reason), count in counts.most_common(_MOST_REASONS):
        yield Statement(f"Dropped at {name}:",
                        f"{_packets(count)}, since {LOSSES[reason]} ({reason}).")


def _packets(count: int) -> str:
    return "1 packet" if count == 1 else f"{count} packets"
