"""What servers besides server.py bring: rules of a sweep, and notes of a run."""

from __future__ import annotations

from collections.abc import Sequence

from lab.fetches.features.servers import notes, rules
from lab.fetches.scenario import feature
from lab.fetches.scenario.sweep import Sweep
from lab.fetches.verify.record import Record


class Feature(feature.Feature):
    """As lab.fetches.scenario.feature has it."""

    def check_sweep(self, sweep: Sweep, where: str) -> None:
        rules.check_server(sweep, where)

    def notes(self, records: Sequence[Record]) -> list[str]:
        return notes.of_servers(records)


FEATURE = Feature()
