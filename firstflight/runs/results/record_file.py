"""Writes trials.csv and what_if.csv: a row is appended and synced as soon as its trial is measured.

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

# Syncing takes milliseconds, and a trial in virtual time hardly takes longer. On a busy disk it
# takes half a second: it may take a twentieth of the time.
SYNC_INTERVAL_S, SYNC_SHARE = 0.2, 0.05


class RecordFile:
    """trials.csv or what_if.csv, open for appending. Its methods raise errors.WriteError.

    A record survives a kill of this process as soon as `append` returns, and a crash of the
    machine SYNC_INTERVAL_S later, on a busy disk after twenty times what syncing takes, once the
    next one is appended.
    """

    def __init__(self, path: Path, kind: type[Record], what_if: bool = False) -> None:
        """Open or create the file. A row that a crash cut short is removed first.

        what_if: with the column of that name.
        """
        self.path = path
        whole = whole_lines(path) if path.exists() else b""
        columns = next(rows_of(whole), None) or columns_of(kind, what_if)
        self.writer = RowWriter(kind, columns)
        self.length, self.rows = len(whole), whole.count(b"\n") - 1
        self.digest = hashlib.sha256(whole)
        self.sync_after = SYNC_INTERVAL_S  # of a clock that began when the machine did
        self.file = files.open_to_append(path)
        with places.writing(path):
            self.file.truncate(self.length)
        if not whole:
            self._write(columns)

    def append(self, record: Record) -> None:
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


# Putting it in order -----------------------------------------------------------------

# Columns that differ between two runs of the same scenario.
PER_RUN_COLUMNS = ("measured_at",)


def order_rows(path: Path, kind: type[Record], trials: Iterable[object]) -> bytes:
    """The content of a file of records with its rows in the order of the trials.

    Rows are appended as trials end, and that order depends on how many guests measure and how fast
    they are. Raises RecordsError.
    """
    whole = whole_lines(path)
    head, *lines = whole.splitlines(keepends=True)
    places = {trial: place for place, trial in enumerate(trials)}
    in_place = [places.get(record.trial, len(places)) for record in read_records(path, kind)]
    return head + b"".join(lines[number] for number in sorted(range(len(lines)),
                                                              key=in_place.__getitem__))


def make_seal(whole: bytes) -> dict[str, int | str]:
    """The seal of a complete file (RecordFile.seal), with one more digest.

    numbers_sha256: of the rows without PER_RUN_COLUMNS, so that another run with the same numbers
    has the same digest.
    """
    rows = rows_of(whole)
    head = next(rows)
    places = [place for place, column in enumerate(head) if column not in PER_RUN_COLUMNS]
    numbers = hashlib.sha256()
    for row in chain([head], rows):
        numbers.update(_line([row[place] for place in places]).encode())
    return {"rows": whole.count(b"\n") - 1, "sha256": hashlib.sha256(whole).hexdigest(),
            "numbers_sha256": numbers.hexdigest()}


def _line(row: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(row)
    return line.getvalue()


# Noticing what was changed -----------------------------------------------------------

def changes(path: Path, seal: object, complete: bool) -> str:
    """How a file was changed since it was sealed (RecordFile.seal), in words; "" if it was not.

    A complete run has a seal. A run that is under way may lack it, and further rows may follow the
    sealed ones, a torn one included. Raises RecordsError.
    """
    seal = seal if isinstance(seal, Mapping) else {}
    sealed = seal.get("rows")
    if not isinstance(sealed, int) or isinstance(sealed, bool):
        return (f"run.json has no seal of {path.name}, so it is unknown whether its rows were"
                " changed since they were measured" if complete else "")
    data = content(path)
    whole = data[:data.rfind(b"\n") + 1]
    rows = whole.count(b"\n") - 1
    if complete and len(whole) < len(data):
        how = f"{len(data) - len(whole)} bytes follow its last line"
    elif rows < sealed or complete and rows > sealed:
        how = f"it has {rows} rows, {sealed if sealed < LARGEST else 'many more'} were measured"
    elif _digest(whole, sealed) in (seal.get("sha256"), seal.get("ordered_sha256")):
        return ""
    else:
        how = "rows were edited, duplicated or reordered"
    return f"{path.name} was changed since it was measured: {how}; --fresh measures it again"


def _digest(lines: bytes, rows: int) -> str:
    """The SHA-256 of the header and the first `rows` rows, which have to exist."""
    stream, digest = io.BytesIO(lines), hashlib.sha256()
    for _ in range(rows + 1):
        digest.update(stream.readline())
    return digest.hexdigest()
