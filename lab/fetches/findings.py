"""What a run of fetches says: its figures, each with what was published, and the run itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lab.core import published, reporting
from lab.core.findings import Column, Finding, Report, Table, Tile, kernel_of
from lab.core.kinds import RunData, Study
from lab.core.measuring import CAPTURES
from lab.core.words import span
from lab.fetches import analysis, sentences
from lab.fetches.asked import order
from lab.fetches.buckets import NoPanel, Panel
from lab.fetches.cell_tables import cells_finding, raw_finding
from lab.fetches.cells import Change, RawRow, Setting, changes, raw_rows, settings
from lab.fetches.charts import chart
from lab.fetches.claims import Judged, judged
from lab.fetches.every_trial import trials_table
from lab.fetches.record import Record
from lab.fetches.scenario import Figure, Scenario
from lab.fetches.tables import figure_table
from lab.fetches.timelines import timelines
from lab.fetches.trial import Trial


@dataclass(frozen=True)
class Told:
    """All that is computed of a run, once.

    figures: by name, of those that have rows; missing: why the others have
    none. cells: single ones, with what the windows changed there, of a run
    that covers no figure or only a part of the scenario. raw: published raw
    values, also by trial; no_raw: why there are none.
    """

    figures: dict[str, Judged]
    missing: dict[str, str]
    cells: tuple[Setting, ...]
    changes: tuple[Change, ...]
    raw: tuple[RawRow, ...]
    raw_of: dict[Trial, RawRow]
    no_raw: str


def report(study: Study, scenario: Scenario, run: RunData) -> Report:
    """All that a run says of the scenario, of which study.whole says whether it is the whole."""
    told = compute(scenario, run, study.whole)
    found = list(told.figures.values())
    kernel = kernel_of(run.facts)
    return reporting.report_of(
        study, run, _findings(scenario, run, told, study.whole, kernel),
        summary=(sentences.summary(run.records),),
        sentences=sentences.of_run(run, found, () if found else told.changes),
        tiles=_tiles([each.panel for each in found]),
        trials=trials_table(run.records, scenario.raw, told.raw_of),
        causes=_causes(run.records), timelines=timelines(run.records, run.folder / CAPTURES))


def compute(scenario: Scenario, run: RunData, whole: bool) -> Told:
    """Raises FirstFlightError where a file of paper/ is missing or wrong."""
    panels, missing = analysis.panels(scenario, run.records)
    cells = () if whole and panels else tuple(settings(
        sorted(run.records, key=lambda record: order(record.trial))))
    raw, raw_of, no_raw = _raw(scenario, run.records)
    return Told({name: judged(panel, scenario.claims, run.exact)
                 for name, panel in panels.items()},
                missing, cells, tuple(changes(cells)), tuple(raw), raw_of, no_raw)


def _raw(scenario: Scenario, records: Sequence[Record],
         ) -> tuple[list[RawRow], dict[Trial, RawRow], str]:
    if scenario.raw is None:
        return [], {}, ""
    try:
        return (*raw_rows(scenario, scenario.raw, records), "")
    except NoPanel as error:
        return [], {}, str(error)


# Findings ----------------------------------------------------------------------------

def _findings(scenario: Scenario, run: RunData, told: Told, whole: bool,
              kernel: str) -> list[Finding]:
    """A part of a scenario has its cells first; the figures that it does not cover are left out."""
    made = [cells_finding(told.cells, told.changes)] if told.cells else []
    made += [_of_figure(scenario, figure, told, kernel) for figure in scenario.figures
             if whole or figure.name in told.figures]
    if scenario.populations and whole:
        from lab.fetches.population_findings import population_findings  # numpy is slow to import
        made += population_findings(scenario, run.records, made)
    if scenario.raw is not None and whole:
        made.append(Finding("raw", f"paper/{scenario.raw.file}", missing=told.no_raw)
                    if told.no_raw else raw_finding(scenario.raw, told.raw))
    return made


def _of_figure(scenario: Scenario, figure: Figure, told: Told, kernel: str) -> Finding:
    found = told.figures.get(figure.name)
    if found is None:
        return Finding(figure.name, figure.title, missing=told.missing[figure.name])
    return Finding(
        figure.name, figure.title, tables=(figure_table(scenario, found),),
        statements=found.statements, sentence=sentences.of_figure(found),
        text=sentences.described(found.panel), bars=found.counts, chart=chart(found, kernel),
        samples=found.panel.samples, measured=found.panel.metric.axis, also=figure.also,
        published=_source(figure))


def _source(figure: Figure) -> str:
    """Where the published values are from, "" where there are none."""
    return (f"{published.source(figure.published)} (paper/{figure.published})"
            if figure.published else "")


def _tiles(panels: Sequence[Panel]) -> list[Tile]:
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
    return ["packets were lost" if record.lost_segments
            else "packets of the handshake or acknowledgements were lost"]
