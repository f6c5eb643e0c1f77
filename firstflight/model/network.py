"""The network of the model: the events of a connection, in order of time, and its two links.

Times are integer nanoseconds since the first SYN left.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence

from firstflight.net.link import Link
from firstflight.net.path import LEAST_TIMER_NS, bytes_per_s, delay_ns
from firstflight.net.waiting import LATE_NS

Happening = Callable[[int], None]  # called with the time, in ns


class Events:
    """Events in order of time. Events of the same time are in the order in which they were set.

    Qdiscs wait by timers. The guest has one clock for all timers. It is set to the first timer
    (clockevents_program_event), and when it fires all timers are handled that are due by then.
    """

    def __init__(self) -> None:
        # Heaps: the time of an event or a timer, its number, and its function.
        self.events: list[tuple[int, int, Happening]] = []
        self.timers: list[tuple[int, int, Happening]] = []
        self.fires = 0  # when the clock fires for the first of the timers
        self.count = 0  # of events and timers that were set
        self.is_over = False  # whether no more events are handled

    def at(self, when: int, happen: Happening) -> None:
        """Call `happen` at the time `when`."""
        self.count += 1
        heapq.heappush(self.events, (when, self.count, happen))

    def set_timer(self, now: int, due: int, happen: Happening) -> None:
        """Call `happen` when the clock fires for the time `due`."""
        self.count += 1
        heapq.heappush(self.timers, (due, self.count, happen))
        if self.timers[0][1] == self.count:
            self._set_clock(now)

    def run(self) -> None:
        """Handle events until nothing is due any more, or is_over is set."""
        while (self.events or self.timers) and not self.is_over:
            if self.timers and not (self.events and self.events[0][0] < self.fires):
                self._fire(self.fires)
            else:
                now, _, happen = heapq.heappop(self.events)
                happen(now)

    def _fire(self, now: int) -> None:
        """Handle all timers that are due, and set the clock to the next one."""
        while self.timers and self.timers[0][0] <= now:
            _, _, happen = heapq.heappop(self.timers)
            happen(now)
        if self.timers:
            self._set_clock(now)

    def _set_clock(self, now: int) -> None:
        self.fires = max(self.timers[0][0] + LATE_NS, now + LEAST_TIMER_NS)


class SimulatedLink:
    """A link with a delay, then a rate with a queue. Both have a timer (qdisc_watchdog)."""

    def __init__(self, events: Events, link: Link) -> None:
        self.events = events
        self.delay_ns = delay_ns(link.delay_ms)
        self.bytes_per_s = bytes_per_s(link.rate_kbps)
        self.free_at = 0  # when all packets in the queue will have been sent
        self.peak_queue = 0  # the most packets at once, with the one that is being sent
        # Packets in the delay: when each is due, how many ns sending it takes, and the functions
        # that are called when it arrives.
        self.travelling: deque[tuple[int, int, Sequence[Happening]]] = deque()
        # Packets in the queue: when each is due, and the functions.
        self.leaving: deque[tuple[int, Sequence[Happening]]] = deque()
        self.reaches_at = self.leaves_at = -1  # the times to which the two timers are set

    def send(self, now: int, frame_bytes: int, *happen: Happening) -> None:
        """Send a frame. happen: functions that are called when it has arrived."""
        takes_ns = int(frame_bytes * 1e9 / self.bytes_per_s)
        self.travelling.append((now + self.delay_ns, takes_ns, happen))
        self._set_timers(now)

    def _handle_timer(self, now: int) -> None:
        """Handle either timer: packets enter the queue before packets that are due leave it
        (netem_dequeue).

        Packets that were due before the last nanosecond leave before a packet enters that comes
        within it. Guests showed this with queues that were just long enough.
        """
        travelling, leaving = self.travelling, self.leaving
        for due in (now - 2 * LATE_NS, now):
            if travelling and travelling[0][0] <= due:
                self._enter_queue(now, due)
            while leaving and leaving[0][0] <= due:
                for happening in leaving.popleft()[1]:
                    happening(now)
        self._set_timers(now)

    def _enter_queue(self, now: int, due: int) -> None:
        """Put the packets into the queue whose delay was over at the time `due`."""
        while self.travelling and self.travelling[0][0] <= due:
            _, takes_ns, happen = self.travelling.popleft()
            if not takes_ns:  # no rate limit, so no queue
                self._arrive(now, happen)
                continue

            self.free_at = max(now, self.free_at) + takes_ns
            self.leaving.append((self.free_at, happen))
            self.peak_queue = max(self.peak_queue, len(self.leaving))

    def _set_timers(self, now: int) -> None:
        """Set both timers to their first packets, if they are not set so already."""
        if self.travelling and self.reaches_at != self.travelling[0][0]:
            self.reaches_at = self.travelling[0][0]
            self.events.set_timer(now, self.reaches_at, self._handle_timer)
        if self.leaving and self.leaves_at != self.leaving[0][0]:
            self.leaves_at = self.leaving[0][0]
            self.events.set_timer(now, self.leaves_at, self._handle_timer)

    def _arrive(self, now: int, happen: Sequence[Happening]) -> None:
        for happening in happen:
            happening(now)
