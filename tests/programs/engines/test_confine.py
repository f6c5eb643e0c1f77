"""Which system calls and files a confined process may use, by processes that try each.

tests/live tries them in the guest itself.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import sys
from pathlib import Path

import pytest

from tests.conftest import PROJECT
from tests.running import run_program
from vtime import confine, uml

pytestmark = pytest.mark.skipif(bool(confine.lacking()), reason=f"lacks {confine.lacking()}")
# Evaluates each expression, and prints by expression: "done" with its value, or "refused" and why.
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


# confine.py as on a machine with an older Landlock: its arguments are the project's folder, the
# version of Landlock, and those of confine.py.
OLDER = """
import sys
sys.path.insert(0, sys.argv[1])
from vtime import confine
confine.abi = lambda: int(sys.argv[2])
confine.main(sys.argv[3:])
"""


def attempts(folder: Path, *words: str, landlock: int = 0,
             readable: tuple[Path, ...] = ()) -> dict[str, list[str]]:
    """Evaluate Python expressions in a process that is confined to a folder.

    landlock: the version of its Landlock, 0 for this machine's. readable: other paths that it may
    read. Returns by expression ("done", its value) or ("refused", why).
    """
    confining = uml.confining(map(str, readable), around=())
    if landlock:
        place = confining.index(confine.__file__)
        confining[place:place + 1] = ["-c", OLDER, str(PROJECT), str(landlock)]
    done = run_program(
        [*confining, sys.executable, "-I", "-S", "-c", TRY, json.dumps(words)],
        cwd=folder, env={**os.environ, "A_SECRET": "of the user's"})
    assert done.returncode == 0, done.stderr
    told: dict[str, list[str]] = json.loads(done.stdout)
    return told


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "own").mkdir()
    (tmp_path / "beside").write_text("a secret")
    return tmp_path / "own"


def test_a_confined_process_may_use_its_own_folder_and_what_it_needs(folder: Path) -> None:
    told = attempts(folder, "open('mine', 'w').write('x')", "os.mkdir('within')",
                    "open('within/mine', 'w').write('x')", "os.unlink('mine')",
                    "os.truncate('within/mine', 0)", "len(open('/etc/ld.so.cache', 'rb').read())",
                    f"open({str(PROJECT / 'server.py')!r}).readline()",
                    f"len(os.listdir({str(PROJECT)!r}))", "socket.socketpair()",
                    "open('/dev/null', 'w').write('x')", "os.memfd_create('memory') > 0")
    assert {said[0] for said in told.values()} == {"done"}, told
    assert os.listdir(folder) == ["within"]


def test_a_confined_process_is_refused_all_else(folder: Path) -> None:
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
            "os.mkdir('mine', 0o300)", "os.mkdir('mine', 0o677)", "os.mkdir('mine', 0)",
            "open('/etc/shadow').read()", "os.listdir('/')", "os.listdir('/etc')",
            "os.listdir('/dev/shm')", "open('/dev/shm/mine', 'w')",
            "os.listdir(os.path.expanduser('~'))",
            f"open({git!r} + '/HEAD' * {os.path.isdir(git)}).read()",
            f"open('/proc/{os.getpid()}/environ').read()", "open('/proc/self/environ').read()",
            f"os.kill({os.getpid()}, 0)", f"socket.create_connection(('127.0.0.1', {port}))",
            "socket.socket()", "socket.socket(socket.AF_UNIX)", "socket.socket(socket.AF_NETLINK)",
            "os.listdir('/proc')")
    kill = f"os.kill({os.getpid()}, 0)"
    if confine.abi() < 6:
        told.pop(kill)
    assert {words: said for words, said in told.items() if said[0] != "refused"} == {}
    assert (folder.parent / "beside").read_text() == "a secret" and os.listdir(folder) == []


# An expression that uses each right that Landlock knows, by the bit of the right.
WITHOUT_RIGHTS = {
    "_FILE_RIGHTS": {
        0: "os.execv({beside!r}, ['x'])", 1: "open({beside!r}, 'a')", 2: "open({beside!r}).read()",
        3: "os.listdir({above!r})", 4: "os.rmdir({within!r})", 5: "os.unlink({beside!r})",
        6: "os.mknod('mine', 0o20600, os.makedev(1, 1))", 7: "os.mkdir({above!r} + '/new')",
        8: "open({above!r} + '/new', 'w')", 9: "os.mknod('mine', 0o140600)",
        10: "os.mkfifo('mine')", 11: "os.mknod('mine', 0o60600, os.makedev(254, 0))",
        12: "os.symlink({beside!r}, 'mine')", 13: "os.rename('own', {above!r} + '/new')",
        14: "os.open({read!r}, os.O_RDONLY | os.O_TRUNC)",
        15: "__import__('fcntl').ioctl(os.open('/dev/null', os.O_RDWR), 0x5412, b'x')"},
    "_TCP": {0: "socket.create_server(('127.0.0.1', 0))",
             1: "socket.create_connection(('127.0.0.1', {port}))"},
    "_SCOPES": {0: "socket.socket(socket.AF_UNIX).connect(chr(0) + 'abstract')",
                1: "os.kill({parent}, 0)"}}
# Expressions that empty a file which may only be read: by truncate, and by open and openat (2 and
# 257) with O_TRUNC.
EMPTIES = ["os.truncate({read!r}, 0)", "os.open({read!r}, os.O_TRUNC | 3)",
           *(f"ctypes.CDLL(None, use_errno=True).syscall({number}, {path}{{read!r}}.encode(),"
             f" {flags}, 0o600) < 0 and open('/none')"
             for number, path in ((2, ""), (257, "-100, "))
             for flags in (0o1000, 0o1003, 0o1100, 0o2001000))]
# What is not refused before this version of Landlock. SECURITY.md names it, and a PID namespace
# refuses it.
UNCOVERED_BEFORE = {"os.kill({parent}, 0)": 6}


def test_every_right_of_landlock_has_an_attempt() -> None:
    for name, rows in WITHOUT_RIGHTS.items():
        known = getattr(confine, name)
        bits = sum(known.values()) if isinstance(known, dict) else known
        assert {1 << bit for bit in rows} == {1 << bit for bit in range(64) if bits >> bit & 1}


@pytest.mark.parametrize("version", range(1, max(confine.abi(), 1) + 1))
def test_an_older_landlocks_missing_rights_are_refused_by_the_filter(version: int,
                                                                     folder: Path) -> None:
    read = folder.parent / "read"
    read.write_text("kept")
    (folder / "own").write_text("its own")
    (folder.parent / "within").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as server:
        given = {"beside": str(folder.parent / "beside"), "above": str(folder.parent),
                 "within": str(folder.parent / "within"), "read": str(read),
                 "port": server.getsockname()[1], "parent": os.getpid()}
        words = [word for rows in WITHOUT_RIGHTS.values() for word in rows.values()] + EMPTIES
        template_of = {word.format(**given): word for word in words}
        told = attempts(folder, *template_of, landlock=version, readable=(read,))
    done = {template_of[tried] for tried, said in told.items() if said[0] != "refused"}
    assert done == {word for word, since in UNCOVERED_BEFORE.items() if version < since}
    assert read.read_text() == "kept" and os.listdir(folder) == ["own"]


# Numbers of system calls of x86-64 that are refused, one kind after another: those that change a
# file's mode, owner, times or attributes, or give it another name; that watch or lock files;
# sockets but pairs, and io_uring; that reach another process, its memory, limits or priority, or
# leave the caller's group; keyrings, System V's and POSIX's memory, semaphores and messages;
# namespaces and mounts; the kernel's own programs, counters, clock and log.
NUMBERS = (41, 42, 49, 90, 91, 92, 93, 94, 132, 188, 189, 190, 197, 198, 199, 235, 260, 261, 268,
           280, 425, 452, 463, 466, 469,
           73, 85, 86, 88, 133, 253, 254, 259, 265, 266, 294, 300, 301, 303, 304, 437,
           43, 44, 50, 288, 299, 307, 426, 427,
           109, 112, 129, 141, 142, 144, 200, 203, 251, 256, 274, 279, 297, 310, 311, 312, 314, 424,
           434, 438, 440, 448, 450,
           29, 30, 31, 64, 65, 66, 67, 68, 69, 70, 71, 220, 240, 241, 242, 243, 244, 245, 248, 249,
           250,
           155, 161, 165, 166, 272, 308, 428, 429, 430, 431, 432, 433, 442, 467,
           103, 105, 106, 116, 117, 126, 159, 163, 164, 167, 169, 170, 171, 172, 173, 175, 179, 227,
           246, 298, 313, 320, 321, 323, 443)
# Calls that are allowed with some arguments only: mkdir, openat, open, fcntl, clone, socketpair,
# kill, ptrace, ioctl, prlimit64, prctl, personality, seccomp. So is truncate (76) where Landlock
# knows it.
WITH_ARGUMENTS = {83, 257, 2, 72, 56, 53, 62, 101, 16, 302, 157, 135, 317}
NEWEST = 469  # the newest system call of Linux 6.18
# uretprobe and uprobe. Newer kernels ask no filter about them, and kill every caller but a probe.
PROBES = {335, 336}
X32 = 1 << 30  # is added to the number of a call by programs of the x32 ABI
CALLED = "ctypes.CDLL(None, use_errno=True).syscall({}), ctypes.get_errno()".format


def called(*words: object) -> str:
    """A Python expression that makes a system call, and has what it returned and errno.

    words: the call's number and arguments; a text is an expression.
    """
    return CALLED(", ".join(f"ctypes.c_long({word})" if isinstance(word, int) else str(word)
                            for word in words))


def test_each_call_that_landlock_does_not_cover_is_refused_by_its_number(folder: Path) -> None:
    """So is each call by its x32 number. The arguments are of no use to any call."""
    words = {called(number + more, -1, 0, 0, 0): (number, more)
             for number in NUMBERS for more in (0, X32)}
    told = attempts(folder, *words, called(39))  # getpid, which goes on
    assert not told.pop(called(39))[1].startswith("(-1, ")
    refused = f"(-1, {errno.EPERM})"
    assert {words[tried]: said[1] for tried, said in told.items() if said[1] != refused} == {}


# Calls every number that it is given, and prints by number what was returned and errno.
ALL = """
import ctypes, errno, json, sys
libc, told = ctypes.CDLL(None, use_errno=True), {}
for number in json.loads(sys.argv[1]):
    returned = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(-1)] * 6)
    told[number] = [returned, ctypes.get_errno()]
print(json.dumps(told))
"""


def test_a_call_that_is_not_on_the_list_is_refused(folder: Path) -> None:
    """They are all numbers that a kernel may have, and some that none has; x32's numbers, too."""
    listed = {*confine.ALLOWED.values(), *WITH_ARGUMENTS, *([76] if confine.abi() >= 3 else [])}
    assert not listed & {*NUMBERS}
    wanted = {number: errno.EPERM for number in range(NEWEST + 1)} | {
        number: errno.ENOSYS for number in (435, *range(NEWEST + 1, 600), 999, X32 - 1)} | {
        number + X32: errno.EPERM for number in range(600)}
    requested = [number for number in wanted if number not in listed | PROBES]
    done = run_program(
        [*uml.confining(around=()), sys.executable, "-I", "-S", "-c", ALL, json.dumps(requested)],
        cwd=folder)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert {number: told[str(number)] for number in requested
            if told[str(number)] != [-1, wanted[number]]} == {}


# clone's flags for a new namespace of each kind.
NEW_NAMESPACES = (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)
PARENT = os.getpid()
PAIR = "(ctypes.c_int * 2)()"  # where socketpair writes


# Calls with arguments that are refused, each with its number first.
NO_GUEST_NEEDS: list[tuple[object, ...]] = [
    # A file that runs with its owner's rights: open and openat with O_CREAT, with O_EXCL too, and
    # with O_TMPFILE.
    *((2, "b'owned'", flags, mode) for flags in (0o101, 0o301)
      for mode in (0o4755, 0o2755, 0o6777)),
    *((257, -100, "b'owned'", flags, mode) for flags in (0o101, 0o301)
      for mode in (0o4000, 0o2000, 0o6777)),
    (257, -100, "b'.'", 0o20200002, 0o4777), (2, "b'.'", 0o20200001, 0o2777),
    # clone with a namespace, with the parent's parent, untraced; and with flags in the upper half.
    *((56, flag | 17, 0, 0, 0, 0) for flag in (*NEW_NAMESPACES, 0x8000, 0x2000, 0x800000)),
    (56, 1 << 33 | 0x10000000 | 17, 0, 0, 0, 0),
    # The limits of another process, read and set; also by a negative number.
    (302, PARENT, 7, 0, "ctypes.create_string_buffer(16)"), (302, -1, 7, 0, 0),
    # Signals to all processes, to a group, and those that no guest sends.
    (62, -1, 0), (62, -PARENT, 0), (62, "os.getpid()", 6), (62, "os.getpid()", 10),
    *([(234, PARENT, PARENT, 0)] if confine.abi() >= 6 else []),  # to a thread of another process
    # ptrace: attach, seize, interrupt, listen. There is no such process, so Landlock refuses
    # nothing.
    *((101, request, -1, 0, 0) for request in (16, 0x4206, 0x4207, 0x4208)),
    # fcntl: locks, a lease, F_NOTIFY, and F_SETOWN and F_SETOWN_EX with another process.
    *((72, 0, command, 0) for command in (5, 6, 7, 15, 36, 37, 38, 1024, 1026, 1031, 1036)),
    (72, 0, 8, PARENT), (72, 0, 8, -PARENT),
    # socketpair of datagrams, of packets, and of another family.
    (53, 1, 2, 0, PAIR), (53, 1, 5, 0, PAIR), (53, 1, 0o2000002, 0, PAIR), (53, 2, 1, 0, PAIR),
    (53, 30, 1, 0, PAIR), (53, 16, 1, 0, PAIR),
    # prctl, so that the process outlives its parent, gets orphans, may be traced, or changes the
    # map of its memory.
    (157, 1, 0, 0, 0, 0), (157, 1, 15, 0, 0, 0), (157, 36, 1, 0, 0, 0), (157, 4, 1, 0, 0, 0),
    (157, 0x59616D61, -1, 0, 0, 0), (157, 35, 0, 0, 0, 0), (157, 22, 2, 0, 0, 0),
    (157, 24, 1, 0, 0, 0), (157, 62, 0, PARENT, 0, 0),
    # ioctl with TIOCSTI, TIOCSCTTY, TIOCCONS, TIOCLINUX, FS_IOC_SETFLAGS, FICLONE, FIFREEZE.
    *((16, 1, control, "b'x'") for control in (
        0x5412, 0x540E, 0x541D, 0x541C, 0x40086602, 0x40049409, 0xC0045877)),
    (135, 0x400000), (135, 8),  # personality: READ_IMPLIES_EXEC, of another system
    (317, 1, 8, 0), (317, 0, 0, 0), (317, 3, 0, 0)]  # seccomp: a listener, strict, sizes


def test_a_listed_call_is_refused_with_arguments_that_no_guest_needs(folder: Path) -> None:
    told = attempts(folder, *(called(*words) for words in NO_GUEST_NEEDS))
    assert len(told) == len(NO_GUEST_NEEDS) > 65
    assert {words: said for words, said in told.items()
            if said != ["done", f"(-1, {errno.EPERM})"]} == {}
    assert os.listdir(folder) == []


def test_a_listed_call_passes_with_the_arguments_of_a_guest(folder: Path) -> None:
    calls = [(257, -100, "b'mine'", 0o101, 0o755), (257, -100, "b'mine'", 0, 0o6777),
            (2, "b'mine'", 0o102, 0o1777), (302, 0, 7, 0, "ctypes.create_string_buffer(16)"),
            (302, "os.getpid()", 7, 0, "ctypes.create_string_buffer(16)"),
            (62, "os.getpid()", 0), (72, 1, 3, 0), (53, 1, 1, 0, PAIR),
            (53, 1, 0o2004001, 0, PAIR), (157, 1, 9, 0, 0, 0), (157, 15, "b'name'", 0, 0, 0),
            (135, -1), (135, 0xFFFFFFFF)]
    told = attempts(folder, *(called(*words) for words in calls))
    assert [words for words, said in told.items() if "(-1, " in said[1]] == []
    assert len(told) == len(calls)


def test_a_confined_process_may_start_processes_as_a_guest_does(folder: Path) -> None:
    """It starts them with clone as glibc and as the guest kernel does (start_up.c).

    CLONE_VM is left out here, since both would share Python's memory.
    """
    clones = [
        f"(lambda made: made or os._exit(0))(ctypes.CDLL(None).syscall(56, {flags}, 0, 0, 0, 0))"
        for flags in (0x1200011, 0x4011, 0x4000)]
    told = attempts(folder, *clones, "os.waitpid(-1, 1 << 30)[1]")
    assert all(said[0] == "done" and int(said[1]) >= 0 for said in told.values()), told
    assert len(told) == 4


def test_a_confined_process_may_own_the_signals_of_its_own_files(folder: Path) -> None:
    """F_SETOWN with its own number passes the filter."""
    own = "[os.getpid(), ctypes.CDLL(None).fcntl(a.fileno(), 8, os.getpid())]"
    (said,) = attempts(folder, f"[{own} for a, b in [socket.socketpair()]][0]").values()
    assert said[0] == "done" and said[1].endswith(", 0]")


# getpid as a program of 32 bits calls it: mov eax, 20; int 0x80; ret.
OF_32_BITS = """
import ctypes, mmap
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes.fromhex("b814000000cd80c3"))
print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))())
"""


def test_a_call_of_32_bits_is_refused(folder: Path) -> None:
    """Calls of 32 bits have other numbers: 15 is chmod. So the filter refuses all of them."""
    python = [sys.executable, "-I", "-S"]
    usual, confined = (run_program([*before, *python, "-c", OF_32_BITS], cwd=folder)
                       for before in ([], uml.confining(around=())))
    if usual.returncode:
        pytest.skip("this kernel has no calls of 32 bits")
    assert int(usual.stdout) > 0
    assert (confined.stdout, confined.stderr) == (f"{-errno.EPERM}\n", "")


# Tries TCP and files, confined by Landlock without the filter of system calls.
LANDLOCK_ALONE = """
import ctypes, json, os, socket, sys
sys.path.insert(0, sys.argv[1])
from vtime import confine
confine.refuse = lambda refused: None
confine.confine(sys.executable, os.getcwd(), "/usr", "/lib", "/lib64", "/etc/ld.so.cache")
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
    """They would be refused even if the filter of system calls had a hole."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        done = run_program(
            [sys.executable, "-c", LANDLOCK_ALONE, str(PROJECT), str(server.getsockname()[1]),
             str(folder.parent / "beside")], cwd=folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [errno.EACCES] * 4


def test_a_confined_process_inherits_only_path_and_tmpdir(folder: Path) -> None:
    """Python itself sets LC_CTYPE where no locale is set (PEP 538)."""
    (said,) = attempts(folder, "sorted({*os.environ} - {'LC_CTYPE'})").values()
    assert said == ["done", "['PATH', 'TMPDIR']"]


def test_a_program_that_a_confined_process_writes_cannot_be_run(folder: Path) -> None:
    """It may run the system's programs, as the guest's kernel does. Its own files get no mode."""
    write = "open('mine', 'wb').write(open('/usr/bin/env', 'rb').read()) > 0"
    told = attempts(folder, write, "os.chmod('mine', 0o755)", "os.execv('mine', ['mine'])")
    assert [said[0] for said in told.values()] == ["done", "refused", "refused"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has capabilities to lose")
def test_a_confined_root_keeps_two_capabilities(folder: Path) -> None:
    has = "ctypes.CDLL(None).prctl(23, {}, 0, 0, 0)".format  # PR_CAPBSET_READ
    told = attempts(folder, *(has(number) for number in range(41)))
    assert [number for number in range(41) if told[has(number)][1] == "1"] == [1, 2]
