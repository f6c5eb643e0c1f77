"""Ctrl-C while run.sh starts: no traceback, at whatever moment."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest

RUN = Path(__file__).resolve().parent.parent.parent / "run.sh"


@pytest.mark.parametrize("after_ms", range(2, 62, 5))
def test_ctrl_c_at_any_moment_of_the_start_is_quiet(after_ms: int) -> None:
    """Within its first 60 ms bash becomes env, and env Python, which imports its site module."""
    with subprocess.Popen([RUN, "--list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, start_new_session=True) as started:
        time.sleep(after_ms / 1000)
        started.send_signal(signal.SIGINT)
        _, said = started.communicate(timeout=60)
    assert "Traceback" not in said and "Fatal" not in said
