"""Claims: published numbers and sentences next to measured ones, and one result for each.

Two one-sided tests of equivalence decide, by intervals (Schuirmann 1987, J. Pharmacokinetics and
Biopharmaceutics 15(6)). The published number has a tolerance, the measured one a 95 % interval:

- "reproduced": the whole interval lies within the tolerance;
- "not reproduced": the whole interval lies outside;
- "undecided": the interval crosses an end of the tolerance, and more data would decide;
- "direction": only the sign agrees; the source claims no more, or its number is too far away.

So a wider interval never makes anything reproduced. This module judges numbers; it knows no figure
and no scenario.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from firstflight.base.words import format_interval

REPRODUCED, UNDECIDED = "reproduced", "undecided"
DIRECTION, NOT_REPRODUCED = "direction", "not reproduced"
REBUILT = "rebuilt"  # the scenario itself puts in the number, so nothing is reproduced
NOT_MEASURED = "not measured"
OUTCOMES = (REPRODUCED, UNDECIDED, DIRECTION, NOT_REPRODUCED, REBUILT)
WITHIN_PERCENT = 30.0  # of the published milliseconds
WITHIN_POINTS = 3.0  # of the published percentage
# Fewer independent values have no interval: resampled, they vary too little.
LEAST_DRAWS = 10

Ends = tuple[float, float]
ANY: Ends = (-math.inf, math.inf)  # the interval of a number of which nothing is known


@dataclass(frozen=True)
class Published:
    """What was published of a bar.

    absolute: the improvement in the unit of the figure's metric; percent: in percent of the
    baseline, converted where the source prints another percentage. level: in a window sweep, the
    value under this window. error, error_points: how far rounding, or reading a figure, may have
    moved a value. responses_percent: the share of responses.
    """

    absolute: float | None = None
    percent: float | None = None
    level: float | None = None
    error: float = 0.0
    error_points: float = 0.0
    responses_percent: float | None = None


@dataclass(frozen=True)
class Result:
    """The result of one bar or claim: one of OUTCOMES, and the test that decided, in words."""

    outcome: str
    test: str = ""


NOTHING_PUBLISHED = Result("")


@dataclass(frozen=True)
class ComparedNumber:
    """A measured number, the published one, and how far apart they may be (allowed).

    interval: the 95 % interval of the measured number. Both ends are its value where it cannot
    vary; None where the interval is not known. unit: of all these, for the test in words.
    """

    measured: float
    published: float
    allowed: float
    interval: Ends | None
    unit: str = ""

    @property
    def ends(self) -> Ends:
        """The interval of the measured number, ANY where it is not known."""
        return ANY if self.interval is None else self.interval

    @property
    def result(self) -> str:
        """Whether the numbers are near: REPRODUCED, NOT_REPRODUCED or UNDECIDED."""
        low, high = (end - self.published for end in self.ends)
        return equivalent((low, high), self.allowed)

    @property
    def has_direction(self) -> bool:
        """Whether the whole interval has the published sign; True where zero was published."""
        return not self.published or all(end * self.published > 0 for end in self.ends)

    @property
    def test(self) -> str:
        """The test that decided, in words."""
        where = {REPRODUCED: "within", UNDECIDED: "partly within",
                 NOT_REPRODUCED: "not within"}[self.result]
        band = format_interval((self.published - self.allowed, self.published + self.allowed))
        lacking = "no interval: " if self.interval is None else ""
        return f"{lacking}{where} {band} {self.unit}".rstrip()


def equivalent(difference: Ends, allowed: float) -> str:
    """Compare the interval of a difference with ± allowed.

    REPRODUCED where all of it lies within, NOT_REPRODUCED where all lies outside, else UNDECIDED.
    """
    low, high = difference
    if -allowed <= low and high <= allowed:
        return REPRODUCED
    return NOT_REPRODUCED if high < -allowed or low > allowed else UNDECIDED


def larger(first: Ends, second: Ends) -> str:
    """Whether the first number is larger than the second, by their intervals.

    DIRECTION where it is, NOT_REPRODUCED where it is not, UNDECIDED where the intervals overlap.
    """
    if first[0] > second[1]:
        return DIRECTION
    return NOT_REPRODUCED if first[1] <= second[0] else UNDECIDED


def judge(numbers: Sequence[ComparedNumber]) -> Result:
    """The result of one bar or claim; NOTHING_PUBLISHED without a number.

    Every number has to be near. One that is not near decides, whatever is known of the others.
    """
    if not numbers:
        return NOTHING_PUBLISHED
    results = [number.result for number in numbers]
    if NOT_REPRODUCED in results:
        outcome = outcome_of(False, all(number.has_direction for number in numbers))
    else:
        outcome = UNDECIDED if UNDECIDED in results else REPRODUCED
    return Result(outcome, "; ".join(number.test for number in numbers))


def worst(outcomes: Iterable[str]) -> str:
    """The outcome of a claim on several places: the worst one of theirs. There is one at least."""
    known = set(outcomes)
    return next(outcome for outcome in (NOT_REPRODUCED, UNDECIDED, DIRECTION, REPRODUCED)
                if outcome in known)


def outcome_of(holds: bool, direction: bool = False) -> str:
    """The outcome where no interval is needed: whether the claim holds, or its direction."""
    if holds:
        return REPRODUCED
    return DIRECTION if direction else NOT_REPRODUCED


def counts(outcomes: Iterable[str]) -> dict[str, int]:
    """How many have each outcome, in the order of OUTCOMES; without "", and without "0 rebuilt"."""
    counts = Counter(outcomes)
    return {outcome: counts[outcome] for outcome in OUTCOMES
            if counts[outcome] or outcome != REBUILT}


def in_full(outcome: str) -> str:
    """An outcome where there is room for more: "undecided" with its reason."""
    return f"{outcome} (too few data)" if outcome == UNDECIDED else outcome


MEANINGS = {REPRODUCED: "within the tolerance, with all of our 95 % interval",
            UNDECIDED: "the interval crosses an end of the tolerance: more data would decide",
            DIRECTION: "only the sign agrees",
            REBUILT: "a number that the scenario puts in"}


def explained(counted: Mapping[str, int], meanings: Mapping[str, str] = MEANINGS) -> str:
    """Such as "21 direction (only the sign agrees), 1 reproduced (…)", the most frequent first."""
    return ", ".join(
        f"{counted[outcome]} {outcome}"
        + (f" ({meanings[outcome]})" if outcome in meanings else "")
        for outcome in sorted(counted, key=lambda outcome: -counted[outcome]) if counted[outcome])


def summary(counted: Mapping[str, int]) -> str:
    """Such as "5 of 9 reproduced, 1 undecided (too few data), 2 direction, 1 not reproduced".

    "" for none.
    """
    total = sum(counted.values())
    if not total:
        return ""
    first, *others = (
        f"{counted.get(outcome, 0)}{f' of {total}' if outcome == REPRODUCED else ''}"
        f" {in_full(outcome)}" for outcome in OUTCOMES if outcome in counted or outcome != REBUILT)
    return ", ".join([first, *others])
