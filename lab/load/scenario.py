"""Load scenarios: TOML files of kind "load", expanded into runs.

The first comment line is the claim in one sentence, then::

    kind = "load"
    title = "…"
    source = "…"

    [sysctls]                 # optional, as in lab.scenario

    [defaults]                # what every sweep has unless it says otherwise
    bandwidth_kbps = 20000    # the bottleneck
    rtt_ms = 300
    queue_bdp = [1.0]         # drop-tail limit as a part of the bandwidth-delay product
    queue = ["droptail"]      # or "fq_codel", "cake"
    load = [0.95]             # offered, as a part of the bottleneck, headers counted
    response_bytes = [50000]
    connections = [1]         # at once, by one arrival
    initcwnd = [3, 10, 16]
    initrwnd = 100
    congestion_control = ["cubic"]
    paced = [false]           # fq on the servers' interfaces
    access_queue_packets = 50 # optional: of clients' own links, see [[population]]
    clients = 2               # hosts, and how many serve
    servers = 2
    duration_s = 300          # of arrivals; those in the first warmup_s and the
    warmup_s = 30             # last cooldown_s do not count
    cooldown_s = 20
    repeat = 4                # independent seeds

    [[sweep]]                 # lists are combined
    name = "loads"
    load = [0.5, 0.75]
    mixes = [[[3, 0.5], [10, 0.5]]]   # optional: [initial window, share] of the clients

    [[population]]            # optional, in place of rtt_ms: who the clients are
    name = "far"
    clients = [[0.25, 300, 512, 1]]   # share, RTT in ms, own link in kbit/s (0: any),
                                      # random loss on the way to it in %

    [[figure]]
    name = "completion"       # figures/<scenario>_completion.png
    title = "…"
    kind = "distribution"     # or gain, mix, hit, percentiles
    sweep = "loads"           # or a list of them
    windows = ["3", "10"]     # the first is the baseline; "3+10" is a mix
    by = "load"               # gain, hit: along the axis
    series = "response_bytes" # gain, hit: one line each; optional

    [[claim]]                 # optional: what was published in words
    figure = "completion"
    says = "…"
    compares = ["3", "10"]    # or a part of a mix: "3 in 3+10"
    quantity = "mean_ms"      # of lab.load.record.LoadRecord
    expects = "less"          # of the second window: less, more, or alike
    where = {load = [0.5]}    # optional: only these
    why = "…"                 # optional: ours, what a reader should know of the answer
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from lab.errors import UsageError
from lab.load.record import PERCENTILES, LoadRecord, percentile_column
from lab.load.trial import (DROPTAIL, FIXED, Clients, LoadTrial, distribution, mean_bytes,
                            seed_of)
from lab.scenario import MOST_TRIALS, SCENARIOS, Overrides
from lab.toml_file import (QUANTITIES, claim_line, congestion_control_name, file_name_of,
                           known_keys, number_of, numbers_of, one_of, plain, read_toml,
                           sysctls_of, table_of, tables_of, text_of, value_of)

KEYS = ("kind", "title", "source", "sysctls", "defaults", "sweep", "population", "figure",
        "claim")
LISTS = ("queue_bdp", "queue", "load", "response_bytes", "connections", "congestion_control",
         "paced")
SWEEP_KEYS = ("name", "bandwidth_kbps", "rtt_ms", *LISTS, "initcwnd", "mixes", "initrwnd",
              "sizes", "population", "access_queue_packets", "clients", "servers", "duration_s", "warmup_s",
              "cooldown_s", "repeat")
FIGURE_KEYS = ("name", "title", "kind", "sweep", "windows", "by", "series", "published")
CLAIM_KEYS = ("figure", "says", "compares", "quantity", "expects", "where", "why")
DISTRIBUTION, GAIN, MIX, HIT, DECK = "distribution", "gain", "mix", "hit", "percentiles"
FIGURE_KINDS = (DISTRIBUTION, GAIN, MIX, HIT, DECK)
QUEUES = (DROPTAIL, "fq_codel", "cake")
AXES = ("load", "response_bytes", "queue_bdp", "connections", "variant", "window")
LESS, MORE, ALIKE = "less", "more", "alike"
# Of 511 MB, 28 clients and 2 servers leave 100; with 40 hosts a guest stands still.
MOST_HOSTS = 30
ACCESS_QUEUE_PACKETS = 50
FULL_PACKET_BYTES = 1500  # of IP: what the deck counts a bandwidth-delay product in
SHARE_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Sweep:
    """Runs in every combination of the lists; see the module's first lines."""

    name: str
    bandwidth_kbps: float
    rtt_ms: float
    queue_bdp: tuple[float, ...]
    queue: tuple[str, ...]
    load: tuple[float, ...]
    response_bytes: tuple[int, ...]
    sizes: str
    connections: tuple[int, ...]
    congestion_control: tuple[str, ...]
    paced: tuple[bool, ...]
    windows: tuple[tuple[tuple[int, float], ...], ...]  # each a mix of (initcwnd, share)
    population: tuple[tuple[float, float, float, float], ...]  # (share, rtt_ms, kbps, loss %)
    initrwnd: int
    access_queue_packets: int
    servers: int
    duration_s: float
    warmup_s: float
    cooldown_s: float
    repeat: int

    def trials(self, scenario: str, seed: int) -> Iterator[LoadTrial]:
        """Every window of a cell in turn, under the same arrivals."""
        for values in itertools.product(*(getattr(self, name) for name in LISTS)):
            for repeat in range(1, self.repeat + 1):
                for window in self.windows:
                    yield self._trial(scenario, dict(zip(LISTS, values)), window, repeat,
                                      seed_of(seed, repeat))

    def _trial(self, scenario: str, cell: dict[str, Any],
               window: tuple[tuple[int, float], ...], repeat: int, seed: int) -> LoadTrial:
        hosts = [Clients(initcwnd, part * share, rtt_ms, kbps, loss_percent)
                 for share, rtt_ms, kbps, loss_percent in self.population for initcwnd, part in window]
        response_bytes = (cell["response_bytes"] if self.sizes == FIXED
                          else round(mean_bytes(distribution(self.sizes))))
        return LoadTrial(
            **{**cell, "response_bytes": response_bytes}, scenario=scenario, part=self.name,
            window=window_name(window), clients="+".join(map(str, hosts)),
            bandwidth_kbps=self.bandwidth_kbps, rtt_ms=self.rtt_ms,
            queue_packets=self.queue_packets(cell["queue_bdp"]), sizes=self.sizes,
            initrwnd=self.initrwnd, access_queue_packets=self.access_queue_packets,
            servers=self.servers, duration_s=self.duration_s,
            warmup_s=self.warmup_s, cooldown_s=self.cooldown_s, repeat=repeat, seed=seed)

    def queue_packets(self, queue_bdp: float) -> int:
        """A part of the bandwidth-delay product in full packets, one at least."""
        bdp_bytes = self.bandwidth_kbps * self.rtt_ms / 8
        return max(1, round(queue_bdp * bdp_bytes / FULL_PACKET_BYTES))


@dataclass(frozen=True)
class Figure:
    """One figure; windows: the baseline's name first."""

    name: str
    title: str
    kind: str
    sweeps: tuple[str, ...]
    windows: tuple[str, ...]
    by: str
    series: str
    published: str


@dataclass(frozen=True)
class Claim:
    """What a source says of two windows: the second has `expects` of the quantity."""

    figure: str
    says: str
    compares: tuple[str, str]
    quantity: str
    expects: str
    where: Mapping[str, tuple[Any, ...]]
    why: str


@dataclass(frozen=True)
class LoadScenario:
    """One published experiment under load; text: the whole file."""

    name: str
    title: str
    claim: str
    source: str
    sysctls: dict[str, str]
    sweeps: tuple[Sweep, ...]
    figures: tuple[Figure, ...]
    claims: tuple[Claim, ...]
    text: str


def window_name(window: Sequence[tuple[int, float]]) -> str:
    """"10", "3+10" for equal shares, "3*0.9+10*0.1" for others."""
    even = all(abs(share - window[0][1]) < SHARE_TOLERANCE for _, share in window)
    return "+".join(f"{initcwnd}" if even else f"{initcwnd}*{share:g}"
                    for initcwnd, share in window)


def load(name: str, folder: Path = SCENARIOS) -> LoadScenario:
    """Read and check scenarios/<name>.toml. Raises UsageError."""
    text, raw = read_toml(folder / f"{name}.toml")
    return parsed(name, raw, text)


def parsed(name: str, raw: dict[str, Any], text: str) -> LoadScenario:
    """The scenario in a parsed TOML document. Raises UsageError."""
    file = f"scenarios/{name}.toml"
    known_keys(raw, KEYS, file)
    defaults = table_of(raw, "defaults", file)
    known_keys(defaults, SWEEP_KEYS, f"{file}: [defaults]")
    populations = {
        text_of(table, "name", where): _population(table, where) for table, where in
        tables_of(raw, "population", "name", ("name", "clients"), file)}
    sweeps = tuple(_sweep({**defaults, **table}, populations, where) for table, where in
                   tables_of(raw, "sweep", "name", SWEEP_KEYS, file))
    if not sweeps:
        raise UsageError(f"{file}: has no [[sweep]], so nothing to measure")
    figures = tuple(_figure(table, sweeps, where) for table, where in
                    tables_of(raw, "figure", "name", FIGURE_KEYS, file))
    return LoadScenario(
        name, text_of(raw, "title", file), claim_line(text, file), text_of(raw, "source", file),
        sysctls_of(raw, file), sweeps, figures,
        tuple(_claim(table, figures, where) for table, where in
              tables_of(raw, "claim", "says", CLAIM_KEYS, file)), text)


def expand(scenario: LoadScenario, overrides: Overrides, seed: int) -> list[LoadTrial]:
    """All runs, without duplicates; values in `overrides` replace the sweeps'. Raises UsageError."""
    made = dict.fromkeys(trial for sweep in apply(scenario, overrides).sweeps
                         for trial in sweep.trials(scenario.name, seed))
    if len(made) > MOST_TRIALS:
        raise UsageError(f"{len(made)} runs are asked for, at most {MOST_TRIALS} fit")
    return list(made)


def apply(scenario: LoadScenario, overrides: Overrides) -> LoadScenario:
    """The scenario with the overrides in its sweeps. Raises UsageError."""
    if overrides.client is not None:
        raise UsageError(f"{scenario.name}: --client: a load scenario has clients of its own")
    changes: dict[str, Any] = {}
    for flag, column, values in (("--load", "load", overrides.load),
                                 ("--size", "response_bytes", overrides.response_bytes)):
        if values is not None:
            changes[column] = tuple(QUANTITIES[column].check(each, flag) for each in values)
    if overrides.repeat is not None:
        changes["repeat"] = int(QUANTITIES["repeat"].check(overrides.repeat, "--repeat"))
    if overrides.initcwnd is not None:
        changes["windows"] = tuple(((int(QUANTITIES["initcwnd"].check(each, "--iw")), 1.0),)
                                   for each in overrides.initcwnd)
    for flag, column, values in (("--rtt", "rtt_ms", overrides.rtt_ms),
                                 ("--bw", "bandwidth_kbps", overrides.bandwidth_kbps)):
        if values is not None:
            if len(values) != 1:
                raise UsageError(f"{flag}: a load scenario takes one value at a time")
            changes[column] = QUANTITIES[column].check(values[0], flag)
    if "rtt_ms" in changes:
        sweeps = tuple(replace(sweep, population=tuple(
            (share, changes["rtt_ms"], *link) for share, _, *link in sweep.population), **changes)
            for sweep in scenario.sweeps)
    else:
        sweeps = tuple(replace(sweep, **changes) for sweep in scenario.sweeps)
    return replace(scenario, sweeps=sweeps)


def _sweep(table: dict[str, Any], populations: Mapping[str, Any], where: str) -> Sweep:
    lists = {name: _list(table, name, where) for name in LISTS}
    duration_s, warmup_s, cooldown_s = (number_of(table, name, where) for name in
                                        ("duration_s", "warmup_s", "cooldown_s"))
    if warmup_s + cooldown_s >= duration_s:
        raise UsageError(f"{where}: warmup_s and cooldown_s leave nothing of {duration_s:g} s")
    sizes = text_of(table, "sizes", where, FIXED)
    if sizes != FIXED:
        distribution(sizes)  # raises where there is none of this name
    if "population" in table:
        population = populations[one_of(table["population"], list(populations),
                                        f"{where}: population")]
    else:
        count = number_of(table, "clients", where)
        population = ((1 / count, number_of(table, "rtt_ms", where), 0.0, 0.0),) * count
    windows = _windows(table, where)
    hosts = len(population) * max(map(len, windows)) + number_of(table, "servers", where)
    if hosts > MOST_HOSTS:
        raise UsageError(f"{where}: {hosts} hosts are asked for; a guest has memory for"
                         f" {MOST_HOSTS}")
    return Sweep(name=file_name_of(table, where), **lists, sizes=sizes, windows=windows,
                 population=population, servers=number_of(table, "servers", where),
                 bandwidth_kbps=number_of(table, "bandwidth_kbps", where),
                 rtt_ms=number_of(table, "rtt_ms", where),
                 initrwnd=number_of(table, "initrwnd", where),
                 access_queue_packets=number_of({"access_queue_packets": ACCESS_QUEUE_PACKETS,
                                                 **table}, "access_queue_packets", where),
                 duration_s=duration_s, warmup_s=warmup_s, cooldown_s=cooldown_s,
                 repeat=number_of(table, "repeat", where))


def _list(table: dict[str, Any], name: str, where: str) -> tuple[Any, ...]:
    values = value_of(table, name, where)
    if not isinstance(values, list) or not values:
        raise UsageError(f"{where}: {name} has to be a list, it is {values!r}")
    if name == "queue":
        return tuple(one_of(value, QUEUES, f"{where}: queue") for value in values)
    if name == "congestion_control":
        return tuple(congestion_control_name(value, where) for value in values)
    if name == "paced":
        if not all(isinstance(value, bool) for value in values):
            raise UsageError(f"{where}: paced has to be a list of true and false")
        return tuple(values)
    return numbers_of(table, name, where)


def _windows(table: dict[str, Any], where: str) -> tuple[tuple[tuple[int, float], ...], ...]:
    """Each window alone, then the mixes."""
    alone = tuple(((int(value), 1.0),) for value in
                  (numbers_of(table, "initcwnd", where) if table.get("initcwnd") else ()))
    mixes = table.get("mixes", [])
    if not isinstance(mixes, list):
        raise UsageError(f"{where}: mixes has to be a list of mixes")
    windows = alone + tuple(_mix(mix, where) for mix in mixes)
    if not windows:
        raise UsageError(f"{where}: has no initcwnd and no mixes")
    return windows


def _mix(mix: Any, where: str) -> tuple[tuple[int, float], ...]:
    if not isinstance(mix, list) or not mix or not all(
            isinstance(part, list) and len(part) == 2 for part in mix):
        raise UsageError(f"{where}: a mix has to be a list of [initial window, share]")
    parts = tuple((int(QUANTITIES["initcwnd"].check(initcwnd, f"{where}: mixes")),
                   QUANTITIES["share"].check(share, f"{where}: mixes"))
                  for initcwnd, share in mix)
    total = sum(share for _, share in parts)
    if abs(total - 1) > SHARE_TOLERANCE:
        raise UsageError(f"{where}: the shares of the mix"
                         f" {' + '.join(f'{share:g}' for _, share in parts)} sum to {total:g},"
                         " not to 1")
    return parts


def _population(table: dict[str, Any], where: str) -> tuple[tuple[float, float, float, float], ...]:
    rows = value_of(table, "clients", where)
    if not isinstance(rows, list) or not rows or not all(
            isinstance(row, list) and len(row) == 4 for row in rows):
        raise UsageError(f"{where}: clients has to be a list of [share, rtt_ms, kbit/s, loss %]")
    clients = tuple((QUANTITIES["share"].check(share, f"{where}: clients"),
                     QUANTITIES["rtt_ms"].check(rtt_ms, f"{where}: clients"),
                     QUANTITIES["bandwidth_kbps"].check(kbps, f"{where}: clients") if kbps
                     else 0.0,
                     QUANTITIES["loss_percent"].check(loss_percent, f"{where}: clients"))
                    for share, rtt_ms, kbps, loss_percent in rows)
    total = sum(share for share, *_ in clients)
    if abs(total - 1) > SHARE_TOLERANCE:
        raise UsageError(f"{where}: the shares of the clients sum to {total:g}, not to 1")
    return clients


def _figure(table: dict[str, Any], sweeps: Sequence[Sweep], where: str) -> Figure:
    kind = one_of(value_of(table, "kind", where), FIGURE_KINDS, f"{where}: kind")
    names = [sweep.name for sweep in sweeps]
    asked = value_of(table, "sweep", where)
    mine = tuple(one_of(name, names, f"{where}: sweep")
                 for name in (asked if isinstance(asked, list) else [asked]))
    known = [window_name(window) for sweep in sweeps if sweep.name in mine
             for window in sweep.windows]
    windows = value_of(table, "windows", where)
    if not isinstance(windows, list) or len(windows) < 2:
        raise UsageError(f"{where}: windows has to be a list of two or more, the baseline first")
    by, series = text_of(table, "by", where, ""), text_of(table, "series", where, "")
    for key, value in (("by", by), ("series", series)):
        if value or (key == "by" and kind in (GAIN, HIT)):
            one_of(value, AXES, f"{where}: {key}")
    return Figure(file_name_of(table, where), text_of(table, "title", where), kind, mine,
                  tuple(one_of(str(window), known, f"{where}: windows") for window in windows),
                  by, series, text_of(table, "published", where, ""))


def _claim(table: dict[str, Any], figures: Sequence[Figure], where: str) -> Claim:
    names = [figure.name for figure in figures]
    figure = figures[names.index(one_of(value_of(table, "figure", where), names,
                                        f"{where}: figure"))]
    compares = value_of(table, "compares", where)
    if not isinstance(compares, list) or len(compares) != 2:
        raise UsageError(f"{where}: compares has to be two windows")
    parts = [f"{part.partition('*')[0]} in {window}" for window in figure.windows
             if "+" in window for part in window.split("+")]
    first, second = (one_of(str(each), (*figure.windows, *parts), f"{where}: compares")
                     for each in compares)
    if " in " in first + second:
        quantities = ["mean_ms", *map(percentile_column, PERCENTILES)]
    else:
        quantities = [column.name for column in fields(LoadRecord)
                      if str(column.type) in ("float | None", "int | None")]
    only = table.get("where", {})
    if not isinstance(only, dict):
        raise UsageError(f"{where}: where has to be a table like {{load = [0.5]}}")
    known_keys(only, AXES, f"{where}: where")
    return Claim(figure.name, text_of(table, "says", where), (first, second),
                 one_of(value_of(table, "quantity", where), quantities, f"{where}: quantity"),
                 one_of(value_of(table, "expects", where), (LESS, MORE, ALIKE),
                        f"{where}: expects"),
                 {key: tuple(values) if isinstance(values, list) else (values,)
                  for key, values in only.items()}, text_of(table, "why", where, ""))


def describe(column: str, value: Any) -> str:
    """A value of an axis for a reader: "50 kB", "0.95", "2 BDP"."""
    if column == "response_bytes":
        return f"{plain(value / 1000)} kB"
    if column == "queue_bdp":
        return f"{plain(value)} BDP"
    return plain(value) if isinstance(value, (int, float)) else str(value)
