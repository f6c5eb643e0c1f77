"""Every scenario's sentences are tested, and a relation holds only where it has to."""

from __future__ import annotations

from typing import Callable

import pytest

from firstflight.base.stats import Estimate
from firstflight.findings.findings import Column as Head
from firstflight.findings.findings import Interval, Rounded, Table
from firstflight.runs import scenario_file
from tests.golden.sentences import test_figure5, test_handley1999, test_ietf78, test_tls, test_today
from tests.golden.sentences.relations import (above, at_least, at_most, below, between, equal,
                                              falls, highest_at, lowest_at, never_falls,
                                              never_rises, no_different, rises, rises_and_falls)
from tests.golden.sentences.tables import STATED, Column, Number, Rows, Run

IMPORTED = (test_figure5, test_handley1999, test_ietf78, test_tls, test_today)  # they fill STATED
TABLE = Rows(Table("By load", (
    Head("response", is_text=True), Head("load"), Head("time", "ms"), Head("saved", "%"),
    Head("", "ms", "improved"), Head("95 % interval", "ms", "improved"), Head("start", "")), (
        ("5 kB", 0.5, 10.0, Estimate(33.0, (32.9, 33.1)), 7.0, Interval(5.0, 9.0), "141.9 (141)"),
        ("5 kB", 0.9, 12.0, Rounded(Estimate(29.5, (27.0, 32.0)), 1), 8.0, Interval(6.0, 10.0),
         "−421.5"),
        ("50 kB", 0.5, 11.0, Estimate(19.0), 30.0, "exact", None))))


def column(*values: float, within: float = 0.0) -> Column:
    """A column whose rows are a, b, c, …; each number's interval reaches `within` to both sides."""
    return Column("c", tuple("abcdefgh"[:len(values)]), tuple(
        Number(value, value - within, value + within) for value in values))


@pytest.mark.parametrize("name", scenario_file.names())
def test_each_scenario_has_its_sentences_tested(name: str) -> None:
    assert name in STATED


def test_a_word_of_the_first_line_or_result_without_assertion_is_found() -> None:
    run = Run("handley1999_idle")
    run.says("After a pause a validated window has decayed")
    assert {"leaves", "not"} <= run.untested()
    run.says("so no old full window leaves at once")
    run.says("after an application-limited period Linux's has not")
    assert run.untested() == set()


def test_words_that_no_document_has_are_refused() -> None:
    with pytest.raises(AssertionError):
        Run("zhao2019").says("it is often slower")
    with pytest.raises(AssertionError):
        Run("zhao2019").says("it is never slower", "docs/STUDIES.md")


@pytest.mark.parametrize("holds", [
    rises(column(1, 2, 4)), falls(column(4, 2, 1)), never_rises(column(4, 4, 1)),
    never_falls(column(1, 1, 4)), never_rises(column(1, 2), within=1),
    never_falls(column(2, 1), within=1), rises_and_falls(column(1, 3, 2)),
    above(column(2, 3), 1), above(column(2, 3), column(1, 2)), below(column(2, 3), 4),
    at_least(column(2, 3), 2), at_most(column(2, 3), 3), at_most(column(2, 3), 2, within=1),
    equal(column(2, 2), 2), equal(column(2, 3), 2, within=1), between(column(2, 3), 2, 3),
    no_different(column(1, -1, within=2), 0), highest_at(column(1, 5, 2), "b"),
    highest_at(column(1, 5, 4), "b", "c"), lowest_at(column(3, 5, 1), "c"),
    rises(column(1, 3, within=0.9)), above(column(2, within=0.9), 1)])
def test_a_relation_holds(holds: bool) -> None:
    assert holds


@pytest.mark.parametrize("holds", [
    rises(column(1, 1)), rises(column(1, 3, 2)), falls(column(2, 1, 1)), falls(column(2, 3)),
    never_rises(column(3, 1, 2)), never_rises(column(1, 2.1), within=1),
    never_falls(column(1, 3, 2)), never_falls(column(2.1, 1), within=1),
    rises_and_falls(column(1, 2, 3)), rises_and_falls(column(1, 3, 2), within=1),
    above(column(2, 1), 1), above(column(2, 3), column(1, 3)), below(column(1, 4), 4),
    at_least(column(2, 1), 2), at_most(column(3, 4), 3), equal(column(2, 3), 2),
    equal(column(2, 0.9), 2, within=1), between(column(1, 3), 2, 3), between(column(2, 4), 2, 3),
    no_different(column(1, 3, within=2), 0), no_different(column(1), 0),
    highest_at(column(1, 5, 5), "b"),
    highest_at(column(2, 5, 3), "a", "b"), lowest_at(column(1, 5, 1), "c"),
    # What the intervals leave open does not hold.
    rises(column(1, 2, within=0.6)), falls(column(2, 1, within=0.6)),
    above(column(2, within=1.1), 1), below(column(2, within=1.1), 3),
    never_falls(column(1, 1, within=0.1)), highest_at(column(1, 2, within=0.6), "b")])
def test_a_relation_that_is_false_or_open_does_not_hold(holds: bool) -> None:
    assert not holds


@pytest.mark.parametrize("lookup", [
    lambda: rises(column(1)), lambda: above(column(), 0), lambda: highest_at(column(1, 2), "z"),
    lambda: TABLE["retransmits, %"], lambda: TABLE["start"], lambda: TABLE.columns("total: "),
    lambda: TABLE.where("load", 0.7), lambda: TABLE.without("response", "5 MB"),
    lambda: Run("zhao2019").table("fig6"), lambda: Run("zhao2019").table("raw", "IW"),
    lambda: Run("zhao2019").claim("causes", "The paper")])
def test_a_relation_without_cells_is_an_error(lookup: Callable[[], object]) -> None:
    with pytest.raises(LookupError):
        lookup()


def test_cells_are_read_with_their_intervals() -> None:
    five = TABLE.where("response", "5 kB")
    assert five["saved, %"].numbers == (Number(33.0, 32.9, 33.1), Number(29.5, 27.0, 32.0))
    assert TABLE["improved: ms"].numbers == (
        Number(7.0, 5.0, 9.0), Number(8.0, 6.0, 10.0), Number.exact(30.0))
    assert five["start"].numbers == (Number.exact(141.9), Number.exact(-421.5))
    assert five["saved, %"].without_intervals.numbers == (Number.exact(33.0), Number.exact(29.5))
    assert not above(TABLE["saved, %"], 0)  # the last number has no interval: any is possible
    (difference, _) = (five["improved: ms"] - five["time, ms"]).numbers
    assert difference == Number(-3.0, -5.0, -1.0)


def test_rows_are_chosen_and_grouped_by_their_cells() -> None:
    assert TABLE.without("response", "5 kB")["time, ms"].numbers == (Number.exact(11.0),)
    assert [len(rows["time, ms"].numbers) for rows in TABLE.each("response")] == [2, 1]
    assert TABLE.named("load")["time, ms"].rows == ("0.5", "0.9", "0.5")
    with pytest.raises(ValueError):
        TABLE["time, ms"] - TABLE.where("load", 0.5)["time, ms"]
