"""Records: one row of trials.csv per trial, appended and synced as it is measured.

A row states what was asked (the trial's own columns), what was measured, what
was seen on the wire, what the model predicts, and the verdict. An empty field
means that the value could not be had.

A record is a frozen dataclass with its trial, another one, first: Record for
a fetch, and one for each other kind of scenario (AnyRecord).
"""

from __future__ import annotations

import csv
import io
import os
import time
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol, TextIO, TypeVar, get_type_hints, overload

from lab.errors import FirstFlightError
from lab.trial import Trial

PASS = "pass"
FAIL = "fail"
SKIPPED = "skipped"  # nothing to judge: the transfer itself failed


class RecordsError(FirstFlightError):
    """A results file cannot be read as what it should be."""


@dataclass(frozen=True)
class Record:
    """One measured trial. Times in ms, windows in segments.

    connect_ms, first_byte_ms, total_ms: the client's clock, from the start of
        the handshake to its end, to the first and the last byte.
    latency_ms: the paper's metric (section 2), T_ACK − T_Res1 at the server,
        by the kernel's time stamps; wire_latency_ms: the same from the
        capture at the server.
    seen_initcwnd: TCP_INFO at accept; seen_first_flight: data segments on the
        wire before the first acknowledgement of data.
    seen_rtt_ms: handshake at the client less serialisation; seen_bandwidth_kbps:
        from the spacing of the first flight at the client.
    retransmissions: data segments that the server sent again;
        handshake_retransmissions: SYNs and SYN-ACKs sent again;
        lost_segments: data segments that the client never received.
    retransmission_cause: why it retransmitted although nothing was lost.
    model_ms: predicted total_ms of the lossless transfer (lab.tcp.predict).
    verdict: pass, fail or skipped; verdict_reason says what differed.
    """

    trial: Trial
    ok: bool
    error: str = ""
    connect_ms: float | None = None
    first_byte_ms: float | None = None
    total_ms: float | None = None
    latency_ms: float | None = None
    wire_latency_ms: float | None = None
    header_bytes: int | None = None
    request_bytes: int | None = None
    seen_initcwnd: int | None = None
    seen_first_flight: int | None = None
    seen_rtt_ms: float | None = None
    seen_bandwidth_kbps: float | None = None
    retransmissions: int | None = None
    handshake_retransmissions: int | None = None
    lost_segments: int | None = None
    retransmission_cause: str = ""
    model_ms: float | None = None
    model_latency_ms: float | None = None
    verdict: str = SKIPPED
    verdict_reason: str = ""
    measured_at: str = field(default="", compare=False)

    @property
    def counts(self) -> bool:
        """Whether this record may enter a figure."""
        return self.ok and self.verdict == PASS


class AnyTrial(Protocol):
    """What is asked, of whatever kind; `job` is how a worker reads it."""

    @property
    def id(self) -> str: ...

    @property
    def scenario(self) -> str: ...

    def job(self) -> dict[str, Any]: ...


class AnyRecord(Protocol):
    """What is measured, of whatever kind."""

    @property
    def trial(self) -> Any: ...

    @property
    def ok(self) -> bool: ...

    @property
    def error(self) -> str: ...

    @property
    def verdict(self) -> str: ...

    @property
    def verdict_reason(self) -> str: ...


R = TypeVar("R", bound=AnyRecord)


def trial_class(record: type[Any]) -> type[Any]:
    """The dataclass of the trials that a kind of record is of."""
    kind: type[Any] = get_type_hints(record)["trial"]
    return kind


def columns_of(record: type[Any]) -> tuple[str, ...]:
    """The columns of trials.csv for a kind of record: the trial's, then its own."""
    return (tuple(column.name for column in fields(trial_class(record)))
            + tuple(column.name for column in fields(record) if column.name != "trial"))


COLUMNS = columns_of(Record)


# Syncing to the disk takes milliseconds, a trial in virtual time hardly more.
SYNC_INTERVAL_S = 0.2


class RecordFile:
    """trials.csv, open for appending.

    A record survives the death of this process as soon as `append` returns,
    and that of the machine within SYNC_INTERVAL_S of the next one.
    """

    def __init__(self, path: Path, record: type[Any] = Record) -> None:
        """Open or create it. A row cut short by a crash is cut away first."""
        self.path = path
        self.columns = columns_of(record)
        complete = complete_bytes(path)
        self.synced = 0.0
        self.file: TextIO = path.open("a", newline="", encoding="utf-8")
        if complete == 0:
            self.file.truncate(0)
            self._write(self.columns)
        else:
            self.file.truncate(complete)

    def append(self, record: AnyRecord) -> None:
        self._write([to_text(record_value(record, column)) for column in self.columns])

    def close(self) -> None:
        self._sync()
        self.file.close()

    def _write(self, row: tuple[str, ...] | list[str]) -> None:
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow(row)
        self.file.write(line.getvalue())
        self.file.flush()
        if time.monotonic() - self.synced > SYNC_INTERVAL_S:
            self._sync()

    def _sync(self) -> None:
        os.fsync(self.file.fileno())
        self.synced = time.monotonic()


def record_value(record: AnyRecord, column: str) -> Any:
    """The value of one column of trials.csv."""
    return getattr(record.trial if hasattr(record.trial, column) else record, column)


def complete_bytes(path: Path) -> int:
    """Length of the file up to the end of its last whole row, 0 if there is none."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return 0
    return data.rfind(b"\n") + 1


@overload
def read_records(path: Path) -> list[Record]: ...


@overload
def read_records(path: Path, record: type[R]) -> list[R]: ...


def read_records(path: Path, record: type[Any] = Record) -> list[Any]:
    """All whole rows of a trials.csv; a torn last line is dropped.

    Raises RecordsError where the file is missing, of another version (its
    columns differ), or holds a value that is none.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RecordsError(f"{path}: cannot be read: {error.strerror}") from error
    text = data[:data.rfind(b"\n") + 1].decode("utf-8", errors="replace")
    rows = csv.reader(io.StringIO(text))
    header = tuple(next(rows, ()))
    if header != columns_of(record):
        raise RecordsError(f"{path}: its columns are not this version's; measure again with"
                           " --fresh, or read it with the version that wrote it")
    records = []
    trial = trial_class(record)
    for number, row in enumerate(rows, start=2):
        try:
            records.append(parse_row(row, record, trial))
        except (ValueError, KeyError) as error:
            raise RecordsError(f"{path}, line {number}: {error}; delete that line to measure"
                               " its trial again") from error
    return records


def parse_row(row: list[str], record: type[Any] = Record, trial: type[Any] = Trial) -> Any:
    """A record from the fields of one row. Raises ValueError."""
    columns = [column for kind in (trial, record) for column in fields(kind)
               if column.name != "trial"]
    if len(row) != len(columns):
        raise ValueError(f"{len(row)} fields, expected {len(columns)}")
    values = {column.name: from_text(text, str(column.type))
              for column, text in zip(columns, row)}
    asked = {column.name: values.pop(column.name) for column in fields(trial)}
    return record(trial=trial(**asked), **values)


def to_text(value: Any) -> str:
    """A field as it stands in the file; floats keep what was measured, to the microsecond."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.6f}".rstrip("0").rstrip(".")
    return " ".join(str(value).split())


def from_text(text: str, kind: str) -> Any:
    """The reverse of to_text for a field annotated `kind`. Raises ValueError."""
    if kind == "str":
        return text
    if text == "" and kind.endswith("| None"):
        return None
    base = kind.removesuffix(" | None")
    if base == "bool":
        return {"true": True, "false": False}[text]
    return {"int": int, "float": float}[base](text)
