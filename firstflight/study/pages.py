"""The kind "page" (runs.kinds): a document and its objects over several connections."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from firstflight.findings.findings import Report
from firstflight.runs.kinds import Kind, Overrides, RunData, Study
from firstflight.runs.reporting import report_of
from firstflight.runs.results.checks import AnyCheck, Check
from firstflight.scenario import requested
from firstflight.setting import draws
from firstflight.testbed.hosts.browser.frames import drawn_phase_ms
from firstflight.testbed.messages import ObservedTrial
from firstflight.workloads.page import browsed, loads, verify
from firstflight.workloads.page.analysis import group_settings, setting_of
from firstflight.workloads.page.record import PageRecord, is_one_draw
from firstflight.workloads.page.scenario import TABLES, TAKEN, PageScenario
from firstflight.workloads.page.trial import PageTrial, guest_s

PageStudy = Study[PageScenario, PageTrial, PageRecord]


def expand(scenario: PageScenario, overrides: Overrides, seed: int) -> list[PageTrial]:
    return requested.expand(scenario, TAKEN, overrides, seed)


def report(study: PageStudy, run: RunData[PageRecord]) -> Report:
    from firstflight.workloads.page import findings
    return report_of(study, run, findings.findings(study.scenario, run),
                     summary=findings.summary(run.records),
                     answer=findings.answer(study.scenario, run))


def judge(trial: PageTrial, observed: ObservedTrial, exact: bool, sysctls: Mapping[str, str],
          known_kernel: bool = True) -> tuple[PageRecord, Mapping[str, bytes]]:
    """The trial's record with its verdict, and the files to keep, by name.

    exact: whether the trial was measured in virtual time. sysctls: those that the scenario sets.
    known_kernel: whether the model was checked against the trial's kernel.
    """
    judge_page = browsed.judge_browsed if trial.site else verify.judge_page
    return judge_page(trial, observed, exact, sysctls, known_kernel)


def checks() -> Sequence[AnyCheck[PageRecord]]:
    """The checks of both clients.

    Those of `browsed` apply to pages that a browser loaded, those of `verify` to all others.
    """
    of_libcurl: dict[str, Check[Any, PageRecord]] = {check.name: check for check in verify.CHECKS}
    of_browser: dict[str, Check[Any, PageRecord]] = {check.name: check for check in browsed.CHECKS}

    def applies_to(name: str, record: PageRecord) -> bool:
        check = (of_browser if record.trial.site else of_libcurl).get(name)
        return check is not None and check.applies_to(record)

    return tuple(replace(check, applies_to=partial(applies_to, name))
                 for name, check in {**of_browser, **of_libcurl}.items())


def repeats_with_drops(scenario: PageScenario) -> int:
    """How often a setting is measured whose times depend on chance: the most of any sweep.

    0 for as often as any other setting.
    """
    return max((sweep.repeat_with_drops or 0 for sweep in scenario.sweeps), default=0)


def with_draws(study: PageStudy, run: RunData[PageRecord], seed: int) -> list[PageTrial]:
    """The study's trials, and more of each setting whose times depend on chance.

    The further trials have drawn RTTs and queues (setting.draws). Times depend on chance if a
    microsecond of the RTT decides, as where a queue drops packets (is_one_draw), and in a browser
    if the loads of a page differ.
    """
    # By setting, how many repeats stay on the requested network.
    undrawn_repeats: dict[Hashable, int] = {}
    for setting in group_settings(run.records):
        is_chance = any(is_one_draw(record) for times in setting.windows.values()
                        for record in times.records if record.trial.repeat == 1)
        cell = setting_of(setting.trial)
        if is_chance:
            undrawn_repeats[cell] = 1
        elif loads.notes(run.folder, setting, ""):  # a note says how its loads differ
            undrawn_repeats[cell] = max(trial.repeat for trial in study.trials
                                        if setting_of(trial) == cell)
    drawn = draws.with_draws(study.trials, undrawn_repeats, setting_of,
                             repeats=study.repeat_with_drops, run_seed=seed)
    return [replace(trial, phase_ms=drawn_phase_ms(seed, trial.repeat)) if trial.site else trial
            for trial in drawn]


def what_if_trials(study: PageStudy, records: Sequence[PageRecord],
                   what_ifs: Sequence[PageRecord]) -> Sequence[PageTrial]:
    from firstflight.workloads.page import reasons
    return reasons.what_if_trials(study.scenario, records, what_ifs)


KIND = Kind(PageRecord, lambda file, _: TABLES.read(file), expand, judge, report, guest_s,
            checks, repeats_with_drops=repeats_with_drops, with_draws=with_draws,
            what_if_trials=what_if_trials)
