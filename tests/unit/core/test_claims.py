"""Claims: one result for each published number, and the test behind it; each has a tolerance."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as some

from firstflight.findings.charts import is_wide
from firstflight.findings.claims import (DIRECTION, NOT_REPRODUCED, REBUILT, REPRODUCED, UNDECIDED,
                                         WORDS, ComparedNumber, Ends, Result, counts, equivalent,
                                         judge, larger, summary, word_of)
from firstflight.runs import scenario_file


numbers = some.floats(-1e6, 1e6)
widths = some.floats(0, 1e6)


@pytest.mark.parametrize(("compared", "word", "test"), [
    (ComparedNumber(12, 10, 3, (12, 12), "ms"), REPRODUCED, "within 7.0 … 13.0 ms"),
    (ComparedNumber(13, 10, 3, (13, 13), "ms"), REPRODUCED, "within 7.0 … 13.0 ms"),
    (ComparedNumber(12, 10, 3, (11, 13), "ms"), REPRODUCED, "within 7.0 … 13.0 ms"),
    (ComparedNumber(12, 10, 3, (11, 13.1), "ms"), UNDECIDED, "partly within 7.0 … 13.0 ms"),
    (ComparedNumber(7.5, 10, 3, (6.9, 8), "ms"), UNDECIDED, "partly within 7.0 … 13.0 ms"),
    (ComparedNumber(10, 10, 3, (-50, 70), "ms"), UNDECIDED, "partly within 7.0 … 13.0 ms"),
    (ComparedNumber(10, 10, 3, None, "ms"), UNDECIDED, "no interval: partly within 7.0 … 13.0 ms"),
    (ComparedNumber(400, 10, 3, None, "ms"), UNDECIDED, "no interval: partly within 7.0 … 13.0 ms"),
    (ComparedNumber(14, 10, 3, (9, 19), "ms"), UNDECIDED, "partly within 7.0 … 13.0 ms"),
    (ComparedNumber(16, 10, 3, (13.1, 19), "ms"), DIRECTION, "not within 7.0 … 13.0 ms"),
    (ComparedNumber(3, 10, 3, (0.1, 6.9), "ms"), DIRECTION, "not within 7.0 … 13.0 ms"),
    (ComparedNumber(3, 10, 3, (0, 6.9), "ms"), NOT_REPRODUCED, "not within 7.0 … 13.0 ms"),
    (ComparedNumber(-14, 10, 3, (-14, -14), "ms"), NOT_REPRODUCED, "not within 7.0 … 13.0 ms"),
    (ComparedNumber(-1, 1, 3, (-1, -1)), REPRODUCED, "within −2.0 … 4.0"),
])
def test_one_number(compared: ComparedNumber, word: str, test: str) -> None:
    assert judge([compared]) == Result(word, test)


def exactly(measured: float, published: float, allowed: float) -> ComparedNumber:
    return ComparedNumber(measured, published, allowed, (measured, measured))


def test_every_number_of_a_bar_has_to_agree() -> None:
    near, far, other = exactly(10, 10, 1), exactly(20, 10, 1), exactly(-20, 10, 1)
    unknown = ComparedNumber(10, 10, 1, (5, 15))
    assert judge([near, near]).word == REPRODUCED
    assert judge([near, far]) == Result(
        DIRECTION, "within 9.0 … 11.0; not within 9.0 … 11.0")
    assert judge([far, other]).word == NOT_REPRODUCED
    assert judge([near, unknown]).word == UNDECIDED
    assert judge([far, unknown]).word == DIRECTION  # whatever the other is
    assert judge([far, ComparedNumber(10, 10, 1, (-5, 25))]).word == NOT_REPRODUCED


def test_a_published_zero_has_no_direction() -> None:
    assert judge([exactly(5, 0, 1), exactly(20, 10, 1)]).word == DIRECTION


def test_nothing_published_has_no_result() -> None:
    assert judge([]) == Result("", "")


@settings(max_examples=40)
@given(some.lists(some.tuples(numbers, numbers, widths, widths, widths, widths), min_size=1,
                  max_size=3))
def test_a_wider_interval_never_makes_more_certain(bar: list[tuple[float, ...]]) -> None:
    """From data to fewer: the interval around the same number grows at either end."""
    narrow = [ComparedNumber(at, published, allowed, (at - below, at + above))
              for at, published, allowed, below, above, _ in bar]
    wide = [ComparedNumber(each.measured, each.published, each.allowed,
                           (each.ends[0] - more, each.ends[1] + more))
            for each, (*_, more) in zip(narrow, bar)]
    unknown = [ComparedNumber(each.measured, each.published, each.allowed, None) for each in narrow]
    before, after = judge(narrow).word, judge(wide).word
    # Most certain first: what has fewer data stays where it is, or becomes less certain.
    order = {REPRODUCED: (REPRODUCED, UNDECIDED), UNDECIDED: (UNDECIDED,),
             DIRECTION: (DIRECTION, NOT_REPRODUCED, UNDECIDED),
             NOT_REPRODUCED: (NOT_REPRODUCED, UNDECIDED)}
    assert after in order[before]
    assert judge(unknown).word == UNDECIDED


@pytest.mark.parametrize(("first", "second", "word"), [
    ((5, 6), (3, 4), DIRECTION), ((5, 6), (3, 5), UNDECIDED), ((3, 4), (5, 6), NOT_REPRODUCED),
    ((5, 5), (5, 5), NOT_REPRODUCED), ((3, 9), (5, 6), UNDECIDED)])
def test_larger_is_what_is_so_whatever_the_data_leave_open(first: Ends, second: Ends,
                                                           word: str) -> None:
    assert larger(first, second) == word


@pytest.mark.parametrize(("difference", "word"), [
    ((-5, 5), REPRODUCED), ((-5.1, 5), UNDECIDED), ((-5, 5.1), UNDECIDED), ((-9, 9), UNDECIDED),
    ((5, 9), UNDECIDED), ((5.1, 9), NOT_REPRODUCED), ((-9, -5.1), NOT_REPRODUCED)])
def test_values_are_alike_where_all_of_the_interval_is_small(difference: Ends, word: str) -> None:
    assert equivalent(difference, 5) == word


def test_words() -> None:
    assert [word_of(True), word_of(False, True), word_of(False)] == [
        REPRODUCED, DIRECTION, NOT_REPRODUCED]


def test_results_are_counted_and_told() -> None:
    counted = counts([REPRODUCED, "", NOT_REPRODUCED, REPRODUCED, UNDECIDED])
    assert counted == {REPRODUCED: 2, UNDECIDED: 1, DIRECTION: 0, NOT_REPRODUCED: 1}
    assert list(counted) == [word for word in WORDS if word != REBUILT]
    assert summary(counted) == ("2 of 4 reproduced, 1 undecided (too few data), 0 direction,"
                                " 1 not reproduced")
    assert summary(counts([])) == ""


@pytest.mark.parametrize(("ends", "is_one"), [
    (None, False), ((1.0, 1.0), False), ((0.0, 0.05), False), ((0.0, 0.0501), True)])
def test_an_interval_that_prints_as_one_value_is_none(ends: Ends | None, is_one: bool) -> None:
    assert is_wide(ends) is is_one


# Of the project's scenarios ----------------------------------------------------------

CLAIMS = [(name, claim) for name in scenario_file.names()
          for claim in scenario_file.find(name).raw.get("claim", [])]
LEAST = {"fetches": 0.0, "load": 0.1, "trace": 1.0}  # in the unit of the number; segments
PERCENT_POINTS = 3


@pytest.mark.parametrize("name, claim", CLAIMS, ids=lambda value: value if isinstance(
    value, str) else str(value["says"])[:40])
def test_what_is_reproduced_is_within_a_third_of_what_was_published(
        name: str, claim: dict[str, object]) -> None:
    if "published" not in claim:
        assert "within" not in claim or claim["relation"] == "equal"
        return
    published, within = float(str(claim["published"])), float(str(claim.get("within", 0)))
    kind = str(scenario_file.find(name).raw.get("kind", "fetches"))
    of_time = kind == "load" and not str(claim["quantity"]).endswith("_percent")
    assert within <= max(0.31 * published, PERCENT_POINTS if of_time else LEAST[kind])


def test_what_was_read_in_an_abstract_is_marked() -> None:
    marked = {name for name, claim in CLAIMS if claim.get("abstract_only")}
    assert marked == {"chou2026_cliffs", "chou2026_mldsa"}
    assert all(claim.get("abstract_only") for name, claim in CLAIMS if name in marked)
