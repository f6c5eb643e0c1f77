"""The path of a trial: its links, and what published set-ups did otherwise to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from firstflight.findings.quantities import AUTO
from firstflight.net.link import Path
from firstflight.study.fetches.scenario.parameter import UNSAID, network, switch

ARP_PROBES = 3  # mcast_probes: after as many answers that do not come a connection fails
OVERTAKEN = "packets that jitter let overtake each other look lost (RACK, duplicate ACKs)"


@dataclass(frozen=True, kw_only=True)
class PathParameters:
    """The links between client and server.

    rtt_ms: propagation delay, both ways together.
    bandwidth_kbps, uplink_kbps: bottleneck towards the client, towards the
        server, in kbit/s, Ethernet headers counted.
    queue_packets: limit of either bottleneck; queue_from: what this limit follows from,
        as "50ms", "1bdp" or "auto", "" for itself. qdisc: fifo, fq_codel or cake at the
        bottleneck towards the client, or fq at the server with a fifo there.
    loss_percent: random loss towards the client; loss_burst: so many packets in
        a row, on average.
    jitter_ms: standard deviation of the delay towards the client, normal
        distribution; packets overtake each other.
    seed: of the trial's random numbers.

    What published set-ups did otherwise:

    htb_burst_bytes: HTB with this burst shapes, not netem.
    integer_kbps: rates in kbit/s are divided by 1000 as integers; a link that
        gets 0 Mbit/s has this rate.
    arp_ms: the network is new, and who asks for an address does again after so long.
    """

    rtt_ms: float = network("rtt_ms", "rtt", required=True)
    bandwidth_kbps: float = network("bandwidth_kbps", "bw", required=True)
    uplink_kbps: float = network("uplink_kbps", "up", required=True)
    queue_packets: int = network("queue_packets", "q", required=True)
    queue_from: str = field(default="", metadata={UNSAID: AUTO})
    loss_percent: float = network("loss_percent", "loss", required=True, random=True)
    jitter_ms: float = network("jitter_ms", "jitter", random=True, disorder=OVERTAKEN)
    loss_burst: float = network("loss_burst", "burst")
    qdisc: str = network("qdisc", "", modelled=False)
    htb_burst_bytes: int = network("htb_burst_bytes", "htb", modelled=False)
    integer_kbps: float = switch("integer_kbps", "integer")
    arp_ms: int = switch("arp_ms", "arp", modelled=False)
    seed: int = 0

    @property
    def network(self) -> tuple[Any, ...]:
        """Its values in the order of NETWORK; trials that have them all alike share a network."""
        return tuple(getattr(self, name) for name in NETWORK)

    @property
    def path(self) -> Path:
        """What is installed, judged and modelled: half the RTT each way, all of chance downwards.

        HTB shapes both ways.
        """
        path = Path.between(self.rtt_ms, self.down_kbps, self.up_kbps, self.queue_packets)
        return Path(
            replace(path.down, loss_percent=self.loss_percent, loss_burst=self.loss_burst,
                    jitter_ms=self.jitter_ms, seed=self.seed, qdisc=self.qdisc,
                    htb_burst_bytes=self.htb_burst_bytes),
            replace(path.up, htb_burst_bytes=self.htb_burst_bytes))

    @property
    def down_kbps(self) -> float:
        """The rate of the link towards the client."""
        return _limited_kbps(self.bandwidth_kbps, self.integer_kbps)

    @property
    def up_kbps(self) -> float:
        """The rate of the link towards the server."""
        return _limited_kbps(self.uplink_kbps, self.integer_kbps)

    @property
    def queue(self) -> str:
        """The queue's length as it was requested (findings.quantities.Length)."""
        return self.queue_from or str(self.queue_packets)

    @property
    def is_random(self) -> bool:
        """Whether chance decides on its network."""
        return is_random(dict(zip(NETWORK, self.network)))

    @property
    def is_computed(self) -> bool:
        """Whether what the network does to each packet can be computed."""
        return all(getattr(self, column.name) == column.default for column in SHAPE
                   if not column.metadata["computed"])

    @property
    def disorder(self) -> str:
        """Why packets may come out of order, or look lost to TCP; "" where none can."""
        return next((column.metadata["disorder"] for column in SHAPE
                     if column.metadata["disorder"]
                     and getattr(self, column.name) != column.default), "")

    @property
    def cannot_connect(self) -> bool:
        """Whether the client gives up asking for the server's address before the answer comes."""
        return 0 < ARP_PROBES * self.arp_ms < self.rtt_ms


SHAPE = tuple(column for column in fields(PathParameters) if "shape" in column.metadata)
NETWORK = tuple(column.name for column in SHAPE)
RANDOM = tuple(column.name for column in SHAPE if column.metadata["random"])


def is_random(values: Mapping[str, object]) -> bool:
    """Whether chance decides on a network of these values, by name."""
    return any(values.get(name) for name in RANDOM)


def _limited_kbps(requested_kbps: float, integer_kbps: float) -> float:
    """The rate of a link where whole Mbit/s are made of kbit/s; 0 Mbit/s limit nothing.

    integer_kbps: what a link has then, 0 where no such division is made.
    """
    if not integer_kbps:
        return requested_kbps
    return requested_kbps // 1000 * 1000 or integer_kbps
