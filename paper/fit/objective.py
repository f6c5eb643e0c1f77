"""How far weighed samples are from the printed numbers, in one number that can be minimized.

A bar counts as a smooth step from near to far, so that the minimum has as many near as there
can be, and with a margin, since samples differ; means, panel sums and the share of responses
with retransmissions count as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy

from lab.core.findings.claims import WITHIN_PERCENT, WITHIN_POINTS
from lab.core.scenario.curves import Numbers
from lab.core.scenario.published import SHARES_PANELS, PublishedBucket, buckets
from lab.fetches.features.population.draws import Counts
from lab.fetches.features.population.population import Mechanism, percentile_of
from paper.fit.bars import Sample, place_of, printed
from paper.fit.proposal import Proposal

FIGURE5 = tuple(SHARES_PANELS.values())
SUMS_MS = {"RTT": 560.2, "BW": 561.5, "BDP": 583.4}  # of IW 3: paper_arithmetic
MEANS_MS, WITHIN_MEANS = (582.0, 514.0), 0.02  # Table 3, AvgDC
AGAIN_PERCENT, WITHIN_AGAIN = 5.63, 0.2  # Table 7, Web search at AvgDC
ALL = {**dict.fromkeys(FIGURE5, 1.0), "Fig. 7": 0.35, "Table 3": 0.35}
MARGIN, STEP, TAIL, FARTHEST = 0.8, 0.12, 0.06, 6.0


@dataclass(frozen=True)
class Judged:
    """near: how many bars of each group are near; loss: see Objective."""

    loss: float
    near: dict[str, int]
    base_ms: float
    experiment_ms: float
    again_percent: float

    @property
    def figure5(self) -> int:
        return sum(self.near[group] for group in FIGURE5)


@dataclass
class Objective:
    """Judges mechanisms by one simulated sample.

    weights: how much each group of bars counts; what it lacks is held out.
    """

    proposal: Proposal
    weights: dict[str, float] = field(default_factory=lambda: dict(ALL))

    def __post_init__(self) -> None:
        found = self.proposal.found
        self.places = {group: place_of(group, found.drawn) for group in (*FIGURE5, "Fig. 7")}
        self.base, self.experiment = found.latency_ms[0], found.latency_ms[-1]
        self.orders = numpy.argsort(self.base), numpy.argsort(self.experiment)
        table = buckets("paper_tables.csv", "table3_avgdc")
        self.shares = [percentile_of(label) for label in table]
        self.theirs = {group: _both(printed(group).values()) for group in self.places}
        self.theirs["Table 3"] = _both(table.values())

    def loss(self, mechanism: Mechanism) -> float:
        return self.judge(self.proposal.under(mechanism)).loss

    def judge(self, found: Sample) -> Judged:
        return self.judged(self.told(found))

    def told(self, found: Sample) -> Numbers:
        """All that is judged, as one row: what `judged` takes, natural logarithms.

        Of each panel the means under the baseline, then the experiment, in its buckets; the
        percentiles likewise; the sums of the panels for the baseline; both means; the percentage
        of responses with retransmissions.
        """
        weight, base_weight = found.drawn.weight, found.drawn.baseline_weight
        means = float(base_weight @ self.base), float(weight @ self.experiment)
        row, sums = [], []
        for group, place in self.places.items():
            count = self.theirs[group].shape[1]
            base = _means(place, base_weight, self.base, count)
            row += [base, _means(place, weight, self.experiment, count)]
            if group in SUMS_MS:
                sums.append(float(numpy.bincount(place, weight, count) @ base))
        row += self._percentiles(base_weight, weight, means)
        row += [numpy.array([*sums, *means, 100 * float(weight @ found.again[-1])])]
        told: Numbers = numpy.log(numpy.maximum(numpy.concatenate(row), 1e-300))
        return told

    def judged(self, told: Numbers) -> Judged:
        """See `told`."""
        values, at, near, loss = numpy.exp(told), 0, {}, 0.0
        for group, theirs in self.theirs.items():
            count = theirs.shape[1]
            off = _off(values[at:at + count], values[at + count:at + 2 * count], theirs)
            at += 2 * count
            near[group] = int((off <= 1).sum())
            loss += self.weights.get(group, 0.0) * float(_step(off).sum())
        *sums, base_ms, experiment_ms, again = values[at:]
        loss += 1.2 * sum(_miss(total, SUMS_MS[group], WITHIN_MEANS)
                          for group, total in zip(SUMS_MS, sums) if self.weights.get(group))
        loss += 2 * sum(_miss(ours, theirs, WITHIN_MEANS)
                        for ours, theirs in zip((base_ms, experiment_ms), MEANS_MS))
        loss += _miss(again, AGAIN_PERCENT, WITHIN_AGAIN)
        return Judged(loss, near, float(base_ms), float(experiment_ms), float(again))

    def _percentiles(self, base_weight: Numbers, weight: Numbers, means: Sequence[float]
                     ) -> list[Numbers]:
        found = []
        for values, order, weights, mean in zip((self.base, self.experiment), self.orders,
                                                (base_weight, weight), means):
            cumulated = numpy.cumsum(weights[order])
            found.append(numpy.array([mean if share is None else values[order][
                numpy.searchsorted(cumulated, share * cumulated[-1])] for share in self.shares]))
        return found


def _both(bars: Iterable[PublishedBucket]) -> Numbers:
    """Printed ms and percent, shape (2, bars)."""
    return numpy.array([(bar.absolute_ms or 0.0, bar.percent or 0.0) for bar in bars]).T


def _means(place: Counts, weight: Numbers, values: Numbers, count: int) -> Numbers:
    """The mean in each bucket, 0 in one that holds nothing."""
    held = numpy.maximum(numpy.bincount(place, weight, count), 1e-300)
    means: Numbers = numpy.bincount(place, weight * values, count) / held
    return means


def _off(base: Numbers, experiment: Numbers, published: Numbers) -> Numbers:
    """How far each bar is, 1 at the bounds: the worse of ms and points."""
    saved = base - experiment
    off: Numbers = numpy.maximum(
        numpy.abs(saved / published[0] - 1) * 100 / WITHIN_PERCENT,
        numpy.abs(100 * saved / numpy.maximum(base, 1e-9) - published[1]) / WITHIN_POINTS)
    return off


def _step(off: Numbers) -> Numbers:
    capped = numpy.minimum(off, FARTHEST)
    made: Numbers = 1 / (1 + numpy.exp(-(capped - MARGIN) / STEP)) + TAIL * numpy.minimum(capped, 4)
    return made


def _miss(ours: float, theirs: float, within: float) -> float:
    off = abs(ours / theirs - 1) / within
    return float(1 / (1 + numpy.exp(-(off - 1) / 0.25)) + 0.1 * min(off, 8))
