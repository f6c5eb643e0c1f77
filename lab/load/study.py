"""Load scenarios as studies: what experiment.py, plot.py and report.py need of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lab.load import scenario as scenarios
from lab.load.record import LoadRecord, judged
from lab.load.trial import LoadTrial
from lab.records import read_records
from lab.runs import TRIALS_CSV
from lab.scenario import Overrides

if TYPE_CHECKING:
    from lab.findings import Finding
    from lab.study import Study

# In a guest, roughly: starting it, then each connection by its segments.
START_S, CONNECTION_S, SEGMENT_S = 1.0, 0.0002, 0.00003


def study(name: str, overrides: Overrides, seed: int) -> Study:
    """A load scenario with what the command line says in place of it. Raises UsageError."""
    from lab.study import Study
    scenario = scenarios.load(name)
    trials = scenarios.expand(scenario, overrides, seed)
    whole = set(scenarios.expand(scenario, Overrides(), seed)) <= set(trials)
    return Study(
        name=name, title=scenario.title, claim=scenario.claim,
        source=scenario.source, text=scenario.text, sysctls=scenario.sysctls, trials=trials,
        record=LoadRecord, whole=whole, judge=lambda trial, seen, _: judged(trial, seen),
        tables=lambda records, folder, _: tables(scenario, records, folder, whole),
        guest_s=guest_s, network_s=network_s)


def records_of(folder: Path) -> list[LoadRecord]:
    """Raises RecordsError."""
    return read_records(folder / TRIALS_CSV, LoadRecord)


def findings_of(name: str, folder: Path) -> list[Finding]:
    from lab.load.findings import findings  # imports numpy
    return findings(scenarios.load(name), records_of(folder), folder)


def tables(scenario: scenarios.LoadScenario, records: Sequence[LoadRecord], folder: Path,
           whole: bool) -> str:
    """For the terminal: the findings of a whole run, the runs themselves of a partial one."""
    from lab.findings import as_text
    from lab.load.findings import findings, of_cells
    if whole:
        return f"{scenario.name}: {scenario.claim}\n\n" + as_text(
            findings(scenario, records, folder))
    return as_text([of_cells(records)])


def guest_s(trial: LoadTrial) -> float:
    """Wall seconds that a run takes in a guest."""
    connections: float = trial.responses_per_s * trial.duration_s
    return START_S + connections * (CONNECTION_S + trial.response_bytes / 1448 * SEGMENT_S)


def network_s(trial: LoadTrial) -> float:
    """Seconds of a run in real time."""
    return trial.duration_s + START_S
