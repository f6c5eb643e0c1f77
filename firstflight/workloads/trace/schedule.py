"""What the application of a trace does: writes into one response, or requests one after another.

Scenario files have them as tables, and trials.csv as two columns of JSON (runs.typed_columns).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from firstflight.base.errors import UsageError
from firstflight.base.words import plain
from firstflight.runs import schema
from firstflight.runs.schema import key

MOST_WRITES = 50_000
EACH_THINK = "each"  # as a request's think_s: stands for the trial's own think time


@dataclass(frozen=True)
class Write:
    """A write of the application at one time, or repeated until another time.

    Times in seconds after the request arrived. There is no write at until_s itself. The size is in
    bytes or in segments; in trials it is in bytes.
    """

    at_s: float = key(quantity="time_s")
    size_bytes: int | None = key(None, quantity="write_bytes", name="bytes")
    segments: int | None = key(None, quantity="write_segments")
    until_s: float | None = key(None, quantity="time_s")
    every_s: float | None = None

    def check(self, where: str) -> None:
        """Check that the keys go together. Raises UsageError."""
        if (self.size_bytes is None) == (self.segments is None):
            raise UsageError(f"{where}: has to have either bytes or segments")
        if (self.until_s is None) != (self.every_s is None):
            raise UsageError(f"{where}: until_s and every_s go together")
        if self.until_s is not None and self.until_s <= self.at_s:
            raise UsageError(f"{where}: until_s: {plain(self.until_s)} s is not after at_s,"
                             f" {plain(self.at_s)} s: time goes backwards")

    def bytes_each(self, mss: int = 0) -> int:
        """The bytes of one write. mss: bytes of a segment, where the size is in segments."""
        return self.size_bytes or (self.segments or 0) * mss

    def in_bytes(self, mss: int) -> Write:
        """The write with its size in bytes."""
        return replace(self, size_bytes=self.bytes_each(mss), segments=None)

    @property
    def count(self) -> int:
        """How often it is written."""
        if self.until_s is None or self.every_s is None:
            return 1
        return max(math.ceil((self.until_s - self.at_s) / self.every_s - 1e-9), 1)

    @property
    def last_s(self) -> float:
        """When it is written for the last time."""
        return self.at_s + (self.count - 1) * (self.every_s or 0.0)

    @property
    def due_s(self) -> list[float]:
        """When it is written, as the server computes it: from milliseconds with six decimals."""
        first_ms, step_ms = float(_ms(self.at_s)), float(_ms(self.every_s or 0.0))
        return [(first_ms + number * step_ms) / 1000 for number in range(self.count)]

    @property
    def text(self) -> str:
        """The write as the path of a request has it (testbed/hosts/http_messages.py).

        Only for a size in bytes.
        """
        when = _ms(self.at_s)
        if self.until_s is not None and self.every_s is not None:
            when += f"..{_ms(self.until_s)}/{_ms(self.every_s)}"
        return f"{when}:{self.bytes_each()}"


@dataclass(frozen=True)
class Request:
    """One request on a persistent connection."""

    size_bytes: int = key(quantity="write_bytes", name="bytes")  # of the response
    # From the end of the response before it. None stands for the trial's own think time, which the
    # requests of a trial have in its place.
    think_s: float | None = key(0.0, reader=schema.none_for(
        EACH_THINK, schema.number("time_s")))


@dataclass(frozen=True)
class Schedule:
    """What the application does: writes into one response, or requests one after another."""

    name: str = key(reader=schema.file_name)
    writes: tuple[Write, ...] = key((), reader=schema.listed(
        Write, "{ at_s = 0.5, segments = 10 }"))
    requests: tuple[Request, ...] = key((), reader=schema.listed(Request, "{ bytes = 5000 }"))

    def check(self, where: str) -> None:
        """Check that there are writes or requests, in order. Raises UsageError."""
        if bool(self.writes) == bool(self.requests):
            raise UsageError(f"{where}: has to have either writes or requests")
        if fault := fault_of(self.writes):
            raise UsageError(f"{where}: {fault}")

    @property
    def is_about_thinking(self) -> bool:
        """Whether a request waits for the trial's own think time."""
        return any(request.think_s is None for request in self.requests)

    def size_bytes(self, mss: int) -> int:
        """How many bytes the application sends in all."""
        return (sum(write.bytes_each(mss) * write.count for write in self.writes)
                + sum(request.size_bytes for request in self.requests))

    def writes_in_bytes(self, mss: int) -> tuple[Write, ...]:
        return tuple(write.in_bytes(mss) for write in self.writes)

    def requests_of(self, think_s: float | None, mss: int) -> tuple[Request, ...]:
        """The requests of a trial; one request for all writes. think_s: the trial's think time."""
        if self.writes:
            return (Request(self.size_bytes(mss)),)
        requests = []
        for request in self.requests:
            if request.think_s is None:
                request = replace(request, think_s=think_s or 0.0)
            requests.append(request)
        return tuple(requests)


def fault_of(writes: Sequence[Write]) -> str:
    """What is wrong with the order of writes, or their number; "" for nothing."""
    for number, (earlier, write) in enumerate(zip(writes, writes[1:]), start=2):
        if write.at_s < earlier.last_s:
            return (f"writes {number}: at_s: {plain(write.at_s)} s is before"
                    f" {plain(earlier.last_s)} s, where the write before it ends: time goes"
                    " backwards")
    if sum(write.count for write in writes) > MOST_WRITES:
        return f"has more than {MOST_WRITES} writes"
    return ""


def _ms(seconds: float) -> str:
    """A time in ms, as text without zeros at the end."""
    return f"{seconds * 1000:.6f}".rstrip("0").rstrip(".")
