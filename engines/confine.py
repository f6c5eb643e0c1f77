"""Runs a guest's kernel so that it can write to one folder and reach nothing else of the machine.

Root in the guest may mount the machine's files anew and write to them, so what
a guest may do is enforced from outside, by the machine's own kernel and without
root, and it holds whatever the guest becomes:

    Landlock       reads what a guest needs (READABLE, the project, its kernel),
                   reads and writes its own folder; no TCP; no other process
    capabilities   of root only those that read and write the folders of users
    seccomp        nothing of a file but its content is changed, which Landlock
                   leaves open; no socket but pairs; no io_uring

Started as `confine.py [--read PATH]… KERNEL WORD…` in the guest's folder; becomes
the kernel. Each PATH is read too: the guest's root, where it is not the machine's, and
what the user lets a server of the user's own read.
See Documentation/userspace-api/landlock.rst and seccomp_filter.rst.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

PROJECT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# What of /etc programs in a guest read; nothing of it is secret.
ETC = ("alternatives", "bash.bashrc", "ethertypes", "gai.conf", "group", "host.conf", "hosts",
       "inputrc", "iproute2", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias",
       "localtime", "mime.types", "nginx/mime.types", "nsswitch.conf", "passwd", "protocols",
       "services", "ssl/certs", "ssl/openssl.cnf",
       "wgetrc")
READABLE = ("/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin", "/proc/cpuinfo",
            *(f"/etc/{name}" for name in ETC))
WRITABLE = ("/dev/null",)
MEMORY = "/dev/shm"  # where a guest's memory is a file without a name
# The folder of a run, of earlier ones, and what is hidden (.git) are no guest's business.
NOT_OF_THE_PROJECT = ("results", "figures")

_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT, _SECCOMP = 444, 445, 446, 317
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_REGULAR = 1 << 4, 1 << 5, 1 << 7, 1 << 8
_TRUNCATE = 1 << 14
# By the first ABI that knows them: all that there is up to ABI 7 (Linux 6.15).
_FILE_RIGHTS = {1: (1 << 13) - 1, 2: 1 << 13, 3: _TRUNCATE, 5: 1 << 15}
_TCP, _TCP_ABI = 3, 4  # bind and connect
_SCOPES, _SCOPES_ABI = 3, 6  # signals and abstract sockets of others
_READ = _EXECUTE | _READ_FILE | _READ_DIR
# Neither links nor sockets, pipes or devices: whoever reads the folder meets files only.
_WRITE = (_WRITE_FILE | _READ_FILE | _READ_DIR | _TRUNCATE | _REMOVE_DIR | _REMOVE_FILE
          | _MAKE_DIR | _MAKE_REGULAR)
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE

_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 24, 38
_KEPT_CAPABILITIES = (1, 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
_SECCOMP_SET_MODE_FILTER, _SECCOMP_ACTION_AVAILABLE, _SPEC_ALLOW = 1, 2, 4
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050001  # SECCOMP_RET_ERRNO | EPERM
_X86_64, _X32_BIT = 0xC000003E, 0x40000000
# System calls by their numbers on x86-64, the only machine that User-Mode Linux knows.
REFUSED = {
    "chmod": 90, "fchmod": 91, "fchmodat": 268, "fchmodat2": 452, "chown": 92, "fchown": 93,
    "lchown": 94, "fchownat": 260, "utime": 132, "utimes": 235, "futimesat": 261,
    "utimensat": 280, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "removexattr": 197,
    "lremovexattr": 198, "fremovexattr": 199, "setxattrat": 463, "removexattrat": 466,
    "file_setattr": 469,
    "socket": 41, "connect": 42, "bind": 49, "io_uring_setup": 425}
_TRUNCATE_CALL = 76  # Landlock knows it from ABI 3 on

_libc = ctypes.CDLL(None, use_errno=True)


def abi() -> int:
    """The version of Landlock that this machine has, below 1 if none."""
    return int(_libc.syscall(_LANDLOCK_CREATE, None, 0, 1))


def lacking() -> str:
    """What this machine lacks for it, "" if nothing."""
    if abi() < 1:
        return "Landlock (Linux 5.13 and newer have it, lsm= may switch it off)"
    action = ctypes.byref(ctypes.c_uint32(_REFUSE & 0xFFFF0000))
    if _libc.syscall(_SECCOMP, _SECCOMP_ACTION_AVAILABLE, 0, action) != 0:
        return "seccomp filters"
    return ""


def confine(kernel: str, folder: str, *readable: str) -> str:
    """Restrict this process, and what it becomes, for good. Return where its memory goes.

    readable: what else it may read. Raises OSError; then it must not go on.
    """
    version = abi()
    handled = sum(rights for since, rights in _FILE_RIGHTS.items() if since <= version)
    rules = _ruleset(version, handled)
    for path in (*READABLE, sys.prefix, kernel, *readable, *_project()):
        _allow(rules, path, handled & _READ)
    _allow(rules, PROJECT, _READ_DIR)  # Python lists it to find what it imports
    for path in (folder, *WRITABLE):
        _allow(rules, path, handled & _WRITE)
    memory = _memory(rules, handled & (_WRITE_FILE | _READ_FILE)) or folder
    if _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise _error("no_new_privs")
    _drop_capabilities()
    _call(_LANDLOCK_RESTRICT, rules, 0)
    refuse([*REFUSED.values(), *([_TRUNCATE_CALL] if version < 3 else [])])
    return memory


def _project() -> list[str]:
    return [f"{PROJECT}/{name}" for name in os.listdir(PROJECT)
            if name not in NOT_OF_THE_PROJECT and not name.startswith(".")]


def _ruleset(version: int, handled: int) -> int:
    """landlock_create_ruleset(2): all that it can forbid is forbidden until a rule allows it."""
    attributes = struct.pack("=Q", handled)
    attributes += struct.pack("=Q", _TCP) if version >= _TCP_ABI else b""
    attributes += struct.pack("=Q", _SCOPES) if version >= _SCOPES_ABI else b""
    return _call(_LANDLOCK_CREATE, attributes, len(attributes), 0)


def _allow(rules: int, path: str, rights: int) -> None:
    """Allow it below a path; one that there is not needs no rule."""
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    _allow_open(rules, place, rights if os.path.isdir(path) else rights & _OF_FILES)
    os.close(place)


def _allow_open(rules: int, place: int, rights: int) -> None:
    _call(_LANDLOCK_ADD, rules, 1, struct.pack("=Qi", rights, place), 0)


def _memory(rules: int, rights: int) -> str:
    """A folder in memory for a file without a name, itself without a name already.

    The kernel opens the file there by O_TMPFILE (make_tempfile in
    arch/um/os-Linux/mem.c), so nothing can stay behind, and nobody else's files
    lie beside it. "" where there is no such place.
    """
    path = f"{MEMORY}/first-flight-{os.urandom(8).hex()}"
    try:
        os.mkdir(path, 0o700)
    except OSError:
        return ""
    place = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    os.rmdir(path)
    _allow_open(rules, place, rights)
    os.set_inheritable(place, True)
    return f"/proc/self/fd/{place}"


def _drop_capabilities() -> None:
    """Let root's programs have few of its capabilities; other users have none to drop.

    By the bounding set: a smaller permitted set alone would seem to grow with
    every program started, which resets the personality that the guest's kernel
    starts itself anew for (PER_CLEAR_ON_SETID in security/commoncap.c).
    """
    for capability in range(64):
        if capability not in _KEPT_CAPABILITIES:
            _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)


def refuse(refused: list[int]) -> None:
    """Refuse system calls by their numbers, for good; no_new_privs has to be set. Raises OSError.

    seccomp(2) with a classic BPF program over struct seccomp_data: the number, the machine.
    """
    load, equal, at_least, give = 0x20, 0x15, 0x35, 0x06
    last = len(refused)
    steps = [(load, 0, 0, 4), (equal, 0, last + 3, _X86_64), (load, 0, 0, 0),
             (at_least, last + 1, 0, _X32_BIT),
             *((equal, last - place, 0, number) for place, number in enumerate(refused)),
             (give, 0, 0, _ALLOW), (give, 0, 0, _REFUSE)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    program = struct.pack("HL", len(steps), ctypes.addressof(code))
    # Without SPEC_ALLOW kernels before 5.16 slow down every program with a filter.
    _call(_SECCOMP, _SECCOMP_SET_MODE_FILTER, _SPEC_ALLOW, program)


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
    """Become the command. A guest is told nothing of this machine by its environment."""
    readable = []
    while command[0] == "--read":
        _, path, *command = command
        readable.append(path)
    memory = confine(command[0], os.getcwd(), *readable)
    os.execve(command[0], command, {"PATH": os.defpath, "TMPDIR": memory})


if __name__ == "__main__":
    main(sys.argv[1:])
