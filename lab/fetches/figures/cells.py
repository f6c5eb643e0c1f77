"""Single cells: what was measured in each, what windows changed there and why, raw values."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lab.core import stats
from lab.core.results.records import value_of
from lab.core.scenario import published
from lab.core.words import number, plain, short
from lab.fetches.figures.analysis import counting
from lab.fetches.figures.buckets import of_sweep, percent_of
from lab.fetches.scenario.scenario import Raw, Scenario
from lab.fetches.scenario.sweep import bucket_value
from lab.fetches.scenario.trial import Trial
from lab.fetches.scenario.varied_parameters import told
from lab.fetches.verify.limits import BY_RESPONSE, RECEIVE_WINDOW
from lab.fetches.verify.notes import LARGER_WINDOW, remedy_of
from lab.fetches.verify.record import Record
from lab.tcp.delivery.netem import CHOOSING
from lab.tcp.packets import HEADER_BYTES


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
class CellSetting:
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


def settings(records: Iterable[Record]) -> list[CellSetting]:
    """One row per setting, in the order of the records, windows together and ascending."""
    grouped: dict[Trial, dict[Trial, list[Record]]] = {}
    for record in records:
        asked = asked_of(record.trial)
        grouped.setdefault(replace(asked, initcwnd=1), {}).setdefault(asked, []).append(record)
    return [CellSetting(asked, windows[asked])
            for windows in grouped.values()
            for asked in sorted(windows, key=lambda trial: trial.initcwnd)]


@dataclass(frozen=True)
class WindowChange:
    """What a larger window changed in one cell, by the means of total_ms."""

    base: CellSetting
    experiment: CellSetting
    base_ms: float
    experiment_ms: float

    @property
    def absolute_ms(self) -> float:
        return self.base_ms - self.experiment_ms

    @property
    def percent(self) -> float:
        return percent_of(self.base_ms, self.experiment_ms)


def changes(rows: Iterable[CellSetting]) -> list[WindowChange]:
    """Every window of a cell against the smallest that counts there."""
    cells: dict[Trial, list[tuple[CellSetting, float]]] = {}
    for row in rows:
        if (total_ms := row.total_ms) is not None:
            cells.setdefault(replace(row.asked, initcwnd=1), []).append((row, total_ms))
    return [WindowChange(base, experiment, base_ms, experiment_ms)
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


# What decided on a cell: why a larger window changed it, or why none can -----------

SAME_MS = 0.5  # the least change that people would notice in a table
MOSTLY = 0.6  # of the time, in which the bottleneck sends


@dataclass(frozen=True)
class Reason:
    """word: for a table; text: a sentence's part with the numbers, no full stop."""

    word: str
    text: str


def reasons(change: WindowChange) -> list[Reason]:
    """The reasons of one cell, the most important first; [] where slow start alone decides."""
    if change.experiment.asked.is_secure:
        return [*_handshake(change), *_queue(change)]
    base, larger = change.base, change.experiment
    asked, window = larger.asked, larger.asked.initcwnd
    found = []
    first, flight = (mean(each.records, "seen_first_flight") for each in (base, larger))
    limited = {record.limited_by for record in larger.counting} - {*BY_RESPONSE}
    if asked.before and not asked.idle_ms and abs(change.absolute_ms) < SAME_MS:
        found.append(Reason("earlier responses", "the window had grown with the earlier responses"
                            " on the connection: its initial value no longer matters"))
    elif _segments(base.records) <= base.asked.initcwnd and not change_by_loss(change):
        found.append(Reason("response size", f"larger windows cannot help: the whole response"
                            f" ({_counted(_segments(base.records))}) fits in"
                            f" {base.asked.initcwnd}"))
    elif RECEIVE_WINDOW in limited and flight is not None and first is not None:
        found.append(_receive_window(change, flight, first))
    elif limited:
        found.append(Reason(", ".join(sorted(limited)), f"the {' and the '.join(sorted(limited))}"
                            f" let {short(flight)} of {window} segments leave at first"))
    if not any(reason.word == RECEIVE_WINDOW for reason in found):
        found += _later_window(change)
    found += _queue(change)
    if not found:
        found += _bandwidth(change)
    if not found and _segments(larger.records) <= window:
        found.append(Reason("response size", f"{window} segments hold the whole response"
                            f" ({_counted(_segments(larger.records))}): still larger windows"
                            " cannot help"))
    return found


def _handshake(change: WindowChange) -> list[Reason]:
    """Where the larger window saves round trips of TLS's handshake, or there is none to save."""
    before, after = (mean(each.records, "handshake_round_trips")
                     for each in (change.base, change.experiment))
    windows = change.base.asked.initcwnd, change.experiment.asked.initcwnd
    if before is None or after is None:
        return []
    if before > after:
        return [Reason("TLS handshake", f"the server's certificates take {plain(before)} round"
                       f" trips with {windows[0]} segments and {plain(after)} with {windows[1]}")]
    if abs(change.absolute_ms) < SAME_MS:
        return [Reason("TLS handshake", "larger windows cannot help: handshake and response fit in"
                       f" {windows[0]} segments and in what these have grown to")]
    return []


def change_by_loss(change: WindowChange) -> bool:
    """Whether random losses decided as well."""
    return bool(mean(change.experiment.records, "random_drops"))


def _segments(records: Iterable[Record]) -> float:
    """Of the response, its headers included; infinite where they are not known."""
    return min((math.ceil((record.header_bytes + record.trial.response_bytes) / record.trial.mss)
                for record in records if record.header_bytes is not None), default=math.inf)


def _counted(segments: float) -> str:
    return f"{plain(segments)} segment{'' if segments == 1 else 's'}"


def _receive_window(change: WindowChange, flight: float, first: float) -> Reason:
    trial = change.experiment.asked
    hint = remedy_of(trial, RECEIVE_WINDOW)
    if flight <= first:
        text = (f"larger windows cannot help: the client's receive window, {trial.initrwnd}"
                f" segments, lets only {short(flight).removesuffix('.0')} leave at first"
                f" whatever the initial window")
    else:
        text = (f"the client's receive window, {trial.initrwnd} segments, lets only"
                f" {short(flight).removesuffix('.0')} of {trial.initcwnd} leave at first: still"
                " larger windows cannot help")
    return Reason(RECEIVE_WINDOW, f"{text}{f' ({hint})' if hint else ''}")


def _later_window(change: WindowChange) -> list[Reason]:
    """Where the client's receive window held later flights back."""
    base, larger = (mean(each.records, "receive_window_waits") or 0.0
                    for each in (change.base, change.experiment))
    if not larger:
        return []
    trial = change.experiment.asked
    return [Reason(RECEIVE_WINDOW, f"the client's receive window, {trial.initrwnd} segments at"
                   f" first, held later flights back {_few(larger)} times with {trial.initcwnd}"
                   f" segments and {_few(base)} with {change.base.asked.initcwnd}"
                   f" ({LARGER_WINDOW})")]


def _queue(change: WindowChange) -> list[Reason]:
    """Where the larger window makes the queue drop more, or less."""
    base, larger = (mean(each.records, "queue_drops") or 0.0
                    for each in (change.base, change.experiment))
    if not larger and not base:
        return []
    trial = change.experiment.asked
    name = trial.qdisc if trial.qdisc in CHOOSING else f"the queue of {trial.queue_packets} packets"
    return [Reason("queue", f"{name} dropped"
                   f" {_few(larger)} with {trial.initcwnd} segments and {_few(base)} with"
                   f" {change.base.asked.initcwnd}")]


def _few(count: float) -> str:
    return "none" if not count else number(count, 0 if count == int(count) else 1)


def _bandwidth(change: WindowChange) -> list[Reason]:
    """Where the bottleneck sends nearly all the time, there is little else to save."""
    trial, segments = change.experiment.asked, _segments(change.experiment.records)
    if not math.isfinite(segments):
        return []
    sending_ms = (trial.response_bytes + segments * HEADER_BYTES) * 8 / trial.bandwidth_kbps
    if sending_ms < MOSTLY * change.base_ms:
        return []
    return [Reason("bandwidth", f"the bandwidth decides: {short(sending_ms)} of"
                   f" {short(change.base_ms)} ms is the time that the link needs for the bytes,"
                   " which no window changes")]


# Of a run ----------------------------------------------------------------------------

def said(changes: Sequence[WindowChange]) -> list[str]:
    """A sentence for each thing that decided, with the cells that it decided on."""
    alike: dict[str, dict[str, list[WindowChange]]] = {}  # by the words, their numbers left aside
    for change in changes:
        for reason in reasons(change):
            words = re.sub(r"\d[\d.]*", "", reason.text)
            alike.setdefault(words, {}).setdefault(reason.text, []).append(change)
    lines = []
    for texts in alike.values():
        text, where = next(iter(texts.items()))
        count = sum(map(len, texts.values()))
        text = text[0].upper() + text[1:]
        if len(changes) == 1:
            lines.append(f"{text}.")
        elif count == len(changes) and len(texts) == 1:
            lines.append(f"Everywhere: {text[0].lower()}{text[1:]}.")
        else:
            lines.append(f"In {count} of {len(changes)} comparisons: {text[0].lower()}{text[1:]}"
                         f"{_where(where[0], changes) if len(texts) > 1 or count > 1 else ''}.")
    return lines


def _where(change: WindowChange, changes: Sequence[WindowChange]) -> str:
    others = [each.base.asked for each in changes]
    return (f" (as at {', '.join(told(change.base.asked, others))},"
            f" {change.base.asked.initcwnd} → {change.experiment.asked.initcwnd})")


def by_effect(changes: Sequence[WindowChange]) -> list[Record]:
    """The records of the cells, those first in which the window changed most."""
    ordered = sorted(changes, key=lambda change: -abs(change.absolute_ms))
    return [record for change in ordered for setting in (change.base, change.experiment)
            for record in setting.records]
