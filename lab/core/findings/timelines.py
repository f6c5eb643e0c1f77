"""Timelines: the packets of a connection as its server saw them, for a page and a figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from lab.core.findings.charts import Chart


@dataclass(frozen=True)
class Mark:
    """A segment of data in a timeline: from byte to byte, when it left.

    kind: handshake and ticket are TLS's messages before the response, data the rest.
    """

    kind: Literal["handshake", "ticket", "data", "again", "lost"]
    time_ms: float
    from_bytes: float
    to_bytes: float


@dataclass(frozen=True)
class Timeline:
    """The packets of one connection as its server saw them.

    acknowledged, offered: (ms, bytes), a step at each point; offered: the end of
    the receive window. text: the same in words. end_ms: when all was
    acknowledged, None where it was not.
    to_ms, to_bytes: ends of the axes, shared by timelines that are compared.
    """

    title: str
    text: str
    marks: tuple[Mark, ...]
    acknowledged: tuple[tuple[float, float], ...]
    to_ms: float
    to_bytes: float
    offered: tuple[tuple[float, float], ...] = ()
    end_ms: float | None = None


@dataclass(frozen=True)
class PacketsChart(Chart):
    """Timelines beside each other."""

    family: ClassVar[str] = "packets"

    timelines: tuple[Timeline, ...] = ()
