"""How much time a reading of the guest's clock takes, by vtime/kernel/clock.c.

It is compiled for this machine, as a library.
"""

from __future__ import annotations

import ctypes
import math
import shutil
import subprocess
from pathlib import Path

import pytest

HARNESS = Path(__file__).with_name("guest_clock.c")
SOURCE = Path(__file__).resolve().parents[3] / "vtime" / "kernel"
GETTIMEOFDAY, GETTIME = 96, 228  # numbers of system calls of x86-64

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="there is no compiler")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled library."""
    folder = tmp_path_factory.mktemp("clock")
    for header in ("linux/mm.h", "linux/timekeeping.h", "asm/unistd.h"):  # the harness has them
        (folder / header).parent.mkdir(exist_ok=True)
        (folder / header).touch()
    subprocess.run(["gcc", "-shared", "-fPIC", "-Wall", "-Werror", "-Wno-unused-variable",
                    f"-I{folder}", f"-I{SOURCE}", HARNESS, "-o", folder / "clock.so"], check=True)
    return folder / "clock.so"


@pytest.fixture
def clock(built: Path, tmp_path: Path) -> ctypes.CDLL:
    """A clock that has just been started. Each copy of the library has another clock."""
    library = ctypes.CDLL(str(shutil.copy(built, tmp_path / "clock.so")))
    for name in ("read_by_call", "read_by_page"):
        getattr(library, name).restype = ctypes.c_ulonglong
    library.sleep_for.argtypes = [ctypes.c_ulonglong]
    library.read_by_call.argtypes = [ctypes.c_int, ctypes.c_long]
    library.start()
    library.sleep_for(1)
    return library


def spins(clock: ctypes.CDLL, wait_ns: int) -> int:
    """How often a process reads the clock until so much time has gone by."""
    start, reads = clock.read_by_page(0), 1
    while clock.read_by_page(0) - start < wait_ns:
        reads += 1
    return reads


@pytest.mark.parametrize("wait_ns", [1, 20_000, 1_000_000])
def test_a_process_that_spins_until_the_clock_moves_ends(clock: ctypes.CDLL, wait_ns: int) -> None:
    # 1001 reads are free. The k-th read after them costs k ns, so √(2T) of them cost T ns.
    assert spins(clock, wait_ns) == pytest.approx(1001 + math.sqrt(2 * wait_ns), abs=2)


def test_no_read_of_a_spinning_process_costs_more_than_half_a_tick(clock: ctypes.CDLL) -> None:
    """A read that costs more would never end in the kernel."""
    # The 500,000th read costs half a tick, 0.5 ms; until then 125 s are over. In each of the other
    # 75 s there are 2000 reads.
    assert spins(clock, 200_000_000_000) == pytest.approx(1001 + 500_000 + 75 * 2000, abs=2)


def test_the_first_thousand_reads_of_a_moment_are_free(clock: ctypes.CDLL) -> None:
    for _ in range(3):
        assert len({clock.read_by_page(0) for _ in range(1001)}) == 1
        clock.sleep_for(1)


def test_reads_by_system_call_cost_a_nanosecond_more_each(clock: ctypes.CDLL) -> None:
    seen = [clock.read_by_call(0, GETTIME) for _ in range(1101)]
    steps = [after - before for before, after in zip(seen, seen[1:])]
    assert steps == [0] * 1000 + list(range(1, 101))


def test_reads_in_turns_with_another_process_cost_one_nanosecond(clock: ctypes.CDLL) -> None:
    """So do reads by two system calls in turns, after those that are free."""
    turns = [clock.read_by_call(number % 2, GETTIME) for number in range(3000)]
    assert turns[-1] - turns[0] == 2
    clock.sleep_for(1)
    calls = [clock.read_by_call(0, (GETTIME, GETTIMEOFDAY)[number % 2]) for number in range(3000)]
    assert calls[-1] - calls[0] == 2


def test_reads_are_free_again_after_another_process_has_read(clock: ctypes.CDLL) -> None:
    spins(clock, 20_000)
    before = clock.read_by_call(0, GETTIME)
    assert clock.read_by_call(0, GETTIME) - before > 200, "each read costs more than the last"
    other = clock.read_by_call(1, GETTIME)
    assert {clock.read_by_call(0, GETTIME) for _ in range(1000)} == {other}
