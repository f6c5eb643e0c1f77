"""Scenarios and trials of kind trace: schedules, windows, and what a warm connection saves."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as any_

from firstflight.base.errors import FirstFlightError, UsageError
from firstflight.figures.claims import qualify
from firstflight.findings.claims import (DIRECTION, NOT_REPRODUCED, REBUILT, REPRODUCED,
                                         count_outcomes, summarize_counts)
from firstflight.findings.findings import Statement
from firstflight.runs import batches, scenario_file, schema
from firstflight.runs.kinds import NOTHING, Overrides
from firstflight.runs.measuring import capture_path
from firstflight.runs.results.records import (FAIL, PASS, SKIPPED, RowReader, RowWriter,
                                              columns_of, read_records)
from firstflight.scenario import requested
from firstflight.study import registry
from firstflight.study.traces import KIND
from firstflight.testbed.hosts.http_messages import parse_writes
from firstflight.workloads.trace import findings
from firstflight.workloads.trace.analysis import Views, row_of
from firstflight.workloads.trace.findings import _judge_claim
from firstflight.workloads.trace.record import TraceRecord
from firstflight.workloads.trace.scenario import (TABLES, TAKEN, TraceClaim, TraceCurve,
                                                  TraceScenario)
from firstflight.workloads.trace.schedule import Request, Schedule, Write, fault_of
from firstflight.workloads.trace.trial import TraceTrial
from firstflight.workloads.trace.window import FIELDS, WindowError, parse
from tests.golden import stored_load, stored_trace
from tests.golden.rows import whole_rows
from tests.golden.stored_trace import LOSSY, RUN

TRACES = [name for name in scenario_file.names()
          if scenario_file.find(name).raw.get("kind") == "trace"]


def apply(scenario: TraceScenario, overrides: Overrides) -> TraceScenario:
    return requested.apply(scenario, overrides, TAKEN)


def expand(scenario: TraceScenario, overrides: Overrides = NOTHING, seed: int = 1
           ) -> list[TraceTrial]:
    return requested.expand(scenario, TAKEN, overrides, seed)


HEAD = """# A claim in a sentence.
kind = "trace"
title = "A title"
source = "A source"
[defaults]
rtt_ms = 20
bandwidth_kbps = 1000
queue = 100
initcwnd = 10
sample_ms = 1
[[tcp]]
name = "linux"
title = "Linux"
congestion_control = "reno"
validation = true
"""
SCHEDULE = """[[schedule]]
name = "one"
writes = [{ at_s = 0.0, segments = 10 }, { at_s = 1.0, bytes = 500 }]
"""
TRACE_TABLE = """[[trace]]
name = "first"
schedule = "one"
tcp = ["linux"]
"""
FIGURE = """[[figure]]
name = "fig"
title = "A figure"
kind = "window"
curves = ["first/linux"]
"""
GOOD = HEAD + SCHEDULE + TRACE_TABLE + FIGURE


def load(folder: Path, text: str) -> TraceScenario:
    (folder / "mine.toml").write_text(text)
    return TABLES.read(scenario_file.read(folder / "mine.toml"))


@pytest.mark.parametrize("name", TRACES)
def test_every_trace_scenario_loads_and_expands(name: str) -> None:
    study = registry.study_of(scenario_file.find(name))
    scenario, ids = TABLES.read(scenario_file.find(name)), [trial.id for trial in study.trials]
    assert ids and len(set(ids)) == len(ids) and study.whole
    assert list(study.trials) == expand(scenario)
    assert study.head.claim.endswith(".") and "\n" not in study.head.claim
    # What a figure names is measured.
    assert scenario.figures
    for curve in [curve for figure in scenario.figures for curve in figure.curves]:
        assert any(curve.is_of(trial) for trial in study.trials)


def test_a_scenario_of_one_trace_becomes_one_trial_with_its_job(tmp_path: Path) -> None:
    (trial,) = expand(load(tmp_path, GOOD))
    assert trial.id == "first-linux-iw10" and trial.uplink_kbps == 1000
    assert trial.paths == ["/14980?at=0:14480;1000:500"] and trial.schedule_s == 1.0
    job = trial.job()
    assert job["paths"] == ["/14980?at=0:14480;1000:500&trace_ms=1"]
    assert job["sysctls"] == {"net.ipv4.tcp_slow_start_after_idle": "1"}


def test_a_write_in_segments_has_the_length_of_its_traces_mss(tmp_path: Path) -> None:
    (trial,) = expand(load(tmp_path, GOOD.replace("sample_ms = 1", "sample_ms = 1\nmss = 512")))
    assert trial.paths == ["/5620?at=0:5120;1000:500"]


THINKING = """[[schedule]]
name = "asking"
requests = [{ bytes = 5000 }, { bytes = 600, think_s = "each" }]
[[trace]]
name = "second"
title = "A trace of its own"
schedule = "asking"
tcp = ["linux", "other"]
initcwnd = [4, 2]
think_s = [0.5, 3]
rtt_ms = 30
uplink = 500
mss = 1000
receive_window = 40
rto_min_ms = 300
quickack = true
nagle = true
outage_ms = [150, 500]
may_lose = true
[[tcp]]
name = "other"
title = "Another"
congestion_control = "cubic"
validation = false
sysctls = { "net.ipv4.tcp_sack" = "0", "net.ipv4.tcp_frto" = "2" }
"""


def test_every_key_of_a_trace_and_its_tcp_is_in_its_trials(tmp_path: Path) -> None:
    scenario = load(tmp_path, GOOD + THINKING)
    first, *trials = expand(scenario)
    assert scenario.count == 1 + len(trials) == 9
    assert [trial.id for trial in trials] == [
        f"second-{tcp}-iw{window}-think{think}-mss1000"
        for window, think, tcp in product((4, 2), ("0.5", "3"), ("linux", "other"))]
    assert trials[1] == TraceTrial(
        scenario="mine", trace="second", tcp="other", congestion_control="cubic",
        validation=False, rtt_ms=30, bandwidth_kbps=1000, uplink_kbps=500, queue_packets=100,
        loss_percent=0.0, initrwnd=40, initcwnd=4, mss=1000, receive_window=40, rto_min_ms=300,
        quickack=True, nagle=True, sample_ms=1, outage_from_ms=150, outage_to_ms=500,
        requests=(Request(5000), Request(600, 0.5)), think_s=0.5, may_lose=True,
        sysctls="net.ipv4.tcp_sack=0 net.ipv4.tcp_frto=2")
    job = trials[1].job()
    assert job["paths"] == ["/5000?&trace_ms=1&nagle=1", "/600?&trace_ms=1&nagle=1"]
    assert job["think_s"] == [0.0, 0.5] and trials[1].path.down.outage_ms == (150, 500)
    assert job["sysctls"] == {"net.ipv4.tcp_slow_start_after_idle": "0",
                              "net.ipv4.tcp_sack": "0", "net.ipv4.tcp_frto": "2"}
    assert (job["initrwnd"], job["window_bytes"]) == (40, 40_000)
    assert (job["options"]["rto_min_ms"], job["options"]["quickack"]) == (300, True)
    # The first trace has none of these keys.
    assert (first.receive_window, first.rto_min_ms, first.quickack, first.nagle,
            first.may_lose, first.sysctls) == (0, 0, False, False, False, "")
    assert first.job()["initrwnd"] == 44 and "outage_ms" not in first.job()["network"]["down"]


def test_an_uplink_like_the_downlink_and_no_outage_may_be_written_out(tmp_path: Path) -> None:
    (trial,) = expand(load(tmp_path, GOOD.replace(
        "sample_ms = 1", 'sample_ms = 1\nuplink = "same"\noutage_ms = []')))
    assert (trial.uplink_kbps, trial.outage_from_ms, trial.outage_to_ms) == (1000, 0.0, 0.0)


def test_a_curve_is_of_the_window_that_it_names_or_of_all(tmp_path: Path) -> None:
    trials = expand(load(tmp_path, GOOD + THINKING))
    of_four = ["second-other-iw4-think0.5-mss1000", "second-other-iw4-think3-mss1000"]
    of_two = ["second-other-iw2-think0.5-mss1000", "second-other-iw2-think3-mss1000"]
    for text, ids in (("second/other", [*of_four, *of_two]), ("second/other/iw2", of_two),
                      ("first/other", [])):
        curve = TraceCurve.parse(text, "")
        assert curve.text == text
        assert [trial.id for trial in trials if curve.is_of(trial)] == ids


WRITES = "writes = [{ at_s = 0.0, segments = 10 }, { at_s = 1.0, bytes = 500 }]"


def test_flags_replace_the_values_of_the_scenario(tmp_path: Path) -> None:
    scenario = load(tmp_path, GOOD)
    other = apply(scenario, Overrides({"rtt_ms": [50.0], "initcwnd": [3, 4]}))
    assert [(trial.rtt_ms, trial.initcwnd) for trial in expand(other)] == [(50.0, 3), (50.0, 4)]
    wider = apply(scenario, Overrides({"bandwidth_kbps": [2000]}))
    assert [trial.uplink_kbps for trial in expand(wider)] == [2000]
    assert apply(scenario, NOTHING) == scenario


EVERYTHING: dict[str, list[Any]] = {
    "uplink_kbps": [500.0], "queue": ["50ms"], "qdisc": ["cake"], "loss_percent": [1.0],
    "loss_burst": [2.0], "jitter_ms": [3.0], "mss": [536], "initrwnd": [100], "kernel": ["mine"],
    "module_parameter": ["tcp_cubic.hystart=0"], "congestion_control": ["bbr"],
    "sysctl": ["net.ipv4.tcp_sack=0"]}


def test_every_flag_of_network_and_tcp_reaches_the_trials(tmp_path: Path) -> None:
    scenario = load(tmp_path, GOOD)
    first, second = expand(apply(scenario, Overrides(EVERYTHING, repeat=2)), seed=7)
    for name, (value,) in EVERYTHING.items():
        if name != "queue":
            assert getattr(first, name) == value, name
    assert (first.queue_packets, first.queue_from) == (5, "50ms")
    assert (first.repeat, second.repeat) == (1, 2) and 0 < first.seed != second.seed > 0
    assert first.may_lose and first.id != second.id
    job = first.job()
    assert job["seed"] == first.seed and job["kernel"] == "mine"
    assert job["module_parameters"] == ["tcp_cubic.hystart=0"]
    assert job["host_sysctls"] == {"net.ipv4.tcp_sack": "0"}
    assert job["options"]["advertised_mss"] == 548 and job["congestion_control"] == "bbr"
    assert job["network"]["down"] == {
        "delay_ms": 10.0, "rate_kbps": 1000.0, "queue_packets": 5, "loss_percent": 1.0,
        "loss_burst": 2.0, "jitter_ms": 3.0, "qdisc": "cake", "seed": first.seed}
    assert first.path.up.rate_kbps == 500.0
    # A write in segments is as long as the trial's are.
    assert first.paths == ["/5860?at=0:5360;1000:500"]


def test_a_files_keys_give_the_same_trials_as_flags(tmp_path: Path) -> None:
    keys = "\n".join(f"{name} = {json.dumps(value)}" for name, (value,) in EVERYTHING.items()
                     if name not in ("queue", "uplink_kbps", "congestion_control"))
    text = GOOD.replace("queue = 100", 'queue = "50ms"\nuplink = 500').replace(
        "sample_ms = 1", f"sample_ms = 1\n{keys}\nrepeat = 2")
    given = Overrides({name: value for name, value in EVERYTHING.items()
                       if name != "congestion_control"}, repeat=2)
    by_flags = expand(apply(load(tmp_path, GOOD), given), seed=7)
    # A flag of the network may bring losses; a file has to allow them itself.
    assert [replace(trial, may_lose=False) for trial in by_flags] == expand(
        load(tmp_path, text), seed=7)


@pytest.mark.parametrize(("flag", "value", "initrwnd", "buffers"), [
    ("mss", 1000, 64, False), ("mss", 536, 119, False), ("initrwnd", 44, 44, False),
    ("initrwnd", 1000, 1000, True)])
def test_the_first_receive_window_is_what_the_buffer_holds_or_is_requested(
        tmp_path: Path, flag: str, value: int, initrwnd: int, buffers: bool) -> None:
    (trial,) = expand(apply(load(tmp_path, GOOD), Overrides({flag: [value]})))
    assert (trial.initrwnd, "buffers" in trial.job()) == (initrwnd, buffers)


def test_the_first_repeat_is_drawn_and_the_table_has_every_repeat() -> None:
    scenario, run = stored_trace.packetdrill().scenario, stored_trace.run()
    again = [replace(record, trial=replace(record.trial, repeat=2, seed=9))
             for record in run.records]
    finding = findings.findings(scenario, replace(run, records=[*again, *run.records]))[0]
    once = findings.findings(scenario, run)[0]
    assert finding.chart == once.chart
    table, single = finding.tables[0], once.tables[0]
    assert table.columns[1].name == "repeat" and len(table.rows) == 2 * len(single.rows)
    assert [row[1] for row in table.rows[:2]] == [1, 2]
    assert "Of 2 repeats the first is drawn" in table.notes[0]
    assert all("(the first of 2 repeats)" in statement.measured
               for statement in finding.statements if statement.outcome == REPRODUCED)


# Trials -------------------------------------------------------------------------------

STUDY = stored_trace.packetdrill()
TRIAL = replace(stored_trace.trial("idle-linux-iw10"), rtt_ms=100.0, bandwidth_kbps=1000.0)


def changed(**more: Any) -> TraceTrial:
    return replace(TRIAL, **more)


ONE_OF_TWELVE = (Request(12),)


@pytest.mark.parametrize(("requests", "writes", "paths", "until_s"), [
    ((Request(5000), Request(600)), (), ["/5000?", "/600?"], 0.0),
    (ONE_OF_TWELVE, (Write(0.0, 5), Write(1.5, 7)), ["/12?at=0:5;1500:7"], 1.5),
    (ONE_OF_TWELVE, (Write(0.1, 1, until_s=3.5005, every_s=0.02),),
     ["/12?at=100..3500.5/20:1"], 3.5),
    (ONE_OF_TWELVE, (Write(0.0, 1, until_s=2.0, every_s=0.02), Write(2.0, 7)),
     ["/12?at=0..2000/20:1;2000:7"], 2.0)])
def test_the_paths_of_a_trial_have_its_sizes_and_its_schedule(
        requests: tuple[Request, ...], writes: tuple[Write, ...], paths: list[str],
        until_s: float) -> None:
    trial = changed(requests=requests, writes=writes)
    sizes = [request.size_bytes for request in requests]
    assert (trial.response_sizes, trial.size_bytes) == (sizes, sum(sizes))
    assert (trial.paths, trial.schedule_s) == (paths, until_s)


def test_a_traces_deadline_allows_for_sending_timeouts_and_the_schedule() -> None:
    small = changed(requests=(Request(125000),), writes=())
    large = changed(requests=(Request(125000), Request(125000, 7.0)), writes=())
    written = changed(requests=(Request(125000),), writes=(Write(0.0, 1), Write(5.0, 124999)))
    gives_up_s, round_trips_s, timer_s = 930, 40 * 0.1, 0.4 + 2 * 0.1
    # Five times the sending, which takes a second for each response, and a timer for each segment.
    assert small.deadline_s == pytest.approx(gives_up_s + round_trips_s + 5 * 1 + 87 * timer_s)
    assert large.deadline_s == pytest.approx(gives_up_s + round_trips_s + 5 * 2 + 173 * timer_s)
    assert written.deadline_s == small.deadline_s + 5  # the last write is due after 5 s


def test_the_estimated_time_of_a_trace_rises_with_its_segments() -> None:
    def guest_s(size: int, **more: Any) -> float:
        return STUDY.kind.guest_s(changed(requests=(Request(size),), **more))

    empty, one, two = (guest_s(size, writes=()) for size in (0, 1448_000, 2896_000))
    assert 1 > one > empty > 0  # for a thousand segments, on a machine of two cores
    assert two - one == pytest.approx(one - empty)
    assert guest_s(1448_000, mss=724) == pytest.approx(two)


def test_every_capture_of_a_measured_trace_is_kept() -> None:
    assert STUDY.kind.all_captures and not stored_load.study().kind.all_captures
    for record in stored_trace.run().records:
        assert record.ok and (record.verdict == SKIPPED or all(
            capture_path(stored_trace.RUN, record.trial.id, side).exists()
            for side in ("client", "server")))


def test_the_job_of_a_trace_has_its_network_options_and_client() -> None:
    job = changed(nagle=False, receive_window=0, outage_from_ms=5.0, outage_to_ms=0.0).job()
    assert (job["initrwnd"], job["window_bytes"]) == (44, 0) and "buffers" not in job
    assert (job["kind"], job["client"], job["options"]["advertised_mss"]) == (
        "trace", "libcurl", TRIAL.mss + 12)
    assert job["network"] == {
        "down": {"delay_ms": 50.0, "rate_kbps": 1000.0, "queue_packets": 1000,
                 "outage_ms": (5.0, 0.0)},
        "up": {"delay_ms": 50.0, "rate_kbps": TRIAL.uplink_kbps, "queue_packets": 1000}}


# Schedules ----------------------------------------------------------------------------

MSS = 1000
TRIAL_OF_ROW = stored_trace.run().records[0].trial


@pytest.mark.parametrize("write", [
    Write(0.0, 5), Write(2.4, segments=6, until_s=3.5, every_s=0.02),
    Write(0.045, 1, until_s=2.2, every_s=0.01), Write(0.0, 36, until_s=10.0, every_s=0.2),
    Write(1.0, 7, until_s=1.0005, every_s=0.0005), Write(0.0, 1, until_s=0.3, every_s=0.1)])
def test_the_server_reads_a_write_as_the_trial_has_it(write: Write) -> None:
    written = write.in_bytes(MSS)
    heard = parse_writes(written.text)
    assert len(heard) == write.count
    assert sum(size for _, size in heard) == write.count * write.bytes_each(MSS) > 0
    assert changed(writes=(written,)).due_s == [due_ms / 1000 for due_ms, _ in heard]
    assert heard[-1][0] / 1000 == pytest.approx(write.last_s)


def schedule(**tables: Any) -> Schedule:
    return schema.read(Schedule, {"name": "one", **tables}, "here")


BACKWARDS, TOO_MANY = "time goes backwards", "more than 50000 writes"


@pytest.mark.parametrize(("writes", "refused"), [
    # The first ends at 0.75 s, as its end is not one of its times.
    ([{"at_s": 0, "until_s": 1, "every_s": 0.25, "bytes": 5}, {"at_s": 0.75, "bytes": 5}], ""),
    ([{"at_s": 0, "until_s": 1, "every_s": 0.25, "bytes": 5}, {"at_s": 0.74, "bytes": 5}],
     BACKWARDS),
    ([{"at_s": 1, "bytes": 5}, {"at_s": 1, "bytes": 5}], ""),
    ([{"at_s": 1, "until_s": 1, "every_s": 0.25, "bytes": 5}], BACKWARDS),
    ([{"at_s": 1, "until_s": 1.001, "every_s": 0.25, "bytes": 5}], ""),
    ([{"at_s": 0, "until_s": 50, "every_s": 0.001, "bytes": 5}], ""),
    ([{"at_s": 0, "until_s": 49, "every_s": 0.001, "bytes": 5},
      *[{"at_s": 50, "bytes": 5}] * 1001], TOO_MANY)])
def test_writes_that_go_back_in_time_or_are_too_many_are_refused(writes: list[dict[str, float]],
                                                                 refused: str) -> None:
    if not refused:
        assert len(schedule(writes=writes).writes) == len(writes)
    else:
        with pytest.raises(UsageError, match=refused):
            schedule(writes=writes)


def test_the_writes_of_a_schedule_are_one_request_and_its_requests_one_each() -> None:
    written = schedule(writes=[{"at_s": 0.5, "segments": 3}, {
        "at_s": 1, "until_s": 2, "every_s": 0.25, "bytes": 70}])
    assert written.requests_of(7, MSS) == (Request(3280),)
    assert written.writes_in_bytes(MSS) == (
        Write(0.5, 3000), Write(1.0, 70, until_s=2.0, every_s=0.25))
    assert (written.size_bytes(MSS), written.is_about_thinking) == (3280, False)
    requested = schedule(requests=[{"bytes": 70}, {"bytes": 5, "think_s": 1.5},
                               {"bytes": 9, "think_s": "each"}])
    assert (requested.size_bytes(MSS), requested.is_about_thinking) == (84, True)
    for think_s in (7, None):
        assert requested.requests_of(think_s, MSS) == (
            Request(70), Request(5, 1.5), Request(9, think_s or 0.0))
    assert requested.writes_in_bytes(MSS) == ()


def test_the_times_of_a_schedule_are_those_of_its_writes() -> None:
    assert changed(writes=()).due_s == []
    writes = (Write(0.5, 3000), Write(1.0, 70, until_s=2.0, every_s=0.25),
              Write(2.0, 1, until_s=2.001, every_s=0.005))
    assert changed(writes=writes).due_s == [0.5, 1.0, 1.25, 1.5, 1.75, 2.0]


times_s = any_.floats(0, 80_000)
writes_made = any_.builds(Write, times_s, any_.integers(1, 50_000_000)) | any_.builds(
    lambda at_s, size, more_s, every_s: Write(at_s, size, until_s=at_s + more_s, every_s=every_s),
    times_s, any_.integers(1, 50_000_000), any_.floats(0.01, 100), any_.floats(0.01, 80_000))
requests_made = any_.builds(Request, any_.integers(1, 50_000_000), times_s)


@settings(max_examples=50, deadline=None)
@given(any_.lists(requests_made, min_size=1, max_size=9), any_.lists(writes_made, max_size=9))
def test_a_schedule_comes_back_from_rows_and_batches_with_every_digit(requests: list[Request],
                                                                      writes: list[Write]) -> None:
    in_order = sorted(writes, key=lambda write: write.at_s)
    if fault_of(in_order):
        in_order = in_order[:1]
    asked = changed(requests=tuple(requests), writes=tuple(in_order))
    columns = columns_of(TraceRecord)
    row = RowWriter(TraceRecord, columns).row(TraceRecord(asked, True))
    assert RowReader(TraceRecord, columns).record(row).trial == asked
    sent = json.loads(json.dumps(batches.named_values(asked)))
    assert batches.trial_of(TraceTrial, sent) == asked


def test_a_schedule_of_many_writes_is_read_back(tmp_path: Path) -> None:
    """Its field is longer than Python's limit for CSV, which other files keep."""
    asked = changed(writes=tuple(Write(number / 1000, 5) for number in range(10_000)))
    columns, limit = columns_of(TraceRecord), csv.field_size_limit()
    with (tmp_path / "trials.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        row = RowWriter(TraceRecord, columns).row(TraceRecord(asked, True))
        assert max(len(str(field)) for field in row) > limit
        writer.writerows([columns, row])
    (record,) = read_records(tmp_path / "trials.csv", TraceRecord)
    assert record.trial == asked and csv.field_size_limit() == limit


@pytest.mark.parametrize(("column", "values"), [
    ("requests", ("x", "{}", "[5]", '[{"bytes": 0}]', '[{"bytes": 5, "think_s": -1}]',
                  '[{"bytes": 5, "think_s": null}]', '[{"bytes": 5, "think_s": "each"}]', "[" * 9,
                  '[{"bytes": 5, "nagle": 1}]', "[]")),
    ("writes", ("x", '[{"bytes": 5}]', '[{"at_s": 1}]', '[{"at_s": -1, "bytes": 5}]',
                '[{"at_s": 1, "bytes": 5, "until_s": 2}]', '[{"at_s": 1, "segments": 5}]',
                '[{"at_s": 1, "bytes": 5, "until_s": 1, "every_s": 1}]',
                '[{"at_s": 1, "bytes": 5}, {"at_s": 0, "bytes": 5}]',
                '[{"at_s": 0, "bytes": 5, "until_s": 86400, "every_s": 0.0001}]')),
    ("sysctls", ("x", "net.ipv4.tcp_sack", "net.ipv4.tcp_sack=0;reboot", "net.a=1  net.b=1"))])
def test_a_row_with_a_malformed_schedule_or_sysctl_is_refused(column: str,
                                                              values: tuple[str, ...]) -> None:
    header, row, *_ = whole_rows(RUN / "trials.csv", TraceRecord)
    reader, place = RowReader(TraceRecord, header), header.index(column)
    assert reader.record(row).trial == TRIAL_OF_ROW
    for value in values:
        with pytest.raises(ValueError, match=f"^{column}") as raised:
            reader.record([*row[:place], value, *row[place + 1:]])
        assert "\n" not in str(raised.value)


# Windows ------------------------------------------------------------------------------

COLUMNS = ",".join(FIELDS) + "\n"
RTO = ",1000,"  # microseconds
ROW = ",".join(map(str, range(len(FIELDS)))).replace(",9,", RTO) + "\n"


def test_rows_of_a_window_file_become_samples_in_their_order() -> None:
    last = (1 << 63) - 1
    first, second = parse((COLUMNS + ROW + ROW.replace("0,", f"{last},", 1)).encode(), "window.csv")
    assert (first.time_ns, second.time_ns, first.send_window_bytes) == (0, last, len(FIELDS) - 1)


@pytest.mark.parametrize(("content", "why"), [
    (COLUMNS, "holds no sample"), ("", "its columns are not"),
    ("time_ns\n1\n", "its columns are not"),
    (COLUMNS + "1,2\n", "a row is not one of numbers"),
    (COLUMNS + ROW.replace("1,", "x,", 1), "a row is not one of numbers"),
    (COLUMNS + ROW.replace("1,", "1\r,", 1), "a row is not one of numbers"),
    (COLUMNS + ROW.replace("0,", "-1,", 1),
     "a row is not one of numbers: -1 is none of a kernel's"),
    (COLUMNS + ROW.replace("0,", f"{1 << 63},", 1),
     "a row is not one of numbers: 9223372036854775808"),
    (COLUMNS + "\xe9", "a row is not one of numbers"),
    (COLUMNS + ROW + ROW.replace(RTO, ",999,"),
     "a retransmission timeout is shorter than a tick")])
def test_a_malformed_window_file_is_refused_by_its_name(content: str, why: str) -> None:
    with pytest.raises(WindowError, match=f"^window.csv: {why}"):
        parse(content.encode(), "window.csv")


# Warm connections ---------------------------------------------------------------------

WARM_STUDY = KIND.study(scenario_file.find("handley1999_warm"), NOTHING, 1)
WARM_TRIAL = WARM_STUDY.trials[0]
CURVE = TraceCurve(WARM_TRIAL.trace, WARM_TRIAL.tcp)
Times = dict[float, dict[int, float]]  # think time (s) → initial window → latency (ms)


def records(times: Times) -> list[TraceRecord]:
    return [TraceRecord(replace(WARM_TRIAL, think_s=think_s, initcwnd=window), True, latency_ms=ms,
                        last_window=window, last_retransmissions=0, verdict=PASS)
            for think_s, line in times.items() for window, ms in line.items()]


def test_a_curves_times_exclude_other_traces_and_failed_records() -> None:
    good = records({3: {10: 1.0}, 1: {16: 2.0, 10: 3.0}})
    (other,) = records({2: {10: 4.0}})
    others = [replace(other, verdict=FAIL),
              *(replace(other, trial=replace(other.trial, **{name: value})) for name, value in (
                  ("trace", "another"), ("tcp", "another"), ("think_s", None)))]
    found = findings.by_think_time([*others, *good], CURVE)
    assert {think_s: {window: record.latency_ms for window, record in line.items()}
            for think_s, line in found.items()} == {1: {16: 2.0, 10: 3.0}, 3: {10: 1.0}}
    assert list(found) == [1, 3] and findings.windows_of(found) == [10, 16]


# Analysis -----------------------------------------------------------------------------

IDLE = stored_trace.packetdrill().scenario.figures[0]


def views() -> Views:
    return Views(stored_trace.run().records, RUN)


def test_a_figure_has_the_restarts_within_its_time_ends_included() -> None:
    whole = replace(IDLE, curves=(TraceCurve("idle", "linux"),), from_s=0.0, to_s=0.0)
    ((_, at_s, _),) = views().restarts(whole)
    for from_s, to_s, told in ((at_s, at_s, 1), (0, at_s - 1e-6, 0), (at_s + 1e-6, 9, 0),
                               (0, at_s, 1), (at_s, 9, 1), (at_s + 1, 0, 1)):
        shown = replace(whole, from_s=from_s, to_s=to_s)
        assert len(list(views().restarts(shown))) == told, (from_s, to_s)


def test_a_trace_is_read_once_and_one_that_failed_is_not() -> None:
    found, linux = views(), TraceCurve("idle", "linux")
    assert found.view(linux) is found.view(TraceCurve("idle", "linux", 10)) is not None
    assert found.view(TraceCurve("idle", "absent")) is None
    assert list(found.views) == ["idle-linux-iw10"]
    failed = [replace(record, ok=False) for record in found.records]
    assert Views(failed, RUN).view(linux) is None
    with pytest.raises(FirstFlightError, match="^idle/other was not measured"):
        found.view(TraceCurve("idle", "other"))


def test_a_rows_points_are_segments_by_their_ends_with_retransmissions_apart() -> None:
    found = Views(stored_trace.lossy_run().records, LOSSY)
    view = found.view(TraceCurve("outage", "linux"))
    assert view is not None
    row = row_of("A title", view, flagged=True)
    assert (row.title, row.flagged, row.absent) == ("A title", True, "")
    assert (len(row.sent), len(row.retransmitted)) == (47, 9) and len(view.sends) == 56
    assert {number for _, number in row.retransmitted} <= {number for _, number in row.sent}
    numbers = [number for _, number in row.sent]
    assert numbers == sorted(numbers) and numbers[0] == 1 and numbers[-1] == (
        max(segment.end for segment in view.sends) - 1) / view.trial.mss
    # Acknowledgements rise from none to all, the FIN's not counted.
    times, acknowledged = zip(*row.acked)
    assert list(times) == sorted(times) and len(set(acknowledged)) == len(acknowledged)
    assert acknowledged[0] == times[0] == 0 and list(acknowledged) == sorted(acknowledged)
    assert acknowledged[-1] == numbers[-1] and times[-1] == view.finish_s()
    # A threshold that TCP does not have yet is not drawn.
    assert 0 < len(row.ssthresh) < len(row.window) == len(row.rtt_ms) == len(row.in_flight)
    assert row.window[0][1] == 4 and row.ssthresh[-1][1] == view.samples[-1].ssthresh
    assert row.rtt_ms[-1][1] == view.samples[-1].rtt_us / 1000
    assert max(packets for _, packets in row.in_flight) <= max(
        packets for _, packets in row.window)


# Claims -------------------------------------------------------------------------------

def claim(expects: str, published: float | None = None, within: float | None = None) -> TraceClaim:
    return TraceClaim(figure="fig", says="It says.", expects=expects, metric="window",
                      compares=(TraceCurve("a", "b"),), published=published, within=within)


@pytest.mark.parametrize("expects, within, numbers, word", [
    ("more", None, (3, 2), DIRECTION), ("more", None, (2, 2), NOT_REPRODUCED),
    ("less", None, (2, 3), DIRECTION), ("less", None, (2, 2), NOT_REPRODUCED),
    ("alike", 1, (2, 3), REPRODUCED), ("alike", 1, (2, 3.5), NOT_REPRODUCED),
    ("alike", 1, (3.5, 2), NOT_REPRODUCED), ("alike", 0, (2, 2.01), NOT_REPRODUCED),
    ("alike", None, (104, 100), REPRODUCED), ("alike", None, (106, 100), NOT_REPRODUCED)])
def test_two_curves_are_judged_by_direction_or_within_a_tolerance(
        expects: str, within: float | None, numbers: tuple[float, float], word: str) -> None:
    assert _judge_claim(claim(expects, within=within), numbers) == (word, "")


@pytest.mark.parametrize("numbers, word, said", [
    ((74, 100), REPRODUCED, ": 26 % less, published 20 %"),
    ((73, 100), DIRECTION, ": 27 % less, published 20 %"),
    ((99.96, 100), DIRECTION, ": 0 % less, published 20 %"),
    ((110, 100), NOT_REPRODUCED, ": -10 % less, published 20 %"),
    ((100, 100), NOT_REPRODUCED, ": 0 % less, published 20 %"),
    ((0, 0), NOT_REPRODUCED, ": 0 % less, published 20 %")])
def test_a_published_reduction_is_reproduced_within_its_tolerance(numbers: tuple[float, float],
                                                                  word: str, said: str) -> None:
    assert _judge_claim(claim("less", 20, 6), numbers) == (word, said)


@pytest.mark.parametrize("first, word", [(95, REPRODUCED), (106, NOT_REPRODUCED)])
def test_a_published_difference_of_0_is_reproduced_within_its_tolerance(first: float,
                                                                        word: str) -> None:
    assert _judge_claim(claim("less", 0, 5), (first, 100))[0] == word


@pytest.mark.parametrize("number, word", [(12, REPRODUCED), (8, REPRODUCED), (12.1, NOT_REPRODUCED),
                                          (7.9, NOT_REPRODUCED)])
def test_a_curves_number_is_reproduced_within_the_published_tolerance(number: float,
                                                                      word: str) -> None:
    assert _judge_claim(claim("is", 10, 2), (number,)) == (word, ", published 10")


@pytest.mark.parametrize("number, word", [(12, REBUILT), (12.1, NOT_REPRODUCED)])
def test_a_number_that_the_scenario_puts_in_is_rebuilt_and_not_reproduced(number: float,
                                                                          word: str) -> None:
    put_in = replace(claim("is", 10, 2), rebuilt=True)
    outcome, words = _judge_claim(put_in, (number,))
    assert (qualify(put_in, Statement("", words, outcome)).outcome, words) == (word, ", 10 put in")


def test_a_published_increase_is_compared_in_percent() -> None:
    said = ": 26 % more, published 20 %"
    assert _judge_claim(claim("more", 20, 6), (126, 100)) == (REPRODUCED, said)


def test_a_rebuilt_comparison_of_two_curves_is_refused() -> None:
    both = (TraceCurve("a", "b"), TraceCurve("a", "c"))
    with pytest.raises(UsageError, match="rebuilt goes with"):
        replace(claim("less", 20, 5), compares=both, rebuilt=True).check("here")


def test_rebuilt_claims_are_counted_apart() -> None:
    assert count_outcomes([REPRODUCED, REBUILT]) == {
        REPRODUCED: 1, "undecided": 0, DIRECTION: 0, NOT_REPRODUCED: 0, REBUILT: 1}
    assert summarize_counts(count_outcomes([REPRODUCED, REBUILT])).endswith(
        "0 not reproduced, 1 rebuilt")
    assert "rebuilt" not in summarize_counts(count_outcomes([REPRODUCED]))


def test_a_traces_claim_of_an_abstract_is_never_reproduced() -> None:
    scenario, run = stored_trace.packetdrill().scenario, stored_trace.run()
    of_abstract = replace(scenario, claims=tuple(
        replace(claim, abstract_only=True) for claim in scenario.claims))
    read, abstract = ([statement.outcome for finding in findings.findings(made, run)
                       for statement in finding.statements] for made in (scenario, of_abstract))
    assert REPRODUCED in read and REPRODUCED not in abstract and DIRECTION in abstract
