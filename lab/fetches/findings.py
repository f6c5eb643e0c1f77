"""What a run of fetches says: its figures, each with what was published, and the run itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from lab.core.findings.findings import Column, Finding, Report, Table, Tile
from lab.core.findings.timelines import PacketsChart, Timeline
from lab.core.run import reporting
from lab.core.run.kinds import RunData, Study
from lab.core.run.measuring import CAPTURES
from lab.core.scenario import published
from lab.core.words import span
from lab.fetches.figures import analysis, maps, steps, sufficient_window, summary
from lab.fetches.figures.buckets import NoPanel, Panel
from lab.fetches.figures.cell_tables import cells_finding, raw_finding, trials_table
from lab.fetches.figures.cells import RawRow, changes, raw_rows, settings
from lab.fetches.figures.claims import Judged, judged
from lab.fetches.figures.figure import chart, figure_table, heading
from lab.fetches.figures.limiting_factor import by_effect, said
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
    if scenario.as_published and study.whole:
        return _as_published(study, scenario, run)
    panels, missing = analysis.panels(scenario, run.records)
    told = {name: judged(panel, scenario.claims, run.exact) for name, panel in panels.items()}
    is_told = panels or scenario.users or any(figure.kind in (STEPS, LEVELS)
                                              for figure in scenario.figures)
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
    if scenario.users:
        from lab.fetches.features.users.findings import users_findings  # numpy is slow
        of_users, chosen = users_findings(scenario, scenario.users, run.records)
        found += of_users
        tiles += chosen
    if study.whole:
        if scenario.populations:
            from lab.fetches.features.population import findings  # numpy is slow
            found += findings.population_findings(scenario, run.records, found, list(told.values()))
        found += raw
    return reporting.report_of(
        study, run, found,
        summary=(summary.summary(run.records), *notes.of_all(run.records), *why),
        sentences=(*why, *summary.of_run(run, list(told.values()),
                                           () if told or scenario.cells else changed)),
        tiles=tiles, trials=trials_table(run.records, scenario.raw, raw_of),
        causes=_causes(run.records), timelines=lines)


def _as_published(study: Study, scenario: Scenario, run: RunData) -> Report:
    """Of a set-up that is explained: its figures from three sides, and its causes."""
    from lab.fetches.features.replication import findings
    found, told, tiles = findings.found(scenario, run.records, run.exact)
    return reporting.report_of(
        study, run, found, summary=(summary.summary(run.records),),
        sentences=(*told, *summary.of_run(run, (), ())), tiles=tiles,
        trials=trials_table(run.records, None, {}), causes=_causes(run.records))


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


def _of_figure(scenario: Scenario, found: Judged) -> Finding:
    panel, figure = found.panel, found.panel.figure
    return Finding(
        figure.name, figure.title, tables=(figure_table(scenario, found),),
        statements=found.statements, sentence=summary.of_figure(found),
        text=summary.described(panel), bars=found.counts,
        chart=chart(found, scenario.population(figure.sweep) is not None, scenario.cells),
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


def _causes(records: Sequence[Record]) -> Table | None:
    """Why segments were sent again, with the number of transfers; None where none was."""
    found: Counter[str] = Counter(cause for record in records for cause in _causes_of(record))
    if not found:
        return None
    rows: Any = tuple(sorted(found.items(), key=lambda each: (-each[1], each[0])))
    return Table("Causes of retransmissions", (Column("cause", is_text=True),
                                               Column("transfers")), rows)


def _causes_of(record: Record) -> list[str]:
    if not (record.retransmissions or record.handshake_retransmissions):
        return []
    if record.retransmission_cause:
        return record.retransmission_cause.split("; ")
    if not record.lost_segments:
        return ["packets of the handshake or acknowledgements were lost"]
    drops = ((record.queue_drops, "the queue dropped packets"),
             (record.random_drops, "packets were lost at random"))
    return [cause for count, cause in drops if count] or ["packets were lost"]
