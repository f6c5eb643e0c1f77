"""server.py's connections: accepting them, their state, and what is due on them."""

from __future__ import annotations

import heapq
import selectors
import socket
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from socket import socket as Socket
from typing import TYPE_CHECKING, Any

from firstflight.net.waiting import LATE_NS, Timer, waited_ns
from firstflight.testbed.hosts import kernel
from firstflight.testbed.hosts.control import STANDARD_INPUT, Orders, report
from firstflight.testbed.hosts.kernel import InfoTrace, TcpInfo
from firstflight.testbed.hosts.http_messages import PathSpec, RequestBody, Response, Sending
from firstflight.testbed.hosts.serving import listening_socket, most_connections, address_report

if TYPE_CHECKING:  # it imports ssl, which plain HTTP does without
    from firstflight.testbed.hosts.tls import Tls, TlsSettings
    from firstflight.testbed.messages import Response as Report

# So large that TCP's windows limit the bursts of a traced connection, never its send buffer.
TRACE_SEND_BUFFER_BYTES = 8 << 20
_SO_SNDBUFFORCE = 32


@dataclass
class ServedConnection:
    """A connection and its state."""

    socket: Socket
    peer: tuple[str, int]  # the client's address and port
    at_accept: TcpInfo  # before anything was sent
    number: int  # of all that were accepted
    heard: float  # when something last happened on it, monotonic, s
    first_buffer_bytes: int = 0  # of the send buffer, before anything was sent
    received: bytes = b""  # of the head of a request
    body: RequestBody | None = None  # of a request whose head was received
    sent_bytes: int = 0
    responses: int = 0
    nagle: bool = False  # whether it has Nagle's algorithm, which is off when it is accepted
    unacknowledged: list[Response] = field(default_factory=list)
    sending: Sending | None = None
    behind: deque[Sending] = field(default_factory=deque)  # to be sent after `sending`
    ended: bool = False  # whether the last data was sent; whatever still comes is ignored
    trace: InfoTrace | None = None
    tls: Tls | None = None  # None for plain HTTP
    after_handshake: TcpInfo | None = None  # at the end of TLS's handshake

    def set_up(self, spec: PathSpec) -> None:
        """Set the options of the socket that a request asks for."""
        if spec.nagle != self.nagle:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, not spec.nagle)
            self.nagle = spec.nagle
        if spec.send_buffer_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, spec.send_buffer_bytes)
        if spec.trace_ms and self.trace is None:
            self.socket.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, TRACE_SEND_BUFFER_BYTES)
            self.trace = InfoTrace(round(spec.trace_ms * 1e6))

    def note_start(self, at_ns: int) -> None:
        """Note when responses begin to leave: after a write or an acknowledgement.

        If earlier data fills the window, such as tickets, a response begins when that data is
        acknowledged.
        """
        waiting = [response for response in self.unacknowledged if not response.start_ns]
        if not waiting:
            return

        # The FIN counts as a byte.
        left = self.sent_bytes + self.ended - TcpInfo.of_socket(self.socket).unsent_bytes
        for response in waiting:
            if left > response.offset:
                response.start_ns = at_ns

    def report(self, response: Response, ack_ns: int) -> Report:
        """The report on a response whose last byte was acknowledged at ack_ns."""
        now = TcpInfo.of_socket(self.socket)
        report: Report = {
            "event": "response",
            # The connection and its request.
            "connection": self.number,
            "client_port": self.peer[1],
            "path": response.path,
            "number_on_connection": self.responses,
            "request_bytes": response.request_bytes,
            # The response.
            "header_bytes": response.header_bytes,
            "body_bytes": response.body_bytes,
            "sha256": response.sha256,
            "latency_ms": (ack_ns - response.start_ns) / 1e6,
            # TCP at the beginning.
            "initial_window": self.at_accept.congestion_window,
            "mss": self.at_accept.mss,
            "reordering": self.at_accept.reordering,
            "pacing_bytes_per_s": self.at_accept.pacing_rate,
            "first_buffer_bytes": self.first_buffer_bytes,
            # TCP now.
            "min_rtt_ms": now.min_rtt_us / 1000,
            "retransmissions": now.retransmissions,
            "final_window": now.congestion_window,
            "is_pacing_limited": kernel.is_pacing_limited(now),
            "congestion_control": kernel.congestion_control(self.socket),
            "has_nagle": not self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY),
            "send_buffer_bytes": kernel.send_buffer_bytes(self.socket)}
        fixed = kernel.has_fixed_send_buffer(self.socket)
        if fixed is not None:
            report["fixed_send_buffer"] = fixed

        if response.request_body is not None:
            report["request_body_bytes"] = response.request_body.received_bytes
            report["request_sha256"] = response.request_body.digest.hexdigest()
        if self.tls is not None and self.after_handshake is not None:
            report["tls"] = self.tls.report(response.records,
                                            self.after_handshake.congestion_window)
        return report


Act = Callable[[ServedConnection], None]


class EventLoop:
    """Waits for registered events, and runs actions when they are due."""

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        # Scheduled actions: (monotonic time in ns, number, connection, action).
        self.due: list[tuple[int, int, ServedConnection, Act]] = []
        self.tasks = 0
        self.timer = Timer()
        self.call_when_readable(self.timer.fd, lambda: None)  # it only ends the wait

    def call_when_readable(self, file: int | socket.socket, act: Callable[[], None]) -> None:
        """Run an action whenever a file or a socket has something to read."""
        self.selector.register(file, selectors.EVENT_READ, act)

    def wait(self) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for registered events, at most until an action is due.

        Actions of closed connections are dropped: they may be an earlier trial's.
        """
        while self.due and self.due[0][2].socket.fileno() < 0:
            heapq.heappop(self.due)
        now_ns = time.monotonic_ns()
        wait_ns = waited_ns(self.due[0][0] - now_ns) if self.due else LATE_NS - now_ns
        if not wait_ns:
            return self.selector.select(0)
        self.timer.set(now_ns + wait_ns - LATE_NS)  # 0, never, where nothing is due
        return self.selector.select()

    def call_at(self, due_ns: int, connection: ServedConnection, act: Act) -> None:
        """Run an action at a time of the monotonic clock, unless its connection has ended."""
        self.tasks += 1
        heapq.heappush(self.due, (due_ns, self.tasks, connection, act))

    def run_due(self) -> None:
        """Run the actions whose time has come."""
        while self.due and self.due[0][0] <= time.monotonic_ns():
            _, _, connection, act = heapq.heappop(self.due)
            if connection.socket.fileno() >= 0:  # else the client has left meanwhile
                act(connection)


class Listener(EventLoop):
    """Accepts connections; a subclass serves them."""

    def __init__(self, address: str, port: int, deadline_s: float,
                 secure_port: int | None) -> None:
        """secure_port: the port for TLS, None for no TLS."""
        super().__init__()
        self.deadline_s = deadline_s
        self.most = most_connections()
        self.accepted = 0
        self.listener = listening_socket(address, port)
        self.call_when_readable(self.listener, partial(self.accept, self.listener))
        self.address_report = address_report(self.listener)  # where it listens

        self.secure_listener: socket.socket | None = None
        self.tls_settings: TlsSettings | None = None
        if secure_port is not None:
            secure = self.secure_listener = listening_socket(address, secure_port)
            self.call_when_readable(secure, partial(self.accept, secure))
            self.address_report["secure_port"] = secure.getsockname()[1]
            self.orders = Orders()
            self.call_when_readable(STANDARD_INPUT, self.take_orders)

    def close(self, connection: ServedConnection, error: str = "") -> None:
        """Close a connection and report why; see http_server.Server."""
        raise NotImplementedError

    def listen_again(self) -> None:
        """Replace the listening sockets: a connection has some sysctls as they were then."""
        self.listener = self._renew(self.listener)
        if self.secure_listener is not None:
            self.secure_listener = self._renew(self.secure_listener)
        report({"event": "listening again"})

    def _renew(self, old: socket.socket) -> socket.socket:
        """A new listening socket in place of an old one."""
        address, port = old.getsockname()
        self.selector.unregister(old)
        old.close()
        new = listening_socket(address, port)
        self.call_when_readable(new, partial(self.accept, new))
        return new

    def forget_clients(self) -> None:
        """Close the connections whose clients have gone, without a packet."""
        for connection in self._open_connections():
            kernel.silence(connection.socket)
            self.close(connection, error="its client has gone")
        report({"event": "forgotten"})

    def take_orders(self) -> None:
        """Obey orders: to listen again, to forget clients, or how to speak TLS from now on."""
        for order in self.orders.take():
            if order.get("listen"):
                self.listen_again()
            elif order.get("forget"):
                self.forget_clients()
            else:
                self._set_up_tls(order)
        if self.orders.ended:
            self.selector.unregister(STANDARD_INPUT)

    def _set_up_tls(self, order: Mapping[str, Any]) -> None:
        """Speak TLS as an order says on later connections; or not at all, where that fails."""
        from firstflight.testbed.hosts.tls import tls_settings
        error = ""
        try:
            self.tls_settings = tls_settings(order)
        except (OSError, LookupError, TypeError, ValueError) as failure:
            self.tls_settings, error = None, f"{type(failure).__name__}: {failure}"
        report({"event": "secured", "error": error})

    def accept(self, listener: socket.socket) -> None:
        try:
            accepted, peer = listener.accept()
        except BlockingIOError:
            return
        is_secure = listener is self.secure_listener
        if not self._has_room() or (is_secure and self.tls_settings is None):
            accepted.close()
            return

        # Read before anything is sent: this is the initial window.
        at_accept, buffer_bytes = TcpInfo.of_socket(accepted), kernel.send_buffer_bytes(accepted)
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        kernel.number_bytes(accepted)
        self.accepted += 1
        connection = ServedConnection(
            accepted, peer, at_accept, number=self.accepted, heard=time.monotonic(),
            first_buffer_bytes=buffer_bytes)
        self.selector.register(accepted, selectors.EVENT_READ, connection)

        if is_secure and self.tls_settings is not None:
            from firstflight.testbed.hosts.tls import Tls
            connection.tls = Tls(self.tls_settings)
            due_ns = time.monotonic_ns() + round(self.deadline_s * 1e9)
            self.call_at(due_ns, connection, self._expect_handshake)

    def _expect_handshake(self, connection: ServedConnection) -> None:
        if connection.tls is not None and not connection.tls.done:
            self.close(connection, error=f"no whole handshake in {self.deadline_s:g} s")

    def _has_room(self) -> bool:
        """Whether one more connection may be open; a silent one may be closed for it."""
        if len(self.selector.get_map()) < self.most:
            return True
        quietest = min(self._open_connections(), key=lambda connection: connection.heard)
        if time.monotonic() - quietest.heard < self.deadline_s:
            return False
        self.close(quietest, error="silent for too long")
        return True

    def _open_connections(self) -> list[ServedConnection]:
        return [key.data for key in self.selector.get_map().values()
                if isinstance(key.data, ServedConnection)]
