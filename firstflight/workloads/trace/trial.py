"""The trial of a trace: one connection under one TCP, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from firstflight.base.words import format_lossless
from firstflight.net.buffers import RECEIVE_BUFFERS
from firstflight.net.headers import TIMESTAMP_BYTES
from firstflight.net.link import Path
from firstflight.net.timeouts import longest_s
from firstflight.parameters import NETWORK, TCP
from firstflight.setting.limits import WHAT_IF
from firstflight.setting.setting import NetworkSetting
from firstflight.setting.tags import tags_of
from firstflight.testbed.messages import Job
from firstflight.workloads.trace.schedule import Request, Write

# Whether the kernel validates windows by its own rules (RFC 2861).
VALIDATION_SYSCTL = "net.ipv4.tcp_slow_start_after_idle"

# The first columns of trials.csv; the other parameters of network and TCP follow.
_FIRST = (
    "scenario", "trace", "tcp", "congestion_control", "validation", "rtt_ms", "bandwidth_kbps",
    "uplink_kbps", "queue_packets", "initcwnd", "mss", "receive_window", "rto_min_ms", "quickack",
    "nagle", "sample_ms", "outage_from_ms", "outage_to_ms", "requests", "writes", "think_s",
    "may_lose", "sysctls", "repeat")


# From runs on two cores: wall time of a trace in a guest, and of each of its segments with the
# samples of the window around the segment.
GUEST_TRACE_S = 0.03
GUEST_SEGMENT_S = 0.0001

# A sysctl with its value, as a text that is parsed further.
_SETTING = r"net\.[\w.]{1,80}=[\w,.:-]{1,64}"


@dataclass(frozen=True, kw_only=True)
class TraceTrial(NetworkSetting):
    """One connection under one TCP: the parameters of network and TCP, and what follows.

    trace: its name.
    tcp: the TCP's name.
    validation: whether Linux validates windows by its own rules (RFC 2861).
    receive_window: the most that the client ever offers, in segments; 0 for what its buffers
        allow. It begins with initrwnd.
    rto_min_ms: least retransmission timeout, 0 for the kernel's (200 ms).
    quickack: whether the client acknowledges every segment at once.
    nagle: whether Nagle's algorithm is on.
    sample_ms: the time between two samples of the window.
    outage_from_ms, outage_to_ms: when everything to the client is lost; both 0 for never.
    requests: the requests on the connection, in order.
    writes: when the server writes the parts of the response to a single request; () for all at
        once.
    think_s: the think time that trials vary, None without one.
    may_lose: whether the queue may overflow.
    sysctls: set at the server besides validation, "name=value" separated by spaces.
    repeat: 1, 2, … for repeated measurements.
    what_if: the limits of another trial that this one lifts to find a reason (setting.limits); ""
        for requested trials.
    """

    COLUMNS: ClassVar[tuple[str, ...]] = _FIRST
    PATTERNS: ClassVar[dict[str, str]] = {
        "sysctls": rf"({_SETTING}( {_SETTING})*)?", "what_if": WHAT_IF}
    scenario: str
    trace: str
    tcp: str
    validation: bool
    receive_window: int
    rto_min_ms: int
    quickack: bool
    nagle: bool
    sample_ms: float
    outage_from_ms: float
    outage_to_ms: float
    requests: tuple[Request, ...]
    writes: tuple[Write, ...] = ()
    think_s: float | None
    may_lose: bool
    sysctls: str = ""
    repeat: int = 1
    what_if: str = ""

    @property
    def id(self) -> str:
        """Names the trial in files and messages; unique within a scenario."""
        think = "" if self.think_s is None else f"-think{format_lossless(self.think_s)}"
        seed = f"-seed{self.seed}" if self.is_random else ""
        repeat = f"-{self.repeat}" if self.repeat > 1 else ""
        return (f"{self.trace}-{self.tcp}-iw{self.initcwnd}{think}{tags_of(self, NETWORK)}"
                f"{tags_of(self, TCP)}{seed}{repeat}"
                f"{'-without-' if self.what_if else ''}{self.what_if}")

    @property
    def settings(self) -> dict[str, str]:
        """The sysctls of the server, by name."""
        own = dict(setting.split("=", 1) for setting in self.sysctls.split())
        return {VALIDATION_SYSCTL: str(int(self.validation)), **own}

    @property
    def most_window_bytes(self) -> int:
        """The most that the client ever offers; 0 for what its buffers allow."""
        return self.receive_window * self.mss

    @property
    def response_sizes(self) -> list[int]:
        """The bytes of each response that is fetched."""
        return [request.size_bytes for request in self.requests]

    @property
    def size_bytes(self) -> int:
        """The bytes of all responses."""
        return sum(self.response_sizes)

    @property
    def thinks_s(self) -> tuple[float, ...]:
        """The think time before each request."""
        return tuple(request.think_s or 0.0 for request in self.requests)

    @property
    def paths(self) -> list[str]:
        """The path of each request, in order, to which job() adds what is the same for all."""
        if self.writes:
            times = ";".join(write.text for write in self.writes)
            return [f"/{self.size_bytes}?at={times}"]
        return [f"/{size}?" for size in self.response_sizes]

    @property
    def due_s(self) -> list[float]:
        """The times of the schedule's writes in order, s after the request; [] without one."""
        return [due_s for write in self.writes for due_s in write.due_s]

    @property
    def schedule_s(self) -> float:
        """When the last write of the schedule is due, 0 without one."""
        return max(self.due_s, default=0.0)

    @property
    def deadline_s(self) -> float:
        """Seconds of the network's time that one request may take, retransmissions included."""
        sending_s = self.size_bytes * 8 / (self.bandwidth_kbps * 1000)
        return (40 * self.rtt_ms / 1000 + 5 * sending_s + self.schedule_s
                + longest_s(self.size_bytes, self.rtt_ms, self.mss))

    @property
    def path(self) -> Path:
        """The path that is installed and judged. An outage is on its way down."""
        path = super().path
        outage_ms = (self.outage_from_ms, self.outage_to_ms)
        return replace(path, down=replace(path.down, outage_ms=outage_ms))

    def job(self) -> Job:
        """The trial as the worker reads it."""
        ending = f"&trace_ms={format_lossless(self.sample_ms)}" + ("&nagle=1" if self.nagle else "")
        job = self.job_over("trace", self.id, self.deadline_s)
        job["client"] = "libcurl"
        job["paths"] = [path + ending for path in self.paths]
        job["think_s"] = list(self.thinks_s)
        job["sysctls"] = self.settings
        job["window_bytes"] = self.most_window_bytes
        job["options"] = {"rto_min_ms": self.rto_min_ms, "quickack": self.quickack,
                          "advertised_mss": self.syn_mss}
        return job


def first_receive_window(mss: int, receive_window: int) -> int:
    """The initial receive window where none is requested: what the client's buffer has room for.

    In segments, as initrwnd. receive_window: as in TraceTrial.
    """
    # TCP offers half of a buffer: packets take more memory than their data.
    room = RECEIVE_BUFFERS[0] // 2 // (mss + TIMESTAMP_BYTES)
    return min(receive_window or room, room)


def guest_s(trial: TraceTrial) -> float:
    """A rough estimate of how long a trace takes in a guest."""
    return GUEST_TRACE_S + GUEST_SEGMENT_S * trial.size_bytes / trial.mss
