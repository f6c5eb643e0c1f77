"""Makes the figures of a run, by their kinds (workloads.fetch.scenario.figures)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from firstflight.figures.making import Maker, make_figures
from firstflight.findings.findings import Finding
from firstflight.workloads.fetch.figures import (bars, grid, kernel_bars, recovery, steps,
                                                 swept_bars, timelines)
from firstflight.workloads.fetch.figures.bar_figure import BarFigure, NoBars
from firstflight.workloads.fetch.figures.figure import Analysis
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.scenario.figures import FIGURES
from firstflight.workloads.fetch.scenario.scenario import OF_BARS, OF_TRIALS, Figure, Scenario


MAKERS: dict[str, Maker[Analysis, Figure]] = {
    "improvement": bars.bars,
    "window_sweep": bars.bars,
    "loss": bars.bars,
    "percentiles": bars.bars,
    "groups": grid.groups,
    "map": grid.improvements,
    "window_map": grid.sufficient_windows,
    "packets": timelines.packets,
    "steps": steps.steps,
    "levels": steps.levels,
    "kernels": kernel_bars.kernels}
# Makes the bars of a figure from the records of a run. The bool says whether the whole scenario was
# measured.
BarMaker = Callable[[Scenario, Figure, Sequence[Record], bool], BarFigure]
BARS_OF_SWEEP: dict[str, BarMaker] = {
    "improvement": swept_bars.improvement,
    "window_sweep": swept_bars.window_sweep,
    "loss": recovery.improvement_by_loss}


def bar_figures(scenario: Scenario, records: Sequence[Record], is_whole: bool = True
                ) -> tuple[dict[str, BarFigure], dict[str, str]]:
    """Figures of bars by name, and by name why other figures have no bars.

    The bars are not judged yet. In a part of a scenario, a figure has the bars that were measured.
    """
    made: dict[str, BarFigure] = {}
    missing: dict[str, str] = {}
    drawn = [figure for figure in scenario.figures if scenario.population(figure.sweep)]
    if scenario.drawn is not None and drawn:
        from firstflight.workloads.fetch.figures import drawn_bars
        made, missing = drawn_bars.bar_figures(scenario.drawn, drawn, records)

    for figure in scenario.figures:
        make = BARS_OF_SWEEP.get(figure.kind)
        if make is None or figure in drawn:
            continue
        try:
            made[figure.name] = make(scenario, figure, records, is_whole)
        except NoBars as error:
            missing[figure.name] = str(error)
    return made, missing


def under_measured_windows(scenario: Scenario, records: Sequence[Record],
                           is_whole: bool) -> Scenario:
    """The scenario with the windows that a run measured instead of those in its file.

    A figure of two windows becomes several: each further measured window against the first one.
    Published values and claims stay with the two windows for which they were published.
    """
    measured = tuple(dict.fromkeys(record.trial.initcwnd for record in records))
    lists = [sweep.initcwnd for sweep in scenario.sweeps]
    if scenario.drawn is not None:
        lists += [population.initcwnd for population in scenario.drawn.populations]
    in_file = {window for windows in lists for window in windows}
    is_unchanged = in_file == {*measured} or (is_whole and in_file > {*measured})
    if not measured or is_unchanged:
        return scenario

    figures = [made for figure in scenario.figures for made in _under(figure, measured)]
    # Several figures may compare the same now: one of them stays, if possible one that compares the
    # windows of the file.
    name_of: dict[Figure, str] = {}
    for figure in sorted(figures, key=lambda figure: figure.other_windows):
        compared = replace(figure, name="", title="", published="", panel="", held_out=False,
                           other_windows=False)
        name_of.setdefault(compared, figure.name)
    names = {*name_of.values()}
    return replace(
        scenario, figures=tuple(figure for figure in figures if figure.name in names),
        claims=tuple(claim for claim in scenario.claims if claim.figure in names),
        sweeps=tuple(replace(sweep, initcwnd=measured) for sweep in scenario.sweeps))


def _under(figure: Figure, measured: Sequence[int]) -> Iterator[Figure]:
    """The figures that a figure becomes under the measured windows.

    A figure of two windows becomes one for each pair of the first measured window and another one.
    A figure of all windows stays one.
    """
    base, experiment = figure.baseline_initcwnd, figure.experiment_initcwnd
    first, *others = measured
    if not FIGURES[figure.kind].is_of_pairs:
        if base not in measured:
            figure = replace(figure, windows=(first, *figure.windows[1:]))
        yield figure
        return

    if {base, experiment} <= {*measured}:
        yield figure
    for other in others:
        if (first, other) != (base, experiment):
            title = _with_windows(figure.title, {base: first, experiment: other})
            yield replace(figure, name=f"{figure.name}_{first}_{other}", windows=(first, other),
                          other_windows=True, title=title)


def _with_windows(title: str, windows: Mapping[int, int]) -> str:
    """The title with other windows where it has "IW 3". windows: the new ones by the old ones."""
    def new_window(match: re.Match[str]) -> str:
        window = int(match[0])
        return str(windows.get(window, window))

    return re.sub(r"(?<=\bIW )\d+", new_window, title)


def figures(analysis: Analysis) -> list[tuple[Figure, Sequence[Finding]]]:
    """The findings of each figure of a run, or the reason why it cannot be made.

    A part of a scenario has only the figures that it covers. Raises FirstFlightError where a file
    of paper/ is missing or wrong.
    """
    all_made = make_figures(analysis, analysis.scenario.figures, MAKERS)
    return [(figure, made) for figure, made in all_made
            if made and (analysis.is_whole or not made[0].missing)]


def shows_all(figure: Figure, drawn: Mapping[str, BarFigure]) -> bool:
    """Whether a figure shows everything that was measured, so that no table of cells is needed.

    drawn: the figures of bars that could be made, by name.
    """
    kind = FIGURES[figure.kind]
    has_bars = kind.expects == OF_BARS and figure.name in drawn
    return kind.expects == OF_TRIALS or has_bars
