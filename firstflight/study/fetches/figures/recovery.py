"""Recovery: what a larger window gains under random loss beyond what it gains without loss.

The bars of such a panel are rates of loss; the lossless one is what the others are compared
with. Of other panels and of the lossless bar itself nothing is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from firstflight.base.stats import Estimate
from firstflight.base.words import format_interval, format_brief
from firstflight.findings.bar import Bar
from firstflight.findings.claims import LEAST_DRAWS, UNDECIDED
from firstflight.study.fetches.figures.bar_figure import BarFigure
from firstflight.study.fetches.figures.panels import improvement
from firstflight.study.fetches.scenario.scenario import Figure, Scenario
from firstflight.study.fetches.verify.record import Record

HELPS, HARMS = "helps", "harms"


def panel_of_loss(scenario: Scenario, figure: Figure, records: Sequence[Record],
                  is_whole: bool = True) -> BarFigure:
    """The bars of one improvement figure by random loss. Raises as `improvement`."""
    return replace(improvement(scenario, figure, records, is_whole), is_of_loss=True)


def beyond_lossless(panel: BarFigure, bar: Bar) -> Estimate | None:
    """The improvement less that of the lossless network, in the metric's unit.

    None without a lossless bar or an interval, too.
    """
    lossless = next((other for other in panel.bars if other.value == 0), bar)
    own, without = bar.difference.absolute.value, lossless.difference.absolute.value
    ends = bar.difference.absolute.interval
    if not panel.is_of_loss or lossless.value == bar.value or ends is None:
        return None
    return Estimate(own - without, (ends[0] - without, ends[1] - without))


def effect(panel: BarFigure, bar: Bar) -> str:
    """Whether the window helps recovery or harms it, by the 95 % interval; "" for no bar."""
    if (beyond := beyond_lossless(panel, bar)) is None:
        return ""
    if bar.difference.draws < LEAST_DRAWS:
        return UNDECIDED
    return {1: HELPS, -1: HARMS, 0: UNDECIDED}[beyond.sign]


def sentence_of_figure(panel: BarFigure) -> list[str]:
    """What each bar has beyond the lossless one; [] where none has."""
    parts = [f"{format_brief(beyond.value)} {panel.metric.unit} at {panel.named(bar)}"
             f" ({format_interval(beyond.interval)}, {effect(panel, bar)})"
             for bar in panel.bars if (beyond := beyond_lossless(panel, bar))]
    return [f"Beyond what is {panel.metric.improved} without loss: {'; '.join(parts)}."
            ] if parts else []


# Over the bars of such a panel, whose lines_above these are.
ABOVE_LOSS = "beyond the lossless bar: what the window does, and the 95 % interval"


def lines_above(panel: BarFigure, bar: Bar) -> tuple[str, str]:
    """Two lines above a bar."""
    beyond, unit = beyond_lossless(panel, bar), panel.metric.unit
    if beyond is None or beyond.interval is None:
        return "", ""
    low, high = beyond.interval
    return (f"{format_brief(beyond.value)} {unit}: {effect(panel, bar)}",
            f"{format_brief(low)} … {format_brief(high)}")


def sentence_of_run(panels: Sequence[BarFigure]) -> list[str]:
    """Whether a larger window helps or harms under random loss, beyond what it gains anyway."""
    counts = Counter(word for panel in panels for bar in panel.bars
                     if (word := effect(panel, bar)))
    if not counts:
        return []
    return ["Under random loss the larger window gains more than without loss in"
            f" {counts[HELPS]} of {counts.total()} bars and less in {counts[HARMS]}; the 95 %"
            f" interval leaves {counts[UNDECIDED]} undecided."]
