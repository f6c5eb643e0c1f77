"""Checks of the TLS records of a page's responses."""

from __future__ import annotations

from collections.abc import Iterator

from firstflight.base.comparison import Comparison
from firstflight.judge import records
from firstflight.judge.tls import tickets_of
from firstflight.setting.server import HTTP_1
from firstflight.testbed.hosts.tls_records import sealed_sizes
from firstflight.workloads.page.record import PageEvidence


def compare_tls_records(evidence: PageEvidence) -> Iterator[Comparison]:
    """Compare the records of each connection with what its server writes."""
    trial = evidence.trial
    if not trial.is_secure:
        return
    for port in evidence.observation.get("session_ports", ()):
        behind = records.behind_finished(evidence.records.get(port, ()))
        yield records.compare_tickets(
            behind, trial.tickets, "TLS records of a session's connection", or_more=True)
    for number, (port, connection) in enumerate(evidence.connections.items(), start=1):
        name = f"TLS records of connection {number}"
        lengths = evidence.records.get(port, ())
        sent = connection.sent_end - 1
        yield records.compare_sent(lengths, sent, name)
        behind = records.between(lengths, connection.flight_bytes, sent)
        yield records.compare_tickets(behind, tickets_of(trial), name,
                                      or_more=trial.http == HTTP_1)
        if trial.http == HTTP_1:
            expected = [size for loaded in connection.objects for size in sealed_sizes(
                loaded.report["header_bytes"] + loaded.report["size"], trial.record_bytes)]
            starts = connection.starts
            yield records.compare_records(
                records.between(lengths, starts[0] - 1, starts[-1] - 1), expected, name)
            continue
        sizes = [loaded.report["size"] for loaded in connection.objects]
        yield from records.compare_flushed(behind, trial.record_bytes, tickets_of(trial), sizes,
                                           name)
