"""The guest's clock: free to read, and no trap for a process that waits for it to move."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from firstflight.testbed.job import JobFolder, WorkerProcess
from vtime.console import EngineError
from vtime.kernel.init import RESULTS
from vtime.uml import guest_command

READS = """
import json, time
time.sleep(0.001)
seen = [time.monotonic_ns() for _ in range(1100)]
json.dump(seen, open("{results}/seen.json", "w"))
"""
SPIN = """
import json, time
start, reads = time.monotonic_ns(), 0
while time.monotonic_ns() - start < 1_000_000_000:
    reads += 1
json.dump([reads, time.monotonic_ns() - start], open("{results}/seen.json", "w"))
"""
TICKS = "import os\nstart = os.times().elapsed\nwhile os.times().elapsed == start: pass"


def guest(kernel: Path, folder: Path, program: str) -> list[str]:
    """The command of a guest that runs a Python program."""
    (folder / "command.json").write_text(json.dumps(
        ["/usr/bin/python3", "-c", program.replace("{results}", RESULTS)]))
    return guest_command(kernel)


def seen_by(kernel: Path, folder: Path, program: str) -> list[int]:
    subprocess.run(guest(kernel, folder, program), cwd=folder, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, timeout=300, check=False)
    seen: list[int] = json.loads((folder / "seen.json").read_text())
    return seen


def test_a_thousand_reads_are_free_and_then_each_costs_a_nanosecond_more(
        kernel: Path, tmp_path: Path) -> None:
    seen = seen_by(kernel, tmp_path, READS)
    steps = [after - before for before, after in zip(seen, seen[1:])]
    first = next(place for place, step in enumerate(steps) if step)
    assert 990 <= first <= 1000
    assert steps[first:] == list(range(1, len(steps) - first + 1))


def test_a_process_that_spins_until_the_clock_moves_gets_through(kernel: Path,
                                                                 tmp_path: Path) -> None:
    reads, took_ns = seen_by(kernel, tmp_path, SPIN)
    # 1000 reads, then √(2 · 10⁹): see clock.sed.
    assert reads < 50_000 and 1_000_000_000 <= took_ns < 1_000_100_000


def test_a_loop_on_times_which_reads_no_clock_ends_at_the_deadline(kernel: Path,
                                                                   tmp_path: Path) -> None:
    job = JobFolder(tmp_path / "guest", [], {})
    worker = WorkerProcess(job, [{"id": "one"}], guest(kernel, job.path, TICKS), job.path,
                           3.0, 3.0)
    try:
        with pytest.raises(EngineError, match="said nothing for [0-9]+ s while its network"):
            while True:
                list(worker.poll())
                time.sleep(0.05)
    finally:
        worker.stop()
