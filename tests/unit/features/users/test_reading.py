"""Files about users: each format, what is left out of it, and what is no such file."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as any_

from firstflight.base.errors import UsageError
from firstflight.base.files import PROJECT
from firstflight.study.users import logs
from firstflight.study.users.logs import read_file as read
from firstflight.study.users.requested import RttField
from firstflight.study.users.rows import UserTable
from tests.golden import stored

COMBINED = ('192.0.2.1 - ann [21/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" {status} {size} "-"'
            ' "Mozilla/5.0 (X11)" rtt={rtt}\n')
SS = """State Recv-Q Send-Q Local Address:Port Peer Address:Port
ESTAB 0      0      10.0.0.1:443 192.0.2.7:53144
\t cubic wscale:7,7 rto:240 rtt:37.5/4.2 mss:1448 cwnd:12 bytes_acked:48211 delivery_rate 3.2Mbps
ESTAB 0      0      10.0.0.1:443 192.0.2.9:1144
\t cubic rto:240 rtt:150/20 mss:1448 cwnd:10 bytes_acked:9211 delivery_rate 812Kbps
"""


def users_of(text: str) -> UserTable:
    return logs.read(text.splitlines(keepends=True), "a file")


def test_csv() -> None:
    users = users_of("# made by hand\nresponse_bytes,rtt_ms,group,weight\n9000,35.5,home,2\n"
                     "1000, 20,,1\n")
    assert users.rtt_ms.tolist() == [35.5, 20] and users.response_bytes.tolist() == [9000, 1000]
    assert users.weight.tolist() == [2, 1]
    assert [users.groups[place] for place in users.group] == ["home", ""]
    assert users.missing() == ["bandwidth_kbps"] and not users.skipped


def test_nginx_in_both_forms_and_no_address() -> None:
    log = "".join(COMBINED.format(status=200, size=9000 + number, rtt=35500) for number in range(20))
    users = users_of(log + COMBINED.format(status=304, size=0, rtt=35500))
    assert users.rtt_ms.tolist() == [35.5] * 20
    assert users.response_bytes.tolist() == [9000 + number for number in range(20)]
    assert users.skipped == {"without a body": 1} and "192.0.2" not in repr(users)
    named = users_of("rtt=35500 bytes=9000 group=example.org\n")
    assert (named.rtt_ms[0], named.response_bytes[0], named.groups) == (35.5, 9000,
                                                                        ("example.org",))


def test_a_log_may_begin_with_a_response_without_a_body() -> None:
    users = users_of(COMBINED.format(status=304, size=0, rtt=100)
                     + COMBINED.format(status=200, size=10, rtt=35500))
    assert users.count == 1


def test_ss() -> None:
    users = users_of(SS)
    assert users.rtt_ms.tolist() == [37.5, 150]
    assert users.bandwidth_kbps.tolist() == [3200, 812]
    assert users.response_bytes.tolist() == [48211, 9211]
    assert "delivery_rate" in users.estimated["bandwidth_kbps"]


@pytest.mark.parametrize(("name", "rtt_ms", "response_bytes"), [
    ("iw10", 100, 9000), ("hystart", 70, 50_000), ("random_loss", 70, 30_000)])
def test_the_pages_line_of_tshark_makes_a_csv_of_a_capture(tmp_path: Path, name: str, rtt_ms: float,
                                                          response_bytes: int) -> None:
    """The handshake's RTT holds the SYN's own time on the link; the size headers and repeats."""
    (line,) = re.findall(r"^    \$ (tshark .*)$", (PROJECT / "docs" / "QUESTIONS.md").read_text(), re.M)
    shutil.copy(stored.FOLDER / name / "server.pcap", tmp_path)
    port = re.sub("srcport==443", "srcport==80", line)
    subprocess.run(["bash", "-eo", "pipefail", "-c", port], cwd=tmp_path, check=True)
    users = read(tmp_path / "users.csv")
    assert users.count == 1 and users.rtt_ms[0] == pytest.approx(rtt_ms, abs=3)
    assert response_bytes <= users.response_bytes[0] <= 1.2 * response_bytes + 100


@pytest.mark.parametrize("first", [b"\xa1\xb2\xc3\xd4", b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\x3c\x4d",
                                   b"\x4d\x3c\xb2\xa1", b"\x0a\x0d\x0d\x0a"])
def test_a_capture_is_told_how_to_become_a_csv(tmp_path: Path, first: bytes) -> None:
    """pcap in µs and ns, in either order of bytes, and pcapng."""
    path = tmp_path / "capture"
    path.write_bytes(first + bytes(100))
    with pytest.raises(UsageError, match="is a capture; tshark turns it into a CSV file"):
        read(path)


def test_a_few_bad_rows_are_counted_and_left_out() -> None:
    rows = ["30,9000\n"] * 40
    users = users_of("rtt_ms,response_bytes\n" + "".join(rows) + "1e9,9000\nx,9000\n,9000\n")
    assert users.count == 40
    assert users.skipped == {"with an RTT out of range": 1, "with rtt_ms that is not a number": 1,
                             "without an RTT": 1}


@pytest.mark.parametrize(("text", "message"), [
    ("rtt_ms,response_bytes\n" + "30,9000\n" * 8 + "x,1\n", "1 of 9 rows cannot be used"),
    ("rtt_ms,response_bytes\n", "has no usable row"),
    ("", "is empty"),
    ("rtt_ms,size\n1,2\n", "unknown column 'size'"),
    ("root:x:0:0:root:/root:/bin/bash\n", "its first line is 'root:x:0:0"),
    ("rtt_ms,weight\n30,0\n", "a weight that is not above 0"),
    ("rtt_ms,group\n30,a\x01b\n", "not printable"),
    ("rtt_ms\n30\x00\n", "a file"),
])
def test_what_is_no_such_file_is_one_line(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        users_of(text)


def test_what_is_no_utf_8_is_a_row_like_any_other(tmp_path: Path) -> None:
    """A browser may say anything of itself; its line still has a round trip and a size."""
    path = tmp_path / "access.log"
    line = COMBINED.format(status=200, size=9000, rtt="30000")
    path.write_bytes(line.encode().replace(b"Mozilla", b"\xff\xfe") + line.encode())
    whole = users_of(line * 2)
    assert read(path).count == whole.count == 2


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path, Path("/dev/zero"), tmp_path / "missing"):
        with pytest.raises(UsageError, match="regular file|cannot be read"):
            read(path)


@settings(max_examples=25, deadline=None)
@given(any_.lists(any_.text(max_size=60), max_size=6))
def test_no_text_ends_otherwise(lines: list[str]) -> None:
    for first in ("", "rtt_ms,response_bytes\n", "rtt=3000 bytes=100\n", SS):
        try:
            users = logs.read([first, *lines], "a file")
        except UsageError as error:
            assert "\n" not in str(error)
        else:
            assert users.count and not numpy.isnan(users.rtt_ms).any()


# What is named as a round-trip time, and what is not ------------------------------------

AGENT = '"Mozilla/5.0 (X11; Linux x86_64)"'
LINE = '192.0.2.1 - - [21/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 9000 "-" ' + AGENT
JSON_NGINX = '{"time": "2026-11-21", "status": 200, "body_bytes_sent": 9000, "tcpinfo_rtt": "73700"}'
CLOUDFLARE = ('{"EdgeStartTimestamp": "2026-11-21T10:00:00Z", "ClientTCPRTTMs": 74,'
              ' "EdgeResponseBytes": 9000, "ClientCountry": "za"}')
W3C = "#Version: 1.0\n#Fields: date time cs-method {} sc-bytes\n2026-11-21 10:00:00 GET {} 9000\n"


@pytest.mark.parametrize(("text", "rtt_ms", "rtt_from", "group"), [
    (LINE + " rtt=73700 bytes=9000\n", 73.7, "rtt in µs", ""),
    (LINE.replace('"-" ', 'rtt=73700 "-" ') + "\n", 73.7, "rtt in µs", ""),  # anywhere in the line
    (JSON_NGINX + "\n", 73.7, "tcpinfo_rtt in µs", ""),
    (CLOUDFLARE + "\n", 74, "ClientTCPRTTMs in ms", "za"),
    ("tcpinfo_rtt,body_bytes_sent,ua\n73700,9000,x\n", 73.7, "tcpinfo_rtt in µs", ""),
    ("ClientTCPRTTMs,EdgeResponseBytes\n74,9000\n", 74, "ClientTCPRTTMs in ms", ""),
    (W3C.format("rtt_ms", "74"), 74, "rtt_ms in ms", "")])
@pytest.mark.parametrize("is_zipped", [False, True])
def test_a_field_is_the_rtt_where_its_name_says_so(tmp_path: Path, text: str, rtt_ms: float,
                                                   rtt_from: str, group: str,
                                                   is_zipped: bool) -> None:
    path = tmp_path / "log"
    path.write_bytes(gzip.compress(text.encode()) if is_zipped else text.encode())
    users = read(path)
    assert users.rtt_ms.tolist() == pytest.approx([rtt_ms]) and users.rtt_from == rtt_from
    assert users.response_bytes.tolist() == [9000] and users.groups == (group,)


@pytest.mark.parametrize(("text", "said"), [
    (LINE + " 196400\n", "no field is named as a round-trip time; nginx: add rtt=$tcpinfo_rtt"),
    (LINE + ' "-" 73700\n', "say which: --rtt-field N"),  # nginx's main format, and more
    (LINE.rsplit(' "-"')[0] + "\n", "Apache knows none"),  # the common format
    ("h2 2026-11-21T10:00:00.000000Z app/web/50dc6c495c0c9188 192.0.2.1:4000 10.0.0.1:80 0.000 0.001"
     ' 0.000 200 200 34 9000 "GET https://a/ HTTP/2.0"\n', "an AWS load balancer"),
    ("Nov 21 10:00:00 lb haproxy[1]: 192.0.2.1:4000 [21/Nov/2026:10:00:00.000] fe be/s1 0/0/1/20/21"
     " 200 9000 - - ---- 1/1/0/0/0 0/0\n", "add rtt=%[fc_rtt(us)] bytes=%B"),
    (W3C.format("time-taken", "120"), "CloudFront and IIS log none"),
    ('{"EdgeStartTimestamp": "x", "EdgeResponseBytes": 9000}\n', "Logpush has ClientTCPRTTMs"),
    ('{"request_time": 0.2, "body_bytes_sent": 9}\n', "of these fields has no round-trip time"),
    ("duration,bytes\n20,9\n", "is in no format that is known"), ("{broken\n", "begins as JSON")])
def test_a_log_without_one_is_told_what_to_add(text: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        users_of(text)
    assert said in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize(("number", "unit", "rtt_ms"), [(11, "µs", 73.7), (11, "ms", 73_700)])
def test_a_user_says_which_field_it_is(number: int, unit: str, rtt_ms: float) -> None:
    line = LINE + ' "-" 73700\n'  # what is in quotes or brackets is one
    users = logs.read([line], "a log", RttField(number, unit))
    assert users.rtt_ms.tolist() == pytest.approx([rtt_ms]) and users.response_bytes[0] == 9000
    assert users.rtt_from == f"field {number} in {unit}"
    with pytest.raises(UsageError, match="of fewer than 40 fields"):
        logs.read([line], "a log", RttField(40))


@pytest.mark.parametrize("damage", [
    lambda content: content[:-20], lambda content: content[:12] + b"\xff" * 20 + content[32:],
    lambda content: content[:3] + bytes(200)])
def test_a_damaged_gzip_file_is_one_line(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "log.gz"
    path.write_bytes(damage(gzip.compress(
        "".join(f"rtt={20_000 + number} bytes={number}\n" for number in range(1, 999)).encode())))
    with pytest.raises(UsageError, match="is a damaged gzip file|cannot be read|no format"):
        read(path)


def test_what_a_small_file_inflates_to_is_limited(tmp_path: Path,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MOST_INFLATED", 1 << 20)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"rtt=20000 bytes=9\n" * 200_000))
    assert path.stat().st_size < 20_000
    with pytest.raises(UsageError, match="it has more than 1 MB when it is inflated"):
        read(path)
