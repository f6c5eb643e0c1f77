"""Measuring a study: trials to an engine, observations judged, records appended one by one."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from lab.core import regular, runs
from lab.core.command_line import say
from lab.core.errors import FirstFlightError
from lab.core.kinds import RunData, Seen, Study
from lab.core.progress import Progress
from lab.core.runs import Run
from lab.tcp.packets import write_capture

CAPTURES, FILES = "captures", "files"  # folders of a run
CAPTURES_KEPT = 8  # trials or a few more, unless all are asked for
GUEST_START_S = 1.5  # of wall time, on two cores; for the expected time


class Engine(Protocol):
    """What measuring needs of an engine (engines.engine.Engine)."""

    name: str
    exact: bool
    jobs: int
    facts: dict[str, Any]

    def run(self, trials: list[dict[str, Any]], sysctls: dict[str, str],
            folder: Path) -> Iterator[Any]: ...


@dataclass(frozen=True)
class Asked:
    """How a study is to be measured: where results go, with which seed, what is kept.

    facts: what else run.json is to say.
    """

    results: Path
    seed: int
    fresh: bool
    keep_captures: bool
    facts: Mapping[str, Any]


def measure(study: Study, engine: Engine, asked: Asked) -> RunData:
    """Measure what has no record yet; return the whole run."""
    run = runs.open_run(asked.results, study, engine.name, asked.seed, asked.fresh)
    try:
        if run.resumed:
            say(f"resuming {run.folder}: {len(run.records)} of {len(study.trials)} trials are"
                " there")
        else:
            run.facts.update(described(study, engine, asked))
            run.save()
        _measure_missing(run, study, engine, asked)
        run.finish()
        return RunData(run.folder, run.facts, run.records)
    finally:
        run.close()
        home = run.folder.parent
        runs.give_to_invoking_user(run.folder)
        runs.give_to_invoking_user(home.parent, home, home / "latest", within=False)


def _measure_missing(run: Run, study: Study, engine: Engine, asked: Asked) -> None:
    """Append the record of each trial as it comes, and add up what run.json says of them."""
    started, emulated_s = time.monotonic(), 0.0
    missing = {trial.id: trial for trial in run.missing(study.trials)}
    kept = (set(missing) if asked.keep_captures or study.all_captures
            else sample_of(list(missing)))
    file = run.open_records()
    try:
        with Progress(len(study.trials), len(run.records), study.head.name) as progress:
            for seen in engine.run([trial.job() for trial in missing.values()],
                                   study.head.sysctls, run.work_folder):
                record, files = study.judge(missing[seen.trial_id], seen, engine.exact)
                keep(run.folder, seen, files, seen.trial_id in kept)
                file.append(record)
                if not run.records:
                    run.point_latest()
                run.records.append(record)
                run.facts.setdefault("first_record_after_s",
                                     round(time.monotonic() - started, 3))
                emulated_s += seen.content.get("duration_s", 0.0)
                progress.step()
    finally:
        file.close()
    run.facts.update(engine.facts)
    for name, more_s in (("emulated_s", emulated_s), ("wall_s", time.monotonic() - started)):
        run.facts[name] = round(run.facts.get(name, 0.0) + more_s, 3)


def described(study: Study, engine: Engine, asked: Asked) -> dict[str, Any]:
    """What run.json says about a run before it starts."""
    return {"scenario": study.head.name, "scenario_file": study.head.text, "seed": asked.seed,
            "jobs": engine.jobs, "virtual_time": engine.exact, "partial": not study.whole,
            **asked.facts}


def sample_of(trial_ids: list[str]) -> set[str]:
    """A few trials, spread evenly, whose packets are kept."""
    pairs = max(CAPTURES_KEPT // 2, 1)  # neighbours differ in their window only
    step = max(len(trial_ids) // pairs // 2 * 2, 2)
    return {trial_id for start in range(0, len(trial_ids), step)
            for trial_id in trial_ids[start:start + 2]}


def keep(folder: Path, seen: Seen, files: Mapping[str, bytes], with_captures: bool) -> None:
    """Keep what was recorded of a trial: files, and its packets for Wireshark to open."""
    captures = {"client": seen.client_pcap, "server": seen.server_pcap} if with_captures else {}
    for side, packets in captures.items():
        if packets:
            (folder / CAPTURES).mkdir(exist_ok=True)
            write_capture(folder / CAPTURES / f"{seen.trial_id}-{side}.pcap", packets)
    for name, content in files.items():
        (folder / FILES).mkdir(exist_ok=True)
        (folder / FILES / f"{seen.trial_id}-{name}").write_bytes(content)


def kept(path: Path) -> bytes:
    """A file that was kept of a trial. Raises FirstFlightError where it cannot be read."""
    try:
        return regular.content(path)
    except OSError as error:
        raise FirstFlightError(f"{path}: cannot be read: {error.strerror}") from error


def expected_s(study: Study, engine: str, jobs: int) -> float:
    """Wall seconds that measuring will take, roughly."""
    if engine == "uml":
        return GUEST_START_S + (sum(map(study.guest_s, study.trials))
                                / min(jobs, len(study.trials)))
    return sum(map(study.network_s, study.trials))
