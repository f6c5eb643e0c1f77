"""The reasons of traces: their limits, and the windows of their last response in words.

The time is that of the last response, so that pauses before it do not count (figures.reasons).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from firstflight.figures import what_ifs
from firstflight.figures.reasons import explained, range_of
from firstflight.figures.window_changes import CellSetting, Reason, WindowChange
from firstflight.runs.results.cells import grouped
from firstflight.setting.limits import Limit, network_limits, sysctl_limits
from firstflight.workloads.trace.analysis import without_repeat
from firstflight.workloads.trace.record import TraceRecord
from firstflight.workloads.trace.scenario import TraceScenario
from firstflight.workloads.trace.trial import TraceTrial, guest_s

TraceCell = CellSetting[TraceTrial, TraceRecord]
TraceChange = WindowChange[TraceTrial, TraceRecord]


class TraceWhatIfs(what_ifs.WhatIfs[TraceTrial, TraceRecord]):
    """The what-if trials of a run of traces."""

    def every_limit(self, trial: TraceTrial) -> Sequence[Limit[TraceTrial]]:
        receive, *others = network_limits(self.sysctls, _sent_bytes)
        ample = replace(receive, lift=lambda trial: replace(
            receive.lift(trial), receive_window=0))
        return (ample, *others,
                Limit("nagle", "Nagle's algorithm", "TCP_NODELAY",
                      lambda trial: replace(trial, nagle=False)),
                Limit("restart", "slow start after the pause",
                      "a window that stays through the pause",
                      lambda trial: replace(trial, validation=False)),
                Limit("outage", "outage", "no outage", lambda trial: replace(
                    trial, outage_from_ms=0.0, outage_to_ms=0.0), may_harm=True),
                *sysctl_limits((trial,), self.sysctls))

    def cell_of(self, trial: TraceTrial) -> TraceTrial:
        return without_repeat(trial)

    def cost_s(self, trial: TraceTrial) -> float:
        return guest_s(trial)

    def has_dropped(self, record: TraceRecord) -> bool:
        return bool(record.lost_segments)

    def sent(self, change: TraceChange) -> str:
        begun = [range_of(cell, "last_window") for cell in (change.base, change.experiment)]
        if begun[0] == begun[1]:
            return f"the last response begins with a window of {begun[0]} in either case"
        return (f"the last response begins with a window of {begun[0]} and of {begun[1]}")

    def same(self, change: TraceChange) -> Reason:
        begun = {range_of(cell, "last_window") for cell in (change.base, change.experiment)}
        label = "same window" if len(begun) == 1 else "no round trip less"
        return Reason(label, self.sent(change), label)

    def where(self, change: TraceChange, changes: Sequence[TraceChange]) -> str:
        trial = change.base.requested
        think = "" if trial.think_s is None else f", after {trial.think_s:g} s"
        windows = " → ".join(map(str, change.windows))
        return f"{trial.trace}, {trial.tcp}{think}, {windows}"


def _sent_bytes(trial: TraceTrial) -> int:
    return trial.size_bytes


def changes(records: Sequence[TraceRecord]) -> list[TraceChange]:
    """Each larger window of a trace, TCP and think time against the smallest one that counts."""
    cells = [CellSetting(requested, group) for requested, group in grouped(
        records, lambda record: without_repeat(record.trial)).items()]
    timed = [cell for cell in cells if cell.total_ms is not None]
    found: list[TraceChange] = []
    for of_trace in grouped(timed, lambda cell: replace(cell.requested, initcwnd=1)).values():
        base, *larger = sorted(of_trace, key=lambda cell: cell.requested.initcwnd)
        found += [TraceWhatIfs().between(base, cell) for cell in larger]
    return found


def what_if_trials(scenario: TraceScenario, records: Sequence[TraceRecord],
                   measured: Sequence[TraceRecord]) -> Sequence[TraceTrial]:
    """The what-if trials to measure next: of the largest saving and the largest harm."""
    found = what_ifs.changes_to_explain(changes(records), is_question=False)
    return what_ifs.what_if_trials(found, TraceWhatIfs(measured, scenario.head.sysctls))


def sentences(scenario: TraceScenario, records: Sequence[TraceRecord],
              measured: Sequence[TraceRecord]) -> list[str]:
    """Why a larger window changes the last response most, for better and for worse.

    [] without what-if trials.
    """
    if not measured:
        return []
    every = changes(records)
    found = what_ifs.changes_to_explain(every, is_question=False)
    return explained(found, TraceWhatIfs(measured, scenario.head.sysctls), among=every)
