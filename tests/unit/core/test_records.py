"""Records as they are written to a file and read back, and as batches between machines."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from firstflight.base.errors import FirstFlightError, WriteError
from firstflight.base.words import format_lossless, to_cell
from firstflight.runs import batches
from firstflight.runs.batches import TrialBatch
from firstflight.runs.cluster.cluster import ManyMachines
from firstflight.runs.kinds import Study
from firstflight.runs.measuring import JudgedTrial, OneMachine
from firstflight.runs.results import record_file, records
from firstflight.runs.results.record_file import RecordFile
from firstflight.runs.results.records import (FAIL, PASS, RecordsError, RowWriter, columns_of,
                                              read_records, trial_class, value_of)
from firstflight.runs.scenario_file import Head
from firstflight.study import registry
from firstflight.testbed.job import shared_out
from firstflight.testbed.messages import started_at
from tests.unit.core import example
from tests.unit.core.example import Record, Trial, record, whole
from tests.unit.core.example_run import Engine

COLUMNS = ("scenario", "rtt_ms", "repeat", "part", "ok", "error", "total_ms", "lost", "cause",
           "verdict", "failed_checks", "verdict_reason", "measured_at")


@dataclass(frozen=True)
class LaterTrial(Trial):
    jitter_ms: float = 0.0


@dataclass(frozen=True)
class LaterRecord(Record):
    """A record of a later version: trial and record have a column more each."""

    trial: LaterTrial
    queue_ms: float | None = None


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trials.csv"


def write(path: Path, *rows: records.Record, kind: type[records.Record] = Record) -> None:
    """Appends records to a file, as a run does that begins or resumes."""
    file = RecordFile(path, kind)
    for row in rows:
        file.append(row)
    file.close()


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_columns_are_the_trials_then_the_records_and_the_verdict_last() -> None:
    assert columns_of(Record) == COLUMNS
    assert columns_of(LaterRecord)[4:6] == ("jitter_ms", "ok")


def test_written_records_are_read_back(path: Path) -> None:
    rows = [record(20.5, lost=0, cause='a "b", c'), record(error="no\nanswer", ok=False,
            verdict=FAIL, verdict_reason="RTT: observed 1, expected 2", total_ms=None),
            record(measured_at="2024-01-01", total_ms=-1.5)]
    write(path, *rows)
    found = read_records(path, Record)
    assert found == [rows[0], replace(rows[1], error="no answer"), rows[2]]
    assert found[0].trial.rtt_ms == value_of(found[0], "rtt_ms") == 20.5
    assert found[2].measured_at == "2024-01-01"
    assert lines(path)[0] == ",".join(COLUMNS) and ",-1.5," in lines(path)[3]


def test_requested_values_keep_every_digit_and_measured_ones_the_microsecond() -> None:
    assert to_cell(0.1 + 0.2, format_lossless) == "0.30000000000000004"
    assert to_cell(0.1 + 0.2) == "0.3"


@pytest.mark.parametrize("text", ["=HYPERLINK(\"x\")", "+1", "-1+1", "@SUM(A1)", "'=1", "''@x", "'",
                                  "'quoted'", "\t=1", "\x1b=1", "a=1", "", "–", "'-",
                                  "=\x00\x1b[2J"])
def test_text_in_a_csv_is_no_formula_for_a_spreadsheet(path: Path, text: str) -> None:
    """It is read back as it was, without control characters."""
    write(path, record(error=text, ok=False, verdict_reason=text), record(part=text))
    plain = "".join(char for char in " ".join(text.split()) if char.isprintable())
    first, second = read_records(path, Record)
    assert (first.error, first.verdict_reason, second.trial.part) == (plain, plain, plain)
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.reader(file):
            assert not [cell for cell in row if cell[:1] in ("=", "+", "-", "@", "\t", "\r")]
            assert all(cell.isprintable() for cell in row)


def test_a_file_of_another_version_is_refused_in_one_line(path: Path) -> None:
    write(path, record())
    with pytest.raises(RecordsError, match="has no column jitter_ms: another version measured it"):
        read_records(path, LaterRecord)


def test_a_column_of_a_later_version_is_kept_when_an_older_one_resumes(path: Path) -> None:
    later = LaterRecord(LaterTrial("small", 20.0, 1), ok=True, queue_ms=7.0)
    write(path, later, kind=LaterRecord)
    before = lines(path)
    write(path, record(30.0))
    assert lines(path)[:2] == before
    assert [row.trial.rtt_ms for row in read_records(path, Record)] == [20, 30]
    assert [row.queue_ms for row in read_records(path, LaterRecord)] == [7.0, None]


@pytest.mark.parametrize("cut", [1, 5])
def test_a_torn_last_line_is_dropped_and_cut_away_on_resuming(path: Path, cut: int) -> None:
    write(path, record(10.0), record(20.0))
    path.write_bytes(path.read_bytes()[:-cut])
    assert [row.trial.rtt_ms for row in read_records(path, Record)] == [10]
    write(path, record(30.0))
    assert [row.trial.rtt_ms for row in read_records(path, Record)] == [10, 30]


def test_half_a_row_is_cut_away_where_there_is_no_more_room(path: Path) -> None:
    """A limit on the size of files stands for a full disk. The next row takes its place."""
    file = RecordFile(path, Record)
    file.append(record(1))
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
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


def test_a_torn_header_is_written_again(path: Path) -> None:
    path.write_text("scenario,rtt", encoding="utf-8")
    write(path, record())
    assert len(read_records(path, Record)) == 1


@pytest.mark.parametrize(("old", "new", "words"), [
    ("1.5", "fast", "line 2: could not convert string to float: 'fast'"),
    ("true", "yes", "line 2: 'yes'"),
    (",pass", ",pass,pass", "line 2: 14 fields, expected 13"),
    ("repeat,", "again,", "has no column repeat: another version measured it, or it is"),
])
def test_a_damaged_file_is_refused_with_the_line_of_the_damage(
        path: Path, old: str, new: str, words: str) -> None:
    write(path, record())
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    with pytest.raises(RecordsError) as caught:
        read_records(path, Record)
    assert str(path) in str(caught.value) and words in str(caught.value)


def test_a_results_file_that_is_missing_is_reported_in_one_line(path: Path) -> None:
    with pytest.raises(RecordsError, match="cannot be read: No such file"):
        read_records(path, Record)


def test_only_a_record_that_passed_counts_and_another_has_a_reason() -> None:
    assert record().counts and record().why_not == "" and record().outcome == PASS
    failed = record(ok=False, verdict=records.SKIPPED, error="curl 28")
    assert (failed.counts, failed.outcome, failed.why_not) == (False, "failed transfer", "curl 28")
    refused = record(verdict=FAIL, verdict_reason="RTT")
    assert (refused.counts, refused.outcome, refused.why_not) == (False, FAIL, "RTT")
    assert record(verdict=FAIL).why_not == "no reason was recorded"
    assert record(verdict=records.SKIPPED).was_skipped
    assert not any(row.was_skipped for row in (record(), failed, refused))
    expected = record(ok=False, verdict=PASS, error="refused")
    assert (expected.failed_as_expected, expected.counts) == (True, False)
    assert expected.outcome == "failed as expected"
    assert not any(row.failed_as_expected for row in (record(), failed, refused))


def test_bytes_that_are_no_text_are_replaced_when_read(path: Path) -> None:
    write(path, record(ok=False, error="lost: x"))
    path.write_bytes(path.read_bytes().replace(b": x", b": \xff"))
    assert read_records(path, Record)[0].error == "lost: \ufffd"


@pytest.mark.parametrize(("interval_s", "synced"), [
    (lambda: -1.0, [0, 1, 2, 2]), (lambda: 1e9, [2]), (lambda: time.monotonic() / 2, [0, 2])])
def test_rows_reach_the_disk_within_an_interval_and_at_each_seal(path: Path,
                                                                 monkeypatch: pytest.MonkeyPatch,
                                                                 interval_s: Callable[[], float],
                                                                 synced: list[int]) -> None:
    """synced: how many rows the file had at each sync."""
    monkeypatch.setattr(record_file, "SYNC_INTERVAL_S", interval_s())
    monkeypatch.setattr(record_file, "SYNC_SHARE", 1e9)
    rows_at_sync: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda _: rows_at_sync.append(len(lines(path)) - 1))
    file = RecordFile(path, Record)
    for _ in range(2):
        file.append(record())
    sealed = file.seal()
    file.close()
    assert rows_at_sync == synced
    assert sealed == {"rows": 2, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    assert record_file.changes(path, sealed, complete=True) == ""


def test_a_slow_disk_is_synced_more_rarely(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file whose sync takes a second is synced some 20 s later. A row is written at once."""
    clock = [1000.0]
    monkeypatch.setattr(record_file.time, "monotonic", lambda: clock[0])
    synced: list[float] = []

    def sync(number: int) -> None:
        synced.append(clock[0])
        clock[0] += 1.0

    monkeypatch.setattr(os, "fsync", sync)
    file = RecordFile(path, Record)
    for count in range(1, 100):
        file.append(record())
        assert len(lines(path)) == 1 + count
        clock[0] += 0.5
    file.close()
    assert [round(after - before) for before, after in zip(synced, synced[1:])] == [22, 22]


@pytest.mark.parametrize("rows", [10**30, 10**4000, -1, -(10**30)])
def test_a_seal_with_an_impossible_number_of_rows_is_refused_at_once(path: Path, rows: int) -> None:
    file = RecordFile(path, Record)
    file.append(record())
    sealed = file.seal()
    file.close()
    for complete in (True, False):
        assert record_file.changes(path, {**sealed, "rows": rows}, complete).startswith(
            f"{path.name} was changed since it was measured: ")


def test_only_a_running_run_may_lack_a_seal_and_end_in_half_a_row(path: Path) -> None:
    file = RecordFile(path, Record)
    file.append(record())
    sealed = file.seal()
    file.close()
    path.write_bytes(path.read_bytes() + b"small,2")
    assert record_file.changes(path, sealed, complete=False) == ""
    assert "7 bytes follow its last line" in record_file.changes(path, sealed, complete=True)
    assert record_file.changes(path, None, complete=False) == ""
    assert "it is unknown whether" in record_file.changes(path, None, complete=True)


def test_a_trials_start_is_the_time_of_its_kernel() -> None:
    assert started_at({"started_at": 0.0625}) == "1970-01-01T00:00:00.062+00:00"
    assert started_at({}) == ""


@pytest.mark.parametrize("old, new, words", [
    (",20,", ",1e308,", "an RTT of 1e308 is out of range"), (",20,", ",nan,", "of nan is out of"),
    (",20,", ",-1,", "an RTT of -1 is"), (",5,", ",inf,", "a number of inf is"),
    (",5,", f",{'9' * 30},", "is out of range"), (",5,", f",{10**15 + 1},", "is out of range"),
    (",5,", ",1\r2,", "is damaged")])
def test_numbers_that_no_trial_can_have_are_refused(path: Path, old: str, new: str,
                                                    words: str) -> None:
    write(path, Record(Trial("small", 20.0, 1), True, total_ms=5.0, lost=10**15, verdict=PASS))
    text = path.read_text()
    assert old in text
    path.write_bytes(text.replace(old, new).encode())
    with pytest.raises(RecordsError, match=words):
        read_records(path, Record)


def test_only_parameters_that_vary_by_themselves_distinguish_trials() -> None:
    """An uplink that follows the bandwidth is not one of them, nor is a value that all share."""
    assert records.varied({"mss": [1460] * 4, "rtt_ms": [20, 20, 50, 50],
                           "bandwidth_kbps": [1, 2, 1, 2], "uplink_kbps": [10, 20, 10, 20],
                           "server": ["own", "own", "own", "nginx"]}) == [
        "rtt_ms", "bandwidth_kbps", "server"]
    assert records.varied({"rtt_ms": []}) == records.varied({}) == []


# Batches for many machines ------------------------------------------------------------

class Networked(Trial):
    """A trial whose job has a network."""

    def job(self) -> dict[str, Any]:
        return {"id": self.id, "network": {"rtt_ms": self.rtt_ms}}


class Rows(Record):
    trial: Networked


def judge(trial: Any, seen: Any, exact: bool, sysctls: Any, known_kernel: bool = True) -> Any:
    """A record of the same trial, with two files. "known" has what the judge was told."""
    assert sysctls == SYSCTLS or "error" in seen.content
    if "error" in seen.content:
        return Rows(trial, False, seen.content["error"]), {}
    return Rows(trial, True, verdict="pass", total_ms=trial.rtt_ms * 3), {
        "a.csv": b"\0\xff", "known": str(known_kernel).encode()}


# The kind of the example, with other records and this judge.
SYSCTLS = {"net.ipv4.tcp_sack": "0"}
KIND = example.changed(example.KIND, record=Rows, judge=judge, all_captures=False)


def study(count: int = 5) -> Any:
    """A study whose RTTs are sevenths, which have many digits."""
    return Study(KIND, example.Scenario(Head("t", "s", "small", "A claim.", "# A claim.", SYSCTLS)),
                 tuple(Networked("small", rtt_ms / 7, 1) for rtt_ms in range(1, count + 1)), True)


def kind_of(name: str) -> Any:
    """The kind of this name, as registry.kind has it. Fetches are of the example's kind."""
    return KIND if name == "fetches" else registry.kind(name)


def measured(batch: TrialBatch, folder: Path) -> bytes:
    """The result of a batch as a machine sends it."""
    return batches.measure(batch.payload(), Engine(9), kind_of, {"cpus": 2}, folder)


def batch(count: int = 5) -> TrialBatch:
    """A batch that keeps the captures of its first trial."""
    requested = study(count)
    return TrialBatch(requested, requested.trials, [requested.trials[0].id])


class Cluster:
    """Two machines in this process that take batches in turn and answer at once.

    spoil: changes the bytes of each result.
    """

    build, guests = "7.2", 2

    def __init__(self, folder: Path, spoil: Callable[[bytes], bytes] = bytes) -> None:
        self.folder, self.spoil = folder, spoil
        self.facts = {"address": "here"}

    def results(self, payloads: Sequence[bytes]) -> Iterator[tuple[str, bytes]]:
        for number, payload in enumerate(payloads):
            yield f"machine{number % 2}", self.spoil(
                batches.measure(payload, Engine(9), kind_of, {"cpus": 2}, self.folder))


def test_many_machines_give_the_records_of_one(tmp_path: Path) -> None:
    requested = study(40)
    captured = {requested.trials[3].id, requested.trials[30].id}
    many = ManyMachines(Cluster(tmp_path), {"kernel_known": True, "kernel_source": "97a3"})
    found = list(many.judged(requested, requested.trials, captured, tmp_path))
    one = list(OneMachine(Engine(9)).judged(requested, requested.trials, captured, tmp_path))
    writer = RowWriter(Rows, columns_of(Rows))  # rows of a file have fewer digits
    assert [writer.row(judged.record) for judged in found] == [
        writer.row(judged.record) for judged in one]
    assert [dict(judged.files) for judged in found] == [dict(judged.files) for judged in one]
    assert [judged.captures.get("client") for judged in found] == [
        judged.captures.get("client") for judged in one]
    assert [bool(judged.captures) for judged in found].count(True) == 2
    assert sum(judged.emulated_s for judged in found) == 40
    assert many.facts["kernel"] == "7.2" and many.facts["kernel_source"] == "97a3"
    assert many.facts["cluster"]["address"] == "here"
    assert many.facts["cluster"]["machines"] == {
        name: {"trials": 20, "cpus": 2} for name in ("machine0", "machine1")}
    assert (many.name, many.build, many.jobs, many.exact) == ("uml", "7.2", 2, True)
    assert many.doing == "2 guests on 2 machines"


@pytest.mark.parametrize("known", [True, False])
def test_the_judge_knows_whether_the_model_covers_the_kernel(known: bool, tmp_path: Path) -> None:
    """Machines of a cluster are told, as they have the kernel's file and not its origin."""
    requested = study(3)
    here = OneMachine(Engine(9, known_kernel=known))
    many = ManyMachines(Cluster(tmp_path), {"kernel_known": known})
    for measurer in (here, many):
        judged = measurer.judged(requested, requested.trials, set(), tmp_path)
        assert {trial.files["known"] for trial in judged} == {str(known).encode()}


def test_a_wrong_result_ends_the_run_with_the_name_of_its_machine(tmp_path: Path) -> None:
    requested = study(3)
    many = ManyMachines(Cluster(tmp_path, lambda result: result[:-9]), {"kernel_known": True})
    with pytest.raises(FirstFlightError, match="machine0 sent a wrong result of its batch: "):
        list(many.judged(requested, requested.trials, set(), tmp_path))


# Bytes that are not a result of the batch --------------------------------------------

# A result in parts: the machine's line, then for each trial its line and the bytes of its captures
# and files. Lines are read as JSON.
Parts = list[Any]


def parts(content: bytes) -> Parts:
    """The parts of a result of the example."""
    stream = io.BytesIO(gzip.decompress(content))
    found: Parts = [json.loads(stream.readline())]
    while line := stream.readline():
        found.append(json.loads(line))
        sizes = {**found[-1]["captures"], **found[-1]["files"]}
        found.append(stream.read(sum(sizes.values())))
    return found


def changed(content: bytes, change: Callable[[Parts], Any]) -> bytes:
    found = parts(content)
    change(found)
    return gzip.compress(b"".join(part if isinstance(part, bytes) else
                                  json.dumps(part).encode() + b"\n" for part in found))


# Changes of the parts. Part 0 is the machine's line, 1 the first trial's line, 2 its bytes.
CHANGED: dict[str, Callable[[Parts], Any]] = {
    "the last trial is missing": lambda parts: parts.__delitem__(slice(-2, None)),
    "the first trial comes twice": lambda parts: parts.extend(parts[1:3]),
    "two trials are swapped":
        lambda parts: parts.__setitem__(slice(1, 5), parts[3:5] + parts[1:3]),
    "a field is missing": lambda parts: parts[1]["row"].pop(),
    "no row": lambda parts: parts[1].pop("row"),
    "fewer bytes than announced": lambda parts: parts.__setitem__(-1, parts[-1][:-1]),
    "another RTT": lambda parts: parts[5]["row"].__setitem__(1, "12.5"),
    "not a number": lambda parts: parts[5]["row"].__setitem__(1, "nan"),
}
# Changes of the compressed bytes.
DAMAGED = {
    "cut by 30 bytes": lambda content: content[:-30], "cut by 3": lambda content: content[:-3],
    "no gzip": lambda content: b"x" + content, "nothing": lambda content: b"",
    "a changed byte": lambda content: content[:60] + bytes([content[60] ^ 255]) + content[61:],
}


@pytest.mark.parametrize("how", [*CHANGED, *DAMAGED])
def test_bytes_that_are_no_result_are_refused(how: str, tmp_path: Path) -> None:
    requested = batch()
    content = measured(requested, tmp_path)
    assert len(requested.read(content)[0]) == 5
    with pytest.raises(ValueError):
        requested.read(changed(content, CHANGED[how]) if how in CHANGED
                       else DAMAGED[how](content))


def test_a_batch_that_inflates_beyond_the_limit_is_refused(tmp_path: Path,
                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    requested = batch()
    content = measured(requested, tmp_path)
    monkeypatch.setattr(batches, "FILE_BYTES", 100)
    with pytest.raises(ValueError, match="is not a batch: it has more than"):
        measured(requested, tmp_path)
    monkeypatch.setattr(batches, "LINE_BYTES", 100)
    monkeypatch.setattr(batches, "TRIAL_BYTES", 0)
    with pytest.raises(ValueError, match="are damaged: it has more than"):
        requested.read(content)


def test_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    value = json.loads(gzip.decompress(batch().payload()))
    payload = gzip.compress(json.dumps({**value, "kind": "os.system"}).encode())
    with pytest.raises(ValueError, match="no kind 'os.system'"):
        batches.measure(payload, Engine(9), kind_of, {}, tmp_path)


# How trials are divided into batches -------------------------------------------------

@pytest.mark.parametrize(("count", "guests", "sizes"), [
    (40, 2, [5] * 8), (1, 4, [1]), (600, 2, [25] * 24), (7, 2, [2, 2, 2, 1])])
def test_batches_are_equally_long_and_each_guest_gets_equally_many(
        count: int, guests: int, sizes: list[int]) -> None:
    requested = study(count)
    made = list(batches.deal_batches(requested, requested.trials, {requested.trials[0].id}, guests))
    assert [len(one.trials) for one in made] == sizes
    assert [trial for one in made for trial in one.trials] == list(requested.trials)
    assert [len(one.captured) for one in made] == [1] + [0] * (len(made) - 1)


@pytest.mark.parametrize("name", ["zhao2019", "handley1999_idle", "ietf78_fairness"])
def test_batches_have_trials_in_the_order_of_one_guest(name: str) -> None:
    trials = whole(name).trials
    dealt = [job["id"] for hand in shared_out([trial.job() for trial in trials], 1)
             for job in hand]
    assert [trial.id for trial in batches.order_by_network(trials)] == dealt


@pytest.mark.parametrize("name", ["zhao2019", "handley1999_memory", "ietf78_losses"])
def test_a_worker_gets_each_trial_as_it_was_requested(name: str) -> None:
    requested = whole(name)
    kind = trial_class(requested.kind.record)
    for trial in requested.trials:
        sent = json.loads(json.dumps(batches.named_values(trial)))
        assert batches.trial_of(kind, sent) == trial
    # A parameter at its default is not sent.
    assert batches.named_values(Trial("small", 20.0, 1)) == {
        "scenario": "small", "rtt_ms": 20.0, "repeat": 1}


def test_a_batch_brings_back_the_packets_of_the_trials_that_keep_them(tmp_path: Path) -> None:
    requested = batch()
    content = measured(requested, tmp_path)
    assert parts(content)[1]["captures"]["client"] == 9 and parts(content)[2][:9] == b"p" * 9
    judged: list[JudgedTrial] = requested.read(content)[0]
    assert judged[0].captures["client"] == b"p" * 9 and not judged[1].captures
