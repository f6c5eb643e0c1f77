"""Difference: what an experiment changes against a base.

An improvement is defined as in the paper (Dukkipati 2010, section 2): base − experiment, and the
same as a percentage of the base. figures/compare.py estimates differences; figures and tables show
them.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, replace

from firstflight.base.stats import Estimate
from firstflight.findings.claims import LEAST_DRAWS, Ends


@dataclass(frozen=True)
class Excluded:
    """How many records enter no mean, by reason.

    failed_transfers: not ok. failed_verdicts: ok, but the packets are not what was requested, or
    could not be judged. without_value: without the figure's metric. unpaired: the record counts,
    but none of the other window does. skipped: not measured, since this machine lacks what the
    trial needs.
    """

    failed_transfers: int = 0
    failed_verdicts: int = 0
    without_value: int = 0
    unpaired: int = 0
    skipped: int = 0

    @property
    def _counts(self) -> tuple[int, ...]:
        """The number of records for each reason."""
        return (self.failed_transfers, self.failed_verdicts, self.without_value, self.unpaired,
                self.skipped)

    @property
    def total(self) -> int:
        return sum(self._counts)

    def __add__(self, other: Excluded) -> Excluded:
        return Excluded(*map(operator.add, self._counts, other._counts))

    def __str__(self) -> str:
        """Such as "1 failed transfer, 2 failed verdicts"; "" for none."""
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
    n: int = 0  # values on both sides
    excluded: Excluded = Excluded()  # the records that are not among them
    cells: int = 1  # how many of cells_requested count
    cells_requested: int = 1
    draws: int = 0  # independent values of one side, clients or repeats, behind the intervals
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
        """The percentage and its interval, as the source prints them."""
        ours = self.percent
        return replace(ours, value=self.as_printed(ours.value, of_experiment),
                       interval=None if ours.interval is None else (
                           self.as_printed(ours.interval[0], of_experiment),
                           self.as_printed(ours.interval[1], of_experiment)))

    def known(self, ours: Estimate) -> Ends | None:
        """The ends between which one of its estimates is known to lie; None if nothing is known."""
        if self.exact:
            return ours.value, ours.value
        return ours.interval if self.draws >= LEAST_DRAWS else None

    @property
    def median_absolute(self) -> float:
        """The improvement of the median."""
        return self.sign * (self.base_median - self.experiment_median)

    @property
    def paired_interval(self) -> Ends | None:
        """The experiment's interval: the base less either end of the improvement's interval."""
        if self.absolute.interval is None:
            return None
        first, last = sorted(self.base.value - self.sign * end for end in self.absolute.interval)
        return first, last

    @property
    def is_unsure(self) -> bool:
        """Whether the interval of what is improved holds zero."""
        ends = self.absolute.interval
        return ends is not None and ends[0] < 0 < ends[1]


def percent_of(base: float, experiment: float, sign: int = 1) -> float:
    """The improvement in percent of the base; 0 where the base is 0."""
    return sign * (base - experiment) / base * 100 if base else 0.0


def of_baseline(percent: float, sign: int = 1) -> float:
    """Convert a percentage of the experiment (base / experiment − 1) to one of the base; exact.

    For sources that print the former. The reverse is Difference.as_printed.
    """
    return percent / (100 + sign * percent) * 100
