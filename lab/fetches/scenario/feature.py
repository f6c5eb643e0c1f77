"""What a feature brings to the core of fetches; each is a folder of lab/fetches/features.

The core reads, expands, judges and reports what is registered there, and imports
none of it: who deletes a feature's folder and its name in
lab/fetches/features/__init__.py keeps a working project.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.core.findings.charts import Timeline
from lab.core.findings.findings import Finding, Report, Table, Tile
from lab.core.results.checks import Check
from lab.core.scenario import schema
from lab.fetches.scenario.sweep import Sweep
from lab.fetches.scenario.trial import Trial


@dataclass(frozen=True)
class Tables:
    """A scenario's file as its features read it: [defaults] and the sweeps are read already."""

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
    """What a feature's tables make of a scenario, as it stands in Scenario.parts.

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


class Feature:
    """One folder of lab/fetches/features; its module `feature` has one as FEATURE.

    tables: of a scenario's file that are its own. figures: the kinds of figures
    (lab.fetches.figures.figure.FigureKind) by their names. integrity: checks before the
    packets; checks: of transfers over TCP; own_checks: of the records that `judged` and `failed`
    make.
    """

    tables: tuple[str, ...] = ()
    figures: Mapping[str, Any] = {}
    integrity: Sequence[Check] = ()
    checks: Sequence[Check] = ()
    own_checks: Sequence[Check] = ()

    def merged(self, raw: Mapping[str, Any], where: str) -> Mapping[str, Any]:
        """The tables of a scenario with those that it takes from another. Raises UsageError."""
        return raw

    def check_sweep(self, sweep: Sweep, where: str) -> None:
        """Raises UsageError where the values of a sweep do not go together."""

    def read(self, tables: Tables) -> Part | None:
        """Its part of a scenario, None where its tables are not there. Raises UsageError."""
        return None

    def judged(self, evidence: Any, observation: Mapping[str, Any], client_pcap: bytes,
               server_pcap: bytes, exact: bool) -> Any:
        """The record of a transfer that is not over TCP, None of another."""
        return None

    def failed(self, trial: Trial, observation: Mapping[str, Any], failure: str,
               client_pcap: bytes) -> Any:
        """The record of a fetch that was to fail, None of another; failure: why it did."""
        return None

    def timelines(self, scenario: Any, run: Any, changes: Sequence[Any]) -> tuple[Timeline, ...]:
        """Of a run's kept captures; changes: what windows changed in its cells
        (lab.fetches.figures.cells.WindowChange)."""
        return ()

    def trials_table(self, records: Sequence[Any]) -> Table | None:
        """The table of more trials than have a row each, None where it has none of its own."""
        return None

    def reasons(self, change: Any) -> Sequence[Any]:
        """Why a larger window changed the time of a cell as it did, or why it changed nothing.

        change: lab.fetches.figures.cells.WindowChange; gives its Reasons.
        """
        return ()

    def notes(self, records: Sequence[Any]) -> Sequence[str]:
        """What readers have to know of a run's transfers."""
        return ()

    def limit(self, record: Any) -> str:
        """What besides the window limited a transfer, "" for nothing."""
        return ""

    def remarks(self, records: Sequence[Any]) -> Sequence[str]:
        """What besides the window limited these transfers."""
        return ()

    def sentences(self, panels: Sequence[Any]) -> Sequence[str]:
        """Of all figures of bars of a run (lab.fetches.figures.buckets.Panel)."""
        return ()

    def hints(self, trials: Sequence[Trial], records: Sequence[Any]) -> Sequence[str]:
        """What to try next, of a question by flags."""
        return ()

    def check_weights(self, scenario: Any, figure: Any, where: str) -> bool:
        """Whether it weights the cells of a figure. Raises UsageError where it cannot."""
        return False

    def weighted_cells(self, scenario: Any, figure: Any, axis: Any) -> Any:
        """The cells of every bucket (lab.fetches.figures.buckets.WeightedCells), None where it
        does not weight them. Raises FirstFlightError."""
        return None
