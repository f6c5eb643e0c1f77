"""Scenarios of kind "trace" made ready to be measured and told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lab import runs
from lab.findings import Finding, as_text
from lab.records import read_records
from lab.scenario import Overrides
from lab.study import HOST_OVERHEAD_S, Judged, Seen, Study
from lab.trace import curves, findings, table
from lab.trace.curves import TraceFigure, WarmFigure
from lab.trace.file import load, overridden
from lab.trace.records import TraceRecord
from lab.trace.scenario import TraceScenario, TraceTrial
from lab.trace.verify import judge

# For --dry-run, from runs on two cores: wall time of a trace in a guest, and
# of each of its segments with the samples of the window around it.
GUEST_TRACE_S = 0.15
GUEST_SEGMENT_S = 0.0003


def study(name: str, overrides: Overrides = Overrides(), seed: int = 1) -> Study:
    """The scenario with what the command line says in place of it. Raises UsageError.

    seed: nothing is drawn at random.
    """
    scenario = load(name)
    asked = overridden(scenario, overrides)
    whole = asked == scenario
    return Study(
        name=name, title=scenario.title, claim=scenario.claim,
        source=scenario.source, text=scenario.text, sysctls=scenario.sysctls,
        trials=asked.trials(), record=TraceRecord, whole=whole, judge=_judge,
        tables=lambda records, folder, _: _tables(asked, records, folder, whole),
        guest_s=_guest_s, network_s=_network_s, all_captures=True)


def findings_of(name: str, folder: Path) -> list[Finding]:
    """What a whole run found. Raises FirstFlightError where a file of it is missing."""
    records = read_records(folder / runs.TRIALS_CSV, TraceRecord)
    return findings.findings(load(name), records, folder)


def figures_of(name: str, folder: Path) -> list[TraceFigure | WarmFigure]:
    """What the figures of a whole run show. Raises FirstFlightError where a file is missing."""
    records = read_records(folder / runs.TRIALS_CSV, TraceRecord)
    return curves.figures(load(name), records, findings.Views(records, folder))


def _judge(trial: TraceTrial, seen: Seen, exact: bool) -> Judged:
    return judge(trial, seen.content, seen.client_pcap, seen.server_pcap, seen.files,
                 exact), seen.files


def _tables(scenario: TraceScenario, records: Sequence[Any], folder: Path, whole: bool) -> str:
    if not whole:
        # On another network the source's sentences are not to be tested, and
        # a figure may name an initial window that is not measured.
        figures = tuple(
            replace(figure, title=f"{figure.title} (but for what the command line says)")
            for figure in scenario.figures if all(
                any(curve.is_of(record.trial) for record in records) for curve in figure.curves))
        scenario = replace(scenario, claims=(), figures=figures)
    return (table.of_records(records) + "\n"
            + as_text(findings.findings(scenario, records, folder)))


def _guest_s(trial: TraceTrial) -> float:
    return GUEST_TRACE_S + GUEST_SEGMENT_S * trial.size_bytes / trial.mss


def _network_s(trial: TraceTrial) -> float:
    return (HOST_OVERHEAD_S + trial.schedule_s + sum(trial.thinks_s)
            + trial.size_bytes * 8 / (trial.bandwidth_kbps * 1000))
