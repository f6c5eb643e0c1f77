"""Varied parameters: the columns that distinguish trials, from the fields of Trial."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field
from operator import attrgetter
from typing import Any

from firstflight.base.quantity import ClientWindow, in_words
from firstflight.base.words import plain
from firstflight.findings.findings import REQUESTED, Cell, Column, Rounded
from firstflight.findings.quantities import quantity
from firstflight.net.queue_length import AUTO
from firstflight.parameters import PARAMETERS
from firstflight.runs.results.records import requested_fields
from firstflight.setting.draws import NOT_DRAWN
from firstflight.setting.tcp import BY_KERNEL
from firstflight.workloads.fetch.scenario.sweep import Sweep
from firstflight.workloads.fetch.trial import Trial

Requested = tuple[Column, Callable[[Trial], Cell]]

_ALWAYS = ("rtt_ms", "bandwidth_kbps", "initcwnd", "response_bytes")
_NEVER = ("scenario", "seed", *NOT_DRAWN, "own_server", "key_rtt_ms", "key_bandwidth_kbps",
          "weight")
_FIRST = ("part", "sample")
_FIELDS = sorted((field for field in requested_fields(Trial) if field.name not in _NEVER),
                 key=lambda field: field.name not in _FIRST)
_ORDER = (*(field.name for field in _FIELDS if field.name not in ("initcwnd", "repeat")),
          "repeat", "initcwnd", "id")
_places = attrgetter(*_ORDER)  # of a trial, where no words have an order of their own


def requested_columns(trials: Sequence[Trial], without: Sequence[str] = ()) -> list[Requested]:
    """Columns for RTT, bandwidth, window and size, and for each other field that is varied.

    A field is varied where it differs between the trials, or from its default.
    """
    return [_column(field) for field in _FIELDS if field.name not in without
            and (field.name in _ALWAYS or _varies(field, trials))]


def setting_words(trial: Trial, others: Sequence[Trial], differing: bool = False,
                  without: Sequence[str] = ()) -> list[str]:
    """The columns of a trial in words, without its window.

    differing: only the columns that distinguish it from the others; [] for one network. without:
    further columns that are not named.
    """
    words = []
    for column, show in requested_columns(others, without=("initcwnd", *without)):
        value = show(trial)
        is_different = any(show(other) != value for other in others)
        if value == "" or differing and not is_different:
            continue
        number = value.value if isinstance(value, Rounded) else value
        words.append(f"{column.name} {in_words(number, column.unit)}")
    return words


def order(trial: Trial, words: Mapping[str, Sequence[str]] = {}) -> tuple[object, ...]:
    """A key that orders trials by their parameters, with the windows of a cell side by side.

    words: for fields with words, their values in the requested order.
    """
    if not words:
        return _places(trial)

    def place(name: str) -> Any:
        known, value = words.get(name), getattr(trial, name)
        if known is None:
            return value
        return (known.index(value), "") if value in known else (len(known), value)

    return tuple(map(place, _ORDER))


def words_of(sweeps: Iterable[Sweep]) -> dict[str, tuple[str, ...]]:
    """For each field with words, the values that the sweeps list, in their order."""
    words: dict[str, dict[str, None]] = {}
    for sweep in sweeps:
        for name in _ORDER:
            values = sweep.lists.get(name, ())
            if all(isinstance(value, str) for value in values):
                words.setdefault(name, {}).update(dict.fromkeys(values))
    return {name: tuple(values) for name, values in words.items()}


def shown(value: str | float) -> Cell:
    """A value with as many decimals as it was requested with."""
    if isinstance(value, str):
        return value
    return (int(value) if value == int(value)
            else Rounded(value, len(plain(value).partition(".")[2])))


def _varies(field: Field[object], trials: Sequence[Trial]) -> bool:
    """Whether a field differs between the trials, or from its default."""
    # One trial for each value: in a map of thousands, most have the same.
    alike = {(getattr(trial, field.name), trial.bandwidth_kbps, trial.queue_from): trial
             for trial in trials}
    values = {_value(field, trial) for trial in alike.values()}
    return len(values) > 1 or not values <= {"", 0.0} and _default(field) is not MISSING


def _column(field: Field[object]) -> Requested:
    named = quantity(field.name)
    return (Column(named.head or named.label or named.name, named.unit, REQUESTED,
                   is_text=str(field.type) == "str",
                   is_filter=field.name not in ("repeat", "sample")),
            lambda trial: shown(_requested(field, trial)))


def _value(field: Field[object], trial: Trial) -> Any:
    """The field's value; "" where it is the default. Random loss and jitter of 0 stay 0."""
    if field.name == "queue_packets" and trial.queue_from == AUTO:
        return ""  # it follows from RTT and bandwidth
    value = _requested(field, trial)
    default = trial.bandwidth_kbps if field.name == "uplink_kbps" else _default(field)
    if value == ClientWindow.DEFAULT:
        return ""
    return "" if value == default and not _is_random(field.name) else value


def _requested(field: Field[object], trial: Trial) -> Any:
    """The field's value; "" where it only means that nothing was requested."""
    value = getattr(trial, field.name)
    if field.name == "initcwnd" and trial.window_by == BY_KERNEL:
        return "its own"
    if field.name == "client_initcwnd" and not value:
        return ClientWindow.DEFAULT
    return "" if field.name == "queue_from" and value == AUTO else value


def _default(field: Field[object]) -> object:
    """The field's default, MISSING without one. Random loss and jitter have the default 0."""
    if field.name == "congestion_control":  # a trial always names it; Linux's own needs no column
        return PARAMETERS[field.name].default
    return 0 if _is_random(field.name) else field.default


def _is_random(name: str) -> bool:
    """Whether a field is a random parameter, such as loss."""
    return name in PARAMETERS and PARAMETERS[name].random
