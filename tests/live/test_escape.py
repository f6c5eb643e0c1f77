"""Root in the guest tries to get at the host: nothing outside its folder changes or is read.

The guest runs a probe in place of the worker. Beside what the probe tells of
itself, the host's own files are looked at afterwards.

A kernel made elsewhere needs no hole in anything to be root there: the second half runs a program in
place of the kernel. It asks the machine for all that confined guests were once given, and more of
the kind: at a process of the same user's, its memory, keys, limits and messages.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from vtime import confine
from vtime.kernel.init import RESULTS

PROJECT = Path(__file__).resolve().parent.parent.parent
NOBODY = 65534
SECRET = "a secret of the host's"

# What root does in the guest: each line is said to have worked, or why it did not. A write that
# only reaches the guest's own memory is none: what counts is hostfs.
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
    """All that can be told of what lies in a folder."""
    return {str(path): (path.read_bytes() if path.is_file() else b"", *path.lstat()[:6],
                        path.lstat().st_mtime_ns, path.lstat().st_ctime_ns)
            for path in (folder, *sorted(folder.rglob("*")))}


@pytest.mark.parametrize("owner", [os.geteuid(), *([NOBODY] if os.geteuid() == 0 else [])])
def test_nothing_outside_is_changed_or_read(kernel: Path, listener: socket.socket,
                                            owner: int) -> None:
    """As whoever runs the test; root runs it as another user, too."""
    if confine.lacking():
        pytest.skip(f"this machine lacks {confine.lacking()}")
    place = Path(tempfile.mkdtemp())
    place.chmod(0o755)  # either user comes to what is below it
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
    """Run the probe as a user of the host; what it told, once nothing outside has changed."""
    outside, folder = place / "outside", place / "guest"
    for made in (outside, folder):
        made.mkdir()
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
    done = subprocess.run([*as_user(owner), *command], cwd=folder, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=120, check=False)
    assert (folder / "told.json").is_file(), done.stdout + done.stderr
    assert seen_of(outside) == before
    assert sorted(path.name for path in folder.iterdir()) == [
        "command.json", "mine", "planted", "probe.py", "status", "told.json"]
    assert not (folder / "mine").stat().st_mode & 0o6000, "it runs with its owner's rights"
    told: dict[str, list[str]] = json.loads((folder / "told.json").read_text())
    return told


def as_user(owner: int) -> list[str]:
    return ["setpriv", f"--reuid={owner}", f"--regid={owner}", "--clear-groups",
            "--"] if owner != os.geteuid() else []


def for_everybody(kernel: Path, place: Path, owner: int) -> list[str]:
    """A user's command of a guest, with a kernel and a project that any user can read."""
    shutil.copy(kernel, place / "linux")
    return asked_of(place, owner, f"uml.guest_command(uml.Path({str(place / 'linux')!r}))")


def asked_of(place: Path, owner: int, expression: str) -> Any:
    """What a user is told by a project that any user can read: walls depend on who asks."""
    project = place / "project"
    if not project.exists():
        for room in ("base", "net", "testbed", "vtime"):
            shutil.copytree(PROJECT / room, project / room,
                            ignore=shutil.ignore_patterns("__pycache__"))
    asking = f"import json; from vtime import uml; print(json.dumps({expression}))"
    done = subprocess.run([*as_user(owner), sys.executable, "-B", "-c", asking], cwd=project,
                          capture_output=True, text=True, timeout=300, check=True)
    return json.loads(done.stdout)


# What a user has of a machine beside files. It says what that is, waits, says what has become of it.
VICTIM = r'''
import ctypes, json, os, resource, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
name, here = b"/first-flight-%d" % os.getpid(), {"pid": os.getpid()}
here["key"] = libc.syscall(248, b"user", name[1:], b"secret", 6, -4)
here["memory_key"], here["queue"] = os.getpid(), name.decode()
memory = libc.shmget(os.getpid(), 4096, 0o1600)
shared = libc.shmat(memory, None, 0)
ctypes.memmove(shared, b"secret", 6)
semaphore, messages = libc.semget(os.getpid(), 1, 0o1600), libc.msgget(os.getpid(), 0o1600)
queue = libc.syscall(240, name[1:], 0o102, 0o600, None)
heap = ctypes.create_string_buffer(b"secret")
here["heap"] = ctypes.addressof(heap)
print(json.dumps(here), flush=True)
sys.stdin.read()
print(json.dumps({
    "limits": [resource.getrlimit(each) for each in range(16)],
    "priority": os.getpriority(os.PRIO_PROCESS, 0), "policy": os.sched_getscheduler(0),
    "processors": sorted(os.sched_getaffinity(0)), "io": libc.syscall(252, 1, 0),
    "memory": ctypes.string_at(shared, 6).decode(), "heap": heap.value.decode(),
    "semaphore": libc.semctl(semaphore, 0, 12) == 0, "queue": libc.syscall(241, name[1:]) == 0,
    "messages": libc.msgctl(messages, 0, None) == 0, "key": libc.syscall(250, 9, here["key"], -4) == 0}))
libc.shmctl(memory, 0, None), libc.semctl(semaphore, 0, 0)
'''

# What it does in place of a kernel, by numbers of system calls, so that no library refuses first.
# Nothing that would hurt anybody but the victim and itself, should a wall be down.
HOSTILE = r'''
import ctypes, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
libc.shmat.restype = ctypes.c_void_p
victim = json.loads(sys.argv[1])
pid, mine = victim["pid"], os.getpid()
told, only = {}, json.loads(sys.argv[2])

def call(name, number, *arguments):
    """Tells 0 where it worked, else why not; what it returned."""
    if only and name not in only:
        return -1
    words = [each if isinstance(each, (bytes, ctypes.Array)) or each is None
             else ctypes.c_long(each) for each in arguments]
    result = libc.syscall(ctypes.c_long(number), *words)
    told[name] = ctypes.get_errno() if result < 0 else 0
    return result

buffer, pair = ctypes.create_string_buffer(256), (ctypes.c_long * 8)()
one, low = ctypes.create_string_buffer(bytes([1, *bytes(127)])), (ctypes.c_long * 2)(1 << 40, 1 << 40)
call("keyring: read", 250, 11, victim["key"], buffer, 256)
call("keyring: describe", 250, 6, victim["key"], buffer, 256)
call("keyring: add", 248, b"user", b"first-flight-added", b"x", 1, -4)
call("keyring: find", 249, b"user", victim["queue"].encode()[1:], None, 0)
shared = call("shared memory", 29, victim["memory_key"], 4096, 0o600)
call("shared memory: attach", 30, max(shared, 0), None, 0)
if shared >= 0:
    ctypes.memmove(libc.shmat(shared, None, 0), b"hacked", 6)
call("shared memory: remove", 31, max(shared, 0), 0, None)
semaphore = call("semaphores", 64, victim["memory_key"], 1, 0o600)
call("semaphores: remove", 66, max(semaphore, 0), 0, 0, None)
messages = call("messages", 68, victim["memory_key"], 0o600)
call("messages: remove", 71, max(messages, 0), 0, None)
call("queue: open", 240, victim["queue"].encode()[1:], 2, 0, None)
call("queue: remove", 241, victim["queue"].encode()[1:])
call("limits: read", 302, pid, 7, None, buffer)
call("limits: set", 302, pid, 9, low, None)
call("priority", 141, 0, pid, 19)
call("priority of input and output", 251, 1, pid, 3 << 13)
call("scheduler", 144, pid, 3, bytes(8))
call("scheduler: parameters", 142, pid, bytes(8))
call("scheduler: attributes", 314, pid, bytes([48, 0, 0, 0, 3, *bytes(43)]), 0)
call("processors", 203, pid, 128, one)
call("watch: inotify", 253)
call("watch: inotify, newer", 294, 0)
call("watch: fanotify", 300, 0x200, 0)
folder = os.open("/usr", os.O_RDONLY)
call("watch: a folder's signals", 72, folder, 1026, 0x8000001F)
call("lock", 73, folder, 5)
call("lease", 72, folder, 1024, 0)
call("signals of a file to another", 72, folder, 8, pid)
call("signals of a file to another, newer", 72, folder, 15, (ctypes.c_int * 2)(1, pid))
call("signal", 62, pid, 0)
call("signal: all", 62, -1, 0)
call("signal: group", 62, -pid, 0)
call("signal: queue", 129, pid, 0, bytes(128))
call("signal: thread", 200, pid, 0)
call("signal: thread of a process", 234, pid, pid, 0)
descriptor = call("process: descriptor", 434, pid, 0)
call("process: signal by descriptor", 424, max(descriptor, 0), 0, None, 0)
call("process: attach", 101, 16, pid, None, None)
call("process: seize", 101, 0x4206, pid, None, None)
reach = (ctypes.c_long * 2)(ctypes.addressof(buffer), 6), (ctypes.c_long * 2)(victim["heap"], 6)
call("process: read memory", 310, pid, reach[0], 1, reach[1], 1, 0)
call("process: write memory", 311, pid, reach[0], 1, reach[1], 1, 0)
call("process: compare", 312, pid, mine, 2, 0, 0)
call("process: robust list", 274, pid, pair, pair)
call("process: pages", 279, pid, 0, None, None, None, 0)
call("process: counters", 298, bytes([1, 0, 0, 0, 128, *bytes(123)]), pid, -1, -1, 0)
for mode in (0o4755, 0o2755, 0o6777):
    call(f"set-id file {mode:o}", 2, b"owned", 0o101, mode)
    call(f"set-id file {mode:o}, openat", 257, -100, b"owned", 0o101, mode)
    call(f"set-id file {mode:o}, openat2", 437, -100, b"owned", (ctypes.c_ulong * 3)(0o101, mode, 0), 24)
    call(f"set-id file {mode:o}, creat", 85, b"owned", mode)
    call(f"set-id file {mode:o}, mknod", 133, b"owned", 0o100000 | mode, 0)
    call(f"set-id file {mode:o}, without a name", 257, -100, b".", 0o20200002, mode)
call("flags of a file", 16, os.open("flagged", os.O_CREAT | os.O_RDWR), 0x40086602, (ctypes.c_int * 1)(0x40))
for name, flag in (("users", 1 << 28), ("files", 1 << 17), ("processes", 1 << 29),
                   ("networks", 1 << 30), ("IPC", 1 << 27), ("names", 1 << 26),
                   ("groups", 1 << 25), ("time", 1 << 7)):
    call(f"namespace: {name}", 272, flag)
for name, flag in (("users", 1 << 28), ("files", 1 << 17), ("IPC", 1 << 27)):
    if not call(f"clone: {name}", 56, flag | 17, None, None, None, None):
        os._exit(0)
if not call("clone3", 435, (ctypes.c_ulong * 8)(0, 0, 0, 0, 17, 0, 0, 0), 64):
    os._exit(0)
call("a session of its own", 112)
call("a group of its own", 109, 0, 0)
call("outlive its parent", 157, 1, 0)
call("parent of orphans", 157, 36, 1)
call("datagrams", 53, 1, 2, 0, pair)
call("packets", 53, 1, 5, 0, pair)
call("memory of faults", 323, 1)
call("programs for the kernel", 321, 0, bytes(128), 128)
call("io_uring", 425, 1, bytes(120))
call("capabilities", 126, bytes([0x22, 5, 8, 0x20, 0, 0, 0, 0]), bytes(24))
call("log of the kernel", 103, 10, None, 0)
call("handle of a file", 303, -100, b".", bytes([128, *bytes(200)]), pair, 0)
call("tree of files", 428, -100, b".", 1)
call("asks of a filter", 317, 1, 8, bytes(16))
print(json.dumps(told))
'''
# Which anybody may ask for, of processes of one's own, where nothing stands in the way.
ALWAYS = ("limits: set", "limits: read", "priority", "processors", "signal", "a session of its own",
          "set-id file 6777, openat", "watch: inotify", "lock", "datagrams", "outlive its parent")


def hostile(command: list[str], folder: Path, owner: int,
            only: Sequence[str] = ()) -> tuple[dict[str, int], dict[str, Any]]:
    """What came of each attempt, the number of an error or 0; what then is left of the victim's."""
    with subprocess.Popen([*as_user(owner), sys.executable, "-c", VICTIM], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as victim:
        assert victim.stdout is not None
        done = subprocess.run(
            [*as_user(owner), *command, sys.executable, "-I", "-S", "-c", HOSTILE,
             victim.stdout.readline(), json.dumps(only)], cwd=folder, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=300, check=False)
        after, _ = victim.communicate(timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), json.loads(after)


@pytest.mark.parametrize("namespaces", ["uml.namespaces()", "()"])
@pytest.mark.parametrize("owner", [os.geteuid(), *([NOBODY] if os.geteuid() == 0 else [])])
def test_no_process_of_the_users_is_touched(owner: int, namespaces: str) -> None:
    """By a hostile program, in namespaces and where the machine has none.

    Without walls it does what it wants, or this test would show nothing.
    """
    if confine.lacking():
        pytest.skip(f"this machine lacks {confine.lacking()}")
    if namespaces == "()" and confine.abi() < 6:
        pytest.skip("this Landlock knows no signals (Linux 6.12)")
    place = Path(tempfile.mkdtemp())
    place.chmod(0o755)
    try:
        for name in ("guest", "free"):
            (place / name).mkdir()
            os.chown(place / name, owner, -1)
        told, after = hostile(asked_of(place, owner, f"uml.confining((), {namespaces})"),
                              place / "guest", owner)
        made = sorted(path.name for path in (place / "guest").iterdir())
        free, changed = hostile([], place / "free", owner, ALWAYS)
    finally:
        shutil.rmtree(place)
    assert len(told) > 85
    assert [name for name, error in told.items() if error == 0] == []
    assert made == ["flagged"]
    assert (after["memory"], after["heap"], after["queue"]) == ("secret", "secret", True)
    assert sorted(free) == sorted(ALWAYS) and not any(free.values())
    assert [name for name in ("limits", "priority", "processors") if changed[name] == after[name]] == []
