"""Claims: one word for each published number, and the test behind it."""

from __future__ import annotations

import pytest

from lab.core.charts import Ends, is_wide
from lab.core.claims import (DIRECTION_ONLY, NOT_REPRODUCED, REPRODUCED, Compared, counts, judge,
                             summary, word_of)


@pytest.mark.parametrize(("compared", "word", "test"), [
    (Compared(12, 10, 3, unit="ms"), REPRODUCED, "2.0 ≤ 3.0 ms"),
    (Compared(13, 10, 3, unit="ms"), REPRODUCED, "3.0 ≤ 3.0 ms"),
    (Compared(14, 10, 3, (9.0, 19.0), "ms"), REPRODUCED, "4.0 > 3.0 ms, inside the interval"),
    (Compared(14, 10, 3, (11.0, 17.0), "ms"), DIRECTION_ONLY, "4.0 > 3.0 ms"),
    (Compared(14, 10, 3, None, "ms"), DIRECTION_ONLY, "4.0 > 3.0 ms"),
    (Compared(-14, 10, 3, None, "ms"), NOT_REPRODUCED, "24.0 > 3.0 ms"),
    (Compared(-1, 1, 3, None, "ms"), REPRODUCED, "2.0 ≤ 3.0 ms"),
])
def test_one_number(compared: Compared, word: str, test: str) -> None:
    assert judge([compared]) == (word, test)


def test_every_number_of_a_bar_has_to_agree() -> None:
    near, far, other = Compared(10, 10, 1), Compared(20, 10, 1), Compared(-20, 10, 1)
    assert judge([near, near])[0] == REPRODUCED
    assert judge([near, far]) == (DIRECTION_ONLY, "0.0 ≤ 1.0 ; 10.0 > 1.0 ")
    assert judge([far, other])[0] == NOT_REPRODUCED


def test_a_published_zero_has_no_direction() -> None:
    assert judge([Compared(5, 0, 1), Compared(20, 10, 1)])[0] == DIRECTION_ONLY


def test_nothing_published_has_no_word() -> None:
    assert judge([]) == ("", "")


def test_words() -> None:
    assert [word_of(True), word_of(False, True), word_of(False)] == [
        REPRODUCED, DIRECTION_ONLY, NOT_REPRODUCED]


def test_words_are_counted_and_told() -> None:
    counted = counts([REPRODUCED, "", NOT_REPRODUCED, REPRODUCED])
    assert counted == {REPRODUCED: 2, DIRECTION_ONLY: 0, NOT_REPRODUCED: 1}
    assert summary(counted) == "2 of 3 reproduced, 0 direction only, 1 not reproduced"
    assert summary(counts([])) == ""


@pytest.mark.parametrize(("ends", "is_one"), [
    (None, False), ((1.0, 1.0), False), ((0.0, 0.05), False), ((0.0, 0.0501), True)])
def test_an_interval_that_prints_as_one_value_is_none(ends: Ends | None, is_one: bool) -> None:
    assert is_wide(ends) is is_one
