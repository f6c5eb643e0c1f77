"""One event loop for many connections: what has happened, and what is due."""

from __future__ import annotations

import heapq
import select
import selectors
import socket
import time
from collections.abc import Callable

from hosts.server.connection import Connection

LONG_WAIT_NS = 5_000_000

Act = Callable[[Connection], None]


class Loop:
    """What is registered is waited for; what is due is done at its time."""

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        # What is to be done when: (monotonic time in ns, in which order, connection, what).
        self.due: list[tuple[int, int, Connection, Act]] = []
        self.tasks = 0

    def call(self, readable: int | socket.socket, act: Callable[[], None]) -> None:
        """Do this whenever there is something to read."""
        self.selector.register(readable, selectors.EVENT_READ, act)

    def wait(self) -> list[tuple[selectors.SelectorKey, int]]:
        """What has happened, at the latest when something is due.

        epoll waits whole milliseconds; select() on the epoll itself waits as long as it
        is told, and up to a thousandth of it longer (select_estimate_accuracy in
        fs/select.c): long waits are made in steps, the last of which is short.
        """
        if not self.due:
            return self.selector.select(None)
        wait_ns = max(0, self.due[0][0] - time.monotonic_ns())
        wait_ns = wait_ns * 99 // 100 if wait_ns > LONG_WAIT_NS else wait_ns
        # Up to whole microseconds; as Python does so too, half a one less hits that one.
        select.select([self.selector], [], [], max(0.0, -(-wait_ns // 1000) - 0.5) / 1e6)
        return self.selector.select(0)

    def at(self, due_ns: int, connection: Connection, act: Act) -> None:
        self.tasks += 1
        heapq.heappush(self.due, (due_ns, self.tasks, connection, act))

    def do_what_is_due(self) -> None:
        while self.due and self.due[0][0] <= time.monotonic_ns():
            _, _, connection, act = heapq.heappop(self.due)
            if connection.socket.fileno() >= 0:  # else the client has left meanwhile
                act(connection)
