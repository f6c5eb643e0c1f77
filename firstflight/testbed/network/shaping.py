"""Turns the links of a network into qdiscs of its ports (testbed/network/ports.py).

testbed/network/kernel.py sends them to a kernel. Each port of the star has two netem qdiscs::

    root 1:   delay   half the RTT; its limit never drops
    child 2:  rate    the bottleneck: serialisation and a drop-tail queue

The outer qdisc hands a packet to the inner one when its delay has passed, so that a packet first
propagates and then queues at the bottleneck. netem counts frames with their 14 bytes of Ethernet
header.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from firstflight.net import qdiscs
from firstflight.net.link import Link, Netem, Path
from firstflight.net.qdiscs import InstalledQdisc
from firstflight.net.tc import FULL_FRAME_BYTES, TICK_NS, bits
from firstflight.testbed.network.ports import HtbShaper, Port, Queue

CLIENT_PORT = "s1-eth1"  # the star's switch's port to the client: the bottleneck
SERVER_PORT = "s1-eth2"  # to the server: the way back
BOTTLENECK, WAY_BACK = "router-eth0", "router-eth1"  # the dumbbell's router's, to its two sides

TBF_LIMIT_BYTES = 1_000_000_000  # never reached: its child has the queue
SECOND = 1_000_000_000  # ns


def dropped(installed: Iterable[InstalledQdisc]) -> dict[str, int]:
    """Packets that a port of the star dropped: by its queue, and at random before that.

    The inner netem counts packets that find its queue full. The outer one counts random losses,
    and also the packets that the inner one refuses (netem_dequeue).
    """
    counted = {qdisc.major: qdisc.drops for qdisc in installed}
    queue = counted.get(2, 0)
    return {"queue": queue, "random": counted[1] - queue}


def dropped_between(before: dict[str, dict[str, int]],
                    after: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """Packets that each side's port dropped between two readings of its counters, by cause."""
    dropped = {}
    for side, port in (("to_client", CLIENT_PORT), ("to_server", SERVER_PORT)):
        dropped[side] = {why: count - before[port][why] for why, count in after[port].items()}
    return dropped


def star_ports(path: Path) -> tuple[Port, Port]:
    """The switch's ports to the client and to the server."""
    return (Port(CLIENT_PORT, _qdiscs(path.down)), Port(SERVER_PORT, _qdiscs(path.up)))


def _qdiscs(link: Link) -> tuple[Netem | Queue | HtbShaper, ...]:
    """The qdiscs of the port of one direction.

    HTB is as Mininet's TCIntf installs it, but on the switch and never on a host.
    """
    delay = Netem.delaying(link)
    if link.htb_burst_bytes:
        return (HtbShaper(link.rate_kbps, link.htb_burst_bytes),
                replace(delay, limit_packets=link.queue_packets))
    return (delay, *bottleneck_queue(link.qdisc, link.rate_kbps, link.queue_packets))


def server_interface(path: Path) -> Port:
    """The server's own interface."""
    return server_port("server-eth0", path.down.qdisc == "fq")


def remembers(path: Path) -> bool:
    """Whether the path has to be installed again for each trial, so that trials are independent.

    Random qdiscs get their seed again, and qdiscs with a memory are replaced.
    """
    ports = *star_ports(path), server_interface(path)
    installed = chain.from_iterable(port.qdiscs for port in ports)
    return any(qdisc.is_random or qdisc.is_renewed for qdisc in installed)


@dataclass(frozen=True)
class ClientLink:
    """What is on the way to one client of the dumbbell."""

    # Propagation both ways together. The two ways may differ, since the way to the servers is the
    # same for all clients.
    rtt_ms: float
    kbps: float = 0.0  # the rate of its own port, 0 for no limit
    loss_percent: float = 0.0  # this and the next two as of a Link
    loss_burst: float = 1.0
    jitter_ms: float = 0.0


@dataclass(frozen=True)
class DumbbellLinks:
    """The links of the dumbbell."""

    bandwidth_kbps: float  # of the bottleneck
    queue_packets: int  # the bottleneck's drop-tail limit
    # "fifo"; "fq_codel" or "cake" in its place, with their own defaults for the target and
    # queue_packets as the limit; or "fq" for a fifo behind servers that pace.
    qdisc: str
    clients: tuple[ClientLink, ...]  # what is on the way to each
    access_queue_packets: int  # the drop-tail limit of the clients' own ports
    seed: int  # of losses and jitter

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> DumbbellLinks:
        """The links of a job's network. Raises TypeError for an unknown field."""
        others = {name: value for name, value in values.items() if name != "clients"}
        clients = tuple(ClientLink(**client) for client in values["clients"])
        return DumbbellLinks(clients=clients, **others)

    @property
    def is_paced(self) -> bool:
        """Whether the servers pace what they send."""
        return self.qdisc == "fq"

    @property
    def back_ms(self) -> float:
        """Delay of packets to the servers: half of the smallest RTT."""
        return min(client.rtt_ms for client in self.clients) / 2

    def router_ports(self) -> tuple[Port, Port]:
        """The router's ports to the clients and to the servers."""
        queue = bottleneck_queue(self.qdisc, self.bandwidth_kbps, self.queue_packets)
        return Port(BOTTLENECK, queue), Port(WAY_BACK, (Netem(delay_ms=self.back_ms),))

    def client_ports(self) -> list[Port]:
        """The ports of the clients' switch to each client."""
        ports = []
        for number, client in enumerate(self.clients):
            link = Link(
                client.rtt_ms - self.back_ms, client.kbps, self.access_queue_packets,
                loss_percent=client.loss_percent, loss_burst=client.loss_burst,
                jitter_ms=client.jitter_ms, seed=self.seed + number)
            installed = [Netem.delaying(link)]
            if client.kbps:
                installed.append(bottleneck(client.kbps, self.access_queue_packets))
            # The switch's port 1 goes to the router.
            ports.append(Port(f"s1-eth{number + 2}", tuple(installed)))
        return ports


def server_port(interface: str, paced: bool) -> Port:
    """A server's own interface: with fq if TCP is to be paced, else without a qdisc."""
    return Port(interface, (Queue("fq", ""),) if paced else ())


def bottleneck(rate_kbps: float, queue_packets: int) -> Netem:
    """A rate and a drop-tail queue."""
    return Netem(rate_kbps=rate_kbps, limit_packets=queue_packets)


def bottleneck_queue(kind: str, rate_kbps: float, packets: int) -> tuple[Netem | Queue, ...]:
    """A rate and a queue: "fq_codel" or "cake", drop-tail for any other kind."""
    rate = bits(rate_kbps)
    if kind == "cake":
        # cake limits bytes, not packets. "flows": hosts do not share equally, connections do.
        memory_bytes = packets * FULL_FRAME_BYTES
        cake = Queue(
            "cake", f"bandwidth {rate}bit raw flows memlimit {memory_bytes}",
            options=qdiscs.cake(rate // 8, memory_bytes),
            requested=(("rate", rate // 8), ("memory_bytes", memory_bytes),
                       ("flow_mode", qdiscs.CAKE_FLOWS), ("raw", 0)))
        return (cake,)

    if kind == "fq_codel":
        # netem would hold the queue itself; a token bucket of one packet leaves it to its child.
        burst_ticks = FULL_FRAME_BYTES * SECOND // (rate // 8) // TICK_NS
        shaper = Queue(
            "tbf", f"rate {rate}bit burst {FULL_FRAME_BYTES} limit {TBF_LIMIT_BYTES}",
            options=qdiscs.tbf(rate // 8, FULL_FRAME_BYTES, TBF_LIMIT_BYTES),
            requested=(("rate", rate // 8), ("limit_bytes", TBF_LIMIT_BYTES),
                       ("burst_ticks", burst_ticks)))
        queue = Queue(
            "fq_codel", f"limit {packets} noecn", options=qdiscs.fq_codel(packets),
            requested=(("limit", packets), ("ecn", 0)))
        return shaper, queue

    return (bottleneck(rate_kbps, packets),)
