"""The part [raw] of a scenario: published raw values of a sweep's cells, next to ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lab.core.findings.findings import Finding, Tile
from lab.core.scenario import published, schema
from lab.fetches.features.raw import cells
from lab.fetches.features.raw.cells import Defect, PublishedCells, Raw
from lab.fetches.figures.buckets import NoPanel
from lab.fetches.figures.figure import Analysis
from lab.fetches.scenario.part import Part, Tables
from lab.fetches.scenario.scenario import Scenario, there
from lab.fetches.verify.record import Record


@dataclass(frozen=True)
class RawPart(Part):
    """The [raw] of a scenario."""

    raw: Raw

    def check(self, scenario: Scenario, where: str) -> None:
        """The sweep and the file are there, and the defects are of what the file has."""
        schema.one_of(self.raw.sweep, [sweep.name for sweep in scenario.sweeps],
                      f"{where}: [raw]: sweep")
        there(f"{where}: [raw]: file", lambda: published.fetches(self.raw.file))
        for defect in self.raw.defects:
            schema.one_of(defect.by, ("rtt_ms", "bandwidth_kbps", "initcwnd", "bdp_bytes"),
                          f"{where}: [raw]: [[defect]]: by")

    def published_cells(self, scenario: Scenario, records: Sequence[Record]) -> PublishedCells:
        return cells.published_cells(scenario, self.raw, records)

    def findings(self, analysis: Analysis, before: Sequence[Finding], judged: Sequence[Any]
                 ) -> tuple[list[Finding], Sequence[Tile]]:
        if not analysis.is_whole:
            return [], ()
        try:
            return [cells.finding(self.published_cells(analysis.scenario, analysis.records))], ()
        except NoPanel as error:
            return [Finding("raw", f"paper/{self.raw.file}", missing=str(error))], ()


def read_raw(tables: Tables) -> RawPart | None:
    """The [raw], None without one. Raises UsageError."""
    if "raw" not in tables.raw:
        return None
    table, where = schema.table(tables.raw, "raw", tables.where), f"{tables.where}: [raw]"
    return RawPart(schema.read(Raw, table, where, defects=schema.read_tables(
        Defect, table, "defect", where, called="mark")))
