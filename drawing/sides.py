"""The same bars from several sides, beside each other: told apart without colour."""

from __future__ import annotations

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from drawing import bars, style
from lab.core.findings.charts import SideChart, SidePlot
from lab.core.words import short

GROUP_WIDTH = 0.84  # of the distance between groups
PLOT_INCHES, LABELS_INCHES, BELOW_INCHES = 2.3, 0.36, 0.32
# White, striped, dark: so they differ in grey, too.
LOOKS = (("white", ""), (style.SKY, "////"), (style.BLUE, ""), (style.GROUND, "...."))


def draw(chart: SideChart) -> Figure:
    each = PLOT_INCHES + LABELS_INCHES
    frame = style.frame(chart, BELOW_INCHES + each * len(chart.plots) + 0.15, _legend_of(chart))
    for place, plot in enumerate(reversed(chart.plots)):
        axes = frame.axes(bars.LEFT_INCHES, BELOW_INCHES + LABELS_INCHES - 0.05 + place * each,
                          style.WIDTH_INCHES - bars.LEFT_INCHES - style.SIDE_INCHES, PLOT_INCHES)
        _draw_plot(axes, plot, len(chart.sides))
        if place == 0:
            style.write(axes, (len(plot.groups) - 1) / 2, -0.46, chart.axis, size=style.MEDIUM)
    return frame.figure


def _draw_plot(axes: Axes, plot: SidePlot, sides: int) -> None:
    width = GROUP_WIDTH / sides
    _set_axis(axes, plot)
    for place, (_, values) in enumerate(plot.groups):
        for number, value in enumerate(values):
            middle = place + (number + 0.5) * width - GROUP_WIDTH / 2
            if value is None:
                axes.annotate("–", (middle, 0), (0, 3), textcoords="offset points", ha="center",
                              fontsize=style.TINY, color=style.FAINT)
                continue
            colour, hatch = LOOKS[number]
            axes.bar([middle], [value], 0.92 * width, facecolor=colour, hatch=hatch,
                     edgecolor=style.INK, linewidth=0.8)
            axes.annotate(style.literal(short(value)), (middle, value),
                          (0, 2 if value >= 0 else -8), textcoords="offset points", ha="center",
                          fontsize=style.TINY - 1)
    bars.set_buckets(axes, [label for label, _ in plot.groups])


def _set_axis(axes: Axes, plot: SidePlot) -> None:
    """From zero, with room for the numbers over the bars."""
    values = [value for _, group in plot.groups for value in group if value is not None]
    low, high = min([*values, 0.0]), max([*values, 1.0])
    axes.axhline(0, color=style.INK, linewidth=0.8)
    if plot.even:
        ends = (low * 1.15, high * 1.15)
        ticks = style.even_ticks(*ends)
    else:
        axes.set_yscale("symlog", linthresh=1, linscale=0.5)
        ends = (low * 2.5 if low < 0 else 0.0, high * 2.5)
        ticks = style.decades(passes_zero=True)
    axes.set_ylim(*ends)
    style.fix_ticks(axes.yaxis, ticks, ends)
    axes.grid(axis="y")
    style.name_y(axes, plot.y_label, bars.NAME_INCHES)


def _legend_of(chart: SideChart) -> list[Artist]:
    return [Patch(facecolor=colour, hatch=hatch, edgecolor=style.INK, label=side)
            for side, (colour, hatch) in zip(chart.sides, LOOKS)]
