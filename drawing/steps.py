"""A waterfall: what each step adds to a number, a row for each."""

from __future__ import annotations

from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from drawing import style
from lab.core.findings.charts import StepChart
from lab.core.words import count, number

ROW_INCHES, BELOW_INCHES, LEFT_INCHES, RIGHT_INCHES = 0.36, 0.5, 3.6, 0.5
HEIGHT = 0.62  # of a bar, as a part of its row
# Told apart without colour: full, striped, dotted.
LOOKS = {"start": (style.GROUND, "", "to begin with"),
         "code": (style.BLUE, "", "seen in their code"),
         "kernel": (style.BLUE, "xxxx", "a property of that year's kernel or library"),
         "calibrated": (style.SKY, "////", "calibrated: one number fitted"),
         "inferred": ("white", "....", "inferred: it fits, and was not seen")}


def draw(chart: StepChart) -> Figure:
    """From the top down; a step back is a bar to the left. The number stands behind its bar."""
    height = ROW_INCHES * len(chart.steps)
    frame = style.frame(chart, height + BELOW_INCHES + 0.1, _legend_of(chart))
    axes = frame.axes(LEFT_INCHES, BELOW_INCHES,
                      style.WIDTH_INCHES - LEFT_INCHES - RIGHT_INCHES, height)
    before = 0.0
    high = 1.2 * max((*(step.value for step in chart.steps), chart.most or 0.0, 1.0))
    for row, step in enumerate(chart.steps):
        colour, hatch, _ = LOOKS[step.sure]
        axes.barh(row, step.value - before, HEIGHT, left=before, facecolor=colour, hatch=hatch,
                  edgecolor=style.INK, linewidth=0.8)
        if step.value == before:  # nothing added: still a row with its number
            axes.plot([before, before], [row - HEIGHT / 2, row + HEIGHT / 2], color=style.INK)
        added = f" ({number(step.value - before, 0, signed=True)})" if row else ""
        axes.text(max(step.value, before) + 0.01 * high, row, f"{count(step.value)}{added}",
                  va="center", fontsize=style.SMALL,
                  bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8})
        if row + 1 < len(chart.steps):
            axes.plot([step.value] * 2, [row + HEIGHT / 2, row + 1 - HEIGHT / 2],
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


def _legend_of(chart: StepChart) -> list[Artist]:
    used = {step.sure for step in chart.steps}
    return [Patch(facecolor=colour, hatch=hatch, edgecolor=style.INK, label=label)
            for sure, (colour, hatch, label) in LOOKS.items() if sure in used and sure != "start"]
