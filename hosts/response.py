"""A response of server.py's: its bytes, and when how much of it may leave."""

from __future__ import annotations

import hashlib
import time
from collections import deque
from dataclasses import dataclass

from hosts.request import Wanted
from hosts.serving import body_of


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


def respond(request: tuple[str, str, bool], wanted: Wanted | None, request_bytes: int,
            offset: int) -> Response:
    """The response to a request, starting now.

    request: as hosts.request.parse_request has it; wanted: what its path asks
    for, None where there is no such thing; offset: of the response's first byte
    on its connection.
    """
    method, path, close = request
    body = body_of(wanted.body_bytes) if wanted else b""
    headers = (f"HTTP/1.1 {'200 OK' if wanted else '404 Not Found'}\r\n"
               f"Content-Length: {len(body)}\r\n"
               + ("Connection: close\r\n" if close else "") + "\r\n").encode()
    payload = memoryview(headers + (b"" if method == "HEAD" else body))
    writes = write_times(wanted, len(headers), len(payload)) if wanted \
        else deque([(0.0, len(payload))])
    _, at_once = writes.popleft()
    return Response(path, request_bytes, len(headers), len(body),
                    hashlib.sha256(body).hexdigest(), time.time_ns(), payload, at_once,
                    writes, offset + len(payload) - 1, close)


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
