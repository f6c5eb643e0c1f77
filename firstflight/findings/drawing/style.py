"""What all figures share: colours, sizes, the text around the axes, ticks, legends, files.

To be fast, figures are drawn on Agg without pyplot, with margins in inches and plain ticks. Every
text passes through `literal`, since matplotlib reads what stands between two dollars as a formula.
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
# All figures have one width, so that words have one size on a page. A telephone shows a figure at
# 390 pixels, and a broader one would have words there that are too small to read.
WIDTH_INCHES = 5.7
SIDE_INCHES = 0.12  # at the left and right of text that goes across the figure
X_NAME_INCHES = 0.29  # from the axes down to the name of the axis along x
SMALL, MEDIUM, LARGE = 8.0, 9.0, 11.0  # sizes of text, in points
SUBTITLE_LINES = 2  # at most, below a title
TICK_GAP_INCHES = 0.05  # at least, between the labels of two ticks
TABLE_INCHES = 0.31  # from the axes down to the first row of a table
ROW_INCHES = 0.16  # from one row of a table to the next
NO_BREAK = "\N{NO-BREAK SPACE}"
# Letters that are narrower and broader than the average one.
NARROW, BROAD = " ijltfr.,:;'|()·", "mwMWGOQ%→"

INK, FAINT, ALARM, GROUND = "#222222", "#666666", "#B00020", "#DDDDDD"
# Colours of Okabe and Ito (2008), which differ in every kind of colour vision, and in grey.
BLUE, ORANGE, VERMILION, GREEN, PINK, SKY = (
    "#0072B2", "#E69F00", "#D55E00", "#009E73", "#CC79A7", "#56B4E9")
# Two of them, darker, for words and thin lines on white.
BLUE_TEXT, ORANGE_TEXT = "#005A8E", "#8F6200"

# The colours of initial windows, in segments. A window has one colour in every figure. A larger
# window is darker, so that the order of windows can be seen in grey, too. A window between two of
# the list has a colour between the two colours.
WINDOWS = ((1, "#BBBBBB"), (3, SKY), (6, "#1E8C7A"), (10, BLUE), (16, "#882255"), (24, "#522C96"),
           (32, "#204C1C"), (48, "#1A1466"), (64, "#331500"), (100, "#000000"))

# The groups of settings that are matplotlib's defaults, whatever the user's matplotlibrc has.
GROUPS = ("agg", "axes", "figure", "font", "grid", "hatch", "image", "legend", "lines",
          "markers", "patch", "path", "pdf", "savefig", "svg", "text", "xtick", "ytick")
# The settings that differ from matplotlib's defaults.
OWN = {
    "axes.axisbelow": True, "axes.labelcolor": INK, "axes.labelsize": MEDIUM,
    "axes.titlecolor": INK, "axes.titlelocation": "left", "axes.titlepad": 4.0,
    "axes.titlesize": MEDIUM, "grid.color": GROUND, "grid.linewidth": 0.6,
    "hatch.linewidth": 0.6, "legend.columnspacing": 1.6, "legend.edgecolor": "none",
    "legend.fontsize": SMALL,
    "legend.framealpha": 0.85, "legend.handletextpad": 0.5, "svg.hashsalt": "first-flight",
    "text.color": INK, "xtick.color": INK, "xtick.labelsize": SMALL, "xtick.major.size": 3.0,
    "ytick.color": INK, "ytick.labelsize": SMALL, "ytick.major.size": 3.0}
# No file has a date, which would make two drawings of the same data differ.
METADATA: dict[str, dict[str, None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
# From 0 to 9. Files are at most a tenth larger than with the default, 6, and take half the time.
PNG_COMPRESSION = 4


def settings() -> AbstractContextManager[None]:
    """A context in which figures are drawn and written: it has the project's settings."""
    defaults = {key: value for key, value in matplotlib.rcParamsDefault.items()
                if key.partition(".")[0] in GROUPS}
    context: AbstractContextManager[None] = matplotlib.rc_context({**defaults, **OWN})
    return context


def image(drawn: Figure, form: str) -> bytes:
    """The content of the figure's file. The same figure gives the same bytes.

    form: one of base.argument_types.PICTURES.
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
    """A figure with its title, legend and notes, around an empty body, where axes go."""

    figure: Figure
    bottom: float  # the inches below the body

    def axes(self, left: float, low: float, width: float, height: float) -> Axes:
        """Add axes to the body. All lengths are in inches, from the body's lower left corner."""
        figure_width, figure_height = self.figure.get_size_inches()
        axes = self.figure.add_axes((left / figure_width, (self.bottom + low) / figure_height,
                                     width / figure_width, height / figure_height))
        axes.xaxis.set_label_coords(0.5, -X_NAME_INCHES / height)
        return axes


def frame(chart: Chart, body_inches: float, handles: Sequence[Artist] = ()) -> FigureFrame:
    """A figure with title, context and alarm above an empty body; legend and notes are below it.

    handles: the entries of the legend.
    """
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
    down = 0.08  # inches from the upper edge to the upper end of a line
    for text, size, colour in above:
        middle = down + _line_inches(size) / 2
        weight = "bold" if size == LARGE else "normal"
        drawn.text(0.5, 1 - middle / height, literal(text), fontsize=size, color=colour,
                   weight=weight, ha="center", va="center")
        down += _line_inches(size)
    # The lines below stand 0.17 inches apart, from the lower edge up.
    for number, text in enumerate(reversed(below)):
        drawn.text(0.5, (0.15 + 0.17 * number) / height, literal(text), fontsize=SMALL,
                   color=FAINT, ha="center", va="center")
    if handles:
        legend(drawn, handles, loc="lower center", ncol=columns, frameon=False,
               bbox_to_anchor=(0.5, legend_low / height), borderaxespad=0.2, borderpad=0.2)
    return FigureFrame(drawn, bottom)


def subtitle(context: Sequence[str]) -> list[str]:
    """A chart's context in at most SUBTITLE_LINES lines.

    Each text begins on a new line. Where that takes too many lines, all texts become one, separated
    by "; ". Where that is still too long, it ends with an ellipsis: the page has the whole context.
    """
    lines = [line for text in context for line in fitted(text, MEDIUM)]
    if len(lines) > SUBTITLE_LINES:
        lines = fitted("; ".join(context), MEDIUM)
    if len(lines) > SUBTITLE_LINES:
        *shown, last = lines[:SUBTITLE_LINES]
        lines = [*shown, f"{last.rstrip(' ,;')} …"]
    return lines


def legend(owner: Axes | Figure, handles: Sequence[Artist], **look: object) -> None:
    """Draw a legend of the handles with their labels.

    matplotlib would leave out a handle whose label begins with an underscore. So the labels are set
    after it has drawn the legend.
    """
    drawn = owner.legend(handles, ["label"] * len(handles), **look)
    for text, handle in zip(drawn.get_texts(), handles):
        text.set_text(literal(handle.get_label()))


def _line_inches(size: float) -> float:
    """The height of a line of text above the body. size: of the text, in points."""
    return 0.24 if size == LARGE else 0.19


def fitted(text: str, size: float, inches: float = WIDTH_INCHES - 2 * SIDE_INCHES,
           bold: bool = False) -> list[str]:
    """The text in lines of at most this width, estimated from the mean width of its letters.

    The lines have similar lengths, so that the last one is no single word. A number stays with its
    unit, unless both together are too long for a line. size: of the text, in points.
    """
    mean_width = sum(map(_width, text)) / len(text) if text else 1.0
    if text and bold:
        mean_width *= 1.13
    most = max(8, int(72 * inches / (size * mean_width)))  # letters of a line; 72 points an inch

    unbroken = re.sub(r"(?<=\d) (?=[a-zA-Z%])", NO_BREAK, text)
    longest = max(map(len, unbroken.split(" ")))
    if longest > most:
        unbroken = text
    lines = _lines(unbroken, most)
    if len(lines) < 2:
        return lines

    # The shortest lines that are no more than these.
    for letters in range(max(len(text) // len(lines), longest), most):
        shorter = _lines(unbroken, letters)
        if len(shorter) == len(lines):
            return shorter
    return lines


def _lines(text: str, letters: int) -> list[str]:
    """Break a text into lines of at most so many letters. No line ends with a separating dot."""
    return [line.replace(NO_BREAK, " ").removesuffix(" ·")
            for line in textwrap.wrap(text, letters, break_on_hyphens=False)]


def legend_columns(lengths: Sequence[int]) -> int:
    """The largest number of columns in which labels with so many letters fit.

    matplotlib fills the columns downwards. The first ones have one label more, where labels do not
    divide evenly.
    """
    for columns in range(len(lengths), 1, -1):
        per_column, longer_columns = divmod(len(lengths), columns)
        starts = [column * per_column + min(column, longer_columns)
                  for column in range(columns + 1)]
        widest = [max(lengths[start:end]) for start, end in zip(starts, starts[1:])]
        # Inches of a handle with the gap beside it, and of an average letter.
        if 0.46 * columns + 0.06 * sum(widest) <= WIDTH_INCHES - 2 * SIDE_INCHES:
            return columns
    return 1


def literal(text: str) -> str:
    """The text with dollars escaped, so that matplotlib reads no formula.

    Invisible characters are removed, except the ends of lines. An SVG with a control character is
    invalid.
    """
    return "\n".join(map(visible_line, text.split("\n"))).replace("$", r"\$")


# Axes --------------------------------------------------------------------------------

def name_y(axes: Axes, name: str, inches: float, size: float = MEDIUM, colour: str = INK,
           right: bool = False) -> None:
    """Name the y axis at this distance from it, so that matplotlib need not search for a place.

    right: whether the name stands at the right of the axes, not at the left.
    """
    axes.set_ylabel(literal(name), fontsize=size, color=colour)
    distance = inches / (axes.get_position().width * WIDTH_INCHES)  # in widths of the axes
    axes.yaxis.set_label_coords(1 + distance if right else -distance, 0.5)


def write(axes: Axes, place: float, inches: float, text: str, colour: str = INK,
          align: str = "center", size: float = SMALL) -> None:
    """Write a text above the axes, or below them where `inches` is negative.

    place: on the axis along x. inches: from the upper or lower edge of the axes to the text.
    """
    if not text:
        return
    axes_inches = axes.get_position().height * axes.figure.get_size_inches()[1]
    # From 0, the lower edge of the axes, to 1, the upper one.
    height = inches / axes_inches
    if inches > 0:
        height += 1
    axes.text(place, height, literal(text), color=colour, fontsize=size, ha=align, va="center",
              transform=axes.get_xaxis_transform())


def name_ticks(axes: Axes, ticks: Sequence[tuple[float, str]]) -> None:
    """Set the ticks along x. ticks: the place and the label of each."""
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks([place for place, _ in ticks], [literal(label) for _, label in ticks])


def without_crowding(axes: Axes, ticks: Sequence[tuple[float, str]]
                     ) -> list[tuple[float, str]]:
    """The ticks along x, without the labels that would touch the next label that stays.

    The last label always stays, since it ends the axis. A tick without a label keeps its mark.
    """
    axes_inches = axes.get_position().width * WIDTH_INCHES
    low, high = axes.transData.transform([(end, 0.0) for end in axes.get_xlim()])[:, 0]

    next_begins = math.inf  # where the next label at the right begins, in inches
    shown = []
    for place, label in sorted(ticks, reverse=True):
        middle = (axes.transData.transform((place, 0.0))[0] - low) / (high - low) * axes_inches
        half = max(map(letters_inches, label.split("\n"))) / 2
        is_free = middle + half + TICK_GAP_INCHES <= next_begins
        if is_free:
            next_begins = middle - half
        shown.append((place, label if is_free else ""))
    return shown[::-1]


def letters_inches(text: str, size: float = SMALL) -> float:
    """The width of a text, in inches, as the sum of the estimated widths of its letters."""
    return size / 72 * sum(_width(letter) for letter in text)


def _width(letter: str) -> float:
    """The estimated width of a letter, as a part of the size of the font."""
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
    """Let matplotlib choose the ticks of a linear axis, `most` at most.

    whole: at whole numbers only.
    """
    steps = [1, 2, 3, 4, 5, 10] if whole else [1, 2, 5, 10]
    axis.set_major_locator(MaxNLocator(most, steps=steps, integer=whole))
    _label_ticks(axis)


def _label_ticks(axis: Axis) -> None:
    """Label ticks without exponents and offsets: a reader of one tick knows its value."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: tick_label(value)))


def tick_label(value: float) -> str:
    """A value with all its decimals, ten at most."""
    text = f"{value:.10f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text.replace("-", MINUS)


def tick_step(span: float) -> float:
    """The smallest step that divides the span into at most nine parts.

    It is 1, 2 or 5 times a power of ten.
    """
    steps = (factor * 10.0 ** power for power in range(-9, 17) for factor in (1, 2, 5))
    return next(step for step in steps if span / step <= 9)


def even_ticks(low: float, high: float) -> list[float]:
    """At most ten ticks between the ends, with zero if it lies between them."""
    step = tick_step(high - low)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [number * step for number in range(first, last + 1)]


def from_zero(axes: Axes, high: float) -> None:
    """Let the axis along y begin at zero, so that the lengths of bars are their values."""
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

INTERVAL = {"color": INK, "linewidth": 1.2, "marker": "_", "markersize": 5}  # of 95 %
_MARK: dict[str, Any] = {"linestyle": "none", "clip_on": False, "zorder": 5}
# A published value: a diamond, which is white inside, to be seen on a bar and next to it.
PUBLISHED = {**_MARK, "marker": "D", "markersize": 4.4, "markerfacecolor": "white",
             "markeredgecolor": INK, "markeredgewidth": 1.2}
# The value of another comparison than the bar's: a triangle.
FURTHER = {**_MARK, "marker": "^", "markersize": 5.6, "markerfacecolor": INK,
           "markeredgecolor": "white", "markeredgewidth": 0.6}


def whisker(axes: Axes, place: float, ends: Ends | None) -> None:
    """Draw a 95 % interval where it is wide, with an arrow where it continues below the axis."""
    if ends is None or not is_wide(ends):
        return
    least = axes.get_ylim()[0]
    low, high = ends
    axes.plot([place, place], [max(low, least), high], **INTERVAL)
    if low < least:
        axes.plot([place], [least], color=INK, marker="v", markersize=4, clip_on=False)


def interval_handle(label: str = "95 % interval") -> Artist:
    """The sign of an interval in a legend, upright as on the axes."""
    # Three lines, each from a point to the next: the interval, its lower end, its upper end.
    points = [(0, -1), (0, 1), (-0.4, -1), (0.4, -1), (-0.4, 1), (0.4, 1)]
    upright = Path(points, [Path.MOVETO, Path.LINETO] * 3)
    return Line2D([], [], color=INK, linestyle="none", marker=upright, markersize=11,
                  markeredgewidth=1.2, label=label)


def table(axes: Axes, rows: Sequence[tuple[str, Sequence[str], str]],
          lower_inches: float = 0.0) -> None:
    """Write rows of numbers below the ticks along x, which stand at 0, 1, …

    rows: the head, the cells and the colour of each. lower_inches: the height that the labels of
    ticks have beyond their first line.
    """
    for number, (head, cells, colour) in enumerate(rows):
        down = -TABLE_INCHES - lower_inches - ROW_INCHES * number
        write(axes, axes.get_xlim()[0], down, f"{head} ", colour=FAINT, align="right")
        for place, text in enumerate(cells):
            write(axes, place, down, text, colour=colour)
