"""Bars of times: as long as the times, with what the larger windows save."""

from __future__ import annotations

from typing import Any

import pytest

from base.stats import Estimate
from findings.charts import TimeBar, TimeChart
from findings.drawing import bars, style
from tests.unit.drawing import samples


@pytest.fixture(scope="module")
def drawn() -> Any:
    return bars.draw(samples.time_chart())


def test_times_and_published_times_are_measured_from_zero(drawn: Any) -> None:
    (axes,) = drawn.axes
    assert [bar.get_height() for bar in axes.patches] == [805.0, 615.0, 566.0]
    assert axes.get_ylim() == (0, pytest.approx(1.12 * 808))
    (markers,) = [line for line in axes.lines if line.get_marker() == "o"]
    assert list(markers.get_ydata()) == [808, 665, 642]
    (interval,) = [line for line in axes.lines if line.get_marker() == "_"]
    assert list(interval.get_xdata()) == [1, 1] and list(interval.get_ydata()) == [600, 640]


def test_below_stand_times_what_is_saved_and_counts(drawn: Any) -> None:
    (axes,) = drawn.axes
    assert samples.said(axes) == [
        "805 ms", "n = 2", "615 ms", "23.6 %", "n = 2", "1 excluded", "566 ms", "(29.8 %)",
        "n = 2", "Initial window"]
    assert [text.get_color() for text in axes.texts if "excluded" in text.get_text()] == [
        style.ALARM]
    assert samples.said(drawn.legends[0]) == [
        "measured here", "%: saved of the time with 3 segments", "(): the interval holds zero",
        "published by them", "95 % interval of what is saved"]


def test_without_published_times_the_legend_names_none() -> None:
    chart = TimeChart("Alone", (), baseline="3", bars=(TimeBar("3", Estimate(532.0), None),
                                         TimeBar("10", Estimate(368.0), 30.8)))
    drawn = bars.draw(chart)
    assert samples.said(drawn.legends[0]) == [
        "measured here", "%: saved of the time with 3 segments"] and not drawn.axes[0].lines
