"""The interface of a kind of study, and the Study that it makes of a scenario.

A kind is one folder of workloads/, and a file of study/ has its Kind. Measuring, resuming,
rendering and drawing use a Study and know no kind. study/registry.py lists the kinds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from firstflight.base.errors import UsageError
from firstflight.findings.quantities import FLAGS
from firstflight.runs.results.records import Record
from firstflight.runs.scenario_file import Head, ScenarioFile
from firstflight.testbed.messages import Job, ObservedTrial

if TYPE_CHECKING:
    from firstflight.findings.findings import Report
    from firstflight.runs.results.checks import Check


class AnyTrial(Protocol):
    """What is requested, as plain data. job(): the same as JSON, for the worker."""

    @property
    def id(self) -> str: ...

    @property
    def scenario(self) -> str: ...

    def job(self) -> Job: ...


@dataclass(frozen=True)
class Overrides:
    """What the command line sets in place of the scenario.

    lists: values by the name of the quantity. client: the program that fetches. sample: "full" for
    the large sample of a scenario that draws its responses. own_server: the flags of the user's own
    server, by their names. many: more than 100,000 trials are allowed (scenario_file.check_count).
    own_window: no route sets the initial window (--iw default).
    """

    lists: Mapping[str, Sequence[Any]]
    repeat: int | None = None
    client: str | None = None
    many: bool = False
    sample: str = ""
    own_server: Mapping[str, Any] = field(default_factory=dict)
    own_window: bool = False

    @property
    def given(self) -> dict[str, str]:
        """The flag of everything that is set, by its name."""
        others = {"repeat": self.repeat is not None,
                  "client": self.client is not None, "sample": self.sample,
                  "server-command": self.own_server}
        return {**{name: FLAGS[name].flag for name in self.lists},
                **{name: f"--{name}" for name, is_given in others.items() if is_given},
                **({"own_window": "--iw default"} if self.own_window else {})}

    def checked(self) -> dict[str, tuple[Any, ...]]:
        """The lists without duplicates, each value in its range.

        Raises UsageError that names the flag.
        """
        checked = {}
        for name, values in self.lists.items():
            flag = FLAGS[name].flag
            if not values:
                raise UsageError(f"{flag}: no value is given")
            known = dict.fromkeys(FLAGS[name].check(value, flag) for value in values)
            checked[name] = FLAGS[name].together(tuple(known))
        return checked


NOTHING = Overrides({}, many=True)  # the scenario as it stands


def is_drawn(trial: AnyTrial) -> bool:
    """Whether a trial repeats another one with an RTT near the one requested."""
    return getattr(trial, "drawn_rtt_ms", None) is not None


@dataclass(frozen=True)
class RunData:
    """A run as it was measured: what its report is built from.

    folder: of the run; facts: run.json. records: of the requested trials; means, counts and
    conditions use only these. what_ifs: of the trials that were added to find the reason of a
    difference. changed: how the records were edited since they were measured, in words; "" where
    they were not.
    """

    folder: Path
    facts: Mapping[str, Any]
    records: Sequence[Any]
    what_ifs: Sequence[Any] = ()
    changed: str = ""

    @property
    def exact(self) -> bool:
        """Whether the run was in virtual time, where computing takes no time."""
        return self.facts.get("virtual_time") is True


class Kind(ABC):
    """What a kind of study does with its scenarios, each of which has a `head`.

    all_captures: whether the packets of every trial are kept.
    """

    all_captures: bool = False

    @property
    @abstractmethod
    def record(self) -> type[Record]:
        """The class of its records."""

    @abstractmethod
    def read(self, file: ScenarioFile, overrides: Overrides) -> Any:
        """The scenario of a file; overrides: some of them select a part of it.

        Raises UsageError.
        """

    @abstractmethod
    def expand(self, scenario: Any, overrides: Overrides, seed: int) -> Sequence[AnyTrial]:
        """The trials of a scenario, with overrides in place of the file's values.

        seed: of the run. Raises UsageError.
        """

    @abstractmethod
    def judge(self, trial: Any, observed: ObservedTrial, exact: bool, sysctls: Mapping[str, str],
              known_kernel: bool = True) -> tuple[Record, Mapping[str, bytes]]:
        """The record of a trial with its verdict, and the files to keep, by name.

        exact: measured in virtual time. sysctls: the head's. known_kernel: whether the model of
        TCP was checked against this kernel; otherwise its prediction is recorded, and is no part
        of the verdict. Nothing else of the study is needed, so that another machine can judge.
        """

    @abstractmethod
    def report(self, study: Study, run: RunData) -> Report:
        """The report of a run of a study. Raises FirstFlightError if a file is missing."""

    @abstractmethod
    def guest_s(self, trial: Any) -> float:
        """Rough wall seconds of a trial in a guest, so that batches take about equally long."""

    @abstractmethod
    def checks(self) -> Sequence[Check[Any, Any]]:
        """The checks behind the verdicts of this kind."""

    def has_all_cells(self, trials: Sequence[Any], measured: Sequence[Any]) -> bool:
        """Whether the trials that were measured are enough for the scenario's figures."""
        return set(trials) <= set(measured)

    def repeats_with_drops(self, scenario: Any) -> int:
        """How often a cell is measured in which one measurement is one draw; 0 for as any other."""
        return 0

    def with_draws(self, study: Study, measured: Sequence[Any], seed: int) -> Sequence[AnyTrial]:
        """The study's trials, with those that cells get in which one measurement is one draw.

        measured: the first record of each cell and window. seed: of the run.
        """
        return study.trials

    def what_if_trials(self, study: Study, records: Sequence[Any], what_ifs: Sequence[Any]
                       ) -> Sequence[AnyTrial]:
        """The trials that would show why windows differ; those measured already are among them.

        records: of the requested trials. what_ifs: of the trials that were added so far.
        """
        return ()

    def study(self, file: ScenarioFile, overrides: Overrides = NOTHING, seed: int = 1) -> Study:
        """The study of a scenario's file, with the command line's overrides. Raises UsageError."""
        return self.study_of(self.read(file, overrides), overrides, seed)

    def study_of(self, scenario: Any, overrides: Overrides = NOTHING, seed: int = 1) -> Study:
        """The study of a scenario that is read already, or was built from flags.

        Raises UsageError.
        """
        trials = tuple(self.expand(scenario, overrides, seed))
        whole = overrides.given.keys() <= {"sample"} or self.has_all_cells(
            self.expand(scenario, NOTHING, seed), trials)
        repeats = self.repeats_with_drops(scenario)
        return Study(self, scenario, trials, whole,
                     repeats and (overrides.repeat or repeats))


@dataclass(frozen=True)
class Study:
    """One scenario, ready to be measured and rendered.

    trials: what to measure. whole: whether these are all the trials that the figures need.
    repeat_with_drops: how often a cell is measured in which one measurement is one draw; 0 for no
    more than trials has of it.
    """

    kind: Kind
    scenario: Any
    trials: Sequence[Any]
    whole: bool
    repeat_with_drops: int = 0

    @property
    def head(self) -> Head:
        """Title, claim, source, text and sysctls of the scenario."""
        head: Head = self.scenario.head
        return head

    def report(self, run: RunData) -> Report:
        return self.kind.report(self, run)
