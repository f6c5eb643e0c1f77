"""Figures of cells, packets, times, steps, shares, connections: written, and nothing hidden."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy
import pytest
from matplotlib.colors import to_rgba

from firstflight.findings import drawing
from firstflight.findings.charts import Mark, Square, SquareMap, TimeChart
from firstflight.findings.drawing import connections, squares, style
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
    assert saved[2] > saved[0] and lost[0] >= lost[2] and min(same) > 0.99
    assert len(set(nothing)) == 1
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


# Steps --------------------------------------------------------------------------------

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


# Shares over two quantities -----------------------------------------------------------

@pytest.fixture(scope="module")
def grid() -> Any:
    return drawing.figure_of(samples.grid_chart())


def test_shares_stand_over_their_quantities(grid: Any) -> None:
    axes = grid.axes[0]
    (mesh,) = [part for part in axes.collections if part.get_array() is not None]
    shares = numpy.array(mesh.get_array()).reshape(4, 3)
    assert shares[:, 1].tolist() == [40, 9, 0.1, 0.2]
    assert mesh.get_array().reshape(4, 3).mask[3, 0]  # next to nothing is left white
    assert mesh.norm.vmin == pytest.approx(1e-3) and mesh.norm.vmax == 40


def test_axes_are_logarithmic_with_plain_decades(grid: Any) -> None:
    axes, shades = grid.axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert samples.tick_labels(axes.xaxis) == ["1", "10", "100", "1000"]
    assert samples.tick_labels(axes.yaxis) == ["100", "1000"]
    assert samples.tick_labels(shades.yaxis) == ["0.001", "0.01", "0.1", "1", "10"]
    assert shades.get_ylabel() == "share (%)"


def test_lines_of_equal_product_end_at_the_edges_with_their_label(grid: Any) -> None:
    axes = grid.axes[0]
    (line,) = axes.lines  # the one outside is not grid
    x, y = line.get_xdata(), line.get_ydata()
    assert [a * b for a, b in zip(x, y)] == pytest.approx([8000, 8000])
    assert x[0] == 1 and y[1] == 20
    (label,) = axes.texts
    assert label.get_text() == "BDP 1000 B" and -90 < label.get_rotation() - 360 < 0
    place = label.get_position()
    assert place[0] * place[1] == pytest.approx(8000)


# Times --------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def times() -> Any:
    return drawing.figure_of(samples.time_chart())


def test_times_and_published_times_are_measured_from_zero(times: Any) -> None:
    (axes,) = times.axes
    assert [bar.get_height() for bar in axes.patches] == [805.0, 615.0, 566.0]
    assert axes.get_ylim() == (0, pytest.approx(1.12 * 808))
    markers = [line for line in axes.lines if line.get_marker() == "D"]
    assert [line.get_ydata()[0] for line in markers] == [808, 665, 642]
    (interval,) = [line for line in axes.lines if line.get_marker() == "_"]
    assert interval.get_xdata()[0] < 1 < markers[1].get_xdata()[0], "neither hides the other"
    assert list(interval.get_ydata()) == [600, 640]


def test_below_stand_times_what_is_saved_and_counts(times: Any) -> None:
    (axes,) = times.axes
    assert samples.said(axes) == [
        "ms ", "805", "615", "566", "saved ", "23.6 %", "(29.8 %)", "n ", "2", "2", "2",
        "excluded ", "1", "Initial window"]
    assert [text.get_color() for text in axes.texts if text.get_text() == "1"] == [style.ALARM]
    assert samples.said(times.legends[0]) == [
        "published by them", "95 % interval of what is saved"]
    assert any(text.startswith("In brackets") for text in samples.said(times))


def test_without_published_times_the_legend_names_none() -> None:
    chart = TimeChart("Alone", (), baseline="3", bars=(
        samples.time_bar(3, 532.0, 0.0), samples.time_bar(10, 368.0, 30.8)))
    times = drawing.figure_of(chart)
    assert not times.legends and not times.axes[0].lines


# Connections over time ----------------------------------------------------------------

@pytest.fixture(scope="module")
def traces() -> Any:
    return drawing.figure_of(samples.trace_chart())


@pytest.fixture(scope="module")
def rows(traces: Any) -> list[list[Any]]:
    """By row from the top: the axes of sequence numbers, of the window, and of the RTT."""
    by_place: dict[float, list[Any]] = {}
    for axes in traces.axes:
        by_place.setdefault(round(axes.get_position().y0, 4), []).append(axes)
    return [by_place[place] for place in sorted(by_place, reverse=True)]


def test_a_row_has_its_packets_beside_its_window(rows: list[list[Any]]) -> None:
    left, right, rtt = rows[0]
    sent, acked, again = left.lines
    assert (list(sent.get_xdata()), list(sent.get_ydata())) == ([0.1, 1.0], [1, 4])
    assert acked.get_drawstyle() == "steps-post" and list(acked.get_ydata()) == [0, 3]
    assert (list(again.get_xdata()), list(again.get_ydata())) == ([1.5], [2])
    assert again.get_color() == connections.RETRANSMITTED
    window, ssthresh = right.lines
    assert list(window.get_ydata()) == [2, 4, 8] and list(ssthresh.get_ydata()) == [4, 8]
    assert len(right.collections) == 1 and right.get_ylim()[0] == 0
    assert list(rtt.lines[0].get_ydata()) == [100, 300]


def test_all_rows_share_their_times_and_the_rtt_its_axis(rows: list[list[Any]]) -> None:
    assert {axes.get_xlim() for row in rows for axes in row} == {(0.0, 3.0)}
    assert [row[2].get_ylim() for row in rows[:2]] == 2 * [(0.0, pytest.approx(324.0))]
    for column in (0, 1):  # a window of two segments looks like one of thirty on an axis of its own
        assert len({row[column].get_ylim() for row in rows[:2]}) == 1
    assert [row[0].get_xlabel() for row in rows] == ["", "", "seconds after the request"]


def test_a_window_that_nothing_uses_leaves_its_axis(rows: list[list[Any]]) -> None:
    right = rows[1][1]
    assert right.get_ylim()[1] < 30 and samples.said(right) == ["up to 2178"]
    assert samples.said(rows[0][1]) == []


def test_a_failed_verdict_and_an_absent_connection_are_red(rows: list[list[Any]]) -> None:
    titles = [row[0]._left_title for row in rows]
    assert [title.get_text() for title in titles] == [
        "Linux", "grows unused (its verdict failed)", "none"]
    assert [title.get_color() for title in titles] == [style.INK, style.ALARM, style.ALARM]
    left, right = rows[2]
    (why,) = left.texts
    assert why.get_text().startswith("skipped: the kernel lacks it") and "\n" in why.get_text()
    assert why.get_color() == style.ALARM and not left.lines and not right.lines


def test_without_the_rtt_its_axis_and_name_are_absent() -> None:
    chart = samples.trace_chart()
    traces = drawing.figure_of(replace(chart, rows=chart.rows[:1], rtt=False))
    assert len(traces.axes) == 2
    assert samples.said(traces.legends[0]) == [
        "data sent", "retransmitted", "acknowledged", "congestion window", "ssthresh",
        "in flight"]


def test_only_what_is_shown_stretches_the_axis() -> None:
    chart = samples.trace_chart()
    late = replace(chart.rows[0], sent=((0.1, 1.0), (2.5, 900.0)))
    traces = drawing.figure_of(replace(chart, rows=(late,), to_s=2.0))
    assert traces.axes[0].get_ylim()[1] < 10


def test_the_sequence_may_show_another_time_than_the_window() -> None:
    chart = replace(samples.trace_chart(), from_s=0.0, to_s=6.0, sequence_s=(4.5, 4.6))
    traces = drawing.figure_of(chart)
    left, right = traces.axes[:2]
    assert left.get_xlim() == (4.5, 4.6) and right.get_xlim() == (0.0, 6.0)
