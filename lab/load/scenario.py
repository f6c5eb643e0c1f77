"""Load scenarios: TOML files of kind "load", expanded into runs.

The first comment line is the claim in one sentence, then::

    kind = "load"
    title = "…"
    source = "…"

    [sysctls]                 # optional, as in every scenario

    [defaults]                # what every sweep has unless it says otherwise
    bandwidth_kbps = 20000    # the bottleneck
    rtt_ms = 300
    queue_bdp = [1.0]         # drop-tail limit as a part of the bandwidth-delay product
    queue = ["droptail"]      # or "fq_codel", "cake"
    load = [0.95]             # offered, as a part of the bottleneck, headers counted
    response_bytes = [50000]
    sizes = "web_search"      # optional, in place of response_bytes: the paper's Figure 1,
                              # or points of a distribution function, [[0, 500], [1, 60000]]
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
    population = "far"        # optional, in place of clients and rtt_ms
    mixes = [[[3, 0.5], [10, 0.5]]]   # optional: [initial window, share] of the clients

    [[population]]            # optional: who the clients are
    name = "far"
    clients = [[0.25, 300, 512, 1]]   # share, RTT in ms, own link in kbit/s (0: any),
                                      # random loss on the way to it in %

    [[figure]]
    name = "completion"       # figures/<scenario>_completion.png
    title = "…"
    kind = "distribution"     # or gain, mix, hit, percentiles, share
    sweep = "loads"           # or a list of them
    windows = ["3", "10"]     # the first is the baseline; "3+10" is a mix
    by = "load"               # gain, hit: along the axis; see AXES
    series = "response_bytes" # gain: one line each; optional
                              # share: mixes of two parts, "10+10" first: what the first
                              # part's window does to the second part
    published = "Africa, all" # percentiles: a table of paper/ietf78.csv; optional

    [[claim]]                 # optional: what was published in words
    figure = "completion"
    says = "…"
    compares = ["3", "10"]    # or a part of a mix: "3 in 3+10"
    quantity = "mean_ms"      # a column of lab.load.record.LoadRecord
    expects = "less"          # of the second window: less, more, or alike
    where = {load = [0.5]}    # optional: only these
    why = "…"                 # optional: ours, what a reader should know of the answer
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from lab.core.errors import UsageError
from lab.core.run.kinds import Overrides
from lab.core.scenario import schema
from lab.core.scenario.quantities import QUANTITIES
from lab.core.scenario.scenario_file import HEAD_KEYS, Head, ScenarioFile, check_count
from lab.core.scenario.schema import key
from lab.load import deck
from lab.load.record import PERCENTILES, LoadRecord, percentile_column
from lab.load.sweep import Population, Sweep, window_name
from lab.load.trial import LoadTrial

KEYS = (*HEAD_KEYS, "defaults", "sweep", "population", "figure", "claim")
DISTRIBUTION, GAIN, MIX, HIT, DECK, SHARE = ("distribution", "gain", "mix", "hit", "percentiles",
                                             "share")
# Where a run stands on each of a figure's axes, its trial says.
AXES = ("load", "response_bytes", "queue_bdp", "connections", "variant", "window")
LESS, MORE, ALIKE = "less", "more", "alike"
# What the command line may say in place of the sweeps.
OVERRIDES = ("load", "response_bytes", "initcwnd", "rtt_ms", "bandwidth_kbps", "repeat")


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure; windows: the baseline's name first."""

    name: str = key(reader=schema.file_name)
    title: str
    kind: Literal["distribution", "gain", "mix", "hit", "percentiles", "share"]
    sweeps: tuple[str, ...] = key(name="sweep", reader=schema.one_or_more(schema.text, "sweeps"))
    windows: tuple[str, ...] = key(reader=schema.values(lambda value, _: str(value), "windows"))
    by: str = key("", reader=schema.word(AXES))
    series: str = key("", reader=schema.word(AXES))
    published: str = ""

    def check(self, where: str) -> None:
        if len(self.windows) < 2:
            raise UsageError(f"{where}: windows has to be a list of two or more, the baseline"
                             " first")
        if self.kind in (GAIN, HIT) and not self.by:
            raise UsageError(f"{where}: by is missing; known: {', '.join(AXES)}")
        if self.kind == SHARE and any(window.count("+") != 1 for window in self.windows):
            raise UsageError(f"{where}: windows have to be mixes of two parts, like 10+10")


def _two(value: Any, where: str) -> tuple[str, str]:
    if not isinstance(value, list) or len(value) != 2:
        raise UsageError(f"{where} has to be two windows")
    return str(value[0]), str(value[1])


def _places(value: Any, where: str) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    if not isinstance(value, dict):
        raise UsageError(f"{where} has to be a table like {{load = [0.5]}}")
    schema.known_keys(value, AXES, where)
    return tuple((axis, tuple(each) if isinstance(each, list) else (each,))
                 for axis, each in value.items())


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What a source says of two windows: the second has `expects` of the quantity.

    where: only these values of an axis.
    """

    figure: str
    says: str
    compares: tuple[str, str] = key(reader=_two)
    quantity: str
    expects: Literal["less", "more", "alike"]
    where: tuple[tuple[str, tuple[Any, ...]], ...] = key((), reader=_places)
    why: str = ""


@dataclass(frozen=True)
class LoadScenario:
    """One published experiment under load."""

    head: Head
    sweeps: tuple[Sweep, ...]
    figures: tuple[Figure, ...]
    claims: tuple[Claim, ...]


# Reading it ------------------------------------------------------------------------

def read(file: ScenarioFile) -> LoadScenario:
    """A scenario of kind load. Raises UsageError."""
    schema.known_keys(file.raw, KEYS, file.where)
    head, sweeps = file.head(), _sweeps(file)
    if not sweeps:
        raise UsageError(f"{file.where}: has no [[sweep]], so nothing to measure")
    figures = schema.read_tables(Figure, file.raw, "figure", file.where)
    for figure in figures:
        _check_figure(figure, sweeps, f'{file.where}: [[figure]] "{figure.name}"')
    claims = schema.read_tables(Claim, file.raw, "claim", file.where, called="says")
    for claim in claims:
        _check_claim(claim, figures, f'{file.where}: [[claim]] "{claim.says}"')
    return LoadScenario(head, sweeps, figures, claims)


def _sweeps(file: ScenarioFile) -> tuple[Sweep, ...]:
    populations = {each.name: each.clients for each in schema.read_tables(
        Population, file.raw, "population", file.where)}
    defaults, known = schema.table(file.raw, "defaults", file.where), schema.keys_of(Sweep)
    schema.known_keys(defaults, known, f"{file.where}: [defaults]")
    return tuple(schema.read(Sweep, {**defaults, **table}, where).linked(populations, where)
                 for table, where in schema.tables(file.raw, "sweep", file.where, known=known))


def _check_figure(figure: Figure, sweeps: Sequence[Sweep], where: str) -> None:
    if figure.published:
        deck.table_rows(figure.published, f"{where}: published")  # raises where there is none
    names = [sweep.name for sweep in sweeps]
    for name in figure.sweeps:
        schema.one_of(name, names, f"{where}: sweep")
    known = [window_name(window) for sweep in sweeps if sweep.name in figure.sweeps
             for window in sweep.windows]
    for window in figure.windows:
        schema.one_of(window, known, f"{where}: windows")


def _check_claim(claim: Claim, figures: Sequence[Figure], where: str) -> None:
    schema.one_of(claim.figure, [figure.name for figure in figures], f"{where}: figure")
    figure = next(figure for figure in figures if figure.name == claim.figure)
    parts = [f"{part.partition('*')[0]} in {window}" for window in figure.windows
             if "+" in window for part in window.split("+")]
    for each in claim.compares:
        schema.one_of(each, (*figure.windows, *parts), f"{where}: compares")
    if any(" in " in each for each in claim.compares):
        quantities = ["mean_ms", *map(percentile_column, PERCENTILES)]
    else:
        quantities = [column.name for column in fields(LoadRecord)
                      if str(column.type) in ("float | None", "int | None")]
    schema.one_of(claim.quantity, quantities, f"{where}: quantity")


# Its runs --------------------------------------------------------------------------

def expand(scenario: LoadScenario, overrides: Overrides, seed: int) -> list[LoadTrial]:
    """All runs, none twice, with the overrides in place of the sweeps'. Raises UsageError."""
    sweeps = apply(scenario, overrides).sweeps
    check_count(sum(sweep.count for sweep in sweeps), "runs", overrides.many)
    return list(dict.fromkeys(trial for sweep in sweeps
                              for trial in sweep.trials(scenario.head.name, seed)))


def apply(scenario: LoadScenario, overrides: Overrides) -> LoadScenario:
    """The scenario with the overrides in its sweeps. Raises UsageError."""
    for name, flag in overrides.given.items():
        if name not in OVERRIDES:
            why = ("a load scenario has clients of its own" if name == "client"
                   else "a load scenario has none")
            raise UsageError(f"{scenario.head.name}: {flag}: {why}")
    changes: dict[str, Any] = dict(overrides.checked())
    for name in ("rtt_ms", "bandwidth_kbps"):
        if name in changes:
            if len(changes[name]) != 1:
                raise UsageError(f"{overrides.given[name]}: a load scenario takes one value at a"
                                 " time")
            (changes[name],) = changes[name]
    if "initcwnd" in changes:
        changes["mixes"] = ()
    if overrides.repeat is not None:
        changes["repeat"] = int(QUANTITIES["repeat"].check(overrides.repeat, "--repeat"))
    return replace(scenario, sweeps=tuple(_changed(sweep, changes) for sweep in scenario.sweeps))


def _changed(sweep: Sweep, changes: dict[str, Any]) -> Sweep:
    """The sweep with other values; an RTT is that of all its clients."""
    links = tuple(replace(link, rtt_ms=changes.get("rtt_ms", link.rtt_ms))
                  for link in sweep.links)
    return replace(sweep, links=links, **changes)
