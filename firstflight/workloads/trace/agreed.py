"""Checks of a trace's TCP: the options of the SYNs, its segments, and the server's socket."""

from __future__ import annotations

from collections.abc import Iterator

from firstflight.base.comparison import Comparison
from firstflight.judge import syns
from firstflight.wire.exchange import first_mss
from firstflight.wire.offers import sysctl
from firstflight.workloads.trace.record import TraceEvidence


def compare_syns(evidence: TraceEvidence) -> Iterator[Comparison]:
    """Compare the SYNs and SYN-ACKs; on other kernels the window's scale is not compared."""
    return syns.compare_syns(
        evidence.trial, evidence.client_sysctls, evidence.server_sysctls, evidence.view.exchange,
        has_scale=evidence.exact and evidence.known_kernel)


def full_mss(evidence: TraceEvidence) -> int:
    """The data in a full segment."""
    return syns.mss_of(evidence.trial, evidence.client_sysctls, evidence.server_sysctls)


def compare_segment_size(evidence: TraceEvidence) -> Iterator[Comparison]:
    """Compare the MSS of the server's socket, and the longest segment that left."""
    mss, expected = evidence.view.samples[0].mss, first_mss(evidence.view.exchange,
                                                            full_mss(evidence))
    yield Comparison(mss == expected, f"{mss} bytes", f"{expected}")
    longest, most = max(s.payload_bytes for s in evidence.view.sends), full_mss(evidence)
    yield Comparison(longest <= most, f"a segment of {longest} bytes", f"at most {most}")


def compare_socket(evidence: TraceEvidence) -> Iterator[Comparison]:
    """Compare what the server's kernel reports of its socket."""
    trial = evidence.trial
    for response in evidence.observation["responses"]:
        if "congestion_control" in response:
            control = response["congestion_control"]
            yield Comparison(control == trial.congestion_control,
                             f"congestion control {control}", trial.congestion_control)
        if "has_nagle" in response:
            is_on = response["has_nagle"]
            yield Comparison(is_on == trial.nagle, f"Nagle's algorithm {'on' if is_on else 'off'}",
                             "on" if trial.nagle else "off")
        if "reordering" in response:
            expected = int(sysctl(evidence.server_sysctls, "reordering"))
            yield Comparison(response["reordering"] == expected,
                             f"reordering {response['reordering']}", f"{expected}")
        if "is_pacing_limited" in response:
            yield Comparison(not response["is_pacing_limited"], "a limit of the pacing rate",
                             "none")
