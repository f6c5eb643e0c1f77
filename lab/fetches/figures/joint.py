"""Who fetches over which network: the joint distribution of RTT and bandwidth.

The paper prints the shares of responses by RTT, by bandwidth and by their
product (Figure 5), not the joint distribution. Of all joint distributions
that have those shares, the one built here presumes least: it stays closest,
in relative entropy, to RTT and bandwidth being independent with the fine
marginals of Figure 3 (Csiszár 1975: iterative proportional fitting finds it).
Or to RTT and bandwidth being dependent, by as much as a scenario says
(`far_and_slow`): the shares stay exact.

An RTT is a client's least, in ms; a bandwidth the running average of what its
/24 network achieved, in kbit/s (paper, section 4.1); their product is in bytes.
Needs numpy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy
from numpy.typing import NDArray

from lab.core.errors import UsageError
from lab.core.scenario.curves import (BANDWIDTH_ENDS_KBPS, RTT_ENDS_MS, CdfCurve, Numbers,
                                      network_curve)
from lab.core.scenario.published import (SHARES_TOLERANCE_PERCENT, PublishedBucket, buckets,
                                         shares)
from lab.core.words import plain

CELLS_PER_DECADE = 24  # of the grid: at least five cells in every bucket of Figure 5
ROUNDS = 20_000  # of proportional fitting; Figure 5 needs a few hundred
EXACT = 1e-9  # largest error of a fitted share
# Figure 3's medians at AvgDC, by which a client is far or near, slow or fast.
MIDDLE_RTT_MS, MIDDLE_BANDWIDTH_KBPS = 70.0, 1200.0
BDP_ENDS_BYTES = (RTT_ENDS_MS[0] * BANDWIDTH_ENDS_KBPS[0] / 8,
                  RTT_ENDS_MS[1] * BANDWIDTH_ENDS_KBPS[1] / 8)


@dataclass(frozen=True)
class Marginal:
    """Shares of the responses by one quantity.

    labels: the buckets' names, as published; edges: their ends, in ms, kbit/s
    or bytes, one more than there are buckets; shares: sum 1.
    """

    name: str
    labels: tuple[str, ...]
    edges: tuple[float, ...]
    shares: tuple[float, ...]

    def bucket(self, values: Numbers) -> NDArray[numpy.intp]:
        """The number of the bucket that each value falls into; a bucket has its upper end.

        What lies beyond the outer ends belongs to the outer buckets. Same shape.
        """
        return numpy.searchsorted(numpy.array(self.edges[1:-1]), values, side="left")


@dataclass(frozen=True)
class Joint:
    """A joint distribution of RTT and bandwidth, on a grid.

    rtt_ms: shape (r,), bandwidth_kbps: shape (b,), the cells' middles;
    share: shape (r, b), sum 1; marginals: those that it has exactly.
    """

    rtt_ms: Numbers
    bandwidth_kbps: Numbers
    share: Numbers
    marginals: tuple[Marginal, ...]

    @property
    def bdp_bytes(self) -> Numbers:
        """RTT times bandwidth of each cell, shape (r, b)."""
        product: Numbers = numpy.outer(self.rtt_ms, self.bandwidth_kbps) / 8
        return product

    @property
    def members(self) -> list[NDArray[numpy.intp]]:
        """The bucket of each cell by every marginal, shape (r, b) each."""
        values = {"RTT": self.rtt_ms[:, None], "BW": self.bandwidth_kbps[None, :],
                  "BDP": self.bdp_bytes}
        return [known.bucket(numpy.broadcast_to(values[known.name], self.share.shape))
                for known in self.marginals]


# The published distributions ----------------------------------------------------

# Both are asked for at each step of a mechanism, which seldom changes them. Nobody writes to one.
@lru_cache(maxsize=8)
def average_datacenter(far_and_slow: float = 0.0, very_far_and_slow: float = 0.0) -> Joint:
    """The clients of Web search at AvgDC: Figure 5's three panels. Raises UsageError.

    far_and_slow, very_far_and_slow: see `dependence`.
    """
    return fit(
        [marginal("RTT", shares("rtt_ms"), RTT_ENDS_MS),
         marginal("BW", shares("bandwidth_kbps"), BANDWIDTH_ENDS_KBPS),
         marginal("BDP", shares("bdp_bytes"), BDP_ENDS_BYTES)],
        rtt=network_curve("rtt_ms", "AvgDC"), bandwidth=network_curve("bandwidth_kbps", "AvgDC"),
        odds=partial(dependence, far_and_slow, very_far_and_slow))


@lru_cache(maxsize=8)
def slow_datacenter(far_and_slow: float = 0.0, very_far_and_slow: float = 0.0) -> Joint:
    """The clients of Web search at SlowDC: Figure 6's shares of bandwidth, Figure 3's RTT.

    No shares of RTT or of the product are published for it. Two marginals
    alone make RTT and bandwidth independent; the paper's two joint numbers
    (section 4.1: 343 ms mean RTT up to 56 kbit/s, 250 ms from there to 256)
    contradict that. AvgDC's odds ratios in SlowDC's marginals come within a
    tenth of both. far_and_slow, very_far_and_slow: of those odds. Raises UsageError.
    """
    rtt = network_curve("rtt_ms", "SlowDC")
    average = average_datacenter(far_and_slow, very_far_and_slow)
    like = _named(average.marginals, "RTT")
    cdf = rtt.at(numpy.array(like.edges))
    shares = numpy.diff(cdf) / (cdf[-1] - cdf[0])
    by_rtt = replace(like, shares=tuple(map(float, shares)))
    by_bandwidth = marginal("BW", buckets("paper_figure6.csv"), BANDWIDTH_ENDS_KBPS)
    return fit([by_rtt, by_bandwidth], rtt, network_curve("bandwidth_kbps", "SlowDC"),
               lambda rtt_ms, bandwidth_kbps: _odds(average))


# By the name that a population has for them; with how far and slow go together.
DATACENTERS: dict[str, Callable[[float, float], Joint]] = {"average": average_datacenter,
                                                           "slow": slow_datacenter}


def dependence(far_and_slow: float, very_far_and_slow: float, rtt_ms: Numbers,
               bandwidth_kbps: Numbers) -> Numbers:
    """Odds by which far clients are slow and near ones not, shape (r, b); 0, 0: independence.

    In natural logarithms, far_and_slow times the geometric mean of how far and how slow a
    client is by AvgDC's medians, less that of far and fast and of near and slow;
    very_far_and_slow times the product of how far and how slow it is.
    """
    far, slow = far_by(rtt_ms)[:, None], slow_by(bandwidth_kbps)[None, :]
    odds: Numbers = numpy.exp(log_odds(far_and_slow, very_far_and_slow, far, slow))
    return odds


def far_by(rtt_ms: Numbers) -> Numbers:
    """How far clients of these RTTs are, in natural logarithms; same shape."""
    far: Numbers = numpy.log(rtt_ms / MIDDLE_RTT_MS)
    return far


def slow_by(bandwidth_kbps: Numbers) -> Numbers:
    """How slow clients of these bandwidths are, in natural logarithms; same shape."""
    slow: Numbers = numpy.log(MIDDLE_BANDWIDTH_KBPS / bandwidth_kbps)
    return slow


def log_odds(far_and_slow: float, very_far_and_slow: float, far: Numbers, slow: Numbers
             ) -> Numbers:
    """The logarithm of `dependence`, of clients so far and so slow, broadcast."""
    made: Numbers = (far_and_slow * (_both(far, slow) - _both(far, -slow) - _both(-far, slow))
                     + very_far_and_slow * _both(far, slow) ** 2)
    return made


def _both(first: Numbers, second: Numbers) -> Numbers:
    """The geometric mean of two, 0 where one is not positive."""
    mean: Numbers = numpy.sqrt(numpy.maximum(first, 0) * numpy.maximum(second, 0))
    return mean


def near(joint: Joint, rtt_at_most_ms: float) -> Joint:
    """The clients of a joint distribution up to an RTT, in the proportions that they have there.

    Raises UsageError where there is none.
    """
    share = joint.share * (joint.rtt_ms <= rtt_at_most_ms)[:, None]
    if not share.sum() > 0:
        raise UsageError(f"no client has an RTT up to {plain(rtt_at_most_ms)} ms")
    share = share / share.sum()
    marginals = tuple(replace(known, shares=tuple(map(float, numpy.bincount(
        member.ravel(), share.ravel(), len(known.shares)))))
        for member, known in zip(joint.members, joint.marginals))
    return replace(joint, share=share, marginals=marginals)


def marginal(name: str, published: Mapping[str, PublishedBucket],
             ends: tuple[float, float]) -> Marginal:
    """Published bars as shares: labels are upper ends, the last one's is ">…".

    published: by label, ascending; ends: of the first and of the last bucket.
    The shares may miss 100 % by the rounding of a tenth; they are scaled to 1.
    Raises UsageError.
    """
    shares = [bar.responses_percent or 0.0 for bar in published.values()]
    total = sum(shares)
    if not abs(total - 100) <= SHARES_TOLERANCE_PERCENT + 1e-9:
        raise UsageError(f"{name}: the shares of the buckets sum to {plain(round(total, 4))} %,"
                         " not 100 %")
    below_zero = [label for label, share in zip(published, shares) if not share >= 0]
    if below_zero:
        raise UsageError(f"{name}: bucket {below_zero[0]} has a share below 0 %")
    edges = (ends[0], *(_upper(name, label) for label in list(published)[:-1]), ends[1])
    for before, after in zip(edges, edges[1:]):
        if not before < after:
            raise UsageError(f"{name}: the buckets are not in order: {plain(after)} follows"
                             f" {plain(before)}")
    return Marginal(name, tuple(published), edges, tuple(share / total for share in shares))


def _upper(name: str, label: str) -> float:
    try:
        return float(label)
    except ValueError:
        raise UsageError(f"{name}: the bucket {label!r} is named by no upper end") from None


# Fitting ----------------------------------------------------------------------------

def fit(marginals: Sequence[Marginal], rtt: CdfCurve, bandwidth: CdfCurve,
        odds: Callable[[Numbers, Numbers], Numbers] | None = None) -> Joint:
    """The maximum-entropy joint distribution with these marginals.

    marginals: of RTT and BW, and of BDP if published; rtt, bandwidth: the
    fine curves that shape the distribution within the buckets (where both
    speak, the marginals win). odds: a dependence to start from, shape (r, b), of
    the cells' RTTs (r,) and bandwidths (b,); none is independence. Raises
    UsageError where no joint distribution has all the marginals, and names a
    bucket that cannot be met.
    """
    rtt_edges, bandwidth_edges = (_grid(_named(marginals, name).edges) for name in ("RTT", "BW"))
    prior = numpy.outer(_shares_between(rtt, rtt_edges),
                        _shares_between(bandwidth, bandwidth_edges))
    middles = (numpy.sqrt(rtt_edges[:-1] * rtt_edges[1:]),
               numpy.sqrt(bandwidth_edges[:-1] * bandwidth_edges[1:]))
    if odds is not None:
        prior = odds(*middles) * prior
    joint = Joint(*middles, prior / prior.sum(), tuple(marginals))
    return replace(joint, share=scaled_to(joint.share, joint.members, marginals))


def scaled_to(prior: Numbers, members: Sequence[NDArray[numpy.intp]],
              marginals: Sequence[Marginal]) -> Numbers:
    """Scale bucket after bucket to its share until all are met (Deming and Stephan 1940).

    prior: weights of any shape; members: the bucket of each by every marginal,
    same shape. Raises UsageError where that cannot be, and names a bucket.
    """
    share = prior.copy()
    for member, known in zip(members, marginals):
        held = numpy.bincount(member.ravel(), share.ravel(), len(known.shares))
        for label, wanted_share, there in zip(known.labels, known.shares, held):
            if wanted_share > 0 and not there > 0:
                raise UsageError(f"the shares of {_names(marginals)} cannot be met: nothing lies"
                                 f" in {known.name} bucket {label}")
    for _ in range(ROUNDS):
        error, worst = 0.0, ""
        for member, known in zip(members, marginals):
            wanted = numpy.array(known.shares)
            sums = numpy.bincount(member.ravel(), share.ravel(), len(wanted))
            off = numpy.abs(sums - wanted)
            if off.max() > error:
                error, worst = float(off.max()), f"{known.name} bucket {known.labels[off.argmax()]}"
            factor = numpy.divide(wanted, sums, out=numpy.zeros_like(wanted), where=sums > 0)
            share *= factor[member]
        if error < EXACT:
            return share
    raise UsageError(f"the shares of {_names(marginals)} contradict each other: {worst} misses its"
                     f" own by {error * 100:.2g} points")


def _names(marginals: Sequence[Marginal]) -> str:
    return ", ".join(known.name for known in marginals)


def _odds(joint: Joint) -> Numbers:
    """The dependence of RTT and bandwidth: share over product of the marginals, (r, b).

    Cells that hold nothing have none and count as independent.
    """
    apart = numpy.outer(joint.share.sum(axis=1), joint.share.sum(axis=0))
    return numpy.divide(joint.share, apart, out=numpy.ones_like(apart),
                        where=(apart > 0) & (joint.share > 0))


def _named(marginals: Sequence[Marginal], name: str) -> Marginal:
    for known in marginals:
        if known.name == name:
            return known
    raise UsageError(f"a joint distribution needs the shares of {name}")


def _grid(edges: Sequence[float]) -> Numbers:
    """Edges of fine cells, even in the logarithm within each bucket, ends among them."""
    fine = [numpy.geomspace(low, high, max(5, round(CELLS_PER_DECADE * math.log10(high / low))),
                            endpoint=False) for low, high in zip(edges, edges[1:])]
    return numpy.append(numpy.concatenate(fine), edges[-1])


def _shares_between(curve: CdfCurve, edges: Numbers) -> Numbers:
    """The curve's share in each cell, never quite 0: the marginals may need what it lacks."""
    return numpy.maximum(numpy.diff(curve.at(edges)), 1e-9)
