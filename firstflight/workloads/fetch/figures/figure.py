"""Analysis: a run of fetches with all that its figures show; and words that figures share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from firstflight.figures.shared import format_named, shared_values
from firstflight.findings.charts import Timeline
from firstflight.findings.claims import Ends
from firstflight.findings.findings import Interval
from firstflight.runs.kinds import RunData
from firstflight.setting.server import BUILTIN, HTTP_1, OWN
from firstflight.workloads.fetch.figures.bar_figure import BarFigure
from firstflight.workloads.fetch.figures.cells import CellSetting, WindowChange
from firstflight.workloads.fetch.figures.reasons import WhatIfs
from firstflight.workloads.fetch.record.record import Record, own_window
from firstflight.workloads.fetch.scenario.scenario import Scenario
from firstflight.workloads.fetch.scenario.sweep import CellKey

# Parameters whose value a figure names where all its cells have the same.
FIXED = ("rtt_ms", "bandwidth_kbps", "loss_percent", "response_bytes", "request_bytes",
         "client_initcwnd", "chain_bytes")


@dataclass(frozen=True)
class Analysis:
    """A run as study.fetch_findings analyses it before anything is rendered."""

    scenario: Scenario
    run: RunData[Record]
    is_whole: bool  # whether the whole scenario was measured, not a part of it
    bar_figures: Mapping[str, BarFigure]  # judged, by name
    missing: Mapping[str, str]  # by the name of a figure without bars: the reason
    # The cells in the order of their parameters, and what each larger window changes in them. Both
    # are empty where the figures show everything.
    cells: Sequence[CellSetting] = ()
    changes: Sequence[WindowChange] = ()
    compared: Sequence[WindowChange] = ()  # the changes, also where the figures show them
    what_ifs: WhatIfs = WhatIfs()  # trials measured to find reasons
    timelines: tuple[Timeline, ...] = ()  # of kept captures

    @property
    def records(self) -> Sequence[Record]:
        """The records of the run."""
        return self.run.records


def interval(ends: Ends | None) -> Interval | None:
    """The cell of a table that shows an interval; None without an interval."""
    return None if ends is None else Interval(*ends)


def fixed(cells: Iterable[CellKey], windows: Iterable[int] = ()) -> str:
    """The values of FIXED parameters that all cells share, in words with units; "" for none.

    windows: the compared windows. A single one is named, too.
    """
    values = shared_values(cells, FIXED)
    compared = {*windows}
    if len(compared) == 1:
        values["initcwnd"] = compared.pop()
    return ", ".join(format_named(name, value) for name, value in values.items() if value)


def heading(records: Sequence[Record]) -> tuple[str, ...]:
    """A figure's context: which server answered, and which parameters all trials share."""
    trials = [record.trial for record in records]
    own = own_window(records)
    common = fixed(trials, () if own else [trial.initcwnd for trial in trials])
    if own:
        common = ", ".join(filter(None, (common, f"IW {own}")))
    return (": ".join(filter(None, (f"real Linux TCP{_servers(records)}", common))),)


def _servers(records: Sequence[Record]) -> str:
    """The servers, in words; "" where server.py was the only one."""
    servers = dict.fromkeys((record.trial.server, record.trial.http) for record in records)
    if {server for server, _ in servers} <= {BUILTIN}:
        return ""
    names = {BUILTIN: "server.py", OWN: "one's own"}
    words = []
    for server, http in servers:
        version = "" if http == HTTP_1 else f" (HTTP/{http})"
        words.append(f"{names.get(server, server)}{version}")
    return f"; server{'s' if len(servers) > 1 else ''}: {', '.join(words)}"
