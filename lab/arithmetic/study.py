"""Scenarios of kind "arithmetic" made ready to be told: there is nothing to measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from lab.arithmetic import findings
from lab.arithmetic.scenario import Arithmetic, read
from lab.core.errors import UsageError
from lab.core.findings.findings import Report
from lab.core.results.checks import Check
from lab.core.results.records import Record
from lab.core.run.kinds import Overrides, RunData, SeenTrial
from lab.core.run.reporting import report_of
from lab.core.scenario.scenario_file import Head, ScenarioFile


@dataclass(frozen=True)
class NoTrial:
    """The columns of a trials.csv without rows."""

    scenario: str
    id: str


@dataclass(frozen=True)
class NoRecord(Record):
    trial: NoTrial


@dataclass(frozen=True)
class ArithmeticStudy:
    """As lab.core.run.kinds.Study has it, without trials: no engine is needed, and no record
    made."""

    scenario: Arithmetic

    record: ClassVar[type[Record]] = NoRecord
    checks: ClassVar[Sequence[Check]] = ()
    all_captures: ClassVar[bool] = False
    drawings: ClassVar[Mapping[str, Sequence[str]]] = {}
    trials: ClassVar[Sequence[Any]] = ()
    whole: ClassVar[bool] = True

    @property
    def head(self) -> Head:
        return self.scenario.head

    @staticmethod
    def judge(trial: Any, seen: SeenTrial, exact: bool, sysctls: Mapping[str, str],
              known_kernel: bool = True) -> tuple[Record, Mapping[str, bytes]]:
        raise NotImplementedError("there are no trials to judge")

    def report(self, run: RunData) -> Report:
        found = findings.findings(self.scenario)
        return report_of(self, run, found, summary=(self.head.note,), tiles=findings.tiles(
            self.scenario))

    def guest_s(self, trial: Any) -> float:
        return 0.0

    def network_s(self, trial: Any) -> float:
        return 0.0


def study(file: ScenarioFile, overrides: Overrides, seed: int) -> ArithmeticStudy:
    """The scenario; it takes no override, and draws nothing. Raises UsageError."""
    scenario = read(file)
    for flag in overrides.given.values():
        raise UsageError(f"{file.name}: {flag}: it computes with published numbers and measures"
                         " nothing")
    return ArithmeticStudy(scenario)
