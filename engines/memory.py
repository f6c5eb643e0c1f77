"""How many guests this machine has memory for."""

from __future__ import annotations

import os
import re
from pathlib import Path

from engines.job import EngineCannot
from engines.uml import MEMORY_MB

MEMINFO = Path("/proc/meminfo")


def guests(asked: int | None, meminfo: Path = MEMINFO, flag: str = "--jobs ") -> int:
    """The number asked for; by default one a core as far as memory goes, one at least.

    flag: how it was asked for. Raises EngineCannot where each of several could not have all that
    it may take.
    """
    available_mb = available(meminfo)
    room = max(1, available_mb // MEMORY_MB) if available_mb is not None else None
    if asked is None:
        cores = os.cpu_count() or 1
        return cores if room is None else min(cores, room)
    if room is not None and asked > room:
        raise EngineCannot(f"{flag}{asked}: that many guests may take {asked * MEMORY_MB} MB, and"
                           f" {available_mb} MB are available; at most {flag}{room}")
    return asked


def available(meminfo: Path) -> int | None:
    """MB that may be taken without swapping (MemAvailable), None where it is not known."""
    try:
        found = re.search(r"^MemAvailable:\s*(\d+) kB$", meminfo.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) // 1024 if found else None
