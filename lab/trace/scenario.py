"""Traces: one connection that is written to on a schedule, under several TCPs, and its window.

A scenario of kind "trace" says which TCPs to compare, the schedules, and the
networks; it expands into one trial for each TCP on each of its traces. The
trials' records are one row each; the window itself is in files beside them
(lab.trace.window).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

# Validation by the kernel's own rules (RFC 2861), on or off.
VALIDATION_SYSCTL = "net.ipv4.tcp_slow_start_after_idle"
HEADER_BYTES = 66  # Ethernet, IPv4 and TCP with time stamps
TIMESTAMP_BYTES = 12  # of the MSS, the option's
EACH_THINK = "each"  # in a request: the think time that the trial is about


@dataclass(frozen=True)
class Tcp:
    """One of the TCPs that are compared.

    validation: whether Linux's own rules are on (VALIDATION_SYSCTL).
    sysctls: what else is set at the server, "name=value" each.
    """

    name: str
    title: str
    congestion_control: str
    validation: bool
    sysctls: tuple[str, ...] = ()


@dataclass(frozen=True)
class Write:
    """What the application hands to TCP: bytes at a time, or every so often until another.

    Times in seconds after the request arrived. `until_s` itself is not one of
    the times.
    """

    at_s: float
    size_bytes: int
    until_s: float | None = None
    every_s: float = 0.0

    @property
    def count(self) -> int:
        if self.until_s is None:
            return 1
        return max(math.ceil((self.until_s - self.at_s) / self.every_s - 1e-9), 1)

    @property
    def last_s(self) -> float:
        return self.at_s + (self.count - 1) * self.every_s

    @property
    def text(self) -> str:
        """As server.py reads it."""
        when = f"{_ms(self.at_s)}"
        if self.until_s is not None:
            when += f"..{_ms(self.until_s)}/{_ms(self.every_s)}"
        return f"{when}:{self.size_bytes}"


@dataclass(frozen=True)
class Request:
    """One request on a persistent connection.

    think_s: from the end of the response before it; None for the think time
    that the trial is about.
    """

    size_bytes: int
    think_s: float | None = 0.0


@dataclass(frozen=True)
class Schedule:
    """What the application does: writes into one response, or requests one after another."""

    name: str
    writes: tuple[Write, ...] = ()
    requests: tuple[Request, ...] = ()

    @property
    def size_bytes(self) -> int:
        return (sum(write.size_bytes * write.count for write in self.writes)
                + sum(request.size_bytes for request in self.requests))

    def paths(self) -> tuple[str, ...]:
        """What is fetched, without the trace's own parameters."""
        if self.writes:
            at = ";".join(write.text for write in self.writes)
            return (f"/{self.size_bytes}?at={at}",)
        return tuple(f"/{request.size_bytes}?" for request in self.requests)


@dataclass(frozen=True)
class TraceTrial:
    """One connection under one TCP.

    trace: which of the scenario's; tcp: which TCP, by its name.
    rtt_ms, bandwidth_kbps, uplink_kbps, queue_packets: as of a fetch
        (lab.trial.Trial).
    initcwnd: route metric at the server, segments. mss: bytes of data in a full
        segment.
    receive_window: the most that the client advertises, in segments; 0 for
        what its buffers allow.
    rto_min_ms: least retransmission timeout, 0 for the kernel's (200 ms).
    quickack: the client acknowledges every segment at once.
    nagle: whether Nagle's algorithm is on. sample_ms: between looks at the window.
    outage_from_ms, outage_to_ms: when everything to the client is lost; both
        0 for never.
    paths: what is fetched on the connection, in order, separated by spaces;
        think_times: seconds before each of them, likewise.
    think_s: the think time that the trial is about, None without one.
    may_lose: whether the queue may overflow.
    sysctls: set at the server besides validation, "name=value" separated by
        spaces ("" for none; a value has no space).
    """

    scenario: str
    trace: str
    tcp: str
    congestion_control: str
    validation: bool
    rtt_ms: float
    bandwidth_kbps: float
    uplink_kbps: float
    queue_packets: int
    initcwnd: int
    mss: int
    receive_window: int
    rto_min_ms: int
    quickack: bool
    nagle: bool
    sample_ms: float
    outage_from_ms: float
    outage_to_ms: float
    paths: str
    think_times: str
    think_s: float | None
    may_lose: bool
    sysctls: str = ""

    @property
    def id(self) -> str:
        """Names the trial in files and messages; unique within a scenario."""
        think = "" if self.think_s is None else f"-think{self.think_s:g}"
        return f"{self.trace}-{self.tcp}-iw{self.initcwnd}{think}"

    @property
    def size_bytes(self) -> int:
        return sum(int(path[1:].partition("?")[0]) for path in self.paths.split())

    @property
    def thinks_s(self) -> tuple[float, ...]:
        return tuple(map(float, self.think_times.split()))

    @property
    def schedule_s(self) -> float:
        """When the last write of the schedule is due, 0 without one."""
        _, _, writes = self.paths.partition("at=")
        last = 0.0
        for write in filter(None, writes.partition("&")[0].split(";")):
            times = write.partition(":")[0].partition("/")[0]
            last = max(last, float(times.rpartition("..")[2]) / 1000)
        return last

    @property
    def deadline_s(self) -> float:
        """Seconds of the network's time for one request, retransmissions and all."""
        sending_s = self.size_bytes * 8 / (self.bandwidth_kbps * 1000)
        return 120 + 40 * self.rtt_ms / 1000 + 5 * sending_s + self.schedule_s

    def job(self) -> dict[str, Any]:
        """The trial as the worker reads it."""
        ending = f"&trace_ms={self.sample_ms:g}" + ("&nagle=1" if self.nagle else "")
        return {
            "kind": "trace", "id": self.id, "initcwnd": self.initcwnd,
            "initrwnd": self.receive_window or 1000,
            "congestion_control": self.congestion_control, "client": "libcurl",
            "sysctls": {VALIDATION_SYSCTL: str(int(self.validation)), **dict(
                setting.split("=", 1) for setting in self.sysctls.split())},
            "window_bytes": self.receive_window * self.mss,
            "options": {"rto_min_ms": self.rto_min_ms, "quickack": self.quickack,
                        "advertised_mss": self.mss + TIMESTAMP_BYTES},
            "paths": [path + ending for path in self.paths.split()],
            "think_s": list(self.thinks_s), "deadline_s": self.deadline_s,
            "outage_ms": [self.outage_from_ms, self.outage_to_ms] if self.outage_to_ms else [],
            "shape": {"rtt_ms": self.rtt_ms, "bandwidth_kbps": self.bandwidth_kbps,
                      "uplink_kbps": self.uplink_kbps, "queue_packets": self.queue_packets}}


@dataclass(frozen=True)
class Trace:
    """One schedule on one network, under some TCPs. Its fields are those of TraceTrial."""

    name: str
    title: str
    schedule: Schedule
    tcps: tuple[str, ...]
    rtt_ms: float
    bandwidth_kbps: float
    uplink_kbps: float | None  # None: as bandwidth_kbps
    queue_packets: int
    initcwnd: tuple[int, ...]
    mss: int
    receive_window: int
    rto_min_ms: int
    quickack: bool
    nagle: bool
    sample_ms: float
    outage_ms: tuple[float, float]
    think_s: tuple[float, ...]
    may_lose: bool


@dataclass(frozen=True)
class Curve:
    """A trial of the scenario, for figures and claims: "trace/tcp" or "trace/tcp/iw10"."""

    trace: str
    tcp: str
    initcwnd: int | None = None

    def is_of(self, trial: TraceTrial) -> bool:
        return ((self.trace, self.tcp) == (trial.trace, trial.tcp)
                and self.initcwnd in (None, trial.initcwnd))


@dataclass(frozen=True)
class Figure:
    """kind: "window" (a row of a time–sequence and a window plot for each curve) or "warm"
    (response latency by think time). from_s, to_s: what is shown, all of it if to_s is 0. rtt:
    whether the smoothed RTT is drawn beside the window."""

    name: str
    title: str
    kind: str
    curves: tuple[Curve, ...] = ()
    from_s: float = 0.0
    to_s: float = 0.0
    rtt: bool = False


@dataclass(frozen=True)
class Claim:
    """A sentence of the source and the test that it is put to.

    metric, at_s: what is compared (lab.trace.findings.METRICS), and when.
    first, second: the curves. relation: how the first stands to the second:
    "larger", "smaller", "equal"; "percent_smaller" with what was published;
    "is": the first alone, beside what was published. within: how far off a
    published number may be and still be reproduced, in its unit.
    """

    figure: str
    says: str
    metric: str
    first: Curve
    relation: str
    second: Curve | None = None
    at_s: float = 0.0
    published: float | None = None
    within: float = 0.0


@dataclass(frozen=True)
class TraceScenario:
    """A scenario of kind "trace" as its file has it."""

    name: str
    title: str
    claim: str
    source: str
    text: str
    sysctls: dict[str, str]
    tcps: tuple[Tcp, ...]
    traces: tuple[Trace, ...]
    figures: tuple[Figure, ...]
    claims: tuple[Claim, ...]
    note: str = field(default="")

    def tcp(self, name: str) -> Tcp:
        return next(tcp for tcp in self.tcps if tcp.name == name)

    def trials(self) -> list[TraceTrial]:
        return [trial for trace in self.traces for trial in trials_of(self, trace)]


def trials_of(scenario: TraceScenario, trace: Trace) -> list[TraceTrial]:
    """One trial for each TCP, initial window and think time of a trace."""
    thinks: Sequence[float | None] = trace.think_s or (None,)
    return [_trial(scenario, trace, scenario.tcp(tcp), initcwnd, think_s)
            for initcwnd in trace.initcwnd for think_s in thinks for tcp in trace.tcps]


def _trial(scenario: TraceScenario, trace: Trace, tcp: Tcp, initcwnd: int,
           think_s: float | None) -> TraceTrial:
    thinks = [request.think_s if request.think_s is not None else think_s or 0.0
              for request in trace.schedule.requests] or [0.0]
    return TraceTrial(
        scenario=scenario.name, trace=trace.name, tcp=tcp.name,
        congestion_control=tcp.congestion_control, validation=tcp.validation,
        rtt_ms=trace.rtt_ms, bandwidth_kbps=trace.bandwidth_kbps,
        uplink_kbps=trace.bandwidth_kbps if trace.uplink_kbps is None else trace.uplink_kbps,
        queue_packets=trace.queue_packets, initcwnd=initcwnd, mss=trace.mss,
        receive_window=trace.receive_window, rto_min_ms=trace.rto_min_ms,
        quickack=trace.quickack, nagle=trace.nagle, sample_ms=trace.sample_ms,
        outage_from_ms=trace.outage_ms[0], outage_to_ms=trace.outage_ms[1],
        paths=" ".join(trace.schedule.paths()),
        think_times=" ".join(f"{think:g}" for think in thinks), think_s=think_s,
        may_lose=trace.may_lose, sysctls=" ".join(tcp.sysctls))


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.6f}".rstrip("0").rstrip(".")
