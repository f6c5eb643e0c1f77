"""Programs that wait without sleeping: how late they are, and in how many rounds (vtime/README.md).

Rounds are the same in every run, and each takes some 10 µs of ours: twice the virtual time would be
200,000 in a second.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.live.conftest import PROJECT
from vtime.uml import find_kernel

pytestmark = pytest.mark.skipif(find_kernel("--mininet") is None,
                                reason="./install.sh --with-mininet")
SPINS = """\
import mmap, os, select, sys, time

def waited(kind, seconds):
    '''Rounds of a wait for a child that sleeps so long; seconds by which it was late.'''
    began, rounds = time.monotonic(), 0
    ended = mmap.mmap(-1, 4096)
    readable, writable = os.pipe()
    child = os.fork()
    if not child:
        os.close(readable)
        time.sleep(seconds)
        ended[0] = 1
        os._exit(0)
    os.close(writable)
    os.set_blocking(readable, False)
    null = os.open("/dev/null", os.O_RDWR)
    poller, of_null = select.poll(), select.poll()
    poller.register(readable, select.POLLIN)
    of_null.register(null, select.POLLIN)

    def again():
        try:
            return not os.read(readable, 1)
        except BlockingIOError:
            return False

    def like_mn():  # its command line whose input has ended
        of_null.poll()
        os.write(null, os.read(null, 1))
        return ended[0]
    is_over = {
        "select": lambda: select.select([readable], [], [], 0)[0],
        "poll": lambda: poller.poll(0),
        "again": again,
        "end of file": lambda: os.read(null, 1) or ended[0],
        "mn": like_mn,
        "yield": lambda: os.sched_yield() or ended[0],
        "wait": lambda: os.waitpid(child, os.WNOHANG)[0],
        "clock": lambda: time.monotonic() >= began + seconds,
        "file": lambda: os.path.exists("/none") or ended[0],
        "data": lambda: os.write(null, b"x") and ended[0]}[kind]
    while not is_over():
        rounds += 1
    late_s = time.monotonic() - began - seconds
    if kind != "wait":
        os.waitpid(child, 0)
    for descriptor in (readable, null):
        os.close(descriptor)
    return rounds, late_s

for kind in sys.argv[3:]:
    found = [waited(kind, float(sys.argv[2])) for _ in range(int(sys.argv[1]))]
    print(kind, sum(rounds for rounds, _ in found), max(late for _, late in found), sep=",")
"""
ASKS = ("select", "poll", "again", "end of file", "mn", "yield", "wait")  # which move no data


def spun(folder: Path, count: int, seconds: float, *kinds: str) -> dict[str, tuple[int, float]]:
    """By the kind of wait: rounds of all waits, and seconds by which the latest was late."""
    (folder / "spins.py").write_text(SPINS)
    done = subprocess.run(
        [PROJECT / "run.sh", "--results", folder.parent / "results", "--quiet", "--", "python3",
         "spins.py", str(count), str(seconds), *kinds], cwd=folder, capture_output=True, text=True,
        timeout=600, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0, done.stderr
    assert "python3 spins: it waits without sleeping" in done.stderr
    lines = [line.split(",") for line in done.stdout.splitlines()]
    return {kind: (int(rounds), float(late)) for kind, rounds, late in lines}


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


def test_a_long_wait_takes_few_rounds_and_is_not_late(folder: Path) -> None:
    found = spun(folder, 1, 10, *ASKS, "clock", "file", "data")
    for kind in ASKS:
        rounds, late_s = found[kind]
        assert rounds < 100_000 and 0 <= late_s < 0.0015, (kind, rounds, late_s)
    assert found["clock"][0] < 150_000 and 0 <= found["clock"][1] < 0.0015
    for kind, most in (("file", 300_000), ("data", 500_000)):  # told from work by 100,000 calls
        assert found[kind][0] < most and 0 <= found[kind][1] < 0.0015, (kind, found[kind])


def test_many_short_waits_take_few_rounds(folder: Path) -> None:
    found = spun(folder, 20, 0.1, *ASKS, "clock")
    for kind in ASKS:
        rounds, late_s = found[kind]
        assert rounds < 120_000 and 0 <= late_s < 0.0015, (kind, rounds, late_s)
    assert found["clock"][0] < 300_000 and 0 <= found["clock"][1] < 0.0015


def test_mininet_whose_input_has_ended_waits_for_its_hosts(folder: Path) -> None:
    done = subprocess.run(
        [PROJECT / "run.sh", "--results", folder.parent / "results", "--", "mn", "--topo",
         "single,2", "--switch", "lxbr", "--controller", "none"],
        cwd=folder, capture_output=True, text=True, timeout=600, check=False,
        input="h1 sleep 10\nh2 date +%S.%3N\nexit\n")
    assert done.returncode == 0, done.stderr
    assert "completed in 10." in done.stderr + done.stdout and "mn spins" in done.stderr
