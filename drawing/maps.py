"""Maps of squares: what is saved by two quantities, as colour and number; one or several.

Blue is saved and orange is lost, white is no difference: told apart in every
kind of colour vision, and the sign stands in the number.
"""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure

from drawing import squares, style
from lab.core.findings.charts import Map, MapChart, Square
from lab.core.words import number, short

LEFT_INCHES, GAP_INCHES = 0.95, 0.35  # for the labels of the rows, and between maps
NAME_INCHES = 0.62  # from the squares to the name of the rows
ABOVE_INCHES, BELOW_INCHES = 0.3, 0.62  # for a map's title, and for its columns' labels
WIDEST_INCHES, HIGH_INCHES = 1.35, 0.52  # of a square
NARROWEST_INCHES = 0.62  # in which both numbers can be read, with a unit of two letters
LETTER_INCHES = 0.07  # of one more
# A square that says a window holds one number, and maps of windows have many squares.
WINDOW_INCHES, WINDOW_HIGH_INCHES = 0.24, 0.235
LEAST_PERCENT, MOST_PERCENT = 20.0, 50.0  # between which the first with the full colour is
COLOURS = LinearSegmentedColormap.from_list("saved", [style.ORANGE, "#FFFFFF", style.SKY])
# Light for a small window, dark for a large one: the order can be seen without colour, too.
WINDOWS = LinearSegmentedColormap.from_list("windows", ["#FFFFFF", style.SKY, "#12395B"])
DARK = 0.6  # from which part of the scale on a number is white


def draw(chart: MapChart) -> Figure:
    across, down = len(chart.columns), len(chart.rows)
    room = style.WIDTH_INCHES - 2 * style.SIDE_INCHES
    narrow, each_high = ((WINDOW_INCHES, WINDOW_HIGH_INCHES) if chart.windows else
                         (NARROWEST_INCHES, HIGH_INCHES))
    beside = max(1, min(len(chart.maps), int(
        (room + GAP_INCHES) // (LEFT_INCHES + across * narrow + GAP_INCHES))))
    wide = min(WIDEST_INCHES, ((room + GAP_INCHES) / beside - LEFT_INCHES - GAP_INCHES) / across)
    floors = -(-len(chart.maps) // beside)
    high = ABOVE_INCHES + down * each_high + BELOW_INCHES
    frame = style.frame(chart, floors * high)
    most = min(MOST_PERCENT, max([LEAST_PERCENT, *(
        abs(square.percent) for each in chart.maps for row in each.rows for square in row
        if square)]))
    first = (style.WIDTH_INCHES - beside * (LEFT_INCHES + across * wide)
             - (beside - 1) * GAP_INCHES - LEFT_INCHES / 2) / 2
    for place, each in enumerate(chart.maps):
        floor, column = divmod(place, beside)
        left = first + LEFT_INCHES + column * (LEFT_INCHES + across * wide + GAP_INCHES)
        low = (floors - 1 - floor) * high + BELOW_INCHES
        axes = frame.axes(left, low, across * wide, down * each_high)
        _draw_map(axes, chart, each, Normalize(-most, most, clip=True), wide)
    return frame.figure


def _draw_map(axes: Axes, chart: MapChart, each: Map, scale: Normalize, wide: float) -> None:
    squares.draw(axes, chart, [
        [squares.NOTHING if square is None else WINDOWS(_rank(chart, square)) if chart.windows
         else COLOURS(scale(square.percent)) for square in row] for row in each.rows], NAME_INCHES)
    for row, across in enumerate(each.rows):
        for column, square in enumerate(across):
            if chart.windows and square is not None:
                _write_window(axes, column + 0.5, row + 0.5, square, _rank(chart, square))
            else:
                _write(axes, column + 0.5, row + 0.5, square, chart.unit, wide)
    if chart.windows:  # narrow squares, whose labels would touch each other
        axes.tick_params(axis="x", labelsize=style.SMALL, rotation=45)
    axes.set_title(style.literal(each.title), loc="left", fontsize=style.MEDIUM)


def _rank(chart: MapChart, square: Square) -> float:
    """Where a square's window stands among the chart's, from 0 to 1."""
    return chart.windows.index(square.window) / max(1, len(chart.windows) - 1)


def _write_window(axes: Axes, x: float, y: float, square: Square, rank: float) -> None:
    """The window; one for which not all records count is marked."""
    axes.text(x, y, f"{square.window}{'*' if square.left_out else ''}", ha="center", va="center",
              fontsize=style.SMALL, color="#FFFFFF" if rank >= DARK else style.INK)


def _write(axes: Axes, x: float, y: float, square: Square | None, unit: str, wide: float) -> None:
    """Both numbers in a square; one that counts nothing says so."""
    if square is None:
        axes.text(x, y, "–", ha="center", va="center", color=style.FAINT)
        return
    needed = NARROWEST_INCHES + LETTER_INCHES * max(0, len(unit) - len("ms"))
    unit = f" {unit}" if unit and wide >= needed else ""
    before, behind = ("(", ")") if square.unsure else ("", "")
    percent = number(square.percent, 0 if abs(square.percent) >= 9.95 else 1)
    higher = 0.14 if square.left_out else 0.0
    lines = [(f"{before}{short(square.absolute)}{unit}{behind}", 0.16 + higher, style.MEDIUM),
             (f"{percent} %", higher - 0.18, style.LEGEND)]
    if square.left_out:
        lines.append((f"{square.left_out} left out", -0.36, style.TINY))
    for text, up, size in lines:
        axes.text(x, y + up, style.literal(text), ha="center", va="center", fontsize=size,
                  color=style.ALARM if size == style.TINY else style.INK)
