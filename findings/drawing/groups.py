"""Bars of several kinds next to each other: windows in groups, sides of the same bars, steps."""

from __future__ import annotations

from functools import singledispatch

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from base.words import count, number, short
from findings.charts import Chart, GroupChart, SideChart, SidePlot, StepChart, TimeBar, is_wide
from findings.drawing import bars, style

COLOURS = (style.SKY, style.BLUE, style.ORANGE, style.GREEN, style.PINK, style.VERMILION)
GROUP_WIDTH = 0.8  # of the distance between groups
LINE_INCHES, FIRST_INCHES = 0.16, 0.31  # of what is written below a group
LETTER_INCHES = 0.06  # of a small letter, and some more


@singledispatch
def draw(chart: Chart) -> Figure:
    """By the class of the chart."""
    raise TypeError(f"no figure of {type(chart).__name__}")


@draw.register
def _draw_groups(chart: GroupChart) -> Figure:
    below = FIRST_INCHES + LINE_INCHES * len(chart.windows) + 0.36
    frame = style.frame(chart, bars.BARE_INCHES + bars.AXES_INCHES + below,
                        _legend_of_groups(chart))
    axes = frame.axes(bars.LEFT_INCHES, below,
                      style.WIDTH_INCHES - bars.LEFT_INCHES - bars.RIGHT_INCHES,
                      bars.AXES_INCHES)
    width = GROUP_WIDTH / len(chart.windows)
    for window, colour in zip(range(len(chart.windows)), COLOURS):
        for place, (_, group) in enumerate(chart.groups):
            bar, middle = group[window], place + (window + 0.5) * width - GROUP_WIDTH / 2
            if bar is not None:
                axes.bar([middle], [bar.time.value], 0.94 * width, color=colour)
                style.whisker(axes, middle, bar.time.interval)
            _write_below(axes, place, FIRST_INCHES + LINE_INCHES * window, bar, chart)
    style.from_zero(axes, 1.1 * max((
        value for _, group in chart.groups for bar in group if bar
        for value in (bar.time.value, *(bar.time.interval or ()))), default=1.0))
    axes.tick_params(axis="y", labelsize=style.MEDIUM)
    style.name_y(axes, f"Mean {chart.measured}", bars.NAME_INCHES)
    bars.set_buckets(axes, [label for label, _ in chart.groups])
    style.write(axes, (len(chart.groups) - 1) / 2, 0.12 - below, chart.axis, size=style.MEDIUM)
    return frame.figure


def _legend_of_groups(chart: GroupChart) -> list[Artist]:
    handles: list[Artist] = [Patch(color=colour, label=f"initial window {window}")
                             for window, colour in zip(chart.windows, COLOURS)]
    if any(bar and is_wide(bar.time.interval) for _, group in chart.groups for bar in group):
        handles.append(Line2D([], [], color=style.INK, marker="|", label="95 % interval"))
    return handles


def _write_below(axes: Axes, place: int, inches: float, bar: TimeBar | None,
                 chart: GroupChart) -> None:
    """A line below a group: the window, its value and what it improves, as much as has room."""
    if bar is None:
        style.write(axes, place, -inches, "nothing counts", style.ALARM, size=style.TINY)
        return
    time, saved = short(bar.time.value), ""
    if bar.percent is not None:
        saved = f"({short(bar.percent)} %)" if bar.unsure else f"{short(bar.percent)} %"
    left_out = f", {bar.left_out} excluded" if bar.left_out else ""
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


# The same bars from several sides, distinguished without colour -----------------------

SIDES_WIDTH = 0.84  # of the distance between groups
PLOT_INCHES, LABELS_INCHES, SIDES_BELOW_INCHES = 2.3, 0.36, 0.32
# White, striped, dark: so they differ in grey, too.
SIDE_LOOKS = (("white", ""), (style.SKY, "////"), (style.BLUE, ""), (style.GROUND, "...."))


@draw.register
def _draw_sides(chart: SideChart) -> Figure:
    plot_inches = PLOT_INCHES + LABELS_INCHES
    frame = style.frame(chart, SIDES_BELOW_INCHES + plot_inches * len(chart.plots) + 0.15,
                        [Patch(facecolor=colour, hatch=hatch, edgecolor=style.INK, label=side)
                         for side, (colour, hatch) in zip(chart.sides, SIDE_LOOKS)])
    for place, plot in enumerate(reversed(chart.plots)):
        axes = frame.axes(
            bars.LEFT_INCHES, SIDES_BELOW_INCHES + LABELS_INCHES - 0.05 + place * plot_inches,
            style.WIDTH_INCHES - bars.LEFT_INCHES - style.SIDE_INCHES, PLOT_INCHES)
        _draw_side_plot(axes, plot, len(chart.sides))
        if place == 0:
            style.write(axes, (len(plot.groups) - 1) / 2, -0.46, chart.axis, size=style.MEDIUM)
    return frame.figure


def _draw_side_plot(axes: Axes, plot: SidePlot, sides: int) -> None:
    width = SIDES_WIDTH / sides
    _set_side_axis(axes, plot)
    for place, (_, values) in enumerate(plot.groups):
        for side, value in enumerate(values):
            middle = place + (side + 0.5) * width - SIDES_WIDTH / 2
            if value is None:
                axes.annotate("–", (middle, 0), (0, 3), textcoords="offset points", ha="center",
                              fontsize=style.TINY, color=style.FAINT)
                continue
            colour, hatch = SIDE_LOOKS[side]
            axes.bar([middle], [value], 0.92 * width, facecolor=colour, hatch=hatch,
                     edgecolor=style.INK, linewidth=0.8)
            axes.annotate(style.literal(short(value)), (middle, value),
                          (0, 2 if value >= 0 else -8), textcoords="offset points", ha="center",
                          fontsize=style.TINY - 1)
    bars.set_buckets(axes, [label for label, _ in plot.groups])


def _set_side_axis(axes: Axes, plot: SidePlot) -> None:
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


# A waterfall: what each step adds to a number, a row for each ----------------------

STEP_INCHES, STEP_BELOW_INCHES, STEP_LEFT_INCHES, STEP_RIGHT_INCHES = 0.36, 0.5, 3.6, 0.5
STEP_HEIGHT = 0.62  # of a bar, as a part of its row
# Distinguished without colour: full, striped, dotted.
STEP_LOOKS = {"start": (style.GROUND, "", "to begin with"),
         "code": (style.BLUE, "", "seen in their code"),
         "kernel": (style.BLUE, "xxxx", "a property of that year's kernel or library"),
         "calibrated": (style.SKY, "////", "calibrated: one number fitted"),
         "inferred": ("white", "....", "inferred: it fits, and was not seen")}


@draw.register
def _draw_steps(chart: StepChart) -> Figure:
    """From the top down; a step back is a bar to the left. The number stands behind its bar."""
    height = STEP_INCHES * len(chart.steps)
    used = {step.sure for step in chart.steps} - {"start"}
    frame = style.frame(chart, height + STEP_BELOW_INCHES + 0.1, [
        Patch(facecolor=colour, hatch=hatch, edgecolor=style.INK, label=label)
        for sure, (colour, hatch, label) in STEP_LOOKS.items() if sure in used])
    axes = frame.axes(STEP_LEFT_INCHES, STEP_BELOW_INCHES,
                      style.WIDTH_INCHES - STEP_LEFT_INCHES - STEP_RIGHT_INCHES, height)
    before = 0.0
    high = 1.2 * max((*(step.value for step in chart.steps), chart.most or 0.0, 1.0))
    for row, step in enumerate(chart.steps):
        colour, hatch, _ = STEP_LOOKS[step.sure]
        axes.barh(row, step.value - before, STEP_HEIGHT, left=before, facecolor=colour, hatch=hatch,
                  edgecolor=style.INK, linewidth=0.8)
        if step.value == before:  # nothing added: still a row with its number
            axes.plot([before, before], [row - STEP_HEIGHT / 2, row + STEP_HEIGHT / 2],
                      color=style.INK)
        added = f" ({number(step.value - before, 0, signed=True)})" if row else ""
        axes.text(max(step.value, before) + 0.01 * high, row, f"{count(step.value)}{added}",
                  va="center", fontsize=style.SMALL,
                  bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8})
        if row + 1 < len(chart.steps):
            axes.plot([step.value] * 2, [row + STEP_HEIGHT / 2, row + 1 - STEP_HEIGHT / 2],
                      color=style.FAINT, linewidth=0.8)
        before = step.value
    if chart.most is not None:
        axes.axvline(chart.most, color=style.INK, linewidth=1.0, linestyle="--", zorder=0.5)
    axes.set_xlim(0, high)
    axes.set_ylim(len(chart.steps) - 0.5, -0.5)
    style.fix_ticks(axes.xaxis, style.even_ticks(0, high), (0, high))
    axes.set_yticks(range(len(chart.steps)),
                    [style.literal(step.label) for step in chart.steps], fontsize=style.SMALL)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    axes.set_xlabel(style.literal(chart.axis), fontsize=style.SMALL)
    return frame.figure
