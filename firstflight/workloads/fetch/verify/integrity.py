"""Checks that a transfer was complete, and the one that was requested."""

from __future__ import annotations

import re
from collections.abc import Iterable

from firstflight.base.comparison import Comparison
from firstflight.runs.results.checks import Check, failed_checks
from firstflight.runs.results.records import SKIPPED
from firstflight.setting.server import BUILTIN, HTTP_1, NEWER
from firstflight.testbed.hosts.tls_records import KEY_SHARES, SIGNATURE_BYTES
from firstflight.wire.delivery.packet_path import PATH
from firstflight.workloads.fetch.record import Record
from firstflight.workloads.fetch.scenario.trial import Trial
from firstflight.workloads.fetch.verify.evidence import Evidence

# The most bytes besides the certificates in a server's first messages: hellos, Finished, headers.
AROUND_CHAIN_BYTES = 4096


def around_chain(trial: Trial) -> int:
    """AROUND_CHAIN_BYTES and the signature, which can be large."""
    return AROUND_CHAIN_BYTES + SIGNATURE_BYTES[trial.signature]


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


NEWER_LIBRARY = (3, 5)


def _version(library: str) -> tuple[int, ...]:
    """(3, 5) of "OpenSSL 3.5.7 9 Jun 2026"; () of another library."""
    match = re.match(r"OpenSSL (\d+)\.(\d+)", library)
    return tuple(map(int, match.groups())) if match else ()


def _compare_session(evidence: Evidence) -> Iterable[Comparison]:
    """Compare the TLS session of the response, as the server's OpenSSL reports it.

    Other servers report none: there curl has checked the version, and the flight shows the session.
    """
    trial, tls = evidence.trial, evidence.report.get("tls")
    if not evidence.has_report:
        return
    if tls is None or not trial.chain_bytes:
        yield Comparison((tls is None) == (not trial.chain_bytes),
                         "plain HTTP" if tls is None else "TLS",
                         f"a chain of {trial.chain_bytes} bytes")
        return
    yield Comparison(tls["version"] == "TLSv1.3", f"{tls['version']}", "TLSv1.3")
    yield Comparison(tls["group"] == KEY_SHARES[trial.key_share], tls["group"] or "no key exchange",
                     KEY_SHARES[trial.key_share])
    if trial.system == NEWER:
        yield Comparison(_version(tls["library"]) >= NEWER_LIBRARY, tls["library"],
                         "OpenSSL 3.5 or newer")
    yield Comparison(tls["resumed"] == bool(trial.resumed),
                     "resumed" if tls["resumed"] else "a new session",
                     "resumed" if trial.resumed else "a new session")
    if not trial.resumed:
        flight, least = sum(tls["flight"]), trial.chain_bytes
        more = around_chain(trial)
        yield Comparison(least < flight <= least + more, f"a flight of {flight} bytes",
                         f"a chain of {least} and at most {more} more")


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
