"""Puts the command line's values in place of those of a scenario's file, and makes the trials.

Each workload says which flags it takes (Taken). A sweep replaces its lists (SettingSweep).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from firstflight.base.errors import UsageError
from firstflight.findings.quantities import FLAGS
from firstflight.parameters import PARAMETERS, Lists
from firstflight.runs import schema
from firstflight.runs.kinds import NOTHING, Overrides
from firstflight.runs.scenario_file import check_count
from firstflight.scenario import grammar

Sc = TypeVar("Sc", bound=grammar.Scenario[Any, Any, Any])


@dataclass(frozen=True)
class Taken:
    """The flags that a kind of scenario takes."""

    # The name of the kind in files.
    kind: str
    # What its trials are called.
    trials: str
    # The flags that it takes, by the names that Overrides.given has.
    names: Collection[str]
    # Why it does not take another flag, by the flag's name or the subject of its parameter.
    reasons: Mapping[str, str] = field(default_factory=dict)
    # Why it takes none of the flags without such a reason; "" if nothing is to be said.
    otherwise: str = ""
    # The flags that take only one value, and the reason.
    of_one_value: Collection[str] = ()
    why_one: str = ""
    # The name of a sweep's table in messages; "" if they name only the scenario.
    table: str = "sweep"

    def refuse_others(self, scenario: str, overrides: Overrides) -> None:
        """Refuse flags that mean nothing to such a scenario. Raises UsageError with the reason."""
        for name, flag in overrides.given.items():
            if name in self.names:
                continue
            subject = PARAMETERS[name].subject if name in PARAMETERS else name
            why = self.reasons.get(name) or self.reasons.get(subject, self.otherwise)
            reason = f": {why}" if why else ""
            raise UsageError(f"{scenario}: {flag} does not go with a scenario of kind"
                             f' "{self.kind}"{reason}')

    def refuse_several(self, lists: Lists) -> None:
        """Refuse several values of a flag that takes only one. Raises UsageError."""
        for name in self.of_one_value:
            if len(lists.get(name, ())) > 1:
                raise UsageError(f'{FLAGS[name].flag}: a scenario of kind "{self.kind}" takes one'
                                 f" value: {self.why_one}")

    def place(self, scenario: str, sweep: str) -> str:
        """The words by which messages name a sweep of a scenario."""
        return schema.place_of(scenario, self.table, sweep) if self.table else scenario


def apply(scenario: Sc, overrides: Overrides, taken: Taken, lists: Lists | None = None,
          **fields: object) -> Sc:
    """The scenario with the overrides in its sweeps. Raises UsageError.

    lists: the values by name, if a workload has more of them than the overrides. fields: further
    fields that are replaced in each sweep.
    """
    taken.refuse_others(scenario.name, overrides)
    lists = overrides.checked() if lists is None else lists
    taken.refuse_several(lists)
    fields = {**fields, **_repeats(overrides)}

    sweeps = []
    for sweep in scenario.sweeps:
        place = taken.place(scenario.name, sweep.name)
        changed = replace(sweep.overridden(lists, place), **fields)
        changed.check_requested(place)
        sweeps.append(changed)
    return replace(scenario, sweeps=tuple(sweeps))


def _repeats(overrides: Overrides) -> dict[str, int | None]:
    """The fields of a sweep that --repeat replaces; {} without it. Raises UsageError."""
    if overrides.repeat is None:
        return {}
    repeat = schema.number("repeat")(overrides.repeat, "--repeat")
    return {"repeat": repeat, "repeat_with_loss": None, "repeat_with_drops": None}


def expand(scenario: grammar.Scenario[Any, Any, Any], taken: Taken,
           overrides: Overrides = NOTHING, seed: int = 1) -> list[Any]:
    """The trials of a scenario with the overrides, in order, without duplicates.

    seed: of the run. Raises UsageError.
    """
    requested = apply(scenario, overrides, taken)
    check_count(requested.count, taken.trials, overrides.many)
    return grammar.trials_of(requested.sweeps, requested.name, seed)
