"""Estimates how long measuring will take, by the time that earlier runs took."""

from __future__ import annotations

import json
from contextlib import suppress
from operator import itemgetter
from pathlib import Path

from firstflight.base import PROJECT, reading
from firstflight.runs import runs, scenario_file
from firstflight.runs.kinds import R, S, Study, T

MOST_RUNS = 20  # stored runs that are read
KEPT = PROJECT / "docs" / "results"  # reports of whole scenarios (findings/render/data.py)


def expected_time(study: Study[S, T, R], engine: str, jobs: int, results: Path) -> str:
    """How long measuring will take, in words, or that this is unknown.

    It follows from a stored run of this scenario or question on the same engine: the run whose
    number of trials is nearest to the requested number, and at least half of it. Without such a
    run, a whole scenario takes the time of its run in docs/results.
    """
    count = len(study.trials)
    is_scenario = study.head.name in scenario_file.names()  # and no question
    estimates = []  # how far the run's number of trials is from `count`, and the estimate in s
    for folder in runs.newest_first(results / study.head.name)[:MOST_RUNS]:
        facts = runs.read_facts(folder)
        rows = facts.get("trials", {}).get("rows")
        if not isinstance(rows, int) or not 2 * rows >= count > 0:
            continue
        if facts.get("state") != runs.COMPLETE or facts.get("engine") != engine:
            continue
        if is_scenario or facts.get("scenario_file") == study.head.text:
            trial_s = facts.get("wall_s", 0) * min(facts.get("jobs", 1), rows) / rows
            estimates.append((abs(rows - count), trial_s * count / min(jobs, count)))

    if estimates:
        _, nearest_s = min(estimates, key=itemgetter(0))
        return f"about {nearest_s:.0f} s, as the last such run took"
    if is_scenario and study.whole:
        with suppress(OSError, ValueError, LookupError, TypeError):
            kept_facts = json.loads(reading.content(KEPT / f"{study.head.name}.json"))["facts"]
            if kept_facts.get("engine") == engine and "wall_s" in kept_facts:
                return (f"about {kept_facts['wall_s']:.0f} s, as the run of docs/results took on"
                        f" {kept_facts.get('machine', {}).get('cpus', 'other')} processors")
    return "unknown, since no such run is stored; progress shows it once trials are measured"
