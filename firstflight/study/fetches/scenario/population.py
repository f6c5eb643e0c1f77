"""Populations: clients and their responses, a trial for each of their rows and each window.

A published bar is a mean over very different clients. So clients and responses are drawn as the
paper's were (docs/STUDIES.md), and stand as rows in a table beside the scenario. The
same row serves every initial window: what differs between two windows is the window.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from firstflight.base.errors import UsageError
from firstflight.runs import schema
from firstflight.runs.schema import key
from firstflight.study.fetches.scenario import rows
from firstflight.study.fetches.scenario.rows import Row
from firstflight.study.fetches.scenario.sweep import Template, queue_of
from firstflight.study.fetches.scenario.trial import Trial

# What a trial has of its row, and what it has in its place before a cause adds the column: one
# write, on a new connection, over a link as fast as the key, with no loss. None: as in [defaults].
_CLEAN: Mapping[str, str | float | None] = {
    "rtt_ms": "key_rtt_ms", "bandwidth_kbps": "key_bandwidth_kbps", "queue_packets": None,
    "loss_percent": 0.0, "seed": 0, "earlier_bytes": 0, "burst_bytes": 0, "gap_ms": 0.0}
OF_TRIALS = tuple(_CLEAN)
# What changes no trial, only what it stands for.
WEIGHT, BASELINE_WEIGHT = "weight", "baseline_weight"


@dataclass(frozen=True)
class Cause:
    """A step from the clean mechanism to the rows as they are. adds: columns that come into force.

    The clean one sends in one write, on a connection of its own, over a link as
    fast as the key, and loses nothing.
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
    """The rows of a part of the table, each measured under every window.

    explained: its bars are shown with the causes added one at a time. initcwnd: the first is the
    baseline, which may have been measured in a week of its own.
    """

    name: str = key(reader=schema.file_name)
    title: str = key()
    initcwnd: tuple[int, ...] = key()
    explained: bool = False


@dataclass(frozen=True)
class Populations:
    """The populations of a scenario, and the steps by which one of them is explained.

    scenario: whose table has the rows; in_full: those of the large sample. like: what their
    trials have that is not drawn.
    """

    scenario: str
    populations: tuple[Population, ...]
    steps: tuple[Cause, ...]
    like: Template
    in_full: bool = False

    def population(self, name: str) -> Population | None:
        return next((population for population in self.populations if population.name == name),
                    None)

    def under(self, initcwnd: tuple[int, ...]) -> Populations:
        """The same, under other initial windows."""
        return replace(self, populations=tuple(replace(population, initcwnd=initcwnd)
                                               for population in self.populations))

    @property
    def explained(self) -> Population | None:
        """The population whose rows are added cause by cause."""
        return next((population for population in self.populations if population.explained), None)

    def check_causes(self, where: str) -> None:
        """Raises UsageError unless the steps lead to the rows of the population explained."""
        added = {column for cause in self.steps for column in cause.adds}
        if self.explained and (lacking := [column for column in (*OF_TRIALS, WEIGHT,
                                           BASELINE_WEIGHT) if column not in added]):
            raise UsageError(f"{where}: population {self.explained.name!r} is to be explained, and"
                             f" no [[step]] adds {', '.join(lacking)}")

    @property
    def count(self) -> int:
        """How many trials there are without those of causes, as far as rows are drawn."""
        path = rows.path_of(self.scenario, self.in_full)
        parts = Counter(row.part for row in rows.read(path)) if path.exists() else Counter()
        return sum(parts[made.name] * len(made.initcwnd) for made in self.populations)

    def trials(self, seed: int) -> list[Trial]:
        """The trials, of each population those of its steps last. Raises UsageError.

        The windows of one response follow each other, on the same network with the same losses.
        seed: with which the rows were drawn.
        """
        path = rows.path_of(self.scenario, self.in_full, seed)
        if not path.exists():
            flags = (" --full" if self.in_full else "") + (f" --seed {seed}" if seed != 1 else "")
            raise UsageError(f"{self.scenario}: its rows are not drawn: /usr/bin/python3 -m"
                             f" paper.draw {self.scenario}{flags} draws them")
        by_part: dict[str, list[Row]] = {}
        for row in rows.read(path):
            by_part.setdefault(row.part, []).append(row)
        for made in self.populations:
            if made.name not in by_part:
                raise UsageError(f"{rows.where_of(path)}: has no row of population {made.name!r}")
        return [trial for made in self.populations
                for trial in self._trials(made, by_part[made.name])]

    def _trials(self, made: Population, drawn: Sequence[Row]) -> Iterator[Trial]:
        every = frozenset((*OF_TRIALS, WEIGHT, BASELINE_WEIGHT))
        panel = [self._response(row, every) for row in drawn]
        for sample, (row, response) in enumerate(zip(drawn, panel)):
            yield from _under_windows(made, made.name, sample, response, row.baseline_weight)
        before: list[Trial] | None = None
        for cause, added in steps(self.steps) if made.explained else ():
            after = [self._response(row, added) for row in drawn]
            if all(_alike(one, other) for one, other in zip(after, panel)):
                return  # what follows changes only what responses stand for
            for sample, (row, response) in enumerate(zip(drawn, after)):
                if row.step_weight and not (before and _alike(response, before[sample])):
                    yield from _under_windows(made, f"{made.name}-{cause.name}", sample, response,
                                              response.weight)
            before = after

    @cached_property
    def _common(self) -> dict[str, Any]:
        """The fields that all responses have alike, still without a window."""
        fields = {**self.like.fields, "scenario": self.scenario, "initcwnd": 0}
        return {name: value for name, value in fields.items() if name not in OF_TRIALS}

    def _response(self, row: Row, added: Collection[str]) -> Trial:
        """A response with the columns that are in force."""
        values = {column: getattr(row, column) if column in added else
                  getattr(row, clean) if isinstance(clean, str) else clean
                  for column, clean in _CLEAN.items() if column in added or clean is not None}
        if "queue_packets" not in values:
            values |= queue_of(self.like.lists["queue"][0], values["rtt_ms"],
                               values["bandwidth_kbps"])
        return Trial(**self._common, **values, uplink_kbps=values["bandwidth_kbps"],
                     response_bytes=row.response_bytes, key_rtt_ms=row.key_rtt_ms,
                     key_bandwidth_kbps=row.key_bandwidth_kbps,
                     weight=row.weight if WEIGHT in added else row.step_weight)


def _under_windows(made: Population, part: str, sample: int, response: Trial,
                   baseline_weight: float) -> Iterator[Trial]:
    for place, initcwnd in enumerate(made.initcwnd):
        yield replace(response, part=part, sample=sample, initcwnd=initcwnd,
                      weight=response.weight if place else baseline_weight)


def _alike(one: Trial, other: Trial) -> bool:
    return all(getattr(one, column) == getattr(other, column) for column in OF_TRIALS)


def percentile_of(label: str) -> float | None:
    """0.5 for "p50", None for "mean". Raises UsageError for what is neither."""
    if label == "mean":
        return None
    number = re.fullmatch(r"p(\d+(?:\.\d+)?)", label)
    if not number or not 0 < float(number[1]) < 100:
        raise UsageError(f"'{label}' is not a percentile: mean, or p and a number between 0 and"
                         " 100")
    return float(number[1]) / 100
