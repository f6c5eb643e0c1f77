"""Links: what each direction of a path does to packets, as plain data; and netem, which does it.

A trial has a path of two links. The testbed installs it (testbed/network/shaping.py), the judge
computes what it does to each packet (wire/delivery), and the model of TCP runs over it (model/).
Each of the three derives its own numbers from the same Link.

A new parameter that netem supports needs a field of Link, a field of Netem, a line of its
`parameters`, and an argument in `Netem.delaying`; its option is in net/netem.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

from firstflight.net.netem import NetemOptions, read_options
from firstflight.net.tc import MOST_U32, TICK_NS, bits, probability, ticks

MANAGED = ("fq_codel", "cake")  # queues that drop before they are full
ENDLESS = "endless"  # a rate without a limit: JSON has no number for it
# netem counts the packets that it delays against its limit, so the limit of
# a delay has to exceed any bandwidth-delay product ever requested.
DELAY_LIMIT_PACKETS = 1_000_000
_PERCENT = 100 / MOST_U32  # the kernel's unit of a probability
_TICK_MS = TICK_NS / 1e6
# Options that a kernel derives from others; `differences` does not compare them again.
_DERIVED = ("latency_ns", "jitter_ns", "has_loss_model", "seed")


@dataclass(frozen=True)
class Link:
    """One direction of a path.

    delay_ms: propagation. jitter_ms: standard deviation of the delay, which is normally
        distributed.
    rate_kbps: rate of the bottleneck, Ethernet headers included; math.inf for no limit.
    queue_packets: limit of the bottleneck's queue.
    loss_percent: random loss before the bottleneck. loss_burst: mean number of packets lost in a
        row. seed: of the random numbers.
    qdisc: the bottleneck's queue: "fifo", "fq_codel" or "cake"; "fq" for a fifo behind a sender
        that paces; "netem" for one netem that delays and limits the rate.
    htb_burst_bytes: if not 0, HTB with this burst limits the rate, and the limit of the queue is
        that of the delay's netem.
    outage_ms: when all packets are lost: from, to, since the first packet of a trial.
    """

    delay_ms: float
    rate_kbps: float
    queue_packets: int
    loss_percent: float = 0.0
    loss_burst: float = 1.0
    jitter_ms: float = 0.0
    seed: int = 0
    qdisc: str = "fifo"
    htb_burst_bytes: int = 0
    outage_ms: tuple[float, float] = (0.0, 0.0)

    def to_json(self) -> dict[str, object]:
        """The fields whose value is not the default; from_json reads them."""
        values: dict[str, object] = {
            field.name: value for field in fields(self)
            if (value := getattr(self, field.name)) != field.default}
        if math.isinf(self.rate_kbps):
            values["rate_kbps"] = ENDLESS
        return values

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> Link:
        """The link of which to_json gave these values. Raises TypeError for an unknown field."""
        rate_kbps = values["rate_kbps"]
        return Link(**{**values, "rate_kbps": math.inf if rate_kbps == ENDLESS else rate_kbps,
                       "outage_ms": tuple(values.get("outage_ms", (0.0, 0.0)))})


@dataclass(frozen=True)
class Path:
    """The two links between a client and a server: down to the client, up to the server."""

    down: Link
    up: Link

    @staticmethod
    def between(rtt_ms: float, down_kbps: float, up_kbps: float, queue_packets: int) -> Path:
        """A path with half of the RTT each way, a rate each way, and equal queues."""
        return Path(*(Link(rtt_ms / 2, kbps, queue_packets) for kbps in (down_kbps, up_kbps)))

    @property
    def rtt_ms(self) -> float:
        """Propagation both ways."""
        return self.down.delay_ms + self.up.delay_ms

    @property
    def lossless(self) -> Path:
        """Its delays and rates, all that decides on a transfer while nothing is lost."""
        down, up = (Link(link.delay_ms, link.rate_kbps, DELAY_LIMIT_PACKETS)
                    for link in (self.down, self.up))
        return Path(down, up)

    def to_json(self) -> dict[str, dict[str, object]]:
        return {"down": self.down.to_json(), "up": self.up.to_json()}

    @staticmethod
    def from_json(values: Mapping[str, Mapping[str, Any]]) -> Path:
        return Path(Link.from_json(values["down"]), Link.from_json(values["up"]))


class NetemParameter(NamedTuple):
    """A parameter of netem, for tc and for a kernel."""

    name: str  # of the field of Netem
    value: float
    argument: str  # tc's words for it, used if the value is not 0
    option: str  # the field of NetemOptions that holds `number`
    number: int  # the value in the kernel's unit
    units: float = 1.0  # the kernel's unit in ours, for messages
    random: bool = False  # whether netem then draws random numbers


@dataclass(frozen=True)
class Netem:
    """A netem qdisc: its parameters in the order in which tc takes them.

    delay_ms: tc takes whole microseconds. jitter_ms: standard deviation of the delay, drawn from
    tc's table of the normal distribution. rate_kbps: kernels take whole bytes a second.
    limit_packets: of its queue. loss_percent: the chance of each packet to be lost.
    burst_begins_percent, burst_ends_percent: Gilbert's model: the chance that a loss follows a
    packet that went through, and the chance that a lost packet is the last of its burst.
    seed: of the random numbers; kernels before 6.6 ignore it.
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
    anew = False  # a kernel can change it in place

    @staticmethod
    def delaying(link: Link) -> Netem:
        """The netem that gives a link its delay, jitter and losses.

        Bursts of losses follow Gilbert's model; every transfer begins in its lossless state.
        """
        delay = Netem(link.delay_ms, link.jitter_ms, seed=link.seed)
        percent = link.loss_percent
        if link.loss_burst == 1 or not percent:
            return replace(delay, loss_percent=percent)
        ends = 100 / link.loss_burst
        return replace(delay, burst_ends_percent=ends,
                       burst_begins_percent=percent * ends / (100 - percent))

    @cached_property
    def parameters(self) -> tuple[NetemParameter, ...]:
        """All parameters except the seed."""
        delay_us, jitter_us = round(self.delay_ms * 1000), round(self.jitter_ms * 1000)
        rate = bits(self.rate_kbps)
        loss, begins, ends = (self.loss_percent, self.burst_begins_percent,
                              self.burst_ends_percent)
        return (
            NetemParameter("delay_ms", self.delay_ms, f"delay {delay_us}us",
                           option="latency", number=ticks(delay_us), units=_TICK_MS),
            # tc takes it as part of the delay. A kernel does not report the distribution.
            NetemParameter("jitter_ms", self.jitter_ms, f"{jitter_us}us distribution normal",
                           option="jitter", number=ticks(jitter_us), units=_TICK_MS, random=True),
            NetemParameter("rate_kbps", self.rate_kbps, f"rate {rate}bit",
                           option="rate", number=rate // 8, units=8 / 1000),
            NetemParameter("limit_packets", self.limit_packets, f"limit {self.limit_packets}",
                           option="limit", number=self.limit_packets),
            NetemParameter("loss_percent", loss, f"loss random {loss:g}%",
                           option="loss", number=probability(loss), units=_PERCENT, random=True),
            NetemParameter("burst_begins_percent", begins, f"loss gemodel {begins:g}%",
                           option="burst_begins", number=probability(begins), units=_PERCENT,
                           random=True),
            NetemParameter("burst_ends_percent", ends, f"{ends:g}%",
                           option="burst_ends", number=probability(ends), units=_PERCENT,
                           random=True))

    @cached_property
    def random(self) -> bool:
        """Whether it draws random numbers."""
        return any(parameter.random and parameter.value for parameter in self.parameters)

    @property
    def arguments(self) -> str:
        """The words behind `tc qdisc … netem`."""
        words = [parameter.argument for parameter in self.parameters if parameter.value]
        return " ".join([*words, f"seed {self.seed}"] if self.random else words)

    @property
    def options(self) -> bytes:
        """The options as tc sends them. Raises OSError, as NetemOptions.packed does."""
        numbers: dict[str, Any] = {
            parameter.option: parameter.number for parameter in self.parameters}
        return NetemOptions(**numbers, seed=self.seed).packed(self.random)

    def differences(self, options: bytes) -> Iterator[str]:
        """Where a kernel's report differs from the request, in a few words each."""
        held = read_options(options)
        for parameter in self.parameters:
            if (reported := getattr(held, parameter.option)) != parameter.number:
                yield (f"{parameter.name} {round(reported * parameter.units, 3):g},"
                       f" requested {parameter.value:g}")
        for name in _UNUSED:
            if value := getattr(held, name):
                yield f"netem {name} {value}, requested none"
        # Kernels before 6.6 have no seed, and report none.
        if self.random and held.seed not in (0, self.seed):
            yield f"seed {held.seed}, requested {self.seed}"


# Options that Netem has no field for: a kernel has to report none of them.
_USED = {parameter.option for parameter in Netem().parameters}
_UNUSED = tuple(name for name in NetemOptions._fields if name not in {*_DERIVED, *_USED})
