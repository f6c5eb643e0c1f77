"""What a run of fetches says: its figures, each with what was published, and the run itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lab.core.findings.findings import Answer, Finding, Report, Tile
from lab.core.run import reporting
from lab.core.run.kinds import RunData, Study
from lab.core.run.measuring import CAPTURES
from lab.core.words import span
from lab.fetches import answer
from lab.fetches.figures import kinds, summary
from lab.fetches.figures.buckets import NoPanel, Panel
from lab.fetches.figures.cell_tables import (RawRow, causes_table, cells_finding, raw_finding,
                                             raw_rows, trials_table)
from lab.fetches.figures.cells import (CellSetting, WindowChange, by_effect, changes, explained,
                                       settings)
from lab.fetches.figures.claims import JudgedPanel
from lab.fetches.figures.figure import Made
from lab.fetches.figures.timelines import by_round_trips, timelines
from lab.fetches.scenario.scenario import Figure, Scenario
from lab.fetches.scenario.trial import Trial
from lab.fetches.scenario.varied_parameters import order, words_of
from lab.fetches.verify import notes
from lab.fetches.verify.record import Record


def report(study: Study, run: RunData) -> Report:
    """All that a run says of the scenario, of which study.whole says whether it is the whole.

    A part of a scenario has its cells first; the figures that it does not cover
    are left out. Raises FirstFlightError where a file of paper/ is missing or wrong.
    """
    scenario: Scenario = study.scenario
    for part in scenario.parts if study.whole else ():
        if (of_part := part.report(study, scenario, run)) is not None:
            return of_part
    words = words_of(scenario.sweeps)
    ordered = sorted(run.records, key=lambda record: order(record.trial, words))
    cells = settings(ordered) if scenario.cells or not study.whole else []
    changed = changes(cells)
    lines = timelines(by_effect(changed) if scenario.cells else by_round_trips(run.records),
                      run.folder / CAPTURES)
    made = kinds.figures(scenario, run, lines, study.whole)
    judged = [each.judged for _, each in made if each.judged is not None]
    if not (cells or any(kinds.is_told(figure, each.finding) for figure, each in made)
            or any(part.is_reported for part in scenario.parts)):
        cells = settings(ordered)
        changed = changes(cells)
    why = explained(changed) if scenario.cells else []
    found = [*([cells_finding(cells, changed)] if cells else []),
             *(each.finding for _, each in made)]
    raw, raw_of = _raw(scenario, run.records)
    tiles = _tiles([each.panel for each in judged])
    for part in scenario.parts:
        of_its_own, further = part.findings(scenario, run.records, found, judged, study.whole)
        found += of_its_own
        tiles += further
    found += raw if study.whole else []
    return reporting.report_of(
        study, run, found, tiles=tiles, timelines=lines,
        answer=_answer(scenario, made, cells, changed, judged, found),
        summary=(summary.summary(run.records), *notes.of_all(run.records), *why),
        sentences=(*why, *summary.of_run(run, judged, () if judged or scenario.cells else changed)),
        trials=trials_table(run.records, scenario.raw, raw_of), causes=causes_table(run.records))


def _answer(scenario: Scenario, made: Sequence[tuple[Figure, Made]],
            cells: Sequence[CellSetting], changed: Sequence[WindowChange],
            judged: Sequence[JudgedPanel], found: Sequence[Finding]) -> Answer:
    """What is read first: what a part or figure answers, single cells, or figures of bars."""
    own = next((each.answer for each in found if each.answer is not None), None)
    if own is not None:
        return own
    answers = [each.finding.sentence for figure, each in made
               if kinds.FIGURES[figure.kind].is_answer and not each.finding.missing]
    if answers:
        return Answer(" ".join(answers), notes=tuple(explained(changed)[:answer.MOST_REASONS]))
    if cells:
        return answer.of_cells(cells, changed, scenario.cells)
    return Answer(table=answer.of_figures(judged))


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
