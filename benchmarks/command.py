"""What benchmarks share: how they end, and what they need."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from typing import NoReturn

from firstflight.base.errors import CannotError
from firstflight.base.main import run_main
from firstflight.testbed.engine_errors import engine_errors


def run(program: str, main: Callable[[Sequence[str]], int]) -> NoReturn:
    """Run a benchmark's main and exit with its status; an engine's error is printed in one line.

    Status: 0 if all is right, 1 if what it measured is wrong, 2 for wrong usage, 4 if this machine
    cannot run it.
    """
    def guarded(words: Sequence[str]) -> int:
        with engine_errors():
            return main(words)
    run_main(program, guarded)


def need(program: str) -> None:
    """Raises CannotError where a program is not installed; its package has the same name."""
    if not shutil.which(program):
        raise CannotError(f"no {program}: apt-get install --no-install-recommends {program}")
