"""Pairs of bars: scales that hide nothing, both zeros at one height, what stands around them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from firstflight.base.stats import Estimate
from firstflight.findings import drawing
from firstflight.findings.charts import BarChart, bar_page
from firstflight.findings.claims import Published
from firstflight.findings.drawing import bars, style
from tests.unit.drawing import samples


@pytest.fixture(scope="module")
def chart() -> BarChart:
    return samples.bar_chart()


@pytest.fixture(scope="module")
def drawn(chart: BarChart) -> Any:
    return drawing.figure_of(chart)


def with_absolute(chart: BarChart, value: float) -> BarChart:
    """The first bar saves another value, which may be a loss."""
    first = samples.changed(chart.bars[0], absolute=Estimate(value, (value - 30, value + 5)),
                            percent=Estimate(value / 20))
    return replace(chart, bars=(first, *chart.bars[1:]))


def test_bars_are_as_long_as_their_values(chart: BarChart, drawn: Any) -> None:
    left, right = drawn.axes
    assert [bar.get_y() + bar.get_height() for bar in left.patches] == pytest.approx(
        [bar.difference.absolute.value for bar in chart.bars])
    assert [bar.get_height() for bar in right.patches] == [5.3, 21.8, 33.0]
    assert left.get_yscale() == "log" and {bar.get_y() for bar in left.patches} == {1.0}
    assert any("begin at 1 ms" in text for text in samples.said(drawn))


def test_there_are_two_bars_a_bucket_on_either_axis(chart: BarChart) -> None:
    """On a logarithmic one, which is the paper's, a line below says where they begin."""
    drawn = [drawing.figure_of(replace(chart, is_like_the_papers=False, bars=shown))
             for shown in (chart.bars, chart.bars[1:2] * 2)]
    far, near = (figure.axes[0] for figure in drawn)
    assert far.get_yscale() == "log" and len(far.patches) == len(chart.bars)
    assert [any("begin at" in text for text in samples.said(figure)) for figure in drawn] == [
        True, False]
    assert near.get_yscale() == "linear" and len(near.patches) == 2
    assert [bar.get_y() for bar in near.patches] == [0.0, 0.0]


def test_where_nothing_changes_a_word_says_so(chart: BarChart, drawn: Any) -> None:
    none = replace(chart, bars=tuple(samples.changed(
        bar, absolute=Estimate(0.0), percent=Estimate(0.0)) for bar in chart.bars))
    says, empty = "no bar: nothing changes", drawing.figure_of(none)
    assert says in [text.get_text() for text in empty.axes[0].texts]
    unpublished = replace(none, is_like_the_papers=False, bars=tuple(
        replace(samples.changed(bar, same=None), published=Published(None, None))
        for bar in none.bars))
    for figure, ticks in ((empty, 2), (drawing.figure_of(unpublished), 1)):
        assert all((len(axes.get_yticks()) >= 2) == (ticks >= 2) for axes in figure.axes)
    assert says not in [text.get_text() for text in drawn.axes[0].texts]


def test_published_values_and_the_window_alone_hide_no_interval(drawn: Any) -> None:
    """Each mark has a place of its own across its bar."""
    for axes, published, alone in zip(drawn.axes, ([9.7, 22.0, 3350.0], [3.1, 5.1, 21.9]),
                                      ([33.0], [9.1])):
        marks = {marker: [line for line in axes.lines if line.get_marker() == marker]
                 for marker in "D^_"}
        assert [line.get_ydata()[0] for line in marks["D"]] == published
        assert [line.get_ydata()[0] for line in marks["^"]] == alone
        assert marks["D"][0].get_markerfacecolor() == "white"
        second = axes.patches[1]
        places = [marks[marker][at].get_xdata()[0] for marker, at in (("_", 0), ("^", 0), ("D", 1))]
        assert places == sorted(places) and len(set(places)) == 3
        assert all(second.get_x() < place < second.get_x() + second.get_width()
                   for place in places)


def test_an_interval_that_leaves_a_logarithmic_axis_has_an_arrow(chart: BarChart) -> None:
    second = samples.changed(chart.bars[1], absolute=Estimate(8.2, (-2.0, 20.0)))
    drawn = drawing.figure_of(replace(chart, bars=(chart.bars[0], second)))
    left, _ = drawn.axes
    (interval,) = [line for line in left.lines if line.get_marker() == "_"]
    (arrow,) = [line for line in left.lines if line.get_marker() == "v"]
    assert list(interval.get_ydata()) == [1.0, 20.0] and list(arrow.get_ydata()) == [1.0]
    assert any("Arrow: goes on below" in text for text in samples.said(drawn))


def test_intervals_are_drawn_where_there_are_any(drawn: Any) -> None:
    for axes, ends in zip(drawn.axes, ([60.0, 95.0], [18.0, 25.0])):
        assert [list(line.get_ydata()) for line in axes.lines if line.get_marker() == "_"] == [ends]


def test_around_the_axes_stand_values_counts_and_shares(drawn: Any) -> None:
    texts = {text.get_text(): text for text in drawn.axes[0].texts}
    assert {"ms ", "6.8", "78.9", "4975", "% ", "5.3", "21.8", "33.0", "n ", "16", "14",
            "4.29 %", "48.36 %", "0.08 %", "share", "RTT (ms)", "excluded ", "2"} <= set(texts)
    assert texts["2"].get_color() == style.ALARM


def test_the_legend_names_what_is_drawn_and_no_more(drawn: Any) -> None:
    (legend,) = drawn.legends
    assert samples.said(legend) == [
        "measured, ms (left axis)", "measured, % (right axis)", "published in the paper",
        "the window alone", "95 % interval"]
    plain = BarChart("A title", (), bars=(samples.bar("0", 3.0, 1.0), samples.bar("1", 2.0, 1.0)))
    assert len(bars.legend_of([plain])) == 2


@pytest.mark.parametrize("value", [0.0, -4.0, -500.0])
def test_every_value_lies_within_both_axes(chart: BarChart, value: float) -> None:
    """Also improvements around and below zero, where a logarithm has no place for them."""
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


def test_two_lines_of_words_stand_above_a_bar() -> None:
    lossy = samples.bar("2", 90.8, 15.3, n=360, above=("20.6 ms: helps", "4.3 … 37.7"))
    drawn = drawing.figure_of(BarChart("By loss", (),
                                       bars=(samples.bar("0", 70.2, 14.2, n=4), lossy),
                               axis="loss (%)", above="beyond the lossless bar"))
    places = {text.get_text(): text.get_position() for text in drawn.axes[0].texts}
    first, second = places["20.6 ms: helps"], places["4.3 … 37.7"]
    assert first[0] == second[0] == 1 and first[1] > second[1] > 1
    assert places["beyond the lossless bar"][1] > first[1]
    samples.check_fits(drawn)


def test_few_bars_are_no_broad_blocks() -> None:
    ends = [drawing.figure_of(BarChart("Few", (), bars=tuple(
        samples.bar(str(place), 5.0, 1.0) for place in range(count)))).axes[0].get_xlim()
        for count in (2, 8)]
    assert ends == [(-1.5, 2.5), (-0.5, 7.5)]


def test_a_page_shows_several_charts_with_their_titles(chart: BarChart) -> None:
    drawn = drawing.figure_of(samples.bar_page())
    assert len(drawn.axes) == 4 and len(drawn.legends) == 1
    lefts = drawn.axes[::2]
    assert len({axes.get_position().height for axes in lefts}) == 1
    for axes in lefts:
        assert {"4.29 %", "48.36 %", "RTT (ms)", "Improvement", "78.9"} <= {*samples.said(axes)}
        assert len(axes.patches) == 3
    many = drawing.figure_of(replace(samples.bar_page(), charts=(chart,) * bars.MANY))
    assert "78.9" not in samples.said(many.axes[0]), "many charts have no room for tables"


def test_the_face_says_what_bars_and_triangles_compare(chart: BarChart) -> None:
    two = replace(chart, compared="two weeks")
    alone = ("Bars: two weeks; triangles: the same responses under both windows. Between them: the"
             " weeks")
    assert alone in " ".join(samples.said(drawing.figure_of(two)))
    assert alone in " ".join(samples.said(drawing.figure_of(bar_page("a page", (two, two)))))
    none = replace(two, bars=tuple(samples.changed(bar, same=None) for bar in chart.bars))
    assert "Bars: two weeks" in samples.said(drawing.figure_of(none))
    times = replace(samples.time_chart(), compared="two weeks")
    assert "Bars: two weeks" in samples.said(drawing.figure_of(times))


def test_a_published_zero_leaves_the_short_bars_to_be_seen(chart: BarChart) -> None:
    bars = (replace(chart.bars[0], published=Published(0.0, 3.1)), *chart.bars[1:])
    drawn = drawing.figure_of(replace(chart, bars=bars, is_like_the_papers=False))
    left = drawn.axes[0]
    assert left.get_yscale() == "log" and left.get_ylim()[0] == 1.0
    assert [line.get_ydata()[0] for line in left.lines if line.get_marker() == "v"] == [1.0]
    assert any("Arrow: goes on below" in text for text in samples.said(drawn))
    worse = (samples.changed(chart.bars[0], absolute=Estimate(-1.0)), *chart.bars[1:])
    assert drawing.figure_of(replace(chart, bars=worse, is_like_the_papers=False)
                             ).axes[0].get_yscale() == "linear"


def test_marks_of_eight_buckets_do_not_hide_each_other(chart: BarChart) -> None:
    """A bar, its interval, what the window does alone and what is published have one value."""
    marked = replace(
        samples.changed(chart.bars[1], same=samples.change(Estimate(78.9), Estimate(9.1))),
        published=Published(78.9, 5.1))
    drawn = drawing.figure_of(replace(chart, bars=(marked,) * 8))
    left = drawn.axes[0]
    low, high = left.get_xlim()
    inch = left.get_position().width * style.WIDTH_INCHES / (high - low)
    triangle, diamond = (next(line for line in left.lines if line.get_marker() == marker)
                         for marker in "^D")
    apart = (diamond.get_xdata()[0] - triangle.get_xdata()[0]) * inch * 72
    assert apart > triangle.get_markersize() / 2 + diamond.get_markersize() / 2 ** 0.5


def test_a_page_says_what_is_true_of_all_of_its_charts(chart: BarChart) -> None:
    first = replace(chart, context=("cubic", "100 ms"), compared="two weeks")
    page = bar_page("a page", (first, replace(first, context=("cubic", "20 ms"))))
    assert (page.context, page.compared) == (("cubic",), "two weeks")
    assert bar_page("a page", (first, chart)).compared == ""


def test_panels_of_a_page_share_their_scales_or_say_why_not(chart: BarChart) -> None:
    small = replace(chart, bars=tuple(samples.changed(
        bar, absolute=Estimate(5.0), percent=Estimate(1.0)) for bar in chart.bars))
    alike = drawing.figure_of(bar_page("a page", (chart, small)))
    for axes in (alike.axes[::2], alike.axes[1::2]):
        assert len({one.get_ylim() for one in axes}) == 1
    assert not any("its own scales" in text for text in samples.said(alike))
    even = replace(small, is_like_the_papers=False, bars=tuple(
        replace(samples.changed(bar, same=None), published=Published(None, 3.1))
        for bar in small.bars))
    apart = drawing.figure_of(bar_page("a page", (chart, even)))
    assert len({one.get_ylim() for one in apart.axes[::2]}) == 2
    assert any("its own scales" in text for text in samples.said(apart))


@pytest.mark.parametrize(("milliseconds", "percent", "shared"), [
    (35.0, 3.5, True), (400.0, 3.5, True), (20.0, 3.5, False), (35.0, 30.0, False)])
def test_even_scales_are_shared_where_the_lower_bars_can_be_read(
        chart: BarChart, milliseconds: float, percent: float, shared: bool) -> None:
    one, other = (replace(chart, is_like_the_papers=False, bars=tuple(
        replace(samples.changed(bar, same=None, absolute=Estimate(ms), percent=Estimate(share)),
                published=Published(None, None))
        for bar in chart.bars)) for ms, share in ((100.0, 7.0), (milliseconds, percent)))
    drawn = drawing.figure_of(bar_page("a page", (one, other)))
    limits = [(left.get_ylim(), right.get_ylim())
              for left, right in zip(drawn.axes[::2], drawn.axes[1::2])]
    assert (len(set(limits)) == 1) == shared


def test_a_page_keeps_the_order_of_its_charts() -> None:
    first, second = (samples.bar_chart(axis=axis) for axis in ("RTT (ms)", "BDP (bytes)"))
    drawn = drawing.figure_of(replace(samples.bar_page(), charts=(first, second)))
    heights = {name: axes.get_position().y0 for axes in drawn.axes[::2]
               for name in samples.said(axes) if name.endswith(")")}
    assert heights["RTT (ms)"] > heights["BDP (bytes)"]


def test_a_bar_without_published_values_has_no_marker() -> None:
    alone = BarChart("Alone", (), bars=(samples.bar("20", 5.0, 2.0, 2),))
    left, right = drawing.figure_of(alone).axes
    assert not left.lines and not right.lines
