"""The complementary distribution: what part of the weight takes longer, by window."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy
import pytest
from matplotlib.text import Text

from base.errors import FirstFlightError
from findings import drawing
from findings.charts import Sample
from findings.drawing import ccdf
from findings.findings import Finding
from tests.unit.drawing import samples
from tests.unit.render.reports import report

SLOW = Sample("IW 3", [400.0, 100.0, 200.0], [1.0, 2.0, 1.0])
FAST = Sample("IW 10", numpy.array([90.0, 150.0, 300.0]), numpy.array([2.0, 1.0, 1.0]))
FINDING = Finding("tail", "Latency", chart=samples.bar_chart(), samples=(SLOW, FAST),
                  measured="Latency (ms)", also=("ccdf",))


@pytest.fixture(scope="module")
def drawn() -> Any:
    return dict(drawing.figures(report(findings=(FINDING,))))["tail_ccdf"]


@pytest.mark.parametrize("name", drawing.DISTRIBUTIONS)
def test_nothing_is_clipped_or_on_another(name: str) -> None:
    """Of any drawing of a distribution."""
    finding = replace(FINDING, also=(name,))
    samples.check_fits(dict(drawing.figures(report(findings=(finding,))))[f"tail_{name}"])


def test_a_curve_is_the_weight_above_each_value() -> None:
    values, percent = ccdf.curve(SLOW)
    assert list(values) == [100, 200, 400]
    assert list(percent) == [50, 25, 0]


def test_its_face_speaks_of_curves() -> None:
    finding = replace(FINDING, chart=replace(samples.bar_chart(), compared="two weeks"))
    figure = dict(drawing.figures(report(findings=(finding,))))["tail_ccdf"]
    words = " ".join(text.get_text() for text in figure.findobj(Text))
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


def test_it_is_found_by_its_name_and_stands_beside_the_findings_own_figure() -> None:
    with drawing.style.settings():
        names = [name for name, _ in drawing.figures(report(findings=(FINDING,), timelines=()))]
    assert names == ["tail", "tail_ccdf"]


def test_a_finding_without_samples_is_named() -> None:
    with pytest.raises(FirstFlightError, match="bare has no samples"):
        drawing.images(report(findings=(Finding("bare", "t", also=("ccdf",)),)))
