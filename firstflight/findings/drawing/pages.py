"""Pages of many objects: the time of each by window, and waterfalls of their objects."""

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

GROUP_WIDTH = 0.8  # of the distance between groups
DOCUMENT = {"hatch": "////", "edgecolor": "white", "linewidth": 0}  # over the window's colour


def draw_pages(chart: PageChart) -> Figure:
    """Draw groups of bars. A row below has the first window's time, and others their change."""
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
            bar, middle = group[window], place + (window + 0.5) * width - GROUP_WIDTH / 2
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
    """Draw the page's time, the document's part of it, and a line for the first screen."""
    colour = style.window_colour(window)
    axes.bar([middle], [bar.page.value], width, facecolor=colour, linewidth=0)
    axes.bar([middle], [bar.document_ms], width, facecolor=colour, **DOCUMENT)
    if bar.first_screen_ms is not None:
        ends, heights = [middle - width / 2, middle + width / 2], [bar.first_screen_ms] * 2
        axes.plot(ends, heights, color="white", linewidth=2.4)
        axes.plot(ends, heights, color=style.INK, linewidth=1.1)
    style.whisker(axes, middle, bar.page.interval)


def _page_legend(chart: PageChart) -> list[Artist]:
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
    """What the table says of a bar: its time, or how much earlier it ends; – where none counts."""
    if bar is None:
        return "–"
    if bar.percent is None:
        return format_brief(bar.page.value)
    return f"({format_brief(bar.percent)} %)" if bar.unsure else f"{format_brief(bar.percent)} %"


# The waterfall ------------------------------------------------------------------------

ROW_MOST_INCHES, PANEL_MOST_INCHES, PANEL_LEAST_INCHES = 0.13, 3.2, 0.7
TITLE_INCHES, FALL_BELOW_INCHES, FALL_LEFT_INCHES, NAME_INCHES = 0.36, 0.42, 0.55, 0.36
BAR_HEIGHT = 0.82  # of a row
# Parts of an object's time: their colours differ in grey, too.
PARSED, QUEUED, WAITS, RECEIVES = (
    "is parsed", "no connection is free", "waits for its first byte", "is received")
LEAVES = "until it leaves"  # of a browser's requests, in place of QUEUED: it may connect first
PARTS = {PARSED: style.ORANGE, QUEUED: style.GROUND, WAITS: style.SKY, RECEIVES: style.BLUE}
SPANS = {PARSED: ("named_ms", "due_ms"), QUEUED: ("due_ms", "start_ms"),
         WAITS: ("start_ms", "first_byte_ms"), RECEIVES: ("first_byte_ms", "end_ms")}
MOST_NAMED, MOST_LETTERS = 24, 22  # rows with a host's name, and letters of it
HOSTS_LEFT_INCHES = 1.35
MARK: dict[str, Any] = {"color": style.INK, "linewidth": 1.0, "linestyle": "--"}
# Moments of a load in a browser.
LINES: dict[str, dict[str, Any]] = {
    "first contentful paint": {**MARK, "color": style.GREEN, "linestyle": "-"},
    "largest contentful paint": {**MARK, "color": style.GREEN, "linestyle": "--"},
    "DOMContentLoaded": {**MARK, "linestyle": ":"}, "load": {**MARK, "linestyle": "-"}}
VISIBLE_SHARE = 0.001  # of the time axis, about a pixel


def draw_objects(chart: ObjectChart) -> Figure:
    """Draw a panel for each window, the first on top. Each object has a row, the document first."""
    heights = []
    for panel in chart.panels:
        wanted = max(PANEL_LEAST_INCHES, ROW_MOST_INCHES * len(panel.objects))
        heights.append(min(PANEL_MOST_INCHES, wanted))
    whole = sum(heights) + TITLE_INCHES * len(heights) + FALL_BELOW_INCHES
    frame = style.frame(chart, whole, _object_legend(chart))
    has_hosts = any(map(_has_hosts, chart.panels))
    left = HOSTS_LEFT_INCHES if has_hosts else FALL_LEFT_INCHES

    top = whole
    for panel, height in zip(chart.panels, heights):
        top -= TITLE_INCHES + height
        axes = frame.axes(left, top, style.WIDTH_INCHES - left - style.SIDE_INCHES, height)
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
        starts = [getattr(each, begins) for each in panel.objects]
        lengths = [getattr(each, ends) - getattr(each, begins) for each in panel.objects]
        axes.barh(list(rows), lengths, BAR_HEIGHT, left=starts, facecolor=PARTS[part], linewidth=0)
    opening = [row for row in rows if panel.objects[row].opens]
    axes.plot([panel.objects[row].start_ms for row in opening], opening, linestyle="none",
              marker="|", markersize=5, markeredgewidth=1.2, color=style.VERMILION,
              clip_on=False, zorder=3)  # the document's is at 0, on the frame

    axes.set_xlim(0, 1.02 * to_ms)
    axes.set_ylim(len(panel.objects) - 0.4, -0.6)
    style.fix_ticks(axes.xaxis, style.even_ticks(0, to_ms), (0, to_ms))
    step = max(1, round(style.tick_step(len(panel.objects))))
    shown = [row for row in rows if row == 0 or (row + 1) % step == 0]
    if _has_hosts(panel):
        shown = [row for row in rows if row % math.ceil(len(panel.objects) / MOST_NAMED) == 0]
    axes.set_yticks(shown, [_row_name(panel.objects[row], row) for row in shown],
                    fontsize=style.SMALL)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    for at_ms, name in panel.marks:
        axes.axvline(at_ms, **LINES.get(name, MARK), zorder=0.5)
    style.write(axes, 0, 0.12, panel.title, align="left", size=style.MEDIUM)


def _object_legend(chart: ObjectChart) -> list[Artist]:
    objects = [each for panel in chart.panels for each in panel.objects]
    names_of_parts = {QUEUED: LEAVES} if any(map(_has_hosts, chart.panels)) else {}
    handles: list[Artist] = []
    for part, colour in PARTS.items():
        begins, ends = SPANS[part]
        longest_ms = max(getattr(each, ends) - getattr(each, begins) for each in objects)
        if longest_ms > VISIBLE_SHARE * chart.to_ms:
            handles.append(Patch(facecolor=colour, linewidth=0,
                                 label=names_of_parts.get(part, part)))

    if any(each.opens for each in objects):
        handles.append(Line2D([], [], linestyle="none", marker="|", markersize=7,
                              markeredgewidth=1.2, color=style.VERMILION,
                              label="opens a connection"))
    names = dict.fromkeys(name for panel in chart.panels for _, name in panel.marks)
    handles += [Line2D([], [], **LINES[name], label=name) for name in names if name in LINES]
    if others := sorted({*names} - {*LINES}):
        handles.append(Line2D([], [], **MARK, label=", ".join(others)))
    return handles


def _has_hosts(panel: ObjectPanel) -> bool:
    return any(each.host for each in panel.objects)


def _row_name(each: ObjectBar, row: int) -> str:
    """The number of an object, and its host where that is said."""
    if not each.host:
        return str(row + 1)
    shown = each.host if len(each.host) <= MOST_LETTERS else f"…{each.host[1 - MOST_LETTERS:]}"
    return style.literal(f"{shown} {row + 1}")
