"""Links say what each direction of a path does to packets, as plain data; netem does it.

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

MANAGED = ("fq_codel", "cake")  # disciplines whose queues drop before they are full
ENDLESS = "endless"  # a rate without a limit: JSON has no number for it
# netem counts the packets that it delays against its limit. So the limit of a netem that delays has
# to exceed any bandwidth-delay product that is ever requested.
DELAY_LIMIT_PACKETS = 1_000_000
_PERCENT = 100 / MOST_U32  # the kernel's unit of a probability
_TICK_MS = TICK_NS / 1e6
# Options that a kernel derives from others; `differences` does not compare them again.
_DERIVED = ("latency_ns", "jitter_ns", "has_loss_model", "seed")


@dataclass(frozen=True)
class Link:
    """One direction of a path."""

    delay_ms: float  # propagation
    rate_kbps: float  # of the bottleneck, Ethernet headers included; math.inf for no limit
    queue_packets: int  # limit of the bottleneck's queue
    loss_percent: float = 0.0  # random loss before the bottleneck
    loss_burst: float = 1.0  # mean number of packets lost in a row
    jitter_ms: float = 0.0  # standard deviation of the delay, which is normally distributed
    seed: int = 0  # of the random numbers
    # The bottleneck's queue: "fifo", "fq_codel" or "cake"; "fq" for a fifo after a sender that
    # paces; "netem" for one netem that delays and limits the rate.
    qdisc: str = "fifo"
    # If not 0, HTB with this burst limits the rate, and the queue is in the netem that delays.
    htb_burst_bytes: int = 0
    # From when to when all packets are lost, after the first packet of a trial.
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
        if rate_kbps == ENDLESS:
            rate_kbps = math.inf
        outage_ms = tuple(values.get("outage_ms", (0.0, 0.0)))
        return Link(**{**values, "rate_kbps": rate_kbps, "outage_ms": outage_ms})


@dataclass(frozen=True)
class Path:
    """The two links between a client and a server: down to the client, up to the server."""

    down: Link
    up: Link

    @staticmethod
    def between(rtt_ms: float, down_kbps: float, up_kbps: float, queue_packets: int) -> Path:
        """A path with half of the RTT each way, a rate each way, and equal queues."""
        return Path(down=Link(rtt_ms / 2, down_kbps, queue_packets),
                    up=Link(rtt_ms / 2, up_kbps, queue_packets))

    @property
    def rtt_ms(self) -> float:
        """Propagation both ways."""
        return self.down.delay_ms + self.up.delay_ms

    @property
    def lossless(self) -> Path:
        """The path with its delays and rates only: a transfer without losses depends on no more."""
        return Path(down=Link(self.down.delay_ms, self.down.rate_kbps, DELAY_LIMIT_PACKETS),
                    up=Link(self.up.delay_ms, self.up.rate_kbps, DELAY_LIMIT_PACKETS))

    def to_json(self) -> dict[str, dict[str, object]]:
        """Both links, as Link.to_json gives them; from_json reads them."""
        return {"down": self.down.to_json(), "up": self.up.to_json()}

    @staticmethod
    def from_json(values: Mapping[str, Mapping[str, Any]]) -> Path:
        """The path of which to_json gave these values."""
        return Path(Link.from_json(values["down"]), Link.from_json(values["up"]))


class NetemParameter(NamedTuple):
    """A parameter of netem, for tc and for a kernel."""

    name: str  # of the field of Netem
    value: float
    argument: str  # the parameter in tc's words, used if the value is not 0
    option: str  # the field of NetemOptions that holds `number`
    number: int  # the value in the kernel's unit
    kernel_unit: float = 1.0  # one of the kernel's units in the unit of `value`, for messages
    is_random: bool = False  # whether netem draws random numbers for a value that is not 0


@dataclass(frozen=True)
class Netem:
    """A netem qdisc: its parameters in the order in which tc takes them."""

    delay_ms: float = 0.0  # tc takes whole microseconds
    # Standard deviation of the delay, drawn from tc's table of the normal distribution.
    jitter_ms: float = 0.0
    rate_kbps: float = 0.0  # kernels take whole bytes a second
    limit_packets: int = DELAY_LIMIT_PACKETS  # of its queue
    loss_percent: float = 0.0  # the chance of each packet to be lost
    # Gilbert's model: the chance that a loss follows a packet that went through, and the chance
    # that a lost packet is the last of its burst.
    burst_begins_percent: float = 0.0
    burst_ends_percent: float = 0.0
    seed: int = 0  # of the random numbers; kernels before 6.6 ignore it

    kind = "netem"
    is_renewed = False  # between trials: a kernel can change a netem in place

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
        loss = self.loss_percent
        begins, ends = self.burst_begins_percent, self.burst_ends_percent

        return (
            NetemParameter("delay_ms", self.delay_ms, f"delay {delay_us}us",
                           option="latency", number=ticks(delay_us), kernel_unit=_TICK_MS),
            # tc takes it as part of the delay. A kernel does not report the distribution.
            NetemParameter("jitter_ms", self.jitter_ms, f"{jitter_us}us distribution normal",
                           option="jitter", number=ticks(jitter_us), kernel_unit=_TICK_MS,
                           is_random=True),
            NetemParameter("rate_kbps", self.rate_kbps, f"rate {rate}bit",
                           option="rate", number=rate // 8, kernel_unit=8 / 1000),
            NetemParameter("limit_packets", self.limit_packets, f"limit {self.limit_packets}",
                           option="limit", number=self.limit_packets),
            NetemParameter("loss_percent", loss, f"loss random {loss:g}%",
                           option="loss", number=probability(loss), kernel_unit=_PERCENT,
                           is_random=True),
            NetemParameter("burst_begins_percent", begins, f"loss gemodel {begins:g}%",
                           option="burst_begins", number=probability(begins), kernel_unit=_PERCENT,
                           is_random=True),
            NetemParameter("burst_ends_percent", ends, f"{ends:g}%",
                           option="burst_ends", number=probability(ends), kernel_unit=_PERCENT,
                           is_random=True))

    @cached_property
    def is_random(self) -> bool:
        """Whether netem draws random numbers."""
        return any(parameter.is_random and parameter.value for parameter in self.parameters)

    @property
    def arguments(self) -> str:
        """The words after `tc qdisc … netem`."""
        words = [parameter.argument for parameter in self.parameters if parameter.value]
        if self.is_random:
            words.append(f"seed {self.seed}")
        return " ".join(words)

    @property
    def options(self) -> bytes:
        """The options as tc sends them. Raises OSError, as NetemOptions.pack does."""
        numbers: dict[str, Any] = {
            parameter.option: parameter.number for parameter in self.parameters}
        return NetemOptions(**numbers, seed=self.seed).pack(self.is_random)

    def differences(self, options: bytes) -> Iterator[str]:
        """Where a kernel's report differs from the request, in a few words each."""
        reported = read_options(options)
        for parameter in self.parameters:
            number = getattr(reported, parameter.option)
            if number != parameter.number:
                yield (f"{parameter.name} {round(number * parameter.kernel_unit, 3):g},"
                       f" requested {parameter.value:g}")

        for name in _UNUSED:
            if value := getattr(reported, name):
                yield f"netem {name} {value}, requested none"

        # Kernels before 6.6 have no seed, and report none.
        if self.is_random and reported.seed not in (0, self.seed):
            yield f"seed {reported.seed}, requested {self.seed}"


# Options that Netem has no field for: a kernel has to report none of them.
_USED = {parameter.option for parameter in Netem().parameters}
_UNUSED = tuple(name for name in NetemOptions._fields if name not in {*_DERIVED, *_USED})
