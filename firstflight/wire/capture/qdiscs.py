"""The settings of a device's queue: its qdiscs and classes, from the kernel's reports.

The reports are netlink's messages RTM_NEWQDISC and RTM_NEWTCLASS. The structures in them are from
include/uapi/linux/pkt_sched.h.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from firstflight.net import netem, netlink, qdiscs
from firstflight.net.link import Link
from firstflight.net.tc import HTB_CEILING_BURST_BYTES, MOST_U32, TICK_NS

_ROOT = qdiscs.ROOT
# Numbers of attributes that only commands set, and no trial (TCA_HFSC_USC and so on).
_HFSC_USC = 3
_CODEL_LIMIT = 2  # fq_codel's has the same number
_CAKE_RATE64 = 2
_FQ_MOST_RATE = 7
_RED_PARMS = 1
_RED_ECN = 1  # a bit of RED's flags (TC_RED_ECN)
_UNLIMITED = 1 << 31  # packets, or bytes: a limit that no queue reaches
# Qdiscs that release packets at once, unless something shapes above or below them.
PLAIN = ("noqueue", "pfifo", "bfifo", "pfifo_fast", "mq", "fq_codel", "fq", "sfq", "red", "codel",
         "prio", "pie")
_PACING = "fq"  # delays packets that a program or TCP (BBR) paces
_MAIN_SHARE = 0.9  # of the bytes: a class with this share or more carried the flow
# Qdiscs whose classes the kernel does not list: packets may pass below them by an unlisted class.
_HIDING = ("prio", "mq", "drr", "ets", "multiq", "qfq")


@dataclass(frozen=True)
class Qdisc:
    """One qdisc or class. A handle is one number: tc's 1:1 is 0x10001."""

    kind: str
    is_class: bool
    handle: int
    parent: int  # a handle
    bytes: int = 0  # that left, by the kernel's counters
    packets: int = 0  # that left, by the kernel's counters
    drops: int = 0  # dropped packets, by the kernel's counters
    # Handle of the qdisc or class that hands it packets; 0 for HFSC's root class.
    above: int = _ROOT
    rate_kbps: float = math.inf  # inf for no limit
    burst_bytes: int = 0
    ceiling_burst_bytes: int = 0  # of an HTB class
    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    loss_percent: float | None = 0.0  # None for losses in bursts, which no single number describes
    limit_packets: int | None = None  # None for no limit
    limit_bytes: int | None = None  # None for no limit
    seed: int = 0
    default_class: int = 0  # handle of the class for packets that no filter matches; 0 for none
    other_settings: tuple[str, ...] = ()  # in tc's words

    @property
    def is_shaping(self) -> bool:
        """Whether it delays, loses or changes packets."""
        if self.kind in ("netem", "red") and self.other_settings:
            return True
        return bool(not math.isinf(self.rate_kbps) or self.delay_ms or self.jitter_ms
                    or self.loss_percent != 0)

    @property
    def words(self) -> str:
        """The settings, much as tc prints them."""
        words = [self.kind]

        if not math.isinf(self.rate_kbps):
            words.append(format_rate(self.rate_kbps))
        if self.jitter_ms:
            words.append(f"delay {self.delay_ms:g} ± {self.jitter_ms:g} ms")
        elif self.delay_ms >= 1:
            words.append(f"delay {self.delay_ms:g} ms")
        elif self.delay_ms:
            words.append(f"delay {self.delay_ms * 1000:.3g} µs")
        if self.loss_percent:
            words.append(f"loss {self.loss_percent:g} %")
        words += self.other_settings

        if self.limit_packets is not None:
            words.append(f"limit {self.limit_packets} packets")
        elif self.limit_bytes is not None:
            words.append(f"limit {self.limit_bytes} bytes")
        return " ".join(words)


def format_rate(kbps: float) -> str:
    """A rate in kbit/s, Mbit/s or Gbit/s."""
    for unit, least in (("Gbit/s", 1e6), ("Mbit/s", 1e3)):
        if kbps >= least:
            return f"{kbps / least:.4g} {unit}"
    return f"{kbps:.4g} kbit/s"


@dataclass(frozen=True)
class DeviceSetting:
    """All qdiscs and classes of a device, from one change of them to the next."""

    time_ns: int  # when they were set
    queues: tuple[Qdisc, ...] = ()  # from the root down
    # The same settings for wire.delivery; None if it does not model them.
    link: Link | None = field(default=None, compare=False)
    unmodelled: str = ""  # why wire.delivery does not model them, or ""
    command: str = field(default="", compare=False)  # that made this setting, "" if not known

    @property
    def words(self) -> str:
        """All settings that limit packets, from the root down."""
        shown = []
        for queue in self.queues:
            # A plain qdisc's usual limit of 1000 packets is not worth a word.
            is_plain = (queue.kind in PLAIN and not queue.other_settings
                        and queue.limit_packets in (None, 1000))
            if queue.words != queue.kind and not is_plain:
                shown.append(queue.words)
        return " → ".join(shown) or "no limit set"

    def _used_children(self, above: Qdisc | None) -> list[Qdisc]:
        """The children of a qdisc or class that packets passed, or all if none passed any.

        above: None for the root qdisc.
        """
        children = self._children(above)
        return [queue for queue in children if queue.packets] or children

    def _children(self, above: Qdisc | None) -> list[Qdisc]:
        parent = above.handle if above else _ROOT
        return [queue for queue in self.queues if queue.above == parent]

    def _main_children(self, above: Qdisc | None) -> list[Qdisc]:
        """The one used child that carried nearly all bytes; all used children if none did."""
        children = self._used_children(above)
        carried = sum(queue.bytes for queue in children)
        main = [queue for queue in children if carried and queue.bytes >= _MAIN_SHARE * carried]
        return main or children

    def is_chosen_by_filters(self, queue: Qdisc) -> bool:
        """Whether only a filter can send packets to it: a class without classes below, and not the
        default one."""
        if not queue.is_class or any(child.is_class for child in self._children(queue)):
            return False
        return not any(other.default_class == queue.handle for other in self.queues)

    def _rate_kbps(self, above: Qdisc | None) -> float:
        """The rate of a qdisc or class, limited by the ones below it; for None, of the device."""
        rate_kbps = above.rate_kbps if above else math.inf
        if self._has_unlisted_child(above):
            return rate_kbps
        rates_kbps = [self._rate_kbps(child) for child in self._main_children(above)]
        return min(rate_kbps, sum(rates_kbps)) if rates_kbps else rate_kbps

    def _has_unlisted_child(self, above: Qdisc | None) -> bool:
        """Whether packets pass below it by a class that is not listed."""
        if above is None or above.kind not in _HIDING:
            return False
        return above.packets > sum(queue.packets for queue in self._used_children(above))

    def _delay_ms(self, above: Qdisc | None) -> float:
        """The least delay on a way through a qdisc or class; for None, through the device."""
        delay_ms = above.delay_ms if above else 0.0
        if self._has_unlisted_child(above):
            return delay_ms
        return delay_ms + min(map(self._delay_ms, self._used_children(above)), default=0.0)

    def _used(self, above: Qdisc | None = None) -> Iterator[Qdisc]:
        for queue in self._used_children(above):
            yield queue
            yield from self._used(queue)

    @cached_property
    def used(self) -> tuple[Qdisc, ...]:
        """The qdiscs that packets passed; all of them if no packet passed any."""
        return tuple(self._used())

    @cached_property
    def rate_kbps(self) -> float:
        """The rate of the qdiscs and classes that carried the packets; inf without a limit."""
        return self._rate_kbps(None)

    @cached_property
    def other_bytes(self) -> int:
        """Bytes that passed classes other than the main ones."""
        other_bytes = 0
        for above in (None, *self.queues):
            main = self._main_children(above)
            other_bytes += sum(queue.bytes for queue in self._used_children(above)
                               if queue not in main)
        return other_bytes

    @property
    def burst_bytes(self) -> int:
        """Bytes that may leave at once, above the rate."""
        return sum(queue.burst_bytes for queue in self.queues)

    @cached_property
    def delay_ms(self) -> float:
        """The least time that a packet takes."""
        return self._delay_ms(None)

    @property
    def jitter_ms(self) -> float:
        return max((queue.jitter_ms for queue in self.used), default=0.0)

    @property
    def loss_percent(self) -> float | None:
        """The random loss; None if it is no single number that holds for each packet."""
        losses = [queue.loss_percent for queue in self.used]
        if None in losses:
            return None
        # Where packets take several ways, a loss on one of them is not every packet's.
        is_chain = all(len(self._used_children(queue)) <= 1 for queue in (None, *self.used))
        if any(losses) and not is_chain:
            return None
        return sum(loss or 0.0 for loss in losses)

    @property
    def is_shaping(self) -> bool:
        """Whether any qdisc or class delays, loses or changes packets."""
        return any(queue.is_shaping for queue in self.queues)

    @property
    def queue_words(self) -> str:
        """The length of the shortest queue that can fill, "" if none has a limit."""
        fillable = [queue for queue in self.used if not self.is_below_netem(queue)]
        packets = [q.limit_packets for q in fillable if q.limit_packets is not None]
        if packets:
            return f"{min(packets)} packets"
        sizes = [q.limit_bytes for q in fillable if q.limit_bytes is not None]
        return f"{min(sizes)} bytes" if sizes else ""

    def is_below_netem(self, queue: Qdisc) -> bool:
        """Whether a netem is above the queue, so that the queue never fills.

        netem hands on one packet at a time, when that packet is due to leave.
        """
        above = next((q for q in self.queues if q.handle == queue.above), None)
        if above is None or above is queue:
            return False
        return above.kind == "netem" or self.is_below_netem(above)

    @property
    def is_reordering(self) -> bool:
        """Whether a qdisc that packets passed was set to reorder them."""
        return any("reorder" in words for queue in self.used for words in queue.other_settings)

    @property
    def seeds(self) -> list[int]:
        """The seeds of the queues' random numbers, from the root down."""
        return [queue.seed for queue in self.queues]

    def is_same(self, other: DeviceSetting) -> bool:
        """Whether both have the same settings; counters and seeds may differ."""
        def settings_alone(setting: DeviceSetting) -> list[Qdisc]:
            return [replace(queue, bytes=0, packets=0, drops=0, seed=0)
                    for queue in setting.queues]
        return settings_alone(self) == settings_alone(other)


def parse_setting(time_ns: int, messages: bytes) -> DeviceSetting:
    """A setting from netlink messages. Raises ValueError, struct.error where they are damaged."""
    queues = sorted(_queues(messages), key=lambda queue: (queue.handle >> 16, queue.is_class,
                                                          queue.handle))
    handles = {queue.handle for queue in queues}
    for place, queue in enumerate(queues):
        above = queue.parent
        if queue.is_class and above == _ROOT:  # a top class, whose parent is its qdisc
            above = queue.handle & 0xFFFF0000
        elif above != _ROOT and above not in handles:  # its class is not listed
            above &= 0xFFFF0000
        if above == queue.handle:  # HFSC's root class, which has its qdisc's handle
            above = 0
        queues[place] = replace(queue, above=above)

    ordered = tuple(_walk_down(queues, _ROOT)) or tuple(queues)
    link, unmodelled = _link_of(ordered)
    return DeviceSetting(time_ns, ordered, link, unmodelled)


def _walk_down(queues: Sequence[Qdisc], above: int) -> Iterator[Qdisc]:
    """The qdiscs below the one with handle `above`, each before its own children."""
    for queue in queues:
        if queue.above == above:
            yield queue
            yield from _walk_down([q for q in queues if q.above != above], queue.handle)


def _queues(messages: bytes) -> Iterator[Qdisc]:
    for message in netlink.messages(messages):
        if message.kind in (qdiscs.NEWQDISC, qdiscs.NEWTCLASS):
            yield _queue(qdiscs.read_qdisc(message.body), message.kind == qdiscs.NEWTCLASS)


def _queue(installed: qdiscs.InstalledQdisc, is_class: bool) -> Qdisc:
    queue = Qdisc(installed.kind, is_class, installed.handle, parent=installed.parent,
                  bytes=installed.bytes, packets=installed.packets, drops=installed.drops)
    read_options = (_CLASSES if is_class else _QDISCS).get(installed.kind)
    if read_options is None or not installed.options:
        return queue
    return read_options(queue, installed.options)


def _kbps(bytes_a_second: int) -> float:
    """A rate in kbit/s; inf for the kernel's 0, which is no limit."""
    return bytes_a_second * 8 / 1000 if bytes_a_second else math.inf


def _burst(ticks: int, kbps: float) -> int:
    """How many bytes a bucket holds that fills at a rate in this number of the kernel's ticks."""
    return 0 if math.isinf(kbps) else round(ticks * TICK_NS * kbps / 8e6)


# Each of these functions adds the settings that a kind of qdisc or class has in its options.

def _netem(queue: Qdisc, options: bytes) -> Qdisc:
    read = netem.read_options(options)
    shares = (("duplicate", read.duplicate), ("reorder", read.reorder), ("corrupt", read.corrupt))
    others = [f"{name} {100 * share / MOST_U32:.4g} %" for name, share in shares if share]
    switches = (("correlated", read.is_correlated),
                (f"overhead {read.overhead} bytes", read.overhead),
                ("ecn", read.has_ecn), ("slots", read.has_slots),
                ("loss in bursts", read.has_loss_model))
    others += [words for words, is_set in switches if is_set]

    loss_percent = None
    if not read.has_loss_model:
        loss_percent = float(f"{100 * read.loss / MOST_U32:.4g}")
    return replace(queue, delay_ms=read.latency_ns / 1e6, jitter_ms=read.jitter_ns / 1e6,
                   rate_kbps=_kbps(read.rate), seed=read.seed, limit_packets=read.limit,
                   loss_percent=loss_percent, other_settings=tuple(others))


def _htb_class(queue: Qdisc, options: bytes) -> Qdisc:
    bucket = qdiscs.read_htb_class(options)
    rate, ceiling = _kbps(bucket.rate), _kbps(bucket.ceiling)
    ceiling_burst = _burst(bucket.ceiling_burst, ceiling)
    if bucket.level:
        return replace(queue, rate_kbps=ceiling, burst_bytes=ceiling_burst,
                       other_settings=("with classes below",))

    others = () if rate == ceiling else (f"rate {format_rate(rate)} below its ceiling",)
    return replace(queue, rate_kbps=ceiling,
                   burst_bytes=max(_burst(bucket.burst, rate), ceiling_burst),
                   ceiling_burst_bytes=ceiling_burst, other_settings=others)


def _htb(queue: Qdisc, options: bytes) -> Qdisc:
    return replace(queue, default_class=_class_of(queue, qdiscs.htb_default(options)))


def _hfsc(queue: Qdisc, options: bytes) -> Qdisc:
    return replace(queue, default_class=_class_of(queue, struct.unpack_from("=H", options)[0]))


def _class_of(queue: Qdisc, minor: int) -> int:
    """The handle of a qdisc's class by the number after tc's colon; 0 for the number 0."""
    return queue.handle & 0xFFFF0000 | minor if minor else 0


def _hfsc_class(queue: Qdisc, options: bytes) -> Qdisc:
    attributes = netlink.attributes(options)
    if _HFSC_USC not in attributes:  # without an upper limit (ulimit)
        return queue
    _, _, bytes_a_second = struct.unpack("=3I", attributes[_HFSC_USC])  # struct tc_service_curve
    return replace(queue, rate_kbps=_kbps(bytes_a_second))


def _tbf(queue: Qdisc, options: bytes) -> Qdisc:
    bucket = qdiscs.read_tbf(options)
    rate = _kbps(bucket.rate)
    limit_bytes = bucket.limit_bytes if bucket.limit_bytes < _UNLIMITED else None
    return replace(queue, rate_kbps=rate, burst_bytes=_burst(bucket.burst, rate),
                   limit_bytes=limit_bytes)


def _pfifo(queue: Qdisc, options: bytes) -> Qdisc:
    return replace(queue, limit_packets=struct.unpack_from("=I", options)[0])


def _bfifo(queue: Qdisc, options: bytes) -> Qdisc:
    return replace(queue, limit_bytes=struct.unpack_from("=I", options)[0])


def _codel(queue: Qdisc, options: bytes) -> Qdisc:
    limit = netlink.attributes(options).get(_CODEL_LIMIT)
    return replace(queue, limit_packets=struct.unpack("=I", limit)[0] if limit else None)


def _cake(queue: Qdisc, options: bytes) -> Qdisc:
    rate = netlink.attributes(options).get(_CAKE_RATE64, bytes(8))
    return replace(queue, rate_kbps=_kbps(struct.unpack("=Q", rate)[0]))


def _red(queue: Qdisc, options: bytes) -> Qdisc:
    parameters = netlink.attributes(options).get(_RED_PARMS, bytes(16))  # struct tc_red_qopt
    limit, least, most, _, _, _, flags = struct.unpack_from("=3I4B", parameters)
    others = [f"min {least} max {most} bytes"]
    if flags & _RED_ECN:
        others.append("ecn")
    return replace(queue, limit_bytes=limit, other_settings=tuple(others))


def _fq(queue: Qdisc, options: bytes) -> Qdisc:
    content = netlink.attributes(options).get(_FQ_MOST_RATE, b"\xff" * 4)
    rate = struct.unpack("=I", content)[0]
    if rate in (0, MOST_U32):  # no limit
        return queue
    return replace(queue, other_settings=(f"{format_rate(_kbps(rate))} for each connection",))


_QDISCS: dict[str, Callable[[Qdisc, bytes], Qdisc]] = {
    "netem": _netem, "tbf": _tbf, "pfifo": _pfifo, "bfifo": _bfifo, "fq_codel": _codel,
    "codel": _codel, "cake": _cake, "fq": _fq, "red": _red, "htb": _htb, "hfsc": _hfsc}
_CLASSES: dict[str, Callable[[Qdisc, bytes], Qdisc]] = {"htb": _htb_class, "hfsc": _hfsc_class}


# What wire.delivery models -----------------------------------------------------------

def _link_of(queues: tuple[Qdisc, ...]) -> tuple[Link | None, str]:
    """The queues as one Link; None where wire.delivery does not model them. Then the reason why it
    does not, or ""."""
    kinds = [queue.kind for queue in queues]
    for queue in queues:
        if queue.other_settings:
            return None, queue.words
    if _PACING in kinds:
        return None, "fq, which paces"
    if all(kind in PLAIN for kind in kinds):
        return Link(0.0, math.inf, _UNLIMITED), ""

    delaying = next((queue for queue in queues if queue.kind == "netem"), None)
    if delaying and (delaying.loss_percent is None or delaying.jitter_ms):
        return None, "jitter, or loss in bursts"
    if kinds == ["netem"] and delaying:
        return _netem_link(delaying), ""

    # HTB, its only class, and a queue below the class or none.
    if kinds[:2] != ["htb", "htb"] or len(queues) > 3 or not set(kinds[2:]) <= {"netem", "pfifo"}:
        return None, " → ".join(kinds)
    shaped = queues[1]
    # The kernel keeps the burst in ticks, so it may come back with a few bytes more or less.
    if shaped.ceiling_burst_bytes not in range(HTB_CEILING_BURST_BYTES - 20,
                                               HTB_CEILING_BURST_BYTES + 20):
        return None, f"htb with a ceiling's burst of {shaped.ceiling_burst_bytes} bytes"

    if delaying:
        below_class = _netem_link(delaying)
    else:
        limit_packets = queues[2].limit_packets if len(queues) == 3 else None
        below_class = Link(0.0, math.inf, limit_packets or _UNLIMITED)
    if not math.isinf(below_class.rate_kbps):
        return None, "htb over netem with a rate"
    return replace(below_class, rate_kbps=shaped.rate_kbps, qdisc="htb",
                   htb_burst_bytes=shaped.burst_bytes), ""


def _netem_link(netem: Qdisc) -> Link:
    return Link(netem.delay_ms, netem.rate_kbps, netem.limit_packets or _UNLIMITED,
                loss_percent=netem.loss_percent or 0.0, seed=netem.seed, qdisc="netem")
