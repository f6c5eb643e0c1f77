"""The records and verdicts of load runs: from a stored run, and from connections made by hand."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy
import pytest

from firstflight.base.comparison import Comparison
from firstflight.judge.syns import compare_all_syns
from firstflight.net.headers import ACK, FIN, MSS
from firstflight.runs.results import checks
from firstflight.runs.results.records import FAIL, PASS, SKIPPED, columns_of, value_of
from firstflight.workloads.load import record, verify
from firstflight.workloads.load.record import (COLUMNS, ENDS, FILE, QUEUE_COLUMNS, QUEUE_FILE,
                                               Bottleneck, Connections, ConnectionsError,
                                               LoadEvidence, LoadRecord, join_rows,
                                               parse_connections, read_bottleneck, record_of)
from firstflight.workloads.load.traffic import wire_bytes
from firstflight.workloads.load.trial import LoadTrial
from firstflight.workloads.load.verify import CHECKS
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


# As Linux offers them: MSS 1460, SACK, time stamps, a scale of 7.
OFFERED = bytes.fromhex("020405b4" "0402" "080a0000000100000000" "01" "030307")


def on_wire(segments: int, options: bytes = OFFERED) -> Seen:
    """As if a connection had been sampled, the first flight to it this long."""
    sampled = Conversation().handshake(options, window=64_240).flight(
        *range(segments)).acknowledge(400, segments)
    client, server = (capture(side).replace(CLIENT, b"\x0a\x00\x01\x01")
                      for side in (sampled.client, sampled.server))
    return replace(RAW, client_pcap=client, server_pcap=server)


def long_segment() -> Seen:
    """As if a sampled segment had 1460 bytes of data, though time stamps leave room for 1448."""
    sampled = Conversation().handshake(OFFERED, window=64_240).send(
        150, True, ACK, seq=1, ack=96, payload=1460).send(400, False, ACK, seq=96, ack=1461)
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


def test_judging_the_raw_run_again_gives_the_stored_record(record: LoadRecord) -> None:
    stored = next(each for each in stored_load.run().records if each.trial == TRIAL)
    for column in columns_of(LoadRecord):
        if column == "measured_at":
            continue
        expected = value_of(stored, column)
        assert value_of(record, column) == (expected if isinstance(expected, str) else
                                           expected and pytest.approx(expected, abs=1e-6)), column


def test_joined_connections_and_the_queue_are_kept_of_a_run() -> None:
    kept = verify.judge_load(TRIAL, RAW)[1]
    assert kept == {FILE: join_rows(RAW.files), QUEUE_FILE: RAW.files[QUEUE_FILE]}


def test_a_run_without_its_records_is_a_failure() -> None:
    record = judge(TRIAL, Seen())
    assert not record.ok and not record.counts and record.mean_ms is None
    assert (record.error, record.verdict) == ("the run left no records", SKIPPED)


def test_a_run_that_the_kernel_lacks_something_for_is_skipped_with_the_reason() -> None:
    why = "this kernel has no sysctl net.ipv4.tcp_new"
    record = judge(TRIAL, replace(RAW, files={}, content={"skipped": why}))
    assert record.was_skipped and (record.ok, record.verdict_reason) == (True, why)


@pytest.mark.parametrize(("seen", "said"), [
    (replace(RAW, content={"error": "no answer within 128 s"}), "no answer within 128 s"),
    (replace(RAW, files={**RAW.files, QUEUE_FILE: b"time_s,bytes\n1,x\n"}), "measure again"),
    (replace(RAW, client_pcap=on_wire(3).client_pcap[:-3]), "client capture ends within a packet"),
])
def test_files_of_a_run_that_cannot_be_read_make_it_skipped_with_the_reason(
        seen: Seen, said: str) -> None:
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
    "arrivals": (replace(TRIAL, load=0.9), lambda: RAW,
                 "arrivals: observed 130, expected 211 ± 58"),
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
    "TCP options": (TRIAL, lambda: on_wire(3, OFFERED.replace(b"\x05\xb4", b"\x02\x18")),
                    "observed client's mss 536, expected 1460"),
    "segment size": (TRIAL, long_segment,
                     "observed a segment of 1460 bytes, expected at most 1448"),
    "first flight on the wire": (TRIAL, lambda: on_wire(4), "first flight on the wire to client"
                                 " 1: observed 4 segments, expected 3"),
}


def test_every_check_has_a_tampering() -> None:
    assert len(CHECKS) == 9
    assert {check.name for check in CHECKS} == set(TAMPERED)


@pytest.mark.parametrize("name", TAMPERED)
def test_every_tampering_is_refused_by_its_check_alone(name: str) -> None:
    trial, seen, said = TAMPERED[name]
    record = judge(trial, seen())
    assert record.verdict == FAIL and said in record.verdict_reason
    assert checks.failed_checks(record) == [name]


@pytest.mark.parametrize("changes", [{"qdisc": "fq"}, {"congestion_control": "bbr"}])
def test_a_paced_run_has_no_first_flight_to_judge(changes: dict[str, Any]) -> None:
    trial = replace(TRIAL, **changes)
    record = judge(trial, TAMPERED["first flight"][1]())
    assert record.verdict == PASS
    judges = {check.name for check in CHECKS if check.applies_to(record)}
    assert judges == set(TAMPERED) - {
        "first flight", "first flight on the wire", "TCP options", "segment size"}


def test_a_record_lists_the_checks_that_judged_it() -> None:
    assert not any(check.applies_to(judge(TRIAL, Seen())) for check in CHECKS)
    record = judge(TRIAL, on_wire(3))
    assert (record.verdict, record.wire_connections, record.wire_first_flight) == (PASS, 1, "3")
    assert all(check.applies_to(record) for check in CHECKS)
    small = replace(record, trial=replace(TRIAL, response_bytes=2000))
    assert [check.name for check in CHECKS if not check.applies_to(small)] == ["first flight"]


# Files -------------------------------------------------------------------------------

def test_a_damaged_file_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    content = join_rows(RAW.files)
    endless = gzip.compress(gzip.decompress(content).replace(b"0.", b"1e300", 1))
    for damaged in (content[:-20], b"not gzip", b"", content[:40] + b"\xff" * 9 + content[49:],
                    gzip.compress(b"host,arrival_s\n1,2\n"), endless):
        with pytest.raises(ConnectionsError, match="measure again"):
            parse_connections(damaged)
    monkeypatch.setattr(record, "FILE_BYTES", 1000)
    with pytest.raises(ConnectionsError, match=r"\(it has more than"):
        parse_connections(content)
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


# The columns of a load run, of connections and samples made by hand, or of none at all ---

# Counts from 10 s to 50 s.
COUNTED = replace(stored_load.trial(), bandwidth_kbps=1000.0, duration_s=60.0, warmup_s=10.0,
                cooldown_s=10.0)
ONE: dict[str, Any] = {
    "host": 0, "arrival_s": 20.0, "connect_ms": 60.0, "total_ms": 300.0, "asked_bytes": 5000,
    "got_bytes": 5000, "end": "ok", "initial_window": 3, "first_flight": 3, "sent_bytes": 5042,
    "retransmitted_bytes": 0, "min_rtt_ms": 60.0}


def connections(*rows: dict[str, Any]) -> Connections:
    """A connection like ONE for each row, with what the row has otherwise."""
    return Connections(*(numpy.array([
        ENDS.index({**ONE, **row}[name]) if name == "end" else {**ONE, **row}[name]
        for row in rows], dtype=float) for name in COLUMNS[:-1]))


def bottleneck(*rows: tuple[float, ...]) -> Bottleneck:
    return Bottleneck(*numpy.array(rows, dtype=float).reshape(len(rows), len(QUEUE_COLUMNS)).T)


def columns(everything: Connections, samples: Bottleneck,
            flights: dict[str, list[int]] | None = None) -> dict[str, Any]:
    return vars(record_of(LoadEvidence(COUNTED, everything, samples, flights or {}, ())))


def told(found: dict[str, Any], *names: str) -> list[Any]:
    return [found[name] for name in names]


def test_connections_count_from_the_end_of_the_warmup_until_the_cooldown() -> None:
    found = columns(connections(*({"arrival_s": at_s} for at_s in (
        9.999, 10.0, 49.999, 50.0))), bottleneck())
    assert told(found, "arrivals", "completed", "failed", "unfinished") == [2, 2, 0, 0]
    assert found["offered_load"] == pytest.approx(2 * wire_bytes(5000) / (125_000 * 40))


def test_incomplete_connections_rank_slowest_and_enter_no_mean() -> None:
    found = columns(connections(
        {"total_ms": 200.0}, {"total_ms": 400.0, "connect_ms": 100.0, "retransmitted_bytes": 42},
        {"end": "failed", "total_ms": numpy.nan, "retransmitted_bytes": 1000},
        {"end": "open", "total_ms": numpy.nan, "retransmitted_bytes": numpy.nan,
         "sent_bytes": numpy.nan}), bottleneck())
    assert told(found, "arrivals", "completed", "failed", "unfinished") == [4, 2, 1, 1]
    assert told(found, "mean_ms", "mean_transfer_ms") == [300, (140 + 300) / 2]
    assert told(found, "p10_ms", "p25_ms", "p50_ms", "p75_ms", "p999_ms") == [
        200, 200, 400, None, None]
    assert told(found, "hit_percent", "hit_mean_ms") == [50, 400]
    assert found["retransmission_percent"] == pytest.approx(1042 / (3 * 5042 - 1042) * 100)


def test_a_run_without_arrivals_has_counts_of_zero_and_no_times() -> None:
    found = columns(connections(), bottleneck())
    assert told(found, "arrivals", "completed", "failed", "unfinished", "repeated_handshakes",
                "wire_connections", "offered_load", "retransmission_percent") == [0] * 8
    assert told(found, "mean_ms", "mean_transfer_ms", "p10_ms", "p999_ms", "hit_percent",
                "hit_mean_ms") == [None] * 6
    assert told(found, "seen_initcwnd", "seen_first_flight", "wire_first_flight") == [""] * 3


@pytest.mark.parametrize("samples", [0, 1])
def test_fewer_than_two_samples_of_the_bottleneck_give_no_number(samples: int) -> None:
    found = columns(connections({}), bottleneck(*[(10.0, 1e6, 900, 100, 7)] * samples))
    assert told(found, "utilisation", "drops", "drop_percent", "queue_mean_packets",
                "queue_max_packets") == [None] * 5


def test_a_counter_is_reported_by_its_increase() -> None:
    found = columns(connections({}), bottleneck(
        (10.0, 1e6, 1000, 50, 7), (30.0, 2e6, 1500, 50, 8), (50.0, 3.5e6, 1900, 150, 3)))
    assert told(found, "utilisation", "drops", "drop_percent", "queue_mean_packets",
                "queue_max_packets") == [0.5, 100, 10, 6, 8]
    still = columns(connections({}), bottleneck((10.0, 5, 5, 5, 0), (50.0, 5, 5, 5, 0)))
    assert told(still, "utilisation", "drops", "drop_percent", "queue_max_packets") == [0] * 4


def test_a_handshake_of_a_second_counts_as_repeated_and_shows_no_window() -> None:
    found = columns(connections(
        {"connect_ms": 999.9, "initial_window": 10, "first_flight": 9},
        {"connect_ms": 1000.0, "initial_window": 1, "first_flight": 1},
        {"connect_ms": numpy.nan, "initial_window": numpy.nan, "first_flight": numpy.nan},
        {"arrival_s": 1.0}), bottleneck(), {"10.0.1.1": [3, 3], "10.0.1.2": [10]})
    assert told(found, "repeated_handshakes", "seen_initcwnd", "seen_first_flight") == [
        1, "3 10", "3 9"]
    assert told(found, "wire_connections", "wire_first_flight") == [3, "3 10"]


def test_samples_between_two_times_include_one_before_and_one_after() -> None:
    samples = bottleneck(*((at_s, 0, 0, 0, 0) for at_s in (9.998, 9.9995, 10, 50, 50.0005, 50.002)))
    assert samples.between((10, 50)).time_s.tolist() == [9.9995, 10, 50, 50.0005]


# The verdict on a load run on both sides of each limit, of connections made by hand ---

def evidence(*rows: dict[str, Any], sent_bytes: float = 0, **of_trial: Any) -> LoadEvidence:
    """What a run with these connections shows; sent_bytes passed the bottleneck in 40 s."""
    return LoadEvidence(replace(COUNTED, **of_trial), connections(*rows), bottleneck(
        (10.0, 0, 0, 0, 0), (50.0, sent_bytes, 1, 0, 0)), {}, ())


def held(found: Iterator[Comparison]) -> list[bool]:
    return [each.passed for each in found]


def test_arrivals_may_deviate_by_four_standard_deviations() -> None:
    mean, sigma = COUNTED.expected_arrivals
    assert mean == pytest.approx(COUNTED.responses_per_s * 40) and sigma == mean ** 0.5
    for seen, good in ((mean - 4 * sigma + 1, True), (mean - 4 * sigma - 1, False),
                       (mean + 4 * sigma - 1, True), (mean + 4 * sigma + 1, False)):
        run = evidence(*[{}] * round(seen))
        assert held(verify._compare_arrivals(run)) == [good], seen


@pytest.mark.parametrize(("sent_bytes", "good"), [(5_000_500, True), (5_000_501, False)])
def test_a_bottleneck_may_exceed_its_rate_by_a_ten_thousandth(sent_bytes: float,
                                                              good: bool) -> None:
    (compared,) = verify._compare_utilisation(evidence({}, sent_bytes=sent_bytes))
    assert (compared.passed, compared.observed) == (good, "1.0001")


@pytest.mark.parametrize(("asked_bytes", "flight", "found"), [
    (3 * MSS, 3, [True]), (3 * MSS, 2, [False]), (3 * MSS - 1, 2, [])])
def test_a_response_that_fills_the_first_window_leaves_with_it(asked_bytes: int, flight: int,
                                                              found: list[bool]) -> None:
    run = evidence({"asked_bytes": asked_bytes, "first_flight": flight})
    assert held(verify._compare_first_flight(run)) == found
    for given in ({"qdisc": "fq"}, {"congestion_control": "bbr"}):
        assert not held(
            verify._compare_first_flight(replace(run, trial=replace(run.trial, **given))))


@pytest.mark.parametrize(("flights", "found"), [([3, 2], [True]), ([3, 4], [False]), ([], [])])
def test_no_flight_on_the_wire_is_longer_than_the_window(flights: list[int],
                                                         found: list[bool]) -> None:
    run = replace(evidence({}), flights={"10.0.1.1": flights, "10.0.1.9": [99]})
    assert held(verify._compare_flight_on_wire(run)) == found


@pytest.mark.parametrize(("segments", "ends", "window", "is_expected"), [
    (3, True, 64_240, True), (3, True, 65_535, False),
    (71, True, 65_535, True), (71, True, 64_240, False),
    # Of a response that has not left whole the client may await more: up to 110 kB here.
    (3, False, 65_535, True), (3, False, 64_239, False), (71, False, 64_240, False)])
def test_a_response_of_more_than_the_receive_buffer_enlarges_the_clients_first_window(
        segments: int, ends: bool, window: int, is_expected: bool) -> None:
    """load_client.py is woken by the whole response (SO_RCVLOWAT), for which Linux makes room."""
    talk = Conversation().handshake(OFFERED, window=window).flight(*range(segments))
    if ends:
        talk.send(900, True, ACK | FIN, seq=1 + segments * MSS, ack=96)
    run = replace(evidence({}, response_bytes=110_000), sampled=(talk.read(),))
    compared = [each for each in compare_all_syns(run.shared) if "first window" in each.observed]
    assert held(iter(compared)) == [is_expected]


@pytest.mark.parametrize(("given", "is_judged"), [
    ({"response_bytes": 3 * MSS}, True), ({"response_bytes": 3 * MSS - 1}, False),
    # Of a distribution of sizes, some responses may fill the window whatever the mean is.
    ({"response_bytes": 1, "sizes": "web_search"}, True)])
def test_the_flight_is_judged_unless_all_responses_are_too_small_for_it(
        given: dict[str, Any], is_judged: bool) -> None:
    (check,) = (each for each in verify.CHECKS if each.name == "first flight")
    record = LoadRecord(replace(COUNTED, **given), True, seen_first_flight="3")
    assert check.applies_to(record) == is_judged
