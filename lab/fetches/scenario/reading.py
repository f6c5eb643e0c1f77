"""Reads scenario files of kind fetches, and checks what goes with what in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from lab.core.errors import UsageError
from lab.core.scenario import published, schema
from lab.core.scenario.scenario_file import HEAD_KEYS, OWN_SERVER, ScenarioFile, check_count
from lab.fetches import features
from lab.fetches.scenario.claim import OF_BARS, OF_TRIALS, Claim
from lab.fetches.scenario.feature import Tables
from lab.fetches.scenario.own_server import OwnServer
from lab.fetches.scenario.scenario import (GROUPS, JOINT, JOINT_FILE, JOINT_PANELS, LEVELS, MAP,
                                           PACKETS, STEPS, WINDOW_MAP, WINDOW_SWEEP,
                                           WITHOUT_BUCKETS, Axis, Defect, Figure, Raw, Scenario)
from lab.fetches.scenario.sweep import SWEPT, Sweep, Value

_KEYS = (*HEAD_KEYS, OWN_SERVER, "defaults", "sweep", "axis", "figure", "claim", "raw",
         "cells", "one_in")
_DEFAULT_KEYS = tuple(name for name in schema.keys_of(Sweep)
                      if name not in ("name", "rtt_ms", "bandwidth_kbps", "pairs"))
T = TypeVar("T")


def read(file: ScenarioFile) -> Scenario:
    """The scenario of a file. Raises UsageError."""
    where = file.where
    known = features.registered()
    schema.known_keys(file.raw, (*_KEYS, *(name for each in known for name in each.tables)), where)
    raw: Mapping[str, Any] = file.raw
    for feature in known:
        raw = feature.merged(raw, where)
    defaults = schema.table(raw, "defaults", where)
    schema.known_keys(defaults, _DEFAULT_KEYS, f"{where}: [defaults]")
    sweeps = _sweeps(raw, defaults, where)
    tables = Tables(file.name, where, raw, defaults, sweeps)
    scenario = Scenario(
        head=file.head(), sweeps=sweeps,
        axes=schema.read_tables(Axis, raw, "axis", where, called="by"),
        figures=schema.read_tables(Figure, raw, "figure", where),
        claims=schema.read_tables(Claim, raw, "claim", where, called="says"),
        raw=_raw(raw, where), cells=schema.flag(raw.get("cells", False), f"{where}: cells"),
        parts=tuple(part for each in known if (part := each.read(tables)) is not None))
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


def _raw(raw: Mapping[str, Any], where: str) -> Raw | None:
    if "raw" not in raw:
        return None
    table, where = schema.table(raw, "raw", where), f"{where}: [raw]"
    return schema.read(Raw, table, where, defects=schema.read_tables(
        Defect, table, "defect", where, called="mark"))


# What goes with what ---------------------------------------------------------------

def _check(scenario: Scenario, where: str) -> None:
    """Raises UsageError where one table names or needs what another does not have."""
    if not (scenario.sweeps or any(part.has_trials for part in scenario.parts)):
        raise UsageError(f"{where}: has no [[sweep]], no [[population]] and no [users], so nothing"
                         " to measure")
    for part in scenario.parts:
        part.check(scenario, where)
    for figure in scenario.figures:
        _check_figure(scenario, figure, f'{where}: [[figure]] "{figure.name}"')
    figures = {figure.name: figure for figure in scenario.figures}
    for claim in scenario.claims:
        place = f'{where}: [[claim]] "{claim.says}"'
        figure = figures[schema.one_of(claim.figure, list(figures), f"{place}: figure")]
        if figure.kind in WITHOUT_BUCKETS if not claim.is_of_trials else (
                figure.kind not in (STEPS, LEVELS)):
            raise UsageError(f"{place}: figure: {', '.join(OF_BARS)} are of bars, and"
                             f" {' and '.join(OF_TRIALS)} of steps and levels; {figure.name!r} is"
                             f" of kind {figure.kind!r}")
        for label in (*claim.larger, *claim.equal):
            schema.one_of(label, _labels(scenario, figure), f"{place}: bar")
    if scenario.raw is not None:
        schema.one_of(scenario.raw.sweep, [sweep.name for sweep in scenario.sweeps],
                      f"{where}: [raw]: sweep")
        _check_raw(scenario.raw, f"{where}: [raw]")
    _check_images(scenario, where)


def _check_raw(raw: Raw, where: str) -> None:
    """The file is there, and its defects are of what it has."""
    there(f"{where}: file", lambda: published.fetches(raw.file))
    for defect in raw.defects:
        schema.one_of(defect.by, ("rtt_ms", "bandwidth_kbps", "initcwnd", "bdp_bytes"),
                      f"{where}: [[defect]]: by")


def _check_images(scenario: Scenario, where: str) -> None:
    """No two figures are drawn into one file."""
    drawn = Counter(name for figure in scenario.figures for name in
                    (figure.name, *(f"{figure.name}_{also}" for also in figure.also)))
    for name, count in drawn.items():
        if count > 1:
            raise UsageError(f"{where}: [[figure]]: two would be drawn as {name!r}")


def _check_published(scenario: Scenario, figure: Figure, where: str) -> None:
    """What is published of a figure is there, and of some of its bars."""
    if not figure.published:
        return
    bars = there(f"{where}: published", lambda: published.buckets(figure.published, figure.panel))
    labels = _labels(scenario, figure)
    if not set(labels) & set(bars):
        raise UsageError(f"{where}: published: of none of its bars, {', '.join(labels)}; the file"
                         f" has {', '.join(bars)}")


def _labels(scenario: Scenario, figure: Figure) -> Sequence[str]:
    """Of the bars of a figure; a population has those that are published."""
    owner = scenario.owner(figure)
    return scenario.axis_of(figure).labels if owner is None else owner.labels(figure)


def there(where: str, read: Callable[[], T]) -> T:
    """What a file of paper/ holds. Raises UsageError that also names who asks for it."""
    try:
        return read()
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error


def _check_figure(scenario: Scenario, figure: Figure, where: str) -> None:
    owner = scenario.owner(figure)
    if owner is not None:
        _check_windows(figure, owner.windows(figure.sweep), f"{where}: {figure.sweep!r}")
        owner.check_figure(figure, where)
        _check_published(scenario, figure, where)
        return
    schema.one_of(figure.sweep, [sweep.name for sweep in scenario.sweeps], f"{where}: sweep")
    sweep = scenario.sweep(figure.sweep)
    _check_windows(figure, sweep.initcwnd, f"{where}: sweep {sweep.name!r}")
    if figure.kind in (GROUPS, MAP, WINDOW_MAP):
        for by in filter(None, (figure.by, figure.down)):
            schema.one_of(by, SWEPT, f"{where}: by")
        if figure.kind == GROUPS:
            _check_buckets(scenario, figure, where)
    elif figure.kind in (STEPS, LEVELS):
        _check_lines(figure, sweep, where)
    elif figure.kind == WINDOW_SWEEP:
        if sweep.cell_count > 1 or figure.weights:
            raise UsageError(f"{where}: compares windows in one network; sweep {sweep.name!r}"
                             f" has {sweep.cell_count}")
    elif figure.weights == JOINT:
        _check_joint(scenario, figure, where)
    elif figure.kind != PACKETS:
        _check_buckets(scenario, figure, where)
    _check_published(scenario, figure, where)


def _check_lines(figure: Figure, sweep: Sweep, where: str) -> None:
    """Each value of `by`, with each of `down` if there is one, is one cell."""
    for by in filter(None, (figure.by, figure.down)):
        schema.one_of(by, SWEPT, f"{where}: by")
    points = sweep.counted(*filter(None, (figure.by, figure.down)))
    if figure.kind == STEPS and any(isinstance(value, str) for value, *_ in points):
        raise UsageError(f'{where}: by: a figure of kind "{STEPS}" is over numbers')
    if max(points.values()) > 1:
        raise UsageError(f"{where}: several cells have one {figure.by}: say by which other quantity"
                         " they differ (down), or ask for one of them")


def _check_windows(figure: Figure, windows: Iterable[int], where: str) -> None:
    for initcwnd in (figure.baseline_initcwnd, figure.experiment_initcwnd):
        if initcwnd not in windows:
            raise UsageError(f"{where} has no initcwnd {initcwnd}")


def _check_buckets(scenario: Scenario, figure: Figure, where: str) -> None:
    """Each value of the sweep has its bucket, and one cell each unless they are weighted."""
    sweep = scenario.sweep(figure.sweep)
    counts = sweep.counted(figure.by)
    _same_values(scenario.axis_of(figure).values, sweep, figure.by, where)
    if not figure.weights:
        if max(counts.values()) > 1:
            raise UsageError(f"{where}: several cells fall in one bucket of {figure.by};"
                             " say by which axis they are weighted")
        return
    weights = scenario.axis(figure.weights)
    if weights is None or not weights.shares_percent:
        raise UsageError(f"{where}: weights: there is no [[axis]] with"
                         f' by = "{figure.weights}" and shares_percent')
    _same_values(weights.values, sweep, figure.weights, where)


def _check_joint(scenario: Scenario, figure: Figure, where: str) -> None:
    """Weights from the joint distribution: RTT and bandwidth have axes, and BDP the buckets."""
    if figure.by != "bdp_bytes":
        raise UsageError(f'{where}: weights = "{JOINT}" needs by = "bdp_bytes"')
    sweep = scenario.sweep(figure.sweep)
    for by, panel in JOINT_PANELS.items():
        axis = scenario.axis(by)
        if axis is None:
            raise UsageError(f'{where}: there is no [[axis]] with by = "{by}"')
        if by != "bdp_bytes":
            _same_values(axis.values, sweep, by, where)
    if sweep.cell_count > len(sweep.networks):
        raise UsageError(f'{where}: weights = "{JOINT}" takes one response size and loss rate')
    for by, panel in JOINT_PANELS.items():
        axis, known = scenario.axis(by), tuple(published.buckets(JOINT_FILE, panel))
        if axis and axis.labels != known:
            raise UsageError(f"{where}: the axis of {by} has the buckets {', '.join(axis.labels)};"
                             f" the joint distribution has {', '.join(known)}")


def _same_values(axis: Iterable[Value], sweep: Sweep, by: str, where: str) -> None:
    odd = sorted({*axis} ^ {value for value, in sweep.counted(by)}, key=str)
    if odd:
        raise UsageError(f"{where}: {by}: the axis and sweep {sweep.name!r} differ in"
                         f" {', '.join(Axis('', tuple(odd)).labels)}")
