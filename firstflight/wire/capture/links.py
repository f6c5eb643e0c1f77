"""Compares what each link of a command's network did with its settings."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy

from firstflight.net.headers import ICMPV6, UDP
from firstflight.net.link import Link
from firstflight.net.path import NEVER
from firstflight.wire.capture.direction import WINDOW_NS, LinkDirection, highest_kbps, queue_lengths
from firstflight.wire.capture.fields import Headers
from firstflight.wire.capture.misplaced import FEW, note_misplaced
from firstflight.wire.capture.pcapng import Capture, Device, Flags, Numbers, Packets
from firstflight.wire.capture.qdiscs import PLAIN, DeviceSetting, Qdisc, format_rate
from firstflight.wire.capture.spaces import NamespaceNames, name_nodes
from firstflight.wire.delivery.packet_path import Deviation, Frame, delivery_of, examples

# A packet may leave this much later than its queue alone requires. With many queues and programs
# the timers of a guest wait for each other, and a failing system call takes a microsecond.
_LATE_NS = 50_000
# The kernel's reasons for dropping a packet that a device has just received.
ON_ARRIVAL = ("TC_INGRESS", "NETFILTER_DROP", "IP_RPFILTER", "IP_INNOROUTES", "OVS_DROP_METER",
              "OVS_DROP_LAST_ACTION", "OVS_DROP_EXPLICIT")
_AT_ONCE = 1e12  # kbit/s: at this rate sending takes no time
MOST_JUDGED = 200_000  # packets: only the first ones of a direction are compared one by one
_LIKELY = 4.0  # standard deviations: chance explains losses that deviate less from their share
_VLAN_BYTES = 4  # of a tag that a device adds as it sends: no queue counts it
_IGMP = 2  # the protocol of IP
# ICMPv6's types from here on are of multicast listeners and neighbours (RFC 2710, 4861).
_LEAST_HOUSEKEEPING_TYPE = 130
_LEAST_TYPE = 0x600  # a smaller number is the length of a frame of 802.3, as of the spanning tree
# EtherTypes of ARP, of LLDP, and of the frames with which controllers of OpenFlow find links.
_HOUSEKEEPING_ETHERTYPES = (0x0806, 0x88CC, 0x8942)

_MOST_HOUSEKEEPING = 12  # packets that a kernel sends without a program on a new device


def observe_links(capture: Capture, headers: Headers, spaces: NamespaceNames,
                  show_progress: Callable[[str], None] = lambda what: None) -> list[LinkDirection]:
    """Both directions of each veth pair, in the order of creation, and other devices with a qdisc.

    show_progress: called with a text whenever a direction is done.
    """
    names = name_nodes(capture.devices, spaces)
    packets = capture.packets

    # On a wire each segment of an offloaded packet after the first has headers as well.
    added_bytes = numpy.maximum(packets.segments - 1, 0) * headers.header_bytes
    wire_bytes = packets.frame_bytes + added_bytes
    queue_bytes = wire_bytes - _VLAN_BYTES * headers.is_tagged * numpy.maximum(packets.segments, 1)
    is_housekeeping = find_housekeeping(headers)

    # Packets sorted by device: those of device n are order[begins[n]:begins[n + 1]].
    order = numpy.argsort(packets.device, kind="stable")
    begins = numpy.searchsorted(packets.device[order], numpy.arange(len(capture.devices) + 1))

    # Packets get their numbers as they come to a queue, and the kernel records them when they
    # leave it. A number without a packet means that packets were still queued at the end.
    numbers = numpy.unique(packets.number[packets.number != 0])
    are_some_queued = bool(numbers.size and numbers[-1] > numbers.size)

    directions: list[LinkDirection] = []
    for device in capture.devices:
        state = device.state
        if state is None:
            continue
        ends = [device]  # of the link
        receiver, to_node = "", ""
        if state.kind == "veth" and state.peer is not None:
            peer = capture.devices[state.peer]
            if peer.state is not None:
                ends, receiver, to_node = [device, peer], peer.state.name, names[peer.number]
        if len(ends) == 1 and not any(setting.is_shaping for setting in device.settings):
            continue

        up_ns = [earlier.time_ns for earlier in device.states if earlier.is_up]
        places = order[begins[device.number]:begins[device.number + 1]]
        link = LinkDirection(
            device.number, since_ns=up_ns[0] if up_ns else state.time_ns,
            sender=state.name, receiver=receiver, from_node=names[device.number], to_node=to_node,
            packets=packets.at(places), places=places, wire_bytes=wire_bytes[places],
            queue_bytes=queue_bytes[places], is_housekeeping=is_housekeeping[places],
            wrong=list(dict.fromkeys(device.refused)))

        for number, reason, count in capture.dropped:
            if number == state.peer and reason in ON_ARRIVAL:
                link.dropped_on_arrival[reason] = count
        is_refused = ~link.packets.accepted & link.packets.is_dropped
        link.udp_drops = int((is_refused & (headers.protocol[places] == UDP)).sum())
        link.settings = _effective_settings(device.settings, link.packets)
        link.down_ns = [times for end in ends for times in _down_ns(end)]

        _observe(link)
        _judge(link, are_some_queued, capture)
        _note_down(link, ends)
        note_misplaced(link, device, capture)
        directions.append(link)
        show_progress(f"{len(directions)} directions of links")
    return directions


def find_housekeeping(headers: Headers) -> Flags:
    """Finds the packets that no program sent.

    Hosts and switches send them to run the network, as ARP. They do not show whether a setting is
    right.
    """
    is_of_neighbours = (headers.protocol == ICMPV6) & (
        headers.byte(headers.body) >= _LEAST_HOUSEKEEPING_TYPE)
    is_housekeeping: Flags = (is_of_neighbours | (headers.protocol == _IGMP)
                              | (headers.kind < _LEAST_TYPE)
                              | numpy.isin(headers.kind, _HOUSEKEEPING_ETHERTYPES))
    return is_housekeeping


def _without_last_drops(link: LinkDirection) -> LinkDirection:
    """The link without the drops of packets that came after every packet that left.

    Packets that were still queued when the capture ended may have filled the queue.
    """
    packets = link.packets
    last_ns = packets.queued_ns[~packets.is_dropped].max(initial=0)
    return link.select(~packets.is_dropped | (packets.queued_ns <= last_ns))


def _down_ns(device: Device) -> list[tuple[int, int]]:
    """When a device was down after it had been up: from and to, ns."""
    first_up = next((place for place, state in enumerate(device.states) if state.is_up), 0)
    states = device.states[first_up:]
    ends_ns = [*(state.time_ns for state in states[1:]), NEVER]
    return [(state.time_ns, end_ns) for state, end_ns in zip(states, ends_ns) if not state.is_up]


def _is_within(times: Numbers, intervals: Sequence[tuple[int, int]]) -> Flags:
    """Whether each time is in any of the intervals, which do not include their ends."""
    within: Flags = numpy.zeros(len(times), bool)
    for since, until in intervals:
        within |= (times >= since) & (times < until)
    return within


def _dropped_while_down(link: LinkDirection, intervals: Sequence[tuple[int, int]]) -> Flags:
    """Which packets were dropped within intervals in which an end of the link was down.

    Packets that were discarded when the link was taken down do not count.
    """
    packets = link.packets
    return _is_within(packets.time_ns, intervals) & packets.is_dropped & ~packets.is_discarded


def _note_down(link: LinkDirection, ends: Sequence[Device]) -> None:
    """Note packets that no queue dropped, but an end of the link that was down."""
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
    managed = dropped & packets.accepted & ~at_random & ~packets.is_discarded
    link.queue_drops = int((dropped & ~packets.accepted).sum())
    link.random_drops = int(at_random.sum())
    link.discarded = int(packets.is_discarded.sum())
    link.managed_drops = int(managed.sum())

    took_ns = packets.time_ns - packets.queued_ns
    took_ns = took_ns[sent & (packets.queued_ns >= link.set_since_ns)]
    if len(took_ns):
        link.least_ms, link.longest_ms = int(took_ns.min()) / 1e6, int(took_ns.max()) / 1e6
    link.highest_kbps = highest_kbps(packets.time_ns[sent], link.wire_bytes[sent])
    link.most_queued = max(queue_lengths(packets)[1], default=0)


def _effective_settings(settings: Sequence[DeviceSetting], packets: Packets
                        ) -> tuple[DeviceSetting, ...]:
    """The settings under which packets came, each with its last counters; always the last setting.

    Settings that follow each other and are equal count as one.
    """
    effective: list[DeviceSetting] = []
    begins_ns = [setting.time_ns for setting in settings]
    # For each packet, the place of the setting under which it came.
    under = numpy.maximum(numpy.searchsorted(begins_ns, packets.queued_ns, "right") - 1, 0)
    counts = numpy.bincount(under, minlength=len(settings))

    for setting, count in zip(settings, counts):
        last = effective[-1] if effective else None
        # A netem that was replaced by an equal one has other random numbers.
        if last is not None and last.is_same(setting) and (
                last.seeds == setting.seeds or not setting.loss_percent):
            effective[-1] = replace(_with_larger_counters(setting, last),
                                    time_ns=last.time_ns, command=last.command)
        elif count or setting is settings[-1]:
            effective.append(setting)
    return tuple(effective)


def _with_larger_counters(setting: DeviceSetting, earlier: DeviceSetting) -> DeviceSetting:
    """A setting whose qdiscs have the counters of an earlier, equal setting where these are larger.

    The counters of a qdisc that was set again begin at 0.
    """
    earlier_queues = {(queue.kind, queue.handle): queue for queue in earlier.queues}
    queues = []
    for queue in setting.queues:
        before = earlier_queues.get((queue.kind, queue.handle))
        if before is not None and before.packets > queue.packets:
            queue = replace(queue, packets=before.packets, bytes=before.bytes)
        queues.append(queue)
    return replace(setting, queues=tuple(queues))


# As set, and as observed ----------------------------------------------------------------

def _judge(link: LinkDirection, are_some_queued: bool, capture: Capture) -> None:
    """Compare a link's packets with its settings, and one by one if its queues are modelled.

    are_some_queued: whether packets were in some queue at the end of the capture.
    """
    packets = link.packets
    ends_ns = [*(setting.time_ns for setting in link.settings[1:]), math.inf]
    for place, (setting, end_ns) in enumerate(zip(link.settings, ends_ns)):
        begin_ns = setting.time_ns if place else 0  # packets from before it came under it, too
        is_under = (begin_ns <= packets.queued_ns) & (packets.time_ns < end_ns)
        _compare_totals(link, setting, link.select(is_under), capture)

    since_ns = link.set_since_ns
    if not _is_fresh(link.setting, link.select(packets.queued_ns <= since_ns)):
        link.unjudged = "its settings changed meanwhile"
    elif link.setting.link is None:
        link.unjudged = link.setting.unmodelled
    elif not link.wrong and packets.size:
        came = link.select(packets.queued_ns > since_ns)
        if are_some_queued:
            came = _without_last_drops(came)
        _compare_packets(link, link.setting.link, came)


def _is_fresh(setting: DeviceSetting, before: LinkDirection) -> bool:
    """Whether a setting began with an empty queue and a full bucket.

    before: the link with the packets that came until then, such as those that the kernel sends
    between two commands of tc.
    """
    if not before.packets.size:
        return True
    last_left_ns = int(before.packets.time_ns.max())
    refill_ns = int(before.queue_bytes.sum()) * 8e6 / setting.rate_kbps  # of the bucket
    return last_left_ns + refill_ns < setting.time_ns


def _compare_totals(link: LinkDirection, setting: DeviceSetting, came: LinkDirection,
                    capture: Capture) -> None:
    """Note how packets differ from their setting: unused qdiscs, delay, rate, losses.

    link: takes the notes. came: the link with the packets under this setting only.
    """
    packets, sent = came.packets, ~came.packets.is_dropped
    count = int(sent.sum())
    if count < 2:
        return

    wrong = link.wrong
    shaping = [queue for queue in setting.queues if queue.kind not in PLAIN]
    # A qdisc that only a few packets passed is unused: priorities may send the kernel's own packets
    # another way than data.
    few = min(FEW * count, _MOST_HOUSEKEEPING)
    unused = [queue for queue in shaping if queue.words != queue.kind
              and (queue.packets <= few or _is_bypassed(queue, setting, came))]
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

    # Settings that packets contradict.
    least_ns = int((packets.time_ns - packets.queued_ns)[sent].min())
    may_be_early = setting.jitter_ms or setting.is_reordering
    if not may_be_early and least_ns < setting.delay_ms * 1e6 - 1000:
        wrong.append(f"a packet took {least_ns / 1e6:g} ms, and {setting.delay_ms:g} ms are set")

    rate_kbps = setting.rate_kbps
    highest = highest_kbps(packets.time_ns[sent], came.queue_bytes[sent])
    # Within a second more bytes may leave than the rate has: a burst, one packet at each end of
    # the second, and the packets that passed other classes than the main one.
    extra_bytes = setting.burst_bytes + setting.other_bytes + 2 * int(came.queue_bytes.max())
    extra_kbps = extra_bytes * 8e6 / WINDOW_NS
    if highest and not setting.is_reordering and highest > rate_kbps * 1.001 + extra_kbps:
        wrong.append(f"{format_rate(highest)} in a second, and {format_rate(rate_kbps)} are set")

    share = (setting.loss_percent or 0.0) / 100
    if share:
        entered = packets.size  # random loss comes before the queue's limit: it may hit any packet
        lost = int(packets.is_dropped_at_once.sum())
        deviation = math.sqrt(entered * share * (1 - share))  # the standard deviation of `lost`
        # The second term, in packets, is for small numbers of losses.
        if abs(lost - entered * share) > _LIKELY * deviation + _LIKELY:
            wrong.append(f"{100 * lost / entered:.2g} % lost at random, and"
                         f" {setting.loss_percent:g} % are set")


def _is_bypassed(queue: Qdisc, setting: DeviceSetting, came: LinkDirection) -> bool:
    """Whether programs' packets went past a qdisc with a delay.

    Then few packets and at most half passed the qdisc, and nearly all packets of programs took less
    time than its delay.
    """
    if not queue.delay_ms or queue.packets > min(_MOST_HOUSEKEEPING, setting.queues[0].packets / 2):
        return False
    packets, of_programs = came.packets, ~came.packets.is_dropped & ~came.is_housekeeping
    took_ns = (packets.time_ns - packets.queued_ns)[of_programs]
    return bool(took_ns.size and (took_ns < queue.delay_ms * 1e6 - 1000).mean() >= 1 - FEW)


def _why_unused(queue: Qdisc, device: str, capture: Capture) -> str:
    """Why no packet came to a class that filters have to choose. device: its name."""
    name = f"{queue.handle >> 16:x}:{queue.handle & 0xFFFF:x}"  # as tc writes it: 1:10
    states = [state for other in capture.devices if other.name == device for state in other.states]
    if any(state.master == "ovs-system" for state in states):
        return f"no flow of Open vSwitch sends packets to class {name} (set_queue)"
    leading_to_it = rf"\bfilter\b.*\bdev {re.escape(device)}\b.*\b(flowid|classid) {name}\b"
    if any(re.search(leading_to_it, command.words) for command in capture.commands):
        return f"the filter that leads to class {name} matched nothing"
    return f"no filter leads to class {name}"


def _compare_packets(link: LinkDirection, modelled: Link, came: LinkDirection) -> None:
    """Compare each packet with what the queues have to do with it (wire.delivery).

    link: takes the result. modelled: the queues. came: the link with the packets to compare only.
    """
    # Only packets that came before the first one that was discarded with the link are compared:
    # from then on the queue held packets that never left.
    end_ns = came.packets.queued_ns[came.packets.is_discarded].min(initial=NEVER)
    came = came.select((came.packets.number != 0) & (came.packets.queued_ns < end_ns)
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
        deviating = packets.frame[(packets.time_ns != packets.queued_ns) | packets.is_dropped]
        deviations = [Deviation(int(frame), "waited or was dropped") for frame in deviating]
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
    """The packets at these places as frames that left or came at their `times`, in ns.

    A packet's number, as 8 bytes, stands for its content.
    """
    numbers = link.packets.number[places].astype(">u8").view("V8").tolist()
    return [*map(Frame, times[places].tolist(), numbers, link.queue_bytes[places].tolist(),
                 link.packets.frame[places].tolist())]
