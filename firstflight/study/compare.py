"""One difference: a long table of values becomes base less experiment, with its interval.

Each row of the table is a value of a cell under a window, with the unit that was drawn for it and
a weight. What a unit is, and so which estimator fits, follows from how the values were measured:

- resampled_users: users, each measured once under every window.
- student_by_seed: runs of a load, each seed under both windows.
- student_of_repeats: single cells, whose means carry weights of their own.
- student_over_draws: whole runs, which need not have the same draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from firstflight.base import stats
from firstflight.base.stats import CONFIDENCE, Estimate, estimate, percentile_interval
from firstflight.findings.difference import Difference, percent_of

USER_RESAMPLES = 1000
VARIES = 0.001  # ms between repeats; the guest's clock has nanoseconds


class Row(NamedTuple):
    """One value. unit: what was drawn for it, such as a repeat, a seed or a client."""

    cell: Any
    window: Any
    unit: Any
    weight: float
    value: float


Rows = Sequence[Row]
# Of the rows of the base and of the experiment, and the metric's sign; see Difference.
Estimator = Callable[[Rows, Rows, int], Difference]


def difference(table: Iterable[Row], base: Hashable, experiment: Hashable, estimator: Estimator,
               sign: int = 1) -> Difference:
    """What the experiment's window changes against the base's; the two may be the same window.

    Raises ValueError where one of them has no row.
    """
    rows = list(table)
    first, second = ([row for row in rows if row.window == window]
                     for window in (base, experiment))
    if not first or not second:
        raise ValueError(f"no value under {experiment if first else base}")
    return estimator(first, second, sign)


def by_cell(rows: Iterable[Row]) -> dict[Any, list[Row]]:
    """The rows of each cell, cells in the order of their first row."""
    cells: dict[Any, list[Row]] = {}
    for row in rows:
        cells.setdefault(row.cell, []).append(row)
    return cells


# Student's intervals -------------------------------------------------------------------

def student_by_seed(base: Rows, experiment: Rows, sign: int) -> Difference:
    """The mean over the units that both sides have, and its interval over their differences.

    percent: of the mean of the base. Raises ValueError where no unit is shared.
    """
    first, second = ({row.unit: row.value for row in side} for side in (base, experiment))
    pairs = [(first[unit], second[unit]) for unit in sorted(first.keys() & second.keys())]
    if not pairs:
        raise ValueError("no seed was measured with both windows")
    firsts, seconds = [before for before, _ in pairs], [after for _, after in pairs]
    mean = math.fsum(firsts) / len(firsts)
    differences = [sign * (before - after) for before, after in pairs]
    return Difference(
        estimate(firsts), estimate(seconds), estimate(differences),
        estimate([part / mean * 100 if mean else 0.0 for part in differences]),
        n=2 * len(pairs), draws=len(pairs), sign=sign)


def student_of_repeats(base: Rows, experiment: Rows, sign: int) -> Difference:
    """The difference of the weighted means; its interval is over repeats that both sides have.

    It has none where there are no two such pairs, or where they do not vary.
    """
    before, after = (stats.weighted_mean([row.value for row in side], [row.weight for row in side])
                     for side in (base, experiment))
    absolute, first = sign * (before - after), {row.unit: row.value for row in base}
    saved = [sign * (first[row.unit] - row.value) for row in experiment if row.unit in first]
    varies = len(saved) >= 2 and max(saved) - min(saved) >= VARIES
    return Difference(
        Estimate(before), Estimate(after),
        replace(estimate(saved), value=absolute) if varies else Estimate(absolute),
        Estimate(percent_of(before, after, sign)), n=len(base) + len(experiment), draws=len(saved),
        sign=sign)


def student_over_draws(base: Rows, experiment: Rows, sign: int,
                       of_clients: bool = False) -> Difference:
    """The difference of the means over cells, and its interval over what was drawn.

    Each draw moves the mean by how far its values are from what is expected of them: the mean of
    their cell, and of a client's (of_clients), which no other client has, that of all. One draw's
    values in several cells, and on both sides, move it together. Both sides have the same cells.
    """
    moved: dict[Hashable, float] = {}
    means, draws, cells = [], [], 0
    for side_sign, side in ((sign, base), (-sign, experiment)):
        of_cells = list(by_cell(side).values())
        of_side = [math.fsum(row.value for row in rows) / len(rows) for rows in of_cells]
        whole, cells = math.fsum(of_side) / len(of_side), len(of_cells)
        for rows, mean in zip(of_cells, of_side):
            expected = whole if of_clients else mean
            for row in rows:
                moved[row.unit] = moved.get(row.unit, 0.0) + side_sign * (
                    row.value - expected) / len(rows)
        means.append(whole)
        draws.append(len({row.unit for row in side}) if of_clients else max(map(len, of_cells)))
    before, after = means
    absolute = before - after if sign > 0 else after - before  # 0, never −0
    n, ends = min(draws), None
    if n > 1:
        from scipy.stats import t
        half = float(t.ppf((1 + CONFIDENCE) / 2, n - 1)) / cells * math.sqrt(
            math.fsum(by ** 2 for by in moved.values()) * n / (n - 1))
        ends = absolute - half, absolute + half
    return Difference(
        Estimate(before), Estimate(after), Estimate(absolute, ends, n),
        Estimate(100 * absolute / before if before else 0.0), n=len(base) + len(experiment),
        cells=cells, cells_requested=cells, draws=n, sign=sign)


# Users ---------------------------------------------------------------------------------

def resampled_users(base: Rows, experiment: Rows, sign: int) -> Difference:
    """The weighted mean over users who have a row on both sides, in the same order.

    Its interval is a bootstrap over users (Efron and Tibshirani 1993, chapter 6).
    """
    import numpy

    from firstflight.base.resampling import resampling_factors
    weight = numpy.array([row.weight for row in experiment])
    first, second = (numpy.array([row.value for row in side]) for side in (base, experiment))
    draws = resampling_factors(len(weight), USER_RESAMPLES) * weight
    differences = sign * (first - second)
    before, after, absolute = (float(weight @ values / weight.sum())
                               for values in (first, second, differences))
    ends = percentile_interval(draws @ differences / draws.sum(axis=1))
    return Difference(
        Estimate(before), Estimate(after), Estimate(absolute, ends, len(weight)),
        Estimate(100 * absolute / whole if (whole := after + sign * absolute) else 0.0),
        n=2 * len(weight), draws=len(weight), sign=sign)
