"""Load scenarios: TOML files of kind "load", and the runs that they expand into.

docs/examples/load.toml describes a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any, ClassVar

from firstflight.base.errors import UsageError
from firstflight.findings.quantities import QUANTITIES
from firstflight.parameters import RESPONSE, SERVER, TLS, Lists
from firstflight.runs import schema
from firstflight.runs.scenario_file import ScenarioFile
from firstflight.runs.schema import key
from firstflight.scenario import grammar, published
from firstflight.scenario.claims import ALIKE, LESS, MORE, Claim
from firstflight.scenario.figure_kinds import ANY, Figure, FigureKind
from firstflight.scenario.requested import Taken
from firstflight.scenario.setting_sweep import SettingSweep, lists_of, refuse_cut_jitter
from firstflight.setting.kernels import KERNEL
from firstflight.setting.seeds import seed_for
from firstflight.workloads.load.record import PERCENTILES, LoadRecord, percentile_column
from firstflight.workloads.load.traffic import (ClientHost, Curve, MixPart, SizePoint, Window,
                                                check_points, check_shares, mean_bytes, named_curve,
                                                single)
from firstflight.workloads.load.trial import FIXED, OF_SETTING, POINTS, LoadTrial

# A guest of 511 MB has 100 MB left with 28 clients and 2 servers; with 40 hosts it stands still.
MOST_HOSTS = 30
FULL_PACKET_BYTES = 1500  # of IP: the deck counts bandwidth-delay products in such packets
OF_TRAFFIC = ("load", "response_bytes", "connections")  # lists, besides those of the setting
_OF_TRIAL = ("access_queue_packets", "servers", "duration_s", "warmup_s", "cooldown_s")
# What a client host of a population may have of its own, by the name in the setting's lists.
OF_HOST = ("rtt_ms", "loss_percent", "loss_burst", "jitter_ms")


@dataclass(frozen=True)
class PopulationHost:
    """One client host of a [[population]]: its share of the arrivals, and its link.

    Where rtt_ms, loss_percent, loss_burst or jitter_ms are not given, the sweep's hold.
    """

    share: float
    rtt_ms: float | None = None
    bandwidth_kbps: float | None = None  # of its own link; None for unlimited
    loss_percent: float | None = None
    loss_burst: float | None = None
    jitter_ms: float | None = None

    def link(self, of_all: Mapping[str, Any]) -> dict[str, Any]:
        """Its values of OF_HOST. of_all: those of hosts that have none of their own."""
        return {name: of_all[name] if getattr(self, name) is None else getattr(self, name)
                for name in OF_HOST}


def _window(mix: object, where: str) -> Window:
    window = Window(schema.listed(MixPart, "{ initcwnd = 3, share = 0.5 }")(mix, where))
    check_shares([part.share for part in window.parts], "the mix", where)
    return window


def _hosts(value: object, where: str) -> tuple[PopulationHost, ...]:
    hosts: tuple[PopulationHost, ...] = schema.listed(
        PopulationHost, "{ share = 0.25, rtt_ms = 300, bandwidth_kbps = 512, loss_percent = 1 }")(
            value, where)
    check_shares([host.share for host in hosts], "the clients", where)
    return hosts


@dataclass(frozen=True)
class Sizes:
    """What `sizes` says: the name of a distribution, or its points."""

    name: str = FIXED
    points: tuple[SizePoint, ...] = ()

    @classmethod
    def parse(cls, value: object, where: str) -> Sizes:
        """A reader of a distribution's name, or of its points. Raises UsageError."""
        if isinstance(value, str):
            if value != FIXED:
                named_curve(value)  # raises where there is none of this name
            return cls(value)
        points = schema.listed(SizePoint, "{ share = 0, bytes = 500 }")(value, where)
        check_points(points, where)
        return cls(POINTS, points)


@dataclass(frozen=True)
class LoadPopulation:
    """A population: its client hosts."""

    name: str
    clients: tuple[PopulationHost, ...] = key(reader=_hosts)


@dataclass(frozen=True, kw_only=True)
class LoadSweep(SettingSweep[LoadTrial]):
    """Runs in every combination of the lists; see docs/REFERENCE.md.

    queue_bdp: the deck's way to give the queue's length, in place of `queue`: () for none.
    population: the name of a [[population]], "" for `clients` hosts that are all alike.
    hosts: those of the population, set once populations are read; () for hosts that are alike.
    """

    NAMES: ClassVar[tuple[str, ...]] = OF_SETTING
    LISTS: ClassVar[tuple[str, ...]] = ("queue_bdp", *OF_TRAFFIC)
    lists: Lists = lists_of(OF_SETTING)
    queue_bdp: tuple[float, ...] = key((), reader=schema.one_or_more(schema.number("queue_bdp")))
    load: tuple[float, ...] = key(reader=schema.one_or_more(schema.number("load")))
    response_bytes: tuple[int, ...] = key(reader=schema.one_or_more(
        schema.number("response_bytes")))
    sizes: Sizes = key(Sizes(), reader=Sizes.parse)
    connections: tuple[int, ...] = key((1,), reader=schema.one_or_more(
        schema.number("connections")))
    initcwnd: tuple[int, ...] = key((), reader=schema.one_or_more(
        schema.number("initcwnd"), empty=True))
    mixes: tuple[Window, ...] = key((), reader=schema.values(_window, "mixes", empty=True))
    population: str = ""
    access_queue_packets: int = 50
    clients: int | None = None
    servers: int
    duration_s: float
    warmup_s: float
    cooldown_s: float
    repeat_with_loss: int | None = key(None, absent=True)
    repeat_with_drops: int | None = key(None, absent=True)
    hosts: tuple[PopulationHost, ...] = key((), absent=True)

    def with_followers(self, lists: dict[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
        if self.queue_bdp and "queue" not in self.lists:
            lists = {name: values for name, values in lists.items() if name != "queue"}
        return lists

    def check(self, where: str) -> None:
        super().check(where)
        if self.queue_bdp and "queue" in self.lists:
            raise UsageError(f"{where}: has queue_bdp, so it cannot have queue")
        if self.warmup_s + self.cooldown_s >= self.duration_s:
            raise UsageError(f"{where}: warmup_s and cooldown_s leave nothing of"
                             f" {self.duration_s:g} s")
        if not self.windows:
            raise UsageError(f"{where}: has no initcwnd and no mixes")

    @property
    def by_name(self) -> Mapping[str, Sequence[Any]]:
        return {**super().by_name, "queue_bdp": self.queue_bdp or (None,)}

    @property
    def windows(self) -> tuple[Window, ...]:
        """The single windows, then the mixes."""
        return (*map(single, self.initcwnd), *self.mixes)

    @property
    def window_count(self) -> int:
        return len(self.windows)

    def linked(self, populations: Mapping[str, tuple[PopulationHost, ...]], where: str
               ) -> LoadSweep:
        """The sweep with its client hosts. Raises UsageError."""
        hosts: tuple[PopulationHost, ...] = ()
        if self.population:
            hosts = populations[schema.one_of(self.population, list(populations),
                                              f"{where}: population")]
        elif not self.clients:
            raise UsageError(f"{where}: clients is missing")
        linked = replace(self, hosts=hosts)
        linked.check_hosts(where)
        return linked

    def check_requested(self, where: str) -> None:
        super().check_requested(where)
        self.check_hosts(where)

    def check_hosts(self, where: str) -> None:
        """Check the hosts of the population, and their number. Raises UsageError."""
        for number, host in enumerate(self.hosts, start=1):
            place = f"{where}: population {self.population!r}: clients {number}"
            for values in self._of_hosts:
                link = host.link(values)
                refuse_cut_jitter(link["jitter_ms"], link["rtt_ms"], place)
                if link["loss_burst"] > 1 and not link["loss_percent"]:
                    raise UsageError(f"{place}: loss_burst needs loss_percent")

        of_clients = len(self.hosts) or self.clients or 0
        hosts = of_clients * max(len(window.parts) for window in self.windows) + self.servers
        if hosts > MOST_HOSTS:
            raise UsageError(f"{where}: {hosts} hosts are requested; a guest has memory for"
                             f" {MOST_HOSTS}")

    def trials(self, scenario: str, seed: int) -> Iterator[LoadTrial]:
        """The runs: every window of a cell in turn, with the same arrivals."""
        for values in self.cell_values():
            curve = self._curve
            if curve:
                values["response_bytes"] = round(mean_bytes(curve))
            for repeat in range(1, self.repeat + 1):
                for window in self.windows:
                    yield LoadTrial(
                        scenario=scenario, part=self.name, window=window.name,
                        mix=window.parts if window.is_mix else (), initcwnd=window.largest,
                        clients=self._clients(values, window), sizes=self.sizes.name,
                        size_points=self.sizes.points, repeat=repeat,
                        seed=seed_for(seed, repeat), **values,
                        **{name: getattr(self, name) for name in _OF_TRIAL})

    @property
    def _curve(self) -> Curve:
        """The distribution of sizes; () where all responses are alike."""
        points = tuple((point.share, point.size_bytes) for point in self.sizes.points)
        return points or (() if self.sizes.name == FIXED else named_curve(self.sizes.name))

    @property
    def _of_hosts(self) -> Iterator[dict[str, Any]]:
        """Each combination of what is said of all hosts."""
        rtts_ms = [rtt_ms for rtt_ms, _ in self.networks]
        lists = {**self.lists, "rtt_ms": tuple(dict.fromkeys(rtts_ms))}
        for values in product(*(lists[name] for name in OF_HOST)):
            yield dict(zip(OF_HOST, values))

    def _clients(self, values: Mapping[str, Any], window: Window) -> tuple[ClientHost, ...]:
        """The client hosts of a cell under a window: each host once for each part of a mix."""
        alike = (PopulationHost(1 / (self.clients or 1)),) * (self.clients or 1)
        clients = []
        for host in self.hosts or alike:
            clients += [ClientHost(share=part.share * host.share, initcwnd=part.initcwnd,
                                   bandwidth_kbps=host.bandwidth_kbps, **host.link(values))
                        for part in window.parts]
        return tuple(clients)

    def cell_values(self) -> Iterator[dict[str, Any]]:
        """The fields that the trials of a cell share, for each cell."""
        for values in super().cell_values():
            if values["queue_bdp"] is not None:
                values["queue_packets"] = self.nearest_packets(values)
            yield values

    def overridden(self, lists: Lists, where: str = "") -> LoadSweep:
        """The sweep with some values replaced, by name.

        Initial windows replace the mixes, and a queue's length replaces queue_bdp. What is said of
        all client hosts replaces what each has of its own.
        """
        own: dict[str, Any] = {}
        if "initcwnd" in lists:
            own["mixes"] = ()
        if "queue" in lists:
            own["queue_bdp"] = ()
        of_all = {name: None for name in OF_HOST if name in lists}
        own["hosts"] = tuple(replace(host, **of_all) for host in self.hosts)
        return replace(super().overridden(lists, where), **own)

    def nearest_packets(self, values: Mapping[str, Any]) -> int:
        """A multiple of the bandwidth-delay product in packets of 1500 bytes, to the nearest.

        values: of a cell. At least one. A length in `queue` is rounded up (packets_of of
        net/queue_length.py).
        """
        bdp_bytes = values["bandwidth_kbps"] * values["rtt_ms"] / 8
        packets = max(1, round(values["queue_bdp"] * bdp_bytes / FULL_PACKET_BYTES))
        return int(QUANTITIES["queue_packets"].check(packets, f"sweep {self.name!r}: queue_bdp"))


# The fields of a trial that a figure can have as axes.
AXES = ("load", "response_bytes", "queue_bdp", "connections", "variant", "window", *KERNEL,
        *(name for name in OF_SETTING if name not in KERNEL))
# The IETF 78 deck's own tables, paper/ietf78.csv.
DECK_FILE = "ietf78.csv"
DECK_COLUMNS = ("Avg.", "10", "50", "75", "90", "99", "Retrans. %")
# The flags that a load takes, and why it does not take another one.
TAKEN = Taken("load", "runs", (*OF_SETTING, *OF_TRAFFIC, "initcwnd", "repeat"), {
    "uplink_kbps": "the way back to its servers has a delay and no rate",
    "rwnd_growth": "its clients read at once, and their windows grow",
    RESPONSE: "each of its connections has one response",
    TLS: "its connections are plain HTTP",
    SERVER: "a server of its own, load_server.py, holds thousands of connections",
    "server-command": "a server of its own, load_server.py, holds thousands of connections",
    "client": "it has clients of its own",
    "own_window": "each client has a route with its initial window: write --iw 10"},
    "the dumbbell has none")


@dataclass(frozen=True, kw_only=True)
class LoadFigure(Figure):
    """One figure of FIGURES. windows: by their names."""

    QUANTITIES: ClassVar[tuple[str, ...]] = AXES
    sweeps: tuple[str, ...] = key(name="sweep", reader=schema.one_or_more(schema.text, "sweeps"))
    windows: tuple[str, ...] = key(reader=schema.values(lambda value, _: str(value), "windows"))
    by: str = key("", reader=schema.word(AXES))
    down: str = key("", reader=schema.word(AXES))
    published: str = ""

@dataclass(frozen=True)
class Compared:
    """What a claim compares: all runs with a window, or the part of a mix with one window."""

    window: str  # its name, or the mix's
    part: int | None = None  # the initial window of the part, None for all

    @classmethod
    def parse(cls, value: object, where: str) -> Compared:
        """What "10" or "3 in 3+10" names. Raises UsageError."""
        part, found, window = schema.text(value, where).partition(" in ")
        return cls(window, int(part)) if found and part.isdecimal() else cls(str(value))

    @property
    def text(self) -> str:
        return self.window if self.part is None else f"{self.part} in {self.window}"

    @property
    def words(self) -> str:
        return self.window if self.part is None else f"{self.part} in the mix {self.window}"




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

    compares: tuple[Compared, ...] = key(reader=schema.values(
        Compared.parse, "windows", distinct=False))
    metric: str
    where: tuple[tuple[str, tuple[object, ...]], ...] = key((), reader=_places)

    @property
    def is_of_groups(self) -> bool:
        """Whether it compares a part of a mix."""
        return any(compared.part is not None for compared in self.compares)

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

def _check_figure(sweeps: Sequence[LoadSweep], figure: LoadFigure, where: str) -> None:
    if figure.published:
        deck_rows(figure.published, f"{where}: published")  # raises where there is none
    names = [sweep.name for sweep in sweeps]
    for name in figure.sweeps:
        schema.one_of(name, names, f"{where}: sweep")
    known = [window.name for window in _windows_of(figure, sweeps)]
    for window in figure.windows:
        schema.one_of(window, known, f"{where}: windows")


SEVERAL, TESTED = (2, None), (LESS, MORE, ALIKE)
FIGURES: dict[str, FigureKind[Sequence[LoadSweep], LoadFigure]] = {
    "distribution": FigureKind(_check_figure, windows=SEVERAL, expects=TESTED),
    "gain": FigureKind(_check_figure, ANY, has_down=True, windows=SEVERAL, expects=TESTED),
    "mix": FigureKind(_check_figure, windows=SEVERAL, expects=TESTED),
    "hit": FigureKind(_check_figure, ANY, windows=SEVERAL, expects=TESTED),
    "percentiles": FigureKind(_check_figure, windows=SEVERAL, expects=TESTED)}


def _windows_of(figure: LoadFigure, sweeps: Sequence[LoadSweep]) -> list[Window]:
    """The windows that are measured in a figure's sweeps."""
    return [window for sweep in sweeps if sweep.name in figure.sweeps for window in sweep.windows]


# The metrics of a claim: on a part of a mix, and on whole runs.
OF_GROUPS = ("mean_ms", *map(percentile_column, PERCENTILES))
OF_RUNS = tuple(column.name for column in fields(LoadRecord)
                if str(column.type) in ("float | None", "int | None"))


def _check_claim(claim: LoadClaim, figure: LoadFigure, sweeps: Sequence[LoadSweep],
                 where: str) -> None:
    parts = [Compared(window.name, part.initcwnd).text for window in _windows_of(figure, sweeps)
             if window.is_mix and window.name in figure.windows for part in window.parts]
    for compared in claim.compares:
        schema.one_of(compared.text, (*figure.windows, *parts), f"{where}: compares")
    schema.one_of(claim.metric, OF_GROUPS if claim.is_of_groups else OF_RUNS,
                  f"{where}: metric")


def _link(file: ScenarioFile) -> Callable[[LoadSweep, str], LoadSweep]:
    populations = {population.name: population.clients for population in schema.read_tables(
        LoadPopulation, file.raw, "population", file.where)}
    return lambda sweep, where: sweep.linked(populations, where)


TABLES = grammar.Tables(
    LoadSweep, LoadFigure, LoadClaim, FIGURES, others=("population", "claim"), link=_link,
    check_claim=_check_claim)


# The deck's tables -------------------------------------------------------------------

def deck_rows(name: str, where: str = f"paper/{DECK_FILE}") -> list[dict[str, str]]:
    """The rows of one table. Raises UsageError where there is none of this name."""
    columns = ("table", "row", *DECK_COLUMNS)
    rows = published.rows(published.PAPER / DECK_FILE, columns)
    schema.one_of(name, list(dict.fromkeys(row["table"] for row in rows)), where)
    return [row for row in rows if row["table"] == name]
