"""Checks a TLS handshake against the model of TCP, and the records of the response."""

from __future__ import annotations

from collections.abc import Iterable

from firstflight.base.comparison import Comparison
from firstflight.judge import records, tls
from firstflight.judge.checklist import Judging
from firstflight.setting.server import HTTP_1, NGINX, OWN
from firstflight.testbed.hosts.tls_records import RECORD_OVERHEAD_BYTES, sealed_sizes
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.record.evidence import Evidence
from firstflight.workloads.fetch.verify.integrity import is_modelled, is_on_wire

RECORDS = "TLS records"
ALERT_BYTES = 2 + RECORD_OVERHEAD_BYTES  # close_notify, with which nginx ends a connection


def _compare_handshake(evidence: Evidence) -> Iterable[Comparison]:
    """Compare the end of the handshake, the first byte, the server's window and round trips."""
    if "tls" not in evidence.report or not evidence.is_comparable:
        return
    prediction, fetch = evidence.prediction, evidence.fetch
    window = evidence.report["tls"]["window"]
    trips = len(evidence.flights)
    yield evidence.compare_time(fetch.get("appconnect_ms"), prediction.appconnect_ms)
    yield evidence.compare_time(fetch.get("first_byte_ms"), prediction.first_byte_ms)
    yield Comparison(window == prediction.window_after_handshake,
                     f"a window of {window} segments", f"{prediction.window_after_handshake}")
    yield Comparison(trips == prediction.handshake_round_trips, f"{trips} round trips",
                     f"{prediction.handshake_round_trips}")


def _compare_records(evidence: Evidence) -> Iterable[Comparison]:
    """Compare the records after the server's Finished with what the server writes.

    Tickets come first, a record each. A server that got the request as early data sends no ticket,
    or sends tickets at any time.
    """
    trial = evidence.trial
    flight_bytes = evidence.flight_bytes
    if trial.server == OWN or flight_bytes is None:
        return
    lengths = evidence.records.get(evidence.wire.client_port, ())
    ends = (segment.end for segment in evidence.wire.at_server
            if segment.to_client and segment.payload_bytes)
    sent = max(ends, default=1) - 1
    yield records.compare_sent(lengths, sent, RECORDS)

    later = records.records_between(lengths, flight_bytes, sent)
    tickets, most = tls.tickets_of(trial), trial.record_bytes
    if not evidence.accepted_early_bytes:
        yield records.compare_tickets(later, tickets, RECORDS, or_more=trial.http == HTTP_1)
    if trial.http != HTTP_1:
        yield from records.compare_flushed(later, most, tickets, (trial.response_bytes,), RECORDS)
        return

    closes = trial.server == NGINX and later[-1:] == [ALERT_BYTES]
    response = later[tickets:-1] if closes else later[tickets:]
    if evidence.accepted_early_bytes:
        # Tickets, the last record of the response, and the alert may be short.
        yield from records.compare_filled(later, most, tickets + 1 + closes, RECORDS)
    elif trial.server == NGINX:
        yield records.compare_records(response, records.split_text(sum(response), most), RECORDS)
    else:
        expected: list[int] = []
        for write_bytes in _writes(evidence):
            expected += sealed_sizes(write_bytes, most)
        yield records.compare_records(response, expected, RECORDS)


def _writes(evidence: Evidence) -> list[int]:
    """The sizes of the parts of its response that server.py encrypts at once."""
    trial = evidence.trial
    header_bytes = evidence.report["header_bytes"]
    first, total = header_bytes + trial.burst_bytes, header_bytes + trial.response_bytes
    return [first, total - first] if trial.gap_ms and first < total else [total]


JUDGED: dict[str, Judging[Evidence, Record]] = {
    "model handshake": Judging(
        lambda record: is_modelled(record) and bool(record.flight_bytes), _compare_handshake),
    RECORDS: Judging(lambda record: (is_on_wire(record) and bool(record.flight_bytes)
                                     and record.trial.server != OWN), _compare_records)}
