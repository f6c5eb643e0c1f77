"""One simulated sample for many parameters: those that only change what a response stands for.

A sample is drawn with shares of its own (more first responses, more losses), simulated once,
and weighed for other parameters by how much more often they draw each response (importance
sampling). So first_share, no_gap_share, the gaps, lossy_share, queueing_bytes, far_and_slow and
baseline_week cost no simulation; link_factor, rtt_factor and loss_percent do.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy
from numpy.typing import NDArray
from scipy.stats import gamma

from benchmarks.paper.bars import Sample, sample
from benchmarks.paper.simulation import TODAY
from benchmarks.paper.state import Kernels
from lab.core.curves import Numbers
from lab.fetches.draws import HEADER_BYTES, SEGMENT_BYTES, Drawn, baseline_lean
from lab.fetches.joint import DATACENTERS
from lab.fetches.population import Mechanism, Population

WEIGHED = ("no_gap_share", "gap_mean_ms", "gap_shape", "first_share", "queueing_bytes",
           "lossy_share", "far_and_slow", "baseline_week")
_MORE = {"no_gap_share": 0.15, "first_share": 0.3, "lossy_share": 0.35, "gap_shape": 4.0}
_THETA = numpy.linspace(-0.4, 1.2, 9)


@dataclass(frozen=True)
class Proposal:
    """A simulated sample; odds: log share of each response's cell by far_and_slow, (9, n)."""

    found: Sample
    odds: Numbers

    def under(self, mechanism: Mechanism) -> Sample:
        """The sample as another mechanism would have drawn it: other weights."""
        drawn, own = self.found.drawn, self.found.made.mechanism
        weight = drawn.weight * _gaps(self.found, mechanism)
        for name, inside in (("first_share", drawn.earlier_bytes == 0),
                             ("lossy_share", drawn.loss_percent > 0)):
            share, old = getattr(mechanism, name), getattr(own, name)
            weight = weight * numpy.where(inside, share / old, (1 - share) / (1 - old))
        queued = (drawn.rtt_ms - drawn.key_rtt_ms * own.rtt_factor) * drawn.key_bandwidth_kbps / 8
        new, old = max(mechanism.queueing_bytes, 1.0), own.queueing_bytes
        weight = weight * old / new * numpy.exp(-numpy.maximum(queued, 0) * (1 / new - 1 / old))
        weight = weight * numpy.exp(self._odds(mechanism.far_and_slow)
                                    - self._odds(own.far_and_slow))
        weight = weight / weight.sum()
        lean = weight * baseline_lean(mechanism, drawn.key_rtt_ms, drawn.key_bandwidth_kbps)
        return replace(self.found, made=replace(self.found.made, mechanism=mechanism),
                       drawn=replace(drawn, weight=weight, baseline_weight=lean / lean.sum()))

    def _odds(self, far_and_slow: float) -> Numbers:
        place = float(numpy.clip((far_and_slow - _THETA[0]) / (_THETA[1] - _THETA[0]), 0,
                                 len(_THETA) - 1.001))
        low = int(place)
        made: Numbers = self.odds[low] + (place - low) * (self.odds[low + 1] - self.odds[low])
        return made


def propose(made: Population, seed: int, kernels: Kernels = TODAY) -> Proposal:
    """Draw and simulate a sample from which many mechanisms can be judged."""
    wide = replace(made, mechanism=replace(made.mechanism, **_MORE))
    found = sample(wide, seed, kernels)
    drawn = found.drawn
    odds = []
    for theta in _THETA:
        joint = DATACENTERS[made.datacenter](float(theta))
        row, column = (numpy.abs(numpy.log(values[:, None] / axis[None, :])).argmin(axis=1)
                       for values, axis in ((drawn.key_rtt_ms[::made.responses], joint.rtt_ms),
                                            (drawn.key_bandwidth_kbps[::made.responses],
                                             joint.bandwidth_kbps)))
        odds.append(numpy.repeat(numpy.log(numpy.maximum(joint.share[row, column], 1e-30)),
                                 made.responses))
    return Proposal(found, numpy.array(odds))


def mixed(one: Proposal, other: Proposal, share: float) -> Proposal:
    """Two classes of clients: a share of the responses is the other's."""
    parts = [(1 - share, one), (share, other)]
    values = {each.name: numpy.concatenate([getattr(part.found.drawn, each.name)
                                            for _, part in parts]) for each in fields(Drawn)}
    weight = numpy.concatenate([times * part.found.drawn.weight for times, part in parts])
    drawn = replace(one.found.drawn, **{**values, "weight": weight})
    found = replace(one.found, drawn=drawn, latency_ms=numpy.concatenate(
        [part.found.latency_ms for _, part in parts], axis=1),
        again=numpy.concatenate([part.found.again for _, part in parts], axis=1))
    return Proposal(found, numpy.concatenate([part.odds for _, part in parts], axis=1))


def _gaps(found: Sample, mechanism: Mechanism) -> Numbers:
    """How much more often the mechanism draws each response's gap."""
    drawn, own = found.drawn, found.made.mechanism
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
