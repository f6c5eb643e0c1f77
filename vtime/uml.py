"""Boots a User-Mode Linux guest whose clock skips idle time, behind walls.

A guest is an ordinary process: no root, no network of the host's. Its root is
the host's file system, or another one (vtime/system.py), read-only (hostfs);
what it writes stays in its memory but for the folder in which it is started.
With `time-travel=inf-cpu` computing costs no guest time and waiting costs no wall
time (Documentation/virt/uml, time-travel).
"""

from __future__ import annotations

import functools
import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

from firstflight.base.files import PROJECT
from firstflight.base.quantity import KERNEL_NAME, MOST_KERNEL_NAME
from vtime import confine, readable, system
from vtime.console import EngineCannot
from vtime.memory import MEMORY_MB

BUILD = PROJECT / "vtime" / "kernel" / "build.sh"
INIT = PROJECT / "vtime" / "kernel" / "init.py"
# Files of the machine that a guest's process has open, those of all its programs: at least, and
# as many as a large topology may take.
LEAST_FILES, MOST_FILES = 1024, 1 << 16
# On the kernel's command line: computing costs no guest time, waiting no wall time.
VIRTUAL_TIME = "time-travel=inf-cpu"
# What a kernel prints where a machine cannot run it, why that is and what to do about it.
CANNOT = {
    "check_ptrace": "a guest needs ptrace or seccomp, and both are forbidden (by a container's"
                    " security profile?): allow one, or use --engine host",
    "no memory that may be executed": "a guest's memory has to be executed, which this machine"
                                      " forbids: sysctl -w vm.memfd_noexec=0",
}
# Where a kernel's source came from (`origin` in build.sh) if it is one that Debian, Ubuntu or
# kernel.org gave and nobody has changed: the TCP that its model was checked against.
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
    """The same. Raises EngineCannot where it is not built."""
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
    done = subprocess.run(
        [str(BUILD), *(["--mininet"] if for_commands else []), "--name", name, "--path"],
        capture_output=True, text=True, check=False)
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
    made, lines = made_from(kernel), (kernel.parent / "recipe").read_text().splitlines()
    recipe: dict[str, list[str]] = {}
    for name, _, value in (line.partition(" ") for line in lines):
        recipe.setdefault(name, []).append(value)
    patches, options = recipe.get("patch", []), recipe.get("option", [])
    built = dict(line.partition(" ")[::2] for line in
                 (kernel.parent / "inputs").read_text().splitlines())
    return {"digest": recipe["digest"][0] if "digest" in recipe else "", "linux": built["linux"],
            "version": (kernel.parent / "version").read_text().strip(),
            "source": made["kernel_source"], "origin": made["kernel_origin"],
            "patches": patches, "options": options,
            "known": made["kernel_known"] and not (patches or options)}


def made_from(kernel: Path) -> dict[str, Any]:
    """What run.json has of a guest kernel's source; of one without a record, that it is unknown.

    kernel: in its folder of the cache, next to what compile.sh has written.
    """
    try:
        inputs = dict(line.partition(" ")[::2] for line in
                      (kernel.parent / "inputs").read_text().splitlines())
        origin = (kernel.parent / "source").read_text().strip()
    except (OSError, ValueError):
        inputs, origin = {}, ""
    return {"kernel_source": inputs.get("source", ""), "kernel_origin": origin,
            "kernel_known": KNOWN_ORIGIN.fullmatch(origin) is not None}


def check_machine() -> None:
    """What a guest needs of this process. Raises EngineCannot with what to do.

    A limit of open files that is too low is raised as far as this process may.
    """
    if not os.path.exists("/proc/self/exe"):
        raise EngineCannot("/proc is not mounted: mount it (mount -t proc proc /proc)")
    if missing := [name for name in ("setpriv", "taskset") if not shutil.which(name)]:
        raise EngineCannot(f"{' and '.join(missing)}: not found on PATH, which is"
                           f" {os.environ.get('PATH', '')!r}: run ./install.sh, or add /usr/bin")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if most < LEAST_FILES:
        raise EngineCannot(f"only {most} files may be open at once, and a guest needs"
                           f" {LEAST_FILES}: raise the limit, as root (ulimit -Hn {MOST_FILES})")
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def compile_programs(patterns: Iterable[str]) -> None:
    """Keep the byte code of what runs in guests; each would compile it anew, its files read-only.

    patterns: of its files, in the project.

    Where Python may not or cannot write it, it does not, as for every import.
    """
    if sys.dont_write_bytecode:
        return
    for path in (path for pattern in patterns for path in PROJECT.glob(pattern)):
        SourceFileLoader(path.stem, str(path)).get_code(path.stem)


def why_not(printed: str) -> str:
    """Why this machine cannot run a guest that printed this, and what to do; "" if it can."""
    return next((why for words, why in CANNOT.items() if words in printed), "")


def processors(first: int | None = None) -> list[int]:
    """Those that guests are bound to, beginning with another one for each process of ours.

    first: the one to begin with, where it is known.

    A guest is one kernel and one running process that wake each other at
    every system call. Left to the scheduler they end up on two processors,
    and each wake-up crosses from one to the other: that more than halves the
    speed.
    """
    allowed = sorted(os.sched_getaffinity(0))
    place = allowed.index(first) if first in allowed else os.getpid() % len(allowed)
    return allowed[place:] + allowed[:place]


# Of a guest of trials: what its kernel prints is kept, and nothing is typed.
CONSOLES = ("con=null", "con0=null,fd:1")


def guest_command(kernel: Path, root: Path | None = None, named: Iterable[str] = (),
                  memory_mb: int = MEMORY_MB, consoles: Sequence[str] = CONSOLES,
                  more: Sequence[str] = (), places: readable.ReadablePaths | None = None
                  ) -> list[str]:
    """The command that, in a folder, boots a guest that may write there and nowhere else.

    root: of its file system, None for the machine's; named: what it reads besides places, which
    are by default those of every guest; consoles, more: words for its kernel. Raises EngineCannot.
    """
    if '"' in f"{INIT}{root}":  # which the kernel's command line has no other word for
        raise EngineCannot(f'{PROJECT}: move the project to a folder without " in its path')
    confined = confining([*([str(root)] if root else []), *named], places=places)
    init, start = (sys.executable, str(INIT)) if root is None else (system.PYTHON, "-c")
    return [*confined, str(kernel),
            f"mem={memory_mb}M", "root=none", "rootfstype=hostfs", "hostfs=/",
            f'rootflags="{root}"' if root else "rootflags=/", "ro", f"init={init}", *consoles,
            "ssl=null", *more, "quiet", "seccomp=auto", "uml_dir=./", VIRTUAL_TIME,
            "--", "-E", "-S", f'"{start}"', *([f'"{system.starting(INIT)}"'] if root else [])]


# The walls around a guest ------------------------------------------------------------

# vtime/confine.py restricts a process from within: its files, its system calls. Around it stand
# namespaces of the kernel's, where this machine and this user may have them: of processes, so
# that a guest meets no other one and all that it starts ends with it, of System V's memory and
# message queues, and of networks. util-linux' unshare makes them, which every distribution has.
NAMESPACES = ("pid", "ipc", "net")
_TRY_S = 10.0


def confining(named: Iterable[str] = (), around: Sequence[str] | None = None,
              places: readable.ReadablePaths | None = None) -> list[str]:
    """What confines the command that follows it to the folder in which it is started.

    named: what it may read besides places, which are by default those of every guest; around: the
    namespaces, by default all that there are. Nothing where the machine cannot confine.
    """
    if confine.lacking():
        return []
    around = namespaces() if around is None else around  # tried while places are looked at
    return [*_unshare(around), sys.executable, "-I", "-S", confine.__file__,
            *(word for path in (*(places or readable.ReadablePaths()).paths, *named)
              for word in ("--read", path))]


def walls() -> dict[str, object] | bool:
    """The walls that stand, for run.json; false where there are none."""
    if confine.lacking():
        return False
    return {"landlock_abi": confine.abi(), "system_calls": "only those listed",
            "namespaces": list(namespaces())}


@functools.cache
def namespaces() -> tuple[str, ...]:
    """Those of NAMESPACES that this user may make here; it is tried once."""
    if _works(NAMESPACES):
        return NAMESPACES
    return tuple(name for name in NAMESPACES if _works((name,)))


def _unshare(names: Sequence[str]) -> list[str]:
    """A command that runs another one in namespaces, which die with it; nothing without names.

    Who is not root needs one of users, too, in which files of other users are nobody's.
    """
    user = [] if os.geteuid() == 0 else ["--user", "--map-current-user"]
    return ["unshare", *user, *(f"--{name}" for name in names), "--fork", "--kill-child",
            "--"] if names else []


def _works(names: Sequence[str]) -> bool:
    try:
        return subprocess.run([*_unshare(names), "true"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              timeout=_TRY_S, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
