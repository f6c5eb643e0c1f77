"""Trials drawn from a population of clients and responses, as the paper's were.

A published bar is a mean over very different clients. Here each trial is one
response of one client: the client from the joint distribution of RTT and
bandwidth (joint.py), the response's size from the paper's Figure 1, and
what happens to it from a few mechanisms, each with parameters that are the
same for everybody:

- **two stages** (paper §4.1): a burst of header packets at once, the body when
  the back-end has answered, after a gap that is a distribution;
- **persistent connections**: only a share of the responses is the first on its
  connection; the others find the window that an earlier response has left;
- **link and key**: the paper files a response under the *average throughput*
  of the client's /24 network and under its *minimum* RTT. Its links are faster than
  the one by a factor and a scatter, the RTT is longer than the other by a factor and
  by queueing, which is exponential with a mean in bytes of the key bandwidth;
- **loss**: a share of the responses meets random loss, and the bottleneck's
  queue drops what it cannot hold;
- **two weeks**: the paper measured each window in a week of its own, and the
  baseline's week has more far and slow clients and longer back-end times, by an
  exponent each. That changes no trial, only what it stands for.

The same draw serves every initial window: what differs between two windows is
the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy
from numpy.typing import NDArray

from lab.core.errors import UsageError
from lab.core.scenario.curves import Numbers, size_curve
from lab.core.scenario.quantities import QUANTITIES
from lab.core.scenario.scenario_file import check_count
from lab.fetches.figures.joint import DATACENTERS, Joint, near, scaled_to
from lab.fetches.scenario.population import (Cause, Mechanism, Population, Populations,
                                                steps)
from lab.fetches.scenario.trial import Trial

Counts = NDArray[numpy.int64]

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


@dataclass(frozen=True)
class Drawn:
    """The responses of a population, each as it meets the mechanism; arrays of shape (n,).

    key_rtt_ms, key_bandwidth_kbps: what the paper files it under; weight: the
    share of all responses that it stands for, baseline_weight: in the
    baseline's week; both sum to 1. link_kbps: of the bottleneck, both ways.
    burst_bytes, gap_ms, earlier_bytes, loss_percent, seed: as of a Trial.
    """

    key_rtt_ms: Numbers
    key_bandwidth_kbps: Numbers
    weight: Numbers
    baseline_weight: Numbers
    rtt_ms: Numbers
    link_kbps: Numbers
    response_bytes: Counts
    earlier_bytes: Counts
    burst_bytes: Counts
    gap_ms: Numbers
    loss_percent: Numbers
    seed: Counts


def every_trial(drawn: Populations, seed: int) -> list[Trial]:
    """Those of all populations of a scenario. Raises UsageError."""
    check_count(sum(population.explained_at_most(drawn.steps)
                    for population in drawn.populations), "trials of causes", many=True)
    return [trial for population in drawn.populations
            for trial in trials(population, drawn.like, seed, drawn.steps)]


def trials(made: Population, like: Trial, seed: int, causes: Sequence[Cause] = ()) -> list[Trial]:
    """The trials of a population; what it does not decide comes from `like`.

    A seed always gives the same trials. The windows of one response follow
    each other, on the same network with the same losses. Those of the causes
    come last. Raises UsageError where the mechanism draws what no network is.
    """
    drawn = responses(made, seed)
    every = numpy.arange(len(drawn.weight))
    trials = _trials(made, made.name, drawn, every, _under(like, made.mechanism))
    if not made.explained:
        return trials
    chosen = every[every % made.responses < made.explained]
    before: Drawn | None = None
    for cause, mechanism in zip(causes, steps(made.mechanism, causes)):
        step, under = responses(made, seed, mechanism), _under(like, mechanism)
        if not (changed(drawn, step) | (mechanism.queue_packets
                                        != made.mechanism.queue_packets)).any():
            break  # what follows changes only what responses stand for
        rows = chosen if before is None else chosen[changed(before, step)[chosen]]
        trials += _trials(made, step_part(made, cause), step, rows, under)
        before = step
    return trials


def step_part(made: Population, cause: Cause) -> str:
    """The part of the trials that were measured for a step of the causes."""
    return f"{made.name}-{cause.name}"


def changed(one: Drawn, other: Drawn) -> NDArray[numpy.bool_]:
    """Which responses meet anything else, shape (n,); the queue is the same for all."""
    differ: NDArray[numpy.bool_] = numpy.any([
        getattr(one, name) != getattr(other, name) for name in (
            "rtt_ms", "link_kbps", "earlier_bytes", "burst_bytes", "gap_ms", "loss_percent")],
        axis=0)
    return differ


def _under(like: Trial, mechanism: Mechanism) -> Trial:
    return replace(like, queue_packets=mechanism.queue_packets or like.queue_packets)


def _trials(made: Population, part: str, drawn: Drawn, numbers: Counts, like: Trial
            ) -> list[Trial]:
    """Under every window, of the responses of these numbers."""
    trials = []
    columns = {field.name: getattr(drawn, field.name).tolist() for field in fields(Drawn)}
    for number in numbers.tolist():
        row = {name: values[number] for name, values in columns.items()}
        baseline_weight, link_kbps = row.pop("baseline_weight"), row.pop("link_kbps")
        response = replace(like, part=part, sample=number, repeat=1, bandwidth_kbps=link_kbps,
                           uplink_kbps=link_kbps, **row)
        for name in _DRAWN:
            QUANTITIES[name].check(getattr(response, name),
                                   f"population {part!r}: response {number}")
        trials += [replace(response, initcwnd=initcwnd,
                          weight=baseline_weight if place == 0 else response.weight)
                  for place, initcwnd in enumerate(made.initcwnd)]
    return trials


def responses(made: Population, seed: int, mechanism: Mechanism | None = None) -> Drawn:
    """The responses of a population. A seed always gives the same. Raises UsageError.

    mechanism: another one for the same clients and responses, which then stand
    for other shares if RTT and bandwidth go together otherwise.
    """
    generator = numpy.random.default_rng(seed)
    joint, mechanism = _joint(made, made.mechanism), mechanism or made.mechanism
    clients = sample(joint, made.clients, seed, _spread(joint, made.mechanism),
                     _joint(made, mechanism))
    total = made.clients * made.responses
    draws = numpy.stack([_stratified(generator, total) for _ in range(7)])
    key_rtt_ms, key_kbps, weight = (numpy.repeat(values, made.responses) for values in zip(*(
        (client.rtt_ms, client.bandwidth_kbps, client.weight) for client in clients)))
    weight = weight / made.responses
    curve = size_curve(made.sizes)
    sizes, earlier = (numpy.maximum(curve.quantile(draws[column]), 1).astype(int)
                      for column in (_SIZE, _EARLIER))
    gaps_ms = _gaps_ms(mechanism, draws[_GAP])
    # Small seeds that are neighbours start alike in the kernel's generator.
    seeds = generator.integers(1, 2**32, total)
    queueing_ms = (-numpy.log1p(-draws[_QUEUEING]) * mechanism.queueing_bytes * 8 / key_kbps)
    at_once = _burst_bytes(mechanism, draws[_BURST], sizes)
    staged = (gaps_ms > 0) & (sizes > at_once) & mechanism.two_stages
    lossy = draws[_LOSSY] < mechanism.lossy_share
    gaps_ms = numpy.where(staged, gaps_ms.round(3), 0.0)
    lean = weight * baseline_lean(mechanism, key_rtt_ms, key_kbps, gaps_ms)
    return Drawn(
        key_rtt_ms=key_rtt_ms.round(3), key_bandwidth_kbps=key_kbps.round(3), weight=weight,
        baseline_weight=weight if side_by_side(mechanism) else lean / lean.sum(),
        rtt_ms=numpy.maximum(key_rtt_ms * mechanism.rtt_factor + queueing_ms,
                             MIN_RTT_MS).round(3),
        link_kbps=_link_kbps(mechanism, key_kbps, generator), response_bytes=sizes,
        earlier_bytes=numpy.where(draws[_FIRST] < mechanism.first_share, 0, earlier),
        burst_bytes=numpy.where(staged, at_once, 0),
        gap_ms=gaps_ms,
        loss_percent=numpy.where(lossy, mechanism.loss_percent, 0.0),
        seed=numpy.where(lossy, seeds, 0))


def _stratified(generator: numpy.random.Generator, count: int) -> Numbers:
    """One value of every 1/count between 0 and 1, in any order, shape (count,)."""
    values: Numbers = generator.permutation((numpy.arange(count) + generator.random(count))
                                            / count)
    return values


def side_by_side(mechanism: Mechanism) -> bool:
    """Whether all windows were measured in the same week."""
    return not (mechanism.baseline_week or mechanism.baseline_gap)


def baseline_lean(mechanism: Mechanism, rtt_ms: Numbers, bandwidth_kbps: Numbers,
                  gap_ms: Numbers) -> Numbers:
    """How much more often far and slow clients, and long back-end times, are in its week.

    Up to a factor; all of shape (n,). gap_ms: 0 where there is none, which counts as the mean.
    """
    gap = numpy.where(gap_ms > 0, gap_ms / mechanism.gap_mean_ms, 1.0)
    lean: Numbers = ((rtt_ms / bandwidth_kbps) ** mechanism.baseline_week
                     * gap ** mechanism.baseline_gap)
    return lean


def _link_kbps(mechanism: Mechanism, key_kbps: Numbers, random: numpy.random.Generator) -> Numbers:
    """The rate of each response's link, shape (n,): log-normal about its key's."""
    from scipy.special import ndtri  # the quantiles of a normal distribution
    scatter = numpy.exp(mechanism.link_spread * ndtri(_stratified(random, len(key_kbps))))
    rates: Numbers = (key_kbps * mechanism.link_factor * scatter).round(3)
    return rates


def _gaps_ms(mechanism: Mechanism, uniform: Numbers) -> Numbers:
    """The back-end's time of each response, shape (n,); 0 where it needs none."""
    from scipy.stats import gamma  # slow to import, and only needed here
    share = mechanism.no_gap_share
    rest = numpy.clip((uniform - share) / max(1 - share, 1e-12), 0, 1 - 1e-9)
    times = gamma.ppf(rest, mechanism.gap_shape, scale=mechanism.gap_mean_ms / mechanism.gap_shape)
    return numpy.where(uniform < share, 0.0, times)


def _burst_bytes(mechanism: Mechanism, uniform: Numbers, response_bytes: Counts) -> Counts:
    """Body bytes of bursts that fill their segments, headers included, shape (n,)."""
    choices = numpy.array(mechanism.burst_segments)
    headers = HEADER_BYTES + numpy.char.str_len(response_bytes.astype(str))
    filled: Counts = (choices[(uniform * len(choices)).astype(int)] * SEGMENT_BYTES - headers)
    return filled


def _joint(made: Population, mechanism: Mechanism) -> Joint:
    joint = DATACENTERS[made.datacenter](mechanism.far_and_slow, mechanism.very_far_and_slow)
    return near(joint, made.rtt_at_most_ms) if made.rtt_at_most_ms else joint


def _spread(joint: Joint, mechanism: Mechanism) -> Numbers:
    """How widely results vary in each cell of the joint, up to a factor, shape (r, b)."""
    rtt_ms = mechanism.rtt_factor * joint.rtt_ms[:, None]
    queueing_ms = mechanism.queueing_bytes * 8 / joint.bandwidth_kbps[None, :]
    spread: Numbers = numpy.sqrt(rtt_ms + queueing_ms)
    return spread


# Sampling clients -------------------------------------------------------------------

def sample(joint: Joint, clients: int, seed: int, spread: Numbers,
           stands_for: Joint | None = None) -> list[Client]:
    """Clients that stand for the whole distribution, rare buckets over-represented.

    A bucket with share s is given a part proportional to √s of the clients,
    in the mean over the marginals, half way between in proportion and the same
    number for every bucket. `spread`, of shape (r, b), says how widely results
    vary in each cell, in any unit: cells where they vary more get more clients
    (Neyman 1934), else a few slow networks decide the mean of a fast bucket.
    The weights undo all that: they sum to 1 and give every bucket of every
    marginal exactly its share. Sampling is systematic along the grid (one
    random start), so that a seed always gives the same clients and neighbours
    are not drawn twice before others are drawn once. stands_for: what the
    weights make of them, if not of `joint`. Raises UsageError where some bucket
    got no client.
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
    wanted = stands_for or joint
    weights = wanted.share.ravel()[picks] / joint.share.ravel()[picks] / boost.ravel()[picks]
    try:
        weights = scaled_to(weights / weights.sum(),
                            [member.ravel()[picks] for member in wanted.members],
                            wanted.marginals)
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
