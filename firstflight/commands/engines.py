"""Chooses the engine of a command line without starting it."""

from __future__ import annotations

import platform
import re

from firstflight.base import PROJECT
from firstflight.commands.request import Measuring
from firstflight.testbed.messages import HOST, UML
from vtime import memory


def congestion_controls() -> list[str]:
    """The congestion controls of the guest's kernel, by its configuration and our sources."""
    guest = PROJECT / "vtime" / "kernel"
    config = (guest / "kernel.config").read_text(encoding="utf-8")
    added = "".join(path.read_text(encoding="utf-8") for path in sorted(guest.glob("tcp_*.c")))
    return ["reno", *(name.lower() for name in
                      re.findall(r"^CONFIG_TCP_CONG_(?!ADVANCED)(\w+)=y", config, re.MULTILINE)),
            *re.findall(r'\.name\s*=\s*"(\w+)"', added)]


def planned(measuring: Measuring, memory_mb: int = memory.MEMORY_MB) -> tuple[str, int]:
    """The engine that would run the trials, and how many guests it would have.

    memory_mb: the most that each guest may take. It needs no kernel: run.sh may still have to build
    it. Raises EngineCannot.
    """
    if measuring.engine == HOST or platform.machine() != "x86_64":
        return HOST, 1
    return UML, memory.guests(measuring.jobs, memory_mb=memory_mb)
