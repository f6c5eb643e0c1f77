"""What a run of fetches says: its figures, each with what was published, and the run itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lab.core.findings.charts import PacketsChart, Timeline
from lab.core.findings.findings import Finding, Report, Tile
from lab.core.run import reporting
from lab.core.run.kinds import RunData, Study
from lab.core.run.measuring import CAPTURES
from lab.core.scenario import published
from lab.core.words import span
from lab.fetches.figures import analysis, maps, steps, sufficient_window, summary
from lab.fetches.figures.buckets import NoPanel, Panel
from lab.fetches.figures.cell_tables import causes_table, cells_finding, raw_finding, trials_table
from lab.fetches.figures.cells import RawRow, by_effect, changes, raw_rows, said, settings
from lab.fetches.figures.claims import JudgedPanel, judged
from lab.fetches.figures.figure import chart, figure_table, heading
from lab.fetches.figures.timelines import by_round_trips, timelines
from lab.fetches.scenario.scenario import (LEVELS, PACKETS, STEPS, WINDOW_MAP, WITHOUT_BUCKETS,
                                           Figure, Scenario)
from lab.fetches.scenario.trial import Trial
from lab.fetches.scenario.varied_parameters import order
from lab.fetches.verify import notes
from lab.fetches.verify.record import Record


def report(study: Study, scenario: Scenario, run: RunData) -> Report:
    """All that a run says of the scenario, of which study.whole says whether it is the whole.

    A part of a scenario has its cells first; the figures that it does not cover
    are left out. Raises FirstFlightError where a file of paper/ is missing or wrong.
    """
    for part in scenario.parts if study.whole else ():
        if (of_part := part.report(study, scenario, run)) is not None:
            return of_part
    panels, missing = analysis.panels(scenario, run.records)
    told = {name: judged(panel, scenario.claims, run.exact) for name, panel in panels.items()}
    is_told = (panels or any(part.is_reported for part in scenario.parts)
               or any(figure.kind in (STEPS, LEVELS) for figure in scenario.figures))
    cells = [] if study.whole and is_told and not scenario.cells else settings(
        sorted(run.records, key=lambda record: order(record.trial)))
    changed = changes(cells)
    why = said(changed) if scenario.cells else []
    lines = timelines(by_effect(changed) if scenario.cells else by_round_trips(run.records),
                      run.folder / CAPTURES)
    found = [cells_finding(cells, changed)] if cells else []
    for figure in scenario.figures:
        if figure.name in told:
            found.append(_of_figure(scenario, told[figure.name]))
        elif figure.kind in WITHOUT_BUCKETS:
            found += _drawn(scenario, figure, run, lines)
        elif study.whole:
            found.append(Finding(figure.name, figure.title, missing=missing[figure.name]))
    raw, raw_of = _raw(scenario, run.records)
    tiles = _tiles(panels.values())
    for part in scenario.parts:
        of_its_own, further = part.findings(scenario, run.records, found, list(told.values()),
                                            study.whole)
        found += of_its_own
        tiles += further
    found += raw if study.whole else []
    return reporting.report_of(
        study, run, found,
        summary=(summary.summary(run.records), *notes.of_all(run.records), *why),
        sentences=(*why, *summary.of_run(run, list(told.values()),
                                           () if told or scenario.cells else changed)),
        tiles=tiles, trials=trials_table(run.records, scenario.raw, raw_of),
        causes=causes_table(run.records), timelines=lines)


def _drawn(scenario: Scenario, figure: Figure, run: RunData,
           lines: tuple[Timeline, ...]) -> list[Finding]:
    """A figure that has no bars; a part of its cells has none, nor a run that kept no packets."""
    if figure.kind == WINDOW_MAP:
        return sufficient_window.findings(scenario, figure, run)
    if figure.kind in (STEPS, LEVELS):
        return steps.findings(scenario, figure, run)
    if figure.kind != PACKETS:
        return maps.findings(scenario, figure, run)
    if not lines:
        return []
    return [Finding(figure.name, figure.title, text="; ".join(line.text for line in lines),
                    sentence=" ".join(f"{line.title}: {line.text}." for line in lines),
                    chart=PacketsChart(figure.title, (heading(run.records),),
                                       timelines=lines))]


def _of_figure(scenario: Scenario, found: JudgedPanel) -> Finding:
    panel, figure = found.panel, found.panel.figure
    return Finding(
        figure.name, figure.title, tables=(figure_table(scenario, found),),
        statements=found.statements, sentence=summary.of_figure(found),
        text=summary.described(panel), bars=found.counts,
        chart=chart(found, scenario.owner(figure) is not None, scenario.cells),
        samples=panel.samples,
        measured=panel.metric.axis, also=figure.also, held_out=figure.held_out,
        published=f"{published.source(figure.published)} (paper/{figure.published})"
        if figure.published else "")


def _raw(scenario: Scenario,
         records: Sequence[Record]) -> tuple[list[Finding], dict[Trial, RawRow]]:
    """The published raw values beside ours, and each by the trials that are its like."""
    raw = scenario.raw
    if raw is None:
        return [], {}
    try:
        rows, of_trial = raw_rows(scenario, raw, records)
    except NoPanel as error:
        return [Finding("raw", f"paper/{raw.file}", missing=str(error))], {}
    return [raw_finding(raw, rows)], of_trial


def _tiles(panels: Iterable[Panel]) -> list[Tile]:
    percents = [bucket.percent for panel in panels if panel.metric.unit == "ms"
                for bucket in panel.buckets if not panel.is_baseline(bucket)]
    return ([Tile(span(percents, "%"), "of the time saved by a larger window")]
            if percents else [])
