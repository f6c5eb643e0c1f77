"""Boots a confined User-Mode Linux guest whose clock skips idle time.

A guest is an ordinary process without root and without the host's network. Its root is the host's
file system, or another one (vtime/system.py), read-only (hostfs). What it writes stays in its
memory, except in the folder in which it is started. With `time-travel=inf-cpu` computing takes no
guest time, and waiting takes no wall time (Documentation/virt/uml, time-travel).
"""

from __future__ import annotations

import functools
import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

from firstflight.base import PROJECT
from firstflight.base.quantity import KERNEL_NAME, MOST_KERNEL_NAME
from firstflight.base.untrusted import quoted
from vtime import confine, readable, system
from vtime.console import EngineCannot
from vtime.memory import MEMORY_MB

BUILD = PROJECT / "vtime" / "kernel" / "build.sh"
INIT = PROJECT / "vtime" / "kernel" / "init.py"
# What Python imports of the project, on the machine and in guests.
OWN_PROGRAMS = ("firstflight/**/*.py", "vtime/**/*.py")
# Files of the machine that a guest's process has open, those of all its programs: at least, and
# as many as a large topology may take.
LEAST_FILES, MOST_FILES = 1024, 1 << 16
# Limits that a guest's memory has to fit in, each with its flag of ulimit, and MB besides it.
LIMITS = ((resource.RLIMIT_AS, "-v", "the memory of a process"),
          (resource.RLIMIT_FSIZE, "-f", "the size of a file, as which a guest has its memory,"))
BESIDES_MB = 128
# What a measuring process needs for itself: numpy, and a stack for each thread.
DATA_MB = 512
# On the kernel's command line: computing costs no guest time, waiting no wall time.
VIRTUAL_TIME = "time-travel=inf-cpu"
# What a kernel prints where a machine cannot run it, why that is and what to do about it.
CANNOT = {
    "check_ptrace": "a guest needs ptrace or seccomp, and both are forbidden (by a container's"
                    " security profile?): allow one, or use --engine host",
    "no memory that may be executed": "a guest's memory has to be executed, which this machine"
                                      " forbids: sysctl -w vm.memfd_noexec=0",
}
# Origins of a kernel's source (`origin` in build.sh) that Debian, Ubuntu or kernel.org publish,
# unchanged: the model of TCP was checked against these.
KNOWN_ORIGIN = re.compile(r"(linux(-hwe-[0-9.]+)?-source-[0-9.]+ [^/ ]+"
                          r"|linux-[0-9.]+\.tar\.xz of kernel\.org)(, imported)?")


def find_kernel(*flags: str) -> Path | None:
    """The cached guest kernel of this configuration, None if it is not built.

    flags: of build.sh: --mininet for the kernel of commands.
    """
    done = subprocess.run([str(BUILD), *flags, "--path"], capture_output=True, text=True,
                          check=False)
    return Path(done.stdout.strip()) if done.returncode == 0 else None


def built_kernel() -> Path:
    """The kernel for trials, built already. Raises EngineCannot where it is not."""
    kernel = find_kernel()
    if kernel is None:
        raise EngineCannot("the guest kernel is not built: run ./install.sh, it says what is"
                           " missing")
    return kernel


def built_kernel_for_commands() -> Path:
    """The kernel for ./run.sh -- COMMAND. Raises EngineCannot where there is none, or no guest."""
    check_machine()
    kernel = find_kernel("--mininet")
    if kernel is None:
        raise EngineCannot("the kernel for commands is not built: ./install.sh --with-mininet"
                           " builds it")
    return kernel


def named_kernel(name: str, for_commands: bool = False) -> Path:
    """A kernel that was built under a name. Raises KernelMissing that says how to build it."""
    if len(name) > MOST_KERNEL_NAME or not re.fullmatch(KERNEL_NAME, name):
        raise KernelMissing(f"{name!r} is no name of a kernel")
    command = [str(BUILD), "--name", name, "--path"]
    if for_commands:
        command.insert(1, "--mininet")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise KernelMissing(done.stderr.strip().removeprefix("guest kernel: "))
    return Path(done.stdout.strip())


class KernelMissing(EngineCannot):
    """There is no kernel of that name; its text says how to build it."""


def recipe_of(kernel: Path) -> dict[str, Any]:
    """What run.json has of a kernel under a name: what it was built from, by digests.

    known: whether nobody changed the source that a distribution or kernel.org gave. Raises OSError,
    ValueError where its folder is not as named.sh writes it.
    """
    recipe: dict[str, list[str]] = {}
    for line in (kernel.parent / "recipe").read_text().splitlines():
        name, _, value = line.partition(" ")
        recipe.setdefault(name, []).append(value)
    patches, options = recipe.get("patch", []), recipe.get("option", [])

    made, built = made_from(kernel), _inputs(kernel)
    return {"digest": recipe["digest"][0] if "digest" in recipe else "", "linux": built["linux"],
            "version": (kernel.parent / "version").read_text().strip(),
            "source": made["kernel_source"], "origin": made["kernel_origin"],
            "patches": patches, "options": options,
            "known": made["kernel_known"] and not (patches or options)}


def made_from(kernel: Path) -> dict[str, Any]:
    """What run.json says of a guest kernel's source; "" if it is not known.

    kernel: its file in the cache, next to the files that compile.sh has written.
    """
    try:
        inputs = _inputs(kernel)
        origin = (kernel.parent / "source").read_text().strip()
    except (OSError, ValueError):
        inputs, origin = {}, ""
    return {"kernel_source": inputs.get("source", ""), "kernel_origin": origin,
            "kernel_known": KNOWN_ORIGIN.fullmatch(origin) is not None}


def _inputs(kernel: Path) -> dict[str, str]:
    """What a kernel was built from, by digests (write_inputs in compile.sh)."""
    lines = (kernel.parent / "inputs").read_text().splitlines()
    return dict(line.partition(" ")[::2] for line in lines)


def check_machine() -> None:
    """Check what a guest needs of this machine. Raises EngineCannot with what to do.

    The limit of open files is raised as far as this process may.
    """
    if not os.path.exists("/proc/self/exe"):
        raise EngineCannot("/proc is not mounted: mount it (mount -t proc proc /proc)")
    if missing := [name for name in ("setpriv", "taskset") if not shutil.which(name)]:
        raise EngineCannot(f"{' and '.join(missing)}: not found on PATH, which is"
                           f" {os.environ.get('PATH', '')!r}: run ./install.sh, or add /usr/bin")
    check_limits(MEMORY_MB)

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if most < LEAST_FILES:
        raise EngineCannot(f"only {most} files may be open at once, and a guest needs"
                           f" {LEAST_FILES}: raise the limit, as root (ulimit -Hn {MOST_FILES})")
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def check_limits(memory_mb: int) -> None:
    """Check that the limits of this process leave room for a guest with so much memory.

    A soft limit is raised for the guest alone (watch.py). Raises EngineCannot with what to do.
    """
    for limit, flag, what in LIMITS:
        _, hard = resource.getrlimit(limit)
        _check_limit(hard, memory_mb + BESIDES_MB, flag, f"{what} is", "a guest")
    soft, _ = resource.getrlimit(resource.RLIMIT_DATA)
    _check_limit(soft, DATA_MB, "-d", "the data of a process are", "measuring")


def _check_limit(limit: int, needed_mb: int, flag: str, what: str, whose: str) -> None:
    """what: is limited. whose: what needs more. Raises EngineCannot."""
    if limit != resource.RLIM_INFINITY and limit >> 20 < needed_mb:
        raise EngineCannot(f"{what} limited to {limit >> 20} MB, and {whose} needs {needed_mb}:"
                           f" start from a shell without that limit (ulimit {flag} unlimited)")


def compile_programs(patterns: Iterable[str]) -> None:
    """Store the byte code of programs for guests, which could not: their files are read-only.

    patterns: of the programs' files, in the project. As with an import, nothing is stored if Python
    may not or cannot write. After sudo it may not, since the files would belong to root; then the
    user who called sudo stores the byte code of all programs.
    """
    if not sys.dont_write_bytecode:
        for path in _matching(patterns):
            SourceFileLoader(path.stem, str(path)).get_code(path.stem)
    elif os.geteuid() == 0 and "SUDO_UID" in os.environ and sys.pycache_prefix is None:
        _compile_as_user(os.environ["SUDO_UID"], os.environ.get("SUDO_GID", ""))


def _matching(patterns: Iterable[str]) -> Iterator[Path]:
    for pattern in patterns:
        yield from PROJECT.glob(pattern)


def _compile_as_user(uid: str, gid: str) -> None:
    """Have a user compile the programs of the project whose byte code is missing or old.

    Nothing is stored where these are no numbers of a user, or where that user may not write. (-I:
    Python ignores PYTHONDONTWRITEBYTECODE.)
    """
    old = [path for path in _matching(OWN_PROGRAMS) if not _has_bytecode(path)]
    if not old or not (uid.isdecimal() and gid.isdecimal()):
        return
    with suppress(OSError, ValueError):  # a user that this machine cannot become
        subprocess.run([sys.executable, "-I", "-m", "compileall", "-qq", *map(str, old)],
                       user=int(uid), group=int(gid), extra_groups=[], stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def _has_bytecode(program: Path) -> bool:
    """Whether the byte code of a program is stored, and is no older than the program."""
    stored = Path(cache_from_source(str(program)))
    try:
        return stored.stat().st_mtime >= program.stat().st_mtime
    except OSError:
        return False


# A kernel that does not know a value reads none of the words behind it: its first process is then
# started without its own words, and waits for ever.
_REFUSED = re.compile(r"Booting kernel: `([^']*)' (?:invalid|too large) for parameter `([^']*)'")


def refused_parameter(printed: str) -> str:
    """Which parameter of its modules a kernel that printed this refuses, and what to do; or ""."""
    match = _REFUSED.search(printed)
    if match is None:
        return ""
    return (f"the kernel does not take {quoted(match[2], 80)}={quoted(match[1], 40)}: give a value"
            " that the module's source allows (--module-parameter)")


def why_not(printed: str) -> str:
    """Why this machine cannot run a guest that printed this, and what to do; "" if it can."""
    return next((why for words, why in CANNOT.items() if words in printed), "")


def processors(first: int | None = None) -> list[int]:
    """The processors to which guests are bound, in turn.

    first: the one to begin with; by default it depends on this process's number.

    A guest is a kernel and a running process that wake each other at every system call. The
    scheduler would put them on two processors, and each wake-up would cross between the two: that
    more than halves the speed.
    """
    allowed = sorted(os.sched_getaffinity(0))
    place = allowed.index(first) if first in allowed else os.getpid() % len(allowed)
    return allowed[place:] + allowed[:place]


# The consoles of a guest for trials: its kernel's messages are kept, and it has no input.
CONSOLES = ("con=null", "con0=null,fd:1")


def guest_command(kernel: Path, root: Path | None = None, named: Iterable[str] = (),
                  memory_mb: int = MEMORY_MB, consoles: Sequence[str] = CONSOLES,
                  more: Sequence[str] = (), places: readable.ReadablePaths | None = None
                  ) -> list[str]:
    """The command that boots a guest which may write to the current folder only.

    root: of its file system, None for the machine's. named: paths that it reads in addition to
    places, by default those of every guest. consoles, more: words for its kernel's command line.
    Raises EngineCannot.
    """
    if '"' in f"{INIT}{root}":  # the kernel's command line cannot escape it
        raise EngineCannot(f'{PROJECT}: move the project to a folder without " in its path')

    readable_paths, flags = list(named), "rootflags=/"
    python, program = sys.executable, [f'"{INIT}"']
    if root is not None:
        readable_paths.insert(0, str(root))
        flags = f'rootflags="{root}"'
        python, program = system.PYTHON, ['"-c"', f'"{system.starting(INIT)}"']
    confined = confining(readable_paths, places=places, memory_mb=memory_mb)
    return [*confined, str(kernel),
            f"mem={memory_mb}M", "root=none", "rootfstype=hostfs", "hostfs=/", flags, "ro",
            f"init={python}", *consoles, "ssl=null", *more, "quiet", "seccomp=auto", "uml_dir=./",
            VIRTUAL_TIME, "--", "-E", "-S", *program]


def ending_with_us(command: Sequence[str]) -> list[str]:
    """The command, which is killed as soon as this process ends.

    setpriv arranges the signal for what it starts. If this process ended before that, the shell
    notices it, and does not begin.
    """
    return ["setpriv", "--pdeathsig", "KILL", "--", "sh", "-c",
            '[ "$PPID" = "$0" ] && exec "$@"', str(os.getpid()), *command]


# The walls around a guest ------------------------------------------------------------

# vtime/confine.py restricts files and system calls of a process. In addition it runs in namespaces,
# if this machine and this user may have them: of processes, so that a guest sees no others and all
# that it starts ends with it; of System V's memory and message queues; of networks. unshare of
# util-linux makes them.
NAMESPACES = ("pid", "ipc", "net")
_TRY_S = 10.0


def confining(named: Iterable[str] = (), around: Sequence[str] | None = None,
              places: readable.ReadablePaths | None = None, memory_mb: int = MEMORY_MB
              ) -> list[str]:
    """The beginning of a command line that confines the command behind it to the current folder.

    named: paths that it may read in addition to places, by default those of every guest. around:
    the namespaces, by default all that are possible. memory_mb: what a guest behind it has as its
    memory; it is ended if it takes more of the machine (watch.py). [] if this machine cannot
    confine.
    """
    if confine.lacking():
        return []
    if around is None:
        around = namespaces()  # tried while places are searched
    if places is None:
        places = readable.ReadablePaths()
    words: list[str] = []
    for path in (*places.paths, *named):
        words += ["--read", path]
    return [*_unshare(around), sys.executable, "-I", "-S", confine.__file__,
            "--memory", str(memory_mb), *words]


def walls() -> dict[str, object] | bool:
    """What confines guests, for run.json; False for nothing."""
    if confine.lacking():
        return False
    return {"landlock_abi": confine.abi(), "system_calls": "only those listed",
            "namespaces": list(namespaces())}


@functools.cache
def namespaces() -> tuple[str, ...]:
    """The kinds of NAMESPACES that this user can make on this machine; tried once."""
    if _works(NAMESPACES):
        return NAMESPACES
    return tuple(name for name in NAMESPACES if _works((name,)))


def _unshare(names: Sequence[str]) -> list[str]:
    """A command that runs another one in namespaces, which end with it; [] without names.

    A user who is not root also needs a user namespace, in which other users' files are nobody's.
    """
    if not names:
        return []
    user = [] if os.geteuid() == 0 else ["--user", "--map-current-user"]
    return ["unshare", *user, *(f"--{name}" for name in names), "--fork", "--kill-child", "--"]


def _works(names: Sequence[str]) -> bool:
    """Whether this user can make namespaces of these kinds."""
    try:
        done = subprocess.run([*_unshare(names), "true"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              timeout=_TRY_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
