"""The part of a scenario that draws its clients and responses, and the figures of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lab.core.errors import UsageError
from lab.core.findings.findings import Finding, Tile
from lab.core.scenario import published, schema
from lab.core.scenario.scenario_file import check_count
from lab.fetches.features.population.population import (Cause, Populations, check_causes,
                                                            percentile_of)
from lab.fetches.features.population.population import read as read_populations
from lab.fetches.figures.buckets import Panel
from lab.fetches.figures.figure import Analysis
from lab.fetches.scenario.part import Part, Tables
from lab.fetches.scenario.scenario import Figure, Scenario, there
from lab.fetches.scenario.trial import Trial
from lab.fetches.verify.record import Record

_KINDS = ("improvement", "window_sweep", "percentiles")
_BY = ("rtt_ms", "bandwidth_kbps", "bdp_bytes", "response_segments")


@dataclass(frozen=True)
class DrawnPart(Populations, Part):
    """The [[population]]s of a scenario."""

    has_trials = True

    def check(self, scenario: Scenario, where: str) -> None:
        check_causes(self.steps, self.populations, where)

    @property
    def count(self) -> int:  # type: ignore[override]
        return sum(population.count for population in self.populations)

    def trials(self, scenario: str, seed: int) -> list[Trial]:
        check_count(sum(population.explained_at_most(self.steps)
                        for population in self.populations), "trials of causes", many=True)
        from lab.fetches.features.population import draws  # imports numpy: only for those that draw
        return [trial for population in self.populations
                for trial in draws.trials(population, self.like, seed, self.steps)]

    def overridden(self, name: str, lists: Mapping[str, tuple[Any, ...]],
                   single: Mapping[str, Any]) -> DrawnPart:
        if {*lists, *single} - {"initcwnd", "client"}:
            raise UsageError(f"{name} draws its clients and responses: it takes --iw and"
                             " --seed, and no list of RTTs, bandwidths, sizes or repeats")
        if "initcwnd" not in lists:
            return self
        return replace(self, populations=tuple(replace(population, initcwnd=lists["initcwnd"])
                                               for population in self.populations))

    def in_full(self) -> DrawnPart | None:
        if not any(population.full_clients for population in self.populations):
            return None
        return replace(self, populations=tuple(population.in_full
                                               for population in self.populations))

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


def read_drawn(tables: Tables) -> DrawnPart | None:
    """The [[population]]s with their [[step]]s, None without any. Raises UsageError."""
    populations = read_populations(tables.raw, tables.where)
    steps = schema.read_tables(Cause, tables.raw, "step", tables.where)
    if not populations:
        return None
    return DrawnPart(populations, steps, next(tables.common([1]).trials(tables.name, seed=1)))


def drawn(scenario: Scenario) -> DrawnPart:
    """The populations of a scenario that has some. Raises LookupError."""
    if (part := scenario.part(DrawnPart)) is None:
        raise LookupError(f"{scenario.name} has no [[population]]")
    return part
