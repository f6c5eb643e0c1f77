"""The record of a trace: one row of trials.csv; the window itself is in files beside it."""

from __future__ import annotations

from dataclasses import dataclass, field

from lab.records import SKIPPED
from lab.trace.scenario import TraceTrial


@dataclass(frozen=True)
class TraceRecord:
    """One measured trace. Times in ms, windows in segments.

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
    restarts: how often it sent again after more than an RTO; restart_windows:
        the window after each, separated by spaces.
    last_window: with which the last response began; last_retransmissions:
        segments sent again from then on.
    samples: of the window; rule_checked of them were compared with the TCP's
        rules (lab.trace.rules), rule_unjudged were not, since they were
        taken in a recovery from loss; rule_wrong differed.
    verdict: pass, fail or skipped; verdict_reason says what differed, or what
        the kernel lacks.
    """

    trial: TraceTrial
    ok: bool
    error: str = ""
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
    restart_windows: str = ""
    last_window: int | None = None
    last_retransmissions: int | None = None
    samples: int | None = None
    rule_checked: int | None = None
    rule_unjudged: int | None = None
    rule_wrong: int | None = None
    verdict: str = SKIPPED
    verdict_reason: str = ""
    measured_at: str = field(default="", compare=False)
