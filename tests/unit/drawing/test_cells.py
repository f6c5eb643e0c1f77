"""Figures of single cells and of packets: everything written, and nothing on another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from matplotlib.colors import to_rgba

from drawing import groups, levels, maps, packets, squares, style
from lab.core.findings.charts import (GroupChart, LevelChart, Map, MapChart, Mark, PacketsChart,
                                      Square, TimeBar, Timeline)
from lab.core.stats import Estimate
from tests.unit.drawing import samples

SQUARES = ((Square(120.4, 33.3, n=2), None), (Square(-3.2, -0.4, True, 200, 3), Square(0, 0)))


def map_chart(count: int, wide: int = 1) -> MapChart:
    rows = tuple(row * wide for row in SQUARES)
    return MapChart("A title", ("context",), maps=tuple(Map(f"map {place}", rows) for place in
                                                        range(count)),
                    columns=("20", "5000") * wide, rows=("56", "100000"), x_label="RTT (ms)",
                    y_label="Bandwidth (kbit/s)")


def texts(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.texts]


@pytest.mark.parametrize(("count", "wide"), [(1, 1), (2, 1), (5, 2), (1, 6), (3, 5)])
def test_maps_fit_whatever_their_size(count: int, wide: int) -> None:
    drawn = maps.draw(map_chart(count, wide))
    samples.check_fits(drawn)
    assert len(drawn.axes) == count


@pytest.mark.parametrize("wide", range(1, 8))
def test_a_long_unit_stands_in_a_square_only_where_it_has_room(wide: int) -> None:
    """Else the numbers of neighbours would touch; the foot has the unit anyway."""
    rows = ((Square(12345.0, 33.3),) * 2 * wide,) * 2
    chart = replace(map_chart(1, wide), maps=(Map("map", rows),), unit="kbit/s")
    drawn = maps.draw(chart)
    samples.check_fits(drawn)
    (axes,) = drawn.axes
    place = axes.get_window_extent()
    room = place.width / (2 * wide)
    drawn.canvas.draw()
    assert all(text.get_window_extent().width < room for text in axes.texts)
    assert ("kbit/s" in axes.texts[0].get_text()) == (wide < 5)


def test_squares_have_colour_and_number() -> None:
    drawn = maps.draw(map_chart(1))
    (axes,) = drawn.axes
    assert texts(axes) == ["120 ms", "33 %", "–", "(−3.2 ms)", "−0.4 %", "3 left out", "0.0 ms",
                           "0.0 %"]
    saved, nothing, lost, same = (patch.get_facecolor()[:3] for patch in axes.patches)
    assert saved[2] > saved[0] and lost[0] >= lost[2] and min(same) > 0.99 and len(set(nothing)) == 1
    assert samples.tick_labels(axes.xaxis) == ["20", "5000"]


@pytest.mark.parametrize(("whole", "numbers"), [(True, ["1", "2", "–", "9"]),
                                                 (False, ["1.0", "2.0", "–", "9.0"])])
def test_levels_are_numbers_the_darker_the_more(whole: bool, numbers: list[str]) -> None:
    drawn = levels.draw(LevelChart("A title", ("context",), columns=("3", "10"),
                                   rows=("a chain", "another"), levels=((1.0, 2.0), (None, 9.0)),
                                   x_label="window", y_label="chain", whole=whole))
    samples.check_fits(drawn)
    (axes,) = drawn.axes
    assert texts(axes) == numbers
    assert [text.get_color() for text in axes.texts] == [style.INK] * 3 + ["#FFFFFF"]
    least, more, unknown, most = (patch.get_facecolor() for patch in axes.patches)
    assert sum(least) > sum(more) > sum(most) and unknown == to_rgba(squares.NOTHING)
    assert samples.tick_labels(axes.xaxis) == ["3", "10"]


def group_chart(count: int, windows: int = 2) -> GroupChart:
    bars = tuple(TimeBar(str(10 * place), Estimate(1000.0 - place, (980.0, 1010.0), 100),
                         None if place == 0 else 10.5, n=100, unsure=place == 1)
                 for place in range(windows))
    return GroupChart("A title", ("context",), windows=tuple(str(10 * place) for place in
                                                             range(windows)),
                      groups=tuple((str(place), bars) for place in range(count)), axis="RTT (ms)")


@pytest.mark.parametrize(("count", "windows"), [(1, 1), (2, 2), (6, 3), (10, 6)])
def test_groups_fit(count: int, windows: int) -> None:
    samples.check_fits(groups.draw(group_chart(count, windows)))


def test_each_bar_is_written_below_its_group() -> None:
    (axes,) = groups.draw(group_chart(2)).axes
    assert {"0: 1000 ms, n = 100", "10: 999 ms, (10.5 %), n = 100", "RTT (ms)"} <= {*texts(axes)}
    assert [patch.get_height() for patch in axes.patches] == [1000, 1000, 999, 999]


def timeline(name: str, end_ms: float | None) -> Timeline:
    return Timeline(f"{name}: RTT 25 ms, 1000 kbit/s, 9000 bytes",
                    "3 data segments, 2 of them in the first flight, 1 sent again, 1 lost; all",
                    (Mark("data", 20, 1, 1449), Mark("lost", 20, 1449, 2897),
                     Mark("again", 60, 1449, 2897)), ((45, 1449), (90, 2897)), 100, 3000,
                    ((45, 2900), (90, 5000)), end_ms)


def test_two_windows_stand_beside_each_other() -> None:
    drawn = packets.draw(PacketsChart("A title", ("context",), timelines=(
        timeline("IW3", 90.0), timeline("IW10", None))))
    samples.check_fits(drawn)
    left, right = drawn.axes
    assert "IW3: all acknowledged at 90.0 ms" in texts(left) and "IW10" in texts(right)
    assert left.get_xlim() == right.get_xlim() and left.get_ylim() == right.get_ylim()
    (legend,) = drawn.legends
    assert samples.said(legend) == ["data sent", "data sent, then lost", "data sent again",
                                    "acknowledged", "end of the receive window",
                                    "all acknowledged"]
    assert [len(found.get_segments()) for found in left.collections] == [1, 1, 1]
