"""Pages whose hosts did something else: what is refused, and by which check."""

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
    return lambda page: page.requested(**columns)


def said(**values: Any) -> Change:
    """The server reports something else on its last connection."""
    return lambda page: page.reported(lambda seen: seen["responses"][-1].update(values))


def of_object(number: int, **values: Any) -> Change:
    return lambda page: page.reported(lambda seen: seen["objects"][number].update(values))


def records(change: Callable[[list[int]], list[int]], port: int = -1) -> Change:
    """Other TLS records of as many bytes in all, on the last connection or on the one of a port."""
    def alter(seen: dict[str, Any]) -> None:
        place, runs = seen["records"][port]
        lengths = [length for length, count in runs for _ in range(count)]
        seen["records"][port] = [place, [[length, 1] for length in change(lengths)]]
    return lambda page: page.reported(alter)


def halved(lengths: list[int]) -> list[int]:
    """The records of responses are two in place of one each."""
    return [part for length in lengths for part in (
        (length // 2, length - length // 2) if length > 4400 else (length,))]


SOCKET, RECORDS = "server's socket", "TLS records"
TAMPERINGS: list[tuple[str, str, Change, str]] = [
    *((name, "BBR", said(congestion_control="bbr"), SOCKET)
      for name in ("two", "six", "tls", "nginx_tls", "http2", "resumed")),
    *((name, "a limit of the pacing rate", said(is_pacing_limited=True), SOCKET)
      for name in ("two", "six", "tls", "http2")),
    *((name, "a pacing rate a hundredth higher", lambda page: page.reported(
        lambda seen: seen["responses"][-1].update(pacing_bytes_per_s=round(
            1.01 * seen["responses"][-1]["pacing_bytes_per_s"]))), SOCKET)
      for name in ("two", "six", "tls", "http2")),
    *((name, "a larger send buffer", said(first_buffer_bytes=92_160), SOCKET)
      for name in ("two", "six", "tls", "http2")),
    *((name, "another MSS", said(mss=1447), SOCKET) for name in ("two", "six", "tls", "http2")),
    ("two", "Nagle's algorithm", said(has_nagle=True), SOCKET),
    ("two", "SO_SNDBUF", said(fixed_send_buffer=True), SOCKET),
    ("tls", "tcp_reordering", said(reordering=30), SOCKET),
    # A client with a name that is a character longer or shorter than its requests have.
    *((name, "longer requests", lambda page: page.reported(
        lambda seen: seen.update(libcurl="7.88.10")), "requests")
      for name in ("one", "two", "six", "waits", "lossy", "tls", "nginx_tls", "resumed")),
    ("waits", "a request without its think time", lambda page: page.requested(objects=tuple(
        replace(each, think_ms=0.0) for each in page.trial.objects)), "requests"),
    # The second connection was opened while the document was under way on the first one.
    ("two", "a connection that is free is not used", of_object(0, end_ms=80.0), "connections"),
    *((name, "shorter segments than the MSS, as path MTU probing sends", requested(mss=1449),
       "segment size") for name in ("one", "six", "tls", "http2", "lossy")),
    ("tls", "a ticket less", requested(tickets=1), "TLS"),
    ("http2", "a ticket less", requested(tickets=1), "TLS records"),
    ("http2", "no ticket", requested(tickets=0), "TLS records"),
    ("http2", "a ticket more", requested(tickets=3), "TLS records"),
    ("shared", "a host has another's certificate", lambda page: page.reported(
        lambda seen: seen.update(certificates=[[1024, "IP Address:10.0.0.2"],
                                               *seen["certificates"][1:]])), "TLS"),
    ("tls", "no word on certificates", lambda page: page.reported(
        lambda seen: seen.pop("certificates")), "TLS"),
    ("shared", "each host has a certificate", requested(shared_certificates=()), "TLS"),
    ("shared", "a host on a connection of another certificate", of_object(2, port=1024),
     "connections"),
    ("shared", "a connection more for a host that shares one", of_object(1, port=1025),
     "connections"),
    ("tls", "a flight in one write", requested(buffer_bytes=0), "TLS"),
    *((name, "shorter records", records(halved), RECORDS)
      for name in ("tls", "nginx_tls", "resumed", "http2")),
    *((name, "a record in place of two", records(
        lambda lengths: [*lengths[:-2], sum(lengths[-2:])]), RECORDS)
      for name in ("tls", "nginx_tls", "resumed")),
    *((name, "records of 9000 bytes at most", requested(record_bytes=9000), RECORDS)
      for name in ("tls", "nginx_tls", "http2")),
    *((name, "a byte that is in no record", records(
        lambda lengths: [*lengths[:-1], lengths[-1] - 1]), RECORDS)
      for name in ("tls", "nginx_tls", "http2")),
    *((name, "a connection whose records are not known", lambda page: page.reported(
        lambda seen: seen["records"].pop()), RECORDS) for name in ("tls", "nginx_tls", "http2")),
]


@pytest.mark.parametrize(("lengths", "sizes", "passes"), [
    ([8214, 8214, 8214, 1300], [7000, 7100, 5000, 6000], False),
    ([8214, 8214, 1300], [7000, 7100, 5000], True), ([16_406, 8214, 8214, 8214], [20_000], True),
    ([7158, 7158, 7158], [7000, 7000], True), ([7158, 7158, 7158, 7158], [7000, 7003], False),
    ([], [], True)])
def test_equal_records_need_equal_responses(lengths: list[int], sizes: list[int], passes: bool
                                            ) -> None:
    """Small responses that wait for each other come in records of 8 kB in place of 16 kB."""
    compared = compare_repeated(lengths, 16_384, sizes, "")
    assert all(comparison.passed for comparison in compared) == passes


@pytest.mark.parametrize(("name", "what", "change", "check"), TAMPERINGS,
                         ids=[f"{name}: {what}" for name, what, _, _ in TAMPERINGS])
def test_a_tampered_page_is_refused_by_its_check(name: str, what: str, change: Change,
                                                 check: str) -> None:
    assert not stored_page.load(name).judge().failed_checks
    assert check in failed_checks(change(stored_page.load(name)).judge()), what


def evidence_of(name: str, **columns: Any) -> PageEvidence:
    return stored_page.load(name).requested(**columns).evidence()


@pytest.mark.parametrize(("more_bytes", "passes"), [(0, True), (20, True), (1200, False)])
def test_a_request_over_http_2_longer_than_its_text_is_refused(more_bytes: int,
                                                               passes: bool) -> None:
    evidence = evidence_of("http2")
    ((port, exchange),) = evidence.exchanges.items()
    place = max(number for number, segment in enumerate(exchange.at_client)
                if segment.payload_bytes and not segment.to_client)
    longer = exchange.at_client[place]._replace(
        payload_bytes=exchange.at_client[place].payload_bytes + more_bytes)
    at_client = (*exchange.at_client[:place], longer, *exchange.at_client[place + 1:])
    changed = replace(evidence, exchanges={port: replace(exchange, at_client=at_client)})
    assert all(each.passed for each in compare_requests(changed)) == passes


def first_answer_later(exchange: Exchange, by_ns: int) -> Exchange:
    """The server's first data, and all that it sends after it, left so much later."""
    begun = next(number for number, segment in enumerate(exchange.at_server)
                 if segment.to_client and segment.payload_bytes)
    return replace(exchange, at_server=(*exchange.at_server[:begun], *(
        segment._replace(time_ns=segment.time_ns + by_ns) if segment.to_client else segment
        for segment in exchange.at_server[begun:])))


@pytest.mark.parametrize(("columns", "by_ns", "late"), [
    ({"congestion_control": "bbr"}, 0, False), ({"congestion_control": "bbr"}, 3_000_000, True),
    ({"qdisc": "fq"}, 3_000_000, True), ({"qdisc": "fq", "jitter_ms": 1.0}, 3_000_000, False),
    ({}, 3_000_000, False)])
def test_a_server_that_paces_answers_at_once_where_nothing_was_sent(
        columns: dict[str, Any], by_ns: int, late: bool) -> None:
    """A server that does not pace is judged segment by segment elsewhere."""
    evidence = evidence_of("one", **columns)
    ((port, exchange),) = evidence.exchanges.items()
    changed = replace(evidence, exchanges={port: first_answer_later(exchange, by_ns)})
    (moved,) = changed.exchanges.values()
    assert bool(late_answers(changed.trial, moved)) == late


@pytest.mark.parametrize(("pause_ms", "late"), [(0.0, True), (2.0, True), (3.0, False),
                                                (3.1, True)])
def test_a_server_that_paces_may_pause_as_long_as_is_requested(pause_ms: float, late: bool
                                                               ) -> None:
    evidence = evidence_of("one", congestion_control="bbr")
    (exchange,) = evidence.exchanges.values()
    moved = first_answer_later(exchange, 3_000_000)
    assert bool(late_answers(evidence.trial, moved, {round(pause_ms * 1e6)})) == late
