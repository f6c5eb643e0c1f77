"""What timelines bring: those of a run's report, and the kind of figure "packets"."""

from __future__ import annotations

from collections.abc import Sequence

from lab.core.findings.charts import Timeline
from lab.core.run.kinds import RunData
from lab.core.run.measuring import CAPTURES
from lab.fetches.features.timelines import timelines
from lab.fetches.figures.cells import WindowChange
from lab.fetches.figures.figure import FigureKind
from lab.fetches.scenario import feature
from lab.fetches.scenario.scenario import Figure, Scenario


def check_nothing(scenario: Scenario, figure: Figure, where: str) -> None:
    """Whatever captures a run keeps are shown."""


class Feature(feature.Feature):
    """As lab.fetches.scenario.feature has it."""

    figures = {"packets": FigureKind(check_nothing, timelines.packets, by="")}

    def timelines(self, scenario: Scenario, run: RunData, changes: Sequence[WindowChange]
                  ) -> tuple[Timeline, ...]:
        shown = (timelines.by_effect(changes) if scenario.cells else
                 timelines.by_round_trips(run.records))
        return timelines.timelines(shown, run.folder / CAPTURES)


FEATURE = Feature()
