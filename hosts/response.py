"""A response of server.py's: its bytes, and when how much of it may leave."""

from __future__ import annotations

import hashlib
import time
from collections import deque
from dataclasses import dataclass, replace
from itertools import accumulate

from hosts.request import Wanted
from hosts.serving import body_of

FILLER = b"X-Filler: %s\r\n"


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
    cuts: tuple[int, ...] = ()  # bytes in all after each write of the headers by themselves
    started_ns: int = 0  # monotonic
    sent: int = 0

    @property
    def pending(self) -> memoryview:
        """What the next write has."""
        end = next((cut for cut in self.cuts if cut > self.sent), self.released)
        return self.payload[self.sent:min(end, self.released)]


def respond(request: tuple[str, str, bool], wanted: Wanted | None, request_bytes: int,
            offset: int) -> Response:
    """The response to a request, starting now.

    request: as hosts.request.parse_request has it; wanted: what its path asks
    for, None where there is no such thing; offset: of the response's first byte
    on its connection.
    """
    method, path, close = request
    wanted = wanted if wanted is None or can_head(wanted, close) else None
    body = body_of(wanted.body_bytes) if wanted else b""
    close = close or wanted is not None and wanted.until_close
    headers = head_of(wanted, close) if wanted else head(b"404 Not Found", 0, close)
    payload = memoryview(headers + (b"" if method == "HEAD" else body))
    writes = write_times(wanted, len(headers), len(payload)) if wanted \
        else deque([(0.0, len(payload))])
    _, at_once = writes.popleft()
    return Response(path, request_bytes, len(headers), len(body),
                    hashlib.sha256(body).hexdigest(), time.time_ns(), payload, at_once,
                    writes, offset + len(payload) - 1, close,
                    tuple(accumulate(wanted.head)) if wanted else ())


def head(status: bytes, body_bytes: int | None, close: bool) -> bytes:
    """The headers of a response; body_bytes: None for no Content-Length."""
    length = b"" if body_bytes is None else b"Content-Length: %d\r\n" % body_bytes
    return b"HTTP/1.1 %s\r\n%s%s\r\n" % (status, length,
                                         b"Connection: close\r\n" if close else b"")


def head_of(wanted: Wanted, close: bool) -> bytes:
    """The headers of what is there, filled up to as many bytes as are asked for."""
    plain = head(b"200 OK", None if wanted.until_close else wanted.body_bytes, close)
    room = sum(wanted.head) - len(plain) if wanted.head else 0
    return plain[:-2] + FILLER % (b"-" * (room - len(FILLER % b""))) + b"\r\n" if room else plain


def can_head(wanted: Wanted, close: bool) -> bool:
    """Whether headers of the size that is asked for can be made."""
    room = sum(wanted.head) - len(head_of(replace(wanted, head=()), close))
    return not wanted.head or room == 0 or room >= len(FILLER % b"")


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
