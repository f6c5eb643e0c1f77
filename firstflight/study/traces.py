"""The kind "trace" (runs.kinds): one connection's window over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from firstflight.findings.findings import Answer, Report
from firstflight.runs.kinds import Kind, Overrides, RunData, Study
from firstflight.runs import scenario_file
from firstflight.runs.reporting import report_of
from firstflight.scenario import requested
from firstflight.testbed.messages import ObservedTrial
from firstflight.workloads.trace import findings, reasons, verify
from firstflight.workloads.trace.record import TraceRecord
from firstflight.workloads.trace.scenario import TABLES, TAKEN, TraceScenario
from firstflight.workloads.trace.trial import TraceTrial, guest_s


def judge(trial: TraceTrial, observed: ObservedTrial, exact: bool, sysctls: Mapping[str, str],
          known_kernel: bool = True) -> tuple[TraceRecord, Mapping[str, bytes]]:
    return verify.judge_trace(trial, observed, exact, sysctls, known_kernel), observed.files


def expand(scenario: TraceScenario, overrides: Overrides, seed: int) -> list[TraceTrial]:
    return requested.expand(scenario, TAKEN, overrides, seed)


def report(study: Study[TraceScenario, TraceTrial, TraceRecord], run: RunData[TraceRecord]
           ) -> Report:
    shown = study.scenario
    if not study.whole:
        shown = findings.scenario_of_part(study.scenario, run.records)
    is_asked = is_question(study)
    why = tuple(reasons.sentences(study.scenario, run.records, run.what_ifs, is_asked))

    of_run, table = list(findings.findings(shown, run)), None
    compared = reasons.finding(study.scenario, run.records, run.what_ifs) if is_asked else None
    if compared:
        of_run.append(compared)
        table = compared.tables[0].first(reasons.MOST_ROWS)
    return report_of(study, run, of_run,
                     summary=(*findings.summary(run.records), *why), sentences=why,
                     answer=Answer(table=table, notes=why))


def is_question(study: Study[TraceScenario, TraceTrial, TraceRecord]) -> bool:
    """Whether the study is a user's question, whose report explains each comparison.

    It is one where the scenario's file is the user's, or where the user replaced values of a
    scenario of this repository.
    """
    return not study.whole or study.head.name not in scenario_file.names()


def what_if_trials(study: Study[TraceScenario, TraceTrial, TraceRecord],
                   records: Sequence[TraceRecord], what_ifs: Sequence[TraceRecord]
                   ) -> Sequence[TraceTrial]:
    return reasons.what_if_trials(study.scenario, records, what_ifs, is_question(study))


def are_the_same(trials: Sequence[TraceTrial], measured: Sequence[TraceTrial]) -> bool:
    """Whether the measured trials are exactly the scenario's.

    Further trials are not allowed: where a sweep has one window, its curve does not name it, and a
    reader would take a curve of another window for the scenario's.
    """
    return set(trials) == set(measured)


# All captures are kept: the findings are read from them.
KIND = Kind(TraceRecord, lambda file, _: TABLES.read(file), expand, judge, report, guest_s,
            checks=lambda: verify.CHECKS, all_captures=True, has_all_cells=are_the_same,
            what_if_trials=what_if_trials)
