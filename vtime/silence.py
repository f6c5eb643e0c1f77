"""How long a guest, or another process group, has said nothing while it had a processor."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

LOOK_S = 5.0  # between two looks at all processes


class Scheduled(NamedTuple):
    """What the scheduler counted of a process so far."""

    ran_s: float  # how long it had a processor
    waited_s: float  # how long it waited for one


class Watchdog:
    """How long a process group has been silent.

    By the clock only, a guest without a processor looks like one that hangs. So time in which its
    processes wait for a processor does not count, unless another one of them has it. A guest that
    spins or sleeps for ever is still detected, but later on a busy machine.
    """

    def __init__(self, group: int) -> None:
        self.group = group
        self.end()

    def end(self) -> None:
        """End the silence: the group has reported something."""
        self.since = self.looked = time.monotonic()
        self.first: float | None = None  # when the waiting of its processes was first read
        self.processes: dict[str, Scheduled] = {}
        self.waited_s = 0.0

    def seconds(self) -> float:
        """Seconds of silence in which it had a processor; the first LOOK_S count in full."""
        now = time.monotonic()
        if now - self.looked >= LOOK_S:
            self._look(now)
        return now - self.since - self.waited_s

    def _look(self, now: float) -> None:
        """Add how long processes waited since the last look, or since they started."""
        since, before = self.looked, self.processes
        self.looked, self.processes = now, scheduled(self.group)
        if self.first is None:
            self.first = now
            return

        ran_s = waited_s = 0.0
        for number, process in self.processes.items():
            was = before.get(number, Scheduled(0.0, 0.0))
            ran_s += max(0.0, process.ran_s - was.ran_s)
            waited_s += max(0.0, process.waited_s - was.waited_s)
        # Several wait at once, or one waits for another.
        more_s = min(waited_s, max(0.0, now - since - ran_s))
        self.waited_s = min(self.waited_s + more_s, now - self.first)


def scheduled(group: int) -> dict[str, Scheduled]:
    """The processes of a group by number, with what the scheduler counted.

    {} if the machine's kernel does not count it (CONFIG_SCHED_INFO).
    """
    processes = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            _, _, words = (folder / "stat").read_text().rpartition(")")
            if int(words.split()[2]) == group:
                ran_ns, waited_ns, _ = (folder / "schedstat").read_text().split()
                processes[folder.name] = Scheduled(int(ran_ns) / 1e9, int(waited_ns) / 1e9)
        except (OSError, ValueError, IndexError):  # it has ended meanwhile
            continue
    return processes
