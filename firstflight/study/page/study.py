"""The kind "page" (runs.kinds): a document and its objects over several connections."""

from __future__ import annotations

from collections.abc import Mapping

from firstflight.findings.findings import Report
from firstflight.net.segments import MSS
from firstflight.runs.kinds import Kind, RunData, Study
from firstflight.runs.reporting import report_of
from firstflight.study.page import scenario, verify
from firstflight.study.page.record import PageRecord
from firstflight.study.page.trial import PageTrial
from firstflight.testbed.messages import ObservedTrial

# From runs on two cores: wall time of a page in a guest, of each object and of each segment.
GUEST_PAGE_S, GUEST_OBJECT_S, GUEST_SEGMENT_S = 0.08, 0.003, 0.0003


def judge(trial: PageTrial, observed: ObservedTrial, exact: bool, sysctls: Mapping[str, str],
          known_kernel: bool = True) -> tuple[PageRecord, Mapping[str, bytes]]:
    return verify.judge_page(trial, observed, exact, known_kernel)


def report(study: Study, run: RunData) -> Report:
    from firstflight.study.page import findings
    return report_of(study, run, findings.findings(study.scenario, run),
                     summary=findings.summary(run.records),
                     answer=findings.answer(study.scenario, run))


def guest_s(trial: PageTrial) -> float:
    return (GUEST_PAGE_S + GUEST_OBJECT_S * len(trial.requested)
            + GUEST_SEGMENT_S * trial.size_bytes / MSS)


KIND = Kind(PageRecord, scenario.read_scenario, scenario.expand, judge, report, guest_s,
            lambda: verify.CHECKS)
