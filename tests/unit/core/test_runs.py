"""Run folders: resumed by the same request only, never overwritten."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lab.core import runs
from lab.core.errors import FirstFlightError
from lab.core.records import RecordsError
from lab.core.runs import Run, identity, open_run
from tests.unit.core.example import record, study


def interrupted(results: Path, *rtts_ms: float) -> Path:
    """A run of which the first trial is measured."""
    run = open_run(results, study(*rtts_ms), "uml", 1, False)
    measure(run, rtts_ms[0])
    run.facts["scenario"] = "small"
    run.save()
    run.close()
    return run.folder


def measure(run: Run, *rtts_ms: float) -> None:
    file = run.open_records()
    for rtt_ms in rtts_ms:
        file.append(record(rtt_ms))
    file.close()


def test_what_is_missing_is_resumed(tmp_path: Path) -> None:
    folder = interrupted(tmp_path, 10, 20)
    run = open_run(tmp_path, study(10, 20), "uml", 1, False)
    assert run.resumed and run.folder == folder
    assert [trial.rtt_ms for trial in run.missing(study(10, 20).trials)] == [20]
    measure(run, 20)
    run.finish()
    run.close()
    again = open_run(tmp_path, study(10, 20), "uml", 1, False)
    assert not again.resumed and again.folder != folder  # a finished run is left alone
    again.close()


@pytest.mark.parametrize(("asked", "engine", "seed", "fresh"), [
    (study(10, 30), "uml", 1, False), (study(10), "uml", 1, False),
    (study(10, 20, text="# Other."), "uml", 1, False), (study(10, 20), "host", 1, False),
    (study(10, 20), "uml", 2, False), (study(10, 20), "uml", 1, True)])
def test_only_the_same_request_resumes(tmp_path: Path, asked: Any, engine: str, seed: int,
                                       fresh: bool) -> None:
    folder = interrupted(tmp_path, 10, 20)
    run = open_run(tmp_path, asked, engine, seed, fresh)
    assert not run.resumed and run.folder != folder and run.records == []
    run.close()


def test_identity_is_what_is_asked_and_not_what_is_recorded() -> None:
    """Neither the order of the trials nor the columns of their records are in it."""
    asked = study(10, 20)
    assert identity(asked, "uml", 1) == identity(study(20, 10), "uml", 1)
    assert identity(asked, "uml", 1) == "bb1cab14ba1c97c2"  # of every version: runs are resumed


def test_a_run_of_an_older_version_is_resumed(tmp_path: Path) -> None:
    """Its file lacks a column; it is added behind the others."""
    folder = interrupted(tmp_path, 10, 20)
    path = folder / runs.TRIALS_CSV
    without_lost = [",".join(field for place, field in enumerate(line.split(",")) if place != 7)
                    for line in path.read_text(encoding="utf-8").splitlines()]
    path.write_text("\n".join(without_lost) + "\n", encoding="utf-8")
    run = open_run(tmp_path, study(10, 20), "uml", 1, False)
    assert run.resumed and [each.lost for each in run.records] == [None]
    measure(run, 20)
    run.close()
    assert path.read_text(encoding="utf-8").splitlines()[0].endswith(",measured_at,lost")


def test_a_run_that_is_being_measured_is_left_alone(tmp_path: Path) -> None:
    folder = interrupted(tmp_path, 10, 20)
    first = open_run(tmp_path, study(10, 20), "uml", 1, False)
    second = open_run(tmp_path, study(10, 20), "uml", 1, False)
    assert first.folder == folder != second.folder
    first.close()
    second.close()


def test_a_damaged_run_is_left_alone(tmp_path: Path) -> None:
    folder = interrupted(tmp_path, 10, 20)
    (folder / runs.TRIALS_CSV).write_text("nothing\nof ours\n", encoding="utf-8")
    run = open_run(tmp_path, study(10, 20), "uml", 1, False)
    assert not run.resumed
    run.close()


def test_latest_names_the_newest_and_is_replaced(tmp_path: Path) -> None:
    for _ in range(2):
        run = open_run(tmp_path, study(10), "uml", 1, True)
        run.point_latest()
        run.close()
        assert (tmp_path / "small" / "latest").resolve() == run.folder.resolve()
    assert runs.newest_first(tmp_path / "small")[0] == run.folder
    assert len(runs.newest_first(tmp_path / "small")) == 2


def test_only_whole_runs_are_told(tmp_path: Path) -> None:
    with pytest.raises(FirstFlightError, match=r"measure it with ./run.sh --scenario small"):
        runs.newest_whole("small", tmp_path)
    folders = []
    for partial in (False, True):
        run = open_run(tmp_path, study(10), "uml", 1, True)
        run.facts["partial"] = partial
        run.finish()
        run.close()
        folders.append(run.folder)
    interrupted(tmp_path, 10, 20)
    assert runs.newest_whole("small", tmp_path) == folders[0]


def test_a_stored_run_is_loaded(tmp_path: Path) -> None:
    folder = interrupted(tmp_path, 10, 20)
    assert runs.scenario_of(folder) == "small"
    run = runs.load(folder, study(10, 20))
    assert len(run.records) == 1 and not run.exact and run.facts["engine"] == "uml"


def test_a_run_of_another_scenario_is_refused(tmp_path: Path) -> None:
    folder = interrupted(tmp_path, 10)
    with pytest.raises(RecordsError, match="holds trials of 'small', but run.json says 'other'"):
        runs.load(folder, study(10, name="other"))


@pytest.mark.parametrize(("content", "words"), [
    ("", "is damaged"), ("[]", "is not the description of a run"), ("{}", "names no scenario"),
    (None, "cannot be read: No such file")])
def test_a_folder_that_is_no_run(tmp_path: Path, content: str | None, words: str) -> None:
    if content is not None:
        (tmp_path / runs.RUN_JSON).write_text(content, encoding="utf-8")
    with pytest.raises(RecordsError, match=words):
        runs.scenario_of(tmp_path)
    assert runs.read_facts(tmp_path) == {}
    with pytest.raises(RecordsError, match="there is no such run"):
        runs.scenario_of(tmp_path / "none")


def test_run_json_is_whole_at_any_moment(tmp_path: Path) -> None:
    folder = interrupted(tmp_path, 10)
    facts = json.loads((folder / runs.RUN_JSON).read_text(encoding="utf-8"))
    assert facts["state"] == runs.RUNNING and facts["identity"]
    assert not (folder / f".{runs.RUN_JSON}").exists()
