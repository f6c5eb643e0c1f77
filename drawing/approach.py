"""Steps that lead to published values: a table of numbers, coloured by how far each is from them.

Orange is more than published and blue is less, told apart in every kind of colour vision;
a number that is near stands in a frame.
"""

from __future__ import annotations

import math

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from drawing import style
from lab.core.findings.charts import ApproachChart, ApproachRow
from lab.core.words import short

LEFT_INCHES, RIGHT_INCHES = 2.35, 0.62  # for the titles of the steps, and for notes
ROW_INCHES, TITLE_INCHES, BELOW_INCHES = 0.3, 0.34, 0.5
FULL_RATIO = 4.0  # so many times the published value, or a part, has the full colour
COLOURS = LinearSegmentedColormap.from_list("off", [style.SKY, "#FFFFFF", style.ORANGE])
SCALE = Normalize(-math.log(FULL_RATIO), math.log(FULL_RATIO), clip=True)
NOTHING = "#EEEEEE"


def draw(chart: ApproachChart) -> Figure:
    """One group of columns below the other, each with all steps."""
    high = TITLE_INCHES + len(chart.rows) * ROW_INCHES + BELOW_INCHES
    frame = style.frame(chart, len(chart.groups) * high, [
        Patch(color=COLOURS(1.0), label=f"{FULL_RATIO:g} times the published value, or more"),
        Patch(color=COLOURS(0.0), label=f"a {_part(FULL_RATIO)} of it, or less"),
        Patch(facecolor="white", edgecolor=style.INK, linewidth=1.3,
              label="near it: within 30 % and 3 points")])
    for place, (title, labels) in enumerate(chart.groups):
        low = (len(chart.groups) - 1 - place) * high + BELOW_INCHES
        axes = frame.axes(LEFT_INCHES, low, style.WIDTH_INCHES - LEFT_INCHES - RIGHT_INCHES,
                          len(chart.rows) * ROW_INCHES)
        _draw_group(axes, chart, place, labels, title)
    return frame.figure


def _part(ratio: float) -> str:
    return {2: "half", 3: "third", 4: "quarter"}.get(int(ratio), f"1/{ratio:g}")


def _draw_group(axes: Axes, chart: ApproachChart, group: int, labels: tuple[str, ...],
                title: str) -> None:
    count = len(chart.rows)
    axes.set_xlim(0, len(labels))
    axes.set_ylim(0, count)
    published = chart.rows[-1].groups[group]
    for number, row in enumerate(chart.rows):
        for column, (value, near) in enumerate(row.groups[group]):
            _draw_cell(axes, column, count - 1 - number, value, near, published[column][0])
        _write_note(axes, row, count - 1 - number, len(labels))
    axes.axhline(1, color=style.INK, linewidth=0.8)
    style.name_ticks(axes, [(place + 0.5, label) for place, label in enumerate(labels)])
    axes.set_yticks([count - 0.5 - place for place in range(count)],
                    [style.literal(row.title) for row in chart.rows])
    axes.tick_params(length=0, labelsize=style.LEGEND)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_title(style.literal(title), loc="left", fontsize=style.MEDIUM)


def _draw_cell(axes: Axes, x: float, y: float, value: float | None, near: bool,
               published: float | None) -> None:
    colour = NOTHING
    if value is not None and published:
        ratio = value / published
        colour = COLOURS(SCALE(math.log(ratio) if ratio > 0 else -math.inf))
    axes.add_patch(Rectangle((x + 0.02, y + 0.05), 0.96, 0.9, facecolor=colour,
                             edgecolor=style.INK if near else style.GROUND,
                             linewidth=1.3 if near else 0.5))
    axes.text(x + 0.5, y + 0.48, style.literal("–" if value is None else short(value)),
              ha="center", va="center", fontsize=style.LEGEND, color=style.INK)


def _write_note(axes: Axes, row: ApproachRow, y: float, x: float) -> None:
    if row.note:
        axes.text(x + 0.06, y + 0.48, style.literal(row.note), ha="left", va="center",
                  fontsize=style.LEGEND, color=style.FAINT)
