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
    with (PAPER / FILE).open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(line for line in file if not line.startswith("#"))
                if row["table"] == name]
    if not rows:
        raise UsageError(f"paper/{FILE} has no table {name!r}")
    return Table(f"Published: {name}", ("", *COLUMNS),
                 tuple((row["row"], *(row[column] for column in COLUMNS)) for row in rows))
