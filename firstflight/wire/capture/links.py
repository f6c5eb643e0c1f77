"""Compares what each link of a command's network did with its settings."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy

from firstflight.net.headers import ICMPV6, UDP
from firstflight.net.link import Link
from firstflight.wire.capture.direction import WINDOW_NS, LinkDirection, highest_kbps, queue_lengths
from firstflight.wire.capture.fields import Headers
from firstflight.wire.capture.misplaced import FEW, note_misplaced
from firstflight.wire.capture.pcapng import Capture, Device, Flags, Numbers, Packets
from firstflight.wire.capture.qdiscs import PLAIN, DeviceSetting, Qdisc, format_rate
from firstflight.wire.capture.spaces import NamespaceNames, node_names
from firstflight.wire.delivery.packet_path import Deviation, Frame, delivery_of, examples

# With many queues and programs a packet may leave so much later than its queue alone requires:
# timers of a guest wait for each other, and a failing system call takes a microsecond.
_LATE_NS = 50_000
# The kernel's reasons for dropping a packet that a device has just received.
ON_ARRIVAL = ("TC_INGRESS", "NETFILTER_DROP", "IP_RPFILTER", "IP_INNOROUTES", "OVS_DROP_METER",
              "OVS_DROP_LAST_ACTION", "OVS_DROP_EXPLICIT")
_AT_ONCE = 1e12  # kbit/s: at this rate sending takes no time
MOST_JUDGED = 200_000  # the first packets of a direction are compared one by one
_LIKELY = 4.0  # standard deviations: chance explains such a deviation of the share of losses
_VLAN_BYTES = 4  # of a tag that a device adds as it sends: no queue counts it
_LEAST_OWN = 130  # ICMPv6's types from here on: multicast listeners, neighbours (RFC 2710, 4861)
_IGMP = 2
_LEAST_TYPE = 0x600  # below it is the length of a frame of 802.3, such as the spanning tree's
# EtherTypes of ARP, LLDP, and what controllers of OpenFlow find links with.
_OF_NETWORKS = (0x0806, 0x88CC, 0x8942)
_NEVER = 1 << 62
_MOST_OWN = 12  # packets that a kernel sends by itself on a new device


def observe_links(capture: Capture, headers: Headers, spaces: NamespaceNames,
                  show_progress: Callable[[str], None] = lambda what: None) -> list[LinkDirection]:
    """Both directions of each veth pair, in the order of creation, and other devices with a qdisc.

    show_progress: called with a text whenever a direction is done.
    """
    names = node_names(capture.devices, spaces)
    packets = capture.packets

    own_bytes = numpy.maximum(packets.segments - 1, 0) * headers.header_bytes
    wire_bytes = packets.frame_bytes + own_bytes
    queue_bytes = wire_bytes - _VLAN_BYTES * headers.is_tagged * numpy.maximum(packets.segments, 1)
    is_own = own_packets(headers)

    order = numpy.argsort(packets.device, kind="stable")
    ends = numpy.searchsorted(packets.device[order], numpy.arange(len(capture.devices) + 1))

    # The kernel writes a packet down when it leaves a queue. A number without a packet means that
    # packets were still queued at the end.
    numbers = numpy.unique(packets.number[packets.number != 0])
    are_some_queued = bool(numbers.size and numbers[-1] > numbers.size)

    directions: list[LinkDirection] = []
    for device in capture.devices:
        state = device.state
        if state is None:
            continue
        other = None  # the other end of the pair
        if state.kind == "veth" and state.peer is not None:
            other = capture.devices[state.peer]
        peer = other.state if other is not None else None
        if peer is None and not any(setting.is_shaping for setting in device.settings):
            continue

        since_ns = next((before.time_ns for before in device.states if before.is_up),
                        state.time_ns)
        places = order[ends[device.number]:ends[device.number + 1]]
        link = LinkDirection(
            device.number, since_ns, sender=state.name, receiver=peer.name if peer else "",
            from_node=names[device.number],
            to_node=names[other.number] if peer and other is not None else "",
            packets=packets.at(places), places=places, wire_bytes=wire_bytes[places],
            queue_bytes=queue_bytes[places], is_own=is_own[places],
            wrong=list(dict.fromkeys(device.refused)))
        for number, reason, count in capture.dropped:
            if number == state.peer and reason in ON_ARRIVAL:
                link.dropped_on_arrival[reason] = count
        link.udp_drops = int((~link.packets.accepted & link.packets.is_dropped & (
            headers.protocol[places] == UDP)).sum())
        link.settings = _effective_settings(device.settings, link.packets)
        ends_of_link = [device, other] if peer and other is not None else [device]
        link.down_ns = [times for end in ends_of_link for times in _down_ns(end)]

        _observe(link)
        _judge(link, are_some_queued, capture)
        _note_down(link, ends_of_link)
        note_misplaced(link, device, capture)
        directions.append(link)
        show_progress(f"{len(directions)} directions of links")
    return directions


def own_packets(headers: Headers) -> Flags:
    """Which packets no program sent: a network has them by itself, and they test nothing."""
    is_own: Flags = ((headers.protocol == ICMPV6) & (headers.byte(headers.body) >= _LEAST_OWN)
                     | (headers.protocol == _IGMP) | (headers.kind < _LEAST_TYPE)
                     | numpy.isin(headers.kind, _OF_NETWORKS))
    return is_own


def _without_last_drops(came: LinkDirection) -> LinkDirection:
    """The link without drops after the last packet that left: queued packets may explain them."""
    packets = came.packets
    last_ns = packets.queued_ns[~packets.is_dropped].max(initial=0)
    return came.select(~packets.is_dropped | (packets.queued_ns <= last_ns))


def _down_ns(device: Device) -> list[tuple[int, int]]:
    """When a device was down after it had been up: from and to, ns."""
    first = next((place for place, state in enumerate(device.states) if state.is_up), 0)
    states = device.states[first:]
    ends = [*(state.time_ns for state in states[1:]), _NEVER]
    return [(state.time_ns, until) for state, until in zip(states, ends) if not state.is_up]


def _is_within(times: Numbers, intervals: Sequence[tuple[int, int]]) -> Flags:
    within: Flags = numpy.zeros(len(times), bool)
    for since, until in intervals:
        within |= (times >= since) & (times < until)
    return within


def _dropped_while_down(link: LinkDirection, intervals: Sequence[tuple[int, int]]) -> Flags:
    packets = link.packets
    return _is_within(packets.time_ns, intervals) & packets.is_dropped & ~packets.is_discarded


def _note_down(link: LinkDirection, ends: Sequence[Device]) -> None:
    """Note packets that were dropped because an end of the link was down: no queue dropped them.
    """
    for device in ends:
        count = int(_dropped_while_down(link, _down_ns(device)).sum())
        if count and device.state:
            link.remarks.append(f"{count} {'packet was' if count == 1 else 'packets were'} dropped"
                                f" while {device.state.name} was down")
            return


def _observe(link: LinkDirection) -> None:
    """Count what happened to the packets of a link."""
    packets, sent = link.packets, ~link.packets.is_dropped
    while_down = _dropped_while_down(link, link.down_ns)
    dropped = packets.is_dropped & ~while_down
    link.down_drops = int(while_down.sum())
    link.sent, link.sent_bytes = int(sent.sum()), int(link.wire_bytes[sent].sum())

    is_lossy = any(setting.loss_percent != 0 for setting in link.settings)
    at_random = packets.is_dropped_at_once & is_lossy & ~while_down
    link.queue_drops = int((dropped & ~packets.accepted).sum())
    link.random_drops, link.discarded = int(at_random.sum()), int(packets.is_discarded.sum())
    link.managed_drops = int((dropped & packets.accepted & ~at_random & ~packets.is_discarded
                              ).sum())

    waits = (packets.time_ns - packets.queued_ns)[sent & (packets.queued_ns >= link.set_since_ns)]
    if len(waits):
        link.least_ms, link.longest_ms = int(waits.min()) / 1e6, int(waits.max()) / 1e6
    link.highest_kbps = highest_kbps(packets.time_ns[sent], link.wire_bytes[sent])
    link.most_queued = max(queue_lengths(packets)[1], default=0)


def _effective_settings(settings: Sequence[DeviceSetting], packets: Packets
                        ) -> tuple[DeviceSetting, ...]:
    """The settings under which packets came, each with its last counters."""
    effective: list[DeviceSetting] = []
    begins = [setting.time_ns for setting in settings]
    under = numpy.maximum(numpy.searchsorted(begins, packets.queued_ns, "right") - 1, 0)
    counts = numpy.bincount(under, minlength=len(settings))
    for setting, count in zip(settings, counts):
        # A netem that was replaced by an equal one has other random numbers.
        if effective and effective[-1].is_same(setting) and (
                effective[-1].seeds == setting.seeds or not setting.loss_percent):
            effective[-1] = replace(_with_counters(effective[-1], setting),
                                    time_ns=effective[-1].time_ns, command=effective[-1].command)
        elif count or setting is settings[-1]:
            effective.append(setting)
    return tuple(effective)


def _with_counters(before: DeviceSetting, after: DeviceSetting) -> DeviceSetting:
    """The later of two equal settings, with the larger counters: those of a new qdisc begin at 0.
    """
    counts = {(queue.kind, queue.handle): queue for queue in before.queues}
    return replace(after, queues=tuple(_with_more(queue, counts.get((queue.kind, queue.handle)))
                                       for queue in after.queues))


def _with_more(queue: Qdisc, before: Qdisc | None) -> Qdisc:
    return queue if before is None or before.packets <= queue.packets else replace(
        queue, packets=before.packets, bytes=before.bytes)


# As set, and as observed ----------------------------------------------------------------

def _judge(link: LinkDirection, are_some_queued: bool, capture: Capture) -> None:
    """Compare a link's packets with its settings, and one by one if its queues are modelled.

    are_some_queued: whether packets were in some queue at the end of the capture.
    """
    packets = link.packets
    for place, setting in enumerate(link.settings):
        until = link.settings[place + 1].time_ns if place + 1 < len(link.settings) else math.inf
        since = setting.time_ns if place else 0
        is_under = (since <= packets.queued_ns) & (packets.time_ns < until)
        _compare_totals(link, setting, link.select(is_under), capture)

    since = link.set_since_ns
    if not _is_fresh(link.setting, link.select(packets.queued_ns <= since)):
        link.unjudged = "its settings changed meanwhile"
    elif link.setting.link is None:
        link.unjudged = link.setting.unmodelled
    elif not link.wrong and packets.size:
        came = link.select(packets.queued_ns > since)
        _compare_packets(link, link.setting.link,
                         _without_last_drops(came) if are_some_queued else came)


def _is_fresh(setting: DeviceSetting, before: LinkDirection) -> bool:
    """Whether a setting began with an empty queue and a full bucket.

    before: the packets that came until then, such as those that the kernel sends between two
    commands of tc.
    """
    if not before.packets.size:
        return True
    left_ns = int(before.packets.time_ns.max())
    spent_ns = int(before.queue_bytes.sum()) * 8e6 / setting.rate_kbps
    return left_ns + spent_ns < setting.time_ns


def _compare_totals(link: LinkDirection, setting: DeviceSetting, came: LinkDirection,
                    capture: Capture) -> None:
    """Note how the packets under a setting differ from it: unused qdiscs, delay, rate, losses."""
    packets, sent = came.packets, ~came.packets.is_dropped
    count = int(sent.sum())
    if count < 2:
        return

    wrong = link.wrong
    shaping = [queue for queue in setting.queues if queue.kind not in PLAIN]
    # A few of the kernel's own packets may pass it: priorities may send them another way than data.
    few = min(FEW * count, _MOST_OWN)
    unused = [queue for queue in shaping if queue.words != queue.kind
              and (queue.packets <= few or _is_beside(queue, setting, came))]
    is_shaped = any(queue.is_shaping and queue not in unused for queue in setting.queues)

    for queue in unused:
        words = (f"{queue.words}: only {queue.packets} of {count} packets passed it"
                 if queue.packets else
                 f"{queue.words}: never used, none of {count} packets passed it")
        if is_shaped and not queue.packets and setting.is_chosen_by_filters(queue):
            link.advice.append(f"{words}: {_why_unused(queue, link.sender, capture)}")
        elif is_shaped:
            link.remarks.append(words)
        else:
            wrong.append(words)
    if unused and not is_shaped:
        return

    least_ns = int((packets.time_ns - packets.queued_ns)[sent].min())
    is_reordered = any("reorder" in word for queue in setting.used for word in queue.also)
    if not (setting.jitter_ms or is_reordered) and least_ns < setting.delay_ms * 1e6 - 1000:
        wrong.append(f"a packet took {least_ns / 1e6:g} ms, and {setting.delay_ms:g} ms are set")

    rate_kbps, highest = setting.rate_kbps, highest_kbps(packets.time_ns[sent],
                                                         came.queue_bytes[sent])
    # What passed other classes than the main one may have come within the same second.
    room_kbps = (setting.burst_bytes + setting.other_bytes
                 + 2 * int(came.queue_bytes.max())) * 8e6 / WINDOW_NS
    if highest and not is_reordered and highest > rate_kbps * 1.001 + room_kbps:
        wrong.append(f"{format_rate(highest)} in a second, and {format_rate(rate_kbps)} are set")

    share = (setting.loss_percent or 0.0) / 100
    entered = packets.size  # random loss comes before the queue's limit, so it may hit all of them
    lost = int(packets.is_dropped_at_once.sum())
    spread = _LIKELY * math.sqrt(entered * share * (1 - share)) + _LIKELY if share else 0.0
    if share and abs(lost - entered * share) > spread:
        wrong.append(f"{100 * lost / entered:.2g} % lost at random, and"
                     f" {setting.loss_percent:g} % are set")


def _is_beside(queue: Qdisc, setting: DeviceSetting, came: LinkDirection) -> bool:
    """Whether only a network's own packets passed a delay: programs' packets took less, and most
    packets went another way."""
    if not queue.delay_ms or queue.packets > min(_MOST_OWN, setting.queues[0].packets / 2):
        return False
    packets, of_programs = came.packets, ~came.packets.is_dropped & ~came.is_own
    took = (packets.time_ns - packets.queued_ns)[of_programs]
    return bool(took.size and (took < queue.delay_ms * 1e6 - 1000).mean() >= 1 - FEW)


def _why_unused(queue: Qdisc, device: str, capture: Capture) -> str:
    """Why no packet came to a class that filters have to choose."""
    name = f"{queue.handle >> 16:x}:{queue.handle & 0xFFFF:x}"
    if any(state.master == "ovs-system" for each in capture.devices if each.name == device
           for state in each.states):
        return f"no flow of Open vSwitch sends packets to class {name} (set_queue)"
    leading = rf"\bfilter\b.*\bdev {re.escape(device)}\b.*\b(flowid|classid) {name}\b"
    if any(re.search(leading, command.words) for command in capture.commands):
        return f"the filter that leads to class {name} matched nothing"
    return f"no filter leads to class {name}"


def _compare_packets(link: LinkDirection, modelled: Link, came: LinkDirection) -> None:
    """Compare each packet with what the queues have to do with it (wire.delivery)."""
    # Packets that were discarded with their link have filled the queue until then.
    until = came.packets.queued_ns[came.packets.is_discarded].min(initial=1 << 62)
    came = came.select((came.packets.number != 0) & (came.packets.queued_ns < until)
                       & ~_dropped_while_down(came, link.down_ns))
    if came.packets.size > MOST_JUDGED:  # later packets have no effect on the first ones
        last = numpy.partition(came.packets.number, MOST_JUDGED - 1)[MOST_JUDGED - 1]
        came = came.select(came.packets.number <= last)

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
        if math.isinf(modelled.rate_kbps):
            modelled = replace(modelled, rate_kbps=_AT_ONCE)
        sent = _frames(came, order, packets.queued_ns)
        left = _frames(came, numpy.flatnonzero(~packets.is_dropped), packets.time_ns)
        delivery = delivery_of(sent, left, modelled, _LATE_NS)
        deviations = delivery.deviations
        link.worst_us = delivery.worst_ns / 1000

    if deviations:
        link.wrong.append(f"{len(deviations)} of {link.judged} packets differ from what its queue"
                          f" has to do ({examples(deviations)})")


def _frames(link: LinkDirection, places: Numbers, times: Numbers) -> list[Frame]:
    numbers = link.packets.number[places].astype(">u8").view("V8").tolist()
    return [*map(Frame, times[places].tolist(), numbers, link.queue_bytes[places].tolist(),
                 link.packets.frame[places].tolist())]
