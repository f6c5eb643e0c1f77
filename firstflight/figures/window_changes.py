"""The cells of a run of any workload: their records, and what a larger window changed in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from firstflight.base import stats
from firstflight.figures.compare import Row, difference, student_of_repeats
from firstflight.findings.difference import Difference
from firstflight.runs.kinds import R, T, is_drawn
from firstflight.runs.results.records import value_of

# A change counts as none if it is less than this part of the time and than this part of an RTT.
SAME_PART = 0.01
SAME_RTT_PART = 0.1
BASE, EXPERIMENT = 0, 1  # the two settings of a comparison, in the tables for figures.compare


def mean(records: Iterable[R], column: str) -> float | None:
    """The mean of a column of trials or records, weighted by the trials' weights.

    None where no record has a value.
    """
    values, weights = [], []
    for record in records:
        value = value_of(record, column)
        if value is not None:
            values.append(value)
            weights.append(weight_of(record.trial))
    return stats.weighted_mean(values, weights) if sum(weights) > 0 else None


def weight_of(trial: object) -> float:
    """How much a trial counts in a mean; only drawn populations have weights."""
    weight: float = getattr(trial, "weight", 1.0)
    return weight


def time_ms(record: R) -> float | None:
    """The time of a record by which windows are compared; None if the record has none.

    Each kind of record names its column: EXPLAINED, or COMPARED where EXPLAINED is "".
    """
    value: float | None = getattr(record, record.EXPLAINED or record.COMPARED)
    return value


@dataclass(frozen=True)
class CellSetting(Generic[T, R]):
    """All records of one setting of network, window and client."""

    requested: T  # the trial that all records share, without repeat, seed and drawn values
    records: Sequence[R]

    @property
    def counting(self) -> list[R]:
        """The records that count."""
        return [record for record in self.records if record.counts]

    @property
    def median(self) -> R | None:
        """The record with the median time of those that count; None where none does."""
        counting = sorted(self.counting, key=lambda record: time_ms(record) or 0.0)
        return counting[(len(counting) - 1) // 2] if counting else None

    @property
    def trials(self) -> list[Any]:
        """The trials of the records."""
        return [record.trial for record in self.records]

    @property
    def is_drawn(self) -> bool:
        """Whether the cell was repeated with RTTs and queues that were drawn (setting.draws)."""
        return any(is_drawn(trial) for trial in self.trials)

    @property
    def total_ms(self) -> float | None:
        """The mean of time_ms of the records that count; None where none does."""
        column = next((record.EXPLAINED or record.COMPARED for record in self.records), "")
        return mean(self.counting, column)

    def of_repeats(self, repeats: Iterable[int]) -> CellSetting[T, R]:
        """The cell with only these repeats."""
        kept = {*repeats}
        records = [record for record in self.records if record.trial.repeat in kept]
        return CellSetting(self.requested, records)


@dataclass(frozen=True)
class WindowChange(Generic[T, R]):
    """What a larger window changed in one cell."""

    base: CellSetting[T, R]
    experiment: CellSetting[T, R]
    saved: Difference  # of the times
    windows: tuple[int, int]  # of base and experiment, in segments
    varied: str = "initcwnd"  # the name of the window's parameter

    @property
    def saved_ms(self) -> float:
        return self.saved.absolute.value

    @property
    def half_ms(self) -> float:
        """Half of the 95 % interval of the saving; 0 without one."""
        interval = self.saved.absolute.interval
        return (interval[1] - interval[0]) / 2 if interval is not None else 0.0

    @property
    def repeats(self) -> list[int]:
        """The repeats that count under both windows."""
        of_base = {record.trial.repeat for record in self.base.counting}
        of_experiment = {record.trial.repeat for record in self.experiment.counting}
        return sorted(of_base & of_experiment)

    @property
    def is_of_client(self) -> bool:
        """Whether the windows are the client's, with which it uploads, and not the server's."""
        return self.varied != "initcwnd"

    @property
    def effect(self) -> int:
        """1 where the larger window saves time, −1 where it costs time, 0 where neither is sure."""
        saved, rtt_ms = self.saved.absolute, getattr(self.base.requested, "rtt_ms")
        same_ms = min(SAME_PART * self.saved.base.value, SAME_RTT_PART * rtt_ms)
        if abs(saved.value) < same_ms:
            return 0
        if saved.interval is not None:
            return saved.sign
        return 1 if saved.value > 0 else -1


def saved_between(base: CellSetting[T, R], experiment: CellSetting[T, R]) -> Difference:
    """The time of one setting less that of another. Raises ValueError where one has no mean."""
    table = []  # its rows are of one cell, which needs no name
    for side, cell in ((BASE, base), (EXPERIMENT, experiment)):
        for record in cell.counting:
            value = time_ms(record)
            if value is not None:
                table.append(Row(cell=None, window=side, unit=record.trial.repeat,
                                 weight=weight_of(record.trial), value=value))
    return difference(table, BASE, EXPERIMENT, student_of_repeats)


@dataclass(frozen=True)
class Reason:
    """Why a larger window changed a time, or why it did not."""

    label: str  # for a table
    text: str  # part of a sentence, with the numbers and without a full stop
    kind: str  # equal for reasons that differ only in their numbers
