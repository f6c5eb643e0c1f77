"""The report of a run of fetches: its figures with published values, and all of its trials."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from firstflight.base.words import format_range
from firstflight.figures.reasons import explain_changes
from firstflight.findings.findings import Finding, Report, Tile
from firstflight.runs import reporting
from firstflight.runs.kinds import RunData, Study
from firstflight.scenario.claims import MOST
from firstflight.workloads.fetch.figures import answer, kinds, raw_cells, summary, timelines
from firstflight.workloads.fetch.figures.bar_figure import BarFigure, NoBars
from firstflight.workloads.fetch.figures.cell_tables import (causes_table, cells_finding,
                                                             repeats_cells, trials_table)
from firstflight.workloads.fetch.figures.cells import CellSetting, changes, settings
from firstflight.workloads.fetch.figures.claims import judge_bars
from firstflight.workloads.fetch.figures.figure import Analysis
from firstflight.workloads.fetch.figures.reasons import WhatIfs
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.scenario.scenario import Claim, Scenario
from firstflight.workloads.fetch.scenario.varied_parameters import order, words_of
from firstflight.workloads.fetch.trial import Trial
from firstflight.workloads.fetch.verify import notes

FetchStudy = Study[Scenario, Trial, Record]


def report(study: FetchStudy, run: RunData[Record]) -> Report:
    """All findings of a run of a whole scenario (study.whole) or of a part of it.

    A part shows its cells first, and in each figure the buckets that were measured. Raises
    FirstFlightError where a file of paper/ is missing or wrong.
    """
    scenario: Scenario = study.scenario
    if study.whole and scenario.as_published is not None:
        from firstflight.study.replication import findings as replication
        return replication.report(study, scenario, scenario.as_published, run)
    return report_on(study, analyse(scenario, run, study.whole))


def analyse(scenario: Scenario, run: RunData[Record], is_whole: bool) -> Analysis:
    """Find what a run shows: its bars, its cells, and how the cells differ by window.

    is_whole: whether the run has the whole scenario, and not a part of it. Raises FirstFlightError
    where a file of paper/ is missing or wrong.
    """
    scenario = kinds.under_measured_windows(scenario, run.records, is_whole)
    unjudged, missing = kinds.bar_figures(scenario, run.records, is_whole)
    bar_figures = {}
    for name, bar_figure in unjudged.items():
        testable = _testable(scenario.claims, bar_figure, is_whole)
        bar_figures[name] = judge_bars(bar_figure, testable, run.exact)

    # The answer compares the cells of a grid also where figures cover them; the table of cells and
    # its changes are then left out.
    is_covered = _is_covered(scenario, bar_figures, is_whole)
    cells: list[CellSetting] = []
    if scenario.is_grid or not is_covered:
        words = words_of(scenario.sweeps)
        ordered = sorted(run.records, key=lambda record: order(record.trial, words))
        cells = settings(ordered)
    all_changes = changes(cells)
    return Analysis(
        scenario, run, is_whole, bar_figures=bar_figures, missing=missing,
        cells=[] if is_covered else cells, changes=[] if is_covered else all_changes,
        compared=all_changes, what_ifs=WhatIfs(run.what_ifs, scenario.head.sysctls),
        timelines=timelines.run_timelines(run))


def _is_covered(scenario: Scenario, bar_figures: Mapping[str, BarFigure], is_whole: bool) -> bool:
    """Whether a figure or the answer on users shows all that was measured.

    The report then has no table of cells. Bars of a population show everything. Otherwise a part of
    a scenario has that table, and so has a scenario that requests it (Scenario.cells).
    """
    if scenario.drawn is not None and bar_figures:
        return True
    if not is_whole or scenario.cells:
        return False
    return (scenario.users is not None
            or any(kinds.shows_all(figure, bar_figures) for figure in scenario.figures))


def _testable(claims: Iterable[Claim], bar_figure: BarFigure, is_whole: bool) -> list[Claim]:
    """The claims that can be tested.

    In a part of a scenario these are the claims that compare bars, if all of these were measured. A
    claim on the bar with the most (MOST) needs every bar, and so the whole scenario.
    """
    if is_whole:
        return list(claims)
    labels = {bar.label for bar in bar_figure.bars}
    return [claim for claim in claims
            if claim.expects != MOST and labels.issuperset(claim.compares)]


def report_on(study: FetchStudy, analysis: Analysis) -> Report:
    """The report of an analysed run."""
    scenario, run = analysis.scenario, analysis.run
    figures = kinds.figures(analysis)  # each with its findings
    judged = [analysis.bar_figures[figure.name] for figure, _ in figures
              if figure.name in analysis.bar_figures]
    try:
        published = raw_cells.published_cells(scenario, run.records)
    except NoBars:
        published = None

    findings: list[Finding] = []
    if analysis.cells:
        findings.append(cells_finding(analysis.cells, analysis.changes, analysis.what_ifs,
                                      published))
    for _, figure_findings in figures:
        findings += figure_findings
    further, more_tiles = _further_findings(study.scenario, analysis, findings, judged)
    findings += further

    trials = None
    if not repeats_cells(analysis.cells, run.records):
        trials = trials_table(run.records, published)
    why: Sequence[str] = ()
    if scenario.cells:  # the table of cells was requested, and with it the reasons
        why = explain_changes(analysis.changes, analysis.what_ifs)
    return reporting.report_of(
        study, run, findings, tiles=[*_tiles(judged), *more_tiles], timelines=analysis.timelines,
        answer=answer.answer_of_run(analysis, figures, judged, findings),
        summary=(summary.summary(run.records), *notes.run_notes(run.records), *why),
        sentences=(*why, *summary.run_sentences(run, judged)),
        trials=trials, causes=causes_table(run.records))


def _further_findings(scenario: Scenario, analysis: Analysis, of_figures: Sequence[Finding],
                      judged: Sequence[BarFigure]) -> tuple[list[Finding], Sequence[Tile]]:
    """The findings on users, populations and published cells, and the tiles of users.

    scenario: with the windows of its file; analysis.scenario has those that were measured.
    of_figures: the findings that the report already has. judged: its figures of bars.
    """
    records = analysis.records
    further: list[Finding] = []
    tiles: Sequence[Tile] = ()
    if scenario.users is not None:
        from firstflight.study.users.findings import users_findings
        further, tiles = users_findings(scenario, scenario.users, records)
    if scenario.drawn is not None and analysis.is_whole:
        from firstflight.study.population.findings import population_findings
        with_file_windows = [bar_figure for bar_figure in judged
                             if not bar_figure.figure.other_windows]
        further += population_findings(scenario, scenario.drawn, records,
                                       findings=[*of_figures, *further], judged=with_file_windows)
    if scenario.raw is not None and analysis.is_whole:
        further.append(raw_cells.finding(scenario, scenario.raw, records))
    return further, tiles


def _tiles(bar_figures: Iterable[BarFigure]) -> list[Tile]:
    """A tile with the least and the largest saving of all bars; [] if no bar is in ms."""
    percents: list[float] = []
    for bar_figure in bar_figures:
        if bar_figure.metric.unit == "ms":
            percents += [bar.difference.percent.value for bar in bar_figure.bars
                         if not bar_figure.is_baseline(bar)]
    if not percents:
        return []
    return [Tile(format_range(percents, "%"), "of the time saved by a larger window")]
