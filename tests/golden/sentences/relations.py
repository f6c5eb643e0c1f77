"""Relations that sentences state of columns (tables.py): between rows, and with another number.

A number with an interval is compared by that interval. A relation that the intervals leave open
does not hold. within: the largest difference that still counts as none.
"""

from __future__ import annotations

from itertools import pairwise

from tests.golden.sentences.tables import Column, Number


# Each row with the next one ------------------------------------------------------------


def rises(column: Column) -> bool:
    return all(first < second for first, second in _steps(column))


def falls(column: Column) -> bool:
    return all(second < first for first, second in _steps(column))


def never_rises(column: Column, within: float = 0.0) -> bool:
    return all(second.high <= first.low + within for first, second in _steps(column))


def never_falls(column: Column, within: float = 0.0) -> bool:
    return all(first.high <= second.low + within for first, second in _steps(column))


def rises_and_falls(column: Column, within: float = 0.0) -> bool:
    """Whether one row has more than the row before it, and another one less."""
    steps = _steps(column)
    return (any(second.low > first.high + within for first, second in steps)
            and any(second.high < first.low - within for first, second in steps))


def _steps(column: Column) -> list[tuple[Number, Number]]:
    """Each number with the next one. Raises LookupError if there is only one."""
    if len(column.numbers) < 2:
        raise LookupError(f"{column.name} has one row, which neither rises nor falls")
    return list(pairwise(column.numbers))


# Every row with a number, or with the same row of another column -----------------------


def above(column: Column, than: float | Column) -> bool:
    return all(other < number for number, other in _beside(column, than))


def below(column: Column, than: float | Column) -> bool:
    return all(number < other for number, other in _beside(column, than))


def at_least(column: Column, than: float | Column, within: float = 0.0) -> bool:
    return all(number.low >= other.high - within for number, other in _beside(column, than))


def at_most(column: Column, than: float | Column, within: float = 0.0) -> bool:
    return all(number.high <= other.low + within for number, other in _beside(column, than))


def equal(column: Column, than: float | Column, within: float = 0.0) -> bool:
    return at_least(column, than, within) and at_most(column, than, within)


def between(column: Column, low: float, high: float) -> bool:
    return at_least(column, low) and at_most(column, high)


def no_different(column: Column, than: float | Column) -> bool:
    """Whether no row differs significantly: the intervals overlap."""
    return not any(number < other or other < number for number, other in _beside(column, than))


def _beside(column: Column, than: float | Column) -> list[tuple[Number, Number]]:
    """Each number with the one that it is compared with. Raises LookupError, ValueError."""
    if not column.numbers:
        raise LookupError(f"{column.name} has no row")
    if isinstance(than, Column):
        return list(zip(column.numbers, than.numbers, strict=True))
    return [(number, Number.exact(than)) for number in column.numbers]


# Some rows with all others ------------------------------------------------------------------


def highest_at(column: Column, *rows: str) -> bool:
    """Whether each of these rows is above every other row."""
    there, elsewhere = _split(column, rows)
    return all(other < number for number in there for other in elsewhere)


def lowest_at(column: Column, *rows: str) -> bool:
    """Whether each of these rows is below every other row."""
    there, elsewhere = _split(column, rows)
    return all(number < other for number in there for other in elsewhere)


def _split(column: Column, rows: tuple[str, ...]) -> tuple[list[Number], list[Number]]:
    """The numbers of these rows and of the others. Raises LookupError if either has none."""
    there = [number for row, number in zip(column.rows, column.numbers) if row in rows]
    elsewhere = [number for row, number in zip(column.rows, column.numbers) if row not in rows]
    if not there or not elsewhere:
        raise LookupError(f"{column.name} has no row {', '.join(rows)}, or no other")
    return there, elsewhere
