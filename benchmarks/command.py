"""How every benchmark ends: 0, 1 what it measured is wrong, 2 usage, 4 this machine cannot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from commands.runners import engine_errors
from lab.core.command_line import run_main


def run(program: str, main: Callable[[Sequence[str]], int]) -> NoReturn:
    """Run a benchmark's main and exit with its status; what an engine lacks is told in one line."""
    def told(words: Sequence[str]) -> int:
        with engine_errors():
            return main(words)
    run_main(program, told)
