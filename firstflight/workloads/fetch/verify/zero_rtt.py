"""Checks early data: that it is sent with the hello, accepted, and answered at once."""

from __future__ import annotations

from collections.abc import Iterable

from firstflight.base.comparison import Comparison
from firstflight.judge.checklist import Judging
from firstflight.testbed.hosts.tls_records import LEAST_PADDED_BYTES
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.record.evidence import Evidence
from firstflight.workloads.fetch.verify.integrity import is_on_wire
from firstflight.workloads.fetch.record.transfers import sealed_bytes

# The answer to early data comes at most half an RTT after the data arrived, or after LEAST_MS. An
# answer that waits for the client's Finished comes a whole RTT later.
RTT_PART = 0.5
LEAST_MS = 1.0


def compare_early_data(evidence: Evidence) -> Iterable[Comparison]:
    """Compare the early data that was accepted, how it left, and when it was answered.

    Client or server may silently fall back to a request after the handshake.
    """
    requested = evidence.trial.early_data_bytes
    if not requested:
        return
    accepted = evidence.accepted_early_bytes or 0
    is_padded = requested >= LEAST_PADDED_BYTES
    yield Comparison(accepted == requested if is_padded else accepted > 0, _accepted(accepted),
                     f"{requested} bytes accepted" if is_padded else "accepted")
    early = evidence.early
    if early is None:
        return

    record_bytes = sealed_bytes(accepted)
    observed = f"{early.wire_bytes} bytes of it right behind the hello"
    if early.round_trips == 1:
        yield Comparison(early.wire_bytes == record_bytes, observed, f"{record_bytes}")
    else:
        yield Comparison(0 < early.wire_bytes <= record_bytes, observed,
                         f"some of {record_bytes}, the rest a round trip later")

    allowed_ms = max(LEAST_MS, RTT_PART * evidence.trial.rtt_ms)
    yield Comparison(early.answer_ms <= allowed_ms,
                     f"the response {early.answer_ms:.3f} ms after it was there",
                     f"at most {allowed_ms:g} ms")


def _accepted(accepted: int) -> str:
    """How much early data was accepted, in words. accepted: bytes; negative for refused ones."""
    if accepted < 0:
        return f"{-accepted} bytes sent and refused"
    return f"{accepted} bytes accepted" if accepted else "none sent"


JUDGED: dict[str, Judging[Evidence, Record]] = {
    "early data": Judging(
        lambda record: is_on_wire(record) and bool(record.trial.early_data_bytes),
        compare_early_data)}
