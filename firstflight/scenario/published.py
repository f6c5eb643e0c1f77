"""Reads published numbers from paper/*.csv: comments with the source, then a header and rows."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from firstflight.base import PROJECT, places, reading
from firstflight.base.errors import FirstFlightError, UsageError
from firstflight.findings.claims import Published

PAPER = PROJECT / "paper"
SHARES_TOLERANCE_PERCENT = 0.1  # published shares are rounded to 0.01 each
# The paper's Figure 5: the shares of responses by RTT, bandwidth and BDP, and the panel of each.
SHARES_FILE = "paper_figure5.csv"
SHARES_PANELS = {"rtt_ms": "RTT", "bandwidth_kbps": "BW", "bdp_bytes": "BDP"}


@dataclass(frozen=True)
class PublishedFetch:
    """One published raw measurement: the client's total time of one fetch."""

    initcwnd: int
    rtt_ms: float
    bandwidth_kbps: float
    total_ms: float


def buckets(file: str, panel: str = "", folder: Path = PAPER) -> dict[str, Published]:
    """The bars of a figure, by label. panel: the panel that is read of a file with several.

    The label of a bar is in the first column other than `panel`; the paper labels a bar by its
    upper end. Percentages are as the file has them. A file of improvements has the columns
    absolute_ms and percent. A file of times has total_ms, or avg_tcp_latency_ms as the paper's
    Figure 2. Raises UsageError.
    """
    header = _header(path_of(file, folder))
    time = "avg_tcp_latency_ms" if "avg_tcp_latency_ms" in header else "total_ms"
    if time not in header:
        _check_columns(file, header, ("responses_percent", "absolute_ms", "percent"))
    by_label = {}
    for row in rows(path_of(file, folder), ()):
        if row.get("panel", panel) != panel:
            continue
        label = next(value for column, value in row.items() if column != "panel")

        def value(column: str) -> float | None:
            # In a file of improvements each bar needs both of its values.
            may_lack = time in header or column not in header
            return None if may_lack and not row.get(column) else number(row, column, file)

        by_label[label] = Published(
            value("absolute_ms"), value("percent"), value(time), value("error_ms") or 0.0,
            value("error_points") or 0.0, value("responses_percent"))
    if not by_label:
        raise UsageError(f"paper/{file}: has no panel {panel!r}")
    return by_label


def levels(file: str, folder: Path = PAPER) -> dict[tuple[str, str], float]:
    """The levels in a file with the columns panel, bucket and level, by panel and bucket.

    Raises UsageError.
    """
    read = rows(path_of(file, folder), ("panel", "bucket", "level"))
    return {(row["panel"], row["bucket"]): number(row, "level", file) for row in read}


def fetches(file: str, folder: Path = PAPER) -> list[PublishedFetch]:
    """The published raw measurements of a file, in its order. Raises UsageError."""
    columns = ("initcwnd", "rtt_ms", "bandwidth_kbps", "total_s")
    read = []
    for row in rows(path_of(file, folder), columns):
        read.append(PublishedFetch(
            initcwnd=int(number(row, "initcwnd", file)), rtt_ms=number(row, "rtt_ms", file),
            bandwidth_kbps=number(row, "bandwidth_kbps", file),
            total_ms=round(number(row, "total_s", file) * 1000, 6)))
    return read


def shares(by: str) -> dict[str, Published]:
    """The buckets of SHARES_FILE by a quantity of SHARES_PANELS, each with its share."""
    return buckets(SHARES_FILE, SHARES_PANELS[by])


def is_of_the_paper(file: str) -> bool:
    """Whether a file has numbers of the paper itself, and not of a reproduction."""
    return file.startswith("paper_")


def source(file: str, folder: Path = PAPER) -> str:
    """The first comment line of a file: the source of its numbers, and how exact they are."""
    return _lines(path_of(file, folder))[0].lstrip("# ").strip()


def rows(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    """The rows of a file, by column name. Raises UsageError where one of `columns` is missing."""
    reader = csv.DictReader(line for line in _lines(path) if not line.startswith("#"))
    try:
        rows_read = [{column: value or "" for column, value in row.items() if column}
                     for row in reader]
    except csv.Error as error:
        raise UsageError(f"paper/{path.name}: is damaged: {error}") from error
    _check_columns(path.name, reader.fieldnames or (), columns)
    return rows_read


def path_of(file: str, folder: Path = PAPER) -> Path:
    """The path of a file in the folder. file: its name, from a scenario. Raises UsageError."""
    try:
        return places.inside(folder, file)
    except FirstFlightError as error:
        raise UsageError(f"published numbers: {error}") from error


def _header(path: Path) -> Sequence[str]:
    """The names of a file's columns. Raises UsageError."""
    lines = (line for line in _lines(path) if not line.startswith("#"))
    return csv.DictReader(lines).fieldnames or ()


def _lines(path: Path) -> list[str]:
    """The lines of a file, with their ends. Raises UsageError."""
    try:
        return reading.content(path).decode("utf-8").splitlines(keepends=True)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "is not UTF-8 text"
        raise UsageError(f"paper/{path.name}: cannot be read: {why}") from error


def _check_columns(file: str, header: Sequence[str], columns: Sequence[str]) -> None:
    """Refuse a file whose header lacks one of the columns. Raises UsageError."""
    missing = [column for column in columns if column not in header]
    if missing:
        raise UsageError(f"paper/{file}: has no column {', '.join(missing)}")


def number(row: dict[str, str], column: str, file: str) -> float:
    """A number of a row. Raises UsageError."""
    try:
        value = float(row[column])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UsageError(f"paper/{file}: {column} {row[column]!r} is not a number")
    return value
