"""Draws connections over time: data sent and windows of traces, or the packets of transfers."""

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

# Each series differs from all others in colour and in form: dots, thin steps, thick steps, dashes,
# an area, letters.
DATA, ACKED, WINDOW, SSTHRESH, FLIGHT, RETRANSMITTED = (
    style.INK, style.GREEN, style.BLUE, style.VERMILION, style.ORANGE, style.ALARM)
DASHES = (0, (4, 2))  # matplotlib's form: after 0 points, 4 points drawn and 2 not
MOST_ABOVE = 3.0  # a window's axis ends at most so many times above what is in flight
ROW_INCHES = 1.68  # the height of a row
ABOVE_INCHES, BELOW_INCHES = 0.3, 0.3  # parts of it: above the axes, and below them for ticks
NAME_INCHES = 0.2  # below the last row, for the name of the time axis
# At the left of the two axes of a row, between them, and at their right.
LEFT_INCHES, MIDDLE_INCHES, RIGHT_INCHES = 0.62, 0.62, 0.12
Y_NAME_INCHES = 0.44  # from the axes to the name of the axis along y
RTT_INCHES = 0.46  # the same for the axis of RTTs, and what it takes of the width


def draw_traces(chart: TraceChart) -> Figure:
    """Draw a row for each connection, with its data at the left and its window at the right."""
    rows = len(chart.rows)
    frame = style.frame(chart, ROW_INCHES * rows + NAME_INCHES, _legend_of_traces(chart))
    width = (style.WIDTH_INCHES - LEFT_INCHES - MIDDLE_INCHES - RIGHT_INCHES) / 2
    right_width = width - RTT_INCHES if chart.rtt else width
    height = ROW_INCHES - ABOVE_INCHES - BELOW_INCHES
    sequence_ends, top = _sequence_ends(chart), _window_top(chart)
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
            _draw_sequence(left, row, sequence_ends)
            _draw_window(right, row, top)
            right.set_title(style.literal(", ".join(_cut(row, chart, top))), loc="right",
                            fontsize=style.SMALL, color=style.FAINT)
            if chart.rtt:
                _draw_rtt(right.twinx(), row, chart)

        flag = " (its verdict failed)" if row.flagged else ""
        left.set_title(style.literal(row.title + flag),
                       color=style.ALARM if row.flagged or row.absent else style.INK)
    return frame.figure


def _sequence_ends(chart: TraceChart) -> Ends:
    """The least and the largest segment number that any row shows."""
    from_s, to_s = chart.sequence_s or (chart.from_s, chart.to_s)
    shown: list[float] = []
    for row in chart.rows:
        shown += [value for time_s, value in (*row.sent, *row.acked[1:])
                  if from_s <= time_s <= to_s]
    return min(shown, default=0.0), max(shown, default=1.0)


def _window_top(chart: TraceChart) -> float:
    """The top of the axis of windows, in segments.

    It cuts off a window that grows far above what is in flight.
    """
    used = max((value for row in chart.rows for _, value in row.in_flight), default=1.0)
    largest = max((value for row in chart.rows for _, value in row.window), default=1.0)
    return 1.08 * min(largest, MOST_ABOVE * max(used, 4))


def _draw_sequence(axes: Axes, row: TraceRow, ends: Ends) -> None:
    """Draw the data that was sent, acknowledged and retransmitted. ends: of the axis."""
    axes.plot(*_columns(row.sent), ".", color=DATA, markersize=2.2, zorder=3)
    axes.step(*_columns(row.acked), where="post", color=ACKED, linewidth=0.9, zorder=2)
    if row.retransmitted:
        axes.plot(*_columns(row.retransmitted), **_retransmitted_marks())
    room = 0.06 * max(ends[1] - ends[0], 1)
    axes.set_ylim(max(ends[0] - room, 0), ends[1] + room)
    _whole_axis(axes, "segment")


def _draw_window(axes: Axes, row: TraceRow, top: float) -> None:
    """Draw the window, ssthresh, and the segments in flight. top: of the axis."""
    axes.fill_between(*_columns(row.in_flight), step="post", color=FLIGHT, alpha=0.55,
                      linewidth=0, zorder=1)
    axes.step(*_columns(row.window), where="post", color=WINDOW, linewidth=1.6, zorder=3)
    if row.ssthresh:
        axes.step(*_columns(row.ssthresh), where="post", color=SSTHRESH, linewidth=1.1,
                  linestyle=DASHES, zorder=2)
    axes.set_ylim(0, top)
    _whole_axis(axes, "segments")


def _cut(row: TraceRow, chart: TraceChart, top: float) -> list[str]:
    """Words on what the axes cut off: a larger window, a later end. [] where they show all."""
    words = []
    largest = max((value for _, value in row.window), default=1.0)
    if largest > top:
        words.append(f"window up to {style.tick_label(largest)}")
    last_s = max((time_s for time_s, _ in row.acked), default=0.0)
    if last_s > chart.to_s:
        words.append(f"to {last_s:.1f} s")
    return words


def _draw_rtt(axes: Axes, row: TraceRow, chart: TraceChart) -> None:
    """Draw the smoothed RTT. Its axis is the same in all rows of the chart."""
    axes.step(*_columns(row.rtt_ms), where="post", color=style.INK, linewidth=1.1, linestyle=":",
              zorder=4)
    largest_ms = max((value for shown in chart.rows for _, value in shown.rtt_ms), default=1.0)
    axes.set_ylim(0, 1.08 * largest_ms)
    _whole_axis(axes, "RTT (ms)", right=True)
    axes.tick_params(labelsize=style.SMALL)


def _whole_axis(axes: Axes, name: str, right: bool = False) -> None:
    """Set the ticks of the axis along y, at whole numbers, and its name.

    right: whether the name stands at the right.
    """
    style.name_y(axes, name, RTT_INCHES if right else Y_NAME_INCHES, style.SMALL, right=right)
    style.plain_ticks(axes.yaxis, 4, whole=True)


def _time_axis(axes: Axes, ends: Ends, is_last: bool) -> None:
    """Set the axis along x, in seconds. Only the last row has its name."""
    axes.set_xlim(*ends)
    style.plain_ticks(axes.xaxis, 5)
    axes.grid()
    axes.tick_params(labelsize=style.SMALL)
    if is_last:
        axes.set_xlabel("seconds after the request")


def _write_absent(left: Axes, right: Axes, why: str, width: float) -> None:
    """Write into the left axes why a row has no connection. width: of the axes, in inches."""
    lines = style.fitted(why, style.SMALL, 0.96 * width)
    left.text(0.02, 0.5, style.literal("\n".join(lines)), transform=left.transAxes,
              fontsize=style.SMALL, color=style.ALARM, va="center")
    for axes in (left, right):
        axes.yaxis.set_major_locator(NullLocator())


def _columns(points: Points) -> tuple[Sequence[float], Sequence[float]]:
    """The x and the y of the points."""
    return [x for x, _ in points], [y for _, y in points]


@functools.lru_cache(maxsize=1)
def _letter() -> Path:
    """The mark of a retransmission: an R, as in time–sequence plots, with its middle at 0, 0."""
    letter = TextPath((0, 0), "R", size=10, prop=FontProperties(weight="bold"))
    box = letter.get_extents()
    return Path(letter.vertices - [(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2], letter.codes)


def _retransmitted_marks() -> dict[str, object]:
    """How matplotlib draws retransmissions."""
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

# Inches of charts of packets: at the left of the axes, between columns, and at the right.
P_LEFT, P_GAP, P_RIGHT = 0.7, 0.25, 0.15
# Above the axes (at least), the height of the axes, and below them.
P_ABOVE, P_HIGH, P_BELOW = 0.8, 3.0, 0.5
P_LINE = 0.15  # the height of a line of text above the axes
KILO = 1000.0  # bytes of a kB, the unit along y
# The strokes of one kind need pointers if together they are lower than this share of the axes.
LEAST_SHARE = 0.02
# By the kind of a mark: the colour of its stroke, and the legend's words.
LOOKS = {"handshake": (style.ORANGE, "TLS handshake sent"),
         "ticket": (style.GREEN, "session tickets sent"),
         "data": (style.BLUE, "data sent"), "lost": (style.VERMILION, "data sent, then lost"),
         "retransmitted": (style.PINK, "data retransmitted")}


def draw_packets(chart: PacketsChart) -> Figure:
    """Draw timelines side by side if they end at the same byte, else under each other."""
    count = len(chart.timelines)
    columns = count if len({timeline.to_bytes for timeline in chart.timelines}) == 1 else 1
    width = (style.WIDTH_INCHES - P_LEFT - P_RIGHT - P_GAP * (columns - 1)) / columns
    texts = [_lines_above(timeline, width) for timeline in chart.timelines]
    row_inches = max(P_ABOVE, 0.2 + P_LINE * max(map(len, texts))) + P_HIGH + P_BELOW
    frame = style.frame(chart, row_inches * (count // columns), _legend_of_packets(chart))

    for number, timeline in enumerate(chart.timelines):
        rows_below = (count - 1 - number) // columns
        column = number % columns
        left = P_LEFT + column * (width + P_GAP)
        axes = frame.axes(left, P_BELOW + rows_below * row_inches, width, P_HIGH)
        _draw_timeline(axes, timeline, texts[number])
        if column:
            axes.tick_params(axis="y", labelleft=False)
        else:
            style.name_y(axes, chart.y_label, 0.5)
    return frame.figure


def _legend_of_packets(chart: PacketsChart) -> list[Artist]:
    """The meaning of the marks and lines that any timeline has."""
    kinds = set[str]()
    shows_offered = False
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


def _draw_timeline(axes: Axes, timeline: Timeline, lines: Sequence[tuple[str, bool, float]]
                   ) -> None:
    """Draw a segment as a stroke from its first byte to its last, and acknowledgements as steps.

    Where the strokes of a kind are too short to be seen, such as those of tickets, a triangle
    points at each. lines: those above the axes, as _lines_above() returns them.
    """
    for kind, (colour, _) in LOOKS.items():
        strokes = [[(mark.time_ms, mark.from_bytes / KILO), (mark.time_ms, mark.to_bytes / KILO)]
                   for mark in timeline.marks if mark.kind == kind]
        if strokes:
            axes.add_collection(LineCollection(strokes, colors=colour, linewidths=4))
            drawn_kb = sum(last - first for (_, first), (_, last) in strokes)
            if drawn_kb < LEAST_SHARE * timeline.to_bytes / KILO:
                aside = offset_copy(axes.transData, axes.figure, x=-7, units="points")
                axes.plot(*zip(*(first for first, _ in strokes)), ">", color=colour, markersize=7,
                          markeredgewidth=0, transform=aside, zorder=4)

    if timeline.acknowledged:
        times, acked = zip(*timeline.acknowledged)
        axes.step([0.0, *times], [0.0, *(count / KILO for count in acked)], where="post",
                  color=style.INK, linewidth=1)
    if timeline.offered:
        # The last offer holds until the axis ends.
        until_the_end = (timeline.to_ms, timeline.offered[-1][1])
        times, ends = zip(*timeline.offered, until_the_end)
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
    for number, (line, is_bold, size) in enumerate(reversed(lines)):
        axes.text(0, 1 + (0.1 + P_LINE * number) / P_HIGH, style.literal(line), va="center",
                  fontsize=size, transform=axes.transAxes,
                  weight="bold" if is_bold else "normal")


def _lines_above(timeline: Timeline, width: float) -> list[tuple[str, bool, float]]:
    """The lines above a timeline's axes: the text, whether it is bold, and its size in points.

    width: of the axes, in inches.
    """
    # A title is "what is compared: the network".
    compared, _, network = timeline.title.partition(":")
    done = f": all acknowledged at {format_brief(timeline.end_ms)} ms" if timeline.end_ms else ""
    title = f"{compared}{done}"

    lines: list[tuple[str, bool, float]]
    if len(style.fitted(title, style.MEDIUM, width, bold=True)) == 1:
        lines = [(title, True, style.MEDIUM)]
    else:
        lines = [(line, True, style.SMALL)
                 for line in style.fitted(title, style.SMALL, width, bold=True)]
    for text in (timeline.text.partition(";")[0], network.strip()):
        lines += [(line, False, style.SMALL) for line in style.fitted(text, style.SMALL, width)]
    return lines
