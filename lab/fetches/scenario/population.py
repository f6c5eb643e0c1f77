"""Populations: whom to measure and what happens to them, as scenario files say it.

A published bar is a mean over very different clients. A population draws
clients and responses as the paper's were (lab.fetches.features.population.draws).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from lab.core.errors import UsageError
from lab.core.scenario import schema
from lab.core.scenario.quantity import Quantity
from lab.core.scenario.schema import key
from lab.fetches.scenario.trial import Trial

_SHARE = Quantity("share", "a share", lowest=0, highest=1).check
_FACTOR = Quantity("factor", "a factor", lowest=0.001, highest=1e6).check
_NONE_OR_MORE = Quantity("count", "a number", lowest=0, highest=1e6, whole=True).check
_EXPONENT = Quantity("exponent", "an exponent", lowest=-10, highest=10).check
_COUNT = Quantity("count", "a number", lowest=1, highest=1e6, whole=True).check


@dataclass(frozen=True)
class Mechanism:
    """What happens to a response, beyond its size and its client's network.

    two_stages: burst and gap, or everything in one write.
    burst_segments: the burst has one of these numbers of segments, each as often.
    no_gap_share: responses whose back-end needs no time; gap_mean_ms,
        gap_shape: gamma distribution of the others' time.
    first_share: responses that are the first on their connection.
    link_factor: link rate over key bandwidth, in the middle; link_spread: how far links of
        one key differ, the standard deviation of the logarithm; rtt_factor: RTT without queueing
        over key RTT; queueing_bytes: mean queue, in bytes at the key bandwidth.
    lossy_share: responses that meet loss, of loss_percent per packet.
    queue_packets: what the bottleneck's drop-tail queue holds; 0: as in [defaults].
    far_and_slow, very_far_and_slow: how much RTT and bandwidth go together beyond the
        published shares, which stay exact; the second the farther and slower the more
        (joint.dependence).
    baseline_week, baseline_gap: the first window was measured in a week of its own, whose
        responses lean to the far and slow, and to long back-end times: to these
        powers (draws.baseline_lean). 0: all windows measured side by side.
    """

    two_stages: bool = False
    burst_segments: tuple[int, ...] = key((3, 4), reader=schema.values(_COUNT, distinct=False))
    no_gap_share: float = key(0.0, reader=_SHARE)
    gap_mean_ms: float = key(250.0, reader=Quantity("gap_mean_ms", "a mean", "ms",
                                                    0.001, 60_000).check)
    gap_shape: float = key(7.0, reader=_FACTOR)
    first_share: float = key(1.0, reader=_SHARE)
    link_factor: float = key(1.0, reader=_FACTOR)
    link_spread: float = key(0.0, reader=Quantity("spread", "a spread", lowest=0, highest=5).check)
    rtt_factor: float = key(1.0, reader=_FACTOR)
    queueing_bytes: float = key(0.0, reader=Quantity("queueing_bytes", "a queue", "bytes",
                                                     0, 1e9).check)
    lossy_share: float = key(0.0, reader=_SHARE)
    loss_percent: float = 0.0
    queue_packets: int = key(0, reader=_NONE_OR_MORE)
    far_and_slow: float = key(0.0, reader=_EXPONENT)
    very_far_and_slow: float = key(0.0, reader=_EXPONENT)
    baseline_week: float = key(0.0, reader=_EXPONENT)
    baseline_gap: float = key(0.0, reader=_EXPONENT)


@dataclass(frozen=True)
class Cause:
    """A step from the clean mechanism to a population's own. adds: parameters that come into force.

    The clean one sends in one write, on a connection of its own, over a link as
    fast as the key, and loses nothing.
    """

    name: str = key(reader=schema.file_name)
    title: str = key()
    adds: tuple[str, ...] = key(reader=schema.values(
        schema.word([field.name for field in fields(Mechanism)]), "names", empty=True))


def steps(full: Mechanism, causes: Sequence[Cause]) -> list[Mechanism]:
    """The mechanism after each cause: the parameters added so far, the others without effect."""
    made, values = [], {}
    for cause in causes:
        values.update({name: getattr(full, name) for name in cause.adds})
        made.append(Mechanism(**values))
    return made


@dataclass(frozen=True)
class Population:
    """Whom to measure, and how many of them.

    datacenter: the paper's AvgDC or SlowDC.
    clients, responses: how many clients, and responses of each; full_clients:
        how many in the large sample (--sample full), 0: as many.
    explained: so many responses of each client are also measured with the
        causes added one at a time.
    sizes: a population of response sizes in the paper's Figure 1.
    rtt_at_most_ms: none of the clients is farther away; 0: no limit.
    initcwnd: the first is the baseline (see Mechanism.baseline_week).
    """

    name: str = key(reader=schema.file_name)
    title: str = key()
    datacenter: Literal["average", "slow"] = key()
    sizes: str = key()
    clients: int = key(reader=_COUNT)
    responses: int = key(reader=_COUNT)
    initcwnd: tuple[int, ...] = key()
    full_clients: int = key(0, reader=_NONE_OR_MORE)
    explained: int = key(0, reader=_NONE_OR_MORE)
    rtt_at_most_ms: float = key(0.0, quantity="rtt_ms")
    mechanism: Mechanism = Mechanism()

    @property
    def count(self) -> int:
        """How many trials there are, without those of causes."""
        return self.clients * self.responses * len(self.initcwnd)

    def explained_at_most(self, causes: Sequence[Cause]) -> int:
        """How many trials of causes there may be besides."""
        return self.clients * self.explained * len(self.initcwnd) * len(causes)

    @property
    def in_full(self) -> Population:
        """The same, with the clients of the large sample."""
        return replace(self, clients=self.full_clients or self.clients)

    def check(self, where: str) -> None:
        """Raises UsageError where more responses are to be explained than there are."""
        if self.explained > self.responses:
            raise UsageError(f"{where}: explained: {self.explained} of {self.responses} responses")


@dataclass(frozen=True)
class Populations:
    """The populations of a scenario, and the steps by which one of them is explained.

    like: what their trials have that is not drawn.
    """

    populations: tuple[Population, ...]
    steps: tuple[Cause, ...]
    like: Trial

    def population(self, name: str) -> Population | None:
        return next((population for population in self.populations if population.name == name),
                    None)

    def windows(self, sweep: str) -> tuple[int, ...]:
        """The initial windows of a population, by its name. Raises KeyError."""
        return {population.name: population.initcwnd for population in self.populations}[sweep]

    @property
    def count(self) -> int:
        """How many trials there are, without those of causes."""
        return sum(population.count for population in self.populations)

    @property
    def in_full(self) -> Populations | None:
        """The same with their large samples, None where there is none."""
        if not any(population.full_clients for population in self.populations):
            return None
        return replace(self, populations=tuple(population.in_full
                                               for population in self.populations))

    def under(self, initcwnd: tuple[int, ...]) -> Populations:
        """The same, under other initial windows."""
        return replace(self, populations=tuple(replace(population, initcwnd=initcwnd)
                                               for population in self.populations))

    @property
    def explained(self) -> Population | None:
        """The population whose mechanism is added cause by cause."""
        return next((population for population in self.populations if population.explained), None)


def read(raw: Mapping[str, Any], where: str) -> tuple[Population, ...]:
    """Populations from the [[population]] tables of a scenario file.

    A population may say `like = "other"`: it then has the other's values and
    mechanism but for those it names itself, so that causes can be added one
    at a time. Raises UsageError naming `where`.
    """
    read_so_far: dict[Any, dict[str, Any]] = {}
    made: list[Population] = []
    for table, place in schema.tables(raw, "population", where,
                                      known=(*schema.keys_of(Population), "like")):
        like = table.get("like")
        if like is not None and (not isinstance(like, str) or like not in read_so_far):
            raise UsageError(f"{place}: like = {like!r} names no population above it")
        other = read_so_far.get(like, {})
        values = {name: value for name, value in {**other, **table}.items()
                  if name != "like" and (name != "name" or name in table)}
        values["mechanism"] = {**other.get("mechanism", {}),
                               **schema.table(table, "mechanism", place)}
        made.append(schema.read(Population, values, place))
        read_so_far[made[-1].name] = values
    return tuple(made)


def check_causes(causes: Sequence[Cause], populations: Sequence[Population], where: str) -> None:
    """Raises UsageError unless the last step is the mechanism of each population explained."""
    for population in populations:
        if not population.explained:
            continue
        if not causes or steps(population.mechanism, causes)[-1] != population.mechanism:
            lacking = [name for name in (field.name for field in fields(Mechanism))
                       if getattr(population.mechanism, name) != getattr(Mechanism(), name)
                       and not any(name in cause.adds for cause in causes)]
            raise UsageError(f"{where}: population {population.name!r} is to be explained, and no"
                             f" [[step]] adds {', '.join(lacking)}")


def percentile_of(label: str) -> float | None:
    """0.5 for "p50", None for "mean". Raises UsageError for what is neither."""
    if label == "mean":
        return None
    number = re.fullmatch(r"p(\d+(?:\.\d+)?)", label)
    if not number or not 0 < float(number[1]) < 100:
        raise UsageError(f"'{label}' is no percentile: mean, or p and a number between 0 and 100")
    return float(number[1]) / 100
