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
    """One direction of a link between two devices, or a queue that leads to no link."""

    device: int  # number of the sending device
    since_ns: int  # when it was first up
    sender: str  # the devices' names
    receiver: str  # "" for a queue that leads to no link
    from_node: str  # the hosts or switches of these devices
    to_node: str

    # Of the packets that came to the queue, in the order in which they left or were dropped:
    packets: Packets
    places: Numbers  # their places in the capture
    wire_bytes: Numbers  # with the headers of each segment on a wire (qdisc_pkt_len_segs_init)
    queue_bytes: Numbers  # as queues count
    is_own: Flags  # which no program sent, such as ARP (wire.capture.links.own_packets)

    settings: tuple[DeviceSetting, ...] = ()  # those under which packets came to the queue
    sent: int = 0  # packets that left
    sent_bytes: int = 0  # of these packets
    queue_drops: int = 0  # by a full queue
    udp_drops: int = 0  # of UDP, among queue_drops
    managed_drops: int = 0  # by an AQM
    random_drops: int = 0  # by random loss
    down_ns: list[tuple[int, int]] = field(default_factory=list)  # when either end was down again
    down_drops: int = 0  # while an end was down
    discarded: int = 0  # still queued when the link was taken down or its queue was replaced
    dropped_on_arrival: Counter[str] = field(default_factory=Counter)  # at the receiver, by reason

    # From the queue's entry to the link's end under the last setting; None without such packets.
    least_ms: float | None = None
    longest_ms: float | None = None
    highest_kbps: float | None = None  # over a second; None if packets took less time than that
    most_queued: int = 0  # packets

    judged: int = 0  # packets compared one by one with what the queues have to do
    worst_us: float = 0.0  # the largest difference that was allowed
    unjudged: str = ""  # why no packet was compared, or ""
    # Delays below 1 ms in whole µs, or below 1 µs in whole ns, with their unit.
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
