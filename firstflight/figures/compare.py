"""Computes differences: base − experiment with an interval, from a long table of values.

Each row of the table is a value of a cell under a window, with a weight and a sampling unit. The
unit is what was drawn at random. Which unit that is, and so which estimator fits, depends on how
the values were measured:

- resampled_in_cells: each cell was repeated; repeats are resampled within their cell.
- resampled_clients, resampled_quantiles: responses of clients, whose responses share a network.
- resampled_users: users, each measured once under every window.
- student_by_seed: runs of a load, each seed under both windows.
- student_of_repeats: single cells, whose values have weights.
- student_over_draws: whole runs, whose draws need not be the same.
- exact: two numbers that cannot vary.

figures/judging.py compares differences with what was published or claimed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from firstflight.base import stats
from firstflight.base.stats import CONFIDENCE, Estimate, estimate, percentile_interval
from firstflight.findings.claims import Ends
from firstflight.findings.difference import Difference, percent_of

if TYPE_CHECKING:
    from firstflight.base.resampling import Numbers

USER_RESAMPLES = 1000
VARIES_MS = 0.001  # repeats whose values differ by less are equal: the rest is rounding


class Row(NamedTuple):
    """One value. unit: its sampling unit, such as the number of a repeat, a seed or a client."""

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
    """What the experiment's window changes, compared with the base's.

    sign: 1 where less of the metric is better, −1 where more is. Raises ValueError where a window
    has no row.
    """
    rows = list(table)
    base_rows = [row for row in rows if row.window == base]
    experiment_rows = [row for row in rows if row.window == experiment]
    if not base_rows:
        raise ValueError(f"no value under {base}")
    if not experiment_rows:
        raise ValueError(f"no value under {experiment}")
    return estimator(base_rows, experiment_rows, sign)


def by_cell(rows: Iterable[Row]) -> dict[Any, list[Row]]:
    """The rows by cell, in the order of the cells' first rows."""
    cells: dict[Any, list[Row]] = {}
    for row in rows:
        cells.setdefault(row.cell, []).append(row)
    return cells


# Repeats of cells ----------------------------------------------------------------------

def resampled_in_cells(base: Rows, experiment: Rows, sign: int) -> Difference:
    """The weighted mean over cells, with a bootstrap of the repeats within each cell.

    A row's weight is that of its cell. Both sides have the same cells in the same order. If each
    unit of each cell has a value on both sides, pairs of values are resampled. Otherwise the values
    of each side are resampled by themselves.
    """
    base_cells = list(by_cell(base).values())
    experiment_cells = list(by_cell(experiment).values())
    weights = [rows[0].weight for rows in base_cells]

    base_values = _values(base_cells)
    experiment_values = _values(experiment_cells)
    base_mean = _mean_of_cells(base_values, weights)
    experiment_mean = _mean_of_cells(experiment_values, weights)

    pairs = _pairs(base_cells, experiment_cells)
    absolute_ends, percent_ends = _intervals_in_cells(
        base_values, experiment_values, pairs, weights=weights, sign=sign)

    n = len(base) + len(experiment)
    return Difference(
        Estimate(base_mean), Estimate(experiment_mean),
        absolute=Estimate(sign * (base_mean - experiment_mean), absolute_ends, n),
        percent=Estimate(percent_of(base_mean, experiment_mean, sign), percent_ends, n),
        n=n, cells=len(weights), cells_requested=len(weights),
        draws=min(len(base), len(experiment)), base_median=_median(base_values, weights),
        experiment_median=_median(experiment_values, weights), sign=sign)


def _values(cells: Iterable[Rows]) -> list[list[float]]:
    """The values of each cell."""
    return [[row.value for row in rows] for rows in cells]


def _mean_of_cells(cells: Iterable[Sequence[float]], weights: Sequence[float]) -> float:
    """The weighted mean of the cells' means."""
    means = [sum(values) / len(values) for values in cells]
    return stats.weighted_mean(means, weights)


def _pairs(base: Sequence[Rows], experiment: Sequence[Rows]) -> list[list[Ends]] | None:
    """The pairs of values of each cell, one for each unit; None where a unit lacks a value."""
    pairs = []
    for base_rows, experiment_rows in zip(base, experiment):
        counterparts = {row.unit: row.value for row in experiment_rows}
        is_once_each = len(counterparts) == len(base_rows) == len(experiment_rows)
        if not is_once_each or {row.unit for row in base_rows} != counterparts.keys():
            return None
        pairs.append([(row.value, counterparts[row.unit]) for row in base_rows])
    return pairs


def _median(cells: Sequence[Sequence[float]], weights: Sequence[float]) -> float:
    """The median over all values; the repeats of a cell share its weight equally."""
    values: list[float] = []
    value_weights: list[float] = []
    for cell, weight in zip(cells, weights):
        values += cell
        value_weights += [weight / len(cell)] * len(cell)
    return stats.weighted_quantile(values, value_weights, 0.5)


def _intervals_in_cells(base: Sequence[Sequence[float]], experiment: Sequence[Sequence[float]],
                        pairs: Sequence[Sequence[Ends]] | None, weights: Sequence[float],
                        sign: int) -> tuple[Ends | None, Ends | None]:
    """95 % intervals of the improvement, in the metric's unit and in percent.

    None for both where a cell has a single value.
    """
    cells = [*base, *experiment]
    if any(len(cell) < 2 for cell in cells):
        return None, None

    if all(len(set(cell)) == 1 for cell in cells):
        # All repeats are equal, so there is nothing to resample.
        base_mean = stats.weighted_mean([cell[0] for cell in base], weights)
        experiment_mean = stats.weighted_mean([cell[0] for cell in experiment], weights)
        improvement = sign * (base_mean - experiment_mean)
        percent = percent_of(base_mean, experiment_mean, sign)
        return (improvement, improvement), (percent, percent)

    import numpy
    generator = stats.generator(seed=1)
    if pairs is not None:
        base_means, experiment_means = stats.resampled_pairs(pairs, weights, generator)
    else:
        base_means = stats.resampled_means(base, weights, generator)
        experiment_means = stats.resampled_means(experiment, weights, generator)

    improvements = sign * (base_means - experiment_means)
    # As in percent_of, the improvement is 0 % where the base is 0.
    percents = improvements / numpy.where(base_means, base_means, math.inf) * 100
    return percentile_interval(improvements), percentile_interval(percents)


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
    base_weights, base_values = _columns(base)
    weights, values = _columns(experiment)
    summed = (base_weights, weights, base_weights * base_values, weights * values,
              weights * base_values)

    numbers, place = numpy.unique([row.unit for row in base], return_inverse=True)
    per_client = numpy.stack(
        [numpy.bincount(place, terms, len(numbers)) for terms in summed], axis=-1)

    factors = resampling_factors(clients)
    resamples = [factors[rows, numbers] @ per_client
                 for rows in stats.portions(RESAMPLES, len(numbers))]
    sums = numpy.concatenate([per_client.sum(axis=0)[None], *resamples])
    sums = sums[sums[:, 0] > 0]  # a resample that drew none of these clients has no mean

    base_weight, weight, base_sum, experiment_sum, reweighted_sum = sums.T
    means = (base_sum / base_weight, experiment_sum / weight, reweighted_sum / weight)
    return _difference_of_resamples(base, experiment, sign, numpy.stack(means, axis=-1))


def resampled_quantiles(base: Rows, experiment: Rows, sign: int, clients: int,
                        shares: Sequence[float | None]) -> list[Difference]:
    """Differences of quantiles, one for each share from 0 to 1, or of the mean for None.

    Rows and bootstrap are as in resampled_clients.
    """
    import numpy

    from firstflight.base.resampling import resampling_factors, statistics
    base_weights, base_values = _columns(base)
    weights, values = _columns(experiment)
    client = numpy.array([row.unit for row in base])

    def resampled(of_sample: Numbers) -> Iterator[Numbers]:
        """The weights of the sample, then those of its resamples, shape (n,) each."""
        yield of_sample
        for factors in resampling_factors(clients):
            of_resample = factors[client] * of_sample
            if of_resample.sum() > 0:
                yield of_resample

    quantiles = numpy.stack([
        statistics(base_values, resampled(base_weights), shares),
        statistics(values, resampled(weights), shares),
        statistics(base_values, resampled(weights), shares)], axis=-1)
    return [_difference_of_resamples(base, experiment, sign, quantiles[:, place])
            for place in range(len(shares))]


def _columns(rows: Rows) -> tuple[Numbers, Numbers]:
    """Weights and values, each of shape (n,)."""
    import numpy
    return numpy.array([row.weight for row in rows]), numpy.array([row.value for row in rows])


def _difference_of_resamples(base: Rows, experiment: Rows, sign: int,
                             sampled: Numbers) -> Difference:
    """The difference of a sample of clients, with intervals from its resamples.

    sampled: means or quantiles, shape (1 + resamples, 3). Row 0 has the sample's. The columns are
    the base's, the experiment's, and the base's with the experiment's weights.
    """
    import numpy

    from firstflight.base.resampling import median
    base_weights, base_values = _columns(base)
    weights, values = _columns(experiment)
    of_base, of_experiment, of_reweighted = sampled.T
    clients, n = len({row.unit for row in base}), 2 * len(base)

    paired = None
    if (weights != base_weights).any():
        paired_gains = numpy.multiply(sign, of_reweighted - of_experiment, dtype=float)
        gain, reweighted_mean = float(paired_gains[0]), float(of_reweighted[0])
        paired = Difference(
            Estimate(reweighted_mean), Estimate(float(of_experiment[0])),
            absolute=Estimate(gain, percentile_interval(paired_gains[1:]), n),
            percent=Estimate(100 * gain / reweighted_mean), n=n, draws=clients, sign=sign)

    gains = numpy.multiply(sign, of_base[1:] - of_experiment[1:], dtype=float)
    percents = 100 * gains / of_base[1:]
    base_mean, experiment_mean = float(of_base[0]), float(of_experiment[0])
    percent = percent_of(base_mean, experiment_mean, sign)
    return Difference(
        Estimate(base_mean), Estimate(experiment_mean),
        absolute=Estimate(sign * (base_mean - experiment_mean), percentile_interval(gains), n),
        percent=Estimate(percent, percentile_interval(percents), n),
        n=n, cells=clients, cells_requested=clients, draws=clients,
        base_median=median(base_values, base_weights), experiment_median=median(values, weights),
        sign=sign, same=paired)


# Student's intervals -------------------------------------------------------------------

def student_by_seed(base: Rows, experiment: Rows, sign: int) -> Difference:
    """The mean over the seeds that both sides have, with Student's interval of the differences.

    The difference in percent is relative to the mean of the base. Raises ValueError where no seed
    is shared.
    """
    base_by_seed = {row.unit: row.value for row in base}
    experiment_by_seed = {row.unit: row.value for row in experiment}
    seeds = sorted(base_by_seed.keys() & experiment_by_seed.keys())
    if not seeds:
        raise ValueError("no seed was measured with both windows")

    base_values = [base_by_seed[seed] for seed in seeds]
    experiment_values = [experiment_by_seed[seed] for seed in seeds]
    saved = [sign * (base_by_seed[seed] - experiment_by_seed[seed]) for seed in seeds]
    base_mean = math.fsum(base_values) / len(seeds)
    percents = [value / base_mean * 100 if base_mean else 0.0 for value in saved]
    return Difference(
        estimate(base_values), estimate(experiment_values), absolute=estimate(saved),
        percent=estimate(percents), n=2 * len(seeds), draws=len(seeds), sign=sign)


def student_of_repeats(base: Rows, experiment: Rows, sign: int) -> Difference:
    """The difference of the weighted means, with an interval over the repeats of both sides.

    It has no interval where fewer than two repeats have both sides, or where they do not vary.
    """
    base_mean, experiment_mean = _weighted_mean(base), _weighted_mean(experiment)
    absolute = Estimate(sign * (base_mean - experiment_mean))

    by_repeat = {row.unit: row.value for row in base}
    saved = [sign * (by_repeat[row.unit] - row.value)
             for row in experiment if row.unit in by_repeat]
    if len(saved) >= 2 and max(saved) - min(saved) >= VARIES_MS:
        absolute = replace(estimate(saved), value=absolute.value)
    return Difference(
        Estimate(base_mean), Estimate(experiment_mean), absolute=absolute,
        percent=Estimate(percent_of(base_mean, experiment_mean, sign)),
        n=len(base) + len(experiment), draws=len(saved), sign=sign)


def _weighted_mean(rows: Rows) -> float:
    return stats.weighted_mean([row.value for row in rows], [row.weight for row in rows])


def student_over_draws(base: Rows, experiment: Rows, sign: int,
                       of_clients: bool = False) -> Difference:
    """The difference of the means over cells, with an interval over what was drawn at random.

    Both sides have the same cells. A draw is a seed, which may have a value in every cell, or a
    client (of_clients), which has cells of its own. A value deviates from the mean of its cell; the
    value of a client deviates from the mean over all cells. One draw's deviations in several cells
    and on both sides are not independent, so they are added up before the interval is computed.
    """
    deviations: dict[Hashable, float] = {}
    means, draws = [], []
    for side_sign, side in ((sign, base), (-sign, experiment)):
        cells = list(by_cell(side).values())
        cell_means = [math.fsum(row.value for row in rows) / len(rows) for rows in cells]
        side_mean = math.fsum(cell_means) / len(cells)
        means.append(side_mean)
        draws.append(len({row.unit for row in side}) if of_clients else max(map(len, cells)))

        expected = [side_mean] * len(cells) if of_clients else cell_means
        for unit, deviation in _deviations(cells, expected):
            deviations[unit] = deviations.get(unit, 0.0) + side_sign * deviation

    base_mean, experiment_mean = means
    # Subtracted in this order, so that it is 0 and never −0.
    absolute = base_mean - experiment_mean if sign > 0 else experiment_mean - base_mean
    ends = _student_ends(absolute, deviations.values(), min(draws), len(cells))
    return Difference(
        Estimate(base_mean), Estimate(experiment_mean),
        absolute=Estimate(absolute, ends, min(draws)),
        percent=Estimate(100 * absolute / base_mean if base_mean else 0.0),
        n=len(base) + len(experiment), cells=len(cells), cells_requested=len(cells),
        draws=min(draws), sign=sign)


def _deviations(cells: Iterable[Rows], expected: Iterable[float]
                ) -> Iterator[tuple[Hashable, float]]:
    """Each row's unit, and how far its deviation from the expected value moves the cell's mean."""
    for rows, value in zip(cells, expected):
        for row in rows:
            yield row.unit, (row.value - value) / len(rows)


def _student_ends(mean: float, deviations: Iterable[float], draws: int, cells: int) -> Ends | None:
    """Student's interval of a mean over cells; None for a single draw.

    deviations: of the sum over cells, one for each draw.
    """
    if draws < 2:
        return None
    from scipy.stats import t
    squares = math.fsum(deviation ** 2 for deviation in deviations)
    quantile = float(t.ppf((1 + CONFIDENCE) / 2, draws - 1))
    half_width = quantile / cells * math.sqrt(squares * draws / (draws - 1))
    return mean - half_width, mean + half_width


# Users ---------------------------------------------------------------------------------

def resampled_users(base: Rows, experiment: Rows, sign: int) -> Difference:
    """The weighted mean over users, who have a row on both sides, in the same order.

    The interval is a bootstrap over users (Efron and Tibshirani 1993, chapter 6).
    """
    from firstflight.base.resampling import resampling_factors
    _, base_values = _columns(base)
    weights, experiment_values = _columns(experiment)
    saved = sign * (base_values - experiment_values)
    base_mean, experiment_mean, saved_mean = (
        float(weights @ values / weights.sum())
        for values in (base_values, experiment_values, saved))

    resampled_weights = resampling_factors(len(weights), USER_RESAMPLES) * weights
    ends = percentile_interval(resampled_weights @ saved / resampled_weights.sum(axis=1))
    percent = 100 * saved_mean / base_mean if base_mean else 0.0
    return Difference(
        Estimate(base_mean), Estimate(experiment_mean),
        absolute=Estimate(saved_mean, ends, len(weights)), percent=Estimate(percent),
        n=2 * len(weights), draws=len(weights), sign=sign)


# Numbers that cannot vary --------------------------------------------------------------

def exact(base: float, experiment: float, sign: int = 1) -> Difference:
    """The difference of two numbers that are the same in every repeat."""
    absolute, percent = sign * (base - experiment), percent_of(base, experiment, sign)
    return Difference(
        Estimate(base), Estimate(experiment), absolute=Estimate(absolute, (absolute, absolute)),
        percent=Estimate(percent, (percent, percent)), n=2, lossless=True, exact=True, sign=sign)
