"""The same bars from several sides, and a number reached in steps: told apart without colour."""

from __future__ import annotations

from dataclasses import replace

import pytest

from findings import drawing
from findings.drawing import groups
from tests.unit.drawing import samples

def test_points_of_each_side_differ_in_more_than_colour() -> None:
    drawn = drawing.figure_of(samples.side_chart())
    assert samples.said(drawn.legends[0]) == [*samples.SIDES, "below the axis"]
    assert len({line.get_marker() for line in drawn.legends[0].get_lines()}) == 4


def test_a_point_is_as_high_as_its_value_and_a_table_has_it() -> None:
    drawn = drawing.figure_of(samples.side_chart())
    percent, milliseconds = drawn.axes
    assert [line.get_ydata()[0] for line in percent.lines] == [
        0.0, -0.4, 6.8, 2975.0, 33.0, 8.9, 0.0, 0.0]
    assert "–" in samples.said(percent) and "−0.4" in samples.said(percent)
    assert milliseconds.get_yscale() == "log" and percent.get_yscale() == "linear"
    arrows = [line for line in milliseconds.lines if line.get_marker() == "v"]
    assert [line.get_ydata()[0] for line in arrows] == 4 * [groups.LEAST_SIDE]


def test_a_side_without_a_value_has_no_legend_and_no_row() -> None:
    chart = samples.side_chart()
    nothing = replace(chart, plots=tuple(replace(plot, groups=tuple(
        (label, (None, *values[1:])) for label, values in plot.groups)) for plot in chart.plots))
    drawn = drawing.figure_of(nothing)
    assert samples.said(drawn.legends[0]) == [*samples.SIDES[1:], "below the axis"]
    assert samples.SIDES[0] not in samples.said(drawn.axes[0])


def test_a_step_goes_from_the_number_before_it_to_its_own() -> None:
    drawn = drawing.figure_of(samples.step_chart())
    (axes,) = drawn.axes
    assert [(bar.get_x(), bar.get_width()) for bar in axes.patches] == [
        (0, 10), (10, 4), (14, -2), (12, 0), (12, 12)]
    assert [text.get_text() for text in axes.texts] == [
        "10", "14 (+4)", "12 (−2)", "12 (+0)", "24 (+12)", "all 28"]
    assert samples.said(drawn.legends[0]) == [  # the calibrated step adds nothing
        "to begin with", "seen in their code", "inferred: it fits, and was not seen",
        "a step back, however it is known"]
    assert len({(bar.get_facecolor(), bar.get_hatch()) for bar in axes.patches}) == 5


def test_what_all_would_be_is_a_line() -> None:
    (axes,) = drawing.figure_of(samples.step_chart()).axes
    assert any(list(line.get_xdata()) == [28, 28] for line in axes.lines)
    assert axes.get_xlim()[1] == pytest.approx(1.25 * 28)
