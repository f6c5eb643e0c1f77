"""Run folders: results/<scenario>/<stamp>-<engine>/ with trials.csv and run.json.

A run that was interrupted is resumed by the next one that asks for the same;
nothing is ever overwritten. `latest` is a link to the newest run.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from lab.core import regular
from lab.core.errors import FirstFlightError, UsageError
from lab.core.kinds import RunData, Study
from lab.core.records import Record, RecordFile, RecordsError, read_records

RUN_JSON = "run.json"
TRIALS_CSV = "trials.csv"
RUNNING, COMPLETE = "running", "complete"


@dataclass
class Run:
    """One run folder, locked by the process that measures into it.

    facts: the content of run.json. records: what it holds already, all of
    one kind.
    """

    folder: Path
    facts: dict[str, Any]
    kind: type[Record]
    records: list[Any]
    resumed: bool
    _lock: int

    @property
    def work_folder(self) -> Path:
        """Where engines put what is theirs; gone when the run is closed."""
        return self.folder / "work"

    def missing(self, trials: Iterable[Any]) -> list[Any]:
        """The trials that have no record yet, in the order given."""
        measured = {record.trial for record in self.records}
        return [trial for trial in trials if trial not in measured]

    def open_records(self) -> RecordFile:
        return RecordFile(self.folder / TRIALS_CSV, self.kind)

    def point_latest(self) -> None:
        """Let `latest` name this run: not before it holds something."""
        aside = self.folder.parent / ".latest"
        aside.unlink(missing_ok=True)
        aside.symlink_to(self.folder.name)
        aside.replace(self.folder.parent / "latest")

    def save(self) -> None:
        """Write run.json aside, then rename: it is whole at any moment."""
        aside = self.folder / f".{RUN_JSON}"
        aside.write_text(json.dumps(self.facts, indent=2, sort_keys=True) + "\n")
        aside.replace(self.folder / RUN_JSON)

    def finish(self) -> None:
        self.facts["state"] = COMPLETE
        self.facts["finished_at"] = now_text()
        self.save()

    def close(self) -> None:
        shutil.rmtree(self.work_folder, ignore_errors=True)
        os.close(self._lock)


def open_run(results: Path, study: Study, engine: str, seed: int, fresh: bool) -> Run:
    """The newest unfinished run of exactly this, or a new one.

    A run that another process is still measuring is left alone. Raises
    FirstFlightError where the folder cannot be written.
    """
    home = results / study.head.name
    asked = identity(study, engine, seed)
    try:
        home.mkdir(parents=True, exist_ok=True)
        if not fresh:
            for folder in newest_first(home):
                run = _resume(folder, asked, study.record)
                if run is not None:
                    return run
        return _create(home, engine, asked, study.record)
    except OSError as error:
        raise FirstFlightError(f"{error.filename or home}: {error.strerror}: results cannot be"
                               " written there") from error


def identity(study: Study, engine: str, seed: int) -> str:
    """Names what was asked: trials, scenario text, seed and engine, whatever is recorded of it."""
    text = "\n".join([engine, str(seed), study.head.text,
                      *sorted(trial.id for trial in study.trials)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def newest_first(home: Path) -> list[Path]:
    """The run folders of one scenario; their names begin with the time."""
    return sorted((folder for folder in home.glob("*-*") if (folder / RUN_JSON).is_file()
                   and not folder.is_symlink()), reverse=True)


def whole(name: str, results: Path) -> list[Path]:
    """The complete runs of a whole scenario, the newest first.

    Raises FirstFlightError that names the command where there is none.
    """
    found = [folder for folder in newest_first(results / name)
             if (facts := read_facts(folder)).get("state") == COMPLETE
             and not facts.get("partial")]
    if not found:
        raise FirstFlightError(f"{results / name}: there is no whole run; measure it with"
                               f" ./run.sh --scenario {name}")
    return found


def newest_whole(name: str, results: Path) -> Path:
    """The newest of `whole`. Raises FirstFlightError where there is none."""
    return whole(name, results)[0]


def load(folder: Path, study: Study) -> RunData:
    """A stored run. Raises FirstFlightError where it is not whole, or another scenario's."""
    records = read_records(folder / TRIALS_CSV, study.record)
    name = study.head.name
    if not records:
        raise RecordsError(f"{folder / TRIALS_CSV}: holds no trial yet; measure with"
                           f" ./run.sh --scenario {name}")
    foreign = next((record for record in records if record.trial.scenario != name), None)
    if foreign is not None:
        raise RecordsError(f"{folder / TRIALS_CSV}: holds trials of {foreign.trial.scenario!r},"
                           f" but run.json says {name!r}")
    for number, record in enumerate(records, start=2):
        try:
            record.trial.job()
        except (ValueError, LookupError, ArithmeticError, UsageError) as error:
            raise RecordsError(f"{folder / TRIALS_CSV}, row {number}: is no trial: {error}"
                               ) from error
    return RunData(folder, read_facts(folder), records)


def scenario_of(folder: Path) -> str:
    """The name of a stored run's scenario. Raises RecordsError where run.json does not say."""
    path = folder / RUN_JSON
    if not folder.is_dir():
        raise RecordsError(f"{folder}: there is no such run; measure with ./run.sh")
    try:
        facts = json.loads(regular.content(path))
    except OSError as error:
        raise RecordsError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # also bytes that are no text
        raise RecordsError(f"{path}: is damaged ({error}); measure again with --fresh") from error
    if not isinstance(facts, dict):
        raise RecordsError(f"{path}: is not the description of a run")
    if not isinstance(facts.get("scenario"), str):
        raise RecordsError(f"{path}: names no scenario; it is not a run of ours, or it was"
                           " stopped before it began")
    return str(facts["scenario"])


def read_facts(folder: Path) -> dict[str, Any]:
    """The content of a folder's run.json, {} where it cannot be read."""
    try:
        facts = json.loads(regular.content(folder / RUN_JSON))
    except (OSError, ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def now_text() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _resume(folder: Path, asked: str, kind: type[Record]) -> Run | None:
    facts = read_facts(folder)
    if (facts.get("state"), facts.get("identity")) != (RUNNING, asked):
        return None
    lock = _try_lock(folder)
    if lock is None:
        return None
    try:
        records = read_records(folder / TRIALS_CSV, kind)
    except RecordsError:
        os.close(lock)
        return None  # its header was never written, or it is damaged: leave it, begin anew
    shutil.rmtree(folder / "work", ignore_errors=True)
    return Run(folder, facts, kind, records, True, lock)


def _create(home: Path, engine: str, asked: str, kind: type[Record]) -> Run:
    folder = _new_folder(home, engine)
    lock = _try_lock(folder)
    assert lock is not None  # nobody else knows the folder yet
    facts = {"state": RUNNING, "engine": engine, "identity": asked, "started_at": now_text()}
    run = Run(folder, facts, kind, [], False, lock)
    run.save()
    return run


def _new_folder(home: Path, engine: str) -> Path:
    """A folder named by the time, of its own even where two runs begin in one millisecond."""
    while True:
        stamp = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S.%f")[:-3] + "Z"
        try:
            (home / f"{stamp}-{engine}").mkdir()
        except FileExistsError:
            continue
        return home / f"{stamp}-{engine}"


def _try_lock(folder: Path) -> int | None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def give_to_invoking_user(*paths: Path, within: bool = True) -> None:
    """After sudo, results belong to whoever called it (SUDO_UID, SUDO_GID).

    within: also everything inside the folders among the paths.
    """
    if os.geteuid() != 0 or "SUDO_UID" not in os.environ:
        return
    owner = int(os.environ["SUDO_UID"]), int(os.environ.get("SUDO_GID", -1))
    for path in paths:
        for entry in (path, *(path.rglob("*") if within else ())):
            if os.path.lexists(entry):
                os.chown(entry, *owner, follow_symlinks=False)
