"""The kind "load" (runs.kinds): many connections on a shared link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from firstflight.findings.findings import Report
from firstflight.runs.kinds import Kind, Overrides, RunData, Study
from firstflight.runs.reporting import report_of
from firstflight.scenario import requested
from firstflight.testbed.messages import ObservedTrial
from firstflight.workloads.load import verify
from firstflight.workloads.load.record import LoadRecord
from firstflight.workloads.load.scenario import TABLES, TAKEN, LoadScenario
from firstflight.workloads.load.trial import OF_SETTING, LoadTrial

# What a trial takes in a guest, roughly: once, for each connection, and for each of its segments.
START_S = 1.0
CONNECTION_S = 0.0002
SEGMENT_S = 0.00003


def expand(scenario: LoadScenario, overrides: Overrides, seed: int) -> list[LoadTrial]:
    return requested.expand(scenario, TAKEN, overrides, seed)


def judge(trial: LoadTrial, observed: ObservedTrial, exact: bool, sysctls: Mapping[str, str],
          known_kernel: bool = True) -> tuple[LoadRecord, Mapping[str, bytes]]:
    """The trial's record with its verdict, and the files to keep, by name.

    exact: whether the trial was measured in virtual time. sysctls: those that the scenario sets.
    known_kernel: whether the model was checked against the trial's kernel.
    """
    return verify.judge_load(trial, observed, sysctls, exact and known_kernel)


def report(study: Study[LoadScenario, LoadTrial, LoadRecord], run: RunData[LoadRecord]) -> Report:
    """The report: the figures of a whole scenario, or a table of the trials of a part of it."""
    from firstflight.workloads.load import findings
    if study.whole:
        return report_of(study, run, findings.findings(study.scenario, run))
    of_part = findings.finding_of_part(run.records)
    return report_of(study, run, (of_part, *findings.kernel_findings(run.records)))


def guest_s(trial: LoadTrial) -> float:
    connections = trial.responses_per_s * trial.duration_s
    return START_S + connections * (CONNECTION_S + trial.response_bytes / trial.mss * SEGMENT_S)


def has_all_cells(trials: Sequence[LoadTrial], measured: Sequence[LoadTrial]) -> bool:
    """Whether all trials were measured, and no trial on another network or with another TCP.

    Trials with further windows or traffic are allowed: figures have axes for these. Figures have no
    axis for networks and TCPs, and would count a trial on another network as the scenario's.
    """
    settings = {_setting(trial) for trial in trials}
    return set(trials) <= set(measured) and settings.issuperset(map(_setting, measured))


def _setting(trial: LoadTrial) -> tuple[object, ...]:
    """The parameters of a trial's network and TCP."""
    fields = ("queue_packets" if name == "queue" else name for name in OF_SETTING)
    return tuple(getattr(trial, field) for field in fields)


KIND = Kind(LoadRecord, lambda file, _: TABLES.read(file), expand, judge, report, guest_s,
            checks=lambda: verify.CHECKS, has_all_cells=has_all_cells)
