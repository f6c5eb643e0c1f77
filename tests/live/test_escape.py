"""Root in the guest tries to reach the host, and changes and reads nothing outside its folder.

The guest runs a probe in the place of the worker. The probe reports its attempts, and the host's
files are compared afterwards. tests/programs/engines/test_confine.py has the system calls that a
kernel from elsewhere may make.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import PROJECT
from tests.running import HANGS_S, run_program
from vtime import confine
from vtime.kernel.init import RESULTS

NOBODY = 65534
SECRET = "a secret of the host's"

# The program that root runs in the guest. It notes whether each attempt worked or was refused. Only
# writes to hostfs count, not those to the guest's memory.
PROBE = r'''
import ctypes, json, os, socket, subprocess, sys

outside, results = sys.argv[1], sys.argv[2]
again = "/run/again"
libc = ctypes.CDLL(None, use_errno=True)
told = {}

def attempt(name, act):
    try:
        told[name] = ["worked", repr(act())[:200]]
    except Exception as error:
        told[name] = ["refused", repr(error)[:200]]

def mount(kind, target, options, flags):
    if libc.mount(kind, target, kind, flags, options) != 0:
        raise OSError(ctypes.get_errno(), "mount")

def read(path):
    with open(path, "rb") as file:
        return file.read(200)

def write(path):
    with open(path, "ab") as file:
        return file.write(b"from the guest")

def create(path):
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))

def connect(port):
    with socket.create_connection(("127.0.0.1", port), timeout=2) as made:
        return made.getpeername()

mount(b"none", b"/", None, 32)  # MS_REMOUNT, no longer read-only
os.makedirs(again)
mount(b"hostfs", again.encode(), b"/", 0)
os.close(os.open(f"{results}/mine", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o6777))
attempt("its own folder", lambda: write(f"{results}/mine"))
for way, root in (("remounted", ""), ("second hostfs", again),
                  ("dot dot", f"{results}/../../.."), ("dot dot in hostfs", f"{again}/usr/..")):
    there = root + outside
    attempt(f"{way}: write", lambda: write(f"{there}/victim"))
    attempt(f"{way}: truncate", lambda: os.truncate(f"{there}/victim", 0))
    attempt(f"{way}: create", lambda: create(f"{there}/new"))
    attempt(f"{way}: folder", lambda: os.mkdir(f"{there}/newdir"))
    attempt(f"{way}: remove", lambda: os.unlink(f"{there}/victim"))
    attempt(f"{way}: rename", lambda: os.rename(f"{there}/victim", f"{there}/renamed"))
    attempt(f"{way}: mode", lambda: os.chmod(f"{there}/victim", 0o777))
    attempt(f"{way}: owner", lambda: os.chown(f"{there}/victim", 1, 1))
    attempt(f"{way}: times", lambda: os.utime(f"{there}/victim", (1, 1)))
    attempt(f"{way}: list", lambda: os.listdir(there))
    attempt(f"{way}: secret", lambda: read(f"{there}/victim"))
    attempt(f"{way}: shadow", lambda: read(f"{root}/etc/shadow"))
    attempt(f"{way}: home", lambda: os.listdir(f"{root}/root"))
    attempt(f"{way}: memory files", lambda: os.listdir(f"{again}/dev/shm"))
attempt("host's init", lambda: read(f"{again}/proc/1/environ"))
attempt("another process of the host's", lambda: read(f"{again}/proc/{sys.argv[4]}/environ"))
attempt("host's own environment", lambda: read(f"{again}/proc/self/environ"))
# Opened only: should it succeed, the machine is to stay as it is.
attempt("host's kernel settings", lambda: open(f"{again}/proc/sys/kernel/hostname", "ab").close())
attempt("host's descriptors", lambda: os.listdir(f"{again}/proc/self/fd"))
attempt("link", lambda: os.symlink(f"{outside}/victim", f"{results}/link"))
attempt("hard link", lambda: os.link(f"{again}{outside}/victim", f"{again}{outside}/hard"))
attempt("pipe", lambda: os.mkfifo(f"{results}/pipe"))
attempt("memory device", lambda: os.mknod(f"{results}/mem", 0o20666, os.makedev(1, 1)))
attempt("disk device", lambda: os.mknod(f"{results}/disk", 0o60666, os.makedev(254, 0)))
attempt("host's memory", lambda: read(f"{again}/dev/mem"))
attempt("host's terminal", lambda: read(f"{again}/dev/ptmx"))
attempt("planted link", lambda: read(f"{results}/planted"))
attempt("write through a planted link", lambda: write(f"{results}/planted"))
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
attempt("network", lambda: connect(int(sys.argv[3])))
with open(f"{results}/told.json", "w") as file:
    json.dump(told, file)
'''


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A service of the host's."""
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


def seen_of(folder: Path) -> dict[str, tuple[object, ...]]:
    """The state and the content of every file in a folder."""
    return {str(path): (path.read_bytes() if path.is_file() else b"", *path.lstat()[:6],
                        path.lstat().st_mtime_ns, path.lstat().st_ctime_ns)
            for path in (folder, *sorted(folder.rglob("*")))}


@pytest.mark.parametrize("owner", [os.geteuid(), *([NOBODY] if os.geteuid() == 0 else [])])
def test_root_in_a_guest_changes_and_reads_nothing_outside(kernel: Path, listener: socket.socket,
                                                           owner: int) -> None:
    """The guest runs as the user who runs the test. Root runs it as another user, too."""
    if confine.lacking():
        pytest.skip(f"this machine lacks {confine.lacking()}")
    place = Path(tempfile.mkdtemp())
    place.chmod(0o755)  # so that both users can reach the folders in it
    try:
        told = escape(kernel, place, listener.getsockname()[1], owner)
    finally:
        shutil.rmtree(place)
    assert told.pop("its own folder")[0] == "worked"
    assert len(told) > 60
    assert {name: said for name, said in told.items() if said[0] != "refused"} == {}
    listener.settimeout(0)
    with pytest.raises(BlockingIOError):
        listener.accept()


def escape(kernel: Path, place: Path, port: int, owner: int) -> dict[str, list[str]]:
    """Run the probe as a user of the host, and return its report.

    Asserts that nothing outside the guest's folder has changed.
    """
    outside, folder = place / "outside", place / "guest"
    outside.mkdir()
    folder.mkdir()
    (outside / "victim").write_text(SECRET)
    (folder / "planted").symlink_to(outside / "victim")
    (folder / "probe.py").write_text(PROBE)
    (folder / "command.json").write_text(json.dumps(
        ["/usr/bin/python3", f"{RESULTS}/probe.py", str(outside), RESULTS, str(port),
         str(os.getpid())]))
    for path in (outside, outside / "victim", folder):
        os.chown(path, owner, owner if owner != os.geteuid() else -1)
    before = seen_of(outside)
    command = for_everybody(kernel, place, owner)
    done = run_program([*as_user(owner), *command], cwd=folder, stdin=subprocess.DEVNULL)
    assert (folder / "told.json").is_file(), done.stdout + done.stderr
    assert seen_of(outside) == before
    assert sorted(path.name for path in folder.iterdir()) == [
        "command.json", "mine", "planted", "probe.py", "status", "told.json"]
    assert not (folder / "mine").stat().st_mode & 0o6000, "it runs with its owner's rights"
    told: dict[str, list[str]] = json.loads((folder / "told.json").read_text())
    return told


def as_user(owner: int) -> list[str]:
    """The words before a command that runs as a user; none if that is this one."""
    if owner == os.geteuid():
        return []
    return ["setpriv", f"--reuid={owner}", f"--regid={owner}", "--clear-groups", "--"]


def for_everybody(kernel: Path, place: Path, owner: int) -> list[str]:
    """The command line of a guest for a user, with a kernel and a project that any user can read.

    A process of that user makes it, since the walls depend on the user.
    """
    shutil.copy(kernel, place / "linux")
    for name in ("firstflight", "vtime"):
        shutil.copytree(PROJECT / name, place / "project" / name,
                        ignore=shutil.ignore_patterns("__pycache__"))
    asking = ("import json, sys; from pathlib import Path; from vtime import uml;"
              " print(json.dumps(uml.guest_command(Path(sys.argv[1]))))")
    done = subprocess.run(
        [*as_user(owner), sys.executable, "-B", "-c", asking, str(place / "linux")],
        cwd=place / "project", capture_output=True, text=True, timeout=HANGS_S, check=True)
    command: list[str] = json.loads(done.stdout)
    return command
