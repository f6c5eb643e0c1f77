"""Recovery: what a larger window gains under random loss beyond what it gains without loss.

The bars of such a figure are loss rates. Each is compared with the lossless bar. Other figures, and
the lossless bar itself, have no such gain.
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
    """The bars of an improvement figure by loss rate. Raises NoBars, as `improvement`."""
    return replace(improvement(scenario, figure, records, is_whole), is_of_loss=True)


def beyond_lossless(bar_figure: BarFigure, bar: Bar) -> Estimate | None:
    """The improvement less that of the lossless network, in the metric's unit.

    None also where there is no lossless bar, or no interval.
    """
    lossless = next((other for other in bar_figure.bars if other.value == 0), bar)
    own, without = bar.difference.absolute.value, lossless.difference.absolute.value
    ends = bar.difference.absolute.interval
    if not bar_figure.is_of_loss or lossless.value == bar.value or ends is None:
        return None
    return Estimate(own - without, (ends[0] - without, ends[1] - without))


def effect(bar_figure: BarFigure, bar: Bar) -> str:
    """Whether the window helps or harms recovery, by the 95 % interval; "" without such a gain."""
    if (beyond := beyond_lossless(bar_figure, bar)) is None:
        return ""
    if bar.difference.draws < LEAST_DRAWS:
        return UNDECIDED
    return {1: HELPS, -1: HARMS, 0: UNDECIDED}[beyond.sign]


def sentence_of_figure(bar_figure: BarFigure) -> list[str]:
    """A sentence on what each bar gains beyond the lossless one; [] where none does."""
    metric, parts = bar_figure.metric, []
    for bar in bar_figure.bars:
        beyond = beyond_lossless(bar_figure, bar)
        if beyond is not None:
            parts.append(f"{format_brief(beyond.value)} {metric.unit} at {bar_figure.named(bar)}"
                         f" ({format_interval(beyond.interval)}, {effect(bar_figure, bar)})")
    if not parts:
        return []
    return [f"Beyond what is {metric.improved} without loss: {'; '.join(parts)}."]


# The legend of lines_above.
ABOVE_LOSS = "beyond the lossless bar: what the window does, and the 95 % interval"


def lines_above(bar_figure: BarFigure, bar: Bar) -> tuple[str, str]:
    """Two lines above a bar: the gain with its effect, and the interval."""
    beyond, unit = beyond_lossless(bar_figure, bar), bar_figure.metric.unit
    if beyond is None or beyond.interval is None:
        return "", ""
    low, high = beyond.interval
    return (f"{format_brief(beyond.value)} {unit}: {effect(bar_figure, bar)}",
            f"{format_brief(low)} … {format_brief(high)}")


def sentence_of_run(bar_figures: Sequence[BarFigure]) -> list[str]:
    """Whether a larger window helps or harms under random loss, beyond what it gains anyway."""
    effects = [effect(bar_figure, bar) for bar_figure in bar_figures for bar in bar_figure.bars]
    counts = Counter(filter(None, effects))
    if not counts:
        return []
    return ["Under random loss the larger window gains more than without loss in"
            f" {counts[HELPS]} of {counts.total()} bars and less in {counts[HARMS]}; the 95 %"
            f" interval leaves {counts[UNDECIDED]} undecided."]
