"""One client's connection to server.py, and the state of its conversation."""

from __future__ import annotations

import socket
from collections import deque
from dataclasses import dataclass, field
from socket import socket as Socket
from typing import TYPE_CHECKING, Any

from hosts.kernel import InfoTrace, TcpInfo
from hosts.server.request import Wanted
from hosts.server.response import Response, Sending

if TYPE_CHECKING:  # it imports ssl, which plain HTTP does without
    from hosts.tls import Tls

# A traced connection's bursts shall be limited by TCP's windows, never by its send buffer.
TRACE_SEND_BUFFER_BYTES = 8 << 20
_SO_SNDBUFFORCE = 32


@dataclass
class ServedConnection:
    """heard: when something last happened on it, monotonic, s.

    behind: what is to be sent when `sending` is. ended: the last of it was, and
    nothing that still comes is for us. tls: None for plain HTTP;
    after_handshake: TCP's word when that was done.
    """

    socket: Socket
    peer: tuple[str, int]
    at_accept: TcpInfo
    number: int
    heard: float
    received: bytes = b""
    sent_bytes: int = 0
    responses: int = 0
    unacknowledged: list[Response] = field(default_factory=list)
    sending: Sending | None = None
    behind: deque[Sending] = field(default_factory=deque)
    ended: bool = False
    trace: InfoTrace | None = None
    tls: Tls | None = None
    after_handshake: TcpInfo | None = None

    def set_up(self, wanted: Wanted) -> None:
        """What a path asks of the connection itself."""
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, not wanted.nagle)
        if wanted.send_buffer_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, wanted.send_buffer_bytes)
        if wanted.trace_ms and self.trace is None:
            self.socket.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, TRACE_SEND_BUFFER_BYTES)
            self.trace = InfoTrace(round(wanted.trace_ms * 1e6))

    def note_start(self, at_ns: int) -> None:
        """What was written, or acknowledged, at that time may have let a response begin to leave.

        One whose window is taken by what was sent before it, such as tickets,
        begins when that is acknowledged.
        """
        waiting = [response for response in self.unacknowledged if not response.start_ns]
        if not waiting:
            return
        # The end of the connection counts as a byte more.
        left = self.sent_bytes + self.ended - TcpInfo.of(self.socket).unsent_bytes
        for response in waiting:
            if left > response.offset:
                response.start_ns = at_ns

    def told(self, response: Response, ack_ns: int) -> dict[str, Any]:
        """The report on a response whose last byte was acknowledged at that time."""
        now = TcpInfo.of(self.socket)
        return {
            "event": "response", "connection": self.number,
            "client_port": self.peer[1], "path": response.path,
            "number_on_connection": self.responses,
            "initial_window": self.at_accept.congestion_window, "mss": self.at_accept.mss,
            "request_bytes": response.request_bytes, "header_bytes": response.header_bytes,
            "body_bytes": response.body_bytes, "sha256": response.sha256,
            "latency_ms": (ack_ns - response.start_ns) / 1e6,
            "min_rtt_ms": now.min_rtt_us / 1000, "retransmissions": now.retransmissions,
            "final_window": now.congestion_window, **self._told_of_tls(response)}

    def _told_of_tls(self, response: Response) -> dict[str, Any]:
        if self.tls is None or self.after_handshake is None:
            return {}
        return {"tls": {**self.tls.told(), "response": response.records,
                        "window": self.after_handshake.congestion_window}}
