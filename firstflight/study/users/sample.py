"""Draws a sample of users, and makes a scenario of it, without addresses.

The rows are sorted by group, RTT, bandwidth and size, and drawn at equal distances of cumulated
weight (systematic sampling, Madow 1949). So every part of the distribution has its share of the
trials. A seed always draws the same rows.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy
from numpy.typing import NDArray

from firstflight.base.errors import UsageError
from firstflight.base.words import format_lossless
from firstflight.findings.quantities import FLAGS
from firstflight.net.queue_length import AUTO
from firstflight.parameters import PARAMETERS
from firstflight.runs import schema
from firstflight.runs.scenario_file import Head
from firstflight.study.users.rows import UserTable, summary
from firstflight.workloads.fetch.scenario import writing
from firstflight.workloads.fetch.scenario.requested_users import QUANTITY_NAMES, Requested
from firstflight.workloads.fetch.scenario.scenario import Scenario
from firstflight.workloads.fetch.scenario.sweep import Template
from firstflight.workloads.fetch.scenario.users import UNKNOWN, UserSample

LINUX_WINDOW = 10  # TCP_INIT_CWND
DIGITS = 3  # of a time in ms, since netem's delay has whole microseconds
# The values of parameters that neither the file nor a flag says.
DEFAULTS: Mapping[str, str | float] = {
    "client": "libcurl",  # hundreds of fetches in one process
    "congestion_control": "cubic", "queue": AUTO, "loss_percent": 0, "repeat": 1}


def scenario(users: UserTable, requested: Requested, path: Path, seed: int) -> Scenario:
    """The scenario that measures a sample of the users. Raises UsageError for what is missing.

    path: the file of the users. seed: of the draw.
    """
    fallbacks = requested.given or {}  # by quantity, where a row of the file has no value
    columns = fill_columns(users, fallbacks, path)
    rows, counts = draw_rows(users, columns, requested.trials, seed)
    table: dict[str, object] = {
        "initcwnd": list(requested.windows), "baseline_initcwnd": baseline_of(requested.windows),
        "groups": list(users.groups), "group": users.group[rows].tolist(),
        "times": counts.tolist()}
    for name, column in columns.items():
        table[name] = column[rows].tolist()

    gaps = numpy.isnan(users.bandwidth_kbps)
    if gaps.any():
        table["assumed_kbps"] = float(columns["bandwidth_kbps"][gaps][0])
    if unsaid := unknown(requested.defaults or {}, users.are_first_requests):
        table["unknown"] = unsaid

    defaults: dict[str, object] = {}
    common: dict[str, str | float | tuple[str, ...]] = {**DEFAULTS, **(requested.defaults or {})}
    for name, value in common.items():
        key = PARAMETERS[name].key if name in PARAMETERS else name
        defaults[key] = list(value) if isinstance(value, tuple) else value
    template = schema.read(Template, defaults, f"{path}: [defaults]")
    sampled = schema.read(UserSample, table, f"{path}: [users]", template=template)

    named = printable(path.name)
    title = f"Which initial window for the users of {named}?"
    sources = (_describe_source(users, name, fallbacks) for name in QUANTITY_NAMES)
    head = Head(title, f"{named}: {summary(users)}", name=f"users_of_{stem_of(path)}",
                claim=title, text="", sysctls={}, note="; ".join(filter(None, sources)))
    made = Scenario(head, sweeps=(), figures=(), users=sampled)
    return replace(made, head=replace(head, text=writing.text(made)))


def unknown(said_by_flags: Collection[str], are_first_requests: bool) -> list[str]:
    """The parameters of UNKNOWN whose values neither the file nor the flags say.

    said_by_flags: names of the parameters that have a flag. are_first_requests: whether the file
    has only the first request of each connection, so that no response comes before those that are
    measured.
    """
    return [name for name in UNKNOWN
            if name not in said_by_flags and not (name == "kept" and are_first_requests)]


def baseline_of(windows: Sequence[int]) -> int:
    """The window that the others are compared with."""
    return LINUX_WINDOW if LINUX_WINDOW in windows else min(windows)


def printable(name: str) -> str:
    """A file's name in the characters of a title."""
    return "".join(character if character.isprintable() else " " for character in name)


def stem_of(path: Path) -> str:
    """A file's name in the characters of a scenario's name."""
    return re.sub(r"[^a-z0-9]+", "_", path.stem.lower()).strip("_")[:60] or "file"


def fill_columns(users: UserTable, given: Mapping[str, float], path: Path
                 ) -> dict[str, NDArray[numpy.float64]]:
    """The columns by their quantity, without gaps. Raises UsageError for what is missing.

    given: values of flags, by their quantity, which stand where a row has none.
    """
    return {name: _fill_column(users, name, given, path) for name in QUANTITY_NAMES}


def _fill_column(users: UserTable, name: str, given: Mapping[str, float], path: Path
                 ) -> NDArray[numpy.float64]:
    """A column without gaps. Raises UsageError that names the flag for what is missing."""
    column: NDArray[numpy.float64] = getattr(users, name)
    gaps = numpy.isnan(column)
    if gaps.any() and name not in given:
        raise UsageError(f"{path}: {int(gaps.sum())} of {users.count} rows have no {name}; give"
                         f" it with {FLAGS[name].flag}, one value for all of them")
    filled = numpy.where(gaps, given.get(name, 0.0), column)
    digits = 0 if name == "response_bytes" else DIGITS
    return filled.round(digits)


def _describe_source(users: UserTable, name: str, given: Mapping[str, float]) -> str:
    """Where values of a quantity come from that the file does not have, in words; "" for none.

    They were estimated (users.estimated), or are those of the command line (given).
    """
    missing = int(numpy.isnan(getattr(users, name)).sum())
    facts = [f"{name}: {users.estimated[name]}"] if name in users.estimated else []
    if missing:
        facts.append(f"{name}: {missing} of {users.count} rows have the"
                     f" {format_lossless(given[name])} of the command line")
    return "; ".join(facts)


def draw_rows(users: UserTable, columns: Mapping[str, NDArray[numpy.float64]], count: int,
              seed: int) -> tuple[NDArray[numpy.intp], NDArray[numpy.intp]]:
    """Draw rows; return their indices, and how often each was drawn, both of shape (rows,).

    Rows of the same group with equal values need to be measured only once, so they are one row.
    """
    # The last key of lexsort is the first to sort by.
    order = numpy.lexsort([*reversed(list(columns.values())), users.group])
    cumulated = numpy.cumsum(users.weight[order])
    start = numpy.random.default_rng(seed).random()
    points = (numpy.arange(count) + start) / count * cumulated[-1]
    places = numpy.searchsorted(cumulated, points, side="right")
    drawn = order[places.clip(max=len(order) - 1)]

    values = [users.group[drawn].astype(float)]
    for column in columns.values():
        values.append(column[drawn])
    _, first, times = numpy.unique(numpy.stack(values), axis=1, return_index=True,
                                   return_counts=True)
    return drawn[first], times
