"""Links: what each direction of a path does to packets, as plain data; and netem, which does it.

A trial says what its path is. The testbed installs it (testbed/network/shaping.py), the judge
computes what it does to each packet (wire/delivery), and the model of TCP runs over it (model/).
Each of the three makes its own numbers of it.

A new parameter of the network that netem has is a field of Link, a field of Netem and a line of its
`parameters`, and Netem.delaying hands it over; its option is in net/netem.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

from firstflight.net.netem import NetemOptions, read_options
from firstflight.net.tc import MOST_U32, TICK_NS, bits, probability, ticks

ENDLESS = "endless"  # a rate without a limit: JSON has no number for it
# netem counts the packets that it delays against its limit, so the limit of
# a delay has to exceed any bandwidth-delay product ever requested.
DELAY_LIMIT_PACKETS = 1_000_000
_PERCENT = 100 / MOST_U32  # the kernel's unit of a probability
_TICK_MS = TICK_NS / 1e6
# Options that follow from others.
_FOLLOWING = ("latency_ns", "jitter_ns", "has_loss_model", "seed")


@dataclass(frozen=True)
class Link:
    """One direction of a path.

    delay_ms: propagation; jitter_ms: its standard deviation, normally distributed.
    rate_kbps, queue_packets: of the bottleneck, Ethernet headers counted; math.inf for no limit.
    loss_percent: random loss before the bottleneck; loss_burst: how many packets in a row, on
        average. seed: of the random numbers.
    qdisc: the bottleneck's queue, "fifo", "fq_codel" or "cake"; "fq" is a fifo behind a sender
        that paces; "netem" delays and limits the rate in one.
    htb_burst_bytes: HTB with this burst shapes, and the delay has the queue's limit; 0 for netem.
    outage_ms: when all that leaves is lost, from and to, since the first packet of a trial.
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

    def to_json(self) -> dict[str, Any]:
        """Its fields that have no default, and those that are not at it."""
        values = {field.name: value for field in fields(self)
                  if (value := getattr(self, field.name)) != field.default}
        if math.isinf(self.rate_kbps):
            values["rate_kbps"] = ENDLESS
        return values

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> Link:
        """The link that to_json gave these values of. Raises TypeError if it gave others."""
        rate_kbps = values["rate_kbps"]
        return Link(**{**values, "rate_kbps": math.inf if rate_kbps == ENDLESS else rate_kbps,
                       "outage_ms": tuple(values.get("outage_ms", (0.0, 0.0)))})


@dataclass(frozen=True)
class Path:
    """What lies between a client and a server: down to the client, up to the server."""

    down: Link
    up: Link

    @staticmethod
    def between(rtt_ms: float, down_kbps: float, up_kbps: float, queue_packets: int) -> Path:
        """Half of the RTT each way, a rate each way, and as long a queue before either."""
        return Path(*(Link(rtt_ms / 2, kbps, queue_packets) for kbps in (down_kbps, up_kbps)))

    @property
    def rtt_ms(self) -> float:
        """Propagation both ways."""
        return self.down.delay_ms + self.up.delay_ms

    def to_json(self) -> dict[str, dict[str, Any]]:
        return {"down": self.down.to_json(), "up": self.up.to_json()}

    @staticmethod
    def from_json(values: Mapping[str, Mapping[str, Any]]) -> Path:
        return Path(Link.from_json(values["down"]), Link.from_json(values["up"]))


class NetemParameter(NamedTuple):
    """How a parameter of netem's is written for tc, and for a kernel.

    name: of its field, with its value. argument: tc's words, of a value that is not 0. option: of
    NetemOptions, which has the kernel's number. units: ours in one of the kernel's, for messages.
    random: whether netem then draws numbers, which are seeded.
    """

    name: str
    value: float
    argument: str
    option: str
    number: int
    units: float = 1.0
    random: bool = False


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

    @staticmethod
    def delaying(link: Link) -> Netem:
        """The delay of a link, and all that chance does on it.

        Bursts of losses follow Gilbert's model, which begins every transfer among packets that go
        through.
        """
        delay = Netem(link.delay_ms, link.jitter_ms, seed=link.seed)
        percent = link.loss_percent
        if link.loss_burst == 1 or not percent:
            return replace(delay, loss_percent=percent)
        ends = 100 / link.loss_burst
        return replace(delay, burst_ends_percent=ends,
                       burst_begins_percent=percent * ends / (100 - percent))

    @property
    def parameters(self) -> tuple[NetemParameter, ...]:
        """All but the seed."""
        delay_us, jitter_us = round(self.delay_ms * 1000), round(self.jitter_ms * 1000)
        rate = bits(self.rate_kbps)
        loss, begins, ends = (self.loss_percent, self.burst_begins_percent,
                              self.burst_ends_percent)
        return (
            NetemParameter("delay_ms", self.delay_ms, f"delay {delay_us}us", "latency",
                           ticks(delay_us), _TICK_MS),
            # tc has it with the delay. A kernel does not report the distribution.
            NetemParameter("jitter_ms", self.jitter_ms, f"{jitter_us}us distribution normal",
                           "jitter", ticks(jitter_us), _TICK_MS, random=True),
            NetemParameter("rate_kbps", self.rate_kbps, f"rate {rate}bit", "rate", rate // 8,
                           8 / 1000),
            NetemParameter("limit_packets", self.limit_packets, f"limit {self.limit_packets}",
                           "limit", self.limit_packets),
            NetemParameter("loss_percent", loss, f"loss random {loss:g}%", "loss",
                           probability(loss), _PERCENT, random=True),
            NetemParameter("burst_begins_percent", begins, f"loss gemodel {begins:g}%",
                           "burst_begins", probability(begins), _PERCENT, random=True),
            NetemParameter("burst_ends_percent", ends, f"{ends:g}%", "burst_ends",
                           probability(ends), _PERCENT, random=True))

    @property
    def random(self) -> bool:
        return any(parameter.random and parameter.value for parameter in self.parameters)

    @property
    def arguments(self) -> str:
        words = [parameter.argument for parameter in self.parameters if parameter.value]
        return " ".join([*words, f"seed {self.seed}"] if self.random else words)

    @property
    def options(self) -> bytes:
        """Its options as tc sends them. Raises OSError as NetemOptions.packed."""
        numbers: dict[str, Any] = {
            parameter.option: parameter.number for parameter in self.parameters}
        return NetemOptions(**numbers, seed=self.seed).packed(self.random)

    def differences(self, options: bytes) -> Iterator[str]:
        """What a kernel reports otherwise than requested, a few words each."""
        reported = numbers_of(options)
        for parameter in self.parameters:
            if reported[parameter.name] != parameter.number:
                yield (f"{parameter.name} {round(reported[parameter.name] * parameter.units, 3):g},"
                       f" requested {parameter.value:g}")
        held = read_options(options)
        set_here = {parameter.option for parameter in self.parameters}
        for name in NetemOptions._fields:
            if name not in (*set_here, *_FOLLOWING) and (value := getattr(held, name)):
                yield f"netem {name} {value}, requested none"
        # Kernels before 6.6 have no seed, and report none.
        if self.random and held.seed not in (0, self.seed):
            yield f"seed {held.seed}, requested {self.seed}"


def numbers_of(options: bytes) -> dict[str, int]:
    """The kernel's number of each parameter, by field. Raises ValueError if it is no netem."""
    held = read_options(options)
    return {parameter.name: getattr(held, parameter.option) for parameter in Netem().parameters}
