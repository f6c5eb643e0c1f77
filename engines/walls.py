"""The walls around a guest: which this machine has, the command that builds them, the report.

engines/confine.py restricts a process from within: its files, its system calls. Around it stand
namespaces of the kernel's, where this machine and this user may have them: of processes, so that a
guest meets no other one and all that it starts ends with it, of System V's memory and message
queues, and of networks. util-linux' unshare makes them, which every distribution has.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from engines import confine

NAMESPACES = ("pid", "ipc", "net")
_TRY_S = 10.0


def command(readable: Iterable[str] = (), around: Sequence[str] | None = None) -> list[str]:
    """What confines the command that follows it to the folder in which it is started.

    readable: what else it may read; around: the namespaces, by default all that there are.
    Nothing where the machine cannot confine.
    """
    if confine.lacking():
        return []
    return [*_unshare(namespaces() if around is None else around),
            sys.executable, "-I", "-S", confine.__file__,
            *(word for path in readable for word in ("--read", path))]


def report() -> dict[str, Any] | bool:
    """For run.json: the walls that stand; false where there are none."""
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
