"""The report of a run of fetches: its figures, each with what was published, and the run."""

from __future__ import annotations

from collections.abc import Iterable

from lab.core.findings.findings import Report, Tile
from lab.core.run import reporting
from lab.core.run.kinds import RunData, Study
from lab.core.words import span
from lab.fetches import answer
from lab.fetches.analysis import analyse
from lab.fetches.figures import kinds, summary
from lab.fetches.figures.buckets import NoPanel, Panel
from lab.fetches.figures.cell_tables import (causes_table, cells_finding, published_cells,
                                             trials_table)
from lab.fetches.figures.figure import Analysis
from lab.fetches.figures.limiting_factors import explained
from lab.fetches.scenario.scenario import Scenario
from lab.fetches.verify import notes


def report(study: Study, run: RunData) -> Report:
    """All findings of a run; study.whole: of the whole scenario, or else of a part of it.

    A part of a scenario has its cells first; the figures that it does not cover
    are excluded. Raises FirstFlightError where a file of paper/ is missing or wrong.
    """
    scenario: Scenario = study.scenario
    for part in scenario.parts if study.whole else ():
        if (of_part := part.report(study, scenario, run)) is not None:
            return of_part
    return rendered(study, analyse(scenario, run, study.whole))


def rendered(study: Study, analysis: Analysis) -> Report:
    """The report of an analysed run: nothing is computed of its records any more."""
    scenario, run = analysis.scenario, analysis.run
    figures = kinds.figures(analysis)
    judged = [made.judged for _, made in figures if made.judged is not None]
    findings = [*([cells_finding(analysis.cells, analysis.changes)] if analysis.cells else []),
             *(made.finding for _, made in figures)]
    tiles = _tiles([made.panel for made in judged])
    for part in scenario.parts:
        of_its_own, further = part.findings(analysis, findings, judged)
        findings += of_its_own
        tiles += further
    try:
        published = published_cells(scenario, run.records)
    except NoPanel:
        published = None
    why = explained(analysis.changes) if scenario.cells else []
    return reporting.report_of(
        study, run, findings, tiles=tiles, timelines=analysis.timelines,
        answer=answer.of_run(analysis, figures, findings),
        summary=(summary.summary(run.records), *notes.of_all(run.records), *why),
        sentences=(*why, *summary.of_run(
            run, judged, () if judged or scenario.cells else analysis.changes)),
        trials=trials_table(run.records, published), causes=causes_table(run.records))


def _tiles(panels: Iterable[Panel]) -> list[Tile]:
    percents = [bucket.percent for panel in panels if panel.metric.unit == "ms"
                for bucket in panel.buckets if not panel.is_baseline(bucket)]
    return ([Tile(span(percents, "%"), "of the time saved by a larger window")]
            if percents else [])
