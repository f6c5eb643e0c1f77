"""A run that was killed or interrupted keeps all of its records, and leaves nothing else behind."""

from __future__ import annotations

import os
import pty
import select
import time
from pathlib import Path

from tests import kills, leftovers
from tests.live.conftest import command, processes_with, rows, watched
from tests.running import HANGS_S, run_program, wait_until

FLAGS = ("--scenario", "zhao2019", "--rtt", "20,100,500",
         "--bw", "512,2000", "--iw", "3,10")
COUNT = 3 * 2 * 2


def test_a_killed_run_loses_no_record_and_leaves_nothing(kernel: Path) -> None:
    """A small run is struck once here. tests/kills.py strikes larger runs two hundred times."""
    flags = (*FLAGS[:2], "--rtt", "20,200", *FLAGS[4:])
    smaller = (f"from benchmarks import command\nfrom tests import kills\nkills.FLAGS = {flags}\n"
               "command.run('kills', kills.main)")
    words = ["/usr/bin/python3", "-c", smaller, "--kills", "1"]
    if os.geteuid() == 0:  # in separate mounts already; otherwise it would start itself again
        words = ["unshare", "--mount", "--net", "--propagation", "private", "sh", "-c", kills.OWN,
                 "sh", *words]
    done = run_program(words, env={**os.environ, leftovers.OWN: "own"})
    assert done.returncode == 0 and done.stdout.endswith(" 0 faults\n"), done.stdout + done.stderr


def test_ctrl_c_at_a_terminal_is_one_line(results: Path, kernel: Path) -> None:
    """Ctrl-C reaches every process in the foreground of the terminal, not only the driver."""
    run, terminal = pty.fork()
    if run == 0:
        words = watched(results, "--no-figures", *FLAGS)
        os.execvp(words[0], words)
    said, until, pressed = b"", time.monotonic() + HANGS_S, False
    while time.monotonic() < until:
        if select.select([terminal], [], [], 0.01)[0]:
            try:
                said += os.read(terminal, 1 << 16)
            except OSError:  # the last process of the terminal has ended
                break
        if not pressed and any(table.read_bytes().count(b"\n") > 3 for table in
                               results.glob("zhao2019/*-uml/trials.csv")):
            pressed = os.write(terminal, b"\x03") == 1
    assert os.waitstatus_to_exitcode(os.waitpid(run, 0)[1]) == 130
    # The progress bar before this line ends in a carriage return.
    assert said.decode().rpartition("^C")[2].rpartition("\r\r")[2].strip().split("\r")[-1] == (
        "run.sh: interrupted; what is measured is kept, the same command resumes")
    assert len(rows(results)) >= 3
    wait_until(lambda: not processes_with(str(results)), "the guests to go with it")
    resumed(results)


def resumed(results: Path) -> None:
    """Run the same command again, and assert that it measures only the missing trials."""
    before = rows(results)
    done = run_program(command(results, "--no-figures", *FLAGS))
    assert done.returncode == 0 and "resuming" in done.stderr, done.stdout + done.stderr
    measured = rows(results)
    # The rows are now in the order of trials, and not in the order in which guests have ended.
    assert all(row in measured for row in before)
    assert len({tuple(row.items())[:12] for row in measured}) == len(measured) == COUNT
    assert all(row["verdict"] == "pass" for row in measured)
