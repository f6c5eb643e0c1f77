"""Draws bars: what each bucket improves, as in Figure 5, or each window's time, as in Figure 2.

The left axis has the absolute improvement, and the right one the percentage. Bars begin at zero. On
a logarithmic axis, which the paper has, a line below the figure says where they begin.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from firstflight.base.words import format_brief
from firstflight.findings.bar import Bar
from firstflight.findings.charts import BarChart, BarPage, Chart, TimeChart, is_wide
from firstflight.findings.claims import Ends
from firstflight.findings.difference import Difference
from firstflight.findings.drawing import style

BAR_WIDTH = 0.42  # as a part of the distance between buckets
# Distances of marks from the middle of a bar: the interval stands ASIDE to the left, the paired
# comparison NEAR to the left, and the published value ASIDE to the right. Among eight buckets no
# mark hides another one.
ASIDE, NEAR = 0.37 * BAR_WIDTH, 0.06 * BAR_WIDTH
LEFT_INCHES, RIGHT_INCHES = 0.78, 0.6  # for ticks and names of the two axes
NAME_INCHES, RIGHT_NAME_INCHES = 0.5, 0.36  # from the axes to the names of the two axes
AXES_INCHES = 2.6  # the height of the axes of a single chart
PAGE_AXES_INCHES = 1.75  # the height of the axes of one chart of a page
BELOW_INCHES = 0.42  # below the axes: ticks, and the name of the axis along x
BARE_INCHES = 0.12  # above the axes, without any text
TITLE_INCHES = style.WIDTH_INCHES - LEFT_INCHES - 0.4  # the most that a panel's title is wide
MANY = 3  # a page of so many charts or more has no room for tables
# Panels share their scales if the range of none is more than so many times another panel's.
MOST_APART = 4.0
# A linear axis shows values whose largest is at most so many times the smallest.
MOST_RATIO = 30.0
PERCENT_LOOK: Mapping[str, Any] = {"facecolor": style.ORANGE, "hatch": "////",
                                   "edgecolor": "white", "linewidth": 0}


def draw_bars(chart: BarChart) -> Figure:
    """Draw one chart of buckets.

    Below each bucket stand its two values and n, and above it its share of responses.
    """
    return _draw_under_each_other(chart, [chart], AXES_INCHES)


def draw_page(chart: BarPage) -> Figure:
    """Draw charts under each other, as on the paper's page, each with its title."""
    return _draw_under_each_other(chart, chart.charts, PAGE_AXES_INCHES)


def _draw_under_each_other(chart: Chart, charts: Sequence[BarChart], height: float) -> Figure:
    """Draw one chart or several panels. Without MANY of them, each has a table of its values.

    chart: has the title and the notes of the whole figure. height: of each panel's axes, in inches.
    """
    rows, titles, further_inches = [], [], []
    for panel in charts:
        rows.append(_rows_of(panel) if len(charts) < MANY else [])
        titles.append(style.fitted(panel.title, style.MEDIUM, TITLE_INCHES)
                      if len(charts) > 1 else [])
        further_inches.append(extra_inches([bar.label for bar in panel.bars]))
    lines = max(further_inches)
    below = BELOW_INCHES + lines + style.ROW_INCHES * max(map(len, rows))
    above = max(map(_above, charts)) + 0.18 * max(map(len, titles))
    panel_inches = above + height + below

    frame = style.frame(_with_words(chart, charts), panel_inches * len(charts), legend_of(charts))
    share_scales = _share_scales(charts)
    for panels_below, panel in enumerate(reversed(charts)):
        number = len(charts) - 1 - panels_below
        left = draw_pair(frame, panel, low=panel_inches * panels_below + below, height=height,
                         scaled=charts if share_scales else [panel])
        style.table(left, rows[number], lines)
        style.write(left, (len(panel.bars) - 1) / 2, 0.13 - below, panel.axis, size=style.MEDIUM)
        for line, text in enumerate(titles[number]):
            style.write(left, left.get_xlim()[0], above - 0.1 - 0.18 * line, text, align="left",
                        size=style.MEDIUM)
    return frame.figure


def _rows_of(chart: BarChart) -> list[tuple[str, list[str], str]]:
    """The rows of the table below a chart's bars."""
    differences = [bar.difference for bar in chart.bars]
    return [(chart.unit or "value", [format_brief(change.absolute.value) for change in differences],
             style.BLUE_TEXT),
            ("%", [format_brief(change.percent.value) for change in differences],
             style.ORANGE_TEXT),
            *counts_of(chart.bars)]


def _share_scales(charts: Sequence[BarChart]) -> bool:
    """Whether all panels can have the same scales.

    They are all logarithmic, or all linear with ranges so alike that all bars can be read.
    """
    scales = [scale_of(chart) for chart in charts]
    if any(is_log for _, is_log in scales):
        return all(is_log for _, is_log in scales)

    heights = [high - low for (low, high), _ in scales]
    percents = []
    for chart in charts:
        percents.append(max([1.0, *(abs(bar.difference.percent.value) for bar in chart.bars)]))
    return (max(heights) <= MOST_APART * min(heights)
            and max(percents) <= MOST_APART * min(percents))


def draw_pair(frame: style.FigureFrame, chart: BarChart, low: float, height: float,
              scaled: Sequence[BarChart]) -> Axes:
    """Draw a chart's two axes with bars, intervals and published values; return the left axes.

    low, height: of the axes in the frame's body, in inches. scaled: all charts that have the same
    scales as this one, with this one.
    """
    left = frame.axes(LEFT_INCHES, low, style.WIDTH_INCHES - LEFT_INCHES - RIGHT_INCHES, height)
    right = left.twinx()
    _, is_log = scale_of(chart)
    scales = [ends for ends, _ in map(scale_of, scaled)]
    ends = min(low for low, _ in scales), max(high for _, high in scales)
    all_bars = [bar for panel in scaled for bar in panel.bars]
    _set_absolute_axis(left, ends, is_log, unit=chart.unit)
    _set_percent_axis(right, all_bars, zero=0.0 if is_log else -ends[0] / (ends[1] - ends[0]))
    set_buckets(left, [bar.label for bar in chart.bars])

    middles = [place - BAR_WIDTH / 2 for place in range(len(chart.bars))]
    changes = [bar.difference for bar in chart.bars]
    heights = [change.absolute.value for change in changes]
    bottom = 0.0
    if is_log:
        bottom = ends[0]
        heights = [max(height - bottom, 0.0) for height in heights]
    left.bar(middles, heights, BAR_WIDTH, bottom=bottom, color=style.BLUE)
    right.bar([middle + BAR_WIDTH for middle in middles],
              [change.percent.value for change in changes], BAR_WIDTH, **PERCENT_LOOK)

    for middle, bar in zip(middles, chart.bars):
        change = bar.difference
        paired = change.same
        _mark(left, middle, change.absolute.interval, bar.published.absolute,
              paired=paired.absolute.value if paired else None)
        _mark(right, middle + BAR_WIDTH, change.percent.interval, bar.published.percent,
              paired=paired.percent.value if paired else None)
    if not any(map(_changes, chart.bars)):
        left.text(0.5, 0.5, "no bar: nothing changes", transform=left.transAxes, ha="center",
                  color=style.FAINT, fontsize=style.MEDIUM)
        if not any(_changes(bar) or bar.published.absolute for bar in all_bars):
            for axes in (left, right):  # there is nothing to read, so a scale makes no sense
                axes.set_yticks([0.0])

    for place, bar in enumerate(chart.bars):
        above = bar.above
        if not any(above) and bar.share_percent is not None:
            above = "", f"{bar.share_percent:.2f} %"
        for text, inches in zip(above, (0.25, 0.1)):
            style.write(left, place, inches, text)
    if chart.above:
        style.write(left, (len(chart.bars) - 1) / 2, _above(chart) - 0.11, chart.above, style.FAINT)
    return left


def _mark(axes: Axes, middle: float, interval: Ends | None, published: float | None,
          paired: float | None) -> None:
    """Draw the marks of a bar next to each other, so that none hides another.

    middle: of the bar. published, paired: the published value and that of the paired comparison;
    None for no mark. A value below the axis has an arrow.
    """
    style.whisker(axes, middle - ASIDE, interval)
    for place, value, look in ((middle - NEAR, paired, style.FURTHER),
                               (middle + ASIDE, published, style.PUBLISHED)):
        if value is None:
            continue
        least = axes.get_ylim()[0]
        if value < least:
            look = {**look, "marker": "v"}
        axes.plot([place], [max(value, least)], **look)


def legend_of(charts: Sequence[BarChart]) -> list[Artist]:
    """The legend of the charts, with the publisher and the unit of the first one."""
    bars = [bar for chart in charts for bar in chart.bars]
    first = charts[0]
    name = f"measured{f', {first.unit}' if first.unit else ''} (left axis)"
    handles: list[Artist] = [
        Patch(color=style.BLUE, label=name),
        Patch(**PERCENT_LOOK, label="measured, % (right axis)")]
    if any(bar.published.absolute is not None or bar.published.percent is not None
           for bar in bars):
        handles.append(Line2D([], [], **style.PUBLISHED, label=f"published {first.publisher}"))
    if any(bar.difference.same for bar in bars):
        handles.append(Line2D([], [], **style.FURTHER, label="the window alone"))
    if any(is_wide(bar.difference.absolute.interval) or is_wide(bar.difference.percent.interval)
           for bar in bars):
        handles.append(style.interval_handle(_interval_of(first)))
    return handles


def _interval_of(chart: BarChart | TimeChart) -> str:
    """What an interval of the chart is, for the legend."""
    return f"95 % interval{f' over {chart.over}' if chart.over else ''}"


def _changes(bar: Bar) -> bool:
    """Whether the bar has a length on any of the two axes."""
    return bool(bar.difference.absolute.value or bar.difference.percent.value)


def _with_words(chart: Chart, charts: Sequence[BarChart]) -> Chart:
    """The chart with notes on what bars compare, on scales, and on arrows."""
    lower_ends = set()  # of logarithmic axes, with the unit
    has_arrow = False
    for panel in charts:
        (low, _), is_log = scale_of(panel)
        if is_log:
            lower_ends.add(f"{low:g} {panel.unit}")
            marks = [value for bar in panel.bars for value in _marked(bar)]
            has_arrow = has_arrow or any(value < low for value in marks)

    notes = []
    if lower_ends:
        notes.append(f"Bars of {charts[0].unit} begin at {' or '.join(sorted(lower_ends))}; on a"
                     " logarithmic axis only their ends count.")
    if has_arrow:
        notes.append("Arrow: goes on below.")
    if len(charts) > 1 and not _share_scales(charts):
        notes.append("Each panel has its own scales: on a shared one some bars could not be read.")
    return replace(chart, context=(*chart.context, *_compared(chart)),
                   foot=" ".join(filter(None, (*notes, chart.foot))))


def _compared(chart: Chart) -> list[str]:
    """A line of the context that says what the chart's bars compare; [] where it is not known."""
    return [f"Bars: {chart.compared}"] if chart.compared else []


def set_buckets(axes: Axes, labels: Sequence[str]) -> None:
    """Set the axis along x, with a bucket for each label.

    Where there are few buckets, the axis has margins, so that bars do not become broad blocks. A
    label that is wider than its bucket is broken at its blanks (extra_inches has the height).
    """
    axes.set_xlim(-_margin(len(labels)), len(labels) - 1 + _margin(len(labels)))
    style.name_ticks(axes, list(enumerate("\n".join(_fitted(label, len(labels)))
                                          for label in labels)))
    axes.tick_params(axis="x", labelsize=_size(len(labels)))


def extra_inches(labels: Sequence[str]) -> float:
    """The height that the labels of buckets have beyond their first line."""
    lines = [len(_fitted(label, len(labels))) for label in labels]
    return style.ROW_INCHES * (max(lines, default=1) - 1)


def _fitted(label: str, count: int) -> list[str]:
    """A label in lines that fit one of `count` buckets; a long word stays whole."""
    width = style.WIDTH_INCHES - LEFT_INCHES - style.SIDE_INCHES
    return style.fitted(label, _size(count), width / (count - 1 + 2 * _margin(count))) or [""]


def _size(count: int) -> float:
    """The size of the labels of `count` buckets, in points."""
    return style.SMALL if count > 5 else style.MEDIUM


def _margin(count: int) -> float:
    """From the middle of the first bucket to the axis's end, in buckets, if there are `count`."""
    return max(0.5, (5 - count) / 2)


def _above(chart: BarChart) -> float:
    """The inches that text takes above the axes.

    It is up to two lines above each bar, and another line above them all.
    """
    lines = 0
    if any(bar.above[0] for bar in chart.bars):
        lines = 2
    elif any(bar.above[1] or bar.share_percent is not None for bar in chart.bars):
        lines = 1
    return BARE_INCHES + style.ROW_INCHES * (lines + bool(chart.above))


def _marked(bar: Bar) -> list[float]:
    """The values with a mark on the left axis: interval, published value, paired comparison."""
    change = bar.difference
    values = [*(change.absolute.interval or ())]
    if bar.published.absolute is not None:
        values.append(bar.published.absolute)
    if change.same is not None:
        values.append(change.same.absolute.value)
    return values


# The two axes ------------------------------------------------------------------------

def scale_of(chart: BarChart) -> tuple[Ends, bool]:
    """The ends of the left axis, and whether it is logarithmic.

    It is logarithmic where the paper's is, or where all values are positive and far apart
    (MOST_RATIO). A published zero then lies below the axis.
    """
    ours = [bar.difference.absolute.value for bar in chart.bars]
    values = [*ours, *(value for bar in chart.bars for value in _marked(bar))]
    low, high = min(values), max(values)
    if low == 0 and all(value > 0 for value in ours):
        low = min(ours)
    if chart.is_like_the_papers or low > 0 and high > MOST_RATIO * low:
        least = min(value for value in (*values, high, 10.0) if value > 0)
        # The axis begins at 1, as in the paper, or lower. A value of less than a ten-thousandth of
        # the largest one has no bar, but its number stands below.
        bottom = 10.0 ** math.floor(math.log10(max(least, high * 1e-4) * 0.7))
        return (1.0 if chart.is_like_the_papers else min(bottom, 1.0), high * 1.6), True
    room = 0.12 * max(max(high, 0.0) - min(low, 0.0), 1.0)
    return (min(low, 0.0) - (room if low < 0 else 0.0), max(high, 0.0) + room), False


def _set_absolute_axis(axes: Axes, ends: Ends, is_log: bool, unit: str) -> None:
    """Set the scale, the ticks and the name of the left axis."""
    if is_log:
        axes.set_yscale("log")
    axes.set_ylim(*ends)
    style.fix_ticks(axes.yaxis, style.decades() if is_log else style.even_ticks(*ends), ends)
    if ends[0] < 0:
        axes.axhline(0, color=style.INK, linewidth=0.8)
    axes.grid(axis="y")
    axes.tick_params(axis="y", colors=style.BLUE_TEXT)
    style.name_y(axes, f"Improvement{f' ({unit})' if unit else ''}", NAME_INCHES,
                 colour=style.BLUE_TEXT)


def _set_percent_axis(axes: Axes, bars: Sequence[Bar], zero: float) -> None:
    """Set the scale, the ticks and the name of the right axis.

    zero: the height at which the left axis has its zero, as a part of its length. The right one has
    zero at the same height.
    """
    values = []
    for bar in bars:
        change = bar.difference
        values += [change.percent.value, *(change.percent.interval or ())]
        if bar.published.percent is not None:
            values.append(bar.published.percent)
        if change.same is not None:
            values.append(change.same.percent.value)

    high = 1.12 * max(*values, 0.5)
    if zero > 0:
        high = max(high, -1.12 * min(values) * (1 - zero) / zero)
    ends = -high * zero / (1 - zero), high
    axes.set_ylim(*ends)
    style.fix_ticks(axes.yaxis, style.even_ticks(*ends), ends)
    axes.tick_params(axis="y", colors=style.ORANGE_TEXT)
    style.name_y(axes, "Improvement (%)", RIGHT_NAME_INCHES, colour=style.ORANGE_TEXT, right=True)


def counts_of(bars: Iterable[Bar]) -> list[tuple[str, list[str], str]]:
    """Rows of the table below the bars: n, and if any records are excluded, their numbers."""
    changes = [bar.difference for bar in bars]
    rows = [("n", [str(change.n) for change in changes], style.FAINT)]
    excluded = [str(change.excluded.total or "") for change in changes]
    if any(excluded):
        rows.append(("excluded", excluded, style.ALARM))
    return rows


def improved(change: Difference) -> str:
    """The improvement in percent. It is in brackets where its interval includes zero."""
    percent = f"{format_brief(change.percent.value)} %"
    return f"({percent})" if change.is_unsure else percent


# A bar for each initial window -----------------------------------------------------

def draw_times(chart: TimeChart) -> Figure:
    """Draw a bar for each window.

    Below a bar stand the window's time, how much of the baseline's time it saves, and n.
    """
    times, intervals, saved = [], [], []
    for bar in chart.bars:
        is_baseline = bar.label == chart.baseline
        times.append(bar.difference.experiment.value)
        intervals.append(None if is_baseline else bar.difference.paired_interval)
        saved.append("" if is_baseline else improved(bar.difference))

    rows = [(chart.unit or "value", list(map(format_brief, times)), style.BLUE_TEXT)]
    if any(saved):
        rows.append((chart.improved, saved, style.INK))
    rows += counts_of(chart.bars)
    labels = [bar.label for bar in chart.bars]
    lines = extra_inches(labels)
    below = BELOW_INCHES + lines + style.ROW_INCHES * len(rows)

    brackets = ""
    if any(text.startswith("(") for text in saved):
        brackets = f"In brackets: the 95 % interval of what is {chart.improved} holds zero."
    with_words = replace(chart, context=(*chart.context, *_compared(chart)),
                         foot=" ".join(filter(None, (brackets, chart.foot))))
    frame = style.frame(with_words, BARE_INCHES + AXES_INCHES + below,
                        _legend_of_times(chart, intervals))
    axes = frame.axes(LEFT_INCHES, below, style.WIDTH_INCHES - LEFT_INCHES - style.SIDE_INCHES,
                      AXES_INCHES)
    axes.bar(range(len(chart.bars)), times, 1.6 * BAR_WIDTH,
             color=[style.window_colour(int(bar.value)) for bar in chart.bars])

    published = [bar.published.level for bar in chart.bars]
    shown = [*times, *chain.from_iterable(filter(None, intervals))]
    shown += [level for level in published if level is not None]
    style.from_zero(axes, 1.12 * max(shown))
    for place, (ends, level) in enumerate(zip(intervals, published)):
        _mark(axes, place, ends, level, paired=None)
    style.name_y(axes, f"Mean {chart.measured}{f' ({chart.unit})' if chart.unit else ''}",
                 NAME_INCHES)
    set_buckets(axes, labels)
    style.table(axes, rows, lines)
    style.write(axes, (len(chart.bars) - 1) / 2, 0.13 - below, chart.axis, size=style.MEDIUM)
    return frame.figure


def _legend_of_times(chart: TimeChart, intervals: Sequence[Ends | None]) -> list[Artist]:
    """The meaning of the marks for published values and intervals."""
    handles: list[Artist] = []
    if any(bar.published.level is not None for bar in chart.bars):
        handles.append(Line2D([], [], **style.PUBLISHED, label=f"published {chart.publisher}"))
    if any(map(is_wide, intervals)):
        handles.append(style.interval_handle(
            f"{_interval_of(chart)} of what is {chart.improved}"))
    return handles
