"""What decides how long a fetch takes where nothing is lost."""

from __future__ import annotations

from dataclasses import dataclass

from firstflight.model.receiver import RECEIVE_BUFFERS, window_unit
from firstflight.model.writer import SEND_BUFFERS
from firstflight.net.link import Path
from firstflight.net.segments import MSS

CONGESTION_CONTROLS = ("cubic", "reno")  # those that the model follows


@dataclass(frozen=True)
class Secure:
    """The messages of TLS 1.3 before a request, in bytes on the wire.

    hello_bytes, finished_bytes: of the client's two messages. flight, tickets:
    of the server's, each write of its own. first_bytes: of the response, that
    have to be there before any can be read: its first record. close_bytes: what
    the client sends when it closes.
    """

    hello_bytes: int
    flight: tuple[int, ...]
    finished_bytes: int
    tickets: tuple[int, ...]
    first_bytes: int
    close_bytes: int = 24


@dataclass(frozen=True)
class Transfer:
    """What decides a lossless fetch.

    path: its delays and rates; the queue is taken to be long enough, and nothing to be lost.
    initcwnd, initrwnd: segments.
    response_bytes, request_bytes: payload, HTTP headers included.
    burst_bytes, gap_ms: a response in two writes: so much of it at once, the
        rest after that time; gap_ms 0 for one write.
    restart_after_idle: tcp_slow_start_after_idle; loss_probes: whether
        tcp_early_retrans allows any.
    earlier_bytes, earlier_request_bytes: of each response fetched before on the
        same connection; 0 for none. earlier_count: how many. idle_ms: how long the client
        pauses after them.
    writes: of the response, bytes each, () for one; secure: the handshake of
        TLS before it, None for plain HTTP.
    clock_phase_ns: how far into a millisecond of the kernel's clock the first
        SYN leaves (exchange.clock_phase_ns).
    receive_buffers, send_buffers: bytes, at first and at most (tcp_rmem, tcp_wmem).
    window_scale: bits, as of the client's SYN; None for what window_unit makes
        of its buffers.
    handshake_us: its RTT as the server takes it, where the path is not an idle one; None for
        that of an idle one.
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
    mss: int = MSS
    congestion_control: str = "cubic"
    clock_phase_ns: int = 2_002
    receive_buffers: tuple[int, int] = RECEIVE_BUFFERS
    send_buffers: tuple[int, int] = SEND_BUFFERS
    window_scale: int | None = None
    handshake_us: int | None = None

    @property
    def window_unit(self) -> int:
        """Bytes that the client counts its window in."""
        return (window_unit(self.receive_buffers) if self.window_scale is None
                else 1 << self.window_scale)

    @property
    def first_request_bytes(self) -> int:
        """What the client sends first on the connection."""
        if self.secure is not None:
            return self.secure.hello_bytes
        return self.earlier_request_bytes if self.earlier_bytes else self.request_bytes

    @property
    def first_bytes(self) -> int:
        """What the server sends on the connection before the client's next request."""
        if self.secure is not None:
            return sum(self.secure.flight)
        return self.earlier_bytes or self.response_bytes
