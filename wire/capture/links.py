"""What each link of a command's network did, compared with how it was set."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy

from net.headers import ICMPV6
from net.tc import TICK_NS
from wire.capture.fields import Headers
from wire.capture.pcapng import Capture, Device, DeviceState, Flags, Numbers, Packets
from wire.capture.qdiscs import PLAIN, DeviceSetting, rate_words
from wire.delivery.packet_path import Deviation, Frame, delivery_of, examples
from wire.delivery.qdiscs import Way

# Timers of a guest wait for each other, and a system call that fails takes a microsecond: with many
# queues and programs a packet may leave by so much later than its queue alone would let it.
_LATE_NS = 50_000
WINDOW_NS = 1_000_000_000  # over which the highest rate is taken
_AT_ONCE = 1e12  # kbit/s: a rate with which nothing takes time
_LIKELY = 4.0  # standard deviations that a share of losses may be off by chance
_VLAN_BYTES = 4  # a tag that a device adds when it sends: no queue counts it
_FEW = 0.1  # of the packets: a setting that fewer came under was hardly there
MICROSECONDS = "microseconds"  # of the hints of a script: it has delays in them
# What tc takes a delay without a unit for: until iproute2 6.1 the first, in 6.15 the second.
WITHOUT_UNIT = {"µs": "microseconds", "ns": "nanoseconds"}
_LEAST_OWN = 130  # of ICMPv6's types: multicast listeners and neighbours (RFC 2710, 4861)
_MOST_OWN = 12  # packets that a kernel sends by itself on a new device
_SWITCHES = ("bridge", "openvswitch")  # devices that stand for a switch
QUEUE_PACKETS = 1000  # txqueuelen of a veth device that nobody changed


@dataclass(eq=False)
class LinkDirection:
    """One direction of a link between two devices, or a queue that leads to no link.

    device: number of the sender's; since_ns: when it first was up. sender, receiver: names of
    devices, the latter "" where it is no link; from_node, to_node: of the hosts or switches that
    have them. settings: those under which packets came to its queue. packets: all that came, in the
    order in which they left or were dropped, places: where they are in the capture. wire_bytes:
    with the headers that segments have on a real wire (qdisc_pkt_len_segs_init); queue_bytes: as
    queues count. own_packets: those that the kernel sends by itself (ICMPv6 but pings). sent,
    sent_bytes: of those that left. queue_drops: by a full queue; managed_drops: by a queue that
    chooses (AQM); random_drops: random loss; discarded: still queued when the link was taken down,
    or its queue replaced. least_ms, longest_ms: from coming to the queue to leaving it, propagation
    included, under the last setting; None where no packet came under it. highest_kbps: over a
    second, None for shorter ones. most_queued: packets. judged: packets that were compared one by
    one with what the queues have to do; worst_us: the largest difference of one that is right.
    unjudged: why none was, or "". short_delays: those that are whole numbers of µs or ns, below a
    millisecond or a microsecond, with that unit. wrong: what differs from what was set; remarks:
    what a reader may want to know of what was set.
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
        """When the last setting began; 0 where there was no other."""
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


class Spaces:
    """The names that `ip netns` gave to network namespaces: a number may have several in turn."""

    def __init__(self, lines: Iterable[str] = ()) -> None:
        """lines: each with the time in ns from which on, the number, and the name."""
        self.names: dict[int, list[tuple[int, str]]] = {}
        for line in lines:
            since_ns, number, name = (line + "  ").split(" ", 2)
            if since_ns.isdigit() and number.isdigit():
                self.names.setdefault(int(number), []).append((int(since_ns), name.strip()))

    def name(self, state: DeviceState) -> str:
        """Of the one that a device was in, "" where it has none."""
        given = self.names.get(state.namespace, [])
        return max([(since_ns, name) for since_ns, name in given if since_ns <= state.time_ns]
                   or given[:1] or [(0, "")])[1]


def nodes(devices: Iterable[Device], spaces: Spaces) -> dict[int, str]:
    """The host or switch of each device: Mininet's, by the names of interfaces."""
    names, by_space = dict[int, str](), dict[int, str]()
    states = {device.number: device.state for device in devices}
    for number, state in states.items():
        if state and not state.is_root and (name := spaces.name(state)):
            names[number] = name
        elif state and (match := re.fullmatch(r"(.+?)-eth\d+", state.name)):
            names[number] = match[1]
            if not state.is_root:
                by_space.setdefault(state.namespace, match[1])
    for number, state in states.items():
        if state and number not in names:
            names[number] = by_space.get(state.namespace, "" if state.is_root else
                                         f"ns{state.namespace % 10000}") or state.name
    return names


def links(capture: Capture, headers: Headers, spaces: Spaces,
          proceed: Callable[[str], None] = lambda what: None) -> list[LinkDirection]:
    """Both directions of each veth pair in the order in which they were made; what else is set.

    proceed: takes how far it is.
    """
    names = nodes(capture.devices, spaces)
    packets = capture.packets
    own_bytes = numpy.maximum(packets.segments - 1, 0) * headers.header_bytes
    wire_bytes = packets.frame_bytes + own_bytes
    queue_bytes = wire_bytes - _VLAN_BYTES * headers.is_tagged * numpy.maximum(packets.segments, 1)
    is_own = (headers.protocol == ICMPV6) & (headers.byte(headers.body) >= _LEAST_OWN)
    order = numpy.argsort(packets.device, kind="stable")
    ends = numpy.searchsorted(packets.device[order], numpy.arange(len(capture.devices) + 1))
    directions = []
    for device in capture.devices:
        state = device.state
        peer = None if state is None or state.peer is None or state.kind != "veth" \
            else capture.devices[state.peer].state
        if state is None or peer is None and not any(
                setting.is_shaping for setting in device.settings):
            continue
        since_ns = next((before.time_ns for before in device.states if before.is_up),
                        state.time_ns)
        places = order[ends[device.number]:ends[device.number + 1]]
        link = LinkDirection(
            device.number, since_ns, state.name, peer.name if peer else "", names[device.number],
            names[state.peer] if peer and state.peer is not None else "", packets.at(places),
            places, wire_bytes[places], queue_bytes[places], int(is_own[places].sum()),
            wrong=list(dict.fromkeys(device.refused)))
        link.settings = _in_effect(device.settings, link.packets)
        _observe(link)
        _judge(link)
        _misplaced(link, device, capture)
        directions.append(link)
        proceed(f"{len(directions)} directions of links")
    return directions


def _observe(link: LinkDirection) -> None:
    packets, dropped = link.packets, link.packets.is_dropped
    sent = ~dropped
    link.sent, link.sent_bytes = int(sent.sum()), int(link.wire_bytes[sent].sum())
    is_lossy = any(setting.loss_percent != 0 for setting in link.settings)
    at_random = packets.is_dropped_at_once & is_lossy
    link.queue_drops = int((dropped & ~packets.accepted).sum())
    link.random_drops, link.discarded = int(at_random.sum()), int(packets.is_discarded.sum())
    link.managed_drops = int((dropped & packets.accepted & ~at_random & ~packets.is_discarded
                              ).sum())
    waits = (packets.time_ns - packets.queued_ns)[sent & (packets.queued_ns >= link.set_since_ns)]
    if len(waits):
        link.least_ms, link.longest_ms = int(waits.min()) / 1e6, int(waits.max()) / 1e6
    link.highest_kbps = highest_kbps(packets.time_ns[sent], link.wire_bytes[sent])
    link.most_queued = max(queued(packets)[1], default=0)


def queued(packets: Packets) -> tuple[Numbers, Numbers]:
    """How many packets are in a queue, propagating ones included, and from when on, ns."""
    held = packets.at(packets.accepted)
    times = numpy.concatenate((held.queued_ns, held.time_ns))
    changes = numpy.repeat((1, -1), held.size)
    order = numpy.lexsort((changes, times))  # at one time those that leave are first
    return times[order], numpy.cumsum(changes[order])


def _in_effect(settings: Sequence[DeviceSetting], packets: Packets) -> tuple[DeviceSetting, ...]:
    """Those under which packets came, each with its last counters."""
    effective: list[DeviceSetting] = []
    begins = [setting.time_ns for setting in settings]
    under = numpy.maximum(numpy.searchsorted(begins, packets.queued_ns, "right") - 1, 0)
    counts = numpy.bincount(under, minlength=len(settings))
    for setting, count in zip(settings, counts):
        # A netem that was made again has other random numbers.
        if effective and effective[-1].is_same(setting) and (
                effective[-1].seeds == setting.seeds or not setting.loss_percent):
            effective[-1] = replace(setting, time_ns=effective[-1].time_ns)
        elif count or setting is settings[-1]:
            effective.append(setting)
    return tuple(effective)


def highest_kbps(times: Numbers, sizes: Numbers) -> float | None:
    """Of packets that left, over a second; None where they took less."""
    if not len(times) or times[-1] - times[0] < WINDOW_NS:
        return None
    sums = numpy.insert(numpy.cumsum(sizes), 0, 0)
    first = numpy.searchsorted(times, times - WINDOW_NS, "right")
    return float((sums[1:] - sums[first]).max()) * 8e6 / WINDOW_NS


# As set, and as observed ----------------------------------------------------------------

def _judge(link: LinkDirection) -> None:
    packets = link.packets
    for place, setting in enumerate(link.settings):
        until = link.settings[place + 1].time_ns if place + 1 < len(link.settings) else math.inf
        since = setting.time_ns if place else 0
        _compare(link, setting,
                 link.select((since <= packets.queued_ns) & (packets.time_ns < until)))
    since = link.set_since_ns
    if not _is_fresh(link.setting, link.select(packets.queued_ns <= since)):
        link.unjudged = "its settings changed meanwhile"
    elif link.setting.way is None:
        link.unjudged = link.setting.unknown
    elif not link.wrong and packets.size:
        _follow(link, link.setting.way, link.select(packets.queued_ns > since))


def _is_fresh(setting: DeviceSetting, before: LinkDirection) -> bool:
    """Whether a setting began with an empty queue and a whole burst.

    before: the packets that came until then, such as those that the kernel sends by itself between
    two commands of tc.
    """
    if not before.packets.size:
        return True
    left_ns = int(before.packets.time_ns.max())
    spent_ns = int(before.queue_bytes.sum()) * 8e6 / setting.rate_kbps
    return left_ns + spent_ns < setting.time_ns


def _compare(link: LinkDirection, setting: DeviceSetting, came: LinkDirection) -> None:
    """Note what a setting did not do to the packets that came under it."""
    packets, sent = came.packets, ~came.packets.is_dropped
    count = int(sent.sum())
    if count < 2:
        return
    wrong = link.wrong
    shaping = [queue for queue in setting.queues if queue.kind not in PLAIN]
    # A few are the kernel's own, which go another way than data where priorities decide.
    unused = [queue for queue in shaping if queue.words != queue.kind
              and queue.packets <= min(_FEW * count, _MOST_OWN)]
    is_shaped = any(queue.is_shaping and queue not in unused for queue in setting.queues)
    for queue in unused:
        (link.remarks if is_shaped else wrong).append(
            f"{queue.words}: only {queue.packets} of {count} packets passed it" if queue.packets
            else f"{queue.words}: never used, none of {count} packets passed it")
    if unused and not is_shaped:
        return
    least_ns = int((packets.time_ns - packets.queued_ns)[sent].min())
    is_reordered = any("reorder" in word for queue in setting.used for word in queue.also)
    if not (setting.jitter_ms or is_reordered) and least_ns < setting.delay_ms * 1e6 - 1000:
        wrong.append(f"a packet took {least_ns / 1e6:g} ms, and {setting.delay_ms:g} ms are set")
    rate_kbps, highest = setting.rate_kbps, highest_kbps(packets.time_ns[sent],
                                                         came.queue_bytes[sent])
    room_kbps = (setting.burst_bytes + 2 * int(came.queue_bytes.max())) * 8e6 / WINDOW_NS
    if highest and not is_reordered and highest > rate_kbps * 1.001 + room_kbps:
        wrong.append(f"{rate_words(highest)} in a second, and {rate_words(rate_kbps)} are set")
    share = (setting.loss_percent or 0.0) / 100
    entered = int(packets.accepted.sum())
    lost = int(packets.is_dropped_at_once.sum())
    spread = _LIKELY * math.sqrt(entered * share * (1 - share)) + _LIKELY if share else 0.0
    if share and abs(lost - entered * share) > spread:
        wrong.append(f"{100 * lost / entered:.2g} % lost at random, and"
                     f" {setting.loss_percent:g} % are set")


def _misplaced(link: LinkDirection, device: Device, capture: Capture) -> None:
    """Note what was set and cannot do what is likely meant."""
    state = device.state
    shaped = [setting for setting in device.settings if setting.is_shaping]
    if state is None:
        return
    if state.kind in _SWITCHES and shaped:
        link.wrong.append(f"{shaped[-1].words}: set on the switch's own device, and what it"
                          " forwards passes only the queues of its ports: set it there")
    elif shaped and not link.receiver and link.packets.size == link.own_packets:
        link.wrong.append(f"{shaped[-1].words}: never used, no packet came to {link.sender}")
    last = max((place for place, setting in enumerate(device.settings) if setting.is_shaping),
               default=len(device.settings))
    for removed in device.settings[last + 1:last + 2]:
        since, until = shaped[0].time_ns, removed.time_ns
        came = int((link.packets.queued_ns >= until).sum())
        under = int(((link.packets.queued_ns >= since) & (link.packets.queued_ns < until)).sum())
        words = (f"{shaped[-1].words}: removed {(until - since) / 1e9:.3g} s after it was set;"
                 f" {under} packets came under it, {came} later")
        if came > link.own_packets:
            (link.wrong if under <= _FEW * came else link.remarks).append(words)
    delays_ns = {queue.delay_ms * 1e6 for setting in shaped for queue in setting.queues
                 if 0 < queue.delay_ms < 1}
    link.short_delays = sorted(
        [(round(delay_ns), "ns") for delay_ns in delays_ns if delay_ns < 1000 - TICK_NS]
        + [(round(delay_ns / 1000), "µs") for delay_ns in delays_ns
           if delay_ns >= 1000 - TICK_NS
           and abs(delay_ns - 1000 * round(delay_ns / 1000)) <= TICK_NS])
    setting = link.setting
    for queue in setting.queues:
        limits = [q.limit_packets for q in setting.queues if q.kind == "netem" and q.limit_packets]
        if limits and setting.is_below_netem(queue) and queue.limit_packets and (
                queue.limit_packets < limits[0]):
            link.wrong.append(f"{queue.words}: it never fills, since netem hands it one packet at a"
                              f" time; netem's own limit of {limits[0]} packets decides")
    if state.kind == "veth" and state.queue_packets not in (None, QUEUE_PACKETS):
        root = setting.queues[0].kind if setting.queues else "noqueue"
        if setting.queue_words and setting.queue_words != f"{state.queue_packets} packets":
            link.wrong.append(f"txqueuelen {state.queue_packets}: it limits nothing; the queue of"
                              f" {root} holds {setting.queue_words}")
        elif root == "noqueue":
            link.wrong.append(f"txqueuelen {state.queue_packets}: it limits nothing; {link.sender}"
                              " has no queue (noqueue)")
    peer = capture.devices[state.peer].state if state.peer is not None else None
    if link.receiver and peer and state.mtu > peer.mtu:
        link.wrong.append(f"MTU {state.mtu}, and {peer.mtu} at {peer.name}: larger packets are"
                          " dropped there")


def _follow(link: LinkDirection, way: Way, came: LinkDirection) -> None:
    """Compare each packet with what the queues have to do with it (wire.delivery)."""
    # What is discarded with its link has filled the queue until then.
    until = came.packets.queued_ns[came.packets.is_discarded].min(initial=1 << 62)
    came = came.select((came.packets.number != 0) & (came.packets.queued_ns < until))
    packets = came.packets
    order = numpy.argsort(packets.number, kind="stable")
    if len(numpy.unique(packets.number)) < packets.size:
        link.unjudged = "packets were cut into segments in the queue"
        return
    link.judged = packets.size
    if not link.setting.is_shaping:
        late = packets.frame[(packets.time_ns != packets.queued_ns) | packets.is_dropped]
        deviations = [Deviation(int(frame), "waited or was dropped") for frame in late]
    else:
        if math.isinf(way.rate_kbps):
            way = replace(way, rate_kbps=_AT_ONCE)
        sent = _frames(came, order, packets.queued_ns)
        left = _frames(came, numpy.flatnonzero(~packets.is_dropped), packets.time_ns)
        delivery = delivery_of(sent, left, way, _LATE_NS)
        deviations = delivery.deviations
        link.worst_us = delivery.worst_ns / 1000
    if deviations:
        link.wrong.append(f"{len(deviations)} of {link.judged} packets differ from what its queue"
                          f" has to do ({examples(deviations)})")


def _frames(link: LinkDirection, places: Numbers, times: Numbers) -> list[Frame]:
    numbers = link.packets.number[places].astype(">u8").view("V8").tolist()
    return [*map(Frame, times[places].tolist(), numbers, link.queue_bytes[places].tolist(),
                 link.packets.frame[places].tolist())]
