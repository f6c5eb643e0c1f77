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
    """A requested response.

    burst_bytes, gap_ms: the first bytes of the body, and the time until the rest. writes: (ms after
    the start, bytes of the body) of every write except the last, in order of time; the last write
    has the rest. head: bytes of each write of the headers, which are as long as all of these
    together; () for headers that leave with the body. until_close: whether the body ends with the
    connection, without Content-Length. send_buffer_bytes: SO_SNDBUF, 0 for the default. think_ms:
    time before anything leaves.
    """

    body_bytes: int
    burst_bytes: int
    gap_ms: float
    writes: tuple[tuple[float, int], ...] = ()
    trace_ms: float = 0.0
    nagle: bool = False
    head: tuple[int, ...] = ()
    until_close: bool = False
    send_buffer_bytes: int = 0
    think_ms: float = 0.0


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
    """The headers of a request, by name in small letters. lines: of its head."""
    return {name.strip().lower(): value.strip().lower()
            for name, _, value in (line.partition(":") for line in lines[1:])}


def parse_path(path: str) -> PathSpec | None:
    """The response that a path requests; None if the path is not valid."""
    parts = urlsplit(path)
    name = parts.path.lstrip("/")
    query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    try:
        spec = PathSpec(int(name), int(query.get("burst", 0)), float(query.get("gap_ms", 0)),
                        parse_writes(query.get("at", "")), float(query.get("trace_ms", 0)),
                        query.get("nagle") == "1", parse_head(query.get("head", "")),
                        query.get("until_close") == "1", int(query.get("sndbuf", 0)),
                        float(query.get("think_ms", 0)))
    except ValueError:
        return None
    in_range = (0 <= spec.body_bytes <= MAX_BODY_BYTES and spec.burst_bytes >= 0
                and 0 <= spec.send_buffer_bytes <= MAX_BODY_BYTES)
    finite = (0 <= number < float("inf") for number in (spec.gap_ms, spec.trace_ms,
                                                            spec.think_ms))
    return spec if in_range and all(finite) else None


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
        if not (0 <= start_ms <= end_ms < float("inf") and step_ms > 0 and size_bytes > 0):
            raise ValueError(item)
        count = max(math.ceil((end_ms - start_ms) / step_ms - 1e-9), 1)
        if len(writes) + count > MAX_WRITES or (writes and start_ms < writes[-1][0]):
            raise ValueError(item)
        writes += [(start_ms + number * step_ms, size_bytes) for number in range(count)]
    return tuple(writes)


# Responses ---------------------------------------------------------------------------

@dataclass
class RequestBody:
    """A request whose body is being received. head: of the request. left: bytes still to come."""

    head: bytes
    left: int
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
    """Bytes that are being sent.

    released: how many may leave now. writes: when more may leave: (ms after the start, bytes in
    all). cuts: where separate writes end, in bytes from the beginning; after the last one, a write
    has as many bytes as may leave. started_ns: monotonic.
    """

    payload: memoryview
    released: int
    writes: deque[tuple[float, int]] = field(default_factory=deque)
    cuts: deque[int] = field(default_factory=deque)
    close: bool = False
    started_ns: int = 0
    sent: int = 0

    @property
    def pending(self) -> memoryview:
        """The bytes of the next write."""
        while self.cuts and self.cuts[0] <= self.sent:
            self.cuts.popleft()
        end = min(self.cuts[0], self.released) if self.cuts else self.released
        return self.payload[self.sent:end]


@dataclass(kw_only=True)
class Response(Sending):
    """A response that is being sent.

    end_offset: of its last byte, as SOF_TIMESTAMPING_OPT_ID counts. start_ns: when its first byte
    left, since the epoch; 0 before that. records: over TLS the bytes of each write. body: of the
    request.
    """

    path: str
    request_bytes: int
    header_bytes: int
    body_bytes: int
    sha256: str
    end_offset: int
    start_ns: int = 0
    records: tuple[int, ...] = ()
    body: RequestBody | None = None

    @property
    def offset(self) -> int:
        """The offset of its first byte, counted as end_offset."""
        return self.end_offset + 1 - len(self.payload)


# Encrypts a text: its bytes on the wire, and the length of each write.
Seal = Callable[[memoryview], tuple[bytes, tuple[int, ...]]]


def message(payload: bytes, writes: Iterable[int]) -> Sending:
    """A payload to send at once, in these writes."""
    return Sending(payload=memoryview(payload), released=len(payload),
                   cuts=deque(accumulate(writes)))


def respond(request: tuple[str, str, bool], spec: PathSpec | None, request_bytes: int,
            offset: int, seal: Seal | None = None) -> Response:
    """The response to a request, starting now.

    request: from parse_request. spec: from parse_path; None for status 404. offset: of the
    response's first byte on its connection. seal: encrypts it, None for plain HTTP.
    """
    method, path, close = request
    spec = spec if spec is None or can_head(spec, close) else None
    body = body_of(spec.body_bytes) if spec else b""
    close = close or spec is not None and spec.until_close
    headers = head_of(spec, close) if spec else head(b"404 Not Found", 0, close)
    payload = memoryview(headers + (b"" if method == "HEAD" else body))
    writes = after_thinking(spec.think_ms, write_times(spec, len(headers), len(payload))) if spec \
        else deque([(0.0, len(payload))])
    cuts = deque(accumulate(spec.head)) if spec else deque()
    records: tuple[int, ...] = ()
    if seal is not None:
        payload, writes, records = sealed(payload, writes, seal)
        cuts = deque(accumulate(records))
    _, at_once = writes.popleft()
    return Response(path=path, request_bytes=request_bytes, header_bytes=len(headers),
                    body_bytes=len(body), sha256=hashlib.sha256(body).hexdigest(),
                    payload=payload, released=at_once, writes=writes,
                    cuts=cuts, records=records, end_offset=offset + len(payload) - 1, close=close)


def sealed(text: memoryview, writes: deque[tuple[float, int]], seal: Seal
           ) -> tuple[memoryview, deque[tuple[float, int]], tuple[int, ...]]:
    """The encrypted payload, when how much of it may leave, and the bytes of each record."""
    payload, upto = b"", 0
    times: deque[tuple[float, int]] = deque()
    records: list[int] = []
    for due_ms, end in writes:
        if end == upto:  # no new bytes, so no record
            times.append((due_ms, len(payload)))
            continue
        part, sizes = seal(text[upto:end])
        records += sizes
        payload, upto = payload + part, end
        times.append((due_ms, len(payload)))
    return memoryview(payload), times, tuple(records)


def head(status: bytes, body_bytes: int | None, close: bool) -> bytes:
    """The headers of a response. body_bytes: None for no Content-Length."""
    length = b"" if body_bytes is None else b"Content-Length: %d\r\n" % body_bytes
    return b"HTTP/1.1 %s\r\n%s%s\r\n" % (status, length,
                                         b"Connection: close\r\n" if close else b"")


def head_of(spec: PathSpec, close: bool) -> bytes:
    """The headers of a response with status 200, padded to the requested length."""
    plain = head(b"200 OK", None if spec.until_close else spec.body_bytes, close)
    room = sum(spec.head) - len(plain) if spec.head else 0
    return plain[:-2] + FILLER % (b"-" * (room - len(FILLER % b""))) + b"\r\n" if room else plain


def can_head(spec: PathSpec, close: bool) -> bool:
    """Whether headers of the requested length can be made."""
    room = sum(spec.head) - len(head_of(replace(spec, head=()), close))
    return not spec.head or room == 0 or room >= len(FILLER % b"")


def after_thinking(think_ms: float, writes: deque[tuple[float, int]]) -> deque[tuple[float, int]]:
    """The writes delayed by think_ms; nothing leaves before."""
    if not think_ms:
        return writes
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
