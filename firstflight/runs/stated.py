"""Tests the sentences of a scenario (runs/sentences.py) on the tables of its findings.

A cell with an interval is compared by that interval. A sentence that names a row or column that
does not exist is "not tested": it cannot hold for lack of cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from firstflight.base.errors import FirstFlightError
from firstflight.base.stats import Estimate
from firstflight.base.words import MINUS
from firstflight.findings import claims, relations
from firstflight.findings.findings import Cell, Column, Finding, Interval, Report, Rounded, Table
from firstflight.findings.names import SENTENCES
from firstflight.findings.relations import ALONG, BOTH_WAYS, EXTREMES, Compared, Known
from firstflight.findings.render.values import bare, head, quoted, written
from firstflight.runs.sentences import Sentence, Test

TITLE = "What is stated here, tested in all rows of the tables"
HOLDS, UNDECIDED, CONTRADICTED, NOT_TESTED = "holds", "undecided", "contradicted", "not tested"
INTERVAL = "95 % interval"  # the head of a column with the intervals of the column before it
EXACT = "exact"
_NUMBER = re.compile(rf"[+\-{MINUS}]?\d+(?:\.\d+)?")


def with_sentences(report: Report, sentences: Sequence[Sentence]) -> Report:
    """The report with one more finding: the sentences and their results."""
    findings = tuple(finding for finding in report.findings if finding.name != SENTENCES)
    if not sentences:
        return replace(report, findings=findings)
    whole = replace(report, findings=findings)
    rows = tuple((_with_numbers(sentence.says, whole)
                  + (f" ({sentence.document})" if sentence.document else ""),
                  *judge_sentence(sentence, findings)) for sentence in sentences)
    table = Table("", (Column("sentence", is_text=True), Column("result", is_text=True),
                       Column("rows in which it holds", is_text=True)), rows, wraps=True)
    return replace(whole, findings=(*findings, Finding(SENTENCES, TITLE, (table,))))


def contradicted(report: Report) -> list[str]:
    """The sentences that the run's own data contradict, each with the rows."""
    return [f"This run contradicts what its scenario states: “{says}” ({where})"
            for finding in report.findings if finding.name == SENTENCES
            for says, result, where in finding.tables[0].rows if result == CONTRADICTED]


def _with_numbers(says: str, report: Report) -> str:
    """A sentence with its quotes filled in, or as it is where one cannot be."""
    try:
        return quoted(says, [report])
    except FirstFlightError:
        return says


def judge_sentence(sentence: Sentence, findings: Sequence[Finding]) -> tuple[str, str]:
    """The result of a sentence, and in how many rows each of its tests holds, in words."""
    results: list[bool | None] = []
    texts: list[str] = []
    for test in sentence.tests:
        found = [finding for finding in findings if finding.name == test.figure]
        try:
            compared = _of_claim(test, found) if test.claim else _compared(test, found)
        except LookupError as error:
            return NOT_TESTED, str(error.args[0])
        holds, text = relations.result(compared)
        results.append(holds)
        texts.append(text)
    result = CONTRADICTED if False in results else UNDECIDED if None in results else HOLDS
    return result, "; ".join(texts)


def _of_claim(test: Test, findings: Sequence[Finding]) -> list[Compared]:
    """Compare the result of a published claim, or its numbers.

    Raises LookupError where no claim begins like the test's.
    """
    of_it = [statement for finding in findings for statement in finding.statements
             if statement.text.startswith(test.claim)
             and (statement.outcome if test.relation in claims.OUTCOMES else statement.numbers)]
    if not of_it:
        raise LookupError(f"{test.figure} has no claim that begins like {test.claim!r}")
    if test.relation in claims.OUTCOMES:
        return [Compared(statement.outcome == test.relation, f"the claim: {statement.outcome}")
                for statement in of_it]
    every = [[Known(*_bounded(number.value, test.measured), "the statement")
              for number in statement.numbers] for statement in of_it]
    if test.relation in ALONG:
        return [one for numbers in every for one in relations.along(test.relation, numbers,
                                                                    test.within)]
    return relations.beside(test.relation, [(numbers[0], relations.exact(float(test.than or 0)))
                                            for numbers in every], test.within)


def _compared(test: Test, findings: Sequence[Finding]) -> list[Compared]:
    """All comparisons of a test. Raises LookupError if it names a missing row or column."""
    compared = [one for finding in findings for table in finding.tables
                if table.title.startswith(test.table) and _has_columns(test, table)
                for one in _in_table(test, _differences(test, table, finding))]
    if not compared:
        raise LookupError(f"{test.figure}: no row has {', '.join(test.columns)}")
    return compared


def _differences(test: Test, table: Table, finding: Finding) -> Table:
    """The table, or its cells less those of the test's second table.

    Raises LookupError if there is no single such table.
    """
    if not test.against:
        return table
    others = [other for other in finding.tables if other.title.startswith(test.against)]
    if len(others) != 1 or others[0].columns != table.columns:
        raise LookupError(f"{test.figure}: no single table like it is {test.against!r}")
    return replace(table, rows=tuple(
        (row[0], *(_number(cell) - _number(other) for cell, other in zip(row[1:], beside[1:])))
        for row, beside in zip(table.rows, others[0].rows, strict=True)))


def _has_columns(test: Test, table: Table) -> bool:
    return any(_places(table, name) for name in test.columns)


def _places(table: Table, name: str) -> list[int]:
    """The places of the columns with this head, or whose head begins like it."""
    return [place for place, column in enumerate(table.columns)
            if (head(column).startswith(name[:-1]) if name.endswith("*") else head(column) == name)]


def _place(table: Table, name: str) -> int:
    """The place of the only column with this head. Raises LookupError."""
    places = _places(table, name)
    if len(places) != 1:
        raise LookupError(f"{table.title or 'the table'}: {len(places)} columns are {name!r}")
    return places[0]


def _in_table(test: Test, table: Table) -> Iterator[Compared]:
    for name in test.columns:
        places = _places(table, name)
        if not places:
            raise LookupError(f"{table.title or 'the table'}: no column is {name!r}")
        for place in places:
            for group in _groups(test, table):
                yield from _in_column(test, table, place, group)


def _groups(test: Test, table: Table) -> list[list[tuple[Cell, ...]]]:
    """The rows that the test selects, in groups by the values of `each`, in order."""
    for name, values in (*test.rows, *test.without):
        place = _place(table, name)
        known = {_written(table, row, place) for row in table.rows}
        if lacking := [value for value in values if value not in known]:
            raise LookupError(f"{test.figure}: no row has {lacking[0]!r} in {name!r}")
    only, but = ([(_place(table, name), values) for name, values in conditions]
                 for conditions in (test.rows, test.without))
    each = [_place(table, name) for name in test.each]

    def meets(row: tuple[Cell, ...], conditions: Sequence[tuple[int, tuple[str, ...]]]) -> bool:
        return all(_written(table, row, place) in values for place, values in conditions)

    groups: dict[tuple[str, ...], list[tuple[Cell, ...]]] = {}
    for row in table.rows:
        if meets(row, only) and not (but and meets(row, but)):
            groups.setdefault(tuple(_written(table, row, place) for place in each), []).append(row)
    return list(groups.values())


def _in_column(test: Test, table: Table, place: int, rows: Sequence[tuple[Cell, ...]]
               ) -> list[Compared]:
    known = [_known(test, table, row, place) for row in rows]
    if test.relation in ALONG:
        enough = len(known) > (2 if test.relation == BOTH_WAYS else 1)
        return relations.along(test.relation, known, test.within) if enough else []
    if test.relation in EXTREMES:
        place_of = _place(table, test.by) if test.by else 0
        there = [_written(table, row, place_of) in test.at for row in rows]
        return relations.extreme(test.relation, [one for one, is_at in zip(known, there) if is_at],
                                 [one for one, is_at in zip(known, there) if not is_at])
    others = [_known(test, table, row, _place(table, test.than)) if isinstance(test.than, str)
              else relations.exact(float(test.than or 0)) for row in rows]
    return relations.beside(test.relation, zip(known, others), test.within)


def _known(test: Test, table: Table, row: tuple[Cell, ...], place: int) -> Known:
    """A cell with its interval and place, less the cell of `minus`."""
    value, ends = _value(test, table, row, place)
    if test.minus:
        other, (low, high) = _value(replace(test, minus=""), table, row,
                                    _place(table, test.minus))
        value, ends = value - other, (ends[0] - high, ends[1] - low)
    keys = dict.fromkeys([*(f"{head(table.columns[_place(table, name)])}"
                            f" {_written(table, row, _place(table, name))}" for name in test.each),
                          f"{head(table.columns[0])} {_written(table, row, 0)}".strip()])
    return Known(value, ends, f"{head(table.columns[place])}, {', '.join(keys)}")


def _value(test: Test, table: Table, row: tuple[Cell, ...], place: int
           ) -> tuple[float, claims.Ends]:
    """A cell's number, and the ends between which it is known to lie.

    Raises LookupError if the cell has no number.
    """
    try:
        value, ends = _bounded(row[place], test.measured)
    except LookupError:
        raise LookupError(f"{head(table.columns[place])} {_written(table, row, 0)}:"
                          " is not known") from None
    return value, ends if test.measured else _interval_beside(table, row, place) or ends


def _bounded(cell: Cell, measured: bool) -> tuple[float, claims.Ends]:
    """A cell's number, and the ends of its own interval; measured: both ends are the number.

    Raises LookupError if the cell has no number.
    """
    cell = cell.value if isinstance(cell, Rounded) else cell
    value = _number(cell)
    if isinstance(cell, Estimate) and not measured:
        return value, claims.ANY if cell.interval is None else cell.interval
    return value, (value, value)


def _number(cell: Cell) -> float:
    """The number of a cell; the first one of a text such as "421.5 (3)". Raises LookupError."""
    value = bare(cell)
    if isinstance(value, str) and (match := _NUMBER.match(value)):
        return float(match[0].replace(MINUS, "-"))
    if isinstance(value, (int, float)):
        return float(value)
    raise LookupError("is no number")


def _interval_beside(table: Table, row: tuple[Cell, ...], place: int) -> claims.Ends | None:
    """The interval in the next column, if that has the intervals of this one.

    None where there is no such column, or the value is exact.
    """
    column, following = table.columns[place], table.columns[place + 1:place + 2]
    if not following or (following[0].name, following[0].group) != (INTERVAL, column.group) or \
            column.name == INTERVAL:
        return None
    interval = row[place + 1]
    if isinstance(interval, Interval):
        return interval.low, interval.high
    return None if interval == EXACT else claims.ANY


def _written(table: Table, row: tuple[Cell, ...], place: int) -> str:
    return written(row[place], table.columns[place])
