"""Run folders: resumed by the same request only, never overwritten."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firstflight.base import files
from firstflight.base.errors import FirstFlightError, UsageError
from firstflight.runs import runs, scenario_file
from firstflight.runs.kinds import Overrides
from firstflight.runs.results.record_file import RecordFile
from firstflight.runs.results.records import RecordsError, read_records
from firstflight.runs.runs import Run, request
from firstflight.study import registry
from tests.golden import stored_fetches, stored_load
from tests.unit.core.example import Trial, record, study, whole


def open_run(results: Path, requested: Any, engine: str = "uml", kernel: str = "7.2-a",
             seed: int = 1,
             fresh: bool = False) -> Run:
    return runs.open_run(results, requested, request(requested, engine, kernel, seed), fresh)


def interrupted(results: Path, *rtts_ms: float) -> Path:
    """A run of which the first trial is measured."""
    run = open_run(results, study(*rtts_ms))
    measure(run, rtts_ms[0])
    run.facts["scenario"] = "small"
    run.save()
    run.close()
    return run.folder


def measure(run: Run, *rtts_ms: float) -> None:
    file = run.open_records()
    for rtt_ms in rtts_ms:
        file.append(record(rtt_ms))
    run.seal(file)
    file.close()


def test_resuming_measures_only_the_missing_trials(tmp_path: Path,
                                                   capsys: pytest.CaptureFixture[str]) -> None:
    folder = interrupted(tmp_path, 10, 20)
    run = open_run(tmp_path, study(10, 20))
    (run.work_folder / "left").touch()
    assert run.resumed and run.folder == folder
    assert [trial.rtt_ms for trial in run.missing(study(10, 20).trials)] == [20]
    measure(run, 20)
    run.finish()
    run.close()
    assert not run.work_folder.exists()
    again = open_run(tmp_path, study(10, 20))
    assert not again.resumed and again.folder != folder  # a finished run is left alone
    assert again.work_folder.is_dir() and not list(again.work_folder.iterdir())
    again.close()
    assert capsys.readouterr().err == ""  # nothing of this is worth a message


def deep(folder: Path) -> None:
    """Make folders in each other: deeper than Python may recurse, and than one path can name."""
    before = os.getcwd()
    try:
        for _ in range(2100):
            os.mkdir(folder)
            os.chdir(folder)
            folder = Path("d")
    finally:
        os.chdir(before)


def test_a_run_with_a_killed_guests_deep_folders_is_resumed(tmp_path: Path) -> None:
    folder = interrupted(tmp_path, 10, 20)
    (folder / "work").mkdir()
    deep(folder / "work" / "guest0")
    run = open_run(tmp_path, study(10, 20))
    assert run.resumed and run.folder == folder and not list(run.work_folder.iterdir())
    run.close()
    assert not run.work_folder.exists()


def test_leftovers_of_a_run_killed_at_its_end_are_removed_by_the_next(tmp_path: Path) -> None:
    """Those of a complete run, and of one with another request; not of one being measured."""
    folders = [interrupted(tmp_path, 10, 20), interrupted(tmp_path, 30, 40)]
    facts = json.loads((folders[0] / "run.json").read_text())
    (folders[0] / "run.json").write_text(json.dumps({**facts, "state": "complete"}))
    for folder in folders:
        (folder / "work" / "guest0").mkdir(parents=True)
    busy = open_run(tmp_path, study(50))
    open_run(tmp_path, study(60)).close()
    assert not any((folder / "work").exists() for folder in folders)
    assert busy.work_folder.is_dir()
    busy.close()


OTHER_PART = replace(study(10, 20), trials=[Trial("small", 10, 1), Trial("small", 20, 1, "b")])


@pytest.mark.parametrize(("requested", "how", "why"), [
    (study(10, 30), {}, "other trials"), (study(10), {}, "other trials"),
    (study(10, 20.0000001), {}, "other trials"), (OTHER_PART, {}, "other trials"),
    (study(10, 20, text="# Other."), {}, "another scenario file"),
    (study(10, 20), {"engine": "host", "kernel": "6.1"}, "another engine, another kernel"),
    (study(10, 20), {"kernel": "7.2-b"}, "another kernel"),
    (study(10, 20), {"seed": 2}, "another seed"), (study(10, 20), {"fresh": True}, "")])
def test_only_the_same_request_resumes(tmp_path: Path, requested: Any, how: dict[str, Any],
                                       why: str,
                                       capsys: pytest.CaptureFixture[str]) -> None:
    folder = interrupted(tmp_path, 10, 20)
    run = open_run(tmp_path, requested, **how)
    assert not run.resumed and run.folder != folder and not run.measured
    run.close()
    assert capsys.readouterr().err == (f"{folder}: not resumed: {why}\n" if why else "")


def test_the_requested_one_of_several_unfinished_runs_is_resumed_silently(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = interrupted(tmp_path, 10, 20)
    interrupted(tmp_path, 30)
    capsys.readouterr()
    run = open_run(tmp_path, study(10, 20))
    run.close()
    assert run.folder == folder and capsys.readouterr().err == ""


def test_a_requests_key_has_what_is_requested_and_nothing_recorded() -> None:
    """Neither the order of the trials nor a column at its default is in it."""
    requested = request(study(10, 20), "uml", "7.2", 1)
    assert requested == request(study(20, 10), "uml", "7.2", 1)
    assert requested["trials"] == "ddce3f4750220aa1"  # a later version resumes runs by it


@pytest.mark.parametrize(("name", "lists"), [
    ("zhao2019", {"rtt_ms": (100.00001,)}), ("zhao2019", {"response_bytes": (9001,)}),
    ("zhao2019", {"jitter_ms": (0.5,)}), ("ietf78_losses", {"rtt_ms": (41.5,)}),
    ("ietf78_losses", {"response_bytes": (15001,)}), ("ietf78_losses", {"initcwnd": (11,)}),
    ("handley1999_warm", {"rtt_ms": (41.5,)}), ("handley1999_warm", {"initcwnd": (11,)})])
def test_every_parameter_of_every_kind_is_in_its_key(name: str, lists: Any) -> None:
    """Also what its trials' names do not tell, as a trace's RTT."""
    requested = registry.study_of(scenario_file.find(name), Overrides(lists))
    first, second = (request(each, "uml", "7.2", 1) for each in (whole(name), requested))
    assert first["trials"] != second["trials"]
    assert first == request(registry.study_of(scenario_file.find(name)), "uml", "7.2", 1)


@pytest.mark.parametrize("name", scenario_file.names())
def test_trials_of_every_scenario_are_distinguished_and_read_back(tmp_path: Path,
                                                                  name: str) -> None:
    """Every value of up to 25 of its trials is written as text and read again."""
    study_now = whole(name)
    step = max(1, math.ceil(len(study_now.trials) / 25))
    trials = study_now.trials[::step]
    file = RecordFile(tmp_path / runs.TRIALS_CSV, study_now.kind.record)
    for trial in trials:
        file.append(study_now.kind.record(trial=trial, ok=True))
    file.close()
    back = [each.trial for each in read_records(file.path, study_now.kind.record)]
    assert back == list(trials) and [each.id for each in back] == [each.id for each in trials]


@pytest.mark.parametrize("name", ["..", "../other", "/tmp/x", "a\nb", ""])
def test_a_scenarios_results_stay_in_their_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(FirstFlightError, match="cannot be the name of a file"):
        open_run(tmp_path / "results", study(10, name=name))
    assert not list(tmp_path.iterdir())


def test_two_trials_of_one_name_are_refused() -> None:
    twins = [Trial("small", 10, 1), Trial("other", 10, 1)]
    with pytest.raises(UsageError, match="^2 trials would be called rtt10-1: "):
        request(replace(study(10), trials=twins), "uml", "7.2", 1)


def test_a_run_of_an_earlier_version_says_why_it_is_not_resumed(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = interrupted(tmp_path, 10, 20)
    facts = runs.read_facts(folder)
    del facts["asked"]
    (folder / runs.RUN_JSON).write_text(json.dumps({**facts, "identity": "bb1cab14ba1c97c2"}))
    open_run(tmp_path, study(10, 20)).close()
    assert capsys.readouterr().err == f"{folder}: not resumed: an earlier version began it\n"


def test_trials_that_differ_in_the_last_digit_are_different_trials(tmp_path: Path) -> None:
    """As they were asked, and as they are read back."""
    near = [100.00001, 100.00002, 0.1, 0.1 + 2**-55, 12345.123456789, 1 / 3]
    requested = study(*near)
    assert len({trial.id for trial in requested.trials}) == len(near)
    run = open_run(tmp_path, requested)
    measure(run, *near[:-1])
    run.close()
    again = open_run(tmp_path, requested)
    missing = again.missing(requested.trials)
    assert again.resumed and [trial.rtt_ms for trial in missing] == near[-1:]
    again.close()


def test_a_run_of_another_version_is_not_resumed(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = interrupted(tmp_path, 10, 20)
    path = folder / runs.TRIALS_CSV
    path.write_text(path.read_text(encoding="utf-8").replace(",lost,", ",losses,", 1),
                    encoding="utf-8")
    unsealed(folder)
    run = open_run(tmp_path, study(10, 20))
    assert not run.resumed and run.folder != folder
    assert "has no column lost: another version measured it" in capsys.readouterr().err
    run.close()


def test_a_run_that_is_being_measured_is_left_alone(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = interrupted(tmp_path, 10, 20)
    first = open_run(tmp_path, study(10, 20))
    second = open_run(tmp_path, study(10, 20))
    assert first.folder == folder != second.folder and capsys.readouterr().err == ""
    first.close()
    second.close()


@pytest.mark.parametrize("sealed", [True, False])
def test_a_damaged_run_is_left_alone(tmp_path: Path, sealed: bool) -> None:
    folder = interrupted(tmp_path, 10, 20)
    (folder / runs.TRIALS_CSV).write_text("nothing\nof ours\n", encoding="utf-8")
    if not sealed:
        unsealed(folder)
    run = open_run(tmp_path, study(10, 20))
    assert not run.resumed
    run.close()


@pytest.mark.parametrize("begun", [None, "", "scenario,rtt"])
def test_a_run_without_a_record_is_resumed(tmp_path: Path, begun: str | None) -> None:
    """The disk was full, or the process was killed, before its header was written."""
    first = open_run(tmp_path, study(10))
    first.close()
    if begun is not None:
        (first.folder / runs.TRIALS_CSV).write_text(begun)
    run = open_run(tmp_path, study(10))
    assert run.resumed and not run.measured
    measure(run, 10)
    run.close()
    assert len(read_records(run.folder / runs.TRIALS_CSV, run.kind)) == 1


def unsealed(folder: Path) -> None:
    """As runs were before they were sealed."""
    facts = runs.read_facts(folder)
    del facts["trials"]
    (folder / runs.RUN_JSON).write_text(json.dumps(facts))


def test_latest_names_the_newest_whole_run_and_is_replaced(tmp_path: Path) -> None:
    latest, whole = tmp_path / "small" / "latest", []
    for _ in range(2):
        run = open_run(tmp_path, study(10), fresh=True)
        assert not whole or latest.resolve() == whole[-1]  # until the new one is complete
        run.finish()
        run.close()
        whole.append(run.folder.resolve())
        assert latest.resolve() == whole[-1] and os.readlink(latest) == run.folder.name
    partial = open_run(tmp_path, study(10, 20), fresh=True)
    partial.facts["partial"] = True
    partial.point_partial()
    partial.finish()
    partial.close()
    assert latest.resolve() == whole[-1]
    assert (tmp_path / "small" / "latest-partial").resolve() == partial.folder.resolve()
    assert [folder.resolve() for folder in runs.newest_first(tmp_path / "small")] == [
        partial.folder.resolve(), *reversed(whole)]


def test_only_a_whole_run_is_the_newest(tmp_path: Path) -> None:
    with pytest.raises(FirstFlightError, match=r"measure it with ./run.sh --scenario small"):
        runs.newest_whole("small", tmp_path)
    folders = []
    for partial in (False, True):
        run = open_run(tmp_path, study(10), fresh=True)
        run.facts["partial"] = partial
        run.finish()
        run.close()
        folders.append(run.folder)
    interrupted(tmp_path, 10, 20)
    assert runs.newest_whole("small", tmp_path) == folders[0]


def test_a_stored_run_is_loaded(tmp_path: Path) -> None:
    folder = interrupted(tmp_path, 10, 20)
    assert runs.scenario_of(folder) == "small"
    run = runs.load_run(folder, study(10, 20))
    assert len(run.records) == 1 and not run.exact and run.facts["engine"] == "uml"
    assert run.changed == ""


def test_a_run_without_a_trial_yet_is_refused_unless_none_is_requested(tmp_path: Path) -> None:
    run = open_run(tmp_path, study(10))
    measure(run)
    run.close()
    with pytest.raises(RecordsError, match="no trial yet; measure with ./run.sh --scenario small$"):
        runs.load_run(run.folder, study(10))
    assert runs.load_run(run.folder, study()).records == []


CHANGES: dict[str, tuple[Callable[[list[str]], list[str]], str]] = {
    "deleted": (lambda rows: rows[:1] + rows[2:], "it has 2 rows, 3 were measured"),
    "the last deleted": (lambda rows: rows[:-1], "it has 2 rows, 3 were measured"),
    "doubled": (lambda rows: [*rows, rows[-1]], "it has 4 rows, 3 were measured"),
    "one in place of another": (lambda rows: [*rows[:-1], rows[1]], "rows were edited, duplicated"),
    "reordered": (lambda rows: [rows[0], *rows[:0:-1]], "reordered"),
    "edited": (lambda rows: [row.replace(",1.5,", ",1.4,") for row in rows], "rows were edited")}


@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize("complete", [True, False])
def test_a_run_with_changed_rows_is_reported_when_loaded_and_never_resumed(
        tmp_path: Path, how: str, complete: bool, capsys: pytest.CaptureFixture[str]) -> None:
    requested = study(10, 20, 30, 40)
    run = open_run(tmp_path, requested)
    measure(run, 10, 20, 30)
    run.facts["scenario"] = "small"
    (run.finish if complete else run.save)()
    run.close()
    path = run.folder / runs.TRIALS_CSV
    changed, words = CHANGES[how]
    path.write_text("".join(changed(path.read_text().splitlines(keepends=True))))
    if how == "doubled" and not complete:
        words = "was changed: 1 of its rows are duplicates"
    loaded = runs.load_run(run.folder, requested)
    said = capsys.readouterr().err
    assert said == f"{run.folder}: {loaded.changed}\n"
    assert words in loaded.changed
    assert "are duplicates" in words or loaded.changed.endswith("; --fresh measures it again")
    again = open_run(tmp_path, requested)
    assert not again.resumed
    again.close()


def test_a_run_of_another_scenario_is_refused(tmp_path: Path) -> None:
    folder = interrupted(tmp_path, 10)
    with pytest.raises(RecordsError, match="holds trials of 'small', but run.json says 'other'"):
        runs.load_run(folder, study(10, name="other"))


@pytest.mark.parametrize(("stored", "value", "why"), [
    (lambda: (whole("zhao2019"), stored_fetches.stored("zhao2019")), {"head": "zz"},
     "invalid literal for int"),
    (lambda: (stored_load.study(), stored_load.run().records), {"sizes": "zz"},
     "paper/paper_figure1_cdf.csv: has no series")])
def test_an_edited_trial_that_is_invalid_is_refused_by_its_row(
        tmp_path: Path, stored: Callable[[], tuple[Any, Sequence[Any]]], value: dict[str, str],
        why: str) -> None:
    requested, (good, other, *_) = stored()
    file = RecordFile(tmp_path / runs.TRIALS_CSV, type(good))
    file.append(good)
    file.append(replace(other, trial=replace(other.trial, **value)))
    file.close()
    with pytest.raises(RecordsError, match=f"trials.csv, row 3: is not a trial: {why}"):
        runs.load_run(tmp_path, requested)


@pytest.mark.parametrize("part", ["../../../etc/x", "/etc/x", "a/b"])
def test_an_edited_trial_names_no_file_elsewhere(tmp_path: Path, part: str) -> None:
    """Its identity names the captures and files that are read back."""
    requested = replace(study(10), trials=[Trial("small", 10, 1, part)])
    run = open_run(tmp_path, requested)
    file = run.open_records()
    file.append(record(10.0, part=part))
    run.seal(file)
    run.close()
    with pytest.raises(FirstFlightError, match="cannot be the name of a file"):
        runs.load_run(run.folder, requested)


@pytest.mark.parametrize(("content", "words"), [
    ("", "is damaged"), ("[]", r"is damaged \(it is not a table\)"), ("{}", "names no scenario"),
    (None, "cannot be read: No such file")])
def test_a_folder_that_is_no_run_is_refused_with_the_reason(tmp_path: Path, content: str | None,
                                                            words: str) -> None:
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
    assert facts["state"] == "running" and facts["asked"]["seed"] == "1"
    run = open_run(tmp_path, study(10))
    run.finish()
    run.close()
    text = (folder / runs.RUN_JSON).read_text(encoding="utf-8")
    assert json.loads(text)["state"] == "complete" and text.endswith("\n}\n"), "a line each"
    assert not list(folder.glob(".first-flight-*"))


# In order -----------------------------------------------------------------------------

def finished(results: Path, *measured_in: float, at: str = "") -> Run:
    """A whole run of three trials, measured in that order."""
    run = open_run(results, study(10, 20, 30), fresh=True)
    file = run.open_records()
    for rtt_ms in measured_in:
        file.append(replace(record(rtt_ms), measured_at=at))
    run.seal(file)
    file.close()
    run.order(study(10, 20, 30).trials)
    run.facts["scenario"] = "small"
    run.finish()
    run.close()
    return run


def test_a_finished_run_has_its_rows_in_the_order_of_the_trials(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whichever guest was the fastest. The run is sealed after its rows were put in order."""
    one = finished(tmp_path, 10, 20, 30, at="2026-01-01T00:00:00+00:00")
    other = finished(tmp_path, 30, 10, 20, at="2026-01-02T00:00:00+00:00")
    assert [each.trial.rtt_ms for each in other.records()] == [10, 20, 30]
    text = (other.folder / runs.TRIALS_CSV).read_text()
    assert text.replace("2026-01-02", "2026-01-01") == (one.folder / runs.TRIALS_CSV).read_text()
    assert other.facts["trials"]["numbers_sha256"] == one.facts["trials"]["numbers_sha256"]
    assert other.facts["trials"]["sha256"] != one.facts["trials"]["sha256"]
    assert runs.load_run(other.folder, study(10, 20, 30)).changed == capsys.readouterr().err == ""


@pytest.mark.parametrize("replaced", [True, False])
def test_a_run_that_was_stopped_while_it_was_put_in_order_is_resumed(
        tmp_path: Path, replaced: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    run = open_run(tmp_path, study(10, 20))
    measure(run, 20, 10)
    save = files.save

    def stop(folder: Path, place: str, content: bytes | str) -> Path:
        if place == runs.TRIALS_CSV:
            if replaced:
                save(folder, place, content)
            raise KeyboardInterrupt
        return save(folder, place, content)
    monkeypatch.setattr(files, "save", stop)
    with pytest.raises(KeyboardInterrupt):
        run.order(study(10, 20).trials)
    monkeypatch.undo()
    run.close()
    again = open_run(tmp_path, study(10, 20))
    assert again.resumed and again.missing(study(10, 20).trials) == []
    again.order(study(10, 20).trials)
    assert [each.trial.rtt_ms for each in again.records()] == [10, 20]
    again.close()
