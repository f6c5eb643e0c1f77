"""Compares published numbers with measured ones; each comparison has a result.

Two one-sided tests of equivalence decide (Schuirmann 1987, J. Pharmacokinetics and
Biopharmaceutics 15(6)). The published number has a tolerance, and the measured one a 95 % interval:

- "reproduced": the whole interval lies within the tolerance;
- "not reproduced": the whole interval lies outside;
- "undecided": the interval crosses an end of the tolerance, and more data would decide;
- "direction": only the sign agrees. The source claims no more, or its number is too far away.

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
REBUILT = "rebuilt"  # the scenario itself contains the number, so nothing is reproduced
NOT_MEASURED = "not measured"
OUTCOMES = (REPRODUCED, UNDECIDED, DIRECTION, NOT_REPRODUCED, REBUILT)
WITHIN_PERCENT = 30.0  # the tolerance of published milliseconds, in percent of them
WITHIN_POINTS = 3.0  # the tolerance of a published percentage, in percentage points
# The fewest independent values that have an interval: fewer vary too little when resampled.
LEAST_DRAWS = 10

Ends = tuple[float, float]
ANY: Ends = (-math.inf, math.inf)  # the interval of a number of which nothing is known


@dataclass(frozen=True)
class Published:
    """The numbers that the source published for a bar. None: it did not publish this number."""

    absolute: float | None = None  # the improvement, in the unit of the figure's metric
    # The improvement in percent of the baseline. It is converted where the source prints a
    # percentage of something else.
    percent: float | None = None
    level: float | None = None  # in a window sweep: the metric's value under this window
    # How far rounding, or reading a figure by eye, may have moved the two numbers.
    error: float = 0.0  # of `absolute`, in its unit
    error_points: float = 0.0  # of `percent`, in percentage points
    responses_percent: float | None = None  # the share that the bar has of all responses


@dataclass(frozen=True)
class Result:
    """The result of one bar or claim."""

    outcome: str  # one of OUTCOMES; "" where nothing was published
    test: str = ""  # the test that decided, in words


NOTHING_PUBLISHED = Result("")


@dataclass(frozen=True)
class ComparedNumber:
    """A measured number and the published one. All its numbers have the same unit."""

    measured: float
    published: float
    allowed: float  # how far apart the two numbers may be
    # The 95 % interval of the measured number; None where it is not known. Both ends are the
    # measured number where chance cannot change it.
    interval: Ends | None
    unit: str = ""  # for the test in words

    @property
    def ends(self) -> Ends:
        """The interval of the measured number, ANY where it is not known."""
        return ANY if self.interval is None else self.interval

    @property
    def result(self) -> str:
        """How near the numbers are: REPRODUCED, NOT_REPRODUCED or UNDECIDED."""
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
    """The outcome of the claim that the first number is larger than the second, by their intervals.

    DIRECTION where the first is larger, NOT_REPRODUCED where it is not, UNDECIDED where the
    intervals overlap.
    """
    if first[0] > second[1]:
        return DIRECTION
    return NOT_REPRODUCED if first[1] <= second[0] else UNDECIDED


def judge(numbers: Sequence[ComparedNumber]) -> Result:
    """The result of one bar or claim from all its numbers; NOTHING_PUBLISHED without a number.

    Every number has to be near. One number that is not near decides, whatever the others are.
    """
    if not numbers:
        return NOTHING_PUBLISHED
    results = [number.result for number in numbers]
    if NOT_REPRODUCED in results:
        have_direction = all(number.has_direction for number in numbers)
        outcome = outcome_of(holds=False, has_direction=have_direction)
    else:
        outcome = UNDECIDED if UNDECIDED in results else REPRODUCED
    return Result(outcome, "; ".join(number.test for number in numbers))


def worst(outcomes: Iterable[str]) -> str:
    """The worst of the outcomes that a claim has in several places. There is at least one."""
    known = set(outcomes)
    return next(outcome for outcome in (NOT_REPRODUCED, UNDECIDED, DIRECTION, REPRODUCED)
                if outcome in known)


def outcome_of(holds: bool, has_direction: bool = False) -> str:
    """The outcome of a claim that is decided without an interval.

    holds: whether the whole claim holds. has_direction: whether at least its sign is right.
    """
    if holds:
        return REPRODUCED
    return DIRECTION if has_direction else NOT_REPRODUCED


def count_outcomes(outcomes: Iterable[str]) -> dict[str, int]:
    """How often each outcome occurs, in the order of OUTCOMES.

    The outcome "" is not counted. REBUILT is left out where nothing is rebuilt.
    """
    counts = Counter(outcomes)
    return {outcome: counts[outcome] for outcome in OUTCOMES
            if counts[outcome] or outcome != REBUILT}


def in_full(outcome: str) -> str:
    """The outcome in words, where there is room for the reason of "undecided"."""
    return f"{outcome} (too few data)" if outcome == UNDECIDED else outcome


MEANINGS = {REPRODUCED: "within the tolerance, with all of our 95 % interval",
            UNDECIDED: "the interval crosses an end of the tolerance: more data would decide",
            DIRECTION: "only the sign agrees",
            REBUILT: "a number that the scenario puts in"}


def explain_counts(counted: Mapping[str, int], meanings: Mapping[str, str] = MEANINGS) -> str:
    """Such as "21 direction (only the sign agrees), 1 reproduced (…)", the most frequent first.

    counted: the number of each outcome. An outcome without a meaning has no parentheses.
    """
    parts = []
    for outcome in sorted(counted, key=lambda outcome: -counted[outcome]):
        if counted[outcome]:
            meaning = f" ({meanings[outcome]})" if outcome in meanings else ""
            parts.append(f"{counted[outcome]} {outcome}{meaning}")
    return ", ".join(parts)


def summarize_counts(counted: Mapping[str, int]) -> str:
    """Such as "5 of 9 reproduced, 1 undecided (too few data), 2 direction, 1 not reproduced".

    counted: the number of each outcome. "" where all are 0.
    """
    total = sum(counted.values())
    if not total:
        return ""

    parts = []
    for outcome in OUTCOMES:
        if outcome in counted or outcome != REBUILT:
            of_total = f" of {total}" if outcome == REPRODUCED else ""
            parts.append(f"{counted.get(outcome, 0)}{of_total} {in_full(outcome)}")
    return ", ".join(parts)
