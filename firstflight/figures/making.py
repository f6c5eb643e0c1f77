"""Makes the figures of a run: what is common to all workloads.

A workload has one table of functions, by the kinds of its figures (scenario.figure_kinds).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from firstflight.base.errors import FirstFlightError
from firstflight.findings.findings import Finding
from firstflight.scenario.figure_kinds import Figure


class NothingToShow(FirstFlightError):
    """The records do not give a figure; the message has the reason."""


A = TypeVar("A")
F = TypeVar("F", bound=Figure)
# Takes an analysed run and a figure of it; returns the figure's finding, and further charts of the
# same; [] where there is nothing to show. Raises NothingToShow without data.
Maker = Callable[[A, F], Sequence[Finding]]


def make_figures(analysis: A, figures: Iterable[F], makers: Mapping[str, Maker[A, F]]
                 ) -> list[tuple[F, Sequence[Finding]]]:
    """The findings of each figure, or the reason why it cannot be made.

    Raises FirstFlightError where a file is missing or wrong.
    """
    made: list[tuple[F, Sequence[Finding]]] = []
    for figure in figures:
        try:
            made.append((figure, makers[figure.kind](analysis, figure)))
        except NothingToShow as error:
            made.append((figure, [Finding(figure.name, figure.title, missing=str(error))]))
    return made


def all_findings(made: Iterable[tuple[F, Sequence[Finding]]]) -> list[Finding]:
    """The findings of all figures, in their order."""
    return [finding for _, findings in made for finding in findings]
