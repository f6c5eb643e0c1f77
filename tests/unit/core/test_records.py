"""Records: written one by one, read by name, whatever version wrote them."""

from __future__ import annotations

import csv
import hashlib
import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from firstflight.base.files import WriteError
from firstflight.base.words import format_lossless, to_cell
from firstflight.runs.results import record_file, records
from firstflight.runs.results.record_file import RecordFile
from firstflight.runs.results.records import (FAIL, PASS, RecordsError, columns_of, read_records,
                                              value_of)
from firstflight.testbed.messages import started_at
from tests.unit.core.example import Record, Trial, record

COLUMNS = ("scenario", "rtt_ms", "repeat", "part", "ok", "error", "total_ms", "lost", "cause",
           "verdict", "failed_checks", "verdict_reason", "measured_at")


@dataclass(frozen=True)
class LaterTrial(Trial):
    jitter_ms: float = 0.0


@dataclass(frozen=True)
class LaterRecord(Record):
    """The same with a column each in trial and record."""

    trial: LaterTrial
    queue_ms: float | None = None


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trials.csv"


def write(path: Path, *rows: records.Record, kind: type[records.Record] = Record) -> None:
    file = RecordFile(path, kind)
    for row in rows:
        file.append(row)
    file.close()


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_columns_are_the_trials_then_the_records_and_the_verdict_last() -> None:
    assert columns_of(Record) == COLUMNS
    assert columns_of(LaterRecord)[4:6] == ("jitter_ms", "ok")


def test_what_is_written_is_read(path: Path) -> None:
    rows = [record(20.5, lost=0, cause='a "b", c'), record(error="no\nanswer", ok=False,
            verdict=FAIL, verdict_reason="RTT: observed 1, expected 2", total_ms=None),
            record(measured_at="2024-01-01")]
    write(path, *rows)
    found = read_records(path, Record)
    assert found == [rows[0], replace(rows[1], error="no answer"), rows[2]]
    assert found[0].trial.rtt_ms == value_of(found[0], "rtt_ms") == 20.5
    assert found[2].measured_at == "2024-01-01"
    assert lines(path)[0] == ",".join(COLUMNS)


@pytest.mark.parametrize(("value", "text"), [
    (None, ""), (True, "true"), (False, "false"), (1.0, "1"), (0.1234567, "0.123457"),
    (1e-9, "0"), (1500, "1500"), ("two\nlines", "two lines")])
def test_fields_as_text(value: object, text: str) -> None:
    assert to_cell(value) == text


def test_what_was_asked_keeps_every_digit_and_what_was_measured_the_microsecond() -> None:
    assert to_cell(0.1 + 0.2, format_lossless) == "0.30000000000000004"
    assert to_cell(0.1 + 0.2) == "0.3"


@pytest.mark.parametrize("text", ["=HYPERLINK(\"x\")", "+1", "-1+1", "@SUM(A1)", "'=1", "''@x", "'",
                                  "'quoted'", "\t=1", "\x1b=1", "a=1", "", "–", "'-",
                                  "=\x00\x1b[2J"])
def test_no_spreadsheet_takes_text_for_a_formula(path: Path, text: str) -> None:
    """And it is read back as it was, but for control characters."""
    write(path, record(error=text, ok=False, verdict_reason=text), record(part=text))
    plain = "".join(each for each in " ".join(text.split()) if each.isprintable())
    first, second = read_records(path, Record)
    assert (first.error, first.verdict_reason, second.trial.part) == (plain, plain, plain)
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.reader(file):
            assert not [cell for cell in row if cell[:1] in ("=", "+", "-", "@", "\t", "\r")]
            assert all(cell.isprintable() for cell in row)


def test_negative_numbers_are_no_text(path: Path) -> None:
    write(path, record(total_ms=-1.5))
    assert ",-1.5," in lines(path)[1] and read_records(path, Record)[0].total_ms == -1.5


def test_an_older_run_lacks_later_columns_and_has_their_defaults(path: Path) -> None:
    write(path, record())
    (found,) = read_records(path, LaterRecord)
    assert found.total_ms == 1.5 and found.queue_ms is None and found.trial.jitter_ms == 0.0


def test_an_older_run_is_resumed_with_the_later_columns_added(path: Path) -> None:
    write(path, record(10.0))
    later = LaterRecord(LaterTrial("small", 20.0, 1, jitter_ms=3.0), ok=True, queue_ms=7.0)
    write(path, later, kind=LaterRecord)
    assert lines(path)[0] == ",".join((*COLUMNS, "jitter_ms", "queue_ms"))
    first, second = read_records(path, LaterRecord)
    assert second == later and first.total_ms == 1.5 and first.queue_ms is None
    assert not list(path.parent.glob(".*"))  # nothing is left of the writing aside


def test_a_column_of_a_later_version_is_kept_when_an_older_one_resumes(path: Path) -> None:
    later = LaterRecord(LaterTrial("small", 20.0, 1), ok=True, queue_ms=7.0)
    write(path, later, kind=LaterRecord)
    before = lines(path)
    write(path, record(30.0))
    assert lines(path)[:2] == before
    assert [each.trial.rtt_ms for each in read_records(path, Record)] == [20, 30]
    assert [each.queue_ms for each in read_records(path, LaterRecord)] == [7.0, None]


@pytest.mark.parametrize("cut", [1, 5])
def test_a_torn_last_line_is_dropped_and_cut_away_on_resuming(path: Path, cut: int) -> None:
    write(path, record(10.0), record(20.0))
    path.write_bytes(path.read_bytes()[:-cut])
    assert [each.trial.rtt_ms for each in read_records(path, Record)] == [10]
    write(path, record(30.0))
    assert [each.trial.rtt_ms for each in read_records(path, Record)] == [10, 30]


def test_half_a_row_is_cut_away_where_there_is_no_more_room(path: Path) -> None:
    """By a limit of the size of files, as a full disk would; the next row stands where it was."""
    file = RecordFile(path, Record)
    file.append(record(1))
    before, (soft, hard) = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 5, hard))
    try:
        with pytest.raises(WriteError, match="File too large"):
            file.append(record(1))
        cut = path.read_bytes()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert cut == before
    file.append(record(1))
    assert file.seal()["rows"] == 2 and lines(path)[1] == lines(path)[2]
    file.close()


def test_a_torn_header_is_written_anew(path: Path) -> None:
    path.write_text("scenario,rtt", encoding="utf-8")
    write(path, record())
    assert len(read_records(path, Record)) == 1


@pytest.mark.parametrize(("old", "new", "words"), [
    ("1.5", "fast", "line 2: could not convert string to float: 'fast'"),
    ("true", "yes", "line 2: 'yes'"),
    (",pass", ",pass,pass", "line 2: 14 fields, expected 13"),
    ("repeat,", "again,", "has no column repeat; it is not a file of such trials"),
])
def test_a_damaged_file_names_the_place(path: Path, old: str, new: str, words: str) -> None:
    write(path, record())
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    with pytest.raises(RecordsError) as caught:
        read_records(path, Record)
    assert str(path) in str(caught.value) and words in str(caught.value)


def test_a_file_that_is_not_there(path: Path) -> None:
    with pytest.raises(RecordsError, match="cannot be read: No such file"):
        read_records(path, Record)


def test_only_what_passed_counts_and_others_say_why() -> None:
    assert record().counts and record().why_not == "" and record().outcome == PASS
    failed = record(ok=False, verdict=records.SKIPPED, error="curl 28")
    assert (failed.counts, failed.outcome, failed.why_not) == (False, "failed transfer", "curl 28")
    refused = record(verdict=FAIL, verdict_reason="RTT")
    assert (refused.counts, refused.outcome, refused.why_not) == (False, FAIL, "RTT")
    assert record(verdict=FAIL).why_not == "no reason was recorded"
    assert record(verdict=records.SKIPPED).was_skipped
    assert not any(each.was_skipped for each in (record(), failed, refused))
    expected = record(ok=False, verdict=PASS, error="refused")
    assert (expected.failed_as_expected, expected.counts) == (True, False)
    assert expected.outcome == "failed as expected"
    assert not any(each.failed_as_expected for each in (record(), failed, refused))


def test_bytes_that_are_no_text_are_read_as_such(path: Path) -> None:
    write(path, record(ok=False, error="lost: x"))
    path.write_bytes(path.read_bytes().replace(b": x", b": \xff"))
    assert read_records(path, Record)[0].error == "lost: \ufffd"


@pytest.mark.parametrize(("interval_s", "synced"), [
    (lambda: -1.0, [0, 1, 2, 2]), (lambda: 1e9, [2]), (lambda: time.monotonic() / 2, [0, 2])])
def test_rows_are_on_the_disk_within_an_interval_and_when_they_are_sealed(
        path: Path, monkeypatch: pytest.MonkeyPatch, interval_s: Callable[[], float],
        synced: list[int]) -> None:
    """Seen by the rows that the file had when it was synced; the first line is its header."""
    monkeypatch.setattr(record_file, "SYNC_INTERVAL_S", interval_s())
    seen: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda number: seen.append(len(lines(path)) - 1))
    file = RecordFile(path, Record)
    for _ in range(2):
        file.append(record())
    sealed = file.seal()
    file.close()
    assert seen == synced
    assert sealed == {"rows": 2, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    assert record_file.changes(path, sealed, complete=True) == ""


@pytest.mark.parametrize("rows", [10**30, 10**4000, -1, -(10**30)])
def test_a_seal_of_more_rows_than_there_can_be_takes_no_time(path: Path, rows: int) -> None:
    file = RecordFile(path, Record)
    file.append(record())
    sealed = file.seal()
    file.close()
    for complete in (True, False):
        assert record_file.changes(path, {**sealed, "rows": rows}, complete).startswith(
            f"{path.name} was changed since it was measured: ")


def test_while_a_run_goes_on_it_may_lack_a_seal_and_end_in_half_a_row(path: Path) -> None:
    file = RecordFile(path, Record)
    file.append(record())
    sealed = file.seal()
    file.close()
    path.write_bytes(path.read_bytes() + b"small,2")
    assert record_file.changes(path, sealed, complete=False) == ""
    assert "7 bytes follow its last line" in record_file.changes(path, sealed, complete=True)
    assert record_file.changes(path, None, complete=False) == ""
    assert "it is unknown whether" in record_file.changes(path, None, complete=True)


def test_a_trial_started_when_its_kernel_says() -> None:
    assert started_at({"started_at": 0.0625}) == "1970-01-01T00:00:00.062+00:00"
    assert started_at({}) == ""


@pytest.mark.parametrize("old, new, words", [
    (",20,", ",1e308,", "an RTT of 1e308 is out of range"), (",20,", ",nan,", "of nan is out of"),
    (",20,", ",-1,", "an RTT of -1 is"), (",5,", ",inf,", "a number of inf is"),
    (",5,", f",{'9' * 30},", "is out of range"), (",5,", f",{10**15 + 1},", "is out of range"),
    (",5,", ",1\r2,", "is damaged")])
def test_numbers_that_nobody_measured_are_refused(path: Path, old: str, new: str,
                                                  words: str) -> None:
    write(path, Record(Trial("small", 20.0, 1), True, total_ms=5.0, lost=10**15, verdict=PASS))
    text = path.read_text()
    assert old in text
    path.write_bytes(text.replace(old, new).encode())
    with pytest.raises(RecordsError, match=words):
        read_records(path, Record)


def test_which_parameters_distinguish_trials() -> None:
    """An uplink that follows the bandwidth is none, nor is what is the same for all."""
    assert records.varied({"mss": [1460] * 4, "rtt_ms": [20, 20, 50, 50],
                           "bandwidth_kbps": [1, 2, 1, 2], "uplink_kbps": [10, 20, 10, 20],
                           "server": ["own", "own", "own", "nginx"]}) == [
        "rtt_ms", "bandwidth_kbps", "server"]
    assert records.varied({"rtt_ms": []}) == records.varied({}) == []
