"""Reuses what earlier runs of a scenario measured, when its lists have grown since."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from firstflight.base.errors import FirstFlightError
from firstflight.runs import runs, scenario_file
from firstflight.runs.kinds import AnyTrial, Study
from firstflight.runs.results.record_file import changes
from firstflight.runs.results.records import Record, read_records

MOST_RUNS = 20  # stored runs that are read


def records(study: Study, run: runs.Run, missing: Sequence[AnyTrial],
            content: Callable[[Any], Hashable]) -> Iterator[tuple[Record, Path, str]]:
    """For each trial that an earlier run measured: its record, that run's folder, its id there.

    The record has the trial as this run names it. content: the key of a trial's outcome; trials
    with equal keys have the same outcome. Only runs on the same kernel by the same versions are
    used, and only records that count.
    """
    wanted = {content(trial) for trial in missing}
    found: dict[Hashable, tuple[Record, Path]] = {}
    for folder in runs.newest_first(run.folder.parent)[:MOST_RUNS]:
        if folder != run.folder and _is_alike(folder, study, run.facts):
            with suppress(FirstFlightError):  # a damaged file has nothing to give
                for record in read_records(folder / runs.TRIALS_CSV, study.kind.record):
                    if record.counts and (key := content(record.trial)) in wanted:
                        found.setdefault(key, (record, folder))
    for trial in missing:
        if (key := content(trial)) in found:
            record, folder = found[key]
            yield replace(record, trial=trial), folder, record.trial.id


def _is_alike(folder: Path, study: Study, facts: Mapping[str, Any]) -> bool:
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
