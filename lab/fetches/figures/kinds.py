"""The kinds of figures: how each is checked when a scenario is read, and made of a run.

A new kind is a line of FIGURES.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lab.core.errors import UsageError
from lab.core.findings.findings import Finding
from lab.core.scenario import published, schema
from lab.fetches.figures import bars, grid, steps, timelines
from lab.fetches.figures import panels as of_records
from lab.fetches.figures.buckets import NoPanel, Panel
from lab.fetches.figures.figure import Analysis, Made
from lab.fetches.scenario.reading import there
from lab.fetches.scenario.scenario import OF_BARS, OF_TRIALS, JOINT, Axis, Figure, Scenario
from lab.fetches.scenario.sweep import SWEPT, Sweep, Value
from lab.fetches.verify.record import Record

ANY = "any"


@dataclass(frozen=True)
class FigureKind:
    """check: raises UsageError where a figure does not go with its scenario; (…, where).

    make: of a run; None where it shows nothing, raises NoPanel where it cannot be.
    claims: which may be about it; by: its quantity, ANY, or "" for none; rows: of its bars, by
    what is measured on a sweep; has_down: whether it may have a second quantity; is_of_pairs:
    whether it compares two windows, and no more; is_answer: its sentence answers by itself.
    """

    check: Callable[[Scenario, Figure, str], None]
    make: Callable[[Analysis, Figure], Made | None]
    claims: tuple[str, ...] = ()
    by: str = ANY
    rows: Callable[[Scenario, Figure, Sequence[Record]], Panel] | None = None
    has_down: bool = False
    is_of_pairs: bool = False
    is_answer: bool = False


# What goes with what -----------------------------------------------------------------

def check(scenario: Scenario, where: str) -> None:
    """Raises UsageError where a figure or a claim needs what the scenario does not have."""
    for figure in scenario.figures:
        _check_figure(scenario, figure, f'{where}: [[figure]] "{figure.name}"')
    figures = {figure.name: figure for figure in scenario.figures}
    for claim in scenario.claims:
        place = f'{where}: [[claim]] "{claim.says}"'
        figure = figures[schema.one_of(claim.figure, list(figures), f"{place}: figure")]
        if (OF_TRIALS if claim.is_of_trials else OF_BARS) != FIGURES[figure.kind].claims:
            raise UsageError(f"{place}: figure: {', '.join(OF_BARS)} are of bars, and"
                             f" {' and '.join(OF_TRIALS)} of steps and levels; {figure.name!r} is"
                             f" of kind {figure.kind!r}")
        for label in (*claim.larger, *claim.equal):
            schema.one_of(label, _labels(scenario, figure), f"{place}: bar")


def _check_figure(scenario: Scenario, figure: Figure, where: str) -> None:
    kind = FIGURES[schema.one_of(figure.kind, list(FIGURES), f"{where}: kind")]
    _check_quantities(figure, kind, where)
    owner = scenario.owner(figure)
    if owner is not None:
        _check_windows(figure, owner.windows(figure.sweep), f"{where}: {figure.sweep!r}")
        owner.check_figure(figure, where)
    else:
        schema.one_of(figure.sweep, [sweep.name for sweep in scenario.sweeps], f"{where}: sweep")
        _check_windows(figure, scenario.sweep(figure.sweep).initcwnd,
                       f"{where}: sweep {figure.sweep!r}")
        kind.check(scenario, figure, where)
    if figure.published:
        known = there(f"{where}: published",
                      lambda: published.buckets(figure.published, figure.panel))
        labels = _labels(scenario, figure)
        if not set(labels) & set(known):
            raise UsageError(f"{where}: published: of none of its bars, {', '.join(labels)}; the"
                             f" file has {', '.join(known)}")


def _check_quantities(figure: Figure, kind: FigureKind, where: str) -> None:
    """Whether it has those that its kind takes."""
    if kind.by and not figure.by:
        raise UsageError(f"{where}: by is missing")
    if figure.down and (not kind.has_down or figure.down == figure.by):
        *others, last = (f'"{name}"' for name, each in FIGURES.items() if each.has_down)
        raise UsageError(f"{where}: down is a quantity of a figure of kind {', '.join(others)} or"
                         f" {last}, another one than by")
    if kind.by not in ("", ANY, figure.by):
        raise UsageError(f'{where}: a figure of kind "{figure.kind}" has by = "{kind.by}"')
    if figure.is_of_windows and kind.by != figure.by:
        of_windows = next(name for name, each in FIGURES.items() if each.by == figure.by)
        raise UsageError(f'{where}: by = "{figure.by}" needs kind = "{of_windows}"')
    if kind.is_of_pairs and not figure.experiment_initcwnd:
        raise UsageError(f"{where}: experiment_initcwnd is missing")
    if figure.weights and figure.weights == figure.by:
        raise UsageError(f"{where}: weights: has to be another axis than by")


def _labels(scenario: Scenario, figure: Figure) -> Sequence[str]:
    """Of the bars of a figure; whose trials a feature drew has those that are published."""
    owner = scenario.owner(figure)
    return scenario.axis_of(figure).labels if owner is None else owner.labels(figure)


def _check_windows(figure: Figure, windows: Iterable[int], where: str) -> None:
    for initcwnd in (figure.baseline_initcwnd, figure.experiment_initcwnd):
        if initcwnd and initcwnd not in windows:
            raise UsageError(f"{where} has no initcwnd {initcwnd}")


# The checks of each kind -------------------------------------------------------------

def _kept(scenario: Scenario, figure: Figure, where: str) -> None:
    """Whatever captures a run keeps are shown."""


def _drawn(scenario: Scenario, figure: Figure, where: str) -> None:
    raise UsageError(f'{where}: a figure of kind "{figure.kind}" is of a [[population]]')


def _one_network(scenario: Scenario, figure: Figure, where: str) -> None:
    sweep = scenario.sweep(figure.sweep)
    if sweep.cell_count > 1 or figure.weights:
        raise UsageError(f"{where}: compares windows in one network; sweep {sweep.name!r} has"
                         f" {sweep.cell_count}")


def _swept(scenario: Scenario, figure: Figure, where: str) -> None:
    for by in filter(None, (figure.by, figure.down)):
        schema.one_of(by, SWEPT, f"{where}: by")


def _swept_down(scenario: Scenario, figure: Figure, where: str) -> None:
    if not figure.down:
        raise UsageError(f"{where}: down is missing")
    _swept(scenario, figure, where)


def _swept_buckets(scenario: Scenario, figure: Figure, where: str) -> None:
    _swept(scenario, figure, where)
    _buckets(scenario, figure, where)


def _points(scenario: Scenario, figure: Figure, where: str) -> None:
    """Each value of `by`, with each of `down` if there is one, is one cell."""
    _swept(scenario, figure, where)
    points = scenario.sweep(figure.sweep).counted(*filter(None, (figure.by, figure.down)))
    if max(points.values()) > 1:
        raise UsageError(f"{where}: several cells have one {figure.by}: say by which other quantity"
                         " they differ (down), or ask for one of them")


def _numbers(scenario: Scenario, figure: Figure, where: str) -> None:
    """The same, over numbers."""
    _swept(scenario, figure, where)
    if any(isinstance(value, str) for value, in
           scenario.sweep(figure.sweep).counted(figure.by)):
        raise UsageError(f'{where}: by: a figure of kind "{figure.kind}" is over numbers')
    _points(scenario, figure, where)


def _buckets(scenario: Scenario, figure: Figure, where: str) -> None:
    """Each value of the sweep has its bucket, and one cell each unless they are weighted."""
    if figure.weights == JOINT:
        _joint(scenario, figure, where)
        return
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


def _joint(scenario: Scenario, figure: Figure, where: str) -> None:
    """Weights from the joint distribution: RTT and bandwidth have axes, and BDP the buckets."""
    if figure.by != "bdp_bytes":
        raise UsageError(f'{where}: weights = "{JOINT}" needs by = "bdp_bytes"')
    sweep = scenario.sweep(figure.sweep)
    for by in published.SHARES_PANELS:
        axis = scenario.axis(by)
        if axis is None:
            raise UsageError(f'{where}: there is no [[axis]] with by = "{by}"')
        if by != "bdp_bytes":
            _same_values(axis.values, sweep, by, where)
    if sweep.cell_count > len(sweep.networks):
        raise UsageError(f'{where}: weights = "{JOINT}" takes one response size and loss rate')
    for by in published.SHARES_PANELS:
        axis, known = scenario.axis(by), tuple(published.shares(by))
        if axis and axis.labels != known:
            raise UsageError(f"{where}: the axis of {by} has the buckets {', '.join(axis.labels)};"
                             f" the joint distribution has {', '.join(known)}")


def _same_values(axis: Iterable[Value], sweep: Sweep, by: str, where: str) -> None:
    odd = sorted({*axis} ^ {value for value, in sweep.counted(by)}, key=str)
    if odd:
        raise UsageError(f"{where}: {by}: the axis and sweep {sweep.name!r} differ in"
                         f" {', '.join(Axis('', tuple(odd)).labels)}")


# The table ---------------------------------------------------------------------------

FIGURES = {
    "improvement": FigureKind(_buckets, bars.bars, OF_BARS, rows=of_records.improvement,
                              is_of_pairs=True),
    "loss": FigureKind(_buckets, bars.bars, OF_BARS, "loss_percent", rows=of_records.loss,
                       is_of_pairs=True),
    "window_sweep": FigureKind(_one_network, bars.bars, OF_BARS, "initcwnd",
                               rows=of_records.window_sweep),
    "percentiles": FigureKind(_drawn, bars.bars, OF_BARS, "percentile", is_of_pairs=True),
    "groups": FigureKind(_swept_buckets, grid.groups),
    "map": FigureKind(_swept, grid.improvements, has_down=True),
    "packets": FigureKind(_kept, timelines.packets, by=""),
    "steps": FigureKind(_numbers, steps.steps, OF_TRIALS, has_down=True),
    "levels": FigureKind(_points, steps.levels, OF_TRIALS, has_down=True),
    "window_map": FigureKind(_swept_down, grid.sufficient_windows, has_down=True,
                             is_answer=True)}


def panels(scenario: Scenario,
           records: Sequence[Record]) -> tuple[dict[str, Panel], dict[str, str]]:
    """The rows of each figure of bars by its name, and why the others have none."""
    made: dict[str, Panel] = {}
    missing: dict[str, str] = {}
    for part in scenario.parts:
        if own := [figure for figure in scenario.figures if part.owns(figure.sweep)]:
            of_part, lacking = part.panels(own, records)
            made |= of_part
            missing |= lacking
    for figure in scenario.figures:
        rows = FIGURES[figure.kind].rows
        if rows is None or scenario.owner(figure) is not None:
            continue
        try:
            made[figure.name] = rows(scenario, figure, records)
        except NoPanel as error:
            missing[figure.name] = str(error)
    return made, missing


def figures(analysis: Analysis) -> list[tuple[Figure, Made]]:
    """What is made of a run, with the reason where a figure cannot be.

    A part of a scenario lacks the figures that it does not cover. Raises FirstFlightError where
    a file of paper/ is missing or wrong.
    """
    found = [(figure, _made(analysis, figure)) for figure in analysis.scenario.figures]
    return [(figure, each) for figure, each in found
            if each is not None and (analysis.is_whole or not each.finding.missing)]


def _made(analysis: Analysis, figure: Figure) -> Made | None:
    try:
        return FIGURES[figure.kind].make(analysis, figure)
    except NoPanel as error:
        return Made(Finding(figure.name, figure.title, missing=str(error)))


def tells_all(figure: Figure, drawn: Mapping[str, Panel]) -> bool:
    """Whether a figure says all that was measured, so that no table of cells has to.

    drawn: the rows of the figures of bars that have some.
    """
    kind = FIGURES[figure.kind]
    return kind.claims == OF_TRIALS or kind.claims == OF_BARS and figure.name in drawn
