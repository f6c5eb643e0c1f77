"""Cells: numbers as their column says, true minus signs, and nothing that is not to be seen."""

from __future__ import annotations

import pytest

from firstflight.base.stats import Estimate
from firstflight.findings.findings import Cell, Column, Finding, Interval, Rounded, Statement
from firstflight.findings.render.values import counted, counted_for_readers, written

PLAIN, SIGNED, WHOLE = Column("saved"), Column("off", signed=True), Column("mean", digits=0)


@pytest.mark.parametrize("cell, column, text", [
    (None, PLAIN, "–"), ("", PLAIN, ""), ("36 → 10", PLAIN, "36 → 10"), ("−1", PLAIN, "−1"),
    (2.25, PLAIN, "2.2"), (-12.34, PLAIN, "−12.3"), (-0.04, PLAIN, "0.0"),
    (-0.04, SIGNED, "+0.0"), (1.5, SIGNED, "+1.5"), (-1.5, SIGNED, "−1.5"),
    (431, PLAIN, "431"), (-3, PLAIN, "−3"), (3, SIGNED, "+3"), (True, PLAIN, "true"),
    (Estimate(1205.4, (1202.0, 1208.2), 5), WHOLE, "1205 ± 3"),
    (Estimate(-33.81, (-51.4, -16.0), 2), PLAIN, "−33.8 ± 17.7"),
    (Estimate(41.66, (40.66, 42.66), 2), SIGNED, "+41.7 ± 1.0"),
    (Estimate(586.2), PLAIN, "586.2"), (Interval(-1.34, 0.7), PLAIN, "−1.3 … 0.7"),
    (Rounded(0.0031, 3), WHOLE, "0.003"), (Rounded(-0.5, 2, signed=True), PLAIN, "−0.50"),
    (Rounded(Estimate(0.1214, (0.0, 0.2)), 3), WHOLE, "0.121 ± 0.100")])
def test_a_cell_is_written_as_its_column_says(cell: Cell, column: Column, text: str) -> None:
    assert written(cell, column) == text


def test_what_is_not_to_be_seen_becomes_a_space() -> None:
    assert written("two\nlines", PLAIN) == "two lines"


def test_words_are_counted_for_bars_and_for_statements() -> None:
    findings = (Finding("a", "", bars={"reproduced": 1, "not reproduced": 2}),
                Finding("b", "", bars={"reproduced": 3}, statements=(
                    Statement("x", "y", "not measured"), Statement("x", "y", "reproduced"),
                    Statement("x", "y"))))
    assert counted(findings) == ["bars: 4 of 6 reproduced, 0 undecided (too few data),"
                                 " 0 direction, 2 not reproduced",
                                 "statements: 1 reproduced, 1 not measured"]
    assert counted((Finding("a", ""),)) == []


def test_a_reader_is_told_what_a_result_means_where_it_is_met_first() -> None:
    findings = (Finding("a", "", bars={"reproduced": 1, "undecided": 0, "direction": 21}),
                Finding("b", "", bars={"direction": 7, "undecided": 13}, held_out=True),
                Finding("c", "", statements=(Statement("x", "y", "not reproduced"),)))
    assert counted_for_readers(findings) == [
        "Of 22 published bars: 21 direction (only the sign agrees), 1 reproduced (within the"
        " tolerance, with all of our 95 % interval).",
        "Of 1 published statement: 1 not reproduced.",
        "Of 20 bars held out (no parameter was chosen by them): 13 undecided (the interval crosses"
        " an end of the tolerance: more data would decide), 7 direction."]


def test_what_no_parameter_was_chosen_by_is_counted_apart() -> None:
    findings = (Finding("a", "", bars={"reproduced": 3, "undecided": 1}),
                Finding("b", "", bars={"reproduced": 1, "direction": 6}, held_out=True),
                Finding("c", "", statements=(Statement("x", "y", "undecided"),)))
    assert counted(findings) == [
        "bars: 3 of 4 reproduced, 1 undecided (too few data), 0 direction, 0 not reproduced",
        "bars held out: 1 of 7 reproduced, 0 undecided (too few data), 6 direction,"
        " 0 not reproduced", "statements: 1 undecided (too few data)"]
