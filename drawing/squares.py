"""A field of squares with a colour each: one quantity across, another down."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from drawing import style
from lab.core.findings.charts import LevelChart, MapChart

NOTHING = "#EEEEEE"  # a square of which nothing is known
Colour = str | tuple[float, float, float, float]


def draw(axes: Axes, chart: LevelChart | MapChart, colours: Sequence[Sequence[Colour]],
         name_inches: float) -> None:
    """The squares, the labels of columns and rows, and the names of both quantities.

    colours: row by row from below; column c of row r is the unit square at (c, r), and what is
    written in it is the caller's. name_inches: from the squares to the name of the rows' quantity.
    """
    axes.set_xlim(0, len(chart.columns))
    axes.set_ylim(0, len(chart.rows))
    for row, across in enumerate(colours):
        for column, colour in enumerate(across):
            axes.add_patch(Rectangle((column, row), 1, 1, facecolor=colour,
                                     edgecolor=style.GROUND, linewidth=1.0))
    style.name_ticks(axes, [(place + 0.5, label) for place, label in enumerate(chart.columns)])
    axes.set_yticks([place + 0.5 for place in range(len(chart.rows))],
                    [style.literal(label) for label in chart.rows])
    axes.tick_params(length=0, labelsize=style.MEDIUM)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xlabel(style.literal(chart.x_label), fontsize=style.MEDIUM)
    if chart.y_label:
        style.name_y(axes, chart.y_label, name_inches)
