"""Programs that tests start, and the longest that a test waits for anything.

Tests do not measure how fast a machine is. What a test awaits comes, or something hangs, and only
then does HANGS_S end the test: no machine, however busy, takes as long.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).resolve().parent.parent
HANGS_S = 1800.0


def run_program(words: Sequence[str | Path], *, cwd: Path = PROJECT, text: bool = True,
                **options: Any) -> subprocess.CompletedProcess[Any]:
    """Run a program to its end; its status and what it printed, as text or as bytes.

    options are those of subprocess.run.
    """
    return subprocess.run(words, cwd=cwd, text=text, capture_output=True, check=False,
                          timeout=HANGS_S, **options)


def wait_until(condition: Callable[[], object], awaited: str) -> None:
    """Look at the condition again and again until it holds.

    awaited is what a failure says it waited for.
    """
    deadline = time.monotonic() + HANGS_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {HANGS_S:g} s for {awaited}"
        time.sleep(0.02)


mounts_a_disk = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")


@contextmanager
def small_disk(folder: Path, options: str) -> Iterator[None]:
    """Mount an empty disk on a folder for a while; options are those of tmpfs, as size=1m."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "small", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
