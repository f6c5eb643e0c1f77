"""Scripts of packetdrill pass unchanged in virtual time, and wrong ones fail at the right line."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.live.commands import needs_commands
from tests.live.conftest import PROJECT
from tests.running import run_program
from vtime.uml import built_kernel_for_commands

PROGRAM = os.environ.get("FIRST_FLIGHT_PACKETDRILL") or shutil.which("packetdrill")
pytestmark = needs_commands
with_packetdrill = pytest.mark.skipif(
    PROGRAM is None or shutil.which("gcc") is None,
    reason="no gcc, or no packetdrill: on the PATH, or named by FIRST_FLIGHT_PACKETDRILL"
           " (vtime/MININET.md)")
GOOGLES = Path(str(PROGRAM)).resolve().parent.parent  # gtests/net, if packetdrill was built there
OPENS = """\
    0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
   +0 setsockopt(3, SOL_SOCKET, SO_REUSEADDR, [1], 4) = 0
   +0 bind(3, ..., ...) = 0
   +0 listen(3, 1) = 0
   +0 < S 0:0(0) win 32792 <mss 1000,nop,wscale 7>
   +0 > S. 0:0(0) ack 1 <...>
 +.05 < . 1:1(0) ack 1 win 257
   +0 accept(3, ..., ...) = 4
   +0 write(4, ..., 1000) = 1000
"""
# Runs each script under each version of IP that it allows, as the kernel's ksft_runner.sh does.
# Prints a line for each failure, and at the end the number of runs.
EACH = """\
count=0
for file; do
    versions=$(sed -n 's/^--ip_version=//p' "$file")
    for version in ${versions:-ipv4 ipv6 ipv4-mapped-ipv6}; do
        count=$((count + 1))
        packetdrill --ip_version=$version "$file" >/dev/null || echo "failed: $file"
    done
done
echo "count: $count"
"""


def ran(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command in virtual time, with packetdrill on its PATH."""
    program = Path(PROGRAM or "/usr/bin/packetdrill").absolute()
    readable = ("--readable", program) if PROGRAM else ()
    return run_program(
        [PROJECT / "run.sh", *readable, "--results", folder.parent / "results", "--quiet", "--",
         *words], cwd=folder, stdin=subprocess.DEVNULL,
        env={**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"})


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    folder = tmp_path / "scripts"
    folder.mkdir()
    return folder


def kernels_own(folder: Path) -> Path:
    """A copy of the scripts that the kernel's build keeps."""
    return Path(shutil.copytree(built_kernel_for_commands().parent / "packetdrill",
                                folder / "kernel"))


@with_packetdrill
def test_three_scripts_of_the_kernels_own_pass_unchanged(folder: Path) -> None:
    own = kernels_own(folder)
    scripts = [own / f"tcp_{name}.pkt" for name in (
        "fast_recovery_prr-ss-ack-below-snd_una-cubic", "slow_start_slow-start-ack-per-2pkt",
        "zerocopy_basic")]
    done = ran(folder, "sh", "-c", EACH, "sh", *(str(path.relative_to(folder)) for path in scripts))
    assert done.returncode == 0 and done.stdout == "count: 9\n", done.stdout + done.stderr


@pytest.mark.skipif(not (GOOGLES / "tcp").is_dir(), reason="packetdrill was not built where its"
                                                           " scripts are")
@with_packetdrill
def test_three_scripts_of_googles_pass_unchanged(folder: Path) -> None:
    for name in ("tcp", "common"):
        shutil.copytree(GOOGLES / name, folder / name, symlinks=True)
    done = ran(folder, "packetdrill", "tcp/blocking/blocking-accept.pkt",
               "tcp/fast_retransmit/fr-4pkt.pkt", "tcp/sack/sack-route-refresh-ip-tos.pkt")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("ethtool") is None, reason="no ethtool")
@with_packetdrill
def test_all_of_the_kernels_own_scripts_pass_but_one(folder: Path) -> None:
    """The one fails, and a copy passes in which an acknowledgement takes less than the least RTT.
    """
    scripts = kernels_own(folder)
    known = scripts / "tcp_eor_no-coalesce-retrans.pkt"
    (scripts / "changed.pkt").write_text(re.sub(
        r"^\+\.001( <.* ack 12401)", r"+.000990\1", known.read_text(), flags=re.MULTILINE))
    names = sorted(str(path.relative_to(folder)) for path in scripts.glob("*.pkt"))
    done = ran(folder, "sh", "-c", EACH, "sh", *names)
    *failed, count = done.stdout.splitlines()
    assert set(failed) == {f"failed: {known.relative_to(folder)}"}, done.stderr
    assert int(count.removeprefix("count: ")) > 400


@with_packetdrill
def test_a_script_fails_at_the_same_line_after_any_other_script(folder: Path) -> None:
    (folder / "sound.pkt").write_text(f"{OPENS}   +0 > P. 1:1001(1000) ack 1\n")
    (folder / "late.pkt").write_text(f"{OPENS}   +0 > P. 1:1001(1000) ack 1\n"
                                     "+.400 > P. 1:1001(1000) ack 1\n")
    alone, after = ran(folder, "packetdrill", "late.pkt"), ran(
        folder, "packetdrill", "sound.pkt", *["late.pkt"] * 3, "sound.pkt", *["late.pkt"] * 3)
    assert alone.returncode == after.returncode == 1
    assert after.stderr == alone.stderr * 6 and "late.pkt:11: error handling packet" in alone.stderr


@with_packetdrill
def test_a_tolerance_of_microseconds_refuses_an_early_packet(folder: Path) -> None:
    (folder / "at_once.pkt").write_text(f"{OPENS}   +0 > P. 1:1001(1000) ack 1\n")
    (folder / "early.pkt").write_text(f"{OPENS} +.002 > P. 1:1001(1000) ack 1\n")
    exact = ("--tolerance_usecs=10", "--tolerance_percent=0")
    assert ran(folder, "packetdrill", "at_once.pkt", "early.pkt").returncode == 0
    assert ran(folder, "packetdrill", *exact, "at_once.pkt").returncode == 0
    done = ran(folder, "packetdrill", *exact, "early.pkt", "at_once.pkt")
    assert done.returncode == 1 and "early.pkt:10: " in done.stderr


@with_packetdrill
def test_a_process_that_a_script_leaves_running_ends_with_it(folder: Path) -> None:
    (folder / "leaves.pkt").write_text(f"`sleep 100000 &`\n{OPENS}")
    done = ran(folder, "sh", "-c", "packetdrill leaves.pkt; pgrep -x -r R,S sleep; echo $?")
    assert done.stdout == "1\n", done.stderr


def test_a_missing_packetdrill_is_reported_with_what_to_do(folder: Path) -> None:
    (folder / "any.pkt").write_text(OPENS)
    done = ran(folder, "env", "PATH=/usr/bin:/bin", "packetdrill", "any.pkt")
    assert done.returncode == 127 and "vtime/MININET.md" in done.stderr
