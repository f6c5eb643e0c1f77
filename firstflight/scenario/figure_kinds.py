"""The kinds of figures: what a [[figure]] of each has in its file.

A workload has one table of its kinds, by the words of the key `kind`. The functions that make the
figures stand in another table with the same words (figures.making). So reading a scenario, or
expanding it into trials, imports nothing that judges or draws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from firstflight.base.errors import UsageError
from firstflight.runs import schema
from firstflight.runs.schema import key

ANY = "any"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure. Those of a workload have the keys below that its sweeps give a meaning to.

    name: a part of the names of its files. title: one line. kind: of the workload's table.
    windows: those that it compares, the baseline first. by: the quantity along it, "" for none.
    down: the quantity of its lines, or of the rows of a map, "" for none. QUANTITIES: for both.
    """

    QUANTITIES: ClassVar[tuple[str, ...]] = ()

    name: str = key(reader=schema.file_name)
    title: str
    kind: str
    windows: Sequence[object] = key((), absent=True)
    by: str = key("", absent=True)
    down: str = key("", absent=True)


M = TypeVar("M", contravariant=True)
F = TypeVar("F", bound=Figure)


@dataclass(frozen=True)
class FigureKind(Generic[M, F]):
    """What a figure of one kind has to have."""

    # check(measured, figure, where) raises UsageError where the figure does not fit what is
    # measured: a scenario, or its sweeps.
    check: Callable[[M, F, str], None]
    # The only quantity that its key `by` may have; ANY for any, "" where it needs none.
    by: str = ""
    # Whether it takes a second quantity, by its key `down`.
    has_down: bool = False
    # The least and the most windows that it compares; None for any number.
    windows: tuple[int, int | None] = (0, None)
    # What claims on it may expect (scenario.claims).
    expects: tuple[str, ...] = ()


def check_keys(figure: F, kinds: Mapping[str, FigureKind[M, F]], where: str) -> None:
    """Check that the figure has the keys that its kind takes. Raises UsageError."""
    kind = kinds[schema.one_of(figure.kind, list(kinds), f"{where}: kind")]
    if kind.by and not figure.by:
        raise UsageError(f"{where}: by is missing; known: {', '.join(figure.QUANTITIES)}")

    if figure.down and (not kind.has_down or figure.down == figure.by):
        *others, last = [f'"{name}"' for name, other in kinds.items() if other.has_down]
        named = f"{', '.join(others)} or {last}" if others else last
        raise UsageError(f"{where}: down is a quantity of a figure of kind {named}, another one"
                         " than by")
    if kind.by not in ("", ANY, figure.by):
        raise UsageError(f'{where}: a figure of kind "{figure.kind}" has by = "{kind.by}"')

    least, most = kind.windows
    count = len(figure.windows)
    if count < least or (most is not None and count > most):
        raise UsageError(f'{where}: windows: a figure of kind "{figure.kind}" compares'
                         f" {_allowed(least, most)}")


def _allowed(least: int, most: int | None) -> str:
    """How many windows a figure has, in words."""
    if most == 0:
        return "all that are measured, and names none"
    if most is None:
        return f"at least {least}, the baseline first"
    count = f"{least}" if least == most else f"{least} to {most}"
    return f"{count}, the baseline first"
