"""Draws pages of many objects: each page's time by window, and waterfalls of the objects."""

from __future__ import annotations

import math
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from firstflight.base.words import format_brief
from firstflight.findings.charts import (ObjectBar, ObjectChart, ObjectPanel, PageBar,
                                         PageChart, is_wide)
from firstflight.findings.drawing import bars, style

GROUP_WIDTH = 0.8  # as a part of the distance between groups
# How the document's time is drawn: stripes over the window's colour.
DOCUMENT = {"hatch": "////", "edgecolor": "white", "linewidth": 0}


def draw_pages(chart: PageChart) -> Figure:
    """Draw groups of bars, with a bar for each window.

    A table below them has a row for each window: the first window's time, and how much earlier the
    page ends with each other window.
    """
    windows = range(len(chart.windows))
    rows = []
    for window, name in zip(windows, chart.windows):
        written = [_written(group[window]) for _, group in chart.groups]
        rows.append((f"IW {name}", written, style.INK))
    excluded = []
    for _, group in chart.groups:
        count = sum(bar.excluded for bar in group if bar)
        excluded.append(str(count or ""))
    if any(excluded):
        rows.append(("excluded", excluded, style.ALARM))

    labels = [label for label, _ in chart.groups]
    lines = bars.extra_inches(labels)
    below = bars.BELOW_INCHES + lines + style.ROW_INCHES * len(rows)
    frame = style.frame(chart, bars.BARE_INCHES + bars.AXES_INCHES + below, _page_legend(chart))
    axes = frame.axes(bars.LEFT_INCHES, below,
                      style.WIDTH_INCHES - bars.LEFT_INCHES - style.SIDE_INCHES, bars.AXES_INCHES)
    width = GROUP_WIDTH / len(chart.windows)
    highest: list[float] = []
    for window, name in zip(windows, chart.windows):
        for place, (_, group) in enumerate(chart.groups):
            bar = group[window]
            middle = place + (window + 0.5) * width - GROUP_WIDTH / 2
            if bar is not None:
                _draw_bar(axes, bar, middle, width=0.94 * width, window=name)
                highest += [bar.page.value, *(bar.page.interval or ())]

    style.from_zero(axes, 1.1 * max(highest, default=1.0))
    style.name_y(axes, f"{chart.y_label[0].upper()}{chart.y_label[1:]} (ms)", bars.NAME_INCHES)
    bars.set_buckets(axes, labels)
    style.table(axes, rows, lines)
    style.write(axes, (len(chart.groups) - 1) / 2, 0.13 - below, chart.axis, size=style.MEDIUM)
    return frame.figure


def _draw_bar(axes: Axes, bar: PageBar, middle: float, width: float, window: int) -> None:
    """Draw the bar of a page: its time, the document's part of it, and a line for the first screen.

    middle, width: of the bar, along the axis.
    """
    colour = style.window_colour(window)
    axes.bar([middle], [bar.page.value], width, facecolor=colour, linewidth=0)
    axes.bar([middle], [bar.document_ms], width, facecolor=colour, **DOCUMENT)
    if bar.first_screen_ms is not None:
        ends = [middle - width / 2, middle + width / 2]
        heights = [bar.first_screen_ms] * 2
        axes.plot(ends, heights, color="white", linewidth=2.4)
        axes.plot(ends, heights, color=style.INK, linewidth=1.1)
    style.whisker(axes, middle, bar.page.interval)


def _page_legend(chart: PageChart) -> list[Artist]:
    """The meaning of colours, stripes and lines, if any bar has them."""
    shown = [bar for _, group in chart.groups for bar in group if bar]
    handles: list[Artist] = [Patch(facecolor=style.window_colour(window), linewidth=0,
                                   label=f"initial window {window}") for window in chart.windows]
    if any(bar.document_ms for bar in shown):
        handles.append(Patch(facecolor=style.FAINT, label="until the document is there",
                             **DOCUMENT))
    if any(bar.first_screen_ms is not None for bar in shown):
        handles.append(Line2D([], [], color=style.INK, linewidth=1.1, label="first screen"))
    if any(is_wide(bar.page.interval) for bar in shown):
        handles.append(style.interval_handle())
    return handles


def _written(bar: PageBar | None) -> str:
    """What the table says of a bar: the page's time, or how many percent earlier the page ends.

    "–" where no load of the page counts. A percentage in brackets is unsure.
    """
    if bar is None:
        return "–"
    if bar.percent is None:
        return format_brief(bar.page.value)
    return f"({format_brief(bar.percent)} %)" if bar.unsure else f"{format_brief(bar.percent)} %"


# The waterfall ------------------------------------------------------------------------

ROW_MOST_INCHES = 0.13  # the height of a row at most
PANEL_MOST_INCHES, PANEL_LEAST_INCHES = 3.2, 0.7  # the height of a panel at most and at least
TITLE_INCHES = 0.36  # above a panel
# Below the lowest panel, and at the left of all panels without names of hosts.
FALL_BELOW_INCHES, FALL_LEFT_INCHES = 0.42, 0.55
NAME_INCHES = 0.36  # from the axes to the left, where the name of the axis along y stands
BAR_HEIGHT = 0.82  # as a part of a row
# Parts of an object's time.
PARSED, QUEUED, WAITS, RECEIVES = (
    "is parsed", "no connection is free", "waits for its first byte", "is received")
LEAVES = "until it leaves"  # QUEUED of a browser's request, which may wait for a new connection
# The colours of the parts differ in grey, too.
PARTS = {PARSED: style.ORANGE, QUEUED: style.GROUND, WAITS: style.SKY, RECEIVES: style.BLUE}
# The fields of ObjectBar at which each part begins and ends.
SPANS = {PARSED: ("named_ms", "due_ms"), QUEUED: ("due_ms", "start_ms"),
         WAITS: ("start_ms", "first_byte_ms"), RECEIVES: ("first_byte_ms", "end_ms")}
MOST_NAMED = 24  # rows of a panel with a host's name
MOST_LETTERS = 22  # of a host's name
HOSTS_LEFT_INCHES = 1.35  # at the left of all panels with names of hosts
MARK: dict[str, Any] = {"color": style.INK, "linewidth": 1.0, "linestyle": "--"}
# How moments of a load in a browser are drawn.
LINES: dict[str, dict[str, Any]] = {
    "first contentful paint": {**MARK, "color": style.GREEN, "linestyle": "-"},
    "largest contentful paint": {**MARK, "color": style.GREEN, "linestyle": "--"},
    "DOMContentLoaded": {**MARK, "linestyle": ":"}, "load": {**MARK, "linestyle": "-"}}
VISIBLE_SHARE = 0.001  # of the time axis: about a pixel


def draw_objects(chart: ObjectChart) -> Figure:
    """Draw a panel for each window, the first one on top.

    Each object has a row in a panel. The document's row is the first.
    """
    heights = []
    for panel in chart.panels:
        wanted = max(PANEL_LEAST_INCHES, ROW_MOST_INCHES * len(panel.objects))
        heights.append(min(PANEL_MOST_INCHES, wanted))
    body_inches = sum(heights) + TITLE_INCHES * len(heights) + FALL_BELOW_INCHES
    frame = style.frame(chart, body_inches, _object_legend(chart))
    has_hosts = any(map(_has_hosts, chart.panels))
    left = HOSTS_LEFT_INCHES if has_hosts else FALL_LEFT_INCHES

    low = body_inches  # the lower end of the panel, from the lower end of the body
    for panel, height in zip(chart.panels, heights):
        low -= TITLE_INCHES + height
        axes = frame.axes(left, low, style.WIDTH_INCHES - left - style.SIDE_INCHES, height)
        _draw_panel(axes, panel, chart.to_ms)
        if not has_hosts:
            style.name_y(axes, "object", NAME_INCHES)
        if panel is not chart.panels[-1]:
            axes.set_xticklabels([])
    style.write(axes, chart.to_ms / 2, 0.05 - FALL_BELOW_INCHES, "time (ms)", size=style.MEDIUM)
    return frame.figure


def _draw_panel(axes: Axes, panel: ObjectPanel, to_ms: float) -> None:
    """Draw a row for each object, with its parts. to_ms: the end of the axis."""
    rows = range(len(panel.objects))
    for part, (begins, ends) in SPANS.items():
        starts = [getattr(drawn, begins) for drawn in panel.objects]
        lengths = [getattr(drawn, ends) - getattr(drawn, begins) for drawn in panel.objects]
        axes.barh(list(rows), lengths, BAR_HEIGHT, left=starts, facecolor=PARTS[part], linewidth=0)
    opening = [row for row in rows if panel.objects[row].opens]
    axes.plot([panel.objects[row].start_ms for row in opening], opening, linestyle="none",
              marker="|", markersize=5, markeredgewidth=1.2, color=style.VERMILION,
              clip_on=False, zorder=3)  # the mark of the document is at 0, on the axes' edge

    axes.set_xlim(0, 1.02 * to_ms)
    axes.set_ylim(len(panel.objects) - 0.4, -0.6)
    style.fix_ticks(axes.xaxis, style.even_ticks(0, to_ms), (0, to_ms))
    # The rows with a name. Rows count from 0, and objects from 1.
    if _has_hosts(panel):
        step = math.ceil(len(panel.objects) / MOST_NAMED)
        named = [row for row in rows if row % step == 0]
    else:
        step = max(1, round(style.tick_step(len(panel.objects))))
        named = [row for row in rows if row == 0 or (row + 1) % step == 0]
    axes.set_yticks(named, [_row_name(panel.objects[row], row) for row in named],
                    fontsize=style.SMALL)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    for at_ms, name in panel.marks:
        axes.axvline(at_ms, **LINES.get(name, MARK), zorder=0.5)
    style.write(axes, 0, 0.12, panel.title, align="left", size=style.MEDIUM)


def _object_legend(chart: ObjectChart) -> list[Artist]:
    """The meaning of colours, marks and lines, if they can be seen in any panel."""
    objects = [drawn for panel in chart.panels for drawn in panel.objects]
    names_of_parts = {QUEUED: LEAVES} if any(map(_has_hosts, chart.panels)) else {}
    handles: list[Artist] = []
    for part, colour in PARTS.items():
        begins, ends = SPANS[part]
        longest_ms = max(getattr(drawn, ends) - getattr(drawn, begins) for drawn in objects)
        if longest_ms > VISIBLE_SHARE * chart.to_ms:
            handles.append(Patch(facecolor=colour, linewidth=0,
                                 label=names_of_parts.get(part, part)))

    if any(drawn.opens for drawn in objects):
        handles.append(Line2D([], [], linestyle="none", marker="|", markersize=7,
                              markeredgewidth=1.2, color=style.VERMILION,
                              label="opens a connection"))
    names = dict.fromkeys(name for panel in chart.panels for _, name in panel.marks)
    handles += [Line2D([], [], **LINES[name], label=name) for name in names if name in LINES]
    if others := sorted({*names} - {*LINES}):
        handles.append(Line2D([], [], **MARK, label=", ".join(others)))
    return handles


def _has_hosts(panel: ObjectPanel) -> bool:
    return any(drawn.host for drawn in panel.objects)


def _row_name(drawn: ObjectBar, row: int) -> str:
    """The number of an object, after its host if that is known. row: counts from 0."""
    if not drawn.host:
        return str(row + 1)
    host = drawn.host
    if len(host) > MOST_LETTERS:
        host = f"…{host[1 - MOST_LETTERS:]}"
    return style.literal(f"{host} {row + 1}")
