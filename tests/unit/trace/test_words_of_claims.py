"""The word on a claim of a trace, on both sides of every limit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from firstflight.base.errors import UsageError
from firstflight.findings.claims import (DIRECTION, NOT_REPRODUCED, REBUILT, REPRODUCED, counts,
                                         summary)
from firstflight.study.trace.findings import _judged
from firstflight.study.trace.scenario import TraceClaim, TraceCurve


def claim(relation: Any, published: float | None = None, within: float = 0.0) -> TraceClaim:
    return TraceClaim("fig", "It says.", relation, "window", TraceCurve("a", "b"), None, 0.0,
                      published,
                      within)


@pytest.mark.parametrize("relation, within, numbers, word", [
    ("larger", 0, (3, 2), DIRECTION), ("larger", 0, (2, 2), NOT_REPRODUCED),
    ("smaller", 0, (2, 3), DIRECTION), ("smaller", 0, (2, 2), NOT_REPRODUCED),
    ("equal", 1, (2, 3), REPRODUCED), ("equal", 1, (2, 3.5), NOT_REPRODUCED),
    ("equal", 1, (3.5, 2), NOT_REPRODUCED)])
def test_two_curves_are_compared(relation: str, within: float, numbers: tuple[float, float],
                                 word: str) -> None:
    assert _judged(claim(relation, within=within), numbers) == (word, "")


@pytest.mark.parametrize("numbers, word, said", [
    ((75, 100), REPRODUCED, ": 25 % less, published 20 %"),
    ((74, 100), DIRECTION, ": 26 % less, published 20 %"),
    ((99.96, 100), DIRECTION, ": 0 % less, published 20 %"),
    ((110, 100), NOT_REPRODUCED, ": -10 % less, published 20 %"),
    ((100, 100), NOT_REPRODUCED, ": 0 % less, published 20 %"),
    ((0, 0), NOT_REPRODUCED, ": 0 % less, published 20 %")])
def test_how_much_smaller(numbers: tuple[float, float], word: str, said: str) -> None:
    assert _judged(claim("percent_smaller", 20, 5), numbers) == (word, said)


@pytest.mark.parametrize("first, word", [(95, REPRODUCED), (106, NOT_REPRODUCED)])
def test_no_difference_at_all_may_have_been_published(first: float, word: str) -> None:
    assert _judged(claim("percent_smaller", 0, 5), (first, 100))[0] == word


@pytest.mark.parametrize("number, word", [(12, REPRODUCED), (8, REPRODUCED), (12.1, NOT_REPRODUCED),
                                          (7.9, NOT_REPRODUCED)])
def test_one_curve_beside_what_was_published(number: float, word: str) -> None:
    assert _judged(claim("is", 10, 2), (number,)) == (word, ", published 10")


@pytest.mark.parametrize("number, word", [(12, REBUILT), (12.1, NOT_REPRODUCED)])
def test_a_number_that_the_scenario_puts_in_reproduces_nothing(number: float, word: str) -> None:
    put_in = replace(claim("is", 10, 2), rebuilt=True)
    assert _judged(put_in, (number,)) == (word, ", 10 put in")


def test_only_a_number_can_be_put_in() -> None:
    with pytest.raises(UsageError, match="rebuilt goes with"):
        replace(claim("percent_smaller", 20, 5), second=TraceCurve("a", "c"),
                rebuilt=True).check("here")


def test_what_was_rebuilt_is_counted_apart() -> None:
    assert counts([REPRODUCED, REBUILT]) == {
        REPRODUCED: 1, "undecided": 0, DIRECTION: 0, NOT_REPRODUCED: 0, REBUILT: 1}
    assert summary(counts([REPRODUCED, REBUILT])).endswith("0 not reproduced, 1 rebuilt")
    assert "rebuilt" not in summary(counts([REPRODUCED]))
