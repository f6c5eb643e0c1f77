"""One direction of a link of a capture: its settings, its packets, and what the report says."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

import numpy

from firstflight.wire.capture.pcapng import Flags, Numbers, Packets
from firstflight.wire.capture.qdiscs import DeviceSetting

WINDOW_NS = 1_000_000_000  # the highest rate is that of any interval of this length


@dataclass(eq=False)
class LinkDirection:
    """One direction of a link between two devices, or a queue that leads to no link.

    device: number of the sender's device. since_ns: when it was first up. down_ns: from when to
    when either end was down after that. sender, receiver: names of devices; receiver is "" for a
    queue that leads to no link. from_node, to_node: hosts or switches of the devices. settings:
    those under which packets came to the queue. packets: all that came to it, in the order in
    which they left or were dropped; places: their places in the capture. wire_bytes: with the
    headers that each segment has on a real wire (qdisc_pkt_len_segs_init); queue_bytes: as queues
    count. is_own: which of them no program sent: ARP, neighbours and groups, topology of switches
    (wire.capture.links.own_packets). sent, sent_bytes: of packets that left. queue_drops: dropped
    by a full queue, udp_drops: those of UDP among them. managed_drops: dropped by an AQM.
    random_drops: random loss. down_drops: dropped while an end was down. discarded: still queued
    when the link was taken down or its queue was replaced. dropped_behind: dropped by the receiver
    on arrival, by the kernel's reason. least_ms, longest_ms: from the queue's entry to the link's
    end, under the last setting; None without packets under it. highest_kbps: over a second, None
    for less time. most_queued: packets. judged: packets that were compared one by one with what the
    queues have to do; worst_us: the largest difference that is allowed. unjudged: why no packet was
    compared, or "". short_delays: delays below 1 ms in whole µs, or below 1 µs in whole ns, with
    their unit. wrong: how packets differ from the settings. advice: settings that work as set but
    are probably not meant. remarks: other facts about the settings.
    """

    device: int
    since_ns: int
    sender: str
    receiver: str
    from_node: str
    to_node: str
    packets: Packets
    places: Numbers
    wire_bytes: Numbers
    queue_bytes: Numbers
    is_own: Flags
    settings: tuple[DeviceSetting, ...] = ()
    sent: int = 0
    sent_bytes: int = 0
    queue_drops: int = 0
    udp_drops: int = 0
    down_ns: list[tuple[int, int]] = field(default_factory=list)
    dropped_behind: Counter[str] = field(default_factory=Counter)
    managed_drops: int = 0
    random_drops: int = 0
    down_drops: int = 0
    discarded: int = 0
    least_ms: float | None = None
    longest_ms: float | None = None
    highest_kbps: float | None = None
    most_queued: int = 0
    judged: int = 0
    worst_us: float = 0.0
    unjudged: str = ""
    short_delays: list[tuple[int, str]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.from_node} → {self.to_node}" if self.receiver else self.from_node

    @property
    def setting(self) -> DeviceSetting:
        """The last setting under which packets came."""
        return self.settings[-1] if self.settings else DeviceSetting(0)

    @property
    def set_since_ns(self) -> int:
        """When the last setting began; 0 if it is the only one."""
        return self.setting.time_ns if len(self.settings) > 1 else 0

    @property
    def is_used(self) -> bool:
        """Whether a program's packet came to it."""
        return not self.is_own.all()

    @property
    def is_untested(self) -> bool:
        """Whether something was set, but no packet of a program shows what it does."""
        return not self.is_used and self.setting.is_shaping

    @property
    def drops(self) -> int:
        return self.queue_drops + self.managed_drops + self.random_drops

    def select(self, chosen: Flags) -> LinkDirection:
        """This direction with some of its packets only."""
        return replace(self, packets=self.packets.at(chosen), places=self.places[chosen],
                       wire_bytes=self.wire_bytes[chosen], queue_bytes=self.queue_bytes[chosen],
                       is_own=self.is_own[chosen])


def highest_kbps(times: Numbers, sizes: Numbers) -> float | None:
    """The highest rate over a second; None if the packets took less time than that."""
    if not len(times) or times[-1] - times[0] < WINDOW_NS:
        return None
    return most_bytes(times, sizes, WINDOW_NS) * 8e6 / WINDOW_NS


def most_bytes(times: Numbers, sizes: Numbers, within_ns: int) -> float:
    """The most bytes that left within so long. times: of at least one packet, in ascending order.
    """
    sums = numpy.insert(numpy.cumsum(sizes), 0, 0)
    first = numpy.searchsorted(times, times - within_ns, "right")
    return float((sums[1:] - sums[first]).max())


def queue_lengths(packets: Packets) -> tuple[Numbers, Numbers]:
    """How many packets are in a queue, those that propagate included: times in ns, and lengths."""
    held = packets.at(packets.accepted)
    times = numpy.concatenate((held.queued_ns, held.time_ns))
    changes = numpy.repeat((1, -1), held.size)
    order = numpy.lexsort((changes, times))  # at the same time, packets leave before others come
    return times[order], numpy.cumsum(changes[order])
