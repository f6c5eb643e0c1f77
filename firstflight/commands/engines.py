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
    sources = PROJECT / "vtime" / "kernel"
    config = (sources / "kernel.config").read_text(encoding="utf-8")
    configured = re.findall(r"^CONFIG_TCP_CONG_(?!ADVANCED)(\w+)=y", config, re.MULTILINE)

    ours = []
    for path in sorted(sources.glob("tcp_*.c")):
        ours += re.findall(r'\.name\s*=\s*"(\w+)"', path.read_text(encoding="utf-8"))
    return ["reno", *map(str.lower, configured), *ours]


def plan_engine(measuring: Measuring, memory_mb: int = memory.MEMORY_MB) -> tuple[str, int]:
    """The engine that would run the trials, and how many guests it would have.

    memory_mb: the most that each guest may take. The guest's kernel need not be there yet. Raises
    EngineCannot.
    """
    if measuring.engine == HOST or platform.machine() != "x86_64":
        return HOST, 1
    return UML, memory.guests(measuring.jobs, memory_mb=memory_mb)
