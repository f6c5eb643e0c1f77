"""Why larger windows change the last response of a trace, on made-up networks with known limits.

tests/golden/reasons.py has the same of fetches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from firstflight.findings.findings import Report
from firstflight.workloads.trace import reasons
from firstflight.workloads.trace.record import TraceRecord
from firstflight.workloads.trace.trial import TraceTrial
from tests.golden import stored_trace
from tests.golden.reasons import lifted, saves

ONE = next(record for record in stored_trace.warm_run().records
           if record.trial.initcwnd == 3 and record.trial.validation)
ROUNDS = 3  # of what-if trials: later ones depend on earlier ones
# A network: for the limits that are lifted, how long the last response takes with the larger
# window, and for how long its link is idle, in ms.
Saved = Callable[[set[str]], tuple[float, float]]


def measured(network: Saved, trial: TraceTrial) -> TraceRecord:
    latency_ms, idle_ms = network(lifted(trial)) if trial.initcwnd == 10 else saves(0.0)
    return replace(ONE, trial=trial, latency_ms=latency_ms, link_idle_ms=idle_ms,
                   last_window=trial.initcwnd, last_round_trips=4 if idle_ms == 300.0 else 2)


def asked(network: Saved) -> tuple[list[TraceRecord], list[TraceRecord]]:
    """The records of 3 and 10 segments on a network, and those of its what-if trials."""
    scenario = stored_trace.warm_study().scenario
    records = [measured(network, replace(ONE.trial, initcwnd=window)) for window in (3, 10)]
    found: list[TraceRecord] = []
    for _ in range(ROUNDS):
        done = {record.trial for record in found}
        more = reasons.what_if_trials(scenario, records, found, is_question=True)
        found += [measured(network, trial) for trial in more if trial not in done]
    return records, found


def paragraphs() -> Iterator[tuple[str, list[str]]]:
    """The name of each network with the reasons that are found there."""
    scenario = stored_trace.warm_study().scenario
    for name, network in {
            "idle for all of it": lambda without: saves(100.0),
            "idle, after a pause": lambda without: saves(
                0.0 if "restart" in without else 100.0),
            "not idle, after a pause": lambda without: saves(
                0.0 if "restart" in without else 100.0, 0.0),
            "harm that the queue does": lambda without: saves(
                0.0 if "queue" in without else -50.0, 0.0),
            "no change": lambda without: saves(0.0)}.items():
        yield f"reasons of a trace: {name}", reasons.sentences(
            scenario, *asked(network), is_question=True)


def report() -> Report:
    """The report of a question: 3 and 10 segments, where Linux reduces the window after a pause."""
    study = replace(stored_trace.warm_study(), whole=False)
    records, found = asked(lambda without: saves(0.0 if "restart" in without else 100.0))
    run = replace(stored_trace.warm_run(), records=records, what_ifs=found)
    return study.report(run)
