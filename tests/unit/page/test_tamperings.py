"""Tampered pages, each with the check that refuses it, and the limits of single checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from firstflight.judge.records import compare_repeated
from firstflight.judge.sending import late_answers
from firstflight.runs.results.checks import failed_checks
from firstflight.wire.exchange import Exchange
from firstflight.workloads.page.record import PageEvidence
from firstflight.workloads.page.requests import compare_requests
from tests.golden import stored_page
from tests.golden.stored_page import StoredPage

Change = Callable[[StoredPage], StoredPage]


def requested(**columns: Any) -> Change:
    """Other parameters were requested."""
    return lambda page: page.requested(**columns)


def reported(**values: Any) -> Change:
    """The server reported other values of its last connection."""
    return lambda page: page.reported(lambda seen: seen["responses"][-1].update(values))


def of_object(number: int, **values: Any) -> Change:
    """The client reported other values of an object, numbered from 0."""
    return lambda page: page.reported(lambda seen: seen["objects"][number].update(values))


def records(change: Callable[[list[int]], list[int]], connection: int = -1) -> Change:
    """The server's TLS records have other lengths.

    connection: a number in the list of reported connections, -1 for the last one.
    """
    def alter(seen: dict[str, Any]) -> None:
        port, runs = seen["records"][connection]
        lengths = [length for length, count in runs for _ in range(count)]
        seen["records"][connection] = [port, [[length, 1] for length in change(lengths)]]
    return lambda page: page.reported(alter)


def halved(lengths: list[int]) -> list[int]:
    """Lengths in which each record of a response, over 4400 bytes, is split into two."""
    parts: list[int] = []
    for length in lengths:
        parts += [length // 2, length - length // 2] if length > 4400 else [length]
    return parts


SOCKET, RECORDS = "server's socket", "TLS records"
# Each: a stored page, what is wrong with it, the change, and the check that refuses it.
TAMPERINGS: list[tuple[str, str, Change, str]] = [
    *((name, "BBR", reported(congestion_control="bbr"), SOCKET)
      for name in ("two", "six", "tls", "nginx_tls", "http2", "resumed")),
    *((name, "a limit of the pacing rate", reported(is_pacing_limited=True), SOCKET)
      for name in ("two", "six", "tls", "http2")),
    *((name, "a pacing rate a hundredth higher", lambda page: page.reported(
        lambda seen: seen["responses"][-1].update(pacing_bytes_per_s=round(
            1.01 * seen["responses"][-1]["pacing_bytes_per_s"]))), SOCKET)
      for name in ("two", "six", "tls", "http2")),
    *((name, "a larger send buffer", reported(first_buffer_bytes=92_160), SOCKET)
      for name in ("two", "six", "tls", "http2")),
    *((name, "another MSS", reported(mss=1447), SOCKET) for name in ("two", "six", "tls", "http2")),
    ("two", "Nagle's algorithm", reported(has_nagle=True), SOCKET),
    ("two", "SO_SNDBUF", reported(fixed_send_buffer=True), SOCKET),
    ("tls", "tcp_reordering", reported(reordering=30), SOCKET),
    # The version of libcurl is part of each request: here it has more characters than was sent.
    *((name, "longer requests", lambda page: page.reported(
        lambda seen: seen.update(libcurl="7.88.10")), "requests")
      for name in ("one", "two", "six", "waits", "lossy", "tls", "nginx_tls", "resumed")),
    ("waits", "a request without its think time", lambda page: page.requested(objects=tuple(
        replace(each, think_ms=0.0) for each in page.trial.objects)), "requests"),
    # The second connection was opened while the document was under way on the first one.
    ("two", "a connection that is free is not used", of_object(0, end_ms=80.0), "connections"),
    *((name, "segments shorter than the MSS, as path MTU probing sends", requested(mss=1449),
       "segment size") for name in ("one", "six", "tls", "http2", "lossy")),
    ("tls", "one ticket requested, two sent", requested(tickets=1), "TLS"),
    ("http2", "one ticket requested, two sent", requested(tickets=1), "TLS records"),
    ("http2", "no ticket requested, two sent", requested(tickets=0), "TLS records"),
    ("http2", "three tickets requested, two sent", requested(tickets=3), "TLS records"),
    ("shared", "a host has the certificate of another host", lambda page: page.reported(
        lambda seen: seen.update(certificates=[[1024, "IP Address:10.0.0.2"],
                                               *seen["certificates"][1:]])), "TLS"),
    ("tls", "no report on certificates", lambda page: page.reported(
        lambda seen: seen.pop("certificates")), "TLS"),
    ("shared", "a certificate for each host requested, one shared",
     requested(shared_certificates=()), "TLS"),
    ("shared", "a host on a connection of another certificate", of_object(2, port=1024),
     "connections"),
    ("shared", "a connection of its own for a host that shares one", of_object(1, port=1025),
     "connections"),
    ("tls", "a flight in one write requested", requested(buffer_bytes=0), "TLS"),
    *((name, "shorter records", records(halved), RECORDS)
      for name in ("tls", "nginx_tls", "resumed", "http2")),
    *((name, "one record instead of the last two", records(
        lambda lengths: [*lengths[:-2], sum(lengths[-2:])]), RECORDS)
      for name in ("tls", "nginx_tls", "resumed")),
    *((name, "records of 9000 bytes at most requested", requested(record_bytes=9000), RECORDS)
      for name in ("tls", "nginx_tls", "http2")),
    *((name, "a byte that is in no record", records(
        lambda lengths: [*lengths[:-1], lengths[-1] - 1]), RECORDS)
      for name in ("tls", "nginx_tls", "http2")),
    *((name, "a connection without reported records", lambda page: page.reported(
        lambda seen: seen["records"].pop()), RECORDS) for name in ("tls", "nginx_tls", "http2")),
]


@pytest.mark.parametrize(("lengths", "sizes", "passes"), [
    ([8214, 8214, 8214, 1300], [7000, 7100, 5000, 6000], False),
    ([8214, 8214, 1300], [7000, 7100, 5000], True), ([16_406, 8214, 8214, 8214], [20_000], True),
    ([7158, 7158, 7158], [7000, 7000], True), ([7158, 7158, 7158, 7158], [7000, 7003], False),
    ([], [], True)])
def test_the_longest_record_may_repeat_only_as_often_as_responses_are_alike(
        lengths: list[int], sizes: list[int], passes: bool) -> None:
    """Records of 8 kB instead of 16 kB repeat one length, although the responses are unlike."""
    compared = compare_repeated(lengths, 16_384, sizes, "")
    assert all(comparison.passed for comparison in compared) == passes


@pytest.mark.parametrize(("name", "what", "change", "check"), TAMPERINGS,
                         ids=[f"{name}: {what}" for name, what, _, _ in TAMPERINGS])
def test_a_tampered_page_is_refused_by_its_check(name: str, what: str, change: Change,
                                                 check: str) -> None:
    assert not stored_page.load(name).judge().failed_checks
    assert check in failed_checks(change(stored_page.load(name)).judge()), what


def evidence_of(name: str, **columns: Any) -> PageEvidence:
    """The evidence of a stored page, as if other parameters had been requested."""
    return stored_page.load(name).requested(**columns).evidence()


@pytest.mark.parametrize(("more_bytes", "passes"), [(0, True), (20, True), (1200, False)])
def test_a_request_over_http_2_longer_than_its_text_is_refused(more_bytes: int,
                                                               passes: bool) -> None:
    evidence = evidence_of("http2")
    ((port, exchange),) = evidence.exchanges.items()
    last_request = [segment for segment in exchange.at_client
                    if segment.payload_bytes and not segment.to_client][-1]
    at_client = tuple(
        segment._replace(payload_bytes=segment.payload_bytes + more_bytes)
        if segment is last_request else segment for segment in exchange.at_client)
    changed = replace(evidence, exchanges={port: replace(exchange, at_client=at_client)})
    assert all(comparison.passed for comparison in compare_requests(changed)) == passes


def first_answer_later(exchange: Exchange, by_ns: int) -> Exchange:
    """The server's segments leave by_ns later, from its first segment with data on."""
    first = next(number for number, segment in enumerate(exchange.at_server)
                 if segment.to_client and segment.payload_bytes)
    return replace(exchange, at_server=(*exchange.at_server[:first], *(
        segment._replace(time_ns=segment.time_ns + by_ns) if segment.to_client else segment
        for segment in exchange.at_server[first:])))


@pytest.mark.parametrize(("columns", "by_ns", "late"), [
    ({"congestion_control": "bbr"}, 0, False), ({"congestion_control": "bbr"}, 3_000_000, True),
    ({"qdisc": "fq"}, 3_000_000, True), ({"qdisc": "fq", "jitter_ms": 1.0}, 3_000_000, False),
    ({}, 3_000_000, False)])
def test_the_first_answer_of_a_pacing_server_must_not_be_late(
        columns: dict[str, Any], by_ns: int, late: bool) -> None:
    """Another check judges each segment of a server that does not pace."""
    evidence = evidence_of("one", **columns)
    ((port, exchange),) = evidence.exchanges.items()
    changed = replace(evidence, exchanges={port: first_answer_later(exchange, by_ns)})
    (moved,) = changed.exchanges.values()
    assert bool(late_answers(changed.trial, moved)) == late


@pytest.mark.parametrize(("pause_ms", "late"), [(0.0, True), (2.0, True), (3.0, False),
                                                (3.1, True)])
def test_a_first_answer_of_a_pacing_server_may_be_late_by_the_requested_pause(
        pause_ms: float, late: bool) -> None:
    evidence = evidence_of("one", congestion_control="bbr")
    (exchange,) = evidence.exchanges.values()
    moved = first_answer_later(exchange, 3_000_000)
    assert bool(late_answers(evidence.trial, moved, {round(pause_ms * 1e6)})) == late
