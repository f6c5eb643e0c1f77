"""One simulated sample for many parameters: those that only change what a response stands for.

A sample is drawn with shares of its own (more first responses, more losses), simulated once,
and weighed for other parameters by how much more often they draw each response (importance
sampling). So most parameters cost no simulation (WEIGHED); rtt_factor and loss_percent do, and
large changes of the link's, which would leave too few responses of any weight.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy
from numpy.typing import NDArray
from scipy.stats import gamma, norm

from lab.core.scenario.curves import Numbers
from lab.fetches.features.population.draws import (HEADER_BYTES, SEGMENT_BYTES, Counts, Drawn,
                                                   baseline_lean)
from lab.fetches.features.population.joint import far_by, log_odds, slow_by
from lab.fetches.features.population.population import Mechanism, Population
from paper.fit.bars import Sample, place_of, sample
from paper.fit.simulation import TODAY
from paper.fit.state import Kernels

WEIGHED = ("no_gap_share", "gap_mean_ms", "gap_shape", "first_share", "queueing_bytes",
           "lossy_share", "far_and_slow", "very_far_and_slow", "baseline_week", "baseline_gap")
LINKS = ("link_factor", "link_spread")  # weighed where they change little
_MORE = {"no_gap_share": 0.15, "first_share": 0.3, "lossy_share": 0.35, "gap_shape": 4.0}
_PANELS = ("RTT", "BW", "BDP")
_ROUNDS = 8  # of proportional fitting: shares are then within 0.5 % of themselves


@dataclass(frozen=True)
class Proposal:
    """A simulated sample of AvgDC; places: the bucket of each response by panel, shape (n,)."""

    sample: Sample
    places: dict[str, Counts]

    def under(self, mechanism: Mechanism) -> Sample:
        """The sample as another mechanism would have drawn it: other weights."""
        drawn, own = self.sample.drawn, self.sample.population.mechanism
        weight = (drawn.weight * _gaps(self.sample, mechanism) * _links(drawn, own, mechanism)
                  * _queues(drawn, own, mechanism))
        for name, inside in (("first_share", drawn.earlier_bytes == 0),
                             ("lossy_share", drawn.loss_percent > 0)):
            share, old = getattr(mechanism, name), getattr(own, name)
            weight = weight * numpy.where(inside, share / old, (1 - share) / (1 - old))
        keys = drawn.key_rtt_ms, drawn.key_bandwidth_kbps
        far, slow = far_by(keys[0]), slow_by(keys[1])
        weight = weight * numpy.exp(
            log_odds(mechanism.far_and_slow, mechanism.very_far_and_slow, far, slow)
            - log_odds(own.far_and_slow, own.very_far_and_slow, far, slow))
        weight = self._with_the_printed_shares(weight)
        lean = weight * baseline_lean(mechanism, *keys, drawn.gap_ms)
        return replace(self.sample, population=replace(self.sample.population, mechanism=mechanism),
                       drawn=replace(drawn, weight=weight, baseline_weight=lean / lean.sum()))

    def _with_the_printed_shares(self, weight: Numbers) -> Numbers:
        shares = [(place, numpy.bincount(place, self.sample.drawn.weight))
                  for place in self.places.values()]
        for _ in range(_ROUNDS):
            for place, wanted in shares:
                held = numpy.maximum(numpy.bincount(place, weight, len(wanted)), 1e-300)
                weight = weight * (wanted / held)[place]
        shared: Numbers = weight / weight.sum()
        return shared


def propose(population: Population, seed: int, kernels: Kernels = TODAY) -> Proposal:
    """Draw and simulate a sample from which many mechanisms can be judged."""
    wide = replace(population, mechanism=replace(population.mechanism, **_MORE))
    return _of(sample(wide, seed, kernels))


def _of(simulated: Sample) -> Proposal:
    return Proposal(simulated, {name: place_of(name, simulated.drawn) for name in _PANELS})


def mixed(one: Proposal, other: Proposal, share: float) -> Proposal:
    """Two classes of clients: a share of the responses is the other's."""
    parts = [(1 - share, one), (share, other)]
    values = {field.name: numpy.concatenate([getattr(part.sample.drawn, field.name)
                                             for _, part in parts]) for field in fields(Drawn)}
    weight = numpy.concatenate([times * part.sample.drawn.weight for times, part in parts])
    drawn = replace(one.sample.drawn, **{**values, "weight": weight})
    return _of(replace(one.sample, drawn=drawn, latency_ms=numpy.concatenate(
        [part.sample.latency_ms for _, part in parts], axis=1),
        retransmitted=numpy.concatenate([part.sample.retransmitted for _, part in parts], axis=1)))


# How much more often another mechanism draws each response, shape (n,) -----------------

def _queues(drawn: Drawn, own: Mechanism, other: Mechanism) -> Numbers:
    queued = (drawn.rtt_ms - drawn.key_rtt_ms * own.rtt_factor) * drawn.key_bandwidth_kbps / 8
    new, old = max(other.queueing_bytes, 1.0), own.queueing_bytes
    more: Numbers = old / new * numpy.exp(-numpy.maximum(queued, 0) * (1 / new - 1 / old))
    return more


def _links(drawn: Drawn, own: Mechanism, other: Mechanism) -> Numbers:
    if all(getattr(own, name) == getattr(other, name) for name in LINKS):
        return numpy.ones(len(drawn.weight))
    factor = numpy.log(drawn.link_kbps / drawn.key_bandwidth_kbps)
    densities = [norm.pdf(factor, numpy.log(mechanism.link_factor), mechanism.link_spread)
                 for mechanism in (other, own)]
    more: Numbers = densities[0] / densities[1]
    return more


def _gaps(simulated: Sample, mechanism: Mechanism) -> Numbers:
    drawn, own = simulated.drawn, simulated.population.mechanism
    staged = drawn.gap_ms > 0
    whole = drawn.response_bytes + HEADER_BYTES + 4
    least, most = (count * SEGMENT_BYTES for count in (min(own.burst_segments),
                                                       max(own.burst_segments)))
    new, old = mechanism.no_gap_share, own.no_gap_share
    factor = numpy.where(whole > most, new / old, numpy.where(
        whole > least, (1 + new) / (1 + old), 1.0))
    factor[staged] = ((1 - new) / (1 - old) * _density(mechanism, drawn.gap_ms[staged])
                      / _density(own, drawn.gap_ms[staged]))
    return factor


def _density(mechanism: Mechanism, gap_ms: NDArray[numpy.float64]) -> Numbers:
    density: Numbers = gamma.pdf(gap_ms, mechanism.gap_shape,
                                 scale=mechanism.gap_mean_ms / mechanism.gap_shape)
    return density
