"""Tables as text in a terminal that is narrower than the table."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firstflight.findings.findings import REQUESTED, Column, Table
from firstflight.findings.render.text import table_text

REQUESTED_COLUMNS = (Column("RTT", "ms", REQUESTED), Column("window", "segments", REQUESTED))
RESULTS = (Column("from", "ms", "time", rank=4), Column("to", "ms", "time", rank=5),
           Column("saved", "ms"), Column("n", rank=1))


def test_columns_with_equal_values_move_below_a_table_before_a_result_is_dropped() -> None:
    table = Table("", (*REQUESTED_COLUMNS, *RESULTS), (
        (50, 20, 165.0, 130.0, 35.0, 8), (50, 30, 165.0, 126.0, 39.0, 8)))
    wide, narrow = table_text(table, width=80), table_text(table, width=25)
    assert "In all rows" not in wide and " 50 " in wide
    assert "In all rows: RTT 50 ms; time: from 165.0 ms; n 8." in " ".join(narrow.split())
    assert "Too wide" not in narrow and "130.0" in narrow and "39.0" in narrow


def test_only_requested_columns_move_below_a_table_of_one_row() -> None:
    narrow = table_text(Table("", (*REQUESTED_COLUMNS, *RESULTS),
                              ((50, 20, 165.0, 130.0, 35.0, 8),)), width=21)
    assert "In all rows: RTT 50 ms; window 20 segments." in " ".join(narrow.split())
    assert "Too wide to show: n." in narrow and "35.0" in narrow


@pytest.mark.parametrize("width", [20, 40, 80])
@settings(deadline=None)
@given(rows=st.lists(st.tuples(*[st.integers(1, 3)] * 6), min_size=1, max_size=4))
def test_every_column_is_shown_or_named_below_the_table(width: int, rows: list[tuple[int, ...]]
                                                        ) -> None:
    columns = tuple(Column(f"column{place}", "ms", REQUESTED if place < 3 else "", rank=place)
                    for place in range(6))
    text = " ".join(table_text(Table("", columns, tuple(rows)), width).split())
    assert all(text.count(column.name) == 1 for column in columns)
