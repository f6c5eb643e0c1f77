"""What random loss brings: the kind of figure "loss", and what larger windows do to recovery."""

from __future__ import annotations

from collections.abc import Sequence

from lab.fetches.features.losses import recovery
from lab.fetches.figures.bars import bars
from lab.fetches.figures.buckets import Panel
from lab.fetches.figures.figure import FigureKind
from lab.fetches.figures.panels import check_buckets
from lab.fetches.scenario import feature
from lab.fetches.scenario.scenario import OF_BARS


class Feature(feature.Feature):
    """As lab.fetches.scenario.feature has it."""

    figures = {"loss": FigureKind(check_buckets, bars, OF_BARS, "loss_percent",
                                  rows=recovery.panel, is_of_pairs=True)}

    def sentences(self, panels: Sequence[Panel]) -> list[str]:
        return recovery.sentences(panels)


FEATURE = Feature()
