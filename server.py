#!/usr/bin/env python3
"""The HTTP server that runs on the server host.

Serves bodies of any size, made on the fly, and writes one JSON line to its
standard output for every response, with what TCP knew about it:

    GET /<bytes>                         a body of that many bytes
    GET /<bytes>?burst=<n>&gap_ms=<ms>   headers and the first n bytes at once,
                                         the rest when the back-end has answered
    GET /<bytes>?at=<ms>:<n>;…           headers at once, n bytes of the body at
                                         each time; <from>..<to>/<every>:<n> for
                                         a train of them; the rest at the end
    … &trace_ms=<ms>                     TCP_INFO of the connection from here on,
                                         at that interval while data is under
                                         way and after every write; told when
                                         the connection ends
    … &nagle=1                           with Nagle's algorithm

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
import math
import select
import selectors
import signal
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

LISTEN_BACKLOG = 4096
MAX_REQUEST_BYTES = 16384
MAX_BODY_BYTES = 1 << 30
LONG_WAIT_S = 0.005
MAX_WRITES = 100_000  # of one response
# A traced connection's bursts shall be limited by TCP's windows, never by its send buffer.
TRACE_SEND_BUFFER_BYTES = 8 << 20
# The body is this block over and over: enough to show a byte lost or doubled.
BLOCK = hashlib.sha256(b"First Flight").hexdigest().encode() * 1024

_SO_SNDBUFFORCE = 32
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


# What a sample holds, in this order; lab.trace.window reads it. Times in
# microseconds but for the first; windows and counts in segments.
SAMPLE_FIELDS = ("time_ns", "state", "cwnd", "ssthresh", "unacked", "sacked", "lost", "retransmitted",
                 "rtt_us", "rto_us", "total_retransmissions", "app_limited", "notsent_bytes",
                 "mss", "send_window_bytes")


def sample(connection: socket.socket) -> tuple[int, ...]:
    """What TCP knows of a connection now, as SAMPLE_FIELDS.

    state: of congestion control, TCP_CA_Open (0) … TCP_CA_Loss (4).
    """
    raw = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    words = struct.unpack_from("=24I", raw, 8)
    (notsent_bytes,) = struct.unpack_from("=I", raw, 144)
    # Kernels before 5.4 do not tell the peer's window.
    window_bytes = struct.unpack_from("=I", raw, 228)[0] if len(raw) >= 232 else 0
    return (time.time_ns(), raw[1], words[18], words[17], words[4], words[5], words[6], words[7],
            words[15], words[0], words[23], raw[7] & 1, notsent_bytes, words[2], window_bytes)


@dataclass
class Trace:
    """The samples of one connection, a new one only where something has changed."""

    interval_s: float
    samples: list[tuple[int, ...]] = field(default_factory=list)
    due: bool = False  # whether the next sample is in the queue of what is due

    def take(self, connection: socket.socket) -> bool:
        """Take a sample; return whether anything is under way or waiting."""
        seen = sample(connection)
        if not self.samples or seen[1:] != self.samples[-1][1:]:
            self.samples.append(seen)
        return bool(seen[4] or seen[12])


@dataclass
class Response:
    """One response on its way."""

    path: str
    request_bytes: int
    header_bytes: int
    body_bytes: int
    sha256: str
    start_ns: int
    payload: memoryview
    released: int  # bytes of it that may leave
    writes: deque[tuple[float, int]]  # then more may: (ms after the start, bytes in all)
    end_offset: int  # of its last byte, counted as SOF_TIMESTAMPING_OPT_ID does
    close: bool
    started: float = 0.0  # monotonic, s
    sent: int = 0


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
    trace: Trace | None = None


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
        # What is to be done when: (monotonic time in s, in which order, connection, what).
        self.due: list[tuple[float, int, Connection, Callable[[Connection], None]]] = []
        self.tasks = 0

    def serve(self) -> None:
        report({"event": "listening"})
        while True:
            for key, events in self._wait():
                if key.data is None:
                    self._accept()
                else:
                    self._service(key.data, events)
            while self.due and self.due[0][0] <= time.monotonic():
                _, _, connection, act = heapq.heappop(self.due)
                if connection.socket.fileno() >= 0:  # else the client has left meanwhile
                    act(connection)

    def _wait(self) -> list[tuple[selectors.SelectorKey, int]]:
        """What has happened, at the latest when something is due.

        epoll waits whole milliseconds; select() on the epoll itself waits as
        long as it is told, and up to a thousandth of it longer
        (select_estimate_accuracy in fs/select.c): long waits are made in
        steps, the last of which is short.
        """
        if not self.due:
            return self.selector.select(None)
        wait_s = max(0.0, self.due[0][0] - time.monotonic())
        if wait_s > LONG_WAIT_S:
            wait_s *= 0.99
        select.select([self.selector], [], [], wait_s)
        return self.selector.select(0)

    def _at(self, due: float, connection: Connection, act: Callable[[Connection], None]) -> None:
        self.tasks += 1
        heapq.heappush(self.due, (due, self.tasks, connection, act))

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
        """More of the response may leave."""
        response = connection.sending
        if response is None:
            return
        _, response.released = response.writes.popleft()
        self._schedule(connection, response)
        self._service(connection, selectors.EVENT_WRITE)

    def _schedule(self, connection: Connection, response: Response) -> None:
        if response.writes:
            self._at(response.started + response.writes[0][0] / 1000, connection, self._continue)

    def _sample(self, connection: Connection) -> None:
        """A sample that was due, or one after a write; the next follows while data is under way."""
        trace = connection.trace
        if trace is None:
            return
        if trace.take(connection.socket) and not trace.due:
            trace.due = True
            self._at(time.monotonic() + trace.interval_s, connection, self._sample_again)

    def _sample_again(self, connection: Connection) -> None:
        assert connection.trace is not None
        connection.trace.due = False
        self._sample(connection)

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
        started = time.monotonic()
        response = connection.sending = self._respond(connection, head)
        connection.unacknowledged.append(response)
        response.started = started
        self._schedule(connection, response)
        self._send(connection)

    def _respond(self, connection: Connection, head: bytes) -> Response:
        method, path, close = parse_request(head)
        wanted = parse_path(path)
        body = make_body(wanted.body_bytes) if wanted else b""
        headers = (f"HTTP/1.1 {'200 OK' if wanted else '404 Not Found'}\r\n"
                   f"Content-Length: {len(body)}\r\n"
                   + ("Connection: close\r\n" if close else "") + "\r\n").encode()
        payload = memoryview(headers + (b"" if method == "HEAD" else body))
        writes = write_times(wanted, len(headers), len(payload)) if wanted \
            else deque([(0.0, len(payload))])
        _, at_once = writes.popleft()
        if wanted:
            connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, not wanted.nagle)
        if wanted and wanted.trace_ms and connection.trace is None:
            connection.socket.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE,
                                         TRACE_SEND_BUFFER_BYTES)
            connection.trace = Trace(wanted.trace_ms / 1000)
        connection.responses += 1
        return Response(path, len(head) + 4, len(headers), len(body),
                        hashlib.sha256(body).hexdigest(), time.time_ns(), payload, at_once,
                        writes, connection.sent_bytes + len(payload) - 1, close)

    def _send(self, connection: Connection) -> None:
        response = connection.sending
        if response is None:
            return
        want_stamp = [(socket.SOL_SOCKET, _SO_TIMESTAMPING, struct.pack("=I", _SOF_TX_ACK))]
        if connection.trace:
            connection.trace.take(connection.socket)
        while response.sent < response.released:
            pending = response.payload[response.sent:response.released]
            try:
                sent = connection.socket.sendmsg([pending], want_stamp)
            except BlockingIOError:
                self._watch(connection, selectors.EVENT_READ | selectors.EVENT_WRITE)
                return
            connection.sent_bytes += sent
            response.sent += sent
        self._sample(connection)
        self._watch(connection, selectors.EVENT_READ)
        if response.writes:
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
        if connection.trace:
            connection.trace.take(connection.socket)
            report({"event": "trace", "connection": connection.number,
                    "client_port": connection.peer[1], "fields": SAMPLE_FIELDS,
                    "samples": connection.trace.samples})
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
    """What a path asks for.

    writes: (ms after the start, bytes of the body) of every write but the
    last, in order of time; the last one is the rest, at once with the headers
    if there is no other, else after gap_ms.
    """

    body_bytes: int
    burst_bytes: int
    gap_ms: float
    writes: tuple[tuple[float, int], ...] = ()
    trace_ms: float = 0.0
    nagle: bool = False


def write_times(wanted: Wanted, header_bytes: int, total_bytes: int) -> deque[tuple[float, int]]:
    """When how much of a response may have left: (ms after the start, bytes in all)."""
    if not wanted.writes:
        if wanted.gap_ms <= 0 or header_bytes + wanted.burst_bytes >= total_bytes:
            return deque([(0.0, total_bytes)])
        return deque([(0.0, header_bytes + wanted.burst_bytes), (wanted.gap_ms, total_bytes)])
    times: deque[tuple[float, int]] = deque()
    released = header_bytes
    if wanted.writes[0][0] > 0:
        times.append((0.0, released))
    for due_ms, size in wanted.writes:
        released = min(released + size, total_bytes)
        times.append((due_ms, released))
    times.append((times.pop()[0], total_bytes))
    return times


def parse_path(path: str) -> Wanted | None:
    """What a path asks for, None where it is not a number in range."""
    parts = urlsplit(path)
    name = parts.path.lstrip("/")
    query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    try:
        wanted = Wanted(int(name), int(query.get("burst", 0)), float(query.get("gap_ms", 0)),
                        parse_writes(query.get("at", "")), float(query.get("trace_ms", 0)),
                        query.get("nagle") == "1")
    except ValueError:
        return None
    in_range = 0 <= wanted.body_bytes <= MAX_BODY_BYTES and wanted.burst_bytes >= 0
    finite = (0 <= number < float("inf") for number in (wanted.gap_ms, wanted.trace_ms))
    return wanted if in_range and all(finite) else None


def parse_writes(text: str) -> tuple[tuple[float, int], ...]:
    """The writes of `at=…`, in order of time. Raises ValueError."""
    writes: list[tuple[float, int]] = []
    for item in filter(None, text.split(";")):
        when, _, size = item.partition(":")
        times, _, every = when.partition("/")
        first, _, last = times.partition("..")
        start_ms, size_bytes = float(first), int(size)
        end_ms, step_ms = (float(last), float(every)) if last else (start_ms, 1.0)
        if not (0 <= start_ms <= end_ms < float("inf") and step_ms > 0 and size_bytes > 0):
            raise ValueError(item)
        count = max(math.ceil((end_ms - start_ms) / step_ms - 1e-9), 1)
        if len(writes) + count > MAX_WRITES or (writes and start_ms < writes[-1][0]):
            raise ValueError(item)
        writes += [(start_ms + number * step_ms, size_bytes) for number in range(count)]
    return tuple(writes)


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
