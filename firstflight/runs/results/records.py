"""Records: one row of trials.csv a trial, read by name; runs.results.record_file writes them.

A record is a frozen dataclass with its trial, another one, first; PATTERNS of either is the form
of text that is read further, by its column. A row has what was requested (the trial's columns),
what was measured, what was observed on the wire, what the model predicts, and the verdict. An
empty field means that the value is not available.

Columns have names, not places: a run that was made before a column existed
has that column's default, and a column that this version does not know stays
in its file.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar, get_type_hints

from firstflight.base import files
from firstflight.base.errors import FirstFlightError
from firstflight.base.quantity import Quantity
from firstflight.base.words import format_lossless, from_cell, to_cell
from firstflight.findings.quantities import QUANTITIES

PASS = "pass"
FAIL = "fail"
SKIPPED = "skipped"  # nothing to judge: the transfer itself failed, or the kernel lacks it

ANY = Quantity("", "a number")
MOST_BYTES = 2 << 30  # of trials.csv: a million rows have a quarter of it
LARGEST = 10**15  # of any number in a record; 10¹⁵ ms are 30,000 years


class RecordsError(FirstFlightError):
    """A results file cannot be read as what it should be."""


@dataclass(frozen=True)
class Record:
    """What the records of every kind have; a kind adds its trial and its columns.

    COMPARED is the column that runs are compared by, "" for none.
    ok: whether the transfer itself succeeded. error: what happened where it did not.
    verdict: pass, fail or skipped. failed_checks: the checks that failed, a semicolon between them.
    verdict_reason: what differed, in words. measured_at: the time of day, UTC.
    """

    COMPARED: ClassVar[str] = ""
    trial: Any
    ok: bool
    error: str = ""
    verdict: str = field(default=SKIPPED, kw_only=True)
    failed_checks: str = field(default="", kw_only=True)
    verdict_reason: str = field(default="", kw_only=True)
    measured_at: str = field(default="", compare=False, kw_only=True)

    def validate(self) -> None:
        """Raises ValueError if it lacks what a record like it has."""

    @property
    def counts(self) -> bool:
        """Whether this record may enter a number."""
        return self.ok and self.verdict == PASS

    @property
    def outcome(self) -> str:
        """The verdict, or that the transfer failed."""
        return (self.verdict if self.ok else
                "failed as expected" if self.failed_as_expected else "failed transfer")

    @property
    def failed_as_expected(self) -> bool:
        """Whether the transfer failed as expected, by its packets."""
        return not self.ok and self.verdict == PASS

    @property
    def was_skipped(self) -> bool:
        """Whether it was not measured, since this machine lacks what it needs."""
        return self.ok and self.verdict == SKIPPED

    @property
    def why_not(self) -> str:
        """Why it does not count; "" if it does."""
        return "" if self.counts else (self.error or self.verdict_reason
                                       or "no reason was recorded")


R = TypeVar("R", bound=Record)
# What a field of a record or of a trial may be.
Value = str | int | float | bool | None
_LAST = ("verdict", "failed_checks", "verdict_reason", "measured_at")


def hints_of(kind: type[Any]) -> dict[str, Any]:
    """The types of a dataclass's fields by their names."""
    # Python 3.10 refuses KW_ONLY, which is no type, and a ClassVar without one.
    return get_type_hints(kind, localns={"KW_ONLY": object})


def trial_class(kind: type[Record]) -> type[Any]:
    """The dataclass of the trials that a kind of record is of."""
    trial: type[Any] = hints_of(kind)["trial"]
    return trial


def requested_fields(trial: type[Any]) -> tuple[Field[Any], ...]:
    """The fields of a class of trials in the order of their columns.

    Those that its COLUMNS name come first, where it has that.
    """
    first: tuple[str, ...] = getattr(trial, "COLUMNS", ())
    return tuple(sorted(fields(trial), key=lambda column: (
        first.index(column.name) if column.name in first else len(first))))


def columns_of(kind: type[Record]) -> tuple[str, ...]:
    """The columns of trials.csv: the trial's, then the record's, the verdict last."""
    own = [column.name for column in fields(kind) if column.name not in ("trial", *_LAST)]
    return (*(column.name for column in requested_fields(trial_class(kind))), *own, *_LAST)


def value_of(record: Record, column: str) -> Any:
    """The value of one column, of the trial or of the record itself."""
    return getattr(record.trial if hasattr(record.trial, column) else record, column)


def varied(columns: Mapping[str, Sequence[object]]) -> list[str]:
    """Which parameters distinguish some trials; columns: the values of each, one for each trial.

    What follows from an earlier one, as the uplink from the bandwidth, is none.
    """
    names, different = list(columns), {name: len(set(columns[name])) for name in columns}
    return [name for place, name in enumerate(names) if different[name] > 1
            and not any(len(set(zip(columns[other], columns[name]))) == different[other]
                        for other in names[:place])]


# Reading -----------------------------------------------------------------------------

def read_records(path: Path, kind: type[R]) -> list[R]:
    """All whole rows of a trials.csv; a torn last line is dropped.

    Raises RecordsError if the file is missing, lacks a column that has no
    default, or holds a value that is none.
    """
    rows, records = rows_of(whole_lines(path)), []
    try:
        reader = RowReader(kind, next(rows, []))
        if reader.lacking:
            raise RecordsError(f"{path}: has no column {', '.join(reader.lacking)}; it is not a"
                               " file of such trials")
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
    return csv.reader(io.TextIOWrapper(io.BytesIO(lines), "utf-8", errors="replace", newline="\n"))


def whole_lines(path: Path) -> bytes:
    """The content of a results file but for a torn last line. Raises RecordsError."""
    data = content(path)
    return data if data.endswith(b"\n") else data[:data.rfind(b"\n") + 1]


def content(path: Path) -> bytes:
    """All that a results file holds. Raises RecordsError."""
    try:
        return files.content(path, MOST_BYTES)
    except OSError as error:
        raise RecordsError(f"{path}: cannot be read: {error.strerror}") from error


class RowReader(Generic[R]):
    """Rows of one header, as records of a kind.

    lacking: required columns that the header does not have.
    """

    def __init__(self, kind: type[R], header: Sequence[str]) -> None:
        self.trial = trial_class(kind)
        self.make: Callable[..., R] = kind
        self.width = len(header)
        places = {column: place for place, column in enumerate(header)}
        self.of_trial = _parsers(self.trial, places, requested=True)
        self.of_record = _parsers(kind, places, requested=False)
        self.lacking = [
            column.name for owner in (self.trial, kind) for column in fields(owner)
            if column.name not in (*places, "trial") and column.default is MISSING]

    def record(self, row: Sequence[str]) -> R:
        """Raises ValueError or KeyError."""
        if len(row) != self.width:
            raise ValueError(f"{len(row)} fields, expected {self.width}")
        requested, observed = ({name: parse(row[place])
                                for name, place, parse, has_default in columns
                                if row[place] or not has_default}
                               for columns in (self.of_trial, self.of_record))
        record = self.make(trial=self.trial(**requested), **observed)
        record.validate()
        return record


Column = tuple[str, int, Callable[[str], Value], bool]


def _parsers(owner: type[Any], places: Mapping[str, int], requested: bool) -> list[Column]:
    """Of each column that the header has: name, place, what reads its text, and whether an
    empty field means its default. What was requested is in the range of what may be."""
    return [(column.name, places[column.name],
             _parser(column, QUANTITIES.get(column.name, ANY) if requested else ANY,
                     getattr(owner, "PATTERNS", {}).get(column.name, "")),
             column.default is not MISSING)
            for column in fields(owner) if column.name in places and column.name != "trial"]


def _parser(column: Field[Any], quantity: Quantity, pattern: str) -> Callable[[str], Value]:
    """What reads a field annotated so; the reverse of to_text. Raises ValueError, KeyError."""
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
    """Text, of a pattern if there is one."""
    if not pattern:
        return remembered(from_cell)

    def read(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"{name} of {text[:40]!r} is not as it is written")
        return text
    return remembered(read)


def _limited(parse: Callable[[str], float], quantity: Quantity) -> Callable[[str], float]:
    """Numbers of a quantity; not NaN, and nothing that overflows in a mean."""
    lowest, highest = max(quantity.lowest, -LARGEST), min(quantity.highest, LARGEST)

    def read(text: str) -> float:
        value = parse(text)
        if not lowest <= value <= highest:
            raise ValueError(f"{quantity.what} of {text[:40]} is out of range")
        return value
    return remembered(read)


# What stands in many rows of a column is read once, and is one object.
remembered = lru_cache(maxsize=1024)


class RowWriter:
    """Writes the rows of a table with these columns; nothing under one that it does not know."""

    def __init__(self, kind: type[Record], columns: Sequence[str]) -> None:
        requested = {column.name for column in fields(trial_class(kind))}
        self.columns = [(column, column in requested) for column in columns]

    def row(self, record: Record) -> list[str]:
        trial = record.trial
        return [to_cell(getattr(trial, column), format_lossless) if requested else
                to_cell(getattr(record, column, None)) for column, requested in self.columns]
