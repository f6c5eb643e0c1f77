"""The kinds of figures: how each is checked when a scenario is read, and made of a run.

A new kind is a line of FIGURES.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from firstflight.base.errors import UsageError
from firstflight.findings.findings import Finding
from firstflight.runs import schema
from firstflight.study.fetches.figures import bars, grid, panels as rows, recovery, steps, timelines
from firstflight.study.fetches.figures.bar_figure import BarFigure, NoPanel
from firstflight.study.fetches.figures.figure import ANY, Analysis, FigureKind, check_swept
from firstflight.study.fetches.scenario.population import percentile_of
from firstflight.study.fetches.scenario.scenario import (OF_BARS, OF_TRIALS, Figure, Scenario,
                                                         read_published)
from firstflight.study.fetches.verify.record import Record
from firstflight.study.scenario import published

_DRAWN_KINDS = ("improvement", "window_sweep", "percentiles")  # of drawn trials
_DRAWN_BY = ("rtt_ms", "bandwidth_kbps", "bdp_bytes", "response_segments")


# What goes with what -----------------------------------------------------------------

def check(scenario: Scenario, where: str) -> None:
    """Raises UsageError where a figure or a claim needs what the scenario does not have."""
    for figure in scenario.figures:
        _check_figure(scenario, figure, f'{where}: [[figure]] "{figure.name}"')
    figures = {figure.name: figure for figure in scenario.figures}
    for claim in scenario.claims:
        place = f'{where}: [[claim]] "{claim.says}"'
        figure = figures[claim.figure]
        if (OF_TRIALS if claim.is_of_trials else OF_BARS) != FIGURES[figure.kind].claims:
            raise UsageError(f"{place}: figure: {', '.join(OF_BARS)} apply to figures of bars, and"
                             f" {' and '.join(OF_TRIALS)} to figures of steps and levels;"
                             f" {figure.name!r} is of kind {figure.kind!r}")
        for label in (*claim.larger, *claim.most, *claim.equal):
            schema.one_of(label, _labels(scenario, figure), f"{place}: bar")
        if claim.most and set(claim.most) >= set(_labels(scenario, figure)):
            raise UsageError(f"{place}: most: names every bar, so that none is left to compare")


def _check_figure(scenario: Scenario, figure: Figure, where: str) -> None:
    kind = FIGURES[schema.one_of(figure.kind, list(FIGURES), f"{where}: kind")]
    _check_quantities(figure, kind, where)
    population = scenario.population(figure.sweep)
    if population is not None:
        _check_windows(figure, population.initcwnd, f"{where}: {figure.sweep!r}")
        _check_drawn_figure(figure, where)
    else:
        schema.one_of(figure.sweep, [sweep.name for sweep in scenario.sweeps], f"{where}: sweep")
        _check_windows(figure, scenario.sweep(figure.sweep).initcwnd,
                       f"{where}: sweep {figure.sweep!r}")
        if kind.check is None:
            raise UsageError(f'{where}: a figure of kind "{figure.kind}" needs a [[population]]')
        kind.check(scenario, figure, where)
    if figure.published:
        known = read_published(f"{where}: published",
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
        *others, last = [f'"{name}"' for name, other in FIGURES.items()
                         if other.has_down] or ["none"]
        raise UsageError(f"{where}: down is a quantity of a figure of kind {', '.join(others)} or"
                         f" {last}, another one than by")
    if kind.by not in ("", ANY, figure.by):
        raise UsageError(f'{where}: a figure of kind "{figure.kind}" has by = "{kind.by}"')
    if figure.is_of_windows and kind.by != figure.by:
        of_windows = next(name for name, other in FIGURES.items() if other.by == figure.by)
        raise UsageError(f'{where}: by = "{figure.by}" needs kind = "{of_windows}"')
    if kind.is_of_pairs and not figure.experiment_initcwnd:
        raise UsageError(f"{where}: experiment_initcwnd is missing")
    for name in figure.also:
        schema.one_of(name, list(bars.ALSO) if kind.claims == OF_BARS else [], f"{where}: also")
    if figure.weights and figure.weights == figure.by:
        raise UsageError(f"{where}: weights: has to be another axis than by")


def _labels(scenario: Scenario, figure: Figure) -> Sequence[str]:
    """The labels of a figure's bars; of a drawn population the published ones."""
    population = scenario.population(figure.sweep)
    if population is None:
        return scenario.axis_of(figure).labels
    if figure.is_of_windows:
        return list(map(str, population.initcwnd))
    return list(published.buckets(figure.published, figure.panel))


def _check_windows(figure: Figure, windows: Iterable[int], where: str) -> None:
    for initcwnd in (figure.baseline_initcwnd, figure.experiment_initcwnd):
        if initcwnd and initcwnd not in windows:
            raise UsageError(f"{where} has no initcwnd {initcwnd}")


def _check_groups(scenario: Scenario, figure: Figure, where: str) -> None:
    check_swept(scenario, figure, where)
    rows.check_buckets(scenario, figure, where)


def _check_window_map(scenario: Scenario, figure: Figure, where: str) -> None:
    if not figure.down:
        raise UsageError(f"{where}: down is missing")
    check_swept(scenario, figure, where)


def _check_points(scenario: Scenario, figure: Figure, where: str) -> None:
    """Each value of `by`, with each of `down` if there is one, is one cell."""
    check_swept(scenario, figure, where)
    points = scenario.sweep(figure.sweep).counted(*filter(None, (figure.by, figure.down)))
    if max(points.values()) > 1:
        raise UsageError(f"{where}: several cells have one {figure.by}: say by which other quantity"
                         " they differ (down), or ask for one of them")


def _check_numbers(scenario: Scenario, figure: Figure, where: str) -> None:
    """The same, over numbers."""
    check_swept(scenario, figure, where)
    if any(isinstance(value, str) for value, in
           scenario.sweep(figure.sweep).counted(figure.by)):
        raise UsageError(f'{where}: by: a figure of kind "{figure.kind}" is over numbers')
    _check_points(scenario, figure, where)


def _check_drawn_figure(figure: Figure, where: str) -> None:
    """Its bars are the published ones: named by upper ends, or percentiles."""
    schema.one_of(figure.kind, _DRAWN_KINDS, f"{where}: kind")
    if figure.is_of_windows:
        return
    if not figure.published:
        raise UsageError(f"{where}: published is missing: it says what the bars of a population"
                         " are")
    published_bars = read_published(f"{where}: published",
                                    lambda: published.buckets(figure.published, figure.panel))
    if figure.by == "percentile":
        for label in published_bars:
            percentile_of(label)
        return
    schema.one_of(figure.by, _DRAWN_BY, f"{where}: by")
    ends = [label.removeprefix(">") for label in published_bars]
    if not all(re.fullmatch(r"\d+(\.\d+)?", end) for end in ends) \
            or any(label.startswith(">") for label in list(published_bars)[:-1]):
        raise UsageError(f"{where}: published: bars are named by their upper ends, the last may"
                         f" be open as in \">5000\", not {', '.join(published_bars)}")


# The table ---------------------------------------------------------------------------

FIGURES: dict[str, FigureKind] = {
    "improvement": FigureKind(rows.check_buckets, bars.bars, OF_BARS, rows=rows.improvement,
                              is_of_pairs=True),
    "window_sweep": FigureKind(rows.check_one_network, bars.bars, OF_BARS, "initcwnd",
                               rows=rows.window_sweep),
    "loss": FigureKind(rows.check_buckets, bars.bars, OF_BARS, "loss_percent",
                       rows=recovery.panel_of_loss, is_of_pairs=True),
    "groups": FigureKind(_check_groups, grid.groups),
    "map": FigureKind(check_swept, grid.improvements, has_down=True),
    "window_map": FigureKind(_check_window_map, grid.sufficient_windows, has_down=True,
                             is_answer=True),
    "packets": FigureKind(lambda *_: None, timelines.packets, by=""),
    "steps": FigureKind(_check_numbers, steps.steps, OF_TRIALS, has_down=True),
    "levels": FigureKind(_check_points, steps.levels, OF_TRIALS, has_down=True),
    "percentiles": FigureKind(None, bars.bars, OF_BARS, "percentile", is_of_pairs=True)}


def panels(scenario: Scenario, records: Sequence[Record],
           is_whole: bool = True) -> tuple[dict[str, BarFigure], dict[str, str]]:
    """Each figure of bars by its name, not yet judged, and why the others have none.

    Of a part of a scenario a figure has the bars that were measured.
    """
    made: dict[str, BarFigure] = {}
    missing: dict[str, str] = {}
    drawn = [figure for figure in scenario.figures if scenario.population(figure.sweep)]
    if scenario.drawn is not None and drawn:
        from firstflight.study.fetches.figures import drawn_panels
        made, missing = drawn_panels.panels(scenario.drawn, drawn, records)
    for figure in scenario.figures:
        of_sweep = FIGURES[figure.kind].rows
        if of_sweep is None or figure in drawn:
            continue
        try:
            made[figure.name] = of_sweep(scenario, figure, records, is_whole)
        except NoPanel as error:
            missing[figure.name] = str(error)
    return made, missing


def under_measured_windows(scenario: Scenario, records: Sequence[Record],
                           is_whole: bool) -> Scenario:
    """The scenario with the windows that a run measured in the place of its own.

    A figure of two windows becomes one for each window that was measured, against the first:
    what was published stays with its own two, and so do claims.
    """
    measured = tuple(dict.fromkeys(record.trial.initcwnd for record in records))
    lists = [sweep.initcwnd for sweep in scenario.sweeps]
    if scenario.drawn is not None:
        lists += [population.initcwnd for population in scenario.drawn.populations]
    own = {window for windows in lists for window in windows}
    if not measured or own == {*measured} or is_whole and own > {*measured}:
        return scenario
    figures = [made for figure in scenario.figures for made in _under(figure, measured)]
    kept: dict[Figure, str] = {}  # by what they compare, those of their own windows first
    for figure in sorted(figures, key=lambda figure: figure.other_windows):
        kept.setdefault(replace(figure, name="", title="", published="", panel="", held_out=False,
                                other_windows=False), figure.name)
    return replace(
        scenario, figures=tuple(figure for figure in figures if figure.name in kept.values()),
        claims=tuple(claim for claim in scenario.claims if claim.figure in kept.values()),
        sweeps=tuple(replace(sweep, initcwnd=measured) for sweep in scenario.sweeps))


def _under(figure: Figure, measured: Sequence[int]) -> Iterator[Figure]:
    """A figure for each pair of windows, the first with another; or the one of all of them."""
    compared = figure.baseline_initcwnd, figure.experiment_initcwnd
    first, *others = measured
    if not FIGURES[figure.kind].is_of_pairs:
        yield figure if compared[0] in measured else replace(figure, baseline_initcwnd=first)
        return
    if {*compared} <= {*measured}:
        yield figure
    for other in others:
        if (first, other) != compared:
            named = {str(compared[0]): str(first), str(compared[1]): str(other)}
            yield replace(
                figure, name=f"{figure.name}_{first}_{other}", baseline_initcwnd=first,
                experiment_initcwnd=other, other_windows=True,
                title=re.sub(r"(?<=\bIW )\d+", lambda match: named.get(
                    str(match[0]), str(match[0])), figure.title))


def figures(analysis: Analysis) -> list[tuple[Figure, Sequence[Finding]]]:
    """The findings of each figure of a run, with the reason where one cannot be made.

    A part of a scenario lacks the figures that it does not cover. Raises FirstFlightError where
    a file of paper/ is missing or wrong.
    """
    every = [(figure, _make(analysis, figure)) for figure in analysis.scenario.figures]
    return [(figure, made) for figure, made in every
            if made and (analysis.is_whole or not made[0].missing)]


def _make(analysis: Analysis, figure: Figure) -> Sequence[Finding]:
    try:
        return FIGURES[figure.kind].make(analysis, figure)
    except NoPanel as error:
        return [Finding(figure.name, figure.title, missing=str(error))]


def shows_all(figure: Figure, drawn: Mapping[str, BarFigure]) -> bool:
    """Whether a figure shows all that was measured, so that no table of cells has to.

    drawn: the figures of bars that have some.
    """
    kind = FIGURES[figure.kind]
    return kind.claims == OF_TRIALS or kind.claims == OF_BARS and figure.name in drawn
