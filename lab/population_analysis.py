"""What a drawn population says: the paper's bars, percentiles and window means.

Every response was measured under each initial window, so that results are
paired: what differs between two windows is the window. Means carry the
weights of the draw (lab.population.sample); intervals come from resampling
clients, not responses, since the responses of one client share its network
(a cluster bootstrap, Efron and Tibshirani 1993, section 8.5).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy
from numpy.typing import NDArray

from lab import published
from lab.analysis import Bucket, Excluded, MissingCells, NothingCounts, Panel, percent_of
from lab.comparison import WITHIN_PERCENT, WITHIN_POINTS
from lab.errors import UsageError
from lab.published import PublishedBucket
from lab.records import Record
from lab.scenario import IMPROVEMENT, PERCENTILES, WINDOW_SWEEP, Figure, Scenario
from lab.trial import Trial

Numbers = NDArray[numpy.float64]
RESAMPLES = 400
INTERVAL = (2.5, 97.5)
PAPER_SEGMENT_BYTES = 1430  # the paper's footnote 1


@dataclass(frozen=True)
class Paired:
    """Responses of one part measured under two windows, one row each.

    weight, base_ms, experiment_ms, and the quantities of the paper's axes, all
    of shape (n,); client: a number per client, shape (n,), 0 … clients − 1.
    unpaired: a trial of each response that lacks a counting record of either window.
    """

    weight: Numbers
    base_ms: Numbers
    experiment_ms: Numbers
    rtt_ms: Numbers
    bandwidth_kbps: Numbers
    segments: Numbers
    client: NDArray[numpy.intp]
    unpaired: tuple[Trial, ...]

    def only(self, inside: NDArray[numpy.bool_]) -> Paired:
        """The rows where `inside`, of shape (n,), is true, and nothing unpaired."""
        return Paired(self.weight[inside], self.base_ms[inside], self.experiment_ms[inside],
                      self.rtt_ms[inside], self.bandwidth_kbps[inside], self.segments[inside],
                      self.client[inside], ())

    def quantity(self, by: str) -> Numbers:
        """What an axis of the paper buckets by, shape (n,)."""
        return {"rtt_ms": self.rtt_ms, "bandwidth_kbps": self.bandwidth_kbps,
                "bdp_bytes": self.rtt_ms * self.bandwidth_kbps / 8,
                "response_segments": self.segments}[by]

    def unpaired_quantity(self, by: str) -> Numbers:
        """The same of the responses that are unpaired."""
        return Paired(numpy.empty(0), numpy.empty(0), numpy.empty(0), *keys(self.unpaired),
                      numpy.empty(0, numpy.intp), ()).quantity(by)


def keys(trials: Sequence[Trial]) -> tuple[Numbers, Numbers, Numbers]:
    """Key RTT (ms), key bandwidth (kbit/s) and segments of trials, shape (n,) each."""
    return (numpy.array([float(trial.key_rtt_ms or 0) for trial in trials]),
            numpy.array([float(trial.key_bandwidth_kbps or 0) for trial in trials]),
            numpy.ceil(numpy.array([trial.response_bytes for trial in trials])
                       / PAPER_SEGMENT_BYTES))


def pair(records: Iterable[Record], figure: Figure) -> Paired:
    """The responses of a figure's part that count under both of its windows.

    Raises MissingCells where none was measured, NothingCounts where none counts.
    """
    base, experiment = figure.baseline_initcwnd, figure.experiment_initcwnd
    chosen: dict[int, dict[int, Record]] = {}
    for record in records:
        if record.trial.part == figure.sweep and record.trial.initcwnd in (base, experiment):
            chosen.setdefault(record.trial.sample, {})[record.trial.initcwnd] = record
    if not chosen:
        raise MissingCells(f"{figure.name}: nothing of population '{figure.sweep}' was measured",
                           "./run.sh --scenario with this scenario's name")
    both = [(rows[base], rows[experiment]) for _, rows in sorted(chosen.items())
            if base in rows and experiment in rows
            and usable(rows[base], figure.metric) and usable(rows[experiment], figure.metric)]
    if not both:
        raise NothingCounts(f"{figure.name}: no response of '{figure.sweep}' counts under both"
                            f" windows, {base} and {experiment}")
    trials = [first.trial for first, _ in both]
    clients = [(trial.key_rtt_ms, trial.key_bandwidth_kbps) for trial in trials]
    numbers = {client: number for number, client in enumerate(dict.fromkeys(clients))}
    paired = {trial.sample for trial in trials}
    rtt_ms, bandwidth_kbps, segments = keys(trials)
    return Paired(
        weight=numpy.array([trial.weight for trial in trials]),
        base_ms=numpy.array([getattr(first, figure.metric) for first, _ in both]),
        experiment_ms=numpy.array([getattr(second, figure.metric) for _, second in both]),
        rtt_ms=rtt_ms, bandwidth_kbps=bandwidth_kbps, segments=segments,
        client=numpy.array([numbers[client] for client in clients]),
        unpaired=tuple(next(iter(rows.values())).trial for sample, rows in sorted(chosen.items())
                       if sample not in paired))


def usable(record: Record, metric: str) -> bool:
    return record.counts and getattr(record, metric) is not None


def panel(scenario: Scenario, figure: Figure, records: Sequence[Record]) -> Panel:
    """The rows of a figure of a population, whatever its kind.

    Raises NothingCounts where a bucket has no response that counts.
    """
    made = scenario.population(figure.sweep)
    assert made is not None and scenario.like is not None  # the scenario's reader saw to it
    if figure.kind == WINDOW_SWEEP:
        rows = window_buckets(records, figure, made.initcwnd)
    else:
        paired = pair(records, figure)
        rows = (percentile_buckets(paired, figure) if figure.kind == PERCENTILES
                else buckets(paired, figure))
    made_panel = Panel(figure, tuple(rows), scenario.like.client, scenario.like.congestion_control)
    if figure.kind == PERCENTILES:  # all of the same records: they count once
        return replace(made_panel, counted=rows[0].n, left_out=rows[0].excluded)
    return made_panel


def buckets(paired: Paired, figure: Figure) -> list[Bucket]:
    """One bucket per published one, named by its upper end, the last open (">5000")."""
    bars = published.buckets(figure.published, figure.panel)
    ends = [float(label) for label in bars if not label.startswith(">")]
    number = numpy.searchsorted(ends, paired.quantity(figure.by), side="left")
    unpaired = numpy.searchsorted(ends, paired.unpaired_quantity(figure.by), side="left")
    factors = resampling_factors(paired)
    made = []
    for place, (label, bar) in enumerate(bars.items()):
        inside = number == place
        if not inside.any():
            raise NothingCounts(f"{figure.name}: no response fell into the bucket '{label}'")
        value = ends[place] if place < len(ends) else ends[-1] * 2
        made.append(replace(
            _bucket(bar, value, paired.only(inside), factors,
                    100 * float(paired.weight[inside].sum() / paired.weight.sum())),
            excluded=Excluded(unpaired=int((unpaired == place).sum()))))
    return made


def _bucket(bar: PublishedBucket, value: float, paired: Paired, factors: Numbers,
            share_percent: float) -> Bucket:
    weights = [paired.weight, *(factors[:, paired.client] * paired.weight)]
    means = numpy.array([(weight @ paired.base_ms / weight.sum(),
                          weight @ paired.experiment_ms / weight.sum())
                         for weight in weights if weight.sum() > 0])
    return _made(bar, value, paired, means, share_percent)


def _made(bar: PublishedBucket, value: float, paired: Paired, drawn: Numbers,
          share_percent: float | None) -> Bucket:
    """A bucket from base and experiment of the sample (row 0) and its resamples, shape (r, 2)."""
    base_ms, experiment_ms = float(drawn[0, 0]), float(drawn[0, 1])
    gains = drawn[1:, 0] - drawn[1:, 1]
    base_median_ms = quantile(paired.base_ms, paired.weight, 0.5)
    experiment_median_ms = quantile(paired.experiment_ms, paired.weight, 0.5)
    cells = len(set(paired.client.tolist()))
    return Bucket(
        label=bar.label, value=value, share_percent=share_percent, n=2 * len(paired.weight),
        excluded=Excluded(unpaired=len(paired.unpaired)), cells=cells, cells_asked=cells,
        base_ms=base_ms, experiment_ms=experiment_ms, absolute_ms=base_ms - experiment_ms,
        percent=percent_of(base_ms, experiment_ms), base_median_ms=base_median_ms,
        experiment_median_ms=experiment_median_ms,
        median_absolute_ms=base_median_ms - experiment_median_ms,
        median_percent=percent_of(base_median_ms, experiment_median_ms),
        published_absolute_ms=bar.absolute_ms, published_percent=bar.percent,
        absolute_interval_ms=interval(gains), percent_interval=interval(100 * gains / drawn[1:, 0]),
        experiment_interval_ms=interval(drawn[1:, 1]), published_ms=bar.total_ms)


def percentile_buckets(paired: Paired, figure: Figure) -> list[Bucket]:
    """The mean and the percentiles that the paper's table has, "mean", "p50", …"""
    if figure.panel.endswith("_56"):  # Table 4 is of the clients up to 56 kbit/s
        paired = paired.only(paired.bandwidth_kbps <= 56)
    factors = resampling_factors(paired)
    weights = [paired.weight, *(factors[:, paired.client] * paired.weight)]
    made = []
    for bar in published.buckets(figure.published, figure.panel).values():
        share = percentile_of(bar.label)
        drawn = numpy.array([[statistic(values, weight, share) for values in
                              (paired.base_ms, paired.experiment_ms)]
                             for weight in weights if weight.sum() > 0])
        made.append(_made(bar, 100 * share if share is not None else 0.0, paired, drawn, None))
    return made


def percentile_of(label: str) -> float | None:
    """0.5 for "p50", None for "mean". Raises UsageError for what is neither."""
    if label == "mean":
        return None
    try:
        share = float(label.removeprefix("p")) / 100
    except ValueError:
        share = -1.0
    if not label.startswith("p") or not 0 < share < 1:
        raise UsageError(f"'{label}' is no percentile: mean, or p and a number between 0 and 100")
    return share


def statistic(values: Numbers, weight: Numbers, share: float | None) -> float:
    if share is None:
        return float(weight @ values / weight.sum())
    return quantile(values, weight, share)


def window_buckets(records: Sequence[Record], figure: Figure,
                   windows: Sequence[int]) -> list[Bucket]:
    """The mean under each window, over the responses that count under it and the baseline."""
    bars = published.buckets(figure.published, figure.panel) if figure.published else {}
    made = []
    for window in windows:
        paired = pair(records, replace(figure, experiment_initcwnd=window))
        bar = bars.get(str(window), PublishedBucket(str(window), None, None, None))
        made.append(_bucket(bar, float(window), paired, resampling_factors(paired), 100.0))
    # Of each window only its own fetches: the baseline's are counted with the baseline.
    return [replace(bucket, share_percent=None, n=bucket.n // 2) for bucket in made]


def resampling_factors(paired: Paired) -> Numbers:
    """How often each client is drawn in each resample, shape (RESAMPLES, clients)."""
    clients = int(paired.client.max()) + 1
    generator = numpy.random.default_rng(1)  # the same intervals whenever they are asked for
    drawn: Numbers = generator.multinomial(clients, numpy.full(clients, 1 / clients),
                                           size=RESAMPLES).astype(float)
    return drawn


def quantile(values: Numbers, weight: Numbers, share: float) -> float:
    """The smallest value with at least this share of the weight at or below it."""
    order = numpy.argsort(values, kind="stable")
    cumulated = numpy.cumsum(weight[order])
    place = numpy.searchsorted(cumulated, share * cumulated[-1])
    return float(values[order][min(place, len(values) - 1)])


def interval(values: Numbers) -> tuple[float, float]:
    low, high = numpy.percentile(values, INTERVAL)
    return float(low), float(high)


@dataclass(frozen=True)
class Cause:
    """What the paper's Figure 5 looks like with the causes up to this one.

    panels: "RTT", "BW", "BDP" → its buckets; within: how many of all buckets
    are within the bounds of `close`.
    """

    name: str
    title: str
    base_ms: float
    absolute_ms: float
    panels: dict[str, list[Bucket]]
    within: int


AXES = {"RTT": "rtt_ms", "BW": "bandwidth_kbps", "BDP": "bdp_bytes"}
FIGURE5 = "paper_figure5.csv"


def causes(scenario: Scenario, records: Sequence[Record]) -> list[Cause]:
    """One per population that no figure shows, in the order of the file.

    Those populations differ from each other by one mechanism at a time. Raises
    MissingCells, NothingCounts.
    """
    shown = {figure.sweep for figure in scenario.figures}
    made = []
    for drawn in scenario.populations:
        if drawn.name in shown:
            continue
        figures = {axis: Figure(name=f"causes {drawn.name}", title=drawn.title, kind=IMPROVEMENT,
                                sweep=drawn.name, by=by, weights="",
                                baseline_initcwnd=drawn.initcwnd[0],
                                experiment_initcwnd=drawn.initcwnd[-1], metric="latency_ms",
                                published=FIGURE5, panel=axis) for axis, by in AXES.items()}
        paired = pair(records, figures["RTT"])
        panels = {axis: buckets(paired, figure) for axis, figure in figures.items()}
        share = paired.weight / paired.weight.sum()
        made.append(Cause(drawn.name, drawn.title, float(share @ paired.base_ms),
                          float(share @ (paired.base_ms - paired.experiment_ms)), panels,
                          sum(close(bucket) for rows in panels.values() for bucket in rows)))
    return made


def close(bucket: Bucket) -> bool:
    """Within ±30 % of the published ms and ±3 points of the published percentage."""
    if not bucket.published_absolute_ms or bucket.published_percent is None:
        return False
    return (abs(100 * bucket.absolute_ms / bucket.published_absolute_ms - 100) <= WITHIN_PERCENT
            and abs(bucket.percent - bucket.published_percent) <= WITHIN_POINTS)
