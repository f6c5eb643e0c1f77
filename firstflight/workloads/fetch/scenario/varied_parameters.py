"""Varied parameters: the fields of Trial in which trials differ, as columns of tables."""

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

Requested = tuple[Column, Callable[[Trial], Cell]]  # a column, and a trial's cell in it

# Fields that always have a column, those that never have one, and the first ones in their order.
_ALWAYS = ("rtt_ms", "bandwidth_kbps", "initcwnd", "response_bytes")
_NEVER = ("scenario", "seed", *NOT_DRAWN, "own_server", "key_rtt_ms", "key_bandwidth_kbps",
          "weight")
_FIRST = ("part", "sample")
_FIELDS = sorted((field for field in requested_fields(Trial) if field.name not in _NEVER),
                 key=lambda field: field.name not in _FIRST)
_ORDER = (*(field.name for field in _FIELDS if field.name not in ("initcwnd", "repeat")),
          "repeat", "initcwnd", "id")
_values_in_order = attrgetter(*_ORDER)  # of a trial
# Further fields that decide how the value of a field is shown (_value).
_READ_WITH = {"queue_packets": ("queue_from",), "uplink_kbps": ("bandwidth_kbps",)}


def requested_columns(trials: Sequence[Trial], without: Sequence[str] = ()) -> list[Requested]:
    """Columns for RTT, bandwidth, window and size, and for each other field that is varied.

    A field is varied where it differs between the trials, or from its default. without: fields that
    have no column.
    """
    return [_column(field) for field in _FIELDS if field.name not in without
            and (field.name in _ALWAYS or _varies(field, trials))]


def setting_words(trial: Trial, trials: Sequence[Trial], differing: bool = False,
                  without: Sequence[str] = ()) -> list[str]:
    """The varied parameters of one of the trials in words, without its window.

    differing: only the parameters in which the trials differ; [] where they differ in none.
    without: further fields that are not named.
    """
    words = []
    for column, show in requested_columns(trials, without=("initcwnd", *without)):
        value = show(trial)
        differs = any(show(other) != value for other in trials)
        if value == "" or (differing and not differs):
            continue
        number = value.value if isinstance(value, Rounded) else value
        words.append(f"{column.name} {in_words(number, column.unit)}")
    return words


def order(trial: Trial, words: Mapping[str, Sequence[str]] = {}) -> tuple[object, ...]:
    """A key that orders trials by their parameters, with the windows of a cell side by side.

    words: for fields whose values are words, these values in the requested order.
    """
    if not words:
        return _values_in_order(trial)

    def sort_key(name: str) -> Any:
        value = getattr(trial, name)
        if name not in words:
            return value
        listed = words[name]
        # A value that is not in the list comes after all that are.
        return (listed.index(value), "") if value in listed else (len(listed), value)

    return tuple(map(sort_key, _ORDER))


def words_of(sweeps: Iterable[Sweep]) -> dict[str, tuple[str, ...]]:
    """For each field whose values are words, the values of all sweeps in the sweeps' order."""
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
    if value == int(value):
        return int(value)
    decimals = plain(value).partition(".")[2]
    return Rounded(value, digits=len(decimals))


def _varies(field: Field[object], trials: Sequence[Trial]) -> bool:
    """Whether a field differs between the trials, or from its default."""
    # One trial for each value: in a map of thousands, most have the same.
    read = attrgetter(field.name, *_READ_WITH.get(field.name, ()))
    alike = dict(zip(map(read, trials), trials))
    values = {_value(field, trial) for trial in alike.values()}
    has_default = _default(field) is not MISSING
    is_default = values <= {"", 0.0}
    return len(values) > 1 or (has_default and not is_default)


def _column(field: Field[object]) -> Requested:
    """The column of a field, and a function that returns a trial's cell in it."""
    named = quantity(field.name)
    column = Column(named.head or named.label or named.name, named.unit, REQUESTED,
                    is_text=str(field.type) == "str",
                    is_filter=field.name not in ("repeat", "sample"))
    return column, lambda trial: shown(_requested(field, trial))


def _value(field: Field[object], trial: Trial) -> Any:
    """The field's value; "" where it is the default. A random parameter of 0, as loss, stays 0."""
    if field.name == "queue_packets" and trial.queue_from == AUTO:
        return ""  # it follows from RTT and bandwidth
    value = _requested(field, trial)
    default = trial.bandwidth_kbps if field.name == "uplink_kbps" else _default(field)
    if value == ClientWindow.DEFAULT:
        return ""
    return "" if value == default and not _is_random(field.name) else value


def _requested(field: Field[object], trial: Trial) -> Any:
    """The field's value as a table shows it; "" where nothing was requested."""
    value = getattr(trial, field.name)
    if field.name == "initcwnd" and trial.window_by == BY_KERNEL:
        return "its own"
    if field.name == "client_initcwnd" and not value:
        return ClientWindow.DEFAULT
    return "" if field.name == "queue_from" and value == AUTO else value


def _default(field: Field[object]) -> object:
    """The field's default, MISSING without one. Random parameters have the default 0."""
    if field.name == "congestion_control":  # a trial always names it; Linux's own needs no column
        return PARAMETERS[field.name].default
    return 0 if _is_random(field.name) else field.default


def _is_random(name: str) -> bool:
    """Whether a field is a random parameter, such as loss."""
    return name in PARAMETERS and PARAMETERS[name].random
