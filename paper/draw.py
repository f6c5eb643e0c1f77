"""Draws a population like the paper's clients and responses, and writes it as a table of rows.

    /usr/bin/python3 -m paper.draw dukkipati2010 [--seed N] [--full]

scenarios/populations/<name>.toml describes the population. Each row is one response of one client.
RTT and bandwidth come from a joint distribution. Many distributions have the marginals that the
paper prints. This one is the closest, in relative entropy, to the rest of what is known (Csiszár
1975; docs/STUDIES.md).
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
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

CELLS_PER_DECADE = 24  # of the grid, so that every bucket of Figure 5 has at least five cells
ROUNDS = 20_000  # of proportional fitting, at most; Figure 5 needs a few hundred
EXACT = 1e-9  # the largest error of a fitted share
LEAST_SHARE = 1e-9  # of a cell that the table of the joint distribution shows
# Figure 3's medians at AvgDC. Clients with a longer RTT are far, those with less bandwidth slow.
MIDDLE_RTT_MS, MIDDLE_BANDWIDTH_KBPS = 70.0, 1200.0
BDP_ENDS_BYTES = (RTT_ENDS_MS[0] * BANDWIDTH_ENDS_KBPS[0] / 8,
                  RTT_ENDS_MS[1] * BANDWIDTH_ENDS_KBPS[1] / 8)
# The headers of server.py's response, without the digits of its length. They are a part of a burst.
HEADER_BYTES = 56
SEGMENT_BYTES = 1448  # of data in a full segment
MIN_RTT_MS = 1.0


@dataclass(frozen=True)
class Population:
    """What to draw: clients, their responses, and what happens to a response."""

    name: str
    datacenter: str  # average or slow
    clients: int
    responses: int  # of each client
    full_clients: int = 0  # clients of the large sample; 0 for as many as in the usual one
    explained: int = 0  # responses of each client for which the steps of causes are measured
    rtt_at_most_ms: float = math.inf
    sizes: str = "web_search"  # the series of Figure 1
    two_stages: bool = False  # whether a burst, a gap and the body replace a single write
    burst_segments: Sequence[int] = (3, 4)  # segments of a burst, equally likely
    no_gap_share: float = 0.0  # of the responses; the gaps of the others are gamma distributed
    gap_mean_ms: float = 250.0
    gap_shape: float = 7.0
    first_share: float = 1.0  # the share of responses that are the first on their connection
    # A key is the published value by which a client is counted: the average throughput of its /24,
    # and the least RTT of its /24.
    link_factor: float = 1.0  # median of link rate / key bandwidth
    link_spread: float = 0.0  # standard deviation of the logarithm of link rate / key bandwidth
    rtt_factor: float = 1.0  # RTT without queueing / key RTT
    queueing_bytes: float = 0.0  # mean queue at the key bandwidth, exponentially distributed
    lossy_share: float = 0.0  # the share of responses that have loss_percent
    loss_percent: float = 0.0
    queue_packets: int = 1000
    # Parameters of dependence().
    far_and_slow: float = 0.0
    very_far_and_slow: float = 0.0
    # The first window was measured in a week of its own. These are exponents of the weights in that
    # week: it has more far and slow clients, and more long gaps. If both are 0, all windows were
    # measured in the same weeks.
    baseline_week: float = 0.0
    baseline_gap: float = 0.0


@dataclass(frozen=True)
class Marginal:
    """The shares of responses in the buckets of one quantity."""

    name: str
    labels: tuple[str, ...]
    edges: tuple[float, ...]  # in ms, kbit/s or bytes; one more than labels and shares
    shares: tuple[float, ...]  # with sum 1

    def bucket(self, values: Numbers) -> NDArray[numpy.intp]:
        """The index of each value's bucket, in the shape of the values.

        A bucket includes its upper edge. The outer buckets include everything beyond.
        """
        return numpy.searchsorted(numpy.array(self.edges[1:-1]), values, side="left")


@dataclass(frozen=True)
class Joint:
    """A joint distribution of RTT and bandwidth on a grid of r × b cells."""

    rtt_ms: Numbers  # of the middles of the cells, shape (r,)
    bandwidth_kbps: Numbers  # of the middles of the cells, shape (b,)
    share: Numbers  # of each cell, with sum 1, shape (r, b)
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
    by_average_rtt, *_ = average.marginals
    cdf = rtt.at(numpy.array(by_average_rtt.edges))
    rtt_shares = numpy.diff(cdf) / (cdf[-1] - cdf[0])
    by_rtt = replace(by_average_rtt, shares=tuple(map(float, rtt_shares)))

    independent = numpy.outer(average.share.sum(axis=1), average.share.sum(axis=0))
    odds = numpy.divide(average.share, independent, out=numpy.ones_like(independent),
                        where=(independent > 0) & (average.share > 0))
    return fit([by_rtt, marginal("BW", buckets("paper_figure6.csv"), BANDWIDTH_ENDS_KBPS)],
               rtt, network_curve("bandwidth_kbps", "SlowDC"), lambda *middles: odds)


DATACENTERS = {"average": average_datacenter, "slow": slow_datacenter}


def dependence(far_and_slow: float, very_far_and_slow: float, rtt_ms: Numbers,
               bandwidth_kbps: Numbers) -> Numbers:
    """How much likelier each cell is than if RTT and bandwidth were independent, shape (r, b).

    Far clients are slow more often than others. How far and how slow a client is are natural
    logarithms of its distance from AvgDC's medians. The logarithm of the result is far_and_slow
    times the geometric mean of both, less the same for far and fast clients and for near and slow
    ones, plus very_far_and_slow times the product of both. It is 0 where both parameters are 0.
    rtt_ms: shape (r,). bandwidth_kbps: shape (b,).
    """
    far = numpy.log(rtt_ms / MIDDLE_RTT_MS)[:, None]
    slow = numpy.log(MIDDLE_BANDWIDTH_KBPS / bandwidth_kbps)[None, :]

    def both(first: Numbers, second: Numbers) -> Numbers:
        """The geometric mean of two distances; 0 where one of them is negative."""
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

    marginals = []
    for member, known in zip(joint.members, joint.marginals):
        sums = numpy.bincount(member.ravel(), share.ravel(), len(known.shares))
        marginals.append(replace(known, shares=tuple(map(float, sums))))
    return replace(joint, share=share, marginals=tuple(marginals))


def marginal(name: str, published: Mapping[str, Published],
             ends: tuple[float, float]) -> Marginal:
    """The marginal of published bars, scaled to 1.

    published: by label. A label is the upper edge of a bucket, except the last one, which is ">…".
    ends: the lowest and the highest edge.
    """
    percents = [bar.responses_percent or 0.0 for bar in published.values()]
    *upper_edges, _ = published
    lowest, highest = ends
    return Marginal(name, tuple(published), edges=(lowest, *map(float, upper_edges), highest),
                    shares=tuple(percent / sum(percents) for percent in percents))


def fit(marginals: Sequence[Marginal], rtt: CdfCurve, bandwidth: CdfCurve,
        odds: Callable[..., Numbers]) -> Joint:
    """The maximum-entropy joint distribution with these marginals: RTT, BW and perhaps BDP.

    rtt, bandwidth: the curves that shape it within the buckets. odds: takes the cells' RTTs (r,)
    and bandwidths (b,), and returns the dependence to start from, (r, b). Raises UsageError.
    """
    by_rtt, by_bandwidth, *_ = marginals
    rtt_edges, bandwidth_edges = _grid(by_rtt.edges), _grid(by_bandwidth.edges)

    # Never quite 0: the marginals may need a cell where a curve has nothing.
    rtt_shares = numpy.maximum(numpy.diff(rtt.at(rtt_edges)), 1e-9)
    bandwidth_shares = numpy.maximum(numpy.diff(bandwidth.at(bandwidth_edges)), 1e-9)
    rtts_ms, bandwidths_kbps = _middles(rtt_edges), _middles(bandwidth_edges)
    prior = odds(rtts_ms, bandwidths_kbps) * numpy.outer(rtt_shares, bandwidth_shares)

    joint = Joint(rtts_ms, bandwidths_kbps, share=prior / prior.sum(), marginals=tuple(marginals))
    return replace(joint, share=scaled_to(joint.share, joint.members, marginals))


def _grid(edges: Sequence[float]) -> Numbers:
    """The edges of fine cells, at even logarithmic distances within each bucket."""
    fine = []
    for low, high in zip(edges, edges[1:]):
        cells = max(5, round(CELLS_PER_DECADE * math.log10(high / low)))
        fine.append(numpy.geomspace(low, high, cells, endpoint=False))
    return numpy.append(numpy.concatenate(fine), edges[-1])


def _middles(edges: Numbers) -> Numbers:
    """The middles of cells on a logarithmic axis, by their edges."""
    middles: Numbers = numpy.sqrt(edges[:-1] * edges[1:])
    return middles


def scaled_to(prior: Numbers, members: Sequence[NDArray[numpy.intp]],
              marginals: Sequence[Marginal]) -> Numbers:
    """Scale each bucket to its share, again and again until all fit (Deming and Stephan 1940).

    prior: weights of any shape, in which the scaled weights are returned. members: for each
    marginal, the bucket of each weight, in the same shape. Raises UsageError, which names the worst
    bucket, where the buckets cannot all have their shares.
    """
    share, error, worst = prior.copy(), 1.0, ""
    for _ in range(ROUNDS):
        error = 0.0
        for member, known in zip(members, marginals):
            wanted = numpy.array(known.shares)
            sums = numpy.bincount(member.ravel(), share.ravel(), len(wanted))
            deviations = numpy.abs(sums - wanted)
            if deviations.max() > error:
                error = float(deviations.max())
                worst = f"{known.name} bucket {known.labels[deviations.argmax()]}"
            factors = numpy.divide(wanted, sums, out=numpy.zeros_like(wanted), where=sums > 0)
            share *= factors[member]
        if error < EXACT:
            return share
    raise UsageError(f"the shares cannot be met together: {worst} misses its own by"
                     f" {error * 100:.2g} points")


# Clients and responses ---------------------------------------------------------------

def sample(joint: Joint, clients: int, seed: int, spread: Numbers, *wanted: Joint
           ) -> tuple[NDArray[numpy.intp], list[Numbers]]:
    """Draw a cell of the grid for each client; return the cells, and weights for each of `wanted`.

    The cells are indices into the flat grid, shape (clients,). The weights have that shape, too,
    and the sum 1.

    A bucket with share s gets a part of the clients that is proportional to √s, averaged over the
    marginals: otherwise a few slow networks would decide the mean of a fast bucket. It gets more
    where results vary widely: spread, shape (r, b) (Neyman 1934). The draw is systematic along the
    grid with one random start, so that no cell is drawn twice before its neighbours are drawn once.
    The weights undo all of this: every bucket of every marginal has exactly its share.

    Raises UsageError for too few clients.
    """
    boost = numpy.zeros_like(joint.share)
    for member, known in zip(joint.members, joint.marginals):
        part = numpy.sqrt(known.shares)
        factors = numpy.divide(part / part.sum(), known.shares, out=numpy.zeros_like(part),
                               where=part > 0)
        boost += factors[member]
    boost = spread * boost
    chance = joint.share * boost

    # Forth and back along the bandwidth axis, so that neighbours in the list are neighbours in the
    # grid.
    row_count, column_count = chance.shape
    order = numpy.concatenate([numpy.arange(column_count)[::(-1) ** row] + row * column_count
                               for row in range(row_count)])
    cumulated = numpy.cumsum(chance.ravel()[order])
    start = numpy.random.default_rng(seed).random()
    points = (numpy.arange(clients) + start) / clients * cumulated[-1]
    picks = order[numpy.searchsorted(cumulated, points, side="right")]

    weights = []
    try:
        for other in wanted:
            odds = other.share.ravel()[picks] / joint.share.ravel()[picks] / boost.ravel()[picks]
            members = [member.ravel()[picks] for member in other.members]
            weights.append(scaled_to(odds / odds.sum(), members, other.marginals))
        return picks, weights
    except UsageError as error:
        raise UsageError(f"{clients} clients are too few: {error}") from None


def responses(made: Population, seed: int) -> dict[str, list[object]]:
    """Draw the responses of a population, by the columns of rows.COLUMNS.

    The same seed gives the same responses.
    """
    generator, count = numpy.random.default_rng(seed), made.clients * made.responses
    datacenter = DATACENTERS[made.datacenter]
    joint = datacenter(made.far_and_slow, made.very_far_and_slow)
    step_joint = datacenter()  # of the steps, which begin without these two parameters
    if made.rtt_at_most_ms < math.inf:
        joint = near(joint, made.rtt_at_most_ms)
        step_joint = near(step_joint, made.rtt_at_most_ms)

    # The clients, and a row for each of their responses.
    spread = numpy.sqrt(made.rtt_factor * joint.rtt_ms[:, None]
                        + made.queueing_bytes * 8 / joint.bandwidth_kbps[None, :])
    picks, weights = sample(joint, made.clients, seed, spread, joint, step_joint)
    client_weight, client_step_weight = weights
    row, column = numpy.unravel_index(picks, joint.share.shape)
    key_rtt_ms = numpy.repeat(joint.rtt_ms[row], made.responses)
    key_kbps = numpy.repeat(joint.bandwidth_kbps[column], made.responses)
    weight = numpy.repeat(client_weight / made.responses, made.responses)
    step_weight = numpy.repeat(client_step_weight / made.responses, made.responses)

    # Do not change the order of these draws: a seed would give other responses.
    of_size, of_earlier, of_gap, of_queue, of_burst, of_first, of_loss = (
        _stratified(generator, count) for _ in range(7))
    seeds = generator.integers(1, 2**32, count)  # small neighbours start alike in the kernel
    scatter = numpy.exp(made.link_spread * ndtri(_stratified(generator, count)))

    # Sizes, gaps and queues.
    curve = size_curve(made.sizes)
    sizes, earlier = (numpy.maximum(curve.quantile(drawn), 1).astype(int)
                      for drawn in (of_size, of_earlier))
    rank = (of_gap - made.no_gap_share) / max(1 - made.no_gap_share, 1e-12)  # among the gaps
    gamma_ms = gamma.ppf(numpy.clip(rank, 0, 1 - 1e-9), made.gap_shape,
                         scale=made.gap_mean_ms / made.gap_shape)
    gaps_ms = numpy.where(of_gap < made.no_gap_share, 0.0, gamma_ms)
    queueing_ms = -numpy.log1p(-of_queue) * made.queueing_bytes * 8 / key_kbps

    # A burst fills its segments, headers included.
    segments = numpy.array(made.burst_segments)[(of_burst * len(made.burst_segments)).astype(int)]
    burst_bytes = segments * SEGMENT_BYTES - HEADER_BYTES - numpy.char.str_len(sizes.astype(str))
    staged = (gaps_ms > 0) & (sizes > burst_bytes) & made.two_stages
    gaps_ms = numpy.where(staged, gaps_ms.round(3), 0.0)

    # The weights in the first window's week. A response without a gap counts as one with the mean.
    baseline_weight = weight
    if made.baseline_week or made.baseline_gap:
        of_mean_gap = numpy.where(gaps_ms > 0, gaps_ms / made.gap_mean_ms, 1.0)
        baseline_weight = weight * ((key_rtt_ms / key_kbps) ** made.baseline_week
                                    * of_mean_gap ** made.baseline_gap)
        baseline_weight = baseline_weight / baseline_weight.sum()
    is_explained = numpy.arange(count) % made.responses < made.explained

    columns = {
        "part": numpy.repeat(made.name, count), "key_rtt_ms": key_rtt_ms.round(3),
        "key_bandwidth_kbps": key_kbps.round(3), "weight": weight,
        "baseline_weight": baseline_weight,
        "step_weight": numpy.where(is_explained, step_weight, 0.0),
        "rtt_ms": numpy.maximum(key_rtt_ms * made.rtt_factor + queueing_ms, MIN_RTT_MS).round(3),
        "bandwidth_kbps": (key_kbps * made.link_factor * scatter).round(3),
        "queue_packets": numpy.repeat(made.queue_packets, count),
        "loss_percent": numpy.where(of_loss < made.lossy_share, made.loss_percent, 0.0),
        "seed": numpy.where(of_loss < made.lossy_share, seeds, 0), "response_bytes": sizes,
        "earlier_bytes": numpy.where(of_first < made.first_share, 0, earlier),
        "burst_bytes": numpy.where(staged, burst_bytes, 0), "gap_ms": gaps_ms}
    return {name: values.tolist() for name, values in columns.items()}


def _stratified(generator: numpy.random.Generator, count: int) -> Numbers:
    """Random numbers from 0 to 1, one in each interval of 1/count, shuffled; shape (count,)."""
    values: Numbers = generator.permutation((numpy.arange(count) + generator.random(count))
                                            / count)
    return values


# Files -------------------------------------------------------------------------------

def populations(path: Path) -> list[Population]:
    """Read the populations of a TOML file. Raises UsageError.

    The key `like` of a population names an earlier one, whose values it has where it gives none.
    """
    made: dict[str, Population] = {}
    for table in scenario_file.read(path, str(path)).raw["population"]:
        values = {**table, **table.get("mechanism", {})}
        values.pop("mechanism", None)
        model = made.get(values.pop("like", ""))
        try:
            made[table["name"]] = replace(model, **values) if model else Population(**values)
        except TypeError as error:
            raise UsageError(f"{path}: {error}") from None
    return list(made.values())


def write(name: str, full: bool, seed: int) -> Path:
    """Draw the table of a scenario and write it, with its joint distributions; return its path.

    full: whether the large sample is drawn. Raises UsageError.
    """
    made = populations(rows.FOLDER / f"{name}.toml")
    drawn = []
    for population in made:
        if full:
            clients = population.full_clients or population.clients
            population = replace(population, clients=clients)
        drawn.append(responses(population, seed))
    path = rows.path_of(name, full, seed)
    lines = (zip(*(columns[column] for column in rows.COLUMNS)) for columns in drawn)
    rows.write(path, rows.COLUMNS, chain.from_iterable(lines))

    joints = dict.fromkeys((population.datacenter, population.far_and_slow,
                            population.very_far_and_slow) for population in made)
    for datacenter, far, very in joints:
        _write_joint(name, datacenter, far, very)
    return path


def _write_joint(name: str, datacenter: str, far: float, very: float) -> None:
    """Write the joint distribution of a data centre: a row for each RTT, in percent.

    far, very: the parameters of dependence().
    """
    joint = DATACENTERS[datacenter](far, very)
    if datacenter == "average":
        how = "maximum entropy among all that meet the paper's shares of RTT, bandwidth and BDP"
    else:
        how = "the paper's shares of RTT and bandwidth, and AvgDC's odds ratios between them"
    if far or very:
        how += f"; far and slow together by {far:g}, very far and slow by {very:g}"

    percents = numpy.where(joint.share > LEAST_SHARE, 100 * joint.share, numpy.nan)
    lines = []
    for rtt_ms, of_rtt in zip(joint.rtt_ms.tolist(), percents.tolist()):
        lines.append((rtt_ms, *(f"{percent:.6g}" for percent in of_rtt)))
    rows.write(rows.joint_path_of(name, datacenter), (how, *joint.bandwidth_kbps.tolist()), lines)


def bucket_shares() -> dict[tuple[str, ...], float]:
    """The share of AvgDC's responses in each bucket of RTT, bandwidth and BDP together, by labels.

    paper/joint_shares.csv has these shares.
    """
    joint = average_datacenter()
    by_labels: dict[tuple[str, ...], float] = {}
    members = [member.ravel() for member in joint.members]
    for *places, share in zip(*members, joint.share.ravel()):
        labels = tuple(known.labels[place] for known, place in zip(joint.marginals, places))
        by_labels[labels] = by_labels.get(labels, 0.0) + float(share)
    return by_labels


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
