"""The path of a trial: its links, and how published set-ups differ."""

from __future__ import annotations

from dataclasses import dataclass

from firstflight.net.link import Link, Path
from firstflight.parameters import NETWORK, PARAMETERS, default, of_subject

_ROWS = of_subject(NETWORK)
RANDOM = tuple(name for name, row in PARAMETERS.items() if row.random)  # random loss, and jitter
ARP_PROBES = 3  # unanswered ARP requests, after which a connection fails (mcast_probes)


@dataclass(frozen=True, kw_only=True)
class LinkParameters:
    """The bottleneck towards the clients, and what happens on the way to them.

    rtt_ms: propagation delay of both ways together.
    bandwidth_kbps: rate of the bottleneck; Ethernet headers count.
    queue_packets: limit of the bottleneck's queue. queue_from: what this limit was computed from,
        such as "50ms", "1bdp" or "auto"; "" where it was given in packets.
    qdisc: fifo, fq_codel or cake at the bottleneck; or fq at the server, with a fifo at the
        bottleneck.
    loss_percent: random loss towards the client. loss_burst: mean length of a burst of losses, in
        packets.
    jitter_ms: standard deviation of the delay towards the client, normally distributed; packets
        overtake each other.
    seed: of the trial's random numbers.
    """

    rtt_ms: float
    bandwidth_kbps: float
    queue_packets: int
    queue_from: str = ""
    loss_percent: float
    jitter_ms: float = default("jitter_ms")
    loss_burst: float = default("loss_burst")
    qdisc: str = default("qdisc")
    seed: int = 0

    @property
    def queue(self) -> str:
        """The queue's length as it was requested (net.queue_length.Length)."""
        return self.queue_from or str(self.queue_packets)

    @property
    def is_random(self) -> bool:
        """Whether random losses or jitter are requested."""
        return any(getattr(self, name) for name in RANDOM)

    @property
    def disorder(self) -> str:
        """Why packets may be reordered, or look lost to TCP; "" where they cannot."""
        return next((row.disorder for row in _ROWS
                     if row.disorder and getattr(self, row.field) != row.default), "")


@dataclass(frozen=True, kw_only=True)
class PathParameters(LinkParameters):
    """The links between client and server: queues of queue_packets both ways.

    uplink_kbps: rate of the bottleneck towards the server.
    drawn_rtt_ms, drawn_queue_packets: measured in place of rtt_ms and queue_packets, in a cell that
        is repeated with others near these (setting.draws).

    How published set-ups differ:

    htb_burst_bytes: HTB with this burst shapes instead of netem.
    integer_kbps: rates were divided by 1000 as integers; a link that would get 0 Mbit/s has this
        rate.
    arp_ms: the network is new, and an unanswered ARP request is repeated after this time.
    """

    uplink_kbps: float
    htb_burst_bytes: int = default("htb_burst_bytes")
    integer_kbps: float = default("integer_kbps")
    arp_ms: int = default("arp_ms")
    drawn_rtt_ms: float | None = None
    drawn_queue_packets: int | None = None

    @property
    def network(self) -> tuple[object, ...]:
        """All values of the network. Trials with equal values share a network."""
        return tuple(getattr(self, row.field) for row in _ROWS)

    @property
    def path(self) -> Path:
        """The path that is installed, judged and modelled.

        Each way has half of the RTT. Losses and jitter are towards the client. HTB shapes both
        ways.
        """
        queue = self.queue_packets
        if self.drawn_queue_packets is not None:
            queue = self.drawn_queue_packets
        return Path(
            Link(self.measured_rtt_ms / 2, self.down_kbps, queue,
                 loss_percent=self.loss_percent, loss_burst=self.loss_burst,
                 jitter_ms=self.jitter_ms, seed=self.seed, qdisc=self.qdisc,
                 htb_burst_bytes=self.htb_burst_bytes),
            Link(self.measured_rtt_ms / 2, self.up_kbps, queue,
                 htb_burst_bytes=self.htb_burst_bytes))

    @property
    def measured_rtt_ms(self) -> float:
        """The RTT of the path: the drawn one, if one was drawn."""
        return self.rtt_ms if self.drawn_rtt_ms is None else self.drawn_rtt_ms

    @property
    def down_kbps(self) -> float:
        """The rate of the link towards the client."""
        return _limited_kbps(self.bandwidth_kbps, self.integer_kbps)

    @property
    def up_kbps(self) -> float:
        """The rate of the link towards the server."""
        return _limited_kbps(self.uplink_kbps, self.integer_kbps)

    @property
    def is_computed(self) -> bool:
        """Whether what the network does to each packet can be computed."""
        return all(getattr(self, row.field) == row.default for row in _ROWS if not row.computed)

    @property
    def cannot_connect(self) -> bool:
        """Whether the client's ARP requests time out before the first answer arrives."""
        return 0 < ARP_PROBES * self.arp_ms < self.rtt_ms


def _limited_kbps(requested_kbps: float, integer_kbps: float) -> float:
    """The rate of a link, truncated to whole Mbit/s unless integer_kbps is 0.

    integer_kbps: the rate of a link that would get 0 Mbit/s.
    """
    if not integer_kbps:
        return requested_kbps
    return requested_kbps // 1000 * 1000 or integer_kbps
