"""Files about users: each format, what is left out of it, and what is no such file."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as any_

from base.errors import UsageError
from base.files import PROJECT
from study.fetches.features.users import logs
from study.fetches.features.users.logs import read_file as read
from study.fetches.features.users.rows import Users
from tests.golden import stored

COMBINED = ('192.0.2.1 - ann [21/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" {status} {size} "-"'
            ' "Mozilla/5.0 (X11)" {rtt}\n')
SS = """State Recv-Q Send-Q Local Address:Port Peer Address:Port
ESTAB 0      0      10.0.0.1:443 192.0.2.7:53144
\t cubic wscale:7,7 rto:240 rtt:37.5/4.2 mss:1448 cwnd:12 bytes_acked:48211 delivery_rate 3.2Mbps
ESTAB 0      0      10.0.0.1:443 192.0.2.9:1144
\t cubic rto:240 rtt:150/20 mss:1448 cwnd:10 bytes_acked:9211 delivery_rate 812Kbps
"""


def users_of(text: str) -> Users:
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
    (line,) = re.findall(r"^    (tshark .*)$", (PROJECT / "docs" / "USERS.md").read_text(), re.M)
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
