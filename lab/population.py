"""Who fetches, over which network, and how much: populations from published distributions.

The paper prints the shares of responses by RTT, by bandwidth and by their
product (Figure 5), not the joint distribution. Of all joint distributions
that have those shares, the one built here presumes least: it stays closest,
in relative entropy, to RTT and bandwidth being independent with the fine
marginals of Figure 3 (Csiszár 1975: iterative proportional fitting finds it).

An RTT is a client's least, in ms; a bandwidth the running average of what its
/24 network achieved, in kbit/s (paper, section 4.1); their product is in bytes.
Needs numpy, and scipy only to explain marginals that contradict each other.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy
from numpy.typing import NDArray

from lab.errors import UsageError
from lab.published import PAPER, buckets
from lab.toml_file import SHARES_TOLERANCE_PERCENT, nearest, plain

Numbers = NDArray[numpy.float64]

# Ends of the buckets that the paper leaves open. Both data centres' RTT curves in
# Figure 3 end at 5000.2 ms, the axis's end and not a maximum; the tail that
# percentiles 95 to 99 draw has one response in ten thousand left at 10 s. Its
# bandwidth curves start with an atom at 1 kbit/s, the axis's
# end, and stop at maxima of 160 and 257 Mbit/s: a bearer slower than GSM's
# 9.6 kbit/s does not exist, and 10 Mbit/s is where the tail that percentiles
# 95 to 99 draw has one response in a thousand left.
RTT_ENDS_MS = (1.0, 10_000.0)
BANDWIDTH_ENDS_KBPS = (9.6, 10_000.0)

CELLS_PER_DECADE = 24  # of the grid: at least five cells in every bucket of Figure 5
ROUNDS = 20_000  # of proportional fitting; Figure 5 needs a few hundred
EXACT = 1e-9  # largest error of a fitted share
LAST_PERCENTILE = 0.98  # a curve known so far is continued; one that ends below is not
SIZE_AXIS_END_BYTES = 499_000.0  # Figure 1 is cut there


@dataclass(frozen=True)
class Curve:
    """A distribution function known at points, linear between them.

    values: ascending, shape (n,); cdf: ascending, 0 to 1, shape (n,).
    where: file and series, for messages.
    """

    where: str
    values: tuple[float, ...]
    cdf: tuple[float, ...]

    def __post_init__(self) -> None:
        """Raises UsageError where the points are no distribution function."""
        if len(self.values) < 2 or len(self.values) != len(self.cdf):
            raise UsageError(f"{self.where}: a CDF needs two points or more, with a value and a"
                             f" share each; found {len(self.values)} and {len(self.cdf)}")
        for name, numbers in (("value", self.values), ("cdf", self.cdf)):
            for before, after in zip(numbers, numbers[1:]):
                if not after >= before:
                    raise UsageError(f"{self.where}: the CDF is not sorted: {name}"
                                     f" {after:g} follows {before:g}")
        if not (self.cdf[0] >= 0 and self.cdf[-1] <= 1 + 1e-9 and self.cdf[-1] > self.cdf[0]):
            raise UsageError(f"{self.where}: the CDF must rise within 0 to 1; it goes from"
                             f" {self.cdf[0]:g} to {self.cdf[-1]:g}")
        if not self.values[0] > 0:
            raise UsageError(f"{self.where}: the CDF has the value {self.values[0]:g};"
                             " all must be positive")

    def at(self, values: Numbers) -> Numbers:
        """The share of the distribution at or below each value; same shape."""
        return numpy.interp(values, self.values, self.cdf, left=0.0, right=self.cdf[-1])

    def quantile(self, share: float | Numbers) -> Numbers:
        """The value at or below which `share` (0 to 1) lies; same shape.

        Below the first point its value, above the last its value: what a
        curve does not show is not invented. Raises UsageError for a share
        that is none.
        """
        shares = numpy.asarray(share, dtype=float)
        if not bool(numpy.all((shares >= 0) & (shares <= 1))):
            raise UsageError(f"{self.where}: a percentile is a share between 0 and 1, not"
                             f" {float(shares.flat[0]):g}" if shares.size == 1 else
                             f"{self.where}: percentiles are shares between 0 and 1")
        return numpy.interp(shares, self.cdf, self.values)

    def continued(self, highest: float) -> Curve:
        """The curve with its last step, from a percentile to the maximum, drawn as a tail.

        One straight line from percentile 99 to the maximum would put more
        weight there than other figures of the paper allow (Figure 5: 0.08 %
        of RTTs above 3 s, Figure 7: 0.11 % of responses above 50 segments).
        Percentiles 95 to 99 fix the exponent of a Pareto tail that both agree
        with. A curve that ends below LAST_PERCENTILE is returned as it is.
        """
        values, cdf = numpy.array(self.values), numpy.array(self.cdf)
        if len(values) < 3 or cdf[-2] < LAST_PERCENTILE or cdf[-2] >= 1 or values[-2] >= highest:
            return self
        start, left = values[-2], 1 - cdf[-2]
        nearer = float(numpy.interp(1 - 5 * left, cdf, values))
        if not 0 < nearer < start:
            return self
        exponent = math.log(5) / math.log(start / nearer)
        tail = numpy.geomspace(start, highest, 33)[1:]
        survival = left * (tail / start) ** -exponent
        ends = survival[-1]
        tail_cdf = 1 - left * (survival - ends) / (left - ends)
        return Curve(self.where, tuple(map(float, (*values[:-1], *tail))),
                     tuple(map(float, (*cdf[:-1], *tail_cdf))))


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

    def mean_rtt_ms(self, bandwidth_above_kbps: float, bandwidth_upto_kbps: float) -> float:
        """Mean RTT of the clients whose bandwidth lies in a range. Raises UsageError if none."""
        inside = ((self.bandwidth_kbps > bandwidth_above_kbps)
                  & (self.bandwidth_kbps <= bandwidth_upto_kbps))
        shares = self.share[:, inside].sum(axis=1)
        if not shares.sum() > 0:
            raise UsageError(f"no client has a bandwidth between {plain(bandwidth_above_kbps)}"
                             f" and {plain(bandwidth_upto_kbps)} kbit/s")
        return float(shares @ self.rtt_ms / shares.sum())


@dataclass(frozen=True)
class Client:
    """A network that stands for `weight` of all responses."""

    rtt_ms: float
    bandwidth_kbps: float
    weight: float

    @property
    def bdp_bytes(self) -> float:
        return self.rtt_ms * self.bandwidth_kbps / 8


# The published distributions ----------------------------------------------------

def average_datacenter(folder: Path = PAPER) -> Joint:
    """The clients of Web search at AvgDC: Figure 5's three panels. Raises UsageError."""
    return fit(
        [marginal("RTT", buckets("paper_figure5.csv", "RTT", folder), RTT_ENDS_MS),
         marginal("BW", buckets("paper_figure5.csv", "BW", folder), BANDWIDTH_ENDS_KBPS),
         marginal("BDP", buckets("paper_figure5.csv", "BDP", folder), _bdp_ends())],
        rtt=network_curve("rtt_ms", "AvgDC", folder),
        bandwidth=network_curve("bandwidth_kbps", "AvgDC", folder))


def slow_datacenter(folder: Path = PAPER, dependence: float = 1.0) -> Joint:
    """The clients of Web search at SlowDC: Figure 6's shares of bandwidth, Figure 3's RTT.

    No shares of RTT or of the product are published for it. Two marginals
    alone make RTT and bandwidth independent (`dependence` 0); the paper's
    two joint numbers (section 4.1: 343 ms mean RTT up to 56 kbit/s, 250 ms
    from there to 256) contradict that. `dependence` 1 is AvgDC's odds ratios
    in SlowDC's marginals and comes within a tenth of both; other values raise
    the odds ratios to that power. Raises UsageError.
    """
    rtt = network_curve("rtt_ms", "SlowDC", folder)
    bandwidth = network_curve("bandwidth_kbps", "SlowDC", folder)
    average = average_datacenter(folder)
    by_rtt = _curve_marginal("RTT", rtt, next(known for known in average.marginals
                                              if known.name == "RTT"))
    by_bandwidth = marginal("BW", buckets("paper_figure6.csv", folder=folder),
                            BANDWIDTH_ENDS_KBPS)
    rtt_edges, bandwidth_edges = _grid(by_rtt.edges), _grid(by_bandwidth.edges)
    odds = _odds(average) ** dependence
    return _fit_on(rtt_edges, bandwidth_edges, [by_rtt, by_bandwidth], rtt, bandwidth, odds)


def network_curve(quantity: str, datacenter: str, folder: Path = PAPER) -> Curve:
    """Figure 3's curve of rtt_ms or bandwidth_kbps at AvgDC or SlowDC. Raises UsageError."""
    file = "paper_figure3_cdf.csv"
    points: dict[str, list[tuple[float, float]]] = {}
    for row in _rows(folder / file):
        series = f"{row.get('quantity')} {row.get('datacenter')}"
        points.setdefault(series, []).append(_point(row, "value", file))
    ends = RTT_ENDS_MS if quantity == "rtt_ms" else BANDWIDTH_ENDS_KBPS
    return _series(file, points, f"{quantity} {datacenter}").continued(ends[1])


def size_curve(series: str = "web_search", folder: Path = PAPER) -> Curve:
    """Figure 1's distribution of response sizes in bytes, of one service.

    The last point lies on the figure's right edge, not on a percentile: see
    Curve.continued. With it Web search has a mean of 10.2 kB (a straight line
    would give 12.2, the paper states 10.5; section 4.1). Raises UsageError.
    """
    file = "paper_figure1_cdf.csv"
    points: dict[str, list[tuple[float, float]]] = {}
    for row in _rows(folder / file):
        points.setdefault(row.get("series", ""), []).append(_point(row, "response_bytes", file))
    return _series(file, points, series).continued(SIZE_AXIS_END_BYTES)


def marginal(name: str, published: Mapping[str, object], ends: tuple[float, float]) -> Marginal:
    """Published bars as shares: labels are upper ends, the last one's is ">…".

    published: label → lab.published.PublishedBucket, ascending; ends: of the
    first and of the last bucket. The shares may miss 100 % by the rounding
    of a tenth; they are scaled to 1. Raises UsageError.
    """
    shares = [float(getattr(bar, "responses_percent")) for bar in published.values()]
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


def _bdp_ends() -> tuple[float, float]:
    return (RTT_ENDS_MS[0] * BANDWIDTH_ENDS_KBPS[0] / 8,
            RTT_ENDS_MS[1] * BANDWIDTH_ENDS_KBPS[1] / 8)


def _upper(name: str, label: str) -> float:
    try:
        return float(label)
    except ValueError:
        raise UsageError(f"{name}: the bucket {label!r} is named by no upper end") from None


def _curve_marginal(name: str, curve: Curve, like: Marginal) -> Marginal:
    """The shares that a curve has in another marginal's buckets."""
    cdf = curve.at(numpy.array(like.edges))
    shares = numpy.diff(cdf) / (cdf[-1] - cdf[0])
    return Marginal(name, like.labels, like.edges, tuple(map(float, shares)))


def _series(file: str, points: Mapping[str, Sequence[tuple[float, float]]], name: str) -> Curve:
    if name not in points:
        raise UsageError(f"paper/{file}: has no series {name!r}{nearest(name, points)};"
                         f" known: {', '.join(sorted(points)) or 'none'}")
    values, cdf = zip(*points[name])
    return Curve(f"paper/{file}, {name}", tuple(values), tuple(cdf))


def _point(row: Mapping[str, str], column: str, file: str) -> tuple[float, float]:
    try:
        return float(row[column]), float(row["cdf"])
    except KeyError as error:
        raise UsageError(f"paper/{file}: has no column {error.args[0]}") from None
    except ValueError as error:
        raise UsageError(f"paper/{file}: {error}") from None


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return [{column: value or "" for column, value in row.items() if column} for row in
                    csv.DictReader(line for line in file if not line.startswith("#"))]
    except OSError as error:
        raise UsageError(f"paper/{path.name}: cannot be read: {error.strerror}") from error


# Fitting ----------------------------------------------------------------------------

def fit(marginals: Sequence[Marginal], rtt: Curve, bandwidth: Curve) -> Joint:
    """The maximum-entropy joint distribution with these marginals.

    marginals: of RTT and BW, and of BDP if published; rtt, bandwidth: the
    fine curves that shape the distribution within the buckets (where both
    speak, the marginals win). Raises UsageError where no joint distribution
    has all the marginals, and names the bucket that cannot be met.
    """
    by_rtt, by_bandwidth = (_named(marginals, name) for name in ("RTT", "BW"))
    rtt_edges, bandwidth_edges = _grid(by_rtt.edges), _grid(by_bandwidth.edges)
    independent = numpy.ones((len(rtt_edges) - 1, len(bandwidth_edges) - 1))
    return _fit_on(rtt_edges, bandwidth_edges, marginals, rtt, bandwidth, independent)


def _fit_on(rtt_edges: Numbers, bandwidth_edges: Numbers, marginals: Sequence[Marginal],
            rtt: Curve, bandwidth: Curve, odds: Numbers) -> Joint:
    """As `fit`, on a grid and from a prior dependence `odds` of shape (r, b)."""
    prior = odds * numpy.outer(_shares_between(rtt, rtt_edges),
                               _shares_between(bandwidth, bandwidth_edges))
    joint = Joint(numpy.sqrt(rtt_edges[:-1] * rtt_edges[1:]),
                  numpy.sqrt(bandwidth_edges[:-1] * bandwidth_edges[1:]),
                  prior / prior.sum(), tuple(marginals))
    members = [known.bucket(_quantity(joint, known.name)) for known in marginals]
    share = _proportional_fitting(joint.share, members, marginals)
    return Joint(joint.rtt_ms, joint.bandwidth_kbps, share, joint.marginals)


def _proportional_fitting(prior: Numbers, members: Sequence[NDArray[numpy.intp]],
                          marginals: Sequence[Marginal]) -> Numbers:
    """Scale bucket after bucket to its share until all are met (Deming and Stephan 1940)."""
    share = prior.copy()
    for member, known in zip(members, marginals):
        held = numpy.bincount(member.ravel(), share.ravel(), len(known.shares))
        for label, wanted_share, there in zip(known.labels, known.shares, held):
            if wanted_share > 0 and not there > 0:
                raise UsageError(f"no joint distribution of RTT and BW has these marginals:"
                                 f" no network of the grid lies in {known.name} bucket {label}")
    for _ in range(ROUNDS):
        error = 0.0
        for member, known in zip(members, marginals):
            wanted = numpy.array(known.shares)
            found = numpy.bincount(member.ravel(), share.ravel(), len(wanted))
            error = max(error, float(numpy.abs(found - wanted).max()))
            factor = numpy.divide(wanted, found, out=numpy.zeros_like(wanted), where=found > 0)
            share *= factor[member]
        if error < EXACT:
            return share
    raise UsageError(_contradiction(prior, members, marginals))


def _contradiction(prior: Numbers, members: Sequence[NDArray[numpy.intp]],
                   marginals: Sequence[Marginal]) -> str:
    """Which bucket no joint distribution can meet: the linear programme of least misses.

    The first two marginals, of RTT and of bandwidth, can always be met
    together, so that what is missed is charged to the third.
    """
    from scipy.optimize import linprog

    possible = numpy.flatnonzero(prior.ravel() > 0)
    rows = [(member.ravel()[possible] == bucket).astype(float)
            for member, known in zip(members, marginals) for bucket in range(len(known.shares))]
    names = [(known.name, known.labels[bucket], known.shares[bucket])
             for known in marginals for bucket in range(len(known.shares))]
    free = [position for position, (name, _, _) in enumerate(names) if name == "BDP"]
    slack = numpy.zeros((len(names), 2 * len(free)))
    for column, position in enumerate(free):
        slack[position, 2 * column:2 * column + 2] = (1.0, -1.0)
    solved = linprog(numpy.concatenate([numpy.zeros(len(possible)), numpy.ones(2 * len(free))]),
                     A_eq=numpy.hstack([numpy.array(rows), slack]),
                     b_eq=numpy.array([share for _, _, share in names]), method="highs")
    if solved.status != 0:
        return f"no joint distribution has these marginals ({solved.message})"
    misses = [(float(solved.x[len(possible) + 2 * column] - solved.x[len(possible) + 2 * column + 1]),
               names[position]) for column, position in enumerate(free)]
    miss, (name, label, share) = max(misses, key=lambda one: abs(one[0]))
    if abs(miss) < 1e-7:
        return f"proportional fitting did not settle in {ROUNDS} rounds"
    return (f"no joint distribution of RTT and BW has these marginals: {name} bucket {label}"
            f" asks for {share * 100:.2f} % of the responses; with the shares of RTT and BW"
            f" it can have {'at most' if miss > 0 else 'no less than'}"
            f" {(share - miss) * 100:.2f} %")


def _quantity(joint: Joint, name: str) -> Numbers:
    """RTT, BW or BDP of every cell, shape (r, b)."""
    shape = joint.share.shape
    if name == "RTT":
        return numpy.broadcast_to(joint.rtt_ms[:, None], shape)
    if name == "BW":
        return numpy.broadcast_to(joint.bandwidth_kbps[None, :], shape)
    return joint.bdp_bytes


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


def _shares_between(curve: Curve, edges: Numbers) -> Numbers:
    """The curve's share in each cell, never quite 0: the marginals may need what it lacks."""
    return numpy.maximum(numpy.diff(curve.at(edges)), 1e-9)


# Sampling ---------------------------------------------------------------------------

def sample(joint: Joint, clients: int, seed: int, evenness: float = 0.5,
           spread: Numbers | None = None) -> list[Client]:
    """Clients that stand for the whole distribution, rare buckets over-represented.

    A bucket with share s is given a part proportional to s ** (1 − evenness)
    of the clients, in the mean over the marginals: evenness 0 samples in
    proportion, 1 gives every bucket the same number. `spread`, of shape
    (r, b), says how widely results vary in each cell, in any unit: cells
    where they vary more get more clients (Neyman 1934), else a few slow
    networks decide the mean of a fast bucket. The weights undo all that:
    they sum to 1 and give every bucket of every marginal exactly its share.
    Sampling is systematic along the grid (one random start), so that a seed
    always gives the same clients and neighbours are not drawn twice before
    others are drawn once. Raises UsageError where some bucket got no client.
    """
    members = [known.bucket(_quantity(joint, known.name)) for known in joint.marginals]
    boost = numpy.zeros_like(joint.share)
    for member, known in zip(members, joint.marginals):
        shares = numpy.array(known.shares)
        part = numpy.where(shares > 0, numpy.maximum(shares, 1e-12) ** (1 - evenness), 0.0)
        ratio = numpy.divide(part / part.sum(), shares, out=numpy.zeros_like(shares),
                             where=shares > 0)
        boost += ratio[member]
    if spread is not None:
        boost *= spread
    chance = joint.share * boost
    # Back and forth along the bandwidth axis: neighbours in the list are neighbours in the grid.
    order = numpy.concatenate([numpy.arange(chance.shape[1])[::(-1) ** row] + row * chance.shape[1]
                               for row in range(chance.shape[0])])
    cumulated = numpy.cumsum(chance.ravel()[order])
    start = numpy.random.default_rng(seed).random()
    points = (numpy.arange(clients) + start) / clients * cumulated[-1]
    picks = order[numpy.searchsorted(cumulated, points, side="right")]
    weights = _calibrated(1 / boost.ravel()[picks], [member.ravel()[picks] for member in members],
                          joint.marginals)
    rows, columns = numpy.unravel_index(picks, chance.shape)
    return [Client(float(joint.rtt_ms[row]), float(joint.bandwidth_kbps[column]), float(weight))
            for row, column, weight in zip(rows, columns, weights)]


def _calibrated(weights: Numbers, members: Sequence[NDArray[numpy.intp]],
                marginals: Sequence[Marginal]) -> Numbers:
    """Weights with which the sample has the marginals exactly (raking)."""
    for member, known in zip(members, marginals):
        counts = numpy.bincount(member, minlength=len(known.shares))
        for label, share, count in zip(known.labels, known.shares, counts):
            if share > 0 and count == 0:
                raise UsageError(f"{len(weights)} clients are too few: none falls into {known.name}"
                                 f" bucket {label}")
    try:
        return _proportional_fitting(weights / weights.sum(), members, marginals)
    except UsageError:
        raise UsageError(f"{len(weights)} clients are too few to carry the shares of"
                         f" {', '.join(known.name for known in marginals)}") from None


def sample_sizes(curve: Curve, responses: int, generator: numpy.random.Generator) -> list[int]:
    """Response sizes in whole bytes, one from each of `responses` equal parts, shuffled.

    Stratified: the sample's distribution follows the curve far closer than
    independent draws would. Shape (responses,).
    """
    if responses < 1:
        raise UsageError(f"a sample of {responses} responses is none")
    shares = (numpy.arange(responses) + generator.random(responses)) / responses
    sizes = numpy.maximum(1, numpy.rint(curve.quantile(generator.permutation(shares))))
    return [int(size) for size in sizes]
