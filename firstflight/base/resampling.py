"""Bootstrap over weighted clients: how often each client is drawn, and weighted quantiles.

The random numbers are the same in every run, so intervals are, too. Needs numpy.
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
# A share of the weight is made smaller by this factor before it is compared with a sum of weights,
# whose last digit may be rounded down.
ROUNDED = 1 - 1e-12


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
    """Quantiles of the values under each of several weights, shape (weights, shares).

    weights: each of shape (values,). shares: of the weight, at or below the quantile; None for the
    mean. A quantile is the smallest value with at least this share of the weight at or below it.
    """
    order = numpy.argsort(values, kind="stable")
    ascending = values[order]

    rows = []
    for weight in weights:
        cumulated = numpy.cumsum(weight[order])
        row = []
        for share in shares:
            if share is None:
                row.append(weight @ values / weight.sum())
            else:
                place = numpy.searchsorted(cumulated, share * cumulated[-1] * ROUNDED)
                row.append(ascending[place])
        rows.append(row)
    return numpy.array(rows)


def median(values: Numbers, weight: Numbers) -> float:
    """The weighted median of the values."""
    return float(statistics(values, [weight], [0.5])[0, 0])
