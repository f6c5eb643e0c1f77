"""What each cause adds to a population's bars: the same responses, step by step.

The steps lead from the clean mechanism, which every earlier reproduction measured, to the
population's own. A response that a step does not change keeps its record of the step before. The
last steps change only weights, so their records are those of the population itself. The last step
is the population.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from firstflight.findings.bar import Bar
from firstflight.findings.claims import WITHIN_PERCENT, WITHIN_POINTS
from firstflight.scenario import published
from firstflight.workloads.fetch.figures.drawn_bars import (ByWindow, Paired, Responses, bars_of,
                                                            pair_of, responses_of)
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.scenario.population import (BASELINE_WEIGHT, OF_TRIALS, WEIGHT,
                                                             Cause, Populations, steps)

METRIC = "latency_ms"
AXES = {panel: by for by, panel in published.SHARES_PANELS.items()}
SLOWER_MS = 1.0  # more than a timer's rounding


@dataclass(frozen=True)
class Step:
    """The paper's Figure 5 with all causes up to this one.

    windows: the initial windows compared, the baseline first. base_ms, experiment_ms: mean
    latencies. bars: those of each panel, "RTT", "BW" and "BDP". n: responses. slower: how many
    responses the larger window makes slower, by reason.
    """

    title: str
    windows: tuple[int, int]
    base_ms: float
    experiment_ms: float
    bars: dict[str, list[Bar]]
    n: int
    slower: Mapping[str, int]

    @property
    def near(self) -> int:
        """How many bars are `close` to the published ones."""
        return sum(close(bar) for bars in self.bars.values() for bar in bars)

    @property
    def count(self) -> int:
        return sum(map(len, self.bars.values()))


def close(bar: Bar) -> bool:
    """Whether a bar is within ±30 % of the published ms and ±3 points of the percentage."""
    change, known = bar.difference, bar.published
    if not known.absolute or known.percent is None:
        return False
    return (abs(100 * change.absolute.value / known.absolute - 100) <= WITHIN_PERCENT
            and abs(change.percent.value - known.percent) <= WITHIN_POINTS)


def explained(drawn: Populations, records: Sequence[Record]) -> list[Step]:
    """The steps of the population that the scenario explains; [] without one.

    Raises NoBars where a step was not measured.
    """
    population = drawn.explained
    if population is None:
        return []
    windows = population.initcwnd[0], population.initcwnd[-1]
    own = responses_of(population.name, records)
    so_far: Responses = {}
    levels = []
    for cause, added in steps(drawn.steps):
        name = f"{population.name}-{cause.name}"
        so_far.update(responses_of(name, records))
        rows = _responses(population.initcwnd[-1], added, own, so_far)
        levels.append(_step(cause, pair_of(name, rows, windows, METRIC), rows, windows))
    return levels


def _responses(largest: int, added: Collection[str], own: Responses, so_far: Responses
               ) -> Responses:
    """The records of a step, with the weights that they have there.

    largest: the largest window. added: the columns in force. own: the records of the population
    itself; so_far: those of this step and the steps before.
    """
    if not {*OF_TRIALS} <= {*added}:
        return so_far
    if WEIGHT not in added:
        return {sample: _with_weight_of(rows, so_far[sample], largest)
                for sample, rows in own.items() if sample in so_far}
    if BASELINE_WEIGHT not in added:
        return {sample: _with_weight_of(rows, rows, largest) for sample, rows in own.items()}
    return own


def _with_weight_of(rows: ByWindow, others: ByWindow, window: int) -> ByWindow:
    """The records of a response, all with the weight that the others have under a window."""
    weight = others[window].trial.weight
    return {initcwnd: replace(record, trial=replace(record.trial, weight=weight))
            for initcwnd, record in rows.items()}


def _step(cause: Cause, paired: Paired, rows: Responses,
          windows: tuple[int, int]) -> Step:
    bars = {axis: bars_of(paired, windows, by, published.shares(by))
            for axis, by in AXES.items()}
    smaller, larger = windows
    slower: Counter[str] = Counter()
    for records in rows.values():
        if smaller in records and larger in records and is_slower(records[smaller],
                                                                  records[larger]):
            slower[why(records[larger])] += 1
    return Step(cause.title, windows, base_ms=paired.mean(smaller),
                experiment_ms=paired.mean(larger), bars=bars, n=len(paired.trials), slower=slower)


def is_slower(base: Record, experiment: Record) -> bool:
    """Whether the experiment's latency is larger by more than SLOWER_MS; both have to count."""
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
