"""The record of a trace: one row of trials.csv; the window itself is in a file beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab.core.results.records import Record, measured
from lab.tcp.delivery.packet_path import PATH, Delivery
from lab.tcp.wire import exchange as packets
from lab.trace.replay import Replay
from lab.trace.trial import TraceTrial
from lab.trace.view import View


@dataclass(frozen=True)
class TraceEvidence:
    """What is known of a trial whose transfer succeeded.

    observation: as the worker reported it. exact: measured in virtual time, and path then what the
    path did with each packet, to client and to server.
    """

    view: View
    observation: Mapping[str, Any]
    exact: bool
    path: tuple[Delivery, Delivery] | None = None

    @property
    def trial(self) -> TraceTrial:
        return self.view.trial

    @property
    def replayed(self) -> Replay:
        return self.view.replayed

    @property
    def seen_initcwnd(self) -> int | None:
        """TCP_INFO's window at accept, segments."""
        window: int | None = self.observation["responses"][0]["initial_window"]
        return window

    @property
    def seen_rtt_ms(self) -> float | None:
        return packets.seen_rtt_ms(self.view.exchange, self.trial.uplink_kbps,
                                   self.trial.bandwidth_kbps)


@dataclass(frozen=True)
class TraceRecord(Record):
    """One measured trace, read off its Evidence. Times in ms, windows in segments.

    connect_ms: the client's handshake. latency_ms: of the last response, first
        byte sent to last byte acknowledged, by the kernel's time stamps.
    finish_ms: from the (first) request's arrival at the server to the last
        byte acknowledged, from the capture there.
    seen_initcwnd: TCP_INFO at accept. seen_rtt_ms: the handshake less
        serialisation.
    data_segments: sent by the server; retransmissions and lost_segments: of
        them. timeouts: how often the retransmission timer ran out.
    longest_rtt_ms: from a segment sent (once) to the first acknowledgement of it.
    largest_window: of all samples.
    restarts: how often it retransmitted after more than an RTO; restart_windows:
        the window after each, separated by spaces.
    last_window: with which the last response began; last_retransmissions:
        segments retransmitted from then on.
    judged_by: "path" where each packet was judged by delay, rate and queue.
    samples: of the window; rule_checked of them were compared with the TCP's
        rules (lab.trace.rules), rule_unjudged were not, since they were
        taken in a recovery from loss; rule_wrong differed.
    """

    trial: TraceTrial
    judged_by: str = measured(lambda evidence: PATH if evidence.path is not None else "", "")
    connect_ms: float | None = measured(
        lambda evidence: evidence.observation["fetches"][0]["connect_ms"])
    latency_ms: float | None = measured(
        lambda evidence: evidence.observation["responses"][-1]["latency_ms"])
    finish_ms: float | None = measured(lambda evidence: evidence.view.finish_s() * 1000)
    seen_initcwnd: int | None = measured(lambda evidence: evidence.seen_initcwnd)
    seen_rtt_ms: float | None = measured(lambda evidence: evidence.seen_rtt_ms)
    data_segments: int | None = measured(lambda evidence: len(evidence.view.sends))
    retransmissions: int | None = measured(
        lambda evidence: len(evidence.view.exchange.retransmissions))
    lost_segments: int | None = measured(lambda evidence: len(evidence.view.exchange.lost_data))
    timeouts: int | None = measured(lambda evidence: evidence.view.timeouts())
    longest_rtt_ms: float | None = measured(lambda evidence: evidence.view.longest_rtt_ms())
    largest_window: int | None = measured(lambda evidence: evidence.view.largest_window())
    restarts: int | None = measured(lambda evidence: len(evidence.replayed.restarts))
    restart_windows: str = measured(lambda evidence: " ".join(
        str(restart.after[0]) for restart in evidence.replayed.restarts), "")
    last_window: int | None = measured(
        lambda evidence: evidence.view.sample_at(evidence.view.last_request_s()).cwnd)
    last_retransmissions: int | None = measured(
        lambda evidence: evidence.view.retransmissions(evidence.view.last_request_s()))
    samples: int | None = measured(lambda evidence: len(evidence.view.samples))
    rule_checked: int | None = measured(lambda evidence: evidence.replayed.checked)
    rule_unjudged: int | None = measured(lambda evidence: evidence.replayed.unjudged)
    rule_wrong: int | None = measured(lambda evidence: len(evidence.replayed.mismatches))
