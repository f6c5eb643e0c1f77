"""What benchmarks share: how each ends, what it needs, and how it runs a command in a guest."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from base.command_line import run_main
from base.errors import CannotError
from base.files import PROJECT
from commands.runners import engine_errors


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


@dataclass(frozen=True)
class GuestRun:
    """A command that ran in a guest.

    output: standard output; printed: that, then standard error; folder: its results, None where
    it left none; they are there only where in_guest was given their place. virtual_s, wall_s: by
    the guest's clock and by ours.
    """

    status: int
    output: str
    printed: str
    folder: Path | None
    virtual_s: float
    wall_s: float


def in_guest(words: Sequence[str], place: Path, *flags: str, typed: str = "",
             results: Path | None = None) -> GuestRun:
    """Run a command in a folder of ours through ./run.sh, as anybody does.

    typed: its standard input; results: where its results stay, else they go.
    """
    if results is None:
        with tempfile.TemporaryDirectory() as name:
            return in_guest(words, place, *flags, typed=typed, results=Path(name))
    began = time.monotonic()
    done = subprocess.run(
        [str(PROJECT / "run.sh"), "--results", str(results), "--quiet", *flags, "--", *words],
        cwd=place, input=typed, capture_output=True, text=True, errors="replace", check=False)
    wall_s = time.monotonic() - began
    folder = next((path.parent for path in results.glob("commands/*/command.json")), None)
    return GuestRun(
        done.returncode, done.stdout, done.stdout + done.stderr, folder,
        json.loads((folder / "command.json").read_text())["virtual_s"] if folder else 0.0, wall_s)
