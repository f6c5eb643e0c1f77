"""The report of a run of fetches: its figures, each with what was published, and the run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from firstflight.base.words import span
from firstflight.findings.findings import Finding, Report, Tile
from firstflight.runs import reporting
from firstflight.runs.kinds import RunData, Study
from firstflight.study.fetches import answer
from firstflight.study.fetches.figures import kinds, raw_cells, summary, timelines
from firstflight.study.fetches.figures.buckets import NoPanel, Panel
from firstflight.study.fetches.figures.cell_tables import (causes_table, cells_finding,
                                                           repeats_cells, trials_table)
from firstflight.study.fetches.figures.cells import changes, settings
from firstflight.study.fetches.figures.claims import JudgedPanel
from firstflight.study.fetches.figures.figure import Analysis
from firstflight.study.fetches.figures.reasons import WhatIfs, explained
from firstflight.study.fetches.scenario.scenario import Scenario
from firstflight.study.fetches.scenario.varied_parameters import order, words_of
from firstflight.study.fetches.verify import notes


def report(study: Study, run: RunData) -> Report:
    """All findings of a run; study.whole: of the whole scenario, or else of a part of it.

    A part of a scenario has its cells first, and of each figure the buckets that it measured.
    Raises FirstFlightError where a file of paper/ is missing or wrong.
    """
    scenario: Scenario = study.scenario
    if study.whole and scenario.as_published is not None:
        from firstflight.study.replication import findings as replication
        return replication.report(study, scenario, scenario.as_published, run)
    return rendered(study, analyse(scenario, run, study.whole))


def analyse(scenario: Scenario, run: RunData, is_whole: bool) -> Analysis:
    """Analyse a run of the whole scenario, or of a part, whose cells come first.

    Raises FirstFlightError where a file of paper/ is missing or wrong.
    """
    scenario = kinds.under_measured_windows(scenario, run.records, is_whole)
    panels, missing = kinds.panels(scenario, run.records, is_whole)
    is_covered = scenario.drawn is not None and bool(panels) or (
        is_whole and not scenario.cells and (
            any(kinds.shows_all(figure, panels) for figure in scenario.figures)
            or scenario.users is not None))
    words = words_of(scenario.sweeps)
    all_cells = [] if is_covered and not scenario.is_grid else settings(sorted(
        run.records, key=lambda record: order(record.trial, words)))
    compared = changes(all_cells)
    cells, changed = ([], []) if is_covered else (all_cells, compared)
    return Analysis(scenario, run, is_whole, panels, missing, cells, changed, compared,
                    WhatIfs(run.what_ifs), timelines.run_timelines(run))


def rendered(study: Study, analysis: Analysis) -> Report:
    """The report of an analysed run: nothing is computed of its records any more."""
    scenario, run = analysis.scenario, analysis.run
    figures = kinds.figures(analysis)
    judged = [made.judged for _, made in figures if made.judged is not None]
    try:
        published = raw_cells.published_cells(scenario, run.records)
    except NoPanel:
        published = None
    findings = [*([cells_finding(analysis.cells, analysis.changes, analysis.what_ifs, published)]
                  if analysis.cells else []),
             *(finding for _, made in figures for finding in (made.finding, *made.further))]
    tiles = _tiles([made.panel for made in judged])
    further, more_tiles = _further(study.scenario, analysis, findings, judged)
    findings += further
    tiles += more_tiles
    why = explained(analysis.changes, analysis.what_ifs) if scenario.cells else []
    return reporting.report_of(
        study, run, findings, tiles=tiles, timelines=analysis.timelines,
        answer=answer.answer_of_run(analysis, figures, findings),
        summary=(summary.summary(run.records), *notes.run_notes(run.records), *why),
        sentences=(*why, *summary.run_sentences(run, judged)),
        trials=None if repeats_cells(analysis.cells, run.records) else trials_table(
            run.records, published), causes=causes_table(run.records))


def _further(scenario: Scenario, analysis: Analysis, before: Sequence[Finding],
             judged: Sequence[JudgedPanel]) -> tuple[list[Finding], Sequence[Tile]]:
    """What is found of users, of populations and of published cells, behind the figures.

    scenario: with its own windows.
    """
    records = analysis.records
    made: list[Finding] = []
    tiles: Sequence[Tile] = ()
    if scenario.users is not None:
        from firstflight.study.users.findings import users_findings
        made, tiles = users_findings(scenario, scenario.users, records)
    if scenario.drawn is not None and analysis.is_whole:
        from firstflight.study.population.findings import population_findings
        made += population_findings(scenario, scenario.drawn, records, [*before, *made], [
            panel for panel in judged if not panel.panel.figure.other_windows])
    if scenario.raw is not None and analysis.is_whole:
        made.append(raw_cells.finding(scenario, scenario.raw, records))
    return made, tiles


def _tiles(panels: Iterable[Panel]) -> list[Tile]:
    percents = [bucket.percent for panel in panels if panel.metric.unit == "ms"
                for bucket in panel.buckets if not panel.is_baseline(bucket)]
    return ([Tile(span(percents, "%"), "of the time saved by a larger window")]
            if percents else [])
