"""Which rows of logs and tables are used: every format's fields, limits, and the words on them."""

from __future__ import annotations

import math

import numpy
import pytest

from firstflight.base.errors import UsageError
from firstflight.study.users import logs
from firstflight.study.users.rows import Row, Skipped, UserTable, collect, summary

COMBINED = ('192.0.2.1 - - [21/Nov/2026:10:00:00 +0000] "GET /a b HTTP/1.1" 200 {size} "-" "x" '
            'rtt={rtt}\n')
SS_HEAD = "State Recv-Q Send-Q Local Address:Port Peer Address:Port\n"


def parsed(item: Row | str) -> Row:
    """A row, or the reason why there is none."""
    if isinstance(item, str):
        raise Skipped(item)
    return item


def users_of(*lines: str) -> UserTable:
    return logs.read(list(lines), "a file")


def one(*lines: str) -> tuple[float, float, float]:
    users = users_of(*lines)
    assert users.count == 1
    return users.rtt_ms[0], users.bandwidth_kbps[0], users.response_bytes[0]


# Formats -----------------------------------------------------------------------------

@pytest.mark.parametrize("rate, kbps", [("8000bps", 8), ("812Kbps", 812), ("3.2Mbps", 3200),
                                        ("1.5Gbps", 1.5e6)])
def test_ss_counts_in_thousands(rate: str, kbps: float) -> None:
    found = one(SS_HEAD, "ESTAB 0 0 a b\n",
                f"\t cubic rtt:37.5/4 bytes_acked:9 delivery_rate {rate}\n")
    assert found == (37.5, kbps, 9)


def test_ss_may_lack_its_head_and_say_less() -> None:
    for head in ("ESTAB 0 0 a b\n", "tcp   ESTAB 0 0 a b\n", "CLOSE-WAIT 1 0 a b\n"):
        rtt_ms, bandwidth_kbps, response_bytes = one(head, "\t cubic rtt:20/4 minrtt:1\n")
        assert rtt_ms == 20 and math.isnan(bandwidth_kbps) and math.isnan(response_bytes)
    users = users_of(SS_HEAD, "\t rtt:20/4\n")
    assert users.format == "the output of ss -tin" and users.estimated == {
        "bandwidth_kbps": "delivery_rate of the kernel: what the connection reached, at most the"
                          " bandwidth"}


def test_nginx_writes_microseconds_and_a_dash_for_nothing() -> None:
    users = users_of(COMBINED.format(size=9000, rtt=35500), COMBINED.format(size=1, rtt='"200"'),
                     *[COMBINED.format(size=5, rtt=1000)] * 18,
                     COMBINED.format(size=5, rtt=20), "\n",
                     COMBINED.format(size="-", rtt=100), COMBINED.format(size=9, rtt="-"))
    assert users.format == "a log with rtt= by name"
    assert users.rtt_ms.tolist() == [35.5, 0.2, *[1.0] * 18]
    assert users.skipped == {"with an RTT out of range": 1, "without an RTT": 1,
                             "without a body": 1}
    users = users_of(*[COMBINED.format(size=5, rtt=1000)] * 18, "another line\n")
    assert users.skipped == {"in another format than the first line": 1}


def test_the_short_log_names_its_fields_in_any_order() -> None:
    users = users_of('group=shop bytes="900" rtt=20000\n', "rtt=30000 bytes=800 group=-\n",
                     "rtt=30000 bytes=800\n")
    assert users.format == "a log with rtt= by name"
    assert users.groups == ("shop", "-", "") and users.group.tolist() == [0, 1, 2]
    with pytest.raises(UsageError, match="is in no format that is known; its first line is"):
        users_of("rtt=20000\n")


def test_a_csv_with_every_column_and_with_one() -> None:
    users = users_of("rtt_ms, bandwidth_kbps ,response_bytes,group,weight\n",
                     "20,1000,9000, home ,0.5\n", "# a remark\n", "30,-,,,\n")
    assert users.format == "CSV" and users.groups == ("home", "")
    assert users.weight.tolist() == [0.5, 1.0]
    assert users.missing() == ["bandwidth_kbps", "response_bytes"]
    assert users_of('"rtt_ms"\n', "20\n").missing() == ["bandwidth_kbps", "response_bytes"]
    assert users_of("# ours\n", "\n", "weight,rtt_ms\n", "2,20\n").weight.tolist() == [2]


@pytest.mark.parametrize("lines, said", [
    (["x" * 150 + "\n"], "its first line is '" + "x" * 100 + "'. Known: CSV with a header,"
     " such as rtt_ms,response_bytes; JSON, an object a line; a log with rtt=$tcpinfo_rtt; the output"
     " of ss -tin; or --rtt-field N for a field of a log"),
    (["rtt_ms,wieght\n"], "unknown column 'wieght' (did you mean 'weight'?); known: rtt_ms,"
     " bandwidth_kbps, response_bytes, group, weight"),
    (["rtt_ms\n", '"' + "1" * 200_000 + "\n"], "line "),
    (["# only a remark\n"], "is empty")])
def test_what_is_wrong_with_a_file_is_said_whole(lines: list[str], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        users_of(*lines)
    assert f"a file: {'is in no format that is known; ' if 'Known' in said else ''}{said}" in str(
        refused.value)


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
def test_a_row_that_no_network_is_like_is_left_out(row: str, why: str) -> None:
    users = users_of("rtt_ms,bandwidth_kbps,response_bytes,group,weight\n", *["20,1,1,,1\n"] * 20,
                     f"{row}\n")
    assert users.skipped == ({why: 1} if why else {})
    assert users.count == (20 if why else 21)


def test_a_tenth_may_be_left_out_and_no_more() -> None:
    good = Row(20.0, None, None)
    assert collect([good] * 9 + ["why"], parsed, "f", "a file").skipped == {"why": 1}
    with pytest.raises(UsageError, match="^a file: 2 of 19 rows cannot be used, more than a tenth:"
                                         " 2 why$"):
        collect([good] * 17 + ["why"] * 2, parsed, "f", "a file")
    with pytest.raises(UsageError, match="^a file: has no usable row$"):
        collect([], parsed, "f", "a file")
    with pytest.raises(UsageError, match="no usable row: 3 a; 2 b; 2 c$"):
        collect([*"aaabbccd"], parsed, "f", "a file")


def test_the_summary_counts_what_was_read_and_what_was_not() -> None:
    rows = [Row(20.0, 1.0, 1.0)] * 10 + [Row(30.0, 1.0, 1.0)] * 11
    assert summary(collect(rows, parsed, "CSV", "a file")) == (
        "21 rows read as CSV; the RTT is rtt_ms: median 30.0 ms, 20.0 to 30.0")
    assert summary(collect([*rows, "torn", Row(0.0, 1.0, 1.0)], parsed, "CSV", "a file")) == (
        "21 rows read as CSV, 2 excluded (1 torn; 1 with an RTT out of range); the RTT is rtt_ms: median 30.0 ms, 20.0 to 30.0")


def test_groups_are_numbered_as_they_come() -> None:
    users = collect([Row(1.0, 2.0, 3.0, "b", 4.0), Row(5.0, 6.0, 7.0, "a"),
                     Row(8.0, None, 9.0, "b")], parsed, "CSV", "a file")
    assert users.groups == ("b", "a") and users.group.tolist() == [0, 1, 0]
    assert users.weight.tolist() == [4, 1, 1] and users.response_bytes.tolist() == [3, 7, 9]
    assert numpy.isnan(users.bandwidth_kbps).tolist() == [False, False, True]
