"""Charts of the share of responses that take longer than a time (complementary CDF), by window.

Both axes are logarithmic, so that the slowest responses, which a mean hides, have as much room as
all others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstflight.findings.charts import Chart, Line, LineChart, Plot
from firstflight.workloads.fetch.figures.bar_figure import BarFigure, Sample

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

LEAST_PERCENT = 0.1  # the end of the axis: the slowest response in a thousand


def chart(bar_figure: BarFigure, bars: Chart) -> LineChart:
    """A chart with a curve for each sample. bars: the chart of the figure's bars."""
    lines = []
    least, most = [], []  # the ends of each curve on the axis
    for look, sample in enumerate(bar_figure.samples):
        values, percent = curve(sample)
        lines.append(Line(sample.name, tuple(values.tolist()), tuple(percent.tolist()), look=look,
                          style="curve", window=sample.initcwnd))
        least.append(float(values[0]))
        most.append(float(values[percent > LEAST_PERCENT].max(initial=values[0])))

    plot = Plot(bar_figure.metric.axis, "responses that take longer (%)", tuple(lines),
                x_scale="log", y_scale="log", x_ends=(min(least) * 0.9, max(most) * 1.1),
                y_ends=(LEAST_PERCENT, 100))
    compared = [f"Curves: {bars.compared}"] if bars.compared else []
    counts = ", ".join(f"n = {len(sample.values)} with {sample.name}"
                       for sample in bar_figure.samples)
    return LineChart(
        f"{bar_figure.figure.title}: how many take longer", (*bars.context, *compared),
        f"{counts}; weighted by what each stands for", columns=((plot,),), plot_inches=4.4,
        legend=True)


def curve(sample: Sample) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64]]:
    """The sorted values, and for each the percentage of all weight that larger values have."""
    import numpy
    order = numpy.argsort(sample.values, kind="stable")
    values = numpy.asarray(sample.values)[order]
    weights = numpy.asarray(sample.weights)[order]
    above = numpy.maximum(weights.sum() - numpy.cumsum(weights), 0.0)
    return values, above / weights.sum() * 100
