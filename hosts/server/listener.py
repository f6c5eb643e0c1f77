"""Who is let in: a server's listening sockets, how many connections it has, how TLS is spoken."""

from __future__ import annotations

import heapq
import select
import selectors
import socket
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from hosts import kernel
from hosts.control import STANDARD_INPUT, Orders, report
from hosts.kernel import TcpInfo
from hosts.server.connection import ServedConnection
from hosts.serving import listening, most_connections, where

LONG_WAIT_NS = 5_000_000

Act = Callable[[ServedConnection], None]


class EventLoop:
    """What is registered is waited for; what is due is done at its time."""

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        # What is to be done when: (monotonic time in ns, in which order, connection, what).
        self.due: list[tuple[int, int, ServedConnection, Act]] = []
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

    def at(self, due_ns: int, connection: ServedConnection, act: Act) -> None:
        self.tasks += 1
        heapq.heappush(self.due, (due_ns, self.tasks, connection, act))

    def do_what_is_due(self) -> None:
        while self.due and self.due[0][0] <= time.monotonic_ns():
            _, _, connection, act = heapq.heappop(self.due)
            if connection.socket.fileno() >= 0:  # else the client has left meanwhile
                act(connection)


if TYPE_CHECKING:  # it imports ssl, which plain HTTP does without
    from hosts.tls import Secured


class Accepting(EventLoop):
    """Accepts connections; what is done on them is the server's.

    secure_port: for TLS, None for none. told: the report on where it listens.
    """

    def __init__(self, address: str, port: int, deadline_s: float,
                 secure_port: int | None) -> None:
        super().__init__()
        self.listener = listening(address, port)
        self.deadline_s = deadline_s
        self.most = most_connections()
        self.call(self.listener, partial(self.accept, self.listener))
        self.accepted = 0
        self.secured: Secured | None = None
        if secure_port is not None:
            secure = listening(address, secure_port)
            self.call(secure, partial(self.accept, secure))
            self.orders = Orders()
            self.call(STANDARD_INPUT, self.take_orders)
            self.told = {**where(self.listener), "secure_port": secure.getsockname()[1]}
            self.secure: socket.socket | None = secure
        else:
            self.secure, self.told = None, where(self.listener)

    def close(self, connection: ServedConnection, error: str = "") -> None:
        """Close a connection, and say why (Server)."""
        raise NotImplementedError

    def take_orders(self) -> None:
        """How TLS is to be spoken on connections from here on."""
        from hosts.tls import secured
        for order in self.orders.take():
            error = ""
            try:
                self.secured = secured(order)
            except (OSError, LookupError, TypeError, ValueError) as found:
                self.secured, error = None, f"{type(found).__name__}: {found}"
            report({"event": "secured", "error": error})
        if self.orders.ended:
            self.selector.unregister(STANDARD_INPUT)

    def accept(self, listener: socket.socket) -> None:
        try:
            accepted, peer = listener.accept()
        except BlockingIOError:
            return
        secured = self.secured if listener is self.secure else None
        if not self._has_room() or (listener is self.secure and secured is None):
            accepted.close()
            return
        # Read before anything is sent: this is the initial window.
        at_accept = TcpInfo.of(accepted)
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        kernel.number_bytes(accepted)
        self.accepted += 1
        connection = ServedConnection(accepted, peer, at_accept, self.accepted, time.monotonic())
        self.selector.register(accepted, selectors.EVENT_READ, connection)
        if secured is not None:
            from hosts.tls import Tls
            connection.tls = Tls(secured)
            self.at(time.monotonic_ns() + round(self.deadline_s * 1e9), connection,
                    self._expect_handshake)

    def _expect_handshake(self, connection: ServedConnection) -> None:
        if connection.tls is not None and not connection.tls.done:
            self.close(connection, error=f"no whole handshake in {self.deadline_s:g} s")

    def _has_room(self) -> bool:
        """Whether one more connection may be open, if need be in place of a silent one."""
        open_ones: list[ServedConnection] = [key.data for key in self.selector.get_map().values()
                                       if isinstance(key.data, ServedConnection)]
        if len(open_ones) < self.most:
            return True
        longest = min(open_ones, key=lambda connection: connection.heard)
        if time.monotonic() - longest.heard < self.deadline_s:
            return False
        self.close(longest, error="silent for too long")
        return True
