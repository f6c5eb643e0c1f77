"""One client's connection to server.py, and the state of its conversation."""

from __future__ import annotations

from dataclasses import dataclass, field
from socket import socket as Socket
from typing import Any

from hosts.response import Response
from hosts.tcp_info import TcpInfo, Trace


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
