"""Chooses a few trials whose packets are kept, over the whole range of networks and sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import attrgetter

from firstflight.runs.kinds import AnyTrial
from firstflight.runs.results.records import requested_fields

CAPTURES_KEPT = 8  # trials; cells have two, so one more may be kept
MOST_CELLS = 500  # to choose from; a population of thousands gives an even share of its cells
# The parameters in which the trials of a cell differ: the windows that are compared.
WITHIN_A_CELL = ("initcwnd", "window", "mix", "clients")
# Parameters of which a small or a large value says nothing about the network.
NO_AXIS = ("scenario", "part", "sample", "weight", "repeat", "seed")

Cell = tuple[object, ...]  # the values that the trials of a cell have in common


def choose_captured(trials: Sequence[AnyTrial]) -> set[str]:
    """The ids of the trials whose packets are kept: the first and last window of each chosen cell.

    Cells are chosen one by one. Each time the cell is chosen that has the smallest or largest value
    of the most parameters for which no chosen cell has it. Among equal ones it is the cell that is
    farthest from the chosen ones. The choice depends on all trials, whether they are measured
    already or not, so a resumed run keeps the same packets.
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

    ranks = _ranks(names, _spread_evenly(list(first), MOST_CELLS))
    chosen: set[str] = set()
    covered: set[tuple[str, float]] = set()  # the extremes of the chosen cells
    # From each cell that is not chosen to the nearest chosen one; 0.0 before the first choice.
    distance = dict.fromkeys(ranks, 0.0)
    while distance and len(chosen) < CAPTURES_KEPT:
        cell = max(distance,
                   key=lambda other: (len(_extremes(ranks[other]) - covered), distance[other]))
        chosen |= {first[cell].id, last[cell].id}
        covered |= _extremes(ranks[cell])
        del distance[cell]
        for other in distance:
            apart = sum(abs(rank - ranks[other][name]) for name, rank in ranks[cell].items())
            distance[other] = min(distance[other] or apart, apart)
    return chosen


def _spread_evenly(cells: Sequence[Cell], most: int) -> Sequence[Cell]:
    """At most `most` of the cells, evenly spread from the first on."""
    return cells[::max(1, math.ceil(len(cells) / most))]


def _extremes(ranks: Mapping[str, float]) -> set[tuple[str, float]]:
    """The parameters of which a cell has the smallest (0.0) or largest (1.0) value."""
    return {(name, rank) for name, rank in ranks.items() if rank in (0.0, 1.0)}


def _ranks(names: Sequence[str], cells: Sequence[Cell]) -> dict[Cell, dict[str, float]]:
    """The rank of each cell's value, from 0.0 to 1.0, for each parameter that differs.

    names: of the values in a cell.
    """
    ranks: dict[Cell, dict[str, float]] = {cell: {} for cell in cells}
    for name, column in zip(names, zip(*cells)):
        values = set(column)
        if name not in NO_AXIS and len(values) > 1:
            order = list(dict.fromkeys(column))  # lists, such as a page's objects, have no order
            if not any(isinstance(value, tuple) for value in order):
                order.sort(key=lambda value: (value is None, isinstance(value, str), value))
            axis = {value: rank / (len(order) - 1) for rank, value in enumerate(order)}
            for cell, value in zip(cells, column):
                ranks[cell][name] = axis[value]
    return ranks
