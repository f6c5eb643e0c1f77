"""Builds the wall around its own process (wall.py), and becomes the command behind it.

    behind.py AROUND [--write FOLDER]… [--read PATH]… -- COMMAND WORD…

wall.py starts it in the namespaces AROUND, for each step of a build: so it imports little.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct
import sys
from collections.abc import Sequence

if __name__ == "__main__":
    sys.path.insert(0, os.path.realpath(f"{os.path.dirname(__file__)}/../.."))

from vtime import confine, watch  # noqa: E402

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
NONE = "none"

# Landlock's rights in the folders: all of files and folders, links and pipes; no sockets, no
# devices.
_WRITE = confine.READ | 1 << 1 | 0b11 << 4 | 0b11 << 7 | 1 << 10 | 0b111 << 12
_OF_DEVICES = 1 << 1 | 1 << 2

# System calls by their numbers on x86-64. Sockets, also in pairs, whose buffers count as nobody's
# memory, as System V's does; other processes' memory, and descriptors; mounts and namespaces; files
# by handle; keyrings; message queues; the kernel's own programs, counters, modules, clocks, log,
# limits and names; devices by mknod, setuid files and leases, but as _WITH_MODES.
REFUSED = (41, 53, 29, 64, 68, 101, 310, 311, 312, 438, 440, 155, 161, 165, 166, 272, 308, 428, 429,
           430, 431, 432, 433, 442, 467, 303, 304, 248, 249, 250, 240, 256, 279, 298, 300, 321, 323,
           425, 426, 427, 447, 175, 176, 313, 246, 320, 159, 164, 227, 305, 103, 163, 167, 168, 169,
           170, 171, 172, 173, 179, 443, 153, 212, 56, 16, 72, 2, 85, 257, 133, 259, 90, 91, 268,
           452)
_ALL, _SET_ID, _KIND = 0xFFFFFFFF, 0o6000, 0o170000
_FIRST, _SECOND, _THIRD, _FOURTH = 16, 24, 32, 40  # arguments, in struct seccomp_data
_CREATES = 0o100 | 0o20000000
_NEW_NAMESPACES = 0x7E020080  # CLONE_NEW…, CLONE_NEWTIME
_FILES = (0, 0o010000, 0o100000)  # of mknod: regular files and pipes
# fcntl: no leases, for which others would wait, and no F_NOTIFY.
_OF_DESCRIPTORS = (*range(12), 36, 37, 38, *range(1027, 1042))
# ioctl: what types into a terminal or becomes its reader. Refused by its upper half: these are the
# terminals', whose other requests no build needs but these.
_CONTROLS = (0x5401, 0x5402, 0x5403, 0x5404, 0x540F, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451,
             0x5452)
_WITH_MODES: list[tuple[int, list[tuple[int, int, tuple[int, ...]]]]] = [
    (257, [(_THIRD, _CREATES, (0,))]), (257, [(_FOURTH, _SET_ID, (0,))]),  # openat
    (2, [(_SECOND, _CREATES, (0,))]), (2, [(_THIRD, _SET_ID, (0,))]),  # open
    (85, [(_SECOND, _SET_ID, (0,))]),  # creat
    (90, [(_SECOND, _SET_ID, (0,))]), (91, [(_SECOND, _SET_ID, (0,))]),  # chmod, fchmod
    (268, [(_THIRD, _SET_ID, (0,))]), (452, [(_THIRD, _SET_ID, (0,))]),  # fchmodat, fchmodat2
    (133, [(_SECOND, _SET_ID | _KIND, _FILES)]),  # mknod
    (259, [(_THIRD, _SET_ID | _KIND, _FILES)]),  # mknodat
    (56, [(_FIRST, _NEW_NAMESPACES, (0,))]),  # clone
    (72, [(_SECOND, _ALL, _OF_DESCRIPTORS)]),  # fcntl
    (16, [(_SECOND, _ALL, _CONTROLS)])]  # ioctl

MOST_FILE, MOST_OPEN = 4 << 30, 4096  # bytes of a file that a build writes; files of a process
MOST_PROCESSES, MOST_PROCESSES_OF_PROCESSOR = 256, 32
_AT_RECURSIVE, _MOUNT_SETATTR = 0x8000, 442
_READ_ONLY, _NO_SUID, _NO_DEVICES, _NO_EXEC = 1, 2, 4, 8  # as of mount(2), so of mount_setattr(2)
_BIND, _RECURSIVE, _PRIVATE = 4096, 16384, 1 << 18
_PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _CLEAR_ALL = 38, 47, 4

_libc = ctypes.CDLL(None, use_errno=True)


def most_processes() -> int:
    """How many processes a build may have at once."""
    return MOST_PROCESSES + MOST_PROCESSES_OF_PROCESSOR * (os.cpu_count() or 1)


def enter(name: str, write: Sequence[str], read: Sequence[str], command: Sequence[str]) -> None:
    """Build the wall around this process, and become the command. Raises OSError."""
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    if name != NONE:
        _mount_all(write)
    os.chdir(write[0] if write else "/")
    os.umask(0o022)

    # Between two looks a process that forks for ever would fill the machine. In a namespace for
    # users nobody else's processes count; root is spared from this limit.
    processes = 2 * most_processes() if name == "user" else resource.RLIM_INFINITY
    watch.set_limit(resource.RLIMIT_CORE, 0)
    watch.set_limit(resource.RLIMIT_FSIZE, MOST_FILE)
    watch.set_limit(resource.RLIMIT_NOFILE, MOST_OPEN)
    watch.set_limit(resource.RLIMIT_NPROC, processes)

    if _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise _error("no_new_privs")
    _give_up_capabilities()
    if (version := confine.abi()) >= 1:
        rights = [(path, confine.READ) for path in read]
        rights += [(path, _WRITE) for path in write]
        rights += [(path, _OF_DEVICES) for path in DEVICES]
        confine.restrict(confine.make_ruleset(version, rights))
    confine.load(confine.program((), _WITH_MODES, REFUSED))

    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": os.getcwd(),
                   "TMPDIR": os.getcwd()}
    os.execvpe(command[0], list(command), environment)


def _mount_all(write: Sequence[str]) -> None:
    """Make every file system read-only and without devices, but for what a build writes."""
    devices = [path for path in DEVICES if os.path.exists(path)]
    _mount("none", "/", "", flags=_RECURSIVE | _PRIVATE)
    for path in (*write, *devices):
        _mount(path, path, "", flags=_BIND | _RECURSIVE)
    _set_attributes("/", _AT_RECURSIVE, _READ_ONLY | _NO_DEVICES | _NO_SUID, 0)
    for path in write:
        _set_attributes(path, 0, 0, _READ_ONLY)
    for path in devices:
        _set_attributes(path, 0, 0, _NO_DEVICES)
    flags = _READ_ONLY | _NO_SUID | _NO_DEVICES | _NO_EXEC
    try:
        _mount("proc", "/proc", "proc", flags=flags, options="subset=pid")
    except OSError:  # in a container that hides parts of its own; cc.sh then does without
        _mount("tmpfs", "/proc", "tmpfs", flags=flags)


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    if _libc.mount(source.encode(), os.fsencode(target), kind.encode(), flags,
                   options.encode()) != 0:
        raise _error(f"mount on {target}")


def _set_attributes(path: str, flags: int, wanted: int, unwanted: int) -> None:
    attributes = struct.pack("=QQQQ", wanted, unwanted, 0, 0)
    if _libc.syscall(_MOUNT_SETATTR, -100, os.fsencode(path), flags, attributes,
                     ctypes.c_size_t(len(attributes))) != 0:
        raise _error(f"mount_setattr of {path}")


def _give_up_capabilities() -> None:
    confine.drop_capabilities(())
    _libc.prctl(_PR_CAP_AMBIENT, _CLEAR_ALL, 0, 0, 0)
    header = struct.pack("=Ii", 0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this process
    if _libc.capset(header, struct.pack("=6I", *[0] * 6)) != 0:
        raise _error("capset")


def _error(what: str) -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code), what)


def read_words(words: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """The folders that a command may write to, the paths that it may read, and its own words."""
    paths: dict[str, list[str]] = {"--write": [], "--read": []}
    place = 0
    while words[place] != "--":
        paths[words[place]].append(os.path.realpath(words[place + 1]))
        place += 2
    return paths["--write"], paths["--read"], list(words[place + 1:])


def heed_signals() -> None:
    """Let SIGINT and SIGPIPE end this process, and what it becomes: Python handles them."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C: build.sh says so
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)


if __name__ == "__main__":
    heed_signals()
    enter(sys.argv[1], *read_words(sys.argv[2:]))
