"""Connections over time: what was sent beside the window, and what is not there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from firstflight.findings import drawing
from firstflight.findings.drawing import connections, style
from tests.unit.drawing import samples


@pytest.fixture(scope="module")
def drawn() -> Any:
    return drawing.figure_of(samples.trace_chart())


@pytest.fixture(scope="module")
def rows(drawn: Any) -> list[list[Any]]:
    """By row from the top: the axes of sequence numbers, of the window, and of the RTT."""
    by_place: dict[float, list[Any]] = {}
    for axes in drawn.axes:
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
    assert {row[0].get_ylim() for row in rows[:2]} == {rows[0][0].get_ylim()}
    assert [row[0].get_xlabel() for row in rows] == ["", "", "seconds after the request"]


def test_a_window_that_nothing_uses_leaves_its_axis(rows: list[list[Any]]) -> None:
    right = rows[1][1]
    assert right.get_ylim()[1] < 30 and samples.said(right) == ["up to 2178"]
    assert samples.said(rows[0][1]) == []


def test_rows_that_are_compared_share_their_scales(rows: list[list[Any]]) -> None:
    """A window of two segments looks like one of thirty where each has an axis of its own."""
    for column in (0, 1):
        assert len({row[column].get_ylim() for row in rows[:2]}) == 1


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
    drawn = drawing.figure_of(replace(chart, rows=chart.rows[:1], rtt=False))
    assert len(drawn.axes) == 2
    assert samples.said(drawn.legends[0]) == [
        "data sent", "retransmitted", "acknowledged", "congestion window", "ssthresh",
        "in flight"]


def test_only_what_is_shown_stretches_the_axis() -> None:
    chart = samples.trace_chart()
    late = replace(chart.rows[0], sent=((0.1, 1.0), (2.5, 900.0)))
    drawn = drawing.figure_of(replace(chart, rows=(late,), to_s=2.0))
    assert drawn.axes[0].get_ylim()[1] < 10


def test_the_sequence_may_show_another_time_than_the_window() -> None:
    chart = replace(samples.trace_chart(), from_s=0.0, to_s=6.0, sequence_s=(4.5, 4.6))
    drawn = drawing.figure_of(chart)
    left, right = drawn.axes[:2]
    assert left.get_xlim() == (4.5, 4.6) and right.get_xlim() == (0.0, 6.0)
