"""How many guests fit into this machine's memory."""

from __future__ import annotations

import os
import re
from pathlib import Path

from vtime.console import EngineCannot

MEMORY_MB = 512  # the most that a guest for trials may take; it is allocated as it is touched
MEMINFO = Path("/proc/meminfo")


def guests(requested: int | None, meminfo: Path = MEMINFO, flag: str = "--jobs ",
           memory_mb: int = MEMORY_MB) -> int:
    """The number requested; by default one a core as far as memory goes, one at least.

    flag: how it was requested. memory_mb: the most that each may take. Raises EngineCannot where
    each of several could not have all that it may take.
    """
    available_mb = available(meminfo)
    room = rooms(available_mb, memory_mb)
    if requested is None:
        cores = os.cpu_count() or 1
        return cores if room is None else min(cores, room)
    if room is not None and requested > room:
        raise EngineCannot(f"{flag}{requested}: that many guests may take"
                           f" {requested * memory_mb} MB, and"
                           f" {available_mb} MB are available; at most {flag}{room}")
    return requested


def rooms(available_mb: int | None, memory_mb: int) -> int | None:
    """How many guests fit, one at least; None where it is not known what is available."""
    if available_mb is None:
        return None
    return max(1, available_mb // memory_mb)


def available(meminfo: Path) -> int | None:
    """MB that may be taken without swapping (MemAvailable), None if it is not known."""
    try:
        match = re.search(r"^MemAvailable:\s*(\d+) kB$", meminfo.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(match[1]) // 1024 if match else None
