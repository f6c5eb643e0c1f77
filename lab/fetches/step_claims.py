"""What a source says of steps or levels, tested trial by trial, with one word for it."""

from __future__ import annotations

from collections.abc import Sequence

from lab.core.claims import NOT_MEASURED, word_of
from lab.core.findings import Statement
from lab.core.quantities import quantity
from lab.core.records import value_of
from lab.core.words import plain
from lab.fetches.record import Record
from lab.fetches.said import Claim


def tested(claim: Claim, metric: str, records: Sequence[Record]) -> Statement:
    """A claim on the trials of a figure, all of which have to count for it to be told."""
    columns = (metric, claim.at_most) if claim.at_most else (metric, *claim.more_where)
    known = [tuple(map(float, values)) for record in records if record.counts
             and None not in (values := [value_of(record, each) for each in columns])]
    if len(known) < len(records):
        return Statement(claim.says, f"not to be told: {len(records) - len(known)} of"
                         f" {len(records)} trials do not count.", NOT_MEASURED)
    return (_at_most if claim.at_most else _more_where)(claim, metric, known)


def _at_most(claim: Claim, metric: str, trials: Sequence[tuple[float, ...]]) -> Statement:
    over = sum(value > most for value, most in trials)
    exact = sum(value == most for value, most in trials)
    return Statement(claim.says, f"in {len(trials) - over} of {len(trials)} trials"
                     f" {quantity(metric).what} is at most {quantity(claim.at_most).what}, in"
                     f" {exact} of them as much.", word_of(not over))


def _more_where(claim: Claim, metric: str, trials: Sequence[tuple[float, ...]]) -> Statement:
    first, second = (quantity(each).what for each in claim.more_where)
    least = min(value for value, _, _ in trials)
    larger, others = ([value > least for value, *two in trials if (two[0] > two[1]) == is_larger]
                      for is_larger in (True, False))
    if not larger or not others:
        return Statement(claim.says, f"not to be told: {first} is larger than {second} in"
                         f" {len(larger)} of {len(trials)} trials.", NOT_MEASURED)
    found = (f"in {len(larger)} of {len(trials)} trials {first} is larger than {second}:"
             f" {sum(larger)} of these have more {quantity(metric).head} than {plain(least)}, and"
             f" {sum(others)} of the others.")
    return Statement(claim.says, found, word_of(
        all(larger) and not any(others),
        sum(larger) / len(larger) > sum(others) / len(others)))
