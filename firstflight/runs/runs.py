"""Run folders: results/<scenario>/<stamp>-<engine>/ with trials.csv and run.json.

A run that was interrupted is resumed by the next one with the same request;
nothing is ever overwritten. `latest` is a link to the newest whole run,
`latest-partial` to the newest one of a part or of values of one's own.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from firstflight.base import files
from firstflight.base.command_line import say
from firstflight.base.errors import FirstFlightError, UsageError
from firstflight.base.files import WriteError
from firstflight.runs.kinds import AnyTrial, RunData, Study
from firstflight.runs.results.facts import RUN, read_facts_file
from firstflight.runs.results.record_file import RecordFile, changes, make_seal, order_rows
from firstflight.runs.results.records import (Record, RecordsError, read_records, trial_class,
                                              whole_lines)

RUN_JSON = "run.json"
TRIALS_CSV = "trials.csv"
RUNNING, COMPLETE = "running", "complete"
WORK = "work"
LATEST, LATEST_PARTIAL = "latest", "latest-partial"


@dataclass
class Run:
    """One run folder, locked by the process that measures into it.

    facts: the content of run.json. kind: of its records. measured: the trials
    that it held when it was opened.
    """

    folder: Path
    facts: dict[str, Any]
    kind: type[Record]
    measured: set[AnyTrial]
    resumed: bool
    _lock: int

    @property
    def work_folder(self) -> Path:
        """Where engines put what is theirs; gone when the run is closed."""
        return self.folder / WORK

    def missing(self, trials: Iterable[AnyTrial]) -> list[AnyTrial]:
        """The trials that have no record yet, in the order given."""
        return [trial for trial in trials if trial not in self.measured]

    def records(self) -> list[Record]:
        """What it holds now. Raises RecordsError."""
        return read_records(self.folder / TRIALS_CSV, self.kind)

    def holds_records(self) -> bool:
        """Whether a trial was measured, before it was opened or since then."""
        with suppress(RecordsError):
            return whole_lines(self.folder / TRIALS_CSV).count(b"\n") > 1
        return False

    def open_records(self) -> RecordFile:
        return RecordFile(self.folder / TRIALS_CSV, self.kind)

    def point_partial(self) -> None:
        """Let `latest-partial` name this run: not before it holds something."""
        files.link(self.folder.parent / LATEST_PARTIAL, self.folder.name)

    def seal(self, records: RecordFile) -> None:
        """Note in run.json what trials.csv holds, so that changes of it are noticed."""
        self.facts["trials"] = records.seal()
        self.save()

    def save(self) -> None:
        """Write run.json: it is whole at any moment."""
        files.save(self.folder, RUN_JSON,
                   json.dumps(self.facts, indent=2, sort_keys=True) + "\n")

    def order(self, trials: Iterable[AnyTrial]) -> None:
        """Put the rows of trials.csv in the order of the trials, and seal them anew.

        Both seals stand in run.json while the file is replaced: whatever stops that, the run
        is resumed. Raises RecordsError.
        """
        path = self.folder / TRIALS_CSV
        if not path.exists():
            return
        ordered = order_rows(path, self.kind, trials)
        seal = make_seal(ordered)
        self.facts["trials"] = {**self.facts.get("trials", {}), "ordered_sha256": seal["sha256"]}
        self.save()
        files.save(self.folder, TRIALS_CSV, ordered)
        self.facts["trials"] = seal
        self.save()

    def finish(self) -> None:
        """Complete: of a whole scenario it is the one that `latest` names."""
        self.facts["state"] = COMPLETE
        self.facts["finished_at"] = now_text()
        self.save()
        if not self.facts.get("partial"):
            files.link(self.folder.parent / LATEST, self.folder.name)

    def close(self) -> None:
        files.remove(self.work_folder)
        os.close(self._lock)


def open_run(results: Path, study: Study, requested: Mapping[str, str], fresh: bool) -> Run:
    """The newest unfinished run of exactly what is requested, or a new one.

    A run that another process is still measuring is left alone. Where the
    newest unfinished one is not resumed, a line has the reason. Raises FirstFlightError
    where the scenario's name is none of a folder, or where nothing can be written.
    """
    home = files.inside(results, study.head.name)
    with files.Folder(results) as place:
        place.make(home.name)
    remove_work_of_killed(home)
    refused = ""
    for folder in [] if fresh else newest_first(home):
        run = _resume(folder, requested, study.kind.record)
        if isinstance(run, Run):
            return run
        refused = refused or (f"{folder}: not resumed: {run}" if run else "")
    if refused:
        say(refused)
    return _create(home, requested, study.kind.record)


def remove_work_of_killed(home: Path) -> None:
    """Remove what engines of runs that were killed have left in the folders of a scenario."""
    for folder in newest_first(home):
        with suppress(OSError):  # it may be another user's
            if (folder / WORK).is_dir() and (lock := _try_lock(folder)) is not None:
                files.remove(folder / WORK)
                os.close(lock)


def request(study: Study, engine: str, kernel: str, seed: int) -> dict[str, str]:
    """All that a run's results follow from, by the words that name it in a message.

    Of the trials every value that is not its default, with all digits: a
    column that a later version adds does not change what was requested. Neither
    the version of the project nor that of the tools splits a run: run.json
    has with which it was begun and resumed. Raises UsageError if two
    trials have one name, which is that of their files.
    """
    names = Counter(trial.id for trial in study.trials)
    name, count = names.most_common(1)[0] if names else ("", 0)
    if count > 1:
        raise UsageError(f"{count} trials would be called {name}: they differ in what a name"
                         " does not show; choose one of them")
    return {"engine": engine, "kernel": kernel, "seed": str(seed),
            "scenario file": _digest([study.head.text]),
            "trials": _digest(_values_of(study.trials, trial_class(study.kind.record)))}


def _values_of(trials: Sequence[AnyTrial], kind: type[Any]) -> list[str]:
    """Every value of every trial; repr() of a float has all digits that it has."""
    defaults = {column.name: column.default for column in fields(kind)}
    return sorted(repr([(name, value) for name, default in defaults.items()
                        if (value := getattr(trial, name)) != default]) for trial in trials)


def _digest(lines: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def newest_first(home: Path) -> list[Path]:
    """The run folders of one scenario; their names begin with the time."""
    return sorted((folder for folder in home.glob("*-*") if (folder / RUN_JSON).is_file()
                   and not folder.is_symlink()), reverse=True)


def whole_runs(name: str, results: Path) -> list[Path]:
    """The complete runs of a whole scenario, the newest first."""
    return [folder for folder in newest_first(results / name)
            if (stored := read_facts(folder)).get("state") == COMPLETE
            and not stored.get("partial")]


def newest_whole(name: str, results: Path) -> Path:
    """The newest of `whole`. Raises FirstFlightError that names the command where there is none."""
    folders = whole_runs(name, results)
    if not folders:
        raise FirstFlightError(f"{results / name}: there is no whole run; measure it with"
                               f" ./run.sh --scenario {name}")
    return folders[0]


def load_run(folder: Path, study: Study) -> RunData:
    """A stored run. Raises FirstFlightError if it is not whole, or another scenario's.

    Where its trials.csv was changed since it was measured, a line reports it.
    """
    records = read_records(folder / TRIALS_CSV, study.kind.record)
    name = study.head.name
    if not records and study.trials:
        raise RecordsError(f"{folder / TRIALS_CSV}: holds no trial yet; measure with"
                           f" ./run.sh --scenario {name}")
    foreign = next((record for record in records if record.trial.scenario != name), None)
    if foreign is not None:
        raise RecordsError(f"{folder / TRIALS_CSV}: holds trials of {foreign.trial.scenario!r},"
                           f" but run.json says {name!r}")
    for number, record in enumerate(records, start=2):
        try:
            files.inside(folder, record.trial.job()["id"])  # which names files of the run
        except (ValueError, LookupError, ArithmeticError, UsageError) as error:
            raise RecordsError(f"{folder / TRIALS_CSV}, row {number}: is not a trial: {error}"
                               ) from error
    stored = read_facts(folder)
    changed = changes(folder / TRIALS_CSV, stored.get("trials"), stored.get("state") == COMPLETE)
    changed = changed or _count_doubled(records)
    if changed:
        say(f"{folder}: {changed}")
    return RunData(folder, stored, records, changed)


def scenario_of(folder: Path) -> str:
    """The name of a stored run's scenario. Raises RecordsError if run.json lacks it."""
    path = folder / RUN_JSON
    if not os.path.isdir(folder):
        raise RecordsError(f"{folder}: there is no such run; measure with ./run.sh")
    name = read_facts_file(path, RUN).get("scenario")
    if name is None:
        raise RecordsError(f"{path}: names no scenario; it is not a run of ours, or it was"
                           " stopped before it began")
    return str(name)


def read_facts(folder: Path) -> dict[str, Any]:
    """The content of a folder's run.json, {} where it cannot be read."""
    try:
        return read_facts_file(folder / RUN_JSON, RUN)
    except RecordsError:
        return {}


def now_text() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _resume(folder: Path, requested: Mapping[str, str], kind: type[Record]) -> Run | str:
    """An unfinished run; why it is not resumed, "" if that needs no message."""
    stored = read_facts(folder)
    if stored.get("state") != RUNNING:
        return ""
    lock = _try_lock(folder)
    if lock is None:
        return ""
    why = _difference(stored.get("asked"), requested)
    try:
        path = folder / TRIALS_CSV
        why = why or changes(path, stored.get("trials"), complete=False)
        begun = not why and path.exists() and whole_lines(path)
        records = read_records(path, kind) if begun else []
        why = why or _count_doubled(records)
        if not why:
            files.empty_folder(folder / WORK)  # a guest that was killed may have left one
    except (RecordsError, WriteError) as error:
        why = str(error)
    if why:
        os.close(lock)
        return why
    return Run(folder, stored, kind, {record.trial for record in records}, True, lock)


def _count_doubled(records: Sequence[Record]) -> str:
    """Says how many trials stand there twice, which no run measures; "" for none."""
    count = len(records) - len({record.trial for record in records})
    return f"{TRIALS_CSV} was changed: {count} of its rows are doubled" if count else ""


def _difference(before: object, now: Mapping[str, str]) -> str:
    """In which words two requests differ, "" if they are the same."""
    if not isinstance(before, dict):
        return "an earlier version began it"
    other = [name for name, value in now.items() if before.get(name) != value]
    return ", ".join(f"other {name}" if name.endswith("s") else f"another {name}"
                     for name in other)


def _create(home: Path, requested: Mapping[str, str], kind: type[Record]) -> Run:
    folder = _new_folder(home, requested["engine"])
    lock = _try_lock(folder)
    assert lock is not None  # nobody else knows the folder yet
    begun = {"state": RUNNING, "engine": requested["engine"], "asked": dict(requested),
             "started_at": now_text()}
    run = Run(folder, begun, kind, set(), False, lock)
    try:
        run.save()
        files.empty_folder(run.work_folder)
    except WriteError:
        os.close(lock)
        files.remove(folder)
        raise
    return run


def _new_folder(home: Path, engine: str) -> Path:
    """A folder named by the time, of its own even where two runs begin in one millisecond."""
    while True:
        stamp = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S.%f")[:-3] + "Z"
        if files.new_folder(home / f"{stamp}-{engine}"):
            return home / f"{stamp}-{engine}"


def _try_lock(folder: Path) -> int | None:
    descriptor = files.open_folder(folder)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
