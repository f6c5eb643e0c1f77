"""Bootstrap over weighted clients: how often each is drawn, and weighted quantiles.

As in stats, intervals are the same whenever they are computed. Needs numpy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy

from firstflight.base.stats import portions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[numpy.float64]
    Factors = NDArray[numpy.uint16]

RESAMPLES = 400
ROUNDED = 1 - 1e-12  # of a share: the last digit of a sum of weights may be rounded


@lru_cache(maxsize=2)  # the figures of a population share them
def resampling_factors(clients: int, resamples: int = RESAMPLES) -> Factors:
    """How often each client is drawn in each resample, shape (resamples, clients)."""
    generator = numpy.random.default_rng(1)  # a fixed seed: the same intervals every time
    drawn = numpy.empty((resamples, clients), numpy.uint16)
    chances = numpy.full(clients, 1 / clients)
    for rows in portions(resamples, clients):
        drawn[rows] = generator.multinomial(clients, chances, size=rows.stop - rows.start)
    return drawn


def statistics(values: Numbers, weights: Iterable[Numbers],
               shares: Sequence[float | None]) -> Numbers:
    """Quantiles, or the mean for None, under each of the weights, shape (weights, shares).

    A quantile is the smallest value with at least this share of the weight at or below it.
    """
    order = numpy.argsort(values, kind="stable")
    ascending = values[order]
    rows = []
    for weight in weights:
        cumulated = numpy.cumsum(weight[order])
        rows.append([weight @ values / weight.sum() if share is None else ascending[
            numpy.searchsorted(cumulated, share * cumulated[-1] * ROUNDED)] for share in shares])
    return numpy.array(rows)


def median(values: Numbers, weight: Numbers) -> float:
    return float(statistics(values, [weight], [0.5])[0, 0])
