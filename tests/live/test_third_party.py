"""What others wrote to test or to read TCP: tshark, a stock kernel.

Each runs where it is installed; none is a package that ./test.sh needs.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.live.conftest import PROJECT, Driver


@pytest.mark.skipif(shutil.which("tshark") is None, reason="no tshark: apt-get install tshark")
def test_tshark_reads_the_same_first_flights(drive: Driver, results: Path) -> None:
    # At 56 kbit/s timers send probes and segments again.
    done = drive("--scenario", "zhao2019", "--rtt", "20,100", "--bw", "56,1000",
                 "--keep-captures", "--no-figures")
    assert done.returncode == 0, done.stderr
    said = run("/usr/bin/python3", "-m", "benchmarks.outside.first_flights",
               str(results / "zhao2019" / "latest-partial"))
    assert said.startswith("8 of 8 transfers")


@pytest.mark.skipif(shutil.which("qemu-system-x86_64") is None,
                    reason="no QEMU: apt-get install qemu-system-x86")
def test_a_stock_kernel_has_the_same_windows_and_flights(kernel: Path) -> None:
    said = run("benchmarks/outside/stock_kernel.sh", "--rtt", "20", "--bw", "56,1000", "--iw", "3,10")
    *rows, count = said.splitlines()[2:]
    assert len(rows) == 4 and count.startswith("4 of 4 cells")
    for row in rows:  # at 56 kbit/s a packet of anybody else's takes 10 ms
        more_ms = float(row.split("│")[5].split()[2])
        assert abs(more_ms) < 5, row


def run(*command: str) -> str:
    """The command's standard output; fails the test with its words where its status is not 0."""
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=900,
                          check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    return done.stdout
