"""Difference: what an experiment changes against a base, with all that is known of it.

An improvement is the paper's (Dukkipati 2010, section 2): base less experiment, and that as a
percentage of the base. study/compare.py estimates differences; figures and tables show them.
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, replace

from firstflight.base.stats import Estimate
from firstflight.findings.claims import LEAST_DRAWS, Ends


@dataclass(frozen=True)
class Excluded:
    """Records that enter no mean, by reason.

    failed_transfers: not ok; failed_verdicts: ok, but the packets are not
    what was requested, or could not be judged; without_value: lack the figure's
    metric; unpaired: count, but no record of the other window does; skipped: not
    measured, since this machine lacks what they need.
    """

    failed_transfers: int = 0
    failed_verdicts: int = 0
    without_value: int = 0
    unpaired: int = 0
    skipped: int = 0

    @property
    def total(self) -> int:
        return sum(astuple(self))

    def __add__(self, other: Excluded) -> Excluded:
        return Excluded(*map(sum, zip(astuple(self), astuple(other))))

    def __str__(self) -> str:
        """Such as "1 failed transfer, 2 failed verdicts"; "" for none."""
        words = (("failed transfer", "failed transfers"), ("failed verdict", "failed verdicts"),
                 ("record without a value", "records without a value"),
                 ("record without its counterpart", "records without their counterpart"),
                 ("skipped trial", "skipped trials"))
        return ", ".join(f"{count} {one if count == 1 else several}"
                         for count, (one, several) in zip(astuple(self), words) if count)


@dataclass(frozen=True)
class Difference:
    """What an experiment changes against a base.

    base, experiment: means, in the unit of the metric. absolute: what is improved, in that unit;
    percent: the same in percent of the base. Both have 95 % intervals, None where nothing was
    drawn twice. sign: 1 where less of the metric is better, -1 where more is. n: values of both;
    excluded: records that are not among them. cells: how many of cells_requested are in it.
    draws: independent values of one side that the intervals rest on, clients or repeats.
    base_median, experiment_median: nan where no estimator computes them. lossless: chance decides
    nothing in it; exact: nor does anything else, so that every repeat gives the same. same: the
    comparison of the same responses under both windows, where base and experiment are means over
    other responses; None where they already are the same.
    """

    base: Estimate
    experiment: Estimate
    absolute: Estimate
    percent: Estimate
    n: int = 0
    excluded: Excluded = Excluded()
    cells: int = 1
    cells_requested: int = 1
    draws: int = 0
    base_median: float = math.nan
    experiment_median: float = math.nan
    lossless: bool = False
    exact: bool = False
    sign: int = 1
    same: Difference | None = None

    def as_printed(self, percent: float, of_experiment: bool) -> float:
        """A percentage of the base; of_experiment: as base / experiment − 1, as some print it."""
        return percent / (100 - self.sign * percent) * 100 if of_experiment else percent

    def printed(self, of_experiment: bool) -> Estimate:
        """The percentage and its interval, likewise."""
        ours = self.percent
        return replace(ours, value=self.as_printed(ours.value, of_experiment),
                       interval=None if ours.interval is None else (
                           self.as_printed(ours.interval[0], of_experiment),
                           self.as_printed(ours.interval[1], of_experiment)))

    def known(self, ours: Estimate) -> Ends | None:
        """Between which values one of its numbers is known to lie; None where nothing is known."""
        if self.exact:
            return ours.value, ours.value
        return ours.interval if self.draws >= LEAST_DRAWS else None

    @property
    def median_absolute(self) -> float:
        """What is improved of the median."""
        return self.sign * (self.base_median - self.experiment_median)

    @property
    def paired_interval(self) -> Ends | None:
        """The experiment's value at the ends of the interval of what is saved of the base."""
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
    """A percentage of the experiment's value (base / experiment − 1) as one of the base's.

    Exact. Some sources print the former; where they are read, they become the latter. The reverse
    is Difference.as_printed.
    """
    return percent / (100 + sign * percent) * 100
