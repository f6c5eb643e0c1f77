"""Quotes: numbers of sentences that people write come from findings, or are told to be missing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from firstflight.base.errors import FirstFlightError
from firstflight.base.stats import Estimate
from firstflight.findings.findings import Column, Finding, Rounded, Statement, Table
from firstflight.findings.render.values import quoted
from tests.unit.render.reports import report

COLUMNS = (Column("", is_text=True), Column("load", digits=2), Column("", "ms", "saved"),
           Column("saved", "%", digits=1, signed=True), Column("word", is_text=True))
ROWS = (("IW 10", 0.5, Estimate(12.34, (11.0, 14.0)), 5.25, "reproduced"),
        ("IW 10", 0.9, Rounded(-12.34, 2), -5.25, ""), ("IW 3", 0.9, None, 0.0, "421.5 (3)"))
FINDING = Finding("kb15", "15 kB", (Table("", COLUMNS[:1], ()), Table("", COLUMNS, ROWS)),
                  (Statement("How much is saved:", "from 1357 ± 34 to 25.0 %", numbers=(
                      Rounded(Estimate(1357.4, (1323.0, 1391.0)), 0), Rounded(-25.0, 1))),))


@pytest.mark.parametrize(("quote", "said"), [
    ("kb15 / IW 10 / saved: ms", "12.3 ± 1.5"), ("kb15 / IW 10 & 0.90 / saved: ms", "−12.34"),
    ("kb15 / IW 10 & 0.90 / saved: ms / 0", "12"), ("kb15 / IW 10 / saved: ms / 2", "12.34"),
    ("kb15 / IW 10 / saved, %", "+5.2"), ("kb15 / IW 10 / saved, % / 0", "5"),
    ("kb15 / IW 10 / saved, % / less|more", "less"), ("kb15 / IW 10 / word", "reproduced"),
    ("kb15 / IW 10 & 0.90 / saved, % / less|more", "more"), ("own.kb15 / IW 10 / load", "0.50"),
    ("kb15 / IW 3 / word / first word", "421.5"),
    ("kb15 / How much / 1", "1357"), ("kb15 / How much / 2", "−25.0")])
def test_a_quote_is_what_its_finding_says(quote: str, said: str) -> None:
    told = replace(report(), name="own", findings=(FINDING,))
    assert quoted(f"It is {{{quote}}}.", [told]) == f"It is {said}."


@pytest.mark.parametrize("quote", [
    "kb16 / IW 10 / load", "kb15 / IW 11 / load", "kb15 / 0.90 / load", "kb15 / IW 10 / loads",
    "kb15 / IW 10 / saved", "kb15 / How much / 3", "kb15 / How much / 0", "kb15", "",
    "kb15 / IW 10 / word / 1", "kb15 / IW 10 & 0.90 / word / first word",
    "kb15 / IW 10 / load / first word", "kb15 / IW 3 / saved, % / less|more", "kb15 / IW 3 / saved: ms / 1",
    "kb15 / IW 10 / load / x", "other.kb15 / IW 10 / load"])
def test_what_there_is_not_is_told(quote: str) -> None:
    told = replace(report(), name="own", findings=(FINDING,))
    with pytest.raises(FirstFlightError) as caught:
        quoted(f"It is {{{quote}}}.", [told])
    assert quote in str(caught.value)


def test_findings_of_others_are_named_after_their_scenario() -> None:
    own, other = (replace(report(), name=name, findings=(replace(FINDING, tables=(
        Table("", COLUMNS, ((name, *ROWS[0][1:]),)),)),)) for name in ("own", "other"))
    assert quoted("{kb15 / own / load} {other.kb15 / other / load}", [own, other]) == "0.50 0.50"
    with pytest.raises(FirstFlightError):
        quoted("{kb15 / other / load}", [own, other])


def test_bars_of_several_figures_are_counted_together() -> None:
    first, second = (replace(FINDING, name=name, bars=bars) for name, bars in (
        ("rtt", {"reproduced": 4, "undecided": 4}), ("bw", {"reproduced": 2, "direction": 1})))
    told = replace(report(), name="own", findings=(first, second))
    assert quoted("{rtt / bars}", [told]) == "of 8: 4 reproduced, 4 undecided"
    assert quoted("{own.rtt + own.bw / bars}", [told]) == (
        "of 11: 6 reproduced, 4 undecided, 1 direction")
    with pytest.raises(FirstFlightError):
        quoted("{rtt + bdp / bars}", [told])
