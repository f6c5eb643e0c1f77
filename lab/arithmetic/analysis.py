"""What printed buckets add up to, and how far rounding and reading may move the sum.

A bucket prints its share s of the responses, what was saved a in ms, and the
same p in percent of the baseline. Its mean latency is then a/p with the
baseline's window and a/p - a with the experiment's, and a population's mean is
the sum of s times the latency. That both means take the same shares is what
separates the window from a change of who was measured (standardisation; Kitagawa
1955, "Components of a difference between two rates", JASA 50).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lab.arithmetic.scenario import PublishedPanel
from lab.core.scenario.published import PublishedBucket

# How exactly the numbers in paper/*.csv are known, by their first lines:
# shares are printed with two decimals, means as whole ms, bars were read.
SHARE_POINTS = 0.005
SAVED_PART = 0.0013
PERCENT_POINTS = 0.007
MEAN_MS = 0.5


@dataclass(frozen=True)
class Bounded:
    """A value in ms with the least and the most that it may be, all errors on one side."""

    value: float
    low: float
    high: float

    @property
    def error(self) -> float:
        """The larger way to an end."""
        return max(self.high - self.value, self.value - self.low)

    def meets(self, other: Bounded) -> bool:
        """Whether one number may be both."""
        return self.low <= other.high and other.low <= self.high

    def times(self, other: Bounded) -> Bounded:
        """The product of two that are above 0."""
        return Bounded(self.value * other.value, self.low * other.low, self.high * other.high)


@dataclass(frozen=True)
class BucketMeans:
    """One bucket: its share (of 1), and the mean latency with each window in ms."""

    published: PublishedBucket
    share: Bounded
    experiment: Bounded
    baseline: Bounded


@dataclass(frozen=True)
class Sums:
    """A panel added up, beside the means that are printed."""

    printed: PublishedPanel
    buckets: tuple[BucketMeans, ...]
    experiment: Bounded
    baseline: Bounded
    printed_experiment: Bounded
    printed_baseline: Bounded

    @property
    def shares_percent(self) -> float:
        return sum(100 * bucket.share.value for bucket in self.buckets)

    @property
    def experiment_agrees(self) -> bool:
        return self.experiment.meets(self.printed_experiment)

    @property
    def baseline_agrees(self) -> bool:
        return self.baseline.meets(self.printed_baseline)

    @property
    def printed_saving_ms(self) -> float:
        return self.printed_baseline.value - self.printed_experiment.value

    @property
    def same_shares_saving_ms(self) -> float:
        """What the window saves where both windows have the printed shares."""
        return self.baseline.value - self.experiment.value

    @property
    def other_shares_ms(self) -> float:
        """The rest of the printed saving."""
        return self.printed_saving_ms - self.same_shares_saving_ms

    @property
    def other_shares_percent(self) -> float:
        return 100 * self.other_shares_ms / self.printed_saving_ms


def sums_of(panel: PublishedPanel) -> Sums:
    """A panel added up. Its buckets have shares and improvements (scenario.read)."""
    buckets = tuple(map(means_of, panel.buckets))
    return Sums(panel, buckets,
                _sum(bucket.share.times(bucket.experiment) for bucket in buckets),
                _sum(bucket.share.times(bucket.baseline) for bucket in buckets),
                _printed(panel.means.experiment_ms), _printed(panel.means.baseline_ms))


def means_of(bucket: PublishedBucket) -> BucketMeans:
    """The latencies behind an improvement: a/p, and a/p - a, which grow with a and fall with p."""
    share, saved_ms, percent = bucket.responses_percent, bucket.absolute_ms, bucket.percent
    assert share is not None and saved_ms is not None and percent is not None
    ends = [(saved_ms * (1 + side * SAVED_PART), percent - side * PERCENT_POINTS)
            for side in (0, -1, 1)]
    return BucketMeans(
        bucket, Bounded(share / 100, (share - SHARE_POINTS) / 100, (share + SHARE_POINTS) / 100),
        experiment=Bounded(*(100 * saved / part - saved for saved, part in ends)),
        baseline=Bounded(*(100 * saved / part for saved, part in ends)))


def _sum(parts: Iterable[Bounded]) -> Bounded:
    several = list(parts)
    return Bounded(sum(part.value for part in several), sum(part.low for part in several),
                   sum(part.high for part in several))


def _printed(mean_ms: float) -> Bounded:
    return Bounded(mean_ms, mean_ms - MEAN_MS, mean_ms + MEAN_MS)
