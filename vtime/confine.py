"""Confines a guest's kernel: it can write to one folder, and change nothing else of the machine.

Root in the guest may mount the machine's files again and write to them, and a kernel from elsewhere
may make any system call. So the machine's own kernel enforces the limits, without root, whatever
the guest does:

    Landlock       reads what it is given (vtime/readable.py), the project and its kernel,
                   reads and writes its own folder; no TCP; no other process
    capabilities   of root only those that read and write the folders of users
    seccomp        the system calls that a guest needs (ALLOWED, _with_arguments)
                   and no other: nothing of a file but its content is changed, no
                   process gets out of its group or at another one, no socket but pairs

In addition the guest runs in namespaces if the machine has them (vtime/uml.py).

Start it as `confine.py [--memory MB] [--read PATH]… KERNEL WORD…` in the guest's folder; it becomes
the kernel. With --memory a parent watches what the guest takes of the machine (watch.py).
Each PATH may be read: paths of every guest, the guest's root if it is not the machine's, and paths
that the user named. See Documentation/userspace-api/landlock.rst and seccomp_filter.rst.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import struct
import sys
from collections.abc import Container, Iterable, Sequence

PROJECT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
READABLE = ("/proc/cpuinfo",
            # Python's own folder, unless it is the system's, in which some files are not readable
            # for everybody.
            *({sys.prefix} - {"/usr", "/usr/local"}))
WRITABLE = ("/dev/null",)
# No guest may read the folders of runs, or hidden ones (.git).
NOT_OF_THE_PROJECT = ("results", "figures")

_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT, _SECCOMP = 444, 445, 446, 317
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_REGULAR = 1 << 4, 1 << 5, 1 << 7, 1 << 8
_TRUNCATE = 1 << 14
# By the first ABI that knows them: all that there is up to ABI 7 (Linux 6.15).
_FILE_RIGHTS = {1: (1 << 13) - 1, 2: 1 << 13, 3: _TRUNCATE, 5: 1 << 15}
_TCP, _TCP_ABI = 3, 4  # bind and connect
_SCOPES, _SCOPES_ABI = 3, 6  # signals and abstract sockets of others
READ = _EXECUTE | _READ_FILE | _READ_DIR
# It may create no links, sockets, pipes or devices, so that the folder has files and folders only.
_WRITE = (_WRITE_FILE | _READ_FILE | _READ_DIR | _TRUNCATE | _REMOVE_DIR | _REMOVE_FILE
          | _MAKE_DIR | _MAKE_REGULAR)
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE

_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 24, 38
_KEPT_CAPABILITIES = (1, 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
_SECCOMP_SET_MODE_FILTER, _SECCOMP_ACTION_AVAILABLE, _SPEC_ALLOW = 1, 2, 4
_ALLOW, _REFUSE, _UNKNOWN = 0x7FFF0000, 0x00050001, 0x00050026  # SECCOMP_RET_ERRNO: EPERM, ENOSYS
_X86_64, _X32_BIT = 0xC000003E, 0x40000000
# A filter's input, struct seccomp_data: the call's number, its machine, its arguments.
_NUMBER, _MACHINE, _FIRST, _SECOND, _THIRD, _FOURTH = 0, 4, 16, 24, 32, 40
_LOAD, _AND, _EQUAL, _AT_LEAST, _GIVE = 0x20, 0x54, 0x15, 0x35, 0x06  # of classic BPF
_Step = tuple[int, int, int, int]  # a code, how many steps to skip if so, if not, and an operand
# What of seccomp_data, under which mask, has to be one of these values.
_Condition = tuple[int, int, tuple[int, ...]]

# System calls by their numbers on x86-64, the only machine that User-Mode Linux knows: what its
# kernel, its processes (arch/um/kernel/skas/stub_exe.c) and glibc under them need, and a few that
# do no more, with which a shell or Python can be tried in its place. These are allowed with all
# arguments, the most frequent ones first.
ALLOWED = {
    "futex": 202, "rt_sigreturn": 15, "mmap": 9, "recvmsg": 47, "sendmsg": 46, "close": 3,
    "access": 21, "pread64": 17, "statx": 332, "pwrite64": 18, "munmap": 11, "readlink": 89,
    "getdents64": 217, "lseek": 8, "newfstatat": 262, "fstat": 5, "read": 0, "write": 1,
    "writev": 20, "wait4": 61, "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigsuspend": 130,
    "sigaltstack": 131, "close_range": 436, "dup": 32, "dup2": 33, "execve": 59, "execveat": 322,
    "vfork": 58, "exit": 60, "exit_group": 231, "arch_prctl": 158, "brk": 12, "mprotect": 10,
    "mremap": 25, "madvise": 28, "memfd_create": 319, "getrandom": 318, "uname": 63,
    "getpid": 39, "getppid": 110, "gettid": 186, "getpgrp": 111, "getuid": 102, "geteuid": 107,
    "getgid": 104, "getegid": 108, "set_tid_address": 218, "set_robust_list": 273, "rseq": 334,
    "clock_gettime": 228, "clock_nanosleep": 230, "nanosleep": 35, "pause": 34,
    "timer_create": 222, "timer_settime": 223, "signalfd4": 289, "poll": 7, "epoll_create": 213,
    "epoll_create1": 291, "epoll_ctl": 233, "epoll_wait": 232, "epoll_pwait": 281,
    "statfs": 137, "fsync": 74, "fdatasync": 75, "ftruncate": 77, "unlink": 87, "rmdir": 84,
    "rename": 82, "renameat2": 316, "getcwd": 79, "tgkill": 234}
_TRUNCATE_CALL = 76  # Landlock knows it from ABI 3 on
# Calls that are refused as unknown, so that glibc does without them: clone3, whose flags no filter
# can read, and calls newer than Linux 6.18.
_CLONE3, _NEWER = 435, 470

# Others are allowed with some arguments.
_ALL = 0xFFFFFFFF
_CREATES = 0o100 | 0o20000000  # O_CREAT, __O_TMPFILE
# O_TRUNC empties a file that is opened for reading, too, and Landlock forbids that from ABI 3 on
# only. Reading, writing, both, and O_TRUNC where the file is opened for writing.
_OPENS, _OPENING = 0o1003, (0, 1, 2, 0o1001, 0o1002)
_SET_ID = 0o6000  # a file that runs with its owner's rights; no umask takes these off
_OWNERS = 0o700
_STREAM = 1  # a pair's messages have no address then, as datagrams may
_CLOEXEC_NONBLOCK = 0o2004000
# clone: a signal, CLONE_VM, FS, FILES, SIGHAND, VFORK, THREAD, SYSVSEM, SETTLS, PARENT_SETTID,
# CHILD_CLEARTID, DETACHED, CHILD_SETTID. No namespace (CLONE_NEW…), no other parent.
_CLONING = 0x17D4FFF
# fcntl: no locks, leases or F_NOTIFY, which others would meet; F_SETSIG needs F_SETOWN.
_OF_DESCRIPTORS = (0, 1, 2, 3, 4, 9, 10, 11, 1030, 1033, 1034)
_F_SETOWN = 8
# ptrace: of a process that asked for it (PTRACE_TRACEME); no PTRACE_ATTACH, no PTRACE_SEIZE.
_TRACING = (*range(10), 12, 13, 14, 15, 18, 19, 24, 25, 26, 31, 32, *range(0x4200, 0x4206))
# KILL, ALRM, TERM, CONT, STOP, IO. Not ABRT, which the first process of a PID namespace would send
# itself for ever when its kernel panics (uml_abort in arch/um/os-Linux/util.c); refused, it exits.
_SIGNALS = (0, 9, 14, 15, 18, 19, 29)
_PR_SET_PDEATHSIG, _PR_SET_NAME, _PR_CAPBSET_READ = 1, 15, 23
_PERSONALITIES = (0, 0x40000, _ALL)  # ADDR_NO_RANDOMIZE; to read it
# ioctl: of terminals their modes, group and size, and FIONREAD, FIONBIO, FIOCLEX, FIONCLEX,
# FIOASYNC. Not TIOCSTI, which types into one; not what changes a file's flags.
_CONTROLS = (0x5401, 0x5402, 0x5403, 0x5404, 0x540F, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451,
             0x5452)


def _with_arguments(own: int) -> list[tuple[int, list[_Condition]]]:
    """Calls with the conditions under which they are allowed; a call may have several lines.

    own: the number of the process that becomes the guest's kernel.
    """
    return [
        # openat, open
        (257, [(_THIRD, _CREATES, (0,)), (_THIRD, _OPENS, _OPENING)]),
        (257, [(_FOURTH, _SET_ID, (0,)), (_THIRD, _OPENS, _OPENING)]),
        (2, [(_SECOND, _CREATES, (0,)), (_SECOND, _OPENS, _OPENING)]),
        (2, [(_THIRD, _SET_ID, (0,)), (_SECOND, _OPENS, _OPENING)]),
        (72, [(_SECOND, _ALL, _OF_DESCRIPTORS)]),  # fcntl
        (72, [(_SECOND, _ALL, (_F_SETOWN,)), (_THIRD, _ALL, (own,))]),
        (83, [(_SECOND, _OWNERS, (_OWNERS,))]),  # mkdir: the machine can look into it
        (56, [(_FIRST, _ALL & ~_CLONING, (0,))]),  # clone
        # socketpair: AF_UNIX
        (53, [(_FIRST, _ALL, (1,)), (_SECOND, _ALL & ~_CLOEXEC_NONBLOCK, (_STREAM,))]),
        (62, [(_FIRST, 1 << 31, (0,)), (_SECOND, _ALL, _SIGNALS)]),  # kill: one, or its own group
        (101, [(_FIRST, _ALL, _TRACING)]),  # ptrace
        (16, [(_SECOND, _ALL, _CONTROLS)]),  # ioctl
        (302, [(_FIRST, _ALL, (0, own))]),  # prlimit64: its own
        (157, [(_FIRST, _ALL, (_PR_SET_NAME, _PR_CAPBSET_READ, _PR_SET_NO_NEW_PRIVS))]),  # prctl
        # … to die with its parent, and not to outlive it
        (157, [(_FIRST, _ALL, (_PR_SET_PDEATHSIG,)), (_SECOND, _ALL, (9,))]),
        (135, [(_FIRST, _ALL, _PERSONALITIES)]),  # personality
        # seccomp: another filter, for all threads or one, and nobody to ask
        (317, [(_FIRST, _ALL, (_SECCOMP_SET_MODE_FILTER,)), (_SECOND, _ALL & ~1, (0,))])]


_libc = ctypes.CDLL(None, use_errno=True)


def abi() -> int:
    """The version of this machine's Landlock, below 1 if it has none."""
    return int(_libc.syscall(_LANDLOCK_CREATE, None, 0, 1))


def lacking() -> str:
    """What this machine lacks to confine guests, "" if nothing."""
    if abi() < 1:
        return "Landlock (Linux 5.13 and newer have it, lsm= may switch it off)"
    action = ctypes.byref(ctypes.c_uint32(_REFUSE & 0xFFFF0000))
    if _libc.syscall(_SECCOMP, _SECCOMP_ACTION_AVAILABLE, 0, action) != 0:
        return "seccomp filters"
    return ""


def confine(kernel: str, folder: str, *readable: str) -> None:
    """Restrict this process and all that it executes, for good.

    readable: other paths that it may read. Raises OSError; the process must then end.
    """
    version = abi()
    rights = [(path, READ) for path in (*READABLE, kernel, *readable, *_project())]
    rights.append((PROJECT, _READ_DIR))  # Python lists it to find what it imports
    rights += [(path, _WRITE) for path in (folder, *WRITABLE)]
    rules = make_ruleset(version, rights)
    if _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise _error("no_new_privs")
    drop_capabilities(_KEPT_CAPABILITIES)
    restrict(rules)
    refuse(version)


def _project() -> list[str]:
    """The files and folders of the project that a guest reads."""
    return [f"{PROJECT}/{name}" for name in os.listdir(PROJECT)
            if name not in NOT_OF_THE_PROJECT and not name.startswith(".")]


def make_ruleset(version: int, rights: Iterable[tuple[str, int]]) -> int:
    """A ruleset that forbids all that this version of Landlock can forbid, but these rights.

    rights: each with the path below which it is allowed; a path that does not exist needs no rule.
    See landlock_create_ruleset(2). Raises OSError.
    """
    handled = sum(these for since, these in _FILE_RIGHTS.items() if since <= version)
    attributes = struct.pack("=Q", handled)
    if version >= _TCP_ABI:
        attributes += struct.pack("=Q", _TCP)
    if version >= _SCOPES_ABI:
        attributes += struct.pack("=Q", _SCOPES)

    rules = _call(_LANDLOCK_CREATE, attributes, len(attributes), 0)
    for path, allowed in rights:
        _allow(rules, path, handled & allowed)
    return rules


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    if not os.path.isdir(path):
        rights &= _OF_FILES
    _call(_LANDLOCK_ADD, rules, 1, struct.pack("=Qi", rights, place), 0)
    os.close(place)


def restrict(rules: int) -> None:
    """Enforce a ruleset on this process, for good; no_new_privs has to be set. Raises OSError."""
    _call(_LANDLOCK_RESTRICT, rules, 0)


def drop_capabilities(kept: Container[int]) -> None:
    """Take all capabilities but these from root's process; other users have none.

    The bounding set is reduced. If only the permitted set were, it would seem to grow with every
    execve, which resets the personality that the guest's kernel sets before it executes itself
    (PER_CLEAR_ON_SETID in security/commoncap.c).
    """
    for capability in range(64):
        if capability not in kept:
            _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)


def refuse(version: int) -> None:
    """Refuse all system calls except those listed, for good; no_new_privs has to be set.

    version: of Landlock. Raises OSError.
    """
    allowed = [*ALLOWED.values()]
    if version >= 3:
        allowed.append(_TRUNCATE_CALL)
    load(program(allowed, _with_arguments(os.getpid())))


def program(allowed: Sequence[int], lines: Sequence[tuple[int, list[_Condition]]],
            refused: Sequence[int] = ()) -> list[_Step]:
    """A filter that allows these calls and lines, and refuses the rest.

    refused: where there are any, these alone are refused, and the rest is allowed.

    It checks only the lower half of an argument: the kernel uses no more, or reports an error for
    the other half.
    """
    steps = [*_among(_MACHINE, _ALL, (_X86_64,), 2),
             (_LOAD, 0, 0, _NUMBER), (_AT_LEAST, 0, 1, _X32_BIT), (_GIVE, 0, 0, _REFUSE)]
    if allowed:
        steps += _line([(_NUMBER, _ALL, tuple(allowed))], _ALLOW)
    for number, conditions in lines:
        steps += _line([(_NUMBER, _ALL, (number,)), *conditions], _ALLOW)
    if refused:
        steps += _line([(_NUMBER, _ALL, tuple(refused))], _REFUSE)

    return [*steps, (_LOAD, 0, 0, _NUMBER), (_EQUAL, 1, 0, _CLONE3), (_AT_LEAST, 0, 1, _NEWER),
            (_GIVE, 0, 0, _UNKNOWN), (_GIVE, 0, 0, _ALLOW if refused else _REFUSE)]


def _line(conditions: Sequence[_Condition], answer: int) -> list[_Step]:
    """Steps that give this answer where all conditions hold, and else go on."""
    steps: list[_Step] = [(_GIVE, 0, 0, answer)]
    for where, mask, values in reversed(conditions):
        steps = [*_among(where, mask, values, len(steps)), *steps]
    return steps


def _among(where: int, mask: int, values: tuple[int, ...], skipped: int) -> list[_Step]:
    """Steps that go on if a value is among these, and else skip so many steps."""
    steps: list[_Step] = [(_LOAD, 0, 0, where)]
    if mask != _ALL:
        steps.append((_AND, 0, 0, mask))
    last = len(values) - 1
    for place, value in enumerate(values):
        steps.append((_EQUAL, last - place, skipped if place == last else 0, value))
    return steps


def load(steps: list[_Step]) -> None:
    """Filter the system calls of this process, for good. Raises OSError."""
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    # Without SPEC_ALLOW kernels before 5.16 slow down every program with a filter.
    _call(_SECCOMP, _SECCOMP_SET_MODE_FILTER, _SPEC_ALLOW,
          struct.pack("HL", len(steps), ctypes.addressof(code)))


def _call(number: int, *arguments: object) -> int:
    """A system call; raises OSError."""
    result: int = _libc.syscall(number, *arguments)
    if result < 0:
        raise _error(f"system call {number}")
    return result


def _error(what: str) -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code), what)


def main(command: list[str]) -> None:
    """Become the command, with an environment that says nothing about this machine.

    The guest's kernel replaces PATH by a longer one, and finds the end of its stack by the address
    of another variable (get_top_address in arch/um/kernel/um_arch.c). So there has to be one:
    TMPDIR, which is not used as long as memfd_create works.
    """
    if command[0] == "--memory":
        _, memory_mb, *command = command
        sys.path.append(os.path.dirname(os.path.abspath(__file__)))
        importlib.import_module("watch").begin(int(memory_mb))
    readable = []
    while command[0] == "--read":
        _, path, *command = command
        readable.append(path)
    confine(command[0], os.getcwd(), *readable)
    os.execve(command[0], command, {"PATH": os.defpath, "TMPDIR": "."})


if __name__ == "__main__":
    main(sys.argv[1:])
