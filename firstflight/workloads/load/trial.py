"""A load trial: Poisson traffic on the dumbbell under one setting, as plain data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from firstflight.base.errors import UsageError
from firstflight.base.quantity import Quantity
from firstflight.base.words import format_lossless
from firstflight.findings.quantities import QUANTITIES
from firstflight.net.headers import HEADER_BYTES, MSS, SYN_BYTES
from firstflight.parameters import default
from firstflight.setting.kernels import add_kernel, kernel_tag
from firstflight.setting.seeds import seed_for
from firstflight.testbed.messages import Job

_SHARE = Quantity("share", "a share of a distribution", lowest=0, highest=1)
SIZE_STEPS = 20_000  # of a distribution of sizes, for its mean

FIXED = "fixed"  # sizes: all responses alike
DROPTAIL = "droptail"


@dataclass(frozen=True)
class Clients:
    """Some of the clients: one host of the dumbbell.

    initcwnd: of the servers' routes to it, 0 before a window is given; share: of
        all arrivals.
    kbps: rate of its own link, 0 for as fast as can be. loss_percent: random
    loss on the way to it, whatever the load.
    """

    initcwnd: int
    share: float
    rtt_ms: float
    kbps: float = 0.0
    loss_percent: float = 0.0

    def __str__(self) -> str:
        link = f"/{format_lossless(self.kbps)}k" if self.kbps else ""
        loss = f"~{format_lossless(self.loss_percent)}%" if self.loss_percent else ""
        return (f"iw{self.initcwnd}*{format_lossless(self.share)}"
                f"@{format_lossless(self.rtt_ms)}ms{link}{loss}")

    @classmethod
    def parse(cls, text: str) -> Clients:
        """The reverse of str. Raises ValueError."""
        window, _, rest = text.removeprefix("iw").partition("*")
        share, _, network = rest.partition("@")
        rtt, _, link = network.partition("ms")
        kbps, _, loss = link.partition("~")
        return cls(int(window), float(share), float(rtt), float(kbps.strip("/k") or 0),
                   float(loss.strip("%") or 0))


@dataclass(frozen=True)
class LoadTrial:
    """What is requested of the network, TCP and the traffic for one run.

    part: the sweep it belongs to. window: the initial window, or "3+10" for a
        mix of them; clients: every host's, joined by +.
    bandwidth_kbps, queue: the bottleneck, and droptail, fq_codel or cake. queue_packets: the
        queue's limit. rtt_ms: of most clients, for reading.
    queue_bdp: the limit as a part of the bandwidth-delay product.
    load: offered, as a part of the bottleneck; connections: at once, by one
        arrival.
    response_bytes: each response's body, or the mean of `sizes`, the name of a
        distribution, or its points as "share:bytes;…" ("fixed" for none).
    initrwnd: at the clients (segments); paced: fq on the servers' interfaces.
    access_queue_packets: drop-tail limit of the clients' own links, where they
        have any. servers: how many hosts serve.
    duration_s: of arrivals; those that arrive in its first warmup_s or last
        cooldown_s load the link and do not count.
    repeat, seed: the seed is the repeat's, the same under every window.
    kernel, module_parameter: of the guest (setting.kernels).
    """

    scenario: str
    part: str
    window: str
    clients: str
    bandwidth_kbps: float
    rtt_ms: float
    queue_packets: int
    queue_bdp: float
    queue: str
    load: float
    connections: int
    response_bytes: int
    sizes: str
    initrwnd: int
    congestion_control: str
    paced: bool
    access_queue_packets: int
    servers: int
    duration_s: float
    warmup_s: float
    cooldown_s: float
    repeat: int
    seed: int
    kernel: str = default("kernel")
    module_parameter: str = default("module_parameter")
    PATTERNS: ClassVar[dict[str, str]] = {
        "window": r"\d{1,9}(\*[\d.e-]+)?(\+\d{1,9}(\*[\d.e-]+)?)*"}

    @property
    def id(self) -> str:
        """Names the run in files and messages; unique within a run folder."""
        queue = "" if self.queue == DROPTAIL else f"-{self.queue}"
        paced = "-paced" if self.paced else ""
        several = f"-x{self.connections}" if self.connections > 1 else ""
        return (f"{self.part}-rtt{format_lossless(self.rtt_ms)}"
                f"-bw{format_lossless(self.bandwidth_kbps)}-q{self.queue_packets}{queue}"
                f"-load{format_lossless(self.load)}-{self.response_bytes}B"
                f"{several}-{self.congestion_control}{paced}{kernel_tag(self)}-iw{self.window}"
                f"-{self.repeat}")

    @property
    def variant(self) -> str:
        """What sends and what queues: "cubic", "cubic paced by fq", "cubic through cake"."""
        queue = "" if self.queue == DROPTAIL else f" through {self.queue}"
        return f"{self.congestion_control}{' paced by fq' if self.paced else ''}{queue}"

    @property
    def hosts(self) -> tuple[Clients, ...]:
        return tuple(Clients.parse(text) for text in self.clients.split("+"))

    @property
    def counted_s(self) -> tuple[float, float]:
        """The time in which arrivals count: from, to."""
        return self.warmup_s, self.duration_s - self.cooldown_s

    @property
    def counted_span_s(self) -> float:
        """Seconds that count."""
        first_s, last_s = self.counted_s
        return last_s - first_s

    @property
    def expected_arrivals(self) -> tuple[float, float]:
        """Mean and standard deviation of the connections that arrive while it counts.

        Arrivals are Poisson; each brings `connections` at once.
        """
        mean = self.responses_per_s * self.counted_span_s
        return mean, math.sqrt(mean * self.connections)

    @property
    def responses_per_s(self) -> float:
        """The rate that offers the load: of responses, whatever an arrival brings."""
        return self.load * self.bandwidth_kbps * 125 / mean_wire_bytes(self.size_points)

    @property
    def size_points(self) -> tuple[tuple[float, float], ...]:
        """Points of the sizes' distribution function: (share, bytes)."""
        if self.sizes == FIXED:
            return ((1.0, float(self.response_bytes)),)
        return distribution(self.sizes)

    @property
    def deadline_s(self) -> float:
        """Seconds of the network's time after which the run is given up."""
        return self.duration_s + 120.0

    def job(self) -> Job:
        """The trial as the worker reads it."""
        per_s = self.responses_per_s / self.connections
        job: Job = {
            "kind": "load", "alone": True, "id": self.id, "deadline_s": self.deadline_s,
            "seed": self.seed,
            "network": {"bandwidth_kbps": self.bandwidth_kbps, "queue_packets": self.queue_packets,
                      "queue": self.queue, "access_queue_packets": self.access_queue_packets,
                      "client_rtt_ms": [host.rtt_ms for host in self.hosts],
                      "client_kbps": [host.kbps for host in self.hosts],
                      "client_loss_percent": [host.loss_percent for host in self.hosts],
                      "seed": self.seed},
            "servers": self.servers, "client_initcwnd": [host.initcwnd for host in self.hosts],
            "initrwnd": self.initrwnd, "congestion_control": self.congestion_control,
            "paced": self.paced, "duration_s": self.duration_s,
            "traffic": [{"arrivals_per_s": per_s * host.share, "connections": self.connections,
                         "sizes": [list(point) for point in self.size_points],
                         "seed": seed_for(self.seed, number)}
                        for number, host in enumerate(self.hosts)]}
        add_kernel(job, self)
        return job



def wire_bytes(response_bytes: float) -> float:
    """What one response takes of the bottleneck where nothing is lost, in bytes.

    Headers are counted, as the qdisc counts them: the response's own (HTTP),
    and those of Ethernet, IPv4 and TCP for every segment: the SYN-ACK, the
    data, the acknowledgement of the request, and that of the client's FIN
    together with the server's.
    """
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {response_bytes:.0f}\r\n\r\n"
    payload = response_bytes + len(head)
    segments = math.ceil(payload / MSS)
    return SYN_BYTES + payload + (segments + 2) * HEADER_BYTES


@cache
def distribution(name: str) -> tuple[tuple[float, float], ...]:
    """Points as they stand, or a service's response sizes (the paper's Figure 1).

    Raises UsageError.
    """
    if ":" in name:
        return points_of([[float(number) for number in point.split(":")]
                          for point in name.split(";")], "sizes")
    from firstflight.scenario.curves import size_curve
    curve = size_curve(name)
    return tuple(zip(curve.cdf, curve.values))


def points_of(value: object, where: str) -> tuple[tuple[float, float], ...]:
    """Points of a distribution function, [share, bytes] each, from share 0 to 1. Raises UsageError.
    """
    if not isinstance(value, list) or len(value) < 2 or not all(
            isinstance(pair, list) and len(pair) == 2 for pair in value):
        raise UsageError(f"{where} has to be a list of [share, bytes]")
    points = tuple((_SHARE.check(share, where),
                    QUANTITIES["response_bytes"].check(size, where)) for share, size in value)
    if (points[0][0], points[-1][0]) != (0, 1) or any(
            after < before for first, second in zip(points, points[1:])
            for before, after in zip(first, second)):
        raise UsageError(f"{where}: its shares have to rise from 0 to 1, and the sizes with them")
    return points


def sizes_text(points: tuple[tuple[float, float], ...]) -> str:
    """The reverse of `distribution` for points."""
    return ";".join(f"{format_lossless(share)}:{format_lossless(size)}" for share, size in points)


@cache
def mean_bytes(points: tuple[tuple[float, float], ...]) -> float:
    """The mean response of a distribution of sizes."""
    return sum(_even_sizes(points)) / len(_even_sizes(points))


@cache
def mean_wire_bytes(points: tuple[tuple[float, float], ...]) -> float:
    """The mean of wire_bytes over a distribution of sizes."""
    sizes = _even_sizes(points)
    return sum(map(wire_bytes, sizes)) / len(sizes)


@cache
def _even_sizes(points: tuple[tuple[float, float], ...]) -> tuple[float, ...]:
    """Sizes at even steps of their distribution, as load_client.py draws them."""
    if len(points) == 1:
        return (points[0][1],)
    import numpy
    shares, sizes = zip(*points)
    even = (numpy.arange(SIZE_STEPS) + 0.5) / SIZE_STEPS
    return tuple(map(float, numpy.maximum(numpy.rint(numpy.interp(even, shares, sizes)), 1)))
