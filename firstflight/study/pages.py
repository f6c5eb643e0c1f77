"""The kind "page" (runs.kinds): a document and its objects over several connections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from firstflight.findings.findings import Report
from firstflight.net.headers import MSS
from firstflight.runs.kinds import Kind, Overrides, RunData, Study
from firstflight.runs.reporting import report_of
from firstflight.runs.results.checks import Check
from firstflight.runs.scenario_file import ScenarioFile
from firstflight.scenario import requested
from firstflight.setting import draws
from firstflight.testbed.messages import ObservedTrial
from firstflight.workloads.page import browsed, verify
from firstflight.workloads.page.analysis import setting_of
from firstflight.workloads.page.record import PageRecord, is_one_draw
from firstflight.workloads.page.scenario import TABLES, TAKEN, PageScenario
from firstflight.workloads.page.trial import PageTrial

# Wall time in a guest of a page, and of each of its objects and segments, from runs on two cores.
BROWSER_PAGE_S = 1.5  # what a browser takes in addition
GUEST_PAGE_S, GUEST_OBJECT_S, GUEST_SEGMENT_S = 0.08, 0.003, 0.0003


class PageKind(Kind):
    record = PageRecord

    def read(self, file: ScenarioFile, overrides: Overrides) -> PageScenario:
        return TABLES.read(file)

    def expand(self, scenario: PageScenario, overrides: Overrides, seed: int) -> list[PageTrial]:
        return requested.expand(scenario, TAKEN, overrides, seed)

    def judge(self, trial: PageTrial, observed: ObservedTrial, exact: bool,
              sysctls: Mapping[str, str], known_kernel: bool = True
              ) -> tuple[PageRecord, Mapping[str, bytes]]:
        judge = browsed.judge_browsed if trial.site else verify.judge_page
        return judge(trial, observed, exact, sysctls, known_kernel)

    def report(self, study: Study, run: RunData) -> Report:
        from firstflight.workloads.page import findings
        return report_of(study, run, findings.findings(study.scenario, run),
                         summary=findings.summary(run.records),
                         answer=findings.answer(study.scenario, run))

    def repeats_with_drops(self, scenario: PageScenario) -> int:
        return max((sweep.repeat_with_drops or 0 for sweep in scenario.sweeps), default=0)

    def with_draws(self, study: Study, measured: Sequence[PageRecord], seed: int
                   ) -> Sequence[PageTrial]:
        sensitive = {setting_of(record.trial) for record in measured if is_one_draw(record)}
        return draws.with_draws(study.trials, sensitive, setting_of, study.repeat_with_drops, seed)

    def guest_s(self, trial: PageTrial) -> float:
        browser_s = BROWSER_PAGE_S if trial.site else 0.0
        return (browser_s + GUEST_PAGE_S + GUEST_OBJECT_S * len(trial.requested)
                + GUEST_SEGMENT_S * trial.size_bytes / MSS)

    def checks(self) -> Sequence[Check[Any, Any]]:
        own = {check.name for check in verify.CHECKS}
        return (*verify.CHECKS, *(check for check in browsed.CHECKS if check.name not in own))


KIND = PageKind()
