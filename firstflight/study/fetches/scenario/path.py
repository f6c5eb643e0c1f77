"""The path of a trial: its links, and what published set-ups did otherwise to them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from firstflight.net.link import Path
from firstflight.parameters import NETWORK, PARAMETERS, default, of_subject

_ROWS = of_subject(NETWORK)
RANDOM = tuple(name for name, row in PARAMETERS.items() if row.random)
ARP_PROBES = 3  # mcast_probes: after as many answers that do not come a connection fails


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

    rtt_ms: float
    bandwidth_kbps: float
    uplink_kbps: float
    queue_packets: int
    queue_from: str = ""
    loss_percent: float
    jitter_ms: float = default("jitter_ms")
    loss_burst: float = default("loss_burst")
    qdisc: str = default("qdisc")
    htb_burst_bytes: int = default("htb_burst_bytes")
    integer_kbps: float = default("integer_kbps")
    arp_ms: int = default("arp_ms")
    seed: int = 0

    @property
    def network(self) -> tuple[Any, ...]:
        """Its values; trials that have them all alike share a network."""
        return tuple(getattr(self, row.field) for row in _ROWS)

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
        """The queue's length as it was requested (net.queue_length.Length)."""
        return self.queue_from or str(self.queue_packets)

    @property
    def is_random(self) -> bool:
        """Whether chance decides on its network."""
        return any(getattr(self, name) for name in RANDOM)

    @property
    def is_computed(self) -> bool:
        """Whether what the network does to each packet can be computed."""
        return all(getattr(self, row.field) == row.default for row in _ROWS if not row.computed)

    @property
    def disorder(self) -> str:
        """Why packets may come out of order, or look lost to TCP; "" where none can."""
        return next((row.disorder for row in _ROWS
                     if row.disorder and getattr(self, row.field) != row.default), "")

    @property
    def cannot_connect(self) -> bool:
        """Whether the client gives up asking for the server's address before the answer comes."""
        return 0 < ARP_PROBES * self.arp_ms < self.rtt_ms


def _limited_kbps(requested_kbps: float, integer_kbps: float) -> float:
    """The rate of a link where whole Mbit/s are made of kbit/s; 0 Mbit/s limit nothing.

    integer_kbps: what a link has then, 0 where no such division is made.
    """
    if not integer_kbps:
        return requested_kbps
    return requested_kbps // 1000 * 1000 or integer_kbps
