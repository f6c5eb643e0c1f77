"""Squares with a number each, the darker the more: windows across, another quantity down."""

from __future__ import annotations

from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from drawing import squares, style
from lab.core.findings.charts import LevelChart
from lab.core.words import short

NAME_INCHES, LETTER_INCHES = 0.45, 0.075  # beside the squares: of the axis, of a row's label
ABOVE_INCHES, BELOW_INCHES = 0.15, 0.62
WIDEST_INCHES, HIGH_INCHES = 1.35, 0.32  # of a square
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
    known = [level for row in chart.levels for level in row if level is not None]
    low, span = min(known, default=0.0), max(known, default=1.0) - min(known, default=0.0) or 1.0
    shares = [[None if level is None else (level - low) / span for level in row]
              for row in chart.levels]
    squares.draw(axes, chart, [[squares.NOTHING if share is None else SHADES(share)
                                for share in row] for row in shares], label + 0.15)
    for row, levels in enumerate(chart.levels):
        for column, level in enumerate(levels):
            text = "–" if level is None else f"{level:.0f}" if chart.whole else short(level)
            dark = (shares[row][column] or 0.0) > DARK
            axes.text(column + 0.5, row + 0.5, style.literal(text), ha="center", va="center",
                      fontsize=style.MEDIUM, color="#FFFFFF" if dark else style.INK)
    return frame.figure
