"""What happens on a connection, in order of time."""

from __future__ import annotations

import heapq
from collections.abc import Callable

Happening = Callable[[int], None]  # given when it happens, in ns


class Events:
    """What is due, each with its time; of one time in the order in which it was said."""

    def __init__(self) -> None:
        self.events: list[tuple[int, int, Happening]] = []
        self.count = 0

    def _at(self, when: int, happen: Happening) -> None:
        self.count += 1
        heapq.heappush(self.events, (when, self.count, happen))

    def run(self) -> None:
        """Until nothing is due any more."""
        while self.events:
            now, _, happen = heapq.heappop(self.events)
            happen(now)
