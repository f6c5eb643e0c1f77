"""Reuses the records of earlier runs of a scenario whose lists have grown since."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic

from firstflight.base.errors import FirstFlightError
from firstflight.runs import runs, scenario_file
from firstflight.runs.kinds import R, S, Study, T
from firstflight.runs.results.facts import Facts
from firstflight.runs.results.record_file import changes
from firstflight.runs.results.records import read_records

MOST_RUNS = 20  # stored runs that are read


@dataclass(frozen=True)
class Refining(Generic[T, R]):
    """How a long measurement gives an early answer.

    Trials with equal keys have the same outcome, so a trial is not measured again if an earlier run
    measured one with its key.
    """

    content: Callable[[T], Hashable]  # the key of a trial
    content_of: Callable[[R], Hashable]  # the key of a record's trial
    order: Callable[[T], tuple[float, ...]]  # trials with a smaller one are measured first
    answer: Callable[[Sequence[R]], str]  # takes the records so far; "" while there is no answer


def records(study: Study[S, T, R], run: runs.Run[R], missing: Sequence[T],
            refining: Refining[T, R]) -> Iterator[tuple[R, Path, str]]:
    """For each missing trial that an earlier run measured: its record, that run's folder, and the
    trial's id in that run.

    The record has the trial as this run names it. Only runs on the same kernel by the same versions
    are used, and only records that count.
    """
    wanted = {refining.content(trial) for trial in missing}
    found: dict[Hashable, tuple[R, Path]] = {}
    for folder in runs.newest_first(run.folder.parent)[:MOST_RUNS]:
        if folder == run.folder or not _was_measured_alike(folder, study, run.facts):
            continue
        with suppress(FirstFlightError):  # nothing is taken from a damaged file
            for record in read_records(folder / runs.TRIALS_CSV, study.kind.record):
                if record.counts and (key := refining.content_of(record)) in wanted:
                    found.setdefault(key, (record, folder))

    for trial in missing:
        if (key := refining.content(trial)) in found:
            record, folder = found[key]
            yield replace(record, trial=trial), folder, record.trial.id


def _was_measured_alike(folder: Path, study: Study[S, T, R], facts: Facts) -> bool:
    """Whether a stored run was measured like this one, and its trials.csv was not changed.

    facts: of this run.
    """
    stored = runs.read_facts(folder)
    requested = stored.get("asked")
    if not isinstance(requested, dict) or not requested.keys() >= {"engine", "kernel"}:
        return False
    if any(requested[name] != facts["asked"][name] for name in ("engine", "kernel")) or any(
            stored.get(name) != facts.get(name) for name in ("project", "tools")):
        return False

    with suppress(FirstFlightError):
        file = scenario_file.parse(study.head.name, str(stored.get("scenario_file")))
        is_complete = stored.get("state") == runs.COMPLETE
        return file.head().sysctls == study.head.sysctls and not changes(
            folder / runs.TRIALS_CSV, stored.get("trials"), is_complete)
    return False
