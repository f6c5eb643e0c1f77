"""One direction of a link in a capture: its settings, its packets, and what was found out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

import numpy

from firstflight.wire.capture.pcapng import Flags, Numbers, Packets
from firstflight.wire.capture.qdiscs import DeviceSetting

WINDOW_NS = 1_000_000_000  # the highest rate is the highest over any interval of this length


@dataclass(eq=False)
class LinkDirection:
    """One direction of a link between two devices, or a queue that leads to no link."""

    device: int  # number of the sending device
    since_ns: int  # when the sending device was first up
    sender: str  # name of the sending device
    receiver: str  # name of the receiving device; "" for a queue that leads to no link
    from_node: str  # name of the sender's host or switch
    to_node: str  # name of the receiver's host or switch

    # The packets that came to the queue, in the order in which they left or were dropped. Each
    # array has one number for each of these packets.
    packets: Packets
    places: Numbers  # the packet's place in the capture
    wire_bytes: Numbers  # with the headers of each segment on a wire (qdisc_pkt_len_segs_init)
    queue_bytes: Numbers  # as queues count
    # Whether no program sent the packet, such as ARP (wire.capture.links.find_housekeeping).
    is_housekeeping: Flags

    settings: tuple[DeviceSetting, ...] = ()  # under which packets came to the queue, in time
    sent: int = 0  # how many packets left
    sent_bytes: int = 0  # of the packets that left, on the wire

    # How many packets were dropped, by cause:
    queue_drops: int = 0  # a full queue
    udp_drops: int = 0  # a full queue, UDP alone; they count in queue_drops as well
    managed_drops: int = 0  # an AQM
    random_drops: int = 0  # random loss
    down_drops: int = 0  # an end of the link was down
    discarded: int = 0  # still queued when the link was taken down or its queue was replaced
    dropped_on_arrival: Counter[str] = field(default_factory=Counter)  # at the receiver, by reason

    # When an end of the link was down after it had been up: from and to.
    down_ns: list[tuple[int, int]] = field(default_factory=list)

    # The least and the longest time of a packet under the last setting, from its arrival at the
    # queue to the end of the link. None if no packet left under that setting.
    least_ms: float | None = None
    longest_ms: float | None = None
    highest_kbps: float | None = None  # over a second; None if packets took less time than that
    most_queued: int = 0  # packets

    judged: int = 0  # how many packets were compared one by one with what the queues have to do
    worst_us: float = 0.0  # the largest difference that counted as none
    unjudged: str = ""  # why no packet was compared, or ""
    # Configured delays that look as if their unit is missing: a whole number of µs below 1 ms, or
    # of ns below 1 µs. The text is the unit.
    short_delays: list[tuple[int, str]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)  # how packets differ from the settings
    advice: list[str] = field(default_factory=list)  # what works as set but is probably not meant
    remarks: list[str] = field(default_factory=list)  # other facts about the settings

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
        """Whether any packet of a program came to the queue."""
        return not self.is_housekeeping.all()

    @property
    def is_untested(self) -> bool:
        """Whether something was set, but no packet of a program shows what it does."""
        return not self.is_used and self.setting.is_shaping

    @property
    def drops(self) -> int:
        """How many packets a full queue, an AQM and random loss dropped."""
        return self.queue_drops + self.managed_drops + self.random_drops

    def select(self, chosen: Flags) -> LinkDirection:
        """This direction with the chosen ones of its packets only."""
        return replace(self, packets=self.packets.at(chosen), places=self.places[chosen],
                       wire_bytes=self.wire_bytes[chosen], queue_bytes=self.queue_bytes[chosen],
                       is_housekeeping=self.is_housekeeping[chosen])


def highest_kbps(times: Numbers, sizes: Numbers) -> float | None:
    """The highest rate over a second; None if the packets took less time than that."""
    if not len(times) or times[-1] - times[0] < WINDOW_NS:
        return None
    return most_bytes(times, sizes, WINDOW_NS) * 8e6 / WINDOW_NS


def most_bytes(times: Numbers, sizes: Numbers, within_ns: int) -> float:
    """The most bytes that left within an interval of `within_ns`.

    times: of one packet or more, in ns, in ascending order. sizes: of the same packets, in bytes.
    """
    sums = numpy.insert(numpy.cumsum(sizes), 0, 0)  # sums[n]: bytes of the first n packets
    # For the interval that ends with each packet, how many packets left before it began.
    before = numpy.searchsorted(times, times - within_ns, "right")
    return float((sums[1:] - sums[before]).max())


def queue_lengths(packets: Packets) -> tuple[Numbers, Numbers]:
    """How many packets a queue holds over time: the times of each change in ns, and the lengths.

    Packets that propagate on the link count as well.
    """
    held = packets.at(packets.accepted)
    times = numpy.concatenate((held.queued_ns, held.time_ns))
    changes = numpy.repeat((1, -1), held.size)
    order = numpy.lexsort((changes, times))  # at the same time, packets leave before others come
    return times[order], numpy.cumsum(changes[order])
