"""What ports of a network carry: qdiscs as data, tc's words for them, and what must be told back.

A new parameter of the network is a field of Netem, whose `_parameter` tells tc's
words for it and the kernel's number, a field of Shape, and its place in
Shape.ports (engines/network/shaping.py); its bytes are in engines/network/qdiscs.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any

from engines.network import qdiscs
from engines.network.qdiscs import Told

# netem counts the packets that it delays against its limit, so the limit of
# a delay has to exceed any bandwidth-delay product ever asked for.
DELAY_LIMIT_PACKETS = 1_000_000
_PERCENT = 100 / (2**32 - 1)  # the kernel's unit of a probability


@dataclass(frozen=True)
class Parameter:
    """How a parameter of netem's is said to tc, and to a kernel.

    argument: tc's words for a value; none are said for 0, netem's default.
    place: its name in engines.network.qdiscs.netem. number: what a kernel is told, and
        tells back. units: ours in one of the kernel's, for messages.
    random: whether netem then draws numbers, which are to be seeded.
    """

    argument: Callable[[float], str]
    place: str
    number: Callable[[float], int]
    units: float = 1.0
    random: bool = False


def _parameter(default: Any, argument: Callable[[Any], str], place: str,
               number: Callable[[Any], int], **how: Any) -> Any:
    """A field of Netem; `how`: the other fields of Parameter."""
    return field(default=default, metadata={"parameter": Parameter(argument, place, number,
                                                                   **how)})


def _ticks(ms: float) -> int:
    return qdiscs.ticks(round(ms * 1000))


def _share(percent: float) -> int:
    return qdiscs.share(float(f"{percent:g}"))


def bits(kbps: float) -> int:
    """As tc is told a rate."""
    return round(kbps * 1000)


@dataclass(frozen=True)
class Netem:
    """A netem qdisc: its parameters in the order in which tc takes them."""

    # tc takes whole microseconds.
    delay_ms: float = _parameter(0.0, lambda ms: f"delay {round(ms * 1000)}us", "latency", _ticks,
                                 units=64e-6)
    # A part of the delay's words. A kernel does not tell the distribution back.
    jitter_ms: float = _parameter(0.0, lambda ms: f"{round(ms * 1000)}us distribution normal",
                                  "jitter", _ticks, units=64e-6, random=True)
    # Kernels take whole bytes a second.
    rate_kbps: float = _parameter(0.0, lambda kbps: f"rate {bits(kbps)}bit", "rate",
                                  lambda kbps: bits(kbps) // 8, units=8 / 1000)
    limit_packets: int = _parameter(DELAY_LIMIT_PACKETS, lambda packets: f"limit {packets}",
                                    "limit", int)
    loss_percent: float = _parameter(0.0, lambda percent: f"loss random {percent:g}%", "loss",
                                     _share, units=_PERCENT, random=True)
    # Gilbert's model: of the packets that go through, how many are followed by a loss; of those
    # that are lost, how many by one that goes through.
    burst_begins_percent: float = _parameter(0.0, lambda percent: f"loss gemodel {percent:g}%",
                                             "burst_begins", _share, units=_PERCENT, random=True)
    burst_ends_percent: float = _parameter(0.0, lambda percent: f"{percent:g}%", "burst_ends",
                                           _share, units=_PERCENT, random=True)
    seed: int = 0  # of what is random

    kind = "netem"

    @staticmethod
    @cache
    def parameters() -> dict[str, Parameter]:
        """By field; all but the seed."""
        return {each.name: each.metadata["parameter"] for each in fields(Netem) if each.metadata}

    anew = False  # can be changed as it stands

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
        values = {how.place: how.number(getattr(self, name))
                  for name, how in self.parameters().items()}
        return qdiscs.netem(values, self.seed if self.random else None)

    def differences(self, options: bytes) -> Iterator[str]:
        """What a kernel tells otherwise than requested, a few words each."""
        told = qdiscs.netem_values(options)
        for name, how in self.parameters().items():
            requested = getattr(self, name)
            if told[how.place] != how.number(requested):
                yield f"{name} {round(told[how.place] * how.units, 3):g}, requested {requested:g}"


@dataclass(frozen=True)
class Queue:
    """Another qdisc, of which only the kind is read back."""

    kind: str
    arguments: str
    options: bytes = b""
    random = False
    anew = True  # its memory outlives a transfer: when it dropped last, what a flow may send

    def differences(self, options: bytes) -> Iterator[str]:
        return iter(())


@dataclass(frozen=True)
class HtbShaper:
    """A hierarchical token bucket with one class, as Mininet's TCIntf installs it.

    It sends a packet at once and makes the next ones wait, so what follows a pause
    meets a bucket that is full: two packets leave unshaped.
    """

    rate_kbps: float
    burst_bytes: int

    kind = "htb"
    arguments = "default 1"
    options = qdiscs.HTB_GLOBAL
    random = False
    anew = True  # a kernel changes nothing of one that is there (htb_qdisc_ops)

    @property
    def class_arguments(self) -> str:
        return (f"rate {bits(self.rate_kbps)}bit burst {self.burst_bytes}b"
                f" cburst {qdiscs.HTB_CEILING_BURST_BYTES}b")

    @property
    def class_options(self) -> bytes:
        return qdiscs.htb_class(bits(self.rate_kbps) // 8, self.burst_bytes)

    def differences(self, options: bytes) -> Iterator[str]:
        """What a kernel tells otherwise of the class."""
        if not options:
            yield "htb has no class, requested one"
            return
        told, requested = qdiscs.htb_values(options), qdiscs.htb_values(self.class_options)
        for name, value in requested.items():
            if told[name] != value:
                yield f"htb {name} {told[name]}, requested {value}"


@dataclass(frozen=True)
class Port:
    """What one port carries: qdisc 1: at the root, 2: in it, and so on."""

    name: str
    qdiscs: tuple[Netem | Queue | HtbShaper, ...]

    @property
    def commands(self) -> list[str]:
        """What `requests` says, in tc's words (`seed` has been one since iproute2 6.6)."""
        places = ["root", *(f"parent {number}:1" for number in range(1, len(self.qdiscs)))]
        commands = []
        for number, (place, qdisc) in enumerate(zip(places, self.qdiscs), start=1):
            commands.append(f"tc qdisc replace dev {self.name} {place} handle {number}:"
                            f" {qdisc.kind} {qdisc.arguments}".rstrip())
            if isinstance(qdisc, HtbShaper):
                commands.append(f"tc class replace dev {self.name} parent {number}: classid"
                                f" {number}:1 htb {qdisc.class_arguments}")
        return commands

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(qdisc.kind for qdisc in self.qdiscs)

    def requests(self, interface: int) -> list[tuple[int, bytes]]:
        """For netlink, each with its type. interface: the port's number."""
        said = []
        for number, qdisc in enumerate(self.qdiscs, start=1):
            said.append((qdiscs.RTM_NEWQDISC, qdiscs.request(interface, number, qdisc.kind,
                                                             qdisc.options)))
            if isinstance(qdisc, HtbShaper):
                said.append((qdiscs.RTM_NEWTCLASS, qdiscs.class_request(
                    interface, number, qdisc.kind, qdisc.class_options)))
        return said

    @property
    def has_classes(self) -> bool:
        return any(isinstance(qdisc, HtbShaper) for qdisc in self.qdiscs)

    def differences(self, told: Iterable[Told]) -> list[str]:
        """What a kernel tells of the port otherwise than requested; empty if nothing."""
        by_number = {each.handle: each for each in told}
        found: list[str] = []
        for number, qdisc in enumerate(self.qdiscs, start=1):
            each = by_number.get(number)
            found += (qdisc.differences(each.options) if each and each.kind == qdisc.kind
                      else [f"qdisc {number}: {each.kind if each else 'none'},"
                            f" requested {qdisc.kind}"])
        if not self.qdiscs and by_number.keys() - {0}:
            found.append(f"{len(by_number)} qdiscs, requested none")
        return found
