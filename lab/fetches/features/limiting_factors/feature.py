"""What limiting factors bring: the reasons of each comparison, remarks, hints at the queue."""

from __future__ import annotations

from collections.abc import Sequence

from lab.fetches.features.limiting_factors import factors, queues, remarks
from lab.fetches.figures.cells import Reason, WindowChange
from lab.fetches.scenario import feature
from lab.fetches.scenario.trial import Trial
from lab.fetches.verify.record import Record


class Feature(feature.Feature):
    """As lab.fetches.scenario.feature has it."""

    def reasons(self, change: WindowChange) -> list[Reason]:
        return factors.reasons(change)

    def limit(self, record: Record) -> str:
        return remarks.limit(record)

    def remarks(self, records: Sequence[Record]) -> tuple[str, ...]:
        return remarks.common(records)

    def hints(self, trials: Sequence[Trial], records: Sequence[Record]) -> list[str]:
        return queues.hints(trials, records)


FEATURE = Feature()
