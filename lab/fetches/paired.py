"""What a drawn population says: the paper's bars, percentiles and window means.

Every response was measured under each initial window, so that results are
paired: what differs between two windows is the window. Means carry the
weights of the draw (lab.fetches.population.sample); intervals come from
resampling clients, not responses, since the responses of one client share its
network (a cluster bootstrap, Efron and Tibshirani 1993, section 8.5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy
from numpy.typing import NDArray

from lab.core import published
from lab.core.charts import Sample
from lab.core.errors import UsageError
from lab.fetches.buckets import (Bucket, Excluded, MissingCells, NothingCounts, Panel, Published,
                                 published_bars, sign_of)
from lab.fetches.record import Record
from lab.fetches.scenario import PERCENTILES, WINDOW_SWEEP, Figure, Scenario
from lab.fetches.trial import Trial

Numbers = NDArray[numpy.float64]
RESAMPLES = 400
INTERVAL = (2.5, 97.5)
PAPER_SEGMENT_BYTES = 1430  # the paper's footnote 1


@dataclass(frozen=True)
class Paired:
    """Responses of one part measured under two windows, one row each.

    weight, base, experiment (the figure's metric), and the quantities of the
    paper's axes, all of shape (n,); client: a number per client, shape (n,),
    0 … clients − 1. sign: see buckets.Bucket. unpaired: a trial of each
    response that lacks a counting record of either window.
    """

    weight: Numbers
    base: Numbers
    experiment: Numbers
    rtt_ms: Numbers
    bandwidth_kbps: Numbers
    segments: Numbers
    client: NDArray[numpy.intp]
    sign: int
    unpaired: tuple[Trial, ...]

    def only(self, inside: NDArray[numpy.bool_]) -> Paired:
        """The rows where `inside`, of shape (n,), is true, and nothing unpaired."""
        return Paired(self.weight[inside], self.base[inside], self.experiment[inside],
                      self.rtt_ms[inside], self.bandwidth_kbps[inside], self.segments[inside],
                      self.client[inside], self.sign, ())

    def quantity(self, by: str) -> Numbers:
        """What an axis of the paper buckets by, shape (n,)."""
        return _quantity(by, self.rtt_ms, self.bandwidth_kbps, self.segments)

    def unpaired_quantity(self, by: str) -> Numbers:
        """The same of the responses that are unpaired."""
        return _quantity(by, *_keys(self.unpaired))

    def samples(self, figure: Figure) -> tuple[Sample, ...]:
        return (Sample(f"IW {figure.baseline_initcwnd}", self.base, self.weight),
                Sample(f"IW {figure.experiment_initcwnd}", self.experiment, self.weight))


def _quantity(by: str, rtt_ms: Numbers, bandwidth_kbps: Numbers, segments: Numbers) -> Numbers:
    return {"rtt_ms": rtt_ms, "bandwidth_kbps": bandwidth_kbps,
            "bdp_bytes": rtt_ms * bandwidth_kbps / 8, "response_segments": segments}[by]


def _keys(trials: Sequence[Trial]) -> tuple[Numbers, Numbers, Numbers]:
    """Key RTT (ms), key bandwidth (kbit/s) and segments of trials, shape (n,) each."""
    return (numpy.array([float(trial.key_rtt_ms or 0) for trial in trials]),
            numpy.array([float(trial.key_bandwidth_kbps or 0) for trial in trials]),
            numpy.ceil(numpy.array([trial.response_bytes for trial in trials])
                       / PAPER_SEGMENT_BYTES))


class Responses:
    """The records of populations by part, response and window; each pairing is made once."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._by_part: dict[str, dict[int, dict[int, Record]]] = {}
        self._paired: dict[tuple[str, int, int, str], Paired] = {}
        for record in records:
            trial = record.trial
            if trial.part:
                self._by_part.setdefault(trial.part, {}).setdefault(
                    trial.sample, {})[trial.initcwnd] = record

    def pair(self, figure: Figure) -> Paired:
        """The responses of a figure's part that count under both of its windows.

        Raises MissingCells where none was measured, NothingCounts where none counts.
        """
        key = (figure.sweep, figure.baseline_initcwnd, figure.experiment_initcwnd, figure.metric)
        if key not in self._paired:
            self._paired[key] = self._pair(figure)
        return self._paired[key]

    def _pair(self, figure: Figure) -> Paired:
        base, experiment = figure.baseline_initcwnd, figure.experiment_initcwnd
        chosen = {sample: rows for sample, rows in sorted(
            self._by_part.get(figure.sweep, {}).items()) if base in rows or experiment in rows}
        if not chosen:
            raise MissingCells(f"{figure.name}: nothing of population '{figure.sweep}' was"
                               " measured", "./run.sh --scenario with this scenario's name")
        both = {sample: (rows[base], rows[experiment]) for sample, rows in chosen.items()
                if base in rows and experiment in rows
                and _usable(rows[base], figure.metric) and _usable(rows[experiment], figure.metric)}
        if not both:
            raise NothingCounts(f"{figure.name}: no response of '{figure.sweep}' counts under both"
                                f" windows, {base} and {experiment}")
        trials = [first.trial for first, _ in both.values()]
        clients = [(trial.key_rtt_ms, trial.key_bandwidth_kbps) for trial in trials]
        numbers = {client: number for number, client in enumerate(dict.fromkeys(clients))}
        rtt_ms, bandwidth_kbps, segments = _keys(trials)
        return Paired(
            weight=numpy.array([trial.weight for trial in trials]),
            base=numpy.array([getattr(first, figure.metric) for first, _ in both.values()]),
            experiment=numpy.array([getattr(second, figure.metric)
                                    for _, second in both.values()]),
            rtt_ms=rtt_ms, bandwidth_kbps=bandwidth_kbps, segments=segments,
            client=numpy.array([numbers[client] for client in clients]),
            sign=sign_of(figure.metric),
            unpaired=tuple(_either(rows, base, experiment).trial
                           for sample, rows in chosen.items() if sample not in both))


def _usable(record: Record, metric: str) -> bool:
    return record.counts and getattr(record, metric) is not None


def _either(rows: dict[int, Record], base: int, experiment: int) -> Record:
    return rows[base] if base in rows else rows[experiment]


def panel(scenario: Scenario, figure: Figure, responses: Responses) -> Panel:
    """The rows of a figure of a population, whatever its kind.

    Raises NothingCounts where a bucket has no response that counts.
    """
    made = scenario.population(figure.sweep)
    assert made is not None and scenario.like is not None  # the scenario's reader saw to it
    client, algorithm = scenario.like.client, scenario.like.congestion_control
    if figure.kind == WINDOW_SWEEP:
        rows, samples = window_buckets(responses, figure, made.initcwnd)
        return Panel(figure, tuple(rows), client, algorithm, samples=samples)
    paired = responses.pair(figure)
    if figure.kind != PERCENTILES:
        return Panel(figure, tuple(buckets(paired, figure)), client, algorithm,
                     samples=paired.samples(figure))
    if figure.panel.endswith("_56"):  # Table 4 is of the clients up to 56 kbit/s
        paired = paired.only(paired.bandwidth_kbps <= 56)
    rows = percentile_buckets(paired, figure)
    # All of the same records: they count once.
    return Panel(figure, tuple(rows), client, algorithm, counted=rows[0].n,
                 left_out=rows[0].excluded, samples=paired.samples(figure))


def buckets(paired: Paired, figure: Figure) -> list[Bucket]:
    """One bucket per published one, named by its upper end, the last open (">5000")."""
    bars = published_bars(figure)
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
            _bucket(label, bar, value, paired.only(inside), factors,
                    100 * float(paired.weight[inside].sum() / paired.weight.sum())),
            excluded=Excluded(unpaired=int((unpaired == place).sum()))))
    return made


def _bucket(label: str, bar: Published, value: float, paired: Paired, factors: Numbers,
            share_percent: float | None) -> Bucket:
    means = numpy.array([(weight @ paired.base / weight.sum(),
                          weight @ paired.experiment / weight.sum())
                         for weight in _weights(paired, factors)])
    return _made(label, bar, value, paired, means, share_percent)


def _made(label: str, bar: Published, value: float, paired: Paired, drawn: Numbers,
          share_percent: float | None) -> Bucket:
    """A bucket from base and experiment of the sample (row 0) and its resamples, shape (r, 2)."""
    gains = numpy.multiply(paired.sign, drawn[1:, 0] - drawn[1:, 1], dtype=float)
    cells = len(set(paired.client.tolist()))
    return Bucket(
        label=label, value=value, share_percent=share_percent, n=2 * len(paired.weight),
        excluded=Excluded(unpaired=len(paired.unpaired)), cells=cells, cells_asked=cells,
        base=float(drawn[0, 0]), experiment=float(drawn[0, 1]),
        base_median=quantile(paired.base, paired.weight, 0.5),
        experiment_median=quantile(paired.experiment, paired.weight, 0.5),
        absolute_interval=interval(gains), percent_interval=interval(100 * gains / drawn[1:, 0]),
        experiment_interval=interval(drawn[1:, 1]), published=bar, sign=paired.sign)


def percentile_buckets(paired: Paired, figure: Figure) -> list[Bucket]:
    """The mean and the percentiles that the paper's table has, "mean", "p50", …"""
    weights = _weights(paired, resampling_factors(paired))
    made = []
    for label, bar in published_bars(figure).items():
        share = percentile_of(label)
        drawn = numpy.array([[statistic(values, weight, share) for values in
                              (paired.base, paired.experiment)] for weight in weights])
        made.append(_made(label, bar, 100 * share if share is not None else 0.0, paired, drawn,
                          None))
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


def window_buckets(responses: Responses, figure: Figure,
                   windows: Sequence[int]) -> tuple[list[Bucket], tuple[Sample, ...]]:
    """The mean under each window, over the responses that count under it and the baseline."""
    bars = published_bars(figure)
    made, samples = [], []
    for window in windows:
        against = replace(figure, experiment_initcwnd=window)
        paired = responses.pair(against)
        label = str(window)
        bucket = _bucket(label, bars.get(label, Published()), float(window), paired,
                         resampling_factors(paired), None)
        # Of each window only its own fetches: the baseline's are counted with the baseline.
        made.append(replace(bucket, n=bucket.n // 2))
        samples.append(paired.samples(against)[1])
    return made, tuple(samples)


def resampling_factors(paired: Paired) -> Numbers:
    """How often each client is drawn in each resample, shape (RESAMPLES, clients)."""
    clients = int(paired.client.max()) + 1
    generator = numpy.random.default_rng(1)  # the same intervals whenever they are asked for
    drawn: Numbers = generator.multinomial(clients, numpy.full(clients, 1 / clients),
                                           size=RESAMPLES).astype(float)
    return drawn


def _weights(paired: Paired, factors: Numbers) -> list[Numbers]:
    """The weights of the sample and of its resamples, shape (n,) each."""
    every = [paired.weight, *(factors[:, paired.client] * paired.weight)]
    return [weight for weight in every if weight.sum() > 0]


def quantile(values: Numbers, weight: Numbers, share: float) -> float:
    """The smallest value with at least this share of the weight at or below it."""
    order = numpy.argsort(values, kind="stable")
    cumulated = numpy.cumsum(weight[order])
    place = numpy.searchsorted(cumulated, share * cumulated[-1])
    return float(values[order][min(place, len(values) - 1)])


def interval(values: Numbers) -> tuple[float, float]:
    low, high = numpy.percentile(values, INTERVAL)
    return float(low), float(high)
