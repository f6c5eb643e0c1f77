"""Checks of the path: delay, rate, queue and losses.

In virtual time each packet is judged by itself (wire.delivery). In real time processors are busy
and timers late, so RTT, bandwidth and losses are estimated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from firstflight.base.comparison import Comparison
from firstflight.judge.path import compute_deliveries
from firstflight.net.path import bytes_per_s
from firstflight.net.segments import Packets
from firstflight.wire.exchange import read_exchanges
from firstflight.workloads.fetch.record.evidence import Evidence


def judge_path(evidence: Evidence, client: Packets, server: Packets) -> Evidence:
    """The evidence with what the path did with each packet, where that can be computed.

    Raises CaptureError.
    """
    return replace(evidence, path=compute_deliveries(evidence.trial, client, server))


def is_estimated(evidence: Evidence) -> bool:
    """Whether RTT, bandwidth and losses are estimated, since packets are not judged one by one."""
    return evidence.path is None and evidence.trial.is_computed


def compare_rtt(evidence: Evidence, observed_ms: float | None) -> Iterable[Comparison]:
    """Compare the RTT of the handshake, where it is estimated."""
    requested = evidence.trial.measured_rtt_ms
    if observed_ms is not None and is_estimated(evidence):
        yield Comparison(abs(observed_ms - requested) <= evidence.rtt_allowed_ms,
                         f"{observed_ms:.3f} ms", f"{requested:g} ms")


def compare_bandwidth(evidence: Evidence, observed_kbps: float,
                      observed_ms: float) -> Iterable[Comparison]:
    """Compare the bandwidth, where it is estimated.

    Times are compared: in a short flight, a tick of the clock is a large share of the time.
    observed_ms: from the first to the last segment of the flight that gave observed_kbps.
    """
    if not is_estimated(evidence):
        return
    requested, tolerances = evidence.trial.down_kbps, evidence.tolerances
    requested_ms = observed_ms * observed_kbps / (bytes_per_s(requested) * 8 / 1000)
    allowed = max(tolerances.spacing_ms, tolerances.bandwidth_share * requested_ms)
    yield Comparison(abs(observed_ms - requested_ms) <= allowed, f"{observed_kbps:.2f} kbit/s",
                     f"{requested:g} kbit/s")


def lost_in_all(client: Packets, server: Packets) -> dict[str, int]:
    """How many packets of all connections were lost, by direction. Raises CaptureError."""
    exchanges = read_exchanges(client, server).values()
    return {"to_client": sum(len(exchange.lost_to_client) for exchange in exchanges),
            "to_server": sum(len(exchange.lost_to_server) for exchange in exchanges)}


def compare_losses(evidence: Evidence, lost: Mapping[str, int]) -> Iterable[Comparison]:
    """Compare losses with the qdiscs' counters, where losses are estimated.

    lost: the number of lost packets, by direction.
    """
    if not is_estimated(evidence):
        return
    for side, dropped in evidence.drops.items():
        counted = sum(dropped.values())
        in_words = side.replace("_", " ")
        yield Comparison(lost[side] == counted, f"{lost[side]} lost {in_words}",
                         f"{counted} as the network dropped")
        may_be_random = evidence.trial.loss_percent and side == "to_client"
        if not may_be_random:
            yield Comparison(not dropped["random"],
                             f"{dropped['random']} lost {in_words} at random", "none")
