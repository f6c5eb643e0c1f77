"""Scenarios: TOML files that say what to measure, expanded into trials.

A scenario file opens with a comment line, the claim in one sentence, then::

    title = "…"            # one line
    source = "…"           # who published it, where

    [sysctls]              # optional: TCP settings other than engines.kernel.TCP_SYSCTLS
    "net.ipv4.tcp_sack" = "0"

    [defaults]             # what every sweep has unless it says otherwise
    response_bytes = [9000]
    initcwnd = [3, 10]     # segments
    initrwnd = 27          # segments
    congestion_control = "cubic"
    client = "curl"        # or "wget", or "libcurl": curl's library, for many fetches
    repeat = 1
    repeat_with_loss = 1   # optional: where random loss decides; without it, repeat
    queue_packets = 1000
    loss_percent = 0       # or a list; 0 in it measures the same network without loss
    uplink = "same"        # as fast as the downlink, or a number of kbit/s

    [[sweep]]              # every RTT with every bandwidth, or pairs of them
    name = "grid"
    rtt_ms = [20, 50]
    bandwidth_kbps = [56, 256]
    # pairs = [[70, 1200], …]     (rtt_ms, bandwidth_kbps), instead of the two
    # and any key of [defaults]

    [[axis]]               # the buckets of one quantity
    by = "rtt_ms"          # rtt_ms, bandwidth_kbps, bdp_bytes, response_bytes, loss_percent;
    values = [20, 50]      # without an axis the sweep's own values, in its order
    labels = ["20", "50"]  # optional
    shares_percent = [40, 60]     # optional: of all responses; sum 100

    [[figure]]
    name = "fig5_rtt"
    title = "…"
    kind = "improvement"   # of one window over another, a bar for each bucket of `by`;
                           # "loss": the same with an even scale, by = "loss_percent";
                           # "window_sweep": times against windows, by = "initcwnd"
    sweep = "grid"
    by = "rtt_ms"
    weights = "bandwidth_kbps"    # optional: average over this axis by its shares, or
                                  # "joint": by = "bdp_bytes", over the joint distribution
                                  # of RTT and bandwidth (lab.population)
    baseline_initcwnd = 3
    experiment_initcwnd = 10      # "window_sweep" compares all and needs none
    metric = "total_ms"           # or latency_ms, see lab.records
    published = "paper_figure5.csv"   # optional, with its panel
    panel = "RTT"
    percent_of = "baseline"       # optional: what the published percentages are of; or
                                  # "experiment": they are base / experiment − 1

    [[claim]]              # optional: what was published in words
    figure = "fig5_rtt"
    says = "…"
    larger = ["100", "50"]        # one of: the first bar's percentage is the larger,
    # equal = ["42", "26"]        # two bars' milliseconds are equal,
    # highest_percent = 40        # the highest bar

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

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lab.errors import UsageError
from lab.toml_file import QUANTITIES as QUANTITIES
from lab.toml_file import congestion_control_name, one_of
from lab.toml_file import nearest as nearest
from lab.toml_file import plain as plain
from lab.trial import Trial

if TYPE_CHECKING:  # numpy is slow to import, and a scenario without a population needs none
    from lab import draws

SCENARIOS = Path(__file__).resolve().parent.parent / "scenarios"

CLIENTS = ("curl", "libcurl", "wget")
IMPROVEMENT, LOSS, WINDOW_SWEEP = "improvement", "loss", "window_sweep"
KINDS = (IMPROVEMENT, LOSS, WINDOW_SWEEP, "percentiles")
METRICS = ("total_ms", "latency_ms")
PERCENTILES = "percentiles"
DRAWN_KINDS = (IMPROVEMENT, WINDOW_SWEEP, PERCENTILES)  # figures of a population
BUCKETED = ("rtt_ms", "bandwidth_kbps", "bdp_bytes", "response_bytes", "loss_percent",
            "initcwnd", "response_segments", "percentile")
JOINT = "joint"  # weights: the joint distribution of RTT and bandwidth
OF_BASELINE, OF_EXPERIMENT = "baseline", "experiment"  # what a percentage is a part of
MOST_TRIALS = 1_000_000  # more would take days, and more memory than a laptop has


class Cell(NamedTuple):
    """What is measured with every window: a network and a response."""

    rtt_ms: float
    bandwidth_kbps: float
    response_bytes: int
    loss_percent: float = 0.0


@dataclass(frozen=True)
class Sweep:
    """Networks, windows and sizes that are measured in every combination.

    networks: (rtt_ms, bandwidth_kbps) each.
    repeat_with_loss: in place of repeat for a loss rate above 0.
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
    repeat_with_loss: int
    queue_packets: int
    loss_percent: tuple[float, ...]
    uplink_kbps: float | None

    @property
    def cells(self) -> list[Cell]:
        return [Cell(rtt_ms, bandwidth_kbps, response_bytes, loss_percent)
                for rtt_ms, bandwidth_kbps in self.networks
                for loss_percent in self.loss_percent
                for response_bytes in self.response_bytes]

    def repeats(self, loss_percent: float) -> int:
        return self.repeat_with_loss if loss_percent else self.repeat

    @property
    def count(self) -> int:
        """How many trials there are."""
        return (len(self.networks) * len(self.response_bytes) * len(self.initcwnd)
                * sum(self.repeats(loss_percent) for loss_percent in self.loss_percent))

    def trials(self, scenario: str, seed: int) -> Iterator[Trial]:
        """Windows alternate within a repeat, so that both meet the same conditions.

        Both also meet the same random numbers: their difference is then far
        less a matter of chance than either time.
        """
        for cell in self.cells:
            for repeat in range(1, self.repeats(cell.loss_percent) + 1):
                for initcwnd in self.initcwnd:
                    yield Trial(
                        scenario=scenario, rtt_ms=cell.rtt_ms,
                        bandwidth_kbps=cell.bandwidth_kbps,
                        uplink_kbps=cell.bandwidth_kbps if self.uplink_kbps is None
                        else self.uplink_kbps,
                        queue_packets=self.queue_packets, loss_percent=cell.loss_percent,
                        initcwnd=initcwnd, initrwnd=self.initrwnd,
                        congestion_control=self.congestion_control, client=self.client,
                        response_bytes=cell.response_bytes, repeat=repeat,
                        seed=seed_of(seed, repeat) if cell.loss_percent else 0)


def seed_of(run_seed: int, repeat: int) -> int:
    """The seed of one repeat's random numbers, 32 bits.

    Mixed, since netem's generator starts neighbouring seeds alike: of the
    seeds 1 to 100, as they are, 12 would lose the fifth packet at 2 % and
    none some others (kernel, prandom_seed_state: no warm-up).
    """
    return zlib.crc32(f"{run_seed} {repeat}".encode()) * 0x9E3779B1 % 2**32


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
    averaged over, by that axis's shares, or JOINT ("" for one cell a bucket).
    published, panel: file in paper/ and the panel in it ("" for none);
    percent_of: OF_BASELINE or OF_EXPERIMENT, the published percentages.
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
    percent_of: str = OF_BASELINE


@dataclass(frozen=True)
class Claim:
    """What a source says of a figure in words, as a test on its bars.

    larger: the first bar's percentage is larger than the second's; equal:
    the two are equal in ms; highest_percent: of all bars. Empty or None: not said.
    """

    figure: str
    says: str
    larger: tuple[str, ...] = ()
    equal: tuple[str, ...] = ()
    highest_percent: float | None = None


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

    sysctls: by name, what differs from engines.kernel.TCP_SYSCTLS; text: the whole file.
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
    claims: tuple[Claim, ...] = ()
    populations: tuple[draws.Population, ...] = ()
    like: Trial | None = None  # what a population's trials have that it does not draw

    def population(self, name: str) -> draws.Population | None:
        return next((each for each in self.populations if each.name == name), None)

    def sweep(self, name: str) -> Sweep:
        return next(sweep for sweep in self.sweeps if sweep.name == name)

    def axis(self, by: str) -> Axis | None:
        return next((axis for axis in self.axes if axis.by == by), None)

    def axis_of(self, figure: Figure) -> Axis:
        """The buckets of a figure: of the [[axis]], or else the sweep's own values."""
        axis = self.axis(figure.by)
        if axis is not None and figure.kind != WINDOW_SWEEP:
            return axis
        sweep = self.sweep(figure.sweep)
        values: Iterable[float] = (
            sweep.initcwnd if figure.by == "initcwnd" else
            dict.fromkeys(bucket_value(figure.by, cell) for cell in sweep.cells))
        return Axis(figure.by, tuple(values), tuple(plain(value) for value in values), ())


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
    load: Sequence[float] | None = None  # of a load scenario


FLAGS = {"rtt_ms": "--rtt", "bandwidth_kbps": "--bw", "initcwnd": "--iw",
         "response_bytes": "--size", "repeat": "--repeat", "client": "--client",
         "congestion_control": "--congestion-control", "load": "--load"}


def names(folder: Path = SCENARIOS) -> list[str]:
    """The scenarios that there are, sorted."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def path_of(name: str, folder: Path = SCENARIOS) -> Path:
    """The file of a scenario of any kind. Raises UsageError where there is none of this name."""
    known = names(folder)
    if name not in known:
        raise UsageError(f"unknown scenario {name!r}{nearest(name, known)}; known:"
                         f" {', '.join(known) or 'none'}")
    return folder / f"{name}.toml"


def load(name: str, folder: Path = SCENARIOS) -> Scenario:
    """Read and check scenarios/<name>.toml. Raises UsageError."""
    path = path_of(name, folder)
    from lab.scenario_file import read  # which needs the classes of this module

    return read(path)


def expand(scenario: Scenario, overrides: Overrides = Overrides(), seed: int = 1) -> list[Trial]:
    """All trials of the scenario, without duplicates, in the order to measure them.

    Values in `overrides` replace the sweeps' lists; `seed` is the run's, for
    what is random. Trials of one network shape stand together, since
    re-shaping costs time; shapes, and trials within one, stand in the order
    of the file. Raises UsageError.
    """
    sweeps = apply(scenario, overrides).sweeps
    _check_count(sum(sweep.count for sweep in sweeps))
    shapes: dict[tuple[float, ...], dict[Trial, None]] = {}
    for sweep in sweeps:
        for trial in sweep.trials(scenario.name, seed):
            shape = (trial.rtt_ms, trial.bandwidth_kbps, trial.uplink_kbps,
                     trial.queue_packets, trial.loss_percent)
            shapes.setdefault(shape, {})[trial] = None
    return [trial for trials in shapes.values() for trial in trials] + drawn(
        apply(scenario, overrides), seed)


def drawn(scenario: Scenario, seed: int) -> list[Trial]:
    """The trials of the scenario's populations."""
    if scenario.like is None:
        return []
    from lab import draws
    return [trial for made in scenario.populations
            for trial in draws.trials(made, scenario.like, seed)]


def apply(scenario: Scenario, overrides: Overrides) -> Scenario:
    """The scenario with the overrides in its sweeps. Raises UsageError."""
    given = _checked(overrides)
    if "load" in given:
        raise UsageError(f"{scenario.name}: --load: one transfer at a time is no load; the"
                         " scenarios that take it are of kind load (--list)")
    plain_changes = {key: value for key, value in given.items()
                     if key not in ("rtt_ms", "bandwidth_kbps")}
    if "repeat" in given:
        plain_changes["repeat_with_loss"] = given["repeat"]
    sweeps = []
    for sweep in scenario.sweeps:
        networks = sweep.networks
        if "rtt_ms" in given or "bandwidth_kbps" in given:
            networks = _combined(given.get("rtt_ms", [rtt for rtt, _ in networks]),
                                 given.get("bandwidth_kbps", [each for _, each in networks]))
        sweeps.append(replace(sweep, networks=networks, **plain_changes))
    if scenario.populations and {"rtt_ms", "bandwidth_kbps", "response_bytes",
                                 "repeat"} & set(given):
        raise UsageError(f"{scenario.name} draws its clients and responses: it takes --iw and"
                         " --seed, and no list of RTTs, bandwidths, sizes or repeats")
    windows = given.get("initcwnd")
    return replace(scenario, sweeps=tuple(sweeps), populations=tuple(
        replace(made, initcwnd=tuple(windows)) if windows else made
        for made in scenario.populations))


def _combined(rtts_ms: Sequence[float],
              bandwidths_kbps: Sequence[float]) -> tuple[tuple[float, float], ...]:
    """Every RTT with every bandwidth, each once."""
    rtts, bandwidths = dict.fromkeys(rtts_ms), dict.fromkeys(bandwidths_kbps)
    _check_count(len(rtts) * len(bandwidths))
    return tuple((rtt, bandwidth) for rtt in rtts for bandwidth in bandwidths)


def _check_count(count: int) -> None:
    if count > MOST_TRIALS:
        raise UsageError(f"{count} trials are asked for, at most {MOST_TRIALS} fit in one run")


def covers(scenario: Scenario, overrides: Overrides) -> bool:
    """Whether the overrides leave every cell and window of the scenario in, for its figures."""
    if overrides == Overrides():
        return True  # drawing a population takes seconds
    def settings(trials: list[Trial]) -> set[tuple[object, ...]]:
        return {(trial.rtt_ms, trial.bandwidth_kbps, trial.response_bytes, trial.loss_percent,
                 trial.initcwnd, trial.part, trial.sample) for trial in trials}

    return settings(expand(scenario)) <= settings(expand(scenario, overrides))


def bucket_value(by: str, cell: Cell) -> float:
    """The value that places a cell in a bucket of `by`, in the unit of its name."""
    if by == "bdp_bytes":
        return cell.rtt_ms * cell.bandwidth_kbps / 8
    value: float = getattr(cell, by)
    return value


def _checked(overrides: Overrides) -> dict[str, Any]:
    """The overrides that are given, checked. Raises UsageError that names the flag."""
    checked: dict[str, Any] = {}
    for column in fields(Overrides):
        key, value, flag = column.name, getattr(overrides, column.name), FLAGS[column.name]
        if value is None:
            continue
        if key == "client":
            checked[key] = one_of(value, CLIENTS, flag)
        elif key == "congestion_control":
            checked[key] = congestion_control_name(value, flag)
        elif key == "repeat":
            checked[key] = QUANTITIES[key].check(value, flag)
        elif not value:
            raise UsageError(f"{flag}: no value is given")
        else:
            checked[key] = tuple(dict.fromkeys(QUANTITIES[key].check(each, flag)
                                               for each in value))
    return checked
