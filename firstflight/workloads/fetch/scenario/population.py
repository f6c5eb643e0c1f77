"""Populations: clients with their responses, and a trial for each response and window.

A published bar is a mean over very different clients. So clients and responses are drawn to be like
the paper's (docs/STUDIES.md), and stand as rows in a table next to the scenario. Each row is
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

# The columns of a row that trials have, and their values before a cause adds the column: one write,
# on a new connection, over a link as fast as the key, without loss. None: as in [defaults].
_CLEAN: Mapping[str, str | float | None] = {
    "rtt_ms": "key_rtt_ms", "bandwidth_kbps": "key_bandwidth_kbps", "queue_packets": None,
    "loss_percent": 0.0, "seed": 0, "earlier_bytes": 0, "burst_bytes": 0, "gap_ms": 0.0}
OF_TRIALS = tuple(_CLEAN)
# Columns that change no trial, only its weight.
WEIGHT, BASELINE_WEIGHT = "weight", "baseline_weight"


@dataclass(frozen=True)
class Cause:
    """A step from the clean mechanism (_CLEAN) to the rows as they are.

    adds: the columns that come into force with it.
    """

    name: str = key(reader=schema.file_name)
    title: str = key()
    adds: tuple[str, ...] = key(reader=schema.values(
        schema.word((*OF_TRIALS, WEIGHT, BASELINE_WEIGHT)), "names", empty=True))


def steps(causes: Sequence[Cause]) -> Iterator[tuple[Cause, frozenset[str]]]:
    """Each cause with the columns in force after it."""
    added: frozenset[str] = frozenset()
    for cause in causes:
        added = added.union(cause.adds)
        yield cause, added


@dataclass(frozen=True)
class Population:
    """One population of the table; each of its rows is measured under every window.

    initcwnd: the first is the baseline, whose week may have its own weights. explained: whether its
    bars are also shown with the causes added one at a time.
    """

    name: str = key(reader=schema.file_name)
    title: str = key()
    initcwnd: tuple[int, ...] = key()
    explained: bool = False


@dataclass(frozen=True)
class Populations:
    """The populations of a scenario, and the steps that explain one of them.

    scenario: its name. table: the name of the table with the rows; in_full: those of the large
    sample. one_in: of the table's clients one in so many is measured, with all of its responses.
    template: the parameters of their trials that are not drawn.
    """

    scenario: str
    populations: tuple[Population, ...]
    steps: tuple[Cause, ...]
    template: Template
    table: str
    in_full: bool = False
    one_in: int = 1

    def population(self, name: str) -> Population | None:
        return next((population for population in self.populations if population.name == name),
                    None)

    def under(self, initcwnd: tuple[int, ...]) -> Populations:
        """The same populations under other initial windows."""
        return replace(self, populations=tuple(replace(population, initcwnd=initcwnd)
                                               for population in self.populations))

    @property
    def explained(self) -> Population | None:
        """The population that is explained cause by cause; None without one."""
        return next((population for population in self.populations if population.explained), None)

    def check_causes(self, where: str) -> None:
        """Check that the steps of the explained population add all columns. Raises UsageError."""
        added = {column for cause in self.steps for column in cause.adds}
        if self.explained and (lacking := [column for column in (*OF_TRIALS, WEIGHT,
                                           BASELINE_WEIGHT) if column not in added]):
            raise UsageError(f"{where}: population {self.explained.name!r} is to be explained, and"
                             f" no [[step]] adds {', '.join(lacking)}")

    @property
    def count(self) -> int:
        """How many trials there are, without those of the steps; 0 where no rows are drawn yet."""
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
        """The trials, those of a population's steps after its own. Raises UsageError.

        The windows of one response follow each other, on the same network with the same losses.
        seed: the rows were drawn with it.
        """
        path = rows.path_of(self.table, self.in_full, seed)
        if not path.exists():
            flags = (" --full" if self.in_full else "") + (f" --seed {seed}" if seed != 1 else "")
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
        all_columns = frozenset((*OF_TRIALS, WEIGHT, BASELINE_WEIGHT))
        own = [self._response(row, all_columns) for row in drawn]
        for sample, (row, response) in enumerate(zip(drawn, own)):
            yield from _under_windows(population, population.name, sample, response=response,
                                      baseline_weight=row.baseline_weight)

        before: list[Trial] | None = None
        for cause, added in steps(self.steps) if population.explained else ():
            after = [self._response(row, added) for row in drawn]
            if all(_equal_trials(one, other) for one, other in zip(after, own)):
                return  # later steps change only weights
            for sample, (row, response) in enumerate(zip(drawn, after)):
                if row.step_weight and not (before and _equal_trials(response, before[sample])):
                    yield from _under_windows(population, f"{population.name}-{cause.name}", sample,
                                              response=response, baseline_weight=response.weight)
            before = after

    @cached_property
    def _common(self) -> dict[str, Any]:
        """The fields that all responses share; the window is not set yet."""
        fields = {**self.template.fields, "scenario": self.scenario, "initcwnd": 0}
        return {name: value for name, value in fields.items() if name not in OF_TRIALS}

    def _response(self, row: Row, added: Collection[str]) -> Trial:
        """A trial of a response, with the columns that are in force."""
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
    """A response under each window. baseline_weight: its weight under the first one."""
    for place, initcwnd in enumerate(population.initcwnd):
        yield replace(response, part=part, sample=sample, initcwnd=initcwnd,
                      weight=response.weight if place else baseline_weight)


def _equal_trials(one: Trial, other: Trial) -> bool:
    """Whether two trials are the same, whatever their windows and weights."""
    return all(getattr(one, column) == getattr(other, column) for column in OF_TRIALS)


def percentile_of(label: str) -> float | None:
    """The share of a percentile's label: 0.5 for "p50", None for "mean". Raises UsageError."""
    if label == "mean":
        return None
    number = re.fullmatch(r"p(\d+(?:\.\d+)?)", label)
    if not number or not 0 < float(number[1]) < 100:
        raise UsageError(f"'{label}' is not a percentile: mean, or p and a number between 0 and"
                         " 100")
    return float(number[1]) / 100
