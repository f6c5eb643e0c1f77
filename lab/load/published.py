"""The deck's tables, as they stand in paper/ietf78.csv, beside ours."""

from __future__ import annotations

from lab.core import published
from lab.core.errors import UsageError
from lab.core.findings import Cell, Column, Rounded, Table

FILE = "ietf78.csv"
COLUMNS = ("Avg.", "50", "75", "90", "99", "Retrans. %")


def deck_table(name: str) -> Table:
    """One published table: windows 10 and 3, improvement in ms and percent. Raises UsageError."""
    return Table(f"Published: {name}", (Column("", is_text=True), *map(Column, COLUMNS)),
                 tuple((row["row"], *(_as_printed(row, column) for column in COLUMNS))
                       for row in _rows(name)))


def improvement_percent(name: str) -> dict[float | None, float]:
    """The published improvement by percentile, None for the average. Raises UsageError."""
    row = next(row for row in _rows(name) if row["row"] == "% Impr.")
    return {None if column == "Avg." else float(column): published.number(row, column, FILE)
            for column in COLUMNS if row[column]}


def _as_printed(row: dict[str, str], column: str) -> Cell:
    """A number with the decimals that it was published with."""
    decimals = len(row[column].partition(".")[2])
    return Rounded(published.number(row, column, FILE), decimals) if row[column] else ""


def _rows(name: str) -> list[dict[str, str]]:
    rows = [row for row in published.rows(published.PAPER / FILE, ("table", "row", *COLUMNS))
            if row["table"] == name]
    if not rows:
        raise UsageError(f"paper/{FILE} has no table {name!r}")
    return rows
