"""The deck's tables, as they stand in paper/ietf78.csv, beside ours."""

from __future__ import annotations

import csv

from lab.errors import UsageError
from lab.findings import Table
from lab.published import PAPER

FILE = "ietf78.csv"
COLUMNS = ("Avg.", "50", "75", "90", "99", "Retrans. %")


def deck_table(name: str) -> Table:
    """One published table: windows 10 and 3, improvement in ms and percent. Raises UsageError."""
    return Table(f"Published: {name}", ("", *COLUMNS),
                 tuple((row["row"], *(row[column] for column in COLUMNS)) for row in _rows(name)))


def improvement_percent(name: str) -> dict[float | None, float]:
    """The published improvement by percentile, None for the average. Raises UsageError."""
    row = next(row for row in _rows(name) if row["row"] == "% Impr.")
    return {None if column == "Avg." else float(column): float(row[column])
            for column in COLUMNS if row[column]}


def _rows(name: str) -> list[dict[str, str]]:
    with (PAPER / FILE).open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(line for line in file if not line.startswith("#"))
                if row["table"] == name]
    if not rows:
        raise UsageError(f"paper/{FILE} has no table {name!r}")
    return rows
