"""The IETF 78 deck's own tables, as they stand in paper/ietf78.csv."""

from __future__ import annotations

from lab.core.findings.findings import Cell, Column, Rounded, Table
from lab.core.scenario import published, schema

DECK_FILE = "ietf78.csv"
DECK_COLUMNS = ("Avg.", "50", "75", "90", "99", "Retrans. %")


def deck_table(name: str) -> Table:
    """One published table: windows 10 and 3, improvement in ms and percent. Raises UsageError."""
    return Table(f"Published: {name}", (Column("", is_text=True), *map(Column, DECK_COLUMNS)),
                 tuple((row["row"], *(_as_printed(row, column) for column in DECK_COLUMNS))
                       for row in table_rows(name)))


def improvement_percent(name: str) -> dict[float | None, float]:
    """The published improvement by percentile, None for the average. Raises UsageError."""
    row = next(row for row in table_rows(name) if row["row"] == "% Impr.")
    return {None if column == "Avg." else float(column): published.number(row, column, DECK_FILE)
            for column in DECK_COLUMNS if row[column]}


def _as_printed(row: dict[str, str], column: str) -> Cell:
    """A number with the decimals that it was published with."""
    decimals = len(row[column].partition(".")[2])
    return Rounded(published.number(row, column, DECK_FILE), decimals) if row[column] else ""


def table_rows(name: str, where: str = f"paper/{DECK_FILE}") -> list[dict[str, str]]:
    """The rows of one table. Raises UsageError where there is none of this name."""
    columns = ("table", "row", *DECK_COLUMNS)
    rows = published.rows(published.PAPER / DECK_FILE, columns)
    schema.one_of(name, list(dict.fromkeys(row["table"] for row in rows)), where)
    return [row for row in rows if row["table"] == name]
