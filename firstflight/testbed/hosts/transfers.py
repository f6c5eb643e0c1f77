"""What curl's library sends and receives in this process: bodies, and the socket behind them."""

from __future__ import annotations

import hashlib
import io
import socket
import time
from typing import TYPE_CHECKING, Any

from firstflight.testbed.hosts.kernel import TcpInfo, congestion_control
from firstflight.testbed.hosts.serving import body_of

if TYPE_CHECKING:
    import pycurl

    from firstflight.testbed.messages import Fetch


class Body:
    """The body of a response, and the socket through which it comes."""

    def __init__(self, handle: pycurl.Curl) -> None:
        import pycurl
        self.file = io.BytesIO()
        self.socket: socket.socket | None = None
        handle.setopt(pycurl.WRITEFUNCTION, self.write)

    def open(self, _purpose: int, address: Any) -> socket.socket:
        self.socket = socket.socket(address.family, address.socktype, address.protocol)
        return self.socket

    def write(self, data: bytes) -> int:
        return self.file.write(data)

    def take(self) -> bytes:
        data, self.file = self.file.getvalue(), io.BytesIO()
        return data


class NarrowBody(Body):
    """A body on a connection that never advertises a window of more than so many bytes.

    The window is clamped (TCP_WINDOW_CLAMP) before the connection opens, and again whenever data
    arrives: the kernel resets the clamp when it learns the size of segments (tcp_measure_rcv_mss).
    """

    def __init__(self, handle: pycurl.Curl, window_bytes: int) -> None:
        import pycurl
        super().__init__(handle)
        self.window_bytes = window_bytes
        handle.setopt(pycurl.OPENSOCKETFUNCTION, self.open)

    def open(self, _purpose: int, address: Any) -> socket.socket:
        opened = super().open(_purpose, address)
        self._clamp()
        return opened

    def write(self, data: bytes) -> int:
        self._clamp()
        return super().write(data)

    def _clamp(self) -> None:
        if self.socket is not None:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, self.window_bytes)


class Upload:
    """Requests with a body, and what the kernel reports of the socket that sends them.

    curl writes the headers with a body below 64 kB, else alone, and the body in parts of 64 kB
    (Curl_buffer_send, Curl_fillreadbuffer). HEADERS: no "Expect", which would cost a round trip.
    """

    HEADERS = ("Expect:", "Content-Type:")

    def __init__(self, handle: pycurl.Curl, body: Body, request_bytes: int) -> None:
        import pycurl
        self.body, self.request_bytes = body, request_bytes
        sent = body_of(request_bytes)
        self.sha256 = hashlib.sha256(sent).hexdigest()
        self.initial_window = 0
        handle.setopt(pycurl.OPENSOCKETFUNCTION, body.open)
        handle.setopt(pycurl.POSTFIELDS, sent)
        # Called as the first request leaves, before anything is acknowledged.
        self.leaving = pycurl.INFOTYPE_HEADER_OUT
        handle.setopt(pycurl.DEBUGFUNCTION, self._note_window)
        handle.setopt(pycurl.VERBOSE, 1)
        self.answered_ns: int | None = None  # when the first header came
        handle.setopt(pycurl.HEADERFUNCTION, self._note_answer)

    def _note_answer(self, _header: bytes) -> None:
        self.answered_ns = self.answered_ns or time.monotonic_ns()

    def first_byte_ms(self, total_ms: float) -> float | None:
        """The time to the response's first byte. To be called as the transfer ends.

        curl's own time ends as the first part of a large request leaves. total_ms: of the transfer.
        """
        answered_ns, self.answered_ns = self.answered_ns, None
        if answered_ns is None:
            return None
        return round(total_ms - (time.monotonic_ns() - answered_ns) / 1e6, 3)

    def _note_window(self, kind: int, _text: bytes) -> None:
        if kind == self.leaving and self.body.socket is not None and not self.initial_window:
            self.initial_window = TcpInfo.of_socket(self.body.socket).congestion_window

    def add_to(self, answer: Fetch) -> None:
        """Add what the kernel reports, as long as the socket is open."""
        used = self.body.socket
        if used is None or used.fileno() < 0:
            return

        info = TcpInfo.of_socket(used)
        answer["socket"] = {
            "initial_window": self.initial_window, "congestion_control": congestion_control(used),
            "mss": info.mss, "retransmissions": info.retransmissions,
            "request_bytes": self.request_bytes, "request_sha256": self.sha256}
