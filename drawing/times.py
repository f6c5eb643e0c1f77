"""A bar for each initial window, like the paper's Figure 2: its time, from zero."""

from __future__ import annotations

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from drawing import bars, style
from lab.core.findings.charts import TimeBar, TimeChart, is_wide
from lab.core.words import short


def draw(chart: TimeChart) -> Figure:
    """Below each window: its time, how much less than the baseline's that is, and n."""
    more = 0.14 if any(bar.left_out for bar in chart.bars) else 0.0
    below = bars.BELOW_INCHES + more
    frame = style.frame(chart, bars.BARE_INCHES + bars.AXES_INCHES + below, _legend_of(chart))
    axes = frame.axes(bars.LEFT_INCHES, below,
                      style.WIDTH_INCHES - bars.LEFT_INCHES - bars.RIGHT_INCHES,
                      bars.AXES_INCHES)
    axes.bar(range(len(chart.bars)), [bar.time.value for bar in chart.bars], 2 * bars.BAR_WIDTH,
             color=style.BLUE)
    for place, bar in enumerate(chart.bars):
        style.whisker(axes, place, bar.time.interval)
    known = [(place, bar.published) for place, bar in enumerate(chart.bars)
             if bar.published is not None]
    if known:
        axes.plot(*zip(*known), **style.published("o"))
    _set_axis(axes, chart)
    bars.set_buckets(axes, [bar.label for bar in chart.bars])
    for place, bar in enumerate(chart.bars):
        _write_values(axes, place, bar, chart.unit)
    style.write(axes, (len(chart.bars) - 1) / 2, -0.69 - more, chart.axis, size=style.MEDIUM)
    return frame.figure


def _legend_of(chart: TimeChart) -> list[Artist]:
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


def _set_axis(axes: Axes, chart: TimeChart) -> None:
    """From zero: the bars' lengths are then the values."""
    high = 1.12 * max(value for bar in chart.bars for value in (
        bar.time.value, bar.published, *(bar.time.interval or ())) if value is not None)
    axes.set_ylim(0, high)
    style.fix_ticks(axes.yaxis, style.even_ticks(0, high), (0, high))
    axes.grid(axis="y")
    axes.tick_params(axis="y", colors=style.BLUE_TEXT, labelsize=style.MEDIUM)
    unit = f" ({chart.unit})" if chart.unit else ""
    style.name_y(axes, f"Mean {chart.measured}{unit}", bars.NAME_INCHES, colour=style.BLUE_TEXT)


def _write_values(axes: Axes, place: int, bar: TimeBar, unit: str) -> None:
    alone = bar.percent is None
    value = f"{short(bar.time.value)} {unit}".rstrip()
    style.write(axes, place - (0 if alone else 0.03), -0.29, value, style.BLUE_TEXT,
                "center" if alone else "right", style.TINY)
    if bar.percent is not None:
        saved = f"{short(bar.percent)} %"
        style.write(axes, place + 0.03, -0.29, f"({saved})" if bar.unsure else saved,
                    style.ORANGE_TEXT, "left", style.TINY)
    bars.write_counts(axes, place, bar.n, bar.left_out)
