"""Checks that a transfer was complete, and the one that was requested."""

from __future__ import annotations

from collections.abc import Iterable

from firstflight.base.comparison import Comparison
from firstflight.judge import tls
from firstflight.runs.results.checks import Check, failed_checks
from firstflight.runs.results.records import SKIPPED
from firstflight.setting.server import BUILTIN, HTTP_1
from firstflight.wire.delivery.packet_path import PATH
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.record.evidence import Evidence

# Which checks apply to a stored record ------------------------------------------------

def is_fetched(record: Record) -> bool:
    return record.verdict != SKIPPED and not record.trial.cannot_connect


# judge_fetch itself finds captures that cannot be read.
CAPTURE: Check[Evidence, Record] = Check(
    "capture", "both captures are whole", lambda evidence: (),
    lambda record: is_fetched(record) and record.ok)


def is_on_wire(record: Record) -> bool:
    return (record.ok and is_fetched(record)
            and CAPTURE.name not in failed_checks(record))


def is_estimated(record: Record) -> bool:
    """Whether RTT, bandwidth and losses were estimated, since packets were not judged one by one.
    """
    return is_on_wire(record) and PATH not in record.judged_by.split()


def shows_window(record: Record) -> bool:
    # After a handshake that lost packets, TCP rightly begins with one segment.
    return is_on_wire(record) and record.seen_rtt_ms is not None


def is_modelled(record: Record) -> bool:
    """Whether the model covers all that happened in a stored record's transfer."""
    return (shows_window(record) and record.retransmissions == record.model_retransmissions
            and not (record.lost_segments or record.lost_packets)
            and record.model_ms is not None)


# Comparisons -------------------------------------------------------------------------


def _compare_exit_status(evidence: Evidence) -> Iterable[Comparison]:
    status = evidence.fetch.get("exit_status")
    yield Comparison(status == 0, f"{status}", "0")


def _compare_http_status(evidence: Evidence) -> Iterable[Comparison]:
    status = evidence.fetch.get("http_status")
    yield Comparison(status in (200, None), f"{status}", "200")  # wget reports none


def _compare_size(evidence: Evidence) -> Iterable[Comparison]:
    size, requested = evidence.fetch["size"], evidence.trial.response_bytes
    sent = evidence.report.get("body_bytes", requested)
    yield Comparison(size == requested == sent, f"{size} bytes of {sent} sent", f"{requested}")


def _compare_digest(evidence: Evidence) -> Iterable[Comparison]:
    received, sent = evidence.fetch["sha256"], evidence.report["sha256"]
    source = "as it came at first" if evidence.trial.own_server else "as sent"
    yield Comparison(received == sent, f"{received[:12]}…", f"{sent[:12]}… {source}")


def _compare_http_version(evidence: Evidence) -> Iterable[Comparison]:
    """Compare the client's version of HTTP; TLS's hellos agree on it (ALPN, RFC 7301)."""
    requested, observed = evidence.trial.http, evidence.fetch.get("http_version")
    if requested != HTTP_1 or observed:
        yield Comparison(observed == requested,
                         f"{observed}, since the server agreed to no other (ALPN)", requested)


def _compare_session(evidence: Evidence) -> Iterable[Comparison]:
    return (tls.compare_session(evidence.trial, evidence.report.get("tls"))
            if evidence.has_report else ())


INTEGRITY: tuple[Check[Evidence, Record], ...] = (
    Check("exit status", "the client ended without an error", _compare_exit_status, is_fetched),
    Check("HTTP status", "the server answered 200", _compare_http_status, is_fetched),
    Check("HTTP version", "as the client reports it", _compare_http_version,
          lambda record: is_fetched(record) and record.trial.http != HTTP_1, seldom=True),
    Check("size", "as many bytes as requested", _compare_size, is_fetched),
    Check("digest", "the bytes that the server sent", _compare_digest, is_fetched),
    Check(
        "TLS", "version 1.3, its chain, and a session resumed or not, as requested",
        _compare_session,
        lambda record: (is_fetched(record) and bool(record.trial.chain_bytes)
                        and record.trial.server == BUILTIN), seldom=True),
)
