"""What an engine is, and which one is taken. What it is given and yields: engines/job.py."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from engines import uml
from engines.host import NEEDS_ROOT, HostEngine
from engines.job import EngineCannot, Job, Observation
from engines.uml import UmlEngine, built_kernel, find_kernel


class Engine(Protocol):
    """What runs trials.

    build: what tells its kernel from another one, before it runs. exact: its
    clock is virtual, so times are to be exact. known_kernel: its TCP is one that
    the model of TCP was checked against. jobs: how many workers it runs
    side by side. facts: what its kernel says of itself, once trials run.
    warning: what the user should know before, or "".
    """

    name: str
    build: str
    exact: bool
    known_kernel: bool
    jobs: int
    facts: dict[str, Any]
    warning: str

    def run(self, trials: list[Job], sysctls: dict[str, str],
            folder: Path) -> Iterator[Observation]:
        """Yield one observation per trial. Raises EngineCannot, EngineError.

        sysctls: on every host, beside TCP_SYSCTLS. folder: for the engine's
        own files while it runs.
        """


class NoEngine:
    """What a study without trials is given: it runs nothing, and needs no kernel."""

    name = "none"
    build = ""
    exact = False
    known_kernel = False
    jobs = 1
    warning = ""

    def __init__(self) -> None:
        self.facts: dict[str, Any] = {}

    def run(self, trials: list[Job], sysctls: dict[str, str],
            folder: Path) -> Iterator[Observation]:
        assert not trials
        return iter(())


def check_rights(name: str) -> None:
    """Raises EngineCannot where the engine of that name is one that this user may not run."""
    if name == HostEngine.name and os.geteuid() != 0:
        raise EngineCannot(NEEDS_ROOT)


def choose_engine(name: str, jobs: int | None) -> Engine:
    """The engine named "uml" or "host"; "auto": uml where its kernel is built, else host.

    jobs: guests side by side, None for as many as this machine has cores and
    memory for. Raises EngineCannot where it is not to be had.
    """
    kernel = (built_kernel() if name == "uml" else
              find_kernel() if name == "auto" else None)
    if kernel is None:
        return HostEngine()
    return UmlEngine(kernel, uml.guests(jobs))
