"""What each cause adds to a population's bars: the same responses, step by step.

The first step is the clean mechanism, which every earlier reproduction measured; each further one
adds a cause, and the last is the population as it was drawn. A response that a step does not change
keeps its record of the step before. The last steps change only weights, so their records are those
of the population itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from firstflight.findings.bar import Bar
from firstflight.findings.claims import WITHIN_PERCENT, WITHIN_POINTS
from firstflight.scenario import published
from firstflight.workloads.fetch.figures.drawn_bars import (ByWindow, Paired, Responses, bars_of,
                                                            pair_of, responses_by_part)
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.scenario.population import (BASELINE_WEIGHT, OF_TRIALS, WEIGHT,
                                                             Cause, Populations, steps)

METRIC = "latency_ms"
# By the panel of Figure 5, "RTT", "BW" or "BDP": the quantity of its buckets.
AXES = {panel: by for by, panel in published.SHARES_PANELS.items()}
SLOWER_MS = 1.0  # more than a timer's rounding


@dataclass(frozen=True)
class Step:
    """The paper's Figure 5 with all causes up to this one."""

    title: str
    # The initial windows compared, the baseline first.
    windows: tuple[int, int]
    # The mean latencies under both.
    base_ms: float
    experiment_ms: float
    # The bars of each panel of AXES.
    bars: dict[str, list[Bar]]
    # How many responses there are.
    n: int
    # How many responses the larger window makes slower, by reason.
    slower: Mapping[str, int]

    @property
    def near(self) -> int:
        """How many bars are near the published ones."""
        return sum(sum(map(is_near, bars)) for bars in self.bars.values())

    @property
    def count(self) -> int:
        """How many bars there are."""
        return sum(map(len, self.bars.values()))


def is_near(bar: Bar) -> bool:
    """Whether a bar is within ±30 % of the published ms and ±3 points of the percentage."""
    measured, published_bar = bar.difference, bar.published
    if not published_bar.absolute or published_bar.percent is None:
        return False
    return (abs(100 * measured.absolute.value / published_bar.absolute - 100) <= WITHIN_PERCENT
            and abs(measured.percent.value - published_bar.percent) <= WITHIN_POINTS)


def measured_steps(drawn: Populations, records: Sequence[Record]) -> list[Step]:
    """The steps of the population that is to be explained; [] if there is none.

    Raises NoBars where a step was not measured.
    """
    population = drawn.explained
    if population is None:
        return []
    windows = population.initcwnd[0], population.initcwnd[-1]
    by_part = responses_by_part(records)
    own = by_part[population.name]
    so_far: Responses = {}
    made = []
    for cause, columns in steps(drawn.steps):
        name = f"{population.name}-{cause.name}"
        so_far.update(by_part[name])
        responses = _responses(windows[-1], columns, own, so_far)
        paired = pair_of(name, responses, windows, METRIC)
        made.append(_step(cause, paired, responses, windows))
    return made


def _responses(largest: int, columns: Collection[str], own: Responses, so_far: Responses
               ) -> Responses:
    """The responses of a step, with the weights that they have there.

    largest: the largest window. columns: those in force. own: the records of the population itself;
    so_far: those that were measured for this step and the ones before.
    """
    if not set(OF_TRIALS) <= set(columns):
        return so_far

    # From here on the trials are the population's own, and only their weights may differ.
    if WEIGHT not in columns:
        return {sample: _with_weight(by_window, so_far[sample][largest].trial.weight)
                for sample, by_window in own.items() if sample in so_far}
    if BASELINE_WEIGHT not in columns:
        return {sample: _with_weight(by_window, by_window[largest].trial.weight)
                for sample, by_window in own.items()}
    return own


def _with_weight(by_window: ByWindow, weight: float) -> ByWindow:
    """The records of a response, all with this weight."""
    return {initcwnd: replace(record, trial=replace(record.trial, weight=weight))
            for initcwnd, record in by_window.items()}


def _step(cause: Cause, paired: Paired, responses: Responses,
          windows: tuple[int, int]) -> Step:
    bars = {axis: bars_of(paired, windows, by, published.shares(by))
            for axis, by in AXES.items()}

    smaller, larger = windows
    slower: Counter[str] = Counter()
    for records in responses.values():
        if smaller in records and larger in records:
            if is_slower(records[smaller], records[larger]):
                slower[why(records[larger])] += 1

    return Step(cause.title, windows, base_ms=paired.mean(smaller),
                experiment_ms=paired.mean(larger), bars=bars, n=len(paired.trials), slower=slower)


def is_slower(base: Record, experiment: Record) -> bool:
    """Whether both records count, and the experiment's latency is longer by over SLOWER_MS."""
    return bool(base.counts and experiment.counts and base.latency_ms and experiment.latency_ms
                and experiment.latency_ms > base.latency_ms + SLOWER_MS)


def why(slower: Record) -> str:
    """Why the larger window makes a response slower, by its record."""
    if slower.queue_drops:
        return "the larger flight overflowed the queue"
    if slower.random_drops or slower.lost_segments:
        return "random loss took other packets"
    if slower.retransmissions:
        return "the larger flight took longer than the retransmission timer"
    return "its last acknowledgement waited for the client's timer"
