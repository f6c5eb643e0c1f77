"""What scenarios of every kind have: sweeps, figures of what sweeps measure, claims on figures.

A kind adds fields of its own to sweeps, figures and claims. In a file these are tables: [[sweep]]s
with their [defaults], [[figure]]s and [[claim]]s.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import Any, ClassVar, Generic, TypeVar

from firstflight.base.errors import UsageError
from firstflight.findings.names import ON_THE_WIRE
from firstflight.runs import schema
from firstflight.runs.kinds import AnyTrial
from firstflight.runs.scenario_file import HEAD_KEYS, Head, ScenarioFile
from firstflight.runs.schema import key
from firstflight.scenario.claims import Claim, check_expects, read_claims
from firstflight.scenario.figure_kinds import Figure, FigureKind, check_keys

# Names that a figure must not have, and what has such a name already.
TAKEN = {ON_THE_WIRE: "drawing of kept captures"}

T = TypeVar("T")
Tr = TypeVar("Tr", bound=AnyTrial)


@dataclass(frozen=True, kw_only=True)
class Sweep(ABC, Generic[Tr]):
    """Lists of values that are measured in every combination."""

    # The fields that are such lists; the first one varies slowest.
    LISTS: ClassVar[tuple[str, ...]] = ()
    # Fields that may have rows of values. Each has the names of the lists to which the values of a
    # row belong. A field that has rows replaces its lists. Rows vary slower than lists.
    TOGETHER: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    name: str = key(reader=schema.file_name)

    @property
    @abstractmethod
    def count(self) -> int:
        """The number of trials, by multiplication: there may be billions."""

    @abstractmethod
    def trials(self, scenario: str, seed: int) -> Iterator[Tr]:
        """Yield the trials in the order in which they are measured. seed: of the run."""

    @property
    def by_name(self) -> Mapping[str, Sequence[Any]]:
        """Each of LISTS by its name."""
        return {name: getattr(self, name) for name in self.LISTS}

    def combinations(self) -> Iterator[dict[str, Any]]:
        """Yield each combination: a value of each of LISTS, by its name."""
        rows_by_field = []
        for field, names in self._fields_with_rows().items():
            rows_by_field.append([dict(zip(names, row)) for row in getattr(self, field)])

        lists = self._lists_without_rows()
        for rows in product(*rows_by_field):
            given = dict(chain.from_iterable(row.items() for row in rows))
            for combination in product(*lists.values()):
                yield {**given, **dict(zip(lists, combination))}

    def combination_count(self, lengths: Mapping[str, int] | None = None) -> int:
        """The number of combinations. lengths: of some lists, instead of their own lengths."""
        counts = {name: len(getattr(self, name)) for name in self._fields_with_rows()}
        for name, values in self._lists_without_rows().items():
            counts[name] = len(values)
        for name, length in (lengths or {}).items():
            if name in counts:
                counts[name] = length
        return math.prod(counts.values())

    def _fields_with_rows(self) -> dict[str, tuple[str, ...]]:
        """The fields of TOGETHER that have rows, each with the names of its lists."""
        return {field: names for field, names in self.TOGETHER.items() if getattr(self, field)}

    def _lists_without_rows(self) -> dict[str, Sequence[Any]]:
        """The lists of which no row has a value, by name."""
        in_rows = {*chain.from_iterable(self._fields_with_rows().values())}
        return {name: values for name, values in self.by_name.items() if name not in in_rows}


C = TypeVar("C", bound=Claim)
F = TypeVar("F", bound=Figure)
S = TypeVar("S", bound=Sweep[Any])


@dataclass(frozen=True)
class Scenario(Generic[S, F, C]):
    """What is measured: sweeps, and the figures and claims that are built from them."""

    head: Head
    sweeps: tuple[S, ...]
    figures: tuple[F, ...]
    claims: tuple[C, ...] = ()

    @property
    def name(self) -> str:
        return self.head.name

    @property
    def count(self) -> int:
        """The number of trials of all sweeps."""
        return sum(sweep.count for sweep in self.sweeps)

    def sweep(self, name: str) -> S:
        return next(sweep for sweep in self.sweeps if sweep.name == name)


def trials_of(sweeps: Iterable[Sweep[Tr]], scenario: str, seed: int) -> list[Tr]:
    """The trials of the sweeps in order, without duplicates."""
    return list(dict.fromkeys(trial for sweep in sweeps for trial in sweep.trials(scenario, seed)))


@dataclass(frozen=True)
class Tables(Generic[S, F, C]):
    """How the file of a kind of scenario is read."""

    # The classes of its sweeps, figures and claims.
    sweep: type[S]
    figure: type[F]
    claim: type[C]
    # The kinds of its figures, by their words.
    kinds: Mapping[str, FigureKind[Sequence[S], F]]
    # The names of its tables besides those of sweeps, figures and claims, and the head.
    others: tuple[str, ...]
    # Reads those other tables. Returns a function of a sweep and its place in messages, which gives
    # the sweep what it names in these tables, or raises UsageError.
    link: Callable[[ScenarioFile], Callable[[S, str], S]]
    # Raises UsageError where a claim names something that is not measured.
    check_claim: Callable[[C, F, Sequence[S], str], None] = lambda *_: None
    # The keys of a sweep that [defaults] cannot have.
    without: Collection[str] = ("name",)
    # The name of a sweep's table.
    table: str = "sweep"

    def read(self, file: ScenarioFile) -> Scenario[S, F, C]:
        """The scenario of a file. Raises UsageError."""
        raw, where = file.raw, file.where
        schema.known_keys(raw, (*HEAD_KEYS, "defaults", *self.others, self.table, "figure"),
                          where)
        link_sweep = self.link(file)
        defaults = read_defaults(self.sweep, raw, where, self.without)
        sweeps = []
        for sweep in schema.read_tables(self.sweep, raw, self.table, where, defaults=defaults):
            sweeps.append(link_sweep(sweep, schema.place_of(where, self.table, sweep.name)))
        if not sweeps:
            raise UsageError(f"{where}: has no [[{self.table}]], so nothing to measure")

        figures = read_figures(self.figure, raw, where)
        for place, shown in figures.items():
            check_keys(shown, self.kinds, place)
            self.kinds[shown.kind].check(sweeps, shown, place)
        by_name = {shown.name: shown for shown in figures.values()}
        claims = read_claims(self.claim, raw, list(by_name.values()), where)
        for place, stated in claims.items():
            figure = by_name[stated.figure]
            check_expects(stated, figure, self.kinds, place)
            self.check_claim(stated, figure, sweeps, place)
        return Scenario(file.head(), tuple(sweeps), tuple(by_name.values()),
                        claims=tuple(claims.values()))


def read_defaults(kind: type[object], raw: Mapping[str, object], where: str,
                  without: Collection[str] = ()) -> dict[str, object]:
    """Read [defaults], whose keys are those of `kind`. Raises UsageError.

    without: keys of `kind` that have no default.
    """
    defaults = schema.table(raw, "defaults", where)
    schema.known_keys(defaults, [name for name in schema.keys_of(kind) if name not in without],
                      f"{where}: [defaults]")
    return defaults


def read_figures(kind: type[F], raw: Mapping[str, object], where: str) -> dict[str, F]:
    """Read the [[figure]]s. Raises UsageError.

    Each has as its key the place in the file by which messages name it.
    """
    figures = {}
    for figure in schema.read_tables(kind, raw, "figure", where):
        place = schema.place_of(where, "figure", figure.name)
        if owner := TAKEN.get(figure.name):
            raise UsageError(f"{place}: name: the {owner} has this name: choose another one")
        figures[place] = figure
    return figures
