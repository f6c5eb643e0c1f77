"""Single cells: what was asked, seen and measured in each, what windows changed, raw values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lab.core import stats
from lab.core.results.records import value_of
from lab.core.scenario import published
from lab.fetches.figures.analysis import counting
from lab.fetches.figures.buckets import of_sweep, percent_of
from lab.fetches.scenario.scenario import Raw, Scenario
from lab.fetches.scenario.sweep import bucket_value
from lab.fetches.scenario.trial import Trial
from lab.fetches.verify.record import Record


def mean(records: Iterable[Record], column: str) -> float | None:
    """The mean of a column of the trials or of the records, by the trials' weights.

    None where no record has a value.
    """
    values = [(value, record.trial.weight) for record in records
              if (value := value_of(record, column)) is not None]
    if not sum(weight for _, weight in values) > 0:
        return None
    return stats.weighted_mean([value for value, _ in values], [weight for _, weight in values])


# Settings ----------------------------------------------------------------------------

@dataclass(frozen=True)
class Setting:
    """All records of one setting of network, window and client.

    asked: the trial, its repeat and seed left aside.
    """

    asked: Trial
    records: Sequence[Record]

    @property
    def counting(self) -> list[Record]:
        return [record for record in self.records if record.counts]

    @property
    def total_ms(self) -> float | None:
        """Mean over the records that count, None where none does."""
        return mean(self.counting, "total_ms")


def asked_of(trial: Trial) -> Trial:
    """The trial, its repeat and seed left aside."""
    return replace(trial, repeat=1, seed=0)


def settings(records: Iterable[Record]) -> list[Setting]:
    """One row per setting, in the order of the records, windows together and ascending."""
    grouped: dict[Trial, dict[Trial, list[Record]]] = {}
    for record in records:
        asked = asked_of(record.trial)
        grouped.setdefault(replace(asked, initcwnd=1), {}).setdefault(asked, []).append(record)
    return [Setting(asked, windows[asked])
            for windows in grouped.values()
            for asked in sorted(windows, key=lambda trial: trial.initcwnd)]


@dataclass(frozen=True)
class Change:
    """What a larger window changed in one cell, by the means of total_ms."""

    base: Setting
    experiment: Setting
    base_ms: float
    experiment_ms: float

    @property
    def absolute_ms(self) -> float:
        return self.base_ms - self.experiment_ms

    @property
    def percent(self) -> float:
        return percent_of(self.base_ms, self.experiment_ms)


def changes(rows: Iterable[Setting]) -> list[Change]:
    """Every window of a cell against the smallest that counts there."""
    cells: dict[Trial, list[tuple[Setting, float]]] = {}
    for row in rows:
        if (total_ms := row.total_ms) is not None:
            cells.setdefault(replace(row.asked, initcwnd=1), []).append((row, total_ms))
    return [Change(base, experiment, base_ms, experiment_ms)
            for (base, base_ms), *larger in cells.values() for experiment, experiment_ms in larger]


# Published raw values ----------------------------------------------------------------

@dataclass(frozen=True)
class RawRow:
    """One published raw value beside ours. Times in ms.

    measured_ms: mean of what counts, None where nothing does; n: how many.
    comparable_ms: the published value without the round trips that it holds
    besides; None where the published value has a defect, which mark then names.
    """

    initcwnd: int
    rtt_ms: float
    bandwidth_kbps: float
    n: int
    measured_ms: float | None
    published_ms: float
    comparable_ms: float | None
    mark: str


def raw_rows(scenario: Scenario, raw: Raw,
             records: Sequence[Record]) -> tuple[list[RawRow], dict[Trial, RawRow]]:
    """Every published raw value, in the order of its file; and by the trials that are its like.

    Raises NoPanel where the records mix clients.
    """
    chosen: dict[tuple[int, float, float], list[Record]] = {}
    for record in of_sweep(scenario.sweep(raw.sweep), records):
        trial = record.trial
        chosen.setdefault((trial.initcwnd, trial.rtt_ms, trial.bandwidth_kbps), []).append(record)
    rows, of_trial = [], {}
    for fetch in published.fetches(raw.file):
        own = chosen.get((fetch.initcwnd, fetch.rtt_ms, fetch.bandwidth_kbps), [])
        values = [value for _, value in counting(own, raw.metric)[0]]
        mark = next((defect.mark for defect in reversed(raw.defects)
                     if bucket_value(defect.by, fetch) in defect.values), "")
        rows.append(RawRow(
            fetch.initcwnd, fetch.rtt_ms, fetch.bandwidth_kbps, len(values),
            sum(values) / len(values) if values else None, fetch.total_ms,
            None if mark else fetch.total_ms - raw.extra_rtts * fetch.rtt_ms, mark))
        of_trial.update({record.trial: rows[-1] for record in own})
    return rows, of_trial
