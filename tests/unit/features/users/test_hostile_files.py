"""Files about users that were damaged, or made to harm: read as far as they can be, or one line."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from firstflight.base import files
from firstflight.base.errors import UsageError
from firstflight.study.users import logs
from firstflight.study.users.logs import read_file as read
from firstflight.study.users.requested import Requested
from firstflight.study.users.rows import MOST_GROUPS, UserTable
from firstflight.study.users.sample import scenario

PROJECT = Path(__file__).resolve().parents[4]
GOOD_SS = "State Recv-Q Send-Q\n" + "\t cubic rtt:20/4 delivery_rate 1.5Mbps bytes_acked:9000\n" * 20


def written(path: Path, content: bytes | str) -> UserTable:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read(path)


# Text --------------------------------------------------------------------------------

LONG = ("a a " + "[x " * 40_000, "a a " + " [" * 60_000, "a " * 60_000, 'a a [x] "' * 20_000,
        "rtt=" * 40_000, "x rtt:" + "1." * 60_000, "- " * 60_000, "1 - [] " * 20_000)


def test_a_line_is_read_in_linear_time() -> None:
    """A program of its own, since a regular expression that runs on hears no signal."""
    program = ("import sys; from firstflight.study.users import logs\n"
               "from firstflight.base.errors import UsageError\n"
               "for line in sys.stdin.read().splitlines():\n"
               "    print(line[:9], flush=True)\n"
               "    for lines in ([line], ['rtt=3000 bytes=100', line], ['State Recv-Q', line],\n"
               "                  ['rtt_ms', line]):\n"
               "        try: logs.read(lines, 'f')\n"
               "        except UsageError as error: assert len(str(error)) <= 500\n")
    done = subprocess.run(["prlimit", "--cpu=5", sys.executable, "-c", program], cwd=PROJECT,
                          input="\n".join(LONG), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout.splitlines()[-1:]}: {done.stderr}"
    assert len(done.stdout.splitlines()) == len(LONG)


def test_a_user_may_have_any_name_in_an_access_log() -> None:
    line = '192.0.2.7 - {} [21/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 9000 "-" "M/5" rtt=30000'
    users = logs.read([line.format(name) for name in ("-", "a b", "[a]", "a[b", "[x] [y]")], "log")
    assert users.count == 5 and not users.skipped


@pytest.mark.parametrize(("odd", "why"), [
    ("rtt:1.2.3/4", "with an RTT that is not a number"),
    ("rtt:20/4 delivery_rate 1.2.3Mbps", "with a delivery_rate that is not a number"),
    ("rtt:20/4 bytes_acked:" + "9" * 400_000, "with a size that is not a number"),
    ("rtt:" + "1" * 400_000 + "/4", "with an RTT that is not a number")])
def test_a_socket_with_an_odd_number_is_left_out(tmp_path: Path, odd: str, why: str) -> None:
    assert written(tmp_path / "ss", f"{GOOD_SS}\t cubic {odd}\n").skipped == {why: 1}


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_lines_may_end_as_they_like(tmp_path: Path, end: str, mark: str) -> None:
    users = written(tmp_path / "users.csv", mark + end.join(
        ["rtt_ms,response_bytes,group", "20,9000,a", "30,9000,b", ""]))
    assert (users.count, users.groups, users.format) == (2, ("a", "b"), "CSV")


def test_a_head_that_is_no_csv_is_one_line() -> None:
    with pytest.raises(UsageError, match="^f: line [01]: field larger than field limit"):
        logs.read(['rtt_ms,"' + "x" * 200_000 + '"\n', "1\n"], "f")
    with pytest.raises(UsageError, match="^f: line [01]: new-line character seen"):
        logs.read(["x\r,rtt_ms\n", "1\n"], "f")


def test_a_line_without_end_is_not_read_to_its_end(tmp_path: Path) -> None:
    """20 GB that take no room on the disk."""
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
                           f" {files.MOST_LINE_CHARACTERS} characters\n")


def test_what_is_read_at_once_has_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(OSError, match="it has more than 64 MB"):
        files.content(path)
    os.truncate(path, 10)
    assert files.content(path, 10) == b"\0" * 10
    with pytest.raises(OSError, match="it has more than 0 MB"):
        files.content(path, 9)


def test_weights_are_summed_without_a_warning() -> None:
    rows = ["rtt_ms,bandwidth_kbps,response_bytes,weight"] + ["20,1000,9000,1e12"] * 20
    users = logs.read([*rows, "20,1000,9000,1e308"], "f")
    assert users.skipped == {"with a weight above 1e+12": 1}
    for weight in ("1e12", "5e-324"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            users = logs.read([rows[0], *[f"20,1000,9000,{weight}", "30,1000,9000,1e-9"] * 20], "f")
            assert scenario(users, Requested((10, 20), 50), Path("f"), 1).users


def test_more_groups_than_a_page_has_room_for_are_refused() -> None:
    head, rows = "rtt_ms,group", [f"20,g{number}" for number in range(MOST_GROUPS + 1)]
    assert len(logs.read([head, *rows[:-1]], "f").groups) == MOST_GROUPS
    with pytest.raises(UsageError, match="^f: has more than 1000 groups; leave the column out"):
        logs.read([head, *rows], "f")
