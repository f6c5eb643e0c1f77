"""What a request to server.py asks for; server.py's first lines tell the paths."""

from __future__ import annotations

import math
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

MAX_BODY_BYTES = 1 << 30
MAX_WRITES = 100_000  # of one response
MAX_HEAD_WRITES, MAX_HEAD_BYTES = 100, 16384


class BadRequest(Exception):
    """The client sent what is not a request that this server answers."""


@dataclass(frozen=True)
class Wanted:
    """What a path asks for.

    writes: (ms after the start, bytes of the body) of every write but the
    last, in order of time; the last one is the rest, at once with the headers
    if there is no other, else after gap_ms. head: bytes of each write of the
    headers, which are as long as all of them, () for headers that leave with the
    body. until_close: no Content-Length; the end of the connection is the body's.
    send_buffer_bytes: SO_SNDBUF, 0 where it is not set.
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


def parse_path(path: str) -> Wanted | None:
    """What a path asks for, None where it is not a number in range."""
    parts = urlsplit(path)
    name = parts.path.lstrip("/")
    query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    try:
        wanted = Wanted(int(name), int(query.get("burst", 0)), float(query.get("gap_ms", 0)),
                        parse_writes(query.get("at", "")), float(query.get("trace_ms", 0)),
                        query.get("nagle") == "1", parse_head(query.get("head", "")),
                        query.get("until_close") == "1", int(query.get("sndbuf", 0)))
    except ValueError:
        return None
    in_range = (0 <= wanted.body_bytes <= MAX_BODY_BYTES and wanted.burst_bytes >= 0
                and 0 <= wanted.send_buffer_bytes <= MAX_BODY_BYTES)
    finite = (0 <= number < float("inf") for number in (wanted.gap_ms, wanted.trace_ms))
    return wanted if in_range and all(finite) else None


def parse_head(text: str) -> tuple[int, ...]:
    """The sizes of `head=17,38,2`. Raises ValueError."""
    sizes = tuple(int(each) for each in filter(None, text.split(",")))
    if len(sizes) > MAX_HEAD_WRITES or any(not 0 < each <= MAX_HEAD_BYTES for each in sizes):
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
