"""A scenario's trials: what its sweeps expand to, with what the command line says instead."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lab.core import schema
from lab.core.errors import UsageError
from lab.core.kinds import NOTHING, Overrides
from lab.core.scenario_file import check_count
from lab.fetches.scenario import Scenario
from lab.fetches.sweep import CLIENTS, cell_of
from lab.fetches.trial import Trial


def expand(scenario: Scenario, overrides: Overrides = NOTHING, seed: int = 1) -> list[Trial]:
    """All trials of the scenario, without duplicates, in the order to measure them.

    Values in `overrides` replace the sweeps' lists; `seed` is the run's, for
    what is random. Trials of one network shape stand together, since
    re-shaping costs time; shapes, and trials within one, stand in the order
    of the file. Raises UsageError.
    """
    asked = apply(scenario, overrides)
    check_count(sum(sweep.count for sweep in asked.sweeps))
    shapes: dict[tuple[float, ...], dict[Trial, None]] = {}
    for sweep in asked.sweeps:
        for trial in sweep.trials(scenario.name, seed):
            shapes.setdefault(trial.shape, {})[trial] = None
    return [trial for trials in shapes.values() for trial in trials] + _drawn(asked, seed)


def apply(scenario: Scenario, overrides: Overrides) -> Scenario:
    """The scenario with the overrides in its sweeps. Raises UsageError."""
    given = overrides.checked()
    if "load" in given:
        raise UsageError(f"{scenario.name}: --load: one transfer at a time is no load; the"
                         " scenarios that take it are of kind load (--list)")
    single = _single(overrides)
    if scenario.populations and ({*given, *single} - {"initcwnd", "client"}):
        raise UsageError(f"{scenario.name} draws its clients and responses: it takes --iw and"
                         " --seed, and no list of RTTs, bandwidths, sizes or repeats")
    windows = {"initcwnd": given["initcwnd"]} if "initcwnd" in given else {}
    return replace(
        scenario, sweeps=tuple(replace(sweep.overridden(given), **single)
                               for sweep in scenario.sweeps),
        populations=tuple(replace(drawn, **windows) for drawn in scenario.populations))


def _single(overrides: Overrides) -> dict[str, Any]:
    """What is no list: the client, and repeats with loss or without."""
    values: dict[str, Any] = {}
    if overrides.client is not None:
        values["client"] = schema.one_of(overrides.client, CLIENTS, "--client")
    if overrides.repeat is not None:
        values["repeat"] = schema.number("repeat")(overrides.repeat, "--repeat")
        values["repeat_with_loss"] = None
    return values


def covers(scenario: Scenario, overrides: Overrides) -> bool:
    """Whether the overrides leave every cell and window of the scenario in, for its figures."""
    if overrides == NOTHING:
        return True  # drawing a population takes seconds

    def settings(trials: list[Trial]) -> set[tuple[object, ...]]:
        return {(cell_of(trial), trial.initcwnd, trial.part, trial.sample) for trial in trials}

    return settings(expand(scenario)) <= settings(expand(scenario, overrides))


def _drawn(scenario: Scenario, seed: int) -> list[Trial]:
    """The trials of the scenario's populations."""
    if scenario.like is None:
        return []
    from lab.fetches import draws  # imports numpy: only for those that draw
    return [trial for made in scenario.populations
            for trial in draws.trials(made, scenario.like, seed)]
