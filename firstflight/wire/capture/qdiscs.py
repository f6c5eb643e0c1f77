"""The settings of a device's queue: its qdiscs and classes, from the kernel's reports.

The reports are netlink's RTM_NEWQDISC and RTM_NEWTCLASS messages; structures are from
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
# Attributes of options that this project never sets (TCA_HFSC_USC and so on).
_HFSC_USC = 3
_CODEL_LIMIT = 2  # of fq_codel as well
_CAKE_RATE64 = 2
_FQ_MOST_RATE = 7
_RED_PARMS, _RED_ECN = 1, 1
_UNLIMITED = 1 << 31
# Qdiscs that release packets at once, unless something shapes above or below them.
PLAIN = ("noqueue", "pfifo", "bfifo", "pfifo_fast", "mq", "fq_codel", "fq", "sfq", "red", "codel",
         "prio", "pie")
_PACING = "fq"  # delays packets that a program or TCP (BBR) paces
_MAIN = 0.9  # of the bytes: a class with so many is the one that carried the flow
# Qdiscs with classes that are not listed: packets may pass below them by an unlisted class.
_HIDING = ("prio", "mq", "drr", "ets", "multiq", "qfq")


@dataclass(frozen=True)
class Qdisc:
    """One qdisc or class. A handle of tc's 1:1 is 0x10001."""

    kind: str
    is_class: bool
    handle: int
    parent: int  # a handle
    bytes: int = 0  # that left, by the kernel's counters
    packets: int = 0  # that left, by the kernel's counters
    drops: int = 0  # dropped packets, by the kernel's counters
    above: int = _ROOT  # handle of the qdisc or class that hands it packets
    rate_kbps: float = math.inf  # inf for no limit
    burst_bytes: int = 0
    ceiling_burst_bytes: int = 0
    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    loss_percent: float | None = 0.0  # None if it is no single number
    limit_packets: int | None = None  # None for no limit
    limit_bytes: int | None = None  # None for no limit
    seed: int = 0
    default_class: int = 0  # handle of the class for packets that no filter matches; 0 for none
    also: tuple[str, ...] = ()  # other settings, in tc's words

    @property
    def is_shaping(self) -> bool:
        """Whether it delays, loses or changes packets."""
        return bool(not math.isinf(self.rate_kbps) or self.delay_ms or self.jitter_ms
                    or self.loss_percent != 0 or self.kind in ("netem", "red") and self.also)

    @property
    def words(self) -> str:
        """The settings, much as tc prints them."""
        words = [self.kind]

        if not math.isinf(self.rate_kbps):
            words.append(format_rate(self.rate_kbps))
        if self.delay_ms or self.jitter_ms:
            spread = f" ± {self.jitter_ms:g}" if self.jitter_ms else ""
            words.append(f"delay {self.delay_ms:g}{spread} ms" if self.delay_ms >= 1 or spread
                         else f"delay {self.delay_ms * 1000:.3g} µs")
        if self.loss_percent:
            words.append(f"loss {self.loss_percent:g} %")
        words += self.also

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
    """All qdiscs and classes of a device from some time on."""

    time_ns: int  # since when
    queues: tuple[Qdisc, ...] = ()  # from the root down
    link: Link | None = field(default=None, compare=False)  # for wire.delivery, if it can model it
    unmodelled: str = ""  # why it cannot
    command: str = field(default="", compare=False)  # that made this setting, "" if not known

    @property
    def words(self) -> str:
        """All that limits packets, from the root down."""
        shown = [queue.words for queue in self.queues if queue.words != queue.kind
                 and (queue.kind not in PLAIN or queue.also
                      or queue.limit_packets not in (None, 1000))]
        return " → ".join(shown) or "no limit set"

    def below(self, above: Qdisc | None) -> list[Qdisc]:
        """The children of a qdisc, or the root for None; only those with packets, if any has some.
        """
        below = self._below(above)
        return [queue for queue in below if queue.packets] or below

    def _below(self, above: Qdisc | None) -> list[Qdisc]:
        parent = above.handle if above else _ROOT
        return [queue for queue in self.queues if queue.above == parent]

    def main(self, above: Qdisc | None) -> list[Qdisc]:
        """The same, but only the child with nearly all bytes, if one has them."""
        below = self.below(above)
        whole = sum(queue.bytes for queue in below)
        main = [queue for queue in below if whole and queue.bytes >= _MAIN * whole]
        return main or below

    def is_chosen_by_filters(self, queue: Qdisc) -> bool:
        """Whether it is a class without classes below, and not the default one."""
        return queue.is_class and not any(
            child.is_class for child in self._below(queue)) and not any(
            each.default_class == queue.handle for each in self.queues)

    def _rate_kbps(self, above: Qdisc | None) -> float:
        rates = [] if self._has_more(above) else [*map(self._rate_kbps, self.main(above))]
        return min(above.rate_kbps if above else math.inf, sum(rates) if rates else math.inf)

    def _has_more(self, above: Qdisc | None) -> bool:
        """Whether packets pass below it by a class that is not listed."""
        return above is not None and above.kind in _HIDING and above.packets > sum(
            queue.packets for queue in self.below(above))

    def _delay_ms(self, above: Qdisc | None) -> float:
        below = [] if self._has_more(above) else self.below(above)
        return (above.delay_ms if above else 0.0) + min(map(self._delay_ms, below), default=0.0)

    def _used(self, above: Qdisc | None = None) -> Iterator[Qdisc]:
        for queue in self.below(above):
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
        return sum(queue.bytes for above in (None, *self.queues)
                   for queue in self.below(above) if queue not in self.main(above))

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
        is_chain = all(len(self.below(queue)) <= 1 for queue in (None, *self.used))
        return None if None in losses or any(losses) and not is_chain else sum(
            loss or 0.0 for loss in losses)

    @property
    def is_shaping(self) -> bool:
        """Whether any of it delays, loses or changes packets."""
        return any(queue.is_shaping for queue in self.queues)

    @property
    def queue_words(self) -> str:
        """The length of the shortest queue that can fill, "" if none has a limit."""
        held = [queue for queue in self.used if not self.is_below_netem(queue)]
        packets = [q.limit_packets for q in held if q.limit_packets is not None]
        sizes = [q.limit_bytes for q in held if q.limit_bytes is not None]
        if packets:
            return f"{min(packets)} packets"
        return f"{min(sizes)} bytes" if sizes else ""

    def is_below_netem(self, queue: Qdisc) -> bool:
        """Whether netem hands it packets one at a time, each when it leaves: it never fills."""
        above = next((q for q in self.queues if q.handle == queue.above), None)
        return above is not None and above is not queue and (
            above.kind == "netem" or self.is_below_netem(above))

    @property
    def seeds(self) -> list[int]:
        """The seeds of its random numbers."""
        return [queue.seed for queue in self.queues]

    def is_same(self, other: DeviceSetting) -> bool:
        """Whether both have the same settings; counters and seeds may differ."""
        def bare(setting: DeviceSetting) -> list[Qdisc]:
            return [replace(queue, bytes=0, packets=0, drops=0, seed=0)
                    for queue in setting.queues]
        return bare(self) == bare(other)


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
        if above == queue.handle:  # HFSC's root class, which has its qdisc's number
            above = 0
        queues[place] = replace(queue, above=above)
    ordered = tuple(_down(queues, _ROOT)) or tuple(queues)
    return DeviceSetting(time_ns, ordered, *_link_of(ordered))


def _down(queues: Sequence[Qdisc], above: int) -> Iterator[Qdisc]:
    """The qdiscs below the one with handle `above`, each before its own children."""
    for queue in queues:
        if queue.above == above:
            yield queue
            yield from _down([q for q in queues if q.above != above], queue.handle)


def _queues(messages: bytes) -> Iterator[Qdisc]:
    for message in netlink.messages(messages):
        if message.kind in (qdiscs.NEWQDISC, qdiscs.NEWTCLASS):
            yield _queue(qdiscs.read_qdisc(message.body), message.kind == qdiscs.NEWTCLASS)


def _queue(read: qdiscs.InstalledQdisc, is_class: bool) -> Qdisc:
    queue = Qdisc(read.kind, is_class, read.handle, parent=read.parent, bytes=read.bytes,
                  packets=read.packets, drops=read.drops)
    reader = (_CLASSES if is_class else _QDISCS).get(read.kind)
    return reader(queue, read.options) if reader and read.options else queue


def _kbps(rate: int) -> float:
    """A rate of bytes a second, 0 for none, in kbit/s."""
    return rate * 8 / 1000 if rate else math.inf


def _burst(ticks: int, kbps: float) -> int:
    """The bytes that a bucket of so many ticks holds."""
    return 0 if math.isinf(kbps) else round(ticks * TICK_NS * kbps / 8e6)


def _netem(queue: Qdisc, options: bytes) -> Qdisc:
    held = netem.read_options(options)
    also = [f"{name} {100 * share / MOST_U32:.4g} %" for name, share in (
        ("duplicate", held.duplicate), ("reorder", held.reorder), ("corrupt", held.corrupt))
        if share]
    also += [words for words, is_set in (
        ("correlated", held.is_correlated), (f"overhead {held.overhead} bytes", held.overhead),
        ("ecn", held.has_ecn), ("slots", held.has_slots),
        ("loss in bursts", held.has_loss_model)) if is_set]
    return replace(queue, delay_ms=held.latency_ns / 1e6, jitter_ms=held.jitter_ns / 1e6,
                   rate_kbps=_kbps(held.rate), seed=held.seed, limit_packets=held.limit,
                   loss_percent=(None if held.has_loss_model else
                                 float(f"{100 * held.loss / MOST_U32:.4g}")), also=tuple(also))


def _htb_class(queue: Qdisc, options: bytes) -> Qdisc:
    bucket = qdiscs.read_htb_class(options)
    rate, ceiling = _kbps(bucket.rate), _kbps(bucket.ceiling)
    if bucket.level:
        return replace(queue, rate_kbps=ceiling, burst_bytes=_burst(bucket.ceiling_burst, ceiling),
                       also=("with classes below",))
    ceiling_burst = _burst(bucket.ceiling_burst, ceiling)
    return replace(queue, rate_kbps=ceiling, burst_bytes=max(_burst(bucket.burst, rate),
                                                             ceiling_burst),
                   ceiling_burst_bytes=ceiling_burst,
                   also=() if rate == ceiling else (f"rate {format_rate(rate)} below its ceiling",))


def _htb(queue: Qdisc, options: bytes) -> Qdisc:
    return replace(queue, default_class=_class_of(queue, qdiscs.htb_default(options)))


def _hfsc(queue: Qdisc, options: bytes) -> Qdisc:
    return replace(queue, default_class=_class_of(queue, struct.unpack_from("=H", options)[0]))


def _class_of(queue: Qdisc, minor: int) -> int:
    return queue.handle & 0xFFFF0000 | minor if minor else 0


def _hfsc_class(queue: Qdisc, options: bytes) -> Qdisc:
    held = netlink.attributes(options)
    if _HFSC_USC not in held:  # without an upper limit (ulimit)
        return queue
    return replace(queue, rate_kbps=_kbps(struct.unpack("=3I", held[_HFSC_USC])[2]))


def _tbf(queue: Qdisc, options: bytes) -> Qdisc:
    bucket = qdiscs.read_tbf(options)
    rate = _kbps(bucket.rate)
    return replace(queue, rate_kbps=rate, burst_bytes=_burst(bucket.burst, rate),
                   limit_bytes=bucket.limit_bytes if bucket.limit_bytes < _UNLIMITED else None)


def _in_packets(queue: Qdisc, options: bytes) -> Qdisc:
    return replace(queue, limit_packets=struct.unpack_from("=I", options)[0])


def _in_bytes(queue: Qdisc, options: bytes) -> Qdisc:
    return replace(queue, limit_bytes=struct.unpack_from("=I", options)[0])


def _codel(queue: Qdisc, options: bytes) -> Qdisc:
    limit = netlink.attributes(options).get(_CODEL_LIMIT)
    return replace(queue, limit_packets=struct.unpack("=I", limit)[0] if limit else None)


def _cake(queue: Qdisc, options: bytes) -> Qdisc:
    return replace(queue, rate_kbps=_kbps(struct.unpack(
        "=Q", netlink.attributes(options).get(_CAKE_RATE64, bytes(8)))[0]))


def _red(queue: Qdisc, options: bytes) -> Qdisc:
    limit, least, most, _, _, _, flags = struct.unpack_from(
        "=3I4B", netlink.attributes(options).get(_RED_PARMS, bytes(16)))
    return replace(queue, limit_bytes=limit, also=(
        f"min {least} max {most} bytes", *(("ecn",) if flags & _RED_ECN else ())))


def _fq(queue: Qdisc, options: bytes) -> Qdisc:
    rate = struct.unpack("=I", netlink.attributes(options).get(_FQ_MOST_RATE, b"\xff" * 4))[0]
    return queue if rate in (0, MOST_U32) else replace(
        queue, also=(f"{format_rate(_kbps(rate))} for each connection",))


_QDISCS: dict[str, Callable[[Qdisc, bytes], Qdisc]] = {
    "netem": _netem, "tbf": _tbf, "pfifo": _in_packets, "bfifo": _in_bytes, "fq_codel": _codel,
    "codel": _codel, "cake": _cake, "fq": _fq, "red": _red, "htb": _htb, "hfsc": _hfsc}
_CLASSES: dict[str, Callable[[Qdisc, bytes], Qdisc]] = {"htb": _htb_class, "hfsc": _hfsc_class}


# What wire.delivery models -----------------------------------------------------------

def _link_of(queues: tuple[Qdisc, ...]) -> tuple[Link | None, str]:
    """The queues as one Link, or None and why wire.delivery does not model them."""
    kinds = [queue.kind for queue in queues]
    if any(queue.also for queue in queues):
        return None, next(queue.words for queue in queues if queue.also)

    if _PACING in kinds:
        return None, "fq, which paces"
    if all(kind in PLAIN for kind in kinds):
        return Link(0.0, math.inf, _UNLIMITED), ""

    delaying = next((queue for queue in queues if queue.kind == "netem"), None)
    if delaying and (delaying.loss_percent is None or delaying.jitter_ms):
        return None, "jitter, or loss in bursts"
    if kinds == ["netem"] and delaying:
        return _netem_link(delaying), ""
    if kinds[:2] != ["htb", "htb"] or len(queues) > 3 or not set(kinds[2:]) <= {"netem", "pfifo"}:
        return None, " → ".join(kinds)

    shaped = queues[1]
    if shaped.ceiling_burst_bytes not in range(HTB_CEILING_BURST_BYTES - 20,
                                               HTB_CEILING_BURST_BYTES + 20):
        return None, f"htb with a ceiling's burst of {shaped.ceiling_burst_bytes} bytes"
    leaf = queues[2] if len(queues) == 3 else None
    base = _netem_link(delaying) if delaying else Link(0.0, math.inf, (leaf and leaf.limit_packets)
                                               or _UNLIMITED)
    if not math.isinf(base.rate_kbps):
        return None, "htb over netem with a rate"
    return replace(base, rate_kbps=shaped.rate_kbps, qdisc="htb",
                   htb_burst_bytes=shaped.burst_bytes), ""


def _netem_link(netem: Qdisc) -> Link:
    return Link(netem.delay_ms, netem.rate_kbps, netem.limit_packets or _UNLIMITED,
                loss_percent=netem.loss_percent or 0.0, seed=netem.seed, qdisc="netem")
