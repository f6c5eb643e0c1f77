"""Recovery: what a larger window gains under random loss beyond what it gains without loss.

The bars of such a figure are loss rates. Each bar is compared with the lossless one. In all other
figures no bar has such a gain, nor has the lossless bar.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from firstflight.base.stats import Estimate
from firstflight.base.words import format_interval, format_brief
from firstflight.findings.bar import Bar
from firstflight.findings.claims import LEAST_DRAWS, UNDECIDED
from firstflight.workloads.fetch.figures.bar_figure import BarFigure
from firstflight.workloads.fetch.figures.swept_bars import improvement
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.scenario.scenario import Figure, Scenario

HELPS, HARMS = "helps", "harms"


def improvement_by_loss(scenario: Scenario, figure: Figure, records: Sequence[Record],
                        is_whole: bool = True) -> BarFigure:
    """The bars of an improvement figure by loss rate. Raises NoBars, as improvement() does."""
    return replace(improvement(scenario, figure, records, is_whole), is_of_loss=True)


def beyond_lossless(bar_figure: BarFigure, bar: Bar) -> Estimate | None:
    """The bar's improvement less that of the lossless bar, in the metric's unit.

    None for the lossless bar, for figures that are not by loss rate, and where there is no lossless
    bar or no interval.
    """
    lossless = next((other for other in bar_figure.bars if other.value == 0), bar)
    interval = bar.difference.absolute.interval
    if not bar_figure.is_of_loss or lossless.value == bar.value or interval is None:
        return None
    without_loss = lossless.difference.absolute.value
    low, high = interval
    return Estimate(bar.difference.absolute.value - without_loss,
                    (low - without_loss, high - without_loss))


def effect(bar_figure: BarFigure, bar: Bar) -> str:
    """What the window does to recovery, by the 95 % interval: HELPS, HARMS or UNDECIDED.

    "" for a bar without a gain beyond the lossless one.
    """
    beyond = beyond_lossless(bar_figure, bar)
    if beyond is None:
        return ""
    if bar.difference.draws < LEAST_DRAWS:
        return UNDECIDED
    return {1: HELPS, -1: HARMS, 0: UNDECIDED}[beyond.sign]


def sentence_of_figure(bar_figure: BarFigure) -> list[str]:
    """A sentence on what each bar gains beyond the lossless one; [] where no bar has a gain."""
    metric = bar_figure.metric
    parts = []
    for bar in bar_figure.bars:
        beyond = beyond_lossless(bar_figure, bar)
        if beyond is not None:
            parts.append(f"{format_brief(beyond.value)} {metric.unit} at {bar_figure.name_of(bar)}"
                         f" ({format_interval(beyond.interval)}, {effect(bar_figure, bar)})")
    if not parts:
        return []
    return [f"Beyond what is {metric.improved} without loss: {'; '.join(parts)}."]


# The legend of what lines_above() writes.
ABOVE_LOSS = "beyond the lossless bar: what the window does, and the 95 % interval"


def lines_above(bar_figure: BarFigure, bar: Bar) -> tuple[str, str]:
    """Two lines above a bar: its gain with the effect, and the interval. Both may be ""."""
    beyond = beyond_lossless(bar_figure, bar)
    unit = bar_figure.metric.unit
    if beyond is None or beyond.interval is None:
        return "", ""
    low, high = beyond.interval
    return (f"{format_brief(beyond.value)} {unit}: {effect(bar_figure, bar)}",
            f"{format_brief(low)} … {format_brief(high)}")


def sentence_of_run(bar_figures: Sequence[BarFigure]) -> list[str]:
    """A sentence on how often a larger window gains more, or less, under random loss; or []."""
    effects = [effect(bar_figure, bar) for bar_figure in bar_figures for bar in bar_figure.bars]
    counts = Counter(filter(None, effects))
    if not counts:
        return []
    return ["Under random loss the larger window gains more than without loss in"
            f" {counts[HELPS]} of {counts.total()} bars and less in {counts[HARMS]}; the 95 %"
            f" interval leaves {counts[UNDECIDED]} undecided."]
