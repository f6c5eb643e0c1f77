"""Why a larger window changes a trace or does not: what figures.reasons needs to know of traces.

Windows are compared by the time of the last response, so that pauses before it do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from firstflight.figures import reasons, what_ifs
from firstflight.figures.reasons import explain_changes, range_of
from firstflight.figures.what_ifs import sign
from firstflight.figures.window_changes import CellSetting, Reason, WindowChange
from firstflight.findings.findings import REQUESTED, Cell, Column, Finding, Table
from firstflight.runs.results.cells import grouped
from firstflight.setting.limits import Limit, network_limits, sysctl_limits
from firstflight.workloads.trace.analysis import without_repeat
from firstflight.workloads.trace.record import TraceRecord
from firstflight.workloads.trace.scenario import TraceScenario
from firstflight.workloads.trace.trial import TraceTrial, guest_s

MOST_ROWS = 20  # of an answer's table
MOST_REASONS = 3  # sentences in an answer

TraceCell = CellSetting[TraceTrial, TraceRecord]
TraceChange = WindowChange[TraceTrial, TraceRecord]


@dataclass(frozen=True)
class TraceWhatIfs(what_ifs.WhatIfs[TraceTrial, TraceRecord]):
    """The what-if trials of a run of traces."""

    IDLE: ClassVar[str] = "link_idle_ms"  # the column of how long the link was idle
    # How much longer than the requested trials what-if trials may take in guests if they only add
    # to a known reason.
    SECONDS: ClassVar[float] = 3.0

    def every_limit(self, trial: TraceTrial) -> Sequence[Limit[TraceTrial]]:
        receive, *others = network_limits(self.sysctls, _sent_bytes)
        # A trace has a receive window of its own besides the buffers.
        ample = replace(receive, lift=lambda trial: replace(
            receive.lift(trial), receive_window=0))
        restart: Limit[TraceTrial] = Limit(
            "restart", "slow start after the pause", "a window that stays through the pause",
            lambda trial: replace(trial, validation=False))
        return (restart, ample, *others,  # those that most often decide are tried first
                Limit("nagle", "Nagle's algorithm", "TCP_NODELAY",
                      lambda trial: replace(trial, nagle=False)),
                # may_harm: an outage can turn a saving into harm.
                Limit("outage", "outage", "no outage", lambda trial: replace(
                    trial, outage_from_ms=0.0, outage_to_ms=0.0), may_harm=True),
                *sysctl_limits((trial,), self.sysctls))

    def cell_of(self, trial: TraceTrial) -> TraceTrial:
        return without_repeat(trial)

    def cost_s(self, trial: TraceTrial) -> float:
        return guest_s(trial)

    def has_dropped(self, record: TraceRecord) -> bool:
        return bool(record.lost_segments)

    def cannot_differ(self, change: TraceChange) -> bool:
        """Whether the last response leaves in one flight under both windows."""
        return sign(change) == 0 and _fit_one_flight(change)

    def sent(self, change: TraceChange) -> str:
        """With which windows the last response begins, and how many flights it takes."""
        base_window, window = _ranges(change, "last_window")
        windows = f"a window of {base_window} and of {window}"
        if base_window == window:
            windows = f"a window of {window} in either case"

        base_flights, flights = _ranges(change, "last_round_trips")
        takes = f"takes {_flights_of(base_flights)} and {flights}"
        if base_flights == flights:
            takes = f"takes {_flights_of(flights)} in either case"
        return f"the last response begins with {windows}, and {takes}"

    def same(self, change: TraceChange) -> Reason:
        label = "no round trip less"
        if _fit_one_flight(change):
            label = "fits one flight"
        elif len({*_ranges(change, "last_window")}) == 1:
            label = "same window"
        return Reason(label, self.sent(change), label)

    def where(self, change: TraceChange, changes: Sequence[TraceChange]) -> str:
        trial = change.base.requested
        think = "" if trial.think_s is None else f", after {trial.think_s:g} s"
        windows = " → ".join(map(str, change.windows))
        return f"{trial.trace}, {trial.tcp}{think}, {windows}"


def _ranges(change: TraceChange, column: str) -> list[str]:
    """The range of a column of counts with the base and with the experiment, such as "2 to 3"."""
    return [range_of(cell, column) for cell in (change.base, change.experiment)]


def _fit_one_flight(change: TraceChange) -> bool:
    """Whether the last response leaves in one flight under both windows."""
    return _ranges(change, "last_round_trips") == ["1", "1"]


def _flights_of(counted: str) -> str:
    """A count, or a range of counts, with its noun."""
    return f"{counted} flight" if counted == "1" else f"{counted} flights"


def _sent_bytes(trial: TraceTrial) -> int:
    return trial.size_bytes


def changes(records: Sequence[TraceRecord]) -> list[TraceChange]:
    """Compare each larger window with the smallest one that counts.

    Windows are compared that have trace, TCP and think time in common.
    """
    cells = [CellSetting(requested, group) for requested, group in grouped(
        records, lambda record: without_repeat(record.trial)).items()]
    timed = [cell for cell in cells if cell.total_ms is not None]
    found: list[TraceChange] = []
    for of_trace in grouped(timed, lambda cell: replace(cell.requested, initcwnd=1)).values():
        base, *larger = sorted(of_trace, key=lambda cell: cell.requested.initcwnd)
        found += [TraceWhatIfs().between(base, cell) for cell in larger]
    return found


def what_if_trials(scenario: TraceScenario, records: Sequence[TraceRecord],
                   measured: Sequence[TraceRecord], is_question: bool) -> Sequence[TraceTrial]:
    """The what-if trials to measure next (figures.what_ifs).

    records: of the requested trials. measured: the records of what-if trials so far. is_question:
    whether every change is explained, as for a question by flags; else only the largest saving and
    the largest harm.
    """
    found = what_ifs.changes_to_explain(changes(records), is_question)
    return what_ifs.what_if_trials(found, TraceWhatIfs(measured, scenario.head.sysctls))


def sentences(scenario: TraceScenario, records: Sequence[TraceRecord],
              measured: Sequence[TraceRecord], is_question: bool) -> list[str]:
    """Sentences on why larger windows change the last response, the largest changes first.

    [] for a scenario without what-if trials. The parameters are those of what_if_trials.
    """
    if not (measured or is_question):
        return []
    all_changes = changes(records)
    to_explain = what_ifs.changes_to_explain(all_changes, is_question)
    what_if_runs = TraceWhatIfs(measured, scenario.head.sysctls)
    why = explain_changes(to_explain, what_if_runs, among=all_changes)
    if not is_question:
        return why
    return [*why[:MOST_REASONS], *reasons.not_measured(to_explain, what_if_runs)]


def finding(scenario: TraceScenario, records: Sequence[TraceRecord],
            measured: Sequence[TraceRecord]) -> Finding | None:
    """What each larger window changed, and why, as a table; None where nothing is compared.

    The parameters are those of what_if_trials.
    """
    found = changes(records)
    if not found:
        return None
    known = TraceWhatIfs(measured, scenario.head.sysctls)
    columns = (Column("trace", "", REQUESTED, is_text=True, rank=2),
               Column("TCP", "", REQUESTED, is_text=True),
               Column("think time", "s", REQUESTED), Column("window", "segments", REQUESTED),
               Column("from", "ms", "last response", rank=4),
               Column("to", "ms", "last response", rank=5), Column("improved", "ms"),
               Column("improved", "%"), Column("begins with", "segments", is_text=True, rank=1),
               Column("reason", is_text=True, is_filter=True, rank=3))
    rows: list[tuple[Cell, ...]] = []
    for change in found:
        trial, saved = change.base.requested, change.saved
        labels = dict.fromkeys(reason.label for reason in reasons.reasons(change, known))
        rows.append((trial.trace, trial.tcp, trial.think_s, " → ".join(map(str, change.windows)),
                     saved.base.value, saved.experiment.value, saved.absolute, saved.percent.value,
                     " → ".join(_ranges(change, "last_window")), ", ".join(labels)))
    title = "What the larger window changed"
    return Finding("windows", title, (Table("", columns, tuple(rows)).without_empty(),))
