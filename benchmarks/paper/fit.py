"""Parameters fitted to printed numbers: a search over what is simulated, and one over weights.

What needs a simulation (link_factor, rtt_factor, loss_percent) is moved one at a time; for each
value the parameters that only weigh (proposal.WEIGHED) are fitted by Nelder and Mead (1965).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy
from scipy.optimize import minimize

from benchmarks.paper.objective import Objective
from benchmarks.paper.proposal import propose
from lab.core.curves import Numbers
from lab.fetches.population import Mechanism, Population

# Of each parameter that weighs: whether it moves by a factor, a step, the least and the most.
STEPS = {"no_gap_share": (False, 0.03, 0.0, 0.4), "gap_mean_ms": (True, 0.12, 120.0, 450.0),
         "gap_shape": (True, 0.3, 1.0, 30.0), "first_share": (False, 0.04, 0.01, 0.6),
         "queueing_bytes": (True, 0.2, 500.0, 12_000.0), "lossy_share": (False, 0.03, 0.03, 0.5),
         "far_and_slow": (False, 0.15, -0.4, 1.2), "baseline_week": (False, 0.012, 0.0, 0.2)}
FACTORS = {"link_factor": 1.12, "rtt_factor": 1.05, "loss_percent": 1.25}  # a move of the others
STAY_NEAR = 0.02  # what a step away from the start costs, squared
BETTER = 0.02


@dataclass(frozen=True)
class Fitted:
    """A mechanism and how far it is from the numbers that it was fitted to."""

    mechanism: Mechanism
    loss: float


def weigh(objectives: Sequence[Objective], start: Mechanism, evaluations: int,
          fixed: Sequence[str] = ()) -> Fitted:
    """The parameters that weigh, but for the fixed ones, fitted to the mean of the objectives."""
    names = [name for name in STEPS if name not in fixed]

    def cost(steps: Numbers) -> float:
        moved = _moved(start, names, steps)
        return (sum(each.loss(moved) for each in objectives) / len(objectives)
                + STAY_NEAR * float(steps @ steps))

    origin = numpy.zeros(len(names))
    simplex = numpy.vstack([origin, 0.6 * numpy.eye(len(names))])
    found = minimize(cost, origin, method="Nelder-Mead",
                     options={"maxfev": evaluations, "initial_simplex": simplex})
    return Fitted(_moved(start, names, found.x), float(found.fun))


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
