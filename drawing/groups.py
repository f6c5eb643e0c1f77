"""Groups of bars, one for each initial window: a metric from zero, by one quantity."""

from __future__ import annotations

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from drawing import bars, style
from lab.core.findings.charts import GroupChart, TimeBar, is_wide
from lab.core.words import short

COLOURS = (style.SKY, style.BLUE, style.ORANGE, style.GREEN, style.PINK, style.VERMILION)
GROUP_WIDTH = 0.8  # of the distance between groups
LINE_INCHES, FIRST_INCHES = 0.16, 0.31  # of what is written below a group
LETTER_INCHES = 0.06  # of a small letter, and some more


def draw(chart: GroupChart) -> Figure:
    below = FIRST_INCHES + LINE_INCHES * len(chart.windows) + 0.36
    frame = style.frame(chart, bars.BARE_INCHES + bars.AXES_INCHES + below, _legend_of(chart))
    axes = frame.axes(bars.LEFT_INCHES, below,
                      style.WIDTH_INCHES - bars.LEFT_INCHES - bars.RIGHT_INCHES,
                      bars.AXES_INCHES)
    width = GROUP_WIDTH / len(chart.windows)
    for number, colour in zip(range(len(chart.windows)), COLOURS):
        for place, (_, group) in enumerate(chart.groups):
            bar, middle = group[number], place + (number + 0.5) * width - GROUP_WIDTH / 2
            if bar is not None:
                axes.bar([middle], [bar.time.value], 0.94 * width, color=colour)
                style.whisker(axes, middle, bar.time.interval)
            _write(axes, place, FIRST_INCHES + LINE_INCHES * number, bar, chart)
    _set_axis(axes, chart)
    bars.set_buckets(axes, [label for label, _ in chart.groups])
    style.write(axes, (len(chart.groups) - 1) / 2, 0.12 - below, chart.axis, size=style.MEDIUM)
    return frame.figure


def _legend_of(chart: GroupChart) -> list[Artist]:
    handles: list[Artist] = [Patch(color=colour, label=f"initial window {window}")
                             for window, colour in zip(chart.windows, COLOURS)]
    if any(bar and is_wide(bar.time.interval) for _, group in chart.groups for bar in group):
        handles.append(Line2D([], [], color=style.INK, marker="|", label="95 % interval"))
    return handles


def _set_axis(axes: Axes, chart: GroupChart) -> None:
    high = 1.1 * max((value for _, group in chart.groups for bar in group if bar
                      for value in (bar.time.value, *(bar.time.interval or ()))), default=1.0)
    axes.set_ylim(0, high)
    style.fix_ticks(axes.yaxis, style.even_ticks(0, high), (0, high))
    axes.grid(axis="y")
    axes.tick_params(axis="y", labelsize=style.MEDIUM)
    style.name_y(axes, f"Mean {chart.measured}", bars.NAME_INCHES)


def _write(axes: Axes, place: int, inches: float, bar: TimeBar | None, chart: GroupChart) -> None:
    """A line below a group: the window, its value and what it improves, as much as has room."""
    if bar is None:
        style.write(axes, place, -inches, "nothing counts", style.ALARM, size=style.TINY)
        return
    time, saved = short(bar.time.value), ""
    if bar.percent is not None:
        saved = f"({short(bar.percent)} %)" if bar.unsure else f"{short(bar.percent)} %"
    left_out = f", {bar.left_out} left out" if bar.left_out else ""
    behind = f", {saved}" if saved else ""
    room = bars.set_width(len(chart.groups)) / LETTER_INCHES
    unit = f" {chart.unit}" if chart.unit else ""
    lines = (f"{bar.label}: {time}{unit}{behind}, n = {bar.n}{left_out}",
             f"{bar.label}: {time}{unit}{behind}{left_out}",
             f"{bar.label}: {time}{behind}{left_out}", f"{bar.label}: {saved or time}{left_out}",
             f"{saved or time}{left_out}")
    text = next((line for line in lines if len(line) <= room), lines[-1])
    style.write(axes, place, -inches, text, style.ALARM if left_out else style.INK,
                size=style.TINY)
