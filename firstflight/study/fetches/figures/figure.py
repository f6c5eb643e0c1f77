"""A run of fetches, analysed once; and what a kind of figure makes of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from firstflight.base.quantity import in_words
from firstflight.findings.charts import Timeline
from firstflight.findings.claims import Ends
from firstflight.findings.findings import Interval
from firstflight.findings.quantities import quantity
from firstflight.runs.kinds import RunData
from firstflight.study.fetches.figures.bar_figure import BarFigure
from firstflight.study.fetches.figures.cells import CellSetting, WindowChange
from firstflight.study.fetches.figures.reasons import WhatIfs
from firstflight.study.fetches.scenario.scenario import Scenario
from firstflight.study.fetches.scenario.server import BUILTIN, HTTP_1, OWN
from firstflight.study.fetches.scenario.sweep import Cell
from firstflight.study.fetches.verify.record import Record

# What a reader needs to know of a figure where it does not vary.
FIXED = ("rtt_ms", "bandwidth_kbps", "loss_percent", "response_bytes", "chain_bytes")


@dataclass(frozen=True)
class Analysis:
    """What is known of a run before anything is rendered (made by study.fetches.findings).

    is_whole: whether the whole scenario was measured, not a part of it. panels, missing: the
    figures of bars, judged, by their names, and why the others have none. cells, changes: the
    cells in the order of what they vary, and what each larger window changes in them; empty where
    the figures have all. compared: the same of a grid, whether the figures have all or not.
    what_ifs: what was measured to find reasons. timelines: of its kept captures.
    """

    scenario: Scenario
    run: RunData
    is_whole: bool
    panels: Mapping[str, BarFigure]
    missing: Mapping[str, str]
    cells: Sequence[CellSetting] = ()
    changes: Sequence[WindowChange] = ()
    compared: Sequence[WindowChange] = ()
    what_ifs: WhatIfs = WhatIfs()
    timelines: tuple[Timeline, ...] = ()

    @property
    def records(self) -> Sequence[Record]:
        return self.run.records


def interval(ends: Ends | None) -> Interval | None:
    return None if ends is None else Interval(*ends)


def named(name: str, value: object) -> str:
    """A value with the name and the unit of its quantity."""
    known = quantity(name)
    return f"{known.head} {in_words(value, known.unit)}"


def fixed(cells: Iterable[Cell], windows: Iterable[int] = ()) -> str:
    """What all cells have in common of network, response and window, with units; "" for nothing."""
    found = {name: {getattr(cell, name) for cell in cells} for name in FIXED}
    return ", ".join(named(name, value) for name, values in {
        **found, "initcwnd": {*windows}}.items() if len(values) == 1 for value in values if value)


def heading(records: Sequence[Record]) -> tuple[str, ...]:
    """A figure's context: who answered, and what did not vary."""
    trials = [record.trial for record in records]
    common = fixed(trials, [trial.initcwnd for trial in trials])
    return (": ".join(filter(None, (f"real Linux TCP{_served(records)}", common))),)


def _served(records: Sequence[Record]) -> str:
    """Who answered, where not everybody was server.py; "" where it was."""
    servers = dict.fromkeys((record.trial.server, record.trial.http) for record in records)
    if {server for server, _ in servers} <= {BUILTIN}:
        return ""
    names = {BUILTIN: "server.py", OWN: "one's own"}
    return f"; server{'s' if len(servers) > 1 else ''}: " + ", ".join(
        names.get(server, server) + ("" if http == HTTP_1 else f" (HTTP/{http})")
        for server, http in servers)
