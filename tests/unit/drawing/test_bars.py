"""Pairs of bars: scales that hide nothing, both zeros at one height, what stands around them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from base.stats import Estimate
from findings.charts import Bar, BarChart
from findings.drawing import bars, style
from tests.unit.drawing import samples


@pytest.fixture(scope="module")
def chart() -> BarChart:
    return samples.bar_chart()


@pytest.fixture(scope="module")
def drawn(chart: BarChart) -> Any:
    return bars.draw(chart)


def with_absolute(chart: BarChart, value: float) -> BarChart:
    """The first bar saves another value, which may be a loss."""
    first = replace(chart.bars[0], absolute=Estimate(value, (value - 30, value + 5)),
                    percent=Estimate(value / 20))
    return replace(chart, bars=(first, *chart.bars[1:]))


def test_bars_are_as_long_as_their_values(chart: BarChart, drawn: Any) -> None:
    left, right = drawn.axes
    assert [bar.get_y() + bar.get_height() for bar in left.patches] == pytest.approx(
        [bar.absolute.value for bar in chart.bars])
    assert [bar.get_height() for bar in right.patches] == [5.3, 21.8, 33.0]
    assert left.get_yscale() == "log" and {bar.get_y() for bar in left.patches} == {1.0}


def test_where_nothing_changes_a_word_says_so(chart: BarChart, drawn: Any) -> None:
    none = replace(chart, bars=tuple(replace(bar, absolute=Estimate(0.0), percent=Estimate(0.0))
                                     for bar in chart.bars))
    says = "no bar: nothing changes"
    assert says in [text.get_text() for text in bars.draw(none).axes[0].texts]
    assert says not in [text.get_text() for text in drawn.axes[0].texts]


def test_published_values_are_open_markers_over_their_bars(drawn: Any) -> None:
    for axes, marker, values in zip(drawn.axes, "oD", ([9.7, 22.0, 3350.0], [3.1, 5.1, 21.9])):
        (line,) = [line for line in axes.lines if line.get_marker() == marker]
        assert list(line.get_ydata()) == values
        assert line.get_markerfacecolor() == "white" and not line.get_clip_on()
        middles = [bar.get_x() + bar.get_width() / 2 for bar in axes.patches]
        assert list(line.get_xdata()) == pytest.approx(middles)


def test_intervals_are_drawn_where_there_are_any(drawn: Any) -> None:
    for axes, ends in zip(drawn.axes, ([60.0, 95.0], [18.0, 25.0])):
        assert [list(line.get_ydata()) for line in axes.lines if line.get_marker() == "_"] == [ends]


def test_around_the_axes_stand_values_counts_and_shares(drawn: Any) -> None:
    texts = {text.get_text(): text for text in drawn.axes[0].texts}
    assert {"6.8 ms", "5.3 %", "78.9 ms", "21.8 %", "4975 ms", "33.0 %", "n = 16", "n = 14",
            "4.29 %", "48.36 %", "0.08 %", "share of the paper's responses",
            "RTT (ms)"} <= set(texts)
    assert texts["2 excluded"].get_color() == style.ALARM
    assert [text for text in texts if text.endswith("excluded")] == ["2 excluded"]


def test_the_legend_names_what_is_drawn_and_no_more(drawn: Any) -> None:
    (legend,) = drawn.legends
    assert samples.said(legend) == [
        "measured here, ms (left axis)", "measured here, % (right axis)",
        "published in the paper, ms", "published in the paper, %", "95 % interval"]
    plain = BarChart("A title", (), bars=(samples.bar("0", 3.0, 1.0), samples.bar("1", 2.0, 1.0)))
    assert len(bars.legend_of([plain])) == 2


def test_a_converted_percentage_is_named() -> None:
    noted = samples.bar_chart(publisher="by them", percent_note=", as a part of the baseline")
    assert [handle.get_label() for handle in bars.legend_of([noted])][2:4] == [
        "published by them, ms", "published by them, %, as a part of the baseline"]


@pytest.mark.parametrize(("value", "even"), [(0.05, False), (-4.0, True), (-500.0, False)])
def test_every_value_lies_within_both_axes(chart: BarChart, value: float, even: bool) -> None:
    """Also improvements around and below zero, where a logarithm has no place for them."""
    changed = replace(with_absolute(chart, value), even_scale=even)
    left, right = bars.draw(changed).axes
    assert left.get_yscale() == ("linear" if even else "symlog")
    lowest, highest = left.get_ylim()
    assert lowest < 0
    for bar in changed.bars:
        for absolute in (bar.absolute.value, bar.published, *(bar.absolute.interval or ())):
            assert absolute is None or lowest < absolute < highest
        for percent in (bar.percent.value, bar.published_percent):
            assert percent is None or right.get_ylim()[0] < percent < right.get_ylim()[1]
    heights = [axes.transData.transform((0, 0))[1] for axes in (left, right)]
    assert heights[0] == pytest.approx(heights[1], abs=0.01)
    for axes in (left, right):
        assert 2 <= len(samples.tick_labels(axes.yaxis)) <= 12


@pytest.mark.parametrize(("lowest", "bottom"), [(6.8, 1.0), (1.5, 1.0), (0.5, 0.1), (0.12, 0.01)])
def test_a_logarithmic_axis_begins_below_its_shortest_bar(lowest: float, bottom: float) -> None:
    scale = bars.scale_of([samples.bar("20", lowest, 1.0), samples.bar("50", 900.0, 2.0)])
    assert not scale.passes_zero and scale.bottom == scale.low == pytest.approx(bottom)
    assert scale.high == pytest.approx(1440.0)


def test_two_lines_of_words_stand_above_a_bar() -> None:
    lossy = samples.bar("2", 90.8, 15.3, n=360, above=("beyond lossless: 20.6 ms",
                                                       "4.3 … 37.7 ms: helps"))
    drawn = bars.draw(BarChart("By loss", (), bars=(samples.bar("0", 70.2, 14.2, n=4), lossy),
                               axis="loss (%)", even_scale=True))
    places = {text.get_text(): text.get_position() for text in drawn.axes[0].texts}
    first, second = places["beyond lossless: 20.6 ms"], places["4.3 … 37.7 ms: helps"]
    assert first[0] == second[0] == 1 and first[1] > second[1] > 1
    samples.check_fits(drawn)


def test_few_bars_are_no_broad_blocks() -> None:
    ends = [bars.draw(BarChart("Few", (), bars=tuple(
        samples.bar(str(place), 5.0, 1.0) for place in range(count)))).axes[0].get_xlim()
        for count in (2, 8)]
    assert ends == [(-1.5, 2.5), (-0.5, 7.5)]


def test_a_page_shows_several_charts_without_their_values(chart: BarChart) -> None:
    drawn = bars.draw(samples.bar_page())
    assert len(drawn.axes) == 4 and len(drawn.legends) == 1
    lefts = drawn.axes[::2]
    assert len({axes.get_position().height for axes in lefts}) == 1
    for axes in lefts:
        assert samples.said(axes) == ["4.29 %", "48.36 %", "0.08 %"]
        assert axes.get_xlabel() == "RTT (ms)" and len(axes.patches) == 3


def test_a_page_keeps_the_order_of_its_charts() -> None:
    first, second = (samples.bar_chart(axis=axis) for axis in ("RTT (ms)", "BDP (bytes)"))
    drawn = bars.draw(replace(samples.bar_page(), charts=(first, second)))
    heights = {axes.get_xlabel(): axes.get_position().y0 for axes in drawn.axes[::2]}
    assert heights["RTT (ms)"] > heights["BDP (bytes)"]


def test_a_bar_without_published_values_has_no_marker() -> None:
    alone = BarChart("Alone", (), bars=(Bar("20", Estimate(5.0), Estimate(2.0), n=2),))
    left, right = bars.draw(alone).axes
    assert not left.lines and not right.lines
