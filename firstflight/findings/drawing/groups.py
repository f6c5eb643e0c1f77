"""Draws groups of bars, with a bar for each window, and steps from one value to another."""

from __future__ import annotations

from itertools import cycle

from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from firstflight.base.words import format_count, format_brief, format_number
from firstflight.findings.charts import GroupChart, StepChart, is_wide
from firstflight.findings.difference import Difference
from firstflight.findings.drawing import bars, style

# matplotlib's patterns of bars. Neighbouring windows have different ones, to differ in grey.
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "")
GROUP_WIDTH = 0.8  # as a part of the distance between groups


def draw_groups(chart: GroupChart) -> Figure:
    """Draw groups of bars, with a bar for each window.

    A table below them has a row for each window: the first window's value, and what each other
    window improves.
    """
    windows = range(len(chart.windows))
    names = [""] if chart.own_window else [f"IW {window}" for window in chart.windows]
    rows = []
    for window, name in zip(windows, names):
        written = [_written(group[window], window == 0) for _, group in chart.groups]
        rows.append((name, written, style.INK))
    excluded = []
    for _, group in chart.groups:
        count = sum(change.excluded.total for change in group if change)
        excluded.append(str(count or ""))
    if any(excluded):
        rows.append(("excluded", excluded, style.ALARM))

    labels = [label for label, _ in chart.groups]
    lines = bars.extra_inches(labels)
    below = bars.BELOW_INCHES + lines + style.ROW_INCHES * len(rows)
    frame = style.frame(chart, bars.BARE_INCHES + bars.AXES_INCHES + below,
                        _legend_of_groups(chart))
    axes = frame.axes(bars.LEFT_INCHES, below,
                      style.WIDTH_INCHES - bars.LEFT_INCHES - style.SIDE_INCHES, bars.AXES_INCHES)
    width = GROUP_WIDTH / len(chart.windows)
    highest: list[float] = []
    for window, look in zip(windows, _looks(chart)):
        for place, (_, group) in enumerate(chart.groups):
            change = group[window]
            middle = place + (window + 0.5) * width - GROUP_WIDTH / 2
            if change is not None:
                mean = change.experiment
                axes.bar([middle], [mean.value], 0.94 * width, **look)
                style.whisker(axes, middle, mean.interval)
                highest += [mean.value, *(mean.interval or ())]

    style.from_zero(axes, 1.1 * max(highest, default=1.0))
    style.name_y(axes, f"Mean {chart.measured}", bars.NAME_INCHES)
    bars.set_buckets(axes, labels)
    style.table(axes, rows, lines)
    style.write(axes, (len(chart.groups) - 1) / 2, 0.13 - below, chart.axis, size=style.MEDIUM)
    return frame.figure


def _looks(chart: GroupChart) -> list[dict[str, object]]:
    """How matplotlib draws the bars of each window."""
    return [{"facecolor": style.window_colour(window), "hatch": hatch, "edgecolor": "white",
             "linewidth": 0} for window, hatch in zip(chart.windows, cycle(HATCHES))]


def _legend_of_groups(chart: GroupChart) -> list[Artist]:
    """The meaning of the bars' colours, and of intervals where one is wide."""
    handles: list[Artist] = []
    for window, look in zip(chart.windows, _looks(chart)):
        name = f"initial window {window}"
        if chart.own_window:
            name = f"initial window: {chart.own_window}"
        handles.append(Patch(**look, label=name))
    if any(change and is_wide(change.experiment.interval)
           for _, group in chart.groups for change in group):
        handles.append(style.interval_handle())
    return handles


def _written(change: Difference | None, is_baseline: bool) -> str:
    """What the table says of a bar: the baseline's value, or how much another window improves it.

    "–" where no record counts.
    """
    if change is None:
        return "–"
    return format_brief(change.experiment.value) if is_baseline else bars.improved(change)


# A waterfall: a row for each step, with what the step adds to a number ---------------

STEP_INCHES = 0.36  # the height of a row
# Below the axes, and at their left and right.
STEP_BELOW_INCHES, STEP_LEFT_INCHES, STEP_RIGHT_INCHES = 0.5, 2.4, 0.2
STEP_HEIGHT = 0.62  # of a bar, as a part of its row
# The colour, the pattern and the legend's words of each kind of step (WaterfallStep.sure), and of a
# step back. Patterns distinguish them without colour: full, striped, dotted.
STEP_LOOKS = {"start": (style.GROUND, "", "to begin with"),
         "code": (style.BLUE, "", "seen in their code"),
         "kernel": (style.BLUE, "xxxx", "a property of that year's kernel or library"),
         "calibrated": (style.SKY, "////", "calibrated: one number fitted"),
         "inferred": ("white", "....", "inferred: it fits, and was not seen"),
         "back": (style.VERMILION, "\\\\\\\\", "a step back, however it is known")}


def draw_steps(chart: StepChart) -> Figure:
    """Draw steps from the top down. A step back is a bar to the left.

    The number stands at the right of each bar.
    """
    height = STEP_INCHES * len(chart.steps)
    before = [0.0, *(step.value for step in chart.steps)]  # the value before each step
    looks = ["back" if step.value < value else step.sure
             for step, value in zip(chart.steps, before)]
    # A step that adds nothing has no bar that the legend would have to explain.
    seen = {look for step, value, look in zip(chart.steps, before, looks) if step.value != value}
    handles = [Patch(facecolor=colour, hatch=hatch, edgecolor=style.INK, label=label)
               for look, (colour, hatch, label) in STEP_LOOKS.items() if look in seen]
    frame = style.frame(chart, height + STEP_BELOW_INCHES + 0.25, handles)
    axes = frame.axes(STEP_LEFT_INCHES, STEP_BELOW_INCHES,
                      style.WIDTH_INCHES - STEP_LEFT_INCHES - STEP_RIGHT_INCHES, height)
    high = 1.25 * max((*before, chart.most or 0.0, 1.0))

    for row, (step, value, look) in enumerate(zip(chart.steps, before, looks)):
        colour, hatch, _ = STEP_LOOKS[look]
        # A step that adds nothing is a bar without a width, and still has its number.
        axes.barh(row, step.value - value, STEP_HEIGHT, left=value, facecolor=colour, hatch=hatch,
                  edgecolor=style.INK, linewidth=0.8)
        added = f" ({format_number(step.value - value, 0, signed=True)})" if row else ""
        text = f"{format_count(step.value)}{added}"
        text_begins = _beside_bar(max(step.value, value), text, chart.most, high=high)
        axes.text(text_begins, row, text, va="center", fontsize=style.SMALL,
                  bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8})
        if row + 1 < len(chart.steps):
            axes.plot([step.value] * 2, [row + STEP_HEIGHT / 2, row + 1 - STEP_HEIGHT / 2],
                      color=style.FAINT, linewidth=0.8)

    if chart.most is not None:
        axes.axvline(chart.most, color=style.INK, linewidth=1.0, linestyle="--", zorder=0.5)
        style.write(axes, chart.most, 0.1, f"all {format_count(chart.most)}")
    axes.set_xlim(0, high)
    axes.set_ylim(len(chart.steps) - 0.5, -0.5)
    style.fix_ticks(axes.xaxis, style.even_ticks(0, high), (0, high))
    labels = []
    for step in chart.steps:
        lines = style.fitted(step.label, style.SMALL, STEP_LEFT_INCHES - 0.2)
        labels.append(style.literal("\n".join(lines)))
    axes.set_yticks(range(len(chart.steps)), labels, fontsize=style.SMALL)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    # The name of the axis is long, and so it stands in the middle of the figure, not of the axes.
    frame.figure.text(0.5, (frame.bottom + 0.12) / frame.figure.get_size_inches()[1],
                      style.literal(chart.axis), fontsize=style.SMALL, ha="center", va="center")
    return frame.figure


def _beside_bar(end: float, text: str, most: float | None, high: float) -> float:
    """Where a text begins at the right of a bar's end, as a value of the axis.

    It stands at the right of the line at `most`, where it would cross this line. high: the end of
    the axis.
    """
    room = 0.01 * high
    begins = end + room
    inches = style.WIDTH_INCHES - STEP_LEFT_INCHES - STEP_RIGHT_INCHES
    length = style.letters_inches(text) / inches * high
    if most is not None and begins <= most < begins + length + room:
        return most + room
    return begins
