"""Single cells: what was asked, seen and measured in each, what windows changed, raw values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lab.core import published, stats
from lab.core.records import value_of
from lab.fetches.analysis import counting
from lab.fetches.buckets import Excluded, percent_of
from lab.fetches.record import Record
from lab.fetches.scenario import Raw, Scenario
from lab.fetches.sweep import bucket_value
from lab.fetches.trial import Trial
from lab.fetches.weights import of_sweep


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
    """All records of one setting of network, window and client; means over those that count.

    asked: the trial, its repeat and seed left aside. A mean is None where nothing
    counts or the value could not be had. causes, reasons: why segments were
    retransmitted although none was lost, and why records do not count; each once.
    """

    asked: Trial
    n: int
    excluded: Excluded
    seen_rtt_ms: float | None
    seen_bandwidth_kbps: float | None
    seen_initcwnd: float | None
    seen_first_flight: float | None
    total_ms: float | None
    latency_ms: float | None
    model_ms: float | None
    retransmissions: float | None
    causes: tuple[str, ...]
    reasons: tuple[str, ...]

    @property
    def late_ms(self) -> float | None:
        """The total time less the model's."""
        return late(self.total_ms, self.model_ms)


def late(total_ms: float | None, model_ms: float | None) -> float | None:
    return None if total_ms is None or model_ms is None else total_ms - model_ms


def asked_of(trial: Trial) -> Trial:
    """The trial, its repeat and seed left aside."""
    return replace(trial, repeat=1, seed=0)


def settings(records: Iterable[Record]) -> list[Setting]:
    """One row per setting, in the order of the records, windows together and ascending."""
    grouped: dict[Trial, dict[Trial, list[Record]]] = {}
    for record in records:
        asked = asked_of(record.trial)
        grouped.setdefault(replace(asked, initcwnd=1), {}).setdefault(asked, []).append(record)
    return [_setting(asked, windows[asked])
            for windows in grouped.values()
            for asked in sorted(windows, key=lambda trial: trial.initcwnd)]


def _setting(asked: Trial, records: Sequence[Record]) -> Setting:
    # What was seen is worth telling of a failed verdict too: it says what was wrong.
    counts = [record for record in records if record.counts]
    values, excluded = counting(records, "total_ms")
    return Setting(
        asked=asked, n=len(values), excluded=excluded,
        seen_rtt_ms=mean(records, "seen_rtt_ms"),
        seen_bandwidth_kbps=mean(records, "seen_bandwidth_kbps"),
        seen_initcwnd=mean(records, "seen_initcwnd"),
        seen_first_flight=mean(records, "seen_first_flight"),
        total_ms=mean(counts, "total_ms"), latency_ms=mean(counts, "latency_ms"),
        model_ms=mean(counts, "model_ms"), retransmissions=mean(records, "retransmissions"),
        causes=_distinct(record.retransmission_cause for record in records),
        reasons=_distinct(record.error or record.verdict_reason for record in records
                          if not record.counts))


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for text in texts if text))


@dataclass(frozen=True)
class Change:
    """What a larger window changed in one cell, by the means of total_ms."""

    base: Setting
    experiment: Setting
    absolute_ms: float
    percent: float


def changes(rows: Iterable[Setting]) -> list[Change]:
    """Every window of a cell against the smallest that counts there."""
    cells: dict[Trial, list[Setting]] = {}
    for row in rows:
        if row.total_ms is not None:
            cells.setdefault(replace(row.asked, initcwnd=1), []).append(row)
    return [Change(base, experiment, base_ms - experiment_ms, percent_of(base_ms, experiment_ms))
            for base, *larger in cells.values() for experiment in larger
            if (base_ms := base.total_ms) is not None
            and (experiment_ms := experiment.total_ms) is not None]


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


@dataclass(frozen=True)
class RawSummary:
    """Ours against the comparable published values: median and largest of |difference|."""

    compared: int
    median_ms: float
    largest_ms: float


def raw_summary(rows: Iterable[RawRow]) -> RawSummary | None:
    """None where no published value can be compared with one of ours."""
    differences = [abs(row.measured_ms - row.comparable_ms) for row in rows
                   if row.measured_ms is not None and row.comparable_ms is not None]
    if not differences:
        return None
    median_ms = stats.weighted_quantile(differences, [1.0] * len(differences), 0.5)
    return RawSummary(len(differences), median_ms, max(differences))
