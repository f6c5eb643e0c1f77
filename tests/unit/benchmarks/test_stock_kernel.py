"""Two kernels side by side: what counts as a difference, and what the row shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from benchmarks.stock_kernel import differ, row
from lab.core.records import FAIL
from tests.golden.stored_fetches import stored

RECORD = next(record for record in stored("zhao2019") if not record.retransmissions)


@pytest.mark.parametrize("change", [
    {"seen_initcwnd": 4}, {"seen_first_flight": 2}, {"verdict": FAIL}])
def test_another_window_first_flight_or_verdict_is_a_difference(change: dict[str, Any]) -> None:
    assert not differ(RECORD, replace(RECORD, total_ms=1.0))
    assert differ(RECORD, replace(RECORD, **change))
    assert differ(replace(RECORD, **change), RECORD)


def test_the_row_has_both_times_and_how_much_more_the_stock_kernel_takes() -> None:
    assert RECORD.total_ms is not None
    more = replace(RECORD, total_ms=RECORD.total_ms + 1.25)
    shown = row(RECORD, more)
    assert f"{RECORD.total_ms:.2f}" in shown and "+1.25" in shown and "+0.00" in shown


def test_the_model_is_no_measure_of_what_was_sent_again() -> None:
    assert row(RECORD, replace(RECORD, retransmissions=1)).endswith("–")
