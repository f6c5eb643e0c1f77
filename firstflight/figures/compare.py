"""Differences: from a long table of values to base − experiment, with an interval.

Each row of the table is a value of a cell under a window, with a weight and its unit of drawing.
What the unit is, and so which estimator fits, depends on how the values were measured:

- resampled_in_cells: each cell was repeated; repeats are drawn within their cell.
- resampled_clients, resampled_quantiles: responses of clients, whose responses share a network.
- resampled_users: users, each measured once under every window.
- student_by_seed: runs of a load, each seed under both windows.
- student_of_repeats: single cells, whose values have weights.
- student_over_draws: whole runs, whose draws need not be the same.
- exact: two numbers that cannot vary.

`judge` gives the result of a published number or claim. `judge_larger`, `judge_equal` and
`judge_highest` give those of claims on bars. `agrees` compares estimates without their intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from firstflight.base import stats
from firstflight.base.stats import CONFIDENCE, Estimate, estimate, percentile_interval
from firstflight.findings import claims
from firstflight.findings.bar import Bar
from firstflight.findings.claims import (ANY, DIRECTION, NOT_REPRODUCED, UNDECIDED, WITHIN_PERCENT,
                                         WITHIN_POINTS, ComparedNumber, Ends, Published, Result,
                                         equivalent)
from firstflight.findings.difference import Difference, percent_of

if TYPE_CHECKING:
    from firstflight.base.resampling import Numbers

USER_RESAMPLES = 1000
ALIKE_PERCENT = 5.0  # the largest difference of two values that a source calls alike
EQUAL_PERCENT = 1.0  # of the base: the largest difference of bars that a source calls equal
VARIES_MS = 0.001  # repeats that differ by less do not vary: they are rounded


class Row(NamedTuple):
    """One value. unit: its unit of drawing, such as a repeat, a seed or a client."""

    cell: Any
    window: Any
    unit: Any
    weight: float
    value: float


Rows = Sequence[Row]
# (rows of the base, rows of the experiment, sign of the metric) → Difference
Estimator = Callable[[Rows, Rows, int], Difference]


def difference(table: Iterable[Row], base: Hashable, experiment: Hashable, estimator: Estimator,
               sign: int = 1) -> Difference:
    """What the experiment's window changes against the base's, which may be the same window.

    Raises ValueError where a window has no row.
    """
    rows = list(table)
    first = [row for row in rows if row.window == base]
    second = [row for row in rows if row.window == experiment]
    if not first or not second:
        raise ValueError(f"no value under {experiment if first else base}")
    return estimator(first, second, sign)


def by_cell(rows: Iterable[Row]) -> dict[Any, list[Row]]:
    """The rows by cell, in the order of the cells' first rows."""
    cells: dict[Any, list[Row]] = {}
    for row in rows:
        cells.setdefault(row.cell, []).append(row)
    return cells


# Repeats of cells ----------------------------------------------------------------------

def resampled_in_cells(base: Rows, experiment: Rows, sign: int) -> Difference:
    """The weighted mean over cells, with a bootstrap of the repeats within each cell.

    A row's weight is that of its cell. Both sides have the same cells in the same order. Pairs are
    drawn where each unit of each cell has a value on both sides; otherwise each side by itself.
    """
    base_cells, experiment_cells = list(by_cell(base).values()), list(by_cell(experiment).values())
    weights = [rows[0].weight for rows in base_cells]
    first, second = _values(base_cells), _values(experiment_cells)

    before = stats.weighted_mean([sum(values) / len(values) for values in first], weights)
    after = stats.weighted_mean([sum(values) / len(values) for values in second], weights)
    pairs = _pairs(base_cells, experiment_cells)
    absolute, percent = _ends_in_cells(first, second, pairs, weights=weights, sign=sign)

    n = len(base) + len(experiment)
    return Difference(
        Estimate(before), Estimate(after), Estimate(sign * (before - after), absolute, n),
        Estimate(percent_of(before, after, sign), percent, n), n=n, cells=len(weights),
        cells_requested=len(weights), draws=min(len(base), len(experiment)),
        base_median=_median(first, weights), experiment_median=_median(second, weights), sign=sign)


def _values(cells: Iterable[Rows]) -> list[list[float]]:
    return [[row.value for row in rows] for rows in cells]


def _pairs(base: Sequence[Rows], experiment: Sequence[Rows]) -> list[list[Ends]] | None:
    """The pairs of values of each cell, one for each unit; None where a unit lacks a value."""
    pairs = []
    for first, second in zip(base, experiment):
        others = {row.unit: row.value for row in second}
        is_once_each = len(others) == len(first) == len(second)
        if not is_once_each or {row.unit for row in first} != others.keys():
            return None
        pairs.append([(row.value, others[row.unit]) for row in first])
    return pairs


def _median(cells: Sequence[Sequence[float]], weights: Sequence[float]) -> float:
    """The median over all values; the repeats of a cell share its weight."""
    values = [value for cell in cells for value in cell]
    shared = [weight / len(cell) for cell, weight in zip(cells, weights) for _ in cell]
    return stats.weighted_quantile(values, shared, 0.5)


def _ends_in_cells(first: Sequence[Sequence[float]], second: Sequence[Sequence[float]],
                   pairs: Sequence[Sequence[Ends]] | None, weights: Sequence[float],
                   sign: int) -> tuple[Ends | None, Ends | None]:
    """95 % intervals of the absolute and the relative (%) improvement; None for single values."""
    cells = [*first, *second]
    if any(len(cell) < 2 for cell in cells):
        return None, None

    if all(len(set(cell)) == 1 for cell in cells):
        # All repeats are equal, so there is nothing to resample.
        before = stats.weighted_mean([cell[0] for cell in first], weights)
        after = stats.weighted_mean([cell[0] for cell in second], weights)
        percent = percent_of(before, after, sign)
        return (sign * (before - after),) * 2, (percent,) * 2

    import numpy
    generator = stats.generator(seed=1)
    if pairs is not None:
        base, experiment = stats.resampled_pairs(pairs, weights, generator)
    else:
        base, experiment = (stats.resampled_means(side, weights, generator)
                            for side in (first, second))

    absolute = sign * (base - experiment)
    parts = absolute / numpy.where(base, base, math.inf)  # 0 where the base is 0, as percent_of
    return percentile_interval(absolute), percentile_interval(parts * 100)


# Responses of clients ------------------------------------------------------------------

def resampled_clients(base: Rows, experiment: Rows, sign: int, clients: int) -> Difference:
    """Means over responses, with a bootstrap over their clients.

    A row is a response; its unit is its client, 0 … clients − 1. Both sides have the same responses
    in the same order. A response may have another weight on each side: then base and experiment are
    unpaired, and `same` is the paired comparison, with the experiment's weights on both sides. Sums
    of each client are resampled (a cluster bootstrap, Efron and Tibshirani 1993, section 8.5).
    """
    import numpy

    from firstflight.base.resampling import RESAMPLES, resampling_factors
    own, place = numpy.unique([row.unit for row in base], return_inverse=True)
    (base_weight, first), (weight, second) = _columns(base), _columns(experiment)
    summed = (base_weight, weight, base_weight * first, weight * second, weight * first)
    sums = numpy.stack([numpy.bincount(place, values, len(own)) for values in summed], axis=-1)

    factors = resampling_factors(clients)
    resamples = [factors[rows, own] @ sums for rows in stats.portions(RESAMPLES, len(own))]
    drawn = numpy.concatenate([sums.sum(axis=0)[None], *resamples])
    drawn = drawn[drawn[:, 0] > 0]
    return _of_clients(base, experiment, sign, drawn[:, 2:] / drawn[:, [0, 1, 1]])


def resampled_quantiles(base: Rows, experiment: Rows, sign: int, clients: int,
                        shares: Sequence[float | None]) -> list[Difference]:
    """Differences of quantiles, one for each share from 0 to 1, or of the mean for None.

    Rows and bootstrap are as in resampled_clients.
    """
    import numpy

    from firstflight.base.resampling import resampling_factors, statistics
    (base_weight, first), (weight, second) = _columns(base), _columns(experiment)
    client = numpy.array([row.unit for row in base])

    def resampled(own: Numbers) -> Iterator[Numbers]:
        """The weights of the sample and of its resamples, shape (n,) each."""
        yield own
        for factors in resampling_factors(clients):
            drawn = factors[client] * own
            if drawn.sum() > 0:
                yield drawn

    sides = ((first, base_weight), (second, weight), (first, weight))
    drawn = numpy.stack([statistics(values, resampled(weights), shares)
                         for values, weights in sides], axis=-1)
    return [_of_clients(base, experiment, sign, drawn[:, place]) for place in range(len(shares))]


def _columns(rows: Rows) -> tuple[Numbers, Numbers]:
    """Weights and values, each of shape (n,)."""
    import numpy
    return numpy.array([row.weight for row in rows]), numpy.array([row.value for row in rows])


def _of_clients(base: Rows, experiment: Rows, sign: int, drawn: Numbers) -> Difference:
    """The difference of the sample, with intervals from its resamples.

    drawn: shape (r, 3), row 0 of the sample: means of the base, of the experiment, and of the base
    with the experiment's weights.
    """
    import numpy

    from firstflight.base.resampling import median
    (base_weight, first), (weight, second) = _columns(base), _columns(experiment)
    before, after, same = map(float, drawn[0])
    clients, n = len({row.unit for row in base}), 2 * len(base)

    paired = None
    if (weight != base_weight).any():
        alone = numpy.multiply(sign, drawn[:, 2] - drawn[:, 1], dtype=float)
        paired = Difference(
            Estimate(same), Estimate(after),
            Estimate(float(alone[0]), percentile_interval(alone[1:]), n),
            Estimate(float(100 * alone[0] / drawn[0, 2])), n=n, draws=clients, sign=sign)

    gains = numpy.multiply(sign, drawn[1:, 0] - drawn[1:, 1], dtype=float)
    percents = 100 * gains / drawn[1:, 0]
    return Difference(
        Estimate(before), Estimate(after),
        Estimate(sign * (before - after), percentile_interval(gains), n),
        Estimate(percent_of(before, after, sign), percentile_interval(percents), n),
        n=n, cells=clients, cells_requested=clients, draws=clients,
        base_median=median(first, base_weight), experiment_median=median(second, weight),
        sign=sign, same=paired)


# Student's intervals -------------------------------------------------------------------

def student_by_seed(base: Rows, experiment: Rows, sign: int) -> Difference:
    """The mean over the seeds that both sides have, with Student's interval of its differences.

    percent: of the mean of the base. Raises ValueError where no seed is shared.
    """
    first = {row.unit: row.value for row in base}
    second = {row.unit: row.value for row in experiment}
    seeds = sorted(first.keys() & second.keys())
    if not seeds:
        raise ValueError("no seed was measured with both windows")

    before, after = [first[seed] for seed in seeds], [second[seed] for seed in seeds]
    mean = math.fsum(before) / len(before)
    saved = [sign * (first[seed] - second[seed]) for seed in seeds]
    percents = [part / mean * 100 if mean else 0.0 for part in saved]
    return Difference(
        estimate(before), estimate(after), estimate(saved), estimate(percents),
        n=2 * len(seeds), draws=len(seeds), sign=sign)


def student_of_repeats(base: Rows, experiment: Rows, sign: int) -> Difference:
    """The difference of the weighted means, with an interval over the repeats of both sides.

    It has no interval where fewer than two repeats have both sides, or where they do not vary.
    """
    before, after = _weighted_mean(base), _weighted_mean(experiment)
    absolute = Estimate(sign * (before - after))

    first = {row.unit: row.value for row in base}
    saved = [sign * (first[row.unit] - row.value) for row in experiment if row.unit in first]
    if len(saved) >= 2 and max(saved) - min(saved) >= VARIES_MS:
        absolute = replace(estimate(saved), value=absolute.value)
    return Difference(
        Estimate(before), Estimate(after), absolute, Estimate(percent_of(before, after, sign)),
        n=len(base) + len(experiment), draws=len(saved), sign=sign)


def _weighted_mean(rows: Rows) -> float:
    return stats.weighted_mean([row.value for row in rows], [row.weight for row in rows])


def student_over_draws(base: Rows, experiment: Rows, sign: int,
                       of_clients: bool = False) -> Difference:
    """The difference of the means over cells, with an interval over what was drawn.

    Each draw moves the mean by the deviations of its values from what is expected of them: the mean
    of their cell; or, where draws are clients (of_clients), each of which has cells of its own, the
    mean of all. Deviations of one draw in several cells, and on both sides, add up. Both sides have
    the same cells.
    """
    moved: dict[Hashable, float] = {}
    means, draws, cells = [], [], 0
    for side_sign, side in ((sign, base), (-sign, experiment)):
        of_cells = list(by_cell(side).values())
        cells = len(of_cells)
        cell_means = [math.fsum(row.value for row in rows) / len(rows) for rows in of_cells]
        side_mean = math.fsum(cell_means) / cells
        means.append(side_mean)
        draws.append(len({row.unit for row in side}) if of_clients else max(map(len, of_cells)))

        for rows, cell_mean in zip(of_cells, cell_means):
            expected = side_mean if of_clients else cell_mean
            for row in rows:
                deviation = side_sign * (row.value - expected) / len(rows)
                moved[row.unit] = moved.get(row.unit, 0.0) + deviation

    before, after = means
    absolute = before - after if sign > 0 else after - before  # 0, never −0
    n, ends = min(draws), None
    if n > 1:
        from scipy.stats import t
        squares = math.fsum(by ** 2 for by in moved.values())
        factor = float(t.ppf((1 + CONFIDENCE) / 2, n - 1))
        half = factor / cells * math.sqrt(squares * n / (n - 1))
        ends = absolute - half, absolute + half
    return Difference(
        Estimate(before), Estimate(after), Estimate(absolute, ends, n),
        Estimate(100 * absolute / before if before else 0.0), n=len(base) + len(experiment),
        cells=cells, cells_requested=cells, draws=n, sign=sign)


# Users ---------------------------------------------------------------------------------

def resampled_users(base: Rows, experiment: Rows, sign: int) -> Difference:
    """The weighted mean over users, who have a row on both sides, in the same order.

    The interval is a bootstrap over users (Efron and Tibshirani 1993, chapter 6).
    """
    from firstflight.base.resampling import resampling_factors
    (_, first), (weight, second) = _columns(base), _columns(experiment)
    saved = sign * (first - second)
    before, after, absolute = (float(weight @ values / weight.sum())
                               for values in (first, second, saved))

    draws = resampling_factors(len(weight), USER_RESAMPLES) * weight
    ends = percentile_interval(draws @ saved / draws.sum(axis=1))

    whole = after + sign * absolute
    percent = 100 * absolute / whole if whole else 0.0
    return Difference(
        Estimate(before), Estimate(after), Estimate(absolute, ends, len(weight)),
        Estimate(percent), n=2 * len(weight), draws=len(weight), sign=sign)


# Numbers that cannot vary --------------------------------------------------------------

def exact(base: float, experiment: float, sign: int = 1) -> Difference:
    """The difference of two numbers that are the same in every repeat."""
    absolute, percent = sign * (base - experiment), percent_of(base, experiment, sign)
    return Difference(
        Estimate(base), Estimate(experiment), Estimate(absolute, (absolute, absolute)),
        Estimate(percent, (percent, percent)), n=2, lossless=True, exact=True, sign=sign)


# Results -------------------------------------------------------------------------------

@dataclass(frozen=True)
class Expected:
    """What a claim expects of the experiment. sign: 1 for less, −1 for more, 0 for alike.

    published: the difference, in percent of the base, or in the metric's unit (is_absolute).
    within: the tolerance around it, in the same unit; for alike values, how far apart they may be.
    """

    sign: int
    published: float | None = None
    within: float = ALIKE_PERCENT
    is_absolute: bool = False


def judge(expected: Published | Expected, change: Difference, unit: str = "",
          of_experiment: bool = False) -> Result:
    """The result of a difference, by published numbers or by what a claim expects.

    Published numbers are compared in the metric's unit, and in percent as their source prints it
    (of_experiment, see Difference.printed). A claim whose number is too far away is not reproduced,
    but may have the direction.
    """
    if isinstance(expected, Published):
        return claims.judge(_numbers(expected, change, unit, of_experiment))

    ends = (change.absolute.interval or ANY) if expected.is_absolute else _percent_ends(change)
    if expected.sign == 0:
        return Result(equivalent(ends, expected.within))
    outcome = _direction(expected.sign, change)
    if expected.published is None:
        return Result(outcome)

    low, high = sorted(expected.sign * end - expected.published for end in ends)
    near = equivalent((low, high), expected.within)
    return Result(DIRECTION if near == NOT_REPRODUCED and outcome == DIRECTION else near)


def _numbers(known: Published, change: Difference, unit: str,
             of_experiment: bool) -> list[ComparedNumber]:
    """The measured and the published improvement, in the metric's unit and in percent."""
    numbers = []
    if known.absolute is not None:
        allowed = max(WITHIN_PERCENT / 100 * abs(known.absolute), known.error)
        numbers.append(ComparedNumber(change.absolute.value, known.absolute, allowed,
                                      change.known(change.absolute), unit))
    if known.percent is not None:
        percent = change.printed(of_experiment)
        numbers.append(ComparedNumber(
            percent.value, change.as_printed(known.percent, of_experiment),
            max(WITHIN_POINTS, known.error_points), change.known(percent), "%"))
    return numbers


def _direction(sign: int, change: Difference) -> str:
    """Whether a difference has the expected sign, 1 or −1, by its 95 % interval.

    DIRECTION where the interval lies on that side, NOT_REPRODUCED where it ends before
    ALIKE_PERCENT on that side. Else UNDECIDED.
    """
    if change.absolute.sign == sign:
        return DIRECTION
    most = max(sign * end for end in _percent_ends(change))
    return NOT_REPRODUCED if most <= ALIKE_PERCENT else UNDECIDED


def _percent_ends(change: Difference) -> Ends:
    """The interval of the difference in percent, infinite where the base is 0; ANY without one."""
    if change.absolute.interval is None or change.percent.interval is None:
        return ANY
    if change.base.value:
        return change.percent.interval
    low, high = (math.copysign(math.inf, end) if end else 0.0 for end in change.absolute.interval)
    return low, high


# Claims on bars ------------------------------------------------------------------------

def judge_larger(bar: Bar, *others: Bar) -> str:
    """Whether a bar saves a larger percentage than each of the others, by their intervals."""
    def percent_ends(compared: Bar) -> Ends:
        return compared.difference.known(compared.percent) or ANY

    return claims.worst(claims.larger(percent_ends(bar), percent_ends(other)) for other in others)


def judge_equal(first: Bar, second: Bar) -> str:
    """Whether two bars save the same, within EQUAL_PERCENT of the smaller base."""
    (low, high), (least, most) = (bar.difference.known(bar.difference.absolute) or ANY
                                  for bar in (first, second))
    smaller_base = min(first.difference.base.value, second.difference.base.value)
    return equivalent((low - most, high - least), EQUAL_PERCENT / 100 * smaller_base)


def judge_highest(bar: Bar, published_percent: float) -> str:
    """Whether the highest bar has the percentage that its source prints."""
    return claims.judge([ComparedNumber(bar.percent.value, published_percent, WITHIN_POINTS,
                                        bar.difference.known(bar.percent))]).outcome


# Agreement of estimates ----------------------------------------------------------------

@dataclass(frozen=True)
class Tolerance:
    """How far an estimate may be from a published number and still agree.

    percent, absolute: the larger of a percentage of the published number and a number in its unit.
    points: for percentages. cut: the published numbers lost their decimals, so each stands for all
    numbers from it up to 1 more.
    """

    percent: float
    absolute: float
    points: float = 0.0
    cut: bool = False


def agrees(bar: Bar, tolerance: Tolerance) -> bool:
    """Whether a bar's estimates are near all published numbers; intervals do not count.

    In a window sweep the published number is the value under the bar's window.
    """
    known, change = bar.published, bar.difference
    if known.level is not None:
        return _is_near(change.experiment.value, known.level, tolerance)
    return ((known.absolute is None or _is_near(change.absolute.value, known.absolute, tolerance))
            and (bar.published_percent is None or _is_near(
                bar.percent.value, bar.published_percent, tolerance,
                max(tolerance.points, known.error_points))))


def _is_near(ours: float, published: float, tolerance: Tolerance,
             points: float | None = None) -> bool:
    """Whether a number is near a published one. points: the tolerance of a percentage, else None.
    """
    allowed = max(tolerance.percent / 100 * abs(published), tolerance.absolute
                  ) if points is None else points
    deviation = ours - published
    return equivalent((deviation - tolerance.cut, deviation), allowed) != NOT_REPRODUCED
