"""netem: each of its parameters once, in tc's words and as the kernel's number, and its bytes.

A new parameter is a field of Netem, here, and of Shape (engines/network/shaping.py), which
brings it to the client under the same name. Structures from include/uapi/linux/pkt_sched.h.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any

from engines.network.netlink import NLA_F_NESTED, attribute, attributes
from engines.network.qdiscs import ticks
from net.tc import MOST_U32, normal_distribution, probability

# netem counts the packets that it delays against its limit, so the limit of
# a delay has to exceed any bandwidth-delay product ever requested.
DELAY_LIMIT_PACKETS = 1_000_000
_PERCENT = 100 / MOST_U32  # the kernel's unit of a probability

# What holds its numbers: struct tc_netem_qopt, which all options begin with, or an attribute
# behind it. Each is so many 32-bit words.
_HEAD, _RATE, _LOSS = 0, 6, 5  # _LOSS: the parameters of Gilbert's model, in _LOSS_GE
_WORDS = {_HEAD: 6, _RATE: 4, _LOSS: 4}
_DELAY_DIST, _RATE64, _SEED, _LOSS_GE = 2, 8, 14, 2


@dataclass(frozen=True)
class Parameter:
    """How a parameter of netem's is written for tc, and for a kernel.

    argument: tc's words for a value; none for 0, netem's default. number: the kernel's, which
        it also reports. place: what holds that number, and which word of it. units: ours in one
        of the kernel's, for messages. random: whether netem then draws numbers, which are
        seeded.
    """

    argument: Callable[[float], str]
    number: Callable[[float], int]
    place: tuple[int, int]
    units: float = 1.0
    random: bool = False


def _parameter(default: Any, argument: Callable[[Any], str], number: Callable[[Any], int],
               place: tuple[int, int], **more: Any) -> Any:
    """A field of Netem; more: the other fields of Parameter."""
    return field(default=default,
                 metadata={"parameter": Parameter(argument, number, place, **more)})


def _time(default: float, argument: Callable[[float], str], place: tuple[int, int],
          **more: Any) -> Any:
    """A field in ms; tc takes whole microseconds."""
    return _parameter(default, argument, lambda ms: ticks(round(ms * 1000)), place, units=64e-6,
                      **more)


def _probability(argument: str, place: tuple[int, int]) -> Any:
    """A field in percent, 0 by default; argument: what tc has before it."""
    return _parameter(0.0, lambda percent: f"{argument} {percent:g}%".lstrip(), probability, place,
                      units=_PERCENT, random=True)


def bits(kbps: float) -> int:
    """A rate as tc takes it, bit/s."""
    return round(kbps * 1000)


@dataclass(frozen=True)
class Netem:
    """A netem qdisc: its parameters in the order in which tc takes them."""

    delay_ms: float = _time(0.0, lambda ms: f"delay {round(ms * 1000)}us", (_HEAD, 0))
    # tc has it with the delay. A kernel does not report the distribution.
    jitter_ms: float = _time(0.0, lambda ms: f"{round(ms * 1000)}us distribution normal",
                             (_HEAD, 5), random=True)
    # Kernels take whole bytes a second.
    rate_kbps: float = _parameter(0.0, lambda kbps: f"rate {bits(kbps)}bit",
                                  lambda kbps: bits(kbps) // 8, (_RATE, 0), units=8 / 1000)
    limit_packets: int = _parameter(DELAY_LIMIT_PACKETS, lambda packets: f"limit {packets}",
                                    int, (_HEAD, 1))
    loss_percent: float = _probability("loss random", (_HEAD, 2))
    # Gilbert's model: of the packets that go through, how many are followed by a loss; of those
    # that are lost, how many by one that goes through.
    burst_begins_percent: float = _probability("loss gemodel", (_LOSS, 0))
    burst_ends_percent: float = _probability("", (_LOSS, 1))
    seed: int = 0  # of what is random; since Linux 6.6, older kernels ignore it

    kind = "netem"
    anew = False  # can be changed as it stands

    @staticmethod
    @cache
    def parameters() -> dict[str, Parameter]:
        """By field; all but the seed."""
        return {column.name: column.metadata["parameter"] for column in fields(Netem)
                if column.metadata}

    @property
    def random(self) -> bool:
        return any(how.random and getattr(self, name) for name, how in self.parameters().items())

    @property
    def arguments(self) -> str:
        words = [how.argument(getattr(self, name))
                 for name, how in self.parameters().items() if getattr(self, name)]
        return " ".join([*words, f"seed {self.seed}"] if self.random else words)

    @property
    def options(self) -> bytes:
        """As tc sends them: an attribute whose numbers are all 0 is left out."""
        words = {kind: [0] * count for kind, count in _WORDS.items()}
        for name, how in self.parameters().items():
            kind, place = how.place
            words[kind][place] = how.number(getattr(self, name))
        rate, large = words[_RATE][0], b""
        if rate > MOST_U32:
            words[_RATE][0], large = MOST_U32, attribute(_RATE64, struct.pack("=Q", rate))
        options = _packed(words.pop(_HEAD)) + large
        for kind, numbers in words.items():
            if any(numbers):
                options += (attribute(_LOSS | NLA_F_NESTED, attribute(_LOSS_GE, _packed(numbers)))
                            if kind == _LOSS else attribute(kind, _packed(numbers)))
        if self.jitter_ms:
            options += attribute(_DELAY_DIST, _table())
        if self.random:
            options += attribute(_SEED, struct.pack("=Q", self.seed))
        return options

    def differences(self, options: bytes) -> Iterator[str]:
        """What a kernel reports otherwise than requested, a few words each."""
        reported = numbers_of(options)
        for name, how in self.parameters().items():
            requested = getattr(self, name)
            if reported[name] != how.number(requested):
                yield (f"{name} {round(reported[name] * how.units, 3):g},"
                       f" requested {requested:g}")


def numbers_of(options: bytes) -> dict[str, int]:
    """The kernel's number of each parameter, by field. Raises ValueError where it is no netem."""
    head_bytes = 4 * _WORDS[_HEAD]
    if len(options) < head_bytes:
        raise ValueError(f"{len(options)} bytes are no options of netem")
    held = attributes(options[head_bytes:])
    rate64 = held.get(_RATE64)
    held = {**held, _HEAD: options[:head_bytes],
            _LOSS: attributes(held.get(_LOSS, b"")).get(_LOSS_GE, b"")}
    words = {kind: struct.unpack(f"={count}I", held.get(kind) or bytes(4 * count))
             for kind, count in _WORDS.items()}
    numbers = {}
    for name, how in Netem.parameters().items():
        kind, place = how.place
        numbers[name] = words[kind][place]
    return {**numbers, "rate_kbps": struct.unpack("=Q", rate64)[0]} if rate64 else numbers


def _packed(words: list[int]) -> bytes:
    return struct.pack(f"={len(words)}I", *words)


def _table() -> bytes:
    """The table that tc sends for `distribution normal`. Raises OSError where there is none."""
    numbers = normal_distribution()
    return struct.pack(f"={len(numbers)}h", *numbers)
