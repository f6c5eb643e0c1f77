"""What the client of a page fetches: its hosts' names, its objects, and how far each has come."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

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
        self.named_ns = self.due_ns = self.start_ns = self.first_ns = self.end_ns = 0
        self.handle: Curl | None = None
        self.digest = hashlib.sha256()
        self.got_bytes = 0
        self.names: list[Download] = []  # what it names, the first byte first
        self.answer: dict[str, object] = {}


def below(download: Download) -> list[Download]:
    """All objects that an object names, directly or through others."""
    found: list[Download] = []
    behind = list(download.names)
    while behind:
        found.append(behind.pop())
        behind += found[-1].names
    return found
