"""The paper's figures from simulated latencies, and how far they are from the printed ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

from lab.core.findings.claims import WITHIN_PERCENT, WITHIN_POINTS
from lab.core.scenario.curves import Numbers
from lab.core.scenario.published import (SHARES_FILE, SHARES_PANELS, PublishedBucket,
                                         buckets)
from lab.fetches.features.population.draws import Counts, Drawn, responses
from lab.fetches.features.population.population import Population, percentile_of
from lab.fetches.features.population.paired import PAPER_SEGMENT_BYTES
from paper.fit.simulation import TODAY, simulate
from paper.fit.state import Kernels


@dataclass(frozen=True)
class Bar:
    """One printed number pair and ours: an improvement in ms and percent of the baseline."""

    group: str
    label: str
    ms: float
    percent: float
    printed_ms: float
    printed_percent: float

    @property
    def off(self) -> float:
        """How far, 1 at the bounds: the worse of both numbers."""
        return max(abs(self.ms / self.printed_ms - 1) * 100 / WITHIN_PERCENT,
                   abs(self.percent - self.printed_percent) / WITHIN_POINTS)

    @property
    def close(self) -> bool:
        return self.off <= 1


@dataclass(frozen=True)
class Sample:
    """A population under its windows: latency_ms of shape (windows, n), lossless of none."""

    population: Population
    drawn: Drawn
    latency_ms: Numbers
    retransmitted: NDArray[numpy.bool_]


def sample(population: Population, seed: int, kernels: Kernels = TODAY) -> Sample:
    """Draw a population and simulate it."""
    drawn = responses(population, seed)
    count, windows = len(drawn.weight), population.initcwnd
    queue = numpy.full(count * len(windows), population.mechanism.queue_packets or 1000)
    simulated = simulate(drawn, numpy.tile(numpy.arange(count), len(windows)),
                         numpy.repeat(windows, count), queue, kernels)
    shape = (len(windows), count)
    return Sample(population, drawn, simulated.latency_ms.reshape(shape),
                  simulated.retransmitted.reshape(shape) > 0)


AXES = {**dict.fromkeys(SHARES_PANELS.values(), SHARES_FILE),
        "Fig. 6": "paper_figure6.csv", "Fig. 7": "paper_figure7.csv"}


def printed(group: str) -> dict[str, PublishedBucket]:
    """The printed bars of a panel, by label."""
    return buckets(AXES[group], group if group in SHARES_PANELS.values() else "")


def place_of(group: str, drawn: Drawn) -> Counts:
    """The number of each response's bucket, shape (n,)."""
    ends = [float(label) for label in printed(group) if not label.startswith(">")]
    return numpy.searchsorted(ends, _axis(group, drawn), side="left")


def _axis(group: str, drawn: Drawn) -> Numbers:
    if group == "RTT":
        return drawn.key_rtt_ms
    if group in ("BW", "Fig. 6"):
        return drawn.key_bandwidth_kbps
    if group == "BDP":
        return drawn.key_rtt_ms * drawn.key_bandwidth_kbps / 8
    segments: Numbers = numpy.ceil(drawn.response_bytes / PAPER_SEGMENT_BYTES)
    return segments


def panel(group: str, own: Sample, paired: bool = False) -> list[Bar]:
    """The bars of a panel, unpaired as the paper compared, or paired."""
    drawn, place = own.drawn, place_of(group, own.drawn)
    base_weight = drawn.weight if paired else drawn.baseline_weight
    bars = []
    for number, (label, bar) in enumerate(printed(group).items()):
        inside = place == number
        base, experiment = (
            float(numpy.average(own.latency_ms[row][inside], weights=weight[inside]))
            for row, weight in ((0, base_weight), (-1, drawn.weight)))
        bars.append(Bar(group, label, base - experiment, (base - experiment) / base * 100,
                        bar.absolute_ms or 0.0, bar.percent or 0.0))
    return bars


def percentiles(group: str, own: Sample, paired: bool = False) -> list[Bar]:
    """The bars of Table 3 or 4, of "table3_avgdc", "table3_slowdc", "table4_slowdc_56"."""
    drawn = own.drawn
    inside = drawn.key_bandwidth_kbps <= (56 if group.endswith("_56") else numpy.inf)
    bars = []
    for label, bar in buckets("paper_tables.csv", group).items():
        share = percentile_of(label)
        base, experiment = (_statistic(own.latency_ms[row][inside], weight[inside], share)
                            for row, weight in ((0, drawn.weight if paired else
                                                 drawn.baseline_weight), (-1, drawn.weight)))
        bars.append(Bar(group, label, base - experiment, (base - experiment) / base * 100,
                        bar.absolute_ms or 0.0, bar.percent or 0.0))
    return bars


def _statistic(values: Numbers, weight: Numbers, share: float | None) -> float:
    if share is None:
        return float(numpy.average(values, weights=weight))
    order = numpy.argsort(values)
    cumulated = numpy.cumsum(weight[order])
    return float(values[order][numpy.searchsorted(cumulated, share * cumulated[-1])])


def windows(own: Sample) -> list[Bar]:
    """Figure 2: what each larger window gains over the first, side by side."""
    level = {int(label): bar.total_ms or 0.0
             for label, bar in buckets("paper_figure2.csv").items()}
    mean = numpy.average(own.latency_ms, axis=1, weights=own.drawn.weight)
    first = own.population.initcwnd[0]
    return [Bar("Fig. 2", str(window), float(mean[0] - ms), float((mean[0] - ms) / mean[0] * 100),
                level[first] - level[window], (1 - level[window] / level[first]) * 100)
            for window, ms in zip(own.population.initcwnd[1:], mean[1:])]
