"""Scenarios of kind "trace" made ready to be measured and told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from lab.core.findings.findings import Report
from lab.core.results.checks import Check
from lab.core.results.records import Record
from lab.core.run.kinds import HOST_OVERHEAD_S, Overrides, RunData, SeenTrial
from lab.core.run.reporting import report_of
from lab.core.scenario.scenario_file import Head, ScenarioFile, check_count
from lab.trace import findings, verify
from lab.trace.record import TraceRecord
from lab.trace.scenario import TraceScenario, overridden, read
from lab.trace.trial import TraceTrial

# For --dry-run, from runs on two cores: wall time of a trace in a guest, and of each of its
# segments with the samples of the window around it.
GUEST_TRACE_S = 0.15
GUEST_SEGMENT_S = 0.0003


@dataclass(frozen=True)
class TraceStudy:
    """As lab.core.run.kinds.Study has it. All captures are kept: the findings are read off them."""

    scenario: TraceScenario
    trials: Sequence[TraceTrial]
    whole: bool

    record: ClassVar[type[Record]] = TraceRecord
    checks: ClassVar[Sequence[Check]] = verify.CHECKS
    all_captures: ClassVar[bool] = True
    drawings: ClassVar[Mapping[str, Sequence[str]]] = {}

    @property
    def head(self) -> Head:
        return self.scenario.head

    @staticmethod
    def judge(trial: TraceTrial, seen: SeenTrial, exact: bool, sysctls: Mapping[str, str],
              known_kernel: bool = True) -> tuple[TraceRecord, Mapping[str, bytes]]:
        return verify.judge(trial, seen, exact), seen.files

    def report(self, run: RunData) -> Report:
        told = self.scenario if self.whole else findings.partial(self.scenario, run.records)
        return report_of(self, run, findings.findings(told, run),
                         summary=findings.summary(run.records))

    def guest_s(self, trial: TraceTrial) -> float:
        return GUEST_TRACE_S + GUEST_SEGMENT_S * trial.size_bytes / trial.mss

    def network_s(self, trial: TraceTrial) -> float:
        return (HOST_OVERHEAD_S + trial.schedule_s + sum(trial.thinks_s)
                + trial.size_bytes * 8 / (trial.bandwidth_kbps * 1000))


def study(file: ScenarioFile, overrides: Overrides, seed: int) -> TraceStudy:
    """The scenario with what the command line says in place of it. Raises UsageError.

    seed: nothing is drawn at random.
    """
    scenario = read(file)
    asked = overridden(scenario, overrides)
    check_count(asked.count, "traces", overrides.many)
    return TraceStudy(asked, asked.trials(), asked == scenario)
