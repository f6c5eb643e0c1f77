"""What each link of a command's network did, compared with how it was set."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from lab.capture.pcapng import Capture, Device, CapturedPacket
from lab.capture.qdiscs import PLAIN, DeviceSetting, rate_words
from lab.tcp.delivery.packet_path import Deviation, Frame, delivery_of, examples
from lab.tcp.delivery.qdiscs import Way
from net.headers import header_bytes

# Timers of a guest wait for each other, and a system call that fails takes a microsecond: with many
# queues and programs a packet may leave by so much later than its queue alone would let it.
_LATE_NS = 50_000
WINDOW_NS = 1_000_000_000  # over which the highest rate is taken
_AT_ONCE = 1e12  # kbit/s: a rate with which nothing takes time
_LIKELY = 4.0  # standard deviations that a share of losses may be off by chance


@dataclass
class LinkDirection:
    """One direction of a link between two devices.

    device: number of the sender's; since_ns: when it first was up. sender, receiver: names of
    devices; from_node, to_node: of the hosts or switches that have them. settings: those under
    which packets came to its queue. packets: all that came, in the order in which they left or
    were dropped. sent, sent_bytes: of those that left. queue_drops: by a full queue;
    managed_drops: by a queue that chooses (AQM); random_drops: random loss; discarded: still
    queued when the link was taken down. least_ms, longest_ms: from coming to the queue to leaving
    it, propagation included, under the last setting; None where no packet came under it.
    highest_kbps: over a second, None for shorter ones. most_queued: packets. judged: packets that
    were compared one by one with what the queues have to do; worst_us: the largest difference of
    one that is right. unjudged: why none was, or "". wrong: what differs from what was set.
    """

    device: int
    since_ns: int
    sender: str
    receiver: str
    from_node: str
    to_node: str
    settings: tuple[DeviceSetting, ...] = ()
    packets: list[CapturedPacket] = field(default_factory=list)
    sent: int = 0
    sent_bytes: int = 0
    queue_drops: int = 0
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
    wrong: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.from_node} → {self.to_node}"

    @property
    def setting(self) -> DeviceSetting:
        """The last of those under which packets came, or that of the end."""
        return self.settings[-1] if self.settings else DeviceSetting(0)

    @property
    def set_since_ns(self) -> int:
        """When the last setting began; 0 where there was no other."""
        return self.setting.time_ns if len(self.settings) > 1 else 0

    @property
    def drops(self) -> int:
        return self.queue_drops + self.managed_drops + self.random_drops


def nodes(devices: Iterable[Device]) -> dict[int, str]:
    """The host or switch of each device: Mininet's, by the names of interfaces."""
    names, spaces = dict[int, str](), dict[int, str]()  # spaces: by network namespace
    states = {device.number: device.state for device in devices}
    for number, state in states.items():
        if state and (match := re.fullmatch(r"(.+?)-eth\d+", state.name)):
            names[number] = match[1]
            if not state.is_root:
                spaces.setdefault(state.namespace, match[1])
    for number, state in states.items():
        if state and number not in names:
            names[number] = spaces.get(state.namespace, "" if state.is_root else
                                       f"ns{state.namespace % 10000}") or state.name
    return names


def links(capture: Capture) -> list[LinkDirection]:
    """Both directions of each veth pair, in the order in which they were made."""
    names = nodes(capture.devices)
    by_device: dict[int, list[CapturedPacket]] = {}
    for packet in capture.packets:
        by_device.setdefault(packet.device, []).append(packet)
    directions = []
    for device in capture.devices:
        state = device.state
        if state is None or state.peer is None or state.kind != "veth":
            continue
        peer = capture.devices[state.peer].state
        if peer is None:
            continue
        since_ns = next((before.time_ns for before in device.states if before.is_up),
                        state.time_ns)
        link = LinkDirection(device.number, since_ns, state.name, peer.name, names[device.number],
                             names[state.peer], packets=by_device.get(device.number, []),
                             wrong=list(dict.fromkeys(device.refused)))
        _observe(link, device)
        _judge(link)
        directions.append(link)
    return directions


def _observe(link: LinkDirection, device: Device) -> None:
    sent = [packet for packet in link.packets if not packet.reason]
    link.settings = _in_effect(device.settings, link.packets)
    link.sent, link.sent_bytes = len(sent), sum(wire_bytes(packet) for packet in sent)
    is_lossy = any(setting.loss_percent != 0 for setting in link.settings)
    for packet in link.packets:
        if not packet.reason:
            continue
        if not packet.accepted:
            link.queue_drops += 1
        elif packet.is_dropped_at_once and is_lossy:
            link.random_drops += 1
        elif packet.is_discarded:
            link.discarded += 1
        else:
            link.managed_drops += 1
    since_ns = link.set_since_ns
    waits = [packet.time_ns - packet.queued_ns for packet in sent if packet.queued_ns >= since_ns]
    if waits:
        link.least_ms, link.longest_ms = min(waits) / 1e6, max(waits) / 1e6
    link.highest_kbps = _highest_kbps(sent)
    link.most_queued = _most_queued(link.packets)


def wire_bytes(packet: CapturedPacket) -> int:
    """With the headers that its segments have on a real wire (qdisc_pkt_len_segs_init)."""
    if packet.segments < 2:
        return packet.frame_bytes
    return packet.frame_bytes + (packet.segments - 1) * header_bytes(packet.head,
                                                                     packet.frame_bytes)


def _in_effect(settings: Sequence[DeviceSetting], packets: Sequence[CapturedPacket]
               ) -> tuple[DeviceSetting, ...]:
    """Those under which packets came, each with its last counters."""
    effective: list[DeviceSetting] = []
    begins = [setting.time_ns for setting in settings]
    counts = [0] * len(settings)
    for packet in packets if begins else ():
        counts[max(0, bisect_right(begins, packet.queued_ns) - 1)] += 1
    for setting, count in zip(settings, counts):
        if effective and effective[-1].is_same(setting):
            effective[-1] = replace(setting, time_ns=effective[-1].time_ns)
        elif count or setting is settings[-1]:
            effective.append(setting)
    return tuple(effective)


def _highest_kbps(sent: Sequence[CapturedPacket]) -> float | None:
    if not sent or sent[-1].time_ns - sent[0].time_ns < WINDOW_NS:
        return None
    window: deque[tuple[int, int]] = deque()
    total = most = 0
    for packet in sent:
        size = wire_bytes(packet)
        window.append((packet.time_ns, size))
        total += size
        while window[0][0] <= packet.time_ns - WINDOW_NS:
            total -= window.popleft()[1]
        most = max(most, total)
    return most * 8e6 / WINDOW_NS


def _most_queued(packets: Sequence[CapturedPacket]) -> int:
    changes = [(packet.queued_ns, 1) for packet in packets if packet.accepted]
    changes += [(packet.time_ns, -1) for packet in packets if packet.accepted]
    queued = most = 0
    for _, change in sorted(changes):
        queued += change
        most = max(most, queued)
    return most


# As set, and as observed ----------------------------------------------------------------

def _judge(link: LinkDirection) -> None:
    for place, setting in enumerate(link.settings):
        until = link.settings[place + 1].time_ns if place + 1 < len(link.settings) else math.inf
        since = setting.time_ns if place else 0
        packets = [p for p in link.packets if since <= p.queued_ns and p.time_ns < until]
        link.wrong += _differences(setting, packets)
    since = link.set_since_ns
    if not _is_fresh(link.setting, [p for p in link.packets if p.queued_ns <= since]):
        link.unjudged = "its settings changed meanwhile"
    elif link.setting.way is None:
        link.unjudged = link.setting.unknown
    elif not link.wrong:
        _follow(link, link.setting.way, [p for p in link.packets if p.queued_ns > since])


def _is_fresh(setting: DeviceSetting, before: Sequence[CapturedPacket]) -> bool:
    """Whether a setting began with an empty queue and a whole burst.

    before: the packets that came until then, such as those that the kernel sends by itself between
    two commands of tc.
    """
    if not before:
        return True
    left_ns = max(packet.time_ns for packet in before)
    spent_ns = sum(map(wire_bytes, before)) * 8e6 / setting.rate_kbps
    return left_ns + spent_ns < setting.time_ns


def _differences(setting: DeviceSetting, packets: Sequence[CapturedPacket]) -> Iterable[str]:
    """What a setting did not do to the packets that came under it."""
    sent = [packet for packet in packets if not packet.reason]
    shaping = [queue for queue in setting.queues if queue.kind not in PLAIN]
    if len(sent) < 2:
        return
    unused = [queue for queue in shaping if queue.words != queue.kind and not queue.packets]
    yield from (f"{queue.words}: never used, none of {len(sent)} packets passed it"
                for queue in unused)
    if unused:
        return
    least_ns = min(packet.time_ns - packet.queued_ns for packet in sent)
    if not setting.jitter_ms and least_ns < setting.delay_ms * 1e6 - 1000:
        yield f"a packet took {least_ns / 1e6:g} ms, and {setting.delay_ms:g} ms are set"
    rate_kbps, highest_kbps = setting.rate_kbps, _highest_kbps(sent)
    largest = max(wire_bytes(packet) for packet in sent)
    room_kbps = (setting.burst_bytes + 2 * largest) * 8e6 / WINDOW_NS
    if highest_kbps and highest_kbps > rate_kbps * 1.001 + room_kbps:
        yield (f"{rate_words(highest_kbps)} in a second, and {rate_words(rate_kbps)} are set")
    share = (setting.loss_percent or 0.0) / 100
    entered = [packet for packet in packets if packet.accepted]
    lost = sum(packet.is_dropped_at_once for packet in entered)
    spread = _LIKELY * math.sqrt(len(entered) * share * (1 - share)) + _LIKELY if share else 0.0
    if share and abs(lost - len(entered) * share) > spread:
        yield (f"{100 * lost / len(entered):.2g} % lost at random, and"
               f" {setting.loss_percent:g} % are set")


def _follow(link: LinkDirection, way: Way, came: Sequence[CapturedPacket]) -> None:
    """Compare each packet with what the queues have to do with it (lab.tcp.delivery)."""
    packets = [packet for packet in came if packet.number]
    sent = sorted(packets, key=lambda packet: packet.number)
    if len({packet.number for packet in sent}) < len(sent):
        link.unjudged = "packets were cut into segments in the queue"
        return
    sent = [packet for packet in sent if not packet.is_discarded]
    if not link.setting.is_shaping:
        late = [p for p in sent if p.time_ns != p.queued_ns or p.reason]
        deviations = [Deviation(p.number, "waited or was dropped") for p in late]
    else:
        if math.isinf(way.rate_kbps):
            way = replace(way, rate_kbps=_AT_ONCE)
        delivery = delivery_of([_frame(p, p.queued_ns) for p in sent],
                               [_frame(p, p.time_ns) for p in came if not p.reason],
                               way, _LATE_NS)
        deviations = delivery.deviations
        link.worst_us = delivery.worst_ns / 1000
    link.judged = len(sent)
    if deviations:
        link.wrong.append(f"{len(deviations)} of {len(sent)} packets differ from what its queue"
                          f" has to do ({examples(deviations)})")


def _frame(packet: CapturedPacket, time_ns: int) -> Frame:
    return Frame(time_ns, packet.number.to_bytes(8, "big"), wire_bytes(packet), packet.number)

