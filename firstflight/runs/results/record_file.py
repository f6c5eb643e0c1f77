"""Writes trials.csv and what_if.csv. A row is appended as soon as its trial is measured.

A seal (row count and digest) in run.json shows later whether the file was changed.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path

from firstflight.base import files, places
from firstflight.runs.results.records import (LARGEST, Record, RowWriter, columns_of, content,
                                              read_records, rows_of, whole_lines)

# Syncing takes milliseconds, and a trial in virtual time hardly takes longer. So the file is not
# synced for each row, but after this time.
SYNC_INTERVAL_S = 0.2
SYNC_SHARE = 0.05  # of the time; on a busy disk, where one sync takes half a second, they are rarer


class RecordFile:
    """trials.csv or what_if.csv, open for appending. Its methods raise errors.WriteError.

    A record survives a kill of this process as soon as `append` returns. It survives a crash of the
    machine once the next record is appended SYNC_INTERVAL_S later; on a busy disk that is twenty
    times as long as syncing takes.
    """

    def __init__(self, path: Path, kind: type[Record], what_if: bool = False) -> None:
        """Open or create the file. A row that a crash cut short is removed first.

        what_if: whether a new file has the column of that name.
        """
        self.path = path
        complete = whole_lines(path) if path.exists() else b""
        columns = next(rows_of(complete), None) or columns_of(kind, what_if)
        self.writer = RowWriter(kind, columns)
        self.length, self.rows = len(complete), complete.count(b"\n") - 1
        self.digest = hashlib.sha256(complete)
        self.sync_after = SYNC_INTERVAL_S  # time.monotonic() counts from the machine's start
        self.file = files.open_to_append(path)
        with places.writing(path):
            self.file.truncate(self.length)
        if not complete:
            self._write(columns)

    def append(self, record: Record) -> None:
        """Append the row of a record."""
        self._write(self.writer.row(record))

    def seal(self) -> dict[str, int | str]:
        """Sync the file; return its number of rows and its SHA-256."""
        self._sync()
        return {"rows": self.rows, "sha256": self.digest.hexdigest()}

    def close(self) -> None:
        self.file.close()

    def _write(self, row: Sequence[str]) -> None:
        line = _line(row).encode()
        with places.writing(self.path):
            try:
                files.write_all(self.file, line)
            except OSError:
                self.file.truncate(self.length)  # half a row may be there, on a full disk
                raise
        self.length += len(line)
        self.rows += 1
        self.digest.update(line)
        if time.monotonic() > self.sync_after:
            self._sync()

    def _sync(self) -> None:
        begun = time.monotonic()
        with places.writing(self.path):
            os.fsync(self.file.fileno())
        ended = time.monotonic()
        self.sync_after = ended + max(SYNC_INTERVAL_S, (ended - begun) / SYNC_SHARE)


# The order of the rows ---------------------------------------------------------------

# Columns that differ between two runs of the same scenario.
PER_RUN_COLUMNS = ("measured_at",)


def order_rows(path: Path, kind: type[Record], trials: Iterable[object]) -> bytes:
    """The content of a file of records with its rows in the order of the trials.

    Rows are appended as trials end. That order depends on how many guests measure and how fast they
    are. Rows of other trials come last. Raises RecordsError.
    """
    header, *lines = whole_lines(path).splitlines(keepends=True)
    rank_of = {trial: rank for rank, trial in enumerate(trials)}
    ranks = [rank_of.get(record.trial, len(rank_of)) for record in read_records(path, kind)]
    in_order = sorted(range(len(lines)), key=ranks.__getitem__)
    return header + b"".join(lines[number] for number in in_order)


def make_seal(complete: bytes) -> dict[str, int | str]:
    """The seal of a complete file's content (RecordFile.seal), with one more digest.

    numbers_sha256 is the digest of the rows without PER_RUN_COLUMNS. Another run with the same
    numbers has the same digest.
    """
    rows = rows_of(complete)
    header = next(rows)
    places = [place for place, column in enumerate(header) if column not in PER_RUN_COLUMNS]
    numbers = hashlib.sha256()
    for row in chain([header], rows):
        numbers.update(_line([row[place] for place in places]).encode())
    return {"rows": complete.count(b"\n") - 1, "sha256": hashlib.sha256(complete).hexdigest(),
            "numbers_sha256": numbers.hexdigest()}


def _line(row: Sequence[str]) -> str:
    """A row as a line of the file."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(row)
    return line.getvalue()


# Changes after the measurement -------------------------------------------------------

def changes(path: Path, seal: object, complete: bool) -> str:
    """How a file was changed since it was sealed (RecordFile.seal), in words; "" if it was not.

    complete: whether the run is. A complete run has a seal. A run that is under way may lack it,
    and further rows may follow the sealed ones, and a part of a row after them. Raises
    RecordsError.
    """
    seal = seal if isinstance(seal, Mapping) else {}
    sealed = seal.get("rows")
    if not isinstance(sealed, int) or isinstance(sealed, bool):
        return (f"run.json has no seal of {path.name}, so it is unknown whether its rows were"
                " changed since they were measured" if complete else "")

    data = content(path)
    lines = data[:data.rfind(b"\n") + 1]
    rows = lines.count(b"\n") - 1
    if complete and len(lines) < len(data):
        how = f"{len(data) - len(lines)} bytes follow its last line"
    elif rows < sealed or (complete and rows > sealed):
        how = f"it has {rows} rows, {sealed if sealed < LARGEST else 'many more'} were measured"
    elif _digest(lines, sealed) in (seal.get("sha256"), seal.get("ordered_sha256")):
        return ""
    else:
        how = "rows were edited, duplicated or reordered"
    return f"{path.name} was changed since it was measured: {how}; --fresh measures it again"


def _digest(lines: bytes, rows: int) -> str:
    """The SHA-256 of the header and the first `rows` rows. There have to be as many."""
    stream, digest = io.BytesIO(lines), hashlib.sha256()
    for _ in range(rows + 1):
        digest.update(stream.readline())
    return digest.hexdigest()
