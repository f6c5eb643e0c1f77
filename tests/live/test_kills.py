"""What a run that was killed, interrupted or starved leaves: all its records, and nothing else."""

from __future__ import annotations

import os
import pty
import select
import subprocess
from pathlib import Path

import pytest

from tests.live.conftest import PROJECT, command, rows

FLAGS = ("--scenario", "zhao2019", "--rtt", "20,50,100,200,500",
         "--bw", "256,512,1000,2000", "--iw", "3,10")
COUNT = 5 * 4 * 2
LONGER = ("--repeat", "8")  # so that it is not over before its memory is taken


def test_killed_runs_lose_and_leave_nothing(kernel: Path) -> None:
    """Three strikes; benchmarks/kills.py makes two hundred."""
    done = subprocess.run(["/usr/bin/python3", "-m", "benchmarks.kills", "--kills", "3"], cwd=PROJECT,
                          capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0 and done.stdout.endswith(" 0 faults\n"), done.stdout + done.stderr


def test_ctrl_c_at_a_terminal_is_one_line(results: Path, kernel: Path) -> None:
    """It reaches every process in the foreground of the terminal, not the driver alone."""
    run, terminal = pty.fork()
    if run == 0:
        words = command(results, *FLAGS)
        os.execv(words[0], words)
    said = b""
    while select.select([terminal], [], [], 120)[0]:
        try:
            said += os.read(terminal, 1 << 16)
        except OSError:  # the last process of the terminal has ended
            break
        if b"^C" not in said and any(table.read_bytes().count(b"\n") > 5 for table in
                                     results.glob("zhao2019/*-uml/trials.csv")):
            os.write(terminal, b"\x03")
    assert os.waitstatus_to_exitcode(os.waitpid(run, 0)[1]) == 130
    # The progress bar before it ends in a carriage return.
    assert said.decode().rpartition("^C")[2].rpartition("\r\r")[2].strip().split("\r")[-1] == (
        "run.sh: interrupted; what is measured is kept, the same command resumes")
    assert len(rows(results)) >= 5
    resumed(results)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a /dev/shm of its own")
def test_memory_that_is_taken_in_mid_run_is_no_failed_trial(results: Path, kernel: Path) -> None:
    starved = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c",
         'mount -t tmpfs -o size=400m tmpfs /dev/shm && "$@" & run=$!;'
         f' until grep -qs pass "{results}"/zhao2019/*-uml/trials.csv; do sleep 0.01; done;'
         ' head -c 400M /dev/zero > /dev/shm/taken 2>&-; wait $run', "sh",
         *command(results, *FLAGS, *LONGER)], capture_output=True, text=True, timeout=300, check=False)
    assert starved.returncode == 1, starved.stderr
    assert starved.stderr.splitlines()[-1].startswith("run.sh: /dev/shm is full; each guest")
    assert 1 <= len(rows(results)) < 8 * COUNT
    resumed(results, *LONGER, count=8 * COUNT)


def resumed(results: Path, *more: str, count: int = COUNT) -> None:
    """The same command measures the rest, and only that."""
    before = rows(results)
    done = subprocess.run(command(results, *FLAGS, *more), capture_output=True, text=True,
                          timeout=300, check=False)
    assert done.returncode == 0 and "resuming" in done.stderr, done.stderr
    measured = rows(results)
    assert measured[:len(before)] == before
    assert len({tuple(row.items())[:12] for row in measured}) == len(measured) == count
    assert all(row["verdict"] == "pass" for row in measured)
