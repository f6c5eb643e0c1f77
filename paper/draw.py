"""Draws a population like the paper's clients and responses, and writes it as a table of rows.

    /usr/bin/python3 -m paper.draw dukkipati2010 [--seed N] [--full]

scenarios/populations/<name>.toml describes the population. Each row is one response of one client.
RTT and bandwidth come from a joint distribution. Of all distributions with the marginals that the
paper prints, it is the one closest, in relative entropy, to the rest of what is known (Csiszár
1975; docs/STUDIES.md).
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
from firstflight.findings.claims import Published
from firstflight.runs import scenario_file
from firstflight.scenario.curves import (BANDWIDTH_ENDS_KBPS, RTT_ENDS_MS, CdfCurve, Numbers,
                                         network_curve, size_curve)
from firstflight.scenario.published import buckets, shares
from firstflight.workloads.fetch.scenario import rows

CELLS_PER_DECADE = 24  # of the grid: at least five cells in every bucket of Figure 5
ROUNDS = 20_000  # of proportional fitting; Figure 5 needs a few hundred
EXACT = 1e-9  # largest error of a fitted share
LEAST_SHARE = 1e-9  # of a cell in the table of the joint distribution
# Figure 3's medians at AvgDC: clients beyond them are far, or slow.
MIDDLE_RTT_MS, MIDDLE_BANDWIDTH_KBPS = 70.0, 1200.0
BDP_ENDS_BYTES = (RTT_ENDS_MS[0] * BANDWIDTH_ENDS_KBPS[0] / 8,
                  RTT_ENDS_MS[1] * BANDWIDTH_ENDS_KBPS[1] / 8)
HEADER_BYTES = 56  # of server.py's response, without the digits of its length; part of a burst
SEGMENT_BYTES = 1448
MIN_RTT_MS = 1.0


@dataclass(frozen=True)
class Population:
    """What to draw: clients, their responses, and what happens to a response."""

    name: str
    datacenter: str  # average or slow
    clients: int
    responses: int  # of each client
    full_clients: int = 0  # in the large sample
    explained: int = 0  # responses of each client for which the steps of causes are measured
    rtt_at_most_ms: float = math.inf
    sizes: str = "web_search"  # of Figure 1
    two_stages: bool = False  # a burst and after a gap the body, in place of a single write
    burst_segments: Sequence[int] = (3, 4)  # equally likely
    no_gap_share: float = 0.0  # of the responses; the gaps of the others are gamma distributed
    gap_mean_ms: float = 250.0
    gap_shape: float = 7.0
    first_share: float = 1.0  # of the responses: the first on their connection
    # A key is the published value by which a client is counted: a /24's average throughput, and its
    # least RTT.
    link_factor: float = 1.0  # median of link rate / key bandwidth
    link_spread: float = 0.0  # standard deviation of the logarithm of link rate / key bandwidth
    rtt_factor: float = 1.0  # RTT without queueing / key RTT
    queueing_bytes: float = 0.0  # mean queue at the key bandwidth, exponentially distributed
    lossy_share: float = 0.0  # of the responses: those with loss_percent
    loss_percent: float = 0.0
    queue_packets: int = 1000
    far_and_slow: float = 0.0  # see dependence()
    very_far_and_slow: float = 0.0
    # Exponents of the weights in the first window's week: how much more it has of far and slow
    # clients, and of long gaps. 0, 0: all windows were measured in the same weeks.
    baseline_week: float = 0.0
    baseline_gap: float = 0.0


@dataclass(frozen=True)
class Marginal:
    """Shares by one quantity; their sum is 1.

    edges: of the buckets, in ms, kbit/s or bytes; one more than labels and shares.
    """

    name: str
    labels: tuple[str, ...]
    edges: tuple[float, ...]
    shares: tuple[float, ...]

    def bucket(self, values: Numbers) -> NDArray[numpy.intp]:
        """The index of each value's bucket, same shape.

        A bucket includes its upper edge, and the outer buckets include everything beyond.
        """
        return numpy.searchsorted(numpy.array(self.edges[1:-1]), values, side="left")


@dataclass(frozen=True)
class Joint:
    """A joint distribution of RTT and bandwidth on a grid.

    rtt_ms, bandwidth_kbps: the middles of the cells, shapes (r,) and (b,). share: shape (r, b),
    with sum 1.
    """

    rtt_ms: Numbers
    bandwidth_kbps: Numbers
    share: Numbers
    marginals: tuple[Marginal, ...]

    @property
    def members(self) -> list[NDArray[numpy.intp]]:
        """For each marginal, the bucket of each cell, shape (r, b)."""
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
    """How much likelier than independence a cell is because far clients are slow; shape (r, b).

    How far and how slow a client is are natural logarithms of its distance from AvgDC's medians.
    The logarithm of the result is far_and_slow times their geometric mean, less the same for far
    and fast and for near and slow clients, plus very_far_and_slow times their product. It is 0
    where both parameters are 0. rtt_ms: shape (r,); bandwidth_kbps: shape (b,).
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
    """The distribution of the clients up to an RTT. Raises UsageError where there are none."""
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
    """The marginal of published bars, scaled to 1. Labels are upper edges, the last one is ">…".

    ends: the lowest and the highest edge.
    """
    percents = [bar.responses_percent or 0.0 for bar in published.values()]
    return Marginal(name, tuple(published),
                    (ends[0], *map(float, list(published)[:-1]), ends[1]),
                    tuple(share / sum(percents) for share in percents))


def fit(marginals: Sequence[Marginal], rtt: CdfCurve, bandwidth: CdfCurve,
        odds: Callable[..., Numbers]) -> Joint:
    """The maximum-entropy joint distribution with these marginals: RTT, BW and perhaps BDP.

    rtt, bandwidth: the curves that shape it within the buckets. odds: takes the cells' RTTs (r,)
    and bandwidths (b,), and returns the dependence to start from, (r, b). Raises UsageError.
    """
    edges = [_grid(known.edges) for known in marginals[:2]]
    # Never quite 0: the marginals may need a cell where a curve has nothing.
    prior = numpy.outer(*(numpy.maximum(numpy.diff(curve.at(ends)), 1e-9)
                          for curve, ends in zip((rtt, bandwidth), edges)))
    middles = [numpy.sqrt(ends[:-1] * ends[1:]) for ends in edges]
    prior = odds(*middles) * prior
    joint = Joint(middles[0], middles[1], prior / prior.sum(), tuple(marginals))
    return replace(joint, share=scaled_to(joint.share, joint.members, marginals))


def _grid(edges: Sequence[float]) -> Numbers:
    """The edges of fine cells, at even logarithmic distances within each bucket."""
    fine = [numpy.geomspace(low, high, max(5, round(CELLS_PER_DECADE * math.log10(high / low))),
                            endpoint=False) for low, high in zip(edges, edges[1:])]
    return numpy.append(numpy.concatenate(fine), edges[-1])


def scaled_to(prior: Numbers, members: Sequence[NDArray[numpy.intp]],
              marginals: Sequence[Marginal]) -> Numbers:
    """Scale each bucket to its share, again and again until all fit (Deming and Stephan 1940).

    prior: weights of any shape; members: for each marginal the bucket of each weight, same shape.
    Returns weights of that shape. Raises UsageError that names a bucket where they cannot all fit.
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
    """Draw a cell of the grid for each client; return the cells, and weights for each of `wanted`.

    The cells are indices into the flat grid, shape (clients,); so are the weights, with sum 1. A
    bucket with share s gets a part proportional to √s of the clients, averaged over the marginals,
    and more where results vary widely: spread, (r, b) (Neyman 1934). Otherwise a few slow networks
    would decide the mean of a fast bucket. The draw is systematic along the grid with one random
    start, so that no cell is drawn twice before its neighbours are drawn once. The weights undo
    all of this: every bucket of every marginal has exactly its share. Raises UsageError for too
    few clients.
    """
    boost = numpy.zeros_like(joint.share)
    for member, known in zip(joint.members, joint.marginals):
        part = numpy.sqrt(known.shares)
        boost += numpy.divide(part / part.sum(), known.shares, out=numpy.zeros_like(part),
                              where=part > 0)[member]
    boost = spread * boost
    chance = joint.share * boost
    # Forth and back along the bandwidth axis, so that neighbours in the list are neighbours in the
    # grid.
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
    """Draw the responses of a population, by the columns of rows.COLUMNS.

    The same seed gives the same responses.
    """
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
    # Do not change the order of these draws: a seed would give other responses.
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
    """Random numbers from 0 to 1, one in each interval of 1/count, shuffled; shape (count,)."""
    values: Numbers = generator.permutation((numpy.arange(count) + generator.random(count))
                                            / count)
    return values


# Files -------------------------------------------------------------------------------

def populations(path: Path) -> list[Population]:
    """Read the populations of a TOML file. `like` names one whose values they begin with.

    Raises UsageError.
    """
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
    """Draw the table of a scenario and write it, with its joint distributions; return its path.

    Raises UsageError.
    """
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
    """AvgDC's shares by RTT, bandwidth and BDP, by their labels (paper/joint_shares.csv)."""
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
