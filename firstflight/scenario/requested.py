"""What the command line requests of a scenario: its values in place of the file's, and the trials.

Each workload says which flags it takes (Taken); a sweep replaces its own lists (SettingSweep).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from firstflight.base.errors import UsageError
from firstflight.parameters import PARAMETERS
from firstflight.runs import schema
from firstflight.runs.kinds import Overrides
from firstflight.runs.scenario_file import check_count
from firstflight.scenario import grammar
from firstflight.scenario.setting_sweep import SettingSweep

Sc = TypeVar("Sc", bound=grammar.Scenario[Any, Any, Any])
Sw = TypeVar("Sw", bound=SettingSweep[Any])


@dataclass(frozen=True)
class Taken:
    """The flags that a kind of scenario takes.

    kind: its name in files. names: of the parameters, and of other flags, as in Overrides.given.
    reasons: why not another flag, by its name or its parameter's subject. otherwise: why not any
    other; "" for no reason. table: the name of a sweep's table.
    """

    kind: str
    names: Collection[str]
    reasons: Mapping[str, str] = field(default_factory=dict)
    otherwise: str = ""
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


def apply(scenario: Sc, overrides: Overrides, taken: Taken) -> Sc:
    """The scenario with the overrides in its sweeps. Raises UsageError."""
    taken.refuse_others(scenario.name, overrides)
    lists, repeats = overrides.checked(), repeats_of(overrides)
    sweeps = []
    for sweep in scenario.sweeps:
        changed = replace(sweep.overridden(lists), **repeats)
        changed.check_requested(schema.place_of(scenario.name, taken.table, sweep.name))
        sweeps.append(changed)
    return replace(scenario, sweeps=tuple(sweeps))


def repeats_of(overrides: Overrides) -> dict[str, int | None]:
    """The fields of a sweep that --repeat replaces; {} without it. Raises UsageError."""
    if overrides.repeat is None:
        return {}
    repeat = schema.number("repeat")(overrides.repeat, "--repeat")
    return {"repeat": repeat, "repeat_with_loss": None, "repeat_with_drops": None}


def expand(requested: grammar.Scenario[Any, Any, Any], overrides: Overrides, seed: int,
           what: str) -> list[Any]:
    """The trials of a scenario that has its overrides, in order, without duplicates.

    seed: of the run. what: such trials in words, for the message. Raises UsageError where they are
    too many.
    """
    check_count(requested.count, what, overrides.many)
    return grammar.trials_of(requested.sweeps, requested.name, seed)
