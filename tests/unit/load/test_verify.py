"""The records and verdicts of load runs, from what a run left."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from firstflight.runs.results import checks
from firstflight.runs.results.records import FAIL, PASS, SKIPPED, columns_of, value_of
from firstflight.study.load import verify
from firstflight.study.load.record import (FILE, QUEUE_FILE, ConnectionsError, LoadRecord,
                                           join_rows, parse_connections, read_bottleneck)
from firstflight.study.load.trial import LoadTrial
from firstflight.study.load.verify import CHECKS
from tests.golden import stored_load
from tests.golden.stored_load import Seen
from tests.unit.tcp.conversation import CLIENT, Conversation, capture

RAW, TRIAL = stored_load.raw(), stored_load.trial()


def judge(trial: LoadTrial, seen: Seen) -> LoadRecord:
    return stored_load.study().kind.judge(trial, seen, True, {})[0]


@pytest.fixture(name="record", scope="module")
def _record() -> LoadRecord:
    return judge(TRIAL, RAW)


def edited(seen: Seen, file: str, lines: slice, **cells: str) -> Seen:
    """As if some lines of a file had said something else."""
    header, *rows = (line.split(",") for line in seen.files[file].decode().splitlines())
    for row in rows[lines]:
        for column, text in cells.items():
            row[header.index(column)] = text
    content = "\n".join(map(",".join, [header, *rows])) + "\n"
    return replace(seen, files={**seen.files, file: content.encode()})


def on_wire(segments: int) -> Seen:
    """As if a connection had been sampled, the first flight to it this long."""
    sampled = Conversation().handshake().flight(*range(segments)).acknowledge(400, segments)
    client, server = (capture(side).replace(CLIENT, b"\x0a\x00\x01\x01")
                      for side in (sampled.client, sampled.server))
    return replace(RAW, client_pcap=client, server_pcap=server)


# What was measured -------------------------------------------------------------------

def test_every_connection_of_a_stored_run_is_accounted_for(record: LoadRecord) -> None:
    everything = parse_connections(join_rows(RAW.files))
    requested = RAW.files["client1.csv"].count(b"\n") - 1
    assert len(everything) == requested
    assert sum(len(everything.ended(end)) for end in ("ok", "failed", "open")) == requested
    assert (record.verdict, record.verdict_reason, record.ok, record.error) == (
        PASS, "", True, "")
    assert record.arrivals == (record.completed or 0) + (record.failed or 0) + (
        record.unfinished or 0)
    # An empty link at load 0.5: nothing is faster than handshake, request and three flights.
    assert record.p10_ms is not None and record.p10_ms > 3 * 60


def test_the_raw_run_gives_the_record_that_is_stored(record: LoadRecord) -> None:
    stored = next(each for each in stored_load.run().records if each.trial == TRIAL)
    for column in columns_of(LoadRecord):
        if column == "measured_at":
            continue
        expected = value_of(stored, column)
        assert value_of(record, column) == (expected if isinstance(expected, str) else
                                           expected and pytest.approx(expected, abs=1e-6)), column


def test_what_is_kept_are_joined_connections_and_the_queue() -> None:
    kept = verify.judge_load(TRIAL, RAW)[1]
    assert kept == {FILE: join_rows(RAW.files), QUEUE_FILE: RAW.files[QUEUE_FILE]}


def test_a_run_without_its_records_is_a_failure() -> None:
    record = judge(TRIAL, Seen())
    assert not record.ok and not record.counts and record.mean_ms is None
    assert (record.error, record.verdict) == ("the run left no records", SKIPPED)


@pytest.mark.parametrize(("seen", "said"), [
    (replace(RAW, content={"error": "no answer within 128 s"}), "no answer within 128 s"),
    (replace(RAW, files={**RAW.files, QUEUE_FILE: b"time_s,bytes\n1,x\n"}), "measure again"),
    (replace(RAW, client_pcap=on_wire(3).client_pcap[:-3]), "client capture ends within a packet"),
])
def test_what_cannot_be_read_is_a_failure_with_its_reason(seen: Seen, said: str) -> None:
    record, kept = verify.judge_load(TRIAL, seen)
    assert not record.ok and said in record.error and record.verdict == SKIPPED
    assert set(kept) == {FILE, QUEUE_FILE}


def test_a_server_that_died_makes_the_run_a_failure() -> None:
    record = judge(TRIAL, replace(RAW, content={"ended_servers": [1]}))
    assert not record.ok and "server 1 of 1 died" in record.error and record.verdict == FAIL


def test_failed_connections_make_no_percentile_faster(record: LoadRecord) -> None:
    # Each would have been among the fastest, had it counted.
    broken = judge(TRIAL, edited(RAW, "client1.csv", slice(19, 39), total_ms="", end="failed",
                                 error="Connection reset by peer"))
    assert "failed connections: observed 20 of 130, expected none" in broken.verdict_reason
    assert broken.p90_ms is None and (broken.p50_ms or 0) >= (record.p50_ms or 0)


def test_the_expected_arrivals_of_pages_vary_more() -> None:
    single, pages = TRIAL.expected_arrivals, replace(TRIAL, connections=12).expected_arrivals
    assert single[0] == pytest.approx(pages[0])
    assert pages[1] == pytest.approx(single[1] * 12 ** 0.5)


# The verdict -------------------------------------------------------------------------

# One thing that was not as requested for each check, and what the verdict says of it.
TAMPERED: dict[str, tuple[LoadTrial, Callable[[], Seen], str]] = {
    "servers": (TRIAL, lambda: replace(RAW, content={"ended_servers": [1]}),
                "servers: observed 0 at the end, expected 1"),
    "arrivals": (replace(TRIAL, load=0.9), lambda: RAW, "arrivals: observed 130, expected 211 ± 58"),
    "utilisation": (TRIAL, lambda: edited(RAW, QUEUE_FILE, slice(60, None), bytes="5000000"),
                    "expected 1 at most"),
    "failed connections": (TRIAL, lambda: edited(RAW, "client1.csv", slice(30, 31), total_ms="",
                                                 end="failed"),
                           "failed connections: observed 1 of 130, expected none"),
    "initial window": (TRIAL, lambda: edited(RAW, "server1.csv", slice(5, 6),
                                             initial_window="4"),
                       "initial window of client 1: observed 3 4, expected 3"),
    "first flight": (TRIAL, lambda: edited(RAW, "server1.csv", slice(5, 6), first_flight="2"),
                     "first flight to client 1: observed 2 3 segments, expected 3"),
    "first flight on the wire": (TRIAL, lambda: on_wire(4), "first flight on the wire to client"
                                 " 1: observed 4 segments, expected 3"),
}


def test_no_check_is_left_out() -> None:
    assert len(CHECKS) == 7
    assert {check.name for check in CHECKS} == set(TAMPERED)


@pytest.mark.parametrize("name", TAMPERED)
def test_every_check_sees_what_was_not_asked_and_no_other_does(name: str) -> None:
    trial, seen, said = TAMPERED[name]
    record = judge(trial, seen())
    assert record.verdict == FAIL and said in record.verdict_reason
    assert checks.failed_checks(CHECKS, record) == [name]


@pytest.mark.parametrize("changes", [{"paced": True}, {"congestion_control": "bbr"}])
def test_a_paced_run_has_no_first_flight_to_judge(changes: dict[str, Any]) -> None:
    trial = replace(TRIAL, **changes)
    record = judge(trial, TAMPERED["first flight"][1]())
    assert record.verdict == PASS
    judges = {check.name for check in CHECKS if check.applies_to(record)}
    assert judges == set(TAMPERED) - {"first flight", "first flight on the wire"}


def test_a_record_says_which_checks_it_was_for() -> None:
    assert not any(check.applies_to(judge(TRIAL, Seen())) for check in CHECKS)
    record = judge(TRIAL, on_wire(3))
    assert (record.verdict, record.wire_connections, record.wire_first_flight) == (PASS, 1, "3")
    assert all(check.applies_to(record) for check in CHECKS)
    small = replace(record, trial=replace(TRIAL, response_bytes=2000))
    assert [check.name for check in CHECKS if not check.applies_to(small)] == ["first flight"]


# Files -------------------------------------------------------------------------------

def test_damaged_files_are_told() -> None:
    content = join_rows(RAW.files)
    endless = gzip.compress(gzip.decompress(content).replace(b"0.", b"1e300", 1))
    for damaged in (content[:-20], b"not gzip", b"", content[:40] + b"\xff" * 9 + content[49:],
                    gzip.compress(b"host,arrival_s\n1,2\n"), endless):
        with pytest.raises(ConnectionsError, match="measure again"):
            parse_connections(damaged)
    head = b"time_s,bytes,packets,drops,queue_packets\n"
    assert len(read_bottleneck(head + b"1,2,3,4,5\n").time_s) == 1
    assert len(read_bottleneck(head + b"1e6,2,3,4,999999999999999\n").time_s) == 1
    for damaged in (head + b"1,2,3,4,1e15\n", head + b"1000001,2,3,4,5\n",
                    b"time_s,bytes\n1,x\n", head + b"-1,2,3,4,5\n", head + b"nan,2,3,4,5\n",
                    head + b"1e9,2,3,4,5\n", head + b"1,2,3,4,\r5\n"):
        with pytest.raises(ConnectionsError, match="measure again"):
            read_bottleneck(damaged)


def test_joined_files_are_the_same_bytes_again() -> None:
    content = join_rows(RAW.files)
    assert content == join_rows(dict(reversed(list(RAW.files.items()))))
    assert content[4:8] == bytes(4)  # no time stamp
