"""Finds the processes of a guest on the machine: its kernel's, and those of its programs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def session_processes(leader: int) -> Iterator[tuple[int, str, int]]:
    """The processes of a session: number, state, and ticks of processor time that each took."""
    names = [str(leader)]
    has_children = os.path.exists(f"/proc/{leader}/task/{leader}/children")
    if not has_children:  # a kernel without CONFIG_PROC_CHILDREN: look at all processes
        names = [*filter(str.isdigit, os.listdir("/proc"))]
    while names:
        name = names.pop()
        with suppress(OSError, IndexError, ValueError):  # it may have ended meanwhile
            words = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            if int(words[3]) == leader:
                yield int(name), words[0], int(words[11]) + int(words[12])
            if has_children:
                names += Path(f"/proc/{name}/task/{name}/children").read_text().split()
