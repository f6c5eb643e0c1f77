"""Findings on several loads in a browser: paints with their range, and conditions on paints."""

from __future__ import annotations

import pytest

from firstflight.commands import conditions
from firstflight.commands.conditions import OfRecords
from firstflight.workloads.page import analysis, browser_findings
from tests.golden.answers import browsed_phases


def test_paints_have_a_mean_a_range_and_a_difference_with_an_interval() -> None:
    (setting,) = analysis.group_settings(browsed_phases())
    (table,) = browser_findings.paint_tables([setting], [""])
    largest = "largest contentful paint"
    assert table.column("least", largest) == [602.0, 702.0]
    assert table.column("most", largest) == [616.0, 716.0]
    saved = setting.saved(10, browser_findings.LARGEST_PAINT)
    assert saved is not None and saved.draws == 8 and saved.absolute.value == pytest.approx(-100)


def test_loads_equal_to_a_tenth_of_a_millisecond_count_as_one() -> None:
    (setting,) = analysis.group_settings(browsed_phases())
    assert [times.page.n for times in setting.counting] == [1, 1]
    assert [len(times.records) for times in setting.counting] == [8, 8]


@pytest.mark.parametrize(("text", "holds"), [
    ("largest_paint_ms(4) - largest_paint_ms(10) < -99", True),
    ("largest_paint_ms(4) > largest_paint_ms(10)", False),
    ("(largest_paint_ms(10) - largest_paint_ms(4)) / page_ms(4) > 0.1", True)])
def test_a_condition_takes_the_difference_of_two_paints(text: str, holds: bool) -> None:
    assert conditions.read(text).holds(OfRecords(browsed_phases()))[0] is holds
