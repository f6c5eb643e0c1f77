"""Stored traces judged again, and tampered with: the verdict has to notice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from firstflight.runs.results.records import FAIL, SKIPPED
from firstflight.study.trace.verify import judge_trace
from firstflight.study.trace.view import stored
from tests.golden import stored_trace
from tests.golden.stored_trace import changed, judged, trial, window_text


@pytest.mark.parametrize(("name", "before", "after", "flight"), [
    ("idle-linux-iw10", 36, 10, 10),  # tcp_slow_start_slow-start-after-idle.pkt
    ("idle-restart-iw10", 36, 10, 10),
    ("idle-off-iw10", 36, 36, 21),
    ("idle-unvalidated-iw10", 36, 36, 21),
    ("idle-cwv-iw10", 19, 1, 1),  # grown only while full, halved down to one segment
])
def test_the_window_after_two_idle_seconds(name: str, before: int, after: int,
                                           flight: int) -> None:
    (restart,) = stored(trial(name), stored_trace.RUN).replayed.restarts
    assert (restart.before[0], restart.after[0], restart.flight) == (before, after, flight)
    assert restart.rule == restart.after


@pytest.mark.parametrize(("name", "window"), [
    ("nine-linux-iw10", 18),  # tcp_slow_start_slow-start-app-limited-9-packets-out.pkt
    ("nine-off-iw10", 18),  # no setting switches this rule off
    ("nine-unvalidated-iw10", 19),
])
def test_the_window_after_nine_of_ten_packets(name: str, window: int) -> None:
    assert stored(trial(name), stored_trace.RUN).window(0.15) == window


@pytest.mark.parametrize(("wrong", "named"), [
    ({"initcwnd": 9}, "window"), ({"validation": False}, "window"), ({"rtt_ms": 101.0}, "path"),
    ({"mss": 1000}, "segment size"), ({"congestion_control": "cwv"}, "window"),
    ({"receive_window": 20}, "receive window"),
    ({"paths": "/66500?at=0:37500;2100:29000"}, "schedule"),
])
def test_a_trial_that_was_not_the_asked_one_fails(wrong: dict[str, Any], named: str) -> None:
    record = judged(replace(trial("idle-linux-iw10"), **wrong), "idle-linux-iw10")
    assert record.ok and record.verdict == FAIL and named in record.verdict_reason


@pytest.mark.parametrize(("observed", "said"), [
    ({"error": "no socket"}, "no socket"), ({"fetches": []}, "no transfer"),
    ({"responses": []}, "0 responses of 1"),
    ({"fetches": [{"ok": False, "error": ""}]}, "the transfer failed"),
    ({"fetches": [{"ok": True, "error": ""}, {"ok": False, "error": "curl 28: too late"}]},
     "too late")])
def test_a_failed_transfer_is_told(observed: dict[str, Any], said: str) -> None:
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
    view = stored(trial("idle-linux-iw10"), stored_trace.RUN)
    samples = tuple(replace(view.samples[0], state=state, cwnd=cwnd)
                    for state, cwnd in zip(states, windows))
    assert replace(view, samples=samples).timeouts() == timeouts


@pytest.mark.parametrize("text", ["", "time_ns,cwnd\n1,2\n"])
def test_samples_of_another_kind_are_refused(text: str) -> None:
    record = judged(trial("idle-linux-iw10"), window=text)
    assert not record.ok and "columns" in record.error


def test_a_worker_that_brought_no_samples_is_told() -> None:
    requested = trial("idle-linux-iw10")
    record = judge_trace(requested, replace(stored_trace.seen(requested), files={}), exact=True)
    assert not record.ok and record.error == "the worker brought back no window.csv"


@pytest.mark.parametrize("name", ["idle-linux-iw10", "idle-cwv-iw10"])
def test_a_timeout_of_nothing_is_told_in_one_line(name: str) -> None:
    """Idle times are divided by it."""
    rto_us = stored(trial(name), stored_trace.RUN).samples[2].rto_us
    record = judged(trial(name), window=changed(window_text(name), 3, "rto_us", -rto_us))
    assert (record.ok, record.error) == (
        False, "window.csv: a retransmission timeout is shorter than a tick")
