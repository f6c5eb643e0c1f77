"""A run that cannot write any more stops with one line, and the same command resumes it."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firstflight.base.errors import FirstFlightError
from firstflight.runs import runs
from firstflight.runs.kinds import RunData, Study
from firstflight.runs.measuring import (CAPTURES, JudgedTrial, MeasureOptions, OneMachine,
                                        save_trial_files, measure)
from tests.running import mounts_a_disk, run_program, small_disk
from tests.unit.core.example import KIND, Record, Trial, changed, record, study
from tests.unit.core.example_run import Engine, Seen

TRIALS = 40
KEPT = "; what is measured is kept, the same command resumes\n"


def measured(results: Path, *prefix: str, capture_bytes: int = 10
             ) -> subprocess.CompletedProcess[str]:
    """Measure the example in another process. prefix: a program that starts it.

    capture_bytes: of each capture.
    """
    return run_program([*prefix, sys.executable, "-m", "tests.unit.core.example_run", str(results),
                        str(capture_bytes), str(TRIALS)])


def rows(folder: Path, name: str = runs.TRIALS_CSV) -> list[dict[str, str]]:
    """The rows of a run's file, without the time at which each was measured."""
    with (folder / name).open(newline="") as file:
        return [{column: value for column, value in row.items() if column != "measured_at"}
                for row in csv.DictReader(file)]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    """The rows of a run that nothing has stopped."""
    done = measured(tmp_path_factory.mktemp("undisturbed"))
    assert done.returncode == 0, done.stderr
    found = rows(Path(done.stdout.strip()))
    assert len(found) == TRIALS
    return found


def test_a_run_returns_the_records_that_its_file_holds(tmp_path: Path) -> None:
    """They have no digit more than the file."""
    requested = study(*(rtt_ms / 7 for rtt_ms in range(1, 5)))
    run = measure(requested, OneMachine(Engine(10)), MeasureOptions(tmp_path, 1, False, False, {}))
    assert len(run.records) == 4
    assert run.records == runs.load_run(run.folder, requested).records


@pytest.mark.parametrize("name", ["-a b,c=\"ü'\ntwo \N{SNOWMAN} $(id)", "plain/deep"])
def test_results_are_kept_in_a_relative_folder_of_any_name(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    requested = study(20.0)
    run = measure(requested, OneMachine(Engine(10)),
                  MeasureOptions(Path(name), 1, False, False, {}))
    assert run.folder.resolve().parent == tmp_path / name / "small"
    assert runs.load_run(run.folder, requested).records == run.records
    assert [path.name for path in tmp_path.iterdir()] == [Path(name).parts[0]]


@pytest.mark.parametrize("name", ["../up", "a/b", "a\nb", "\x1b[2J"])
def test_a_trials_file_whose_name_leaves_the_run_is_refused(tmp_path: Path, name: str) -> None:
    """The trial names captures. The guest names other files, too."""
    judged = JudgedTrial(record(part=name), {"client": b"p"}, {}, 1.0)
    for kept in (judged, replace(judged, captures={}, files={"rows.csv": b""}),
                 JudgedTrial(record(), {}, {name: b""}, 1.0)):
        with pytest.raises(FirstFlightError, match="cannot be the name of a file"):
            save_trial_files(tmp_path / "run", kept)
    assert not list(tmp_path.iterdir())


class Stopping(Engine):
    """An engine that stops a run after some trials. left: how many are still measured."""

    left: float = float("inf")

    def run(self, *requested: Any) -> Iterator[Seen]:
        for seen in super().run(*requested):
            if not self.left:
                raise KeyboardInterrupt
            self.left -= 1
            yield seen


def test_an_interrupted_run_measures_the_same_what_if_trials(tmp_path: Path) -> None:
    """It may be stopped after any trial, since a round follows from all trials before it."""
    def what_if_trials(requested: Study, records: Sequence[Record], what_ifs: Sequence[Record]
                       ) -> list[Trial]:
        known = [record.trial.rtt_ms for record in (*records, *what_ifs)]
        assert known[:3] == [3.0, 1.0, 2.0]
        more = [sum(known) + place for place in range(2)]
        return [Trial("small", rtt_ms, 1) for rtt_ms in more] if len(known) < 7 else []

    requested = study(3.0, 1.0, 2.0, kind=changed(KIND, what_if_trials=what_if_trials))
    found = {}
    for stopped_after in range(8):
        options = MeasureOptions(tmp_path / str(stopped_after), 1, False, False, {}, quiet=True)
        engine = Stopping(10)
        engine.left = stopped_after
        try:
            run = measure(requested, OneMachine(engine), options)
        except KeyboardInterrupt:
            run = measure(requested, OneMachine(Engine(10)), options)
        assert runs.load_run(run.folder, requested) == run
        found[stopped_after] = [trial["rtt_ms"] for name in (runs.TRIALS_CSV, runs.WHAT_IF_CSV)
                                for trial in rows(run.folder, name)]
    assert {*map(tuple, found.values())} == {("3", "1", "2", "6", "7", "19", "20")}


def test_an_interrupted_run_draws_the_same_networks(tmp_path: Path) -> None:
    """The networks follow from the first trials alone, whenever the run was stopped."""
    def with_draws(requested: Study, run: RunData[Record], seed: int) -> list[Trial]:
        rtts_ms = [record.trial.rtt_ms for record in run.records]
        assert rtts_ms in ([3.0, 1.0], [3.0, 1.0, 5.0, 6.0]) and seed == 5
        return [*requested.trials[:2], *(Trial("small", rtt_ms, 1) for rtt_ms in (5.0, 6.0))]

    requested = replace(study(3.0, 1.0, kind=changed(KIND, with_draws=with_draws)),
                        repeat_with_drops=2)
    for stopped_after in range(5):
        options = MeasureOptions(tmp_path / str(stopped_after), 5, False, False, {}, quiet=True)
        engine = Stopping(10)
        engine.left = stopped_after
        try:
            run = measure(requested, OneMachine(engine), options)
        except KeyboardInterrupt:
            run = measure(requested, OneMachine(Engine(10)), options)
        assert [trial["rtt_ms"] for trial in rows(run.folder)] == ["3", "1", "5", "6"]
        assert len(list((run.folder / CAPTURES).iterdir())) == 4


@pytest.mark.parametrize(("limit", "capture_bytes", "file"), [
    (1200, 10, "trials.csv"), (2000, 5000, ".pcap"), (100, 10, "run.json")])
def test_a_run_stopped_by_a_limit_of_file_sizes_keeps_its_trials_and_resumes(
        tmp_path: Path, undisturbed: list[dict[str, str]], limit: int, capture_bytes: int,
        file: str) -> None:
    for _ in range(2 if file == "run.json" else 1):  # a second time is stopped likewise
        stopped = measured(tmp_path, "prlimit", f"--fsize={limit}:", capture_bytes=capture_bytes)
        assert stopped.returncode == 1 and "Traceback" not in stopped.stderr, stopped.stderr
        last = stopped.stderr.splitlines(keepends=True)[-1]
        assert last.startswith("run.sh: ") and file in last and "File too large" in last
        assert last.endswith(KEPT) == (file == "trials.csv")  # otherwise nothing is measured yet
    kept = [row for folder in runs.newest_first(tmp_path / "small")
            if (folder / runs.TRIALS_CSV).exists() for row in rows(folder)]
    assert kept == undisturbed[:len(kept)] and len(kept) < TRIALS
    assert bool(kept) == (file == "trials.csv")
    assert len(os.listdir(tmp_path / "small")) == (file != "run.json")  # no folder for each attempt
    done = measured(tmp_path, capture_bytes=capture_bytes)
    assert done.returncode == 0, done.stderr
    assert f"{len(kept)} of {TRIALS} trials are there" in done.stderr or not kept
    folder = Path(done.stdout.strip())
    assert rows(folder) == undisturbed
    assert len(list((folder / CAPTURES).iterdir())) == TRIALS
    assert not runs.load_run(folder, study()).changed and not (folder / "work").exists()


@mounts_a_disk
@pytest.mark.parametrize("options", ["size=120k", "nr_inodes=25"])
def test_a_run_stopped_by_a_full_disk_keeps_its_trials_and_resumes(
        tmp_path: Path, undisturbed: list[dict[str, str]], options: str) -> None:
    """The disk has no more blocks, and then becomes read-only; or it has no more inodes."""
    with small_disk(disk := tmp_path / "disk", options):
        stopped = measured(disk, capture_bytes=3000)
        assert stopped.returncode == 1 and stopped.stderr.endswith(
            f": cannot be written: No space left on device: make room{KEPT}"), stopped.stderr
        (folder,) = runs.newest_first(disk / "small")
        assert 0 < len(rows(folder)) < TRIALS
        if options.startswith("size"):
            subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
            stopped = measured(disk)
            assert stopped.returncode == 1 and "Read-only file system" in stopped.stderr
        subprocess.run(["mount", "-o", "remount,rw,size=9m,nr_inodes=900", str(disk)], check=True)
        done = measured(disk, capture_bytes=3000)
        assert done.returncode == 0 and "resuming" in done.stderr, done.stderr
        assert rows(folder) == undisturbed
