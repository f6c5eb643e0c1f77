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

# What a trial takes in a guest, roughly.
START_S = 1.0
CONNECTION_S = 0.0002  # a connection, and with it each of its segments:
SEGMENT_S = 0.00003


def expand(scenario: LoadScenario, overrides: Overrides, seed: int) -> list[LoadTrial]:
    return requested.expand(scenario, TAKEN, overrides, seed)


def judge(trial: LoadTrial, observed: ObservedTrial, exact: bool, sysctls: Mapping[str, str],
          known_kernel: bool = True) -> tuple[LoadRecord, Mapping[str, bytes]]:
    return verify.judge_load(trial, observed, sysctls, exact and known_kernel)


def report(study: Study[LoadScenario, LoadTrial, LoadRecord], run: RunData[LoadRecord]) -> Report:
    """The report. It has the scenario's figures, or for a part of the scenario a table of runs."""
    from firstflight.workloads.load import findings
    if study.whole:
        return report_of(study, run, findings.findings(study.scenario, run))
    of_part = findings.finding_of_part(run.records)
    return report_of(study, run, (of_part, *findings.kernel_findings(run.records)))


def guest_s(trial: LoadTrial) -> float:
    connections = trial.responses_per_s * trial.duration_s
    return START_S + connections * (CONNECTION_S + trial.response_bytes / trial.mss * SEGMENT_S)


def has_all_cells(trials: Sequence[LoadTrial], measured: Sequence[LoadTrial]) -> bool:
    """Whether all runs were measured, and none on another network or with another TCP.

    Further windows and further traffic are allowed: figures have axes for them. They have none for
    networks and TCPs, and would count runs on another one as the scenario's.
    """
    settings = {_setting(trial) for trial in trials}
    return set(trials) <= set(measured) and settings.issuperset(map(_setting, measured))


def _setting(trial: LoadTrial) -> tuple[object, ...]:
    """The parameters of a run's network and TCP."""
    fields = ("queue_packets" if name == "queue" else name for name in OF_SETTING)
    return tuple(getattr(trial, field) for field in fields)


KIND = Kind(LoadRecord, lambda file, _: TABLES.read(file), expand, judge, report, guest_s,
            checks=lambda: verify.CHECKS, has_all_cells=has_all_cells)
