"""A part of a scenario besides its sweeps: populations, users, raw values, causes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.core.findings.findings import Finding, Report, Tile
from lab.core.scenario import schema
from lab.fetches.scenario.sweep import Sweep
from lab.fetches.scenario.trial import Trial


@dataclass(frozen=True)
class Tables:
    """A scenario's file as its parts read it: [defaults] and the sweeps are read already."""

    name: str
    where: str
    raw: Mapping[str, Any]
    defaults: Mapping[str, Any]
    sweeps: tuple[Sweep, ...]

    def common(self, initcwnd: Sequence[int]) -> Sweep:
        """What drawn trials do not decide themselves, of one network. Raises UsageError."""
        drawn = {"rtt_ms": [1], "bandwidth_kbps": [1], "response_bytes": [1], "repeat": 1,
                 "name": "defaults", "uplink": "same"}
        return schema.read(Sweep, {**drawn, **self.defaults, "initcwnd": list(initcwnd)},
                           f"{self.where}: [defaults]")


class Part:
    """What such tables make of a scenario, as it stands in Scenario.parts.

    A method answers here for a part that brings nothing of its kind.
    """

    count = 0  # of trials besides the sweeps'
    is_reported = False  # whether it has a table of all that was measured
    has_trials = False  # whether a scenario needs no sweep beside it

    def check(self, scenario: Any, where: str) -> None:
        """Raises UsageError where the part does not go with the rest of the scenario."""

    def levels(self, sweeps: tuple[Sweep, ...]) -> list[tuple[Sweep, ...]]:
        """The sweeps again, each time changed otherwise."""
        return []

    def trials(self, scenario: str, seed: int) -> list[Trial]:
        """The trials that it draws. seed: of the run. Raises UsageError."""
        return []

    def overridden(self, name: str, lists: Mapping[str, tuple[Any, ...]],
                   single: Mapping[str, Any]) -> Part:
        """The part with what the command line says in place of the file `name`.

        lists: of Sweep; single: of its fields that are no list. Raises UsageError.
        """
        return self

    def in_full(self) -> Part | None:
        """The part with its large sample, None where it has none."""
        return None

    def owns(self, sweep: str) -> bool:
        """Whether figures name it in place of a sweep."""
        return False

    def windows(self, sweep: str) -> tuple[int, ...]:
        """The initial windows of what it owns."""
        raise NotImplementedError

    def check_figure(self, figure: Any, where: str) -> None:
        """Raises UsageError where a figure of what it owns cannot be drawn."""

    def labels(self, figure: Any) -> Sequence[str]:
        """Of the bars of a figure of what it owns. Raises UsageError."""
        raise NotImplementedError

    def panels(self, figures: Sequence[Any], records: Sequence[Any]
               ) -> tuple[dict[str, Any], dict[str, str]]:
        """The rows (lab.fetches.figures.buckets.Panel) of figures of what it owns, by their
        names, and why the others have none."""
        raise NotImplementedError

    def published_cells(self, scenario: Any, records: Sequence[Any]) -> Any:
        """Published values of single cells (lab.fetches.features.raw.cells.PublishedCells).

        None where it has none. Raises NoPanel.
        """
        return None

    def report(self, study: Any, scenario: Any, run: Any) -> Report | None:
        """The report of a whole run, in place of the core's."""
        return None

    def findings(self, analysis: Any, before: Sequence[Finding], judged: Sequence[Any]
                 ) -> tuple[list[Finding], Sequence[Tile]]:
        """Its findings and tiles, behind those of the figures; judged: their bars.

        analysis: of the run (lab.fetches.figures.figure.Analysis).
        """
        return [], ()
