"""LoadTrial: Poisson traffic on the dumbbell under one setting, as plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from firstflight.base.words import format_lossless
from firstflight.parameters import NETWORK, TCP
from firstflight.setting.seeds import seed_for
from firstflight.setting.setting import LinkSetting
from firstflight.setting.tags import tags_of
from firstflight.testbed.messages import Job
from firstflight.workloads.load.traffic import (ClientHost, Curve, MixPart, SizePoint, Window,
                                                mean_wire_bytes, named_curve, single)

# Values of LoadTrial.sizes besides names of distributions: all responses have one size, or their
# distribution is given by its points.
FIXED, POINTS = "fixed", "points"
# Values of qdisc: drop-tail at the bottleneck, and fq at the servers, where it paces.
FIFO, PACED = "fifo", "fq"

# The parameters of a setting that the dumbbell has, and sweeps have lists of.
OF_SETTING = ("rtt_ms", "bandwidth_kbps", "queue", "qdisc", "loss_percent", "loss_burst",
              "jitter_ms", "initrwnd", "congestion_control", "mss", "kernel", "module_parameter",
              "sysctl")


@dataclass(frozen=True, kw_only=True)
class LoadTrial(LinkSetting):
    """One run of a load: the parameters of the bottleneck and TCP, and the traffic.

    The setting's rtt_ms, loss_percent, loss_burst and jitter_ms hold for the client hosts that have
    none of their own.

    part: the sweep it belongs to.
    window: the name of the initial window or of the mix.
    mix: its parts; () for one window, initcwnd. Of a mix, initcwnd is the largest.
    clients: all client hosts.
    queue_bdp: the queue's length as a part of the bandwidth-delay product, None where it was
        requested otherwise (queue_from).
    load: offered, as a part of the bottleneck;
    connections: at once, by one arrival.
    response_bytes: each response's body, or the mean of `sizes`: the name of a distribution,
        "points", or "fixed" for none.
    size_points: the points of the distribution, where it is given by these.
    access_queue_packets: drop-tail limit of the clients' own links, where they have any.
    servers: how many hosts serve.
    duration_s: of arrivals; those that arrive in its first warmup_s or last cooldown_s load the
        link and do not count.
    repeat, seed: the seed is the repeat's, the same under every window.
    """

    COLUMNS: ClassVar[tuple[str, ...]] = (
        "scenario", "part", "window", "clients", "bandwidth_kbps", "rtt_ms", "queue_packets",
        "queue_bdp", "qdisc", "load", "connections", "response_bytes", "sizes", "initrwnd",
        "congestion_control", "access_queue_packets", "servers", "duration_s", "warmup_s",
        "cooldown_s", "repeat", "seed", "kernel", "module_parameter")
    PATTERNS: ClassVar[dict[str, str]] = {
        "window": r"\d{1,9}(\*[\d.e-]+)?(\+\d{1,9}(\*[\d.e-]+)?)*"}

    scenario: str
    part: str
    window: str
    mix: tuple[MixPart, ...] = ()
    clients: tuple[ClientHost, ...]
    queue_bdp: float | None = None
    load: float
    connections: int
    response_bytes: int
    sizes: str
    size_points: tuple[SizePoint, ...] = ()
    access_queue_packets: int
    servers: int
    duration_s: float
    warmup_s: float
    cooldown_s: float
    repeat: int

    @property
    def id(self) -> str:
        """The run's name in files and messages. No other run of the folder has it."""
        queue_from = f"-{self.queue_from}" if self.queue_from else ""
        several = f"-x{self.connections}" if self.connections > 1 else ""
        return (f"{self.part}-rtt{format_lossless(self.rtt_ms)}"
                f"-bw{format_lossless(self.bandwidth_kbps)}-q{self.queue_packets}{queue_from}"
                f"{tags_of(self, NETWORK)}-load{format_lossless(self.load)}"
                f"-{self.response_bytes}B{several}-{self.congestion_control}-rw{self.initrwnd}"
                f"{tags_of(self, TCP)}-iw{self.window}-{self.repeat}")

    @property
    def variant(self) -> str:
        """The sender and the queue, such as "cubic", "cubic paced by fq", "cubic through cake"."""
        if self.qdisc == PACED:
            return f"{self.congestion_control} paced by fq"
        queue = "" if self.qdisc == FIFO else f" through {self.qdisc}"
        return f"{self.congestion_control}{queue}"

    @property
    def requested_window(self) -> Window:
        """The initial window, or the mix."""
        return Window(self.mix) if self.mix else single(self.initcwnd)

    @property
    def counted_s(self) -> tuple[float, float]:
        """The two ends of the time in which arrivals count, in seconds after the run's begin."""
        return self.warmup_s, self.duration_s - self.cooldown_s

    @property
    def counted_span_s(self) -> float:
        """How long the time is in which arrivals count."""
        first_s, last_s = self.counted_s
        return last_s - first_s

    @property
    def expected_arrivals(self) -> tuple[float, float]:
        """The mean and the standard deviation of the number of connections that count.

        Arrivals are Poisson, and each brings `connections` at once.
        """
        mean = self.responses_per_s * self.counted_span_s
        return mean, math.sqrt(mean * self.connections)

    @property
    def responses_per_s(self) -> float:
        """How many responses a second offer the load."""
        bottleneck_bytes_per_s = self.bandwidth_kbps * 125
        return self.load * bottleneck_bytes_per_s / mean_wire_bytes(self.size_curve, self.mss)

    @property
    def size_curve(self) -> Curve:
        """The distribution function of sizes. A single point stands for equal responses."""
        if self.sizes == FIXED:
            return ((1.0, float(self.response_bytes)),)
        if self.sizes == POINTS:
            return tuple((point.share, point.size_bytes) for point in self.size_points)
        return named_curve(self.sizes)

    @property
    def most_bytes(self) -> int:
        """The size of the body of the largest response."""
        _, most_bytes = self.size_curve[-1]
        return math.ceil(most_bytes)

    @property
    def deadline_s(self) -> float:
        """After how many seconds of the network's time the run is given up."""
        return self.duration_s + 120.0

    @property
    def network_job(self) -> Mapping[str, Any]:
        """The dumbbell's links, as testbed.network.shaping.DumbbellLinks.from_json reads them."""
        hosts = [{"rtt_ms": host.rtt_ms, "kbps": host.bandwidth_kbps or 0.0,
                  "loss_percent": host.loss_percent, "loss_burst": host.loss_burst,
                  "jitter_ms": host.jitter_ms} for host in self.clients]
        return {"bandwidth_kbps": self.bandwidth_kbps, "queue_packets": self.queue_packets,
                "qdisc": self.qdisc, "access_queue_packets": self.access_queue_packets,
                "clients": hosts, "seed": self.seed}

    def with_buffers(self, sysctls: Mapping[str, str]) -> dict[str, str]:
        """The sysctls of both hosts. A load needs no larger buffers.

        At first a client offers the window that fits in the pinned tcp_rmem: 44 segments of 1460
        bytes.
        """
        return self.host_settings(sysctls)

    def job(self) -> Job:
        """The trial as the job that a worker reads."""
        arrivals_per_s = self.responses_per_s / self.connections
        sizes = [list(point) for point in self.size_curve]

        job = self.job_over("load", self.id, self.deadline_s)
        job["alone"] = True
        job["seed"] = self.seed
        job["servers"] = self.servers
        job["duration_s"] = self.duration_s
        job["client_initcwnd"] = [host.initcwnd for host in self.clients]
        job["traffic"] = [
            {"arrivals_per_s": arrivals_per_s * host.share, "connections": self.connections,
             "sizes": sizes, "seed": seed_for(self.seed, number)}
            for number, host in enumerate(self.clients)]
        return job
