"""The parameters that decide how long a fetch takes if nothing is lost."""

from __future__ import annotations

from dataclasses import dataclass

from firstflight.base.quantity import OWN_WINDOW
from firstflight.model.receiver import window_unit
from firstflight.net.buffers import RECEIVE_BUFFERS, SEND_BUFFERS
from firstflight.net.headers import MSS
from firstflight.net.link import Path

CONGESTION_CONTROLS = ("cubic", "reno")  # the model follows no others


@dataclass(frozen=True)
class Secure:
    """The messages of TLS 1.3 before a request. Sizes are bytes on the wire."""

    hello_bytes: int  # the client's first message
    flight: tuple[int, ...]  # each of the server's writes up to its Finished
    finished_bytes: int  # the client's second message
    tickets: tuple[int, ...]  # each of the server's writes after the client's second message
    # Of the response's first record. The client can read nothing until this record is complete.
    first_bytes: int
    close_bytes: int = 24  # of the message that the client sends when it closes


@dataclass(frozen=True)
class Transfer:
    """A lossless fetch. Sizes of requests and responses include the HTTP headers.

    A pair of buffers is a buffer's first size and its largest size, in bytes.
    """

    # Of the path, delays and rates are used. Its queues count as long enough, its losses as 0.
    path: Path
    initcwnd: int  # segments
    initrwnd: int  # segments
    response_bytes: int
    request_bytes: int
    # Of a response in two writes.
    burst_bytes: int = 0  # of the first write
    gap_ms: float = 0.0  # from the first write to the second; 0 for a response in one write
    restart_after_idle: bool = True  # tcp_slow_start_after_idle
    loss_probes: bool = True  # whether tcp_early_retrans allows them
    # Earlier responses on the connection.
    earlier_bytes: int = 0  # of each earlier response; 0 if there are none
    earlier_request_bytes: int = 0  # of each earlier request
    earlier_count: int = 1  # of earlier responses
    idle_ms: float = 0.0  # how long the client pauses after the last earlier response
    writes: tuple[int, ...] = ()  # bytes of each write of the response; () for one write
    secure: Secure | None = None  # None for plain HTTP
    # Bytes of each write of the request, which has a body, and of each earlier request; () for
    # requests of one segment.
    request_writes: tuple[int, ...] = ()
    earlier_writes: tuple[int, ...] = ()
    client_initcwnd: int = OWN_WINDOW  # segments, of a client that uploads
    server_receive_buffers: tuple[int, int] = RECEIVE_BUFFERS
    client_send_buffers: tuple[int, int] = SEND_BUFFERS
    mss: int = MSS
    congestion_control: str = "cubic"
    # From the beginning of a millisecond of the kernel's clock to the first SYN
    # (exchange.clock_phase_ns).
    clock_phase_ns: int = 2_002
    receive_buffers: tuple[int, int] = RECEIVE_BUFFERS  # the client's (tcp_rmem)
    send_buffers: tuple[int, int] = SEND_BUFFERS  # the server's (tcp_wmem)
    # Bits, from the client's SYN; None where the scale follows from its buffers (window_unit).
    window_scale: int | None = None
    # The largest window that the client offers. The client sets this limit on its socket before it
    # connects and whenever it has read data. With 0 its buffers alone limit the window.
    most_window_bytes: int = 0
    # The RTT that the server measures in the handshake if the path is not idle; None if it is.
    handshake_us: int | None = None

    @property
    def window_unit(self) -> int:
        """Bytes in a unit of the client's window."""
        if self.window_scale is None:
            return window_unit(self.receive_buffers, self.most_window_bytes)
        return 1 << self.window_scale

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
