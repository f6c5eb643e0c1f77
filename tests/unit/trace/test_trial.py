"""What a trial's paths, think times and schedule come to, and how long it takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from firstflight.runs.measuring import capture_of
from firstflight.runs.results.records import SKIPPED
from firstflight.study.trace.trial import TraceTrial
from tests.golden import stored_load, stored_trace

STUDY = stored_trace.packetdrill()
TRIAL = replace(stored_trace.trial("idle-linux-iw10"), rtt_ms=100.0, bandwidth_kbps=1000.0)


def changed(**more: Any) -> TraceTrial:
    return replace(TRIAL, **more)


@pytest.mark.parametrize(("paths", "sizes", "schedule", "until_s"), [
    ("/5000? /600?", [5000, 600], "", 0.0),
    ("/12?at=0:5;1500:7", [12], "0:5;1500:7", 1.5),
    ("/12?at=100..3500.5/20:1", [12], "100..3500.5/20:1", 3.5005),
    ("/12?at=0..2000/20:1;1000:7&x=1", [12], "0..2000/20:1;1000:7", 2.0)])
def test_paths_tell_sizes_and_the_schedule(paths: str, sizes: list[int], schedule: str,
                                           until_s: float) -> None:
    trial = changed(paths=paths)
    assert (trial.response_sizes, trial.size_bytes) == (sizes, sum(sizes))
    assert (trial.schedule, trial.schedule_s) == (schedule, until_s)


def test_a_trial_is_named_by_its_think_time_where_it_is_about_one() -> None:
    assert TRIAL.id == "idle-linux-iw10"
    assert changed(think_s=0.5, think_times="0 0.5").id == "idle-linux-iw10-think0.5"
    assert changed(think_times="0 0.5").thinks_s == (0.0, 0.5)


def test_how_long_a_trace_may_take() -> None:
    small, large = changed(paths="/125000?", think_times="0"), changed(
        paths="/125000? /125000?", think_times="0 7")
    written = changed(paths="/125000?at=0:1;5000:124999", think_times="0")
    # Five times the sending, 40 round trips and two minutes; of the schedule all.
    assert small.deadline_s == 120 + 4 + 5 and large.deadline_s == 120 + 4 + 10
    assert written.deadline_s == small.deadline_s + 5


def test_a_guest_takes_its_time_by_segments() -> None:
    empty, one, two = (STUDY.kind.guest_s(changed(paths=f"/{size}?")) for size in (
        0, 1448_000, 2896_000))
    assert 1 > one > empty > 0  # of a thousand segments, on a machine of two cores
    assert two - one == pytest.approx(one - empty)
    assert STUDY.kind.guest_s(changed(paths="/1448000?", mss=724)) == pytest.approx(two)


def test_the_captures_that_figures_are_read_off_are_kept() -> None:
    assert STUDY.kind.all_captures and not stored_load.study().kind.all_captures
    for record in stored_trace.run().records:
        assert record.ok and (record.verdict == SKIPPED or all(
            capture_of(stored_trace.RUN, record.trial.id, side).exists()
            for side in ("client", "server")))


def test_what_is_asked_of_the_worker() -> None:
    job = changed(nagle=False, receive_window=0, outage_from_ms=5.0, outage_to_ms=0.0).job()
    assert (job["initrwnd"], job["window_bytes"]) == (1000, 0)
    assert (job["kind"], job["client"], job["options"]["advertised_mss"]) == (
        "trace", "libcurl", TRIAL.mss + 12)
    assert job["network"] == {
        "down": {"delay_ms": 50.0, "rate_kbps": 1000.0, "queue_packets": 1000,
                 "outage_ms": (5.0, 0.0)},
        "up": {"delay_ms": 50.0, "rate_kbps": TRIAL.uplink_kbps, "queue_packets": 1000}}
