"""Scenarios: TOML files that say what to measure, expanded into trials.

A scenario file opens with a comment line, the claim in one sentence, then::

    title = "…"            # one line
    source = "…"           # who published it, where

    [sysctls]              # optional: TCP settings other than topo.TCP_SYSCTLS
    "net.ipv4.tcp_sack" = "0"

    [defaults]             # what every sweep has unless it says otherwise
    response_bytes = [9000]
    initcwnd = [3, 10]     # segments
    initrwnd = 27          # segments
    congestion_control = "cubic"
    client = "curl"
    repeat = 1
    queue_packets = 1000
    loss_percent = 0
    uplink = "same"        # as fast as the downlink, or a number of kbit/s

    [[sweep]]              # every RTT with every bandwidth, or pairs of them
    name = "grid"
    rtt_ms = [20, 50]
    bandwidth_kbps = [56, 256]
    # pairs = [[70, 1200], …]     (rtt_ms, bandwidth_kbps), instead of the two
    # and any key of [defaults]

    [[axis]]               # the buckets of one quantity
    by = "rtt_ms"          # rtt_ms, bandwidth_kbps, bdp_bytes, response_bytes
    values = [20, 50]
    labels = ["20", "50"]  # optional
    shares_percent = [40, 60]     # optional: of all responses; sum 100

    [[figure]]
    name = "fig5_rtt"
    title = "…"
    kind = "improvement"
    sweep = "grid"
    by = "rtt_ms"
    weights = "bandwidth_kbps"    # optional: average over this axis by its shares
    baseline_initcwnd = 3
    experiment_initcwnd = 10
    metric = "total_ms"           # or latency_ms, see lab.records
    published = "paper_figure5.csv"   # optional, with its panel
    panel = "RTT"

    [raw]                  # optional: published raw values, one fetch per cell
    file = "zhao2019_raw.csv"
    sweep = "grid"
    metric = "total_ms"
    extra_rtts = 1         # optional: round trips that the published values hold besides
    extra_why = "…"
    [[raw.defect]]         # optional: published values that cannot be compared
    by = "rtt_ms"
    values = [3000, 5000]
    mark = "f"
    why = "…"
"""

from __future__ import annotations

import difflib
import math
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from lab.errors import UsageError
from lab.trial import Trial

SCENARIOS = Path(__file__).resolve().parent.parent / "scenarios"

CLIENTS = ("curl", "wget")
KINDS = ("improvement",)
METRICS = ("total_ms", "latency_ms")
BUCKETED = ("rtt_ms", "bandwidth_kbps", "bdp_bytes", "response_bytes")
MOST_TRIALS = 1_000_000  # more would take days, and more memory than a laptop has
SHARES_TOLERANCE_PERCENT = 0.1  # published shares are rounded to 0.01 each


@dataclass(frozen=True)
class Quantity:
    """What a number in a scenario or on the command line may be, both ends included."""

    name: str
    unit: str
    lowest: float
    highest: float
    whole: bool = False
    why: str = ""

    def check(self, value: Any, where: str) -> float:
        """The value as a number; raises UsageError beginning with `where`."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise UsageError(f"{where}: {value!r} is not a number")
        if isinstance(value, int) and value.bit_length() > 64:
            raise UsageError(f"{where}: a number of {len(f'{value:x}')} hexadecimal digits is"
                             " out of range")
        if not math.isfinite(value):
            raise UsageError(f"{where}: {value} is not a finite number")
        if self.whole and value != int(value):
            raise UsageError(f"{where}: {value:g} is not a whole number")
        if not self.lowest <= value <= self.highest:
            raise UsageError(f"{where}: {self.name} of {plain(value)}{self._unit()} is out of"
                             f" range; it can be {plain(self.lowest)} to"
                             f" {plain(self.highest)}{self._unit()}{self.why}")
        return int(value) if self.whole else float(value)

    def _unit(self) -> str:
        return f" {self.unit}" if self.unit else ""


QUANTITIES = {
    # Below 0.1 ms the guest's own processing outweighs the link.
    "rtt_ms": Quantity("an RTT", "ms", 0.1, 600_000),
    "bandwidth_kbps": Quantity("a bandwidth", "kbit/s", 1, 10_000_000),
    "initcwnd": Quantity("an initial window", "segments", 1, 65_535, whole=True),
    "initrwnd": Quantity("an initial receive window", "segments", 1, 65_535, whole=True),
    "response_bytes": Quantity("a response", "bytes", 1, 2**30, whole=True),
    "repeat": Quantity("a number of repeats", "", 1, 10_000, whole=True),
    "queue_packets": Quantity("a queue", "packets", 1, 1_000_000, whole=True),
    "loss_percent": Quantity("a loss rate", "%", 0, 99),
    "uplink": Quantity("an uplink", "kbit/s", 1, 10_000_000),
    "bdp_bytes": Quantity("a bandwidth-delay product", "bytes", 0.01, 1e12),
    "shares_percent": Quantity("a share", "%", 0, 100),
}


@dataclass(frozen=True)
class Sweep:
    """Networks, windows and sizes that are measured in every combination.

    networks: (rtt_ms, bandwidth_kbps) each.
    uplink_kbps: None where the uplink is as fast as the downlink.
    The rest as in lab.trial.Trial.
    """

    name: str
    networks: tuple[tuple[float, float], ...]
    initcwnd: tuple[int, ...]
    response_bytes: tuple[int, ...]
    initrwnd: int
    congestion_control: str
    client: str
    repeat: int
    queue_packets: int
    loss_percent: float
    uplink_kbps: float | None

    def trials(self, scenario: str) -> Iterable[Trial]:
        """Windows alternate within a repeat, so that both meet the same conditions."""
        for rtt_ms, bandwidth_kbps in self.networks:
            for response_bytes in self.response_bytes:
                for repeat in range(1, self.repeat + 1):
                    for initcwnd in self.initcwnd:
                        yield Trial(
                            scenario=scenario, rtt_ms=rtt_ms, bandwidth_kbps=bandwidth_kbps,
                            uplink_kbps=bandwidth_kbps if self.uplink_kbps is None
                            else self.uplink_kbps,
                            queue_packets=self.queue_packets, loss_percent=self.loss_percent,
                            initcwnd=initcwnd, initrwnd=self.initrwnd,
                            congestion_control=self.congestion_control, client=self.client,
                            response_bytes=response_bytes, repeat=repeat)


@dataclass(frozen=True)
class Axis:
    """The buckets of one quantity; shares_percent is empty where none are published."""

    by: str
    values: tuple[float, ...]
    labels: tuple[str, ...]
    shares_percent: tuple[float, ...]

    def share_percent(self, value: float) -> float | None:
        return self.shares_percent[self.values.index(value)] if self.shares_percent else None

    def label(self, value: float) -> str:
        return self.labels[self.values.index(value)]


@dataclass(frozen=True)
class Figure:
    """One figure: which trials enter it, and what it is compared with.

    by: the quantity of its buckets; weights: the quantity that each bucket is
    averaged over, by that axis's shares ("" for one cell a bucket).
    published, panel: file in paper/ and the panel in it ("" for none).
    """

    name: str
    title: str
    kind: str
    sweep: str
    by: str
    weights: str
    baseline_initcwnd: int
    experiment_initcwnd: int
    metric: str
    published: str
    panel: str


@dataclass(frozen=True)
class Defect:
    """Published values that cannot be compared: where, a mark of one letter, and why."""

    by: str
    values: tuple[float, ...]
    mark: str
    why: str


@dataclass(frozen=True)
class Raw:
    """Published raw values of a sweep's cells, file in paper/.

    extra_rtts: round trips that the published values hold and ours do not.
    """

    file: str
    sweep: str
    metric: str
    extra_rtts: float
    extra_why: str
    defects: tuple[Defect, ...]


@dataclass(frozen=True)
class Scenario:
    """One published experiment: what to measure and which figures it gives.

    sysctls: by name, what differs from topo.TCP_SYSCTLS; text: the whole file.
    """

    name: str
    title: str
    claim: str
    source: str
    sysctls: dict[str, str]
    sweeps: tuple[Sweep, ...]
    axes: tuple[Axis, ...]
    figures: tuple[Figure, ...]
    raw: Raw | None
    text: str

    def sweep(self, name: str) -> Sweep:
        return next(sweep for sweep in self.sweeps if sweep.name == name)

    def axis(self, by: str) -> Axis | None:
        return next((axis for axis in self.axes if axis.by == by), None)


@dataclass(frozen=True)
class Overrides:
    """What the command line says in place of the scenario; None keeps the scenario's."""

    rtt_ms: Sequence[float] | None = None
    bandwidth_kbps: Sequence[float] | None = None
    initcwnd: Sequence[int] | None = None
    response_bytes: Sequence[int] | None = None
    repeat: int | None = None
    client: str | None = None
    congestion_control: str | None = None


FLAGS = {"rtt_ms": "--rtt", "bandwidth_kbps": "--bw", "initcwnd": "--iw",
         "response_bytes": "--size", "repeat": "--repeat", "client": "--client",
         "congestion_control": "--congestion-control"}


def names(folder: Path = SCENARIOS) -> list[str]:
    """The scenarios that there are, sorted."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def load(name: str, folder: Path = SCENARIOS) -> Scenario:
    """Read and check scenarios/<name>.toml. Raises UsageError."""
    known = names(folder)
    if name not in known:
        raise UsageError(f"unknown scenario {name!r}{nearest(name, known)}; known:"
                         f" {', '.join(known) or 'none'}")
    path = folder / f"{name}.toml"
    file = f"scenarios/{path.name}"
    try:
        text = path.read_text(encoding="utf-8")
        raw = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: cannot be read: {error}") from error
    except ValueError as error:  # also for a number of thousands of digits
        raise UsageError(f"{file}: {toml_fault(error, text)}") from error
    scenario = _scenario(name, raw, text, file)
    for figure in scenario.figures:
        _check_figure(scenario, figure, f'{file}: [[figure]] "{figure.name}"')
    return scenario


def expand(scenario: Scenario, overrides: Overrides = Overrides()) -> list[Trial]:
    """All trials of the scenario, without duplicates, in the order to measure them.

    Values in `overrides` replace the sweeps' lists. Trials of one network
    shape stand together, since re-shaping costs time; shapes, and trials
    within one, stand in the order of the file. Raises UsageError.
    """
    sweeps = apply(scenario, overrides).sweeps
    count = sum(len(sweep.networks) * len(sweep.response_bytes) * len(sweep.initcwnd)
                * sweep.repeat for sweep in sweeps)
    _check_count(count)
    shapes: dict[tuple[float, ...], dict[Trial, None]] = {}
    for sweep in sweeps:
        for trial in sweep.trials(scenario.name):
            shape = (trial.rtt_ms, trial.bandwidth_kbps, trial.uplink_kbps,
                     trial.queue_packets, trial.loss_percent)
            shapes.setdefault(shape, {})[trial] = None
    return [trial for trials in shapes.values() for trial in trials]


def apply(scenario: Scenario, overrides: Overrides) -> Scenario:
    """The scenario with the overrides in its sweeps. Raises UsageError."""
    given = _checked(overrides)
    plain_changes = {key: value for key, value in given.items()
                     if key not in ("rtt_ms", "bandwidth_kbps")}
    sweeps = []
    for sweep in scenario.sweeps:
        networks = sweep.networks
        if "rtt_ms" in given or "bandwidth_kbps" in given:
            networks = _combined(given.get("rtt_ms", [rtt for rtt, _ in networks]),
                                 given.get("bandwidth_kbps", [each for _, each in networks]))
        sweeps.append(replace(sweep, networks=networks, **plain_changes))
    return replace(scenario, sweeps=tuple(sweeps))


def _combined(rtts_ms: Sequence[float],
              bandwidths_kbps: Sequence[float]) -> tuple[tuple[float, float], ...]:
    """Every RTT with every bandwidth, each once."""
    rtts, bandwidths = dict.fromkeys(rtts_ms), dict.fromkeys(bandwidths_kbps)
    _check_count(len(rtts) * len(bandwidths))
    return tuple((rtt, bandwidth) for rtt in rtts for bandwidth in bandwidths)


def _check_count(count: int) -> None:
    if count > MOST_TRIALS:
        raise UsageError(f"{count} trials are asked for, at most {MOST_TRIALS} fit in one run")


def is_partial(overrides: Overrides) -> bool:
    """Whether other cells than the scenario's are asked for, so that no figure is expected."""
    return any(getattr(overrides, key) is not None
               for key in ("rtt_ms", "bandwidth_kbps", "initcwnd", "response_bytes"))


def covers(scenario: Scenario, overrides: Overrides) -> bool:
    """Whether the overrides leave every cell and window of the scenario in, for its figures."""
    def settings(trials: list[Trial]) -> set[tuple[float, ...]]:
        return {(trial.rtt_ms, trial.bandwidth_kbps, trial.response_bytes, trial.initcwnd)
                for trial in trials}

    return settings(expand(scenario)) <= settings(expand(scenario, overrides))


def bucket_value(by: str, rtt_ms: float, bandwidth_kbps: float, response_bytes: float) -> float:
    """The value that places a cell in a bucket of `by`, in the unit of its name."""
    return {"rtt_ms": rtt_ms, "bandwidth_kbps": bandwidth_kbps,
            "bdp_bytes": rtt_ms * bandwidth_kbps / 8, "response_bytes": response_bytes}[by]


def nearest(word: str, known: Iterable[str]) -> str:
    """" (did you mean …?)" where a known word is near, else nothing."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def plain(value: float) -> str:
    """A number as people write it: no exponent, no trailing zeros."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.10g}"


def toml_fault(error: Exception, text: str) -> str:
    """What is wrong in a TOML file, with the line in front."""
    message = str(error)
    if "at end of document" in message:
        return f"line {text.count(chr(10)) + 1}: {message.partition(' (at')[0]} (end of file)"
    match = re.search(r" \(at line (\d+), column (\d+)\)", message)
    if match is None:
        return message
    return (f"line {match[1]}: {message.replace(match[0], '')}"
            f" (column {match[2]})")


# Reading the tables of a scenario file ---------------------------------------

SCENARIO_KEYS = ("title", "source", "sysctls", "defaults", "sweep", "axis", "figure", "raw")
DEFAULT_KEYS = ("response_bytes", "initcwnd", "initrwnd", "congestion_control", "client",
                "repeat", "queue_packets", "loss_percent", "uplink")
SWEEP_KEYS = ("name", "rtt_ms", "bandwidth_kbps", "pairs") + DEFAULT_KEYS
AXIS_KEYS = ("by", "values", "labels", "shares_percent")
FIGURE_KEYS = tuple(column.name for column in fields(Figure))
RAW_KEYS = ("file", "sweep", "metric", "extra_rtts", "extra_why", "defect")
DEFECT_KEYS = ("by", "values", "mark", "why")


def _scenario(name: str, raw: dict[str, Any], text: str, file: str) -> Scenario:
    _known_keys(raw, SCENARIO_KEYS, file)
    defaults = _table(raw, "defaults", file)
    _known_keys(defaults, DEFAULT_KEYS, f"{file}: [defaults]")
    sysctls = _table(raw, "sysctls", file)
    for key, value in sysctls.items():
        if not isinstance(value, str) or not re.fullmatch(r"net\.[\w.]+", key):
            raise UsageError(f'{file}: [sysctls]: {key} = {value!r} is not of the form'
                             ' "net.ipv4.tcp_sack" = "0"')
    sweeps = tuple(_sweep({**defaults, **table}, where)
                   for table, where in _tables(raw, "sweep", "name", SWEEP_KEYS, file))
    if not sweeps:
        raise UsageError(f"{file}: has no [[sweep]], so nothing to measure")
    axes = tuple(_axis(table, where)
                 for table, where in _tables(raw, "axis", "by", AXIS_KEYS, file))
    figures = tuple(_figure(table, where)
                    for table, where in _tables(raw, "figure", "name", FIGURE_KEYS, file))
    return Scenario(name=name, title=_text(raw, "title", file), claim=_claim(text, file),
                    source=_text(raw, "source", file), sysctls=sysctls, sweeps=sweeps,
                    axes=axes, figures=figures,
                    raw=_raw(raw["raw"], sweeps, f"{file}: [raw]") if "raw" in raw else None,
                    text=text)


def _claim(text: str, file: str) -> str:
    first = text.partition("\n")[0].strip()
    if not first.startswith("#") or not first.lstrip("# "):
        raise UsageError(f"{file}: line 1: has to be a comment, the claim in one sentence")
    return first.lstrip("# ")


def _sweep(table: dict[str, Any], where: str) -> Sweep:
    uplink = _value(table, "uplink", where)
    return Sweep(
        name=_text(table, "name", where), networks=_networks(table, where),
        initcwnd=_numbers(table, "initcwnd", where),
        response_bytes=_numbers(table, "response_bytes", where),
        initrwnd=_number(table, "initrwnd", where),
        congestion_control=_congestion_control(_value(table, "congestion_control", where), where),
        client=_one_of(_value(table, "client", where), CLIENTS, f"{where}: client"),
        repeat=_number(table, "repeat", where),
        queue_packets=_number(table, "queue_packets", where),
        loss_percent=_number(table, "loss_percent", where),
        uplink_kbps=None if uplink == "same" else _number(table, "uplink", where))


def _networks(table: dict[str, Any], where: str) -> tuple[tuple[float, float], ...]:
    if "pairs" not in table:
        return tuple((rtt, bandwidth) for rtt in _numbers(table, "rtt_ms", where)
                     for bandwidth in _numbers(table, "bandwidth_kbps", where))
    if "rtt_ms" in table or "bandwidth_kbps" in table:
        raise UsageError(f"{where}: has pairs, so it cannot have rtt_ms or bandwidth_kbps")
    pairs = table["pairs"]
    if not isinstance(pairs, list) or not pairs or not all(
            isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise UsageError(f"{where}: pairs has to be a list of [rtt_ms, bandwidth_kbps]")
    networks = tuple((QUANTITIES["rtt_ms"].check(rtt, f"{where}: pairs"),
                      QUANTITIES["bandwidth_kbps"].check(bandwidth, f"{where}: pairs"))
                     for rtt, bandwidth in pairs)
    return tuple(dict.fromkeys(networks))


def _axis(table: dict[str, Any], where: str) -> Axis:
    by = _one_of(_value(table, "by", where), BUCKETED, f"{where}: by")
    values = _checked_numbers(_value(table, "values", where), by, f"{where}: values")
    labels = table.get("labels", [plain(value) for value in values])
    shares = table.get("shares_percent", [])
    for key, given in (("labels", labels), ("shares_percent", shares)):
        if not isinstance(given, list) or (given and len(given) != len(values)):
            count = len(given) if isinstance(given, list) else "no list of"
            raise UsageError(f"{where}: {count} {key} for {len(values)} values")
    if not all(isinstance(label, str) for label in labels):
        raise UsageError(f"{where}: labels have to be strings")
    checked = [QUANTITIES["shares_percent"].check(share, f"{where}: shares_percent")
               for share in shares]
    if checked and abs(sum(checked) - 100) > SHARES_TOLERANCE_PERCENT:
        raise UsageError(f"{where}: shares_percent sum to {sum(checked):.2f}, not to 100 ±"
                         f" {SHARES_TOLERANCE_PERCENT:g}")
    return Axis(by=by, values=values, labels=tuple(labels), shares_percent=tuple(checked))


def _figure(table: dict[str, Any], where: str) -> Figure:
    name = _text(table, "name", where)
    if not re.fullmatch(r"[a-z0-9_]+", name):
        raise UsageError(f"{where}: name becomes a file name: a-z, 0-9 and _ only")
    return Figure(
        name=name, title=_text(table, "title", where),
        kind=_one_of(_value(table, "kind", where), KINDS, f"{where}: kind"),
        sweep=_text(table, "sweep", where),
        by=_one_of(_value(table, "by", where), BUCKETED, f"{where}: by"),
        weights=_text(table, "weights", where, ""),
        baseline_initcwnd=_window(table, "baseline_initcwnd", where),
        experiment_initcwnd=_window(table, "experiment_initcwnd", where),
        metric=_one_of(_value(table, "metric", where), METRICS, f"{where}: metric"),
        published=_text(table, "published", where, ""), panel=_text(table, "panel", where, ""))


def _window(table: dict[str, Any], key: str, where: str) -> int:
    return int(QUANTITIES["initcwnd"].check(_value(table, key, where), f"{where}: {key}"))


def _raw(table: dict[str, Any], sweeps: Sequence[Sweep], where: str) -> Raw:
    if not isinstance(table, dict):
        raise UsageError(f"{where}: has to be a table")
    _known_keys(table, RAW_KEYS, where)
    defects = []
    for row, row_where in _tables(table, "defect", "mark", DEFECT_KEYS, where):
        by = _one_of(_value(row, "by", row_where), BUCKETED, f"{row_where}: by")
        defects.append(Defect(
            by=by, values=_checked_numbers(_value(row, "values", row_where), by,
                                           f"{row_where}: values"),
            mark=_text(row, "mark", row_where), why=_text(row, "why", row_where)))
    extra_rtts = table.get("extra_rtts", 0)
    if isinstance(extra_rtts, bool) or not isinstance(extra_rtts, (int, float)):
        raise UsageError(f"{where}: extra_rtts: {extra_rtts!r} is not a number")
    return Raw(file=_text(table, "file", where),
               sweep=_one_of(_value(table, "sweep", where), [sweep.name for sweep in sweeps],
                             f"{where}: sweep"),
               metric=_one_of(_value(table, "metric", where), METRICS, f"{where}: metric"),
               extra_rtts=float(extra_rtts), extra_why=_text(table, "extra_why", where, ""),
               defects=tuple(defects))


def _check_figure(scenario: Scenario, figure: Figure, where: str) -> None:
    """Whether the figure's sweep, axes and windows fit together; raises UsageError."""
    _one_of(figure.sweep, [sweep.name for sweep in scenario.sweeps], f"{where}: sweep")
    sweep = scenario.sweep(figure.sweep)
    for initcwnd in (figure.baseline_initcwnd, figure.experiment_initcwnd):
        if initcwnd not in sweep.initcwnd:
            raise UsageError(f"{where}: sweep {sweep.name!r} has no initcwnd {initcwnd}")
    cells: dict[float, int] = {}
    for rtt_ms, bandwidth_kbps in sweep.networks:
        for response_bytes in sweep.response_bytes:
            value = bucket_value(figure.by, rtt_ms, bandwidth_kbps, response_bytes)
            cells[value] = cells.get(value, 0) + 1
    axis = scenario.axis(figure.by)
    if axis is None:
        raise UsageError(f'{where}: there is no [[axis]] with by = "{figure.by}"')
    _same_values(axis.values, cells, f"{where}: {figure.by}", sweep.name)
    if not figure.weights:
        if max(cells.values()) > 1:
            raise UsageError(f"{where}: several cells fall in one bucket of {figure.by};"
                             " say by which axis they are weighted")
        return
    if figure.weights == figure.by:
        raise UsageError(f"{where}: weights: has to be another axis than by")
    weights = scenario.axis(figure.weights)
    if weights is None or not weights.shares_percent:
        raise UsageError(f"{where}: weights: there is no [[axis]] with"
                         f' by = "{figure.weights}" and shares_percent')
    weighted = [bucket_value(figure.weights, rtt, bandwidth, size)
                for rtt, bandwidth in sweep.networks for size in sweep.response_bytes]
    _same_values(weights.values, weighted, f"{where}: {figure.weights}", sweep.name)


def _same_values(axis: Iterable[float], sweep: Iterable[float], where: str, name: str) -> None:
    odd = sorted(set(axis) ^ set(sweep))
    if odd:
        raise UsageError(f"{where}: the axis and sweep {name!r} differ in"
                         f" {', '.join(plain(value) for value in odd)}")


def _tables(raw: dict[str, Any], kind: str, key: str, known: Sequence[str],
            file: str) -> list[tuple[dict[str, Any], str]]:
    """The [[kind]] tables, each with the words that name it in a message."""
    tables = raw.get(kind, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise UsageError(f"{file}: {kind} has to be tables, [[{kind}]]")
    named: list[tuple[dict[str, Any], str]] = []
    for number, table in enumerate(tables, start=1):
        where = f'{file}: [[{kind}]] {number}'
        if isinstance(table.get(key), str):
            where = f'{file}: [[{kind}]] "{table[key]}"'
        _known_keys(table, known, where)
        if any(table.get(key) == other.get(key) for other, _ in named):
            raise UsageError(f"{where}: there are two of them")
        named.append((table, where))
    return named


def _table(raw: dict[str, Any], key: str, file: str) -> dict[str, Any]:
    table = raw.get(key, {})
    if not isinstance(table, dict):
        raise UsageError(f"{file}: {key} has to be a table, [{key}]")
    return table


def _known_keys(table: dict[str, Any], known: Sequence[str], where: str) -> None:
    for key in table:
        if key not in known:
            raise UsageError(f"{where}: unknown key {key!r}{nearest(key, known)};"
                             f" known: {', '.join(known)}")


def _value(table: dict[str, Any], key: str, where: str) -> Any:
    if key not in table:
        raise UsageError(f"{where}: {key} is missing")
    return table[key]


def _text(table: dict[str, Any], key: str, where: str, default: str | None = None) -> str:
    value = table.get(key, default) if default is not None else _value(table, key, where)
    if not isinstance(value, str):
        raise UsageError(f"{where}: {key} has to be a string, it is {value!r}")
    return value


def _one_of(value: Any, known: Sequence[str], where: str) -> str:
    if value not in known:
        raise UsageError(f"{where}: unknown {value!r}{nearest(str(value), known)};"
                         f" known: {', '.join(known)}")
    return str(value)


def _number(table: dict[str, Any], key: str, where: str) -> Any:
    return QUANTITIES[key].check(_value(table, key, where), f"{where}: {key}")


def _numbers(table: dict[str, Any], key: str, where: str) -> tuple[Any, ...]:
    return _checked_numbers(_value(table, key, where), key, f"{where}: {key}")


def _checked_numbers(values: Any, quantity: str, where: str) -> tuple[Any, ...]:
    if not isinstance(values, list) or not values:
        raise UsageError(f"{where}: has to be a list of numbers, it is {values!r}")
    checked = tuple(QUANTITIES[quantity].check(value, where) for value in values)
    if len(set(checked)) != len(checked):
        raise UsageError(f"{where}: has a value twice")
    return checked


def _congestion_control(value: Any, where: str) -> str:
    # TCP_CA_NAME_MAX is 16 with the final zero; which names exist, the kernel knows.
    if not isinstance(value, str) or not re.fullmatch(r"[a-z0-9_]{1,15}", value):
        raise UsageError(f"{where}: congestion_control: {value!r} is no name of an algorithm")
    return value


def _checked(overrides: Overrides) -> dict[str, Any]:
    """The overrides that are given, checked. Raises UsageError that names the flag."""
    checked: dict[str, Any] = {}
    for column in fields(Overrides):
        key, value, flag = column.name, getattr(overrides, column.name), FLAGS[column.name]
        if value is None:
            continue
        if key == "client":
            checked[key] = _one_of(value, CLIENTS, flag)
        elif key == "congestion_control":
            checked[key] = _congestion_control(value, flag)
        elif key == "repeat":
            checked[key] = QUANTITIES[key].check(value, flag)
        elif not value:
            raise UsageError(f"{flag}: no value is given")
        else:
            checked[key] = tuple(dict.fromkeys(QUANTITIES[key].check(each, flag)
                                               for each in value))
    return checked
