"""Bars: improvements a bucket like the paper's Figure 5, times a window like its Figure 2.

Of an improvement the absolute is at the left and percent at the right. The absolute axis is
logarithmic where all values are positive, else it passes zero, so that nothing is hidden; both
zeros stand at one height.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from base.words import short
from findings.charts import Bar, BarChart, BarPage, Chart, TimeBar, TimeChart, is_wide
from findings.drawing import style

BAR_WIDTH = 0.36  # of the distance between buckets
LEFT_INCHES, RIGHT_INCHES = 0.82, 0.72  # for ticks and names of the two axes
NAME_INCHES, RIGHT_NAME_INCHES = 0.53, 0.38
AXES_INCHES, BELOW_INCHES = 3.22, 0.8
ABOVE_INCHES, BARE_INCHES = 0.42, 0.12  # over the axes, with words there and without
PAGE_AXES_INCHES, ROW_INCHES, PAGE_BELOW_INCHES = 2.15, 2.95, 0.52  # of one chart of a page


@singledispatch
def draw(chart: Chart) -> Figure:
    """By the class of the chart."""
    raise TypeError(f"no figure of {type(chart).__name__}")


@draw.register
def _draw_bars(chart: BarChart) -> Figure:
    """One chart: below each bucket its two values and n, above it the share of responses."""
    more = 0.14 if any(bar.left_out for bar in chart.bars) else 0.0
    above = ABOVE_INCHES if any(bar.share_percent is not None or any(bar.above)
                                for bar in chart.bars) else BARE_INCHES
    frame = style.frame(chart, above + AXES_INCHES + BELOW_INCHES + more, legend_of([chart]))
    left = draw_pair(frame, chart, BELOW_INCHES + more, AXES_INCHES)
    for place, bar in enumerate(chart.bars):
        _write_pair(left, place, bar, chart.unit)
    style.write(left, (len(chart.bars) - 1) / 2, -0.69 - more, chart.axis, size=style.MEDIUM)
    if any(bar.share_percent is not None for bar in chart.bars):
        style.write(left, (len(chart.bars) - 1) / 2, 0.235, "share of the paper's responses",
                    style.FAINT)
    return frame.figure


def draw_pair(frame: style.FigureFrame, chart: BarChart, low: float, height: float) -> Axes:
    """The two axes with their bars, intervals and published values; returns the left one.

    low, height: in inches of the frame's body.
    """
    left = frame.axes(LEFT_INCHES, low, style.WIDTH_INCHES - LEFT_INCHES - RIGHT_INCHES, height)
    right = left.twinx()
    scale = scale_of(chart.bars, chart.even_scale)
    _set_absolute_axis(left, scale, chart.unit)
    _set_percent_axis(right, chart.bars, _zero_height(left, scale),
                      least=0.5 if scale.even else 5.0)
    for place, bar in enumerate(chart.bars):
        style.whisker(left, place - BAR_WIDTH / 2, bar.absolute.interval)
        style.whisker(right, place + BAR_WIDTH / 2, bar.percent.interval)
    places = range(len(chart.bars))
    left.bar([place - BAR_WIDTH / 2 for place in places],
             [bar.absolute.value - scale.bottom for bar in chart.bars], BAR_WIDTH,
             bottom=scale.bottom, color=style.BLUE)
    right.bar([place + BAR_WIDTH / 2 for place in places],
              [bar.percent.value for bar in chart.bars], BAR_WIDTH, color=style.ORANGE)
    _draw_published(left, -BAR_WIDTH / 2, "o", [bar.published for bar in chart.bars])
    _draw_published(right, BAR_WIDTH / 2, "D", [bar.published_percent for bar in chart.bars])
    set_buckets(left, [bar.label for bar in chart.bars])
    if not any(bar.absolute.value or bar.percent.value for bar in chart.bars):
        left.text(0.5, 0.5, "no bar: nothing changes", transform=left.transAxes, ha="center",
                  color=style.FAINT, fontsize=style.MEDIUM)
    for place, bar in enumerate(chart.bars):
        if bar.share_percent is not None:
            style.write(left, place, 0.085, f"{bar.share_percent:.2f} %")
    return left


def legend_of(charts: Sequence[BarChart]) -> list[Artist]:
    """What the charts hold; their publisher and unit are those of the first."""
    bars, first = [bar for chart in charts for bar in chart.bars], charts[0]
    unit = f", {first.unit}" if first.unit else ""
    handles: list[Artist] = [
        Patch(color=style.BLUE, label=f"measured here{unit} (left axis)"),
        Patch(color=style.ORANGE, label="measured here, % (right axis)")]
    if any(bar.published is not None for bar in bars):
        handles.append(Line2D([], [], **style.published("o"),
                              label=f"published {first.publisher}{unit}"))
    if any(bar.published_percent is not None for bar in bars):
        handles.append(Line2D([], [], **style.published("D"),
                              label=f"published {first.publisher}, %{first.percent_note}"))
    if any(is_wide(bar.absolute.interval) for bar in bars):
        handles.append(Line2D([], [], color=style.INK, marker="|", label="95 % interval"))
    return handles


def set_buckets(axes: Axes, labels: Sequence[str]) -> None:
    """The axis along x, wide enough that a few bars are not broad blocks."""
    axes.set_xlim(-_margin(len(labels)), len(labels) - 1 + _margin(len(labels)))
    style.name_ticks(axes, list(enumerate(labels)))
    axes.tick_params(axis="x", labelsize=style.MEDIUM)


def _margin(count: int) -> float:
    return max(0.5, (5 - count) / 2)


def set_width(count: int) -> float:
    """Inches from one of so many buckets to the next."""
    return ((style.WIDTH_INCHES - LEFT_INCHES - RIGHT_INCHES)
            / (count - 1 + 2 * _margin(count)))


# The absolute axis -------------------------------------------------------------------

@dataclass(frozen=True)
class AbsoluteScale:
    """The left axis: logarithmic; or passing zero and linear up to ±1; or even all over."""

    low: float
    high: float
    passes_zero: bool
    even: bool = False

    @property
    def bottom(self) -> float:
        """Where bars begin."""
        return 0.0 if self.passes_zero else self.low


def scale_of(bars: Sequence[Bar], even: bool = False) -> AbsoluteScale:
    """The scale on which all values, intervals and published ones have a place."""
    values = [value for bar in bars for value in (
        bar.absolute.value, bar.published, *(bar.absolute.interval or ())) if value is not None]
    low, high = min(values), max(values)
    if even:
        room = 0.12 * max(max(high, 0.0) - min(low, 0.0), 1.0)
        return AbsoluteScale(min(low, 0.0) - room, max(high, 0.0) + room, True, even=True)
    if low >= 0.1:
        # From 1 like the paper, or less: the shortest bar keeps a visible height.
        return AbsoluteScale(min(10.0 ** math.floor(math.log10(low * 0.7)), 1.0), high * 1.6, False)
    return AbsoluteScale(min(low * 1.6, -0.25), max(high * 1.6, 10.0), True)


def _set_absolute_axis(axes: Axes, scale: AbsoluteScale, unit: str) -> None:
    ends = scale.low, scale.high
    if scale.passes_zero:
        axes.axhline(0, color=style.INK, linewidth=0.8)
    if scale.even:
        ticks = style.even_ticks(*ends)
    else:
        ticks = style.decades(scale.passes_zero)
        if scale.passes_zero:
            axes.set_yscale("symlog", linthresh=1, linscale=0.9)  # 0 to 1 as long as 1 to 10
        else:
            axes.set_yscale("log")
    axes.set_ylim(*ends)
    style.fix_ticks(axes.yaxis, ticks, ends)
    axes.grid(axis="y")
    axes.tick_params(axis="y", colors=style.BLUE_TEXT, labelsize=style.MEDIUM)
    style.name_y(axes, f"Absolute improvement{f' ({unit})' if unit else ''}", NAME_INCHES,
                 colour=style.BLUE_TEXT)


def _zero_height(axes: Axes, scale: AbsoluteScale) -> float:
    """Where bars begin, as a part of the height of the axes."""
    if not scale.passes_zero:
        return 0.0
    low, zero, high = axes.yaxis.get_transform().transform([scale.low, 0.0, scale.high])
    return float((zero - low) / (high - low))


def _set_percent_axis(axes: Axes, bars: Sequence[Bar], zero: float, least: float) -> None:
    """The right axis, its zero at the height of the left one's; `least` fits above it."""
    values = [value for bar in bars for value in (
        bar.percent.value, bar.published_percent, *(bar.percent.interval or ()))
        if value is not None]
    high = 1.12 * max(*values, least)
    if zero > 0:
        high = max(high, -1.12 * min(values) * (1 - zero) / zero)
    low = -high * zero / (1 - zero)
    axes.set_ylim(low, high)
    style.fix_ticks(axes.yaxis, style.even_ticks(low, high), (low, high))
    axes.tick_params(axis="y", colors=style.ORANGE_TEXT, labelsize=style.MEDIUM)
    style.name_y(axes, "Improvement (% of the baseline)", RIGHT_NAME_INCHES,
                 colour=style.ORANGE_TEXT, right=True)


# Marks and words ---------------------------------------------------------------------

def _draw_published(axes: Axes, aside: float, marker: str,
                    values: Sequence[float | None]) -> None:
    """Open markers, each over its bar."""
    known = [(place + aside, value) for place, value in enumerate(values) if value is not None]
    if known:
        axes.plot(*zip(*known), **style.published(marker))


def _write_pair(axes: Axes, place: int, bar: Bar, unit: str) -> None:
    """Below: the two values, n and what is left out. Above: two lines, if there are."""
    style.write(axes, place - 0.03, -0.29, f"{short(bar.absolute.value)} {unit}".rstrip(),
                style.BLUE_TEXT, "right", style.TINY)
    style.write(axes, place + 0.03, -0.29, f"{short(bar.percent.value)} %", style.ORANGE_TEXT,
                "left", style.TINY)
    write_counts(axes, place, bar.n, bar.left_out)
    for text, inches, colour in zip(bar.above, (0.21, 0.085), (style.INK, style.FAINT)):
        if text:
            style.write(axes, place, inches, text, colour)


def write_counts(axes: Axes, place: int, n: int, left_out: int) -> None:
    style.write(axes, place, -0.45, f"n = {n}", style.FAINT)
    if left_out:
        style.write(axes, place, -0.6, f"{left_out} excluded", style.ALARM)


# Several charts under each other, like the paper's page ----------------------------

@draw.register
def _draw_page(chart: BarPage) -> Figure:
    """Each chart with its shares above and its axis below; values stand in their own figures."""
    frame = style.frame(chart, ROW_INCHES * len(chart.charts), legend_of(chart.charts))
    for row, row_chart in enumerate(reversed(chart.charts)):
        left = draw_pair(frame, row_chart, ROW_INCHES * row + PAGE_BELOW_INCHES, PAGE_AXES_INCHES)
        left.set_xlabel(style.literal(row_chart.axis))
    return frame.figure


# A bar for each initial window -----------------------------------------------------

@draw.register
def _draw_times(chart: TimeChart) -> Figure:
    """Below each window: its time, how much less than the baseline's that is, and n."""
    more = 0.14 if any(bar.left_out for bar in chart.bars) else 0.0
    below = BELOW_INCHES + more
    frame = style.frame(chart, BARE_INCHES + AXES_INCHES + below, _legend_of_times(chart))
    axes = frame.axes(LEFT_INCHES, below,
                      style.WIDTH_INCHES - LEFT_INCHES - RIGHT_INCHES,
                      AXES_INCHES)
    axes.bar(range(len(chart.bars)), [bar.time.value for bar in chart.bars], 2 * BAR_WIDTH,
             color=style.BLUE)
    for place, bar in enumerate(chart.bars):
        style.whisker(axes, place, bar.time.interval)
    _draw_published(axes, 0.0, "o", [bar.published for bar in chart.bars])
    _set_time_axis(axes, chart)
    set_buckets(axes, [bar.label for bar in chart.bars])
    for place, bar in enumerate(chart.bars):
        _write_time(axes, place, bar, chart.unit)
    style.write(axes, (len(chart.bars) - 1) / 2, -0.69 - more, chart.axis, size=style.MEDIUM)
    return frame.figure


def _legend_of_times(chart: TimeChart) -> list[Artist]:
    handles: list[Artist] = [Patch(color=style.BLUE, label="measured here")]
    if any(bar.percent is not None for bar in chart.bars):
        handles.append(Patch(color="none",
                             label=f"%: {chart.improved} of the {chart.measured} with"
                                   f" {chart.baseline} segments"))
    if any(bar.unsure for bar in chart.bars):
        handles.append(Patch(color="none", label="(): the interval holds zero"))
    if any(bar.published is not None for bar in chart.bars):
        handles.append(Line2D([], [], **style.published("o"),
                              label=f"published {chart.publisher}"))
    if any(is_wide(bar.time.interval) for bar in chart.bars):
        handles.append(Line2D([], [], color=style.INK, marker="|",
                              label=f"95 % interval of what is {chart.improved}"))
    return handles


def _set_time_axis(axes: Axes, chart: TimeChart) -> None:
    high = 1.12 * max(value for bar in chart.bars for value in (
        bar.time.value, bar.published, *(bar.time.interval or ())) if value is not None)
    style.from_zero(axes, high)
    axes.tick_params(axis="y", colors=style.BLUE_TEXT, labelsize=style.MEDIUM)
    unit = f" ({chart.unit})" if chart.unit else ""
    style.name_y(axes, f"Mean {chart.measured}{unit}", NAME_INCHES, colour=style.BLUE_TEXT)


def _write_time(axes: Axes, place: int, bar: TimeBar, unit: str) -> None:
    alone = bar.percent is None
    value = f"{short(bar.time.value)} {unit}".rstrip()
    style.write(axes, place - (0 if alone else 0.03), -0.29, value, style.BLUE_TEXT,
                "center" if alone else "right", style.TINY)
    if bar.percent is not None:
        saved = f"{short(bar.percent)} %"
        style.write(axes, place + 0.03, -0.29, f"({saved})" if bar.unsure else saved,
                    style.ORANGE_TEXT, "left", style.TINY)
    write_counts(axes, place, bar.n, bar.left_out)
