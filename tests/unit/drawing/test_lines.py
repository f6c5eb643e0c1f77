"""Lines in columns: where plots stand, how each style looks, what the axes say."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy
import pytest
from matplotlib.colors import to_hex
from numpy.typing import NDArray

from firstflight.findings.charts import LOOKS, Line, LineChart, Plot
from firstflight.findings.drawing import bars, groups, lines, style
from tests.unit.drawing import samples


@pytest.fixture(scope="module")
def drawn() -> Any:
    return lines.draw(samples.line_chart())


def one(*shown: Line, **more: Any) -> Any:
    """The axes of a chart of one plot."""
    return lines.draw(LineChart("One", (), columns=((Plot("x", "y", shown, **more),),))).axes[0]


def test_columns_share_the_width_and_plots_their_column(drawn: Any) -> None:
    curves, gains, hits = (axes.get_position() for axes in drawn.axes)
    assert curves.x1 < gains.x0 == hits.x0 and gains.width > curves.width
    assert gains.y0 > hits.y1 and gains.height == pytest.approx(hits.height)
    assert gains.y1 == pytest.approx(curves.y1) and hits.y0 == pytest.approx(curves.y0)
    assert [axes.get_title(loc="left") for axes in drawn.axes] == ["", "gains", "hits"]


def test_curves_have_no_markers_and_end_where_they_are_told(drawn: Any) -> None:
    axes = drawn.axes[0]
    assert [line.get_marker() for line in axes.lines] == ["None", "None"]
    assert [line.get_linestyle() for line in axes.lines] == ["-", "--"]
    assert [line.get_color() for line in axes.lines] == list(lines.DISTINCT[:2])
    assert axes.get_xlim() == (5, 32) and axes.get_ylim() == (0, 100)
    assert samples.said(axes.get_legend()) == ["IW 3", "IW 10"]


def test_lines_have_intervals_faint_ones_and_published_markers(drawn: Any) -> None:
    axes = drawn.axes[1]
    line, interval, faint, published, zero = axes.lines
    assert line.get_marker() == lines.MARKERS[1] and list(line.get_ydata()) == [12, -40]
    assert list(interval.get_xdata()) == [0, 0] and list(interval.get_ydata()) == [9, 15]
    # Between names side by side, such as windows, there is nothing to join.
    assert faint.get_linestyle() == "None" and faint.get_color() == line.get_color()
    assert published.get_markerfacecolor() == "white" and published.get_linestyle() == "None"
    assert list(zero.get_ydata()) == [0, 0] and axes.get_legend() is None


def test_an_axis_begins_at_zero_where_no_value_is_below() -> None:
    """Else what is 1 % longer looks as if it took twice as long; an interval counts as a value."""
    assert one(Line("a", (0, 1), (921, 1002))).get_ylim()[0] == 0
    assert one(Line("a", (0, 1), (5, 9), ((-1, 11), None))).get_ylim()[0] < -1
    assert one(Line("a", (0, 1), (921, 1002)), y_ends=(900, 1100)).get_ylim() == (900, 1100)


def test_values_are_joined_along_a_quantity_and_not_from_name_to_name() -> None:
    named = one(Line("a", (0, 1), (3, 4)), ticks=((0, "10"), (1, "32")))
    assert named.lines[0].get_linestyle() == "None" and named.lines[0].get_marker() == "o"
    assert not named.lines[0].get_clip_on(), "half a mark at the end of an axis"
    along = one(Line("a", (10, 32), (3, 4)), ticks=((10, "10"), (32, "32")))
    assert along.lines[0].get_linestyle() == "-" and along.lines[0].get_clip_on()


def test_a_logarithmic_axis_along_y_has_decades() -> None:
    axes = one(Line("a", (0, 1), (0.05, 100), style="curve"), y_scale="log", y_ends=(0.05, 100))
    assert samples.tick_labels(axes.yaxis) == ["0.1", "1", "10", "100"]


def test_equal_lines_of_ordered_colours_are_nested() -> None:
    """Else the later one hides the one before."""
    plot = Plot("x", "y", tuple(Line(name, (1.0, 2.0), (3.0, 3.0), look=look)
                                for look, name in enumerate("ab")))
    (axes,) = lines.draw(LineChart("Equal", (), columns=((plot,),), palette="ordered")).axes
    first, second = axes.lines
    assert first.get_linewidth() > second.get_linewidth()
    assert first.get_markersize() > second.get_markersize()


def test_steps_are_no_slopes() -> None:
    assert one(Line("a", (1, 2), (3, 9), style="steps")).lines[0].get_drawstyle() == "steps-post"


def test_bars_of_series_stand_beside_each_other(drawn: Any) -> None:
    axes = drawn.axes[2]
    edges = sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches)
    assert len(edges) == 4 and all(one[1] <= other[0] for one, other in zip(edges, edges[1:]))
    assert sorted(bar.get_height() for bar in axes.patches) == [300, 400, 450, 500]
    interval, limit = axes.lines
    assert "full" in [text.get_text() for text in axes.texts]
    assert list(interval.get_ydata()) == [390, 410]
    assert list(limit.get_ydata()) == [550, 550] and limit.get_color() == style.ALARM
    assert axes.get_ylim()[0] == 0 and axes.get_ylim()[1] > 550


def test_one_legend_for_all_plots_has_each_name_once() -> None:
    drawn = lines.draw(replace(samples.line_chart(), legend=True))
    assert samples.said(drawn.legends[0]) == ["IW 3", "IW 10", "the deck", "full"]
    assert not any(axes.texts for axes in drawn.axes), "a limit's name at its line hides marks"
    unnamed = replace(samples.line_chart(), legend=True,
                      columns=samples.line_chart().columns[1:], widths=())
    assert samples.said(lines.draw(unnamed).legends[0]) == ["IW 10", "the deck", "IW 3", "full"]


def test_every_palette_has_a_look_for_each_line() -> None:
    assert {len(looks) for looks in (lines.DISTINCT, lines.STYLES, lines.ORDERED, lines.MARKERS,
                                     lines.NESTED)} == {LOOKS}


def test_ordered_colours_go_from_light_to_dark_without_dashes() -> None:
    def lightness(colour: str) -> float:
        red, green, blue = (int(colour[place:place + 2], 16) for place in (1, 3, 5))
        return 0.299 * red + 0.587 * green + 0.114 * blue
    levels = [lightness(colour) for colour in lines.ORDERED]
    assert levels == sorted(levels, reverse=True)
    chart = LineChart("Ordered", (), palette="ordered", columns=((Plot("x", "y", tuple(
        Line(f"IW {look}", (1.0, 2.0), (1.0, 2.0), look=look) for look in range(7))),),))
    (axes,) = lines.draw(chart).axes
    assert [line.get_color() for line in axes.lines] == list(lines.ORDERED)
    assert {line.get_linestyle() for line in axes.lines} == {"-"}
    assert len({line.get_marker() for line in axes.lines}) == 7


def test_an_axis_along_x_may_be_logarithmic() -> None:
    line = Line("a", (0.1, 300.0), (1.0, 2.0))
    assert samples.tick_labels(one(line, x_scale="log").xaxis) == ["0.1", "0.2", "0.5", "1", "2",
                                                                   "5", "10", "20", "50",
                                                      "100", "200"]
    named = one(line, x_scale="log", ticks=((0.1, "0.1"), (30.0, "30")))
    assert samples.tick_labels(named.xaxis) == ["0.1", "30"]
    assert list(named.xaxis.get_minorticklocs()) == []


def test_whole_numbers_have_whole_ticks() -> None:
    axes = one(Line("a", (0.0, 1.0), (0.0, 1.0)), y_ends=(0, 1.08), whole=True)
    assert samples.tick_labels(axes.yaxis) == ["0", "1"]
    axes = one(Line("a", (0.0, 1.0), (0.0, 1.0)), y_ends=(0, 1.08))
    assert samples.tick_labels(axes.yaxis) == ["0", "0.2", "0.4", "0.6", "0.8", "1"]


def test_a_long_name_of_an_axis_is_broken_where_its_axes_are_low() -> None:
    plot = Plot("", "window at the restart (segments), and more", (Line("a", (0.0,), (1.0,)),),
                title="Linux (CUBIC), validation on, queue of 1000 packets")
    chart = LineChart("Low", (), columns=tuple((replace(plot, title=plot.title if not place else
                                                        ""),) * 2 for place in range(3)))
    drawn = lines.draw(chart)
    assert all("\n" in axes.get_ylabel() for axes in drawn.axes)
    assert len({round(axes.get_position().height, 6) for axes in drawn.axes}) == 1
    samples.check_fits(drawn)


def test_a_legend_has_room_above_points() -> None:
    points = Line("a", (0.0, 1.0), (1.0, 9.0), style="points")
    ticks = ((0.0, "mean"), (1.0, "50"))
    tops = [one(points, ticks=ticks, legend=legend).get_ylim()[1] for legend in (False, True)]
    assert tops[1] > 1.25 * tops[0]


def linear(colour: str) -> NDArray[numpy.float64]:
    """Red, green and blue, as much light as there is (sRGB)."""
    parts = numpy.array([int(colour[place:place + 2], 16) / 255 for place in (1, 3, 5)])
    return numpy.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def test_neighbours_of_ordered_lines_differ_in_grey() -> None:
    """By relative luminance (WCAG 2); the first is what others are compared with."""
    greys = [linear(colour) @ LUMINANCE + 0.05 for colour in lines.ORDERED[1:]]
    assert all(max(pair) / min(pair) > 1.25 for pair in zip(greys, greys[1:]))


def test_a_window_has_one_colour_whatever_stands_beside_it() -> None:
    for others in ((), (3, 6), (1, 2, 3, 4)):
        shown = [Line(f"IW {window}", (1.0,), (1.0,), look=look, window=window)
                 for look, window in enumerate((*others, 10))]
        assert one(*shown).lines[-1].get_color() == style.BLUE.lower()
    bars_of = replace(samples.time_chart(), bars=tuple(
        samples.time_bar(window, 1.0, 0.0) for window in (3, 10)))
    assert [to_hex(patch.get_facecolor()) for patch in bars.draw_times(bars_of).axes[0].patches
            ] == [style.SKY.lower(), style.BLUE.lower()]
    group = replace(samples.group_chart(), windows=(10, 16))
    assert to_hex(groups.draw_groups(group).axes[0].patches[0].get_facecolor()
                  ) == style.BLUE.lower()
    assert one(Line("a", (1.0,), (1.0,), look=1)).lines[0].get_color() == lines.DISTINCT[1]


@pytest.mark.parametrize("colour", (*lines.DISTINCT, *lines.ORDERED))
def test_what_is_no_window_has_no_colour_of_one(colour: str) -> None:
    """Of those that scenarios measure most."""
    assert min(numpy.linalg.norm(lab(linear(colour)) - lab(linear(style.window_colour(window))))
               for window in (3, 10, 16)) > 25


@pytest.mark.parametrize("ends", [(1, 2), (850, 1950), (1200, 3100), (0.1, 300), (20, 12000)])
def test_a_logarithmic_axis_has_some_ticks(ends: tuple[float, float]) -> None:
    axes = one(Line("a", ends, (1.0, 2.0)), x_scale="log", x_ends=ends)
    ticks = [tick for tick in axes.get_xticks() if ends[0] <= tick <= ends[1]]
    assert 4 <= len(ticks) <= 12


def test_the_name_of_a_narrow_axis_stays_in_the_figure() -> None:
    plots = tuple((Plot("other weeks: far, slow", "y", (Line("a", (0.0,), (1.0,)),)),)
                  for _ in range(3))
    samples.check_fits(lines.draw(LineChart("Narrow", (), columns=plots)))


def test_the_windows_of_a_map_are_told_apart_at_a_glance() -> None:
    """map_of_windows has all of these in one picture, without numbers in its squares."""
    shown = [lab(linear(style.window_colour(window))) for window in (3, 6, 10, 16, 24, 32, 48, 64)]
    assert min(numpy.linalg.norm(one - other) for one, other in combinations(shown, 2)) > 18


@pytest.mark.parametrize("windows", [(1, 2, 4, 10), (3, 6, 10, 16, 26, 42), (3, 10, 20, 32, 64),
                                     (3, 10, 12, 16, 20, 24, 32), (10, 20, 40, 80)])
def test_windows_are_told_apart_and_go_from_light_to_dark(windows: tuple[int, ...]) -> None:
    shown = [linear(style.window_colour(window)) for window in windows]
    greys = [LUMINANCE @ colour for colour in shown]
    assert greys == sorted(greys, reverse=True)
    assert min(numpy.linalg.norm(lab(one) - lab(other))
               for one, other in combinations(shown, 2)) > 5


# What is seen without the cones for red, and for green (Machado, Oliveira and Fernandes 2009).
SEEN = {"protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
        "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]}
LUMINANCE = numpy.array([0.2126, 0.7152, 0.0722])
TO_XYZ = numpy.array([[0.4124, 0.3576, 0.1805], LUMINANCE, [0.0193, 0.1192, 0.9505]])


def lab(light: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
    """CIELAB under daylight, in which 2.3 is the least difference that anybody sees."""
    parts = TO_XYZ @ light.clip(0, 1) / TO_XYZ.sum(axis=1)
    x, y, z = numpy.where(parts > 0.008856, numpy.cbrt(parts), 7.787 * parts + 16 / 116)
    return numpy.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("vision", SEEN)
@pytest.mark.parametrize("palette", [
    lines.ORDERED, lines.DISTINCT, [style.window_colour(window) for window, _ in style.WINDOWS]])
def test_no_two_colours_are_one_to_who_sees_no_red_or_no_green(palette: tuple[str, ...],
                                                               vision: str) -> None:
    seen = [lab(numpy.array(SEEN[vision]) @ linear(colour)) for colour in palette]
    assert min(numpy.linalg.norm(one - other) for one, other in combinations(seen, 2)) > 15
