"""./run.sh -- COMMAND as tests type it: one that has ended, one that is under way."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.running import HANGS_S, PROJECT
from vtime.uml import find_kernel

needs_commands = pytest.mark.skipif(find_kernel("--mininet") is None,
                                    reason="./install.sh --with-mininet")


def typed(results: Path, *words: str, flags: tuple[str, ...] = ()) -> list[str]:
    return [str(PROJECT / "run.sh"), "--results", str(results), *flags, "--", *words]


class Ended:
    """How a command ended: its status, what it printed, and what is kept of it."""

    def __init__(self, folder: Path, *words: str, flags: tuple[str, ...] = (),
                 given: bytes = b"", results: Path | None = None) -> None:
        """given: through a pipe, whose end may come whenever the machine gets to it; else none."""
        results = results or folder / "results"
        self.done = subprocess.run(
            typed(results, *words, flags=flags), cwd=folder, capture_output=True,
            timeout=HANGS_S, check=False,
            **({"input": given} if given else {"stdin": subprocess.DEVNULL}))
        self.status = self.done.returncode
        self.out, self.err = self.done.stdout.decode(), self.done.stderr.decode()
        self.kept = max((results / "commands").iterdir())

    def facts(self) -> dict[str, object]:
        facts: dict[str, object] = json.loads((self.kept / "command.json").read_text())
        return facts


def begun(folder: Path, *words: str, flags: tuple[str, ...] = (),
          stdin: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """A command that is under way, its results in its folder; both its outputs are pipes."""
    return subprocess.Popen(typed(folder / "results", *words, flags=flags), cwd=folder,
                            stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def kept_of(folder: Path) -> Path:
    """What is kept of the only command of a folder."""
    (kept,) = (folder / "results" / "commands").iterdir()
    return kept
