"""Ctrl-C while run.sh starts: no traceback, at whatever moment."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest


RUN = Path(__file__).resolve().parent.parent.parent / "run.sh"


@pytest.mark.parametrize("after_ms", [*range(2, 62, 5), 100, 150])
def test_ctrl_c_at_any_moment_of_the_start_is_quiet(after_ms: int) -> None:
    """Within its first 60 ms bash becomes env, and env Python, which imports its site module."""
    with subprocess.Popen([RUN, "--list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, start_new_session=True) as started:
        time.sleep(after_ms / 1000)
        started.send_signal(signal.SIGINT)
        _, printed = started.communicate(timeout=300)
    # Later, on a machine where this comes late, the words of the whole command.
    assert printed in ("", "run.sh: interrupted\n", "run.sh: interrupted; what is measured is"
                       " kept, the same command resumes\n")
    # Before bash has read its first line it ends by the signal itself; it may have come too late.
    assert started.returncode in (0, 130, -signal.SIGINT)


def test_ctrl_c_while_it_is_read_is_one_line(tmp_path: Path) -> None:
    """In the midst of its imports, of which one waits for it: as a child that strikes its parent."""
    (tmp_path / "argparse.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n")
    done = subprocess.run(
        ["/usr/bin/python3", "-c", "import runpy, sys; sys.path[:0] = sys.argv[1:];"
         " runpy.run_path(f'{sys.argv[2]}/experiment.py', run_name='__main__')", tmp_path, RUN.parent],
        capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (130, "run.sh: interrupted\n")
