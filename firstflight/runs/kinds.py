"""The contract of a kind of study: what every kind gives, and the one Study that it makes.

A kind is one folder of study/, whose file study.py has its Kind. Measuring, resuming, rendering and
drawing know a Study only. study/registry.py names the kinds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
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
    """What is requested, as plain data; `job` is how a worker reads it."""

    @property
    def id(self) -> str: ...

    @property
    def scenario(self) -> str: ...

    def job(self) -> Job: ...


@dataclass(frozen=True)
class Overrides:
    """What the command line has in place of the scenario.

    lists: values by the name of the quantity; client: the fetching program.
    sysctls: as NAME=VALUE, of a question of one's own only.
    sample: "full" for the large sample of a scenario that draws its responses.
    own_server: the flags of a server of one's own, by their names.
    many: more than 100,000 trials are allowed (scenario_file.check_count).
    """

    lists: Mapping[str, Sequence[Any]]
    repeat: int | None = None
    client: str | None = None
    many: bool = False
    sysctls: Sequence[str] = ()
    sample: str = ""
    own_server: Mapping[str, Any] = field(default_factory=dict)

    @property
    def given(self) -> dict[str, str]:
        """The flag of each thing that is given, by its name."""
        others = {"sysctl": self.sysctls, "repeat": self.repeat is not None,
                  "client": self.client is not None, "sample": self.sample,
                  "server-command": self.own_server}
        return {**{name: FLAGS[name].flag for name in self.lists},
                **{name: f"--{name}" for name, is_given in others.items() if is_given}}

    def checked(self) -> dict[str, tuple[Any, ...]]:
        """The lists, each value in its range and once. Raises UsageError that names the flag."""
        checked = {}
        for name, values in self.lists.items():
            flag = FLAGS[name].flag
            if not values:
                raise UsageError(f"{flag}: no value is given")
            checked[name] = tuple(dict.fromkeys(FLAGS[name].check(value, flag) for value in values))
        return checked


    def replacing(self, known: Sequence[str], why_not: Callable[[str, str], str],
                  one_value: str) -> dict[str, Any]:
        """What replaces a sweep's values of `known`, by name; an RTT and a bandwidth is one value.

        why_not: the message for what does not go with the scenario, by its name and its flag;
        one_value: behind the flag of several. Raises UsageError.
        """
        for name, flag in self.given.items():
            if name not in known:
                raise UsageError(why_not(name, flag))
        values: dict[str, Any] = dict(self.checked())
        for name in ("rtt_ms", "bandwidth_kbps"):
            if name in values:
                if len(values[name]) != 1:
                    raise UsageError(f"{FLAGS[name].flag}: {one_value}")
                (values[name],) = values[name]
        return values


NOTHING = Overrides({}, many=True)  # the scenario as it stands


def is_what_if(trial: AnyTrial) -> bool:
    """Whether a trial was measured to find a reason, besides those that were requested."""
    return bool(getattr(trial, "what_if", ""))


@dataclass(frozen=True)
class RunData:
    """A run as it was measured: what its report is made of.

    folder: of the run; facts: run.json; measured: all of its records. changed: what somebody did
    to its records since they were measured, "" for nothing.
    """

    folder: Path
    facts: Mapping[str, Any]
    measured: Sequence[Any]
    changed: str = ""

    @cached_property
    def records(self) -> Sequence[Any]:
        """The records of the trials that were requested: every mean, count and condition is of
        these."""
        return [record for record in self.measured if not is_what_if(record.trial)]

    @cached_property
    def what_ifs(self) -> Sequence[Any]:
        """Those of the trials that were measured besides, to find the reason of a difference."""
        return [record for record in self.measured if is_what_if(record.trial)]

    @property
    def exact(self) -> bool:
        """Whether it was in virtual time, where computing takes none."""
        return self.facts.get("virtual_time") is True


class Kind(ABC):
    """What a kind of study does with its scenarios; a scenario has a `head`.

    all_captures: every trial's packets are kept.
    """

    all_captures: bool = False

    @property
    @abstractmethod
    def record(self) -> type[Record]:
        """The class of its records."""

    @abstractmethod
    def read(self, file: ScenarioFile, overrides: Overrides) -> Any:
        """The scenario of a file, with what of the overrides chooses it. Raises UsageError."""

    @abstractmethod
    def expand(self, scenario: Any, overrides: Overrides, seed: int) -> Sequence[AnyTrial]:
        """Its trials, with the other overrides in place of what the file has. Raises UsageError.

        seed: of the run.
        """

    @abstractmethod
    def judge(self, trial: Any, observed: ObservedTrial, exact: bool, sysctls: Mapping[str, str],
              known_kernel: bool = True) -> tuple[Record, Mapping[str, bytes]]:
        """The record of a trial, and what of its files is kept, by name.

        exact: measured in virtual time. sysctls: the head's. known_kernel: the TCP is one that the
        model of TCP was checked against. What the model predicts of another one is recorded, and
        is no part of the verdict. It takes nothing else of the study, so that another machine can
        do it, which has the trial only.
        """

    @abstractmethod
    def report(self, study: Study, run: RunData) -> Report:
        """All that a run of a study shows. Raises FirstFlightError if a file is missing."""

    @abstractmethod
    def guest_s(self, trial: Any) -> float:
        """Wall seconds of a trial in a guest, roughly: so that batches take about as long."""

    @abstractmethod
    def checks(self) -> Sequence[Check[Any, Any]]:
        """The table that its verdicts rest on."""

    def has_all_cells(self, trials: Sequence[Any], measured: Sequence[Any]) -> bool:
        """Whether a scenario's trials are all among others, for its figures."""
        return set(trials) <= set(measured)

    def what_if_trials(self, study: Study, measured: Sequence[Any]) -> Sequence[AnyTrial]:
        """The trials that would show why windows differ; those measured already are among them.

        measured: all records so far.
        """
        return ()

    def study(self, file: ScenarioFile, overrides: Overrides = NOTHING, seed: int = 1) -> Study:
        """A scenario with what the command line has in place of it. Raises UsageError."""
        return self.study_of(self.read(file, overrides), overrides, seed)

    def study_of(self, scenario: Any, overrides: Overrides = NOTHING, seed: int = 1) -> Study:
        """The same of a scenario that was made, not read. Raises UsageError."""
        trials = tuple(self.expand(scenario, overrides, seed))
        whole = overrides.given.keys() <= {"sample"} or self.has_all_cells(
            self.expand(scenario, NOTHING, seed), trials)
        return Study(self, scenario, trials, whole)


@dataclass(frozen=True)
class Study:
    """One scenario, ready to be measured and rendered.

    trials: what to measure; whole: whether these are all that the figures need.
    """

    kind: Kind
    scenario: Any
    trials: Sequence[Any]
    whole: bool

    @property
    def head(self) -> Head:
        """Title, claim, source, text, sysctls."""
        head: Head = self.scenario.head
        return head

    def report(self, run: RunData) -> Report:
        return self.kind.report(self, run)
