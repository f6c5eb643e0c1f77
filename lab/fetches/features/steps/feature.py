"""What steps bring: the kinds of figures "steps" and "levels", and claims on trials."""

from __future__ import annotations

from lab.core.errors import UsageError
from lab.fetches.features.steps import steps
from lab.fetches.figures.figure import FigureKind, check_swept
from lab.fetches.scenario import feature
from lab.fetches.scenario.scenario import OF_TRIALS, Figure, Scenario


def check_points(scenario: Scenario, figure: Figure, where: str) -> None:
    """Each value of `by`, with each of `down` if there is one, is one cell."""
    check_swept(scenario, figure, where)
    points = scenario.sweep(figure.sweep).counted(*filter(None, (figure.by, figure.down)))
    if max(points.values()) > 1:
        raise UsageError(f"{where}: several cells have one {figure.by}: say by which other quantity"
                         " they differ (down), or ask for one of them")


def check_numbers(scenario: Scenario, figure: Figure, where: str) -> None:
    """The same, over numbers."""
    check_swept(scenario, figure, where)
    if any(isinstance(value, str) for value, in
           scenario.sweep(figure.sweep).counted(figure.by)):
        raise UsageError(f'{where}: by: a figure of kind "{figure.kind}" is over numbers')
    check_points(scenario, figure, where)


class Feature(feature.Feature):
    """As lab.fetches.scenario.feature has it."""

    figures = {"steps": FigureKind(check_numbers, steps.steps, OF_TRIALS, has_down=True),
               "levels": FigureKind(check_points, steps.levels, OF_TRIALS, has_down=True)}


FEATURE = Feature()
