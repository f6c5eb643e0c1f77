"""Check a TLS handshake against the model of TCP."""

from __future__ import annotations

from collections.abc import Iterable

from firstflight.base.comparison import Comparison
from firstflight.judge.checklist import Judging
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.record.evidence import Evidence
from firstflight.workloads.fetch.verify.integrity import is_modelled


def _compare_handshake(evidence: Evidence) -> Iterable[Comparison]:
    """Compare the end of the handshake, the first byte, the server's window and round trips."""
    if "tls" not in evidence.report or not evidence.is_comparable:
        return
    prediction, fetch = evidence.prediction, evidence.fetch
    window, trips = evidence.report["tls"]["window"], len(evidence.flights)
    yield evidence.compare_time(fetch.get("appconnect_ms"), prediction.appconnect_ms)
    yield evidence.compare_time(fetch.get("first_byte_ms"), prediction.first_byte_ms)
    yield Comparison(window == prediction.window_after_handshake,
                     f"a window of {window} segments", f"{prediction.window_after_handshake}")
    yield Comparison(trips == prediction.handshake_round_trips, f"{trips} round trips",
                     f"{prediction.handshake_round_trips}")


JUDGED: dict[str, Judging[Evidence, Record]] = {
    "model handshake": Judging(
        lambda record: is_modelled(record) and bool(record.flight_bytes), _compare_handshake)}
