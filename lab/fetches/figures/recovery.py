"""Recovery: what a larger window gains under random loss beyond what it gains without loss.

The buckets of a panel are rates of loss; the lossless one is what the others are compared with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from lab.core.findings.claims import LEAST_DRAWS
from lab.core.findings.findings import Column
from lab.core.stats import Estimate
from lab.core.words import between, short
from lab.fetches.figures.buckets import Bucket, Panel, Shown
from lab.fetches.figures.figure import interval
from lab.fetches.figures.panels import improvement
from lab.fetches.scenario.scenario import Figure, Scenario
from lab.fetches.verify.record import Record

HELPS, HARMS, UNDECIDED = "helps", "harms", "undecided"


def panel(scenario: Scenario, figure: Figure, records: Sequence[Record]) -> LossPanel:
    """The rows of one improvement figure by random loss. Raises as `improvement`."""
    return LossPanel(**vars(improvement(scenario, figure, records)))


@dataclass(frozen=True)
class LossPanel(Panel):
    """A panel whose buckets are of random loss, which a window can help to recover from."""

    def recovery(self, bucket: Bucket) -> Estimate | None:
        """The improvement less that of the lossless network, in the metric's unit.

        None for the lossless bucket itself, and without one or without an interval.
        """
        lossless = next((other for other in self.buckets if other.value == 0), bucket)
        ends = bucket.absolute_interval
        if lossless.value == bucket.value or ends is None:
            return None
        return Estimate(bucket.absolute - lossless.absolute,
                        (ends[0] - lossless.absolute, ends[1] - lossless.absolute))

    def effect(self, bucket: Bucket) -> str:
        """Whether the window helps recovery or harms it, by the 95 % interval; "" for no bucket."""
        if (recovery := self.recovery(bucket)) is None:
            return ""
        if bucket.draws < LEAST_DRAWS:
            return UNDECIDED
        return {1: HELPS, -1: HARMS, 0: UNDECIDED}[recovery.sign]

    @property
    def has_even_scale(self) -> bool:
        return True

    @property
    def columns(self) -> Sequence[Shown]:
        unit, group = self.metric.unit, "recovery"
        return [(Column("beyond lossless", unit, group),
                 lambda bucket: known.value if (known := self.recovery(bucket)) else ""),
                (Column("95 % interval", unit, group),
                 lambda bucket: interval(known.interval) if (known := self.recovery(bucket))
                 else ""),
                (Column("word", "", group, is_text=True), self.effect)]

    @property
    def sentences(self) -> Sequence[str]:
        beyond = [f"{short(known.value)} {self.metric.unit} at {self.named(bucket)}"
                  f" ({between(known.interval)}, {self.effect(bucket)})"
                  for bucket in self.buckets if (known := self.recovery(bucket))]
        return [f"Beyond what is {self.metric.improved} without loss: {'; '.join(beyond)}."
                ] if beyond else []

    def above(self, bucket: Bucket) -> tuple[str, str]:
        known, unit = self.recovery(bucket), self.metric.unit
        if known is None or known.interval is None:
            return "", ""
        low, high = known.interval
        return (f"beyond lossless: {short(known.value)} {unit}",
                f"{short(low)} … {short(high)} {unit}: {self.effect(bucket)}")


def sentences(panels: Sequence[Panel]) -> list[str]:
    """Whether a larger window helps or harms under random loss, beyond what it gains anyway."""
    counts = Counter(effect for panel in panels if isinstance(panel, LossPanel)
                     for bucket in panel.buckets if (effect := panel.effect(bucket)))
    if not counts:
        return []
    return ["Under random loss the larger window gains more than without loss in"
            f" {counts[HELPS]} of {counts.total()} bars and less in {counts[HARMS]}; the 95 %"
            f" interval leaves {counts[UNDECIDED]} undecided."]
