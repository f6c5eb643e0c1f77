"""Draws maps over two quantities: coloured squares with a number in each, and shares of responses.

Blue is an improvement, orange the opposite, and white no difference. Every kind of colour vision
distinguishes these, and the number has the sign. Windows and levels go from light to dark, so
that their order can be seen without colour. A map has as many colours as windows, equally far
apart; in other figures a window has a colour of its own.
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

# What is written in a square: how far above its middle, of which size and colour ("": ink, or
# white on a dark one).
Text = tuple[str, float, float, str]

NOTHING = "#EEEEEE"  # a square of which nothing is known
NARROWEST_INCHES = 0.62  # in which both numbers of what is saved can be read, with a short unit
LETTER_INCHES, LABEL_INCHES = 0.07, 0.075  # of one more letter of it, and of one of a row's label
LEAST_PERCENT, MOST_PERCENT = 20.0, 50.0  # between which the first with the full colour is
FULL_RATIO = 4.0  # so many times the published value, or a part, has the full colour


# Squares -----------------------------------------------------------------------------

@dataclass(frozen=True)
class Look:
    """How the squares of a scale look. Lengths in inches.

    shade: of a square of a map and its column the place of its colour, from 0 to 1, None for
    none. write: what stands in a square, of which nothing may be known, of this width. dark: from
    which shade on a number is white. narrowest, widest, high: of a square. left, name: from the
    squares to the left end of their rows' labels, and to the name of their quantity; right: for
    notes. lean: what part of `left` counts where maps are put in the middle.
    """

    colours: Colormap
    shade: Callable[[SquareChart, SquareMap, Square, int], float | None]
    write: Callable[[SquareChart, Square | None, float], list[Text]]
    high: float
    narrowest: float = math.inf
    widest: float = 1.8
    left: float = 0.85
    name: float = 0.58
    right: float = 0.0
    gap: float = 0.35
    above: float = 0.3
    below: float = 0.62
    lean: float = 0.5
    dark: float = 2.0


def draw_squares(chart: SquareChart) -> Figure:
    """Draw maps next to each other while there is room, then under each other."""
    look = _look_of(chart)
    across, down = len(chart.maps[0].columns), len(chart.rows)
    room = style.WIDTH_INCHES - (look.right or 2 * style.SIDE_INCHES) + look.gap
    per_row = max(1, min(len(chart.maps),
                         int(room // (look.left + across * look.narrowest + look.gap))))
    floors = -(-len(chart.maps) // per_row)
    high = look.above + down * look.high + look.below
    frame = style.frame(chart, floors * high, _legend_of(chart, look))

    for place, field in enumerate(chart.maps):
        across = len(field.columns)
        wide = min(look.widest, (room / per_row - look.left - look.gap) / across)
        first = (style.WIDTH_INCHES - look.right - per_row * (look.left + across * wide)
                 - (per_row - 1) * look.gap - (1 - look.lean) * look.left) / 2
        floor, column = divmod(place, per_row)
        left = first + look.left + column * (look.left + across * wide + look.gap)
        low = (floors - 1 - floor) * high + look.below
        axes = frame.axes(left, low, across * wide, down * look.high)
        for row, column in itertools.product(range(down), range(across)):
            _draw_square(axes, chart, field, place=(row, column), look=look, wide=wide)
        _set_axes(axes, chart, field, look)
    return frame.figure


def _draw_square(axes: Axes, chart: SquareChart, field: SquareMap, place: tuple[int, int],
                 look: Look, wide: float) -> None:
    """Draw the square of a row and column: (r, c), from below, is the unit square at (c, r)."""
    row, column = place
    square = field.rows[row][column]
    shade = None if square is None else look.shade(chart, field, square, column)

    aside, up, edge, line_width = 0.0, 0.0, style.GROUND, 1.0
    if chart.scale == "published":  # squares apart from each other, in frames where near
        aside, up, line_width = 0.02, 0.05, 0.5
    if square is not None and square.is_near:
        edge, line_width = style.INK, 1.3
    axes.add_patch(Rectangle(
        (column + aside, row + up), 1 - 2 * aside, 1 - 2 * up,
        facecolor=NOTHING if shade is None else look.colours(shade), edgecolor=edge,
        linewidth=line_width))

    ink = "#FFFFFF" if (shade or 0.0) >= look.dark else style.INK
    for text, higher, size, colour in look.write(chart, square, wide):
        axes.text(column + 0.5, row + 0.5 + higher, style.literal(text), ha="center", va="center",
                  fontsize=size, color=colour or ink)


def _set_axes(axes: Axes, chart: SquareChart, field: SquareMap, look: Look) -> None:
    """Labels of columns and rows, the names of both quantities, and notes."""
    axes.set_xlim(0, len(field.columns))
    axes.set_ylim(0, len(chart.rows))
    style.name_ticks(axes, [(place + 0.5, label) for place, label in enumerate(field.columns)])
    axes.set_yticks([place + 0.5 for place in range(len(chart.rows))],
                    [style.literal(label) for label in chart.rows])
    axes.tick_params(length=0,
                     labelsize=style.SMALL if chart.scale == "published" else style.MEDIUM)
    column_inches = axes.get_position().width * style.WIDTH_INCHES / len(field.columns)
    if chart.scale == "published" and column_inches < LETTER_INCHES * max(map(len, field.columns)):
        axes.tick_params(axis="x", labelsize=style.SMALL - 1)  # >100000 would touch 100000
    if chart.scale == "window":  # narrow squares, whose labels would touch each other
        axes.tick_params(axis="both", labelsize=style.SMALL)
        axes.tick_params(axis="x", rotation=90 if len(chart.maps) > 1 else 45)

    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xlabel(style.literal(chart.x_label), fontsize=style.MEDIUM)
    if chart.y_label:
        style.name_y(axes, chart.y_label, look.name)
    axes.set_title(style.literal(field.title), loc="left", fontsize=style.MEDIUM)
    if chart.scale == "published":
        axes.axhline(1, color=style.INK, linewidth=0.8)
    for row, note in enumerate(chart.notes):
        axes.text(len(field.columns) + 0.06, row + 0.48, style.literal(note), ha="left",
                  va="center", fontsize=style.SMALL, color=style.FAINT)


# What each scale looks like ----------------------------------------------------------

def _look_of(chart: SquareChart) -> Look:
    """The chart's look, with room for the labels of its rows. Several maps of windows are small."""
    look = LOOKS[chart.scale]
    if chart.scale == "window" and len(chart.maps) > 1:
        look = replace(look, write=_excluded_texts, high=0.14, narrowest=0.1, widest=0.2, gap=0.1)
    label = LABEL_INCHES * max(map(len, chart.rows)) + 0.15
    if chart.scale in ("improved", "window"):
        more = max(0.0, label - look.name)
        return replace(look, left=look.left + more + 0.1, name=look.name + more)
    if chart.scale != "level":
        return look
    return replace(look, left=label + (0.45 if chart.y_label else 0.0), name=label + 0.15)


def _improved_shade(chart: SquareChart, field: SquareMap, square: Square, column: int) -> float:
    """The shade of a percentage; the chart's largest has the full colour, within bounds."""
    most = _full_percent(chart)
    return min(max((square.percent + most) / (2 * most), 0.0), 1.0)


def _full_percent(chart: SquareChart) -> float:
    return min(MOST_PERCENT, max([LEAST_PERCENT, *(
        abs(other.percent) for one in chart.maps for squares in one.rows for other in squares
        if other)]))


def _improved_texts(chart: SquareChart, square: Square | None, wide: float) -> list[Text]:
    """Both numbers, the unit where it has room; where something is left out, how much."""
    if square is None:
        return [("–", 0.0, style.MEDIUM, style.FAINT)]
    needed = NARROWEST_INCHES + LETTER_INCHES * max(0, len(chart.unit) - len("ms"))
    unit = f" {chart.unit}" if chart.unit and wide >= needed else ""
    before, behind = ("(", ")") if square.unsure else ("", "")
    percent = format_number(square.percent, 0 if abs(square.percent) >= 9.95 else 1)
    higher = 0.14 if square.excluded else 0.0
    word = "excluded" if wide >= NARROWEST_INCHES else "excl."
    excluded = [(f"{square.excluded} {word}", -0.36, style.SMALL, style.ALARM)]
    value = f"{before}{format_brief(square.value)}{unit}{behind}"
    return [(value, 0.16 + higher, style.MEDIUM, ""),
            (f"{percent} %", higher - 0.18, style.SMALL, ""),
            *(excluded if square.excluded else [])]


def _window_shade(chart: SquareChart, field: SquareMap, square: Square, column: int) -> float:
    """The place of a window among those of the chart: the smallest is the lightest."""
    return window_shade(chart, int(square.value))


def window_shade(chart: SquareChart, window: int) -> float:
    return chart.windows.index(window) / max(1, len(chart.windows) - 1)


def _window_texts(chart: SquareChart, square: Square | None, wide: float) -> list[Text]:
    """The window, with a mark where some records do not count."""
    if square is None:
        return [("–", 0.0, style.MEDIUM, style.FAINT)]
    return [(f"{square.value:.0f}{'*' if square.excluded else ''}", 0.0, style.SMALL, "")]


def _excluded_texts(chart: SquareChart, square: Square | None, wide: float) -> list[Text]:
    """No number, since the legend has the colours; a mark where some records do not count."""
    return [("*", -0.15, style.SMALL, "")] if square is not None and square.excluded else []


def _level_shade(chart: SquareChart, field: SquareMap, square: Square, column: int) -> float:
    known = [other.value for squares in field.rows for other in squares if other]
    return (square.value - min(known)) / (max(known) - min(known) or 1.0)


def _level_texts(chart: SquareChart, square: Square | None, wide: float) -> list[Text]:
    if square is None:
        text = "–"
    else:
        text = f"{square.value:.0f}" if chart.whole else format_brief(square.value)
    return [(text, 0.0, style.MEDIUM, "")]


def _published_shade(chart: SquareChart, field: SquareMap, square: Square, column: int
                     ) -> float | None:
    """The shade by the ratio to the published value, which is in the lowest row."""
    published = field.rows[0][column]
    if published is None or not published.value:
        return None
    ratio, full = square.value / published.value, math.log(FULL_RATIO)
    return min(max((math.log(ratio) + full) / (2 * full), 0.0), 1.0) if ratio > 0 else 0.0


def _published_texts(chart: SquareChart, square: Square | None, wide: float) -> list[Text]:
    return [("–" if square is None else format_brief(square.value), -0.02, style.SMALL, "")]


def _colours(*colours: str) -> Colormap:
    return LinearSegmentedColormap.from_list("", colours)


WINDOWS = colormaps["viridis_r"]  # light to dark, and even steps between neighbours
# Of what is improved, or is published; of windows, many small squares with one number each; of
# levels. A window's and a level's squares are the darker the more.
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
    """The meaning of the colours; squares have their numbers themselves."""
    if chart.scale == "improved":
        most = format_number(_full_percent(chart), 0)
        shades = [(0.0, f"{most} % worse, or more"), (0.5, "no difference"),
                  (1.0, f"{most} % better, or more")]
        return [*_patches(look, shades), *_nothing(chart)]
    if chart.scale == "window":
        shades = []
        if len(chart.maps) > 1:
            shades = [(window_shade(chart, window), str(window)) for window in chart.windows]
        return [*_patches(look, shades), *_nothing(chart)]
    if chart.scale != "published":
        return []

    part = {2: "half", 3: "third", 4: "quarter"}.get(int(FULL_RATIO), f"1/{FULL_RATIO:g}")
    return [Patch(color=look.colours(1.0), label=f"{FULL_RATIO:g} times the published value, or"
                                                 " more"),
            Patch(color=look.colours(0.0), label=f"a {part} of it, or less"),
            Patch(facecolor="white", edgecolor=style.INK, linewidth=1.3,
                  label="near it: within 30 % and 3 points")]


def _patches(look: Look, shades: Sequence[tuple[float, str]]) -> list[Artist]:
    return [Patch(facecolor=look.colours(shade), edgecolor=style.FAINT, linewidth=0.5, label=label)
            for shade, label in shades]


def _nothing(chart: SquareChart) -> list[Artist]:
    """The meaning of squares without a value; [] where each has one."""
    is_known = all(square is not None for field in chart.maps for row in field.rows
                   for square in row)
    return [] if is_known else [Patch(facecolor=NOTHING, edgecolor=style.FAINT, linewidth=0.5,
                                      label="nothing counts")]


# Shares over two quantities, on logarithmic axes; lines of equal product over them -------

BODY_INCHES, LEFT_INCHES, LOW_INCHES = 4.1, 0.8, 0.5
AXES_INCHES = (style.WIDTH_INCHES - 2.1, 3.5)  # width and height
SHADES_INCHES = 0.2  # width of the scale of colours
DECADES = 5  # that the scale of colours spans
LABEL_AT = 0.14  # of a line's visible length, from its upper end


def draw_shares(chart: GridChart) -> Figure:
    """Draw the shares as colours, with their scale at the right."""
    frame = style.frame(chart, BODY_INCHES)
    axes = frame.axes(LEFT_INCHES, LOW_INCHES, *AXES_INCHES)
    highest = 10.0 ** math.ceil(math.log10(numpy.nanmax(chart.shares)))
    lowest = highest / 10 ** DECADES
    # What is far less than the scale shows is nothing: white.
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
    """Draw the line on which x·y is constant, within the grid, with its label along it."""
    left = max(chart.x[0], product / chart.y[-1])
    right = min(chart.x[-1], product / chart.y[0])
    if left >= right:
        return
    axes.plot([left, right], [product / left, product / right], color="white", linewidth=0.8,
              linestyle="--")
    place = left * (right / left) ** LABEL_AT
    across, up = (AXES_INCHES[place] / math.log10(values[-1] / values[0])
                  for place, values in enumerate((chart.x, chart.y)))
    axes.text(place, product / place, style.literal(label), color="white", fontsize=style.SMALL,
              rotation=-math.degrees(math.atan2(up, across)), rotation_mode="anchor",
              ha="left", va="bottom", clip_on=True)
