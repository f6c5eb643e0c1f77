"""How long a worker has said nothing of its own accord, on a machine however busy.

By the clock alone a guest that is never let to a processor looks like one that hangs. What its
processes waited for a processor is not held against it: one that spins, or sleeps for good, is
found out, after a longer time where it has to share.
"""

from __future__ import annotations

import time
from pathlib import Path

LOOK_S = 5.0  # between two looks at all processes


class Silence:
    """Of a process group, since it was last heard of."""

    def __init__(self, group: int) -> None:
        self.group = group
        self.end()

    def end(self) -> None:
        """It was heard of."""
        self.since = self.looked = time.monotonic()
        self.first: float | None = None  # when what each had waited by then was first looked at
        self.delays_s: dict[str, float] = {}
        self.waited_s = 0.0

    def seconds(self) -> float:
        """How long it could have said something. The first LOOK_S count whole: nobody looks."""
        now = time.monotonic()
        if now - self.looked >= LOOK_S:
            self._look(now)
        return now - self.since - self.waited_s

    def _look(self, now: float) -> None:
        """Add up what they waited since the last look, those that are new from their start on."""
        self.looked, before, self.delays_s = now, self.delays_s, delays_s(self.group)
        if self.first is None:
            self.first = now
            return
        more_s = sum(max(0.0, delay_s - before.get(process, 0.0))
                     for process, delay_s in self.delays_s.items())
        self.waited_s = min(self.waited_s + more_s, now - self.first)  # several wait at once


def delays_s(group: int) -> dict[str, float]:
    """For how long each process of a group has waited for a processor, in seconds.

    Nothing where the machine's kernel does not count it (CONFIG_SCHED_INFO).
    """
    found = {}
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdecimal() and int(
                    (folder / "stat").read_text().rpartition(")")[2].split()[2]) == group:
                found[folder.name] = int((folder / "schedstat").read_text().split()[1]) / 1e9
        except (OSError, ValueError, IndexError):  # it has ended meanwhile
            continue
    return found
