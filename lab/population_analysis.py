"""What a drawn population says: the paper's bars, percentiles and window means.

Every response was measured under each initial window, so that results are
paired: what differs between two windows is the window. Means carry the
weights of the draw (lab.population.sample); intervals come from resampling
clients, not responses, since the responses of one client share its network
(a cluster bootstrap, Efron and Tibshirani 1993, section 8.5).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray

from lab.records import Record

Numbers = NDArray[numpy.float64]
RESAMPLES = 400
INTERVAL = (2.5, 97.5)
PAPER_SEGMENT_BYTES = 1430  # the paper's footnote 1


@dataclass(frozen=True)
class Paired:
    """Responses of one part measured under two windows, one row each.

    weight, base_ms, experiment_ms, and the quantities of the paper's axes, all
    of shape (n,); client: a number per client, shape (n,), 0 … clients − 1.
    unpaired: responses that lack a counting record of either window.
    retransmitted: share of the responses that saw a retransmission, by weight,
    with the base and with the experiment window.
    """

    weight: Numbers
    base_ms: Numbers
    experiment_ms: Numbers
    rtt_ms: Numbers
    bandwidth_kbps: Numbers
    segments: Numbers
    client: NDArray[numpy.intp]
    unpaired: int
    retransmitted: tuple[float, float]

    def quantity(self, by: str) -> Numbers:
        """What an axis of the paper buckets by, shape (n,)."""
        return {"rtt_ms": self.rtt_ms, "bandwidth_kbps": self.bandwidth_kbps,
                "bdp_bytes": self.rtt_ms * self.bandwidth_kbps / 8,
                "response_segments": self.segments}[by]


@dataclass(frozen=True)
class Bar:
    """One bar: weighted means (ms), their difference, its intervals.

    share_percent: of the part's weight. n: responses, each measured twice.
    Medians are of all responses in the bar, by weight.
    """

    label: str
    n: int
    share_percent: float
    base_ms: float
    experiment_ms: float
    absolute_ms: float
    percent: float
    base_median_ms: float
    experiment_median_ms: float
    absolute_interval_ms: tuple[float, float]
    percent_interval: tuple[float, float]


@dataclass(frozen=True)
class Percentile:
    """One row of the paper's Tables 3 and 4: "mean" or a percentile (ms)."""

    name: str
    experiment_ms: float
    base_ms: float
    difference_ms: float
    percent: float
    difference_interval_ms: tuple[float, float]


@dataclass(frozen=True)
class WindowMean:
    """The mean latency under one initial window, and its difference from the first one's."""

    initcwnd: int
    n: int
    mean_ms: float
    difference_ms: float
    difference_interval_ms: tuple[float, float]


def pair(records: Iterable[Record], part: str, base: int, experiment: int,
         metric: str = "latency_ms") -> Paired:
    """The responses of a part that count under both windows. Raises ValueError if none does."""
    chosen: dict[int, dict[int, Record]] = {}
    for record in records:
        if record.trial.part == part and record.trial.initcwnd in (base, experiment):
            chosen.setdefault(record.trial.sample, {})[record.trial.initcwnd] = record
    both = [(rows[base], rows[experiment]) for _, rows in sorted(chosen.items())
            if base in rows and experiment in rows
            and usable(rows[base], metric) and usable(rows[experiment], metric)]
    if not both:
        raise ValueError(f"no response of '{part}' was measured under both windows")
    trials = [first.trial for first, _ in both]
    keys = [(trial.key_rtt_ms, trial.key_bandwidth_kbps) for trial in trials]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    weight = numpy.array([trial.weight for trial in trials])
    share = weight / weight.sum()
    return Paired(
        weight=weight, base_ms=numpy.array([getattr(first, metric) for first, _ in both]),
        experiment_ms=numpy.array([getattr(second, metric) for _, second in both]),
        rtt_ms=numpy.array([float(trial.key_rtt_ms or 0) for trial in trials]),
        bandwidth_kbps=numpy.array([float(trial.key_bandwidth_kbps or 0) for trial in trials]),
        segments=numpy.ceil(numpy.array([trial.response_bytes for trial in trials])
                            / PAPER_SEGMENT_BYTES),
        client=numpy.array([numbers[key] for key in keys]), unpaired=len(chosen) - len(both),
        retransmitted=(float(share @ [bool(first.retransmissions) for first, _ in both]),
                       float(share @ [bool(second.retransmissions) for _, second in both])))


def usable(record: Record, metric: str) -> bool:
    return record.counts and getattr(record, metric) is not None


def bars(paired: Paired, by: str, labels: Sequence[str], seed: int = 1) -> list[Bar]:
    """One bar per bucket; labels are upper ends, the last may be open (">5000").

    Raises ValueError naming a bucket that no response fell into.
    """
    ends = [float(label) for label in labels if not label.startswith(">")]
    bucket = numpy.searchsorted(ends, paired.quantity(by), side="left")
    factors = resampling_factors(paired, seed)
    made = []
    for number, label in enumerate(labels):
        inside = bucket == number
        if not inside.any():
            raise ValueError(f"no response fell into the bucket '{label}' of {by}")
        made.append(_bar(label, paired, inside, factors))
    return made


def _bar(label: str, paired: Paired, inside: NDArray[numpy.bool_], factors: Numbers) -> Bar:
    weight = paired.weight[inside]
    base, experiment = paired.base_ms[inside], paired.experiment_ms[inside]
    base_ms = float(weight @ base / weight.sum())
    experiment_ms = float(weight @ experiment / weight.sum())
    resampled = factors[:, paired.client[inside]] * weight  # (resamples, n)
    total = resampled.sum(axis=1)
    drawn = total > 0  # a resample may hold none of a rare bucket's clients
    base_means = resampled[drawn] @ base / total[drawn]
    gains = resampled[drawn] @ (base - experiment) / total[drawn]
    return Bar(label=label, n=int(inside.sum()),
               share_percent=float(100 * weight.sum() / paired.weight.sum()),
               base_ms=base_ms, experiment_ms=experiment_ms, absolute_ms=base_ms - experiment_ms,
               percent=100 * (base_ms - experiment_ms) / base_ms,
               base_median_ms=quantile(base, weight, 0.5),
               experiment_median_ms=quantile(experiment, weight, 0.5),
               absolute_interval_ms=interval(gains),
               percent_interval=interval(100 * gains / base_means))


def percentiles(paired: Paired, wanted: Sequence[float], seed: int = 1) -> list[Percentile]:
    """The mean and the wanted percentiles (0 … 100) of both windows' latencies."""
    factors = resampling_factors(paired, seed)[:200]
    weights = [paired.weight, *(factors[:, paired.client] * paired.weight)]

    def row(name: str, statistic: Any) -> Percentile:
        values = [(statistic(paired.experiment_ms, weight), statistic(paired.base_ms, weight))
                  for weight in weights]
        experiment, base = values[0]
        return Percentile(name, experiment, base, base - experiment,
                          100 * (base - experiment) / base,
                          interval(numpy.array([b - e for e, b in values[1:]])))

    rows = [row("mean", lambda values, weight: float(weight @ values / weight.sum()))]
    for percent in wanted:
        if not 0 < percent < 100:
            raise ValueError(f"a percentile lies between 0 and 100, not at {percent:g}")
        rows.append(row(f"p{percent:g}", lambda values, weight, percent=percent:
                        quantile(values, weight, percent / 100)))
    return rows


def window_means(records: Sequence[Record], part: str, windows: Sequence[int],
                 metric: str = "latency_ms", seed: int = 1) -> list[WindowMean]:
    """The mean under each window, over the responses that count under it and the first one."""
    first, made = windows[0], []
    for window in windows:
        paired = pair(records, part, first, window, metric)
        factors = resampling_factors(paired, seed)[:, paired.client] * paired.weight
        gains = factors @ (paired.base_ms - paired.experiment_ms) / factors.sum(axis=1)
        share = paired.weight / paired.weight.sum()
        made.append(WindowMean(window, len(share), float(share @ paired.experiment_ms),
                               float(share @ (paired.base_ms - paired.experiment_ms)),
                               interval(gains)))
    return made


def resampling_factors(paired: Paired, seed: int) -> Numbers:
    """How often each client is drawn in each resample, shape (RESAMPLES, clients)."""
    clients = int(paired.client.max()) + 1
    generator = numpy.random.default_rng(seed)
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
