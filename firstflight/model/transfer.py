"""All that decides how long a fetch takes if nothing is lost."""

from __future__ import annotations

from dataclasses import dataclass

from firstflight.base.quantity import OWN_WINDOW
from firstflight.model.receiver import window_unit
from firstflight.net.buffers import RECEIVE_BUFFERS, SEND_BUFFERS
from firstflight.net.headers import MSS
from firstflight.net.link import Path

CONGESTION_CONTROLS = ("cubic", "reno")  # those that the model follows


@dataclass(frozen=True)
class Secure:
    """The messages of TLS 1.3 before a request, in bytes on the wire.

    hello_bytes, finished_bytes: the client's two messages. flight, tickets: the server's writes.
    first_bytes: the response's first record, which has to be complete before any of it can be
    read. close_bytes: what the client sends when it closes.
    """

    hello_bytes: int
    flight: tuple[int, ...]
    finished_bytes: int
    tickets: tuple[int, ...]
    first_bytes: int
    close_bytes: int = 24


@dataclass(frozen=True)
class Transfer:
    """A lossless fetch.

    path: its delays and rates are used; its queues count as long enough, its losses as 0.
    initcwnd, initrwnd: segments.
    response_bytes, request_bytes: payload, HTTP headers included.
    burst_bytes, gap_ms: a response in two writes: this much at once, the rest after
        that time; gap_ms is 0 for one write.
    restart_after_idle: tcp_slow_start_after_idle. loss_probes: whether
        tcp_early_retrans allows them.
    earlier_bytes, earlier_request_bytes: sizes of each earlier response on the
        connection and of its request; 0 for none. earlier_count: how many. idle_ms: the
        client's pause after them.
    writes: sizes of the response's writes in bytes, () for one write. secure: the handshake
        of TLS, None for plain HTTP.
    request_writes, earlier_writes: sizes of the writes of a request that has a body, HTTP
        headers included; () for a request of one segment. client_initcwnd: of the client that
        uploads. server_receive_buffers, client_send_buffers: bytes, at first and at most.
    clock_phase_ns: time from the beginning of a millisecond of the kernel's clock to the first
        SYN (exchange.clock_phase_ns).
    receive_buffers, send_buffers: bytes, at first and at most (tcp_rmem, tcp_wmem).
    window_scale: bits, from the client's SYN; None to follow from its buffers
        (window_unit).
    most_window_bytes: the largest window that the client offers, which it sets on its socket
        before it connects and whenever it has read data; 0 for what its buffers allow.
    handshake_us: the RTT that the server measures in the handshake if the path is not idle;
        None for an idle path.
    """

    path: Path
    initcwnd: int
    initrwnd: int
    response_bytes: int
    request_bytes: int
    burst_bytes: int = 0
    gap_ms: float = 0.0
    restart_after_idle: bool = True
    loss_probes: bool = True
    earlier_bytes: int = 0
    earlier_request_bytes: int = 0
    earlier_count: int = 1
    idle_ms: float = 0.0
    writes: tuple[int, ...] = ()
    secure: Secure | None = None
    request_writes: tuple[int, ...] = ()
    earlier_writes: tuple[int, ...] = ()
    client_initcwnd: int = OWN_WINDOW
    server_receive_buffers: tuple[int, int] = RECEIVE_BUFFERS
    client_send_buffers: tuple[int, int] = SEND_BUFFERS
    mss: int = MSS
    congestion_control: str = "cubic"
    clock_phase_ns: int = 2_002
    receive_buffers: tuple[int, int] = RECEIVE_BUFFERS
    send_buffers: tuple[int, int] = SEND_BUFFERS
    window_scale: int | None = None
    most_window_bytes: int = 0
    handshake_us: int | None = None

    @property
    def window_unit(self) -> int:
        """Bytes in a unit of the client's window."""
        return (window_unit(self.receive_buffers, self.most_window_bytes)
                if self.window_scale is None
                else 1 << self.window_scale)

    @property
    def first_request_bytes(self) -> int:
        """Bytes of the client's first message on the connection."""
        if self.secure is not None:
            return self.secure.hello_bytes
        return self.earlier_request_bytes if self.earlier_bytes else self.request_bytes

    @property
    def first_bytes(self) -> int:
        """Bytes that the server sends before the client's second message."""
        if self.secure is not None:
            return sum(self.secure.flight)
        return self.earlier_bytes or self.response_bytes
