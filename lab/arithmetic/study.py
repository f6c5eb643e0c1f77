"""The kind "arithmetic" (lab.core.run.kinds): published numbers, and nothing to measure.

It has no trials, so no engine is needed, and no record made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.arithmetic import findings
from lab.arithmetic.scenario import Arithmetic, read
from lab.core.errors import UsageError
from lab.core.findings.findings import Report
from lab.core.results.records import Record
from lab.core.run.kinds import Kind, ObservedTrial, Overrides, RunData, Study
from lab.core.run.reporting import report_of


@dataclass(frozen=True)
class NoTrial:
    """The columns of a trials.csv without rows."""

    scenario: str
    id: str


@dataclass(frozen=True)
class NoRecord(Record):
    trial: NoTrial


def expand(scenario: Arithmetic, overrides: Overrides, seed: int) -> Sequence[NoTrial]:
    """It takes no override, and draws nothing."""
    for flag in overrides.given.values():
        raise UsageError(f"{scenario.head.name}: {flag}: it computes with published numbers and"
                         " measures nothing")
    return ()


def judge(trial: Any, observed: ObservedTrial, exact: bool, sysctls: Mapping[str, str],
          known_kernel: bool = True) -> tuple[Record, Mapping[str, bytes]]:
    raise NotImplementedError("there are no trials to judge")


def report(study: Study, run: RunData) -> Report:
    return report_of(study, run, findings.findings(study.scenario), summary=(study.head.note,),
                     tiles=findings.tiles(study.scenario))


KIND = Kind(NoRecord, read, expand, judge, report, guest_s=lambda trial: 0.0,
            network_s=lambda trial: 0.0, checks=lambda: ())
