"""Quantities; their ranges and the words of a refusal are in golden/rendered/quantities.words."""

from __future__ import annotations

import math

import pytest

from firstflight.base.errors import UsageError
from firstflight.findings.quantities import QUANTITIES, of_column, quantity


def test_whole_quantities_are_int_and_others_float() -> None:
    assert isinstance(QUANTITIES["initcwnd"].check(10.0, "here"), int)
    assert isinstance(QUANTITIES["rtt_ms"].check(20, "here"), float)


@pytest.mark.parametrize(("name", "value", "words"), [
    ("rtt_ms", math.inf, "inf is not a finite number"),
    ("loss_percent", 1e-8, "a loss rate of 1e-08 % is out of range; it can be 0, or 0.0001 to 99 %")])
def test_what_the_ends_of_a_range_do_not_show_is_refused(name: str, value: float, words: str) -> None:
    with pytest.raises(UsageError, match=f"^here: {words}$"):
        QUANTITIES[name].check(value, "here")


def test_a_column_that_is_not_listed_has_its_own_words_and_no_range() -> None:
    assert of_column("not_listed").axis == "Not listed"
    assert of_column("not_listed").check(-1e9, "here") == -1e9


def test_a_name_that_is_misspelt_is_no_quantity() -> None:
    with pytest.raises(KeyError, match="rtt_msec"):
        quantity("rtt_msec")
