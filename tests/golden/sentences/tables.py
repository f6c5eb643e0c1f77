"""The tables of docs/results, as tests of sentences read them.

A sentence stands in front of the assertions that test it:

    @states("zhao2019")
    def test_the_sentences_of_zhao2019_hold(run: Run) -> None:
        saved = run.table("fig5_rtt")["improved: ms"]

        run.says("shortens a 9 kB response at every RTT, the more so the longer the RTT")
        assert above(saved, 0)
        assert rises(saved)

What is not there (a figure, a row, a column) raises LookupError: no sentence holds for lack of
cells. relations.py has `above`, `rises` and the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import inf

from docs.update import FINDINGS, kept_reports
from firstflight.base import PROJECT
from firstflight.base.stats import Estimate
from firstflight.base.words import MINUS, format_number, plain
from firstflight.findings.findings import Cell, Interval, Report, Rounded, Statement, Table
from firstflight.findings.render.values import QUOTE, bare, head, written
from firstflight.runs import scenario_file

STATED: set[str] = set()  # the scenarios whose sentences are tested
JOINERS = {"and", "but", "so", "while", "that"}  # words between two sentences
_NUMBER = re.compile(rf"[+\-{MINUS}]?\d+(?:\.\d+)?")
_BETWEEN_SENTENCES = re.compile(r"(?<=[.!?]) (?=[A-Z{])")


@cache
def reports() -> dict[str, Report]:
    """The kept report of each scenario, by name."""
    return kept_reports(FINDINGS)


@dataclass(frozen=True)
class Number:
    """A number and the ends of its interval: both are the number if it is exact."""

    value: float
    low: float
    high: float

    @classmethod
    def exact(cls, value: float) -> Number:
        return cls(value, value, value)

    @classmethod
    def of(cls, cell: Cell) -> Number:
        """The number of a cell; the first one of a text such as "421.5 (3)".

        Raises LookupError if the cell has no number.
        """
        cell = cell.value if isinstance(cell, Rounded) else cell
        value = bare(cell)
        if isinstance(value, str) and (match := _NUMBER.match(value)):
            return cls.exact(float(match[0].replace(MINUS, "-")))
        if not isinstance(value, (int, float)):
            raise LookupError(f"{cell!r} is no number")
        if isinstance(cell, Estimate):
            return cls(value, *(cell.interval or (-inf, inf)))
        return cls.exact(value)

    def __sub__(self, other: Number) -> Number:
        return Number(self.value - other.value, self.low - other.high, self.high - other.low)

    def __lt__(self, other: Number) -> bool:
        return self.high < other.low

    def __repr__(self) -> str:
        if self.low == self.high:
            return format_number(self.value, 3)
        return f"{format_number(self.value, 3)} [{self.low:.3g} … {self.high:.3g}]"


@dataclass(frozen=True)
class Column:
    """The numbers of a column. A failing test shows all of them."""

    name: str
    rows: tuple[str, ...]  # the name of each number's row
    numbers: tuple[Number, ...]

    def __sub__(self, other: Column) -> Column:
        """The differences, row by row. Raises ValueError if the rows differ."""
        if self.rows != other.rows:
            raise ValueError(f"{self.rows} and {other.rows} are different rows")
        numbers = tuple(number - less for number, less in zip(self.numbers, other.numbers))
        return Column(f"{self.name} less {other.name}", self.rows, numbers)

    @property
    def without_intervals(self) -> Column:
        """The same numbers as if they were exact, for a sentence about the means alone."""
        return replace(self, numbers=tuple(Number.exact(number.value) for number in self.numbers))

    def __repr__(self) -> str:
        cells = ", ".join(f"{row}: {number}" for row, number in zip(self.rows, self.numbers))
        return f"{self.name} ({cells})"


@dataclass(frozen=True)
class Rows:
    """The rows of a table, or some of them.

    Columns are named by their heads as quotes have them, such as "improved: ms". named_by: the
    place of the column whose cells name the rows.
    """

    table: Table
    named_by: int = 0

    def __getitem__(self, name: str) -> Column:
        """The column with this head. Raises LookupError if a cell of it has no number."""
        place = self._place(name)
        names = tuple(self._text(row, self.named_by) for row in self.table.rows)
        numbers = tuple(self._number(row, place) for row in self.table.rows)
        return Column(name, names, numbers)

    def columns(self, beginning: str) -> list[Column]:
        """All columns whose heads begin with `beginning`. Raises LookupError if there is none."""
        names = [head(column) for column in self.table.columns
                 if head(column).startswith(beginning)]
        if not names:
            raise LookupError(f"{self.table.title}: no column begins with {beginning!r}")
        return [self[name] for name in names]

    def where(self, name: str, *values: str | float) -> Rows:
        """The rows with one of these values in a column. Raises LookupError if one has no row."""
        chosen = self._find(name, values)
        return self._keep([row for row in self.table.rows if row in chosen])

    def without(self, name: str, *values: str | float) -> Rows:
        """All rows but those with one of these values. Raises LookupError if one has no row."""
        dropped = self._find(name, values)
        return self._keep([row for row in self.table.rows if row not in dropped])

    def each(self, name: str) -> list[Rows]:
        """Groups of rows that have the same value in a column."""
        place = self._place(name)
        values = dict.fromkeys(self._text(row, place) for row in self.table.rows)
        return [self.where(name, value) for value in values]

    def named(self, name: str) -> Rows:
        """The same rows, named by another column than the first one."""
        return replace(self, named_by=self._place(name))

    def _find(self, name: str, values: Sequence[str | float]) -> list[tuple[Cell, ...]]:
        """The rows with one of these values in a column. Raises LookupError if one has no row."""
        place = self._place(name)
        texts = [value if isinstance(value, str) else plain(value) for value in values]
        known = {self._text(row, place) for row in self.table.rows}
        if lacking := [text for text in texts if text not in known]:
            raise LookupError(f"{self.table.title}: no row has {lacking[0]!r} in {name!r}")
        return [row for row in self.table.rows if self._text(row, place) in texts]

    def _keep(self, rows: Sequence[tuple[Cell, ...]]) -> Rows:
        return replace(self, table=replace(self.table, rows=tuple(rows)))

    def _place(self, name: str) -> int:
        places = [place for place, column in enumerate(self.table.columns) if head(column) == name]
        if len(places) != 1:
            raise LookupError(f"{self.table.title}: {len(places)} columns are {name!r}")
        return places[0]

    def _text(self, row: tuple[Cell, ...], place: int) -> str:
        return written(row[place], self.table.columns[place])

    def _number(self, row: tuple[Cell, ...], place: int) -> Number:
        number = Number.of(row[place])
        interval = self._interval_after(row, place)
        return replace(number, low=interval[0], high=interval[1]) if interval else number

    def _interval_after(self, row: tuple[Cell, ...], place: int) -> tuple[float, float] | None:
        """The ends of a number's interval, None if it is exact or the next column has none."""
        if place + 1 == len(self.table.columns):
            return None
        following = self.table.columns[place + 1]
        if (following.group, following.name) != (self.table.columns[place].group, "95 % interval"):
            return None
        interval = row[place + 1]
        if interval == "exact":
            return None
        return (interval.low, interval.high) if isinstance(interval, Interval) else (-inf, inf)


@dataclass
class Run:
    """The kept run of a scenario, and the words about it that were tested.

    page: the page whose tables are read, "" for the scenario's own.
    """

    name: str
    tested: list[str] = field(default_factory=list)
    page: str = ""

    def on(self, page: str) -> Run:
        """The same sentences with the tables of another page, as of a larger sample."""
        return replace(self, page=page)

    def says(self, words: str, document: str = "") -> None:
        """Note that the assertions below test these words.

        document: which has the words, "" for the scenario's own file. Raises AssertionError if
        it does not have them.
        """
        head_of = scenario_file.find(self.name).head()
        text = " ".join((head_of.claim, head_of.title, head_of.about, head_of.note, head_of.result))
        if document:
            text = (PROJECT / document).read_text(encoding="utf-8")
        assert words.rstrip(".").lower() in on_one_line(text).lower(), words
        self.tested.append(words)

    def table(self, figure: str, title: str = "") -> Rows:
        """The only table of a figure whose title begins with `title`, or its first one for "".

        Raises LookupError if there is none, or several.
        """
        tables = self.tables(figure, title)
        if title and len(tables) > 1:
            raise LookupError(f"{self.name}: {figure} has {len(tables)} tables like {title!r}")
        return tables[0]

    def tables(self, figure: str, title: str) -> list[Rows]:
        """The tables of a figure whose titles begin with `title`. Raises LookupError without one.
        """
        tables = [Rows(table) for finding in reports()[self.page or self.name].findings
                  if finding.name == figure
                  for table in finding.tables if table.title.startswith(title)]
        if not tables:
            raise LookupError(f"{self.name}: {figure} has no table like {title!r}")
        return tables

    def claim(self, figure: str, beginning: str) -> Statement:
        """The only statement on a figure that begins with `beginning`. Raises LookupError."""
        statements = [statement for finding in reports()[self.page or self.name].findings
                      if finding.name == figure
                      for statement in finding.statements if statement.text.startswith(beginning)]
        if len(statements) != 1:
            raise LookupError(f"{self.name}: {len(statements)} statements begin {beginning!r}")
        return statements[0]

    def numbers(self, figure: str, beginning: str) -> Column:
        """The numbers of the statement that begins with `beginning`, in its order."""
        numbers = tuple(Number.of(number) for number in self.claim(figure, beginning).numbers)
        return Column(beginning, ("",) * len(numbers), numbers)

    def untested(self) -> set[str]:
        """The words that no test has and that have to be tested.

        They are those of the first line, and of each sentence of the result without a quote.
        """
        head_of = scenario_file.find(self.name).head()
        result = _BETWEEN_SENTENCES.split(on_one_line(head_of.result))
        text = " ".join([on_one_line(head_of.claim),
                         *(sentence for sentence in result if not QUOTE.search(sentence))])
        for words in sorted(self.tested, key=len, reverse=True):
            text = re.sub(re.escape(words.rstrip(".")), " ", text, flags=re.IGNORECASE)
        return {*re.findall(r"[\w%]+", text)} - JOINERS


def on_one_line(text: str) -> str:
    return " ".join(text.split())


def states(name: str) -> Callable[[Callable[[Run], None]], Callable[[], None]]:
    """Make a test of the sentences of a scenario, which fails if one of them has no assertion."""
    def decorate(test: Callable[[Run], None]) -> Callable[[], None]:
        STATED.add(name)

        def tested() -> None:
            run = Run(name)
            test(run)
            assert not run.untested()
        return tested
    return decorate
