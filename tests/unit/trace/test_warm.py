"""When a larger initial window is faster after a think time, in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from firstflight.runs import scenario_file
from firstflight.runs.kinds import NOTHING
from firstflight.runs.results.records import FAIL, PASS
from firstflight.study.trace import findings
from firstflight.study.trace.record import TraceRecord
from firstflight.study.trace.scenario import TraceCurve
from firstflight.study.trace.study import KIND

STUDY = KIND.study(scenario_file.find("handley1999_warm"), NOTHING, 1)
TRIAL = STUDY.trials[0]
CURVE = TraceCurve(TRIAL.trace, TRIAL.tcp)
Times = dict[float, dict[int, float]]  # think time (s) → initial window → latency (ms)


def records(times: Times) -> list[TraceRecord]:
    return [TraceRecord(replace(TRIAL, think_s=think_s, initcwnd=window), True, latency_ms=ms,
                        last_window=window, last_retransmissions=0, verdict=PASS)
            for think_s, line in times.items() for window, ms in line.items()]


def said(times: Times) -> str:
    return findings._warm_answer(CURVE, findings.by_think_time(records(times), CURVE)).found


@pytest.mark.parametrize(("times", "words"), [
    ({1: {3: 100, 10: 50}, 2: {3: 90, 10: 40}},
     "IW 10 is faster than IW 3 after every think time (40.0 instead of 90.0 ms after 2 s)."),
    ({1: {3: 50, 10: 100}, 0.5: {3: 50, 10: 51}},
     "IW 10 is slower than IW 3 after every think time (100.0 instead of 50.0 ms after 1 s)."),
    ({1: {3: 100, 10: 100}, 2.5: {3: 100, 10: 50}},
     "IW 10 is faster than IW 3 from a think time of 2.5 s on (50.0 instead of 100.0 ms after 2.5 s)."),
    ({1: {3: 100, 10: 50}, 2: {3: 100, 10: 100}, 3: {3: 100, 10: 70}, 4: {3: 8, 10: 8}},
     "IW 10 is faster than IW 3 after a think time of 1 or 3 s (70.0 instead of 100.0 ms after 3 s)."),
    ({1: {3: 100, 10: 50}, 2: {3: 50, 10: 100}},
     "IW 10 is faster than IW 3 after a think time of 1 s (50.0 instead of 100.0 ms after 1 s);"
     " IW 10 is slower than IW 3 from a think time of 2 s on (100.0 instead of 50.0 ms after 2 s)."),
    # Each against the next smaller one, where both were measured.
    ({1: {3: 100, 10: 50, 16: 50}, 2: {3: 100, 16: 20}},
     "IW 10 is faster than IW 3 after every think time (50.0 instead of 100.0 ms after 1 s)."),
    ({1: {3: 100.5, 10: 100}, 2: {3: 100, 10: 100.5}},
     "Never: all initial windows take the same time after every think time."),
    ({1: {3: 100.75, 10: 100}},
     "IW 10 is faster than IW 3 after every think time (100.0 instead of 100.8 ms after 1 s).")])
def test_after_which_think_times_a_window_is_faster_or_slower(times: Times, words: str) -> None:
    assert said(times) == words


def test_of_other_traces_tcps_and_what_does_not_count_nothing_is_told() -> None:
    good = records({3: {10: 1.0}, 1: {16: 2.0, 10: 3.0}})
    (other,) = records({2: {10: 4.0}})
    others = [replace(other, verdict=FAIL),
              *(replace(other, trial=replace(other.trial, **{name: value})) for name, value in (
                  ("trace", "another"), ("tcp", "another"), ("think_s", None)))]
    found = findings.by_think_time([*others, *good], CURVE)
    assert {think_s: {window: record.latency_ms for window, record in line.items()}
            for think_s, line in found.items()} == {1: {16: 2.0, 10: 3.0}, 3: {10: 1.0}}
    assert list(found) == [1, 3] and findings.windows_of(found) == [10, 16]


def test_a_latency_that_nobody_knows_is_no_number() -> None:
    (known,) = records({1: {10: 12.34}})
    assert findings._warm_cell(known) == "12.3 (10)"
    assert findings._warm_cell(replace(known, last_retransmissions=2)) == "12.3 (10 → 2)"
    assert findings._warm_cell(replace(known, latency_ms=None)) is findings._warm_cell(None) is None
