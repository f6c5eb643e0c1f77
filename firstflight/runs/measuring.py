"""Measures a study: an engine runs the trials, each is judged, and its record is appended."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Protocol

from firstflight.base import files, places, reading
from firstflight.base.errors import FirstFlightError, mark_resumable
from firstflight.base.progress import Progress
from firstflight.base.terminal import say
from firstflight.net.segments import capture_file
from firstflight.parameters import default
from firstflight.runs import earlier, runs
from firstflight.runs.captured import choose_captured
from firstflight.runs.earlier import Refining
from firstflight.runs.kinds import AnyTrial, Kind, R, RunData, S, Study, T, is_drawn
from firstflight.runs.results.facts import Recipe
from firstflight.runs.runs import Run
from firstflight.testbed.messages import Job, ObservedTrial

CAPTURES, FILES = "captures", "files"  # folders of a run
SEAL_INTERVAL_S = 5.0  # between two seals of trials.csv in run.json
FIRST_ANSWER_S = 10.0  # from the start to the first answer; each later answer takes twice as long
# Facts that an engine reports once a guest has run.
GUEST_FACTS = ("kernel", "kernels", "systems", "sysctls")
# Rounds of trials where one trial is one draw: the first trial shows that, or its repeats do.
DRAWN_ROUNDS = 2
MOST_ROUNDS = 5  # of trials that show reasons; each round starts from what the last one showed


class Engine(Protocol):
    """An engine runs trials on this machine (testbed.engine)."""

    name: str
    build: str  # identifies its kernel, before the kernel runs
    exact: bool  # whether its clock is virtual, so times have to be exact
    known_kernel: bool  # whether the model of TCP was checked against its kernel
    jobs: int  # how many workers run side by side
    facts: dict[str, object]  # what its kernel reports, once trials run

    def recipes(self, names: Collection[str]) -> Mapping[str, Recipe]:
        """The recipes from which these named kernels were built; a missing kernel has no entry."""
        ...

    def is_known(self, kernel: str) -> bool:
        """Whether the model of TCP was checked against the kernel of that name."""
        ...

    def run(self, trials: list[Job], sysctls: dict[str, str],
            folder: Path) -> Iterator[ObservedTrial]:
        """Yield one observation for each trial. folder: for the engine's files while it runs."""
        ...


@dataclass(frozen=True)
class JudgedTrial(Generic[R]):
    """A trial that was judged, and what the run keeps of it."""

    record: R
    captures: Mapping[str, bytes]  # the packets at each side, where they were requested
    files: Mapping[str, bytes]  # other files, by name
    emulated_s: float  # how long the trial took on its network


class Measurer(Protocol):
    """A measurer measures and judges trials, on this machine (OneMachine) or many (runs.cluster).

    name, build, exact, jobs and facts are as in Engine.
    """

    name: str
    build: str
    exact: bool
    jobs: int

    @property
    def facts(self) -> dict[str, object]: ...

    @property
    def doing(self) -> str:
        """Which machines measure, for the progress line."""
        ...

    def recipes(self, names: Collection[str]) -> Mapping[str, Recipe]:
        """The same as Engine.recipes returns."""
        ...

    def judged(self, study: Study[S, T, R], trials: Sequence[T], captured: set[str],
               folder: Path) -> Iterator[JudgedTrial[R]]:
        """Yield each trial once it is judged.

        captured: the ids of the trials whose packets are kept. folder: for the engine's files.
        """
        ...


class OneMachine:
    """Measures with an engine of this machine, and judges its observations."""

    doing = ""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.name, self.build = engine.name, engine.build
        self.exact, self.jobs = engine.exact, engine.jobs
        self.known_kernel = engine.known_kernel

    @property
    def facts(self) -> dict[str, object]:
        return self.engine.facts

    def recipes(self, names: Collection[str]) -> Mapping[str, Recipe]:
        return self.engine.recipes(names)

    def judged(self, study: Study[S, T, R], trials: Sequence[T], captured: set[str],
               folder: Path) -> Iterator[JudgedTrial[R]]:
        waiting = {trial.id: trial for trial in trials}
        jobs = [job_of(study.kind, trial) for trial in trials]
        for observed in self.engine.run(jobs, study.head.sysctls, folder):
            trial = waiting.pop(observed.trial_id)
            yield judge(study.kind, trial, observed, self.exact, study.head.sysctls,
                        trial.id in captured, is_known(self.engine, trial, self.known_kernel))


def job_of(kind: Kind[S, T, R], trial: T) -> Job:
    """A trial as a worker reads it, with an estimate of how long its guest computes."""
    job = trial.job()
    job["guest_s"] = kind.guest_s(trial)
    return job


def kernel_of(trial: AnyTrial) -> str:
    """The name of a trial's kernel; kinds without this parameter use the default kernel."""
    name: str = getattr(trial, "kernel", default("kernel"))
    return name


def is_known(engine: Engine, trial: AnyTrial, is_default_known: bool) -> bool:
    """Whether the model of TCP was checked against a trial's kernel."""
    name = kernel_of(trial)
    return is_default_known if name == default("kernel") else engine.is_known(name)


def build_of(study: Study[S, T, R], measurer: Measurer) -> str:
    """The builds of a study's kernels: the default kernel's, then each named kernel's.

    For a missing kernel "none" stands there. So a run in which its trials were skipped is not
    resumed once the kernel is there.
    """
    names = {kernel_of(trial) for trial in study.trials} - {default("kernel")}
    recipes = measurer.recipes(names) if names else {}
    builds = [measurer.build]
    for name in sorted(names):
        build = str(recipes[name]["linux"])[:16] if name in recipes else "none"
        builds.append(f"{name}={build}")
    return " ".join(builds)


def judge(kind: Kind[S, T, R], trial: T, observed: ObservedTrial, exact: bool,
          sysctls: Mapping[str, str], with_captures: bool, known_kernel: bool
          ) -> JudgedTrial[R]:
    """Judge a trial by an engine's observation.

    with_captures: whether its packets are kept. The other parameters: as for kinds.Judge.
    """
    record, files_kept = kind.judge(trial, observed, exact, sysctls, known_kernel)
    captures = {}
    if with_captures:
        captures = {"client": observed.client_pcap, "server": observed.server_pcap}
    return JudgedTrial(record, captures, files_kept, observed.content.get("duration_s", 0.0))


@dataclass(frozen=True)
class MeasureOptions:
    """How to measure a study: where results go, which seed, and what is kept."""

    results: Path  # the folder of all results
    seed: int
    fresh: bool  # whether nothing of an earlier run is used
    keep_captures: bool  # whether the packets of every trial are kept
    facts: Mapping[str, object]  # further entries of run.json
    quiet: bool = False  # no progress line
    refining: Refining[Any, Any] | None = None  # None for no early answer
    reasons: bool = True  # whether trials are added that show why windows differ
    # Whether the packets of every trial are kept that was not added with a drawn RTT.
    keep_first_captures: bool = False


def measure(study: Study[S, T, R], measurer: Measurer, requested: MeasureOptions) -> RunData[R]:
    """Measure the trials that have no record yet; return the run with all its records.

    Raises FirstFlightError if something cannot be written; the trial then has no record.
    """
    request = runs.request(study, measurer.name, build_of(study, measurer), requested.seed)
    run = runs.open_run(requested.results, study, request, requested.fresh)
    try:
        if run.resumed:
            _note_resuming(run, study, requested)
        else:
            run.facts.update(initial_facts(study, measurer, requested))
        run.save()

        if requested.refining and not (run.resumed or requested.fresh):
            _take_earlier(run, study, requested, requested.refining)
        study = _with_draws(run, study, measurer, requested)
        _measure_missing(run, study, measurer, requested)
        what_ifs = _measure_reasons(run, study, measurer, requested)
        run.order(study.trials, what_ifs)
        run.finish()
        return RunData(run.folder, run.facts, run.records(), run.what_ifs())
    except BaseException as error:
        if run.holds_records():
            mark_resumable(error)
        raise
    finally:
        run.close()


def _note_resuming(run: Run[R], study: Study[S, T, R], requested: MeasureOptions) -> None:
    """Say that a run is resumed, and record by which version and tools."""
    if not requested.quiet:
        # A run with repeats of what is one draw has more trials than the study begins with.
        measured, count = len(run.measured), len(study.trials)
        of_all = f" of {count}" if measured <= count else ""
        say(f"resuming {run.folder}: {measured}{of_all} trials are there")
    run.facts.setdefault("resumed", []).append(
        {"at": runs.now_text(), "project": requested.facts.get("project"),
         "tools": requested.facts.get("tools")})


def _take_earlier(run: Run[R], study: Study[S, T, R], requested: MeasureOptions,
                  refining: Refining[T, R]) -> None:
    """Append the records of trials that earlier runs have measured.

    A trial whose packets this run keeps is taken only if the earlier run has kept them.
    """
    captured, missing = _captured(study, requested), run.missing(study.trials)
    taken = Counter[Path]()  # how many records are from each earlier run
    file = run.open_records()
    try:
        for record, folder, earlier_id in earlier.records(study, run, missing, refining):
            packets = {}
            if record.trial.id in captured:
                paths = {side: capture_path(folder, earlier_id, side)
                         for side in ("client", "server")}
                packets = {side: read_trial_file(path) for side, path in paths.items()
                           if path.is_file()}
                if not packets:
                    continue

            judged = JudgedTrial(record, captures=packets, files={}, emulated_s=0.0)
            save_trial_files(run.folder, judged)
            file.append(record)
            run.measured.add(record.trial)
            taken[folder] += 1
        _take_facts(run, taken)
        run.seal(file)
    finally:
        file.close()
    if taken and not requested.quiet:
        say(f"{taken.total()} of {len(study.trials)} trials are measured already (--fresh measures"
            " them again)")


def _take_facts(run: Run[R], taken: Mapping[Path, int]) -> None:
    """Record which earlier runs measured how many trials, and what their guests reported.

    Their guests' kernel was of the same build (earlier.records). If this run measures the other
    trials, the facts of its own guests replace these.
    """
    for folder in taken:
        stored = runs.read_facts(folder)
        reported = {name: stored[name] for name in GUEST_FACTS if name in stored}
        run.facts = {**reported, **run.facts}
    if taken:
        run.facts["earlier_runs"] = {folder.name: count for folder, count in taken.items()}


def _with_draws(run: Run[R], study: Study[S, T, R], measurer: Measurer, requested: MeasureOptions
                ) -> Study[S, T, R]:
    """Find out which cells need more trials, since one measurement of them is one draw.

    The first trial of each cell and window is measured for that, and in further rounds the trials
    that the study adds. Returns the study with all trials that it needs. A run that was interrupted
    adds the same trials: each round follows from the trials of the round before alone.
    """
    if not (study.repeat_with_drops and measurer.exact):
        return study
    wanted: Sequence[T] = [trial for trial in study.trials if trial.repeat == 1]
    for _ in range(DRAWN_ROUNDS):
        _measure_missing(run, replace(study, trials=wanted), measurer, requested)
        measured = RunData(run.folder, run.facts, _in_order(run.records(), wanted))
        wanted = study.kind.with_draws(study, measured, requested.seed)
    return replace(study, trials=wanted)


def _measure_reasons(run: Run[R], study: Study[S, T, R], measurer: Measurer,
                     requested: MeasureOptions) -> list[T]:
    """Measure the trials that show reasons, round after round; return all of them, in their order.

    A round starts from the requested trials and from those that the rounds before it added, in that
    order, and from nothing else. So a run that was interrupted adds the same trials when it is
    resumed, and measures those that are missing.
    """
    if not (requested.reasons and measurer.exact):
        return []
    what_ifs: dict[T, None] = {}  # a set that keeps its order
    records = _in_order(run.records(), study.trials)
    for _ in range(MOST_ROUNDS):
        measured = run.what_ifs()
        added = study.kind.what_if_trials(study, records, _in_order(measured, what_ifs))
        if not added:
            break
        what_ifs |= dict.fromkeys(added)
        measured_trials = {record.trial for record in measured}
        if missing := [trial for trial in added if trial not in measured_trials]:
            _append_what_ifs(run, study, measurer, missing)
    return list(what_ifs)


def _in_order(records: Sequence[R], trials: Iterable[AnyTrial]) -> list[R]:
    """The records of these trials, in the order of the trials."""
    measured = {record.trial: record for record in records}
    return [measured[trial] for trial in trials if trial in measured]


def _append_what_ifs(run: Run[R], study: Study[S, T, R], measurer: Measurer, trials: Sequence[T]
                     ) -> None:
    """Append the records of a few what-if trials, without progress and without their packets."""
    file = run.open_what_ifs()
    try:
        for judged in measurer.judged(study, trials, set(), run.work_folder):
            file.append(judged.record)
    finally:
        run.seal(file)
        file.close()


def _captured(study: Study[S, T, R], requested: MeasureOptions) -> set[str]:
    """The ids of the trials whose packets are kept."""
    if requested.keep_captures or study.kind.all_captures:
        return {trial.id for trial in study.trials}
    firsts = [trial for trial in study.trials if not is_drawn(trial)]
    if requested.keep_first_captures:
        return {trial.id for trial in firsts}
    return choose_captured(firsts)


def _measure_missing(run: Run[R], study: Study[S, T, R], measurer: Measurer,
                     requested: MeasureOptions) -> None:
    """Measure the study's trials that have no record; add up the times in run.json.

    The record of each trial is appended as soon as the trial is judged.
    """
    started, emulated_s = time.monotonic(), 0.0
    missing, refining = run.missing(study.trials), requested.refining
    if refining:
        missing.sort(key=refining.order)
    captured = _captured(study, requested)
    answer_after_s = FIRST_ANSWER_S
    sealed = started  # when run.json got the last seal
    file = run.open_records()
    try:
        with Progress(len(study.trials), len(run.measured), study.head.name,
                      requested.quiet or not missing) as progress:
            for judged in measurer.judged(study, missing, captured, run.work_folder):
                save_trial_files(run.folder, judged)
                file.append(judged.record)
                run.measured.add(judged.record.trial)
                if file.rows == 1 and not study.whole:
                    run.point_partial()
                if time.monotonic() - sealed > SEAL_INTERVAL_S:
                    run.facts.update(measurer.facts)
                    run.seal(file)
                    sealed = time.monotonic()
                run.facts.setdefault("first_record_after_s",
                                     round(time.monotonic() - started, 3))
                emulated_s += judged.emulated_s
                progress.step(measurer.doing)
                if refining and time.monotonic() - started > answer_after_s:
                    answer_after_s *= 2
                    progress.note(refining.answer(run.records()))
    finally:
        for name, more_s in (("emulated_s", emulated_s), ("wall_s", time.monotonic() - started)):
            run.facts[name] = round(run.facts.get(name, 0.0) + more_s, 3)
        run.facts.update(measurer.facts)
        run.seal(file)
        file.close()


def initial_facts(study: Study[S, T, R], measurer: Measurer, requested: MeasureOptions
                  ) -> dict[str, object]:
    """The entries of run.json before the first trial."""
    return {"scenario": study.head.name, "scenario_file": study.head.text, "seed": requested.seed,
            "jobs": measurer.jobs, "virtual_time": measurer.exact, "partial": not study.whole,
            **requested.facts}


def save_trial_files(folder: Path, judged: JudgedTrial[R]) -> None:
    """Save the files of a trial, and its packets as captures that Wireshark opens."""
    trial_id = judged.record.trial.id
    contents = {capture_path(folder, trial_id, side): capture_file(packets)
                for side, packets in judged.captures.items() if packets}
    contents |= {trial_file_path(folder, trial_id, name): content
                 for name, content in judged.files.items()}
    for path, content in contents.items():
        files.save(folder, str(path.relative_to(folder)), content)


def capture_path(folder: Path, trial_id: str, side: str) -> Path:
    """The path of a trial's capture at one side, whether it is kept or not.

    Raises FirstFlightError.
    """
    return places.named_after(folder / CAPTURES, trial_id, f"-{side}.pcap")


def trial_file_path(folder: Path, trial_id: str, name: str) -> Path:
    """The path of a file of a trial. Raises FirstFlightError."""
    return places.named_after(folder / FILES, trial_id, f"-{name}")


def read_trial_file(path: Path) -> bytes:
    """The content of a file of a trial. Raises FirstFlightError if it cannot be read."""
    try:
        return reading.content(path)
    except OSError as error:
        raise FirstFlightError(f"{path}: cannot be read: {error.strerror}") from error
