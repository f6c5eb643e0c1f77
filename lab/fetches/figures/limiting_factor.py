"""What decided on a cell: why a larger window changed it, or why none can."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lab.core.words import number, plain, short
from lab.fetches.figures.cells import Change, mean
from lab.fetches.scenario.varied_parameters import told
from lab.fetches.verify.limits import BY_RESPONSE, RECEIVE_WINDOW
from lab.fetches.verify.notes import LARGER_WINDOW, remedy_of
from lab.fetches.verify.record import Record
from lab.tcp.delivery.netem import CHOOSING
from lab.tcp.packets import HEADER_BYTES

SAME_MS = 0.5  # the least change that people would notice in a table
MOSTLY = 0.6  # of the time, in which the bottleneck sends


@dataclass(frozen=True)
class Reason:
    """word: for a table; text: a sentence's part with the numbers, no full stop."""

    word: str
    text: str


def reasons(change: Change) -> list[Reason]:
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


def _handshake(change: Change) -> list[Reason]:
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


def change_by_loss(change: Change) -> bool:
    """Whether random losses decided as well."""
    return bool(mean(change.experiment.records, "random_drops"))


def _segments(records: Iterable[Record]) -> float:
    """Of the response, its headers included; infinite where they are not known."""
    return min((math.ceil((record.header_bytes + record.trial.response_bytes) / record.trial.mss)
                for record in records if record.header_bytes is not None), default=math.inf)


def _counted(segments: float) -> str:
    return f"{plain(segments)} segment{'' if segments == 1 else 's'}"


def _receive_window(change: Change, flight: float, first: float) -> Reason:
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


def _later_window(change: Change) -> list[Reason]:
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


def _queue(change: Change) -> list[Reason]:
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


def _bandwidth(change: Change) -> list[Reason]:
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

def said(changes: Sequence[Change]) -> list[str]:
    """A sentence for each thing that decided, with the cells that it decided on."""
    alike: dict[str, dict[str, list[Change]]] = {}  # by the words, their numbers left aside
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


def _where(change: Change, changes: Sequence[Change]) -> str:
    others = [each.base.asked for each in changes]
    return (f" (as at {', '.join(told(change.base.asked, others))},"
            f" {change.base.asked.initcwnd} → {change.experiment.asked.initcwnd})")


def by_effect(changes: Sequence[Change]) -> list[Record]:
    """The records of the cells, those first in which the window changed most."""
    ordered = sorted(changes, key=lambda change: -abs(change.absolute_ms))
    return [record for change in ordered for setting in (change.base, change.experiment)
            for record in setting.records]
