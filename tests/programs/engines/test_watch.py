"""A guest that takes more of the machine than it needs is ended with the reason.

Programs that behave badly stand in the place of a guest's kernel, behind the same walls.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import vtime
from firstflight.testbed.guests import UmlEngine
from tests.programs.engines.test_walls import TRIAL, wait_until_gone
from tests.running import wait_until
from vtime import confine, uml, watch
from vtime.command import guest
from vtime.console import EngineError, excess_in

pytestmark = pytest.mark.skipif(bool(confine.lacking()), reason=f"lacks {confine.lacking()}")

BEGINNING = f"""#!{sys.executable} -IS
import ctypes, os, socket, time
MB = 1 << 20
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p

def fill(file):
    for _ in range(32):
        os.write(file, bytes(MB))

def mapped():
    "32 MB that all may share, in a file that is closed."
    file = os.memfd_create("closed")
    fill(file)
    place = libc.mmap(None, ctypes.c_size_t(32 * MB), 3, 1, file, ctypes.c_long(0))
    os.close(file)
    ctypes.memset(place, 1, 32 * MB)

"""
MEMORY = "it took [0-9]+ MB of memory, and needs [0-9]+ MB at most"
# What a hostile kernel does, in Python, and a pattern of the reason with which it is ended.
WAYS = {
    "allocate": ("held = []\nfor _ in range(12):\n    if os.fork() == 0:\n"
                 "        held.append(b'x' * (100 * MB))\n        time.sleep(999)\n"
                 "time.sleep(999)\n",
                 MEMORY),
    "memfds": ("files = []\nwhile True:\n    files.append(os.memfd_create('m'))\n"
               "    fill(files[-1])\n", MEMORY),
    "one memfd": ("file = os.memfd_create('m')\nwhile True:\n    fill(file)\n", MEMORY),
    "mapped": ("while True:\n    mapped()\n", MEMORY),
    "deleted files": ("while True:\n    file = os.open('f', os.O_CREAT | os.O_RDWR, 0o600)\n"
                      "    os.unlink('f')\n    fill(file)\n", MEMORY),
    "fork": ("for _ in range(12_000):\n    if os.fork() == 0:\n        time.sleep(999)\n"
             "time.sleep(999)\n", "it had [0-9]+ processes, and needs [0-9]+ at most"),
    "threads": ("import _thread\n_thread.stack_size(1 << 15)\nfor _ in range(3000):\n    try:\n"
                "        _thread.start_new_thread(time.sleep, (999,))\n"
                "    except RuntimeError:\n        break\ntime.sleep(999)\n",
                "it had [0-9]+ processes, and needs [0-9]+ at most"),
    "sockets": ("pairs = []\nwhile len(pairs) < 900:\n    pairs.append(socket.socketpair())\n"
                "time.sleep(999)\n", "it had [0-9]+ sockets and pipes, and needs [0-9]+ at most")}


def kernel(folder: Path, does: str) -> Path:
    """A program that does this, in Python, in the place of a kernel."""
    path = folder / "linux"
    path.write_text(BEGINNING + does)
    path.chmod(0o755)
    return path


def run_command(tmp_path: Path, does: str, memory_mb: int = 64) -> None:
    """Run a command in a guest whose kernel does this."""
    program = kernel(tmp_path, does)
    for name in ("folder", "into"):
        (tmp_path / name).mkdir()
    request = vtime.CommandRequest(["true"], tmp_path / "folder", memory_mb=memory_mb)
    vtime.run(request, tmp_path / "into", kernel=program)


@pytest.mark.parametrize("around", [None, ()], ids=["namespaces", "none"])
@pytest.mark.parametrize("way", WAYS)
def test_a_commands_guest_that_takes_too_much_is_ended(way: str, around: tuple[str, ...] | None,
                                                       tmp_path: Path,
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    if around is not None:
        monkeypatch.setattr(uml, "namespaces", lambda: around)
    does, why = WAYS[way]
    with pytest.raises(EngineError, match=f"the guest was ended: {why}; .*--force"):
        run_command(tmp_path, does)
    wait_until_gone(tmp_path / "into")


@pytest.mark.parametrize("way", ["allocate", "memfds", "sockets"])
def test_a_trials_guest_that_takes_too_much_is_ended(way: str, tmp_path: Path) -> None:
    does, why = WAYS[way]
    with pytest.raises(EngineError, match=f"was ended while its network was awaited: {why}"):
        list(UmlEngine(kernel(tmp_path, does), 1).run([TRIAL], {}, tmp_path / "work"))
    wait_until_gone(tmp_path / "work")


def test_a_guest_whose_clock_stands_still_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch
                                                   ) -> None:
    # It ignores the signal only once Python has started, and so has to get it later.
    monkeypatch.setattr(guest, "STANDS_STILL_S", 1.0)
    monkeypatch.setattr(guest, "SPINS_S", 0.8)
    with pytest.raises(EngineError, match="clock stood still"):
        run_command(tmp_path, "import signal\nsignal.signal(14, signal.SIG_IGN)\n"
                              "while True:\n    pass\n")


def test_a_guest_that_never_comes_up_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch
                                              ) -> None:
    monkeypatch.setattr(guest, "BOOT_S", 0.5)
    with pytest.raises(EngineError, match="said nothing for .* s after its start"):
        run_command(tmp_path, "print('here I am', flush=True)\ntime.sleep(999)\n")


@pytest.mark.parametrize(("does", "status"), [
    ("os._exit(7)", 7), ("os.kill(os.getpid(), 15)", 128 + 15),
    ("os.kill(os.getpid(), 9)", 128 + 9)])
def test_the_watchers_status_is_the_guests(does: str, status: int, tmp_path: Path) -> None:
    done = subprocess.run([*uml.confining(), str(kernel(tmp_path, does))], cwd=tmp_path,
                          capture_output=True, text=True, check=False)
    assert done.returncode == status
    assert (watch.KILLED in done.stdout) is (status == 137) and not excess_in(done.stdout)


def test_a_guests_file_has_a_limit_of_size(tmp_path: Path) -> None:
    """A hole counts for the size of a file. So whoever reads the file has to count its bytes."""
    done = subprocess.run([*uml.confining(), str(kernel(
        tmp_path, f"open('file', 'wb').truncate({watch.MOST_FILE})\n"
        "open('memory', 'wb').truncate(512 * MB)\n"
        f"try:\n    open('more', 'wb').truncate({watch.MOST_FILE} + 1)\n"
        "except OSError:\n    os._exit(7)\n"))], cwd=tmp_path, check=False)
    assert done.returncode == 7 and (tmp_path / "file").stat().st_size == watch.MOST_FILE


def test_only_processes_that_the_guest_started_are_watched(tmp_path: Path) -> None:
    """Orphans are among them, also where the kernel does not list children."""
    leaving_an_orphan = kernel(tmp_path, "if os.fork() == 0:\n    if os.fork() == 0:\n"
                               "        open('left', 'w').close()\n"
                               "        time.sleep(999)\n    os._exit(0)\n"
                               "os.wait()\nopen('up', 'w').close()\ntime.sleep(999)\n")
    with subprocess.Popen(["sleep", "999"]) as other, \
            subprocess.Popen([*uml.confining(), str(leaving_an_orphan)], cwd=tmp_path,
                             start_new_session=True) as first:
        try:
            wait_until(lambda: (tmp_path / "up").exists() and (tmp_path / "left").exists(),
                       "a guest with an orphan")
            found = watch.descendants(str(first.pid))
            assert str(other.pid) not in found and len(found) >= 2
            taken = watch.Taken(str(first.pid))
            assert taken.processes == len(found) and not taken.excess(64)
            assert {*watch._of_session(str(first.pid))} == {*found}
        finally:
            os.killpg(first.pid, 9)
            other.kill()


@pytest.mark.parametrize(("available", "swap", "full"), [(100, 0, True), (100, 900, False),
                                                         (900, 0, False)])
def test_a_machine_is_full_before_its_memory_and_swap_are_used_up(
        available: int, swap: int, full: bool, tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text(f"MemTotal: 32000 kB\nMemFree: 3 kB\nMemAvailable: {available} kB\n"
                       f"SwapTotal: 999 kB\nSwapFree: {swap} kB\n")
    assert bool(watch.machine_is_full(str(meminfo))) is full
    assert not watch.machine_is_full(str(tmp_path / "none"))
