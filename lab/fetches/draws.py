"""Trials drawn from a population of clients and responses, as the paper's were.

A published bar is a mean over very different clients. Here each trial is one
response of one client: the client from the joint distribution of RTT and
bandwidth (lab.fetches.joint), the response's size from the paper's Figure 1, and
what happens to it from a few mechanisms, each with parameters that are the
same for everybody:

- **two stages** (paper §4.1): a burst of header packets at once, the body when
  the back-end has answered, after a gap that is a distribution;
- **persistent connections**: only a share of the responses is the first on its
  connection; the others find the window that an earlier response has left;
- **link and key**: the paper files a response under the *average throughput*
  of the client's /24 network and under its *minimum* RTT. The link is faster
  than the one by a factor, the RTT longer than the other by a factor and by
  queueing, which is exponential with a mean in bytes of the key bandwidth;
- **loss**: a share of the responses meets random loss.

The same draw serves every initial window: what differs between two windows is
the window.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy

from lab.core.curves import Numbers, size_curve
from lab.core.errors import UsageError
from lab.core.quantities import QUANTITIES
from lab.fetches.joint import DATACENTERS, Joint, scaled_to
from lab.fetches.population import Mechanism, Population
from lab.fetches.trial import Trial

# Of server.py's response headers, without the digits of the length: the burst
# holds them too.
HEADER_BYTES = 56
SEGMENT_BYTES = 1448
MIN_RTT_MS = 1.0
_DRAWN = ("rtt_ms", "bandwidth_kbps", "gap_ms", "loss_percent")  # what may leave its range
# What the responses of one client differ in, in the order of their columns.
_SIZE, _EARLIER, _GAP, _QUEUEING, _BURST, _FIRST, _LOSSY = range(7)


@dataclass(frozen=True)
class Client:
    """A network that stands for `weight` of all responses."""

    rtt_ms: float
    bandwidth_kbps: float
    weight: float


def trials(made: Population, like: Trial, seed: int) -> list[Trial]:
    """The trials of a population; what it does not decide comes from `like`.

    A seed always gives the same trials. The windows of one response follow
    each other, on the same network with the same losses. Raises UsageError
    where the mechanism draws what no network is.
    """
    generator = numpy.random.default_rng(seed)
    joint = DATACENTERS[made.datacenter]()
    clients = sample(joint, made.clients, seed, _spread(joint, made.mechanism))
    total = made.clients * made.responses
    # Stratified: each column holds one value of every 1/total of its range.
    draws = numpy.stack([generator.permutation((numpy.arange(total) + generator.random(total))
                                               / total) for _ in range(7)])
    curve = size_curve(made.sizes)
    sizes, earlier = (numpy.maximum(curve.quantile(draws[column]), 1).astype(int)
                      for column in (_SIZE, _EARLIER))
    gaps_ms = _gaps_ms(made.mechanism, draws[_GAP])
    # Small seeds that are neighbours start alike in the kernel's generator.
    seeds = generator.integers(1, 2**32, total)
    drawn = []
    for number in range(total):
        client = clients[number // made.responses]
        response = replace(
            like, part=made.name, sample=number, repeat=1,
            response_bytes=int(sizes[number]), earlier_bytes=int(earlier[number]),
            gap_ms=float(gaps_ms[number]), seed=int(seeds[number]),
            key_rtt_ms=round(client.rtt_ms, 3), key_bandwidth_kbps=round(client.bandwidth_kbps, 3),
            weight=client.weight / made.responses)
        met = _met(response, made.mechanism, client, draws[:, number])
        for name in _DRAWN:
            QUANTITIES[name].check(getattr(met, name),
                                   f"population {made.name!r}: response {number}")
        drawn += [replace(met, initcwnd=initcwnd) for initcwnd in made.initcwnd]
    return drawn


def _met(response: Trial, mechanism: Mechanism, client: Client, column: Numbers) -> Trial:
    """A response as it meets the mechanism: what it is spared falls away.

    column: its draws, 0 to 1, shape (7,).
    """
    queueing_ms = (-numpy.log1p(-column[_QUEUEING]) * mechanism.queueing_bytes * 8
                   / client.bandwidth_kbps)
    rtt_ms = max(client.rtt_ms * mechanism.rtt_factor + queueing_ms, MIN_RTT_MS)
    link_kbps = round(client.bandwidth_kbps * mechanism.link_factor, 3)
    at_once = _burst_bytes(mechanism, column[_BURST], response.response_bytes)
    staged = mechanism.two_stages and response.gap_ms > 0 and response.response_bytes > at_once
    lossy = column[_LOSSY] < mechanism.lossy_share
    return replace(
        response, rtt_ms=round(float(rtt_ms), 3), bandwidth_kbps=link_kbps, uplink_kbps=link_kbps,
        burst_bytes=at_once if staged else 0,
        gap_ms=round(response.gap_ms, 3) if staged else 0.0,
        earlier_bytes=0 if column[_FIRST] < mechanism.first_share else response.earlier_bytes,
        loss_percent=mechanism.loss_percent if lossy else 0.0,
        seed=response.seed if lossy else 0)


def _gaps_ms(mechanism: Mechanism, uniform: Numbers) -> Numbers:
    """The back-end's time of each response, shape (n,); 0 where it needs none."""
    from scipy.stats import gamma  # slow to import, and only needed here
    share = mechanism.no_gap_share
    rest = numpy.clip((uniform - share) / max(1 - share, 1e-12), 0, 1 - 1e-9)
    times = gamma.ppf(rest, mechanism.gap_shape, scale=mechanism.gap_mean_ms / mechanism.gap_shape)
    return numpy.where(uniform < share, 0.0, times)


def _burst_bytes(mechanism: Mechanism, uniform: float, response_bytes: int) -> int:
    """Body bytes of a burst that fills its segments, headers included."""
    choices = mechanism.burst_segments
    headers = HEADER_BYTES + len(str(response_bytes))
    return choices[int(uniform * len(choices))] * SEGMENT_BYTES - headers


def _spread(joint: Joint, mechanism: Mechanism) -> Numbers:
    """How widely results vary in each cell of the joint, up to a factor, shape (r, b)."""
    rtt_ms = mechanism.rtt_factor * joint.rtt_ms[:, None]
    queueing_ms = mechanism.queueing_bytes * 8 / joint.bandwidth_kbps[None, :]
    spread: Numbers = numpy.sqrt(rtt_ms + queueing_ms)
    return spread


# Sampling clients -------------------------------------------------------------------

def sample(joint: Joint, clients: int, seed: int, spread: Numbers) -> list[Client]:
    """Clients that stand for the whole distribution, rare buckets over-represented.

    A bucket with share s is given a part proportional to √s of the clients,
    in the mean over the marginals, half way between in proportion and the same
    number for every bucket. `spread`, of shape (r, b), says how widely results
    vary in each cell, in any unit: cells where they vary more get more clients
    (Neyman 1934), else a few slow networks decide the mean of a fast bucket.
    The weights undo all that: they sum to 1 and give every bucket of every
    marginal exactly its share. Sampling is systematic along the grid (one
    random start), so that a seed always gives the same clients and neighbours
    are not drawn twice before others are drawn once. Raises UsageError where
    some bucket got no client.
    """
    boost = spread * _even(joint)
    chance = joint.share * boost
    # Back and forth along the bandwidth axis: neighbours in the list are neighbours in the grid.
    order = numpy.concatenate([numpy.arange(chance.shape[1])[::(-1) ** row] + row * chance.shape[1]
                               for row in range(chance.shape[0])])
    cumulated = numpy.cumsum(chance.ravel()[order])
    start = numpy.random.default_rng(seed).random()
    points = (numpy.arange(clients) + start) / clients * cumulated[-1]
    picks = order[numpy.searchsorted(cumulated, points, side="right")]
    weights = 1 / boost.ravel()[picks]
    try:
        weights = scaled_to(weights / weights.sum(),
                            [member.ravel()[picks] for member in joint.members], joint.marginals)
    except UsageError as error:
        raise UsageError(f"{clients} clients are too few: {error}") from None
    rows, columns = numpy.unravel_index(picks, chance.shape)
    return [Client(float(joint.rtt_ms[row]), float(joint.bandwidth_kbps[column]), float(weight))
            for row, column, weight in zip(rows, columns, weights)]


def _even(joint: Joint) -> Numbers:
    """How much more often each cell is drawn than in proportion, up to a factor, shape (r, b)."""
    boost = numpy.zeros_like(joint.share)
    for member, known in zip(joint.members, joint.marginals):
        shares = numpy.array(known.shares)
        part = numpy.where(shares > 0, numpy.maximum(shares, 1e-12) ** 0.5, 0.0)
        boost += numpy.divide(part / part.sum(), shares, out=numpy.zeros_like(shares),
                              where=shares > 0)[member]
    return boost
