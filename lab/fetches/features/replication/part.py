"""The part of a scenario that explains a published set-up: its causes, one after another."""

from __future__ import annotations

from dataclasses import dataclass

from lab.core.findings.findings import Report
from lab.core.run.kinds import RunData, Study
from lab.fetches.features.replication import causes
from lab.fetches.features.replication.causes import AsPublished
from lab.fetches.scenario.part import Part, Tables
from lab.fetches.scenario.scenario import Scenario
from lab.fetches.scenario.sweep import Sweep


@dataclass(frozen=True)
class Explained(Part):
    """The [as_published] of a scenario: whose numbers are explained, and by what."""

    of: AsPublished

    def levels(self, sweeps: tuple[Sweep, ...]) -> list[tuple[Sweep, ...]]:
        return [level.sweeps for level in causes.levels(sweeps, self.of.causes)[1:]]

    def report(self, study: Study, scenario: Scenario, run: RunData) -> Report:
        from lab.fetches.features.replication import findings
        return findings.report(study, scenario, self.of, run)


def read_explained(tables: Tables) -> Explained | None:
    """The [as_published] with its [[cause]]s, None without one. Raises UsageError."""
    setup = causes.read(tables.raw, tables.sweeps, tables.where)
    return None if setup is None else Explained(setup)
