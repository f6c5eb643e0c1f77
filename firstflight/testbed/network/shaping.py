"""The links of a network as what its ports carry (testbed/network/ports.py).

Data and pure functions; testbed/network/kernel.py sends them to a kernel. Each port of
the star carries two netem qdiscs, one subject each::

    root 1:   delay   half the RTT; its limit never drops
    child 2:  rate    the bottleneck: serialisation and a drop-tail queue

The outer qdisc hands a packet to the inner one when its delay has passed, so
a packet first propagates and then queues at the bottleneck. Frames are
counted with their 14 bytes of Ethernet header, as netem counts them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

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
    """Packets that a port of the star dropped: by its queue, and at random before it.

    The outer netem counts what it takes at random and also what the inner one
    refuses (netem_dequeue); that counts what finds its queue full.
    """
    counted = {qdisc.major: qdisc.drops for qdisc in installed}
    queue = counted.get(2, 0)
    return {"queue": queue, "random": counted[1] - queue}


def dropped_between(before: dict[str, dict[str, int]],
                    after: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """What each side's port dropped between two readings of its counters."""
    return {side: {why: count - before[port][why] for why, count in after[port].items()}
            for side, port in (("to_client", CLIENT_PORT), ("to_server", SERVER_PORT))}


def star_ports(path: Path) -> tuple[Port, Port]:
    """The switch's, to the client and to the server."""
    return (Port(CLIENT_PORT, _qdiscs(path.down)), Port(SERVER_PORT, _qdiscs(path.up)))


def _qdiscs(link: Link) -> tuple[Netem | Queue | HtbShaper, ...]:
    """What the port of one direction carries.

    HTB as Mininet's TCIntf has it, but for the place: on the switch, never on a host.
    """
    delay = Netem.delaying(link)
    if link.htb_burst_bytes:
        return (HtbShaper(link.rate_kbps, link.htb_burst_bytes),
                replace(delay, limit_packets=link.queue_packets))
    return (delay, *bottleneck_queue(link.qdisc, link.rate_kbps, link.queue_packets))


def server_interface(path: Path) -> Port:
    """The server's own."""
    return server_port("server-eth0", path.down.qdisc == "fq")


def remembers(path: Path) -> bool:
    """Whether it has to be installed for each trial, so that none depends on the one before.

    What is random is seeded anew, and what has a memory made anew.
    """
    return any(qdisc.random or qdisc.anew for port in (*star_ports(path), server_interface(path))
               for qdisc in port.qdiscs)


@dataclass(frozen=True)
class DumbbellLinks:
    """The links of the dumbbell.

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
        """The router's ports to the clients and to the servers."""
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


def server_port(interface: str, paced: bool) -> Port:
    """A server's own interface: fq paces what TCP sends; else nothing, as at first."""
    return Port(interface, (Queue("fq", ""),) if paced else ())


def bottleneck(rate_kbps: float, queue_packets: int) -> Netem:
    """A rate and a drop-tail queue."""
    return Netem(rate_kbps=rate_kbps, limit_packets=queue_packets)


def bottleneck_queue(kind: str, rate_kbps: float, packets: int) -> tuple[Netem | Queue, ...]:
    """A rate and a queue of a kind, "fq_codel" or "cake", drop-tail by any other name."""
    rate = bits(rate_kbps)
    if kind == "cake":
        # Bytes, since cake has no limit in packets; one host is not to have one share.
        memory_bytes = packets * FULL_FRAME_BYTES
        return (Queue("cake", f"bandwidth {rate}bit raw flows memlimit {memory_bytes}",
                      qdiscs.cake(rate // 8, memory_bytes),
                      (("rate", rate // 8), ("memory_bytes", memory_bytes),
                       ("flow_mode", qdiscs.CAKE_FLOWS), ("raw", 0))),)
    if kind == "fq_codel":
        # netem would keep the queue to itself: a token bucket of one packet leaves it to its
        # child.
        burst_ticks = FULL_FRAME_BYTES * SECOND // (rate // 8) // TICK_NS
        return (Queue("tbf", f"rate {rate}bit burst {FULL_FRAME_BYTES} limit {TBF_LIMIT_BYTES}",
                      qdiscs.tbf(rate // 8, FULL_FRAME_BYTES, TBF_LIMIT_BYTES),
                      (("rate", rate // 8), ("limit_bytes", TBF_LIMIT_BYTES),
                       ("burst_ticks", burst_ticks))),
                Queue("fq_codel", f"limit {packets} noecn", qdiscs.fq_codel(packets),
                      (("limit", packets), ("ecn", 0))))
    return (bottleneck(rate_kbps, packets),)
