"""Reads stored runs, which lack the columns that were added after they were measured.

The product refuses a file that lacks a column. Here an empty column stands in its place.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TypeVar

from firstflight.runs import runs
from firstflight.runs.kinds import RunData
from firstflight.runs.results.records import Record, RowReader, columns_of

R = TypeVar("R", bound=Record)


def whole_rows(path: Path, kind: type[Record]) -> list[list[str]]:
    """The header and the rows of a stored trials.csv, with an empty column for each it lacks."""
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    lacking = [column for column in columns_of(kind) if column not in header]
    return [[*header, *lacking], *([*row, *[""] * len(lacking)] for row in rows)]


def whole_text(path: Path, kind: type[Record]) -> str:
    """The text of a stored trials.csv, with an empty column for each that it lacks."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(whole_rows(path, kind))
    return text.getvalue()


def read_rows(path: Path, kind: type[R]) -> list[R]:
    """The records of a stored trials.csv."""
    header, *rows = whole_rows(path, kind)
    reader = RowReader(kind, header)
    return [reader.record(row) for row in rows]


def stored_run(folder: Path, kind: type[Record]) -> RunData:
    """A stored run with its run.json."""
    return RunData(folder, runs.read_facts(folder), read_rows(folder / runs.TRIALS_CSV, kind))
