"""The complementary distribution: what part of the weight takes longer, by window."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy
import pytest
from matplotlib.text import Text

from firstflight.findings import drawing
from firstflight.study.fetches.figures import bars, ccdf
from firstflight.study.fetches.figures.bar_figure import BarFigure, Sample
from firstflight.study.fetches.scenario.scenario import Figure
from tests.unit.drawing import samples

SLOW = Sample(3, [400.0, 100.0, 200.0], [1.0, 2.0, 1.0])
FAST = Sample(10, numpy.array([90.0, 150.0, 300.0]), numpy.array([2.0, 1.0, 1.0]))
PANEL = BarFigure(Figure(name="tail", title="Latency", kind="improvement", sweep="grid", by="rtt_ms",
                     baseline_initcwnd=3, experiment_initcwnd=10, metric="latency_ms"),
              (), "curl", "cubic", samples=(SLOW, FAST))


@pytest.fixture(scope="module")
def drawn() -> Any:
    with drawing.style.settings():
        yield drawing.figure_of(ccdf.chart(PANEL, samples.bar_chart()))


@pytest.mark.parametrize("name", bars.ALSO)
def test_nothing_is_clipped_or_on_another(name: str) -> None:
    """Of any further chart of what is behind the bars."""
    with drawing.style.settings():
        samples.check_fits(drawing.figure_of(bars.ALSO[name](PANEL, samples.bar_chart())))


def test_a_curve_is_the_weight_above_each_value() -> None:
    values, percent = ccdf.curve(SLOW)
    assert list(values) == [100, 200, 400]
    assert list(percent) == [50, 25, 0]


def test_its_face_speaks_of_curves() -> None:
    chart = ccdf.chart(PANEL, replace(samples.bar_chart(), compared="two weeks"))
    words = " ".join(text.get_text() for text in drawing.figure_of(chart).findobj(Text))
    assert "Curves: two weeks" in words and "Triangles" not in words


def test_both_windows_stand_on_logarithmic_axes(drawn: Any) -> None:
    (axes,) = drawn.axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert [list(line.get_xdata()) for line in axes.lines] == [[100, 200, 400], [90, 150, 300]]
    low, high = axes.get_xlim()
    assert low < 90 and 200 < high < 400  # nothing stands above the last step
    assert axes.get_ylim() == (ccdf.LEAST_PERCENT, 100)
    assert axes.get_xlabel() == "Latency (ms)"
    (legend,) = drawn.legends
    assert [text.get_text() for text in legend.get_texts()] == ["IW 3", "IW 10"]
