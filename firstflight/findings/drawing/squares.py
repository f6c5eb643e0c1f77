"""Draws maps over two quantities: coloured squares with a number in each, and shares of responses.

Blue is an improvement, orange the opposite, and white no difference. Every kind of colour vision
distinguishes these colours, and the number has the sign. Windows and levels go from light to dark,
so that their order can be seen without colour. In a map of windows, the colours depend on how many
windows there are, and are equally far apart. In all other figures a window always has the same
colour (style.WINDOWS).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy
from matplotlib import colormaps
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from firstflight.base.words import format_number, format_brief
from firstflight.findings.charts import GridChart, Square, SquareChart, SquareMap
from firstflight.findings.drawing import style

# A text in a square: the text, how far above the middle it stands (in heights of the square), its
# size in points, and its colour. The colour "" is ink, or white in a dark square.
Text = tuple[str, float, float, str]

NOTHING = "#EEEEEE"  # the colour of a square of which nothing is known
NARROWEST_INCHES = 0.62  # a square in which both numbers can be read, with the unit "ms"
LETTER_INCHES = 0.07  # what a square needs for one letter more
LABEL_INCHES = 0.075  # the width of one letter of a row's label
# The chart's largest percentage has the full colour, but never one below the first of these, and
# every one above the second has it, too.
LEAST_PERCENT, MOST_PERCENT = 20.0, 50.0
FULL_RATIO = 4.0  # four times the published value and a quarter of it have the full colours


# Squares -----------------------------------------------------------------------------

@dataclass(frozen=True)
class Look:
    """How the squares of a chart's scale look. All lengths are in inches."""

    colours: Colormap
    # Returns where in `colours`, from 0 to 1, the colour of a square in this column of a map is;
    # None for a square without a colour.
    shade: Callable[[SquareChart, SquareMap, Square, int], float | None]
    # Returns the texts in a square of this width. The square is None where nothing is known.
    write: Callable[[SquareChart, Square | None, float], list[Text]]
    high: float  # the height of a square
    # The least and the largest width of a square; the least is infinite for one map in each row.
    narrowest: float = math.inf
    widest: float = 1.8
    left: float = 0.85  # from the squares to the left end of the rows' labels
    name: float = 0.58  # from the squares to the name of the axis along y
    right: float = 0.0  # at the right of the squares, for notes
    gap: float = 0.35  # between two maps in a row
    above: float = 0.3  # above the squares, for the title
    below: float = 0.62  # below the squares, for labels and the name of the axis along x
    lean: float = 0.5  # the part of `left` that counts where maps are centred in the figure
    dark: float = 2.0  # on this shade or a larger one numbers are white; above 1: on none


def draw_squares(chart: SquareChart) -> Figure:
    """Draw as many maps side by side as fit, and the others in rows under them."""
    look = _look_of(chart)
    rows = len(chart.rows)
    # Each map counts with a gap at its right, and so the last one does.
    room = style.WIDTH_INCHES - (look.right or 2 * style.SIDE_INCHES) + look.gap
    narrowest_map = look.left + len(chart.maps[0].columns) * look.narrowest + look.gap
    per_row = max(1, min(len(chart.maps), int(room // narrowest_map)))
    rows_of_maps = math.ceil(len(chart.maps) / per_row)
    map_inches = look.above + rows * look.high + look.below
    frame = style.frame(chart, rows_of_maps * map_inches, _legend_of(chart, look))

    for number, drawn_map in enumerate(chart.maps):
        columns = len(drawn_map.columns)
        wide = min(look.widest, (room / per_row - look.left - look.gap) / columns)
        all_maps = per_row * (look.left + columns * wide) + (per_row - 1) * look.gap
        first_left = (style.WIDTH_INCHES - look.right - all_maps
                      - (1 - look.lean) * look.left) / 2

        row_of_maps, place_in_row = divmod(number, per_row)
        left = first_left + look.left + place_in_row * (look.left + columns * wide + look.gap)
        low = (rows_of_maps - 1 - row_of_maps) * map_inches + look.below
        axes = frame.axes(left, low, columns * wide, rows * look.high)
        for row, column in itertools.product(range(rows), range(columns)):
            _draw_square(axes, chart, drawn_map, row=row, column=column, look=look, wide=wide)
        _set_axes(axes, chart, drawn_map, look)
    return frame.figure


def _draw_square(axes: Axes, chart: SquareChart, drawn_map: SquareMap, *, row: int, column: int,
                 look: Look, wide: float) -> None:
    """Draw the square of a row and a column, which count from 0 at the lower left.

    On the axes it is the unit square whose lower left corner is at (column, row). wide: its width
    in inches.
    """
    square = drawn_map.rows[row][column]
    shade = None if square is None else look.shade(chart, drawn_map, square, column)

    x_gap, y_gap, edge, line_width = 0.0, 0.0, style.GROUND, 1.0
    if chart.scale == "published":  # squares stand apart, so that the frames of near ones are seen
        x_gap, y_gap, line_width = 0.02, 0.05, 0.5
    if square is not None and square.is_near:
        edge, line_width = style.INK, 1.3
    colour = NOTHING if shade is None else look.colours(shade)
    axes.add_patch(Rectangle((column + x_gap, row + y_gap), 1 - 2 * x_gap, 1 - 2 * y_gap,
                             facecolor=colour, edgecolor=edge, linewidth=line_width))

    ink = "#FFFFFF" if (shade or 0.0) >= look.dark else style.INK
    for text, height, size, text_colour in look.write(chart, square, wide):
        axes.text(column + 0.5, row + 0.5 + height, style.literal(text), ha="center", va="center",
                  fontsize=size, color=text_colour or ink)


def _set_axes(axes: Axes, chart: SquareChart, drawn_map: SquareMap, look: Look) -> None:
    """Set the labels of columns and rows, the names of both quantities, and notes."""
    axes.set_xlim(0, len(drawn_map.columns))
    axes.set_ylim(0, len(chart.rows))
    style.name_ticks(axes, [(place + 0.5, label) for place, label in enumerate(drawn_map.columns)])
    axes.set_yticks([place + 0.5 for place in range(len(chart.rows))],
                    [style.literal(label) for label in chart.rows])
    axes.tick_params(length=0,
                     labelsize=style.SMALL if chart.scale == "published" else style.MEDIUM)
    column_inches = axes.get_position().width * style.WIDTH_INCHES / len(drawn_map.columns)
    label_inches = LETTER_INCHES * max(map(len, drawn_map.columns))
    if chart.scale == "published" and column_inches < label_inches:
        axes.tick_params(axis="x", labelsize=style.SMALL - 1)  # >100000 would touch 100000
    if chart.scale == "window":  # narrow squares, whose labels would touch each other
        axes.tick_params(axis="both", labelsize=style.SMALL)
        axes.tick_params(axis="x", rotation=90 if len(chart.maps) > 1 else 45)

    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xlabel(style.literal(chart.x_label), fontsize=style.MEDIUM)
    if chart.y_label:
        style.name_y(axes, chart.y_label, look.name)
    axes.set_title(style.literal(drawn_map.title), loc="left", fontsize=style.MEDIUM)
    if chart.scale == "published":
        axes.axhline(1, color=style.INK, linewidth=0.8)
    for row, note in enumerate(chart.notes):
        axes.text(len(drawn_map.columns) + 0.06, row + 0.48, style.literal(note), ha="left",
                  va="center", fontsize=style.SMALL, color=style.FAINT)


# What each scale looks like ----------------------------------------------------------

def _look_of(chart: SquareChart) -> Look:
    """The look of the chart's scale, with room for the labels of the chart's rows.

    Where there are several maps of windows, their squares are small.
    """
    look = LOOKS[chart.scale]
    if chart.scale == "window" and len(chart.maps) > 1:
        look = replace(look, write=_excluded_texts, high=0.14, narrowest=0.1, widest=0.2, gap=0.1)

    label = LABEL_INCHES * max(map(len, chart.rows)) + 0.15  # the longest one
    if chart.scale in ("improved", "window"):
        added = max(0.0, label - look.name)
        return replace(look, left=look.left + added + 0.1, name=look.name + added)
    if chart.scale == "level":
        return replace(look, left=label + (0.45 if chart.y_label else 0.0), name=label + 0.15)
    return look


def _improved_shade(chart: SquareChart, drawn_map: SquareMap, square: Square, column: int) -> float:
    """The shade of a percentage: 1 for _full_percent(), 0.5 for no difference, 0 for minus that."""
    most = _full_percent(chart)
    return min(max((square.percent + most) / (2 * most), 0.0), 1.0)


def _full_percent(chart: SquareChart) -> float:
    """The least percentage with the full colour: the chart's largest one, within bounds."""
    largest = LEAST_PERCENT
    for drawn_map in chart.maps:
        for square in itertools.chain.from_iterable(drawn_map.rows):
            if square:
                largest = max(largest, abs(square.percent))
    return min(MOST_PERCENT, largest)


def _improved_texts(chart: SquareChart, square: Square | None, wide: float) -> list[Text]:
    """The improvement in the metric's unit and in percent, and how many records are excluded.

    The unit stands there if it has room. An unsure improvement is in brackets.
    """
    if square is None:
        return [("–", 0.0, style.MEDIUM, style.FAINT)]
    needed = NARROWEST_INCHES + LETTER_INCHES * max(0, len(chart.unit) - len("ms"))
    unit = f" {chart.unit}" if chart.unit and wide >= needed else ""
    value = f"{format_brief(square.value)}{unit}"
    if square.unsure:
        value = f"({value})"
    percent = format_number(square.percent, 0 if abs(square.percent) >= 9.95 else 1)
    if not square.excluded:
        return [(value, 0.16, style.MEDIUM, ""), (f"{percent} %", -0.18, style.SMALL, "")]

    # A third line below the two moves them up.
    word = "excluded" if wide >= NARROWEST_INCHES else "excl."
    return [(value, 0.30, style.MEDIUM, ""), (f"{percent} %", -0.04, style.SMALL, ""),
            (f"{square.excluded} {word}", -0.36, style.SMALL, style.ALARM)]


def _window_shade(chart: SquareChart, drawn_map: SquareMap, square: Square, column: int) -> float:
    """The shade of a square whose value is a window."""
    return _shade_of_window(chart, int(square.value))


def _shade_of_window(chart: SquareChart, window: int) -> float:
    """The place of a window among those of the chart: 0 for the smallest, 1 for the largest."""
    return chart.windows.index(window) / max(1, len(chart.windows) - 1)


def _window_texts(chart: SquareChart, square: Square | None, wide: float) -> list[Text]:
    """The window, with an asterisk where some records do not count."""
    if square is None:
        return [("–", 0.0, style.MEDIUM, style.FAINT)]
    return [(f"{square.value:.0f}{'*' if square.excluded else ''}", 0.0, style.SMALL, "")]


def _excluded_texts(chart: SquareChart, square: Square | None, wide: float) -> list[Text]:
    """An asterisk where some records do not count. The legend explains the colours."""
    return [("*", -0.15, style.SMALL, "")] if square is not None and square.excluded else []


def _level_shade(chart: SquareChart, drawn_map: SquareMap, square: Square, column: int) -> float:
    """The shade of a value: 0 for the least value of the map, 1 for the largest."""
    values = [known.value for known in itertools.chain.from_iterable(drawn_map.rows) if known]
    return (square.value - min(values)) / (max(values) - min(values) or 1.0)


def _level_texts(chart: SquareChart, square: Square | None, wide: float) -> list[Text]:
    """The value."""
    if square is None:
        text = "–"
    else:
        text = f"{square.value:.0f}" if chart.whole else format_brief(square.value)
    return [(text, 0.0, style.MEDIUM, "")]


def _published_shade(chart: SquareChart, drawn_map: SquareMap, square: Square, column: int
                     ) -> float | None:
    """The shade of a value by its ratio to the published value, which is in the lowest row.

    0.5 stands for equal values, and FULL_RATIO has 1. None where no value was published.
    """
    published = drawn_map.rows[0][column]
    if published is None or not published.value:
        return None
    ratio = square.value / published.value
    if ratio <= 0:
        return 0.0
    full = math.log(FULL_RATIO)
    return min(max((math.log(ratio) + full) / (2 * full), 0.0), 1.0)


def _published_texts(chart: SquareChart, square: Square | None, wide: float) -> list[Text]:
    """The value."""
    return [("–" if square is None else format_brief(square.value), -0.02, style.SMALL, "")]


def _colours(*colours: str) -> Colormap:
    return LinearSegmentedColormap.from_list("", colours)


WINDOWS = colormaps["viridis_r"]  # from light to dark, with even steps between neighbours
# By the scale of a chart (SquareChart.scale). Larger windows and levels are darker.
LOOKS = {
    "improved": Look(_colours(style.ORANGE, "#FFFFFF", style.SKY), _improved_shade,
                     _improved_texts, 0.52, NARROWEST_INCHES),
    "window": Look(WINDOWS, _window_shade, _window_texts, 0.235, 0.24, dark=0.45),
    "level": Look(_colours("#FFFFFF", style.SKY, style.BLUE), _level_shade, _level_texts, 0.32,
                  above=0.15, lean=1.0, dark=0.72),
    "published": Look(_colours(style.SKY, "#FFFFFF", style.ORANGE), _published_shade,
                      _published_texts, 0.3, widest=math.inf, left=2.3, right=0.6, above=0.34,
                      below=0.5, lean=1.0)}


def _legend_of(chart: SquareChart, look: Look) -> list[Artist]:
    """The meaning of the colours. [] for levels, whose squares have their numbers."""
    if chart.scale == "improved":
        most = format_number(_full_percent(chart), 0)
        shades = [(0.0, f"{most} % worse, or more"), (0.5, "no difference"),
                  (1.0, f"{most} % better, or more")]
        return [*_patches(look, shades), *_patch_of_nothing(chart)]
    if chart.scale == "window":
        shades = []
        if len(chart.maps) > 1:
            shades = [(_shade_of_window(chart, window), str(window)) for window in chart.windows]
        return [*_patches(look, shades), *_patch_of_nothing(chart)]
    if chart.scale != "published":
        return []

    part = {2: "half", 3: "third", 4: "quarter"}.get(int(FULL_RATIO), f"1/{FULL_RATIO:g}")
    return [Patch(color=look.colours(1.0), label=f"{FULL_RATIO:g} times the published value, or"
                                                 " more"),
            Patch(color=look.colours(0.0), label=f"a {part} of it, or less"),
            Patch(facecolor="white", edgecolor=style.INK, linewidth=1.3,
                  label="near it: within 30 % and 3 points")]


def _patches(look: Look, shades: Sequence[tuple[float, str]]) -> list[Artist]:
    """A handle for each shade and its label."""
    return [Patch(facecolor=look.colours(shade), edgecolor=style.FAINT, linewidth=0.5, label=label)
            for shade, label in shades]


def _patch_of_nothing(chart: SquareChart) -> list[Artist]:
    """The meaning of squares without a value; [] where each square has one."""
    for drawn_map in chart.maps:
        if None in itertools.chain.from_iterable(drawn_map.rows):
            return [Patch(facecolor=NOTHING, edgecolor=style.FAINT, linewidth=0.5,
                          label="nothing counts")]
    return []


# Shares over two quantities, on logarithmic axes, and lines of equal product -------------

BODY_INCHES = 4.1  # the height of the body
LEFT_INCHES, LOW_INCHES = 0.8, 0.5  # from the body's lower left corner to the axes
AXES_INCHES = (style.WIDTH_INCHES - 2.1, 3.5)  # width and height
SHADES_INCHES = 0.2  # the width of the scale of colours
DECADES = 5  # how many the scale of colours spans
LABEL_AT = 0.14  # where a line's label begins: this part of its visible length from the upper end


def draw_shares(chart: GridChart) -> Figure:
    """Draw the shares as colours, with their scale at the right."""
    frame = style.frame(chart, BODY_INCHES)
    axes = frame.axes(LEFT_INCHES, LOW_INCHES, *AXES_INCHES)
    highest = 10.0 ** math.ceil(math.log10(numpy.nanmax(chart.shares)))
    lowest = highest / 10 ** DECADES
    # A share far below the lower end of the scale is white, as if there were none.
    shares = numpy.where(chart.shares.T > lowest / 100, chart.shares.T, numpy.nan)
    mesh = axes.pcolormesh(chart.x, chart.y, shares, cmap="viridis", shading="nearest",
                           norm=LogNorm(vmin=lowest, vmax=numpy.nanmax(shares)), rasterized=True)
    for axis, values, set_scale, set_ends in (
            (axes.xaxis, chart.x, axes.set_xscale, axes.set_xlim),
            (axes.yaxis, chart.y, axes.set_yscale, axes.set_ylim)):
        set_scale("log")
        set_ends(values[0], values[-1])
        style.fix_ticks(axis, style.decades(), (values[0], values[-1]))

    axes.set_xlabel(style.literal(chart.x_label))
    style.name_y(axes, chart.y_label, 0.6)
    for product, label in chart.diagonals:
        _draw_diagonal(axes, chart, product, label)

    shades = frame.axes(LEFT_INCHES + AXES_INCHES[0] + 0.25, LOW_INCHES, SHADES_INCHES,
                        AXES_INCHES[1])
    frame.figure.colorbar(mesh, cax=shades)
    style.fix_ticks(shades.yaxis, style.decades(), shades.get_ylim())
    style.name_y(shades, chart.colour_label, 0.65, right=True)
    return frame.figure


def _draw_diagonal(axes: Axes, chart: GridChart, product: float, label: str) -> None:
    """Draw the line on which x · y is `product`, as far as it lies in the grid, with its label."""
    left = max(chart.x[0], product / chart.y[-1])
    right = min(chart.x[-1], product / chart.y[0])
    if left >= right:
        return
    axes.plot([left, right], [product / left, product / right], color="white", linewidth=0.8,
              linestyle="--")

    label_x = left * (right / left) ** LABEL_AT
    # The line goes down by a decade of y in a decade of x. These are the decades' inches.
    x_inches = AXES_INCHES[0] / math.log10(chart.x[-1] / chart.x[0])
    y_inches = AXES_INCHES[1] / math.log10(chart.y[-1] / chart.y[0])
    axes.text(label_x, product / label_x, style.literal(label), color="white",
              fontsize=style.SMALL, rotation=-math.degrees(math.atan2(y_inches, x_inches)),
              rotation_mode="anchor", ha="left", va="bottom", clip_on=True)
