"""Checks the size of a trace's segments."""

from __future__ import annotations

from collections.abc import Iterator

from firstflight.base.comparison import Comparison
from firstflight.judge import syns
from firstflight.wire.exchange import first_mss
from firstflight.workloads.trace.record import TraceEvidence


def compare_segment_size(evidence: TraceEvidence) -> Iterator[Comparison]:
    """Compare the MSS of the server's socket, and the longest segment that left."""
    full = syns.mss_of(evidence.trial, evidence.client_sysctls, evidence.server_sysctls)
    mss, expected = evidence.view.samples[0].mss, first_mss(evidence.view.exchange, full)
    yield Comparison(mss == expected, f"{mss} bytes", f"{expected}")
    yield from syns.compare_segment_size(evidence.seen)
