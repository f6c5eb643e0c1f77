"""Difference: what an experiment changes against a base.

The improvement is defined as in the paper (Dukkipati 2010, section 2). It is base − experiment, or
this as a percentage of the base. figures/compare.py estimates differences, and figures and tables
show them.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, replace

from firstflight.base.stats import Estimate
from firstflight.findings.claims import LEAST_DRAWS, Ends


@dataclass(frozen=True)
class Excluded:
    """How many records enter no mean, by reason."""

    failed_transfers: int = 0  # the transfer failed
    # The transfer succeeded, but its packets are not the requested ones, or could not be judged.
    failed_verdicts: int = 0
    without_value: int = 0  # the record lacks the figure's metric
    unpaired: int = 0  # the record counts, but no record of the other window does
    skipped: int = 0  # the trial was not measured: this machine lacks what it needs

    @property
    def _counts(self) -> tuple[int, ...]:
        """The number of records for each reason, in the order of the fields."""
        return (self.failed_transfers, self.failed_verdicts, self.without_value, self.unpaired,
                self.skipped)

    @property
    def total(self) -> int:
        """The number of records that enter no mean."""
        return sum(self._counts)

    def __add__(self, other: Excluded) -> Excluded:
        return Excluded(*map(operator.add, self._counts, other._counts))

    def __str__(self) -> str:
        """The counts in words, such as "1 failed transfer, 2 failed verdicts"; "" for none."""
        words = (("failed transfer", "failed transfers"), ("failed verdict", "failed verdicts"),
                 ("record without a value", "records without a value"),
                 ("record without its counterpart", "records without their counterpart"),
                 ("skipped trial", "skipped trials"))
        return ", ".join(f"{count} {one if count == 1 else several}"
                         for count, (one, several) in zip(self._counts, words) if count)


@dataclass(frozen=True)
class Difference:
    """What an experiment changes against a base."""

    # Means in the unit of the metric.
    base: Estimate
    experiment: Estimate
    # The improvement, in that unit and in percent of the base, with 95 % intervals; the interval is
    # None where each cell was measured once.
    absolute: Estimate
    percent: Estimate
    n: int = 0  # how many values the two means have together
    excluded: Excluded = Excluded()  # the records that are in none of the means
    cells: int = 1  # how many cells count
    cells_requested: int = 1  # how many cells there are
    # How many independent values of one side the intervals are from. They are clients or repeats.
    draws: int = 0
    # Medians of both sides; nan where the estimator computes none.
    base_median: float = math.nan
    experiment_median: float = math.nan
    lossless: bool = False  # whether chance plays no part in any cell
    exact: bool = False  # whether every repeat gives these very values
    sign: int = 1  # 1 where less of the metric is better, −1 where more is
    # Where base and experiment are means over different responses: the paired comparison of the
    # responses that both have. None where both are means over the same ones.
    same: Difference | None = None

    def as_printed(self, percent: float, of_experiment: bool) -> float:
        """A percentage of the base as its source prints it.

        of_experiment: the source prints base / experiment − 1.
        """
        return percent / (100 - self.sign * percent) * 100 if of_experiment else percent

    def printed(self, of_experiment: bool) -> Estimate:
        """Our percentage and its interval, as the source would print them.

        of_experiment: as in as_printed().
        """
        value = self.as_printed(self.percent.value, of_experiment)
        if self.percent.interval is None:
            return replace(self.percent, value=value)
        low, high = self.percent.interval
        return replace(self.percent, value=value,
                       interval=(self.as_printed(low, of_experiment),
                                 self.as_printed(high, of_experiment)))

    def known(self, estimate: Estimate) -> Ends | None:
        """The ends between which an estimate of this difference is known to lie.

        None if nothing is known.
        """
        if self.exact:
            return estimate.value, estimate.value
        return estimate.interval if self.draws >= LEAST_DRAWS else None

    @property
    def median_absolute(self) -> float:
        """The improvement of the median."""
        return self.sign * (self.base_median - self.experiment_median)

    @property
    def paired_interval(self) -> Ends | None:
        """The experiment's interval: the base less each end of the improvement's interval.

        None where the improvement has no interval.
        """
        if self.absolute.interval is None:
            return None
        first, last = sorted(self.base.value - self.sign * end for end in self.absolute.interval)
        return first, last

    @property
    def is_unsure(self) -> bool:
        """Whether the interval of the improvement includes zero."""
        ends = self.absolute.interval
        return ends is not None and ends[0] < 0 < ends[1]


def percent_of(base: float, experiment: float, sign: int = 1) -> float:
    """The improvement in percent of the base; 0 where the base is 0."""
    return sign * (base - experiment) / base * 100 if base else 0.0


def of_baseline(percent: float, sign: int = 1) -> float:
    """Convert a percentage of the experiment (base / experiment − 1) to one of the base.

    It is for sources that print the former, and exact. The reverse is Difference.as_printed.
    """
    return percent / (100 + sign * percent) * 100
