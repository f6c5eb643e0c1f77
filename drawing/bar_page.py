"""Several charts of bars under each other, like the paper's page with its Figure 5."""

from __future__ import annotations

from matplotlib.figure import Figure

from drawing import bars, style
from lab.core.findings.charts import BarPage

AXES_INCHES, ROW_INCHES, BELOW_INCHES = 2.15, 2.95, 0.52


def draw(chart: BarPage) -> Figure:
    """Each chart with its shares above and its axis below; values stand in their own figures."""
    frame = style.frame(chart, ROW_INCHES * len(chart.charts), bars.legend_of(chart.charts))
    for row, each in enumerate(reversed(chart.charts)):
        left = bars.draw_pair(frame, each, ROW_INCHES * row + BELOW_INCHES, AXES_INCHES)
        left.set_xlabel(style.literal(each.axis))
    return frame.figure
