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
AT_ONCE = 1 << 20  # numbers drawn at once: it bounds the memory, whatever the sample's size


def weighted_mean(values: Sequence[float], weights: Sequence[float]) -> float:
    """Mean of `values` with weights that need not sum to 1. Raises ValueError without weight."""
    _check(values, weights)
    return sum(value * weight for value, weight in zip(values, weights)) / sum(weights)


def weighted_quantile(values: Sequence[float], weights: Sequence[float],
                      quantile: float) -> float:
    """The value below which `quantile` (0 to 1) of the weight lies.

    The inverse of the weighted distribution function; where it is flat at
    the quantile, the middle of the two values, so that equal weights and 0.5
    give the ordinary median. Raises ValueError without weight.
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
    """Bootstrap distribution of the weighted mean of the strata's means.

    Each stratum (one cell of a sweep) is resampled by itself, since how often
    a cell is measured is decided, not sampled (Efron and Tibshirani 1993,
    section 8.3). Returns an array of shape (resamples,).
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
    """Slices that cut so many rows into parts of about AT_ONCE numbers."""
    share = max(1, AT_ONCE // columns)
    return (slice(start, min(start + share, rows)) for start in range(0, rows, share))


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
    """A mean of n values and its 95 % interval, None if it has none."""

    value: float
    interval: tuple[float, float] | None = None
    n: int = 1

    @property
    def sign(self) -> int:
        """1 or -1 if the interval excludes 0, else 0."""
        if self.interval is None:
            return 0
        return 1 if self.interval[0] > 0 else -1 if self.interval[1] < 0 else 0

    def scaled(self, factor: float) -> Estimate:
        """The estimate in another unit; factor > 0."""
        ends = self.interval
        return Estimate(self.value * factor, None if ends is None else
                        (ends[0] * factor, ends[1] * factor), self.n)


def estimate(values: Sequence[float]) -> Estimate:
    """Mean and Student interval of independent values. Raises ValueError for none."""
    if not values:
        raise ValueError("no values to estimate from")
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return Estimate(mean, None, 1)
    from scipy import stats
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * spread / math.sqrt(
        len(values))
    return Estimate(mean, (mean - half, mean + half), len(values))
