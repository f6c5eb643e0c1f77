"""What limited a transfer: why a larger window changed its time, or why none can.

A reason is named only where it explains what was measured: one for a loss of time is not
named where time was saved.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from base.words import number, plain, short
from findings.quantities import AUTO
from net.segments import HEADER_BYTES
from study.fetches.figures.cells import Reason, WindowChange, mean, where
from study.fetches.scenario.trial import Trial
from study.fetches.verify.limits import BY_RESPONSE, RECEIVE_WINDOW
from study.fetches.verify.notes import LARGER_WINDOW, remedy_of
from study.fetches.verify.record import Record
from wire.delivery.qdiscs import CHOOSING

MOSTLY = 0.6  # of the time, in which the bottleneck sends


def reasons(change: WindowChange) -> list[Reason]:
    """The reasons of one cell, the most important first; [] where slow start alone decides."""
    if change.experiment.requested.is_secure:
        return [*_handshake(change), *_queue(change)]
    factors = [*_first_flight(change)]
    if not any(reason.word == RECEIVE_WINDOW for reason in factors):
        factors += _later_window(change)
    factors += _queue(change)
    if not factors:
        factors += _random_loss(change) or _bandwidth(change) or _flights(change)
    return factors


def explained(changes: Sequence[WindowChange], known: str = "") -> list[str]:
    """A sentence for each kind of reason, that of the largest effect first.

    Its numbers are of the cell in which the window changed most. known: what a reader knows.
    """
    alike: dict[str, list[tuple[WindowChange, Reason]]] = {}
    for change in sorted(changes, key=lambda change: -abs(change.absolute_ms)):
        for reason in reasons(change):
            if reason.text not in known:
                alike.setdefault(reason.kind, []).append((change, reason))
    lines = []
    for same in alike.values():
        change, reason = same[0]
        text = reason.text[0].upper() + reason.text[1:]
        if len(changes) == 1:
            lines.append(f"{text}.")
        elif len(same) == len(changes) and len({reason.text for _, reason in same}) == 1:
            lines.append(f"Everywhere: {reason.text}.")
        else:
            lines.append(f"In {len(same)} of {len(changes)} comparisons: {reason.text}"
                         f" ({where(change, changes)}).")
    return lines


# The reasons, each of which may apply ------------------------------------------------

def _first_flight(change: WindowChange) -> list[Reason]:
    """What made the window unimportant, or the first flight smaller than it."""
    base, larger = change.base, change.experiment
    requested, window = larger.requested, larger.requested.initcwnd
    first, flight = (mean(cell.records, "seen_first_flight") for cell in (base, larger))
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
    before, after = (mean(cell.records, "handshake_round_trips")
                     for cell in (change.base, change.experiment))
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
    base, larger = (mean(cell.records, "receive_window_waits") or 0.0
                    for cell in (change.base, change.experiment))
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
    base, larger = (mean(cell.records, "queue_drops") or 0.0
                    for cell in (change.base, change.experiment))
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
    base, larger = (mean(cell.counting, "random_drops") or 0.0
                    for cell in (change.base, change.experiment))
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
    trips = [mean(cell.counting, "response_round_trips")
             for cell in (change.base, change.experiment)]
    # Fewer flights, and no faster: acknowledgements came before the link had sent a flight.
    never_waits = not change.effect and trips[0] != trips[1]
    if sending_ms < MOSTLY * change.base_ms and not never_waits or change.effect < 0:
        return []
    return [Reason("bandwidth", f"the bandwidth decides: {short(sending_ms)} of"
                   f" {short(change.base_ms)} ms is the time that the link needs for the bytes,"
                   " which no window changes", "bandwidth")]


def _flights(change: WindowChange) -> list[Reason]:
    """How many flights the response takes under either window, as observed."""
    before, after = (next((record for record in cell.counting if record.response_flights), None)
                     for cell in (change.base, change.experiment))
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


# Queues far from the path's bandwidth-delay product ------------------------------------

SHORT_BDP, LONG_BDP = 0.5, 5.0


def queue_hints(trials: Sequence[Trial], records: Sequence[Record]) -> list[str]:
    """A queue that is far from one BDP, where that matters: what to try."""
    by_ratio = {}
    for trial in trials:
        bdp = trial.rtt_ms * trial.bandwidth_kbps / 8 / (trial.mss + HEADER_BYTES)
        if trial.qdisc == "fifo" and trial.queue_from != AUTO:
            by_ratio[trial.queue_packets / bdp] = (trial, bdp)
    lines = []
    if by_ratio and min(by_ratio) < SHORT_BDP and any(record.queue_drops for record in records):
        trial, bdp = by_ratio[min(by_ratio)]
        lines.append(f"The queue of {trial.queue_packets} packets is"
                     f" {number(100 * min(by_ratio), 0)} % of the path's bandwidth-delay product"
                     f" ({number(bdp, 0)} packets): compare with --queue 1bdp.")
    if by_ratio and max(by_ratio) > LONG_BDP:
        trial, bdp = by_ratio[max(by_ratio)]
        if trial.response_bytes / trial.mss > LONG_BDP * bdp:
            lines.append(f"The queue of {trial.queue_packets} packets is {number(max(by_ratio), 0)}"
                         " times the path's bandwidth-delay product, and the response can fill it:"
                         " compare with --queue 1bdp.")
    return lines
