"""Weighted means and quantiles, and bootstrap confidence intervals.

numpy is imported only by the functions that use it: a run without intervals does not wait for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

RESAMPLES = 2000  # the ends of a 95 % interval then rest on 50 resamples each
AT_ONCE = 1 << 20  # numbers that are drawn at once: a bound of the memory, for samples of any size


def weighted_mean(values: Sequence[float], weights: Sequence[float]) -> float:
    """Mean of `values` with weights that need not sum to 1. Raises ValueError without weight."""
    _check(values, weights)
    return sum(value * weight for value, weight in zip(values, weights)) / sum(weights)


def weighted_quantile(values: Sequence[float], weights: Sequence[float],
                      quantile: float) -> float:
    """The value below which `quantile` (0 to 1) of the weight lies.

    It is the inverse of the weighted distribution function. Where that function is flat at the
    quantile, it is the middle of the two values, so that equal weights and 0.5 give the ordinary
    median. Raises ValueError without weight.
    """
    _check(values, weights)
    if not 0 <= quantile <= 1:
        raise ValueError(f"quantile {quantile} is not between 0 and 1")
    ordered = sorted((value, weight) for value, weight in zip(values, weights) if weight > 0)
    total = sum(weight for _, weight in ordered)
    below = 0.0
    for position, (value, weight) in enumerate(ordered):
        below += weight
        if abs(below - quantile * total) < 1e-9 * total and position + 1 < len(ordered):
            return (value + ordered[position + 1][0]) / 2
        if below > quantile * total:
            return value
    return ordered[-1][0]


def resampled_means(strata: Sequence[Sequence[float]], weights: Sequence[float],
                    generator: numpy.random.Generator,
                    resamples: int = RESAMPLES) -> NDArray[numpy.float64]:
    """The bootstrap distribution of the weighted mean of the strata's means, shape (resamples,).

    Each stratum (one cell of a sweep) is resampled by itself, since how often a cell is measured is
    decided, not sampled (Efron and Tibshirani 1993, section 8.3).
    """
    import numpy

    means = numpy.zeros(resamples)
    for values, weight in zip(strata, weights):
        sample = numpy.asarray(values, dtype=float)
        for rows in portions(resamples, len(sample)):
            picks = generator.integers(len(sample), size=(rows.stop - rows.start, len(sample)))
            means[rows] += weight * sample[picks].mean(axis=1)
    total: float = sum(weights)
    return means / total


def resampled_pairs(strata: Sequence[Sequence[tuple[float, float]]], weights: Sequence[float],
                    generator: numpy.random.Generator, resamples: int = RESAMPLES,
                    ) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64]]:
    """Resampled means of both values of pairs that were measured under the same random numbers.

    A pair is drawn whole: its two values vary together, so that their difference varies less than
    either. Returns the means of the first and of the second values, shape (resamples,) each.
    """
    import numpy

    means = numpy.zeros((resamples, 2))
    for pairs, weight in zip(strata, weights):
        sample = numpy.asarray(pairs, dtype=float)
        chances = numpy.full(len(sample), 1 / len(sample))
        for rows in portions(resamples, len(sample)):
            # How often each pair is drawn, not which: far fewer look-ups.
            counts = generator.multinomial(len(sample), chances, size=rows.stop - rows.start)
            means[rows] += weight * (counts @ sample) / len(sample)
    total: float = sum(weights)
    return means[:, 0] / total, means[:, 1] / total


def portions(rows: int, columns: int) -> Iterator[slice]:
    """Slices of rows, which cut an array of (rows, columns) into parts of about AT_ONCE numbers."""
    rows_at_once = max(1, AT_ONCE // columns)
    return (slice(start, min(start + rows_at_once, rows))
            for start in range(0, rows, rows_at_once))


def percentile_interval(values: NDArray[numpy.float64],
                        confidence: float = 0.95) -> tuple[float, float]:
    """The two ends between which `confidence` of the values lie."""
    import numpy

    tail = (1 - confidence) / 2 * 100
    low, high = numpy.percentile(values, [tail, 100 - tail])
    return float(low), float(high)


def generator(seed: int) -> numpy.random.Generator:
    """Random numbers that are the same in every run, so that figures are too."""
    import numpy

    return numpy.random.default_rng(seed)


def _check(values: Sequence[float], weights: Sequence[float]) -> None:
    if len(values) != len(weights):
        raise ValueError(f"{len(values)} values with {len(weights)} weights")
    if not sum(weights) > 0:
        raise ValueError("the weights sum to nothing")


# Estimates over independent seeds ----------------------------------------------------

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean of n values and its 95 % interval."""

    value: float
    # None where the values have no spread to compute it from, such as a single one.
    interval: tuple[float, float] | None = None
    n: int = 1

    @property
    def sign(self) -> int:
        """1 or -1 if the interval excludes 0, else 0."""
        low, high = self.interval or (0.0, 0.0)
        if low > 0:
            return 1
        return -1 if high < 0 else 0

    def scaled(self, factor: float) -> Estimate:
        """The estimate in another unit. factor: from this unit to that one, above 0."""
        interval = None
        if self.interval is not None:
            low, high = self.interval
            interval = low * factor, high * factor
        return Estimate(self.value * factor, interval, self.n)


def estimate(values: Sequence[float]) -> Estimate:
    """The mean of independent values, and Student's interval of it. Raises ValueError without any.
    """
    if not values:
        raise ValueError("no values to estimate from")
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return Estimate(mean, None, 1)
    from scipy import stats
    freedom = len(values) - 1
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / freedom)
    factor = float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom))
    half = factor * spread / math.sqrt(len(values))
    return Estimate(mean, (mean - half, mean + half), len(values))
