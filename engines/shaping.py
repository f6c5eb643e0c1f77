"""What a network's ports carry: shapes, the `tc` commands for them, and what tc must tell back.

Data and pure functions; engines/kernel.py says them to tc. Each port of the
star carries two netem qdiscs, one subject each::

    root 1:   delay   half the RTT; its limit never drops
    child 2:  rate    the bottleneck: serialisation and a drop-tail queue

The outer qdisc hands a packet to the inner one when its delay has passed, so
a packet first propagates and then queues at the bottleneck. Frames are
counted with their 14 bytes of Ethernet header, as netem counts them.

A new parameter of the network is a field of Netem, whose `_parameter` tells how
tc takes it and tells it, a field of Shape, and its place in Shape.ports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

CLIENT_PORT = "s1-eth1"  # the star's switch's port to the client: the bottleneck
SERVER_PORT = "s1-eth2"  # to the server: the way back
BOTTLENECK, WAY_BACK = "router-eth0", "router-eth1"  # the dumbbell's router's, to its two sides

# netem counts the packets that it delays against its limit, so the limit of
# a delay has to exceed any bandwidth-delay product ever asked for.
DELAY_LIMIT_PACKETS = 1_000_000
FRAME_BYTES = 1514  # a full one, of Ethernet


@dataclass(frozen=True)
class Parameter:
    """How tc takes a parameter of netem's, and how it tells it.

    argument: the words for a value; none are said for 0, netem's default.
    place: of the value in an `options` of `tc -json qdisc show`; absent for 0.
    scale: our units in one of tc's.
    rounding, relative_rounding: the most that tc and the kernel change a
        value by, and the most as a part of it; the larger holds.
    random: whether netem then draws numbers, which are to be seeded.
    """

    argument: Callable[[float], str]
    place: tuple[str, ...]
    scale: float = 1.0
    rounding: float = 0.0
    relative_rounding: float = 0.0
    random: bool = False

    def told(self, options: dict[str, Any]) -> float:
        """The value that tc tells, 0 where it tells none."""
        value: Any = options
        for name in self.place:
            value = value.get(name, {})
        return float(value or 0.0) * self.scale

    def differs(self, asked: float, told: float) -> bool:
        return abs(told - asked) > max(self.rounding, self.relative_rounding * asked)


def _parameter(default: Any, argument: Callable[[Any], str], *place: str, **how: Any) -> Any:
    """A field of Netem; `how`: the other fields of Parameter."""
    return field(default=default, metadata={"parameter": Parameter(argument, place, **how)})


@dataclass(frozen=True)
class Netem:
    """A netem qdisc: its parameters in the order in which tc takes them."""

    # tc takes delays in whole microseconds and prints them cut off, long ones with six digits.
    delay_ms: float = _parameter(0.0, lambda ms: f"delay {round(ms * 1000)}us", "delay", "delay",
                                 scale=1000, rounding=0.0025, relative_rounding=1e-5)
    # A part of the delay's words. The kernel does not tell the distribution back.
    jitter_ms: float = _parameter(0.0, lambda ms: f"{round(ms * 1000)}us distribution normal",
                                  "delay", "jitter", scale=1000, rounding=0.0025,
                                  relative_rounding=1e-5, random=True)
    # Kernels take whole bytes a second.
    rate_kbps: float = _parameter(0.0, lambda kbps: f"rate {round(kbps * 1000)}bit",
                                  "rate", "rate", scale=8 / 1000, rounding=0.008)
    limit_packets: int = _parameter(DELAY_LIMIT_PACKETS, lambda packets: f"limit {packets}",
                                    "limit")
    loss_percent: float = _parameter(0.0, lambda percent: f"loss random {percent:g}%",
                                     "loss-random", "loss", scale=100, rounding=0.001,
                                     random=True)
    # Gilbert's model: of the packets that go through, how many are followed by a loss; of those
    # that are lost, how many by one that goes through.
    burst_begins_percent: float = _parameter(0.0, lambda percent: f"loss gemodel {percent:g}%",
                                             "loss-gemodel", "p", scale=100, rounding=0.001,
                                             random=True)
    burst_ends_percent: float = _parameter(0.0, lambda percent: f"{percent:g}%",
                                           "loss-gemodel", "r", scale=100, rounding=0.001,
                                           random=True)
    seed: int = 0  # of what is random; tc has no word for it, see engines/netem_seed.py

    kind = "netem"

    @staticmethod
    def parameters() -> dict[str, Parameter]:
        """By field; all but the seed."""
        return {each.name: each.metadata["parameter"] for each in fields(Netem) if each.metadata}

    @property
    def random(self) -> bool:
        return any(how.random and getattr(self, name) for name, how in self.parameters().items())

    @property
    def arguments(self) -> str:
        return " ".join(how.argument(getattr(self, name))
                        for name, how in self.parameters().items() if getattr(self, name))

    def differences(self, options: dict[str, Any]) -> Iterator[str]:
        """What tc tells otherwise than it was asked, a few words each."""
        for name, how in self.parameters().items():
            asked, told = getattr(self, name), how.told(options)
            if how.differs(asked, told):
                yield f"{name} {told:g}, asked {asked:g}"


@dataclass(frozen=True)
class Queue:
    """Another qdisc, of which only the kind is read back."""

    kind: str
    arguments: str
    random = False

    def differences(self, options: dict[str, Any]) -> Iterator[str]:
        return iter(())


@dataclass(frozen=True)
class Port:
    """What one port carries: qdisc 1: at the root, 2: in it, and so on."""

    name: str
    qdiscs: tuple[Netem | Queue, ...]

    @property
    def commands(self) -> list[str]:
        """For `tc -batch`."""
        places = ["root", *(f"parent {number}:1" for number in range(1, len(self.qdiscs)))]
        return [f"qdisc replace dev {self.name} {place} handle {number}:"
                f" {qdisc.kind} {qdisc.arguments}"
                for number, (place, qdisc) in enumerate(zip(places, self.qdiscs), start=1)]

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(qdisc.kind for qdisc in self.qdiscs)

    @property
    def question(self) -> str:
        return f"qdisc show dev {self.name}"

    def differences(self, rows: list[dict[str, Any]]) -> list[str]:
        """What the answer to the question tells otherwise than it was asked; empty if nothing."""
        told = {row["handle"]: row for row in rows}
        found: list[str] = []
        for number, qdisc in enumerate(self.qdiscs, start=1):
            row = told.get(f"{number}:", {})
            found += (qdisc.differences(row.get("options", {})) if row.get("kind") == qdisc.kind
                      else [f"qdisc {number}: {row.get('kind', 'none')}, asked {qdisc.kind}"])
        return found


def dropped(rows: list[dict[str, Any]]) -> dict[str, int]:
    """Packets that a port of the star dropped: by its queue, and at random before it.

    rows: as tc tells a port's qdiscs. The outer netem counts what it takes at
    random and also what the inner one refuses (netem_dequeue); that counts
    what finds its queue full.
    """
    counted = {row["handle"]: int(row["drops"]) for row in rows}
    queue = counted.get("2:", 0)
    return {"queue": queue, "random": counted["1:"] - queue}


def dropped_between(before: dict[str, dict[str, int]],
                    after: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """What each side's port dropped from one look at its counters to the next, which go on."""
    return {side: {why: count - before[port][why] for why, count in after[port].items()}
            for side, port in (("to_client", CLIENT_PORT), ("to_server", SERVER_PORT))}


@dataclass(frozen=True)
class Shape:
    """One setting of the star's links.

    rtt_ms: propagation delay of both ways together.
    bandwidth_kbps, uplink_kbps: towards the client, towards the server.
    queue_packets: drop-tail limit of either bottleneck.
    loss_percent: random loss towards the client, before the bottleneck, so many
        packets in a row on average (loss_burst); seed makes it repeat.
    jitter_ms: standard deviation of the delay towards the client.
    qdisc: "fifo", or "fq_codel" or "cake" in the place of the queue to the
        client; or "fq": a fifo there, and the server's own interface paces.
    """

    rtt_ms: float
    bandwidth_kbps: float
    uplink_kbps: float
    queue_packets: int
    loss_percent: float = 0.0
    jitter_ms: float = 0.0
    loss_burst: float = 1.0
    qdisc: str = "fifo"
    seed: int = 0

    def ports(self) -> tuple[Port, Port]:
        """The switch's, to the client and to the server."""
        to_client = losing(Netem(delay_ms=self.rtt_ms / 2, jitter_ms=self.jitter_ms,
                                 seed=self.seed), self.loss_percent, self.loss_burst)
        to_server = Netem(delay_ms=self.rtt_ms / 2)
        return (Port(CLIENT_PORT, (to_client, *bottleneck_queue(self.qdisc, self.bandwidth_kbps,
                                                                self.queue_packets))),
                Port(SERVER_PORT, (to_server, bottleneck(self.uplink_kbps, self.queue_packets))))

    @property
    def paced(self) -> bool:
        return self.qdisc == "fq"


@dataclass(frozen=True)
class DumbbellShape:
    """One setting of the dumbbell.

    bandwidth_kbps, queue_packets: the bottleneck and its drop-tail limit.
    queue: "droptail", or "fq_codel" or "cake" in its place, with their own
        defaults for the target and queue_packets as the limit.
    client_rtt_ms: by client, propagation both ways together; halves may
        differ: the way to the servers is the same for all.
    client_kbps: by client, the rate of its own port, 0 for as fast as can be;
        access_queue_packets: the drop-tail limit of such a port.
    client_loss_percent: by client, random loss on the way to it; seed makes it
        repeat.
    """

    bandwidth_kbps: float
    queue_packets: int
    queue: str
    client_rtt_ms: tuple[float, ...]
    client_kbps: tuple[float, ...]
    access_queue_packets: int
    client_loss_percent: tuple[float, ...]
    seed: int

    @property
    def back_ms(self) -> float:
        """Delay of what goes to the servers: half of the smallest RTT."""
        return min(self.client_rtt_ms) / 2

    def router_ports(self) -> tuple[Port, Port]:
        """To the clients and to the servers."""
        return (Port(BOTTLENECK, bottleneck_queue(self.queue, self.bandwidth_kbps,
                                                  self.queue_packets)),
                Port(WAY_BACK, (Netem(delay_ms=self.back_ms),)))

    def client_ports(self) -> list[Port]:
        """The client switch's, to each client."""
        ports = []
        for number, (rtt_ms, kbps, loss_percent) in enumerate(zip(
                self.client_rtt_ms, self.client_kbps, self.client_loss_percent)):
            delay = Netem(delay_ms=rtt_ms - self.back_ms, loss_percent=loss_percent,
                          seed=self.seed + number)
            access = (bottleneck(kbps, self.access_queue_packets),) if kbps else ()
            # The switch's port 1 goes to the router.
            ports.append(Port(f"s1-eth{number + 2}", (delay, *access)))
        return ports


def bottleneck(rate_kbps: float, queue_packets: int) -> Netem:
    """A rate and a drop-tail queue."""
    return Netem(rate_kbps=rate_kbps, limit_packets=queue_packets)


def losing(netem: Netem, percent: float, burst: float) -> Netem:
    """With random loss, so many packets in a row on average.

    Bursts follow Gilbert's model, which begins every transfer among packets that go through.
    """
    if burst == 1 or not percent:
        return replace(netem, loss_percent=percent)
    ends = 100 / burst
    return replace(netem, burst_begins_percent=percent * ends / (100 - percent),
                   burst_ends_percent=ends)


def bottleneck_queue(kind: str, rate_kbps: float, packets: int) -> tuple[Netem | Queue, ...]:
    """A rate and a queue of a kind, "fq_codel" or "cake", drop-tail by any other name."""
    rate = f"{round(rate_kbps * 1000)}bit"
    if kind == "cake":
        # Bytes, since cake has no limit in packets; one host is not to have one share.
        return (Queue("cake", f"bandwidth {rate} raw flows memlimit {packets * FRAME_BYTES}"),)
    if kind == "fq_codel":
        # netem would keep the queue to itself: a token bucket of one packet leaves it to its
        # child.
        return (Queue("tbf", f"rate {rate} burst {FRAME_BYTES} limit 1000000000"),
                Queue("fq_codel", f"limit {packets} noecn"))
    return (bottleneck(rate_kbps, packets),)
