"""What populations bring: clients and responses that are drawn, and the figures of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lab.core.errors import UsageError
from lab.core.findings.findings import Finding, Table, Tile
from lab.core.scenario import published, schema
from lab.fetches.features.population import weights
from lab.fetches.features.population.population import (Cause, Population, Populations,
                                                        percentile_of)
from lab.fetches.figures.bars import bars
from lab.fetches.figures.buckets import Panel, WeightedCells
from lab.fetches.figures.figure import Analysis, FigureKind
from lab.fetches.scenario import feature
from lab.fetches.scenario.feature import Part, Tables
from lab.fetches.scenario.reading import there
from lab.fetches.scenario.scenario import OF_BARS, JOINT, Axis, Figure, Scenario
from lab.fetches.scenario.trial import Trial
from lab.fetches.verify.record import Record

_KINDS = ("improvement", "window_sweep", "percentiles")
_BY = ("rtt_ms", "bandwidth_kbps", "bdp_bytes", "response_segments")


@dataclass(frozen=True)
class DrawnPart(Populations, Part):
    """The [[population]]s of a scenario."""

    has_trials = True

    def check(self, scenario: Scenario, where: str) -> None:
        self.check_causes(where)

    @property
    def count(self) -> int:  # type: ignore[override]
        return self.count_of_rows

    def trials(self, scenario: str, seed: int) -> list[Trial]:
        return self.trials_of_rows(seed)

    def overridden(self, name: str, lists: Mapping[str, tuple[Any, ...]],
                   single: Mapping[str, Any]) -> DrawnPart:
        if {*lists, *single} - {"initcwnd", "client"}:
            raise UsageError(f"{name} draws its clients and responses: it takes --iw and"
                             " --seed, and no list of RTTs, bandwidths, sizes or repeats")
        if "initcwnd" not in lists:
            return self
        return replace(self, populations=tuple(replace(population, initcwnd=lists["initcwnd"])
                                               for population in self.populations))

    def in_full(self) -> DrawnPart:
        return replace(self, full=True)

    def owns(self, sweep: str) -> bool:
        return self.population(sweep) is not None

    def check_figure(self, figure: Figure, where: str) -> None:
        """Its bars are the published ones: named by upper ends, or percentiles."""
        schema.one_of(figure.kind, _KINDS, f"{where}: kind")
        if figure.is_of_windows:
            return
        if not figure.published:
            raise UsageError(f"{where}: published is missing: it says what the bars of a population"
                             " are")
        published_bars = there(f"{where}: published",
                     lambda: published.buckets(figure.published, figure.panel))
        if figure.by == "percentile":
            for label in published_bars:
                percentile_of(label)
            return
        schema.one_of(figure.by, _BY, f"{where}: by")
        ends = [label.removeprefix(">") for label in published_bars]
        if not all(re.fullmatch(r"\d+(\.\d+)?", end) for end in ends) \
                or any(label.startswith(">") for label in list(published_bars)[:-1]):
            raise UsageError(f"{where}: published: bars are named by their upper ends, the last may"
                             f" be open as in \">5000\", not {', '.join(published_bars)}")

    def labels(self, figure: Figure) -> Sequence[str]:
        if figure.is_of_windows:
            return list(map(str, self.windows(figure.sweep)))
        return list(published.buckets(figure.published, figure.panel))

    def panels(self, figures: Sequence[Figure], records: Sequence[Record]
               ) -> tuple[dict[str, Panel], dict[str, str]]:
        from lab.fetches.features.population import panels  # numpy is slow to import
        return panels.panels(self, figures, records)

    def findings(self, analysis: Analysis, findings_before: Sequence[Finding], judged: Sequence[Any]
                 ) -> tuple[list[Finding], Sequence[Tile]]:
        if not analysis.is_whole:
            return [], ()
        from lab.fetches.features.population import findings  # numpy is slow to import
        return findings.population_findings(
            analysis.scenario, self, analysis.records, findings_before, judged), ()


def check_drawn(scenario: Scenario, figure: Figure, where: str) -> None:
    raise UsageError(f'{where}: a figure of kind "{figure.kind}" is of a [[population]]')


class Feature(feature.Feature):
    """As lab.fetches.scenario.feature has it."""

    tables = ("population", "step")
    figures = {"percentiles": FigureKind(check_drawn, bars, OF_BARS, "percentile",
                                         is_of_pairs=True)}

    def read(self, tables: Tables) -> Part | None:
        populations = schema.read_tables(Population, tables.raw, "population", tables.where)
        steps = schema.read_tables(Cause, tables.raw, "step", tables.where)
        if not populations:
            return None
        return DrawnPart(tables.name, populations, steps,
                         next(tables.common([1]).trials(tables.name, seed=1)))

    def trials_table(self, records: Sequence[Record]) -> Table | None:
        if not any(record.trial.part for record in records):
            return None
        from lab.fetches.features.population.trials_table import trials_table
        return trials_table(records)

    def check_weights(self, scenario: Scenario, figure: Figure, where: str) -> bool:
        if is_joint := figure.weights == JOINT:
            weights.check(scenario, figure, where)
        return is_joint

    def weighted_cells(self, scenario: Scenario, figure: Figure, axis: Axis
                       ) -> WeightedCells | None:
        return weights.joint_cells(scenario, figure, axis) if figure.weights == JOINT else None


def drawn(scenario: Scenario) -> DrawnPart:
    """The populations of a scenario that has some. Raises LookupError."""
    if (part := scenario.part(DrawnPart)) is None:
        raise LookupError(f"{scenario.name} has no [[population]]")
    return part


FEATURE = Feature()
