"""Finds settings of a device that cannot do what their author most likely meant."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise

import numpy

from firstflight.net.path import NEVER
from firstflight.net.tc import FULL_FRAME_BYTES, TICK_NS
from firstflight.wire.capture.direction import LinkDirection, most_bytes
from firstflight.wire.capture.pcapng import Capture, Device, DeviceState
from firstflight.wire.capture.qdiscs import DeviceSetting, format_rate

FEW = 0.1  # of the packets: a setting that concerns a smaller share hardly matters
# The unit that tc assumes for a delay without one: µs in iproute2 6.1 and before, ns in 6.15.
ASSUMED_UNITS = {"µs": "microseconds", "ns": "nanoseconds"}
_BYTE_RATE = re.compile(r"\brate\s+([\d.]+)([kmg]?)bps\b", re.IGNORECASE)  # tc's bytes a second
# A delay, or its jitter, without a unit in a command of tc.
_BARE_DELAY = r"\bdelay\s+(\S+\s+)?[\d.]+(\s|$)"
_BARE_RATE = re.compile(r"\brate\s+(\d+)(\s|$)")
# Bits a second: a rate without a unit that is below this was most likely meant in kbit or Mbit.
_LEAST_BITS = 1_000_000
_SWITCHES = ("bridge", "openvswitch")  # kinds of the device that stands for a whole switch
_QUEUE_PACKETS = 1000  # default txqueuelen of a veth device
_PROPAGATING = 0.25  # share of netem's limit: if so many packets are on their way, a remark says so
_USUAL_BURST_BYTES = 15_000  # Mininet's
_SHORT_NS = 100_000_000  # the time in which a burst passes
_HIDING = 0.5  # share of the bytes sent: a burst from this share on hides the rate
_CLEARLY_MORE = 1.2  # times the bytes that the rate lets pass: what passed was a burst
# The least burst that is advised for full frames: 1540, as in the example of tc-tbf(8).
_LEAST_BURST_BYTES = FULL_FRAME_BYTES + 26
_MOST_COMMAND = 90  # characters

_BY_OVS = "(ovs-vswitchd "  # stands in a line on a command of Open vSwitch that the kernel refused


def note_misplaced(link: LinkDirection, device: Device, capture: Capture) -> None:
    """Add sentences on such settings to a link's wrong, advice and remarks."""
    state = device.state
    if state is None:
        return

    _note_device(link, device, state, capture)
    _note_replaced(link, device.settings)
    _note_short_delays(link, device.settings)
    _note_byte_rates(link, device.settings)
    _note_limits(link, state)
    _note_full_delay(link)
    _note_bursts(link)
    _note_order(link)

    peer = capture.devices[state.peer].state if state.peer is not None else None
    if link.receiver and peer and state.mtu > peer.mtu:
        link.wrong.append(f"MTU {state.mtu}, and {peer.mtu} at {peer.name}: larger packets are"
                          " dropped there")


def in_brackets(command: str) -> str:
    """A space and a command in brackets, cut if it is long; "" for no command."""
    shown = command if len(command) <= _MOST_COMMAND else f"{command[:_MOST_COMMAND]}…"
    return f" ({shown})" if command else ""


def _note_device(link: LinkDirection, device: Device, state: DeviceState, capture: Capture
                 ) -> None:
    """Note settings on the device that stands for a switch, or on a device that no packet uses."""
    shaped = [setting for setting in device.settings if setting.is_shaping]
    has_ports = any(other.name.startswith(f"{state.name}-eth") for other in capture.devices)
    if shaped and (state.kind in _SWITCHES or has_ports and not link.receiver):
        link.wrong.append(f"{shaped[-1].words}: set on the switch's own device, and what it"
                          " forwards passes only the queues of its ports: set it there")
    elif shaped and not link.receiver and not link.is_used:
        link.wrong.append(f"{shaped[-1].words}: never used, no packet came to {link.sender}")


# Settings that were replaced ------------------------------------------------------------

def _note_replaced(link: LinkDirection, settings: Sequence[DeviceSetting]) -> None:
    """Note a limit that was replaced or removed, so that packets passed without it.

    Open vSwitch and Mininet remove queues and set them again before any packet comes.
    """
    queued_ns = link.packets.queued_ns[~link.is_housekeeping]
    for place, (before, after) in enumerate(pairwise(settings), start=1):
        removed = _keys(before) - _keys(after)
        if not removed:
            continue

        # The settings from `after` on lack what was removed, until one has all of it again.
        end = place
        while end < len(settings) and not removed <= _keys(settings[end]):
            end += 1
        until_ns = settings[end].time_ns if end < len(settings) else NEVER
        came_without = int(((queued_ns >= after.time_ns) & (queued_ns < until_ns)).sum())
        instead = _most_used(settings[place:end], link)
        if not came_without or not _limited(before) - _limited(instead):
            continue

        since_ns = _since_ns(settings[:place])
        came_under = int(((queued_ns >= since_ns) & (queued_ns < after.time_ns)).sum())
        how = f"replaced by {instead.words}" if instead.is_shaping else "removed"
        words = (f"{before.words}: {how} {(after.time_ns - since_ns) / 1e9:.3g} s after it was set"
                 f"{in_brackets(after.command)}; {came_under} packets came under it,"
                 f" {came_without} later")
        if came_under <= FEW * came_without:
            # Since the queue is gone, Open vSwitch's next commands fail. They need no line.
            link.wrong[:] = [line for line in link.wrong if _BY_OVS not in line]
            link.wrong.append(words)
        else:
            link.remarks.append(words)
        return


def _keys(setting: DeviceSetting) -> set[tuple[str, int]]:
    """Kind and handle of each qdisc or class that shapes."""
    return {(queue.kind, queue.handle) for queue in setting.queues if queue.is_shaping}


def _removes_qdisc(before: DeviceSetting, after: DeviceSetting) -> bool:
    """Whether a qdisc or class that limited packets before is missing after."""
    return bool(_keys(before) - _keys(after))


def _limited(setting: DeviceSetting) -> set[str]:
    """Which of "rate", "delay" and "loss" a setting has."""
    found = (("rate", not math.isinf(setting.rate_kbps)), ("delay", bool(setting.delay_ms)),
             ("loss", setting.loss_percent != 0))
    return {name for name, is_set in found if is_set}


def _most_used(settings: Sequence[DeviceSetting], link: LinkDirection) -> DeviceSetting:
    """The setting under which most packets came."""
    begins = [setting.time_ns for setting in settings]
    places = numpy.searchsorted(numpy.sort(link.packets.queued_ns), begins)
    return settings[int(numpy.diff(places, append=link.packets.size).argmax())]


def _since_ns(settings: Sequence[DeviceSetting]) -> int:
    """Since when the last setting's limits, or some of them, have been there.

    Going back from it, a setting counts if it has limits and the one after it kept all of them.
    """
    since_ns = settings[-1].time_ns
    for after, before in pairwise(reversed(settings)):  # from the last setting back
        if not _keys(before) or _removes_qdisc(before, after):
            break
        since_ns = before.time_ns
    return since_ns


# Settings that are probably not meant ---------------------------------------------------

def _note_short_delays(link: LinkDirection, settings: Sequence[DeviceSetting]) -> None:
    """Note delays that are a whole number of µs or ns, if a command set one without a unit.

    tc takes such a delay for µs or ns, by its version.
    """
    if not any(re.search(_BARE_DELAY, setting.command) for setting in settings):
        return
    delays_ms = {ms for setting in settings for queue in setting.queues
                 for ms in (queue.delay_ms, queue.jitter_ms)}

    short_delays = []
    for delay_ns in {ms * 1e6 for ms in delays_ms if 0 < ms < 1}:
        # The kernel rounds a delay to its ticks.
        if delay_ns < 1000 - TICK_NS:
            short_delays.append((round(delay_ns), "ns"))
        elif abs(delay_ns - 1000 * round(delay_ns / 1000)) <= TICK_NS:
            short_delays.append((round(delay_ns / 1000), "µs"))
    link.short_delays = sorted(short_delays)


def _note_byte_rates(link: LinkDirection, settings: Sequence[DeviceSetting]) -> None:
    """Note rates with tc's unit bps, or without a unit.

    For tc bps are bytes a second, and people write it for bits. Without a unit they are bits.
    """
    for setting in settings:
        bare = _BARE_RATE.search(setting.command)
        if bare and int(bare[1]) < _LEAST_BITS:
            link.advice.append(f"{bare[0].strip()}: without a unit tc takes bits a second, and set"
                               f" {format_rate(int(bare[1]) / 1000)}; write {bare[1]}mbit or"
                               f" {bare[1]}kbit")
            return
        if match := _BYTE_RATE.search(setting.command):
            number, unit = match[1], match[2].lower()
            kbps = setting.rate_kbps
            if re.fullmatch(r"\d+\.?\d*", number):  # and not 1.2.3, which matches as well
                kbps = 8 * float(number) * {"": 0.001, "k": 1, "m": 1e3, "g": 1e6}[unit]
            link.advice.append(f"{match[0]}: bps are bytes a second for tc, which set"
                               f" {format_rate(kbps)}; did you mean {number}{unit}bit?")
            return


def _note_limits(link: LinkDirection, state: DeviceState) -> None:
    """Note limits of queues that never fill."""
    setting = link.setting
    limits = [q.limit_packets for q in setting.queues if q.kind == "netem" and q.limit_packets]
    for queue in setting.queues:
        if limits and setting.is_below_netem(queue) and queue.limit_packets and (
                queue.limit_packets < limits[0]):
            link.wrong.append(f"{queue.words}: it never fills, since netem hands it one packet at a"
                              f" time; netem's own limit of {limits[0]} packets decides")

    if state.kind == "veth" and state.queue_packets not in (None, _QUEUE_PACKETS):
        root = setting.queues[0].kind if setting.queues else "noqueue"
        if setting.queue_words and setting.queue_words != f"{state.queue_packets} packets":
            link.wrong.append(f"txqueuelen {state.queue_packets}: it limits nothing; the queue of"
                              f" {root} holds {setting.queue_words}")
        elif root == "noqueue":
            link.wrong.append(f"txqueuelen {state.queue_packets}: it limits nothing; {link.sender}"
                              " has no queue (noqueue)")


def _note_full_delay(link: LinkDirection) -> None:
    """Note a limit of netem that is too short for its delay and rate.

    The limit counts packets that propagate as well as those that wait.
    """
    setting = link.setting
    for netem in setting.used:
        if netem.kind != "netem" or not netem.limit_packets or not netem.delay_ms or (
                not link.queue_drops):
            continue

        # Full packets a second: how many the limit lets pass, and how many the rate.
        limit, delay = netem.limit_packets, f"{netem.delay_ms:g} ms"
        carried = limit / netem.delay_ms * 1000
        wanted = setting.rate_kbps * 1000 / 8 / FULL_FRAME_BYTES
        words = f"{limit} packets at {delay} are {carried:.0f} packets a second"
        full = format_rate(carried * FULL_FRAME_BYTES * 8 / 1000)

        if math.isinf(wanted):
            link.wrong.append(f"its delay and its limit carry no more: {words} ({full} of full"
                              f" packets); {link.queue_drops} were dropped: raise netem's limit"
                              " (max_queue_size)")
        elif carried < wanted:
            link.wrong.append(f"this link cannot carry its rate: {words}, {full} of full packets,"
                              f" and {format_rate(setting.rate_kbps)} are set; {link.queue_drops}"
                              " were dropped: raise netem's limit (max_queue_size)")
        elif wanted >= _PROPAGATING * carried:  # on their way at the set rate, as part of the limit
            link.remarks.append(f"of the {limit} packets that its queue holds,"
                                f" {wanted * netem.delay_ms / 1000:.0f} are on their way during the"
                                f" {delay} of delay: netem counts both, and a router's queue is"
                                " what is left")


def _note_bursts(link: LinkDirection) -> None:
    """Note bursts that are smaller than a packet, or so large that they hide the rate."""
    setting, dropped = link.setting, link.packets.is_dropped
    for queue in setting.used:
        if queue.kind != "tbf" or not queue.burst_bytes:
            continue
        is_larger = (link.queue_bytes > queue.burst_bytes) & (link.packets.segments <= 1)
        if is_larger.any() and dropped[is_larger].all():
            link.wrong.append(f"{queue.words}: its burst of {queue.burst_bytes} bytes is below one"
                              f" packet, and all {int(is_larger.sum())} larger ones were dropped;"
                              f" write burst {_LEAST_BURST_BYTES} or more")
            return

    burst = max((queue.burst_bytes for queue in setting.used
                 if not math.isinf(queue.rate_kbps)), default=0)
    sent = int(link.queue_bytes[~dropped].sum())
    if burst <= _USUAL_BURST_BYTES or sent <= _USUAL_BURST_BYTES or burst < _HIDING * sent:
        return
    most = most_bytes(link.packets.time_ns[~dropped], link.queue_bytes[~dropped], _SHORT_NS)
    rate_bytes = setting.rate_kbps * 1000 / 8 * _SHORT_NS / 1e9  # that the rate lets pass meanwhile
    if most > _CLEARLY_MORE * rate_bytes:
        link.wrong.append(f"{setting.words}: {burst} bytes pass at once (burst), and {sent} were"
                          " sent in all, so the rate hardly shows: write a burst of"
                          f" {_USUAL_BURST_BYTES // 1000}k")


def _note_order(link: LinkDirection) -> None:
    """Note packets that jitter lets overtake others although no reordering was set."""
    setting = link.setting
    if setting.is_reordering or not setting.jitter_ms:
        return
    numbers = link.packets.number[~link.packets.is_dropped]  # in the order in which they left
    numbers = numbers[numbers > 0]
    late = int((numbers < numpy.maximum.accumulate(numbers)).sum())
    if late:
        link.advice.append(f"{late} of {len(numbers)} packets left out of order, since a delay of"
                           f" {setting.delay_ms:g} ± {setting.jitter_ms:g} ms lets later ones"
                           " overtake, and TCP takes that for losses: with a rate in the same"
                           " netem they keep their order")
