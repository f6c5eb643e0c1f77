"""Makes the figures of a run, for any workload.

Each workload has a table of functions that make them, one for each kind of figure
(scenario.figure_kinds).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from firstflight.base.errors import FirstFlightError
from firstflight.findings.findings import Finding
from firstflight.scenario.figure_kinds import Figure


class NothingToShow(FirstFlightError):
    """Raised if a figure cannot be made of the records; the message says why."""


A = TypeVar("A")
F = TypeVar("F", bound=Figure)
# Takes an analysed run and one of its figures. Returns the figure's finding, followed by findings
# with other charts of the same data; [] if the run has nothing that such a figure compares. Raises
# NothingToShow if the records that it needs are missing.
Maker = Callable[[A, F], Sequence[Finding]]


def make_figures(analysis: A, figures: Iterable[F], makers: Mapping[str, Maker[A, F]]
                 ) -> list[tuple[F, Sequence[Finding]]]:
    """Each figure with its findings; a figure that cannot be made has one with the reason.

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
