"""Run folders: results/<scenario>/<stamp>-<engine>/ with trials.csv, what_if.csv and run.json.

trials.csv has the requested trials only, so a mean over its rows is a mean over what was requested.
Trials that were added to find a reason are in what_if.csv, where there are any.

A run that was interrupted is resumed by the next run with the same request. Nothing is ever
overwritten. `latest` is a link to the newest run of a whole scenario. `latest-partial` is a link to
the newest run of a part of the scenario, or with other values.
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
from typing import Any, Generic

from firstflight.base import files, places
from firstflight.base.errors import FirstFlightError, UsageError, WriteError
from firstflight.base.terminal import say
from firstflight.runs.kinds import AnyTrial, R, RunData, S, Study, T
from firstflight.runs.results.facts import RUN, Facts, read_facts_file
from firstflight.runs.results.record_file import RecordFile, changes, make_seal, order_rows
from firstflight.runs.results.records import (Record, RecordsError, RequestedTrial, read_records,
                                              trial_class, whole_lines)

RUN_JSON = "run.json"
TRIALS_CSV, WHAT_IF_CSV = "trials.csv", "what_if.csv"
SEALS = {TRIALS_CSV: "trials", WHAT_IF_CSV: "what_ifs"}  # the keys of their seals in run.json
RUNNING, COMPLETE = "running", "complete"
WORK = "work"
LATEST, LATEST_PARTIAL = "latest", "latest-partial"


@dataclass
class Run(Generic[R]):
    """One run folder, locked by the process that measures into it."""

    folder: Path
    facts: dict[str, Any]  # the content of run.json
    kind: type[R]  # the class of its records
    measured: set[RequestedTrial]  # the requested trials that have a record
    resumed: bool
    _lock: int  # a descriptor of the locked folder

    @property
    def work_folder(self) -> Path:
        """The folder of the engine's own files; it is removed when the run is closed."""
        return self.folder / WORK

    def missing(self, trials: Iterable[T]) -> list[T]:
        """The trials that have no record yet, in the order given."""
        return [trial for trial in trials if trial not in self.measured]

    def records(self) -> list[R]:
        """The records of requested trials so far. Raises RecordsError."""
        return read_records(self.folder / TRIALS_CSV, self.kind)

    def what_ifs(self) -> list[R]:
        """The records of what-if trials so far. Raises RecordsError."""
        return _records_if_there(self.folder / WHAT_IF_CSV, self.kind)

    def holds_records(self) -> bool:
        """Whether the run has any record, from before it was opened or since."""
        with suppress(RecordsError):
            return whole_lines(self.folder / TRIALS_CSV).count(b"\n") > 1
        return False

    def open_records(self) -> RecordFile:
        """trials.csv, open for appending."""
        return RecordFile(self.folder / TRIALS_CSV, self.kind)

    def open_what_ifs(self) -> RecordFile:
        """what_if.csv, open for appending."""
        return RecordFile(self.folder / WHAT_IF_CSV, self.kind, what_if=True)

    def point_partial(self) -> None:
        """Let `latest-partial` point to this run. Call it once the run has a record."""
        files.link(self.folder.parent / LATEST_PARTIAL, self.folder.name)

    def seal(self, records: RecordFile) -> None:
        """Write the seal of a file of records into run.json, so that later changes are noticed."""
        self.facts[SEALS[records.path.name]] = records.seal()
        self.save()

    def save(self) -> None:
        """Write run.json atomically."""
        files.save(self.folder, RUN_JSON,
                   json.dumps(self.facts, indent=2, sort_keys=True) + "\n")

    def order(self, trials: Sequence[AnyTrial], what_ifs: Sequence[AnyTrial] = ()) -> None:
        """Put the rows of trials.csv and what_if.csv in the order of their trials; seal them again.

        While a file is replaced, run.json has the seals of its old and its new content. So the run
        can be resumed wherever it is stopped. Raises RecordsError.
        """
        for name, in_order in ((TRIALS_CSV, trials), (WHAT_IF_CSV, what_ifs)):
            path, key = self.folder / name, SEALS[name]
            if not path.exists():
                continue
            ordered = order_rows(path, self.kind, in_order)
            seal = make_seal(ordered)
            self.facts[key] = {**self.facts.get(key, {}), "ordered_sha256": seal["sha256"]}
            self.save()
            files.save(self.folder, name, ordered)
            self.facts[key] = seal
            self.save()

    def finish(self) -> None:
        """Mark the run as complete. If it is of a whole scenario, let `latest` point to it."""
        self.facts["state"] = COMPLETE
        self.facts["finished_at"] = now_text()
        self.save()
        if not self.facts.get("partial"):
            files.link(self.folder.parent / LATEST, self.folder.name)

    def close(self) -> None:
        """Remove the engine's files, and unlock the folder."""
        files.remove(self.work_folder)
        os.close(self._lock)


def open_run(results: Path, study: Study[S, T, R], requested: Mapping[str, str], fresh: bool
             ) -> Run[R]:
    """The newest unfinished run with exactly this request, or a new one.

    A run that another process is still measuring is left alone. Where the newest unfinished run is
    not resumed, a line is printed with the reason. Raises FirstFlightError where the scenario's
    name cannot name a folder, or where nothing can be written.
    """
    home = places.inside(results, study.head.name)
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
    """Remove the files that the engines of killed runs left in the run folders of a scenario."""
    for folder in newest_first(home):
        with suppress(OSError):  # it may be another user's
            if (folder / WORK).is_dir() and (lock := _try_lock(folder)) is not None:
                files.remove(folder / WORK)
                os.close(lock)


def request(study: Study[S, T, R], engine: str, kernel: str, seed: int) -> dict[str, str]:
    """The inputs from which the results of a run follow, by the words that name them in a message.

    The digest of the trials covers every value that is not its default, with all digits. So a
    column that a later version adds does not change the digest. The versions of the project and of
    the tools are not part of a request: run.json has the versions with which the run was begun and
    resumed. Raises UsageError if two trials have the same name, since files are named after it.
    """
    names = Counter(trial.id for trial in study.trials)
    name, count = names.most_common(1)[0] if names else ("", 0)
    if count > 1:
        raise UsageError(f"{count} trials would be called {name}: they differ in what a name"
                         " does not show; choose one of them")
    return {"engine": engine, "kernel": kernel, "seed": str(seed),
            "scenario file": _digest([study.head.text]),
            "trials": _digest(_values_of(study.trials, trial_class(study.kind.record)))}


def _values_of(trials: Sequence[RequestedTrial], kind: type[RequestedTrial]) -> list[str]:
    """The values of each trial that are not defaults, as text, sorted.

    repr() of a float has all of its digits.
    """
    defaults = {column.name: column.default for column in fields(kind)}
    texts = []
    for trial in trials:
        values = [(name, getattr(trial, name)) for name in defaults]
        texts.append(repr([(name, value) for name, value in values if value != defaults[name]]))
    return sorted(texts)


def _digest(lines: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def newest_first(home: Path) -> list[Path]:
    """The run folders of one scenario, the newest first; their names begin with the time."""
    folders = [folder for folder in home.glob("*-*")
               if (folder / RUN_JSON).is_file() and not folder.is_symlink()]
    return sorted(folders, reverse=True)


def whole_runs(name: str, results: Path) -> list[Path]:
    """The complete runs of a whole scenario, the newest first."""
    return [folder for folder in newest_first(results / name)
            if (stored := read_facts(folder)).get("state") == COMPLETE
            and not stored.get("partial")]


def newest_whole(name: str, results: Path) -> Path:
    """The newest complete run of a whole scenario.

    If there is none, raises FirstFlightError with the command that measures it.
    """
    folders = whole_runs(name, results)
    if not folders:
        raise FirstFlightError(f"{results / name}: there is no whole run; measure it with"
                               f" ./run.sh --scenario {name}")
    return folders[0]


def load_run(folder: Path, study: Study[S, T, R]) -> RunData[R]:
    """Read a stored run. Raises FirstFlightError if it cannot be read, or is another scenario's.

    Prints a line if its trials.csv or what_if.csv was changed since it was measured.
    """
    records = read_records(folder / TRIALS_CSV, study.kind.record)
    what_ifs = _records_if_there(folder / WHAT_IF_CSV, study.kind.record)
    name = study.head.name
    if not records and study.trials:
        raise RecordsError(f"{folder / TRIALS_CSV}: holds no trial yet; measure with"
                           f" ./run.sh --scenario {name}")
    _check_trials(folder / TRIALS_CSV, records, name)
    _check_trials(folder / WHAT_IF_CSV, what_ifs, name)
    stored = read_facts(folder)
    changed = (_changes(folder, stored, complete=stored.get("state") == COMPLETE)
               or _count_doubled(records, TRIALS_CSV) or _count_doubled(what_ifs, WHAT_IF_CSV))
    if changed:
        say(f"{folder}: {changed}")
    return RunData(folder, stored, records, what_ifs, changed)


def _records_if_there(path: Path, kind: type[R]) -> list[R]:
    """The records of a file; [] if it does not exist, or has no complete line yet.

    Raises RecordsError.
    """
    return read_records(path, kind) if path.exists() and whole_lines(path) else []


def _check_trials(path: Path, records: Sequence[Record], name: str) -> None:
    """Raises RecordsError where a row is another scenario's, or is not a trial."""
    for record in records:
        if record.trial.scenario != name:
            raise RecordsError(f"{path}: holds trials of {record.trial.scenario!r},"
                               f" but run.json says {name!r}")
    for number, record in enumerate(records, start=2):
        try:
            # Captures and files are named after the trial, so its id has to be a name.
            places.named_after(path.parent, str(record.trial.job()["id"]), "")
        except (ValueError, LookupError, ArithmeticError, UsageError) as error:
            raise RecordsError(f"{path}, row {number}: is not a trial: {error}") from error


def _changes(folder: Path, stored: Facts, complete: bool) -> str:
    """How a run's records were changed since they were sealed, in words; "" if they were not.

    Raises RecordsError.
    """
    changed = changes(folder / TRIALS_CSV, stored.get(SEALS[TRIALS_CSV]), complete)
    if changed:
        return changed
    path, seal = folder / WHAT_IF_CSV, stored.get(SEALS[WHAT_IF_CSV])
    if path.exists():
        return changes(path, seal, complete)
    if seal:
        return (f"{WHAT_IF_CSV} is missing, and with it the reasons that it shows; --fresh"
                " measures it again")
    return ""


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
    """The content of a folder's run.json; {} where it cannot be read."""
    try:
        return read_facts_file(folder / RUN_JSON, RUN)
    except RecordsError:
        return {}


def now_text() -> str:
    """The time of day in UTC, as ISO 8601 has it, in whole seconds."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _resume(folder: Path, requested: Mapping[str, str], kind: type[R]) -> Run[R] | str:
    """The unfinished run in a folder, or why it is not resumed; "" if that needs no message.

    A complete run needs none, nor does a run that another process is measuring.
    """
    stored = read_facts(folder)
    if stored.get("state") != RUNNING:
        return ""
    lock = _try_lock(folder)
    if lock is None:
        return ""

    why = _difference(stored.get("asked"), requested)
    records: list[R] = []
    try:
        why = why or _changes(folder, stored, complete=False)
        if not why:
            records = _records_if_there(folder / TRIALS_CSV, kind)
            what_ifs = _records_if_there(folder / WHAT_IF_CSV, kind)
            why = (_count_doubled(records, TRIALS_CSV)
                   or _count_doubled(what_ifs, WHAT_IF_CSV))
        if not why:
            files.make_empty_folder(folder / WORK)  # a guest that was killed may have left one
    except (RecordsError, WriteError) as error:
        why = str(error)

    if why:
        os.close(lock)
        return why
    measured = {record.trial for record in records}
    return Run(folder, stored, kind, measured=measured, resumed=True, _lock=lock)


def _count_doubled(records: Sequence[Record], name: str) -> str:
    """How many rows are of a trial that has a row already, in words; "" for none.

    No run measures a trial twice.
    """
    count = len(records) - len({record.trial for record in records})
    return f"{name} was changed: {count} of its rows are duplicates" if count else ""


def _difference(earlier: object, requested: Mapping[str, str]) -> str:
    """How a request differs from an earlier one, in words; "" if they are equal."""
    if not isinstance(earlier, dict):
        return "an earlier version began it"
    other = [name for name, value in requested.items() if earlier.get(name) != value]
    return ", ".join(f"other {name}" if name.endswith("s") else f"another {name}"
                     for name in other)


def _create(home: Path, requested: Mapping[str, str], kind: type[R]) -> Run[R]:
    """A new run in a folder of its own below `home`."""
    folder = _new_folder(home, requested["engine"])
    lock = _try_lock(folder)
    assert lock is not None  # nobody else knows the folder yet
    begun = {"state": RUNNING, "engine": requested["engine"], "asked": dict(requested),
             "started_at": now_text()}
    run = Run(folder, begun, kind, measured=set(), resumed=False, _lock=lock)
    try:
        run.save()
        files.make_empty_folder(run.work_folder)
    except WriteError:
        os.close(lock)
        files.remove(folder)
        raise
    return run


def _new_folder(home: Path, engine: str) -> Path:
    """Make a folder that is named after the time.

    If another run began in the same millisecond, the next millisecond is tried.
    """
    while True:
        stamp = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S.%f")[:-3] + "Z"
        if files.make_new_folder(home / f"{stamp}-{engine}"):
            return home / f"{stamp}-{engine}"


def _try_lock(folder: Path) -> int | None:
    """Lock a folder; return its descriptor, or None where another process has the lock."""
    descriptor = places.open_folder(folder)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
