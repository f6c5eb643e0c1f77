"""Reads the [[sentence]]s of a scenario's file: what it states in words, with tests.

Every test of a sentence has to hold in every row that it selects:

    [[sentence]]
    says = "From ten segments on, the larger chain never has the earlier first byte"
    [[sentence.test]]
    figure = "steps"
    columns = ["first byte: IW10, ms", "first byte: IW2*"]
    is = "never falls"

runs/stated.py runs the tests on the findings of a run. Nothing in them is evaluated as code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from firstflight.base.errors import UsageError
from firstflight.base.words import join_words, plain
from firstflight.findings import claims
from firstflight.findings.relations import ALONG, BESIDE, EXTREMES
from firstflight.runs import schema


def _texts(value: object, where: str) -> tuple[str, ...]:
    return tuple(plain(item) if isinstance(item, (int, float)) else schema.text(item, where)
                 for item in (value if isinstance(value, list) else [value]))


def _rows(value: object, where: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(value, dict) or not value:
        raise UsageError(f'{where} has to be a table like {{"chain, bytes" = ["2000"]}}')
    return tuple((name, _texts(values, f"{where}: {name}")) for name, values in value.items())


def _than(value: object, where: str) -> float | str:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise UsageError(f"{where} has to be a number, or the head of a column")
    return value if isinstance(value, str) else float(value)


def _within(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e12:
        raise UsageError(f"{where} has to be a number of at least 0, it is {value!r}")
    return float(value)


@dataclass(frozen=True)
class Test:
    """One relation in the tables of a figure.

    columns: the heads of the columns, as in quotes; with * at the end, all that begin like this.
    relation: one of findings.relations. than: what the cells are compared with, a number or the
    head of a column. minus: the head of a column whose cells are subtracted. rows, without: only
    the rows, or all but those, with one of these values in a column. each: columns whose values
    split the rows into groups; the relation has to hold in each group. at: the rows in which the
    extreme is expected, by their cell in the column `by`, or their first one. within: the largest
    difference that still counts as equal, or as no rise. table: how the title of the table begins;
    against: the same of a second table, whose cells at the same place are subtracted. measured:
    compare measured values without their intervals. claim: in place of columns, how a statement on
    the figure begins; the relation is then its result, or one of its numbers.
    """

    figure: str
    relation: str = schema.key(name="is", reader=schema.word(
        (*ALONG, *BESIDE, *EXTREMES, *claims.OUTCOMES)))
    columns: tuple[str, ...] = schema.key((), reader=_texts)
    than: float | str | None = schema.key(None, reader=_than)
    minus: str = ""
    rows: tuple[tuple[str, tuple[str, ...]], ...] = schema.key((), reader=_rows)
    without: tuple[tuple[str, tuple[str, ...]], ...] = schema.key((), reader=_rows)
    each: tuple[str, ...] = schema.key((), reader=_texts)
    at: tuple[str, ...] = schema.key((), reader=_texts)
    within: float = schema.key(0.0, reader=_within)
    by: str = ""
    table: str = ""
    against: str = ""
    measured: bool = False
    claim: str = ""

    def check(self, where: str) -> None:
        """Raises UsageError unless the keys go together."""
        if bool(self.claim) == bool(self.columns):
            raise UsageError(f"{where}: has to have either columns or claim")
        if self.relation in (EXTREMES if self.claim else claims.OUTCOMES):
            raise UsageError(f'{where}: is = "{self.relation}" does not go with'
                             f" {'claim' if self.claim else 'columns'}")
        if (self.relation in BESIDE) != (self.than is not None):
            raise UsageError(f"{where}: than goes with is = {join_words(BESIDE)}")
        if (self.relation in EXTREMES) != bool(self.at):
            raise UsageError(f"{where}: at goes with is = {join_words(EXTREMES)}")


def _tests(value: object, where: str) -> tuple[Test, ...]:
    if not isinstance(value, list) or not value:
        raise UsageError(f"{where} has to be tables, [[sentence.test]]")
    return tuple(schema.read(Test, schema.table({"test": test}, "test", where),
                             f"{where} {number}") for number, test in enumerate(value, start=1))


@dataclass(frozen=True)
class Sentence:
    """A sentence and its tests. document: which document has it, "" for the scenario's file."""

    says: str
    tests: tuple[Test, ...] = schema.key(reader=_tests, name="test")
    document: str = ""


def read(raw: Mapping[str, Any], where: str) -> tuple[Sentence, ...]:
    """Read the [[sentence]]s of a scenario's file. Raises UsageError."""
    return schema.read_tables(Sentence, raw, "sentence", where, called="says")
