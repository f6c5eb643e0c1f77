"""[[sentence]]s of a scenario's file: what it states in its own words, and the tests of that.

All tests of a sentence have to hold in every row that they name:

    [[sentence]]
    says = "From ten segments on, the larger chain never has the earlier first byte"
    [[sentence.test]]
    figure = "steps"
    columns = ["first byte: IW10, ms", "first byte: IW2*"]
    is = "never falls"

runs/stated.py tests them on the findings of a run. Nothing of them is evaluated as code.
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

    columns: their heads as in quotes, all that begin like one with * behind it. relation: of
    findings.relations. than: a number or a column, for those of two. minus: a column whose cells
    are subtracted. rows, without: only, or all but, the rows with one of these values in a column.
    each: columns whose values split the rows into groups, in each of which they are ordered. at:
    the rows of the highest, by the column `by`, or their first cell. within: how far apart is still
    equal, or no rise. table: how its title begins; against: that of another one of the finding,
    whose cells at the same place are subtracted. measured: compare measured values without their
    intervals. claim: how a statement on the figure begins, in place of columns; then the relation
    is its result, or that of its numbers.
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
    """A sentence and its tests. document: where it stands, "" for the scenario's file."""

    says: str
    tests: tuple[Test, ...] = schema.key(reader=_tests, name="test")
    document: str = ""


def read(raw: Mapping[str, Any], where: str) -> tuple[Sentence, ...]:
    """The [[sentence]]s of a scenario's file. Raises UsageError."""
    return schema.read_tables(Sentence, raw, "sentence", where, called="says")
