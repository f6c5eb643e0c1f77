"""Starts ./run.sh -- COMMAND as a user types it, and waits for its end or not."""

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
    """The command line of a command. results: the folder of results."""
    return [str(PROJECT / "run.sh"), "--results", str(results), *flags, "--", *words]


class Ended:
    """A command that has ended: its status, its output, and the folder that is kept of it."""

    def __init__(self, folder: Path, *words: str, flags: tuple[str, ...] = (),
                 given: bytes = b"", results: Path | None = None) -> None:
        """Run the command in a folder. given: its input, through a pipe; b"" for no input.

        The end of the pipe may come at any time of the guest's clock.
        """
        results = results or folder / "results"
        self.done = subprocess.run(
            typed(results, *words, flags=flags), cwd=folder, capture_output=True,
            timeout=HANGS_S, check=False,
            **({"input": given} if given else {"stdin": subprocess.DEVNULL}))
        self.status = self.done.returncode
        self.out, self.err = self.done.stdout.decode(), self.done.stderr.decode()
        self.kept = max((results / "commands").iterdir())

    def facts(self) -> dict[str, object]:
        """The content of command.json."""
        facts: dict[str, object] = json.loads((self.kept / "command.json").read_text())
        return facts


def begun(folder: Path, *words: str, flags: tuple[str, ...] = (),
          stdin: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """A command that runs in a folder, which also gets its results. Both its outputs are pipes."""
    return subprocess.Popen(typed(folder / "results", *words, flags=flags), cwd=folder,
                            stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def kept_of(folder: Path) -> Path:
    """The folder that is kept of the only command that ran in a folder."""
    (kept,) = (folder / "results" / "commands").iterdir()
    return kept
