"""What scenario files of every kind have: [defaults], [[figure]]s, and [[claim]]s on them.

A kind adds its own keys to a figure and a claim, and says what its defaults are of.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from findings.claims import DIRECTION, REPRODUCED
from findings.findings import Statement
from runs import schema
from runs.schema import key

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Figure:
    """name: a part of the names of its files. title: one line."""

    name: str = key(reader=schema.file_name)
    title: str


@dataclass(frozen=True)
class Claim:
    """A sentence of the source, and its test. figure: the name of its figure.

    abstract_only: no more of the source was read; then a result that is reproduced counts as
    direction.
    """

    figure: str
    says: str
    abstract_only: bool = field(default=False, kw_only=True)


C = TypeVar("C", bound=Claim)
F = TypeVar("F", bound=Figure)


def read_defaults(kind: type[object], raw: Mapping[str, object], where: str,
                  without: Collection[str] = ()) -> dict[str, object]:
    """The [defaults], keys of `kind` but for some of its own. Raises UsageError."""
    defaults = schema.table(raw, "defaults", where)
    schema.known_keys(defaults, [name for name in schema.keys_of(kind) if name not in without],
                      f"{where}: [defaults]")
    return defaults


def read_figures(kind: type[F], raw: Mapping[str, object], where: str) -> dict[str, F]:
    """The [[figure]]s, by the place that names each in a message. Raises UsageError."""
    return {f'{where}: [[figure]] "{figure.name}"': figure
            for figure in schema.read_tables(kind, raw, "figure", where)}


def read_claims(kind: type[C], raw: Mapping[str, object], figures: Sequence[Figure], where: str
                ) -> dict[str, C]:
    """The [[claim]]s on figures that there are, likewise. Raises UsageError."""
    claims = {f'{where}: [[claim]] "{claim.says}"': claim
              for claim in schema.read_tables(kind, raw, "claim", where, called="says")}
    for place, claim in claims.items():
        schema.one_of(claim.figure, [figure.name for figure in figures], f"{place}: figure")
    return claims


def as_read(claim: Claim, statement: Statement) -> Statement:
    """The statement on a claim; of an abstract nothing is counted as reproduced."""
    if not claim.abstract_only or statement.word != REPRODUCED:
        return statement
    return replace(statement, word=DIRECTION,
                   found=f"{statement.found} Only the abstract of the source was read.")


def claims_on(figure: Figure, claims: Sequence[C]) -> tuple[C, ...]:
    """Those of a figure."""
    return tuple(claim for claim in claims if claim.figure == figure.name)
