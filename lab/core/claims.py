"""Claims: published numbers and sentences beside measured ones, and one word for each.

A number is "reproduced" where it is near enough to every published number
that belongs to it, or the published one lies inside the 95 % interval of ours;
"direction only" where it is not but has the published sign; else "not
reproduced". This room judges numbers; it knows no figure and no scenario.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

REPRODUCED, DIRECTION_ONLY, NOT_REPRODUCED = "reproduced", "direction only", "not reproduced"
NOT_MEASURED = "not measured"
WORDS = (REPRODUCED, DIRECTION_ONLY, NOT_REPRODUCED)
WITHIN_PERCENT = 30.0  # of the published milliseconds
WITHIN_POINTS = 3.0  # of the published percentage

Ends = tuple[float, float]


@dataclass(frozen=True)
class Compared:
    """A measured number beside the published one; allowed: how far apart they may be.

    interval: 95 %, of the measured number. unit: of the test in words.
    """

    measured: float
    published: float
    allowed: float
    interval: Ends | None = None
    unit: str = ""

    @property
    def off(self) -> float:
        return abs(self.measured - self.published)

    @property
    def inside(self) -> bool:
        """Whether the published number lies inside our interval."""
        return (self.interval is not None
                and self.interval[0] <= self.published <= self.interval[1])

    @property
    def agrees(self) -> bool:
        return self.off <= self.allowed or self.inside

    @property
    def test(self) -> str:
        """The test that decided, in words."""
        if self.off <= self.allowed:
            return f"{self.off:.1f} ≤ {self.allowed:.1f} {self.unit}"
        return (f"{self.off:.1f} > {self.allowed:.1f} {self.unit}"
                + (", inside the interval" if self.inside else ""))


def judge(numbers: Sequence[Compared]) -> tuple[str, str]:
    """The word for one bar, and the tests behind it; "" and "" where nothing is published."""
    if not numbers:
        return "", ""
    same_sign = all(each.measured * each.published > 0 for each in numbers if each.published)
    return (word_of(all(each.agrees for each in numbers), same_sign),
            "; ".join(each.test for each in numbers))


def word_of(holds: bool, direction: bool = False) -> str:
    """The word for what holds, or has at least the published direction."""
    return REPRODUCED if holds else DIRECTION_ONLY if direction else NOT_REPRODUCED


def counts(words: Iterable[str]) -> dict[str, int]:
    """How many have each word, in the order of WORDS; "" is left out."""
    found = Counter(words)
    return {word: found[word] for word in WORDS}


def summary(counted: Mapping[str, int]) -> str:
    """Such as "5 of 8 reproduced, 2 direction only, 1 not reproduced"; "" for none."""
    total = sum(counted.values())
    if not total:
        return ""
    first, *others = (f"{counted.get(word, 0)}{f' of {total}' if word == REPRODUCED else ''} {word}"
                      for word in WORDS)
    return ", ".join([first, *others])
