"""Draws columns of plots, which have lines, distributions or bars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, compress
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from firstflight.base.words import format_brief
from firstflight.findings.charts import Line, LineChart, Plot
from firstflight.findings.drawing import style

# The colours of lines that are not of an initial window. None of them is the colour of a window
# that is measured (style.WINDOWS). In grey, STYLES and MARKERS distinguish the lines.
DISTINCT = (style.INK, style.VERMILION, style.GREEN, style.PINK, "#F0C000", "#8A5A30", "#C8C8B0")
STYLES = ("-", "-", "-", "--", "--", ":", ":")
# The colours of ordered lines, from light to dark. Neighbours differ in grey, and for readers who
# cannot distinguish red from green.
ORDERED = ("#F3D9A0", style.ORANGE, "#D0743C", "#A84600", "#722A00", "#451400", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# The widths of ordered lines, in points. Each line is drawn on the one before, and is narrower: so
# both are seen where they have the same values.
NESTED = (5.2, 4.6, 4.0, 3.4, 2.6, 1.8, 1.0)
FIRST_BARS = "#999999"  # the colour of the bars with which all others are compared
LIMIT: dict[str, Any] = {"color": style.ALARM, "linewidth": 0.8, "linestyle": "--"}
BARS_WIDTH = 0.76  # of the bars of all series at a tick, as a part of the distance between ticks
# Ticks in each decade of a logarithmic axis. An axis has the first list with FEWEST_TICKS on it.
DECADES = ((1, 2, 5), (1, 1.5, 2, 3, 5, 7),
           (1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9))
FEWEST_TICKS = 4

LEFT_INCHES, RIGHT_INCHES = 0.74, 0.2  # at the left and right of the axes of each column
ABOVE_INCHES, TITLE_INCHES = 0.16, 0.18  # above the axes, and for each line of a title
TICKS_INCHES, NAME_INCHES = 0.3, 0.22  # below the axes: labels of ticks, and the axis's name
UNMARKED = ("curve", "dashed", "bars")  # styles of lines whose points have no markers
CUT_POINTS = 10  # the height of a line of text next to the arrows at an edge, in points
TALL_INCHES = 1.6  # axes of this height or more have room for words of medium size


def draw(chart: LineChart) -> Figure:
    """Draw the plots of each column under each other."""
    inches = chart.plot_inches * max(map(len, chart.columns))
    frame = style.frame(chart, inches, _handles(chart) if chart.legend else [])
    boxes = _columns(chart)
    titles = []  # by column, the lines of each plot's title
    for column, (_, width) in zip(chart.columns, boxes):
        # A title must not reach the labels of the next column's ticks.
        room = width + RIGHT_INCHES
        titles.append([style.fitted(plot.title, style.MEDIUM, room) for plot in column])
    most_lines = max(map(len, chain.from_iterable(titles)))
    above = ABOVE_INCHES + TITLE_INCHES * most_lines

    for column, (left, width), titles_of_column in zip(chart.columns, boxes, titles):
        plots = [_with_fitted_ticks(plot, width) for plot in column]
        below = list(map(_below_inches, plots))
        height = (inches - sum(below)) / len(plots) - above
        low = inches
        for plot, below_plot, title in zip(plots, below, titles_of_column):
            low -= above + height + below_plot
            axes = frame.axes(left, low + below_plot, width, height)
            _draw_plot(axes, plot, chart, height)
            axes.set_title(style.literal("\n".join(title)))
    return frame.figure


def _below_inches(plot: Plot) -> float:
    """The height of the text below the axes: labels of ticks, and the name of the axis."""
    further_lines = max((label.count("\n") for _, label in plot.ticks), default=0)
    name = NAME_INCHES if plot.x_label else 0.0
    return TICKS_INCHES + TITLE_INCHES * further_lines + name


def _with_fitted_ticks(plot: Plot, width: float) -> Plot:
    """The plot with each name along x broken into lines that fit. width: of the axes, in inches."""
    if not is_categorical(plot):
        return plot
    room = width / len(plot.ticks)
    ticks = tuple((place, "\n".join(style.fitted(label, style.MEDIUM, room)))
                  for place, label in plot.ticks)
    return replace(plot, ticks=ticks)


def _handles(chart: LineChart) -> list[Artist]:
    """A handle for each name of a line. It looks like the first line of this name."""
    handles: dict[str, Artist] = {}
    for column in chart.columns:
        for plot in column:
            for line in plot.lines:
                if line.name not in handles and line.name:
                    handles[line.name] = _handle(line, chart, not is_categorical(plot))
            if plot.limit is not None:
                handles[plot.limit[1]] = Line2D([], [], **LIMIT, label=plot.limit[1])
    return list(handles.values())


def _columns(chart: LineChart) -> list[tuple[float, float]]:
    """Where the axes of each column begin, and how wide they are, in inches."""
    shares = chart.widths or (1.0,) * len(chart.columns)
    widths = [style.WIDTH_INCHES * share / sum(shares) for share in shares]

    boxes = []
    begin = 0.0
    for width in widths:
        boxes.append((begin + LEFT_INCHES, width - LEFT_INCHES - RIGHT_INCHES))
        begin += width
    return boxes


def _draw_plot(axes: Axes, plot: Plot, chart: LineChart, height: float) -> None:
    """Draw the lines of a plot, its axes and their names. height: of the axes, in inches."""
    axes.set_xscale(plot.x_scale)
    axes.set_yscale(plot.y_scale)
    bars = [line for line in plot.lines if line.style == "bars"]
    joined = not is_categorical(plot)
    drawn: list[Artist] = []
    for line in plot.lines:
        if line.style == "bars":
            drawn.append(_draw_bars(axes, line, bars.index(line), len(bars), chart))
        else:
            drawn.append(_draw_line(axes, _without_cut(line, plot), chart, joined))

    if plot.zero:
        axes.axhline(0, color=style.INK, linewidth=0.8)
    if plot.limit is not None:
        value, name = plot.limit
        axes.axhline(value, **LIMIT)
        if not chart.legend:
            axes.annotate(style.literal(name), (1, value), (-2, 2), textcoords="offset points",
                          xycoords=axes.get_yaxis_transform(), ha="right", color=style.ALARM,
                          fontsize=style.SMALL)

    axes.grid()
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    _set_x(axes, plot)
    _set_y(axes, plot, bool(bars))
    _name_cut(axes, plot, chart)

    room = 2 * (RIGHT_INCHES + axes.get_position().width * style.WIDTH_INCHES / 2)
    fits = len(style.fitted(plot.x_label, style.MEDIUM, room)) < 2
    axes.set_xlabel(style.literal(plot.x_label), fontsize=style.MEDIUM if fits else style.SMALL)

    size = style.MEDIUM if height > TALL_INCHES else style.SMALL
    named: list[str] = []
    for line_of_label in plot.y_label.split("\n"):
        named += style.fitted(line_of_label, size, height)
    axes.set_ylabel(style.literal("\n".join(named)), fontsize=size)
    if plot.legend:
        style.legend(axes, [handle for handle, line in zip(drawn, plot.lines) if line.name],
                     loc="best")


def _set_x(axes: Axes, plot: Plot) -> None:
    """Set the ends and the ticks of the axis along x."""
    if plot.x_ends:
        axes.set_xlim(*plot.x_ends)
    if plot.ticks and is_categorical(plot):
        style.name_ticks(axes, plot.ticks)
    elif plot.ticks:
        style.name_ticks(axes, style.without_crowding(axes, plot.ticks))
    elif plot.x_scale == "log":
        low, high = axes.get_xlim()
        for factors in DECADES:
            ticks = _decades(factors)
            if sum(low <= tick <= high for tick in ticks) >= FEWEST_TICKS:
                break
        style.fix_ticks(axes.xaxis, ticks, (low, high))
    else:
        style.plain_ticks(axes.xaxis, 7 if axes.get_position().width > 0.4 else 3)


def _decades(factors: Sequence[float]) -> list[float]:
    """These multiples of every power of ten that an axis may have."""
    return [factor * decade for decade in style.decades() for factor in factors]


def _set_y(axes: Axes, plot: Plot, has_bars: bool) -> None:
    """Set the ends and the ticks of the axis along y."""
    if plot.y_scale == "log":
        style.fix_ticks(axes.yaxis, style.decades(), plot.y_ends or axes.get_ylim())
    else:
        style.plain_ticks(axes.yaxis, 6, plot.whole)
    if plot.y_ends:
        axes.set_ylim(*plot.y_ends)
        return
    if plot.legend and plot.y_scale == "linear" and (has_bars or is_categorical(plot)):
        low, high = axes.get_ylim()
        axes.set_ylim(top=high + 0.3 * (high - low))  # room for the legend
    if plot.y_scale == "linear" and not plot.zero and least(plot) >= 0:
        axes.set_ylim(bottom=0)  # heights are then in proportion to the values


# A value outside of the ends that a plot sets is cut: an arrow at the edge, with the value

def is_cut(plot: Plot, value: float) -> bool:
    """Whether a value lies outside of the ends that the plot sets along y."""
    return plot.y_ends is not None and not plot.y_ends[0] <= value <= plot.y_ends[1]


def _without_cut(line: Line, plot: Plot) -> Line:
    """The line without its marked points that are cut. A curve is unchanged: it leaves the axes."""
    if line.style in UNMARKED or not any(is_cut(plot, value) for value in line.y):
        return line
    shown = [not is_cut(plot, value) for value in line.y]
    return replace(line, x=tuple(compress(line.x, shown)), y=tuple(compress(line.y, shown)),
                   ends=tuple(compress(line.ends, shown)))


def _name_cut(axes: Axes, plot: Plot, chart: LineChart) -> None:
    """Draw an arrow for each marked point that is cut, and write its value next to it.

    The values at one tick stand on top of each other, so that none covers another.
    """
    # How many values stand at each tick already, above the axes (True) or below them.
    count: Counter[tuple[bool, float]] = Counter()
    for line in plot.lines:
        for x, y in zip(line.x, line.y):
            if line.style in UNMARKED or not is_cut(plot, y):
                continue

            low, high = axes.get_ylim()
            is_above = bool(y > high)
            edge = high if is_above else low
            look = {"color": _colour(line, chart), "marker": "^" if is_above else "v",
                    "markersize": 5, "linestyle": "none", "clip_on": False, "zorder": 4}
            axes.plot([x], [edge], **look)

            before = count[is_above, round(x)]
            count[is_above, round(x)] += 1
            # Values stand inside the axes: below the upper edge, or above the lower one.
            up = CUT_POINTS * (before + 0.6) * (-1 if is_above else 1)
            # Left of the first tick there is no room before the axis.
            aside, alignment = (16, "left") if round(x) == 0 else (-8, "right")
            axes.annotate(style.literal(format_brief(y)), (round(x), edge), (aside, up),
                          ha=alignment, textcoords="offset points", va="center",
                          color=_colour(line, chart), fontsize=style.SMALL)


def least(plot: Plot) -> float:
    """The least value of a plot, or the least end of its intervals; 0 where it has no value."""
    values: list[float] = []
    for line in plot.lines:
        values += [*line.y, *(low for low, _ in filter(None, line.ends))]
    return min(values, default=0.0)


def is_categorical(plot: Plot) -> bool:
    """Whether x has names, such as 10, 20 and 32 segments, with no values between them."""
    return bool(plot.ticks) and [place for place, _ in plot.ticks] == list(range(len(plot.ticks)))


def _colour(line: Line, chart: LineChart) -> str:
    """The colour of a line: of its window, or of its place in the chart's palette."""
    if line.window:
        return style.window_colour(line.window)
    if line.style == "bars" and line.look == 0:
        return FIRST_BARS
    palette = DISTINCT if chart.palette == "distinct" else ORDERED
    return palette[line.look % len(palette)]


def _look(line: Line, chart: LineChart, joined: bool) -> dict[str, object]:
    """How a line is drawn, on the axes and in the legend.

    joined: whether a line joins its marked values.
    """
    if line.style == "published":
        return style.PUBLISHED

    look: dict[str, object] = {"color": _colour(line, chart), "linewidth": 1.6,
                               "linestyle": STYLES[line.look % len(STYLES)]}
    marker_size = 4.5
    if chart.palette == "ordered":
        width = NESTED[line.look % len(NESTED)]
        look |= {"linewidth": width, "linestyle": "-"}
        marker_size = width + 3

    if line.style == "dashed":
        look["linestyle"] = "--"
    elif line.style == "faint":
        look |= {"linestyle": ":", "linewidth": 1.2, "markerfacecolor": "white"}
    elif line.style == "bars":
        look |= {"linewidth": 7, "linestyle": "-", "solid_capstyle": "butt"}
    elif line.style == "points":
        look |= {"linestyle": "none"}
    elif line.style == "steps":
        look |= {"drawstyle": "steps-post"}

    if line.style in ("line", "steps", "points", "faint"):
        look |= {"marker": MARKERS[line.look % len(MARKERS)], "markersize": marker_size}
        if not joined:
            look["linestyle"] = "none"
    return look


def _handle(line: Line, chart: LineChart, joined: bool) -> Artist:
    """The line's handle in a legend. joined: whether a line joins its marked values."""
    return Line2D([], [], **_look(line, chart, joined), label=line.name)


def _draw_line(axes: Axes, line: Line, chart: LineChart, joined: bool) -> Artist:
    """Draw the values of a line with their intervals; return the artist for a legend.

    joined: whether a line joins the values.
    """
    look = _look(line, chart, joined)
    if not joined:  # a mark at an end of the axis is not cut
        look |= {"clip_on": False, "zorder": 3}
    drawn, = axes.plot(line.x, line.y, **look, label=line.name)
    for x, ends in zip(line.x, line.ends):
        if ends is not None:
            axes.plot([x, x], ends, color=_colour(line, chart), linewidth=1.0)
    return drawn


def _draw_bars(axes: Axes, line: Line, number: int, count: int, chart: LineChart) -> Artist:
    """Draw one of `count` series of bars with intervals; return the artist for a legend.

    number: of the series, from 0 on. A bar of 0 has a number, which distinguishes it from a place
    without a measurement.
    """
    width = BARS_WIDTH / count
    places = [x + (number - (count - 1) / 2) * width for x in line.x]
    drawn = axes.bar(places, line.y, 0.95 * width, color=_colour(line, chart), label=line.name)
    for x, ends in zip(places, line.ends):
        style.whisker(axes, x, ends)
    for x, y in zip(places, line.y):
        if y == 0:
            axes.annotate("0", (x, 0), (0, 2), textcoords="offset points", ha="center",
                          fontsize=style.SMALL)
    return drawn
