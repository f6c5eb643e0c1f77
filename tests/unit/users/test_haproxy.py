"""HAProxy's httplog: bots by captured headers, responses without a body, sizes, and fields."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from firstflight.base import PROJECT
from firstflight.study.users import logs
from firstflight.study.users.rows import BOT, EMPTY_RESPONSE
from firstflight.workloads.fetch.scenario.requested_users import RttField
from tests.running import run_program

BROWSER = "Mozilla/5.0 (X11; Linux x86_64) Chrome/131.0"
CRAWLER = "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)"


def line(headers: str, status: int = 200, size: str = "9320", end: str = "rtt=30000") -> str:
    """A line of the httplog. headers: captured ones, between braces. end: after the request."""
    return ("Nov 27 08:00:00 lb1 haproxy[2211]: 2001:db8::1:40000 [27/Nov/2026:08:00:00.000]"
            f" fe_https~ web/w1 0/0/1/30/33 {status} {size} - - ---- 1/1/0/0/0 0/0 {{{headers}}}"
            f' "GET / HTTP/2.0" {end}')


@pytest.mark.parametrize(("headers", "is_used"), [
    (f"www.example.org|{BROWSER}", True), (BROWSER, True), ("", True),
    (f"www.example.org|{CRAWLER}", False), (f"{CRAWLER}|www.example.org", False),
    ("Googlebot/2.1 (+http://www.google.com/bot.html)", False),
    # A host and a referrer with a word of bots in them are no bots.
    (f"bot.example.org|{BROWSER}", True), (f"https://example.org/crawl/2|{BROWSER}", True)])
def test_bots_are_recognised_by_the_user_agent_among_the_captured_headers(headers: str,
                                                                          is_used: bool) -> None:
    users = logs.read([line(BROWSER), line(headers)], "a file")
    assert users.count == 1 + is_used
    assert users.skipped == ({} if is_used else {BOT: 1})


@pytest.mark.parametrize("rows", [
    [line(BROWSER), line(BROWSER, status=304, size="320"), line(BROWSER, status=204, size="99")],
    ['{"tcpinfo_rtt": 30000, "bytes_sent": 9320, "status": %s}' % status
     for status in ("200", "304", '"204"')],
    [f'192.0.2.1 - - [27/Nov/2026:08:00:00 +0000] "GET / HTTP/1.1" {status} 9320 "-" "-" rtt=30000'
     for status in (200, 304, 204)],
    ["#Fields: rtt sc-status sc-bytes", *(f"30000 {status} 9320" for status in (200, 304, 204))]],
                         ids=["HAProxy", "JSON", "combined", "W3C"])
def test_a_response_that_is_only_a_header_is_excluded_as_empty(rows: list[str]) -> None:
    """HAProxy's %B and nginx's $bytes_sent count the header of a 304, which has no body."""
    users = logs.read(rows, "a file")
    assert users.response_bytes.tolist() == [9320]
    assert users.skipped == {EMPTY_RESPONSE: 2}


def test_the_httplogs_size_is_read_without_a_name() -> None:
    users = logs.read([line(BROWSER), line(BROWSER, size="+500")], "a file")
    assert users.response_bytes.tolist() == [9320, 500]


def test_captured_headers_count_as_one_field_with_and_without_spaces() -> None:
    rows = [line(headers, end="30000") for headers in (BROWSER, f"a.example|{BROWSER}", "", "-")]
    users = logs.read(rows, "a file", RttField(20))
    assert users.rtt_ms.tolist() == [30] * 4
    assert users.response_bytes.tolist() == [9320] * 4


def test_a_dry_run_reports_the_rows_read_and_excluded(tmp_path: Path) -> None:
    path = tmp_path / "haproxy.log"
    path.write_text("\n".join([line(BROWSER)] * 30 + [line(CRAWLER)]) + "\n")
    done = run_program([sys.executable, PROJECT / "experiment.py", "--users", path, "--bw", "10M",
                        "--dry-run"])
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        "haproxy.log: 30 rows read as a log with rtt= by name, 1 excluded"
        " (1 of bots, by their user agent); the RTT is rtt in µs: median 30.0 ms")
