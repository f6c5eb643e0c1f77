"""Load scenarios as studies: see lab.core.run.kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from lab.core.findings.findings import Report
from lab.core.results.checks import Check
from lab.core.results.records import Record
from lab.core.run import reporting
from lab.core.run.kinds import NOTHING, Overrides, RunData, SeenTrial
from lab.core.scenario.scenario_file import Head, ScenarioFile
from lab.load import scenario as scenarios
from lab.load import verify
from lab.load.record import LoadRecord
from lab.load.scenario import LoadScenario
from lab.load.trial import LoadTrial
from lab.tcp.packets import MSS

# In a guest, roughly: starting it, then each connection by its segments.
START_S, CONNECTION_S, SEGMENT_S = 1.0, 0.0002, 0.00003


@dataclass(frozen=True)
class LoadStudy:
    """A load scenario made ready; see lab.core.run.kinds.Study."""

    record: ClassVar[type[Record]] = LoadRecord
    checks: ClassVar[Sequence[Check]] = verify.CHECKS
    all_captures: ClassVar[bool] = False
    drawings: ClassVar[Mapping[str, Sequence[str]]] = {}

    scenario: LoadScenario
    trials: Sequence[LoadTrial]
    whole: bool

    @property
    def head(self) -> Head:
        return self.scenario.head

    @staticmethod
    def judge(trial: LoadTrial, seen: SeenTrial, exact: bool, sysctls: Mapping[str, str],
              known_kernel: bool = True) -> tuple[LoadRecord, Mapping[str, bytes]]:
        """exact: of no matter here: nothing that is judged depends on computing time."""
        return verify.judged(trial, seen)

    def report(self, run: RunData) -> Report:
        """Of a whole run its figures, of a partial one its runs. Raises FirstFlightError."""
        from lab.load import findings  # imports numpy
        found = (findings.of_figures(self.scenario, run.records, run.folder) if self.whole
                 else (findings.of_runs(run.records),))
        return reporting.report_of(self, run, found)

    def guest_s(self, trial: LoadTrial) -> float:
        connections: float = trial.responses_per_s * trial.duration_s
        return START_S + connections * (CONNECTION_S + trial.response_bytes / MSS * SEGMENT_S)

    def network_s(self, trial: LoadTrial) -> float:
        return trial.duration_s + START_S


def study(file: ScenarioFile, overrides: Overrides = NOTHING, seed: int = 1) -> LoadStudy:
    """A load scenario with what the command line says in place of it. Raises UsageError."""
    scenario = scenarios.read(file)
    trials = scenarios.expand(scenario, overrides, seed)
    whole = set(scenarios.expand(scenario, NOTHING, seed)) <= set(trials)
    return LoadStudy(scenario, trials, whole)
