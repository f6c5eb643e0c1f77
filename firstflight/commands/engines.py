"""Chooses the engine of a command line without starting it, and turns its errors into messages."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager

from firstflight.base import PROJECT
from firstflight.base.errors import CannotError, FirstFlightError, resume_hint
from firstflight.commands.request import Measuring
from firstflight.testbed.messages import HOST, UML
from vtime import memory
from vtime.console import EngineCannot, EngineError


def congestion_controls() -> list[str]:
    """The congestion controls of the guest's kernel, by its configuration and our sources."""
    guest = PROJECT / "vtime" / "kernel"
    config = (guest / "kernel.config").read_text(encoding="utf-8")
    added = "".join(path.read_text(encoding="utf-8") for path in sorted(guest.glob("tcp_*.c")))
    return ["reno", *(name.lower() for name in
                      re.findall(r"^CONFIG_TCP_CONG_(?!ADVANCED)(\w+)=y", config, re.MULTILINE)),
            *re.findall(r'\.name\s*=\s*"(\w+)"', added)]


@contextmanager
def engine_errors() -> Iterator[None]:
    """Turn an engine's errors into errors that a user reads in one line."""
    try:
        yield
    except EngineCannot as error:
        raise CannotError(str(error)) from error
    except EngineError as error:
        raise FirstFlightError(f"{error}{resume_hint(error)}") from error


def planned(measuring: Measuring) -> tuple[str, int]:
    """The engine that would run the trials, and how many guests it would have.

    It needs no kernel: run.sh may still have to build it. Raises EngineCannot.
    """
    if measuring.engine == HOST or platform.machine() != "x86_64":
        return HOST, 1
    return UML, memory.guests(measuring.jobs)
