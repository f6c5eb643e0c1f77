"""Why a larger window changes a page or does not: what figures.reasons needs to know of pages.

For a page in a browser reasons are not measured: each what-if trial would start the browser again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from firstflight.findings.quantities import QUANTITIES
from firstflight.figures import reasons, what_ifs
from firstflight.figures.reasons import explain_changes
from firstflight.figures.window_changes import CellSetting, Reason, WindowChange
from firstflight.runs.kinds import RunData
from firstflight.setting.limits import Limit, chain_limit, network_limits, sysctl_limits
from firstflight.setting.server import HTTP_1, HTTP_2
from firstflight.workloads.page import analysis
from firstflight.workloads.page.analysis import Setting, setting_of
from firstflight.workloads.page.record import PageRecord, is_one_draw
from firstflight.workloads.page.scenario import PageScenario
from firstflight.workloads.page.trial import PageTrial, guest_s

CONNECTIONS = 6  # of HTTP/1.1 to a host, as browsers open
FASTEST_KBPS = 1_000_000.0  # at which a page of 2 MB takes 16 ms
MOST_REASONS = 3  # sentences in an answer
IN_A_BROWSER = ("Why is not measured in a browser, which would load the page a dozen times more:"
                " --page FILE without --client chromium has reasons.")

PageCell = CellSetting[PageTrial, PageRecord]
PageChange = WindowChange[PageTrial, PageRecord]


@dataclass(frozen=True)
class PageWhatIfs(what_ifs.WhatIfs[PageTrial, PageRecord]):
    """The what-if trials of a run of pages."""

    IDLE: ClassVar[str] = "idle_ms"
    SECONDS: ClassVar[float] = 3.0
    LONG_SECONDS: ClassVar[float] = 20.0

    def every_limit(self, trial: PageTrial) -> Sequence[Limit[PageTrial]]:
        return (*network_limits(self.sysctls, _sent_bytes, FASTEST_KBPS),
                chain_limit(),
                Limit("connections", "number of connections", "a connection for each object",
                      _connection_each),
                Limit("shared", "shared connection",
                      f"{CONNECTIONS} connections of HTTP/1.1 instead of one", _not_shared),
                Limit("names", "late names", "all objects named in the document's first byte",
                      _named_at_once),
                Limit("waits", "waits of client and server", "no waits of client or server",
                      _no_waits),
                *sysctl_limits((trial,), self.sysctls))

    def cell_of(self, trial: PageTrial) -> PageTrial:
        return replace(setting_of(trial), initcwnd=trial.initcwnd)

    def cost_s(self, trial: PageTrial) -> float:
        return guest_s(trial)

    def is_one_draw(self, record: PageRecord) -> bool:
        return is_one_draw(record)

    def sent(self, change: PageChange) -> str:
        base_flights = _first_flights(change.base)
        flights = _first_flights(change.experiment)
        base, window = change.windows
        if base_flights == flights:
            return f"the first flights have {flights} segments with either window"
        return (f"the first flights have {base_flights} segments with {base} and {flights} with"
                f" {window}")

    def same(self, change: PageChange) -> Reason:
        is_same = _first_flights(change.base) == _first_flights(change.experiment)
        label = "same flights" if is_same else "no round trip less"
        return Reason(label, self.sent(change), label)

    def where(self, change: PageChange, changes: Sequence[PageChange]) -> str:
        place = next(place for place, other in enumerate(changes) if other is change)
        settings = [Setting(other.base.requested, {}) for other in changes]
        name = analysis.labels(settings, {})[place]
        windows = " → ".join(map(str, change.windows))
        return f"{name}, {windows}" if name else windows


def _sent_bytes(trial: PageTrial) -> int:
    return trial.size_bytes


def _connection_each(trial: PageTrial) -> PageTrial:
    """The page over HTTP/1.1 with a connection for each object."""
    if trial.http == HTTP_2:
        return trial
    most = min(len(trial.objects), int(QUANTITIES["connections"].highest))
    return replace(trial, connections=max(most, trial.connections))


def _not_shared(trial: PageTrial) -> PageTrial:
    """The page over HTTP/1.1, whose connections begin with a window each."""
    if trial.http != HTTP_2:
        return trial
    return replace(trial, http=HTTP_1, connections=CONNECTIONS)


def _named_at_once(trial: PageTrial) -> PageTrial:
    """The page with all objects named in the document's first byte."""
    document, *others = trial.objects
    at_once = [replace(requested, named_by=1, at_byte=0) for requested in others]
    return replace(trial, objects=(document, *at_once))


def _no_waits(trial: PageTrial) -> PageTrial:
    """The page without waits of client and server."""
    without = [replace(requested, parse_ms=0.0, think_ms=0.0) for requested in trial.objects]
    return replace(trial, objects=tuple(without))


def _first_flights(cell: PageCell) -> str:
    """How many segments first flights have on the connections of a cell: "10", or "2 to 10"."""
    sizes: list[int] = []
    for record in cell.counting:
        sizes += map(int, record.first_flights.split())
    least, most = min(sizes, default=0), max(sizes, default=0)
    return f"{least}" if least == most else f"{least} to {most}"


# What is explained -------------------------------------------------------------------------

def changes(settings: Sequence[Setting]) -> list[PageChange]:
    """Compare each further window of a setting with the first one that counts.

    Settings of pages in a browser are left out.
    """
    compared: list[PageChange] = []
    for setting in settings:
        if setting.trial.site:
            continue
        cells = [CellSetting(times.records[0].trial, times.records) for times in setting.counting]
        compared += [PageWhatIfs().between(cells[0], cell) for cell in cells[1:]]
    return compared


def asks_why(scenario: PageScenario) -> bool:
    """Whether reasons are measured: only a question by flags asks for them."""
    return any(sweep.repeat_with_drops for sweep in scenario.sweeps)


def what_ifs_of(scenario: PageScenario, records: Sequence[PageRecord]) -> PageWhatIfs:
    """The what-if trials of a run."""
    return PageWhatIfs(records, scenario.head.sysctls)


def what_if_trials(scenario: PageScenario, records: Sequence[PageRecord],
                   measured: Sequence[PageRecord]) -> Sequence[PageTrial]:
    """The what-if trials to measure next (figures.what_ifs)."""
    if not asks_why(scenario):
        return ()
    found = what_ifs.changes_to_explain(changes(analysis.group_settings(records)), is_question=True)
    return what_ifs.what_if_trials(found, what_ifs_of(scenario, measured))


def sentences(scenario: PageScenario, run: RunData[PageRecord]) -> list[str]:
    """Why larger windows change pages or do not; [] where the scenario does not ask why."""
    if not asks_why(scenario):
        return []
    found = changes(analysis.group_settings(run.records))
    if any(record.trial.site for record in run.records):
        return [IN_A_BROWSER, *explain_changes(found, what_ifs_of(scenario, run.what_ifs))]
    measured = what_ifs_of(scenario, run.what_ifs)
    why = explain_changes(found, measured)[:MOST_REASONS]
    return [*why, *reasons.not_measured(found, measured)]


def labels(scenario: PageScenario, run: RunData[PageRecord]) -> dict[PageTrial, str]:
    """The reasons for a table, by the cell of the larger window; {} where nobody asks why."""
    if not asks_why(scenario):
        return {}
    measured = what_ifs_of(scenario, run.what_ifs)
    by_cell = {}
    for change in changes(analysis.group_settings(run.records)):
        names = [reason.label for reason in reasons.reasons(change, measured)]
        by_cell[measured.cell_of(change.experiment.requested)] = ", ".join(dict.fromkeys(names))
    return by_cell
