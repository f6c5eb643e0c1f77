"""A timeline on the wire as a drawing of a page: its places, in units of the SVG."""

from __future__ import annotations

from dataclasses import dataclass

from lab.core.findings.charts import Timeline

WIDTH, HEIGHT = 560.0, 300.0  # with the margins
LEFT, RIGHT, TOP, BOTTOM = 52.0, 14.0, 14.0, 38.0


@dataclass(frozen=True)
class Bar:
    """A segment; heights grow downwards. kind: data, again, lost."""

    kind: str
    x: float
    top: float
    bottom: float


@dataclass(frozen=True)
class Tick:
    place: float
    label: str


@dataclass(frozen=True)
class Drawing:
    """acknowledged: the points of its line."""

    title: str
    text: str
    bars: tuple[Bar, ...]
    acknowledged: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]


def drawing(timeline: Timeline) -> Drawing:
    """Milliseconds along x, kilobytes along y."""
    def across(ms: float) -> float:
        return round(LEFT + ms / (timeline.to_ms or 1) * (WIDTH - LEFT - RIGHT), 1)

    def up(byte: float) -> float:
        return round(HEIGHT - BOTTOM
                     - byte / (timeline.to_bytes or 1) * (HEIGHT - TOP - BOTTOM), 1)

    points, before = [], 0.0
    for ms, byte in timeline.acknowledged:
        points += [f"{across(ms)},{up(before)}", f"{across(ms)},{up(byte)}"]
        before = byte
    return Drawing(
        timeline.title, timeline.text,
        tuple(Bar(mark.kind, across(mark.time_ms), up(mark.to_bytes), up(mark.from_bytes))
              for mark in timeline.marks),
        " ".join(points),
        tuple(Tick(across(ms), f"{ms:.6g}") for ms in steps(timeline.to_ms)),
        tuple(Tick(up(kilobytes * 1000), f"{kilobytes:.6g}")
              for kilobytes in steps(timeline.to_bytes / 1000)))


def steps(highest: float) -> list[float]:
    """Round numbers from 0 to `highest`, at most seven."""
    step = next((mantissa * 10.0 ** power for power in range(-3, 12) for mantissa in (1, 2, 5)
                 if highest / (mantissa * 10.0 ** power) <= 6), highest or 1.0)
    return [step * place for place in range(int(highest / step) + 1)]
