"""What packets say of the path against what was asked: the same over TCP and over QUIC."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lab.core.checks import Compared
from lab.fetches.evidence import Evidence
from lab.tcp.exchange import read_exchanges
from lab.tcp.path import bytes_per_s


def rtt(evidence: Evidence, seen_ms: float | None) -> Iterable[Compared]:
    asked = evidence.trial.rtt_ms
    if seen_ms is not None:
        yield Compared(abs(seen_ms - asked) <= evidence.rtt_allowed_ms, f"{seen_ms:.3f} ms",
                       f"{asked:g} ms")


def bandwidth(evidence: Evidence, seen_kbps: float, seen_ms: float) -> Iterable[Compared]:
    """Compared as times: over a short flight a tick of the clock is a larger share.

    seen_ms: from the first to the last of what left at once, by which seen_kbps was reckoned.
    """
    asked, tolerances = evidence.trial.down_kbps, evidence.tolerances
    asked_ms = seen_ms * seen_kbps / (bytes_per_s(asked) * 8 / 1000)
    allowed = max(tolerances.spacing_ms, tolerances.bandwidth_share * asked_ms)
    yield Compared(abs(seen_ms - asked_ms) <= allowed, f"{seen_kbps:.2f} kbit/s",
                   f"{asked:g} kbit/s")


def lost_in_all(client_pcap: bytes, server_pcap: bytes) -> dict[str, int]:
    """Packets of all connections of a trial that did not arrive, by direction: CaptureError."""
    exchanges = read_exchanges(client_pcap, server_pcap).values()
    return {"to_client": sum(len(each.lost_to_client) for each in exchanges),
            "to_server": sum(len(each.lost_to_server) for each in exchanges)}


def losses(evidence: Evidence, lost: Mapping[str, int]) -> Iterable[Compared]:
    """By the qdiscs' counters. lost: packets that did not arrive, by direction."""
    for side, dropped in evidence.drops.items():
        told = sum(dropped.values())
        yield Compared(lost[side] == told, f"{lost[side]} lost {side.replace('_', ' ')}",
                       f"{told} as the network dropped")
