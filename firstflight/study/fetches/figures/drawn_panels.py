"""The figures of a drawn population: the paper's bars, percentiles and window means.

Every response was measured under each initial window, so that results can be
paired: what differs between two windows is the window. Where the baseline had
a week of its own (rows.Row.baseline_weight) its responses stand for
other shares there: then a bar is unpaired, as the paper compared, and the paired
one stands beside it. Means carry the weights of the draw
(paper/draw.py); intervals come from resampling clients, not
responses, since the responses of one client share its network (a cluster
bootstrap, Efron and Tibshirani 1993, section 8.5).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy
from numpy.typing import NDArray

from firstflight.base.resampling import RESAMPLES, Factors, median, resampling_factors, statistics
from firstflight.base.stats import percentile_interval, portions
from firstflight.findings.difference import Excluded
from firstflight.study.fetches.figures.buckets import (Bucket, NoPanel, Panel, Published,
                                                       SameResponses, Sample, published_bars,
                                                       sign_of)
from firstflight.study.fetches.scenario.population import Populations, percentile_of
from firstflight.study.fetches.scenario.scenario import Figure
from firstflight.study.fetches.scenario.trial import Trial
from firstflight.study.fetches.verify import notes
from firstflight.study.fetches.verify.record import Record
from firstflight.study.scenario.curves import Numbers

Rows = dict[int, Record]  # of one response, by window
Responses = dict[int, Rows]  # of one part, by the response's number
Windows = tuple[int, int]  # the baseline's and the experiment's
PAPER_SEGMENT_BYTES = 1430  # the paper's footnote 1


@dataclass(frozen=True)
class Paired:
    """Responses of one part measured under two windows, one row each.

    weight, base_weight (in the baseline's week), base, experiment (the figure's
    metric), all of shape (n,); trials: n of them, under the baseline's window;
    client: a number per client, shape (n,), 0 … clients − 1. sign: see
    buckets.Bucket. unpaired: a trial of each response that lacks a counting
    record of either window.
    """

    weight: Numbers
    base_weight: Numbers
    base: Numbers
    experiment: Numbers
    trials: tuple[Trial, ...]
    client: NDArray[numpy.intp]
    sign: int
    unpaired: tuple[Trial, ...]

    @property
    def clients(self) -> int:
        """Those that are drawn from: up to the last of them in these rows."""
        return int(self.client.max()) + 1

    def only(self, inside: NDArray[numpy.bool_]) -> Paired:
        """The rows where `inside`, of shape (n,), is true, and nothing unpaired."""
        return Paired(self.weight[inside], self.base_weight[inside], self.base[inside],
                      self.experiment[inside], tuple(compress(self.trials, inside)),
                      self.client[inside], self.sign, ())

    @property
    def side_by_side(self) -> bool:
        """Whether both windows were measured in the same week."""
        return bool((self.weight == self.base_weight).all())

    def samples(self, windows: Windows) -> tuple[Sample, Sample]:
        base, experiment = windows
        return (Sample(base, self.base, self.base_weight),
                Sample(experiment, self.experiment, self.weight))


def quantity_of(by: str, trials: Sequence[Trial]) -> Numbers:
    """What an axis of the paper buckets trials by, in the unit of its name, shape (n,)."""
    rtt_ms, bandwidth_kbps, size_bytes = (
        numpy.array([float(getattr(trial, name) or 0) for trial in trials])
        for name in ("key_rtt_ms", "key_bandwidth_kbps", "response_bytes"))
    known: dict[str, Numbers] = {
        "rtt_ms": rtt_ms, "bandwidth_kbps": bandwidth_kbps,
        "bdp_bytes": rtt_ms * bandwidth_kbps / 8,
        "response_segments": numpy.ceil(size_bytes / PAPER_SEGMENT_BYTES)}
    return known[by]


def responses_of(part: str, records: Iterable[Record]) -> Responses:
    """The records of a part, by response and window."""
    responses: Responses = {}
    for record in records:
        if record.trial.part == part:
            responses.setdefault(record.trial.sample, {})[record.trial.initcwnd] = record
    return responses


def pair_of(part: str, responses: Responses, windows: Windows, metric: str) -> Paired:
    """The responses of a part that count under both windows.

    Raises NoPanel where none was measured or none counts.
    """
    base, experiment = windows
    chosen = {sample: rows for sample, rows in sorted(responses.items())
              if base in rows or experiment in rows}
    if not chosen:
        raise NoPanel(f"nothing of population '{part}' was measured; measure with"
                      " ./run.sh --scenario with this scenario's name")
    both = {sample: (rows[base], rows[experiment]) for sample, rows in chosen.items()
            if all(window in rows and rows[window].counts
                   and getattr(rows[window], metric) is not None for window in windows)}
    if not both:
        raise NoPanel(f"no response of '{part}' counts under both windows, {base} and"
                      f" {experiment}")
    trials = [first.trial for first, _ in both.values()]
    clients = [(trial.key_rtt_ms, trial.key_bandwidth_kbps) for trial in trials]
    numbers = {client: number for number, client in enumerate(dict.fromkeys(clients))}
    return Paired(
        weight=numpy.array([second.trial.weight for _, second in both.values()]),
        base_weight=numpy.array([trial.weight for trial in trials]),
        base=numpy.array([getattr(first, metric) for first, _ in both.values()]),
        experiment=numpy.array([getattr(second, metric) for _, second in both.values()]),
        trials=tuple(trials), client=numpy.array([numbers[client] for client in clients]),
        sign=sign_of(metric),
        unpaired=tuple((rows.get(base) or rows[experiment]).trial
                       for sample, rows in chosen.items() if sample not in both))


# Panels ------------------------------------------------------------------------------

def panels(drawn: Populations, figures: Iterable[Figure],
           records: Sequence[Record]) -> tuple[dict[str, Panel], dict[str, str]]:
    """The rows of each figure by its name, and why the others have none."""
    made, missing = {}, {}
    for figure in figures:
        try:
            made[figure.name] = panel(drawn, figure, responses_of(figure.sweep, records))
        except NoPanel as error:
            missing[figure.name] = str(error)
    return made, missing


def panel(drawn: Populations, figure: Figure, responses: Responses) -> Panel:
    """The rows of a figure of a population, whatever its kind.

    Raises NoPanel where a bucket has no response that counts.
    """
    made_with = drawn.like.client, drawn.like.lists["congestion_control"][0]
    windows: tuple[int, ...] = figure.baseline_initcwnd, figure.experiment_initcwnd
    if figure.is_of_windows:
        windows = tuple(dict.fromkeys(initcwnd for rows in responses.values() for initcwnd in rows)
                        ) or (figure.baseline_initcwnd,)
    remarks = notes.limiting_notes([record for rows in responses.values() for initcwnd, record
                                    in rows.items() if initcwnd in windows and record.counts])
    if figure.is_of_windows:
        rows, samples = window_buckets(responses, figure, windows)
        return Panel(figure, tuple(rows), *made_with, samples=samples, remarks=remarks)
    base, experiment = windows
    paired = pair_of(figure.sweep, responses, (base, experiment), figure.metric)
    if figure.by != "percentile":
        return Panel(figure, tuple(buckets(paired, figure)), *made_with,
                     samples=paired.samples((base, experiment)), remarks=remarks)
    if figure.bandwidth_at_most_kbps:
        paired = paired.only(
            quantity_of("bandwidth_kbps", paired.trials) <= figure.bandwidth_at_most_kbps)
    rows = percentile_buckets(paired, figure)
    # All of the same records: they count once.
    return Panel(figure, tuple(rows), *made_with, counted=rows[0].n, left_out=rows[0].excluded,
                 samples=paired.samples((base, experiment)), remarks=remarks)


def buckets(paired: Paired, figure: Figure) -> list[Bucket]:
    """One bucket per published one, named by its upper end, the last open (">5000")."""
    bars = published_bars(figure)
    ends = [float(label) for label in bars if not label.startswith(">")]
    number = numpy.searchsorted(ends, quantity_of(figure.by, paired.trials), side="left")
    unpaired = numpy.searchsorted(ends, quantity_of(figure.by, paired.unpaired), side="left")
    factors = resampling_factors(paired.clients)
    made = []
    for place, (label, bar) in enumerate(bars.items()):
        inside = number == place
        if not inside.any():
            raise NoPanel(f"{figure.name}: no response fell into the bucket '{label}'")
        value = ends[place] if place < len(ends) else ends[-1] * 2
        made.append(replace(
            _bucket(label, bar, value, paired.only(inside), factors,
                    100 * float(paired.weight[inside].sum() / paired.weight.sum())),
            excluded=Excluded(unpaired=int((unpaired == place).sum()))))
    return made


def _bucket(label: str, bar: Published, value: float, paired: Paired, factors: Factors,
            share_percent: float | None) -> Bucket:
    """Means under the weights of the sample and of its resamples, from sums of each client."""
    clients, place = numpy.unique(paired.client, return_inverse=True)
    weight, base_weight = paired.weight, paired.base_weight
    sums = numpy.stack([numpy.bincount(place, values, len(clients)) for values in
                        (base_weight, weight, base_weight * paired.base,
                         weight * paired.experiment, weight * paired.base)], axis=-1)
    drawn = numpy.concatenate([sums.sum(axis=0)[None], *(
        factors[rows, clients] @ sums for rows in portions(RESAMPLES, len(clients)))])
    drawn = drawn[drawn[:, 0] > 0]
    return _bucket_of(label, bar, value, paired, drawn[:, 2:] / drawn[:, [0, 1, 1]], share_percent)


def _bucket_of(label: str, bar: Published, value: float, paired: Paired, drawn: Numbers,
          share_percent: float | None) -> Bucket:
    """A bucket from the sample (row 0) and its resamples.

    drawn: base, experiment, and base of the experiment's responses, shape (r, 3).
    """
    gains = numpy.multiply(paired.sign, drawn[1:, 0] - drawn[1:, 1], dtype=float)
    alone = numpy.multiply(paired.sign, drawn[:, 2] - drawn[:, 1], dtype=float)
    cells = len(set(paired.client.tolist()))
    return Bucket(
        label=label, value=value, share_percent=share_percent, n=2 * len(paired.weight),
        excluded=Excluded(unpaired=len(paired.unpaired)), cells=cells, cells_requested=cells,
        draws=cells,
        base=float(drawn[0, 0]), experiment=float(drawn[0, 1]),
        base_median=median(paired.base, paired.base_weight),
        experiment_median=median(paired.experiment, paired.weight),
        absolute_interval=percentile_interval(gains),
        percent_interval=percentile_interval(100 * gains / drawn[1:, 0]),
        published=bar, sign=paired.sign,
        same=None if paired.side_by_side else SameResponses(
            float(alone[0]), float(100 * alone[0] / drawn[0, 2]), percentile_interval(alone[1:])))


def percentile_buckets(paired: Paired, figure: Figure) -> list[Bucket]:
    """The mean and the percentiles that the paper's table has, "mean", "p50", …"""
    bars = published_bars(figure)
    shares = [percentile_of(label) for label in bars]
    drawn = numpy.stack([statistics(values, _resampled(paired, weight), shares)
                         for values, weight in ((paired.base, paired.base_weight),
                                                (paired.experiment, paired.weight),
                                                (paired.base, paired.weight))], axis=-1)
    return [_bucket_of(label, bar, 100 * (share or 0.0), paired, drawn[:, place], None)
            for place, ((label, bar), share) in enumerate(zip(bars.items(), shares))]


def window_buckets(responses: Responses, figure: Figure,
                   windows: Sequence[int]) -> tuple[list[Bucket], tuple[Sample, ...]]:
    """The mean under each window, over the responses that count under it and the baseline."""
    bars = published_bars(figure)
    made, samples = [], []
    for window in windows:
        against = figure.baseline_initcwnd, window
        paired = pair_of(figure.sweep, responses, against, figure.metric)
        label = str(window)
        bucket = _bucket(label, bars.get(label, Published()), float(window), paired,
                         resampling_factors(paired.clients), None)
        # Of each window only its own fetches: the baseline's are counted with the baseline.
        made.append(replace(bucket, n=bucket.n // 2))
        samples.append(paired.samples(against)[1])
    return made, tuple(samples)


def _resampled(paired: Paired, weight: Numbers) -> Iterator[Numbers]:
    """The weights of the sample and of its resamples, shape (n,) each."""
    yield weight
    for factors in resampling_factors(paired.clients):
        drawn = factors[paired.client] * weight
        if drawn.sum() > 0:
            yield drawn
