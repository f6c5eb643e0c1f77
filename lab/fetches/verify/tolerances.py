"""How far what was seen of a fetch may be from what was requested, in virtual and in real time."""

from __future__ import annotations

from dataclasses import dataclass

from lab.tcp.path import STAMP_MS


@dataclass(frozen=True)
class Tolerances:
    """How far what was seen may be from what was requested: the larger of ms and share.

    model_ms is None where the model is no part of the verdict.
    """

    rtt_ms: float
    rtt_share: float
    bandwidth_share: float
    spacing_ms: float
    latency_ms: float
    latency_share: float
    model_ms: float | None
    model_share: float


# Virtual time: computing takes none, what remains is rounding.
EXACT = Tolerances(rtt_ms=0.05, rtt_share=0.001, bandwidth_share=0.001, spacing_ms=STAMP_MS,
                   latency_ms=0.05, latency_share=0.0, model_ms=1.0, model_share=0.001)
# Real time: timers fire late and processors are busy.
REAL_TIME = Tolerances(rtt_ms=3.0, rtt_share=0.03, bandwidth_share=0.05, spacing_ms=1.0,
                       latency_ms=2.0, latency_share=0.02, model_ms=None, model_share=0.0)
