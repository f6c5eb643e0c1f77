"""Draws bars: what each bucket improves, as in Figure 5, or each window's time, as in Figure 2.

The absolute improvement is at the left, and the percentage at the right. Bars begin at zero. Where
only a logarithmic axis shows all absolute values, as in the paper, a line below says where.
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

BAR_WIDTH = 0.42  # of the distance between buckets
# Of an interval to the left, and of what is published to the right; between them what the window
# does alone. So far from each other that none hides another among eight buckets.
ASIDE, NEAR = 0.37 * BAR_WIDTH, 0.06 * BAR_WIDTH
LEFT_INCHES, RIGHT_INCHES = 0.78, 0.6  # for ticks and names of the two axes
NAME_INCHES, RIGHT_NAME_INCHES = 0.5, 0.36
AXES_INCHES, BELOW_INCHES = 2.6, 0.42  # the latter: ticks, and the name of the axis along x
BARE_INCHES = 0.12  # over the axes
PAGE_AXES_INCHES = 1.75  # of one chart of a page
TITLE_INCHES = style.WIDTH_INCHES - LEFT_INCHES - 0.4
MANY = 3  # charts of a page, which then has no room for tables
MOST_APART = 4.0  # how many times as high one panel's axes are as another's that shares its scales
MOST_RATIO = 30.0  # of the largest value to the least, up to which an even axis shows both
PERCENT_LOOK: Mapping[str, Any] = {"facecolor": style.ORANGE, "hatch": "////",
                                   "edgecolor": "white", "linewidth": 0}


def draw_bars(chart: BarChart) -> Figure:
    """Draw one chart: below each bucket its two values and n, above it the share of responses."""
    return _draw_under_each_other(chart, [chart], AXES_INCHES)


def draw_page(chart: BarPage) -> Figure:
    """Draw charts under each other, as on the paper's page, each with its title."""
    return _draw_under_each_other(chart, chart.charts, PAGE_AXES_INCHES)


def _draw_under_each_other(chart: Chart, charts: Sequence[BarChart], height: float) -> Figure:
    """height: of each chart's axes, in inches. Many charts have their values in tables."""
    rows, titles, further_inches = [], [], []
    for panel in charts:
        rows.append(_rows_of(panel) if len(charts) < MANY else [])
        titles.append(style.fitted(panel.title, style.MEDIUM, TITLE_INCHES)
                      if len(charts) > 1 else [])
        further_inches.append(extra_inches([bar.label for bar in panel.bars]))
    lines = max(further_inches)
    below = BELOW_INCHES + lines + style.ROW_INCHES * max(map(len, rows))
    above = max(map(_above, charts)) + 0.18 * max(map(len, titles))
    whole = above + height + below

    frame = style.frame(_with_words(chart, charts), whole * len(charts), legend_of(charts))
    share_scales = _share_scales(charts)
    for floor, panel in enumerate(reversed(charts)):
        number = len(charts) - 1 - floor
        left = draw_pair(frame, panel, low=whole * floor + below, height=height,
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
    """Whether panels can have one scale; on an even one the bars of each have to be readable."""
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
    """The two axes with their bars, intervals and published values; returns the left one.

    low, height: in inches of the frame's body. scaled: the charts that share its scales.
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
        change, alone = bar.difference, bar.difference.same
        _mark(left, middle, change.absolute.interval, bar.published.absolute,
              alone.absolute.value if alone else None)
        _mark(right, middle + BAR_WIDTH, change.percent.interval, bar.published.percent,
              alone.percent.value if alone else None)
    if not any(map(_changes, chart.bars)):
        left.text(0.5, 0.5, "no bar: nothing changes", transform=left.transAxes, ha="center",
                  color=style.FAINT, fontsize=style.MEDIUM)
        if not any(_changes(bar) or bar.published.absolute for bar in all_bars):
            for axes in (left, right):  # no scale, since there is nothing to read from it
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
          alone: float | None) -> None:
    """Draw marks next to each other, so that none hides another."""
    style.whisker(axes, middle - ASIDE, interval)
    for place, value, look in ((middle - NEAR, alone, style.FURTHER),
                               (middle + ASIDE, published, style.PUBLISHED)):
        if value is not None:
            least = axes.get_ylim()[0]
            axes.plot([place], [max(value, least)],
                      **(look if value >= least else {**look, "marker": "v"}))


def legend_of(charts: Sequence[BarChart]) -> list[Artist]:
    """The legend of the charts, with the publisher and the unit of the first one."""
    bars, first = [bar for chart in charts for bar in chart.bars], charts[0]
    name = f"measured{f', {first.unit}' if first.unit else ''} (left axis)"
    handles: list[Artist] = [
        Patch(color=style.BLUE, label=name),
        Patch(**PERCENT_LOOK, label="measured, % (right axis)")]
    if any(bar.published.absolute is not None or bar.published.percent is not None
           for bar in bars):
        handles.append(Line2D([], [], **style.PUBLISHED, label=f"published {first.publisher}"))
    if any(bar.difference.same for bar in bars):
        handles.append(Line2D([], [], **style.FURTHER, label="the window alone"))
    if any(is_wide(known.interval) for bar in bars
           for known in (bar.difference.absolute, bar.difference.percent)):
        handles.append(style.interval_handle(_interval_of(first)))
    return handles


def _interval_of(chart: BarChart | TimeChart) -> str:
    return f"95 % interval{f' over {chart.over}' if chart.over else ''}"


def _changes(bar: Bar) -> bool:
    return bool(bar.difference.absolute.value or bar.difference.percent.value)


def _with_words(chart: Chart, charts: Sequence[BarChart]) -> Chart:
    """The chart with notes on its marks, on arrows, and on where logarithmic bars begin."""
    begins, goes_on = set(), False
    for panel in charts:
        (low, _), is_log = scale_of(panel)
        if is_log:
            begins.add(f"{low:g} {panel.unit}")
            marks = [value for bar in panel.bars for value in _marked(bar)]
            goes_on = goes_on or any(value < low for value in marks)

    words = []
    if begins:
        words.append(f"Bars of {charts[0].unit} begin at {' or '.join(sorted(begins))}; on a"
                     " logarithmic axis only their ends count.")
    if goes_on:
        words.append("Arrow: goes on below.")
    if len(charts) > 1 and not _share_scales(charts):
        words.append("Each panel has its own scales: on a shared one some bars could not be read.")
    return replace(chart, context=(*chart.context, *_compared(chart)),
                   foot=" ".join(filter(None, (*words, chart.foot))))


def _compared(chart: Chart) -> list[str]:
    """What its bars compare; [] if there is nothing to say. The legend has the triangles."""
    return [f"Bars: {chart.compared}"] if chart.compared else []


def set_buckets(axes: Axes, labels: Sequence[str]) -> None:
    """Set the axis along x; it is wide enough that a few bars do not become broad blocks.

    A label is broken at its blanks where it is wider than its bucket (extra_inches).
    """
    axes.set_xlim(-_margin(len(labels)), len(labels) - 1 + _margin(len(labels)))
    style.name_ticks(axes, list(enumerate("\n".join(_fitted(label, len(labels)))
                                          for label in labels)))
    axes.tick_params(axis="x", labelsize=_size(len(labels)))


def extra_inches(labels: Sequence[str]) -> float:
    """The height of the lines of labels beyond the first one."""
    return style.ROW_INCHES * (
        max((len(_fitted(label, len(labels))) for label in labels), default=1) - 1)


def _fitted(label: str, count: int) -> list[str]:
    """A label in lines that fit one of `count` buckets; a long word stays whole."""
    width = style.WIDTH_INCHES - LEFT_INCHES - style.SIDE_INCHES
    return style.fitted(label, _size(count), width / (count - 1 + 2 * _margin(count))) or [""]


def _size(count: int) -> float:
    return style.SMALL if count > 5 else style.MEDIUM


def _margin(count: int) -> float:
    return max(0.5, (5 - count) / 2)


def _above(chart: BarChart) -> float:
    """The inches above the axes: up to two lines of text above bars, and one above these."""
    lines = 0
    if any(bar.above[0] for bar in chart.bars):
        lines = 2
    elif any(bar.above[1] or bar.share_percent is not None for bar in chart.bars):
        lines = 1
    return BARE_INCHES + style.ROW_INCHES * (lines + bool(chart.above))


def _marked(bar: Bar) -> list[float]:
    """The values that have a mark at the bar's left half."""
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

    It is logarithmic where the paper's is, or where all values are positive and far apart. A
    published zero is then below it.
    """
    ours = [bar.difference.absolute.value for bar in chart.bars]
    values = [*ours, *(value for bar in chart.bars for value in _marked(bar))]
    low, high = min(values), max(values)
    if low == 0 and all(value > 0 for value in ours):
        low = min(ours)
    if chart.is_like_the_papers or low > 0 and high > MOST_RATIO * low:
        least = min(value for value in (*values, high, 10.0) if value > 0)
        # From 1 like the paper, or less; of a value that is almost nothing only its number is left.
        bottom = 10.0 ** math.floor(math.log10(max(least, high * 1e-4) * 0.7))
        return (1.0 if chart.is_like_the_papers else min(bottom, 1.0), high * 1.6), True
    room = 0.12 * max(max(high, 0.0) - min(low, 0.0), 1.0)
    return (min(low, 0.0) - (room if low < 0 else 0.0), max(high, 0.0) + room), False


def _set_absolute_axis(axes: Axes, ends: Ends, is_log: bool, unit: str) -> None:
    """Set the left axis."""
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
    """Set the right axis, with its zero at the same height as that of the left one."""
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
    """The rows of the table below the bars: n, and how many records are left out, if any."""
    changes = [bar.difference for bar in bars]
    rows = [("n", [str(change.n) for change in changes], style.FAINT)]
    excluded = [str(change.excluded.total or "") for change in changes]
    if any(excluded):
        rows.append(("excluded", excluded, style.ALARM))
    return rows


def improved(change: Difference) -> str:
    """The improvement in percent, in brackets where its interval holds zero."""
    percent = f"{format_brief(change.percent.value)} %"
    return f"({percent})" if change.is_unsure else percent


# A bar for each initial window -----------------------------------------------------

def draw_times(chart: TimeChart) -> Figure:
    """Draw a bar for each window; below it are its time, what it saves of the baseline's, and n."""
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
        _mark(axes, place, ends, level, None)
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
