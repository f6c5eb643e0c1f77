"""What a confined process may do, seen by processes that try; the guest itself: tests/live."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from engines import confine

pytestmark = pytest.mark.skipif(bool(confine.lacking()), reason=f"lacks {confine.lacking()}")
PROJECT = Path(__file__).resolve().parents[3]
TRY = """
import ctypes, json, os, socket, sys
told = {}
for words in json.loads(sys.argv[1]):
    try:
        told[words] = ["done", repr(eval(words))]
    except OSError as error:
        told[words] = ["refused", error.strerror]
print(json.dumps(told))
"""


def attempts(folder: Path, *words: str) -> dict[str, list[str]]:
    """What becomes of Python expressions in a process that is confined to a folder."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(PROJECT / "engines" / "confine.py"), sys.executable,
         "-I", "-S", "-c", TRY, json.dumps(words)],
        cwd=folder, env={**os.environ, "A_SECRET": "of the user's"}, capture_output=True,
        text=True, check=False, timeout=30)
    assert done.returncode == 0, done.stderr
    told: dict[str, list[str]] = json.loads(done.stdout)
    return told


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "own").mkdir()
    (tmp_path / "beside").write_text("a secret")
    return tmp_path / "own"


def test_its_own_folder_and_what_it_needs_are_open(folder: Path) -> None:
    told = attempts(folder, "open('mine', 'w').write('x')", "os.mkdir('within')",
                    "open('within/mine', 'w').write('x')", "os.unlink('mine')",
                    "os.truncate('within/mine', 0)", "len(open('/etc/ld.so.cache', 'rb').read())",
                    f"open({str(PROJECT / 'server.py')!r}).readline()",
                    f"len(os.listdir({str(PROJECT)!r}))", "socket.socketpair()",
                    "open('/dev/null', 'w').write('x')",
                    "os.open(os.environ['TMPDIR'], os.O_TMPFILE | os.O_RDWR) > 0")
    assert {said[0] for said in told.values()} == {"done"}, told
    assert os.listdir(folder) == ["within"]


def test_all_else_is_refused(folder: Path) -> None:
    beside, git = str(folder.parent / "beside"), str(PROJECT / ".git")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        told = attempts(
            folder, f"open({beside!r}).read()", f"open({beside!r}, 'a').write('x')",
            f"os.truncate({beside!r}, 0)", f"os.unlink({beside!r})",
            f"os.rename({beside!r}, 'mine')", f"os.link({beside!r}, 'mine')",
            f"os.chmod({beside!r}, 0o777)", f"os.utime({beside!r}, (1, 1))",
            f"os.chown({beside!r}, {os.geteuid()}, -1)",
            f"os.setxattr({beside!r}, 'user.mine', b'1')",
            f"os.symlink({beside!r}, 'mine')", "os.mkfifo('mine')",
            "os.mknod('mine', 0o20600, os.makedev(1, 1))", "os.chmod('.', 0o777)",
            "open('/etc/shadow').read()", "os.listdir('/')", "os.listdir('/etc')",
            "os.listdir('/dev/shm')", "open('/dev/shm/mine', 'w')",
            "os.listdir(os.path.expanduser('~'))", 
            f"open({git!r} + '/HEAD' * {os.path.isdir(git)}).read()",
            f"open('/proc/{os.getpid()}/environ').read()", "open('/proc/self/environ').read()",
            f"os.kill({os.getpid()}, 0)", f"socket.create_connection(('127.0.0.1', {port}))",
            "socket.socket()", "socket.socket(socket.AF_UNIX)", "socket.socket(socket.AF_NETLINK)",
            "os.execv('/proc/self/exe', []) if 0 else os.listdir('/proc')")
    kill = f"os.kill({os.getpid()}, 0)"
    if confine.abi() < 6:
        told.pop(kill)
    assert {words: said for words, said in told.items() if said[0] != "refused"} == {}
    assert (folder.parent / "beside").read_text() == "a secret" and os.listdir(folder) == []


# Of x86-64, in the order of their numbers: what changes a file's mode, owner, times or attributes,
# sockets but pairs, and io_uring.
NUMBERS = (41, 42, 49, 90, 91, 92, 93, 94, 132, 188, 189, 190, 197, 198, 199, 235, 260, 261, 268,
           280, 425, 452, 463, 466, 469)
X32 = 1 << 30


def test_each_call_that_landlock_leaves_open_is_refused_by_its_number(folder: Path) -> None:
    """Also as x32 numbers it. Whatever it is called with: here with nothing."""
    called = "ctypes.CDLL(None, use_errno=True).syscall({}, -1, 0, 0, 0), ctypes.get_errno()".format
    words = {called(number + more): (number, more) for number in NUMBERS for more in (0, X32)}
    told = attempts(folder, *words, called(39))  # getpid, which goes on
    assert not told.pop(called(39))[1].startswith("(-1, ")
    refused = f"(-1, {errno.EPERM})"
    assert {words[each]: said[1] for each, said in told.items() if said[1] != refused} == {}


# getpid as a program of 32 bits asks for it: mov eax, 20; int 0x80; ret.
OF_32_BITS = """
import ctypes, mmap
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes.fromhex("b814000000cd80c3"))
print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))())
"""


def test_no_call_of_32_bits_gets_past_the_filter(folder: Path) -> None:
    """Its numbers are others: 15 is chmod there. So none is let through, whatever it asks."""
    python = [sys.executable, "-I", "-S"]
    usual, confined = (subprocess.run(
        [*before, *python, "-c", OF_32_BITS], cwd=folder, capture_output=True, text=True,
        check=False, timeout=30) for before in ([], [*python, str(PROJECT / "engines/confine.py")]))
    if usual.returncode:
        pytest.skip("this kernel has no calls of 32 bits")
    assert int(usual.stdout) > 0
    assert (confined.stdout, confined.stderr) == (f"{-errno.EPERM}\n", "")


LANDLOCK_ALONE = """
import ctypes, json, os, socket, sys
sys.path.insert(0, sys.argv[1])
from engines import confine
confine.refuse = lambda refused: None
confine.confine(sys.executable, os.getcwd())
told = []
for act in (lambda: socket.create_connection(("127.0.0.1", int(sys.argv[2]))),
            lambda: socket.create_server(("127.0.0.1", 0)),
            lambda: open(sys.argv[3]), lambda: open(sys.argv[3], "a")):
    try:
        told.append(repr(act()))
    except OSError as error:
        told.append(error.errno)
print(json.dumps(told))
"""


@pytest.mark.skipif(confine.abi() < 4, reason="this Landlock knows no TCP (Linux 6.7)")
def test_landlock_alone_refuses_tcp_and_files(folder: Path) -> None:
    """Should the filter of system calls have a hole."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        done = subprocess.run(
            [sys.executable, "-c", LANDLOCK_ALONE, str(PROJECT), str(server.getsockname()[1]),
             str(folder.parent / "beside")], cwd=folder, capture_output=True, text=True,
            check=False, timeout=30)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [errno.EACCES] * 4


def test_it_inherits_nothing_of_the_environment(folder: Path) -> None:
    (said,) = attempts(folder, "sorted(os.environ)").values()
    assert said == ["done", "['PATH', 'TMPDIR']"] or "LC_CTYPE" in said[1]
    assert "A_SECRET" not in said[1]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has capabilities to lose")
def test_root_keeps_two_capabilities(folder: Path) -> None:
    has = "ctypes.CDLL(None).prctl(23, {}, 0, 0, 0)".format  # PR_CAPBSET_READ
    told = attempts(folder, *(has(number) for number in range(41)))
    assert [number for number in range(41) if told[has(number)][1] == "1"] == [1, 2]


def test_it_leaves_nothing_in_memory(folder: Path) -> None:
    before = set(os.listdir(confine.MEMORY))
    attempts(folder, "1")
    assert not [name for name in set(os.listdir(confine.MEMORY)) - before
                if name.startswith("first-flight")]
