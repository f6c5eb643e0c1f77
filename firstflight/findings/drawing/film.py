"""Draws the film strips of a page: its pictures at some moments, with windows side by side."""

from __future__ import annotations

import io
import struct
import zlib
from typing import TYPE_CHECKING, Any

from matplotlib import image
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from firstflight.base.words import format_brief
from firstflight.findings.charts import FilmChart, Shot
from firstflight.findings.drawing import style

if TYPE_CHECKING:
    from numpy.typing import NDArray

GAP_INCHES = 0.1  # between two columns
LABEL_INCHES, TITLE_INCHES = 0.24, 0.22  # below a picture, and above the first picture of a column
SHAPE = 9 / 16  # the height of a picture by its width


def draw_film(chart: FilmChart) -> Figure:
    """Draw a column for each window, with its pictures and their times under each other."""
    columns = len(chart.strips)
    rows = max(len(strip.shots) for strip in chart.strips)
    width = (style.WIDTH_INCHES - 2 * style.SIDE_INCHES - GAP_INCHES * (columns - 1)) / columns
    width = min(width, style.WIDTH_INCHES / 2)
    height = width * SHAPE
    body_inches = TITLE_INCHES + rows * (height + LABEL_INCHES)
    frame = style.frame(chart, body_inches)

    for column, strip in enumerate(chart.strips):
        left = style.SIDE_INCHES + column * (width + GAP_INCHES)
        for row, shot in enumerate(strip.shots):
            low = body_inches - TITLE_INCHES - (row + 1) * height - row * LABEL_INCHES
            axes = frame.axes(left, low, width, height)
            _draw_shot(axes, shot)
            if row == 0:
                style.write(axes, 0.5, 0.1, strip.title, size=style.MEDIUM)
    return frame.figure


def _draw_shot(axes: Axes, shot: Shot) -> None:
    """Draw a picture in a frame, with its moment below it."""
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_visible(True)
        side.set_color(style.FAINT)

    pixels = decoded(shot.png)
    if pixels is None:
        axes.text(0.5, 0.5, "no picture", ha="center", va="center", color=style.FAINT,
                  fontsize=style.SMALL)
    else:
        axes.imshow(pixels, extent=(0, 1, 0, 1), aspect="auto", interpolation="antialiased",
                    cmap="gray", vmin=0, vmax=1)
    style.write(axes, 0.5, -0.11, f"{shot.moment}: {format_brief(shot.at_ms)} ms")


def decoded(png: bytes) -> NDArray[Any] | None:
    """The pixels of a PNG that a guest took; None where it is no valid PNG."""
    try:
        return image.imread(io.BytesIO(png), format="png") if png else None
    except (OSError, ValueError, SyntaxError, EOFError, OverflowError, struct.error, zlib.error):
        return None
