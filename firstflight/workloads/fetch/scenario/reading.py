"""Reads scenario files of kind fetches. workloads.fetch.scenario.figures checks their figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from firstflight.base.errors import UsageError
from firstflight.runs import schema
from firstflight.runs.scenario_file import (HEAD_KEYS, OWN_SERVER, ScenarioFile, check_count,
                                            sample_suffix)
from firstflight.scenario import claims, grammar, published
from firstflight.setting.server import OwnServer
from firstflight.workloads.fetch.scenario import causes, population
from firstflight.workloads.fetch.scenario.population import Populations
from firstflight.workloads.fetch.scenario.scenario import (Axis, Claim, Defect, Figure, Raw,
                                                           Scenario, read_published)
from firstflight.workloads.fetch.scenario.sweep import Sweep, Template
from firstflight.workloads.fetch.scenario.users import UserSample

_KEYS = (*HEAD_KEYS, OWN_SERVER, "defaults", "sweep", "axis", "figure", "claim", "cells",
         "one_in", "users", "population", "step", "raw", "as_published", "cause")
_OF_ONE_SWEEP = ("name", "rtt_ms", "bandwidth_kbps", "pairs")  # keys that [defaults] cannot have


def read_scenario(file: ScenarioFile) -> Scenario:
    """The scenario of a file. Raises UsageError."""
    where = file.where
    schema.known_keys(file.raw, _KEYS, where)
    raw = causes.merged(file.raw, where)

    defaults = grammar.read_defaults(Sweep, raw, where, without=_OF_ONE_SWEEP)
    figures = tuple(grammar.read_figures(Figure, raw, where).values())
    one_in = schema.number("one_in")(raw.get("one_in", 1), f"{where}: one_in")
    sweeps = _sweeps(raw, defaults, one_in, where)

    scenario = Scenario(
        head=file.head(), sweeps=sweeps,
        axes=schema.read_tables(Axis, raw, "axis", where, called="by"),
        figures=figures, claims=tuple(claims.read_claims(Claim, raw, figures, where).values()),
        cells=schema.flag(raw.get("cells", False), f"{where}: cells"),
        users=_users(raw, defaults, where),
        drawn=_populations(file.name, raw, defaults, one_in, where),
        raw=_raw(raw, where), as_published=causes.read_causes(raw, sweeps, where))
    _check(scenario, where)
    return scenario


def _sweeps(raw: Mapping[str, object], defaults: Mapping[str, object], one_in: int,
            where: str) -> tuple[Sweep, ...]:
    """The [[sweep]]s, each with one in `one_in` of its networks. Raises UsageError."""
    own_server = ""
    if OWN_SERVER in raw:
        table = schema.table(raw, OWN_SERVER, where)
        own_server = schema.read(OwnServer, table, f"{where}: [{OWN_SERVER}]").text
    sweeps: tuple[Sweep, ...] = schema.read_tables(
        Sweep, raw, "sweep", where, defaults=defaults, own_server=own_server)

    if one_in > 1 and not sweeps and "population" not in raw:
        raise UsageError(f"{where}: one_in: it needs a grid of networks, or clients of a"
                         " [[population]], and there are none")
    if one_in > 1:
        sweeps = tuple(sweep.coarse(one_in, f"{where}: one_in: sweep {sweep.name!r}")
                       for sweep in sweeps)
    check_count(sum(sweep.count for sweep in sweeps), f"trials of {where}", many=True)
    return sweeps


def _users(raw: Mapping[str, object], defaults: Mapping[str, object], where: str
           ) -> UserSample | None:
    """The sample of [users], None without one. Raises UsageError."""
    if "users" not in raw:
        return None
    return schema.read(UserSample, schema.table(raw, "users", where), f"{where}: [users]",
                       template=_template(defaults, where))


def _populations(name: str, raw: Mapping[str, object], defaults: Mapping[str, object],
                 one_in: int, where: str) -> Populations | None:
    """The [[population]]s with their [[step]]s, of one in `one_in` clients; None without any.

    name: the scenario's. A sample of a scenario reads the table of the whole scenario
    (ScenarioFile.sampled). Raises UsageError.
    """
    populations = schema.read_tables(population.Population, raw, "population", where)
    steps = schema.read_tables(population.Cause, raw, "step", where)
    if not populations:
        return None
    return Populations(name, populations, steps, _template(defaults, where),
                       table=name.removesuffix(sample_suffix(one_in)), one_in=one_in)


def _template(defaults: Mapping[str, object], where: str) -> Template:
    """The parameters that all drawn trials share. Raises UsageError."""
    return schema.read(Template, defaults, f"{where}: [defaults]")


def _raw(raw: Mapping[str, object], where: str) -> Raw | None:
    """The table [raw] with its [[defect]]s, None without one. Raises UsageError."""
    if "raw" not in raw:
        return None
    table = schema.table(raw, "raw", where)
    where_raw = f"{where}: [raw]"
    defects = schema.read_tables(Defect, table, "defect", where_raw, called="mark")
    return schema.read(Raw, table, where_raw, defects=defects)


# Checks of a scenario --------------------------------------------------------------

def _check(scenario: Scenario, where: str) -> None:
    """Check that each table has what it needs from other tables. Raises UsageError."""
    if not (scenario.sweeps or scenario.drawn or scenario.users):
        raise UsageError(f"{where}: has no [[sweep]], no [[population]] and no [users], so nothing"
                         " to measure")
    if scenario.drawn is not None:
        scenario.drawn.check_causes(where)
    if scenario.raw is not None:
        _check_raw(scenario, scenario.raw, f"{where}: [raw]")
    _check_images(scenario, where)


def _check_raw(scenario: Scenario, raw: Raw, where: str) -> None:
    """Check the sweep, the file and the defects of [raw]. Raises UsageError."""
    schema.one_of(raw.sweep, [sweep.name for sweep in scenario.sweeps], f"{where}: sweep")
    read_published(f"{where}: file", lambda: published.fetches(raw.file))
    for defect in raw.defects:
        schema.one_of(defect.by, ("rtt_ms", "bandwidth_kbps", "initcwnd", "bdp_bytes"),
                      f"{where}: [[defect]]: by")


def _check_images(scenario: Scenario, where: str) -> None:
    """Check that no two figures have one file name. Raises UsageError."""
    names: Counter[str] = Counter()
    for figure in scenario.figures:
        names.update([figure.name, *(f"{figure.name}_{also}" for also in figure.also)])
    for name, count in names.items():
        if count > 1:
            raise UsageError(f"{where}: [[figure]]: two would be drawn as {name!r}")
