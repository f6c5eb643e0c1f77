"""How the queue of a device was set: its qdiscs and classes, as the kernel reports them.

Netlink's RTM_NEWQDISC and RTM_NEWTCLASS messages; structures from include/uapi/linux/pkt_sched.h.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from hosts.netem import HTB_CEILING_BURST_BYTES, MOST_U32
from lab.tcp.delivery.qdiscs import Way
from lab.tcp.path import TICK_NS

_NEWQDISC, _NEWTCLASS = 36, 40
_HEADER = struct.Struct("=IHHII")  # nlmsghdr
_TCMSG = struct.Struct("=BxxxiIII")
_ROOT = 0xFFFFFFFF
_KIND, _OPTIONS, _STATS2, _BASIC, _QUEUE = 1, 2, 7, 1, 3
_RATESPEC = struct.Struct("=BBHhHI")
_NETEM = struct.Struct("=6I")  # latency, limit, loss, gap, duplicate, jitter
(_CORRELATION, _REORDER, _CORRUPT, _LOSS_MODEL, _RATE, _ECN, _RATE64, _LATENCY64, _JITTER64
 ) = 1, 3, 4, 5, 6, 7, 8, 10, 11
_SLOT, _SEED = 12, 14
# Attributes of the other qdiscs' options (TCA_HTB_PARMS and so on).
_HTB_PARMS, _HTB_RATE64, _HTB_CEIL64 = 1, 6, 7
_HFSC_USC = 3
_TBF_PARMS, _TBF_RATE64 = 1, 4
_CODEL_LIMIT = 2  # of fq_codel as well
_CAKE_RATE64 = 2
_FQ_MOST_RATE = 7
_UNLIMITED = 1 << 31
# These take what comes and release it at once, while nothing shapes above or below them.
PLAIN = ("noqueue", "pfifo", "bfifo", "pfifo_fast", "mq", "fq_codel", "fq", "sfq", "red", "codel",
         "prio", "pie")
_PACING = "fq"  # holds packets back that a program or TCP (BBR) paces
# Packets of classes that are not listed: all that did not pass what is listed below these.
_HIDING = ("prio", "mq", "drr", "ets", "multiq", "qfq")


@dataclass(frozen=True)
class Qdisc:
    """One qdisc or class.

    handle, parent: as tc numbers them, 0x10001 for 1:1. bytes, packets, drops: counted by the
    kernel, of what left and what was dropped. above: handle of what hands it packets. rate_kbps:
    inf for none; limit_packets, limit_bytes: None where it has none. loss_percent: None where it is
    no single number. also: what else is set, in tc's words.
    """

    kind: str
    is_class: bool
    handle: int
    parent: int
    bytes: int = 0
    packets: int = 0
    drops: int = 0
    above: int = _ROOT
    rate_kbps: float = math.inf
    burst_bytes: int = 0
    ceiling_burst_bytes: int = 0
    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    loss_percent: float | None = 0.0
    limit_packets: int | None = None
    limit_bytes: int | None = None
    seed: int = 0
    also: tuple[str, ...] = ()

    @property
    def is_shaping(self) -> bool:
        """Whether it holds packets back, loses or changes some."""
        return bool(not math.isinf(self.rate_kbps) or self.delay_ms or self.jitter_ms
                    or self.loss_percent != 0 or self.kind == "netem" and self.also)

    @property
    def words(self) -> str:
        """What is set, much as tc prints it."""
        words = [self.kind]
        if not math.isinf(self.rate_kbps):
            words.append(rate_words(self.rate_kbps))
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


def rate_words(kbps: float) -> str:
    """A rate in the unit that suits it."""
    for unit, least in (("Gbit/s", 1e6), ("Mbit/s", 1e3)):
        if kbps >= least:
            return f"{kbps / least:.4g} {unit}"
    return f"{kbps:.4g} kbit/s"


@dataclass(frozen=True)
class DeviceSetting:
    """All qdiscs and classes of a device from one time on: from the root down.

    way: the same for lab.tcp.delivery, None where `unknown` names what that does not model.
    """

    time_ns: int
    queues: tuple[Qdisc, ...] = ()
    way: Way | None = field(default=None, compare=False)
    unknown: str = ""

    @property
    def words(self) -> str:
        """What limits packets, from the root down."""
        shown = [queue.words for queue in self.queues if queue.words != queue.kind
                 and (queue.kind not in PLAIN or queue.also
                      or queue.limit_packets not in (None, 1000))]
        return " → ".join(shown) or "no limit set"

    def below(self, above: Qdisc | None) -> list[Qdisc]:
        """The next ones below one, or the root; those that packets passed, where any has."""
        parent = above.handle if above else _ROOT
        below = [queue for queue in self.queues if queue.above == parent]
        return [queue for queue in below if queue.packets] or below

    def _rate_kbps(self, above: Qdisc | None) -> float:
        rates = [] if self._has_more(above) else [*map(self._rate_kbps, self.below(above))]
        return min(above.rate_kbps if above else math.inf, sum(rates) if rates else math.inf)

    def _has_more(self, above: Qdisc | None) -> bool:
        """Whether packets pass below it by what is not listed."""
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
        """Those that packets pass; where none has passed any, all."""
        return tuple(self._used())

    @cached_property
    def rate_kbps(self) -> float:
        """What may leave in all: inf without a limit."""
        return self._rate_kbps(None)

    @property
    def burst_bytes(self) -> int:
        """What may leave at once beyond the rate."""
        return sum(queue.burst_bytes for queue in self.queues)

    @cached_property
    def delay_ms(self) -> float:
        """The least that a packet has to take."""
        return self._delay_ms(None)

    @property
    def jitter_ms(self) -> float:
        return max((queue.jitter_ms for queue in self.used), default=0.0)

    @property
    def loss_percent(self) -> float | None:
        """None where it is no single number, for each packet alone."""
        losses = [queue.loss_percent for queue in self.used]
        is_chain = all(len(self.below(queue)) <= 1 for queue in (None, *self.used))
        return None if None in losses or any(losses) and not is_chain else sum(
            loss or 0.0 for loss in losses)

    @property
    def is_shaping(self) -> bool:
        """Whether anything that is set holds packets back, loses or changes some."""
        return any(queue.is_shaping for queue in self.queues)

    @property
    def queue_words(self) -> str:
        """The shortest of its queues that can fill, "" where none has a limit."""
        held = [queue for queue in self.used if not self.is_below_netem(queue)]
        packets = [q.limit_packets for q in held if q.limit_packets is not None]
        sizes = [q.limit_bytes for q in held if q.limit_bytes is not None]
        return f"{min(packets)} packets" if packets else f"{min(sizes)} bytes" if sizes else ""

    def is_below_netem(self, queue: Qdisc) -> bool:
        """Whether netem hands it one packet at a time, each as it leaves: it never fills."""
        above = next((q for q in self.queues if q.handle == queue.above), None)
        return above is not None and above is not queue and (
            above.kind == "netem" or self.is_below_netem(above))

    @property
    def seeds(self) -> list[int]:
        """Of random numbers."""
        return [queue.seed for queue in self.queues]

    def is_same(self, other: DeviceSetting) -> bool:
        """Whether both are set alike, whatever they have counted."""
        def bare(setting: DeviceSetting) -> list[Qdisc]:
            return [replace(queue, bytes=0, packets=0, drops=0, seed=0)
                    for queue in setting.queues]
        return bare(self) == bare(other)


def parsed(time_ns: int, messages: bytes) -> DeviceSetting:
    """A setting from netlink messages. Raises ValueError, struct.error where they are damaged."""
    queues = sorted(_queues(messages), key=lambda queue: (queue.handle >> 16, queue.is_class,
                                                          queue.handle))
    handles = {queue.handle for queue in queues}
    for place, queue in enumerate(queues):
        above = queue.parent
        if queue.is_class and above == _ROOT:  # a class without one: its qdisc
            above = queue.handle & 0xFFFF0000
        elif above != _ROOT and above not in handles:  # of a qdisc whose classes are not listed
            above &= 0xFFFF0000
        if above == queue.handle:  # HFSC's class of all, which has its qdisc's number
            above = 0
        queues[place] = replace(queue, above=above)
    ordered = tuple(_down(queues, _ROOT)) or tuple(queues)
    way, unknown = _way(ordered)
    return DeviceSetting(time_ns, ordered, way, unknown)


def _down(queues: Sequence[Qdisc], above: int) -> Iterator[Qdisc]:
    """Those below one, each before its own."""
    for queue in queues:
        if queue.above == above:
            yield queue
            yield from _down([q for q in queues if q.above != above], queue.handle)


def _queues(messages: bytes) -> Iterator[Qdisc]:
    place = 0
    while place + _HEADER.size <= len(messages):
        size, kind, *_ = _HEADER.unpack_from(messages, place)
        if size < _HEADER.size + _TCMSG.size or place + size > len(messages):
            raise ValueError("netlink messages that are cut")
        if kind in (_NEWQDISC, _NEWTCLASS):
            yield _queue(messages[place + _HEADER.size:place + size], kind == _NEWTCLASS)
        place += (size + 3) // 4 * 4


def _attributes(content: bytes) -> dict[int, bytes]:
    """By type. Raises ValueError."""
    attributes, place = {}, 0
    while place + 4 <= len(content):
        size, kind = struct.unpack_from("=HH", content, place)
        if size < 4 or place + size > len(content):
            raise ValueError("a netlink attribute that is cut")
        attributes[kind & 0x3FFF] = content[place + 4:place + size]
        place += (size + 3) // 4 * 4
    return attributes


def _queue(message: bytes, is_class: bool) -> Qdisc:
    _, _, handle, parent, _ = _TCMSG.unpack_from(message)
    attributes = _attributes(message[_TCMSG.size:])
    counters = _attributes(attributes.get(_STATS2, b""))
    sent_bytes, packets = struct.unpack_from("=QI", counters.get(_BASIC, bytes(12)))
    _, _, drops = struct.unpack_from("=III", counters.get(_QUEUE, bytes(12)))
    kind = attributes.get(_KIND, b"").rstrip(b"\0").decode("ascii", "replace")
    queue = Qdisc(kind, is_class, handle, parent, sent_bytes, packets, drops)
    options = attributes.get(_OPTIONS, b"")
    reader = (_CLASSES if is_class else _QDISCS).get(kind)
    return reader(queue, options) if reader and options else queue


def _kbps(spec: bytes, rate64: bytes | None) -> float:
    """The rate of a struct tc_ratespec, or of the 64-bit attribute with it, kbit/s."""
    rate = int(struct.unpack("=Q", rate64)[0]) if rate64 else int(_RATESPEC.unpack_from(spec)[5])
    return rate * 8 / 1000 if rate else math.inf


def _burst(ticks: int, kbps: float) -> int:
    """The bytes that a bucket of so many ticks holds."""
    return 0 if math.isinf(kbps) else round(ticks * TICK_NS * kbps / 8e6)


def _netem(queue: Qdisc, options: bytes) -> Qdisc:
    latency, limit, loss, _, duplicate, jitter = _NETEM.unpack_from(options)
    attributes = _attributes(options[_NETEM.size:])
    latency_ns, jitter_ns = latency * TICK_NS, jitter * TICK_NS
    if _LATENCY64 in attributes:
        latency_ns, = struct.unpack("=q", attributes[_LATENCY64])
    if _JITTER64 in attributes:
        jitter_ns, = struct.unpack("=q", attributes[_JITTER64])
    rate, overhead, *_ = struct.unpack("=IiIi", attributes.get(_RATE, bytes(16)))
    if _RATE64 in attributes:
        rate, = struct.unpack("=Q", attributes[_RATE64])
    seed, = struct.unpack("=Q", attributes.get(_SEED, bytes(8)))
    also = []
    for name, share in (("duplicate", duplicate), *(
            (name, struct.unpack_from("=I", attributes.get(kind, bytes(8)))[0])
            for kind, name in ((_REORDER, "reorder"), (_CORRUPT, "corrupt")))):
        if share:
            also.append(f"{name} {100 * share / MOST_U32:.4g} %")
    if any(attributes.get(_CORRELATION, b"")):
        also.append("correlated")
    if overhead:
        also.append(f"overhead {overhead} bytes")
    if any(attributes.get(_ECN, b"")):
        also.append("ecn")
    if any(attributes.get(_SLOT, b"")):
        also.append("slots")
    models = _LOSS_MODEL in attributes
    return replace(queue, delay_ms=latency_ns / 1e6, jitter_ms=jitter_ns / 1e6,
                   rate_kbps=rate * 8 / 1000 if rate else math.inf, seed=seed,
                   loss_percent=None if models else float(f"{100 * loss / MOST_U32:.4g}"),
                   limit_packets=limit, also=(*also, *(("loss in bursts",) if models else ())))


def _htb_class(queue: Qdisc, options: bytes) -> Qdisc:
    attributes = _attributes(options)
    parameters = attributes.get(_HTB_PARMS, b"")
    ceiling = _kbps(parameters[12:], attributes.get(_HTB_CEIL64))
    buffer, ceiling_buffer, _, level, _ = struct.unpack_from("=5I", parameters, 24)
    rate = _kbps(parameters, attributes.get(_HTB_RATE64))
    if level:
        return replace(queue, also=("with classes below",))
    return replace(queue, rate_kbps=ceiling, burst_bytes=max(_burst(buffer, rate),
                                                             _burst(ceiling_buffer, ceiling)),
                   ceiling_burst_bytes=_burst(ceiling_buffer, ceiling),
                   also=() if rate == ceiling else (f"rate {rate_words(rate)} below its ceiling",))


def _hfsc_class(queue: Qdisc, options: bytes) -> Qdisc:
    attributes = _attributes(options)
    if _HFSC_USC not in attributes:  # without an upper limit (ulimit)
        return queue
    rate = struct.unpack("=3I", attributes[_HFSC_USC])[2]
    return replace(queue, rate_kbps=rate * 8 / 1000 if rate else math.inf)


def _tbf(queue: Qdisc, options: bytes) -> Qdisc:
    attributes = _attributes(options)
    parameters = attributes.get(_TBF_PARMS, b"")
    limit, buffer, _ = struct.unpack_from("=3I", parameters, 24)
    rate = _kbps(parameters, attributes.get(_TBF_RATE64))
    return replace(queue, rate_kbps=rate, burst_bytes=_burst(buffer, rate),
                   limit_bytes=limit if limit < _UNLIMITED else None)


def _in_packets(queue: Qdisc, options: bytes) -> Qdisc:
    return replace(queue, limit_packets=struct.unpack_from("=I", options)[0])


def _in_bytes(queue: Qdisc, options: bytes) -> Qdisc:
    return replace(queue, limit_bytes=struct.unpack_from("=I", options)[0])


def _codel(queue: Qdisc, options: bytes) -> Qdisc:
    limit = _attributes(options).get(_CODEL_LIMIT)
    return replace(queue, limit_packets=struct.unpack("=I", limit)[0] if limit else None)


def _cake(queue: Qdisc, options: bytes) -> Qdisc:
    rate = struct.unpack("=Q", _attributes(options).get(_CAKE_RATE64, bytes(8)))[0]
    return replace(queue, rate_kbps=rate * 8 / 1000 if rate else math.inf)


def _fq(queue: Qdisc, options: bytes) -> Qdisc:
    rate = struct.unpack("=I", _attributes(options).get(_FQ_MOST_RATE, b"\xff" * 4))[0]
    return queue if rate in (0, MOST_U32) else replace(
        queue, also=(f"{rate_words(rate * 8 / 1000)} for each connection",))


_QDISCS: dict[str, Callable[[Qdisc, bytes], Qdisc]] = {
    "netem": _netem, "tbf": _tbf, "pfifo": _in_packets, "bfifo": _in_bytes, "fq_codel": _codel,
    "codel": _codel, "cake": _cake, "fq": _fq}
_CLASSES: dict[str, Callable[[Qdisc, bytes], Qdisc]] = {"htb": _htb_class, "hfsc": _hfsc_class}


# What lab.tcp.delivery models -----------------------------------------------------------

def _way(queues: tuple[Qdisc, ...]) -> tuple[Way | None, str]:
    """The queues as one way, or why they are none."""
    kinds = [queue.kind for queue in queues]
    if any(queue.also for queue in queues):
        return None, next(queue.words for queue in queues if queue.also)
    if _PACING in kinds:
        return None, "fq, which paces"
    if all(kind in PLAIN for kind in kinds):
        return Way(0.0, math.inf, _UNLIMITED), ""
    netem = next((queue for queue in queues if queue.kind == "netem"), None)
    if netem and (netem.loss_percent is None or netem.jitter_ms):
        return None, "jitter, or loss in bursts"
    if kinds == ["netem"] and netem:
        return _netem_way(netem), ""
    if kinds[:2] != ["htb", "htb"] or len(queues) > 3 or not set(kinds[2:]) <= {"netem", "pfifo"}:
        return None, " → ".join(kinds)
    shaped = queues[1]
    if shaped.ceiling_burst_bytes not in range(HTB_CEILING_BURST_BYTES - 20,
                                               HTB_CEILING_BURST_BYTES + 20):
        return None, f"htb with a ceiling's burst of {shaped.ceiling_burst_bytes} bytes"
    leaf = queues[2] if len(queues) == 3 else None
    base = _netem_way(netem) if netem else Way(0.0, math.inf, (leaf and leaf.limit_packets)
                                               or _UNLIMITED)
    if not math.isinf(base.rate_kbps):
        return None, "htb over netem with a rate"
    return replace(base, rate_kbps=shaped.rate_kbps, qdisc="htb",
                   htb_burst_bytes=shaped.burst_bytes), ""


def _netem_way(netem: Qdisc) -> Way:
    return Way(netem.delay_ms, netem.rate_kbps, netem.limit_packets or _UNLIMITED,
               loss_percent=netem.loss_percent or 0.0, seed=netem.seed, qdisc="netem")
