"""Checks that the requested transfer took place, and was complete."""

from __future__ import annotations

from collections.abc import Iterable

from firstflight.base.comparison import Comparison
from firstflight.judge import tls
from firstflight.judge.checklist import Judging
from firstflight.runs.results.checks import failed_checks
from firstflight.runs.results.records import SKIPPED
from firstflight.setting.server import BUILTIN, HTTP_1
from firstflight.wire.delivery.packet_path import PATH
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.record.evidence import Evidence

# Which checks apply to a stored record ------------------------------------------------

def is_fetched(record: Record) -> bool:
    """Whether the trial was measured, and its fetch should succeed."""
    return record.verdict != SKIPPED and not record.trial.cannot_connect


CAPTURE = "capture"


def is_on_wire(record: Record) -> bool:
    """Whether the fetch succeeded and its packets could be read."""
    return record.ok and is_fetched(record) and CAPTURE not in failed_checks(record)


def is_estimated(record: Record) -> bool:
    """Whether RTT, bandwidth and losses were estimated, since packets were not judged one by one.
    """
    return is_on_wire(record) and PATH not in record.judged_by.split()


def shows_window(record: Record) -> bool:
    """Whether the first flight has to have the initial window.

    After a handshake that lost packets, TCP rightly begins with one segment.
    """
    return is_on_wire(record) and record.seen_rtt_ms is not None


def is_modelled(record: Record) -> bool:
    """Whether the model covers all that happened in the transfer of a stored record."""
    return (shows_window(record) and record.retransmissions == record.model_retransmissions
            and not (record.lost_segments or record.lost_packets)
            and record.model_ms is not None)


# Comparisons -------------------------------------------------------------------------


def _compare_exit_status(evidence: Evidence) -> Iterable[Comparison]:
    """Compare the client's exit status with success."""
    status = evidence.fetch.get("exit_status")
    yield Comparison(status == 0, f"{status}", "0")


def _compare_http_status(evidence: Evidence) -> Iterable[Comparison]:
    """Compare the status of the response with OK."""
    status = evidence.fetch.get("http_status")
    yield Comparison(status in (200, None), f"{status}", "200")  # wget reports none


def _compare_http_version(evidence: Evidence) -> Iterable[Comparison]:
    """Compare the version of HTTP that the client reports. TLS's hellos agree on it (RFC 7301)."""
    requested, observed = evidence.trial.http, evidence.fetch.get("http_version")
    if requested != HTTP_1 or observed:
        yield Comparison(observed == requested,
                         f"{observed}, since the server agreed to no other (ALPN)", requested)


def _compare_session(evidence: Evidence) -> Iterable[Comparison]:
    """Compare TLS's version, cipher, key exchange and the like, as the server reports them."""
    if not evidence.has_report:
        return ()
    return tls.compare_session(evidence.trial, evidence.report.get("tls"))


JUDGED: dict[str, Judging[Evidence, Record]] = {
    "exit status": Judging(is_fetched, _compare_exit_status),
    "HTTP status": Judging(is_fetched, _compare_http_status),
    "HTTP version": Judging(lambda record: is_fetched(record) and record.trial.http != HTTP_1,
                            _compare_http_version),
    "size": Judging(is_fetched),
    "digest": Judging(is_fetched),
    "TLS": Judging(lambda record: (is_fetched(record) and bool(record.trial.chain_bytes)
                                   and record.trial.server == BUILTIN), _compare_session),
}
