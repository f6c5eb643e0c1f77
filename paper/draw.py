"""Draws a population of clients and responses, as the paper's were, into a table of rows.

    /usr/bin/python3 -m paper.draw dukkipati2010 [--seed N] [--full]

scenarios/populations/<name>.toml says how. Each row is one response of one client. RTT and
bandwidth come from a joint distribution: of all that have the marginals that the paper prints, the
closest, in relative entropy, to what is known besides (Csiszár 1975; docs/STUDIES.md).
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy
from numpy.typing import NDArray
from scipy.special import ndtri  # the quantiles of a normal distribution
from scipy.stats import gamma

from firstflight.base.errors import FirstFlightError, UsageError
from firstflight.findings.bar import Published
from firstflight.runs import scenario_file
from firstflight.study.fetches.scenario import rows
from firstflight.study.scenario.curves import (BANDWIDTH_ENDS_KBPS, RTT_ENDS_MS, CdfCurve, Numbers,
                                               network_curve, size_curve)
from firstflight.study.scenario.published import buckets, shares

CELLS_PER_DECADE = 24  # of the grid: at least five cells in every bucket of Figure 5
ROUNDS = 20_000  # of proportional fitting; Figure 5 needs a few hundred
EXACT = 1e-9  # largest error of a fitted share
LEAST_SHARE = 1e-9  # of a cell that is shown
# Figure 3's medians at AvgDC, by which a client is far or near, slow or fast.
MIDDLE_RTT_MS, MIDDLE_BANDWIDTH_KBPS = 70.0, 1200.0
BDP_ENDS_BYTES = (RTT_ENDS_MS[0] * BANDWIDTH_ENDS_KBPS[0] / 8,
                  RTT_ENDS_MS[1] * BANDWIDTH_ENDS_KBPS[1] / 8)
HEADER_BYTES = 56  # of server.py's response, without the digits of the length: a burst holds them
SEGMENT_BYTES = 1448
MIN_RTT_MS = 1.0


@dataclass(frozen=True)
class Population:
    """Whom to draw, and what happens to a response beyond its size and its client's network."""

    name: str
    datacenter: str  # average or slow
    clients: int
    responses: int  # of each client
    full_clients: int = 0  # of the large sample
    explained: int = 0  # responses of each client that the steps of causes are measured for
    rtt_at_most_ms: float = math.inf
    sizes: str = "web_search"  # of Figure 1
    two_stages: bool = False  # a burst and, after a gap, the body; or everything in one write
    burst_segments: Sequence[int] = (3, 4)  # each as often
    no_gap_share: float = 0.0  # of the responses; the gaps of the others have a gamma distribution
    gap_mean_ms: float = 250.0
    gap_shape: float = 7.0
    first_share: float = 1.0  # of the responses: the first on their connection
    link_factor: float = 1.0  # median of link rate over key: the key is a /24's average throughput
    link_spread: float = 0.0  # deviation of its logarithm
    rtt_factor: float = 1.0  # RTT without queueing over key: the key is the least RTT
    queueing_bytes: float = 0.0  # mean queue at the key bandwidth, exponential
    lossy_share: float = 0.0  # of the responses, which meet loss_percent
    loss_percent: float = 0.0
    queue_packets: int = 1000
    far_and_slow: float = 0.0  # see `dependence`
    very_far_and_slow: float = 0.0
    # The powers by which responses of the first window's week lean to the far and slow, and to long
    # gaps; 0, 0: all windows were measured side by side.
    baseline_week: float = 0.0
    baseline_gap: float = 0.0


@dataclass(frozen=True)
class Marginal:
    """Shares by one quantity, sum 1. edges: in ms, kbit/s or bytes, one more than labels."""

    name: str
    labels: tuple[str, ...]
    edges: tuple[float, ...]
    shares: tuple[float, ...]

    def bucket(self, values: Numbers) -> NDArray[numpy.intp]:
        """The bucket of each value; it has its upper end. The outer ones have what lies beyond."""
        return numpy.searchsorted(numpy.array(self.edges[1:-1]), values, side="left")


@dataclass(frozen=True)
class Joint:
    """A distribution on a grid. rtt_ms (r,), bandwidth_kbps (b,): middles; share (r, b): sum 1."""

    rtt_ms: Numbers
    bandwidth_kbps: Numbers
    share: Numbers
    marginals: tuple[Marginal, ...]

    @property
    def members(self) -> list[NDArray[numpy.intp]]:
        """The bucket of each cell by every marginal, shape (r, b) each."""
        values = {"RTT": self.rtt_ms[:, None], "BW": self.bandwidth_kbps[None, :],
                  "BDP": numpy.outer(self.rtt_ms, self.bandwidth_kbps) / 8}
        return [known.bucket(numpy.broadcast_to(values[known.name], self.share.shape))
                for known in self.marginals]


# The joint distribution --------------------------------------------------------------

@lru_cache(maxsize=8)
def average_datacenter(far_and_slow: float = 0.0, very_far_and_slow: float = 0.0) -> Joint:
    """The clients of Web search at AvgDC: Figure 5's three panels. Raises UsageError."""
    return fit([marginal("RTT", shares("rtt_ms"), RTT_ENDS_MS),
                marginal("BW", shares("bandwidth_kbps"), BANDWIDTH_ENDS_KBPS),
                marginal("BDP", shares("bdp_bytes"), BDP_ENDS_BYTES)],
               network_curve("rtt_ms", "AvgDC"), network_curve("bandwidth_kbps", "AvgDC"),
               lambda *middles: dependence(far_and_slow, very_far_and_slow, *middles))


@lru_cache(maxsize=8)
def slow_datacenter(far_and_slow: float = 0.0, very_far_and_slow: float = 0.0) -> Joint:
    """The clients of Web search at SlowDC: Figure 6's shares of bandwidth, Figure 3's RTT.

    Two marginals alone make RTT and bandwidth independent, which the paper's two joint numbers
    contradict (section 4.1: 343 ms mean RTT up to 56 kbit/s, 250 ms from there to 256). AvgDC's
    odds ratios in SlowDC's marginals come within a tenth of both. Raises UsageError.
    """
    rtt = network_curve("rtt_ms", "SlowDC")
    average = average_datacenter(far_and_slow, very_far_and_slow)
    cdf = rtt.at(numpy.array(average.marginals[0].edges))
    by_rtt = replace(average.marginals[0], shares=tuple(map(float, numpy.diff(cdf)
                                                            / (cdf[-1] - cdf[0]))))
    apart = numpy.outer(average.share.sum(axis=1), average.share.sum(axis=0))
    odds = numpy.divide(average.share, apart, out=numpy.ones_like(apart),
                        where=(apart > 0) & (average.share > 0))
    return fit([by_rtt, marginal("BW", buckets("paper_figure6.csv"), BANDWIDTH_ENDS_KBPS)],
               rtt, network_curve("bandwidth_kbps", "SlowDC"), lambda *middles: odds)


DATACENTERS = {"average": average_datacenter, "slow": slow_datacenter}


def dependence(far_and_slow: float, very_far_and_slow: float, rtt_ms: Numbers,
               bandwidth_kbps: Numbers) -> Numbers:
    """Odds by which far clients are slow and near ones not, shape (r, b); 0, 0: independence.

    In natural logarithms, far_and_slow times the geometric mean of how far and how slow a
    client is by AvgDC's medians, less that of far and fast and of near and slow;
    very_far_and_slow times the product of how far and how slow it is.
    """
    far = numpy.log(rtt_ms / MIDDLE_RTT_MS)[:, None]
    slow = numpy.log(MIDDLE_BANDWIDTH_KBPS / bandwidth_kbps)[None, :]

    def both(first: Numbers, second: Numbers) -> Numbers:
        mean: Numbers = numpy.sqrt(numpy.maximum(first, 0) * numpy.maximum(second, 0))
        return mean

    odds: Numbers = numpy.exp(
        far_and_slow * (both(far, slow) - both(far, -slow) - both(-far, slow))
        + very_far_and_slow * both(far, slow) ** 2)
    return odds


def near(joint: Joint, rtt_at_most_ms: float) -> Joint:
    """Its clients up to an RTT, in the proportions that they have there. Raises UsageError."""
    share = joint.share * (joint.rtt_ms <= rtt_at_most_ms)[:, None]
    if not share.sum() > 0:
        raise UsageError(f"no client has an RTT up to {rtt_at_most_ms:g} ms")
    share = share / share.sum()
    return replace(joint, share=share, marginals=tuple(
        replace(known, shares=tuple(map(float, numpy.bincount(
            member.ravel(), share.ravel(), len(known.shares)))))
        for member, known in zip(joint.members, joint.marginals)))


def marginal(name: str, published: Mapping[str, Published],
             ends: tuple[float, float]) -> Marginal:
    """Published bars as shares, scaled to 1: labels are upper ends, the last one's is ">…"."""
    percents = [bar.responses_percent or 0.0 for bar in published.values()]
    return Marginal(name, tuple(published),
                    (ends[0], *map(float, list(published)[:-1]), ends[1]),
                    tuple(share / sum(percents) for share in percents))


def fit(marginals: Sequence[Marginal], rtt: CdfCurve, bandwidth: CdfCurve,
        odds: Callable[..., Numbers]) -> Joint:
    """The maximum-entropy joint distribution with these marginals, of RTT, BW and perhaps BDP.

    rtt, bandwidth: the fine curves that shape it within the buckets. odds: a dependence to
    start from, (r, b), of the cells' RTTs (r,) and bandwidths (b,). Raises UsageError.
    """
    edges = [_grid(known.edges) for known in marginals[:2]]
    # Never quite 0: the marginals may need what a curve lacks.
    prior = numpy.outer(*(numpy.maximum(numpy.diff(curve.at(ends)), 1e-9)
                          for curve, ends in zip((rtt, bandwidth), edges)))
    middles = [numpy.sqrt(ends[:-1] * ends[1:]) for ends in edges]
    prior = odds(*middles) * prior
    joint = Joint(middles[0], middles[1], prior / prior.sum(), tuple(marginals))
    return replace(joint, share=scaled_to(joint.share, joint.members, marginals))


def _grid(edges: Sequence[float]) -> Numbers:
    """Edges of fine cells, even in the logarithm within each bucket, ends among them."""
    fine = [numpy.geomspace(low, high, max(5, round(CELLS_PER_DECADE * math.log10(high / low))),
                            endpoint=False) for low, high in zip(edges, edges[1:])]
    return numpy.append(numpy.concatenate(fine), edges[-1])


def scaled_to(prior: Numbers, members: Sequence[NDArray[numpy.intp]],
              marginals: Sequence[Marginal]) -> Numbers:
    """Scale bucket after bucket to its share until all are met (Deming and Stephan 1940).

    prior: weights of any shape; members: the bucket of each by every marginal,
    same shape. Raises UsageError where that cannot be, and names a bucket.
    """
    share, error, worst = prior.copy(), 1.0, ""
    for _ in range(ROUNDS):
        error = 0.0
        for member, known in zip(members, marginals):
            wanted = numpy.array(known.shares)
            sums = numpy.bincount(member.ravel(), share.ravel(), len(wanted))
            off = numpy.abs(sums - wanted)
            if off.max() > error:
                error, worst = float(off.max()), f"{known.name} bucket {known.labels[off.argmax()]}"
            share *= numpy.divide(wanted, sums, out=numpy.zeros_like(wanted),
                                  where=sums > 0)[member]
        if error < EXACT:
            return share
    raise UsageError(f"the shares cannot be met together: {worst} misses its own by"
                     f" {error * 100:.2g} points")


# Clients and responses ---------------------------------------------------------------

def sample(joint: Joint, clients: int, seed: int, spread: Numbers, *wanted: Joint
           ) -> tuple[NDArray[numpy.intp], list[Numbers]]:
    """Cells of the grid, one for each client, and what they stand for in each of `wanted`, sum 1.

    A bucket with share s is given a part proportional to √s of the clients, in the mean over
    the marginals; spread, (r, b): how widely results vary in each cell (Neyman 1934), else a few
    slow networks decide the mean of a fast bucket. Systematic along the grid, with one random
    start: neighbours are not drawn twice before others are drawn once. The weights undo all that:
    every bucket of every marginal has exactly its share. Raises UsageError for too few clients.
    """
    boost = numpy.zeros_like(joint.share)
    for member, known in zip(joint.members, joint.marginals):
        part = numpy.sqrt(known.shares)
        boost += numpy.divide(part / part.sum(), known.shares, out=numpy.zeros_like(part),
                              where=part > 0)[member]
    boost = spread * boost
    chance = joint.share * boost
    # Back and forth along the bandwidth axis: neighbours in the list are neighbours in the grid.
    order = numpy.concatenate([numpy.arange(chance.shape[1])[::(-1) ** row] + row * chance.shape[1]
                               for row in range(chance.shape[0])])
    cumulated = numpy.cumsum(chance.ravel()[order])
    start = numpy.random.default_rng(seed).random()
    points = (numpy.arange(clients) + start) / clients * cumulated[-1]
    picks = order[numpy.searchsorted(cumulated, points, side="right")]
    odds = [each.share.ravel()[picks] / joint.share.ravel()[picks] / boost.ravel()[picks]
            for each in wanted]
    try:
        return picks, [scaled_to(
            odd / odd.sum(), [member.ravel()[picks] for member in each.members], each.marginals)
            for odd, each in zip(odds, wanted)]
    except UsageError as error:
        raise UsageError(f"{clients} clients are too few: {error}") from None


def responses(made: Population, seed: int) -> dict[str, list[object]]:
    """The responses of a population as columns of rows.COLUMNS. A seed always gives the same."""
    generator, count = numpy.random.default_rng(seed), made.clients * made.responses
    datacenter = DATACENTERS[made.datacenter]
    joint, apart = datacenter(made.far_and_slow, made.very_far_and_slow), datacenter()
    if made.rtt_at_most_ms < math.inf:
        joint, apart = near(joint, made.rtt_at_most_ms), near(apart, made.rtt_at_most_ms)
    spread = numpy.sqrt(made.rtt_factor * joint.rtt_ms[:, None]
                        + made.queueing_bytes * 8 / joint.bandwidth_kbps[None, :])
    picks, stands_for = sample(joint, made.clients, seed, spread, joint, apart)
    row, column = numpy.unravel_index(picks, joint.share.shape)
    key_rtt_ms, key_kbps, weight, step_weight = (
        numpy.repeat(values, made.responses) for values in (
            joint.rtt_ms[row], joint.bandwidth_kbps[column],
            *(each / made.responses for each in stands_for)))
    # The order in which they are drawn: another one gives other responses for a seed.
    of_size, of_earlier, of_gap, of_queue, of_burst, of_first, of_loss = (
        _stratified(generator, count) for _ in range(7))
    seeds = generator.integers(1, 2**32, count)  # small neighbours start alike in the kernel
    scatter = numpy.exp(made.link_spread * ndtri(_stratified(generator, count)))
    curve = size_curve(made.sizes)
    sizes, earlier = (numpy.maximum(curve.quantile(drawn), 1).astype(int)
                      for drawn in (of_size, of_earlier))
    gaps_ms = numpy.where(of_gap < made.no_gap_share, 0.0, gamma.ppf(
        numpy.clip((of_gap - made.no_gap_share) / max(1 - made.no_gap_share, 1e-12), 0, 1 - 1e-9),
        made.gap_shape, scale=made.gap_mean_ms / made.gap_shape))
    queueing_ms = -numpy.log1p(-of_queue) * made.queueing_bytes * 8 / key_kbps
    segments = numpy.array(made.burst_segments)[(of_burst * len(made.burst_segments)).astype(int)]
    # Bursts fill their segments, headers included.
    at_once = segments * SEGMENT_BYTES - HEADER_BYTES - numpy.char.str_len(sizes.astype(str))
    staged = (gaps_ms > 0) & (sizes > at_once) & made.two_stages
    gaps_ms = numpy.where(staged, gaps_ms.round(3), 0.0)
    # A response without a gap counts as one with the mean.
    lean = weight * ((key_rtt_ms / key_kbps) ** made.baseline_week * numpy.where(
        gaps_ms > 0, gaps_ms / made.gap_mean_ms, 1.0) ** made.baseline_gap)
    columns = {
        "part": numpy.repeat(made.name, count), "key_rtt_ms": key_rtt_ms.round(3),
        "key_bandwidth_kbps": key_kbps.round(3), "weight": weight,
        "baseline_weight": lean / lean.sum() if made.baseline_week or made.baseline_gap else weight,
        "step_weight": numpy.where(numpy.arange(count) % made.responses < made.explained,
                                   step_weight, 0.0),
        "rtt_ms": numpy.maximum(key_rtt_ms * made.rtt_factor + queueing_ms, MIN_RTT_MS).round(3),
        "bandwidth_kbps": (key_kbps * made.link_factor * scatter).round(3),
        "queue_packets": numpy.repeat(made.queue_packets, count),
        "loss_percent": numpy.where(of_loss < made.lossy_share, made.loss_percent, 0.0),
        "seed": numpy.where(of_loss < made.lossy_share, seeds, 0), "response_bytes": sizes,
        "earlier_bytes": numpy.where(of_first < made.first_share, 0, earlier),
        "burst_bytes": numpy.where(staged, at_once, 0), "gap_ms": gaps_ms}
    return {name: values.tolist() for name, values in columns.items()}


def _stratified(generator: numpy.random.Generator, count: int) -> Numbers:
    """One value of every 1/count between 0 and 1, in any order, shape (count,)."""
    values: Numbers = generator.permutation((numpy.arange(count) + generator.random(count))
                                            / count)
    return values


# Files -------------------------------------------------------------------------------

def populations(path: Path) -> list[Population]:
    """Those of a TOML file; `like` takes over what another has. Raises UsageError."""
    made: dict[str, Population] = {}
    for table in scenario_file.read(path, str(path)).raw["population"]:
        values = {**table, **table.get("mechanism", {})}
        values.pop("mechanism", None)
        like = made.get(values.pop("like", ""))
        try:
            made[table["name"]] = replace(like, **values) if like else Population(**values)
        except TypeError as error:
            raise UsageError(f"{path}: {error}") from None
    return list(made.values())


def write(name: str, full: bool, seed: int) -> Path:
    """Draws the table of a scenario, and shows what it was drawn from. Raises UsageError."""
    made = populations(rows.FOLDER / f"{name}.toml")
    parts = [responses(replace(one, clients=one.full_clients or one.clients) if full else one, seed)
             for one in made]
    path = rows.path_of(name, full, seed)
    rows.write(path, rows.COLUMNS, (line for part in parts
                                    for line in zip(*(part[name] for name in rows.COLUMNS))))
    for datacenter, far, very in dict.fromkeys(
            (one.datacenter, one.far_and_slow, one.very_far_and_slow) for one in made):
        joint = DATACENTERS[datacenter](far, very)
        how = ("maximum entropy among all that meet the paper's shares of RTT, bandwidth and BDP"
               if datacenter == "average" else "the paper's shares of RTT and bandwidth, and"
               " AvgDC's odds ratios between them") + (
               f"; far and slow together by {far:g}, very far and slow by {very:g}"
               if far or very else "")
        percents = numpy.where(joint.share > LEAST_SHARE, 100 * joint.share, numpy.nan)
        rows.write(rows.joint_path_of(name, datacenter), (how, *joint.bandwidth_kbps.tolist()),
                   ((rtt_ms, *(f"{percent:.6g}" for percent in line))
                    for rtt_ms, line in zip(joint.rtt_ms.tolist(), percents.tolist())))
    return path


def bucket_shares() -> dict[tuple[str, ...], float]:
    """AvgDC's shares by the labels of RTT, bandwidth and BDP (paper/joint_shares.csv)."""
    joint, made = average_datacenter(), dict[tuple[str, ...], float]()
    for *places, share in zip(*(member.ravel() for member in joint.members), joint.share.ravel()):
        labels = tuple(known.labels[place] for known, place in zip(joint.marginals, places))
        made[labels] = made.get(labels, 0.0) + float(share)
    return made


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("name", help="of scenarios/populations/<name>.toml")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--full", action="store_true", help="the large sample")
    given = parser.parse_args()
    try:
        print(write(given.name, given.full, given.seed))
    except FirstFlightError as error:
        sys.exit(f"paper.draw: {error}")
