"""What others wrote to test or to read TCP: packetdrill, tshark, a stock kernel.

Each runs where it is installed; none is a package that ./test.sh needs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.live.conftest import PROJECT, Driver

PACKETDRILL = os.environ.get("FIRST_FLIGHT_PACKETDRILL") or shutil.which("packetdrill")


@pytest.mark.skipif(PACKETDRILL is None, reason="no packetdrill on the PATH nor named by"
                    " FIRST_FLIGHT_PACKETDRILL: build google/packetdrill")
def test_the_kernels_own_tests_of_tcp_pass_in_virtual_time(kernel: Path) -> None:
    said = run("/usr/bin/python3", "-m", "benchmarks.outside.kernel_tests", "--program",
               str(PACKETDRILL))
    counts = re.search(r"(\d+) of (\d+) scripts pass(?:, (\d+) fail)?; (\d+) as known", said)
    assert counts, said
    passed, count, failed, known = (int(number or 0) for number in counts.groups())
    assert count > 150 and passed + failed == count and failed == known


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
