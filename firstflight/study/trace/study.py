"""The kind "trace" (runs.kinds): one connection's window over time."""

from __future__ import annotations

from collections.abc import Mapping

from firstflight.findings.findings import Report
from firstflight.runs.kinds import Kind, RunData, Study
from firstflight.runs.reporting import report_of
from firstflight.study.trace import findings, scenario, verify
from firstflight.study.trace.record import TraceRecord
from firstflight.study.trace.trial import TraceTrial
from firstflight.testbed.messages import ObservedTrial

# From runs on two cores: wall time of a trace in a guest, and of each of its
# segments with the samples of the window around it.
GUEST_TRACE_S = 0.15
GUEST_SEGMENT_S = 0.0003


def judge(trial: TraceTrial, observed: ObservedTrial, exact: bool, sysctls: Mapping[str, str],
          known_kernel: bool = True) -> tuple[TraceRecord, Mapping[str, bytes]]:
    return verify.judge_trace(trial, observed, exact), observed.files


def report(study: Study, run: RunData) -> Report:
    shown = study.scenario if study.whole else findings.partial(study.scenario, run.records)
    return report_of(study, run, findings.findings(shown, run),
                     summary=findings.summary(run.records))


def guest_s(trial: TraceTrial) -> float:
    return GUEST_TRACE_S + GUEST_SEGMENT_S * trial.size_bytes / trial.mss


# All captures are kept: the findings are read off them. Its curves name no window where there is
# one, so that a figure needs the scenario's trials and no others.
KIND = Kind(TraceRecord, scenario.read_scenario, scenario.expand, judge, report, guest_s,
            lambda: verify.CHECKS, all_captures=True,
            has_all_cells=lambda trials, measured: set(trials) == set(measured))
