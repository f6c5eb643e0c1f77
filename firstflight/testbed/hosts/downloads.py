"""What the client of a page fetches: its hosts' names, its objects, and how far each has come."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from firstflight.testbed.hosts.libcurl import Curl

DOMAIN = "page.example"  # of all hosts but the document's, which has its address for a name


def host_name(host: int, is_secure: bool = True) -> str:
    """The name of a host of a page but the document's."""
    return f"host{host}.{DOMAIN}" if is_secure else f"host{host}"


class Task(NamedTuple):
    """An object to fetch; testbed.hosts.page_client describes the fields."""

    size_bytes: int
    named_by: int
    at_byte: int
    parse_ms: float
    think_ms: float
    host: int


class Download:
    """One object and its transfer. Times are in ns of CLOCK_MONOTONIC, 0 for not yet."""

    def __init__(self, number: int, task: Task) -> None:
        self.number, self.task = number, task
        self.named_ns = 0  # when the bytes that name it were there
        self.due_ns = 0  # when it was named and parsed
        self.start_ns = 0  # when the library got its request
        self.first_ns = 0  # when the first byte of its headers came
        self.end_ns = 0  # when everything was there
        self.handle: Curl | None = None
        self.digest = hashlib.sha256()
        self.got_bytes = 0
        self.names: list[Download] = []  # what it names, the first byte first
        self.answer: dict[str, object] = {}  # once it has ended

    def why_not_ended(self, deadline_s: float) -> str:
        """Why it did not end within the deadline of its page, in words."""
        if self.start_ns:
            return f"did not end in {deadline_s:g} s"
        if self.named_ns:
            return "was never requested: no connection was free"
        return f"was never requested: object {self.task.named_by} did not name it"


def downloads_of(rows: Iterable[Sequence[Any]]) -> list[Download]:
    """The objects of a page, each with those that it names. rows: of a request's "objects"."""
    downloads = [Download(number, Task(*row)) for number, row in enumerate(rows, start=1)]
    for download in downloads[1:]:
        downloads[download.task.named_by - 1].names.append(download)
    for download in downloads:
        download.names.sort(key=lambda named: (named.task.at_byte, named.number))
    return downloads


def below(download: Download) -> list[Download]:
    """All objects that an object names, directly or through others."""
    found: list[Download] = []
    to_visit = list(download.names)
    while to_visit:
        found.append(to_visit.pop())
        to_visit += found[-1].names
    return found
