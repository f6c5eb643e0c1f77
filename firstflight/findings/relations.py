"""Relations between cells of a table, for sentences that have to hold in some rows or in all.

Each number has an interval: both ends are the number itself if it is exact, and infinite if nothing
is known. So a relation holds, fails, or is undecided (None) where intervals overlap. This module
compares numbers; runs/stated.py selects the cells of a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from firstflight.base.words import format_number
from firstflight.findings.claims import Ends

RISES, FALLS, NEVER_RISES, NEVER_FALLS = "rises", "falls", "never rises", "never falls"
BOTH_WAYS = "rises and falls"
ALONG = (RISES, FALLS, NEVER_RISES, NEVER_FALLS, BOTH_WAYS)  # compare each row with the next
ABOVE, BELOW, EQUAL = "above", "below", "equal"
AT_LEAST, AT_MOST = "at least", "at most"
AROUND = "around"  # the intervals overlap: not significantly different
SOMEWHERE_ABOVE, SOMEWHERE_BELOW = "somewhere above", "somewhere below"
# Compare each cell with a number, or with another cell of its row.
BESIDE = (ABOVE, BELOW, EQUAL, AT_LEAST, AT_MOST, AROUND, SOMEWHERE_ABOVE, SOMEWHERE_BELOW)
HIGHEST, LOWEST = "highest", "lowest"  # of a column, found in certain rows
EXTREMES = (HIGHEST, LOWEST)


@dataclass(frozen=True)
class Known:
    """A cell's number, the ends between which it is known to lie, and its place in words."""

    value: float
    ends: Ends
    place: str = ""

    @property
    def text(self) -> str:
        return format_number(self.value)


@dataclass(frozen=True)
class Compared:
    """One comparison, in words. holds: None where the intervals leave it undecided."""

    holds: bool | None
    text: str


def exact(value: float) -> Known:
    """A number that is exact, such as one that a sentence names."""
    return Known(value, (value, value))


def less(first: Known, second: Known) -> bool | None:
    """Whether the first number is smaller; None where the intervals overlap."""
    if first.ends[1] < second.ends[0]:
        return True
    return False if first.ends[0] >= second.ends[1] else None


def at_most(first: Known, second: Known, within: float = 0.0) -> bool | None:
    """Whether the first number exceeds the second by `within` at most; None for undecided."""
    if first.ends[1] <= second.ends[0] + within:
        return True
    return False if first.ends[0] > second.ends[1] + within else None


def equal(first: Known, second: Known, within: float) -> bool | None:
    """Whether two numbers differ by `within` at most; None for undecided."""
    both = at_most(first, second, within), at_most(second, first, within)
    return False if False in both else None if None in both else True


def along(relation: str, row: Sequence[Known], within: float) -> list[Compared]:
    """Compare each number of a column with the one before it. relation: one of ALONG."""
    pairs = list(zip(row, row[1:]))
    if relation == BOTH_WAYS:
        up, down = (any(at_most(*pair, within) is False for pair in ordered)
                    for ordered in (((second, first) for first, second in pairs), pairs))
        return [Compared(up and down, f"{row[0].place}: "
                         f"{'no fall' if up else 'no rise'}")] if row else []
    compare: dict[str, Callable[[Known, Known], bool | None]] = {
        RISES: less, FALLS: lambda first, second: less(second, first),
        NEVER_FALLS: lambda first, second: at_most(first, second, within),
        NEVER_RISES: lambda first, second: at_most(second, first, within)}
    return [Compared(compare[relation](first, second),
                     f"{second.place}: {second.text} after {first.text}")
            for first, second in pairs]


def beside(relation: str, pairs: Iterable[tuple[Known, Known]], within: float) -> list[Compared]:
    """Compare the two numbers of each pair. relation: one of BESIDE."""
    if relation in (SOMEWHERE_ABOVE, SOMEWHERE_BELOW):
        compared = beside(relation.removeprefix("somewhere "), pairs, within)
        return [Compared(any(one.holds for one in compared), "nowhere")] if compared else []
    compare: dict[str, Callable[[Known, Known], bool | None]] = {
        ABOVE: lambda first, second: less(second, first), BELOW: less,
        AT_LEAST: lambda first, second: at_most(second, first, within),
        AT_MOST: lambda first, second: at_most(first, second, within),
        EQUAL: lambda first, second: equal(first, second, within),
        AROUND: lambda first, second: less(first, second) is less(second, first) is None}
    return [Compared(compare[relation](first, second),
                     f"{first.place}: {first.text} beside {second.text}")
            for first, second in pairs]


def extreme(relation: str, there: Sequence[Known], elsewhere: Sequence[Known]) -> list[Compared]:
    """Compare the highest, or lowest, number of some rows with each of the other rows.

    relation: one of EXTREMES.
    """
    if not there:
        return []
    is_highest = relation == HIGHEST
    most = (max if is_highest else min)(there, key=lambda known: known.value)
    return [Compared(less(other, most) if is_highest else less(most, other),
                     f"{other.place}: {other.text}, {most.place}: {most.text}")
            for other in elsewhere]


def result(compared: Sequence[Compared]) -> tuple[bool | None, str]:
    """Whether all comparisons hold; and how many do, with the first that does not, in words."""
    failing = [one for one in compared if one.holds is False]
    unclear = [one for one in compared if one.holds is None]
    count = f"{len(compared) - len(failing) - len(unclear)} of {len(compared)}"
    first = "".join(f", not in {one.text}" for one in (failing or unclear)[:1])
    return (False if failing else None if unclear else True), f"{count}{first}"
