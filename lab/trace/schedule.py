"""Schedules: what the application hands to TCP, or asks for, and when."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from lab.core.errors import UsageError
from lab.core.scenario import schema
from lab.core.scenario.schema import Reader, key
from lab.core.words import plain

EACH_THINK = "each"  # in a request: the think time that the trial is about
MOST_WRITES = 50_000


def _listed(kind: type[Any]) -> Reader:
    """Tables in a list, as instances of a dataclass."""
    def read_list(value: Any, where: str) -> tuple[Any, ...]:
        if not isinstance(value, list) or not value \
                or not all(isinstance(item, dict) for item in value):
            raise UsageError(f"{where} has to be a list of tables, such as"
                             " [{ at_s = 0.5, segments = 10 }]")
        return tuple(schema.read(kind, item, f"{where} {number}")
                     for number, item in enumerate(value, start=1))
    return read_list


def _think_s(value: Any, where: str) -> float | None:
    return None if value == EACH_THINK else schema.number("time_s")(value, where)


@dataclass(frozen=True)
class Write:
    """What the application hands to TCP: bytes at a time, or every so often until another.

    Times in seconds after the request arrived. `until_s` itself is not one of
    the times. The size is in bytes or in segments.
    """

    at_s: float = key(quantity="time_s")
    size_bytes: int | None = key(None, quantity="write_bytes", name="bytes")
    segments: int | None = key(None, quantity="write_segments")
    until_s: float | None = key(None, quantity="time_s")
    every_s: float | None = None

    def check(self, where: str) -> None:
        if (self.size_bytes is None) == (self.segments is None):
            raise UsageError(f"{where}: has to have either bytes or segments")
        if (self.until_s is None) != (self.every_s is None):
            raise UsageError(f"{where}: until_s and every_s go together")
        if self.until_s is not None and self.until_s <= self.at_s:
            raise UsageError(f"{where}: until_s: {plain(self.until_s)} s is not after at_s,"
                             f" {plain(self.at_s)} s: time goes backwards")

    def bytes_each(self, mss: int) -> int:
        return self.size_bytes or (self.segments or 0) * mss

    @property
    def count(self) -> int:
        if self.until_s is None or self.every_s is None:
            return 1
        return max(math.ceil((self.until_s - self.at_s) / self.every_s - 1e-9), 1)

    @property
    def last_s(self) -> float:
        return self.at_s + (self.count - 1) * (self.every_s or 0.0)

    def text(self, mss: int) -> str:
        """As server.py reads it."""
        when = _ms(self.at_s)
        if self.until_s is not None and self.every_s is not None:
            when += f"..{_ms(self.until_s)}/{_ms(self.every_s)}"
        return f"{when}:{self.bytes_each(mss)}"


@dataclass(frozen=True)
class Request:
    """One request on a persistent connection.

    think_s: from the end of the response before it; None for the think time
    that the trial is about.
    """

    size_bytes: int = key(quantity="write_bytes", name="bytes")
    think_s: float | None = key(0.0, reader=_think_s)


@dataclass(frozen=True)
class Schedule:
    """What the application does: writes into one response, or requests one after another."""

    name: str = key(reader=schema.file_name)
    writes: tuple[Write, ...] = key((), reader=_listed(Write))
    requests: tuple[Request, ...] = key((), reader=_listed(Request))

    def check(self, where: str) -> None:
        if bool(self.writes) == bool(self.requests):
            raise UsageError(f"{where}: has to have either writes or requests")
        for number, (before, write) in enumerate(zip(self.writes, self.writes[1:]), start=2):
            if write.at_s < before.last_s:
                raise UsageError(f"{where}: writes {number}: at_s: {plain(write.at_s)} s is before"
                                 f" {plain(before.last_s)} s, where the write before it ends:"
                                 " time goes backwards")
        if sum(write.count for write in self.writes) > MOST_WRITES:
            raise UsageError(f"{where}: has more than {MOST_WRITES} writes")

    @property
    def is_about_thinking(self) -> bool:
        return any(request.think_s is None for request in self.requests)

    def thinks_s(self, think_s: float | None) -> list[float]:
        """Seconds before each of its requests; think_s: what the trial is about."""
        return [think_s or 0.0 if request.think_s is None else request.think_s
                for request in self.requests] or [0.0]

    def size_bytes(self, mss: int) -> int:
        """All that it sends."""
        return (sum(write.bytes_each(mss) * write.count for write in self.writes)
                + sum(request.size_bytes for request in self.requests))

    def paths(self, mss: int) -> tuple[str, ...]:
        """What is fetched, without the trace's own parameters."""
        if self.writes:
            times = ";".join(write.text(mss) for write in self.writes)
            return (f"/{self.size_bytes(mss)}?at={times}",)
        return tuple(f"/{request.size_bytes}?" for request in self.requests)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.6f}".rstrip("0").rstrip(".")


def due_times_s(schedule: str) -> list[float]:
    """The times of the writes of a schedule's text, in order."""
    times = []
    for write in filter(None, schedule.split(";")):
        when, _, every = write.partition(":")[0].partition("/")
        first, _, last = when.partition("..")
        start, step = float(first), float(every or 1)
        count = max(math.ceil((float(last) - start) / step - 1e-9), 1) if last else 1
        times += [(start + number * step) / 1000 for number in range(count)]
    return times
