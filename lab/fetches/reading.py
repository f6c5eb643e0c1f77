"""Reads scenario files of kind fetches; lab.fetches.figures.kinds checks their figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from lab.core.errors import UsageError
from lab.core.scenario import schema
from lab.core.scenario.scenario_file import HEAD_KEYS, OWN_SERVER, ScenarioFile, check_count
from lab.fetches.features.population.part import read_drawn
from lab.fetches.features.raw.part import read_raw
from lab.fetches.features.replication import causes
from lab.fetches.features.replication.part import read_explained
from lab.fetches.features.users.part import read_sampled
from lab.fetches.scenario.part import Tables
from lab.fetches.scenario.scenario import Axis, Claim, Figure, Scenario
from lab.fetches.scenario.server import OwnServer
from lab.fetches.scenario.sweep import Sweep

_KEYS = (*HEAD_KEYS, OWN_SERVER, "defaults", "sweep", "axis", "figure", "claim", "cells",
         "one_in", "users", "population", "step", "raw", "as_published", "cause")
_DEFAULT_KEYS = tuple(name for name in schema.keys_of(Sweep)
                      if name not in ("name", "rtt_ms", "bandwidth_kbps", "pairs"))


def read(file: ScenarioFile) -> Scenario:
    """The scenario of a file. Raises UsageError."""
    where = file.where
    schema.known_keys(file.raw, _KEYS, where)
    raw = causes.merged(file.raw, where)
    defaults = schema.table(raw, "defaults", where)
    schema.known_keys(defaults, _DEFAULT_KEYS, f"{where}: [defaults]")
    sweeps = _sweeps(raw, defaults, where)
    tables = Tables(file.name, where, raw, defaults, sweeps)
    scenario = Scenario(
        head=file.head(), sweeps=sweeps,
        axes=schema.read_tables(Axis, raw, "axis", where, called="by"),
        figures=schema.read_tables(Figure, raw, "figure", where),
        claims=schema.read_tables(Claim, raw, "claim", where, called="says"),
        cells=schema.flag(raw.get("cells", False), f"{where}: cells"),
        parts=tuple(part for read_part in (read_sampled, read_drawn, read_raw, read_explained)
                    if (part := read_part(tables)) is not None))
    _check(scenario, where)
    return scenario


def _sweeps(raw: Mapping[str, Any], defaults: Mapping[str, Any],
            where: str) -> tuple[Sweep, ...]:
    """The sweeps, or of each a coarse grid, about one in `one_in` of its cells."""
    own = _own_server(raw, where)
    sweeps: tuple[Sweep, ...] = schema.read_tables(
        Sweep, raw, "sweep", where, defaults=defaults, own_server=own.text if own else "")
    one_in = schema.number("one_in")(raw.get("one_in", 1), f"{where}: one_in")
    if one_in > 1 and not sweeps:
        raise UsageError(f"{where}: one_in: it has no grid of networks to leave out of")
    if one_in > 1:
        sweeps = tuple(sweep.coarse(one_in, f"{where}: one_in: sweep {sweep.name!r}")
                       for sweep in sweeps)
    check_count(sum(sweep.count for sweep in sweeps), f"trials of {where}", many=True)
    return sweeps


def _own_server(raw: Mapping[str, Any], where: str) -> OwnServer | None:
    if OWN_SERVER not in raw:
        return None
    return schema.read(OwnServer, schema.table(raw, OWN_SERVER, where), f"{where}: [{OWN_SERVER}]")


# What goes with what ---------------------------------------------------------------

def _check(scenario: Scenario, where: str) -> None:
    """Raises UsageError where one table names or needs what another does not have."""
    if not (scenario.sweeps or any(part.has_trials for part in scenario.parts)):
        raise UsageError(f"{where}: has no [[sweep]], no [[population]] and no [users], so nothing"
                         " to measure")
    for part in scenario.parts:
        part.check(scenario, where)
    _check_images(scenario, where)


def _check_images(scenario: Scenario, where: str) -> None:
    """No two figures are drawn into one file."""
    drawn = Counter(name for figure in scenario.figures for name in
                    (figure.name, *(f"{figure.name}_{also}" for also in figure.also)))
    for name, count in drawn.items():
        if count > 1:
            raise UsageError(f"{where}: [[figure]]: two would be drawn as {name!r}")
