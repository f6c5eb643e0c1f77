"""The packets of a transfer over time, as its server saw them; two windows beside each other."""

from __future__ import annotations

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from drawing import style
from lab.core.findings.charts import PacketsChart, Timeline
from lab.core.words import short

LEFT_INCHES, GAP_INCHES, RIGHT_INCHES = 0.75, 0.35, 0.2
ABOVE_INCHES, HIGH_INCHES, BELOW_INCHES = 0.6, 3.4, 0.5
KILO = 1000.0
LOOKS = {"handshake": (style.ORANGE, "TLS handshake sent"),
         "ticket": (style.GREEN, "session tickets sent"),
         "data": (style.BLUE, "data sent"), "lost": (style.VERMILION, "data sent, then lost"),
         "again": (style.PINK, "data sent again")}


def draw(chart: PacketsChart) -> Figure:
    count = len(chart.timelines)
    frame = style.frame(chart, ABOVE_INCHES + HIGH_INCHES + BELOW_INCHES, _legend_of(chart))
    wide = (style.WIDTH_INCHES - LEFT_INCHES - RIGHT_INCHES - GAP_INCHES * (count - 1)) / count
    for place, timeline in enumerate(chart.timelines):
        axes = frame.axes(LEFT_INCHES + place * (wide + GAP_INCHES), BELOW_INCHES, wide,
                          HIGH_INCHES)
        _draw_timeline(axes, timeline, named=place == 0)
    return frame.figure


def _legend_of(chart: PacketsChart) -> list[Artist]:
    kinds = {mark.kind for timeline in chart.timelines for mark in timeline.marks}
    limited = any(end < timeline.to_bytes for timeline in chart.timelines
                  for _, end in timeline.offered)
    return [*(Line2D([], [], color=colour, linewidth=4, label=label)
              for kind, (colour, label) in LOOKS.items() if kind in kinds),
            Line2D([], [], color=style.INK, linewidth=1, label="acknowledged"),
            *([Line2D([], [], color=style.GREEN, linewidth=1.2, linestyle=":",
                      label="end of the receive window")] if limited else []),
            Line2D([], [], color=style.FAINT, linewidth=1, linestyle="--",
                   label="all acknowledged")]


def _draw_timeline(axes: Axes, timeline: Timeline, named: bool) -> None:
    """Upright strokes from a segment's first byte to its last; acknowledgements as steps."""
    for kind, (colour, _) in LOOKS.items():
        strokes = [[(mark.time_ms, mark.from_bytes / KILO), (mark.time_ms, mark.to_bytes / KILO)]
                   for mark in timeline.marks if mark.kind == kind]
        if strokes:
            axes.add_collection(LineCollection(strokes, colors=colour, linewidths=4))
    if timeline.acknowledged:
        times, acked = zip(*timeline.acknowledged)
        axes.step([0.0, *times], [0.0, *(each / KILO for each in acked)], where="post",
                  color=style.INK, linewidth=1)
    if timeline.offered:
        times, ends = zip(*timeline.offered, (timeline.to_ms, timeline.offered[-1][1]))
        axes.step(times, [end / KILO for end in ends], where="post", color=style.GREEN,
                  linewidth=1.2, linestyle=":")
    if timeline.end_ms is not None:
        axes.axvline(timeline.end_ms, color=style.FAINT, linewidth=1, linestyle="--")
    axes.set_xlim(0, timeline.to_ms)
    axes.set_ylim(0, timeline.to_bytes / KILO)
    style.plain_ticks(axes.xaxis, 7)
    style.plain_ticks(axes.yaxis, 6)
    axes.grid()
    axes.set_xlabel("ms after the client's first packet")
    if named:
        style.name_y(axes, "kB from the server, headers included", 0.5)
    else:
        axes.tick_params(axis="y", labelleft=False)
    window, _, network = timeline.title.partition(":")
    done = f": all acknowledged at {short(timeline.end_ms)} ms" if timeline.end_ms else ""
    lines = (f"{window}{done}", timeline.text.partition(";")[0], network.strip())
    for place, (line, size) in enumerate(zip(reversed(lines), (style.LEGEND, style.LEGEND,
                                                               style.MEDIUM))):
        axes.text(0, 1 + (0.1 + 0.16 * place) / HIGH_INCHES, style.literal(line), fontsize=size,
                  va="center", transform=axes.transAxes,
                  weight="bold" if place == 2 else "normal")
