"""Draws connections over time: data sent and windows, or the packets of one transfer."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.path import Path
from matplotlib.textpath import TextPath
from matplotlib.ticker import NullLocator
from matplotlib.transforms import offset_copy

from firstflight.base.words import format_brief
from firstflight.findings.charts import PacketsChart, Points, Timeline, TraceChart, TraceRow
from firstflight.findings.claims import Ends
from firstflight.findings.drawing import style

# Each of a colour and a form of its own: dots, thin and thick steps, dashes, an area, letters.
DATA, ACKED, WINDOW, SSTHRESH, FLIGHT, RETRANSMITTED = (
    style.INK, style.GREEN, style.BLUE, style.VERMILION, style.ORANGE, style.ALARM)
DASHES = (0, (4, 2))
MOST_ABOVE = 3.0  # times what is in flight: the top of a window's axis
ROW_INCHES, ABOVE_INCHES, BELOW_INCHES = 1.68, 0.3, 0.3  # of each row, its ticks included
NAME_INCHES = 0.2  # of the time axis, under the last row
LEFT_INCHES, MIDDLE_INCHES, RIGHT_INCHES = 0.62, 0.62, 0.12
Y_NAME_INCHES, RTT_INCHES = 0.44, 0.46  # from the axes to the names of those along y


def draw_traces(chart: TraceChart) -> Figure:
    """Draw a row for each connection: its data at the left, its window at the right."""
    rows = len(chart.rows)
    frame = style.frame(chart, ROW_INCHES * rows + NAME_INCHES, _legend_of_traces(chart))
    width = (style.WIDTH_INCHES - LEFT_INCHES - MIDDLE_INCHES - RIGHT_INCHES) / 2
    right_width = width - RTT_INCHES if chart.rtt else width
    height = ROW_INCHES - ABOVE_INCHES - BELOW_INCHES
    ends, top = _sequence_ends(chart), _window_top(chart)
    shown = chart.from_s, chart.to_s

    for number, row in enumerate(chart.rows):
        is_last = number == rows - 1
        low = ROW_INCHES * (rows - 1 - number) + NAME_INCHES + BELOW_INCHES
        left = frame.axes(LEFT_INCHES, low, width, height)
        right = frame.axes(LEFT_INCHES + width + MIDDLE_INCHES, low, right_width, height)
        _time_axis(left, chart.sequence_s or shown, is_last)
        _time_axis(right, shown, is_last)

        if chart.sequence_s:
            right.axvspan(*chart.sequence_s, color=style.GROUND, linewidth=0, zorder=0)
        if row.absent:
            _write_absent(left, right, row.absent, width)
        else:
            _sequence(left, row, ends)
            _window(right, row, top)
            right.set_title(style.literal(", ".join(_cut(row, chart, top))), loc="right",
                            fontsize=style.SMALL, color=style.FAINT)
            if chart.rtt:
                _rtt(right.twinx(), row, chart)

        flag = " (its verdict failed)" if row.flagged else ""
        left.set_title(style.literal(row.title + flag),
                       color=style.ALARM if row.flagged or row.absent else style.INK)
    return frame.figure


def _sequence_ends(chart: TraceChart) -> Ends:
    """The segments that any row shows."""
    from_s, to_s = chart.sequence_s or (chart.from_s, chart.to_s)
    shown: list[float] = []
    for row in chart.rows:
        shown += [value for time_s, value in (*row.sent, *row.acked[1:])
                  if from_s <= time_s <= to_s]
    return min(shown, default=0.0), max(shown, default=1.0)


def _window_top(chart: TraceChart) -> float:
    """The top of the axis of windows. It cuts off a window that goes on unused."""
    used = max((value for row in chart.rows for _, value in row.in_flight), default=1.0)
    largest = max((value for row in chart.rows for _, value in row.window), default=1.0)
    return 1.08 * min(largest, MOST_ABOVE * max(used, 4))


def _sequence(axes: Axes, row: TraceRow, ends: Ends) -> None:
    axes.plot(*_columns(row.sent), ".", color=DATA, markersize=2.2, zorder=3)
    axes.step(*_columns(row.acked), where="post", color=ACKED, linewidth=0.9, zorder=2)
    if row.retransmitted:
        axes.plot(*_columns(row.retransmitted), **_retransmitted_marks())
    room = 0.06 * max(ends[1] - ends[0], 1)
    axes.set_ylim(max(ends[0] - room, 0), ends[1] + room)
    _whole_axis(axes, "segment")


def _window(axes: Axes, row: TraceRow, top: float) -> None:
    axes.fill_between(*_columns(row.in_flight), step="post", color=FLIGHT, alpha=0.55,
                      linewidth=0, zorder=1)
    axes.step(*_columns(row.window), where="post", color=WINDOW, linewidth=1.6, zorder=3)
    if row.ssthresh:
        axes.step(*_columns(row.ssthresh), where="post", color=SSTHRESH, linewidth=1.1,
                  linestyle=DASHES, zorder=2)
    axes.set_ylim(0, top)
    _whole_axis(axes, "segments")


def _cut(row: TraceRow, chart: TraceChart, top: float) -> list[str]:
    """What of a row lies outside of its axes, in words: a larger window, a later end."""
    words = []
    largest = max((value for _, value in row.window), default=1.0)
    if largest > top:
        words.append(f"window up to {style.tick_label(largest)}")
    last_s = max((time_s for time_s, _ in row.acked), default=0.0)
    if last_s > chart.to_s:
        words.append(f"to {last_s:.1f} s")
    return words


def _rtt(axes: Axes, row: TraceRow, chart: TraceChart) -> None:
    """The smoothed RTT on an axis of its own, the same in all rows."""
    axes.step(*_columns(row.rtt_ms), where="post", color=style.INK, linewidth=1.1, linestyle=":",
              zorder=4)
    axes.set_ylim(0, 1.08 * max((value for other in chart.rows for _, value in other.rtt_ms),
                                default=1.0))
    _whole_axis(axes, "RTT (ms)", right=True)
    axes.tick_params(labelsize=style.SMALL)


def _whole_axis(axes: Axes, name: str, right: bool = False) -> None:
    style.name_y(axes, name, RTT_INCHES if right else Y_NAME_INCHES, style.SMALL, right=right)
    style.plain_ticks(axes.yaxis, 4, whole=True)


def _time_axis(axes: Axes, ends: Ends, last: bool) -> None:
    axes.set_xlim(*ends)
    style.plain_ticks(axes.xaxis, 5)
    axes.grid()
    axes.tick_params(labelsize=style.SMALL)
    if last:
        axes.set_xlabel("seconds after the request")


def _write_absent(left: Axes, right: Axes, why: str, width: float) -> None:
    lines = style.fitted(why, style.SMALL, 0.96 * width)
    left.text(0.02, 0.5, style.literal("\n".join(lines)), transform=left.transAxes,
              fontsize=style.SMALL, color=style.ALARM, va="center")
    for axes in (left, right):
        axes.yaxis.set_major_locator(NullLocator())


def _columns(points: Points) -> tuple[Sequence[float], Sequence[float]]:
    return [x for x, _ in points], [y for _, y in points]


@functools.lru_cache(maxsize=1)
def _letter() -> Path:
    """Write a letter as a mark, such as the R of time–sequence plots, with its middle there."""
    letter = TextPath((0, 0), "R", size=10, prop=FontProperties(weight="bold"))
    box = letter.get_extents()
    return Path(letter.vertices - [(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2], letter.codes)


def _retransmitted_marks() -> dict[str, object]:
    return {"linestyle": "none", "marker": _letter(), "markersize": 6.0, "color": RETRANSMITTED,
            "markeredgewidth": 0, "zorder": 4}


def _legend_of_traces(chart: TraceChart) -> list[Artist]:
    """The meaning of the marks and lines that any row has."""
    handles: list[Artist] = [
        Line2D([], [], color=DATA, marker=".", linestyle="none", label="data sent")]
    if any(row.retransmitted for row in chart.rows):
        handles.append(Line2D([], [], **_retransmitted_marks(), label="retransmitted"))

    handles += [Line2D([], [], color=ACKED, label="acknowledged"),
                Line2D([], [], color=WINDOW, linewidth=1.6, label="congestion window")]
    if any(row.ssthresh for row in chart.rows):
        handles.append(Line2D([], [], color=SSTHRESH, linestyle=DASHES, label="ssthresh"))
    handles.append(Line2D([], [], color=FLIGHT, linewidth=5, alpha=0.55, label="in flight"))
    if chart.sequence_s:
        handles.append(Line2D([], [], color=style.GROUND, linewidth=6, label="shown at the left"))
    if chart.rtt:
        handles.append(Line2D([], [], color=style.INK, linestyle=":",
                              label="smoothed RTT (right)"))
    return handles


# The packets of a transfer as captured at its server, two windows next to each other --

# Of packets, in inches.
P_LEFT, P_GAP, P_RIGHT = 0.7, 0.25, 0.15
P_ABOVE, P_HIGH, P_BELOW, P_LINE = 0.8, 3.0, 0.5, 0.15
KILO = 1000.0
LEAST_SHARE = 0.02  # of a timeline's height, below which all strokes of a kind need pointers
LOOKS = {"handshake": (style.ORANGE, "TLS handshake sent"),
         "ticket": (style.GREEN, "session tickets sent"),
         "data": (style.BLUE, "data sent"), "lost": (style.VERMILION, "data sent, then lost"),
         "retransmitted": (style.PINK, "data retransmitted")}


def draw_packets(chart: PacketsChart) -> Figure:
    """Draw timelines next to each other if their axes have the same ends, else under each other."""
    count = len(chart.timelines)
    columns = count if len({line.to_bytes for line in chart.timelines}) == 1 else 1
    wide = (style.WIDTH_INCHES - P_LEFT - P_RIGHT - P_GAP * (columns - 1)) / columns
    words = [_words_above(timeline, wide) for timeline in chart.timelines]
    inches = max(P_ABOVE, 0.2 + P_LINE * max(map(len, words))) + P_HIGH + P_BELOW
    frame = style.frame(chart, inches * (count // columns), _legend_of_packets(chart))

    for place, timeline in enumerate(chart.timelines):
        floor, column = (count - 1 - place) // columns, place % columns
        axes = frame.axes(P_LEFT + column * (wide + P_GAP), P_BELOW + floor * inches, wide, P_HIGH)
        _draw_timeline(axes, timeline, words[place])
        if column:
            axes.tick_params(axis="y", labelleft=False)
        else:
            style.name_y(axes, chart.y_label, 0.5)
    return frame.figure


def _legend_of_packets(chart: PacketsChart) -> list[Artist]:
    """The meaning of the marks and lines that any timeline has."""
    kinds, shows_offered = set[str](), False
    for timeline in chart.timelines:
        kinds.update(mark.kind for mark in timeline.marks)
        shows_offered |= any(end < timeline.to_bytes for _, end in timeline.offered)

    handles: list[Artist] = [Line2D([], [], color=colour, linewidth=4, label=label)
                             for kind, (colour, label) in LOOKS.items() if kind in kinds]
    handles.append(Line2D([], [], color=style.INK, linewidth=1, label="acknowledged"))
    if shows_offered:
        handles.append(Line2D([], [], color=style.GREEN, linewidth=1.2, linestyle=":",
                              label="end of the receive window"))
    if any(timeline.end_ms is not None for timeline in chart.timelines):
        handles.append(Line2D([], [], color=style.FAINT, linewidth=1, linestyle="--",
                              label="all acknowledged"))
    return handles


def _draw_timeline(axes: Axes, timeline: Timeline, words: Sequence[tuple[str, bool, float]]
                   ) -> None:
    """Draw segments as strokes from the first byte to the last, and acknowledgements as steps.

    Where the strokes of a kind are too low to be seen, as of tickets, a triangle points at each.
    """
    for kind, (colour, _) in LOOKS.items():
        strokes = [[(mark.time_ms, mark.from_bytes / KILO), (mark.time_ms, mark.to_bytes / KILO)]
                   for mark in timeline.marks if mark.kind == kind]
        if strokes:
            axes.add_collection(LineCollection(strokes, colors=colour, linewidths=4))
            drawn = sum(last - first for (_, first), (_, last) in strokes)
            if drawn < LEAST_SHARE * timeline.to_bytes / KILO:
                aside = offset_copy(axes.transData, axes.figure, x=-7, units="points")
                axes.plot(*zip(*(first for first, _ in strokes)), ">", color=colour, markersize=7,
                          markeredgewidth=0, transform=aside, zorder=4)

    if timeline.acknowledged:
        times, acked = zip(*timeline.acknowledged)
        axes.step([0.0, *times], [0.0, *(count / KILO for count in acked)], where="post",
                  color=style.INK, linewidth=1)
    if timeline.offered:
        times, ends = zip(*timeline.offered, (timeline.to_ms, timeline.offered[-1][1]))
        axes.step(times, [end / KILO for end in ends], where="post", color=style.GREEN,
                  linewidth=1.2, linestyle=":")
    if timeline.end_ms is not None:
        axes.axvline(timeline.end_ms, color=style.FAINT, linewidth=1, linestyle="--")

    axes.set_xlim(0, timeline.to_ms)
    axes.set_ylim(0, timeline.to_bytes / KILO)
    style.plain_ticks(axes.xaxis, 4)
    style.plain_ticks(axes.yaxis, 6)
    axes.grid()
    axes.set_xlabel("ms after the client's first packet")
    for place, (line, is_bold, size) in enumerate(reversed(words)):
        axes.text(0, 1 + (0.1 + P_LINE * place) / P_HIGH, style.literal(line), va="center",
                  fontsize=size, transform=axes.transAxes,
                  weight="bold" if is_bold else "normal")


def _words_above(timeline: Timeline, width: float) -> list[tuple[str, bool, float]]:
    """The lines above a timeline's axes of this width: (text, whether it is bold, its size)."""
    compared, _, network = timeline.title.partition(":")
    done = f": all acknowledged at {format_brief(timeline.end_ms)} ms" if timeline.end_ms else ""
    title = f"{compared}{done}"
    fits = len(style.fitted(title, style.MEDIUM, width, bold=True)) == 1
    lines = [(line, True, style.MEDIUM if fits else style.SMALL)
             for line in ([title] if fits else style.fitted(title, style.SMALL, width, bold=True))]
    return lines + [(line, False, style.SMALL)
                    for text in (timeline.text.partition(";")[0], network.strip())
                    for line in style.fitted(text, style.SMALL, width)]
