"""Reuses what earlier runs of a scenario measured, when its lists have grown since."""

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

    content: the key of a trial's outcome; content_of: that of the trial of a record. Trials with
    equal keys have the same outcome, so that what an earlier run measured is not measured again.
    order: the key by which trials are sorted,
    the most important first. answer: takes the records so far; "" while there is none.
    """

    content: Callable[[T], Hashable]
    content_of: Callable[[R], Hashable]
    order: Callable[[T], tuple[float, ...]]
    answer: Callable[[Sequence[R]], str]


def records(study: Study[S, T, R], run: runs.Run[R], missing: Sequence[T],
            refining: Refining[T, R]) -> Iterator[tuple[R, Path, str]]:
    """For each trial that an earlier run measured: its record, that run's folder, its id there.

    The record has the trial as this run names it. Only runs on the same kernel by the same versions
    are used, and only records that count.
    """
    wanted = {refining.content(trial) for trial in missing}
    found: dict[Hashable, tuple[R, Path]] = {}
    for folder in runs.newest_first(run.folder.parent)[:MOST_RUNS]:
        if folder != run.folder and _is_alike(folder, study, run.facts):
            with suppress(FirstFlightError):  # a damaged file has nothing to give
                for record in read_records(folder / runs.TRIALS_CSV, study.kind.record):
                    if record.counts and (key := refining.content_of(record)) in wanted:
                        found.setdefault(key, (record, folder))
    for trial in missing:
        if (key := refining.content(trial)) in found:
            record, folder = found[key]
            yield replace(record, trial=trial), folder, record.trial.id


def _is_alike(folder: Path, study: Study[S, T, R], facts: Facts) -> bool:
    """Whether a stored run was measured like this one, and its trials.csv was not changed."""
    stored = runs.read_facts(folder)
    asked = stored.get("asked")
    with suppress(FirstFlightError):
        return (isinstance(asked, dict) and asked.keys() >= {"engine", "kernel"}
                and all(asked[name] == facts["asked"][name] for name in ("engine", "kernel"))
                and all(stored.get(name) == facts.get(name) for name in ("project", "tools"))
                and scenario_file.parsed(study.head.name, str(stored.get("scenario_file"))
                                         ).head().sysctls == study.head.sysctls
                and not changes(folder / runs.TRIALS_CSV, stored.get("trials"),
                                stored.get("state") == runs.COMPLETE))
    return False
