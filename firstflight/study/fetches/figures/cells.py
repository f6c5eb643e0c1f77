"""Single cells: what was measured in each, what windows changed there, and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from firstflight.base import stats
from firstflight.findings.difference import Difference
from firstflight.runs.results.cells import grouped
from firstflight.runs.results.records import value_of
from firstflight.study.compare import Row, difference, student_of_repeats
from firstflight.study.fetches.scenario.trial import Trial
from firstflight.study.fetches.scenario.varied_parameters import setting_words
from firstflight.study.fetches.verify.record import Record


def mean(records: Iterable[Record], column: str) -> float | None:
    """The mean of a column of the trials or of the records, by the trials' weights.

    None where no record has a value.
    """
    values = [(value, record.trial.weight) for record in records
              if (value := value_of(record, column)) is not None]
    if not sum(weight for _, weight in values) > 0:
        return None
    return stats.weighted_mean([value for value, _ in values], [weight for _, weight in values])


# The least change that counts: a part of the time, or of a round trip where that is less.
SAME_PART, SAME_RTT_PART = 0.01, 0.1
BASE, EXPERIMENT = 0, 1  # the two settings of a comparison


# Settings ----------------------------------------------------------------------------

@dataclass(frozen=True)
class CellSetting:
    """All records of one setting of network, window and client.

    requested: the trial, its repeat and seed left aside.
    """

    requested: Trial
    records: Sequence[Record]

    @property
    def counting(self) -> list[Record]:
        return [record for record in self.records if record.counts]

    @property
    def total_ms(self) -> float | None:
        """Mean over the records that count, None where none does."""
        return mean(self.counting, "total_ms")


def without_repeat(trial: Trial) -> Trial:
    """The trial, its repeat and seed left aside."""
    return replace(trial, repeat=1, seed=0)


def settings(records: Iterable[Record]) -> list[CellSetting]:
    """One row per setting, in the order of the records, windows together and ascending."""
    rows = [CellSetting(requested, of_setting) for requested, of_setting in grouped(
        records, lambda record: without_repeat(record.trial)).items()]
    return [row for cell in _of_cells(rows)
            for row in sorted(cell, key=lambda row: row.requested.initcwnd)]


def _of_cells(rows: Iterable[CellSetting]) -> Iterable[list[CellSetting]]:
    """The settings that differ in the window only, together."""
    return grouped(rows, lambda row: replace(row.requested, initcwnd=1)).values()


@dataclass(frozen=True)
class WindowChange:
    """What a larger window changed in one cell; saved: of total_ms."""

    base: CellSetting
    experiment: CellSetting
    saved: Difference

    @property
    def saved_ms(self) -> float:
        return self.saved.absolute.value

    @property
    def effect(self) -> int:
        """1 where the larger window saves time, -1 where it costs time, 0 where neither is sure."""
        saved = self.saved.absolute
        if abs(saved.value) < min(SAME_PART * self.saved.base.value,
                                  SAME_RTT_PART * self.base.requested.rtt_ms):
            return 0
        return saved.sign if saved.interval is not None else 1 if saved.value > 0 else -1


def change_between(base: CellSetting, experiment: CellSetting) -> WindowChange:
    """What one setting changes against another. Raises ValueError where one has no mean."""
    table = [Row(None, cell, record.trial.repeat, record.trial.weight, record.total_ms)
             for cell in (BASE, EXPERIMENT)
             for record in (base, experiment)[cell].counting if record.total_ms is not None]
    return WindowChange(base, experiment, difference(table, BASE, EXPERIMENT, student_of_repeats))


def changes(rows: Iterable[CellSetting]) -> list[WindowChange]:
    """Every window of a cell against the smallest that counts there."""
    timed = [[row for row in cell if row.total_ms is not None] for cell in _of_cells(rows)]
    return [change_between(base, experiment)
            for base, *larger in filter(None, timed) for experiment in larger]


# Limiting factors: why a larger window changed a time, or why none can ---------------

@dataclass(frozen=True)
class Reason:
    """word: for a table; text: a part of a sentence with the numbers, no full stop.

    kind: the same for reasons that differ in their numbers only.
    """

    word: str
    text: str
    kind: str


def where(change: WindowChange, changes: Sequence[WindowChange]) -> str:
    """The cell and the windows of a comparison, as far as they differ from others."""
    others = [other.base.requested for other in changes]
    return ", ".join([*setting_words(change.base.requested, others, differing=True),
                      f"{change.base.requested.initcwnd} →"
                      f" {change.experiment.requested.initcwnd}"])
