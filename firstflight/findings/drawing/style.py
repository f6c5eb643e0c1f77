"""What all figures share: colours, sizes, the text around the axes, ticks, legends, files.

Figures are drawn on Agg without pyplot, with margins in inches and plain
ticks: that is what makes it fast. Every text passes through `literal`, for
matplotlib would read what stands between two dollars as a formula.
"""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap, to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.path import Path
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator
from PIL import Image

from firstflight.base.words import MINUS, visible_line
from firstflight.findings.charts import Chart, is_wide
from firstflight.findings.claims import Ends

DPI = 150
# Of every figure, so that their words are of one size on a page; as narrow as a telephone, where
# 390 pixels are left of it, needs to show the smallest words.
WIDTH_INCHES = 5.7
SIDE_INCHES = 0.12  # left and right of what is written across
X_NAME_INCHES = 0.29  # from the axes down to the name of the axis along x
SMALL, MEDIUM, LARGE = 8.0, 9.0, 11.0  # points
SUBTITLE_LINES = 2
TICK_GAP_INCHES = 0.05  # at least, between the labels of two ticks
TABLE_INCHES, ROW_INCHES = 0.31, 0.16  # from axes to a table below them, and from row to row
NO_BREAK = "\N{NO-BREAK SPACE}"
NARROW, BROAD = " ijltfr.,:;'|()·", "mwMWGOQ%→"  # letters

INK, FAINT, ALARM, GROUND = "#222222", "#666666", "#B00020", "#DDDDDD"
# Of Okabe and Ito (2008): they differ in every kind of colour vision, and in grey.
BLUE, ORANGE, VERMILION, GREEN, PINK, SKY = (
    "#0072B2", "#E69F00", "#D55E00", "#009E73", "#CC79A7", "#56B4E9")
# Darker, for words and thin lines on white.
BLUE_TEXT, ORANGE_TEXT = "#005A8E", "#8F6200"

# Of initial windows: a window has the same colour in every figure, and the larger is the darker, so
# that their order is seen in grey, too. Windows between these have a colour between theirs.
WINDOWS = ((1, "#BBBBBB"), (3, SKY), (6, "#1E8C7A"), (10, BLUE), (16, "#882255"), (24, "#522C96"),
           (32, "#204C1C"), (48, "#1A1466"), (64, "#331500"), (100, "#000000"))

# Groups of matplotlib's settings that are its own, whatever the user's matplotlibrc has.
GROUPS = ("agg", "axes", "figure", "font", "grid", "hatch", "image", "legend", "lines",
          "markers", "patch", "path", "pdf", "savefig", "svg", "text", "xtick", "ytick")
OWN = {
    "axes.axisbelow": True, "axes.labelcolor": INK, "axes.labelsize": MEDIUM,
    "axes.titlecolor": INK, "axes.titlelocation": "left", "axes.titlepad": 4.0,
    "axes.titlesize": MEDIUM, "grid.color": GROUND, "grid.linewidth": 0.6,
    "hatch.linewidth": 0.6, "legend.columnspacing": 1.6, "legend.edgecolor": "none",
    "legend.fontsize": SMALL,
    "legend.framealpha": 0.85, "legend.handletextpad": 0.5, "svg.hashsalt": "first-flight",
    "text.color": INK, "xtick.color": INK, "xtick.labelsize": SMALL, "xtick.major.size": 3.0,
    "ytick.color": INK, "ytick.labelsize": SMALL, "ytick.major.size": 3.0}
# Dates would make two drawings of the same data differ.
METADATA: dict[str, dict[str, None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
PNG_COMPRESSION = 4  # of 9: as small as the default within a tenth, in half the time


def settings() -> AbstractContextManager[None]:
    """The settings of matplotlib under which figures are made and written."""
    plain = {key: value for key, value in matplotlib.rcParamsDefault.items()
             if key.partition(".")[0] in GROUPS}
    context: AbstractContextManager[None] = matplotlib.rc_context(
        {**plain, **OWN})
    return context


def image(drawn: Figure, form: str) -> bytes:
    """The figure as a file's content, the same bytes for the same figure.

    form: of base.argument_types.PICTURES.
    """
    content = io.BytesIO()
    if form == "png":
        drawn.canvas.draw()
        size = drawn.canvas.get_width_height()
        picture = Image.frombuffer("RGBA", size, drawn.canvas.buffer_rgba(), "raw", "RGBA", 0, 1)
        picture.convert("RGB").save(content, "png", dpi=(DPI, DPI),
                                    compress_level=PNG_COMPRESSION)
    else:
        drawn.savefig(content, format=form, metadata=METADATA[form])
    return content.getvalue()


# The frame ---------------------------------------------------------------------------

@dataclass(frozen=True)
class FigureFrame:
    """A figure with its words in their places."""

    figure: Figure
    bottom: float  # inches below its body, where axes go

    def axes(self, left: float, low: float, width: float, height: float) -> Axes:
        """New axes; all in inches, from the lower left corner of the body."""
        across, up = self.figure.get_size_inches()
        axes = self.figure.add_axes((left / across, (self.bottom + low) / up, width / across,
                                     height / up))
        axes.xaxis.set_label_coords(0.5, -X_NAME_INCHES / height)
        return axes


def frame(chart: Chart, body_inches: float, handles: Sequence[Artist] = ()) -> FigureFrame:
    """Title, context and alarm above a body of this height, legend and foot below it."""
    above = [(line, LARGE, INK) for line in fitted(chart.title, LARGE, bold=True)]
    above += [(line, MEDIUM, INK) for line in subtitle(chart.context)]
    above += [(line, MEDIUM, ALARM) for line in fitted(chart.alarm, MEDIUM)]
    below = [*fitted(chart.foot, SMALL), *fitted(chart.caption, SMALL)]
    columns = legend_columns([len(literal(handle.get_label())) for handle in handles])
    legend_low = 0.08 + 0.17 * len(below)
    bottom = legend_low + (0.1 + 0.17 * math.ceil(len(handles) / columns) if handles else 0.0)
    height = bottom + body_inches + 0.2 + sum(_line_inches(size) for _, size, _ in above)

    drawn = Figure(figsize=(WIDTH_INCHES, height), dpi=DPI)
    FigureCanvasAgg(drawn)
    down = 0.08
    for text, size, colour in above:
        down += _line_inches(size)
        drawn.text(0.5, 1 - (down - _line_inches(size) / 2) / height, literal(text), fontsize=size,
                   color=colour, weight="bold" if size == LARGE else "normal", ha="center",
                   va="center")
    for place, text in enumerate(reversed(below)):
        drawn.text(0.5, (0.15 + 0.17 * place) / height, literal(text), fontsize=SMALL,
                   color=FAINT, ha="center", va="center")
    if handles:
        legend(drawn, handles, loc="lower center", ncol=columns, frameon=False,
               bbox_to_anchor=(0.5, legend_low / height), borderaxespad=0.2, borderpad=0.2)
    return FigureFrame(drawn, bottom)


def subtitle(context: Sequence[str]) -> list[str]:
    """A chart's context in SUBTITLE_LINES at most: a line each, or one after the other.

    What is still too long ends with an ellipsis; the page beside the figure has all of it.
    """
    lines = [line for text in context for line in fitted(text, MEDIUM)]
    if len(lines) > SUBTITLE_LINES:
        lines = fitted("; ".join(context), MEDIUM)
    if len(lines) > SUBTITLE_LINES:
        *shown, last = lines[:SUBTITLE_LINES]
        lines = [*shown, f"{last.rstrip(' ,;')} …"]
    return lines


def legend(owner: Axes | Figure, handles: Sequence[Artist], **look: object) -> None:
    """The handles with their labels, which stay as they are.

    matplotlib leaves out what has a label that begins with an underscore, so they come later.
    """
    drawn = owner.legend(handles, ["label"] * len(handles), **look)
    for text, handle in zip(drawn.get_texts(), handles):
        text.set_text(literal(handle.get_label()))


def _line_inches(size: float) -> float:
    return 0.24 if size == LARGE else 0.19


def fitted(text: str, size: float, inches: float = WIDTH_INCHES - 2 * SIDE_INCHES,
           bold: bool = False) -> list[str]:
    """The text in lines of at most this width, as estimated from the width of an average letter.

    The lines have similar lengths, so that the last one is no single word. A number stays with its
    unit, unless both are too long for a line.
    """
    mean = (1.13 if bold else 1.0) * sum(map(_width, text)) / len(text) if text else 1.0
    most = max(8, int(72 * inches / (size * mean)))
    together = re.sub(r"(?<=\d) (?=[a-zA-Z%])", NO_BREAK, text)
    longest = max(map(len, together.split(" ")))
    if longest > most:
        together = text
    lines = _lines(together, most)
    if len(lines) < 2:
        return lines
    return next((shorter for width in range(max(len(text) // len(lines), longest), most)
                 if len(shorter := _lines(together, width)) == len(lines)), lines)


def _lines(text: str, letters: int) -> list[str]:
    """Break a text into lines; none ends with the sign that separates items."""
    return [line.replace(NO_BREAK, " ").removesuffix(" ·")
            for line in textwrap.wrap(text, letters, break_on_hyphens=False)]


def legend_columns(lengths: Sequence[int]) -> int:
    """The most columns in which labels of these lengths fit; matplotlib fills them downwards."""
    for columns in range(len(lengths), 1, -1):
        per_column, more = divmod(len(lengths), columns)
        starts = [column * per_column + min(column, more) for column in range(columns + 1)]
        widest = [max(lengths[start:end]) for start, end in zip(starts, starts[1:])]
        if 0.46 * columns + 0.06 * sum(widest) <= WIDTH_INCHES - 2 * SIDE_INCHES:
            return columns
    return 1


def literal(text: str) -> str:
    """The text with dollars escaped, so that matplotlib reads no formula.

    Of invisible characters only the ends of lines are left: a file with a control character is
    no valid SVG.
    """
    return "\n".join(map(visible_line, text.split("\n"))).replace("$", r"\$")


# Axes --------------------------------------------------------------------------------

def name_y(axes: Axes, name: str, inches: float, size: float = MEDIUM, colour: str = INK,
           right: bool = False) -> None:
    """Name the y axis at this distance, so that matplotlib need not search for a place."""
    axes.set_ylabel(literal(name), fontsize=size, color=colour)
    part = inches / (axes.get_position().width * WIDTH_INCHES)
    axes.yaxis.set_label_coords(1 + part if right else -part, 0.5)


def write(axes: Axes, place: float, inches: float, text: str, colour: str = INK,
          align: str = "center", size: float = SMALL) -> None:
    """Text above the axes, or below them for a negative height; place: on the axis along x."""
    if not text:
        return
    high = axes.get_position().height * axes.figure.get_size_inches()[1]
    axes.text(place, (1 + inches / high) if inches > 0 else inches / high, literal(text),
              color=colour, fontsize=size, ha=align, va="center",
              transform=axes.get_xaxis_transform())


def name_ticks(axes: Axes, ticks: Sequence[tuple[float, str]]) -> None:
    """Ticks along x at these places, with these labels."""
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks([place for place, _ in ticks], [literal(label) for _, label in ticks])


def without_crowding(axes: Axes, ticks: Sequence[tuple[float, str]]
                     ) -> list[tuple[float, str]]:
    """The ticks along x, without those labels that would touch the one before.

    The last label stays, since it ends the axis. Where a tick has no label, its mark stays.
    """
    span = axes.get_position().width * WIDTH_INCHES
    low, high = axes.transData.transform([(end, 0.0) for end in axes.get_xlim()])[:, 0]
    placed: list[tuple[float, float]] = []  # the ends of each label that stays, from the right
    shown = []
    for place, label in sorted(ticks, reverse=True):
        middle = (axes.transData.transform((place, 0.0))[0] - low) / (high - low) * span
        half = max(map(letters_inches, label.split("\n"))) / 2
        is_free = not placed or middle + half + TICK_GAP_INCHES <= placed[-1][0]
        if is_free:
            placed.append((middle - half, middle + half))
        shown.append((place, label if is_free else ""))
    return shown[::-1]


def letters_inches(text: str, size: float = SMALL) -> float:
    """How wide a text is, as estimated from the width of an average letter."""
    return size / 72 * sum(_width(letter) for letter in text)


def _width(letter: str) -> float:
    """The width of a letter, as a part of the size of the font."""
    if letter in NARROW:
        return 0.35
    return 0.82 if letter in BROAD else 0.64


def fix_ticks(axis: Axis, values: Sequence[float], ends: Ends) -> None:
    """Ticks at those values that lie between the ends, as plain numbers."""
    axis.set_major_locator(FixedLocator([value for value in values
                                         if ends[0] <= value <= ends[1]]))
    axis.set_minor_locator(NullLocator())
    _label_ticks(axis)


def plain_ticks(axis: Axis, most: int, whole: bool = False) -> None:
    """Let matplotlib choose the ticks of a linear axis; whole: at whole numbers only."""
    steps = [1, 2, 3, 4, 5, 10] if whole else [1, 2, 5, 10]
    axis.set_major_locator(MaxNLocator(most, steps=steps, integer=whole))
    _label_ticks(axis)


def _label_ticks(axis: Axis) -> None:
    """No exponents, no offsets: a reader of one tick knows its value."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: tick_label(value)))


def tick_label(value: float) -> str:
    text = f"{value:.10f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text.replace("-", MINUS)


def tick_step(span: float) -> float:
    """1, 2 or 5 times a power of ten that divides the span into at most nine parts."""
    steps = (factor * 10.0 ** power for power in range(-9, 17) for factor in (1, 2, 5))
    return next(step for step in steps if span / step <= 9)


def even_ticks(low: float, high: float) -> list[float]:
    """At most ten ticks between the ends, with zero if it lies between them."""
    step = tick_step(high - low)
    return [place * step for place in range(math.ceil(low / step), math.floor(high / step) + 1)]


def from_zero(axes: Axes, high: float) -> None:
    """The axis along y from zero: bars' lengths are then the values."""
    axes.set_ylim(0, high)
    fix_ticks(axes.yaxis, even_ticks(0, high), (0, high))
    axes.grid(axis="y")


def decades() -> list[float]:
    """The ticks of a logarithmic axis."""
    return [10.0 ** power for power in range(-6, 10)]


# Windows -----------------------------------------------------------------------------

def window_shade(window: int) -> float:
    """Where a window stands between the lightest colour, 0, and the darkest, 1."""
    return min(1.0, math.log(max(window, 1)) / math.log(WINDOWS[-1][0]))


WINDOW_COLOURS = LinearSegmentedColormap.from_list(
    "windows", [(window_shade(window), colour) for window, colour in WINDOWS], N=4096)


def window_colour(window: int) -> str:
    """The colour of an initial window, in segments."""
    return str(to_hex(WINDOW_COLOURS(window_shade(window))))


# Marks -------------------------------------------------------------------------------

# A 95 % interval; published values, white inside, to show on a bar and next to it; and what is
# neither measured as a bar is nor published.
INTERVAL = {"color": INK, "linewidth": 1.2, "marker": "_", "markersize": 5}
_MARKS: list[dict[str, Any]] = [{
    "linestyle": "none", "marker": marker, "markersize": size, "markerfacecolor": inside,
    "markeredgecolor": edge, "markeredgewidth": width, "clip_on": False, "zorder": 5}
    for marker, size, inside, edge, width in (("D", 4.4, "white", INK, 1.2),
                                              ("^", 5.6, INK, "white", 0.6))]
PUBLISHED, FURTHER = _MARKS


def whisker(axes: Axes, place: float, ends: Ends | None) -> None:
    """A 95 % interval, where it is wide; an arrow where it continues below the axis."""
    if ends is None or not is_wide(ends):
        return
    least = axes.get_ylim()[0]
    low, high = ends
    axes.plot([place, place], [max(low, least), high], **INTERVAL)
    if low < least:
        axes.plot([place], [least], color=INK, marker="v", markersize=4, clip_on=False)


def interval_handle(label: str = "95 % interval") -> Artist:
    """The sign of an interval in a legend, as upright as on the axes."""
    upright = Path([(0, -1), (0, 1), (-0.4, -1), (0.4, -1), (-0.4, 1), (0.4, 1)], [1, 2] * 3)
    return Line2D([], [], color=INK, linestyle="none", marker=upright, markersize=11,
                  markeredgewidth=1.2, label=label)


def table(axes: Axes, rows: Sequence[tuple[str, Sequence[str], str]],
          lower_inches: float = 0.0) -> None:
    """Numbers below the ticks along x, at 0, 1, …: of each row its head, cells, and colour.

    lower_inches: the height of further lines of the ticks' labels.
    """
    for row, (head, cells, colour) in enumerate(rows):
        down = -TABLE_INCHES - lower_inches - ROW_INCHES * row
        write(axes, axes.get_xlim()[0], down, f"{head} ", colour=FAINT, align="right")
        for place, text in enumerate(cells):
            write(axes, place, down, text, colour=colour)
