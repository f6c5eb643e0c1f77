"""Why a larger window changed a time, or why it did not: only what the packets prove.

A cause is named where it is counted in the packets of the trials that are compared, has the sign
of the difference, and accounts for four fifths of it. Else the answer says that no cause is known,
and what differs most. Nothing is said of a window that was not measured, unless the packets prove
it for all.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from base.words import number, plain
from findings.quantities import AUTO
from net.segments import HEADER_BYTES
from study.fetches.figures.cells import (
    SAME_PART, SAME_RTT_PART, CellSetting, Reason, WindowChange, mean, where)
from study.fetches.scenario.trial import Trial
from study.fetches.verify.limits import BY_RESPONSE, RECEIVE_WINDOW
from study.fetches.verify.notes import remedy_of
from study.fetches.verify.record import Record
from wire.delivery.qdiscs import CHOOSING

ACCOUNTED = 0.8  # of the difference, at least; at most its inverse
MODEL_MS = 0.05  # to which the model follows a transfer that loses nothing (tests/golden)
Value = Callable[[Record], float | None]


def reasons(change: WindowChange) -> list[Reason]:
    """What limited the first flight, and the cause of the difference, or of there being none."""
    same_ms = min(SAME_PART * change.base_ms, SAME_RTT_PART * change.base.requested.rtt_ms)
    if abs(change.absolute_ms) < same_ms:
        return [*(_limits(change) or _unchanged(change, same_ms)), *_counted(change)]
    for cause in CAUSES:
        if change.effect and accounts(change, cause):
            return [*_limits(change), Reason(cause.word, cause.text(change), cause.kind),
                    *_counted(change)]
    return [*_limits(change), *_unknown(change), *_counted(change)]


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


# Causes of a difference ----------------------------------------------------------------

@dataclass(frozen=True)
class Cause:
    """events: of a transfer, counted in its packets; took_ms: the time that these took of it.

    Either is None where the transfer does not show it. A cause that has no took_ms itself is none
    of a difference: it is a statement of what was counted, said wherever there is an event.
    """

    word: str
    kind: str
    events: Value
    took_ms: Value | None
    text: Callable[[WindowChange], str]


def accounts(change: WindowChange, cause: Cause) -> bool:
    """Whether the slower side has more of the events, and these took the time that it lost."""
    if cause.took_ms is None:
        return False
    events = _difference(change, cause.events)
    took_ms = _difference(change, cause.took_ms)
    if not events or took_ms is None or (events > 0) != (change.absolute_ms > 0):
        return False
    return ACCOUNTED <= took_ms / change.absolute_ms <= 1 / ACCOUNTED


def _counted(change: WindowChange) -> list[Reason]:
    """The statements of what was counted, where it was in every transfer of both windows."""
    counts = [(cause, [_mean(cell, cause.events) for cell in (change.base, change.experiment)])
              for cause in CAUSES if cause.took_ms is None]
    return [Reason(cause.word, cause.text(change), cause.kind) for cause, events in counts
            if None not in events and any(events)]


def _difference(change: WindowChange, value: Value) -> float | None:
    """By which the mean of the smaller window is above that of the larger one."""
    base, larger = (_mean(cell, value) for cell in (change.base, change.experiment))
    return None if base is None or larger is None else base - larger


def _mean(cell: CellSetting, value: Value) -> float | None:
    """Over the transfers that count, None where one of them does not show it."""
    values = [found for record in cell.counting if (found := value(record)) is not None]
    return sum(values) / len(values) if values and len(values) == len(cell.counting) else None


def _undisturbed(record: Record) -> bool:
    """Nothing was lost, or sent twice."""
    return record.retransmissions == 0 and not (
        record.handshake_retransmissions or record.queue_drops or record.random_drops
        or record.uplink_queue_drops or record.lost_segments)


def pauses_ms(record: Record) -> float | None:
    """How long the link waited between the response's flights for acknowledgements.

    A flight's first segment is acknowledged a round trip after it has left; until then the link
    sends the others.
    """
    flights = [int(count) for count in re.findall(r"\d+", record.response_flights)]
    if not flights or not _undisturbed(record):
        return None
    trial = record.trial
    segment_ms = (trial.mss + HEADER_BYTES) * 8 / trial.bandwidth_kbps
    waits_ms = [max(0.0, trial.rtt_ms - (count - 1) * segment_ms) for count in flights]
    if (record.response_round_trips or 0) > len(flights):  # more flights than are listed
        return sum(waits_ms) if not waits_ms[-1] else None
    return sum(waits_ms[:-1])


def _lost_ms(record: Record, lost: float | None, other: float | None) -> float | None:
    """The time above that of the model, which loses nothing; None where all else may take it."""
    if (record.total_ms is None or record.model_ms is None or other or record.uplink_queue_drops
            or record.handshake_retransmissions or record.retransmission_cause):
        return None
    late_ms = record.total_ms - record.model_ms
    return late_ms if lost or abs(late_ms) < MODEL_MS else None


def _later_segments(record: Record) -> float | None:
    """Of the first flight, those that left after its first instant; one write at an idle path."""
    trial = record.trial
    if (record.first_burst_segments is None or record.seen_first_flight is None or trial.gap_ms
            or trial.is_secure or trial.before or not _undisturbed(record)):
        return None
    return record.seen_first_flight - record.first_burst_segments


def _say_pacing(change: WindowChange) -> str:
    at_once, flights = ([_few(mean(cell.counting, column) or 0.0) for cell in (
        change.base, change.experiment)] for column in ("first_burst_segments",
                                                        "seen_first_flight"))
    requested = change.experiment.requested
    return (f"under {requested.congestion_control} {at_once[0]} of the {flights[0]} segments of the"
            f" first flight leave in one instant with {change.base.requested.initcwnd} segments and"
            f" {at_once[1]} of {flights[1]} with {requested.initcwnd}, the others later")


def _say_queue(change: WindowChange) -> str:
    trial = change.experiment.requested
    name = trial.qdisc if trial.qdisc in CHOOSING else f"the queue of {trial.queue_packets} packets"
    return f"{name} dropped {_both(change, 'queue_drops', ' packets')}"


def _say_flights(change: WindowChange) -> str:
    cells = change.base, change.experiment
    listed = " and ".join(cell.counting[0].response_flights for cell in cells)
    counts = [mean(cell.counting, "response_round_trips") for cell in cells]
    if counts[0] != counts[1]:
        return (f"the response takes {_both(change, 'response_round_trips', ' flights')}"
                f" ({listed}), and the link waits between them")
    waits_ms = [number(_mean(cell, pauses_ms) or 0.0, 1) for cell in cells]
    return (f"the response takes {_few(counts[0] or 0.0)} flights with either window ({listed}),"
            f" and the link waits between them {waits_ms[0]} ms with"
            f" {change.base.requested.initcwnd} segments and {waits_ms[1]} with"
            f" {change.experiment.requested.initcwnd}")


CAUSES = (
    Cause("repeated handshake", "handshake, lost",
          lambda record: record.handshake_retransmissions, lambda record: record.connect_ms,
          lambda change: "the handshake was sent again,"
          f" {_both(change, 'handshake_retransmissions', ' packets')}"),
    Cause("TLS handshake", "handshake", lambda record: record.handshake_round_trips,
          lambda record: record.appconnect_ms if _undisturbed(record) else None,
          lambda change: "the server's handshake takes"
          f" {_both(change, 'handshake_round_trips', ' round trips')}"),
    Cause("queue", "queue", lambda record: record.queue_drops, lambda record: _lost_ms(
        record, record.queue_drops, record.random_drops), _say_queue),
    Cause("random loss", "random loss", lambda record: record.random_drops,
          lambda record: _lost_ms(record, record.random_drops, record.queue_drops),
          lambda change: f"random loss took {_both(change, 'random_drops', ' packets')}"),
    Cause("round trips", "flights", pauses_ms, pauses_ms, _say_flights),
    Cause("", "pacing", _later_segments, None, _say_pacing))

COUNTED = {"retransmissions": "retransmissions", "handshake_retransmissions":
           "retransmissions of the handshake", "queue_drops": "packets dropped by the queue",
           "uplink_queue_drops": "dropped towards the server", "random_drops":
           "packets lost at random", "receive_window_waits": "waits for the receive window",
           "handshake_round_trips": "round trips of the handshake",
           "response_round_trips": "flights of the response"}


def _unknown(change: WindowChange) -> list[Reason]:
    """With the two counts of the packets that differ most, by their part of the larger one.

    [] where flights were not counted: in stored runs of older versions, and of the model alone.
    """
    if any(record.response_round_trips is None for cell in (change.base, change.experiment)
           for record in cell.counting):
        return []
    differ = []
    for column in COUNTED:
        base, larger = (mean(cell.counting, column) for cell in (change.base, change.experiment))
        if base is not None and larger is not None and base != larger:
            differ.append((-abs(base - larger) / max(base, larger), column))
    most = [f"{COUNTED[column]}, {_both(change, column)}"
            for _, column in sorted(differ, key=lambda part: part[0])[:2]]
    sure = "" if change.effect else "a difference is not sure, and "
    return [Reason("not known", f"{sure}the cause is not known; "
                   + (f"what differs most in the packets: {'; '.join(most)}" if most else
                      "no count of the packets differs"), "not known")]


def _both(change: WindowChange, column: str, unit: str = "") -> str:
    """Such as "2.5 packets with 3 segments and none with 10"."""
    counts = [mean(cell.counting, column) or 0.0 for cell in (change.base, change.experiment)]
    first = f"{_few(counts[0])}{unit.removesuffix('s') if counts[0] == 1 else unit}"
    if unit and not counts[0]:
        first = f"no{unit.removesuffix('s')}"
    return (f"{first} with {change.base.requested.initcwnd} segments and"
            f" {_few(counts[1]) if counts[1] or not unit else 'none'} with"
            f" {change.experiment.requested.initcwnd}")


def _few(count: float) -> str:
    return number(count, 0 if count == int(count) else 1)


# Where nothing changed, and what limited -----------------------------------------------

def _unchanged(change: WindowChange, same_ms: float) -> list[Reason]:
    """Where both windows sent alike, or the link never waited: [] where it is not shown."""
    cells = change.base, change.experiment
    requested, windows = change.base.requested, [cell.requested.initcwnd for cell in cells]
    records = [record for cell in cells for record in cell.counting]
    trips = {(record.handshake_round_trips, record.response_round_trips) for record in records}
    if not all(map(_undisturbed, records)):
        return []
    size = max((math.ceil((record.header_bytes + record.trial.response_bytes) / record.trial.mss)
                for record in records if record.header_bytes is not None), default=0)
    plain_http = not requested.is_secure and not requested.before and not requested.gap_ms
    if plain_http and size and all(record.seen_first_flight == size for record in records):
        return [Reason("response size", f"a larger window cannot help: the whole response ({size}"
                       f" segment{'' if size == 1 else 's'}) left at once with {windows[0]}",
                       "fits")]
    waits_ms = [_mean(cell, pauses_ms) for cell in cells]
    if None in waits_ms or len({trip[0] for trip in trips}) > 1:
        return []
    if len(trips) == 1 and abs((waits_ms[0] or 0.0) - (waits_ms[1] or 0.0)) < same_ms:
        ((handshake, response),) = trips
        before = f"the handshake takes {handshake} and " if handshake else ""
        flights = [cell.counting[0].response_flights for cell in cells]
        listed = flights[0] if flights[0] == flights[1] else f"{flights[0]} and {flights[1]}"
        takes = (f"1 flight of {listed} segment{'' if listed == '1' else 's'} with either window"
                 if response == 1 else f"{response} flights with either window ({listed})")
        return [Reason("same flights", f"{before}the response takes {takes}", "same flights")]
    if max(waits_ms[0] or 0.0, waits_ms[1] or 0.0) < same_ms:
        return [Reason("bandwidth", "the link sent the response without a pause under either"
                       " window", "bandwidth")]
    return []


def _limits(change: WindowChange) -> list[Reason]:
    """What made the first flight of every transfer smaller than the larger window."""
    larger, trial = change.experiment, change.experiment.requested
    names = sorted({record.limited_by for record in larger.counting})
    flight = mean(larger.counting, "seen_first_flight")
    if flight is None or set(names) & {*BY_RESPONSE}:
        return []
    hint = remedy_of(trial, RECEIVE_WINDOW) if RECEIVE_WINDOW in names else ""
    return [Reason(", ".join(names), f"the {' and the '.join(names)} let {plain(round(flight, 1))}"
                   f" of {trial.initcwnd} segments leave at first{f' ({hint})' if hint else ''}",
                   f"limited by {names}")]


# Queues far from the path's bandwidth-delay product ------------------------------------

SHORT_BDP, LONG_BDP = 0.5, 5.0


def queue_hints(trials: Sequence[Trial], records: Sequence[Record]) -> list[str]:
    """A queue that is far from one BDP: what its trials show of it, and what to try."""
    by_ratio = {}
    for trial in trials:
        bdp = trial.rtt_ms * trial.bandwidth_kbps / 8 / (trial.mss + HEADER_BYTES)
        if trial.qdisc == "fifo" and trial.queue_from != AUTO:
            by_ratio[trial.queue_packets / bdp] = (trial, bdp)
    if not by_ratio:
        return []
    lines = []
    trial, bdp = by_ratio[min(by_ratio)]
    drops = [record.queue_drops for record in records
             if record.queue_drops and _path(record.trial) == _path(trial)]
    if min(by_ratio) < SHORT_BDP and drops:
        lines.append(f"The queue of {trial.queue_packets} packets is"
                     f" {number(100 * min(by_ratio), 0)} % of the path's bandwidth-delay product"
                     f" ({number(bdp, 0)} packets), and dropped packets of {len(drops)}"
                     f" transfer{'' if len(drops) == 1 else 's'}: compare with --queue 1bdp.")
    if max(by_ratio) > LONG_BDP:
        trial, bdp = by_ratio[max(by_ratio)]
        response = trial.response_bytes / trial.mss / bdp
        if response > LONG_BDP:
            lines.append(f"The queue of {trial.queue_packets} packets is {number(max(by_ratio), 0)}"
                         " times the path's bandwidth-delay product, the response"
                         f" {number(response, 0)} times: compare with --queue 1bdp.")
    return lines


def _path(trial: Trial) -> tuple[str, float, float, float, int]:
    return (trial.qdisc, trial.queue_packets, trial.rtt_ms, trial.bandwidth_kbps, trial.mss)
