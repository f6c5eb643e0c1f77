"""Reads scenario files of kind "load", and makes their runs.

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

# With 28 clients and 2 servers, a guest of 511 MB has 100 MB left. With 40 hosts it stands still.
MOST_HOSTS = 30
FULL_PACKET_BYTES = 1500  # a packet of IP, in which the deck counts bandwidth-delay products
OF_TRAFFIC = ("load", "response_bytes", "connections")  # lists, besides those of the setting
# Fields of a trial that have one value in the whole sweep.
_OF_TRIAL = ("access_queue_packets", "servers", "duration_s", "warmup_s", "cooldown_s")
# Parameters of the setting that each client host of a population may have of its own.
OF_HOST = ("rtt_ms", "loss_percent", "loss_burst", "jitter_ms")


@dataclass(frozen=True)
class PopulationHost:
    """One client host of a [[population]]: its share of the arrivals, and its link.

    Where rtt_ms, loss_percent, loss_burst or jitter_ms is None, the sweep's value holds.
    """

    share: float
    rtt_ms: float | None = None
    bandwidth_kbps: float | None = None  # of the host's link; None for unlimited
    loss_percent: float | None = None
    loss_burst: float | None = None
    jitter_ms: float | None = None

    def link(self, of_all: Mapping[str, Any]) -> dict[str, Any]:
        """The host's values of OF_HOST. of_all: the sweep's values."""
        values = {}
        for name in OF_HOST:
            own_value = getattr(self, name)
            values[name] = of_all[name] if own_value is None else own_value
        return values


def _window(mix: object, where: str) -> Window:
    """The window of a mix in a file. Raises UsageError."""
    window = Window(schema.listed(MixPart, "{ initcwnd = 3, share = 0.5 }")(mix, where))
    check_shares([part.share for part in window.parts], "the mix", where)
    return window


def _hosts(value: object, where: str) -> tuple[PopulationHost, ...]:
    """The client hosts of a population in a file. Raises UsageError."""
    hosts: tuple[PopulationHost, ...] = schema.listed(
        PopulationHost, "{ share = 0.25, rtt_ms = 300, bandwidth_kbps = 512, loss_percent = 1 }")(
            value, where)
    check_shares([host.share for host in hosts], "the clients", where)
    return hosts


@dataclass(frozen=True)
class Sizes:
    """The value of the key `sizes`: the name of a distribution, or its points."""

    name: str = FIXED
    points: tuple[SizePoint, ...] = ()  # () for a distribution with a name

    @classmethod
    def parse(cls, value: object, where: str) -> Sizes:
        """Read the name of a distribution, or its points. Raises UsageError."""
        if isinstance(value, str):
            if value != FIXED:
                named_curve(value)  # raises where there is none of this name
            return cls(value)
        points = schema.listed(SizePoint, "{ share = 0, bytes = 500 }")(value, where)
        check_points(points, where)
        return cls(POINTS, points)


@dataclass(frozen=True)
class LoadPopulation:
    """A [[population]]: a name for several client hosts."""

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
        """The lists without the default of `queue` where queue_bdp gives the queue's length."""
        if self.queue_bdp and "queue" not in self.lists:
            lists = {name: values for name, values in lists.items() if name != "queue"}
        return lists

    def check(self, where: str) -> None:
        """Check that the values may stand together. Raises UsageError."""
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
        """The values of each list by its name."""
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
        """The sweep with the hosts of its population. Raises UsageError.

        populations: the hosts of each [[population]], by its name.
        """
        hosts: tuple[PopulationHost, ...] = ()
        if self.population:
            schema.one_of(self.population, list(populations), f"{where}: population")
            hosts = populations[self.population]
        elif not self.clients:
            raise UsageError(f"{where}: clients is missing")
        linked = replace(self, hosts=hosts)
        linked.check_hosts(where)
        return linked

    def check_requested(self, where: str) -> None:
        """Check the sweep with the values that flags have set. Raises UsageError."""
        super().check_requested(where)
        self.check_hosts(where)

    def check_hosts(self, where: str) -> None:
        """Check the hosts of the population, and their number. Raises UsageError."""
        for number, host in enumerate(self.hosts, start=1):
            where_host = f"{where}: population {self.population!r}: clients {number}"
            for values in self._values_of_all_hosts:
                link = host.link(values)
                refuse_cut_jitter(link["jitter_ms"], link["rtt_ms"], where_host)
                if link["loss_burst"] > 1 and not link["loss_percent"]:
                    raise UsageError(f"{where_host}: loss_burst needs loss_percent")

        # In a mix, each client is a host for each part.
        clients = len(self.hosts) or self.clients or 0
        parts = max(len(window.parts) for window in self.windows)
        hosts = clients * parts + self.servers
        if hosts > MOST_HOSTS:
            raise UsageError(f"{where}: {hosts} hosts are requested; a guest has memory for"
                             f" {MOST_HOSTS}")

    def trials(self, scenario: str, seed: int) -> Iterator[LoadTrial]:
        """The runs. The windows of a cell follow each other, with the same arrivals.

        seed: the run folder's.
        """
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
        """The distribution of sizes; () where all responses have one size."""
        if self.sizes.points:
            return tuple((point.share, point.size_bytes) for point in self.sizes.points)
        return () if self.sizes.name == FIXED else named_curve(self.sizes.name)

    @property
    def _values_of_all_hosts(self) -> Iterator[dict[str, Any]]:
        """Each combination of the sweep's values of OF_HOST."""
        rtts_ms = [rtt_ms for rtt_ms, _ in self.networks]
        lists = {**self.lists, "rtt_ms": tuple(dict.fromkeys(rtts_ms))}
        for values in product(*(lists[name] for name in OF_HOST)):
            yield dict(zip(OF_HOST, values))

    def _clients(self, values: Mapping[str, Any], window: Window) -> tuple[ClientHost, ...]:
        """The client hosts of a cell under a window: each host once for each part of a mix."""
        count = self.clients or 1
        equal_hosts = (PopulationHost(1 / count),) * count
        clients = []
        for host in self.hosts or equal_hosts:
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
        """The sweep with these lists instead of its own. Raises UsageError.

        Initial windows replace the mixes, and a queue's length replaces queue_bdp. A value of
        OF_HOST replaces the values of single client hosts.
        """
        fields_of_load: dict[str, Any] = {}
        if "initcwnd" in lists:
            fields_of_load["mixes"] = ()
        if "queue" in lists:
            fields_of_load["queue_bdp"] = ()
        without_own = {name: None for name in OF_HOST if name in lists}
        fields_of_load["hosts"] = tuple(replace(host, **without_own) for host in self.hosts)
        return replace(super().overridden(lists, where), **fields_of_load)

    def nearest_packets(self, values: Mapping[str, Any]) -> int:
        """The queue's length in packets, from queue_bdp: the nearest whole number, at least 1.

        Packets have 1500 bytes. A length in `queue` is rounded up instead (packets_of of
        net/queue_length.py). values: a cell's.
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
# The flags that a load takes, and why it does not take others.
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
    """One figure, of a kind of FIGURES.

    windows: by their names.
    """

    QUANTITIES: ClassVar[tuple[str, ...]] = AXES
    sweeps: tuple[str, ...] = key(name="sweep", reader=schema.one_or_more(schema.text, "sweeps"))
    windows: tuple[str, ...] = key(reader=schema.values(lambda value, _: str(value), "windows"))
    by: str = key("", reader=schema.word(AXES))
    down: str = key("", reader=schema.word(AXES))
    published: str = ""


@dataclass(frozen=True)
class Compared:
    """One side of a claim: all clients with a window or mix, or one part of a mix."""

    window: str  # the name of the window or the mix
    part: int | None = None  # the initial window of the part; None for all clients

    @classmethod
    def parse(cls, value: object, where: str) -> Compared:
        """Read a text such as "10" or "3 in 3+10". Raises UsageError."""
        part, separator, window = schema.text(value, where).partition(" in ")
        if separator and part.isdecimal():
            return cls(window, int(part))
        return cls(str(value))

    @property
    def text(self) -> str:
        """The side as a file has it, such as "3 in 3+10"."""
        return self.window if self.part is None else f"{self.part} in {self.window}"

    @property
    def words(self) -> str:
        """The side in a sentence, such as "3 in the mix 3+10"."""
        return self.window if self.part is None else f"{self.part} in the mix {self.window}"


def _read_where(value: object, where: str) -> tuple[tuple[str, tuple[object, ...]], ...]:
    """The axes of the key `where` of a claim, with their values. Raises UsageError."""
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
    where: tuple[tuple[str, tuple[object, ...]], ...] = key((), reader=_read_where)

    @property
    def is_of_groups(self) -> bool:
        """Whether the claim compares a part of a mix."""
        return any(compared.part is not None for compared in self.compares)

    @property
    def is_in_points(self) -> bool:
        """Whether the metric is a percentage, so that its differences are percentage points."""
        return self.metric.endswith("_percent")

    def check(self, where: str) -> None:
        """Check that a published number has a tolerance. Raises UsageError."""
        super().check(where)
        if (self.published is None) != (self.within is None):
            raise UsageError(f"{where}: published and within go together")


LoadScenario = grammar.Scenario[LoadSweep, LoadFigure, LoadClaim]


# Reading a file --------------------------------------------------------------------

def _check_figure(sweeps: Sequence[LoadSweep], figure: LoadFigure, where: str) -> None:
    """Check that the figure's sweeps, windows and published table exist. Raises UsageError."""
    if figure.published:
        deck_rows(figure.published, f"{where}: published")  # raises where there is no such table
    names = [sweep.name for sweep in sweeps]
    for name in figure.sweeps:
        schema.one_of(name, names, f"{where}: sweep")
    known = [window.name for window in _windows_of(figure, sweeps)]
    for window in figure.windows:
        schema.one_of(window, known, f"{where}: windows")


SEVERAL = (2, None)  # how many windows figures compare, at least and at most: None for no limit
TESTED = (LESS, MORE, ALIKE)  # what claims may expect
FIGURES: dict[str, FigureKind[Sequence[LoadSweep], LoadFigure]] = {
    "distribution": FigureKind(_check_figure, windows=SEVERAL, expects=TESTED),
    "gain": FigureKind(_check_figure, ANY, has_down=True, windows=SEVERAL, expects=TESTED),
    "mix": FigureKind(_check_figure, windows=SEVERAL, expects=TESTED),
    "hit": FigureKind(_check_figure, ANY, windows=SEVERAL, expects=TESTED),
    "percentiles": FigureKind(_check_figure, windows=SEVERAL, expects=TESTED)}


def _windows_of(figure: LoadFigure, sweeps: Sequence[LoadSweep]) -> list[Window]:
    """The windows that are measured in a figure's sweeps."""
    return [window for sweep in sweeps if sweep.name in figure.sweeps for window in sweep.windows]


# The metrics of claims on a part of a mix, and of claims on whole runs.
OF_GROUPS = ("mean_ms", *map(percentile_column, PERCENTILES))
OF_RUNS = tuple(column.name for column in fields(LoadRecord)
                if str(column.type) in ("float | None", "int | None"))


def _check_claim(claim: LoadClaim, figure: LoadFigure, sweeps: Sequence[LoadSweep],
                 where: str) -> None:
    """Check that the claim's figure has what it compares, and its metric. Raises UsageError."""
    parts = []
    for window in _windows_of(figure, sweeps):
        if window.is_mix and window.name in figure.windows:
            parts += [Compared(window.name, part.initcwnd).text for part in window.parts]
    for compared in claim.compares:
        schema.one_of(compared.text, (*figure.windows, *parts), f"{where}: compares")
    schema.one_of(claim.metric, OF_GROUPS if claim.is_of_groups else OF_RUNS,
                  f"{where}: metric")


def _link(file: ScenarioFile) -> Callable[[LoadSweep, str], LoadSweep]:
    """A function that gives a sweep the hosts of its population. Raises UsageError."""
    tables = schema.read_tables(LoadPopulation, file.raw, "population", file.where)
    populations = {population.name: population.clients for population in tables}
    return lambda sweep, where: sweep.linked(populations, where)


TABLES = grammar.Tables(
    LoadSweep, LoadFigure, LoadClaim, FIGURES, others=("population", "claim"), link=_link,
    check_claim=_check_claim)


# The deck's tables -------------------------------------------------------------------

def deck_rows(name: str, where: str = f"paper/{DECK_FILE}") -> list[dict[str, str]]:
    """The rows of one table of the deck. Raises UsageError where there is no table of this name."""
    columns = ("table", "row", *DECK_COLUMNS)
    rows = published.rows(published.PAPER / DECK_FILE, columns)
    schema.one_of(name, list(dict.fromkeys(row["table"] for row in rows)), where)
    return [row for row in rows if row["table"] == name]
