"""Files about users: their formats, the rows that are used, and damaged or hostile files."""

from __future__ import annotations

import gzip
import json
import math
import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest
from hypothesis import given, settings, strategies as any_

from firstflight.base import PROJECT, inflated, reading
from firstflight.base.errors import UsageError
from firstflight.study.users import logs
from firstflight.study.users.logs import read_file as read
from firstflight.study.users.rows import (MOST_GROUPS, QUIC, Row, Skipped, UserTable, collect,
                                          summary)
from firstflight.study.users.sample import scenario
from firstflight.workloads.fetch.scenario.requested_users import Requested, RttField
from tests.golden import stored
from tests.running import run_program

COMBINED = ('192.0.2.1 - ann [21/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" {status} {size} "-"'
            ' "Mozilla/5.0 (X11)" rtt={rtt}\n')
SS = """State Recv-Q Send-Q Local Address:Port Peer Address:Port
ESTAB 0      0      10.0.0.1:443 192.0.2.7:53144
\t cubic wscale:7,7 rto:240 rtt:37.5/4.2 mss:1448 cwnd:12 bytes_acked:48211 delivery_rate 3.2Mbps
ESTAB 0      0      10.0.0.1:443 192.0.2.9:1144
\t cubic rto:240 rtt:150/20 mss:1448 cwnd:10 bytes_acked:9211 delivery_rate 812Kbps
"""


def users_of(*parts: str) -> UserTable:
    """The users of a file that consists of these parts."""
    return logs.read("".join(parts).splitlines(keepends=True), "a file")


def test_a_log_may_begin_with_a_response_without_a_body() -> None:
    users = users_of(COMBINED.format(status=304, size=0, rtt=100)
                     + COMBINED.format(status=200, size=10, rtt=35500))
    assert users.count == 1


@pytest.mark.parametrize(("name", "rtt_ms", "response_bytes"), [
    ("iw10", 100, 9000), ("hystart", 70, 50_000), ("random_loss", 70, 30_000)])
def test_the_documented_tshark_command_turns_a_capture_into_a_users_csv(
        tmp_path: Path, name: str, rtt_ms: float, response_bytes: int) -> None:
    """The RTT includes the SYN's time on the link; the size includes headers and repeats."""
    (line,) = re.findall(r"^    \$ (tshark .*)$",
                         (PROJECT / "docs" / "QUESTIONS.md").read_text(), re.M)
    shutil.copy(stored.FOLDER / name / "server.pcap", tmp_path)
    command = re.sub("srcport==443", "srcport==80", line)
    subprocess.run(["bash", "-eo", "pipefail", "-c", command], cwd=tmp_path, check=True)
    users = read(tmp_path / "users.csv")
    assert users.count == 1 and users.rtt_ms[0] == pytest.approx(rtt_ms, abs=3)
    assert response_bytes <= users.response_bytes[0] <= 1.2 * response_bytes + 100


def test_a_row_that_is_not_utf_8_is_read_like_any_other(tmp_path: Path) -> None:
    """A browser may send any bytes as its name."""
    path = tmp_path / "access.log"
    line = COMBINED.format(status=200, size=9000, rtt="30000")
    path.write_bytes(line.encode().replace(b"Mozilla", b"\xff\xfe") + line.encode())
    assert read(path).count == users_of(line * 2).count == 2


@settings(max_examples=25, deadline=None)
@given(any_.lists(any_.text(max_size=60), max_size=6))
def test_any_text_yields_users_or_a_refusal_of_one_line(lines: list[str]) -> None:
    for first in ("", "rtt_ms,response_bytes\n", "rtt=3000 bytes=100\n", SS):
        try:
            users = logs.read([first, *lines], "a file")
        except UsageError as error:
            assert "\n" not in str(error)
        else:
            assert users.count and not numpy.isnan(users.rtt_ms).any()


# Which field is the round-trip time -----------------------------------------------------

AGENT = '"Mozilla/5.0 (X11; Linux x86_64)"'
LINE = '192.0.2.1 - - [21/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 9000 "-" ' + AGENT
JSON_NGINX = '{"time": "2026", "status": 200, "body_bytes_sent": 9000, "tcpinfo_rtt": "73700"}'
CLOUDFLARE = ('{"EdgeStartTimestamp": "2026-11-21T10:00:00Z", "ClientTCPRTTMs": 74,'
              ' "EdgeResponseBytes": 9000, "ClientCountry": "za"}')
W3C = "#Version: 1.0\n#Fields: date time cs-method {} sc-bytes\n2026-11-21 10:00:00 GET {} 9000\n"


@pytest.mark.parametrize(("text", "rtt_ms", "rtt_from", "group"), [
    (LINE + " rtt=73700 bytes=9000\n", 73.7, "rtt in µs", ""),
    (LINE.replace('"-" ', 'rtt=73700 "-" ') + "\n", 73.7, "rtt in µs", ""),  # within the line
    (JSON_NGINX + "\n", 73.7, "tcpinfo_rtt in µs", ""),
    (CLOUDFLARE + "\n", 74, "ClientTCPRTTMs in ms", "za"),
    ("tcpinfo_rtt,body_bytes_sent,ua\n73700,9000,x\n", 73.7, "tcpinfo_rtt in µs", ""),
    ("ClientTCPRTTMs,EdgeResponseBytes\n74,9000\n", 74, "ClientTCPRTTMs in ms", ""),
    (W3C.format("rtt_ms", "74"), 74, "rtt_ms in ms", "")])
@pytest.mark.parametrize("is_zipped", [False, True])
def test_a_field_with_a_known_name_is_the_rtt(tmp_path: Path, text: str, rtt_ms: float,
                                              rtt_from: str, group: str,
                                              is_zipped: bool) -> None:
    path = tmp_path / "log"
    path.write_bytes(gzip.compress(text.encode()) if is_zipped else text.encode())
    users = read(path)
    assert users.rtt_ms.tolist() == pytest.approx([rtt_ms]) and users.rtt_from == rtt_from
    assert users.response_bytes.tolist() == [9000] and users.groups == (group,)


@pytest.mark.parametrize(("number", "unit", "rtt_ms"), [(11, "µs", 73.7), (11, "ms", 73_700)])
def test_a_field_chosen_by_number_is_the_rtt_in_the_chosen_unit(number: int, unit: str,
                                                                rtt_ms: float) -> None:
    line = LINE + ' "-" 73700\n'  # a text in quotes or brackets is one field
    users = logs.read([line], "a log", RttField(number, unit))
    assert users.rtt_ms.tolist() == pytest.approx([rtt_ms]) and users.response_bytes[0] == 9000
    assert users.rtt_from == f"field {number} in {unit}"
    with pytest.raises(UsageError, match="of fewer than 40 fields"):
        logs.read([line], "a log", RttField(40))


FASTLY = ('{"service_id": "x", "request": "GET", "protocol": "HTTP/2", "resp_body_size": 9000,'
          ' "socket_cwnd": 60, "socket_tcpi_rtt": 73700, "socket_tcpi_rttvar": 900}')
LTSV = "time:21/Nov/2026\thost:192.0.2.1\treq:GET / HTTP/1.1\tsize:9000\ttcpinfo_rtt:73700"
LOGFMT = 'time=x method=GET rtt_msecs=73700 bytes=9000 country="za"'
TCPINFO = ("timestamp event client server rtt rttvar\n"
           "20261121.10h00m00s txn_close 192.0.2.1 192.0.2.2 73700 900\n"
           "20261121.10h00m01s ssn_close 192.0.2.1 192.0.2.2 99999 900\n")


@pytest.mark.parametrize(("text", "chosen", "rtt_ms", "rtt_from"), [
    (FASTLY, None, 73.7, "socket_tcpi_rtt in µs"), (LTSV, None, 73.7, "tcpinfo_rtt in µs"),
    (LOGFMT, RttField(0, "µs", "rtt_msecs"), 73.7, "rtt_msecs in µs"),
    ('tcpinfo_rtt=73700 body_bytes_sent=9000', None, 73.7, "tcpinfo_rtt in µs"),
    (LTSV.replace("tcpinfo_rtt", "delay"), RttField(0, "ms", "delay"), 73_700, "delay in ms"),
    ('{"client_rtt": "74", "bytes": 9000}', RttField(0, "ms", "client_rtt"), 74,
     "client_rtt in ms"),
    ("delay,bytes\n74,9000\n", RttField(0, "ms", "delay"), 74, "delay in ms"),
    (W3C.format("c-rtt", "73700"), RttField(0, "µs", "c-rtt"), 73.7, "c-rtt in µs"),
    (LINE + ' "-" delay=74', RttField(0, "ms", "delay"), 74, "delay in ms")])
def test_the_rtt_is_the_field_that_a_server_or_the_user_names(text: str, chosen: RttField | None,
                                                              rtt_ms: float, rtt_from: str) -> None:
    users = logs.read(text.splitlines(keepends=True), "a log", chosen)
    assert users.rtt_ms.tolist() == pytest.approx([rtt_ms]) and users.rtt_from == rtt_from
    assert users.response_bytes.tolist() == [9000]


def test_traffic_servers_tcpinfo_log_is_read_with_and_without_its_head() -> None:
    users = users_of(TCPINFO)
    assert users.rtt_ms.tolist() == [73.7] and users.rtt_from == "rtt in µs"
    assert list(users.skipped.values()) == [1]
    assert users_of(TCPINFO.partition("\n")[2]).count == 1, "the head may be in another file"


@pytest.mark.parametrize(("tcp", "quic"), [
    (CLOUDFLARE, CLOUDFLARE.replace("74", "0")),
    (JSON_NGINX, '{"protocol": "HTTP/3.0", "body_bytes_sent": 9000, "tcpinfo_rtt": ""}'),
    (LINE + " rtt=73700", LINE.replace("HTTP/1.1", "HTTP/3.0") + " rtt=-"),
    (LTSV, LTSV.replace("tcpinfo_rtt:73700", "tcpinfo_rtt:-\tproto:h3"))])
def test_rows_over_quic_are_excluded_and_counted_apart(tcp: str, quic: str) -> None:
    """A file is not refused although most of its rows are over QUIC."""
    users = users_of(f"{tcp}\n", f"{quic}\n" * 3)
    assert users.count == 1 and users.skipped == {QUIC: 3}


def test_a_row_that_lacks_only_its_rtt_is_not_counted_as_quic() -> None:
    without = JSON_NGINX.replace("73700", "-")
    users = users_of(f"{JSON_NGINX}\n" * 10, f"{without}\n")
    assert users.skipped == {"without an RTT": 1}


@pytest.mark.parametrize("damage", [
    lambda content: content[:-20], lambda content: content[:12] + b"\xff" * 20 + content[32:],
    lambda content: content[:3] + bytes(200)])
def test_a_damaged_gzip_file_is_refused(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "log.gz"
    path.write_bytes(damage(gzip.compress(
        "".join(f"rtt={20_000 + number} bytes={number}\n" for number in range(1, 999)).encode())))
    with pytest.raises(UsageError, match="is a damaged gzip file|cannot be read|no format"):
        read(path)


def test_a_small_file_that_inflates_beyond_the_limit_is_refused(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MOST_INFLATED", 1 << 20)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"rtt=20000 bytes=9\n" * 200_000))
    assert path.stat().st_size < 20_000
    with pytest.raises(UsageError, match="it has more than 1 MB; keep .* one line in ten"):
        read(path)


def test_a_large_file_is_sampled_evenly_and_a_larger_one_refused(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "users.csv"
    path.write_text("rtt_ms\n" + "".join(f"{1 + number / 100}\n" for number in range(20_000)))
    whole = read(path)
    assert (whole.format, whole.count) == ("CSV", 20_000)
    monkeypatch.setattr(logs, "MOST_READ", 2000)
    sampled = read(path)
    assert sampled.format == "CSV, one line in 11 of the file's"
    assert sampled.count == pytest.approx(1000 + 19_000 / 11, abs=1)  # the first 1000 are all read
    tail = sampled.rtt_ms[sampled.rtt_ms >= 10.99]
    assert numpy.diff(tail) == pytest.approx(0.11) and tail[-1] > 200.8
    monkeypatch.setattr(logs, "MOST_LINES", 19_000)
    with pytest.raises(UsageError, match="it has more than 19,000 lines; keep"):
        read(path)


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
@pytest.mark.parametrize("piece", [1, 7, 1 << 16])
def test_a_samples_lines_are_whole_lines_of_the_file_with_any_line_end(
        end: str, piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inflated, "PIECE_BYTES", piece)
    path = tmp_path / "log"
    path.write_text("".join(f"{number}{end}" for number in range(1500)) + "last", newline="")
    found = inflated.lines(path, 100, 10_000, 1 << 20)
    read = [line.strip() for line in found.lines]
    expected = [*range(1000), *range(1000, 1500, found.one_in)]
    assert found.one_in >= 15 and read == [*map(str, expected), "last"]


# Which rows of logs and tables are used -----------------------------------------------

ACCESS_LOG = ('192.0.2.1 - - [21/Nov/2026:10:00:00 +0000] "GET /a b HTTP/1.1" 200 {size} "-" "x" '
              'rtt={rtt}\n')
SS_HEAD = "State Recv-Q Send-Q Local Address:Port Peer Address:Port\n"


def parsed(item: Row | str) -> Row:
    """The parser of a row for collect(). A text is the reason why a row is excluded."""
    if isinstance(item, str):
        raise Skipped(item)
    return item


def one_user(*lines: str) -> tuple[float, float, float]:
    """RTT, bandwidth and response size of the only user of a file."""
    users = users_of(*lines)
    assert users.count == 1
    return users.rtt_ms[0], users.bandwidth_kbps[0], users.response_bytes[0]


# Formats -----------------------------------------------------------------------------

@pytest.mark.parametrize("rate, kbps", [("8000bps", 8), ("812Kbps", 812), ("3.2Mbps", 3200),
                                        ("1.5Gbps", 1.5e6)])
def test_rates_of_ss_have_decimal_prefixes(rate: str, kbps: float) -> None:
    found = one_user(SS_HEAD, "ESTAB 0 0 a b\n",
                f"\t cubic rtt:37.5/4 bytes_acked:9 delivery_rate {rate}\n")
    assert found == (37.5, kbps, 9)


def test_output_of_ss_is_read_without_its_head_or_some_fields() -> None:
    for head in ("ESTAB 0 0 a b\n", "tcp   ESTAB 0 0 a b\n", "CLOSE-WAIT 1 0 a b\n"):
        rtt_ms, bandwidth_kbps, response_bytes = one_user(head, "\t cubic rtt:20/4 minrtt:1\n")
        assert rtt_ms == 20 and math.isnan(bandwidth_kbps) and math.isnan(response_bytes)
    users = users_of(SS_HEAD, "\t rtt:20/4\n")
    assert users.format == "the output of ss -tin" and users.estimated == {
        "bandwidth_kbps": "delivery_rate of the kernel: what the connection reached, at most the"
                          " bandwidth"}


@pytest.mark.parametrize(("agent", "used"), [
    ("Mozilla/5.0 (X11; Linux x86_64)", 1), ("Cubot NOTE 20", 1), ("-", 1),
    ("Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", 0),
    ("bingbot/2.0", 0), ("Baiduspider", 0), ("Mozilla/5.0 (compatible; AhrefsBot/7.0)", 0)])
def test_bots_are_counted_and_excluded(agent: str, used: int) -> None:
    browsers_line = ACCESS_LOG.format(size=9000, rtt=35500)
    line = browsers_line.replace('"-" "x"', f'"-" "{agent}"')
    users = users_of(browsers_line, line)
    assert users.count == 1 + used
    assert users.skipped.get("of bots, by their user agent", 0) == 1 - used

    fields = {"tcpinfo_rtt": 9000, "body_bytes_sent": 9}
    as_json = users_of(json.dumps(fields) + "\n",
                       json.dumps({**fields, "http_user_agent": agent}) + "\n")
    assert as_json.count == 1 + used


@pytest.mark.parametrize("field", ["connection_requests", "http_first_req"])
def test_only_the_first_request_of_a_connection_counts(field: str) -> None:
    lines = [f"rtt=9000 bytes=9000 {field}={number}\n" for number in (1, 2, 1, 0)]
    users = users_of(*lines)
    assert users.count == 2 and users.are_first_requests
    assert users.skipped == {"on connections that were in use": 2}
    assert not users_of("rtt=9000 bytes=9000\n").are_first_requests


def test_nginx_rtts_are_microseconds_and_a_dash_is_a_missing_value() -> None:
    usual = [ACCESS_LOG.format(size=5, rtt=1000)] * 18
    users = users_of(ACCESS_LOG.format(size=9000, rtt=35500),
                     ACCESS_LOG.format(size=1, rtt='"200"'),
                     *usual,
                     ACCESS_LOG.format(size=5, rtt=20), "\n",
                     ACCESS_LOG.format(size="-", rtt=100), ACCESS_LOG.format(size=9, rtt="-"))
    assert users.format == "a log with rtt= by name"
    assert users.rtt_ms.tolist() == [35.5, 0.2, *[1.0] * 18]
    assert "192.0.2" not in repr(users), "addresses are not stored"
    assert users.skipped == {"with an RTT out of range": 1, "without an RTT": 1,
                             "without a body": 1, "empty lines": 1}

    users = users_of(*usual, "another line\n")
    assert users.skipped == {"in another format than the first line": 1}


def test_a_short_log_is_read_with_its_named_fields_in_any_order() -> None:
    users = users_of('group=shop bytes="900" rtt=20000\n', "rtt=30000 bytes=800 group=-\n",
                     "rtt=30000 bytes=800\n")
    assert users.format == "a log with rtt= by name"
    assert users.groups == ("shop", "-", "") and users.group.tolist() == [0, 1, 2]
    with pytest.raises(UsageError, match="is in no format that is known; its first line is"):
        users_of("rtt=20000\n")


def test_a_csv_may_have_every_column_or_the_rtt_alone() -> None:
    users = users_of("rtt_ms, bandwidth_kbps ,response_bytes,group,weight\n",
                     "20,1000,9000, home ,0.5\n", "# a remark\n", "30,-,,,\n")
    assert users.format == "CSV" and users.groups == ("home", "")
    assert users.weight.tolist() == [0.5, 1.0]
    assert users.missing() == ["bandwidth_kbps", "response_bytes"]
    assert users_of('"rtt_ms"\n', "20\n").missing() == ["bandwidth_kbps", "response_bytes"]
    assert users_of("# ours\n", "\n", "weight,rtt_ms\n", "2,20\n").weight.tolist() == [2]


# Limits ------------------------------------------------------------------------------

@pytest.mark.parametrize("row, why", [
    ("0.1,1,1,,1", ""), ("0.0999,1,1,,1", "with an RTT out of range"),
    ("100000,1e7,5e7,,1", ""), ("100001,1,1,,1", "with an RTT out of range"),
    ("20,0.9,1,,1", "with a bandwidth out of range"),
    ("20,1,0,,1", "with a response out of range"),
    ("20,1,1,,0.001", ""), ("20,1,1,,-1", "with a weight that is not above 0"),
    ("20,1,1,,nan", "with a weight that is not a number"),
    ("inf,1,1,,1", "with rtt_ms that is not a number"),
    ("20,x,1,,1", "with bandwidth_kbps that is not a number"),
    (f"20,1,1,{'g' * 60},1", ""),
    (f"20,1,1,{'g' * 61},1", "with a group's name that is too long or not printable"),
    ("20,1,1,a\x7fb,1", "with a group's name that is too long or not printable")])
def test_a_row_out_of_range_is_excluded_with_its_reason(row: str, why: str) -> None:
    users = users_of("rtt_ms,bandwidth_kbps,response_bytes,group,weight\n",
                     *["20,1,1,,1\n"] * 20,
                     f"{row}\n")
    assert users.skipped == ({why: 1} if why else {})
    assert users.count == (20 if why else 21)


def test_a_file_with_more_than_a_tenth_of_unusable_rows_is_refused() -> None:
    good = Row(20.0, None, None)
    assert collect([good] * 9 + ["why"], parsed, "f", "a file").skipped == {"why": 1}
    with pytest.raises(UsageError, match="^a file: 2 of 19 rows cannot be used, more than a tenth:"
                                         " 2 why$"):
        collect([good] * 17 + ["why"] * 2, parsed, "f", "a file")
    with pytest.raises(UsageError, match="^a file: has no usable row$"):
        collect([], parsed, "f", "a file")
    with pytest.raises(UsageError, match="no usable row: 3 a; 2 b; 2 c$"):
        collect([*"aaabbccd"], parsed, "f", "a file")


def test_the_summary_counts_the_rows_read_and_excluded() -> None:
    rows = [Row(20.0, 1.0, 1.0)] * 10 + [Row(30.0, 1.0, 1.0)] * 11
    assert summary(collect(rows, parsed, "CSV", "a file")) == (
        "21 rows read as CSV; the RTT is rtt_ms: median 30.0 ms, 20.0 to 30.0")
    assert summary(collect([*rows, "torn", Row(0.0, 1.0, 1.0)], parsed, "CSV", "a file")) == (
        "21 rows read as CSV, 2 excluded (1 torn; 1 with an RTT out of range); the RTT is rtt_ms:"
        " median 30.0 ms, 20.0 to 30.0")


def test_groups_are_numbered_in_the_order_in_which_they_first_appear() -> None:
    users = collect([Row(1.0, 2.0, 3.0, "b", 4.0), Row(5.0, 6.0, 7.0, "a"),
                     Row(8.0, None, 9.0, "b")], parsed, "CSV", "a file")
    assert users.groups == ("b", "a") and users.group.tolist() == [0, 1, 0]
    assert users.weight.tolist() == [4, 1, 1] and users.response_bytes.tolist() == [3, 7, 9]
    assert numpy.isnan(users.bandwidth_kbps).tolist() == [False, False, True]


# Damaged and hostile files ------------------------------------------------------------

SOCKET = "\t cubic rtt:20/4 delivery_rate 1.5Mbps bytes_acked:9000\n"
GOOD_SS = "State Recv-Q Send-Q\n" + SOCKET * 20


def users_of_file(path: Path, content: str) -> UserTable:
    """The users of a file with this content."""
    path.write_bytes(content.encode())
    return read(path)


# Lines on which a pattern that backtracks would take a time that grows with the square of their
# length.
LONG = ("a a " + "[x " * 40_000, "a a " + " [" * 60_000, "a " * 60_000, 'a a [x] "' * 20_000,
        "rtt=" * 40_000, "x rtt:" + "1." * 60_000, "- " * 60_000, "1 - [] " * 20_000)


def test_a_line_is_read_in_linear_time() -> None:
    """A child process reads the lines, as no signal can interrupt a regular expression."""
    program = ("import sys; from firstflight.study.users import logs\n"
               "from firstflight.base.errors import UsageError\n"
               "for line in sys.stdin.read().splitlines():\n"
               "    print(line[:9], flush=True)\n"
               "    for lines in ([line], ['rtt=3000 bytes=100', line], ['State Recv-Q', line],\n"
               "                  ['rtt_ms', line]):\n"
               "        try: logs.read(lines, 'f')\n"
               "        except UsageError as error: assert len(str(error)) <= 500\n")
    done = run_program(["prlimit", "--cpu=60", sys.executable, "-c", program],
                       input="\n".join(LONG))
    assert done.returncode == 0, f"{done.stdout.splitlines()[-1:]}: {done.stderr}"
    assert len(done.stdout.splitlines()) == len(LONG)


def test_a_user_name_in_an_access_log_may_have_blanks_and_brackets() -> None:
    line = '192.0.2.7 - {} [21/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 9 "-" "M" rtt=30000'
    users = logs.read([line.format(name) for name in ("-", "a b", "[a]", "a[b", "[x] [y]")], "log")
    assert users.count == 5 and not users.skipped


@pytest.mark.parametrize(("fields", "why"), [
    ("rtt:1.2.3/4", "with an RTT that is not a number"),
    ("rtt:20/4 delivery_rate 1.2.3Mbps", "with a delivery_rate that is not a number"),
    ("rtt:20/4 bytes_acked:" + "9" * 400_000, "with a size that is not a number"),
    ("rtt:" + "1" * 400_000 + "/4", "with an RTT that is not a number")])
def test_a_socket_with_a_malformed_number_is_excluded(tmp_path: Path, fields: str,
                                                      why: str) -> None:
    assert users_of_file(tmp_path / "ss", f"{GOOD_SS}\t cubic {fields}\n").skipped == {why: 1}


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_csv_is_read_with_any_line_end_and_with_a_byte_order_mark(tmp_path: Path, end: str,
                                                                    mark: str) -> None:
    lines = ["rtt_ms,response_bytes,group", "20,9000,a", "30,9000,b", ""]
    users = users_of_file(tmp_path / "users.csv", mark + end.join(lines))
    assert (users.count, users.groups, users.format) == (2, ("a", "b"), "CSV")


def test_a_head_that_is_not_csv_is_refused_by_its_line() -> None:
    with pytest.raises(UsageError, match="^f: line [01]: field larger than field limit"):
        logs.read(['rtt_ms,"' + "x" * 200_000 + '"\n', "1\n"], "f")
    with pytest.raises(UsageError, match="^f: line [01]: new-line character seen"):
        logs.read(["x\r,rtt_ms\n", "1\n"], "f")


def test_a_line_of_20_gb_is_refused_in_700_mb_of_memory(tmp_path: Path) -> None:
    """The file is sparse: its 20 GB take no room on the disk."""
    path = tmp_path / "users.csv"
    with path.open("wb") as file:
        file.write(b"rtt_ms\n")
        file.truncate(20 << 30)
    program = ("import sys; from pathlib import Path\n"
               "from firstflight.study.users.logs import read_file as read\n"
               "from firstflight.base.errors import UsageError\n"
               "try: read(Path(sys.argv[1]))\n"
               "except UsageError as error: print(error)\n")
    done = subprocess.run(["prlimit", "--as=700000000", sys.executable, "-c", program, str(path)],
                          capture_output=True, text=True, check=True, cwd=PROJECT)
    assert done.stdout == (f"{path}: cannot be read: it has a line of more than"
                           f" {reading.MOST_LINE_CHARACTERS} characters{logs.FEWER}\n")


def test_a_file_that_is_read_whole_is_refused_beyond_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(OSError, match="it has more than 64 MB"):
        reading.content(path)
    os.truncate(path, 10)
    assert reading.content(path, 10) == b"\0" * 10
    with pytest.raises(OSError, match="it has more than 0 MB"):
        reading.content(path, 9)


def test_extreme_weights_are_summed_without_a_warning() -> None:
    rows = ["rtt_ms,bandwidth_kbps,response_bytes,weight"] + ["20,1000,9000,1e12"] * 20
    users = logs.read([*rows, "20,1000,9000,1e308"], "f")
    assert users.skipped == {"with a weight above 1e+12": 1}
    for weight in ("1e12", "5e-324"):
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            users = logs.read([rows[0], *[f"20,1000,9000,{weight}", "30,1000,9000,1e-9"] * 20], "f")
            assert scenario(users, Requested((10, 20), 50), Path("f"), 1).users


def test_more_groups_than_a_page_has_room_for_are_refused() -> None:
    head, rows = "rtt_ms,group", [f"20,g{number}" for number in range(MOST_GROUPS + 1)]
    assert len(logs.read([head, *rows[:-1]], "f").groups) == MOST_GROUPS
    with pytest.raises(UsageError, match="^f: has more than 1000 groups; leave the column out"):
        logs.read([head, *rows], "f")
