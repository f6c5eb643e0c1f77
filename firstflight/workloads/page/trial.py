"""The trial of a page: one setting and one window, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

from firstflight.base.words import format_lossless
from firstflight.net.link import Path
from firstflight.net.timeouts import longest_s
from firstflight.parameters import default
from firstflight.setting.kernels import add_kernel, kernel_tag
from firstflight.testbed.messages import Job
from firstflight.workloads.page.objects import PATTERN, PageObject, parse

BUILTIN, NGINX = "builtin", "nginx"
HTTP_1, HTTP_2 = "1.1", "2"


@dataclass(frozen=True)
class PageTrial:
    """One page under one setting.

    part: the sweep. page: the name of the page. objects: its objects as text
    (workloads.page.objects). http: the version of HTTP. connections: how many the client opens to
    a host, 1 over HTTP/2. rtt_ms: without load. queue_packets: the drop-tail limit of either
    bottleneck. drawn_rtt_ms, drawn_queue_packets: measured in place of these, in a setting that is
    repeated with others near them (setting.draws). loss_percent: random loss towards the client.
    repeat: the number of the repeat. seed: of what is random, the same under every window.
    initcwnd, initrwnd: route metrics of server and client, in segments. kernel, module_parameter:
    of the guest (setting.kernels).
    """

    scenario: str
    part: str
    page: str
    rtt_ms: float
    bandwidth_kbps: float
    uplink_kbps: float
    queue_packets: int
    loss_percent: float
    http: str
    connections: int
    server: str
    initcwnd: int
    initrwnd: int
    congestion_control: str
    repeat: int
    seed: int
    objects: str
    kernel: str = default("kernel")
    module_parameter: str = default("module_parameter")
    drawn_rtt_ms: float | None = None
    drawn_queue_packets: int | None = None
    PATTERNS: ClassVar[dict[str, str]] = {"objects": PATTERN}

    @property
    def id(self) -> str:
        """Names the trial in files and messages; unique within a scenario."""
        loss = f"-loss{format_lossless(self.loss_percent)}" if self.loss_percent else ""
        uplink = (f"-up{format_lossless(self.uplink_kbps)}"
                  if self.uplink_kbps != self.bandwidth_kbps else "")
        drawn = (f"-drawn{format_lossless(self.drawn_rtt_ms)}" if self.drawn_rtt_ms is not None
                 else "")
        return (f"{self.part}-{self.page}-rtt{format_lossless(self.rtt_ms)}"
                f"-bw{format_lossless(self.bandwidth_kbps)}"
                f"{uplink}-q{self.queue_packets}{loss}-http{self.http}-c{self.connections}"
                f"-{self.server}-{self.congestion_control}-rw{self.initrwnd}{kernel_tag(self)}"
                f"-iw{self.initcwnd}-{self.repeat}{drawn}")

    @property
    def requested(self) -> tuple[PageObject, ...]:
        """The objects to fetch. Raises ValueError where a stored row has no page."""
        return _parsed(self.objects)

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.requested)

    @property
    def host_count(self) -> int:
        return 1 + max(each.host for each in self.requested)

    @property
    def paces(self) -> bool:
        """Whether the server's TCP paces: a timer spreads what it sends."""
        return self.congestion_control.startswith("bbr")

    @property
    def most_connections(self) -> int:
        """How many connections the client may open to a host."""
        return 1 if self.http == HTTP_2 else self.connections

    @property
    def deadline_s(self) -> float:
        """Seconds of the network's time that the page may take, retransmissions included."""
        waits_ms = sum(each.parse_ms + each.think_ms for each in self.requested)
        rounds = 40 + 4 * len(self.requested)
        sending_s = self.size_bytes * 8 / (self.bandwidth_kbps * 1000)
        return (rounds * self.rtt_ms / 1000 + 5 * sending_s + waits_ms / 1000
                + longest_s(self.size_bytes, self.rtt_ms))

    @property
    def path(self) -> Path:
        """The path that is installed and judged: half the RTT each way, losses to the client."""
        rtt_ms = self.rtt_ms if self.drawn_rtt_ms is None else self.drawn_rtt_ms
        queue = (self.queue_packets if self.drawn_queue_packets is None
                 else self.drawn_queue_packets)
        path = Path.between(rtt_ms, self.bandwidth_kbps, self.uplink_kbps, queue)
        return replace(path, down=replace(path.down, loss_percent=self.loss_percent,
                                          seed=self.seed))

    def job(self) -> Job:
        """The trial as the worker reads it."""
        job: Job = {
            "kind": "page", "id": self.id, "deadline_s": self.deadline_s,
            "network": self.path.to_json(), "congestion_control": self.congestion_control,
            "initcwnd": self.initcwnd, "initrwnd": self.initrwnd, "client": "libcurl",
            "http": self.http, "connections": self.most_connections,
            "objects": [[each.size_bytes, each.named_by, each.at_byte, each.parse_ms,
                         each.think_ms, each.host] for each in self.requested]}
        if self.seed:
            job["seed"] = self.seed
        add_kernel(job, self)
        if self.server != BUILTIN:
            job["server"] = self.server
            job["paths"] = sorted({f"/{each.size_bytes}" for each in self.requested})
        return job


@lru_cache(maxsize=64)
def _parsed(text: str) -> tuple[PageObject, ...]:
    return parse(text)
