"""From the records of a run to its Analysis: all is computed here, rendered later."""

from __future__ import annotations

from lab.core.run.kinds import RunData
from lab.fetches.figures import kinds, timelines
from lab.fetches.figures.cells import changes, settings
from lab.fetches.figures.figure import Analysis
from lab.fetches.scenario.scenario import Scenario
from lab.fetches.scenario.varied_parameters import order, words_of


def analyse(scenario: Scenario, run: RunData, is_whole: bool) -> Analysis:
    """Of a run of the whole scenario, or of a part of it, which has its cells first.

    Raises FirstFlightError where a file of paper/ is missing or wrong.
    """
    panels, missing = kinds.panels(scenario, run.records)
    is_covered = is_whole and not scenario.cells and (
        any(kinds.shows_all(figure, panels) for figure in scenario.figures)
        or scenario.users is not None)
    words = words_of(scenario.sweeps)
    cells = [] if is_covered else settings(sorted(
        run.records, key=lambda record: order(record.trial, words)))
    changed = changes(cells)
    return Analysis(scenario, run, is_whole, panels, missing, cells, changed,
                    timelines.run_timelines(scenario, run, changed))
