"""Shares over two quantities, as colours on logarithmic axes; lines of equal product over them."""

from __future__ import annotations

import math

import numpy
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from drawing import style
from lab.core.findings.charts import GridChart

BODY_INCHES, LEFT_INCHES, LOW_INCHES = 5.6, 0.95, 0.55
AXES_INCHES = (7.0, 4.85)  # width and height
SHADES_INCHES = 0.3  # width of the scale of colours
DECADES = 5  # that the scale of colours spans
LABEL_AT = 0.14  # of a line's visible length, from its upper end


def draw(chart: GridChart) -> Figure:
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
    """Where x·y is constant, as far as it is on the grid, with its label along it."""
    left = max(chart.x[0], product / chart.y[-1])
    right = min(chart.x[-1], product / chart.y[0])
    if left >= right:
        return
    axes.plot([left, right], [product / left, product / right], color="white", linewidth=0.8,
              linestyle="--")
    place = left * (right / left) ** LABEL_AT
    across, up = (AXES_INCHES[number] / math.log10(values[-1] / values[0])
                  for number, values in enumerate((chart.x, chart.y)))
    axes.text(place, product / place, style.literal(label), color="white", fontsize=style.SMALL,
              rotation=-math.degrees(math.atan2(up, across)), rotation_mode="anchor",
              ha="left", va="bottom", clip_on=True)
