"""Relations that sentences state of a column (tables.py): between its rows, and with a number.

A number that has an interval is compared by the interval. A relation that the intervals leave open
does not hold. The parameter `within` is the largest difference that still counts as none.
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
    return all(other < number for number, other in _pairs(column, than))


def below(column: Column, than: float | Column) -> bool:
    return all(number < other for number, other in _pairs(column, than))


def at_least(column: Column, than: float | Column, within: float = 0.0) -> bool:
    return all(number.low >= other.high - within for number, other in _pairs(column, than))


def at_most(column: Column, than: float | Column, within: float = 0.0) -> bool:
    return all(number.high <= other.low + within for number, other in _pairs(column, than))


def equal(column: Column, than: float | Column, within: float = 0.0) -> bool:
    return at_least(column, than, within) and at_most(column, than, within)


def between(column: Column, low: float, high: float) -> bool:
    return at_least(column, low) and at_most(column, high)


def no_different(column: Column, than: float | Column) -> bool:
    """Whether no row differs significantly: the intervals overlap."""
    return not any(number < other or other < number for number, other in _pairs(column, than))


def _pairs(column: Column, than: float | Column) -> list[tuple[Number, Number]]:
    """Each number with the number that it is compared with.

    Raises LookupError if the column is empty, and ValueError if the other one has other rows.
    """
    if not column.numbers:
        raise LookupError(f"{column.name} has no row")
    if isinstance(than, Column):
        return list(zip(column.numbers, than.numbers, strict=True))
    return [(number, Number.exact(than)) for number in column.numbers]


# Some rows with all others ------------------------------------------------------------------


def highest_at(column: Column, *rows: str) -> bool:
    """Whether each of these rows is above every other row."""
    named, others = _split(column, rows)
    return all(other < number for number in named for other in others)


def lowest_at(column: Column, *rows: str) -> bool:
    """Whether each of these rows is below every other row."""
    named, others = _split(column, rows)
    return all(number < other for number in named for other in others)


def _split(column: Column, rows: tuple[str, ...]) -> tuple[list[Number], list[Number]]:
    """The numbers of the named rows, and those of the others. Raises LookupError without either."""
    named = [number for row, number in zip(column.rows, column.numbers) if row in rows]
    others = [number for row, number in zip(column.rows, column.numbers) if row not in rows]
    if not named or not others:
        raise LookupError(f"{column.name} has no row {', '.join(rows)}, or no other")
    return named, others
