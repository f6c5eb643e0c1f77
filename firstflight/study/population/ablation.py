"""What each cause adds to a population's bars: the panel's own responses, step by step.

The steps lead from the clean mechanism, which every reproduction so far
measured, to the population's. A response that a step does not change keeps
the record of the step before; from where nothing is left to change but what
responses stand for, the records are the panel's. So the last step is the panel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from firstflight.findings.bar import Bar
from firstflight.findings.claims import WITHIN_PERCENT, WITHIN_POINTS
from firstflight.study.fetches.figures.drawn_panels import (ByWindow, Paired, Responses, bars_of,
                                                            pair_of, responses_of)
from firstflight.study.fetches.scenario.population import (BASELINE_WEIGHT, OF_TRIALS, WEIGHT,
                                                           Cause, Populations, steps)
from firstflight.study.fetches.verify.record import Record
from firstflight.study.scenario import published

METRIC = "latency_ms"
AXES = {panel: by for by, panel in published.SHARES_PANELS.items()}
SLOWER_MS = 1.0  # more than a timer's rounding


@dataclass(frozen=True)
class Step:
    """What the paper's Figure 5 looks like with the causes up to this one.

    windows: the initial windows compared, the baseline's first. base_ms, experiment_ms: means;
    panels: "RTT", "BW", "BDP" → its bars. n: responses; slower: of those that the larger
    window makes slower, how many by which reason.
    """

    title: str
    windows: tuple[int, int]
    base_ms: float
    experiment_ms: float
    panels: dict[str, list[Bar]]
    n: int
    slower: Mapping[str, int]

    @property
    def near(self) -> int:
        """How many of all bars are within the bounds of `close`."""
        return sum(close(bar) for bars in self.panels.values() for bar in bars)

    @property
    def count(self) -> int:
        return sum(map(len, self.panels.values()))


def close(bar: Bar) -> bool:
    """Within ±30 % of the published ms and ±3 points of the published percentage."""
    change, known = bar.difference, bar.published
    if not known.absolute or known.percent is None:
        return False
    return (abs(100 * change.absolute.value / known.absolute - 100) <= WITHIN_PERCENT
            and abs(change.percent.value - known.percent) <= WITHIN_POINTS)


def explained(drawn: Populations, records: Sequence[Record]) -> list[Step]:
    """The steps of the population that the scenario explains; none without one.

    Raises NoPanel where one was not measured.
    """
    made = drawn.explained
    if made is None:
        return []
    windows = made.initcwnd[0], made.initcwnd[-1]
    panel = responses_of(made.name, records)
    so_far: Responses = {}
    levels = []
    for cause, added in steps(drawn.steps):
        so_far.update(responses_of(f"{made.name}-{cause.name}", records))
        rows = _rows(made.initcwnd[-1], added, panel, so_far)
        levels.append(_step(cause, pair_of(
            f"{made.name}-{cause.name}", rows, windows, METRIC), rows, windows))
    return levels


def _rows(last: int, added: Collection[str], panel: Responses, so_far: Responses
          ) -> Responses:
    """The records of a step, by response and window, with what they stand for there.

    last: the largest window; added: the columns in force.
    """
    if not {*OF_TRIALS} <= {*added}:
        return so_far
    if WEIGHT not in added:
        return {sample: _weighed(rows, last, so_far[sample])
                for sample, rows in panel.items() if sample in so_far}
    if BASELINE_WEIGHT not in added:
        return {sample: _weighed(rows, last, rows) for sample, rows in panel.items()}
    return panel


def _weighed(rows: ByWindow, window: int, like: ByWindow) -> ByWindow:
    """All windows of a response stand for what `like` stands for under a window."""
    weight = like[window].trial.weight
    return {initcwnd: replace(record, trial=replace(record.trial, weight=weight))
            for initcwnd, record in rows.items()}


def _step(cause: Cause, paired: Paired, rows: Responses,
          windows: tuple[int, int]) -> Step:
    panels = {axis: bars_of(paired, windows, f"causes {cause.name}", by,
                            published.shares(by)) for axis, by in AXES.items()}
    slower = Counter(why(records[windows[1]]) for records in rows.values()
                     if all(window in records for window in windows)
                     and _is_slower(*(records[window] for window in windows)))
    base_ms, experiment_ms = map(paired.mean, windows)
    return Step(cause.title, windows, base_ms, experiment_ms, panels, len(paired.trials), slower)


def _is_slower(base: Record, experiment: Record) -> bool:
    return bool(base.counts and experiment.counts and base.latency_ms and experiment.latency_ms
                and experiment.latency_ms > base.latency_ms + SLOWER_MS)


def why(slower: Record) -> str:
    """What the larger window's record shows of a response that it makes slower."""
    if slower.queue_drops:
        return "the larger flight overflowed the queue"
    if slower.random_drops or slower.lost_segments:
        return "random loss took other packets"
    if slower.retransmissions:
        return "the larger flight took longer than the retransmission timer"
    return "its last acknowledgement waited for the client's timer"
