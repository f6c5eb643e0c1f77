"""What the command line requests of a scenario: its values in place of the file's, and the trials.

Each workload says which flags it takes (Taken); a sweep replaces its own lists (SettingSweep).
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
    """The flags that a kind of scenario takes.

    kind: its name in files. trials: what its trials are called. names: of the parameters, and of
    other flags, as in Overrides.given. reasons: why not another flag, by its name or its
    parameter's subject; otherwise: why not any other, "" for no reason. of_one_value: names that
    take one value; why_one: the reason. table: the name of a sweep's table in messages, "" for
    the scenario's name alone.
    """

    kind: str
    trials: str
    names: Collection[str]
    reasons: Mapping[str, str] = field(default_factory=dict)
    otherwise: str = ""
    of_one_value: Collection[str] = ()
    why_one: str = ""
    table: str = "sweep"

    def refuse_others(self, scenario: str, overrides: Overrides) -> None:
        """Raises UsageError where a flag means nothing to such a scenario, with the reason."""
        for name, flag in overrides.given.items():
            if name in self.names:
                continue
            subject = PARAMETERS[name].subject if name in PARAMETERS else name
            why = self.reasons.get(name) or self.reasons.get(subject, self.otherwise)
            raise UsageError(f"{scenario}: {flag} does not go with a scenario of kind"
                             f' "{self.kind}"{f": {why}" if why else ""}')

    def refuse_several(self, lists: Lists) -> None:
        """Raises UsageError where a flag has several values and takes one."""
        for name in self.of_one_value:
            if len(lists.get(name, ())) > 1:
                raise UsageError(f'{FLAGS[name].flag}: a scenario of kind "{self.kind}" takes one'
                                 f" value: {self.why_one}")

    def place(self, scenario: str, sweep: str) -> str:
        """How messages name a sweep of a scenario."""
        return schema.place_of(scenario, self.table, sweep) if self.table else scenario


def apply(scenario: Sc, overrides: Overrides, taken: Taken, lists: Lists | None = None,
          **fields: object) -> Sc:
    """The scenario with the overrides in its sweeps. Raises UsageError.

    lists: in place of those of the overrides, where a workload has more. fields: further ones of
    each sweep.
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
