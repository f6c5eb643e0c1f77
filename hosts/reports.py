"""How a program on a host is told what to do and reports: JSON lines, and records as CSV."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any


def requests() -> Iterator[dict[str, Any]]:
    """What standard input asks for, a JSON line each, as it comes."""
    while line := sys.stdin.readline():
        yield json.loads(line)


def report(line: dict[str, Any]) -> None:
    """One JSON line to standard output, at once."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def write_records(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV file with a header."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
