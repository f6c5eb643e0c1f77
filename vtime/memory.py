"""How many guests fit into this machine's memory."""

from __future__ import annotations

import os
import re
from pathlib import Path

from vtime.console import EngineCannot

MEMORY_MB = 512  # the most that a guest may take; it is allocated as it is touched
MEMINFO = Path("/proc/meminfo")


def guests(requested: int | None, meminfo: Path = MEMINFO, flag: str = "--jobs ") -> int:
    """The number requested; by default one a core as far as memory goes, one at least.

    flag: how it was requested. Raises EngineCannot where each of several could not have all that
    it may take.
    """
    available_mb = available(meminfo)
    room = max(1, available_mb // MEMORY_MB) if available_mb is not None else None
    if requested is None:
        cores = os.cpu_count() or 1
        return cores if room is None else min(cores, room)
    if room is not None and requested > room:
        raise EngineCannot(f"{flag}{requested}: that many guests may take"
                           f" {requested * MEMORY_MB} MB, and"
                           f" {available_mb} MB are available; at most {flag}{room}")
    return requested


def available(meminfo: Path) -> int | None:
    """MB that may be taken without swapping (MemAvailable), None if it is not known."""
    try:
        match = re.search(r"^MemAvailable:\s*(\d+) kB$", meminfo.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(match[1]) // 1024 if match else None
