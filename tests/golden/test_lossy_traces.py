"""Stored traces with losses judged again, column by column, and tampered with in their recovery."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest

from firstflight.runs.results.records import FAIL, PASS, Record
from firstflight.study.trace.record import TraceRecord
from firstflight.study.trace.replay import Replay
from firstflight.study.trace.trial import TraceTrial
from firstflight.study.trace.verify import judge_trace
from firstflight.study.trace.view import stored
from firstflight.study.trace.window import OPEN, parse
from tests.golden import stored_trace
from tests.golden.stored_trace import LOSSY, RUN, changed, seen, window_text

# Told by the worker, which is not stored, or of the time of the measurement.
NOT_SEEN = {"judged_by", "trial", "connect_ms", "latency_ms", "measured_at"}
KEPT = [(record, folder) for folder, run in ((RUN, stored_trace.run()),
                                             (LOSSY, stored_trace.lossy_run()))
        for record in run.records if record.verdict == PASS]


def judged(trial: TraceTrial, folder: Path, window: str | None = None) -> TraceRecord:
    return judge_trace(trial, seen(trial, window=window, folder=folder), exact=True)


def replayed(name: str) -> Replay:
    trial = next(each for each in stored_trace.lossy().trials if each.id == name)
    return stored(trial, LOSSY).replayed


@pytest.mark.parametrize("kept, folder", KEPT, ids=lambda each: getattr(each, "trial", each).id
                         if isinstance(each, Record) else each.name)
def test_every_column_is_read_off_the_packets_again(kept: TraceRecord, folder: Path) -> None:
    record = judged(kept.trial, folder)
    for each in fields(TraceRecord):
        if each.name not in NOT_SEEN:
            value = getattr(kept, each.name)
            exact = pytest.approx(value, abs=1e-6) if isinstance(value, float) else value
            assert getattr(record, each.name) == exact, each.name


@pytest.mark.parametrize("name, checked, unjudged", [
    ("short-linux-iw4", 31, 19), ("short-cwv-iw4", 31, 19), ("outage-linux-iw4", 33, 12)])
def test_samples_in_a_recovery_and_the_first_after_it_are_not_judged(
        name: str, checked: int, unjudged: int) -> None:
    samples = parse(window_text(name, LOSSY).encode(), name)
    recovering = [bool(each.state != OPEN or each.lost or each.retransmitted or each.sacked)
                  for each in samples]
    ends = sum(before and not after for before, after in zip(recovering, recovering[1:]))
    assert sum(recovering) + ends == unjudged
    found = replayed(name)
    assert (found.checked, found.unjudged, found.mismatches) == (checked, unjudged, ())


@pytest.mark.parametrize("name", ["short-linux-iw4", "short-cwv-iw4"])
def test_after_a_recovery_the_window_is_judged_to_the_segment_again(name: str) -> None:
    """Each later sample that is off by one is a mismatch; within the recovery none is."""
    trial = next(each for each in stored_trace.lossy().trials if each.id == name)
    text = window_text(name, LOSSY)
    samples = parse(text.encode(), name)
    last = max(place for place, each in enumerate(samples) if each.state != OPEN)
    for place, by in ((last, 1), (last + 3, 1), (len(samples) - 2, 1), (len(samples) - 2, -1)):
        record = judged(trial, LOSSY, changed(text, place + 1, "cwnd", by))
        assert (record.verdict == FAIL) == (place != last), (place, by)
        if place != last:
            assert "window: observed" in record.verdict_reason and record.rule_wrong


def test_a_restart_after_losses_remembers_the_window_of_the_recovery() -> None:
    """9 of 12 segments are three quarters; the report halves for each RTO, down to one."""
    (linux,), (cwv,), (outage,) = (replayed(name).restarts for name in (
        "short-linux-iw4", "short-cwv-iw4", "outage-linux-iw4"))
    assert (linux.before, linux.after, linux.flight, linux.may_send) == ((12, 12), (4, 12), 4, 4)
    assert (cwv.before, cwv.after, cwv.flight) == ((11, 11), (1, 11), 1)
    assert (outage.before, outage.after) == ((9, 4), (4, 6))
    assert all(each.agrees and each.idle > each.rto for each in (linux, cwv, outage))
    assert not replace(outage, rule=(4, 7)).agrees


def test_losses_are_told_from_retransmissions_by_when_they_were() -> None:
    trial = next(each for each in stored_trace.lossy().trials if each.id == "outage-linux-iw4")
    view = stored(trial, LOSSY)
    lost = sorted(segment.time_ns for segment in view.exchange.lost_data)
    again = sorted(segment.time_ns for segment in view.exchange.retransmissions)
    assert len(lost) == len(again) == 9
    first_s, last_s = (view.seconds(time_ns) for time_ns in (lost[0], lost[-1]))
    assert 0 < first_s < last_s < first_s + (trial.outage_to_ms - trial.outage_from_ms) / 1000
    assert view.lost(first_s) == 9 and view.lost(last_s + 0.001) == 0
    assert view.timeouts() == 1 and view.burst(2.5) == 4
