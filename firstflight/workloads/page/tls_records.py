"""Checks of the TLS records of a page's responses."""

from __future__ import annotations

from collections.abc import Iterator

from firstflight.base.comparison import Comparison
from firstflight.judge import records
from firstflight.judge.tls import tickets_of
from firstflight.setting.server import HTTP_1
from firstflight.testbed.hosts.tls_records import sealed_sizes
from firstflight.workloads.page.record import PageEvidence
from firstflight.workloads.page.timing import ConnectionTimes
from firstflight.workloads.page.trial import PageTrial


def compare_tls_records(evidence: PageEvidence) -> Iterator[Comparison]:
    """Compare the records of each connection with what its server writes."""
    trial = evidence.trial
    if not trial.is_secure:
        return
    for port in evidence.observation.get("session_ports", ()):
        after_finished = records.records_after_finished(evidence.records.get(port, ()))
        yield records.compare_tickets(after_finished, trial.tickets,
                                      "TLS records of a session's connection", or_more=True)

    tickets = tickets_of(trial)
    for number, (port, connection) in enumerate(evidence.connections.items(), start=1):
        name = f"TLS records of connection {number}"
        lengths = evidence.records.get(port, ())
        sent_bytes = connection.sent_end - 1  # the sequence number of the first byte is 1
        yield records.compare_sent(lengths, sent_bytes, name)

        after_flight = records.records_between(lengths, connection.flight_bytes, sent_bytes)
        yield records.compare_tickets(after_flight, tickets, name, or_more=trial.http == HTTP_1)
        if trial.http == HTTP_1:
            start, end = connection.starts[0] - 1, connection.starts[-1] - 1
            of_responses = records.records_between(lengths, start, end)
            yield records.compare_records(of_responses, _expected_records(trial, connection), name)
        else:
            sizes = [loaded.report["size"] for loaded in connection.objects]
            yield from records.compare_flushed(after_flight, trial.record_bytes, tickets,
                                               sizes=sizes, name=name)


def _expected_records(trial: PageTrial, connection: ConnectionTimes) -> list[int]:
    """The length of each record of a connection's responses over HTTP/1.1."""
    lengths: list[int] = []
    for loaded in connection.objects:
        text_bytes = loaded.report["header_bytes"] + loaded.report["size"]
        lengths += sealed_sizes(text_bytes, trial.record_bytes)
    return lengths
