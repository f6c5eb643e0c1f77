"""Scripts of packetdrill in virtual time: with packetdrill where there is one, and with programs
that behave badly in its place."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.live.conftest import PROJECT
from vtime.uml import find_kernel

KERNEL = find_kernel("--mininet")
PROGRAM = os.environ.get("FIRST_FLIGHT_PACKETDRILL") or shutil.which("packetdrill")
pytestmark = [
    pytest.mark.skipif(KERNEL is None, reason="./install.sh --with-mininet"),
    pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc, for vtime/command/times.c")]
with_packetdrill = pytest.mark.skipif(
    PROGRAM is None, reason="no packetdrill: on the PATH, or named by FIRST_FLIGHT_PACKETDRILL"
                            " (docs/PACKETDRILL.md)")
OPENS = """\
    0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
   +0 setsockopt(3, SOL_SOCKET, SO_REUSEADDR, [1], 4) = 0
   +0 bind(3, ..., ...) = 0
   +0 listen(3, 1) = 0
   +0 < S 0:0(0) win 32792 <mss 1000,nop,wscale 7>
   +0 > S. 0:0(0) ack 1 <...>
 +.05 < . 1:1(0) ack 1 win 257
"""


class Ended:
    """A run of ./run.sh --packetdrill."""

    def __init__(self, folder: Path, *flags: str, program: str | None = PROGRAM) -> None:
        done = subprocess.run(
            [str(PROJECT / "run.sh"), "--packetdrill", *flags, "--program", str(program),
             "--results", "results"], cwd=folder, capture_output=True, text=True, timeout=300,
            stdin=subprocess.DEVNULL, check=False)
        self.status, self.lines, self.err = done.returncode, done.stdout.splitlines(), done.stderr
        tables = sorted(folder.glob("results/packetdrill/*/packetdrill.csv"))
        self.table = tables[-1].read_text() if tables else ""
        self.rows = list(csv.DictReader(self.table.splitlines()))
        self.left = list(folder.glob("results/packetdrill/*/.guest"))


@with_packetdrill
def test_scripts_pass_or_fail_at_their_line_whatever_else_runs(tmp_path: Path) -> None:
    folder = tmp_path / "scripts"
    folder.mkdir()
    (folder / "sound.pkt").write_text(f"{OPENS}   +0 accept(3, ..., ...) = 4\n")
    (folder / "wrong.pkt").write_text(f"{OPENS}   +0 accept(3, ..., ...) = 4\n"
                                      "   +0 write(4, ..., 1000) = 1000\n   +0 > P. 1:901(900) ack 1\n")
    (folder / "late.pkt").write_text(f"{OPENS}   +0 accept(3, ..., ...) = 4\n"
                                     "   +0 write(4, ..., 1000) = 1000\n   +0 > P. 1:1001(1000) ack 1\n"
                                     "+.400 > P. 1:1001(1000) ack 1\n")
    for number in range(17):  # more than one guest's
        shutil.copy(folder / "sound.pkt", folder / f"x{number:02}.pkt")
    one, two = (Ended(tmp_path, "scripts", "--ip-version", "all", "--jobs", jobs) for jobs in "12")
    assert one.status == two.status == 3, one.err
    assert one.table == two.table and len(one.rows) == 60 and not one.left
    wrong = {(row["script"], row["ip_version"]): row["line"] for row in one.rows
             if row["verdict"] != "pass"}
    assert {name for name, _ in wrong} == {"scripts/wrong.pkt", "scripts/late.pkt"}
    assert set(wrong.values()) == {"10", "11"} and len(wrong) == 6
    assert "54 of 60 scripts pass, 6 fail" in one.err


@with_packetdrill
def test_a_tolerance_of_microseconds_is_possible_and_tells(tmp_path: Path) -> None:
    (tmp_path / "at_once.pkt").write_text(f"{OPENS}   +0 accept(3, ..., ...) = 4\n"
                                          "   +0 write(4, ..., 1000) = 1000\n"
                                          "   +0 > P. 1:1001(1000) ack 1\n+.001 < . 1:1(0) ack 1001 win 257\n")
    (tmp_path / "early.pkt").write_text(f"{OPENS}   +0 accept(3, ..., ...) = 4\n"
                                        "   +0 write(4, ..., 1000) = 1000\n"
                                        " +.002 > P. 1:1001(1000) ack 1\n")
    assert Ended(tmp_path, "at_once.pkt", "early.pkt").status == 0
    exact = Ended(tmp_path, "at_once.pkt", "early.pkt", "--tolerance", "10")
    assert exact.status == 3 and [row["verdict"] for row in exact.rows] == ["pass", "fail"]
    assert exact.rows[1]["line"] == "10"


@with_packetdrill
def test_a_hostile_script_stays_within_the_walls(tmp_path: Path) -> None:
    secret = Path.home() / ".first-flight-secret-of-a-test"
    secret.write_text("a secret")
    folder = tmp_path / "scripts"
    folder.mkdir()
    (folder / "hostile.pkt").write_text(
        f"`cat {secret} && exit 1; touch {tmp_path}/reached {folder}/reached; true`\n{OPENS}")
    try:
        ended = Ended(tmp_path, "scripts")
    finally:
        secret.unlink()
    assert ended.status == 0, ended.lines
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results", "scripts"]
    assert [path.name for path in folder.iterdir()] == ["hostile.pkt"]


# In the place of packetdrill: what a program may do that is none, or that is broken.
BAD = """\
#!/bin/sh
[ $# -gt 0 ] || { echo "usage: --tolerance_usecs"; exit 1; }
for script; do :; done
case $script in
good.pkt) ;;
hangs.pkt) exec sleep 1000 ;;
crashes.pkt) kill -SEGV $$ ;;
kills.pkt) echo o > /proc/sysrq-trigger; kill -9 -1; sleep 1000 ;;
esac
"""


def test_what_hangs_or_crashes_costs_one_script(tmp_path: Path) -> None:
    (tmp_path / "packetdrill").write_text(BAD)
    (tmp_path / "packetdrill").chmod(0o755)
    folder = tmp_path / "scripts"
    folder.mkdir()
    for name in ("crashes", "good", "hangs", "kills", "z/good"):
        (folder / f"{name}.pkt").parent.mkdir(exist_ok=True)
        (folder / f"{name}.pkt").write_text("0 socket()\n")
    ended = Ended(tmp_path, "scripts", program=str(tmp_path / "packetdrill"))
    verdicts = {row["script"]: (row["verdict"], row["words"]) for row in ended.rows}
    assert verdicts["scripts/crashes.pkt"] == ("fail", "SIGSEGV")
    assert verdicts["scripts/hangs.pkt"] == ("fail", "it has not ended after 180 s of virtual time")
    assert verdicts["scripts/good.pkt"][0] == verdicts["scripts/z/good.pkt"][0] == "pass"
    assert verdicts["scripts/kills.pkt"][0] == "died"
    assert ended.status == 1 and not ended.left
    ended = Ended(tmp_path, "scripts", program="/bin/cat")
    assert ended.status == 4 and "/bin/cat is not packetdrill" in ended.err
