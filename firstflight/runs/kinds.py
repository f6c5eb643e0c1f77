"""The interface of a kind of study, and the Study that it makes of a scenario.

A workload has one Kind, in a file of study/. Measuring, resuming, rendering and drawing use a Study
and know no kind. study/registry.py lists the kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from firstflight.base.errors import UsageError
from firstflight.findings.quantities import FLAGS
from firstflight.runs.results.facts import Facts
from firstflight.runs.results.records import Record, RequestedTrial
from firstflight.runs.scenario_file import Head, ScenarioFile
from firstflight.testbed.messages import BROWSER_MEMORY_MB, Job, ObservedTrial
from vtime.memory import MEMORY_MB

if TYPE_CHECKING:
    from firstflight.findings.findings import Report
    from firstflight.runs.results.checks import AnyCheck


class AnyTrial(RequestedTrial, Protocol):
    """One requested trial of any kind."""

    def job(self) -> Job:
        """The trial as a worker can measure it."""
        ...


def site_of(trial: AnyTrial) -> str:
    """The digest of the recorded site that a trial's browser loads; "" without a browser."""
    name: str = getattr(trial, "site", "")
    return name


def memory_mb_of(trials: Iterable[AnyTrial]) -> int:
    """The most memory in MB that a guest which measures these trials may take."""
    return BROWSER_MEMORY_MB if any(map(site_of, trials)) else MEMORY_MB


class AnyScenario(Protocol):
    """A scenario of any kind."""

    @property
    def head(self) -> Head: ...


S = TypeVar("S", bound=AnyScenario)
T = TypeVar("T", bound=AnyTrial)
R = TypeVar("R", bound=Record)
T_contra = TypeVar("T_contra", bound=AnyTrial, contravariant=True)
R_co = TypeVar("R_co", bound=Record, covariant=True)


@dataclass(frozen=True)
class Overrides:
    """The values that the command line sets in place of the scenario's."""

    lists: Mapping[str, Sequence[Any]]  # by the name of the quantity
    repeat: int | None = None
    client: str | None = None  # the program that fetches
    many: bool = False  # whether more than 100,000 trials are allowed (scenario_file.check_count)
    sample: str = ""  # "full" for the large sample of a scenario that draws its responses
    # The flags of the user's own server, by their names.
    own_server: Mapping[str, object] = field(default_factory=dict)
    own_window: bool = False  # whether no route sets the initial window (--iw default)

    @property
    def given(self) -> dict[str, str]:
        """The flags on the command line, by the names of the values that they set."""
        flags = {name: FLAGS[name].flag for name in self.lists}
        others = {"repeat": self.repeat is not None,
                  "client": self.client is not None, "sample": self.sample,
                  "server-command": self.own_server}
        flags |= {name: f"--{name}" for name, is_given in others.items() if is_given}
        if self.own_window:
            flags["own_window"] = "--iw default"
        return flags

    def checked(self) -> dict[str, tuple[Any, ...]]:
        """The lists without duplicates, each value in its range.

        Raises UsageError that names the flag.
        """
        checked = {}
        for name, values in self.lists.items():
            flag = FLAGS[name].flag
            if not values:
                raise UsageError(f"{flag}: no value is given")
            distinct = dict.fromkeys(FLAGS[name].check(value, flag) for value in values)
            checked[name] = FLAGS[name].together(tuple(distinct))
        return checked


NOTHING = Overrides({}, many=True)  # the scenario as it stands


def is_drawn(trial: AnyTrial) -> bool:
    """Whether a trial repeats another one with an RTT near the one requested."""
    return getattr(trial, "drawn_rtt_ms", None) is not None


@dataclass(frozen=True)
class RunData(Generic[R]):
    """A run as it was measured. Its report is built from this."""

    folder: Path
    facts: Facts  # the content of run.json
    records: Sequence[R]  # of the requested trials; means, counts and conditions use only these
    what_ifs: Sequence[R] = ()  # of trials that were added to find the reason of a difference
    changed: str = ""  # how the records were edited since they were measured, in words, or ""

    @property
    def exact(self) -> bool:
        """Whether the run was in virtual time, where computing takes no time."""
        return self.facts.get("virtual_time") is True


class Judge(Protocol[T_contra, R_co]):
    """Judges a trial by an engine's observation.

    It returns the trial's record with the verdict, and the files to keep, by name. exact: whether
    the trial was measured in virtual time. sysctls: of the scenario's head. known_kernel: whether
    the model of TCP was checked against this kernel; otherwise the prediction is recorded, and is
    no part of the verdict. A judge needs nothing else of the study, so another machine can judge.
    """

    def __call__(self, trial: T_contra, observed: ObservedTrial, exact: bool,
                 sysctls: Mapping[str, str], known_kernel: bool = True, /
                 ) -> tuple[R_co, Mapping[str, bytes]]: ...


def are_measured(trials: Sequence[T], measured: Sequence[T]) -> bool:
    """Whether all trials of a scenario are among those that were measured."""
    return set(trials) <= set(measured)


@dataclass(frozen=True)
class Kind(Generic[S, T, R]):
    """How the studies of a kind are made, measured and reported.

    S, T and R are the classes of its scenarios, trials and records.
    """

    record: type[R]
    # Reads the scenario of a file; some overrides select a part of it. Raises UsageError.
    read: Callable[[ScenarioFile, Overrides], S]
    # Returns the trials of a scenario, with overrides in place of the file's values, for the seed
    # of a run. Raises UsageError.
    expand: Callable[[S, Overrides, int], Sequence[T]]
    judge: Judge[T, R]
    # Returns the report of a study's run. Raises FirstFlightError if a file is missing.
    report: Callable[[Study[S, T, R], RunData[R]], Report]
    # Estimates the wall seconds of a trial in a guest, so that batches take about equally long.
    guest_s: Callable[[T], float]
    checks: Callable[[], Sequence[AnyCheck[R]]]  # behind the verdicts
    all_captures: bool = False  # whether the packets of every trial are kept
    # Whether measured trials, the second argument, are enough for the figures of a whole scenario,
    # whose trials are the first.
    has_all_cells: Callable[[Sequence[T], Sequence[T]], bool] = are_measured
    # How often a scenario has a cell measured in which one measurement is one draw; 0 for as often
    # as any other cell.
    repeats_with_drops: Callable[[S], int] = lambda _: 0
    # Returns the study's trials and the trials that such cells get. They follow from the run so
    # far, which has at least one record of each cell and window, and from the run's seed.
    with_draws: Callable[[Study[S, T, R], RunData[R], int], Sequence[T]] = (
        lambda study, run, seed: study.trials)
    # Returns the trials that would show why windows differ, measured ones included. It takes the
    # records of the requested trials, and the records of the trials that were added so far.
    what_if_trials: Callable[[Study[S, T, R], Sequence[R], Sequence[R]], Sequence[T]] = (
        lambda study, records, what_ifs: ())

    def study(self, file: ScenarioFile, overrides: Overrides = NOTHING, seed: int = 1
              ) -> Study[S, T, R]:
        """The study of a scenario's file, with the command line's overrides. Raises UsageError."""
        return self.study_of(self.read(file, overrides), overrides, seed)

    def study_of(self, scenario: S, overrides: Overrides = NOTHING, seed: int = 1
                 ) -> Study[S, T, R]:
        """The study of a scenario that is read already, or was built from flags.

        Raises UsageError.
        """
        trials = tuple(self.expand(scenario, overrides, seed))
        whole = overrides.given.keys() <= {"sample"} or self.has_all_cells(
            self.expand(scenario, NOTHING, seed), trials)
        repeats = self.repeats_with_drops(scenario)
        if repeats and overrides.repeat:
            repeats = overrides.repeat
        return Study(self, scenario, trials, whole=whole, repeat_with_drops=repeats)


@dataclass(frozen=True)
class Study(Generic[S, T, R]):
    """One scenario, ready to be measured and rendered."""

    kind: Kind[S, T, R]
    scenario: S
    trials: Sequence[T]  # to measure
    whole: bool  # whether the trials are all that the figures need
    # How often a cell is measured in which one measurement is one draw; 0 for as often as `trials`
    # has it.
    repeat_with_drops: int = 0

    @property
    def head(self) -> Head:
        """The head of the scenario."""
        return self.scenario.head

    def report(self, run: RunData[R]) -> Report:
        return self.kind.report(self, run)


# A kind that only the registry knows, and a study and a run of such a kind.
AnyKind = Kind[Any, Any, Any]
AnyStudy = Study[Any, Any, Any]
AnyRun = RunData[Any]
