"""What happens on a connection, in order of time."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from lab.tcp.path import LATE_NS, LEAST_TIMER_NS

Happening = Callable[[int], None]  # given when it happens, in ns


class Events:
    """What is due, each with its time; of one time in the order in which it was said.

    Qdiscs wait by timers: the guest has one clock for them all, which is set to the first
    (clockevents_program_event) and sees by then to all that are due.
    """

    def __init__(self) -> None:
        self.events: list[tuple[int, int, Happening]] = []
        self.timers: list[tuple[int, int, Happening]] = []
        self.fires = 0  # when the clock does, for the first of the timers
        self.count = 0
        self.is_over = False

    def at(self, when: int, happen: Happening) -> None:
        self.count += 1
        heapq.heappush(self.events, (when, self.count, happen))

    def set_timer(self, now: int, due: int, happen: Happening) -> None:
        """Have this happen when the clock fires that is due then."""
        self.count += 1
        heapq.heappush(self.timers, (due, self.count, happen))
        if self.timers[0][1] == self.count:
            self._set_clock(now)

    def run(self) -> None:
        """Until nothing is due any more, or enough is known."""
        while (self.events or self.timers) and not self.is_over:
            if self.timers and not (self.events and self.events[0][0] < self.fires):
                self._fire(self.fires)
            else:
                now, _, happen = heapq.heappop(self.events)
                happen(now)

    def _fire(self, now: int) -> None:
        while self.timers and self.timers[0][0] <= now:
            _, _, happen = heapq.heappop(self.timers)
            happen(now)
        if self.timers:
            self._set_clock(now)

    def _set_clock(self, now: int) -> None:
        self.fires = max(self.timers[0][0] + LATE_NS, now + LEAST_TIMER_NS)
