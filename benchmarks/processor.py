"""Counts the processor time of a command and all its processes, by a control group.

The times that `wait` reports lack the processes of a guest (16.9 of 27.6 s were reported): UML's
kernel traces them, they die with it, and nobody waits for them. A control group counts every
process that was in it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# For control groups of version 2 and of version 1: the folder for new groups, the file with the
# counter, and how many microseconds one unit of the counter is.
ROOTS = ((Path("/sys/fs/cgroup"), "cpu.stat", 1.0),
         (Path("/sys/fs/cgroup/cpuacct"), "cpuacct.usage", 0.001))

GONE_S = 10.0  # the longest wait for the processes of a command that has ended


class Group:
    """One control group, for one command."""

    def __init__(self, folder: Path, counter: Path, microseconds: float) -> None:
        self.folder, self.counter, self.microseconds = folder, counter, microseconds

    def command(self, words: list[str]) -> list[str]:
        """The words that run a command within the group, from its first process on."""
        return ["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(self.folder / "cgroup.procs"),
                *words]

    @property
    def used_s(self) -> float:
        """Processor seconds of everything that ran in the group so far."""
        return self.seconds(self.counter.read_text(encoding="ascii"))

    def seconds(self, content: str) -> float:
        """Seconds, by the content of the counter's file."""
        numbers = content.split()
        # "usage_usec 123 …" in the second version, a bare number in the first.
        return int(numbers[1] if len(numbers) > 1 else numbers[0]) * self.microseconds / 1e6


@contextmanager
def group() -> Iterator[Group | None]:
    """Make a control group, and remove it afterwards; None where that needs root."""
    new_group = next(filter(None, map(_make, *zip(*ROOTS))), None)
    try:
        yield new_group
    finally:
        if new_group is not None:
            _remove(new_group.folder)


def _remove(folder: Path) -> None:
    """Remove a group once its last process has gone, which the kernel may notice a little later."""
    deadline = time.monotonic() + GONE_S
    while True:
        try:
            return folder.rmdir()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _make(root: Path, counter: str, microseconds: float) -> Group | None:
    """Make a group below a folder; None where that is not possible."""
    folder = root / f"first-flight-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError:
        return None
    if (folder / counter).is_file() and (folder / "cgroup.procs").is_file():
        return Group(folder, folder / counter, microseconds)
    folder.rmdir()
    return None
