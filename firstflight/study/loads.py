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

# In a guest, roughly: starting it, then each connection by its segments.
START_S, CONNECTION_S, SEGMENT_S = 1.0, 0.0002, 0.00003


def expand(scenario: LoadScenario, overrides: Overrides, seed: int) -> list[LoadTrial]:
    return requested.expand(scenario, TAKEN, overrides, seed)


def judge(trial: LoadTrial, observed: ObservedTrial, exact: bool, sysctls: Mapping[str, str],
          known_kernel: bool = True) -> tuple[LoadRecord, Mapping[str, bytes]]:
    return verify.judge_load(trial, observed, sysctls, exact and known_kernel)


def report(study: Study[LoadScenario, LoadTrial, LoadRecord], run: RunData[LoadRecord]) -> Report:
    """The report: a whole run's figures, or a partial one's runs."""
    from firstflight.workloads.load import findings
    shown = (findings.findings(study.scenario, run) if study.whole else
             (findings.finding_of_part(run.records), *findings.kernel_findings(run.records)))
    return report_of(study, run, shown)


def guest_s(trial: LoadTrial) -> float:
    connections = trial.responses_per_s * trial.duration_s
    return START_S + connections * (CONNECTION_S + trial.response_bytes / trial.mss * SEGMENT_S)


def has_all_cells(trials: Sequence[LoadTrial], measured: Sequence[LoadTrial]) -> bool:
    """Whether all runs were measured, and none on another network or under another TCP.

    A figure has axes for more windows and more traffic, and would take the others for these.
    """
    settings = {_setting(trial) for trial in trials}
    return set(trials) <= set(measured) and settings.issuperset(map(_setting, measured))


def _setting(trial: LoadTrial) -> tuple[object, ...]:
    """The parameters of a run's network and TCP."""
    of_trial = {"queue": "queue_packets"}
    return tuple(getattr(trial, of_trial.get(name, name)) for name in OF_SETTING)


KIND = Kind(LoadRecord, lambda file, _: TABLES.read(file), expand, judge, report, guest_s,
            checks=lambda: verify.CHECKS, has_all_cells=has_all_cells)
