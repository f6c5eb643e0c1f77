"""Chooses the trials whose packets are kept: a few, over the whole range of networks and sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import attrgetter

from firstflight.runs.kinds import AnyTrial
from firstflight.runs.results.records import requested_fields

CAPTURES_KEPT = 8  # trials, or one more, unless all are requested
MOST_CELLS = 500  # to choose from; of a population of thousands, an even share
# The parameters in which the trials of a cell differ: the windows that are compared.
WITHIN_A_CELL = ("initcwnd", "window", "mix", "clients")
NO_AXIS = ("scenario", "part", "sample", "weight", "repeat", "seed")

Cell = tuple[object, ...]  # the values that its trials have in common


def choose_captured(trials: Sequence[AnyTrial]) -> set[str]:
    """The ids of the trials to keep packets of: the first and last window of each chosen cell.

    Cells are chosen one by one. The next one has the most smallest and largest values of
    parameters that no chosen cell has; among equals it is the one farthest from those chosen.
    The choice depends on all trials and not on which are missing, so that a resumed run keeps the
    same packets.
    """
    if not trials:
        return set()
    names = [column.name for column in requested_fields(type(trials[0]))
             if column.name not in WITHIN_A_CELL]
    cell_of = attrgetter(*names)
    first: dict[Cell, AnyTrial] = {}
    last: dict[Cell, AnyTrial] = {}
    for trial in trials:
        cell = cell_of(trial)
        first.setdefault(cell, trial)
        last[cell] = trial
    places = _places(names, evenly(list(first), MOST_CELLS))
    chosen: set[str] = set()
    ends: set[tuple[str, float]] = set()
    distance = dict.fromkeys(places, 0.0)
    while distance and len(chosen) < CAPTURES_KEPT:
        cell = max(distance, key=lambda other: (len(_ends(places[other]) - ends), distance[other]))
        chosen |= {first[cell].id, last[cell].id}
        ends |= _ends(places[cell])
        del distance[cell]
        for other in distance:
            apart = sum(abs(place - places[other][name]) for name, place in places[cell].items())
            distance[other] = min(distance[other] or apart, apart)
    return chosen


def evenly(cells: Sequence[Cell], most: int) -> Sequence[Cell]:
    """At most `most` of the cells, evenly spread from the first on."""
    return cells[::max(1, math.ceil(len(cells) / most))]


def _ends(place: Mapping[str, float]) -> set[tuple[str, float]]:
    """The parameters of which a cell has the smallest (0.0) or largest (1.0) value."""
    return {(name, value) for name, value in place.items() if value in (0.0, 1.0)}


def _places(names: Sequence[str], cells: Sequence[Cell]) -> dict[Cell, dict[str, float]]:
    """The rank of each cell by each parameter that differs, from 0.0 to 1.0."""
    places: dict[Cell, dict[str, float]] = {cell: {} for cell in cells}
    for name, column in zip(names, zip(*cells)):
        values = set(column)
        if name not in NO_AXIS and len(values) > 1:
            order = list(dict.fromkeys(column))  # lists, such as a page's objects, have no order
            if not any(isinstance(value, tuple) for value in order):
                order.sort(key=lambda value: (value is None, isinstance(value, str), value))
            axis = {value: rank / (len(order) - 1) for rank, value in enumerate(order)}
            for cell, value in zip(cells, column):
                places[cell][name] = axis[value]
    return places
