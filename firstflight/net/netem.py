"""netem: each of its parameters once, in tc's words and as the kernel's number, and its bytes.

A new parameter is a field of Netem, a line of its `parameters` and of NetemOptions, here, and a
field of Link (net/link.py), which shaping.py hands to the port. Structures from
include/uapi/linux/pkt_sched.h.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from firstflight.net.netlink import NESTED, attribute, attributes, u64
from firstflight.net.tc import MOST_U32, TICK_NS, bits, normal_distribution, probability, ticks

# netem counts the packets that it delays against its limit, so the limit of
# a delay has to exceed any bandwidth-delay product ever requested.
DELAY_LIMIT_PACKETS = 1_000_000
_PERCENT = 100 / MOST_U32  # the kernel's unit of a probability
_TICK_MS = TICK_NS / 1e6
_HEAD = struct.Struct("=6I")  # struct tc_netem_qopt
_FOUR_WORDS = struct.Struct("=4I")  # struct tc_netem_rate, tc_netem_gemodel
(_CORRELATION, _DELAY_DIST, _REORDER, _CORRUPT, _LOSS, _RATE, _ECN, _RATE64, _LATENCY64, _JITTER64,
 _SLOT, _SEED) = 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 14
# What no network here sets, by their names in NetemOptions.
_NEVER_SET = ("duplicate", "overhead", "reorder", "corrupt", "is_correlated", "has_ecn",
              "has_slots")
_LOSS_GE = 2  # in _LOSS: the parameters of Gilbert's model


class Parameter(NamedTuple):
    """How a parameter of netem's is written for tc, and for a kernel.

    name: of its field, with its value. argument: tc's words, of a value that is not 0. number: the
    kernel's, which it also reports. units: ours in one of the kernel's, for messages. random:
    whether netem then draws numbers, which are seeded.
    """

    name: str
    value: float
    argument: str
    number: int
    units: float = 1.0
    random: bool = False


class NetemOptions(NamedTuple):
    """What netem's options hold, in the kernel's units: ticks, parts of MOST_U32, bytes a second.

    latency_ns, jitter_ns: of newer kernels, else from the ticks. burst_begins, burst_ends: of
    Gilbert's model; has_loss_model: whether that or another one is set.
    """

    latency: int
    limit: int
    loss: int
    duplicate: int
    jitter: int
    rate: int
    overhead: int
    burst_begins: int
    burst_ends: int
    reorder: int
    corrupt: int
    latency_ns: int
    jitter_ns: int
    seed: int
    is_correlated: bool
    has_ecn: bool
    has_loss_model: bool
    has_slots: bool


@dataclass(frozen=True)
class Netem:
    """A netem qdisc: its parameters in the order in which tc takes them.

    delay_ms: tc takes whole microseconds; jitter_ms: its standard deviation, by tc's table of the
    normal distribution. rate_kbps: kernels take whole bytes a second; limit_packets: of its queue.
    loss_percent: of each packet alone; burst_begins_percent, burst_ends_percent: Gilbert's model,
    of the packets that go through, how many are followed by a loss, and of those that are lost, how
    many by one that goes through. seed: of what is random; since Linux 6.6, older kernels ignore
    it.
    """

    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    rate_kbps: float = 0.0
    limit_packets: int = DELAY_LIMIT_PACKETS
    loss_percent: float = 0.0
    burst_begins_percent: float = 0.0
    burst_ends_percent: float = 0.0
    seed: int = 0

    kind = "netem"
    anew = False  # can be changed as it stands

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """All but the seed."""
        delay_us, jitter_us = round(self.delay_ms * 1000), round(self.jitter_ms * 1000)
        rate = bits(self.rate_kbps)
        loss, begins, ends = (self.loss_percent, self.burst_begins_percent,
                              self.burst_ends_percent)
        return (
            Parameter("delay_ms", self.delay_ms, f"delay {delay_us}us", ticks(delay_us), _TICK_MS),
            # tc has it with the delay. A kernel does not report the distribution.
            Parameter("jitter_ms", self.jitter_ms, f"{jitter_us}us distribution normal",
                      ticks(jitter_us), _TICK_MS, random=True),
            Parameter("rate_kbps", self.rate_kbps, f"rate {rate}bit", rate // 8, 8 / 1000),
            Parameter("limit_packets", self.limit_packets, f"limit {self.limit_packets}",
                      self.limit_packets),
            Parameter("loss_percent", loss, f"loss random {loss:g}%", probability(loss), _PERCENT,
                      random=True),
            Parameter("burst_begins_percent", begins, f"loss gemodel {begins:g}%",
                      probability(begins), _PERCENT, random=True),
            Parameter("burst_ends_percent", ends, f"{ends:g}%", probability(ends), _PERCENT,
                      random=True))

    @property
    def random(self) -> bool:
        return any(parameter.random and parameter.value for parameter in self.parameters)

    @property
    def arguments(self) -> str:
        words = [parameter.argument for parameter in self.parameters if parameter.value]
        return " ".join([*words, f"seed {self.seed}"] if self.random else words)

    @property
    def options(self) -> bytes:
        """Its options as tc sends them: an attribute whose numbers are all 0 is left out.

        Raises OSError where there is jitter, and no table of the normal distribution.
        """
        latency, jitter, rate, limit, loss, begins, ends = (
            parameter.number for parameter in self.parameters)
        options = _HEAD.pack(latency, limit, loss, 0, 0, jitter)
        if rate > MOST_U32:
            options += u64(_RATE64, rate)
        if rate:
            options += attribute(_RATE, _FOUR_WORDS.pack(min(rate, MOST_U32), 0, 0, 0))
        if begins or ends:
            options += attribute(_LOSS | NESTED, attribute(
                _LOSS_GE, _FOUR_WORDS.pack(begins, ends, 0, 0)))
        if self.jitter_ms:
            table = normal_distribution()
            options += attribute(_DELAY_DIST, struct.pack(f"={len(table)}h", *table))
        if self.random:
            options += u64(_SEED, self.seed)
        return options

    def differences(self, options: bytes) -> Iterator[str]:
        """What a kernel reports otherwise than requested, a few words each."""
        reported = numbers_of(options)
        for parameter in self.parameters:
            if reported[parameter.name] != parameter.number:
                yield (f"{parameter.name} {round(reported[parameter.name] * parameter.units, 3):g},"
                       f" requested {parameter.value:g}")
        held = read_options(options)
        for name in _NEVER_SET:
            if value := getattr(held, name):
                yield f"netem {name} {value}, requested none"
        # Kernels before 6.6 have no seed, and report none.
        if self.random and held.seed not in (0, self.seed):
            yield f"seed {held.seed}, requested {self.seed}"


def numbers_of(options: bytes) -> dict[str, int]:
    """The kernel's number of each parameter, by field. Raises ValueError where it is no netem."""
    held = read_options(options)
    return {"delay_ms": held.latency, "jitter_ms": held.jitter, "rate_kbps": held.rate,
            "limit_packets": held.limit, "loss_percent": held.loss,
            "burst_begins_percent": held.burst_begins, "burst_ends_percent": held.burst_ends}


def read_options(options: bytes) -> NetemOptions:
    """The options of a netem, as a kernel reports them. Raises ValueError where they are none."""
    if len(options) < _HEAD.size:
        raise ValueError(f"{len(options)} bytes are not options of netem")
    latency, limit, loss, _, duplicate, jitter = _HEAD.unpack_from(options)
    held = attributes(options[_HEAD.size:])
    rate, overhead, *_ = struct.unpack("=IiIi", held.get(_RATE) or bytes(16))
    begins, ends, *_ = _FOUR_WORDS.unpack(
        attributes(held.get(_LOSS, b"")).get(_LOSS_GE) or bytes(_FOUR_WORDS.size))
    return NetemOptions(
        latency=latency, limit=limit, loss=loss, duplicate=duplicate, jitter=jitter,
        rate=_number(held, _RATE64, "=Q", rate), overhead=overhead,
        burst_begins=begins, burst_ends=ends,
        reorder=_number(held, _REORDER, "=I", 0), corrupt=_number(held, _CORRUPT, "=I", 0),
        latency_ns=_number(held, _LATENCY64, "=q", latency * TICK_NS),
        jitter_ns=_number(held, _JITTER64, "=q", jitter * TICK_NS),
        seed=_number(held, _SEED, "=Q", 0), is_correlated=any(held.get(_CORRELATION, b"")),
        has_ecn=any(held.get(_ECN, b"")), has_loss_model=_LOSS in held,
        has_slots=any(held.get(_SLOT, b"")))


def _number(held: dict[int, bytes], kind: int, form: str, otherwise: int) -> int:
    """The number that an attribute begins with. Raises ValueError where it is too short."""
    if kind not in held:
        return otherwise
    if len(held[kind]) < struct.calcsize(form):
        raise ValueError("an option of netem that is cut")
    number: int = struct.unpack_from(form, held[kind])[0]
    return number
