"""What a published set-up brings: its causes, switched on one after another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab.core.findings.findings import Report
from lab.core.run.kinds import RunData, Study
from lab.fetches.features.replication import causes, unconnected
from lab.fetches.features.replication.causes import AsPublished
from lab.fetches.scenario import feature
from lab.fetches.scenario.feature import Part, Tables
from lab.fetches.scenario.scenario import Scenario
from lab.fetches.scenario.sweep import Sweep
from lab.fetches.scenario.trial import Trial
from lab.fetches.verify.record import Record


@dataclass(frozen=True)
class Explained(Part):
    """The [as_published] of a scenario: whose numbers are explained, and by what."""

    of: AsPublished

    def levels(self, sweeps: tuple[Sweep, ...]) -> list[tuple[Sweep, ...]]:
        return [level.sweeps for level in causes.levels(sweeps, self.of.causes)[1:]]

    def report(self, study: Study, scenario: Scenario, run: RunData) -> Report:
        from lab.fetches.features.replication import findings
        return findings.report(study, scenario, self.of, run)


class Feature(feature.Feature):
    """As lab.fetches.scenario.feature has it."""

    tables = ("as_published", "cause")
    own_checks = (unconnected.CONNECTION,)

    def merged(self, raw: Mapping[str, Any], where: str) -> Mapping[str, Any]:
        return causes.merged(raw, where)

    def read(self, tables: Tables) -> Part | None:
        setup = causes.read(tables.raw, tables.sweeps, tables.where)
        return None if setup is None else Explained(setup)

    def failed(self, trial: Trial, observation: Mapping[str, Any], failure: str,
               client_pcap: bytes) -> Record | None:
        if not trial.cannot_connect:
            return None
        return unconnected.judged(trial, observation, failure, client_pcap)


FEATURE = Feature()
