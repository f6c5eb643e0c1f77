#!/usr/bin/env python3
"""The HTTP server that runs on the server host.

Serves bodies of any size, made on the fly, and writes one JSON line to its
standard output for every response, with what TCP knew about it:

    GET /<bytes>                         a body of that many bytes
    GET /<bytes>?burst=<n>&gap_ms=<ms>   headers and the first n bytes at once,
                                         the rest when the back-end has answered

Headers and body leave in one write and TCP_NODELAY is set: two small writes
would meet Nagle's algorithm and cost a round trip. With a gap they are two,
like the paper's Web search (section 4.1). The response latency is
the paper's (section 2): from the first byte sent to the acknowledgement of
the last one, the latter with the kernel's own time stamp
(SOF_TIMESTAMPING_TX_ACK, Documentation/networking/timestamping.rst).

One process, one event loop, no thread: `server.py [--port 80]`.
"""

from __future__ import annotations

import argparse
import hashlib
import heapq
import json
import selectors
import signal
import socket
import struct
import sys
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

LISTEN_BACKLOG = 4096
MAX_REQUEST_BYTES = 16384
MAX_BODY_BYTES = 1 << 30
# The body is this block over and over: enough to show a byte lost or doubled.
BLOCK = hashlib.sha256(b"First Flight").hexdigest().encode() * 1024

_SO_TIMESTAMPING = 37
_MSG_ERRQUEUE = 0x2000
_SOF_TX_ACK = 1 << 9
_SOF_SOFTWARE = 1 << 4
_SOF_OPT_ID = 1 << 7
_SOF_OPT_TSONLY = 1 << 11
_SCM_TSTAMP_ACK = 2
_SO_EE_ORIGIN_TIMESTAMPING = 4
_IP_RECVERR = 11


@dataclass(frozen=True)
class TcpInfo:
    """The fields used of struct tcp_info (include/uapi/linux/tcp.h).

    Windows in segments, times in microseconds.
    """

    congestion_window: int
    slow_start_threshold: int
    rtt_us: int
    min_rtt_us: int
    retransmissions: int
    mss: int
    peer_mss: int

    @classmethod
    def of(cls, connection: socket.socket) -> TcpInfo:
        raw = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        words = struct.unpack_from("=24I", raw, 8)
        (min_rtt_us,) = struct.unpack_from("=I", raw, 148)
        return cls(congestion_window=words[18], slow_start_threshold=words[17],
                   rtt_us=words[15], min_rtt_us=min_rtt_us, retransmissions=words[23],
                   mss=words[2], peer_mss=words[3])


@dataclass
class Response:
    """One response on its way."""

    path: str
    request_bytes: int
    header_bytes: int
    body_bytes: int
    sha256: str
    start_ns: int
    pending: memoryview
    later: memoryview  # what the back-end has not delivered yet
    gap_ms: float
    end_offset: int  # of its last byte, counted as SOF_TIMESTAMPING_OPT_ID does
    close: bool


@dataclass
class Connection:
    """One client's connection and the state of its conversation."""

    socket: socket.socket
    peer: tuple[str, int]
    at_accept: TcpInfo
    number: int
    received: bytes = b""
    sent_bytes: int = 0
    responses: int = 0
    unacknowledged: list[Response] = field(default_factory=list)
    sending: Response | None = None


class Server:
    """Accepts, answers, and reports; `serve` runs until the process is told to end."""

    def __init__(self, port: int) -> None:
        self.selector = selectors.DefaultSelector()
        self.listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("0.0.0.0", port))
        self.listener.listen(LISTEN_BACKLOG)
        self.listener.setblocking(False)
        self.selector.register(self.listener, selectors.EVENT_READ, None)
        self.accepted = 0
        # Back-end answers that are due: (monotonic time in s, connection number, connection).
        self.due: list[tuple[float, int, Connection]] = []

    def serve(self) -> None:
        report({"event": "listening"})
        while True:
            wait_s = max(0.0, self.due[0][0] - time.monotonic()) if self.due else None
            for key, events in self.selector.select(wait_s):
                if key.data is None:
                    self._accept()
                else:
                    self._service(key.data, events)
            while self.due and self.due[0][0] <= time.monotonic():
                self._continue(heapq.heappop(self.due)[2])

    def _accept(self) -> None:
        try:
            accepted, peer = self.listener.accept()
        except BlockingIOError:
            return
        # Read before anything is sent: this is the initial window.
        at_accept = TcpInfo.of(accepted)
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        accepted.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING,
                            _SOF_SOFTWARE | _SOF_OPT_ID | _SOF_OPT_TSONLY)
        self.accepted += 1
        connection = Connection(accepted, peer, at_accept, self.accepted)
        self.selector.register(accepted, selectors.EVENT_READ, connection)

    def _continue(self, connection: Connection) -> None:
        """The back-end has answered: send the rest."""
        response = connection.sending
        if response is None or connection.socket.fileno() < 0:
            return  # the client has left meanwhile
        response.pending, response.later = response.later, response.later[:0]
        self._service(connection, selectors.EVENT_WRITE)

    def _service(self, connection: Connection, events: int) -> None:
        try:
            # epoll reports a time stamp as an error, selectors passes that on
            # as readable and writable: look here first, whatever it is.
            self._read_acknowledgements(connection)
            if connection.sending is not None and events & selectors.EVENT_WRITE:
                self._send(connection)
            if events & selectors.EVENT_READ:
                self._receive(connection)
        except (ConnectionError, TimeoutError, BadRequest) as error:
            self._close(connection, error=f"{type(error).__name__}: {error}")

    def _receive(self, connection: Connection) -> None:
        try:
            data = connection.socket.recv(65536)
        except BlockingIOError:
            return
        if not data:
            # The ACK of the last bytes may have come with the FIN.
            self._read_acknowledgements(connection)
            self._close(connection)
            return
        connection.received += data
        self._answer_next(connection)

    def _answer_next(self, connection: Connection) -> None:
        """Start the next response if a whole request is here and none is being sent."""
        if connection.sending is not None:
            return
        head, end, rest = connection.received.partition(b"\r\n\r\n")
        if not end:
            if len(head) > MAX_REQUEST_BYTES:
                raise BadRequest("request headers too long")
            return
        connection.received = rest
        connection.sending = self._respond(connection, head)
        connection.unacknowledged.append(connection.sending)
        self._send(connection)

    def _respond(self, connection: Connection, head: bytes) -> Response:
        method, path, close = parse_request(head)
        wanted = parse_path(path)
        body = make_body(wanted.body_bytes) if wanted else b""
        headers = (f"HTTP/1.1 {'200 OK' if wanted else '404 Not Found'}\r\n"
                   f"Content-Length: {len(body)}\r\n"
                   + ("Connection: close\r\n" if close else "") + "\r\n").encode()
        payload = memoryview(headers + (b"" if method == "HEAD" else body))
        at_once = len(payload)
        if wanted and wanted.gap_ms > 0:
            at_once = min(at_once, len(headers) + wanted.burst_bytes)
        connection.responses += 1
        return Response(path, len(head) + 4, len(headers), len(body),
                        hashlib.sha256(body).hexdigest(), time.time_ns(), payload[:at_once],
                        payload[at_once:], wanted.gap_ms if wanted else 0.0,
                        connection.sent_bytes + len(payload) - 1, close)

    def _send(self, connection: Connection) -> None:
        response = connection.sending
        if response is None:
            return
        want_stamp = [(socket.SOL_SOCKET, _SO_TIMESTAMPING, struct.pack("=I", _SOF_TX_ACK))]
        while response.pending:
            try:
                sent = connection.socket.sendmsg([response.pending], want_stamp)
            except BlockingIOError:
                self._watch(connection, selectors.EVENT_READ | selectors.EVENT_WRITE)
                return
            connection.sent_bytes += sent
            response.pending = response.pending[sent:]
        self._watch(connection, selectors.EVENT_READ)
        if response.later:
            due = time.monotonic() + response.gap_ms / 1000
            heapq.heappush(self.due, (due, connection.number, connection))
            return
        connection.sending = None
        if response.close:
            connection.socket.shutdown(socket.SHUT_WR)
        else:
            self._answer_next(connection)

    def _read_acknowledgements(self, connection: Connection) -> None:
        """Report every response whose last byte the kernel saw acknowledged."""
        while True:
            try:
                _, control, _, _ = connection.socket.recvmsg(0, 256, _MSG_ERRQUEUE)
            except BlockingIOError:
                return
            stamp_ns, offset = acknowledgement(control)
            if offset is None:
                continue
            while connection.unacknowledged \
                    and offset >= connection.unacknowledged[0].end_offset:
                self._report_response(connection, connection.unacknowledged.pop(0), stamp_ns)

    def _report_response(self, connection: Connection, response: Response, ack_ns: int) -> None:
        now = TcpInfo.of(connection.socket)
        report({
            "event": "response", "connection": connection.number,
            "client_port": connection.peer[1], "path": response.path,
            "number_on_connection": connection.responses,
            "initial_window": connection.at_accept.congestion_window,
            "mss": connection.at_accept.mss,
            "request_bytes": response.request_bytes, "header_bytes": response.header_bytes,
            "body_bytes": response.body_bytes, "sha256": response.sha256,
            "latency_ms": (ack_ns - response.start_ns) / 1e6,
            "min_rtt_ms": now.min_rtt_us / 1000, "retransmissions": now.retransmissions,
            "final_window": now.congestion_window})

    def _close(self, connection: Connection, error: str = "") -> None:
        self.selector.unregister(connection.socket)
        connection.socket.close()
        report({"event": "closed", "connection": connection.number,
                "client_port": connection.peer[1], "error": error,
                "unacknowledged": len(connection.unacknowledged)})

    def _watch(self, connection: Connection, events: int) -> None:
        self.selector.modify(connection.socket, events, connection)


class BadRequest(Exception):
    """The client sent what is not a request that this server answers."""


def parse_request(head: bytes) -> tuple[str, str, bool]:
    """(method, path, whether to close after it) of an HTTP/1.1 request head."""
    lines = head.decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or words[0] not in ("GET", "HEAD") or not words[2].startswith("HTTP/1."):
        raise BadRequest(f"not a request: {lines[0][:80]!r}")
    headers = {name.strip().lower(): value.strip().lower()
               for name, _, value in (line.partition(":") for line in lines[1:])}
    keep = "close" if words[2] == "HTTP/1.0" else "keep-alive"
    return words[0], words[1], headers.get("connection", keep) == "close"


@dataclass(frozen=True)
class Wanted:
    """What a path asks for: all at once, or a burst first and the rest after a gap."""

    body_bytes: int
    burst_bytes: int
    gap_ms: float


def parse_path(path: str) -> Wanted | None:
    """What a path asks for, None where it is not a number in range."""
    parts = urlsplit(path)
    name = parts.path.lstrip("/")
    query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    try:
        wanted = Wanted(int(name), int(query.get("burst", 0)), float(query.get("gap_ms", 0)))
    except ValueError:
        return None
    in_range = 0 <= wanted.body_bytes <= MAX_BODY_BYTES and wanted.burst_bytes >= 0
    return wanted if in_range and 0 <= wanted.gap_ms < float("inf") else None


def make_body(size: int) -> bytes:
    """A body of `size` bytes, the same for the same size."""
    return (BLOCK * (size // len(BLOCK) + 1))[:size]


def acknowledgement(control: list[tuple[int, int, bytes]]) -> tuple[int, int | None]:
    """(time ns, offset of the byte) from an error-queue message, offset None for others."""
    stamp_ns, offset = 0, None
    for level, kind, data in control:
        if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPING:
            seconds, nanoseconds = struct.unpack_from("=qq", data)
            stamp_ns = seconds * 1_000_000_000 + nanoseconds
        elif level == socket.IPPROTO_IP and kind == _IP_RECVERR:
            _, origin, _, _, _, info, key = struct.unpack_from("=IBBBBII", data)
            if origin == _SO_EE_ORIGIN_TIMESTAMPING and info == _SCM_TSTAMP_ACK:
                offset = key
    return stamp_ns, offset


def report(line: dict[str, Any]) -> None:
    """One JSON line to standard output, at once."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--port", type=int, default=80, help="TCP port (default 80)")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        Server(arguments.port).serve()
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        print(f"server.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
