"""Draws lines, distributions and bars of series, as plots in columns."""

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

# None is the colour of a window that is measured (style.WINDOWS): these lines are of something
# else. The styles and markers distinguish them in grey.
DISTINCT = (style.INK, style.VERMILION, style.GREEN, style.PINK, "#F0C000", "#8A5A30", "#C8C8B0")
STYLES = ("-", "-", "-", "--", "--", ":", ":")
# Light to dark: neighbours differ in grey, and to who cannot see red from green.
ORDERED = ("#F3D9A0", style.ORANGE, "#D0743C", "#A84600", "#722A00", "#451400", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# Of ordered lines, each over the one before: what has the same values as another one is seen.
NESTED = (5.2, 4.6, 4.0, 3.4, 2.6, 1.8, 1.0)
FIRST_BARS = "#999999"  # of what others are compared with
LIMIT: dict[str, Any] = {"color": style.ALARM, "linewidth": 0.8, "linestyle": "--"}
BARS_WIDTH = 0.76  # of the distance between ticks, all series together
# Of a logarithmic axis, in each decade: the first that give so many ticks.
DECADES, FEWEST_TICKS = ((1, 2, 5), (1, 1.5, 2, 3, 5, 7), (1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5,
                                                           4, 5, 6, 7, 8, 9)), 4

LEFT_INCHES, RIGHT_INCHES = 0.74, 0.2  # next to the axes of each column
ABOVE_INCHES, TITLE_INCHES = 0.16, 0.18  # over the axes, and for each line of a title
TICKS_INCHES, NAME_INCHES = 0.3, 0.22  # under them: labels of ticks, and the name of the axis
UNMARKED = ("curve", "dashed", "bars")  # styles of lines whose points have no markers
CUT_POINTS = 10  # of a line of text next to the arrows at an edge
TALL_INCHES = 1.6  # from which on axes have room for words of medium size


def draw(chart: LineChart) -> Figure:
    """Draw columns of plots."""
    inches = chart.plot_inches * max(map(len, chart.columns))
    frame = style.frame(chart, inches, _handles(chart) if chart.legend else [])
    boxes = _columns(chart)
    # Over the next column stand the labels of its ticks, which a title must not reach.
    rooms = [width + RIGHT_INCHES for _, width in boxes]
    titles = []
    for column, room in zip(chart.columns, rooms):
        titles.append([style.fitted(plot.title, style.MEDIUM, room) for plot in column])
    most_lines = max(map(len, chain.from_iterable(titles)))
    above = ABOVE_INCHES + TITLE_INCHES * most_lines

    for column, (left, width), over in zip(chart.columns, boxes, titles):
        column = tuple(_with_fitted_ticks(plot, width) for plot in column)
        below = list(map(_below_inches, column))
        height = (inches - sum(below)) / len(column) - above
        low = inches
        for plot, under, title in zip(column, below, over):
            low -= above + height + under
            axes = frame.axes(left, low + under, width, height)
            _draw_plot(axes, plot, chart, height)
            axes.set_title(style.literal("\n".join(title)))
    return frame.figure


def _below_inches(plot: Plot) -> float:
    """The height of what stands below the axes: names of ticks, and of the axis."""
    further_lines = max((label.count("\n") for _, label in plot.ticks), default=0)
    name = NAME_INCHES if plot.x_label else 0.0
    return TICKS_INCHES + TITLE_INCHES * further_lines + name


def _with_fitted_ticks(plot: Plot, width: float) -> Plot:
    """The plot with its names along x in as many lines as they need; width: of the axes."""
    if not is_categorical(plot):
        return plot
    room = width / len(plot.ticks)
    ticks = tuple((place, "\n".join(style.fitted(label, style.MEDIUM, room)))
                  for place, label in plot.ticks)
    return replace(plot, ticks=ticks)


def _handles(chart: LineChart) -> list[Artist]:
    """A handle for each name of a line, as the first of that name looks."""
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
    widths = chart.widths or (1.0,) * len(chart.columns)
    inches = [style.WIDTH_INCHES * width / sum(widths) for width in widths]
    return [(sum(inches[:place]) + LEFT_INCHES, width - LEFT_INCHES - RIGHT_INCHES)
            for place, width in enumerate(inches)]


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
    if plot.x_ends:
        axes.set_xlim(*plot.x_ends)
    if plot.ticks:
        style.name_ticks(axes, plot.ticks if is_categorical(plot) else
                         style.without_crowding(axes, plot.ticks))
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
    return [factor * decade for decade in style.decades() for factor in factors]


def _set_y(axes: Axes, plot: Plot, bars: bool) -> None:
    if plot.y_scale == "log":
        style.fix_ticks(axes.yaxis, style.decades(), plot.y_ends or axes.get_ylim())
    else:
        style.plain_ticks(axes.yaxis, 6, plot.whole)
    if plot.y_ends:
        axes.set_ylim(*plot.y_ends)
        return
    if plot.legend and plot.y_scale == "linear" and (bars or is_categorical(plot)):
        low, high = axes.get_ylim()
        axes.set_ylim(top=high + 0.3 * (high - low))  # room for the legend
    if plot.y_scale == "linear" and not plot.zero and least(plot) >= 0:
        axes.set_ylim(bottom=0)  # heights are then in proportion to the values


# What lies outside of a plot's own ends: an arrow at the edge, with the value -----------

def is_cut(plot: Plot, value: float) -> bool:
    """Whether a value lies outside of the plot's own ends along y."""
    return plot.y_ends is not None and not plot.y_ends[0] <= value <= plot.y_ends[1]


def _without_cut(line: Line, plot: Plot) -> Line:
    """A line of marked points without those that are cut; curves leave the axes as they do."""
    if line.style in UNMARKED or not any(is_cut(plot, value) for value in line.y):
        return line
    shown = [not is_cut(plot, value) for value in line.y]
    return replace(line, x=tuple(compress(line.x, shown)), y=tuple(compress(line.y, shown)),
                   ends=tuple(compress(line.ends, shown)))


def _name_cut(axes: Axes, plot: Plot, chart: LineChart) -> None:
    """Draw an arrow for each marked point that is cut, and write its value next to it.

    Those at one tick stand over each other, so that none covers another.
    """
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

            row = count[is_above, round(x)]
            count[is_above, round(x)] += 1
            up = CUT_POINTS * (row + 0.6) * (-1 if is_above else 1)
            axes.annotate(style.literal(format_brief(y)), (round(x), edge), (-8, up), ha="right",
                          textcoords="offset points", va="center", color=_colour(line, chart),
                          fontsize=style.SMALL)


def least(plot: Plot) -> float:
    """The least value of a plot, with its intervals; 0 where it has none."""
    values: list[float] = []
    for line in plot.lines:
        values += [*line.y, *(low for low, _ in filter(None, line.ends))]
    return min(values, default=0.0)


def is_categorical(plot: Plot) -> bool:
    """Whether x has names such as 10, 20, 32 segments, with nothing between them."""
    return bool(plot.ticks) and [place for place, _ in plot.ticks] == list(range(len(plot.ticks)))


def _colour(line: Line, chart: LineChart) -> str:
    if line.window:
        return style.window_colour(line.window)
    if line.style == "bars" and line.look == 0:
        return FIRST_BARS
    palette = DISTINCT if chart.palette == "distinct" else ORDERED
    return palette[line.look % len(palette)]


def _look(line: Line, chart: LineChart, joined: bool) -> dict[str, object]:
    """How a line is drawn, on the axes and in the legend; joined: its values, where marked."""
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
    return Line2D([], [], **_look(line, chart, joined), label=line.name)


def _draw_line(axes: Axes, line: Line, chart: LineChart, joined: bool) -> Artist:
    """Draw values and their intervals; return the artist for a legend."""
    look = _look(line, chart, joined)
    if not joined:  # a mark at an end of the axis is whole
        look |= {"clip_on": False, "zorder": 3}
    drawn, = axes.plot(line.x, line.y, **look, label=line.name)
    for x, ends in zip(line.x, line.ends):
        if ends is not None:
            axes.plot([x, x], ends, color=_colour(line, chart), linewidth=1.0)
    return drawn


def _draw_bars(axes: Axes, line: Line, place: int, count: int, chart: LineChart) -> Artist:
    """Draw one of several series of bars with intervals; return the artist for a legend.

    A bar of nothing has its number: where nothing was measured there is none.
    """
    width = BARS_WIDTH / count
    places = [x + (place - (count - 1) / 2) * width for x in line.x]
    drawn = axes.bar(places, line.y, 0.95 * width, color=_colour(line, chart), label=line.name)
    for x, ends in zip(places, line.ends):
        style.whisker(axes, x, ends)
    for x, y in zip(places, line.y):
        if y == 0:
            axes.annotate("0", (x, 0), (0, 2), textcoords="offset points", ha="center",
                          fontsize=style.SMALL)
    return drawn
