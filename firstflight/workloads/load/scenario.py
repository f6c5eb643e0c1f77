"""Load scenarios: TOML files of kind "load", and the runs that they expand into.

docs/examples/load.toml describes a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal

from firstflight.base.errors import UsageError
from firstflight.base.words import format_lossless
from firstflight.findings.quantities import QUANTITIES
from firstflight.parameters import default
from firstflight.runs import schema
from firstflight.runs.kinds import NOTHING, Overrides
from firstflight.runs.scenario_file import HEAD_KEYS, ScenarioFile, check_count
from firstflight.runs.schema import key
from firstflight.scenario import grammar, published
from firstflight.scenario.claims import ALIKE, LESS, MORE, Claim
from firstflight.scenario.figure_kinds import ANY, Figure, FigureKind
from firstflight.setting.kernels import KERNEL
from firstflight.setting.seeds import seed_for
from firstflight.workloads.load.record import PERCENTILES, LoadRecord, percentile_column
from firstflight.workloads.load.trial import (DROPTAIL, FIXED, Clients, LoadTrial, distribution,
                                              mean_bytes, points_of, sizes_text)

AS_THEY_STAND = ("bandwidth_kbps", "rtt_ms", "sizes", "initrwnd", "access_queue_packets",
                 "servers", "duration_s", "warmup_s", "cooldown_s")
# A guest of 511 MB has 100 MB left with 28 clients and 2 servers; with 40 hosts it stands still.
MOST_HOSTS = 30
FULL_PACKET_BYTES = 1500  # of IP: the deck counts bandwidth-delay products in such packets
SHARE_TOLERANCE = 1e-6

Window = tuple[tuple[int, float], ...]  # a mix of (initcwnd, share)


def window_name(window: Window) -> str:
    """"10", "3+10" for equal shares, "3*0.9+10*0.1" for others."""
    even = all(abs(share - window[0][1]) < SHARE_TOLERANCE for _, share in window)
    return "+".join(f"{initcwnd}" if even else f"{initcwnd}*{format_lossless(share)}"
                    for initcwnd, share in window)


def _mix(mix: object, where: str) -> Window:
    if not isinstance(mix, list) or not mix or not all(
            isinstance(part, list) and len(part) == 2 for part in mix):
        raise UsageError(f"{where}: a mix has to be a list of [initial window, share]")
    parts = tuple((int(QUANTITIES["initcwnd"].check(initcwnd, where)),
                   QUANTITIES["share"].check(share, where)) for initcwnd, share in mix)
    _check_sum([share for _, share in parts], "the mix", where)
    return parts


def _links(rows: object, where: str) -> tuple[Clients, ...]:
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


def _sizes(value: object, where: str) -> str:
    """A reader of a distribution's name, or of its points."""
    return schema.text(value, where) if isinstance(value, str) else sizes_text(
        points_of(value, where))


def _check_sum(shares: Sequence[float], what: str, where: str) -> None:
    if abs(sum(shares) - 1) > SHARE_TOLERANCE:
        summed = " + ".join(f"{share:g}" for share in shares)
        raise UsageError(f"{where}: the shares of {what} {summed}"
                         f" sum to {sum(shares):g}, not to 1")


@dataclass(frozen=True)
class LoadPopulation:
    """A population: its clients with their links."""

    name: str
    clients: tuple[Clients, ...] = key(reader=_links)


@dataclass(frozen=True, kw_only=True)
class LoadSweep(grammar.Sweep[LoadTrial]):
    """Runs in every combination of the lists; see docs/REFERENCE.md.

    links: the clients' links, by `population` or `clients`; their windows are not set yet.
    """

    LISTS: ClassVar[tuple[str, ...]] = ("queue_bdp", "queue", "load", "response_bytes",
                                        "connections", "congestion_control", "paced", *KERNEL)
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
    kernel: tuple[str, ...] = key((default("kernel"),), reader=schema.one_or_more(
        schema.number("kernel"), "names"))
    module_parameter: tuple[str, ...] = key((default("module_parameter"),), reader=(
        schema.one_or_more(schema.number("module_parameter"), "parameters")))
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
        """The single windows, then the mixes."""
        return (*(((initcwnd, 1.0),) for initcwnd in self.initcwnd), *self.mixes)

    def linked(self, populations: Mapping[str, tuple[Clients, ...]], where: str) -> LoadSweep:
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
            raise UsageError(f"{where}: {hosts} hosts are requested; a guest has memory for"
                             f" {MOST_HOSTS}")
        return replace(self, links=links)

    @property
    def count(self) -> int:
        return self.combination_count() * self.repeat * len(self.windows)

    def trials(self, scenario: str, seed: int) -> Iterator[LoadTrial]:
        """The runs: every window of a cell in turn, with the same arrivals."""
        for cell in self.combinations():
            for repeat in range(1, self.repeat + 1):
                for window in self.windows:
                    yield self._trial(scenario, cell, window, repeat, seed_for(seed, repeat))

    def _trial(self, scenario: str, cell: dict[str, Any], window: Window, repeat: int,
               seed: int) -> LoadTrial:
        hosts = [replace(link, initcwnd=initcwnd, share=part * link.share)
                 for link in self.links for initcwnd, part in window]
        if self.sizes != FIXED:
            cell = {**cell, "response_bytes": round(mean_bytes(distribution(self.sizes)))}
        return LoadTrial(
            **cell, **{name: getattr(self, name) for name in AS_THEY_STAND}, scenario=scenario,
            part=self.name, window=window_name(window), clients="+".join(map(str, hosts)),
            queue_packets=self.nearest_packets(cell["queue_bdp"]), repeat=repeat, seed=seed)

    def overridden(self, values: Mapping[str, Any]) -> LoadSweep:
        """The sweep with some values replaced, by name; an RTT replaces that of all clients."""
        if "initcwnd" in values:
            values = {"mixes": (), **values}
        links = tuple(replace(link, rtt_ms=values.get("rtt_ms", link.rtt_ms))
                      for link in self.links)
        return replace(self, links=links, **values)

    def nearest_packets(self, queue_bdp: float) -> int:
        """A multiple of the bandwidth-delay product in packets of 1500 bytes, to the nearest.

        At least one. A queue of a fetch ("1bdp") is rounded up (net.queue_length.packets_of).
        """
        bdp_bytes = self.bandwidth_kbps * self.rtt_ms / 8
        packets = max(1, round(queue_bdp * bdp_bytes / FULL_PACKET_BYTES))
        return int(QUANTITIES["queue_packets"].check(packets, f"sweep {self.name!r}: queue_bdp"))


KEYS = (*HEAD_KEYS, "defaults", "sweep", "population", "figure", "claim")
# The fields of a trial that a figure can have as axes.
AXES = ("load", "response_bytes", "queue_bdp", "connections", "variant", "window", *KERNEL)
# The IETF 78 deck's own tables, paper/ietf78.csv.
DECK_FILE = "ietf78.csv"
DECK_COLUMNS = ("Avg.", "10", "50", "75", "90", "99", "Retrans. %")
# The sweeps' values that flags can replace.
OVERRIDES = ("load", "response_bytes", "initcwnd", "initrwnd", "rtt_ms", "bandwidth_kbps", "qdisc",
             "congestion_control", "repeat", *KERNEL)
# What the bottleneck of a dumbbell has, by the words of --qdisc.
DISCIPLINES = {"fifo": DROPTAIL, "fq_codel": "fq_codel", "cake": "cake"}


@dataclass(frozen=True, kw_only=True)
class LoadFigure(Figure):
    """One figure of FIGURES. windows: by their names."""

    QUANTITIES: ClassVar[tuple[str, ...]] = AXES
    sweeps: tuple[str, ...] = key(name="sweep", reader=schema.one_or_more(schema.text, "sweeps"))
    windows: tuple[str, ...] = key(reader=schema.values(lambda value, _: str(value), "windows"))
    by: str = key("", reader=schema.word(AXES))
    down: str = key("", reader=schema.word(AXES))
    published: str = ""


def _places(value: object, where: str) -> tuple[tuple[str, tuple[object, ...]], ...]:
    if not isinstance(value, dict):
        raise UsageError(f"{where} has to be a table like {{load = [0.5]}}")
    schema.known_keys(value, AXES, where)
    return tuple((axis, tuple(values) if isinstance(values, list) else (values,))
                 for axis, values in value.items())


@dataclass(frozen=True, kw_only=True)
class LoadClaim(Claim):
    """A claim on two windows, or on parts of a mix ("3 in 3+10").

    metric: a column of trials.csv. where: only these values of an axis.
    """

    compares: tuple[str, ...] = key(reader=schema.values(schema.text, "windows", distinct=False))
    metric: str
    where: tuple[tuple[str, tuple[object, ...]], ...] = key((), reader=_places)

    @property
    def is_in_points(self) -> bool:
        """Whether its metric is a percentage, so that differences of it are points."""
        return self.metric.endswith("_percent")

    def check(self, where: str) -> None:
        """Check that a published number has a tolerance. Raises UsageError."""
        super().check(where)
        if (self.published is None) != (self.within is None):
            raise UsageError(f"{where}: published and within go together")


LoadScenario = grammar.Scenario[LoadSweep, LoadFigure, LoadClaim]


# Reading a file --------------------------------------------------------------------

def read_scenario(file: ScenarioFile, overrides: Overrides = NOTHING) -> LoadScenario:
    """A scenario of kind load. Raises UsageError."""
    schema.known_keys(file.raw, KEYS, file.where)
    return grammar.read_scenario(file, _sweeps(file), LoadFigure, LoadClaim, FIGURES,
                                 _check_claim)


def _sweeps(file: ScenarioFile) -> tuple[LoadSweep, ...]:
    populations = {population.name: population.clients for population in schema.read_tables(
        LoadPopulation, file.raw, "population", file.where)}
    defaults = grammar.read_defaults(LoadSweep, file.raw, file.where)
    return tuple(schema.read(LoadSweep, {**defaults, **table}, where).linked(populations, where)
                 for table, where in schema.tables(file.raw, "sweep", file.where,
                                                   known=schema.keys_of(LoadSweep)))


def _check_figure(sweeps: Sequence[LoadSweep], figure: LoadFigure, where: str) -> None:
    if figure.published:
        deck_rows(figure.published, f"{where}: published")  # raises where there is none
    names = [sweep.name for sweep in sweeps]
    for name in figure.sweeps:
        schema.one_of(name, names, f"{where}: sweep")
    known = [window_name(window) for sweep in sweeps if sweep.name in figure.sweeps
             for window in sweep.windows]
    for window in figure.windows:
        schema.one_of(window, known, f"{where}: windows")


SEVERAL, TESTED = (2, None), (LESS, MORE, ALIKE)
FIGURES: dict[str, FigureKind[Sequence[LoadSweep], LoadFigure]] = {
    "distribution": FigureKind(_check_figure, windows=SEVERAL, expects=TESTED),
    "gain": FigureKind(_check_figure, ANY, has_down=True, windows=SEVERAL, expects=TESTED),
    "mix": FigureKind(_check_figure, windows=SEVERAL, expects=TESTED),
    "hit": FigureKind(_check_figure, ANY, windows=SEVERAL, expects=TESTED),
    "percentiles": FigureKind(_check_figure, windows=SEVERAL, expects=TESTED)}


# The metrics of a claim: on a part of a mix, and on whole runs.
OF_GROUPS = ("mean_ms", *map(percentile_column, PERCENTILES))
OF_RUNS = tuple(column.name for column in fields(LoadRecord)
                if str(column.type) in ("float | None", "int | None"))


def _check_claim(claim: LoadClaim, figure: LoadFigure, sweeps: Sequence[LoadSweep],
                 where: str) -> None:
    parts = [f"{part.partition('*')[0]} in {window}" for window in figure.windows
             if "+" in window for part in window.split("+")]
    for compared in claim.compares:
        schema.one_of(compared, (*figure.windows, *parts), f"{where}: compares")
    schema.one_of(claim.metric, OF_GROUPS if any(
        " in " in compared for compared in claim.compares) else OF_RUNS, f"{where}: metric")


# The deck's tables -------------------------------------------------------------------

def deck_rows(name: str, where: str = f"paper/{DECK_FILE}") -> list[dict[str, str]]:
    """The rows of one table. Raises UsageError where there is none of this name."""
    columns = ("table", "row", *DECK_COLUMNS)
    rows = published.rows(published.PAPER / DECK_FILE, columns)
    schema.one_of(name, list(dict.fromkeys(row["table"] for row in rows)), where)
    return [row for row in rows if row["table"] == name]


# Its runs --------------------------------------------------------------------------

def expand(scenario: LoadScenario, overrides: Overrides, seed: int) -> list[LoadTrial]:
    """All runs, none twice, with the overrides in place of the sweeps'. Raises UsageError."""
    requested = apply(scenario, overrides)
    check_count(requested.count, "runs", overrides.many)
    return grammar.trials_of(requested.sweeps, scenario.name, seed)


def apply(scenario: LoadScenario, overrides: Overrides) -> LoadScenario:
    """The scenario with the overrides in its sweeps. Raises UsageError."""
    changes = overrides.replacing(OVERRIDES, lambda name, flag: (
        f"{scenario.name}: {flag}: a load scenario has"
        f" {'clients of its own' if name == 'client' else 'none'}"),
        "a load scenario takes one value at a time")
    if "initrwnd" in changes:
        if len(changes["initrwnd"]) != 1:
            raise UsageError("--rwnd: a load scenario takes one value at a time")
        (changes["initrwnd"],) = changes["initrwnd"]
    if "qdisc" in changes:
        changes["queue"] = tuple(_discipline(qdisc) for qdisc in changes.pop("qdisc"))
    if overrides.repeat is not None:
        changes["repeat"] = int(QUANTITIES["repeat"].check(overrides.repeat, "--repeat"))
    return replace(scenario, sweeps=tuple(sweep.overridden(changes) for sweep in scenario.sweeps))


def _discipline(qdisc: str) -> str:
    """The bottleneck's queue by a word of --qdisc. Raises UsageError for one that it cannot have.
    """
    if qdisc not in DISCIPLINES:
        raise UsageError(f"--qdisc: a load's bottleneck has {', '.join(DISCIPLINES)}; fq at the"
                         " servers is paced = true in its file")
    return DISCIPLINES[qdisc]
