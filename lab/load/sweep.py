"""Sweeps: who the clients are and what is varied, expanded into runs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from lab.core.errors import UsageError
from lab.core.scenario import schema
from lab.core.scenario.quantities import QUANTITIES
from lab.core.scenario.schema import key
from lab.core.words import exact
from lab.load.trial import (FIXED, Clients, LoadTrial, distribution, mean_bytes, points_of, seed_of,
                            sizes_text)

LISTS = ("queue_bdp", "queue", "load", "response_bytes", "connections", "congestion_control",
         "paced")
AS_THEY_STAND = ("bandwidth_kbps", "rtt_ms", "sizes", "initrwnd", "access_queue_packets",
                 "servers", "duration_s", "warmup_s", "cooldown_s")
# Of 511 MB, 28 clients and 2 servers leave 100; with 40 hosts a guest stands still.
MOST_HOSTS = 30
FULL_PACKET_BYTES = 1500  # of IP: what the deck counts a bandwidth-delay product in
SHARE_TOLERANCE = 1e-6

Window = tuple[tuple[int, float], ...]  # a mix of (initcwnd, share)


def window_name(window: Window) -> str:
    """"10", "3+10" for equal shares, "3*0.9+10*0.1" for others."""
    even = all(abs(share - window[0][1]) < SHARE_TOLERANCE for _, share in window)
    return "+".join(f"{initcwnd}" if even else f"{initcwnd}*{exact(share)}"
                    for initcwnd, share in window)


def _mix(mix: Any, where: str) -> Window:
    if not isinstance(mix, list) or not mix or not all(
            isinstance(part, list) and len(part) == 2 for part in mix):
        raise UsageError(f"{where}: a mix has to be a list of [initial window, share]")
    parts = tuple((int(QUANTITIES["initcwnd"].check(initcwnd, where)),
                   QUANTITIES["share"].check(share, where)) for initcwnd, share in mix)
    _check_sum([share for _, share in parts], "the mix", where)
    return parts


def _links(rows: Any, where: str) -> tuple[Clients, ...]:
    if not isinstance(rows, list) or not rows or not all(
            isinstance(row, list) and len(row) == 4 for row in rows):
        raise UsageError(f"{where} has to be a list of [share, rtt_ms, kbit/s, loss %]")
    links = tuple(Clients(0, QUANTITIES["share"].check(share, where),
                          QUANTITIES["rtt_ms"].check(rtt_ms, where),
                          QUANTITIES["bandwidth_kbps"].check(kbps, where) if kbps else 0.0,
                          QUANTITIES["loss_percent"].check(loss_percent, where))
                  for share, rtt_ms, kbps, loss_percent in rows)
    _check_sum([link.share for link in links], "the clients", where)
    return links


def _sizes(value: Any, where: str) -> str:
    """The name of a distribution, or its points."""
    return schema.text(value, where) if isinstance(value, str) else sizes_text(
        points_of(value, where))


def _check_sum(shares: Sequence[float], of: str, where: str) -> None:
    if abs(sum(shares) - 1) > SHARE_TOLERANCE:
        raise UsageError(f"{where}: the shares of {of} {' + '.join(f'{each:g}' for each in shares)}"
                         f" sum to {sum(shares):g}, not to 1")


@dataclass(frozen=True)
class Population:
    """Who the clients are."""

    name: str
    clients: tuple[Clients, ...] = key(reader=_links)


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Runs in every combination of the lists; see the module's first lines.

    links: the clients, still without a window, as `population` or `clients` says.
    """

    name: str = key(reader=schema.file_name)
    bandwidth_kbps: float
    rtt_ms: float
    queue_bdp: tuple[float, ...]
    queue: tuple[Literal["droptail", "fq_codel", "cake"], ...]
    load: tuple[float, ...]
    response_bytes: tuple[int, ...]
    sizes: str = key(FIXED, reader=_sizes)
    connections: tuple[int, ...]
    congestion_control: tuple[str, ...] = key(
        reader=schema.values(schema.number("congestion_control"), "names"))
    paced: tuple[bool, ...]
    initcwnd: tuple[int, ...] = key(
        (), reader=schema.values(schema.number("initcwnd"), empty=True))
    mixes: tuple[Window, ...] = key((), reader=schema.values(_mix, "mixes", empty=True))
    initrwnd: int
    population: str = ""
    access_queue_packets: int = 50
    clients: int | None = None
    servers: int
    duration_s: float
    warmup_s: float
    cooldown_s: float
    repeat: int
    links: tuple[Clients, ...] = key((), absent=True)

    def check(self, where: str) -> None:
        if self.warmup_s + self.cooldown_s >= self.duration_s:
            raise UsageError(f"{where}: warmup_s and cooldown_s leave nothing of"
                             f" {self.duration_s:g} s")
        if self.sizes != FIXED:
            distribution(self.sizes)  # raises where there is none of this name
        if not self.windows:
            raise UsageError(f"{where}: has no initcwnd and no mixes")

    @property
    def windows(self) -> tuple[Window, ...]:
        """Each window alone, then the mixes."""
        return (*(((initcwnd, 1.0),) for initcwnd in self.initcwnd), *self.mixes)

    def linked(self, populations: Mapping[str, tuple[Clients, ...]], where: str) -> Sweep:
        """The sweep with its clients' links. Raises UsageError."""
        if self.population:
            links = populations[schema.one_of(self.population, list(populations),
                                              f"{where}: population")]
        elif self.clients:
            links = (Clients(0, 1 / self.clients, self.rtt_ms),) * self.clients
        else:
            raise UsageError(f"{where}: clients is missing")
        hosts = len(links) * max(map(len, self.windows)) + self.servers
        if hosts > MOST_HOSTS:
            raise UsageError(f"{where}: {hosts} hosts are asked for; a guest has memory for"
                             f" {MOST_HOSTS}")
        return replace(self, links=links)

    @property
    def count(self) -> int:
        """How many trials there are."""
        return (math.prod(len(getattr(self, name)) for name in LISTS)
                * self.repeat * len(self.windows))

    def trials(self, scenario: str, seed: int) -> Iterator[LoadTrial]:
        """Every window of a cell in turn, under the same arrivals."""
        for values in itertools.product(*(getattr(self, name) for name in LISTS)):
            for repeat in range(1, self.repeat + 1):
                for window in self.windows:
                    yield self._trial(scenario, dict(zip(LISTS, values)), window, repeat,
                                      seed_of(seed, repeat))

    def _trial(self, scenario: str, cell: dict[str, Any], window: Window, repeat: int,
               seed: int) -> LoadTrial:
        hosts = [replace(link, initcwnd=initcwnd, share=part * link.share)
                 for link in self.links for initcwnd, part in window]
        if self.sizes != FIXED:
            cell = {**cell, "response_bytes": round(mean_bytes(distribution(self.sizes)))}
        return LoadTrial(
            **cell, **{name: getattr(self, name) for name in AS_THEY_STAND}, scenario=scenario,
            part=self.name, window=window_name(window), clients="+".join(map(str, hosts)),
            queue_packets=self.queue_packets(cell["queue_bdp"]), repeat=repeat, seed=seed)

    def queue_packets(self, queue_bdp: float) -> int:
        """A part of the bandwidth-delay product in full packets, one at least."""
        bdp_bytes = self.bandwidth_kbps * self.rtt_ms / 8
        packets = max(1, round(queue_bdp * bdp_bytes / FULL_PACKET_BYTES))
        return int(QUANTITIES["queue_packets"].check(packets, f"sweep {self.name!r}: queue_bdp"))
