"""The figures of a run, by their kinds (workloads.fetch.scenario.figures)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

from firstflight.findings.findings import Finding
from firstflight.workloads.fetch.figures.bar_figure import BarFigure, NoBars
from firstflight.workloads.fetch.figures.figure import Analysis
from firstflight.workloads.fetch.record import Record
from firstflight.workloads.fetch.scenario.figures import FIGURES
from firstflight.workloads.fetch.scenario.scenario import OF_BARS, OF_TRIALS, Figure, Scenario


def function(name: str) -> Any:
    """The function that a line of FIGURES names, such as "bars.bars"."""
    module, _, its_name = name.partition(".")
    return getattr(import_module(f"{__package__}.{module}"), its_name)


def bar_figures(scenario: Scenario, records: Sequence[Record], is_whole: bool = True
                ) -> tuple[dict[str, BarFigure], dict[str, str]]:
    """Figures of bars by name, not yet judged; and for the names without bars the reason.

    In a part of a scenario, a figure has the bars that were measured.
    """
    made: dict[str, BarFigure] = {}
    missing: dict[str, str] = {}
    drawn = [figure for figure in scenario.figures if scenario.population(figure.sweep)]
    if scenario.drawn is not None and drawn:
        from firstflight.workloads.fetch.figures import drawn_bars
        made, missing = drawn_bars.bar_figures(scenario.drawn, drawn, records)
    for figure in scenario.figures:
        of_sweep = FIGURES[figure.kind].bars_of_sweep
        if not of_sweep or figure in drawn:
            continue
        try:
            made[figure.name] = function(of_sweep)(scenario, figure, records, is_whole)
        except NoBars as error:
            missing[figure.name] = str(error)
    return made, missing


def under_measured_windows(scenario: Scenario, records: Sequence[Record],
                           is_whole: bool) -> Scenario:
    """The scenario with the windows that a run measured in place of its own.

    A figure of two windows becomes several: each further measured window against the first.
    Published values and claims stay with their own two windows.
    """
    measured = tuple(dict.fromkeys(record.trial.initcwnd for record in records))
    lists = [sweep.initcwnd for sweep in scenario.sweeps]
    if scenario.drawn is not None:
        lists += [population.initcwnd for population in scenario.drawn.populations]
    own = {window for windows in lists for window in windows}
    if not measured or own == {*measured} or is_whole and own > {*measured}:
        return scenario
    figures = [made for figure in scenario.figures for made in _under(figure, measured)]
    # Of figures that compare the same, the first stays; those of the scenario's own windows first.
    names: dict[Figure, str] = {}
    for figure in sorted(figures, key=lambda figure: figure.other_windows):
        names.setdefault(replace(figure, name="", title="", published="", panel="", held_out=False,
                                 other_windows=False), figure.name)
    return replace(
        scenario, figures=tuple(figure for figure in figures if figure.name in names.values()),
        claims=tuple(claim for claim in scenario.claims if claim.figure in names.values()),
        sweeps=tuple(replace(sweep, initcwnd=measured) for sweep in scenario.sweeps))


def _under(figure: Figure, measured: Sequence[int]) -> Iterator[Figure]:
    """A figure for the first window with each other one; or one figure of all windows."""
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
    """The findings of each figure of a run, or the reason why it cannot be made.

    A part of a scenario has only the figures that it covers. Raises FirstFlightError where a file
    of paper/ is missing or wrong.
    """
    every = [(figure, _make(analysis, figure)) for figure in analysis.scenario.figures]
    return [(figure, made) for figure, made in every
            if made and (analysis.is_whole or not made[0].missing)]


def _make(analysis: Analysis, figure: Figure) -> Sequence[Finding]:
    try:
        made: Sequence[Finding] = function(FIGURES[figure.kind].make)(analysis, figure)
        return made
    except NoBars as error:
        return [Finding(figure.name, figure.title, missing=str(error))]


def shows_all(figure: Figure, drawn: Mapping[str, BarFigure]) -> bool:
    """Whether a figure shows everything that was measured, so that no table of cells is needed.

    drawn: the figures of bars that could be made.
    """
    kind = FIGURES[figure.kind]
    return kind.claims == OF_TRIALS or kind.claims == OF_BARS and figure.name in drawn
