"""trials.csv: a row appended and synced as soon as its trial is measured, and sealed.

A seal, stored in run.json, shows later whether somebody changed the file.
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

from firstflight.base import files
from firstflight.runs.results.records import (LARGEST, Record, RowWriter, columns_of, content,
                                              read_records, rows_of, whole_lines)

# Syncing to the disk takes milliseconds, a trial in virtual time hardly more.
SYNC_INTERVAL_S = 0.2


class RecordFile:
    """trials.csv, open for appending. What cannot be written is a files.WriteError.

    A record survives the death of this process as soon as `append` returns,
    and that of the machine within SYNC_INTERVAL_S of the next one.
    """

    def __init__(self, path: Path, kind: type[Record]) -> None:
        """Open or create it. A row cut short by a crash is cut away first."""
        self.path = path
        columns, whole = _adopt(path, columns_of(kind))
        self.writer = RowWriter(kind, columns)
        self.length, self.rows = len(whole), whole.count(b"\n") - 1
        self.digest = hashlib.sha256(whole)
        self.synced = 0.0
        self.file = files.append(path)
        with files.writing(path):
            self.file.truncate(self.length)
        if not whole:
            self._write(columns)

    def append(self, record: Record) -> None:
        self._write(self.writer.row(record))

    def seal(self) -> dict[str, int | str]:
        """What the file holds now, on the disk, to show later whether it was changed."""
        self._sync()
        return {"rows": self.rows, "sha256": self.digest.hexdigest()}

    def close(self) -> None:
        self.file.close()

    def _write(self, row: Sequence[str]) -> None:
        line = _line(row).encode()
        with files.writing(self.path):
            try:
                files.write_all(self.file, line)
            except OSError:
                self.file.truncate(self.length)  # half a row may be there, on a full disk
                raise
        self.length += len(line)
        self.rows += 1
        self.digest.update(line)
        if time.monotonic() - self.synced > SYNC_INTERVAL_S:
            self._sync()

    def _sync(self) -> None:
        with files.writing(self.path):
            os.fsync(self.file.fileno())
        self.synced = time.monotonic()


def _adopt(path: Path, columns: tuple[str, ...]) -> tuple[tuple[str, ...], bytes]:
    """The columns of the file, those it has and after them those that it lacks; its whole lines.

    A file that lacks some is written anew, aside and renamed; rows measured
    before have nothing under them. A torn last row is excluded.
    """
    whole = whole_lines(path) if path.exists() else b""
    if not whole:
        return columns, whole
    rows = rows_of(whole)
    had = tuple(next(rows))
    lacking = tuple(column for column in columns if column not in had)
    if lacking:
        whole = "".join(map(_line, chain(
            [[*had, *lacking]], ([*row, *[""] * len(lacking)] for row in rows)))).encode()
        files.save(path.parent, path.name, whole)
    return had + lacking, whole


# Putting it in order -----------------------------------------------------------------

# What differs between two runs of the same: when a trial was measured.
OF_THE_RUN = ("measured_at",)


def order_rows(path: Path, kind: type[Record], trials: Iterable[object]) -> bytes:
    """The content of a results file with its rows in the order of the trials.

    They were written as they came: in which order depends on how many guests measured, and on
    how fast. Raises RecordsError.
    """
    whole = whole_lines(path)
    head, *lines = whole.splitlines(keepends=True)
    places = {trial: place for place, trial in enumerate(trials)}
    in_place = [places.get(record.trial, len(places)) for record in read_records(path, kind)]
    return head + b"".join(lines[number] for number in sorted(range(len(lines)),
                                                              key=in_place.__getitem__))


def make_seal(whole: bytes) -> dict[str, int | str]:
    """The seal of a complete file (RecordFile.seal), and one of what another run has as well.

    numbers_sha256: of the same rows without the columns OF_THE_RUN.
    """
    rows = rows_of(whole)
    head = next(rows)
    places = [place for place, column in enumerate(head) if column not in OF_THE_RUN]
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
    """What was changed in a trials.csv since it was sealed (RecordFile.seal), "" for nothing.

    A complete run has a seal; while one is measured it may lack it, and rows, a torn one
    too, may follow the sealed ones. Raises RecordsError.
    """
    seal = seal if isinstance(seal, Mapping) else {}
    sealed = seal.get("rows")
    if not isinstance(sealed, int) or isinstance(sealed, bool):
        return (f"run.json does not say what {path.name} held when it was measured: whether rows"
                " were changed since then is not known" if complete else "")
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
        how = "rows were edited, doubled or put in another order"
    return f"{path.name} was changed since it was measured: {how}; --fresh measures it again"


def _digest(lines: bytes, rows: int) -> str:
    """The digest of the header and of so many rows, which have to be there."""
    stream, digest = io.BytesIO(lines), hashlib.sha256()
    for _ in range(rows + 1):
        digest.update(stream.readline())
    return digest.hexdigest()
