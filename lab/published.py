"""Published numbers, from paper/*.csv: comment lines with the source, a header, rows."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.errors import UsageError

PAPER = Path(__file__).resolve().parent.parent / "paper"


@dataclass(frozen=True)
class PublishedBucket:
    """One bar of the paper's Figures 5 to 7; the bucket is named by its upper end."""

    label: str
    responses_percent: float
    absolute_ms: float
    percent: float


@dataclass(frozen=True)
class PublishedFetch:
    """One published raw measurement: the client's total time of one fetch."""

    initcwnd: int
    rtt_ms: float
    bandwidth_kbps: float
    total_ms: float


def buckets(file: str, panel: str = "", folder: Path = PAPER) -> dict[str, PublishedBucket]:
    """The bars of a figure, by label: of one panel where the file has several.

    The label stands in the first column but `panel`. Raises UsageError.
    """
    found = {}
    for row in _rows(folder / file, ("responses_percent", "absolute_ms", "percent")):
        if row.get("panel", panel) != panel:
            continue
        label = next(value for column, value in row.items() if column != "panel")
        found[label] = PublishedBucket(label, _number(row, "responses_percent", file),
                                       _number(row, "absolute_ms", file),
                                       _number(row, "percent", file))
    if not found:
        raise UsageError(f"paper/{file}: has no panel {panel!r}")
    return found


def fetches(file: str, folder: Path = PAPER) -> list[PublishedFetch]:
    """Published raw measurements, in the order of the file. Raises UsageError."""
    columns = ("initcwnd", "rtt_ms", "bandwidth_kbps", "total_s")
    return [PublishedFetch(initcwnd=int(_number(row, "initcwnd", file)),
                           rtt_ms=_number(row, "rtt_ms", file),
                           bandwidth_kbps=_number(row, "bandwidth_kbps", file),
                           total_ms=round(_number(row, "total_s", file) * 1000, 6))
            for row in _rows(folder / file, columns)]


def _rows(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    """Rows by column name; raises UsageError where one of `columns` is missing."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(line for line in file if not line.startswith("#"))
            rows = [{column: value or "" for column, value in row.items() if column}
                    for row in reader]
            header = reader.fieldnames or ()
    except OSError as error:
        raise UsageError(f"paper/{path.name}: cannot be read: {error.strerror}") from error
    missing = [column for column in columns if column not in header]
    if missing:
        raise UsageError(f"paper/{path.name}: has no column {', '.join(missing)}")
    return rows


def _number(row: dict[str, str], column: str, file: str) -> float:
    try:
        return float(row[column])
    except ValueError:
        raise UsageError(f"paper/{file}: {column} {row[column]!r} is not a number") from None
