"""Single cells: their records, what larger windows changed in them, and the reasons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from firstflight.base import stats
from firstflight.figures.compare import Row, difference, student_of_repeats
from firstflight.findings.difference import Difference
from firstflight.runs.kinds import is_drawn
from firstflight.runs.results.cells import grouped
from firstflight.runs.results.records import value_of
from firstflight.setting.draws import NOT_DRAWN
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.trial import Trial
from firstflight.workloads.fetch.scenario.varied_parameters import setting_words


def mean(records: Iterable[Record], column: str) -> float | None:
    """The mean of a column of trials or records, weighted by the trials' weights.

    None where no record has a value.
    """
    values = [(value, record.trial.weight) for record in records
              if (value := value_of(record, column)) is not None]
    if not sum(weight for _, weight in values) > 0:
        return None
    return stats.weighted_mean([value for value, _ in values], [weight for _, weight in values])


# A smaller change counts as none: this share of the time, or of an RTT, whichever is less.
SAME_PART, SAME_RTT_PART = 0.01, 0.1
BASE, EXPERIMENT = 0, 1  # the two settings of a comparison, in the tables for figures.compare


# Settings ----------------------------------------------------------------------------

@dataclass(frozen=True)
class CellSetting:
    """All records of one setting of network, window and client.

    requested: the trial, without its repeat, seed and what is drawn.
    """

    requested: Trial
    records: Sequence[Record]

    @property
    def counting(self) -> list[Record]:
        return [record for record in self.records if record.counts]

    @property
    def median(self) -> Record | None:
        """The record with the median time of those that count; None where none does."""
        counting = sorted(self.counting, key=lambda record: record.total_ms or 0.0)
        return counting[(len(counting) - 1) // 2] if counting else None

    @property
    def is_drawn(self) -> bool:
        """Whether it was repeated with other RTTs and queues (setting.draws)."""
        return any(is_drawn(record.trial) for record in self.records)

    @property
    def total_ms(self) -> float | None:
        """Mean over the records that count; None where none does."""
        return mean(self.counting, "total_ms")


def without_repeat(trial: Trial) -> Trial:
    """The trial with repeat 1 and nothing drawn, the same for all repeats of a setting."""
    return replace(trial, repeat=1, seed=0, **NOT_DRAWN)


def settings(records: Iterable[Record]) -> list[CellSetting]:
    """The settings in the order of their records, windows of a cell together and ascending."""
    rows = [CellSetting(requested, group) for requested, group in grouped(
        records, lambda record: without_repeat(record.trial)).items()]
    return [row for cell in _of_cells(rows) for row in sorted(cell, key=lambda row: (
        row.requested.initcwnd, row.requested.uploading_window))]


def _of_cells(rows: Sequence[CellSetting]) -> Iterable[list[CellSetting]]:
    """The settings grouped by cell: those in a group differ in the window only.

    It is the server's window; the client's, where that varies and the server's does not.
    """
    windows = {(row.requested.initcwnd, row.requested.client_initcwnd) for row in rows}
    if len(windows) > 1 == len({initcwnd for initcwnd, _ in windows}):
        return grouped(rows, lambda row: replace(row.requested, client_initcwnd=0)).values()
    return grouped(rows, lambda row: replace(row.requested, initcwnd=1)).values()


@dataclass(frozen=True)
class WindowChange:
    """What a larger window changed in one cell. saved: the difference of total_ms."""

    base: CellSetting
    experiment: CellSetting
    saved: Difference

    @property
    def saved_ms(self) -> float:
        return self.saved.absolute.value

    @property
    def is_of_client(self) -> bool:
        """Whether the client's windows are compared, with which it uploads, not the server's."""
        return self.base.requested.client_initcwnd != self.experiment.requested.client_initcwnd

    @property
    def varied(self) -> str:
        """The name of the window's parameter."""
        return "client_initcwnd" if self.is_of_client else "initcwnd"

    @property
    def windows(self) -> tuple[int, int]:
        """The windows of base and experiment, in segments."""
        if self.is_of_client:
            return (self.base.requested.uploading_window,
                    self.experiment.requested.uploading_window)
        return self.base.requested.initcwnd, self.experiment.requested.initcwnd

    @property
    def effect(self) -> int:
        """1 where the larger window saves time, −1 where it costs time, 0 where neither is sure."""
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


def changes(rows: Sequence[CellSetting]) -> list[WindowChange]:
    """Each larger window of a cell against the smallest one with a mean."""
    timed = [[row for row in cell if row.total_ms is not None] for cell in _of_cells(rows)]
    return [change_between(base, experiment)
            for base, *larger in filter(None, timed) for experiment in larger]


# Reasons -----------------------------------------------------------------------------

@dataclass(frozen=True)
class Reason:
    """Why a larger window changed a time, or why it did not.

    label: for a table; text: part of a sentence, with the numbers and without a full stop. kind:
    the same for reasons that differ in their numbers only.
    """

    label: str
    text: str
    kind: str


def where(change: WindowChange, changes: Sequence[WindowChange]) -> str:
    """The parameters of a comparison that distinguish it from the others, and its windows."""
    others = [other.base.requested for other in changes]
    return ", ".join([*setting_words(change.base.requested, others, differing=True),
                      " → ".join(map(str, change.windows))])
