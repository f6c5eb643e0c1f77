"""How many responses take longer than a time: the complementary distribution of each window.

Both axes are logarithmic, so that the
slowest responses, which a mean hides, have the room of the others.
"""

from __future__ import annotations

from dataclasses import replace

import numpy
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from findings.charts import Sample, SampleChart
from findings.drawing import style

COLOURS = (style.INK, style.BLUE, style.VERMILION, style.GREEN, style.PINK, style.SKY)
STYLES = ("-", "-", "--", "--", ":", ":")
AXES_INCHES, BELOW_INCHES, LEFT_INCHES, RIGHT_INCHES = 3.9, 0.55, 0.85, 0.3
LEAST_PERCENT = 0.1  # the end of the axis: the slowest response in a thousand


def draw(chart: SampleChart) -> Figure:
    """One curve for each sample."""
    counts = ", ".join(f"n = {len(sample.values)} with {sample.name}" for sample in chart.samples)
    frame = style.frame(
        replace(chart, title=f"{chart.title}: how many take longer",
                foot=f"{counts}; weighted by what each stands for"),
        AXES_INCHES + BELOW_INCHES + 0.2,
        [_handle(place, sample) for place, sample in enumerate(chart.samples)])
    axes = frame.axes(LEFT_INCHES, BELOW_INCHES,
                      style.WIDTH_INCHES - LEFT_INCHES - RIGHT_INCHES, AXES_INCHES)
    curves = [curve(sample) for sample in chart.samples]
    for place, (values, percent) in enumerate(curves):
        axes.step(values, percent, where="post", **_look(place))
    axes.set_xscale("log")
    axes.set_yscale("log")
    ends = (min(float(values[0]) for values, _ in curves) * 0.9,
            max(float(values[percent > LEAST_PERCENT].max(initial=values[0]))
                for values, percent in curves) * 1.1)
    axes.set_xlim(*ends)
    axes.set_ylim(LEAST_PERCENT, 100)
    style.fix_ticks(axes.xaxis, [factor * decade for decade in style.decades()
                                 for factor in (1, 2, 5)], ends)
    style.fix_ticks(axes.yaxis, [0.1, 1, 10, 50, 100], (LEAST_PERCENT, 100))
    axes.grid()
    axes.set_xlabel(style.literal(chart.measured))
    style.name_y(axes, "responses that take longer (%)", 0.55)
    return frame.figure


def curve(sample: Sample) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64]]:
    """The values in order, and what part of the weight lies above each, in percent."""
    order = numpy.argsort(sample.values, kind="stable")
    values, weights = numpy.asarray(sample.values)[order], numpy.asarray(sample.weights)[order]
    above = numpy.maximum(weights.sum() - numpy.cumsum(weights), 0.0)
    return values, above / weights.sum() * 100


def _look(place: int) -> dict[str, object]:
    return {"color": COLOURS[place % len(COLOURS)], "linestyle": STYLES[place % len(STYLES)],
            "linewidth": 1.6}


def _handle(place: int, sample: Sample) -> Artist:
    return Line2D([], [], label=sample.name, **_look(place))
