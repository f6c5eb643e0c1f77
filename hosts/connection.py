"""One client's connection to server.py, and the state of its conversation."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from socket import socket as Socket
from typing import Any

from hosts.request import Wanted
from hosts.response import Response
from hosts.tcp_info import TcpInfo, Trace

# A traced connection's bursts shall be limited by TCP's windows, never by its send buffer.
TRACE_SEND_BUFFER_BYTES = 8 << 20
_SO_SNDBUFFORCE = 32


@dataclass
class Connection:
    """heard: when something last happened on it, monotonic, s."""

    socket: Socket
    peer: tuple[str, int]
    at_accept: TcpInfo
    number: int
    heard: float
    received: bytes = b""
    sent_bytes: int = 0
    responses: int = 0
    unacknowledged: list[Response] = field(default_factory=list)
    sending: Response | None = None
    trace: Trace | None = None

    def set_up(self, wanted: Wanted) -> None:
        """What a path asks of the connection itself."""
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, not wanted.nagle)
        if wanted.send_buffer_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, wanted.send_buffer_bytes)
        if wanted.trace_ms and self.trace is None:
            self.socket.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, TRACE_SEND_BUFFER_BYTES)
            self.trace = Trace(round(wanted.trace_ms * 1e6))

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
            "final_window": now.congestion_window}
