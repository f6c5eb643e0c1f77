"""Single cells: what was measured in each, what windows changed there, and why."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lab.core import stats
from lab.core.results.records import value_of
from lab.core.stats import Estimate
from lab.core.words import number, plain, short
from lab.fetches.figures.buckets import percent_of
from lab.fetches.scenario.trial import Trial
from lab.fetches.scenario.varied_parameters import differing
from lab.fetches.verify.limits import BY_RESPONSE, RECEIVE_WINDOW
from lab.fetches.verify.notes import LARGER_WINDOW, remedy_of
from lab.fetches.verify.record import Record
from lab.tcp.delivery.qdiscs import CHOOSING
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


# The least change that counts: a part of the time, or of a round trip where that is less.
SAME_PART, SAME_RTT_PART = 0.01, 0.1
VARIES_MS = 0.001  # between repeats; the guest's clock has nanoseconds


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


def asked_of(trial: Trial) -> Trial:
    """The trial, its repeat and seed left aside."""
    return replace(trial, repeat=1, seed=0)


def settings(records: Iterable[Record]) -> list[CellSetting]:
    """One row per setting, in the order of the records, windows together and ascending."""
    grouped: dict[Trial, dict[Trial, list[Record]]] = {}
    for record in records:
        requested = asked_of(record.trial)
        of_window = grouped.setdefault(replace(requested, initcwnd=1), {})
        of_window.setdefault(requested, []).append(record)
    return [CellSetting(requested, windows[requested])
            for windows in grouped.values()
            for requested in sorted(windows, key=lambda trial: trial.initcwnd)]


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

    @property
    def saved_ms(self) -> Estimate:
        """The same from transfers in pairs, each repeat under both windows, with its interval.

        None of it where there are no two pairs, or where they do not vary.
        """
        baseline = {record.trial.repeat: record.total_ms for record in self.base.counting}
        saved = [before_ms - record.total_ms for record in self.experiment.counting
                 if record.total_ms is not None
                 and (before_ms := baseline.get(record.trial.repeat)) is not None]
        if len(saved) < 2 or max(saved) - min(saved) < VARIES_MS:
            return Estimate(self.absolute_ms)
        return replace(stats.estimate(saved), value=self.absolute_ms)

    @property
    def effect(self) -> int:
        """1 where the larger window saves time, -1 where it costs time, 0 where neither is sure."""
        saved = self.saved_ms
        if abs(saved.value) < min(SAME_PART * self.base_ms,
                                  SAME_RTT_PART * self.base.requested.rtt_ms):
            return 0
        return saved.sign if saved.interval is not None else 1 if saved.value > 0 else -1


def changes(rows: Iterable[CellSetting]) -> list[WindowChange]:
    """Every window of a cell against the smallest that counts there."""
    cells: dict[Trial, list[tuple[CellSetting, float]]] = {}
    for row in rows:
        if (total_ms := row.total_ms) is not None:
            cells.setdefault(replace(row.requested, initcwnd=1), []).append((row, total_ms))
    return [WindowChange(base, experiment, base_ms, experiment_ms)
            for (base, base_ms), *larger in cells.values() for experiment, experiment_ms in larger]


def by_effect(changes: Sequence[WindowChange]) -> list[Record]:
    """The records of the cells, those first in which the window changed most."""
    ordered = sorted(changes, key=lambda change: -abs(change.absolute_ms))
    return [record for change in ordered for setting in (change.base, change.experiment)
            for record in setting.records]


# What limited a transfer: why a larger window changed its time, or why none can -----------
#
# A reason is named only where it explains what was measured: one for a loss of time is not
# named where time was saved.

MOSTLY = 0.6  # of the time, in which the bottleneck sends


@dataclass(frozen=True)
class Reason:
    """word: for a table; text: a part of a sentence with the numbers, no full stop.

    kind: the same for reasons that differ in their numbers only.
    """

    word: str
    text: str
    kind: str


def reasons(change: WindowChange) -> list[Reason]:
    """The reasons of one cell, the most important first; [] where slow start alone decides."""
    if change.experiment.requested.is_secure:
        return [*_handshake(change), *_queue(change)]
    found = [*_first_flight(change)]
    if not any(reason.word == RECEIVE_WINDOW for reason in found):
        found += _later_window(change)
    found += _queue(change)
    if not found:
        found += _random_loss(change) or _bandwidth(change) or _flights(change)
    return found


# The reasons, each of which may apply ------------------------------------------------

def _first_flight(change: WindowChange) -> list[Reason]:
    """What made the window unimportant, or the first flight smaller than it."""
    base, larger = change.base, change.experiment
    requested, window = larger.requested, larger.requested.initcwnd
    first, flight = (mean(each.records, "seen_first_flight") for each in (base, larger))
    limited = {record.limited_by for record in larger.counting} - {*BY_RESPONSE}
    # After an idle time too, where the kernel keeps the window (tcp_slow_start_after_idle = 0).
    grown = max((int(record.response_flights.partition("+")[0]) for record in base.counting
                 if record.response_flights), default=0)
    kept = not requested.idle_ms or grown > base.requested.initcwnd
    if requested.before and kept and not change.effect:
        return [Reason("earlier responses", "the window had grown with the earlier responses on"
                       " the connection: its initial value no longer matters", "earlier")]
    size = _segments(base.records)
    if size <= base.requested.initcwnd and not change.effect:
        return [Reason("response size", f"a larger window cannot help: the whole response"
                       f" ({_counted(size)}) fits in {base.requested.initcwnd}", "fits")]
    if RECEIVE_WINDOW in limited and flight is not None and first is not None:
        return [_receive_window(change, flight, first)]
    if limited:
        names = sorted(limited)
        return [Reason(", ".join(names), f"the {' and the '.join(names)} let {short(flight)} of"
                       f" {window} segments leave at first", f"limited by {names}")]
    return []


def _handshake(change: WindowChange) -> list[Reason]:
    """Where the larger window saves round trips of TLS's handshake, or there is none to save."""
    before, after = (mean(each.records, "handshake_round_trips")
                     for each in (change.base, change.experiment))
    windows = change.base.requested.initcwnd, change.experiment.requested.initcwnd
    if before is None or after is None:
        return []
    if before > after:
        return [Reason("TLS handshake", f"the server's certificates take {plain(before)} round"
                       f" trips with {windows[0]} segments and {plain(after)} with {windows[1]}",
                       "handshake")]
    if not change.effect:
        return [Reason("TLS handshake", "a larger window cannot help: handshake and response fit"
                       f" in {windows[0]} segments and in what these have grown to", "fits")]
    return []


def _segments(records: Iterable[Record]) -> float:
    """Of the response, its headers included; infinite where they are not known."""
    return min((math.ceil((record.header_bytes + record.trial.response_bytes) / record.trial.mss)
                for record in records if record.header_bytes is not None), default=math.inf)


def _counted(segments: float) -> str:
    return f"{plain(segments)} segment{'' if segments == 1 else 's'}"


def _receive_window(change: WindowChange, flight: float, first: float) -> Reason:
    trial = change.experiment.requested
    hint = remedy_of(trial, RECEIVE_WINDOW)
    hint = f" ({hint})" if hint else ""
    if flight <= first:
        return Reason(RECEIVE_WINDOW, "a larger window cannot help: the client's receive window,"
                      f" {trial.initrwnd} segments, lets only {short(flight).removesuffix('.0')}"
                      f" leave at first whatever the initial window{hint}", "receive window, all")
    return Reason(RECEIVE_WINDOW, f"the client's receive window, {trial.initrwnd} segments, lets"
                  f" only {short(flight).removesuffix('.0')} of {trial.initcwnd} leave at first: a"
                  f" larger window cannot help further{hint}", "receive window")


def _later_window(change: WindowChange) -> list[Reason]:
    """Where the client's receive window held later flights back."""
    base, larger = (mean(each.records, "receive_window_waits") or 0.0
                    for each in (change.base, change.experiment))
    if not larger:
        return []
    trial = change.experiment.requested
    times = f"{_few(larger)} time{'' if larger == 1 else 's'}"
    return [Reason(RECEIVE_WINDOW, f"the client's receive window, {trial.initrwnd} segments at"
                   f" first, held later flights back {times} with {trial.initcwnd} segments and"
                   f" {_few(base)} with {change.base.requested.initcwnd} ({LARGER_WINDOW})",
                   "receive window, later")]


def _queue(change: WindowChange) -> list[Reason]:
    """Where what the queue drops explains time that the larger window costs, or saves."""
    base, larger = (mean(each.records, "queue_drops") or 0.0
                    for each in (change.base, change.experiment))
    if not larger and not base:
        return []
    trial = change.experiment.requested
    windows = change.base.requested.initcwnd, trial.initcwnd
    name = trial.qdisc if trial.qdisc in CHOOSING else f"the queue of {trial.queue_packets} packets"
    dropped = (f"{name} dropped {_packets(larger)} with {windows[1]} segments and {_few(base)}"
               f" with {windows[0]}")
    if change.effect < 0 and larger <= base:
        return [Reason("queue", f"{dropped}: fewer, but the first loss ends slow start, and came"
                       " before the window had grown", "queue, early")] if larger else []
    if change.effect > 0 and larger > base:
        return [Reason("queue", f"{dropped}, and still it was faster", "queue, faster")]
    return [Reason("queue", dropped, "queue")]


def _packets(count: float) -> str:
    return f"{_few(count)}{' packet' if count == 1 else ' packets' if count else ''}"


def _few(count: float) -> str:
    return "none" if not count else number(count, 0 if count == int(count) else 1)


def _random_loss(change: WindowChange) -> list[Reason]:
    """Where random loss took more under one window: the larger one also sends more at risk."""
    base, larger = (mean(each.counting, "random_drops") or 0.0
                    for each in (change.base, change.experiment))
    if change.effect >= 0 or not (base or larger):
        return []
    trial = change.experiment.requested
    return [Reason("random loss", f"random loss took {_packets(larger)} of a transfer with"
                   f" {trial.initcwnd} segments and {_few(base)} with"
                   f" {change.base.requested.initcwnd}", "random loss")]


def _bandwidth(change: WindowChange) -> list[Reason]:
    """Where the bottleneck sends nearly all the time, there is little else to save."""
    trial, segments = change.experiment.requested, _segments(change.experiment.records)
    if not math.isfinite(segments):
        return []
    sending_ms = (trial.response_bytes + segments * HEADER_BYTES) * 8 / trial.bandwidth_kbps
    trips = [mean(each.counting, "response_round_trips")
             for each in (change.base, change.experiment)]
    # Fewer flights, and no faster: acknowledgements came before the link had sent a flight.
    never_waits = not change.effect and trips[0] != trips[1]
    if sending_ms < MOSTLY * change.base_ms and not never_waits or change.effect < 0:
        return []
    return [Reason("bandwidth", f"the bandwidth decides: {short(sending_ms)} of"
                   f" {short(change.base_ms)} ms is the time that the link needs for the bytes,"
                   " which no window changes", "bandwidth")]


def _flights(change: WindowChange) -> list[Reason]:
    """How many flights the response takes under either window, as observed."""
    before, after = (next((record for record in each.counting if record.response_flights), None)
                     for each in (change.base, change.experiment))
    windows = change.base.requested.initcwnd, change.experiment.requested.initcwnd
    size = _segments(change.experiment.records)
    if change.effect > 0 and size <= windows[1]:
        return [Reason("response size", f"{windows[1]} segments hold the whole response"
                       f" ({_counted(size)}): a larger window cannot help further", "holds")]
    if before is None or after is None:
        return []
    if not change.effect and before.response_round_trips == after.response_round_trips:
        return [Reason("same flights", f"the response takes {_trips(before)} with {windows[0]}"
                       f" segments ({before.response_flights}) and with {windows[1]}"
                       f" ({after.response_flights})", "same flights")]
    if change.effect <= 0:
        return []
    if before.response_round_trips == after.response_round_trips:
        return [Reason("last flight", f"the response takes {_trips(after)} with either window"
                       f" ({before.response_flights} and {after.response_flights}); what differs"
                       " is how much of it is left for the last one", "last flight")]
    return [Reason("round trips", f"the response takes {_trips(after)} with {windows[1]} segments"
                   f" ({after.response_flights}) in place of {before.response_round_trips} with"
                   f" {windows[0]} ({before.response_flights})", "fewer flights")]


def _trips(record: Record) -> str:
    count = record.response_round_trips
    return f"{count} flight{'' if count == 1 else 's'}"


# Of a run ----------------------------------------------------------------------------

def explained(changes: Sequence[WindowChange], said: str = "") -> list[str]:
    """A sentence for each kind of reason, that of the largest effect first.

    Its numbers are of the cell in which the window changed most. said: what a reader knows.
    """
    alike: dict[str, list[tuple[WindowChange, Reason]]] = {}
    for change in sorted(changes, key=lambda change: -abs(change.absolute_ms)):
        for reason in reasons(change):
            if reason.text not in said:
                alike.setdefault(reason.kind, []).append((change, reason))
    lines = []
    for found in alike.values():
        change, reason = found[0]
        text = reason.text[0].upper() + reason.text[1:]
        if len(changes) == 1:
            lines.append(f"{text}.")
        elif len(found) == len(changes) and len({reason.text for _, reason in found}) == 1:
            lines.append(f"Everywhere: {reason.text}.")
        else:
            lines.append(f"In {len(found)} of {len(changes)} comparisons: {reason.text}"
                         f" ({where(change, changes)}).")
    return lines


def where(change: WindowChange, changes: Sequence[WindowChange]) -> str:
    """The cell and the windows of a comparison, as far as they differ from others."""
    others = [each.base.requested for each in changes]
    return ", ".join([*differing(change.base.requested, others),
                      f"{change.base.requested.initcwnd} →"
                      f" {change.experiment.requested.initcwnd}"])
