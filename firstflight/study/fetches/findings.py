"""The report of a run of fetches: its figures, each with what was published, and the run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from firstflight.base.words import format_range
from firstflight.findings.findings import Finding, Report, Tile
from firstflight.runs import reporting
from firstflight.runs.kinds import RunData, Study
from firstflight.study.fetches import answer
from firstflight.study.fetches.figures import kinds, raw_cells, summary, timelines
from firstflight.study.fetches.figures.bar_figure import BarFigure, NoPanel
from firstflight.study.fetches.figures.cell_tables import (causes_table, cells_finding,
                                                           repeats_cells, trials_table)
from firstflight.study.fetches.figures.cells import changes, settings
from firstflight.study.fetches.figures.claims import judge_panel
from firstflight.study.fetches.figures.figure import Analysis
from firstflight.study.fetches.figures.reasons import WhatIfs, explained
from firstflight.study.fetches.scenario.scenario import Claim, Scenario
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
    unjudged, missing = kinds.panels(scenario, run.records, is_whole)
    panels = {name: judge_panel(panel, _testable(scenario.claims, panel, is_whole), run.exact)
              for name, panel in unjudged.items()}
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


def _testable(claims: Iterable[Claim], panel: BarFigure, is_whole: bool) -> list[Claim]:
    """Of a part of a scenario those on bars that it has: which bar is the highest is not known."""
    labels = {bar.label for bar in panel.bars}
    return [claim for claim in claims if is_whole or not claim.is_of_all_bars
            and labels.issuperset((*claim.larger, *claim.equal))]


def rendered(study: Study, analysis: Analysis) -> Report:
    """The report of an analysed run: nothing is computed of its records any more."""
    scenario, run = analysis.scenario, analysis.run
    figures = kinds.figures(analysis)
    judged = [analysis.panels[figure.name] for figure, _ in figures
              if figure.name in analysis.panels]
    try:
        published = raw_cells.published_cells(scenario, run.records)
    except NoPanel:
        published = None
    findings = [*([cells_finding(analysis.cells, analysis.changes, analysis.what_ifs, published)]
                  if analysis.cells else []),
                *(finding for _, made in figures for finding in made)]
    tiles = _tiles(judged)
    further, more_tiles = _further(study.scenario, analysis, findings, judged)
    findings += further
    tiles += more_tiles
    why = explained(analysis.changes, analysis.what_ifs) if scenario.cells else []
    return reporting.report_of(
        study, run, findings, tiles=tiles, timelines=analysis.timelines,
        answer=answer.answer_of_run(analysis, figures, judged, findings),
        summary=(summary.summary(run.records), *notes.run_notes(run.records), *why),
        sentences=(*why, *summary.run_sentences(run, judged)),
        trials=None if repeats_cells(analysis.cells, run.records) else trials_table(
            run.records, published), causes=causes_table(run.records))


def _further(scenario: Scenario, analysis: Analysis, before: Sequence[Finding],
             judged: Sequence[BarFigure]) -> tuple[list[Finding], Sequence[Tile]]:
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
            panel for panel in judged if not panel.figure.other_windows])
    if scenario.raw is not None and analysis.is_whole:
        made.append(raw_cells.finding(scenario, scenario.raw, records))
    return made, tiles


def _tiles(panels: Iterable[BarFigure]) -> list[Tile]:
    percents = [bar.difference.percent.value for panel in panels if panel.metric.unit == "ms"
                for bar in panel.bars if not panel.is_baseline(bar)]
    return ([Tile(format_range(percents, "%"), "of the time saved by a larger window")]
            if percents else [])
