"""What benchmarks share: how each ends, and what it needs."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from typing import NoReturn

from firstflight.base.command_line import run_main
from firstflight.base.errors import CannotError
from firstflight.commands.engines import engine_errors


def run(program: str, main: Callable[[Sequence[str]], int]) -> NoReturn:
    """Run a benchmark's main and exit with its status; what an engine lacks is one line.

    0, 1 what it measured is wrong, 2 usage, 4 this machine cannot.
    """
    def guarded(words: Sequence[str]) -> int:
        with engine_errors():
            return main(words)
    run_main(program, guarded)


def need(program: str) -> None:
    """Raises CannotError where a program, named as its package, is not installed."""
    if not shutil.which(program):
        raise CannotError(f"no {program}: apt-get install --no-install-recommends {program}")
