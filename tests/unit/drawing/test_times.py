"""Bars of times: as long as the times, with what the larger windows save."""

from __future__ import annotations

from typing import Any

import pytest

from firstflight.findings import drawing
from firstflight.findings.charts import TimeChart
from firstflight.findings.drawing import style
from tests.unit.drawing import samples


@pytest.fixture(scope="module")
def drawn() -> Any:
    return drawing.figure_of(samples.time_chart())


def test_times_and_published_times_are_measured_from_zero(drawn: Any) -> None:
    (axes,) = drawn.axes
    assert [bar.get_height() for bar in axes.patches] == [805.0, 615.0, 566.0]
    assert axes.get_ylim() == (0, pytest.approx(1.12 * 808))
    markers = [line for line in axes.lines if line.get_marker() == "D"]
    assert [line.get_ydata()[0] for line in markers] == [808, 665, 642]
    (interval,) = [line for line in axes.lines if line.get_marker() == "_"]
    assert interval.get_xdata()[0] < 1 < markers[1].get_xdata()[0], "neither hides the other"
    assert list(interval.get_ydata()) == [600, 640]


def test_below_stand_times_what_is_saved_and_counts(drawn: Any) -> None:
    (axes,) = drawn.axes
    assert samples.said(axes) == [
        "ms ", "805", "615", "566", "saved ", "23.6 %", "(29.8 %)", "n ", "2", "2", "2",
        "excluded ", "1", "Initial window"]
    assert [text.get_color() for text in axes.texts if text.get_text() == "1"] == [style.ALARM]
    assert samples.said(drawn.legends[0]) == [
        "published by them", "95 % interval of what is saved"]
    assert any(text.startswith("In brackets") for text in samples.said(drawn))


def test_without_published_times_the_legend_names_none() -> None:
    chart = TimeChart("Alone", (), baseline="3", bars=(
        samples.time_bar(3, 532.0, 0.0), samples.time_bar(10, 368.0, 30.8)))
    drawn = drawing.figure_of(chart)
    assert not drawn.legends and not drawn.axes[0].lines
