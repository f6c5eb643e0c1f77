"""The workers of a cluster as they come and go: who can measure, and what the user is told."""

from __future__ import annotations

import time
from urllib.parse import urlsplit

from engines.cluster.link import Link
from engines.job import EngineError

LOST_S = 300.0  # for which a scheduler, or the last worker, may be away
MOST_DEATHS = 3  # of each worker, on average, between two results
PAUSED_S = 30.0  # for which Dask may hold a worker back before it gets nothing more
DYING = "workers die before they measure; start them with more memory (--memory-limit)"


class Roll:
    """able: the workers that can measure, by their addresses, when they were last looked at."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.told: set[str] = set()
        self.begin()

    def begin(self) -> None:
        """Those that there are now; nobody is missed."""
        self.able = frozenset(self.link.workers()) - self.link.refused.keys()
        self.most_deaths = MOST_DEATHS * max(1, len(self.able))
        self.measured()
        self.paused: dict[str, float] = {}  # since when
        self.none_since: float | None = None

    def measured(self) -> None:
        """A worker has sent a result."""
        self.deaths, self.last_result = 0, time.monotonic()

    def call(self) -> None:
        """Look at them. Raises EngineCannot, EngineError where none is left, or comes."""
        now, workers = time.monotonic(), self.link.workers()
        for worker, each in workers.items():
            if each.get("status") != "paused":
                self.paused.pop(worker, None)
            elif (worker not in self.link.refused
                  and now - self.paused.setdefault(worker, now) >= PAUSED_S):
                self.link.refuse(worker, host(worker), "Dask holds it back, its memory has reached"
                                 " 80 % of --memory-limit: start it with more")
        able, gone = self.link.count(workers), self.able - set(workers)
        self.able, self.deaths = able, self.deaths + len(gone)
        if able:
            self.none_since = None
        if gone:
            where = ", ".join(sorted(set(map(host, gone))))
            self.tell(f"no answer from the worker at {where}; " + (
                "what it was given is measured by another one" if able else
                f"it was the last one: another one is waited for, for {LOST_S:.0f} s at most"))
        if self.deaths > self.most_deaths and now - self.last_result > LOST_S:
            raise EngineError(f"{self.link.address}: {DYING}")
        if not able:
            self.none_since = now if self.none_since is None else self.none_since
            if now - self.none_since > LOST_S:
                raise EngineError(f"{self.link.address}: the scheduler has no worker any more")

    def tell(self, line: str) -> None:
        """A line to the user, once: a worker may die again and again."""
        if line not in self.told:
            self.told.add(line)
            self.link.tell(line)


def host(worker: str) -> str:
    return urlsplit(worker).hostname or worker
