"""The record of a trace: one row of trials.csv. The window over time is in a file of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import ClassVar

from firstflight.judge.path import counted_drops
from firstflight.judge.shared_evidence import Body, ConnectionEvidence, SharedEvidence
from firstflight.net.link import MANAGED
from firstflight.runs.results.records import Record
from firstflight.testbed.messages import Observation
from firstflight.wire import exchange as packets
from firstflight.wire.delivery.packet_path import PATH, Delivery
from firstflight.workloads.trace.replay import FOLLOWED, Replay
from firstflight.workloads.trace.schedule import fault_of
from firstflight.workloads.trace.trial import TraceTrial
from firstflight.workloads.trace.view import View


@dataclass(frozen=True)
class TraceEvidence:
    """What is known of a trial whose transfer succeeded."""

    view: View
    observation: Observation  # as the worker reported it
    exact: bool  # whether it was measured in virtual time
    # What the path did with each packet to the client, and to the server; None in real time.
    path: tuple[Delivery, Delivery] | None = None
    # The sysctls that the scenario or the trial changes on both hosts. The server has those of its
    # TCP in addition.
    client_sysctls: Mapping[str, str] = field(default_factory=dict)
    known_kernel: bool = True  # whether the kernel's source is unchanged
    tick_ns: int = 0  # the time of any tick of the kernel's clock, 0 in real time

    @property
    def rules_judge(self) -> bool:
        """Whether the rules of the window are those of this kernel and of these settings."""
        return self.known_kernel and self.client_sysctls.keys() <= FOLLOWED

    @property
    def server_sysctls(self) -> dict[str, str]:
        """The client's sysctls and those of the server's TCP."""
        return {**self.client_sysctls, **self.trial.settings}

    @property
    def trial(self) -> TraceTrial:
        return self.view.trial

    @property
    def replayed(self) -> Replay:
        return self.view.replayed

    @property
    def seen_initcwnd(self) -> int | None:
        """TCP_INFO's window at accept, segments."""
        return self.observation["responses"][0]["initial_window"]

    @property
    def shared(self) -> SharedEvidence:
        """The evidence for those checks that all workloads share."""
        trial, responses = self.trial, self.observation["responses"]
        connection = ConnectionEvidence(self.view.exchange, reports=responses,
                                        initial_window=self.seen_initcwnd)
        bodies = [Body(fetch["size"], response["body_bytes"], size, sha256=fetch["sha256"],
                       sent_sha256=response["sha256"])
                  for fetch, response, size in zip(
                      self.observation["fetches"], responses, trial.response_sizes)]
        drops = counted_drops(trial, self.observation.get("drops", {}))
        return SharedEvidence(
            trial, [connection], client_sysctls=self.client_sysctls,
            server_sysctls=self.server_sysctls, is_exact=self.exact and self.known_kernel,
            path=self.path, drops=drops, bodies=bodies, nagle="on" if trial.nagle else "off",
            fixes_buffer=True)

    @property
    def seen_rtt_ms(self) -> float | None:
        """The RTT of the handshake less serialisation; None where packets do not show it."""
        # fq_codel's token bucket and cake send the first packet at once.
        down_kbps = math.inf if self.trial.qdisc in MANAGED else self.trial.bandwidth_kbps
        return packets.observed_rtt_ms(self.view.exchange, self.trial.uplink_kbps, down_kbps)


@dataclass(frozen=True)
class TraceRecord(Record):
    """One measured trace. Times in ms, windows in segments.

    connect_ms: the client's handshake.
    latency_ms: the last response's time from its first byte sent to its last byte acknowledged, by
        the kernel's time stamps.
    finish_ms: from the first request's arrival at the server to the last byte acknowledged, by the
        capture there.
    seen_initcwnd: the initial window by TCP_INFO at accept.
    seen_rtt_ms: the handshake less serialisation.
    data_segments: data segments that the server sent.
    retransmissions: data segments that were retransmissions.
    lost_segments: data segments that never arrived.
    timeouts: how often the retransmission timer ran out.
    longest_rtt_ms: the longest time from a segment sent once to the first acknowledgement of it.
    largest_window: the largest congestion window of all samples.
    restarts: how often the server sent after a pause of more than an RTO.
    judged_restarts: restarts that were compared with the TCP's rule.
    restart_windows: the window after each such pause, separated by spaces.
    last_window: the window with which the last response began.
    last_retransmissions: segments that were retransmitted after the last response began.
    judged_by: "path" where each packet was judged by delay, rate and queue.
    samples: how many samples of the window were taken.
    rule_checked: samples that were compared with the TCP's rules (workloads.trace.rules).
    rule_unjudged: samples that were not compared. They were taken during a recovery from a loss, or
        after it until TCP filled its window again. No sample is compared where the sender paces,
        or where the rules do not follow its kernel or settings.
    rule_wrong: samples that differed from the rules.
    link_idle_ms: how long the link to the client sent nothing within latency_ms.
    last_round_trips: flights in which the last response left.
    """

    COMPARED: ClassVar[str] = "finish_ms"
    EXPLAINED: ClassVar[str] = "latency_ms"
    trial: TraceTrial
    _: KW_ONLY
    judged_by: str = ""
    connect_ms: float | None = None
    latency_ms: float | None = None
    finish_ms: float | None = None
    seen_initcwnd: int | None = None
    seen_rtt_ms: float | None = None
    data_segments: int | None = None
    retransmissions: int | None = None
    lost_segments: int | None = None
    timeouts: int | None = None
    longest_rtt_ms: float | None = None
    largest_window: int | None = None
    restarts: int | None = None
    judged_restarts: int | None = None
    restart_windows: str = ""
    last_window: int | None = None
    last_retransmissions: int | None = None
    samples: int | None = None
    rule_checked: int | None = None
    rule_unjudged: int | None = None
    rule_wrong: int | None = None
    link_idle_ms: float | None = None
    last_round_trips: int | None = None

    def validate(self) -> None:
        """Check that requests and writes can be those of a trial. Raises ValueError."""
        requests, writes = self.trial.requests, self.trial.writes
        if not requests or any(request.think_s is None for request in requests):
            raise ValueError("requests: has none, or one without its time to think")
        if any(write.size_bytes is None for write in writes):
            raise ValueError("writes: the size of a trial's writes is in bytes")
        if fault := fault_of(writes):
            raise ValueError(f"writes: {fault}")


def record_of(evidence: TraceEvidence) -> TraceRecord:
    """What was measured of a trace, without a verdict."""
    view, replayed = evidence.view, evidence.replayed
    if not evidence.rules_judge:
        unjudged = replayed.checked + replayed.unjudged
        restarts = tuple(replace(restart, rule=None) for restart in replayed.restarts)
        replayed = Replay(checked=0, unjudged=unjudged, mismatches=(), restarts=restarts)
    judged_restarts = sum(restart.rule is not None for restart in replayed.restarts)
    last_request_s = view.last_request_s()
    return TraceRecord(
        evidence.trial, True,
        judged_by=PATH if evidence.path is not None else "",
        connect_ms=evidence.observation["fetches"][0]["connect_ms"],
        latency_ms=evidence.observation["responses"][-1]["latency_ms"],
        finish_ms=view.finish_s() * 1000,
        seen_initcwnd=evidence.seen_initcwnd,
        seen_rtt_ms=evidence.seen_rtt_ms,
        data_segments=len(view.sends),
        retransmissions=len(view.exchange.retransmissions),
        lost_segments=len(view.exchange.lost_data),
        timeouts=view.timeouts(),
        longest_rtt_ms=view.longest_rtt_ms(),
        largest_window=view.largest_window(),
        restarts=len(replayed.restarts),
        judged_restarts=judged_restarts,
        restart_windows=" ".join(str(restart.after[0]) for restart in replayed.restarts),
        last_window=view.sample_at(last_request_s).cwnd,
        last_retransmissions=view.retransmissions(last_request_s),
        samples=len(view.samples),
        rule_checked=replayed.checked,
        rule_unjudged=replayed.unjudged,
        rule_wrong=len(replayed.mismatches),
        link_idle_ms=view.last_idle_ms(),
        last_round_trips=len(view.last_flights()))
