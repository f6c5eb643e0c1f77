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
    """What is requested, as a worker can measure it."""

    def job(self) -> Job: ...


def site_of(trial: AnyTrial) -> str:
    """The digest of the recorded site that a trial's browser loads; "" without a browser."""
    name: str = getattr(trial, "site", "")
    return name


def memory_mb_of(trials: Iterable[AnyTrial]) -> int:
    """The most memory that a guest of some trials may take."""
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
    own_server: Mapping[str, object] = field(default_factory=dict)
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
class RunData(Generic[R]):
    """A run as it was measured: what its report is built from.

    folder: of the run; facts: run.json. records: of the requested trials; means, counts and
    conditions use only these. what_ifs: of the trials that were added to find the reason of a
    difference. changed: how the records were edited since they were measured, in words; "" where
    they were not.
    """

    folder: Path
    facts: Facts
    records: Sequence[R]
    what_ifs: Sequence[R] = ()
    changed: str = ""

    @property
    def exact(self) -> bool:
        """Whether the run was in virtual time, where computing takes no time."""
        return self.facts.get("virtual_time") is True


class Judge(Protocol[T_contra, R_co]):
    """Judges a trial by what an engine observed of it.

    Returns its record with the verdict, and the files to keep, by name. exact: measured in virtual
    time. sysctls: the head's. known_kernel: whether the model of TCP was checked against this
    kernel; otherwise its prediction is recorded, and is no part of the verdict. Nothing else of the
    study is needed, so that another machine can judge.
    """

    def __call__(self, trial: T_contra, observed: ObservedTrial, exact: bool,
                 sysctls: Mapping[str, str], known_kernel: bool = True, /
                 ) -> tuple[R_co, Mapping[str, bytes]]: ...


def are_measured(trials: Sequence[T], measured: Sequence[T]) -> bool:
    """Whether all trials of a scenario are among those that were measured."""
    return set(trials) <= set(measured)


@dataclass(frozen=True)
class Kind(Generic[S, T, R]):
    """What a kind of study does with its scenarios (S), their trials (T) and records (R).

    record: the class of its records.
    read: the scenario of a file; overrides: some of them select a part of it. Raises UsageError.
    expand: the trials of a scenario, with overrides in place of the file's values, for the seed of
    a run. Raises UsageError.
    report: of a run of a study. Raises FirstFlightError if a file is missing.
    guest_s: rough wall seconds of a trial in a guest, so that batches take about equally long.
    checks: those behind the verdicts.
    all_captures: whether the packets of every trial are kept.
    has_all_cells: whether the trials of a whole scenario, given first, are covered by those that
    were measured, so that these are enough for its figures.
    repeats_with_drops: how often a cell of a scenario is measured in which one measurement is one
    draw; 0 for as any other.
    with_draws: the study's trials, with those that such cells get, by what was measured of each
    cell and window so far, its first record at least, and by the seed of the run.
    what_if_trials: those that would show why windows differ; those measured already are among them.
    Takes the records of the requested trials, and those of trials that were added so far.
    """

    record: type[R]
    read: Callable[[ScenarioFile, Overrides], S]
    expand: Callable[[S, Overrides, int], Sequence[T]]
    judge: Judge[T, R]
    report: Callable[[Study[S, T, R], RunData[R]], Report]
    guest_s: Callable[[T], float]
    checks: Callable[[], Sequence[AnyCheck[R]]]
    all_captures: bool = False
    has_all_cells: Callable[[Sequence[T], Sequence[T]], bool] = are_measured
    repeats_with_drops: Callable[[S], int] = lambda _: 0
    with_draws: Callable[[Study[S, T, R], RunData[R], int], Sequence[T]] = (
        lambda study, run, seed: study.trials)
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
        return Study(self, scenario, trials, whole,
                     repeats and (overrides.repeat or repeats))


@dataclass(frozen=True)
class Study(Generic[S, T, R]):
    """One scenario, ready to be measured and rendered.

    trials: what to measure. whole: whether these are all the trials that the figures need.
    repeat_with_drops: how often a cell is measured in which one measurement is one draw; 0 for no
    more than trials has of it.
    """

    kind: Kind[S, T, R]
    scenario: S
    trials: Sequence[T]
    whole: bool
    repeat_with_drops: int = 0

    @property
    def head(self) -> Head:
        """Title, claim, source, text and sysctls of the scenario."""
        return self.scenario.head

    def report(self, run: RunData[R]) -> Report:
        return self.kind.report(self, run)


# Of a kind that only the registry knows; each stands for a study of one kind, never for a mixture.
AnyKind = Kind[Any, Any, Any]
AnyStudy = Study[Any, Any, Any]
AnyRun = RunData[Any]
