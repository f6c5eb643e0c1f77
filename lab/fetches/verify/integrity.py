"""Whether a transfer was whole, and the one that was requested: else there is no measurement."""

from __future__ import annotations

from collections.abc import Iterable

from hosts.tls_records import SIGNATURE_BYTES
from lab.core.results.checks import Check, Compared
from lab.core.results.records import SKIPPED
from lab.fetches.scenario.server import HTTP_1
from lab.fetches.scenario.trial import Trial
from lab.fetches.verify.evidence import Evidence
from lab.fetches.verify.record import Record

# Of a server's first messages, besides the certificates: hellos, signature, Finished, headers.
AROUND_CHAIN_BYTES = 4096


def around_chain(trial: Trial) -> int:
    """The most of those bytes; a large signature comes on top."""
    return AROUND_CHAIN_BYTES + SIGNATURE_BYTES[trial.signature]


def is_fetched(record: Record) -> bool:
    return record.verdict != SKIPPED and not record.trial.cannot_connect


def _exit_status(evidence: Evidence) -> Iterable[Compared]:
    status = evidence.fetch.get("exit_status")
    yield Compared(status == 0, f"{status}", "0")


def _http_status(evidence: Evidence) -> Iterable[Compared]:
    status = evidence.fetch.get("http_status")
    yield Compared(status in (200, None), f"{status}", "200")  # wget reports none


def _size(evidence: Evidence) -> Iterable[Compared]:
    size, requested = evidence.fetch["size"], evidence.trial.response_bytes
    sent = evidence.report.get("body_bytes", requested)
    yield Compared(size == requested == sent, f"{size} bytes of {sent} sent", f"{requested}")


def _digest(evidence: Evidence) -> Iterable[Compared]:
    received, sent = evidence.fetch["sha256"], evidence.report["sha256"]
    as_what = "as it came at first" if evidence.trial.own_server else "as sent"
    yield Compared(received == sent, f"{received[:12]}…", f"{sent[:12]}… {as_what}")


def _http_version(evidence: Evidence) -> Iterable[Compared]:
    """By the client; the two sides agree on it in their TLS hellos (ALPN, RFC 7301)."""
    requested, observed = evidence.trial.http, evidence.fetch.get("http_version")
    if requested != HTTP_1 or observed:
        yield Compared(observed == requested,
                       f"{observed}, since the server agreed to no other (ALPN)", requested)


INTEGRITY = (
    Check("exit status", "the client ended without an error", _exit_status, is_fetched),
    Check("HTTP status", "the server answered 200", _http_status, is_fetched),
    Check("HTTP version", "as the client reports it", _http_version,
          lambda record: is_fetched(record) and record.trial.http != HTTP_1, seldom=True),
    Check("size", "as many bytes as requested", _size, is_fetched),
    Check("digest", "the bytes that the server sent", _digest, is_fetched),
)
