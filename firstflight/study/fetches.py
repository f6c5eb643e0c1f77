"""The kind "fetches" (runs.kinds): one transfer at a time on the star."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from firstflight.base.errors import UsageError
from firstflight.parameters import PARAMETERS, Lists
from firstflight.runs import schema
from firstflight.runs.kinds import NOTHING, Kind, Overrides, RunData, Study
from firstflight.runs.scenario_file import ScenarioFile, check_count
from firstflight.scenario import grammar, requested
from firstflight.setting import draws
from firstflight.setting.server import OWN, OwnServer
from firstflight.setting.tcp import BY_KERNEL
from firstflight.testbed.messages import ObservedTrial
from firstflight.workloads.fetch.record.record import Record, is_one_draw
from firstflight.workloads.fetch.scenario import figures, reading
from firstflight.workloads.fetch.scenario.population import Populations
from firstflight.workloads.fetch.scenario.scenario import Scenario
from firstflight.workloads.fetch.scenario.sweep import CLIENTS, cell_key
from firstflight.workloads.fetch.trial import Trial

if TYPE_CHECKING:
    from firstflight.findings.findings import Report
    from firstflight.runs.results.checks import AnyCheck

# The flags that fetches take. A message on their lists names the scenario, and no sweep of it.
TAKEN = requested.Taken(
    kind="fetches", trials="trials",
    names=(*PARAMETERS, "repeat", "client", "sample", "server-command", "own_window"),
    reasons={"load": "it has one transfer at a time; scenarios of kind load take this flag"
                     " (--list)"},
    table="")
# Seconds that a fetch takes in a guest, on two cores, and that each of its bytes takes.
GUEST_FETCH_S = {"curl": 0.025, "wget": 0.014, "libcurl": 0.006}
GUEST_BYTE_S = 6e-8


def read_scenario(file: ScenarioFile, overrides: Overrides = NOTHING) -> Scenario:
    """The scenario of a file, its figures checked. Raises UsageError."""
    scenario = reading.read_scenario(file)
    figures.check(scenario, file.where)
    return _with_large_sample(scenario) if overrides.sample else scenario


def _with_large_sample(scenario: Scenario) -> Scenario:
    """The scenario with the large sample of its populations. Raises UsageError without one."""
    if scenario.drawn is None:
        raise UsageError(f"{scenario.name}: --sample: it has no large sample")
    return replace(scenario, drawn=replace(scenario.drawn, in_full=True))


# Trials ------------------------------------------------------------------------------

def expand(scenario: Scenario, overrides: Overrides = NOTHING, seed: int = 1) -> list[Trial]:
    """All trials of the scenario, without duplicates, in the order to measure them.

    Trials on one network follow each other, since setting up a network costs time; otherwise the
    order is that of the file. overrides: values that replace the sweeps' lists. seed: of the run's
    random numbers. Raises UsageError.
    """
    changed = apply(scenario, overrides)
    check_count(changed.count, what=TAKEN.trials, many=overrides.many)
    # With [as_published], the sweeps come once more with each further cause switched on.
    sweeps = chain.from_iterable(changed.levels)
    by_network: dict[tuple[object, ...], list[Trial]] = {}
    for trial in grammar.trials_of(sweeps, scenario.name, seed):
        by_network.setdefault(trial.network, []).append(trial)
    expanded = [trial for trials in by_network.values() for trial in trials]
    if changed.users:
        expanded += changed.users.trials(scenario.name, seed)
    if changed.drawn:
        expanded += changed.drawn.trials(seed)
    return expanded


def apply(scenario: Scenario, overrides: Overrides) -> Scenario:
    """The scenario with the overrides in its sweeps. Raises UsageError."""
    lists = overrides.checked()
    single: dict[str, object] = {}  # fields that are not lists
    if overrides.own_window:
        lists["window_by"] = (BY_KERNEL,)
    if overrides.own_server:
        own = schema.read(OwnServer, overrides.own_server, "--server-command")
        lists.setdefault("server", (OWN,))
        single["own_server"] = own.text
    if overrides.client is not None:
        single["client"] = schema.one_of(overrides.client, CLIENTS, "--client")
    changed = requested.apply(scenario, overrides, TAKEN, lists, **single)
    has_more = bool(single) or overrides.repeat is not None
    if scenario.users and (lists or has_more):
        raise UsageError(f"{scenario.name} is a sample of users: its file says what is measured")
    return replace(changed, drawn=_drawn(scenario, lists, overrides))


def _drawn(scenario: Scenario, lists: Lists, overrides: Overrides) -> Populations | None:
    """The populations under the requested windows; None without a population.

    lists: values of flags, by the names of their quantities. Raises UsageError for a flag that
    would change whom or what the populations are drawn from.
    """
    if scenario.drawn is None:
        return None
    if {*lists, *overrides.given} - {"initcwnd", "client", "sample"}:
        raise UsageError(f"{scenario.name} draws its clients and responses: it takes --iw and"
                         " --seed, and no list of RTTs, bandwidths, sizes or repeats. The same"
                         " flags without its name measure one response on that network")
    return scenario.drawn.under(lists["initcwnd"]) if "initcwnd" in lists else scenario.drawn


# The kind. A function that judges, or that makes a report, imports what it needs itself, so that a
# dry run does not wait for these imports.

FetchStudy = Study[Scenario, Trial, Record]


def judge(trial: Trial, observed: ObservedTrial, exact: bool, sysctls: Mapping[str, str],
          known_kernel: bool = True) -> tuple[Record, Mapping[str, bytes]]:
    from firstflight.workloads.fetch.verify.verify import judge_fetch
    return judge_fetch(trial, observed.content, observed.client_pcap, observed.server_pcap,
                       exact=exact, sysctls=sysctls, known_kernel=known_kernel), observed.files


def report(study: FetchStudy, run: RunData[Record]) -> Report:
    from firstflight.study import fetch_findings
    return fetch_findings.report(study, run)


def guest_s(trial: Trial) -> float:
    """A rough estimate of how long a fetch takes in a guest."""
    return (GUEST_FETCH_S[trial.client]
            + GUEST_BYTE_S * (trial.sent_bytes + trial.uploaded_bytes))


def checks() -> Sequence[AnyCheck[Record]]:
    from firstflight.workloads.fetch.verify.verify import CHECKS
    return CHECKS


def has_all_cells(trials: Sequence[Trial], measured: Sequence[Trial]) -> bool:
    """Whether every cell and window was measured."""
    def settings_of(trials: Sequence[Trial]) -> set[tuple[object, ...]]:
        return {(cell_key(trial), trial.initcwnd, trial.part, trial.sample) for trial in trials}

    return settings_of(trials) <= settings_of(measured)


def repeats_with_drops(scenario: Scenario) -> int:
    """How often a cell is measured whose first trial met drops; 0 where drops add no repeats."""
    return max((sweep.repeat_with_drops or 0 for sweep in scenario.sweeps), default=0)


def with_draws(study: FetchStudy, run: RunData[Record], seed: int) -> list[Trial]:
    """The study's trials, with repeats on networks that are drawn near the requested one.

    A cell has such repeats if another RTT would have changed its first trial (is_one_draw). See
    setting.draws for the reason.
    """
    repeats_on_requested_network = 1
    sensitive: dict[Hashable, int] = {
        cell_key(record.trial): repeats_on_requested_network for record in run.records
        if record.trial.repeat == 1 and is_one_draw(record)}
    return draws.with_draws(study.trials, sensitive, cell_key, study.repeat_with_drops, seed)


def what_if_trials(study: FetchStudy, records: Sequence[Record], what_ifs: Sequence[Record]
                   ) -> Sequence[Trial]:
    """What-if trials for the reasons of the answer; a drawn population and users have none."""
    scenario = study.scenario
    if not scenario.is_grid:
        return ()
    from firstflight.figures.what_ifs import changes_to_explain
    from firstflight.figures.what_ifs import what_if_trials as trials_of
    from firstflight.workloads.fetch.figures import cells
    from firstflight.workloads.fetch.figures.reasons import WhatIfs
    compared = changes_to_explain(cells.changes(cells.settings(records)), scenario.cells)
    return trials_of(compared, WhatIfs(what_ifs, scenario.head.sysctls))


KIND = Kind(Record, read_scenario, expand, judge, report, guest_s, checks,
            has_all_cells=has_all_cells, repeats_with_drops=repeats_with_drops,
            with_draws=with_draws, what_if_trials=what_if_trials)
