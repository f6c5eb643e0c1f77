"""Trials drawn from a population of clients and responses, as the paper's were.

A published bar is a mean over very different clients. Here each trial is one
response of one client: the client from the joint distribution of RTT and
bandwidth (lab.population), the response's size from the paper's Figure 1, and
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

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy
from numpy.typing import NDArray

from lab import population
from lab.errors import UsageError
from lab.trial import Trial

# Of server.py's response headers, without the digits of the length: the burst
# holds them too.
HEADER_BYTES = 56
SEGMENT_BYTES = 1448
MIN_RTT_MS = 1.0
# What the responses of one client differ in, in the order of their columns.
_SIZE, _EARLIER, _GAP, _QUEUEING, _BURST, _FIRST, _LOSSY = range(7)


@dataclass(frozen=True)
class Mechanism:
    """What happens to a response, beyond its size and its client's network.

    two_stages: burst and gap, or everything in one write.
    burst_segments: the burst has one of these numbers of segments, each as often.
    no_gap_share: responses whose back-end needs no time; gap_mean_ms,
        gap_shape: gamma distribution of the others' time.
    first_share: responses that are the first on their connection.
    link_factor: link rate over key bandwidth; rtt_factor: RTT without queueing
        over key RTT; queueing_bytes: mean queue, in bytes at the key bandwidth.
    lossy_share: responses that meet loss, of loss_percent per packet.
    """

    two_stages: bool = False
    burst_segments: tuple[int, ...] = (3, 4)
    no_gap_share: float = 0.0
    gap_mean_ms: float = 250.0
    gap_shape: float = 7.0
    first_share: float = 1.0
    link_factor: float = 1.0
    rtt_factor: float = 1.0
    queueing_bytes: float = 0.0
    lossy_share: float = 0.0
    loss_percent: float = 0.0


@dataclass(frozen=True)
class Population:
    """Whom to measure, and how many of them.

    datacenter: "average" or "slow", the paper's AvgDC and SlowDC.
    clients, responses: how many clients, and responses of each.
    sizes: a population of response sizes in the paper's Figure 1.
    """

    name: str
    title: str
    datacenter: str
    sizes: str
    clients: int
    responses: int
    initcwnd: tuple[int, ...]
    mechanism: Mechanism


DATACENTERS: dict[str, Callable[[], population.Joint]] = {"average": population.average_datacenter, "slow": population.slow_datacenter}


def read(tables: list[Mapping[str, Any]], where: str) -> tuple[Population, ...]:
    """Populations from the [[population]] tables of a scenario file.

    A population may say `like = "other"`: it then has the other's values and
    mechanism but for those it names itself, so that causes can be added one
    at a time. Raises UsageError naming `where`.
    """
    known: dict[str, Population] = {}
    for table in tables:
        name = str(table.get("name", ""))
        if not name or name in known:
            raise UsageError(f"{where}: a population needs a name of its own, not '{name}'")
        known[name] = _population(dict(table), known, f"{where}: population {name}")
    return tuple(known.values())


def _population(table: dict[str, Any], known: Mapping[str, Population], where: str) -> Population:
    mechanism = table.pop("mechanism", {})
    like = table.pop("like", None)
    if like is not None and like not in known:
        raise UsageError(f"{where}: like = '{like}' names no population above it")
    _only_known(table, Population, where)
    _only_known(mechanism, Mechanism, where)
    values = {key: tuple(value) if isinstance(value, list) else value
              for key, value in table.items()}
    values["mechanism"] = replace(known[like].mechanism if like else Mechanism(),
                                  **{key: tuple(value) if isinstance(value, list) else value
                                     for key, value in mechanism.items()})
    try:
        made = replace(known[like], **values) if like else Population(**values)
    except TypeError as error:
        raise UsageError(f"{where}: {error}") from error
    _check(made, where)
    return made


def _only_known(table: Mapping[str, Any], kind: type, where: str) -> None:
    names = [field.name for field in fields(kind)]
    for key in table:
        if key not in names:
            raise UsageError(f"{where}: unknown key '{key}'; there are {', '.join(names)}")


def _check(made: Population, where: str) -> None:
    if made.datacenter not in DATACENTERS:
        raise UsageError(f"{where}: datacenter is 'average' or 'slow', not '{made.datacenter}'")
    if made.clients < 1 or made.responses < 1 or not made.initcwnd:
        raise UsageError(f"{where}: clients, responses and initcwnd must not be empty or zero")
    mechanism = made.mechanism
    for name in ("no_gap_share", "first_share", "lossy_share"):
        if not 0 <= getattr(mechanism, name) <= 1:
            raise UsageError(f"{where}: {name} is a share from 0 to 1, not"
                             f" {getattr(mechanism, name)}")
    for name in ("gap_mean_ms", "gap_shape", "link_factor", "rtt_factor"):
        if not getattr(mechanism, name) > 0:
            raise UsageError(f"{where}: {name} must be above 0")
    if not 0 <= mechanism.loss_percent < 100 or mechanism.queueing_bytes < 0:
        raise UsageError(f"{where}: loss_percent is 0 to 100 and queueing_bytes 0 or more")


def trials(made: Population, like: Trial, seed: int) -> list[Trial]:
    """The trials of a population; what it does not decide comes from `like`.

    A seed always gives the same trials. The windows of one response follow
    each other, on the same network with the same losses.
    """
    generator = numpy.random.default_rng(seed)
    mechanism = made.mechanism
    joint = DATACENTERS[made.datacenter]()
    clients = population.sample(joint, made.clients, seed, spread=_spread(joint, mechanism))
    total = made.clients * made.responses
    # Stratified: each column holds one value of every 1/total of its range.
    draws = numpy.stack([generator.permutation((numpy.arange(total) + generator.random(total))
                                               / total) for _ in range(7)])
    curve = population.size_curve(made.sizes)
    sizes = numpy.maximum(curve.quantile(draws[_SIZE]), 1).astype(int)
    earlier = numpy.maximum(curve.quantile(draws[_EARLIER]), 1).astype(int)
    gaps_ms = _gaps_ms(mechanism, draws[_GAP])
    # Small seeds that are neighbours start alike in the kernel's generator.
    seeds = generator.integers(1, 2**32, total)
    drawn = []
    for number in range(total):
        client = clients[number // made.responses]
        column = draws[:, number]
        queueing_ms = (-numpy.log1p(-column[_QUEUEING]) * mechanism.queueing_bytes * 8
                       / client.bandwidth_kbps)
        rtt_ms = max(client.rtt_ms * mechanism.rtt_factor + queueing_ms, MIN_RTT_MS)
        link_kbps = client.bandwidth_kbps * mechanism.link_factor
        at_once = _burst_bytes(mechanism, column[_BURST], int(sizes[number]))
        staged = mechanism.two_stages and gaps_ms[number] > 0 and sizes[number] > at_once
        lossy = column[_LOSSY] < mechanism.lossy_share
        drawn += [replace(
            like, part=made.name, sample=number, initcwnd=initcwnd, repeat=1,
            rtt_ms=round(float(rtt_ms), 3), bandwidth_kbps=round(link_kbps, 3),
            uplink_kbps=round(link_kbps, 3), response_bytes=int(sizes[number]),
            burst_bytes=at_once if staged else 0,
            gap_ms=round(float(gaps_ms[number]), 3) if staged else 0.0,
            earlier_bytes=0 if column[_FIRST] < mechanism.first_share else int(earlier[number]),
            loss_percent=mechanism.loss_percent if lossy else 0.0,
            seed=int(seeds[number]) if lossy else 0,
            key_rtt_ms=round(client.rtt_ms, 3), key_bandwidth_kbps=round(client.bandwidth_kbps, 3),
            weight=client.weight / made.responses) for initcwnd in made.initcwnd]
    return drawn


def _gaps_ms(mechanism: Mechanism, uniform: NDArray[numpy.float64]
             ) -> NDArray[numpy.float64]:
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


def _spread(joint: population.Joint, mechanism: Mechanism) -> NDArray[numpy.float64]:
    """How widely results vary in each cell of the joint, up to a factor, shape (r, b)."""
    rtt_ms = mechanism.rtt_factor * joint.rtt_ms[:, None]
    queueing_ms = mechanism.queueing_bytes * 8 / joint.bandwidth_kbps[None, :]
    spread: NDArray[numpy.float64] = numpy.sqrt(rtt_ms + queueing_ms)
    return spread
