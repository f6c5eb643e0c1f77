"""Figures of single cells and of packets: everything written, and nothing on another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from matplotlib.colors import to_rgba

from firstflight.findings import drawing
from firstflight.findings.charts import Mark, Square, SquareMap
from firstflight.findings.drawing import squares, style
from tests.unit.drawing import samples

def texts(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.texts]


@pytest.mark.parametrize(("count", "wide"), [(5, 2), (1, 6)])
def test_maps_fit_whatever_their_size(count: int, wide: int) -> None:
    drawn = drawing.figure_of(samples.square_chart(count=count, wide=wide))
    samples.check_fits(drawn)
    assert len(drawn.axes) == count


def test_the_papers_buckets_of_products_do_not_touch_beside_long_causes() -> None:
    columns = ("1000", "5000", "10000", "50000", "100000", ">100000")
    chart = replace(samples.published_chart(), maps=(SquareMap("by product", columns, (
        (Square(10.0),) * 6,) * 3),), rows=("the paper", "2  the body after the back-end's time",
                                            "1  one write"))
    samples.check_fits(drawing.figure_of(chart))


@pytest.mark.parametrize("wide", [2, 3])
def test_a_long_unit_stands_in_a_square_only_where_it_has_room(wide: int) -> None:
    """Else the numbers of neighbours would touch; the foot has the unit anyway."""
    rows = ((Square(12345.0, 33.3),) * 2 * wide,) * 2
    chart = samples.square_chart(unit="kbit/s", maps=(
        SquareMap("map", ("20", "5000") * wide, rows),))
    drawn = drawing.figure_of(chart)
    samples.check_fits(drawn)
    (axes,) = drawn.axes
    place = axes.get_window_extent()
    room = place.width / (2 * wide)
    assert all(text.get_window_extent().width < room for text in axes.texts)
    assert ("kbit/s" in axes.texts[0].get_text()) == (wide < 3)


def test_squares_have_colour_and_number() -> None:
    drawn = drawing.figure_of(samples.square_chart())
    (axes,) = drawn.axes
    assert texts(axes) == ["120 ms", "33 %", "–", "(−3.2 ms)", "−0.4 %", "3 excluded", "0.0 ms",
                           "0.0 %"]
    saved, nothing, lost, same = (patch.get_facecolor()[:3] for patch in axes.patches)
    assert saved[2] > saved[0] and lost[0] >= lost[2] and min(same) > 0.99 and len(set(nothing)) == 1
    assert samples.tick_labels(axes.xaxis) == ["20", "5000"]


@pytest.mark.parametrize(("whole", "numbers"), [(True, ["1", "2", "–", "9"]),
                                                 (False, ["1.0", "2.0", "–", "9.0"])])
def test_levels_are_numbers_the_darker_the_more(whole: bool, numbers: list[str]) -> None:
    drawn = drawing.figure_of(samples.level_chart(whole=whole))
    samples.check_fits(drawn)
    (axes,) = drawn.axes
    assert texts(axes) == numbers
    assert [text.get_color() for text in axes.texts] == [style.INK] * 3 + ["#FFFFFF"]
    least, more, unknown, most = (patch.get_facecolor() for patch in axes.patches)
    assert sum(least) > sum(more) > sum(most) and unknown == to_rgba(squares.NOTHING)
    assert samples.tick_labels(axes.xaxis) == ["3", "10"]


@pytest.mark.parametrize(("count", "windows"), [(1, 1), (10, 6)])
def test_groups_fit(count: int, windows: int) -> None:
    samples.check_fits(drawing.figure_of(samples.group_chart(count=count, windows=windows)))


def test_each_bar_is_written_below_its_group() -> None:
    (axes,) = drawing.figure_of(samples.group_chart()).axes
    assert {"IW 3 ", "1000", "IW 10 ", "(10.5 %)", "RTT (ms)"} <= {*texts(axes)}
    assert [patch.get_height() for patch in axes.patches] == [1000, 1000, 999, 999]


def test_two_windows_stand_beside_each_other() -> None:
    drawn = drawing.figure_of(samples.packets_chart())
    left, right = drawn.axes
    assert "IW3: all acknowledged at 90.0 ms" in texts(left) and "IW10" in texts(right)
    assert left.get_xlim() == right.get_xlim() and left.get_ylim() == right.get_ylim()
    (legend,) = drawn.legends
    assert samples.said(legend) == ["data sent", "data sent, then lost", "data retransmitted",
                                    "acknowledged", "end of the receive window",
                                    "all acknowledged"]
    assert [len(lines.get_segments()) for lines in left.collections] == [1, 1, 1]


@pytest.mark.parametrize(("ticket_bytes", "pointed"), [(40, [4349]), (400, [])])
def test_a_triangle_points_at_what_is_too_low_to_be_seen(ticket_bytes: int, pointed: list[int]
                                                         ) -> None:
    """Two segments of data are low as well, but lie on each other."""
    chart = samples.packets_chart()
    marks = (Mark("data", 60, 1449, 2897), Mark("data", 60, 2897, 4345),
             Mark("ticket", 60, 4349, 4349 + ticket_bytes))
    drawn = drawing.figure_of(replace(chart, timelines=tuple(
        replace(line, marks=marks, to_bytes=5000) for line in chart.timelines)))
    for axes in drawn.axes:
        pointers = [line for line in axes.lines if line.get_marker() == ">"]
        assert [1000 * place for line in pointers for place in line.get_ydata()] == pointed
        assert all(line.get_color() == style.GREEN for line in pointers)
