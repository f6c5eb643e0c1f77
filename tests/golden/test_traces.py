"""Stored traces are replayed by the rules, judged, reported and viewed."""

from __future__ import annotations

import shutil
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from firstflight.base.errors import FirstFlightError
from firstflight.findings.charts import LineChart
from firstflight.runs import scenario_file
from firstflight.runs.kinds import Overrides
from firstflight.runs.results.records import FAIL, PASS, SKIPPED, Record
from firstflight.study.traces import KIND
from firstflight.workloads.trace.record import TraceRecord
from firstflight.workloads.trace.replay import Replay
from firstflight.workloads.trace.schedule import Write
from firstflight.workloads.trace.trial import TraceTrial
from firstflight.workloads.trace.verify import judge_trace
from firstflight.workloads.trace.view import read_view, view_of
from firstflight.workloads.trace.window import OPEN, parse
from tests.golden import exchanges, stored_trace
from tests.golden.stored_trace import LOSSY, RUN, changed, judged, seen, trial, window_text
from tests.unit.tcp.conversation import Conversation


@pytest.mark.parametrize(("name", "before", "after", "flight"), [
    ("idle-linux-iw10", 36, 10, 10),  # tcp_slow_start_slow-start-after-idle.pkt
    ("idle-restart-iw10", 36, 10, 10),
    ("idle-off-iw10", 36, 36, 21),
    ("idle-unvalidated-iw10", 36, 36, 21),
    ("idle-cwv-iw10", 19, 1, 1),  # grown only while full, halved down to one segment
])
def test_each_tcp_restarts_with_the_window_of_its_rule_after_two_idle_seconds(
        name: str, before: int, after: int, flight: int) -> None:
    (restart,) = read_view(trial(name), stored_trace.RUN).replayed.restarts
    assert (restart.before[0], restart.after[0], restart.flight) == (before, after, flight)
    assert restart.rule == restart.after


@pytest.mark.parametrize(("name", "window"), [
    ("nine-linux-iw10", 18),  # tcp_slow_start_slow-start-app-limited-9-packets-out.pkt
    ("nine-off-iw10", 18),  # no setting switches this rule off
    ("nine-unvalidated-iw10", 19),
])
def test_a_window_of_ten_with_nine_packets_grows_less_if_it_is_validated(name: str,
                                                                         window: int) -> None:
    assert read_view(trial(name), stored_trace.RUN).window(0.15) == window


@pytest.mark.parametrize(("wrong", "named"), [
    ({"initcwnd": 9}, "window"), ({"validation": False}, "window"), ({"rtt_ms": 101.0}, "path"),
    ({"mss": 1000}, "segment size"), ({"congestion_control": "cwv"}, "window"),
    ({"receive_window": 20}, "receive window"),
    ({"writes": (Write(0.0, 37500), Write(2.1, 29000))}, "schedule"),
])
def test_a_trace_under_another_setting_than_requested_fails(wrong: dict[str, Any],
                                                            named: str) -> None:
    record = judged(replace(trial("idle-linux-iw10"), **wrong), "idle-linux-iw10")
    assert record.ok and record.verdict == FAIL and named in record.verdict_reason


@pytest.mark.parametrize(("observed", "said"), [
    ({"error": "no socket"}, "no socket"), ({"fetches": []}, "no transfer"),
    ({"responses": []}, "0 responses of 1"),
    ({"fetches": [{"ok": False, "error": ""}]}, "the transfer failed"),
    ({"fetches": [{"ok": True, "error": ""}, {"ok": False, "error": "curl 28: too late"}]},
     "too late")])
def test_a_failed_transfer_is_skipped_with_its_error(observed: dict[str, Any], said: str) -> None:
    record = judged(trial("idle-linux-iw10"), **observed)
    assert not record.ok and record.verdict == SKIPPED and said in record.error


def test_a_missing_congestion_control_is_skipped_with_its_reason() -> None:
    record = judged(trial("idle-linux-iw10"), skipped="this kernel has no such thing")
    assert record.ok and record.verdict == SKIPPED
    assert record.verdict_reason == "this kernel has no such thing"


@pytest.mark.parametrize(("states", "windows", "timeouts"), [
    ([0, 0, 3, 0], [10, 20, 5, 6], 0),
    ([0, 4, 4, 0], [10, 1, 2, 3], 1),
    ([0, 4, 4, 4, 4, 0], [10, 1, 2, 1, 2, 3], 2),  # the timer runs out again in recovery
    ([0, 4, 0, 4, 0], [10, 1, 5, 1, 5], 2)])
def test_every_timeout_is_counted(states: list[int], windows: list[int], timeouts: int) -> None:
    view = read_view(trial("idle-linux-iw10"), stored_trace.RUN)
    samples = tuple(replace(view.samples[0], state=state, cwnd=cwnd)
                    for state, cwnd in zip(states, windows))
    assert replace(view, samples=samples).timeouts() == timeouts


@pytest.mark.parametrize("text", ["", "time_ns,cwnd\n1,2\n"])
def test_a_window_file_with_other_columns_is_refused(text: str) -> None:
    record = judged(trial("idle-linux-iw10"), window=text)
    assert not record.ok and "columns" in record.error


def test_a_trace_without_a_window_file_has_an_error() -> None:
    requested = trial("idle-linux-iw10")
    record = judge_trace(requested, replace(stored_trace.seen(requested), files={}), exact=True)
    assert not record.ok and record.error == "the worker brought back no window.csv"


@pytest.mark.parametrize("name", ["idle-linux-iw10", "idle-cwv-iw10"])
def test_a_retransmission_timeout_of_0_is_refused_in_one_line(name: str) -> None:
    """Idle times are divided by the timeout."""
    rto_us = read_view(trial(name), stored_trace.RUN).samples[2].rto_us
    record = judged(trial(name), window=changed(window_text(name), 3, "rto_us", -rto_us))
    assert (record.ok, record.error) == (
        False, "window.csv: a retransmission timeout is shorter than a tick")


# With losses --------------------------------------------------------------------------

# Columns that the worker reported, whose report is not stored, and those about the measurement.
NOT_SEEN = {"judged_by", "trial", "connect_ms", "latency_ms", "measured_at"}
# Each stored record that passed, with the folder of its run.
KEPT = [(record, folder) for folder, run in ((RUN, stored_trace.run()),
                                             (LOSSY, stored_trace.lossy_run()))
        for record in run.records if record.verdict == PASS]


def judged_again(trial: TraceTrial, folder: Path, window: str | None = None) -> TraceRecord:
    return judge_trace(trial, seen(trial, window=window, folder=folder), exact=True)


def lossy_trial(name: str) -> TraceTrial:
    (found,) = [known for known in stored_trace.lossy().trials if known.id == name]
    return found


def replayed(name: str) -> Replay:
    """The replay of a stored trial with losses."""
    return read_view(lossy_trial(name), LOSSY).replayed


@pytest.mark.parametrize("kept, folder", KEPT, ids=lambda each: getattr(each, "trial", each).id
                         if isinstance(each, Record) else each.name)
def test_judging_a_stored_trace_again_gives_every_stored_column(kept: TraceRecord,
                                                                folder: Path) -> None:
    record = judged_again(kept.trial, folder)
    for column in {field.name for field in fields(TraceRecord)} - NOT_SEEN:
        value = getattr(kept, column)
        expected = pytest.approx(value, abs=1e-6) if isinstance(value, float) else value
        assert getattr(record, column) == expected, column


@pytest.mark.parametrize("name, checked, unjudged", [
    ("short-linux-iw4", 31, 19), ("short-cwv-iw4", 31, 19), ("outage-linux-iw4", 33, 12)])
def test_samples_in_a_recovery_and_the_first_after_it_are_not_judged(
        name: str, checked: int, unjudged: int) -> None:
    samples = parse(window_text(name, LOSSY).encode(), name)
    recovering = [bool(sample.state != OPEN or sample.lost or sample.retransmitted
                       or sample.sacked) for sample in samples]
    ends = sum(before and not after for before, after in zip(recovering, recovering[1:]))
    assert sum(recovering) + ends == unjudged
    found = replayed(name)
    assert (found.checked, found.unjudged, found.mismatches) == (checked, unjudged, ())


@pytest.mark.parametrize("name", ["short-linux-iw4", "short-cwv-iw4"])
def test_after_a_recovery_the_window_is_judged_to_the_segment_again(name: str) -> None:
    """A later sample that deviates by one is a mismatch. A sample within the recovery is none."""
    text = window_text(name, LOSSY)
    samples = parse(text.encode(), name)
    last = max(place for place, sample in enumerate(samples) if sample.state != OPEN)
    # TCP fills its window again three samples after the recovery.
    for place, by in ((last, 1), (last + 5, 1), (len(samples) - 2, 1), (len(samples) - 2, -1)):
        record = judged_again(lossy_trial(name), LOSSY, changed(text, place + 1, "cwnd", by))
        assert (record.verdict == FAIL) == (place != last), (place, by)
        if place != last:
            assert "window: observed" in record.verdict_reason and record.rule_wrong


def test_a_restart_after_losses_remembers_the_window_of_the_recovery() -> None:
    """Linux remembers three quarters of the window as ssthresh: 9 of 12 segments.

    The report's CWV halves the window for each RTO, down to one segment.
    """
    (linux,), (cwv,), (outage,) = (replayed(name).restarts for name in (
        "short-linux-iw4", "short-cwv-iw4", "outage-linux-iw4"))
    assert (linux.before, linux.after, linux.flight, linux.may_send) == ((12, 12), (4, 12), 4, 4)
    assert (cwv.before, cwv.after, cwv.flight) == ((11, 11), (1, 11), 1)
    assert (outage.before, outage.after) == ((9, 4), (4, 6))
    assert all(restart.agrees and restart.idle > restart.rto for restart in (linux, cwv, outage))
    assert not replace(outage, rule=(4, 7)).agrees


def test_losses_and_retransmissions_are_distinguished_by_their_times() -> None:
    trial = lossy_trial("outage-linux-iw4")
    view = read_view(trial, LOSSY)
    lost = sorted(segment.time_ns for segment in view.exchange.lost_data)
    again = sorted(segment.time_ns for segment in view.exchange.retransmissions)
    assert len(lost) == len(again) == 9
    first_s, last_s = (view.seconds(time_ns) for time_ns in (lost[0], lost[-1]))
    assert 0 < first_s < last_s < first_s + (trial.outage_to_ms - trial.outage_from_ms) / 1000
    assert view.lost(first_s) == 9 and view.lost(last_s + 0.001) == 0
    assert view.timeouts() == 1 and view.burst(2.5) == 4


# Reports ------------------------------------------------------------------------------

def test_a_missing_window_file_is_refused_in_one_line(tmp_path: Path) -> None:
    run = shutil.copytree(stored_trace.RUN, tmp_path / "run")
    (run / "files" / "idle-off-iw10-window.csv").unlink()
    with pytest.raises(FirstFlightError, match="idle-off-iw10-window.csv: cannot be read") as error:
        stored_trace.packetdrill().report(replace(stored_trace.run(), folder=run))
    assert "\n" not in str(error.value)


def test_a_partial_run_has_tables_and_no_statements() -> None:
    file = scenario_file.read(stored_trace.FOLDER / "packetdrill.toml")
    partial = KIND.study(file, Overrides({"rtt_ms": [50.0]}), 1)
    run = stored_trace.run()
    assert not partial.whole
    (finding,) = partial.report(run).findings
    assert finding.title == "Two seconds idle (except what the command line gives)"
    assert finding.tables and not finding.statements
    without = [record for record in run.records if record.trial.tcp != "cwv"]
    assert not partial.report(replace(run, records=without)).findings


def test_a_failed_trace_is_excluded_from_table_and_chart() -> None:
    run = stored_trace.warm_run()
    first, *others = run.records
    finding, *_ = stored_trace.warm_study().report(
        replace(run, records=[replace(first, verdict=FAIL), *others])).findings
    assert finding.tables[0].rows[0][1:3] == (None, "141.9 (140)")
    assert isinstance(finding.chart, LineChart)
    assert finding.chart.columns[0][0].lines[0].x[0] == 0.3
    assert finding.chart.alarm == "1 excluded"


# Views --------------------------------------------------------------------------------

def test_lateness_is_that_of_the_latest_write_after_a_quiet_time() -> None:
    idle = exchanges.idle()
    late_ms = idle.lateness_ms(0.0)
    assert late_ms == pytest.approx(0.002868) == idle.lateness_ms(10.0)
    assert idle.last_request_s() == 0.0
    later = replace(idle, start_ns=idle.start_ns - 7_000_000)  # due 7 ms before it was sent
    assert later.lateness_ms(0.0) == pytest.approx(7.002868)
    # The longest quiet time is that from the last acknowledgement to the second write.
    acknowledged_ns = max(group.time_ns for group in idle.groups
                          if idle.seconds(group.time_ns) < 1)
    write_ns = next(group.time_ns for group in idle.groups if idle.seconds(group.time_ns) > 1)
    quiet_ms = (write_ns - acknowledged_ns) / 1e6
    assert idle.lateness_ms(quiet_ms) == late_ms and idle.lateness_ms(quiet_ms + 0.001) == 0.0
    assert replace(idle, trial=replace(idle.trial, writes=())).lateness_ms(0.0) is None


def test_a_trace_without_a_request_data_or_an_end_is_refused() -> None:
    packets = Conversation().handshake().flight(0)
    with pytest.raises(FirstFlightError, match="idle-linux-iw10: its data was never acknowledged"):
        view_of(trial("idle-linux-iw10"), packets.read(), [exchanges.sample(0, 4)]).finish_s()
    silent = Conversation()
    silent.send(0, False, 2)
    with pytest.raises(FirstFlightError, match="no request arrived"):
        view_of(trial("idle-linux-iw10"), silent.read(), [])
    with pytest.raises(FirstFlightError, match="idle-linux-iw10: the server sent no data"):
        view_of(trial("idle-linux-iw10"), Conversation().handshake().read(), [])
