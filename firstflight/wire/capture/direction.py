"""One direction of a link of a capture: how it was set, its packets, and what is said of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

import numpy

from firstflight.wire.capture.pcapng import Flags, Numbers, Packets
from firstflight.wire.capture.qdiscs import DeviceSetting

WINDOW_NS = 1_000_000_000  # over which the highest rate is taken


@dataclass(eq=False)
class LinkDirection:
    """One direction of a link between two devices, or a queue that leads to no link.

    device: number of the sender's; since_ns: when it first was up; down_ns: since when and until
    when either end was down after that. sender, receiver: names of devices, the latter "" if it
    is no link; from_node, to_node: of the hosts or switches that have them. settings: those under
    which packets came to its queue. packets: all that came, in the order in which they left or were
    dropped, places: where they are in the capture. wire_bytes: with the headers that segments have
    on a real wire (qdisc_pkt_len_segs_init); queue_bytes: as queues count. own_packets: those that
    the kernel sends by itself (ICMPv6 but pings). sent, sent_bytes: of those that left.
    queue_drops: by a full queue, udp_drops: of these those of UDP; managed_drops: by a queue that
    chooses (AQM); random_drops: random loss; discarded: still queued when the link was taken down,
    or its queue replaced; dropped_behind: by its receiver on arrival, by the kernel's reason.
    least_ms, longest_ms: from coming to the queue to leaving it, propagation included, under the
    last setting; None if no packet came under it. highest_kbps: over a second, None for shorter
    ones. most_queued: packets. judged: packets that were compared one by one with what the queues
    have to do; worst_us: the largest difference of one that is right. unjudged: why none was, or
    "". short_delays: those that are whole numbers of µs or ns, below a millisecond or a
    microsecond, with that unit. wrong: what differs from what was set; advice: what is as set, and
    surprises; remarks: what a reader may want to know of what was set.
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
    own_packets: int = 0
    settings: tuple[DeviceSetting, ...] = ()
    sent: int = 0
    sent_bytes: int = 0
    queue_drops: int = 0
    udp_drops: int = 0
    down_ns: list[tuple[int, int]] = field(default_factory=list)
    dropped_behind: Counter[str] = field(default_factory=Counter)
    managed_drops: int = 0
    random_drops: int = 0
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
        """The last of those under which packets came, or that of the end."""
        return self.settings[-1] if self.settings else DeviceSetting(0)

    @property
    def set_since_ns(self) -> int:
        """When the last setting began; 0 if there was no other."""
        return self.setting.time_ns if len(self.settings) > 1 else 0

    @property
    def is_untested(self) -> bool:
        """Whether something was set, and nobody's packet shows what it does."""
        return self.packets.size == self.own_packets and self.setting.is_shaping

    @property
    def drops(self) -> int:
        return self.queue_drops + self.managed_drops + self.random_drops

    def select(self, chosen: Flags) -> LinkDirection:
        """The same with some of its packets only."""
        return replace(self, packets=self.packets.at(chosen), places=self.places[chosen],
                       wire_bytes=self.wire_bytes[chosen], queue_bytes=self.queue_bytes[chosen])


def highest_kbps(times: Numbers, sizes: Numbers) -> float | None:
    """The highest rate of packets that left, over a second; None if they took less."""
    if not len(times) or times[-1] - times[0] < WINDOW_NS:
        return None
    return most_bytes(times, sizes, WINDOW_NS) * 8e6 / WINDOW_NS


def most_bytes(times: Numbers, sizes: Numbers, within_ns: int) -> float:
    """The most that left within so long, of packets in the order in which they left; at least one.
    """
    sums = numpy.insert(numpy.cumsum(sizes), 0, 0)
    first = numpy.searchsorted(times, times - within_ns, "right")
    return float((sums[1:] - sums[first]).max())


def queued(packets: Packets) -> tuple[Numbers, Numbers]:
    """How many packets are in a queue, propagating ones included, and from when on, ns."""
    held = packets.at(packets.accepted)
    times = numpy.concatenate((held.queued_ns, held.time_ns))
    changes = numpy.repeat((1, -1), held.size)
    order = numpy.lexsort((changes, times))  # at one time those that leave are first
    return times[order], numpy.cumsum(changes[order])
