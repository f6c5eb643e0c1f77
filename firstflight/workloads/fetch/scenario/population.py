"""Populations: clients with their responses, and a trial for each response and window.

A published bar is a mean over very different clients. So clients and responses are drawn to be like
those of the paper (docs/STUDIES.md). They are the rows of a table next to the scenario. Each row is
measured under every initial window, so that only the window differs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from firstflight.base.errors import UsageError
from firstflight.runs import schema
from firstflight.runs.schema import key
from firstflight.scenario.setting_sweep import queue_of
from firstflight.workloads.fetch.scenario import rows
from firstflight.workloads.fetch.scenario.rows import Row
from firstflight.workloads.fetch.scenario.sweep import Template
from firstflight.workloads.fetch.trial import Trial

# The clean mechanism: one write on a new connection, over a link with the RTT and the bandwidth of
# the row's key, without loss. By column of a row: the value that trials have before a cause adds
# the column. A text is the name of another column. None is the value of [defaults].
_CLEAN: Mapping[str, str | float | None] = {
    "rtt_ms": "key_rtt_ms", "bandwidth_kbps": "key_bandwidth_kbps", "queue_packets": None,
    "loss_percent": 0.0, "seed": 0, "earlier_bytes": 0, "burst_bytes": 0, "gap_ms": 0.0}
OF_TRIALS = tuple(_CLEAN)
# Columns that change no trial, only its weight.
WEIGHT, BASELINE_WEIGHT = "weight", "baseline_weight"
_ALL_COLUMNS = (*OF_TRIALS, WEIGHT, BASELINE_WEIGHT)  # all that causes add


@dataclass(frozen=True)
class Cause:
    """A step from the clean mechanism (_CLEAN) to the rows as they are."""

    name: str = key(reader=schema.file_name)
    title: str = key()
    # The columns whose own values trials have from this step on.
    adds: tuple[str, ...] = key(reader=schema.values(
        schema.word((*OF_TRIALS, WEIGHT, BASELINE_WEIGHT)), "names", empty=True))


def steps(causes: Sequence[Cause]) -> Iterator[tuple[Cause, frozenset[str]]]:
    """Each cause with the columns that it and all causes before it add."""
    added: frozenset[str] = frozenset()
    for cause in causes:
        added = added.union(cause.adds)
        yield cause, added


@dataclass(frozen=True)
class Population:
    """One population of the table. Each of its rows is measured under every window."""

    name: str = key(reader=schema.file_name)
    title: str = key()
    # The windows. The first one is the baseline, whose week may have other weights than all others.
    initcwnd: tuple[int, ...] = key()
    explained: bool = False  # whether bars are also shown with causes added one at a time


@dataclass(frozen=True)
class Populations:
    """The populations of a scenario, and the steps that explain one of them."""

    scenario: str  # the scenario's name
    populations: tuple[Population, ...]
    steps: tuple[Cause, ...]
    template: Template  # the parameters of trials that are not drawn
    table: str  # the name of the table with the rows
    in_full: bool = False  # whether the rows are those of the large sample
    # One client in so many is measured, with all of its responses.
    one_in: int = 1

    def population(self, name: str) -> Population | None:
        """The population of this name, None without one."""
        return next((population for population in self.populations if population.name == name),
                    None)

    def under(self, initcwnd: tuple[int, ...]) -> Populations:
        """The same populations under these initial windows."""
        populations = tuple(replace(population, initcwnd=initcwnd)
                            for population in self.populations)
        return replace(self, populations=populations)

    @property
    def explained(self) -> Population | None:
        """The population that is explained cause by cause; None without one."""
        return next((population for population in self.populations if population.explained), None)

    def check_causes(self, where: str) -> None:
        """Check that the steps of the explained population add all columns. Raises UsageError."""
        added = {column for cause in self.steps for column in cause.adds}
        lacking = [column for column in _ALL_COLUMNS if column not in added]
        if self.explained and lacking:
            raise UsageError(f"{where}: population {self.explained.name!r} is to be explained, and"
                             f" no [[step]] adds {', '.join(lacking)}")

    @property
    def count(self) -> int:
        """How many trials there are, without those of the steps.

        0 where no rows are drawn yet.
        """
        path = rows.path_of(self.table, self.in_full)
        by_part = self._rows_by_part(path) if path.exists() else {}
        return sum(len(by_part.get(population.name, ())) * len(population.initcwnd)
                   for population in self.populations)

    def _rows_by_part(self, path: Path) -> dict[str, list[Row]]:
        """The rows of the measured clients, by the name of their population.

        A table has its clients in the order of their RTT, so that every n-th one is an even sample.
        """
        by_part: dict[str, list[Row]] = {}
        for row in rows.read(path):
            by_part.setdefault(row.part, []).append(row)
        if self.one_in == 1:
            return by_part
        return {part: rows.of_every_nth_client(drawn, self.one_in)
                for part, drawn in by_part.items()}

    def trials(self, seed: int) -> list[Trial]:
        """The trials of each population, followed by the trials of its steps.

        The windows of one response follow each other, on the same network with the same losses.
        seed: that of the table whose rows are measured. Raises UsageError.
        """
        path = rows.path_of(self.table, self.in_full, seed)
        if not path.exists():
            full = " --full" if self.in_full else ""
            flags = full + (f" --seed {seed}" if seed != 1 else "")
            raise UsageError(f"{self.table}: its rows are not drawn: /usr/bin/python3 -m"
                             f" paper.draw {self.table}{flags} draws them")
        by_part = self._rows_by_part(path)
        for population in self.populations:
            if population.name not in by_part:
                raise UsageError(f"{rows.where_of(path)}: has no row of population"
                                 f" {population.name!r}")
        return [trial for population in self.populations
                for trial in self._trials(population, by_part[population.name])]

    def _trials(self, population: Population, drawn: Sequence[Row]) -> Iterator[Trial]:
        """The trials of one population, then those of its steps if it is explained."""
        as_drawn = [self._response(row, _ALL_COLUMNS) for row in drawn]
        for sample, (row, response) in enumerate(zip(drawn, as_drawn)):
            yield from _under_windows(population, population.name, sample, response=response,
                                      baseline_weight=row.baseline_weight)

        if not population.explained:
            return
        before: list[Trial] | None = None  # the responses of the step before
        for cause, added in steps(self.steps):
            after = [self._response(row, added) for row in drawn]
            if all(map(_have_equal_columns, after, as_drawn)):
                return  # later steps change only weights

            part = f"{population.name}-{cause.name}"
            for sample, (row, response) in enumerate(zip(drawn, after)):
                # A step measures again only what it changes.
                is_changed = before is None or not _have_equal_columns(response, before[sample])
                if row.step_weight and is_changed:
                    yield from _under_windows(population, part, sample, response=response,
                                              baseline_weight=response.weight)
            before = after

    @cached_property
    def _common(self) -> dict[str, Any]:
        """The fields that all responses share. The window is 0, which is set later."""
        fields = {**self.template.fields, "scenario": self.scenario, "initcwnd": 0}
        return {name: value for name, value in fields.items() if name not in OF_TRIALS}

    def _response(self, row: Row, added: Collection[str]) -> Trial:
        """A response as a trial without a window. added: the columns that causes have added."""
        values: dict[str, Any] = {}
        for column, clean in _CLEAN.items():
            if column in added:
                values[column] = getattr(row, column)
            elif isinstance(clean, str):  # the name of another column
                values[column] = getattr(row, clean)
            elif clean is not None:
                values[column] = clean

        rtt_ms, bandwidth_kbps = values["rtt_ms"], values["bandwidth_kbps"]
        if "queue_packets" not in values:
            values |= queue_of(self.template.lists["queue"][0], rtt_ms, bandwidth_kbps)
        return Trial(**self._common, **values, uplink_kbps=bandwidth_kbps,
                     response_bytes=row.response_bytes, key_rtt_ms=row.key_rtt_ms,
                     key_bandwidth_kbps=row.key_bandwidth_kbps,
                     weight=row.weight if WEIGHT in added else row.step_weight)


def _under_windows(population: Population, part: str, sample: int, response: Trial,
                   baseline_weight: float) -> Iterator[Trial]:
    """A response under each window. baseline_weight: its weight under the first window.

    part, sample: name the trials (Trial.part, Trial.sample).
    """
    for number, initcwnd in enumerate(population.initcwnd):
        yield replace(response, part=part, sample=sample, initcwnd=initcwnd,
                      weight=response.weight if number else baseline_weight)


def _have_equal_columns(first: Trial, second: Trial) -> bool:
    """Whether two trials have the same values in all columns of OF_TRIALS."""
    return all(getattr(first, column) == getattr(second, column) for column in OF_TRIALS)


def percentile_of(label: str) -> float | None:
    """The share that a percentile's label names: 0.5 for "p50", None for "mean".

    Raises UsageError.
    """
    if label == "mean":
        return None
    number = re.fullmatch(r"p(\d+(?:\.\d+)?)", label)
    if not number or not 0 < float(number[1]) < 100:
        raise UsageError(f"'{label}' is not a percentile: mean, or p and a number between 0 and"
                         " 100")
    return float(number[1]) / 100
