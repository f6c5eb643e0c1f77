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
from dataclasses import replace

import numpy

from lab.core.findings.charts import Sample
from lab.core.resampling import RESAMPLES, Factors, median, resampling_factors, statistics
from lab.core.scenario.curves import Numbers
from lab.core.stats import percentile_interval, portions
from lab.fetches.figures.paired import Paired, Responses, quantity_of
from lab.fetches.scenario.population import Populations, percentile_of
from lab.fetches.figures.buckets import (Bucket, Excluded, NoPanel, Panel, Published, SameResponses,
                                         published_bars)
from lab.fetches.scenario.scenario import Figure
from lab.fetches.verify import notes
from lab.fetches.verify.record import Record


def panels(drawn: Populations, figures: Iterable[Figure],
           records: Sequence[Record]) -> tuple[dict[str, Panel], dict[str, str]]:
    """The rows of each figure by its name, and why the others have none."""
    responses, made, missing = Responses(records), {}, {}
    for figure in figures:
        try:
            made[figure.name] = panel(drawn, figure, responses)
        except NoPanel as error:
            missing[figure.name] = str(error)
    return made, missing


def panel(drawn: Populations, figure: Figure, responses: Responses) -> Panel:
    """The rows of a figure of a population, whatever its kind.

    Raises NoPanel where a bucket has no response that counts.
    """
    client, algorithm = drawn.like.client, drawn.like.congestion_control
    if figure.is_of_windows:
        rows, samples = window_buckets(responses, figure, drawn.windows(figure.sweep))
        return Panel(
            figure, tuple(rows), client, algorithm, samples=samples,
            remarks=notes.limiting_notes(responses.of(figure.sweep, drawn.windows(figure.sweep))))
    windows = (figure.baseline_initcwnd, figure.experiment_initcwnd)
    paired = responses.pair(figure.sweep, windows, figure.metric)
    remarked = notes.limiting_notes(responses.of(figure.sweep, windows))
    if figure.by != "percentile":
        return Panel(figure, tuple(buckets(paired, figure)), client, algorithm,
                               samples=paired.samples(windows), remarks=remarked)
    if figure.bandwidth_at_most_kbps:
        paired = paired.only(
            quantity_of("bandwidth_kbps", paired.trials) <= figure.bandwidth_at_most_kbps)
    rows = percentile_buckets(paired, figure)
    # All of the same records: they count once.
    return Panel(
        figure, tuple(rows), client, algorithm, counted=rows[0].n, left_out=rows[0].excluded,
        samples=paired.samples(windows), remarks=remarked)


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
    return _made(label, bar, value, paired, drawn[:, 2:] / drawn[:, [0, 1, 1]], share_percent)


def _made(label: str, bar: Published, value: float, paired: Paired, drawn: Numbers,
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
    return [_made(label, bar, 100 * (share or 0.0), paired, drawn[:, place], None)
            for place, ((label, bar), share) in enumerate(zip(bars.items(), shares))]


def window_buckets(responses: Responses, figure: Figure,
                   windows: Sequence[int]) -> tuple[list[Bucket], tuple[Sample, ...]]:
    """The mean under each window, over the responses that count under it and the baseline."""
    bars = published_bars(figure)
    made, samples = [], []
    for window in windows:
        against = figure.baseline_initcwnd, window
        paired = responses.pair(figure.sweep, against, figure.metric)
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
