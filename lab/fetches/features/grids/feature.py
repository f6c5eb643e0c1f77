"""What grids bring: the kinds of figures "groups", "map" and "window_map"."""

from __future__ import annotations

from lab.core.errors import UsageError
from lab.fetches.features.grids import grid
from lab.fetches.figures.figure import FigureKind, check_swept
from lab.fetches.figures.panels import check_buckets
from lab.fetches.scenario import feature
from lab.fetches.scenario.scenario import Figure, Scenario


def check_groups(scenario: Scenario, figure: Figure, where: str) -> None:
    check_swept(scenario, figure, where)
    check_buckets(scenario, figure, where)


def check_window_map(scenario: Scenario, figure: Figure, where: str) -> None:
    if not figure.down:
        raise UsageError(f"{where}: down is missing")
    check_swept(scenario, figure, where)


class Feature(feature.Feature):
    """As lab.fetches.scenario.feature has it."""

    figures = {"groups": FigureKind(check_groups, grid.groups),
               "map": FigureKind(check_swept, grid.improvements, has_down=True),
               "window_map": FigureKind(check_window_map, grid.sufficient_windows, has_down=True,
                                        is_answer=True)}


FEATURE = Feature()
