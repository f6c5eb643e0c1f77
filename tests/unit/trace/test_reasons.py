"""What limits a trace, and what is asked of it; the words: tests/golden/trace_reasons.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from firstflight.setting.limits import without
from firstflight.study.traces import KIND
from firstflight.workloads.trace import reasons
from firstflight.workloads.trace.reasons import TraceWhatIfs
from tests.golden import stored_trace
from tests.golden.trace_reasons import ONE, asked

TRACE = replace(ONE.trial, receive_window=20, nagle=True, validation=True, outage_from_ms=5.0,
                outage_to_ms=9.0, loss_percent=1.0)


@pytest.mark.parametrize(("tag", "free"), [
    ("receive-window", {"receive_window": 0, "initrwnd": 1000}), ("nagle", {"nagle": False}),
    ("restart", {"validation": False}), ("outage", {"outage_from_ms": 0.0, "outage_to_ms": 0.0}),
    ("loss", {"loss_percent": 0.0})])
def test_each_limit_of_a_trace_is_lifted(tag: str, free: dict[str, Any]) -> None:
    (limit,) = [limit for limit in TraceWhatIfs().limits(TRACE) if limit.tag == tag]
    trial = without(TRACE, (limit,))
    assert trial == replace(TRACE, what_if=tag, **free)
    assert trial.id.endswith(f"-without-{tag}")


def test_a_trace_asks_about_the_largest_saving_and_the_largest_harm() -> None:
    study, records = stored_trace.warm_study(), stored_trace.warm_run().records
    trials = KIND.what_if_trials(study, records, [])
    changes = reasons.changes(records)
    best = max(changes, key=lambda change: change.saved_ms)
    assert trials and {(trial.tcp, trial.think_s) for trial in trials} >= {
        (best.base.requested.tcp, best.base.requested.think_s)}
    assert len({(trial.tcp, trial.think_s) for trial in trials}) <= 2


def test_the_time_of_a_trace_is_that_of_its_last_response() -> None:
    """Its pauses are in the time until it finishes."""
    records, _ = asked(lambda free: 100.0)
    (change,) = reasons.changes([replace(record, finish_ms=300_000.0) for record in records])
    assert change.saved_ms == 100.0
