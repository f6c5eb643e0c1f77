"""Records: one row of trials.csv for each trial. runs.results.record_file appends them.

A record is a frozen dataclass whose first field is its trial, another frozen dataclass. Both may
have PATTERNS: regular expressions, by column, for text that is parsed further. A row has the
trial's columns, which were requested, then what was measured, what was observed on the wire, what
the model predicts, and the verdict. An empty field means that the value is not available.

Columns are found by name. A file that lacks one, as that of another version, is refused.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from firstflight.base import reading
from firstflight.base.errors import FirstFlightError
from firstflight.base.quantity import Quantity
from firstflight.base.words import format_lossless, from_cell, to_cell
from firstflight.findings.quantities import QUANTITIES, of_column
from firstflight.runs import typed_columns
from firstflight.runs.schema import hints_of

PASS = "pass"
FAIL = "fail"
SKIPPED = "skipped"  # nothing to judge: the transfer failed, or the machine cannot measure it

ANY = Quantity("", "a number")  # of a column without a quantity of its own
MOST_BYTES = 2 << 30  # of trials.csv; a million rows take a quarter of this
WHAT_IF = "what_if"  # the column of what_if.csv that trials.csv lacks
LARGEST = 10**15  # no number in a record is larger; 10¹⁵ ms are 30,000 years


class RequestedTrial(Protocol):
    """One requested trial, as plain data. job() returns the same as JSON, for the worker."""

    @property
    def id(self) -> str: ...

    @property
    def scenario(self) -> str: ...

    @property
    def repeat(self) -> int: ...

    def job(self) -> Mapping[str, object]: ...


class RecordsError(FirstFlightError):
    """A results file is missing, damaged, or not a file of such results."""


@dataclass(frozen=True)
class Record:
    """The columns that the records of every kind have; a kind adds its trial and its own columns.

    COMPARED: the column by which --compare compares runs, "" for none. ALSO_COMPARED: further
    columns, in ms, whose means over all cells --compare compares. EXPLAINED: the column with the
    time that a reason explains, "" for COMPARED.
    DIFFERENCES: columns that say something as a difference of two windows only (--fail-if).
    ok: whether the transfer itself succeeded. error: what happened where it did not.
    verdict: pass, fail or skipped. failed_checks: the checks that failed, a semicolon between them.
    verdict_reason: what differed, in words. measured_at: the time of day, UTC.
    """

    COMPARED: ClassVar[str] = ""
    ALSO_COMPARED: ClassVar[tuple[str, ...]] = ()
    EXPLAINED: ClassVar[str] = ""
    DIFFERENCES: ClassVar[tuple[str, ...]] = ()
    trial: RequestedTrial
    ok: bool
    error: str = ""
    verdict: str = field(default=SKIPPED, kw_only=True)
    failed_checks: str = field(default="", kw_only=True)
    verdict_reason: str = field(default="", kw_only=True)
    measured_at: str = field(default="", compare=False, kw_only=True)

    def validate(self) -> None:
        """Raises ValueError where a value is missing that a record of its kind needs."""

    @property
    def counts(self) -> bool:
        """Whether means and counts use this record."""
        return self.ok and self.verdict == PASS

    @property
    def outcome(self) -> str:
        """The verdict, or that the transfer failed."""
        if self.ok:
            return self.verdict
        return "failed as expected" if self.failed_as_expected else "failed transfer"

    @property
    def failed_as_expected(self) -> bool:
        """Whether the transfer failed as expected, by its packets."""
        return not self.ok and self.verdict == PASS

    @property
    def was_skipped(self) -> bool:
        """Whether the trial was not measured, since the machine lacks what it needs."""
        return self.ok and self.verdict == SKIPPED

    @property
    def why_not(self) -> str:
        """Why the record does not count; "" if it does."""
        return "" if self.counts else (self.error or self.verdict_reason
                                       or "no reason was recorded")


def metric(what: str, unit: str = "", *, head: str, label: str, more_is_better: bool = False
           ) -> Any:
    """A column of a record that a figure can show. Its default is None.

    The parameters are those of Quantity.
    """
    return field(default=None, metadata={
        "what": what, "unit": unit, "head": head, "label": label, "more_is_better": more_is_better})


def metrics(kind: type[Record]) -> dict[str, Quantity]:
    """The metrics of a kind of records by name, in the order of their columns."""
    return {column.name: Quantity(column.name, **column.metadata)
            for column in fields(kind) if column.metadata}


def quantity_of(kind: type[Record], column: str) -> Quantity:
    """The quantity of a column of such records; a column without one gets the words of its name."""
    return metrics(kind).get(column) or of_column(column)


R = TypeVar("R", bound=Record)
Value = str | int | float | bool | None  # of a field of a record or of a trial
_LAST = ("verdict", "failed_checks", "verdict_reason", "measured_at")


def trial_class(kind: type[Record]) -> type[Any]:
    """The class of a record's trial."""
    trial: type[Any] = hints_of(kind)["trial"]
    return trial


def requested_fields(trial: type[Any]) -> tuple[Field[object], ...]:
    """The fields of a class of trials in the order of their columns.

    If the class has COLUMNS, the fields named there come first.
    """
    first: tuple[str, ...] = getattr(trial, "COLUMNS", ())
    return tuple(sorted(fields(trial), key=lambda column: (
        first.index(column.name) if column.name in first else len(first))))


def columns_of(kind: type[Record], what_if: bool = False) -> tuple[str, ...]:
    """The columns of trials.csv: the trial's, then the record's, the verdict last.

    what_if: whether the columns are those of what_if.csv, which has one more.
    """
    of_trial = [column.name for column in requested_fields(trial_class(kind))
                if what_if or column.name != WHAT_IF]
    of_record = [column.name for column in fields(kind) if column.name not in ("trial", *_LAST)]
    return (*of_trial, *of_record, *_LAST)


def value_of(record: Record, column: str) -> Any:
    """The value of one column, of the trial or of the record itself."""
    return getattr(record.trial if hasattr(record.trial, column) else record, column)


def varied(columns: Mapping[str, Sequence[object]]) -> list[str]:
    """The names of the parameters that distinguish trials.

    columns: by a parameter's name, its value in each trial. A parameter that follows from an
    earlier one, such as the uplink from the bandwidth, is left out.
    """
    counts = {name: len(set(values)) for name, values in columns.items()}

    def follows(name: str, earlier: str) -> bool:
        """Whether trials with the same value of `earlier` have the same value of `name`."""
        return len(set(zip(columns[earlier], columns[name]))) == counts[earlier]

    names = list(columns)
    found = []
    for place, name in enumerate(names):
        if counts[name] > 1 and not any(follows(name, earlier) for earlier in names[:place]):
            found.append(name)
    return found


# Reading -----------------------------------------------------------------------------

def read_records(path: Path, kind: type[R]) -> list[R]:
    """The records of a trials.csv; a torn last line is dropped.

    Raises RecordsError if the file is missing, lacks a column, or has a value that cannot be read.
    """
    rows, records = rows_of(whole_lines(path)), []
    try:
        reader = RowReader(kind, next(rows, []))
        if reader.lacking:
            raise RecordsError(f"{path}: has no column {reader.lacking[0]}: another version"
                               " measured it, or it is not a file of such trials; measure again"
                               " with --fresh")
        for number, row in enumerate(rows, start=2):
            try:
                records.append(reader.record(row))
            except (ValueError, KeyError) as error:
                raise RecordsError(f"{path}, line {number}: {error}; measure again with"
                                   " --fresh") from error
    except csv.Error as error:
        raise RecordsError(f"{path}: is damaged ({error}); measure again with --fresh") from error
    return records


def rows_of(lines: bytes) -> Iterator[list[str]]:
    """The rows of a results file, one at a time: a million at once take gigabytes."""
    reader = csv.reader(io.TextIOWrapper(io.BytesIO(lines), "utf-8", errors="replace",
                                         newline="\n"))
    while True:
        # Python's limit, 128 kB, is one for the program. It holds again for other files.
        usual_limit = csv.field_size_limit(typed_columns.MOST_BYTES)
        try:
            row = next(reader, None)
        finally:
            csv.field_size_limit(usual_limit)
        if row is None:
            return
        yield row


def whole_lines(path: Path) -> bytes:
    """The content of a results file without a torn last line. Raises RecordsError."""
    data = content(path)
    return data if data.endswith(b"\n") else data[:data.rfind(b"\n") + 1]


def content(path: Path) -> bytes:
    """The content of a results file. Raises RecordsError."""
    try:
        return reading.content(path, MOST_BYTES)
    except OSError as error:
        raise RecordsError(f"{path}: cannot be read: {error.strerror}") from error


class RowReader(Generic[R]):
    """Reads the rows below one header as records of a kind."""

    def __init__(self, kind: type[R], header: Sequence[str]) -> None:
        self.make_trial = trial_class(kind)
        self.make_record: Callable[..., R] = kind
        self.width = len(header)
        places = {column: place for place, column in enumerate(header)}
        self.trial_columns = _parsers(self.make_trial, places, requested=True)
        self.record_columns = _parsers(kind, places, requested=False)
        # The columns that the header does not have.
        self.lacking = [column for column in columns_of(kind) if column not in places]

    def record(self, row: Sequence[str]) -> R:
        """The record of a row. Raises ValueError or KeyError where a value cannot be read."""
        if len(row) != self.width:
            raise ValueError(f"{len(row)} fields, expected {self.width}")
        trial = self.make_trial(**_values(self.trial_columns, row))
        record = self.make_record(trial=trial, **_values(self.record_columns, row))
        record.validate()
        return record


def _values(columns: Iterable[Column], row: Sequence[str]) -> dict[str, Any]:
    """The values of a row by column; an empty field of a column with a default has none."""
    return {name: parse(row[place]) for name, place, parse, has_default in columns
            if row[place] or not has_default}


Column = tuple[str, int, Callable[[str], object], bool]  # name, place, parser, has it a default


def _parsers(owner: type[Any], places: Mapping[str, int], requested: bool) -> list[Column]:
    """The columns of the header that are fields of a class, a trial's or a record's.

    places: of all columns, by name. requested: whether the class is the trial's, whose values have
    to be in the range of their quantity.
    """
    tables = table_columns(owner)
    parsers: list[Column] = []
    for column in fields(owner):
        name = column.name
        if name not in places or name == "trial":
            continue
        parse: Callable[[str], object]
        if name in tables:
            parse = cached(typed_columns.reader(tables[name], name))
        else:
            quantity = QUANTITIES.get(name, ANY) if requested else ANY
            pattern = getattr(owner, "PATTERNS", {}).get(name, "")
            parse = _parser(column, quantity, pattern)
        parsers.append((name, places[name], parse, column.default is not MISSING))
    return parsers


def table_columns(owner: type[Any]) -> dict[str, type[object]]:
    """The columns that hold tables (runs.typed_columns), each with the class of its items."""
    hints = hints_of(owner)
    classes = {column.name: typed_columns.item_class(hints[column.name])
               for column in fields(owner)}
    return {name: kind for name, kind in classes.items() if kind is not None}


def _parser(column: Field[object], quantity: Quantity, pattern: str) -> Callable[[str], Value]:
    """A parser of a field's text, by its annotation; the reverse of base.words.to_cell.

    The parser raises ValueError or KeyError.
    """
    kind = str(column.type)
    base = kind.removesuffix(" | None")
    parsers: dict[str, Callable[[str], Value]] = {
        "str": _text_of(pattern, column.name), "bool": {"true": True, "false": False}.__getitem__,
        "int": _limited(int, quantity), "float": _limited(float, quantity)}
    parse = parsers[base]
    if base == kind:
        return parse
    return lambda text: None if text == "" else parse(text)


def _text_of(pattern: str, name: str) -> Callable[[str], str]:
    """A parser of text. pattern: has to match all of the text; "" for any text."""
    if not pattern:
        return cached(from_cell)

    def read(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"{name} of {text[:40]!r} has a wrong form")
        return text
    return cached(read)


def _limited(parse: Callable[[str], float], quantity: Quantity) -> Callable[[str], float]:
    """A parser of numbers in the range of a quantity.

    It refuses NaN, and numbers so large that a mean of them overflows.
    """
    lowest, highest = max(quantity.lowest, -LARGEST), min(quantity.highest, LARGEST)

    def read(text: str) -> float:
        value = parse(text)
        if not lowest <= value <= highest:
            raise ValueError(f"{quantity.what} of {text[:40]} is out of range")
        return value
    return cached(read)


# A value that many rows of a column have is parsed once, and is one object.
cached = lru_cache(maxsize=1024)


class RowWriter:
    """Formats records as rows of given columns; a column that no record has stays empty."""

    def __init__(self, kind: type[Record], columns: Sequence[str]) -> None:
        trial = trial_class(kind)
        requested = {column.name for column in fields(trial)}
        tables = table_columns(trial)
        self.columns = [(column, column in requested, column in tables) for column in columns]

    def row(self, record: Record) -> list[str]:
        """The cells of a record's row."""
        cells = []
        for column, requested, is_table in self.columns:
            if not requested:
                cells.append(to_cell(getattr(record, column, None)))
                continue
            value = getattr(record.trial, column)
            cells.append(to_cell(typed_columns.to_json(value) if is_table else value,
                                 format_lossless))
        return cells
