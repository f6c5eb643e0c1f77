"""Requests to server.py and their responses: the bytes, and when how many of them may leave.

The docstring of testbed/hosts/http_server.py describes the paths.
"""

from __future__ import annotations

import hashlib
import math
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any
from urllib.parse import parse_qs, urlsplit

from firstflight.testbed.hosts.serving import body_of

MAX_BODY_BYTES, MOST_DIGITS = 1 << 30, 10
MAX_WRITES = 100_000  # of one response
MAX_HEAD_WRITES, MAX_HEAD_BYTES = 100, 16384
METHODS = ("GET", "HEAD", "POST")
FILLER = b"X-Filler: %s\r\n"


class BadRequest(Exception):
    """The client sent something that this server does not answer."""


@dataclass(frozen=True)
class PathSpec:
    """A requested response."""

    body_bytes: int
    burst_bytes: int  # of the body, which leave with the headers
    gap_ms: float  # until the rest of the body leaves
    # (ms after the start, bytes of the body) of every write except the last, in order of time; the
    # last write has the rest.
    writes: tuple[tuple[float, int], ...] = ()
    trace_ms: float = 0.0  # interval of the connection's samples, 0 for none
    nagle: bool = False
    # Bytes of each write of the headers, which are as long as all of these together; () for headers
    # that leave with the body.
    head: tuple[int, ...] = ()
    until_close: bool = False  # whether the body ends with the connection, without Content-Length
    send_buffer_bytes: int = 0  # SO_SNDBUF, 0 for the default
    think_ms: float = 0.0  # before anything leaves


def parse_request(head: bytes) -> tuple[str, str, bool]:
    """(method, path, whether to close afterwards) of an HTTP/1.1 request. Raises BadRequest."""
    lines = head.decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or words[0] not in METHODS or not words[2].startswith("HTTP/1."):
        raise BadRequest(f"not a request: {lines[0][:80]!r}")
    headers = _headers(lines)
    keep = "close" if words[2] == "HTTP/1.0" else "keep-alive"
    return words[0], words[1], headers.get("connection", keep) == "close"


def body_length(head: bytes) -> int:
    """Bytes of the body that follows the head of a request. Raises BadRequest."""
    headers = _headers(head.decode("latin-1").split("\r\n"))
    length = headers.get("content-length", "0")
    if "transfer-encoding" in headers:
        raise BadRequest("a body in chunks, without Content-Length")
    if not (length.isascii() and length.isdecimal() and len(length) <= MOST_DIGITS
            and int(length) <= MAX_BODY_BYTES):
        raise BadRequest(f"Content-Length: {length[:80]!r}")
    return int(length)


def _headers(lines: list[str]) -> dict[str, str]:
    """The headers of a request, by name, all in small letters. lines: of its head."""
    headers = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip().lower()
    return headers


def parse_path(path: str) -> PathSpec | None:
    """The response that a path requests; None if the path is not valid."""
    parts = urlsplit(path)
    name = parts.path.lstrip("/")
    query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    try:
        spec = PathSpec(
            body_bytes=int(name),
            burst_bytes=int(query.get("burst", 0)), gap_ms=float(query.get("gap_ms", 0)),
            writes=parse_writes(query.get("at", "")), head=parse_head(query.get("head", "")),
            trace_ms=float(query.get("trace_ms", 0)), think_ms=float(query.get("think_ms", 0)),
            nagle=query.get("nagle") == "1", until_close=query.get("until_close") == "1",
            send_buffer_bytes=int(query.get("sndbuf", 0)))
    except ValueError:
        return None

    times_ms = spec.gap_ms, spec.trace_ms, spec.think_ms
    in_range = (0 <= spec.body_bytes <= MAX_BODY_BYTES and spec.burst_bytes >= 0
                and 0 <= spec.send_buffer_bytes <= MAX_BODY_BYTES
                and all(0 <= time_ms < math.inf for time_ms in times_ms))
    return spec if in_range else None


def parse_head(text: str) -> tuple[int, ...]:
    """The sizes of `head=17,38,2`. Raises ValueError."""
    sizes = tuple(int(size) for size in filter(None, text.split(",")))
    if len(sizes) > MAX_HEAD_WRITES or any(not 0 < size <= MAX_HEAD_BYTES for size in sizes):
        raise ValueError(text)
    return sizes


def parse_writes(text: str) -> tuple[tuple[float, int], ...]:
    """The writes of `at=…`, in order of time. Raises ValueError."""
    writes: list[tuple[float, int]] = []
    for item in filter(None, text.split(";")):
        when, _, size = item.partition(":")
        times, _, every = when.partition("/")
        first, _, last = times.partition("..")
        start_ms, size_bytes = float(first), int(size)
        end_ms, step_ms = (float(last), float(every)) if last else (start_ms, 1.0)
        if not (0 <= start_ms <= end_ms < math.inf and step_ms > 0 and size_bytes > 0):
            raise ValueError(item)

        count = max(math.ceil((end_ms - start_ms) / step_ms - 1e-9), 1)
        if len(writes) + count > MAX_WRITES or (writes and start_ms < writes[-1][0]):
            raise ValueError(item)
        writes += [(start_ms + number * step_ms, size_bytes) for number in range(count)]
    return tuple(writes)


# Responses ---------------------------------------------------------------------------

@dataclass
class RequestBody:
    """A request whose body is being received."""

    head: bytes  # of the request
    left: int  # bytes still to come
    received_bytes: int = 0
    digest: Any = field(default_factory=hashlib.sha256)

    def take(self, data: bytes) -> bytes:
        """Take what belongs to the body; return what follows it."""
        part, rest = data[:self.left], data[self.left:]
        self.digest.update(part)
        self.left -= len(part)
        self.received_bytes += len(part)
        return rest


@dataclass(kw_only=True)
class Sending:
    """Bytes that are being sent."""

    payload: memoryview
    released: int  # how many bytes may leave now
    # When more may leave: (ms after the start, bytes in all).
    writes: deque[tuple[float, int]] = field(default_factory=deque)
    # Where separate writes end, in bytes from the beginning; after the last one, a write has as
    # many bytes as may leave.
    cuts: deque[int] = field(default_factory=deque)
    close: bool = False  # whether the connection ends after it
    started_ns: int = 0  # monotonic
    sent: int = 0  # bytes

    @property
    def pending(self) -> memoryview:
        """The bytes of the next write."""
        while self.cuts and self.cuts[0] <= self.sent:
            self.cuts.popleft()
        end = min(self.cuts[0], self.released) if self.cuts else self.released
        return self.payload[self.sent:end]


@dataclass(kw_only=True)
class Response(Sending):
    """A response that is being sent."""

    path: str
    request_bytes: int  # of the request's head
    header_bytes: int
    body_bytes: int
    sha256: str  # of the body
    end_offset: int  # of its last byte, as SOF_TIMESTAMPING_OPT_ID counts
    start_ns: int = 0  # when its first byte left, since the epoch; 0 before that
    records: tuple[int, ...] = ()  # over TLS the bytes of each write
    request_body: RequestBody | None = None

    @property
    def offset(self) -> int:
        """The offset of its first byte, counted as end_offset."""
        return self.end_offset + 1 - len(self.payload)


# Encrypts a text; returns its bytes on the wire, and the length of each write.
Encrypt = Callable[[memoryview], tuple[bytes, tuple[int, ...]]]


def message(payload: bytes, writes: Iterable[int]) -> Sending:
    """A payload to send at once, in these writes."""
    return Sending(payload=memoryview(payload), released=len(payload),
                   cuts=deque(accumulate(writes)))


def respond(request: tuple[str, str, bool], spec: PathSpec | None, request_bytes: int,
            offset: int, encrypt: Encrypt | None = None) -> Response:
    """The response to a request, starting now.

    request: from parse_request. spec: from parse_path; None for status 404. offset: of the
    response's first byte on its connection. encrypt: None for plain HTTP.
    """
    method, path, close = request
    if spec is None or not can_head(spec, close):
        body, headers = b"", head(b"404 Not Found", 0, close)
        payload = memoryview(headers)
        writes, cuts = deque([(0.0, len(payload))]), deque[int]()
    else:
        close = close or spec.until_close
        body, headers = body_of(spec.body_bytes), head_of(spec, close)
        payload = memoryview(headers if method == "HEAD" else headers + body)
        writes = write_times(spec, len(headers), len(payload))
        if spec.think_ms:
            writes = after_thinking(spec.think_ms, writes)
        cuts = deque(accumulate(spec.head))

    records: tuple[int, ...] = ()
    if encrypt is not None:
        payload, writes, records = encrypt_writes(payload, writes, encrypt)
        cuts = deque(accumulate(records))
    _, at_once = writes.popleft()
    return Response(path=path, request_bytes=request_bytes, header_bytes=len(headers),
                    body_bytes=len(body), sha256=hashlib.sha256(body).hexdigest(),
                    payload=payload, released=at_once, writes=writes,
                    cuts=cuts, records=records, end_offset=offset + len(payload) - 1, close=close)


def encrypt_writes(text: memoryview, writes: deque[tuple[float, int]], encrypt: Encrypt
                   ) -> tuple[memoryview, deque[tuple[float, int]], tuple[int, ...]]:
    """The encrypted payload, when how much of it may leave, and the bytes of each record."""
    payload, encrypted_upto = b"", 0
    times: deque[tuple[float, int]] = deque()
    records: list[int] = []
    for due_ms, end in writes:
        if end > encrypted_upto:  # else no new bytes, so no record
            part, sizes = encrypt(text[encrypted_upto:end])
            records += sizes
            payload, encrypted_upto = payload + part, end
        times.append((due_ms, len(payload)))
    return memoryview(payload), times, tuple(records)


def head(status: bytes, body_bytes: int | None, close: bool) -> bytes:
    """The headers of a response. body_bytes: None for no Content-Length."""
    length = b"" if body_bytes is None else b"Content-Length: %d\r\n" % body_bytes
    connection = b"Connection: close\r\n" if close else b""
    return b"HTTP/1.1 %s\r\n%s%s\r\n" % (status, length, connection)


def head_of(spec: PathSpec, close: bool) -> bytes:
    """The headers of a response with status 200, padded to the requested length."""
    plain = head(b"200 OK", None if spec.until_close else spec.body_bytes, close)
    room = sum(spec.head) - len(plain) if spec.head else 0
    if not room:
        return plain
    filler = FILLER % (b"-" * (room - len(FILLER % b"")))
    return plain[:-2] + filler + b"\r\n"


def can_head(spec: PathSpec, close: bool) -> bool:
    """Whether headers of the requested length can be made."""
    room = sum(spec.head) - len(head_of(replace(spec, head=()), close))
    return not spec.head or room == 0 or room >= len(FILLER % b"")


def after_thinking(think_ms: float, writes: deque[tuple[float, int]]) -> deque[tuple[float, int]]:
    """The writes delayed by think_ms; nothing leaves before."""
    return deque([(0.0, 0), *((due_ms + think_ms, end) for due_ms, end in writes)])


def write_times(spec: PathSpec, header_bytes: int, total_bytes: int) -> deque[tuple[float, int]]:
    """When how much of a response may leave: (ms after the start, bytes in all)."""
    if not spec.writes:
        if spec.gap_ms <= 0 or header_bytes + spec.burst_bytes >= total_bytes:
            return deque([(0.0, total_bytes)])
        return deque([(0.0, header_bytes + spec.burst_bytes), (spec.gap_ms, total_bytes)])

    times: deque[tuple[float, int]] = deque()
    released = header_bytes
    if spec.writes[0][0] > 0:
        times.append((0.0, released))
    for due_ms, size in spec.writes:
        released = min(released + size, total_bytes)
        times.append((due_ms, released))
    times.append((times.pop()[0], total_bytes))
    return times
