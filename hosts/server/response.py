"""A response of server.py's: its bytes, and when how much of it may leave."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import accumulate

from hosts.server.request import Wanted
from hosts.serving import body_of

FILLER = b"X-Filler: %s\r\n"


@dataclass(kw_only=True)
class Sending:
    """Bytes on their way.

    released: how many may leave; writes: when more may, (ms after the start,
    bytes in all). cuts: bytes in all after each write by itself; what is behind
    the last cut leaves with as many bytes as may. started_ns: monotonic.
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
        """What the next write has."""
        while self.cuts and self.cuts[0] <= self.sent:
            self.cuts.popleft()
        end = min(self.cuts[0], self.released) if self.cuts else self.released
        return self.payload[self.sent:end]


@dataclass(kw_only=True)
class Response(Sending):
    """One response on its way.

    end_offset: of its last byte, counted as SOF_TIMESTAMPING_OPT_ID does.
    start_ns: since the epoch, when its first byte left; 0 while none has.
    records: the writes of one that is sealed, bytes each.
    """

    path: str
    request_bytes: int
    header_bytes: int
    body_bytes: int
    sha256: str
    end_offset: int
    start_ns: int = 0
    records: tuple[int, ...] = ()

    @property
    def offset(self) -> int:
        """Of its first byte, counted as end_offset."""
        return self.end_offset + 1 - len(self.payload)


# A text as it goes on the wire, and how long each write of it is.
Seal = Callable[[memoryview], tuple[bytes, tuple[int, ...]]]


def message(payload: bytes, writes: Iterable[int]) -> Sending:
    """What is to be sent in so many writes, at once."""
    return Sending(payload=memoryview(payload), released=len(payload),
                   cuts=deque(accumulate(writes)))


def respond(request: tuple[str, str, bool], wanted: Wanted | None, request_bytes: int,
            offset: int, seal: Seal | None = None) -> Response:
    """The response to a request, starting now.

    request: as hosts.server.request.parse_request has it; wanted: what its path asks
    for, None where there is no such thing; offset: of the response's first byte
    on its connection; seal: what makes the bytes on the wire of it, None where
    they are its own.
    """
    method, path, close = request
    wanted = wanted if wanted is None or can_head(wanted, close) else None
    body = body_of(wanted.body_bytes) if wanted else b""
    close = close or wanted is not None and wanted.until_close
    headers = head_of(wanted, close) if wanted else head(b"404 Not Found", 0, close)
    payload = memoryview(headers + (b"" if method == "HEAD" else body))
    writes = write_times(wanted, len(headers), len(payload)) if wanted \
        else deque([(0.0, len(payload))])
    cuts = deque(accumulate(wanted.head)) if wanted else deque()
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
    """The payload, when how much of it may leave, and its records, bytes each."""
    payload, upto = b"", 0
    times: deque[tuple[float, int]] = deque()
    records: list[int] = []
    for due_ms, end in writes:
        part, sizes = seal(text[upto:end])
        records += sizes
        payload, upto = payload + part, end
        times.append((due_ms, len(payload)))
    return memoryview(payload), times, tuple(records)


def head(status: bytes, body_bytes: int | None, close: bool) -> bytes:
    """The headers of a response; body_bytes: None for no Content-Length."""
    length = b"" if body_bytes is None else b"Content-Length: %d\r\n" % body_bytes
    return b"HTTP/1.1 %s\r\n%s%s\r\n" % (status, length,
                                         b"Connection: close\r\n" if close else b"")


def head_of(wanted: Wanted, close: bool) -> bytes:
    """The headers of what is there, filled up to as many bytes as are requested."""
    plain = head(b"200 OK", None if wanted.until_close else wanted.body_bytes, close)
    room = sum(wanted.head) - len(plain) if wanted.head else 0
    return plain[:-2] + FILLER % (b"-" * (room - len(FILLER % b""))) + b"\r\n" if room else plain


def can_head(wanted: Wanted, close: bool) -> bool:
    """Whether headers of the size that is requested can be made."""
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
