"""Parameters fitted to printed numbers: a search over what is simulated, and one over weights.

What needs a simulation (rtt_factor, loss_percent) is moved one at a time; for each value the
parameters that only weigh (proposal.WEIGHED, LINKS) are fitted. All that is judged is followed a
little along each of them, taken for linear in logarithms, and the minimum of that is gone
to, as far as it helps; and so again (Gauss and Newton's way, with a trust region). Each such
search of the linear numbers is Powell's (1964), which needs no derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy
from scipy.optimize import minimize

from lab.core.scenario.curves import Numbers
from lab.fetches.features.population.population import Mechanism, Population
from paper.fit.objective import Objective
from paper.fit.proposal import LINKS, propose

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
        name not in LINKS or all(getattr(start, each) for each in LINKS))]

    def told(steps: Numbers) -> list[Numbers]:
        moved = _moved(start, names, steps)
        return [each.told(each.proposal.under(moved)) for each in objectives]

    def loss(rows: Sequence[Numbers]) -> float:
        return sum(each.judged(row).loss for each, row in zip(objectives, rows)) / len(objectives)

    at, trust = numpy.zeros(len(names)), TRUST
    best = loss(told(at))
    for _ in range(ROUNDS):
        step = _linear_step(at, told, loss, trust, evaluations)
        while (after := loss(told(at + step))) >= best and numpy.linalg.norm(step) > 0.1:
            step, trust = step / 2, max(trust * 0.6, 0.3)
        if after >= best - BETTER:
            break
        at, best = at + step, after
    return Fitted(_moved(start, names, at), best)


def _linear_step(at: Numbers, told: Callable[[Numbers], list[Numbers]],
                 loss: Callable[[Sequence[Numbers]], float], trust: float, evaluations: int
                 ) -> Numbers:
    """The step to the least loss, if the numbers were linear from here on."""
    here = told(at)
    slopes = [[(there - row) / 0.5 for there, row in zip(told(at + 0.5 * unit), here)]
              for unit in numpy.eye(len(at))]
    tables = [numpy.array(rows) for rows in zip(*slopes)]

    def cost(step: Numbers) -> float:
        beyond = max(0.0, float(numpy.linalg.norm(step)) - trust)
        return (loss([row + step @ table for row, table in zip(here, tables)])
                + STAY_NEAR * float((at + step) @ (at + step)) + 0.5 * beyond ** 2)

    found: Numbers = minimize(cost, numpy.zeros(len(at)), method="Powell",
                              options={"maxfev": evaluations, "ftol": 1e-3}).x
    return found


def _moved(start: Mechanism, names: Sequence[str], steps: Numbers) -> Mechanism:
    values = {}
    for name, step in zip(names, steps):
        by_factor, size, low, high = STEPS[name]
        value = getattr(start, name)
        moved = value * numpy.exp(step * size) if by_factor else value + step * size
        values[name] = float(numpy.clip(moved, low, high))
    return replace(start, **values)


def search(made: Population, weights: dict[str, float], seeds: Sequence[int], rounds: int,
           evaluations: int, fixed: Sequence[str] = ()) -> Fitted:
    """Fit all parameters of a population's mechanism, from those that it has.

    weights: of the groups of bars (objective.Objective); fixed: parameters that stay.
    """
    def fitted(start: Mechanism) -> Fitted:
        objectives = [Objective(propose(replace(made, mechanism=start), seed), weights)
                      for seed in seeds]
        return weigh(objectives, start, evaluations, fixed)

    best = fitted(made.mechanism)
    for _ in range(rounds):
        for name, factor in FACTORS.items():
            for moved in (getattr(best.mechanism, name) * factor,
                          getattr(best.mechanism, name) / factor):
                other = fitted(replace(best.mechanism, **{name: moved}))
                if other.loss < best.loss - BETTER:
                    best = other
                    break
    return best
