"""Parameters fitted to printed numbers: the distance from these, and the search for the least.

A bar counts as a smooth step from near to far, so that the minimum has as many near as there
can be, and with a margin, since samples differ; means, panel sums and the share of responses
with retransmissions count as well.

What needs a simulation (rtt_factor, loss_percent) is moved one at a time; for each value the
parameters that only weigh (proposal.WEIGHED, LINKS) are fitted. All that is judged is followed a
little along each of them, taken for linear in logarithms, and the minimum of that is gone
to, as far as it helps; and so again (Gauss and Newton's way, with a trust region). Each such
search of the linear numbers is Powell's (1964), which needs no derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy
from scipy.optimize import minimize

from lab.core.findings.claims import WITHIN_PERCENT, WITHIN_POINTS
from lab.core.scenario.curves import Numbers
from lab.core.scenario.published import SHARES_PANELS, PublishedBucket, buckets
from lab.fetches.features.population.draws import Counts
from lab.fetches.features.population.population import Mechanism, Population, percentile_of
from paper.fit.bars import Sample, place_of, printed
from paper.fit.proposal import LINKS, Proposal, propose

# The distance -------------------------------------------------------------------------

FIGURE5 = tuple(SHARES_PANELS.values())
SUMS_MS = {"RTT": 560.2, "BW": 561.5, "BDP": 583.4}  # of IW 3: paper_arithmetic
MEANS_MS, WITHIN_MEANS = (582.0, 514.0), 0.02  # Table 3, AvgDC
RETRANSMITTED_PERCENT, WITHIN_RETRANSMITTED = 5.63, 0.2  # Table 7, Web search at AvgDC
ALL = {**dict.fromkeys(FIGURE5, 1.0), "Fig. 7": 0.35, "Table 3": 0.35}
MARGIN, STEP, TAIL, FARTHEST = 0.8, 0.12, 0.06, 6.0


@dataclass(frozen=True)
class Judged:
    """near: how many bars of each group are near; loss: see Objective."""

    loss: float
    near: dict[str, int]
    base_ms: float
    experiment_ms: float
    retransmitted_percent: float

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
        own = self.proposal.sample
        self.places = {group: place_of(group, own.drawn) for group in (*FIGURE5, "Fig. 7")}
        self.base, self.experiment = own.latency_ms[0], own.latency_ms[-1]
        self.orders = numpy.argsort(self.base), numpy.argsort(self.experiment)
        table = buckets("paper_tables.csv", "table3_avgdc")
        self.shares = [percentile_of(label) for label in table]
        self.theirs = {group: _both(printed(group).values()) for group in self.places}
        self.theirs["Table 3"] = _both(table.values())

    def loss(self, mechanism: Mechanism) -> float:
        return self.judge(self.proposal.under(mechanism)).loss

    def judge(self, simulated: Sample) -> Judged:
        return self.judged(self.logarithms(simulated))

    def logarithms(self, simulated: Sample) -> Numbers:
        """All that is judged, as one row of natural logarithms, which `judged` takes.

        Of each panel the means under the baseline, then the experiment, in its buckets; the
        percentiles likewise; the sums of the panels for the baseline; both means; the percentage
        of responses with retransmissions.
        """
        weight, base_weight = simulated.drawn.weight, simulated.drawn.baseline_weight
        means = float(base_weight @ self.base), float(weight @ self.experiment)
        row, sums = [], []
        for group, place in self.places.items():
            count = self.theirs[group].shape[1]
            base = _means(place, base_weight, self.base, count)
            row += [base, _means(place, weight, self.experiment, count)]
            if group in SUMS_MS:
                sums.append(float(numpy.bincount(place, weight, count) @ base))
        row += self._percentiles(base_weight, weight, means)
        row += [numpy.array([*sums, *means, 100 * float(weight @ simulated.retransmitted[-1])])]
        logarithms: Numbers = numpy.log(numpy.maximum(numpy.concatenate(row), 1e-300))
        return logarithms

    def judged(self, logarithms: Numbers) -> Judged:
        """How near the bars are by the row of `logarithms`."""
        values, at, near, loss = numpy.exp(logarithms), 0, {}, 0.0
        for group, theirs in self.theirs.items():
            count = theirs.shape[1]
            off = _off(values[at:at + count], values[at + count:at + 2 * count], theirs)
            at += 2 * count
            near[group] = int((off <= 1).sum())
            loss += self.weights.get(group, 0.0) * float(_step(off).sum())
        *sums, base_ms, experiment_ms, retransmitted = values[at:]
        loss += 1.2 * sum(_miss(total, SUMS_MS[group], WITHIN_MEANS)
                          for group, total in zip(SUMS_MS, sums) if self.weights.get(group))
        loss += 2 * sum(_miss(ours, theirs, WITHIN_MEANS)
                        for ours, theirs in zip((base_ms, experiment_ms), MEANS_MS))
        loss += _miss(retransmitted, RETRANSMITTED_PERCENT, WITHIN_RETRANSMITTED)
        return Judged(loss, near, float(base_ms), float(experiment_ms), float(retransmitted))

    def _percentiles(self, base_weight: Numbers, weight: Numbers, means: Sequence[float]
                     ) -> list[Numbers]:
        rows = []
        for values, order, weights, mean in zip((self.base, self.experiment), self.orders,
                                                (base_weight, weight), means):
            cumulated = numpy.cumsum(weights[order])
            rows.append(numpy.array([mean if share is None else values[order][
                numpy.searchsorted(cumulated, share * cumulated[-1])] for share in self.shares]))
        return rows


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
    losses: Numbers = (1 / (1 + numpy.exp(-(capped - MARGIN) / STEP))
                       + TAIL * numpy.minimum(capped, 4))
    return losses


def _miss(ours: float, theirs: float, within: float) -> float:
    off = abs(ours / theirs - 1) / within
    return float(1 / (1 + numpy.exp(-(off - 1) / 0.25)) + 0.1 * min(off, 8))


# The search ---------------------------------------------------------------------------

# Of each parameter that weighs: whether it moves by a factor, a step, the least and the most.
STEPS = {"no_gap_share": (False, 0.03, 0.0, 0.4), "gap_mean_ms": (True, 0.1, 120.0, 450.0),
         "gap_shape": (True, 0.3, 1.0, 30.0), "first_share": (False, 0.04, 0.01, 0.6),
         "queueing_bytes": (True, 0.2, 500.0, 12_000.0), "lossy_share": (False, 0.03, 0.03, 0.5),
         "far_and_slow": (False, 0.15, -0.4, 2.5), "very_far_and_slow": (False, 0.06, -0.2, 1.0),
         "baseline_week": (False, 0.01, 0.0, 0.2), "baseline_gap": (False, 0.05, -0.5, 0.5),
         "link_factor": (True, 0.1, 0.5, 10.0), "link_spread": (False, 0.05, 0.1, 1.0)}
FACTORS = {"rtt_factor": 1.04, "loss_percent": 1.25}  # a move of the others
STAY_NEAR = 0.004  # what a step away from the start costs, squared
TRUST, ROUNDS, BETTER = 1.5, 5, 0.02  # steps that are taken for linear; how often; worth a move


@dataclass(frozen=True)
class Fitted:
    """A mechanism and how far it is from the numbers that it was fitted to."""

    mechanism: Mechanism
    loss: float


def weigh(objectives: Sequence[Objective], start: Mechanism, evaluations: int,
          fixed: Sequence[str] = ()) -> Fitted:
    """The parameters that weigh, but for the fixed ones, fitted to the mean of the objectives.

    evaluations: of the linear numbers in each round, at most.
    """
    names = [name for name in STEPS if name not in fixed and (
        name not in LINKS or all(getattr(start, link) for link in LINKS))]

    def rows_at(steps: Numbers) -> list[Numbers]:
        moved = _moved(start, names, steps)
        return [one.logarithms(one.proposal.under(moved)) for one in objectives]

    def loss(rows: Sequence[Numbers]) -> float:
        return sum(one.judged(row).loss for one, row in zip(objectives, rows)) / len(objectives)

    at, trust = numpy.zeros(len(names)), TRUST
    best = loss(rows_at(at))
    for _ in range(ROUNDS):
        step = _linear_step(at, rows_at, loss, trust, evaluations)
        while (after := loss(rows_at(at + step))) >= best and numpy.linalg.norm(step) > 0.1:
            step, trust = step / 2, max(trust * 0.6, 0.3)
        if after >= best - BETTER:
            break
        at, best = at + step, after
    return Fitted(_moved(start, names, at), best)


def _linear_step(at: Numbers, rows_at: Callable[[Numbers], list[Numbers]],
                 loss: Callable[[Sequence[Numbers]], float], trust: float, evaluations: int
                 ) -> Numbers:
    """The step to the least loss, if the numbers were linear from `at` on."""
    rows = rows_at(at)
    slopes = [[(moved - row) / 0.5 for moved, row in zip(rows_at(at + 0.5 * unit), rows)]
              for unit in numpy.eye(len(at))]
    tables = [numpy.array(of_objective) for of_objective in zip(*slopes)]

    def cost(step: Numbers) -> float:
        beyond = max(0.0, float(numpy.linalg.norm(step)) - trust)
        return (loss([row + step @ table for row, table in zip(rows, tables)])
                + STAY_NEAR * float((at + step) @ (at + step)) + 0.5 * beyond ** 2)

    step: Numbers = minimize(cost, numpy.zeros(len(at)), method="Powell",
                             options={"maxfev": evaluations, "ftol": 1e-3}).x
    return step


def _moved(start: Mechanism, names: Sequence[str], steps: Numbers) -> Mechanism:
    values = {}
    for name, step in zip(names, steps):
        by_factor, size, low, high = STEPS[name]
        value = getattr(start, name)
        moved = value * numpy.exp(step * size) if by_factor else value + step * size
        values[name] = float(numpy.clip(moved, low, high))
    return replace(start, **values)


def search(population: Population, weights: dict[str, float], seeds: Sequence[int], rounds: int,
           evaluations: int, fixed: Sequence[str] = ()) -> Fitted:
    """Fit all parameters of a population's mechanism, from those that it has.

    weights: of the groups of bars (Objective); fixed: parameters that stay.
    """
    def fitted(start: Mechanism) -> Fitted:
        objectives = [Objective(propose(replace(population, mechanism=start), seed), weights)
                      for seed in seeds]
        return weigh(objectives, start, evaluations, fixed)

    best = fitted(population.mechanism)
    for _ in range(rounds):
        for name, factor in FACTORS.items():
            for moved in (getattr(best.mechanism, name) * factor,
                          getattr(best.mechanism, name) / factor):
                other = fitted(replace(best.mechanism, **{name: moved}))
                if other.loss < best.loss - BETTER:
                    best = other
                    break
    return best
