"""Claims: published numbers and sentences next to measured ones, and one result for each.

A test of equivalence by intervals decides (two one-sided tests; Schuirmann 1987, J.
Pharmacokinetics and Biopharmaceutics 15(6)). The published number has a tolerance
around it, ours has a 95 % interval. A number is "reproduced" where the whole interval lies within
the tolerance, so that all values that the data leave open are near enough, and it
is not where the whole interval lies outside. Where the interval reaches over an end
of the tolerance, more data would decide: "undecided". So a wider interval never makes
anything reproduced. "Reproduced" has no other meaning, of bars and of statements. Where only a
sign agrees, it is "direction": a source claimed no more, or its number is too far away. This room
judges numbers; it knows no figure and no scenario.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from firstflight.base.words import format_interval

REPRODUCED, UNDECIDED = "reproduced", "undecided"
DIRECTION, NOT_REPRODUCED = "direction", "not reproduced"
REBUILT = "rebuilt"  # a number that a scenario puts in comes out again: nothing is reproduced
NOT_MEASURED = "not measured"
WORDS = (REPRODUCED, UNDECIDED, DIRECTION, NOT_REPRODUCED, REBUILT)
WITHIN_PERCENT = 30.0  # of the published milliseconds
WITHIN_POINTS = 3.0  # of the published percentage
LEAST_DRAWS = 10  # independent values, fewer of which have no interval: resampled they vary too
                  # little, and a single one does not vary at all

Ends = tuple[float, float]
ANY: Ends = (-math.inf, math.inf)  # what a number without an interval may be


@dataclass(frozen=True)
class Result:
    """The result of one bar or claim, a word of WORDS, and the test that decided, in words."""

    word: str
    test: str = ""


NOTHING_PUBLISHED = Result("")


@dataclass(frozen=True)
class ComparedNumber:
    """A measured number and the published one; allowed: how far apart they may be.

    interval: 95 %, of the measured number; of what cannot vary its value twice; None: not
    known. unit: of the test in words.
    """

    measured: float
    published: float
    allowed: float
    interval: Ends | None
    unit: str = ""

    @property
    def ends(self) -> Ends:
        """What the data leave open for the measured number."""
        return ANY if self.interval is None else self.interval

    @property
    def result(self) -> str:
        """Whether the numbers are near: REPRODUCED, NOT_REPRODUCED, or UNDECIDED to decide."""
        low, high = (end - self.published for end in self.ends)
        return equivalent((low, high), self.allowed)

    @property
    def has_direction(self) -> bool:
        """Whether all that the data leave open has the published sign; zero has none."""
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
    """REPRODUCED where an interval of a difference lies within ± allowed, NOT_REPRODUCED outside.

    UNDECIDED where it does neither.
    """
    low, high = difference
    if -allowed <= low and high <= allowed:
        return REPRODUCED
    return NOT_REPRODUCED if high < -allowed or low > allowed else UNDECIDED


def larger(first: Ends, second: Ends) -> str:
    """DIRECTION where the first is larger whatever the data leave open, NOT_REPRODUCED where not.

    UNDECIDED where the two overlap.
    """
    if first[0] > second[1]:
        return DIRECTION
    return NOT_REPRODUCED if first[1] <= second[0] else UNDECIDED


def judge(numbers: Sequence[ComparedNumber]) -> Result:
    """The result of one bar or claim; NOTHING_PUBLISHED without a number.

    Every number of it has to be near; one that is not decides, however little is known of
    the others.
    """
    if not numbers:
        return NOTHING_PUBLISHED
    results = [number.result for number in numbers]
    if NOT_REPRODUCED in results:
        word = word_of(False, all(number.has_direction for number in numbers))
    else:
        word = UNDECIDED if UNDECIDED in results else REPRODUCED
    return Result(word, "; ".join(number.test for number in numbers))


def word_of(holds: bool, direction: bool = False) -> str:
    """The result of what is certain: it is within a tolerance, or has the published direction."""
    return REPRODUCED if holds else DIRECTION if direction else NOT_REPRODUCED


def counts(words: Iterable[str]) -> dict[str, int]:
    """How many have each result, in the order of WORDS; "" is excluded, and so is "0 rebuilt"."""
    counts = Counter(words)
    return {word: counts[word] for word in WORDS if counts[word] or word != REBUILT}


def in_full(word: str) -> str:
    """A result where there is room: "undecided" with its reason."""
    return f"{word} (too few data)" if word == UNDECIDED else word


MEANINGS = {REPRODUCED: "within the tolerance, with all of our 95 % interval",
            UNDECIDED: "the interval crosses an end of the tolerance: more data would decide",
            DIRECTION: "only the sign agrees",
            REBUILT: "a number that the scenario puts in"}


def explained(counted: Mapping[str, int], meanings: Mapping[str, str] = MEANINGS) -> str:
    """Such as "21 direction (only the sign agrees), 1 reproduced (…)", the most frequent first."""
    return ", ".join(
        f"{counted[word]} {word}" + (f" ({meanings[word]})" if word in meanings else "")
        for word in sorted(counted, key=lambda word: -counted[word]) if counted[word])


def summary(counted: Mapping[str, int]) -> str:
    """Such as "5 of 9 reproduced, 1 undecided (too few data), 2 direction, 1 not reproduced".

    "" for none.
    """
    total = sum(counted.values())
    if not total:
        return ""
    first, *others = (f"{counted.get(word, 0)}{f' of {total}' if word == REPRODUCED else ''}"
                      f" {in_full(word)}"
                      for word in WORDS if word in counted or word != REBUILT)
    return ", ".join([first, *others])
