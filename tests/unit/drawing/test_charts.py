"""What holds for charts of any values: nothing is hidden, scales fit, colours differ."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy
import pytest
from matplotlib.colors import to_hex
from numpy.typing import NDArray

from firstflight.base.stats import Estimate
from firstflight.findings import drawing
from firstflight.findings.charts import (LOOKS, BarChart, Chart, Line, LineChart, Mark, Plot,
                                         Square, SquareMap, bar_page, joint_title)
from firstflight.findings.claims import Published
from firstflight.findings.drawing import bars, groups, lines, style
from tests.unit.drawing import samples

# Maps of squares, groups of bars, packets ---------------------------------------------

@pytest.mark.parametrize(("count", "wide"), [(5, 2), (1, 6)])
def test_texts_of_maps_do_not_overlap_at_any_size(count: int, wide: int) -> None:
    drawn = drawing.figure_of(samples.square_chart(count=count, wide=wide))
    samples.check_fits(drawn)
    assert len(drawn.axes) == count


def test_bucket_names_do_not_overlap_next_to_long_causes() -> None:
    columns = ("1000", "5000", "10000", "50000", "100000", ">100000")
    chart = replace(samples.published_chart(), maps=(SquareMap("by product", columns, (
        (Square(10.0),) * 6,) * 3),), rows=("the paper", "2  the body after the back-end's time",
                                            "1  one write"))
    samples.check_fits(drawing.figure_of(chart))


@pytest.mark.parametrize("wide", [2, 3])
def test_a_long_unit_stands_in_a_square_only_where_it_has_room(wide: int) -> None:
    """Without room, the numbers of neighbours would touch. The foot of the figure has the unit."""
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


@pytest.mark.parametrize(("count", "windows"), [(1, 1), (10, 6)])
def test_groups_of_bars_fit_the_figure(count: int, windows: int) -> None:
    samples.check_fits(drawing.figure_of(samples.group_chart(count=count, windows=windows)))


@pytest.mark.parametrize(("ticket_bytes", "pointed"), [(40, [4349]), (400, [])])
def test_a_triangle_points_at_packets_too_low_to_be_seen(ticket_bytes: int,
                                                         pointed: list[int]) -> None:
    """The two segments of data are low, too, but they are seen, as one lies on the other."""
    chart = samples.packets_chart()
    marks = (Mark("data", 60, 1449, 2897), Mark("data", 60, 2897, 4345),
             Mark("ticket", 60, 4349, 4349 + ticket_bytes))
    drawn = drawing.figure_of(replace(chart, timelines=tuple(
        replace(line, marks=marks, to_bytes=5000) for line in chart.timelines)))
    for axes in drawn.axes:
        pointers = [line for line in axes.lines if line.get_marker() == ">"]
        assert [1000 * place for line in pointers for place in line.get_ydata()] == pointed
        assert all(line.get_color() == style.GREEN for line in pointers)


# Pairs of bars ------------------------------------------------------------------------

@pytest.fixture(scope="module")
def chart() -> BarChart:
    return samples.bar_chart()


def with_absolute(chart: BarChart, value: float) -> BarChart:
    """The chart whose first bar saves this many ms, or loses them."""
    saved = Estimate(value, (value - 30, value + 5))
    first = samples.with_difference(chart.bars[0], absolute=saved, percent=Estimate(value / 20))
    return replace(chart, bars=(first, *chart.bars[1:]))


@pytest.mark.parametrize("value", [0.0, -4.0, -500.0])
def test_every_value_lies_within_both_axes(chart: BarChart, value: float) -> None:
    """Improvements around and below zero have no place on a logarithmic axis."""
    changed = replace(with_absolute(chart, value), is_like_the_papers=False)
    left, right = drawing.figure_of(changed).axes
    lowest, highest = left.get_ylim()
    assert left.get_yscale() == "linear" and lowest < 0
    for bar in changed.bars:
        ours = bar.difference.absolute
        for absolute in (ours.value, bar.published.absolute, *(ours.interval or ())):
            assert absolute is None or lowest < absolute < highest
        for percent in (bar.difference.percent.value, bar.published.percent):
            assert percent is None or right.get_ylim()[0] < percent < right.get_ylim()[1]
    heights = [axes.transData.transform((0, 0))[1] for axes in (left, right)]
    assert heights[0] == pytest.approx(heights[1], abs=0.01)
    for axes in (left, right):
        assert 2 <= len(samples.tick_labels(axes.yaxis)) <= 12


@pytest.mark.parametrize(("lowest", "bottom"), [(6.8, 1.0), (1.5, 1.0), (0.5, 0.1), (0.12, 0.01)])
def test_a_logarithmic_axis_begins_below_its_shortest_bar(lowest: float, bottom: float) -> None:
    (low, high), is_log = bars.scale_of(BarChart("Far apart", (), bars=(
        samples.bar("20", lowest, 1.0), samples.bar("50", 900.0, 2.0))))
    assert is_log and low == pytest.approx(bottom) and high == pytest.approx(1440.0)


def test_two_lines_of_text_fit_above_a_bar() -> None:
    lossy = samples.bar("2", 90.8, 15.3, n=360, above=("20.6 ms: helps", "4.3 … 37.7"))
    drawn = drawing.figure_of(BarChart("By loss", (),
                                       bars=(samples.bar("0", 70.2, 14.2, n=4), lossy),
                               axis="loss (%)", above="beyond the lossless bar"))
    places = {text.get_text(): text.get_position() for text in drawn.axes[0].texts}
    first, second = places["20.6 ms: helps"], places["4.3 … 37.7"]
    assert first[0] == second[0] == 1 and first[1] > second[1] > 1
    assert places["beyond the lossless bar"][1] > first[1]
    samples.check_fits(drawn)


def test_marks_of_eight_buckets_do_not_hide_each_other(chart: BarChart) -> None:
    """A bar, its interval, what the window does alone and what is published have one value."""
    marked = replace(
        samples.with_difference(chart.bars[1], same=samples.saving(Estimate(78.9), Estimate(9.1))),
        published=Published(78.9, 5.1))
    drawn = drawing.figure_of(replace(chart, bars=(marked,) * 8))
    left = drawn.axes[0]
    low, high = left.get_xlim()
    inch = left.get_position().width * style.WIDTH_INCHES / (high - low)
    triangle, diamond = (next(line for line in left.lines if line.get_marker() == marker)
                         for marker in "^D")
    apart = (diamond.get_xdata()[0] - triangle.get_xdata()[0]) * inch * 72
    assert apart > triangle.get_markersize() / 2 + diamond.get_markersize() / 2 ** 0.5


def test_a_page_of_charts_states_common_facts_once(chart: BarChart) -> None:
    first = replace(chart, context=("cubic", "100 ms"), compared="two weeks")
    page = bar_page("a page", (first, replace(first, context=("cubic", "20 ms"))))
    assert (page.context, page.compared) == (("cubic",), "two weeks")
    assert bar_page("a page", (first, chart)).compared == ""


def test_panels_of_a_page_share_their_scales_or_say_why_not(chart: BarChart) -> None:
    small = replace(chart, bars=tuple(samples.with_difference(
        bar, absolute=Estimate(5.0), percent=Estimate(1.0)) for bar in chart.bars))
    alike = drawing.figure_of(bar_page("a page", (chart, small)))
    for axes in (alike.axes[::2], alike.axes[1::2]):
        assert len({half.get_ylim() for half in axes}) == 1
    assert not any("its own scales" in text for text in samples.texts_of(alike))
    even = replace(small, is_like_the_papers=False, bars=tuple(
        replace(samples.with_difference(bar, same=None), published=Published(None, 3.1))
        for bar in small.bars))
    apart = drawing.figure_of(bar_page("a page", (chart, even)))
    assert len({left.get_ylim() for left in apart.axes[::2]}) == 2
    assert any("its own scales" in text for text in samples.texts_of(apart))


@pytest.mark.parametrize(("milliseconds", "percent", "shared"), [
    (35.0, 3.5, True), (400.0, 3.5, True), (20.0, 3.5, False), (35.0, 30.0, False)])
def test_even_scales_are_shared_where_the_lower_bars_can_be_read(
        chart: BarChart, milliseconds: float, percent: float, shared: bool) -> None:
    def with_bars(ms: float, share: float) -> BarChart:
        """The chart with this saving in every bar, and nothing published."""
        shown = [replace(bar, published=Published(None, None)) for bar in chart.bars]
        return replace(chart, is_like_the_papers=False, bars=tuple(samples.with_difference(
            bar, same=None, absolute=Estimate(ms), percent=Estimate(share)) for bar in shown))

    drawn = drawing.figure_of(bar_page("a page", (with_bars(100.0, 7.0),
                                                  with_bars(milliseconds, percent))))
    limits = [(left.get_ylim(), right.get_ylim())
              for left, right in zip(drawn.axes[::2], drawn.axes[1::2])]
    assert (len(set(limits)) == 1) == shared


# Lines, and the colours of windows ----------------------------------------------------

def axes_of(*shown: Line, **more: Any) -> Any:
    """The axes of a chart with one plot, of these lines and with more of its fields."""
    return lines.draw(LineChart("One", (), columns=((Plot("x", "y", shown, **more),),))).axes[0]


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


def test_a_long_name_of_an_axis_is_broken_where_its_axes_are_low() -> None:
    plot = Plot("", "window at the restart (segments), and more", (Line("a", (0.0,), (1.0,)),),
                title="Linux (CUBIC), validation on, queue of 1000 packets")
    chart = LineChart("Low", (), columns=tuple((replace(plot, title=plot.title if not place else
                                                        ""),) * 2 for place in range(3)))
    drawn = lines.draw(chart)
    assert all("\n" in axes.get_ylabel() for axes in drawn.axes)
    assert len({round(axes.get_position().height, 6) for axes in drawn.axes}) == 1
    samples.check_fits(drawn)


def linear(colour: str) -> NDArray[numpy.float64]:
    """The light of red, green and blue, each from 0 to 1, of a colour in sRGB."""
    parts = numpy.array([int(colour[place:place + 2], 16) / 255 for place in (1, 3, 5)])
    return numpy.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def test_neighbours_of_ordered_lines_differ_in_grey() -> None:
    """Greys are relative luminances, and compared by WCAG 2's contrast. The first line is left out:
    the others are compared with it.
    """
    greys = [linear(colour) @ LUMINANCE + 0.05 for colour in lines.ORDERED[1:]]
    assert all(max(pair) / min(pair) > 1.25 for pair in zip(greys, greys[1:]))


def test_a_window_has_the_same_colour_whatever_windows_are_beside_it() -> None:
    for others in ((), (3, 6), (1, 2, 3, 4)):
        shown = [Line(f"IW {window}", (1.0,), (1.0,), look=look, window=window)
                 for look, window in enumerate((*others, 10))]
        assert axes_of(*shown).lines[-1].get_color() == style.BLUE.lower()
    bars_of = replace(samples.time_chart(), bars=tuple(
        samples.time_bar(window, 1.0, 0.0) for window in (3, 10)))
    assert [to_hex(patch.get_facecolor()) for patch in bars.draw_times(bars_of).axes[0].patches
            ] == [style.SKY.lower(), style.BLUE.lower()]
    group = replace(samples.group_chart(), windows=(10, 16))
    assert to_hex(groups.draw_groups(group).axes[0].patches[0].get_facecolor()
                  ) == style.BLUE.lower()
    assert axes_of(Line("a", (1.0,), (1.0,), look=1)).lines[0].get_color() == lines.DISTINCT[1]


@pytest.mark.parametrize("colour", (*lines.DISTINCT, *lines.ORDERED))
def test_colours_of_other_lines_differ_from_those_of_common_windows(colour: str) -> None:
    """Common windows are the three that scenarios measure most."""
    assert min(numpy.linalg.norm(lab(linear(colour)) - lab(linear(style.window_colour(window))))
               for window in (3, 10, 16)) > 25


def test_tick_labels_that_would_touch_are_omitted_except_the_last() -> None:
    thinks = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0, 300.0)
    plot = Plot("think time (s)", "ms", (Line("a", thinks, (1.0,) * 8),), x_scale="log",
                ticks=tuple((think_s, f"{think_s:g}") for think_s in thinks))
    drawn = lines.draw(LineChart("Warm", (), columns=((plot,), (plot,))))
    samples.check_fits(drawn)
    labels = [tick.label1.get_text() for tick in drawn.axes[0].xaxis.get_major_ticks()]
    assert len(labels) == 8 and labels[-1] == "300" and "" in labels
    wide = axes_of(*plot.lines, x_scale="log", ticks=plot.ticks)
    assert [tick.label1.get_text() for tick in wide.xaxis.get_major_ticks()
            ] == [label for _, label in plot.ticks]


def test_values_beyond_an_axis_have_an_arrow_at_its_edge_and_a_number() -> None:
    ends = (18.0, 22.0), (10.0, 20.0), (-130.0, -110.0)
    shown = (Line("IW 10", (0.0, 1.0, 2.0), (20.0, 15.0, -120.0), ends=ends, window=10),
             Line("IW 16", (0.1, 1.1, 2.1), (25.0, 20.0, -143.5), window=16))
    axes = axes_of(*shown, ticks=((0.0, "mean"), (1.0, "50"), (2.0, "99.9")), y_ends=(-5.0, 40.0),
               zero=True)
    arrows = [(line.get_ydata()[0], to_hex(line.get_color())) for line in axes.lines
              if line.get_marker() == "v"]
    assert arrows == [(-5.0, style.window_colour(10)), (-5.0, style.window_colour(16))]
    assert samples.texts_of(axes) == ["−120", "−144"]
    samples.check_fits(axes.figure)
    points = [y for line in axes.lines if line.get_marker() in ("o", "s")
              for y in line.get_ydata()]
    assert points and all(-5 <= y <= 40 for y in points)


@pytest.mark.parametrize("tick", [0.0, 1.0, 2.0])
def test_the_number_of_a_cut_value_does_not_cross_the_axis(tick: float) -> None:
    axes = axes_of(Line("IW 10", (0.0, 1.0, 2.0), (20.0, 15.0, 10.0), window=10),
                   Line("IW 16", (tick + 0.1,), (-200.0,), window=16),
                   ticks=((0.0, "1"), (1.0, "4"), (2.0, "6")), y_ends=(-80.0, 50.0), zero=True)
    axes.figure.canvas.draw()
    (number,) = axes.texts
    assert number.get_text() == "−200"
    assert number.get_window_extent().x0 > axes.get_window_extent().x0


def test_a_bar_of_zero_has_a_number_and_a_missing_one_none() -> None:
    axes = axes_of(Line("measured", (0.0, 1.0), (900.0, 0.0), style="bars"),
                   ticks=((0.0, "default"), (1.0, "rfc9406"), (2.0, "suss, skipped")))
    assert samples.texts_of(axes) == ["0"] and axes.texts[0].xy[0] == pytest.approx(1.0)


def test_the_largest_values_that_a_trace_cuts_stand_above_its_axes() -> None:
    chart = replace(samples.trace_chart(), to_s=1.0, rows=(replace(
        samples.trace_chart().rows[0], acked=((0.0, 0.0), (0.5, 10.0), (21.5, 40.0)),
        window=((0.0, 10.0), (0.6, 2178.0)), in_flight=((0.0, 10.0),)),))
    drawn = drawing.figure_of(chart)
    right = drawn.axes[1]
    assert right.get_title(loc="right") == "window up to 2178, to 21.5 s"
    assert not right.texts
    samples.check_fits(drawn)


def test_numbers_of_steps_do_not_cross_the_line_of_the_total() -> None:
    chart = samples.step_chart()
    assert chart.most is not None
    axes = drawing.figure_of(chart).axes[0]
    axes.figure.draw_without_rendering()
    line = axes.transData.transform((chart.most, 0))[0]
    boxes = [text.get_window_extent() for text in axes.texts if "(" in text.get_text()]
    assert len(boxes) > 1 and not any(box.x0 <= line <= box.x1 for box in boxes)


@pytest.mark.parametrize(("context", "count", "is_cut"), [
    (("one", "two"), 2, False), (("one",), 1, False), ((), 0, False),
    (("real Linux TCP, cubic; the latency at the server, averaged over RTT by its shares and",
      "BW 4 Mbit/s", "a third"), 2, False), (("a long line of words " * 9, "another"), 2, True)])
def test_a_subtitle_has_two_lines_at_most(context: tuple[str, ...], count: int, is_cut: bool
                                          ) -> None:
    lines_of = style.subtitle(context)
    assert len(lines_of) == count
    assert any(line.endswith("…") for line in lines_of) == is_cut
    drawn = drawing.figure_of(replace(samples.line_chart(), context=context))
    samples.check_fits(drawn)


def test_a_page_of_bars_is_named_after_what_it_shows(chart: BarChart) -> None:
    def titled(*parts: tuple[str, str]) -> str:
        return joint_title([replace(chart, title=title, axis=axis) for title, axis in parts])

    assert titled(("Improvement of 37 kB by RTT at 3 Mbit/s: 3 → 26 segments", "RTT (ms)"),
                  ("Improvement of 37 kB by bandwidth at 100 ms: 3 → 26 segments",
                   "Bandwidth (kbit/s)")
                  ) == "Improvement of 37 kB by RTT and bandwidth: 3 → 26 segments"
    assert titled(("A fetch over HTTP/1.1 by RTT: 3 → 10 segments", "RTT (ms)"),
                  ("A fetch over HTTP/2 by RTT: 10 → 20 segments", "RTT (ms)")
                  ) == "A fetch by RTT"
    notes = [replace(chart, foot=f"Fitted. {more}".strip()) for more in ("", "Also this.")]
    assert bar_page("a page", notes).foot == "Fitted."


@pytest.mark.parametrize("ends", [(1, 2), (850, 1950), (1200, 3100), (0.1, 300), (20, 12000)])
def test_a_logarithmic_axis_has_some_ticks(ends: tuple[float, float]) -> None:
    axes = axes_of(Line("a", ends, (1.0, 2.0)), x_scale="log", x_ends=ends)
    ticks = [tick for tick in axes.get_xticks() if ends[0] <= tick <= ends[1]]
    assert 4 <= len(ticks) <= 12


def test_the_name_of_a_narrow_axis_stays_in_the_figure() -> None:
    plots = tuple((Plot("other weeks: far, slow", "y", (Line("a", (0.0,), (1.0,)),)),)
                  for _ in range(3))
    samples.check_fits(lines.draw(LineChart("Narrow", (), columns=plots)))


def test_neighbouring_windows_of_a_map_differ_in_colour() -> None:
    """map_of_windows has all of these in one picture, without numbers in its squares."""
    shown = [lab(linear(style.window_colour(window))) for window in (3, 6, 10, 16, 24, 32, 48, 64)]
    assert min(numpy.linalg.norm(one - other) for one, other in combinations(shown, 2)) > 18


def test_the_windows_of_a_map_have_an_order_of_colours() -> None:
    """It goes from light to dark, and no two colours are alike."""
    windows = (3, 6, 10, 16, 24, 32, 48, 64)
    chart = replace(samples.window_chart(), windows=windows, maps=tuple(SquareMap(
        f"size {size} kB", tuple(map(str, windows)), (tuple(map(Square, windows)),) * 2)
        for size in (9, 50)))
    drawn = drawing.figure_of(chart)
    shown = [linear(to_hex(patch.get_facecolor())) for patch in drawn.axes[0].patches[:8]]
    greys = [LUMINANCE @ colour for colour in shown]
    assert greys == sorted(greys, reverse=True)
    assert min(numpy.linalg.norm(lab(one) - lab(other))
               for one, other in combinations(shown, 2)) > 12
    (legend,) = drawn.legends
    assert [linear(to_hex(handle.get_facecolor())).tolist() for handle in legend.get_patches()
            ] == [colour.tolist() for colour in shown]
    assert samples.texts_of(legend) == list(map(str, windows))


@pytest.mark.parametrize("make", [samples.window_chart, samples.square_chart])
def test_a_map_with_an_empty_square_says_that_nothing_counts(make: Any) -> None:
    whole = replace(make(), maps=tuple(replace(field, rows=((Square(10),) * 2,) * 2)
                                       for field in make().maps), windows=(3, 10))
    def texts_and_legends(chart: Chart) -> list[str]:
        drawn = drawing.figure_of(chart)
        texts = samples.texts_of(drawn)
        for legend in drawn.legends:
            texts += samples.texts_of(legend)
        return texts

    assert "nothing counts" in texts_and_legends(make())
    assert "nothing counts" not in texts_and_legends(whole)


@pytest.mark.parametrize("windows", [(1, 2, 4, 10), (3, 6, 10, 16, 26, 42), (3, 10, 20, 32, 64),
                                     (3, 10, 12, 16, 20, 24, 32), (10, 20, 40, 80)])
def test_colours_of_windows_differ_and_go_from_light_to_dark(windows: tuple[int, ...]) -> None:
    shown = [linear(style.window_colour(window)) for window in windows]
    greys = [LUMINANCE @ colour for colour in shown]
    assert greys == sorted(greys, reverse=True)
    assert min(numpy.linalg.norm(lab(one) - lab(other))
               for one, other in combinations(shown, 2)) > 5


# What people without the cones for red, and without those for green, see of light (Machado,
# Oliveira and Fernandes 2009).
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
def test_colours_of_a_palette_differ_without_red_or_green_vision(palette: tuple[str, ...],
                                                                 vision: str) -> None:
    seen = [lab(numpy.array(SEEN[vision]) @ linear(colour)) for colour in palette]
    assert min(numpy.linalg.norm(one - other) for one, other in combinations(seen, 2)) > 15
