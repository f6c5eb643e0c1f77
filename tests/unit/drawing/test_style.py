"""The frame that all figures share, and how ticks and words are written."""

from __future__ import annotations

import pytest

from firstflight.findings.charts import Chart, is_wide
from firstflight.findings.drawing import style
from tests.unit.drawing import samples


def test_title_context_alarm_and_foot_stand_at_the_same_places_in_every_figure() -> None:
    """In inches from the nearest edge, whatever the height between."""
    chart = Chart("A title", ("one line", "and another"), "64 trials", "2 excluded")
    places = []
    for body_inches in (1.0, 5.0):
        drawn = style.frame(chart, body_inches).figure
        width, height = drawn.get_size_inches()
        assert width == style.WIDTH_INCHES and height > body_inches + 1
        texts = drawn.texts
        assert [text.get_text() for text in texts] == [
            "A title", "one line", "and another", "2 excluded", "64 trials"]
        assert all(text.get_position()[0] == 0.5 for text in texts)
        places.append([round(height * (1 - text.get_position()[1]), 6) for text in texts[:4]]
                      + [round(height * texts[4].get_position()[1], 6)])
        assert texts[0].get_weight() == "bold" and texts[0].get_fontsize() == style.LARGE
        assert [text.get_color() for text in texts[1:]] == [
            style.INK, style.INK, style.ALARM, style.FAINT]
    assert places[0] == places[1] and places[0][:4] == sorted(places[0][:4])


def test_what_is_not_said_takes_no_room() -> None:
    bare, full = (style.frame(chart, 2.0) for chart in (
        Chart("A title", ()), Chart("A title", ("context",), "foot", "alarm")))
    assert samples.said(bare.figure) == ["A title"]
    assert bare.bottom < full.bottom
    assert bare.figure.get_size_inches()[1] < full.figure.get_size_inches()[1] - 0.5


def test_long_words_are_broken_to_fit() -> None:
    chart = Chart("Mean Completion Times of 50 kB, 20 Mbit/s " * 5, ("congestion windows " * 20,),
                  "128 trials, " * 30, "2 records without their counterpart " * 9)
    assert len(style.frame(chart, 1.0).figure.texts) > 10
    samples.check_fits(style.frame(chart, 1.0).figure)


@pytest.mark.parametrize("text", [
    "The same after an early overflow of the queue, as ns's schedule has it",
    "Improvement of 28 segments by bandwidth-delay product: 3 → 10 segments", "one", ""])
def test_no_word_stands_alone_on_the_last_line(text: str) -> None:
    broken = style.fitted(text, style.LARGE, bold=True)
    assert " ".join(broken) == text
    assert all(len(line) > len(text) / len(broken) / 2 for line in broken)


def test_a_number_stays_with_its_unit() -> None:
    broken = style.fitted("Improvement of an HTTPS fetch of 9 kB by bandwidth: 3 → 10 segments",
                          style.LARGE, bold=True)
    assert len(broken) == 2 and not broken[0].endswith("9"), broken
    assert style.fitted("12 runs · " * 9, style.SMALL)[0].endswith("runs")
    # Where both are too long for a line, neither is cut.
    assert style.fitted("1234 packets", style.SMALL, 0.5) == ["1234", "packets"]


def test_axes_are_placed_in_inches_of_the_body() -> None:
    frame = style.frame(Chart("A title", (), "64 trials"), 3.0)
    axes = frame.axes(1.0, 0.5, 4.0, 2.0)
    size = frame.figure.get_size_inches()
    assert axes.get_position().bounds == pytest.approx(
        (1.0 / size[0], (frame.bottom + 0.5) / size[1], 4.0 / size[0], 2.0 / size[1]))


@pytest.mark.parametrize(("lengths", "columns"), [
    ([], 1), ([10], 1), ([20, 20, 20], 3), ([30, 30, 30], 2), ([150, 150], 1),
    ([15, 15, 10, 10, 3], 4),
    # ColumnGetter downwards: the two long ones share a column.
    ([40, 40, 5, 5, 5, 5], 4)])
def test_a_legend_has_as_many_columns_as_fit(lengths: list[int], columns: int) -> None:
    assert style.legend_columns(lengths) == columns


@pytest.mark.parametrize(("span", "step"), [(9, 1), (9.1, 2), (0.03, 0.005), (163.0, 20),
                                            (8927.0, 1000)])
def test_tick_steps(span: float, step: float) -> None:
    assert style.tick_step(span) == pytest.approx(step)


def test_even_ticks_hold_zero() -> None:
    assert style.even_ticks(-30.0, 130.0) == [-20.0, 0.0, 20.0, 40.0, 60.0, 80.0, 100.0, 120.0]


def test_decades() -> None:
    assert [tick for tick in style.decades() if 0.01 <= tick <= 100] == pytest.approx(
        [0.01, 0.1, 1, 10, 100])


@pytest.mark.parametrize(("value", "text"), [
    (0.0, "0"), (-0.0, "0"), (-20.0, "−20"), (1e6, "1000000"), (0.00001, "0.00001"),
    (0.1 + 0.2, "0.3")])
def test_a_tick_is_a_plain_number(value: float, text: str) -> None:
    assert style.tick_label(value) == text


def test_an_interval_of_one_value_is_none() -> None:
    assert is_wide((1.0, 1.2))
    assert not is_wide((1.0, 1.02)) and not is_wide(None)


def test_a_users_matplotlibrc_changes_nothing() -> None:
    import matplotlib
    with matplotlib.rc_context({"font.size": 30, "savefig.bbox": "tight", "axes.grid": True}):
        with style.settings():
            assert matplotlib.rcParams["font.size"] == 10
            assert matplotlib.rcParams["savefig.bbox"] is None
            assert not matplotlib.rcParams["axes.grid"]
