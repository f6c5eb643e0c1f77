"""Squares with a number each, the darker the more: windows across, another quantity down."""

from __future__ import annotations

from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from drawing import style
from lab.core.cell_charts import LevelChart
from lab.core.words import short

NAME_INCHES, LETTER_INCHES = 0.45, 0.075  # beside the squares: of the axis, of a row's label
ABOVE_INCHES, BELOW_INCHES = 0.15, 0.62
WIDEST_INCHES, HIGH_INCHES = 1.35, 0.32  # of a square
NOTHING = "#EEEEEE"
SHADES = LinearSegmentedColormap.from_list("levels", ["#FFFFFF", style.SKY, style.BLUE])
DARK = 0.72  # from which on a number is white


def draw(chart: LevelChart) -> Figure:
    across, down = len(chart.columns), len(chart.rows)
    label = LETTER_INCHES * max(map(len, chart.rows)) + 0.15
    beside = label + (NAME_INCHES if chart.y_label else 0.0)
    room = style.WIDTH_INCHES - beside - 2 * style.SIDE_INCHES
    wide = min(WIDEST_INCHES, room / across)
    frame = style.frame(chart, ABOVE_INCHES + down * HIGH_INCHES + BELOW_INCHES)
    left = style.SIDE_INCHES + beside + (room - across * wide) / 2
    axes = frame.axes(left, BELOW_INCHES, across * wide, down * HIGH_INCHES)
    axes.set_xlim(0, across)
    axes.set_ylim(0, down)
    known = [level for row in chart.levels for level in row if level is not None]
    low, span = min(known, default=0.0), max(known, default=1.0) - min(known, default=0.0) or 1.0
    for row, levels in enumerate(chart.levels):
        for column, level in enumerate(levels):
            share = 0.0 if level is None else (level - low) / span
            axes.add_patch(Rectangle(
                (column, row), 1, 1, facecolor=NOTHING if level is None else SHADES(share),
                edgecolor=style.GROUND, linewidth=1.0))
            text = "–" if level is None else f"{level:.0f}" if chart.whole else short(level)
            axes.text(column + 0.5, row + 0.5, style.literal(text), ha="center", va="center",
                      fontsize=style.MEDIUM, color="#FFFFFF" if share > DARK else style.INK)
    style.name_ticks(axes, [(place + 0.5, label) for place, label in enumerate(chart.columns)])
    axes.set_yticks([place + 0.5 for place in range(down)],
                    [style.literal(label) for label in chart.rows])
    axes.tick_params(length=0, labelsize=style.MEDIUM)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xlabel(style.literal(chart.x_label), fontsize=style.MEDIUM)
    if chart.y_label:
        style.name_y(axes, chart.y_label, label + 0.15)
    return frame.figure
