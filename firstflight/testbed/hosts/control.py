"""How a program on a host gets requests and reports results: JSON lines, and records as CSV."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any


def requests() -> Iterator[dict[str, Any]]:
    """The requests on standard input, each a JSON line."""
    while line := sys.stdin.readline():
        yield json.loads(line)


def report(line: Mapping[str, object]) -> None:
    """Write one JSON line to standard output, at once."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def write_records(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV file with a header."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


STANDARD_INPUT = 0


class Orders:
    """The JSON lines on standard input, for a program that also waits for other things."""

    def __init__(self) -> None:
        self.torn = b""
        self.ended = False

    def take(self) -> list[dict[str, Any]]:
        """The complete lines that have come. Call it when standard input is readable.

        Raises ValueError if one is not JSON.
        """
        more = os.read(STANDARD_INPUT, 1 << 16)
        self.ended = not more
        *whole, self.torn = (self.torn + more).split(b"\n")
        return [json.loads(line) for line in whole]
