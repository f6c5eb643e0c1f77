"""Stored runs: damaged files, facts on machine and project, and the expected time of a run."""

from __future__ import annotations

import csv
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import plot
from firstflight.base import PROJECT, __version__, files
from firstflight.base.errors import FAILED, OK, FirstFlightError
from firstflight.commands import compare_runs
from firstflight.commands.flags import parse
from firstflight.commands.virtual import captured
from firstflight.findings.drawing.style import even_ticks
from firstflight.runs import expected, runs, scenario_file
from firstflight.runs.expected import expected_time
from firstflight.runs.kinds import Overrides
from firstflight.runs.results import provenance
from firstflight.runs.results.facts import COMMAND, RUN, read_facts_file
from firstflight.runs.results.records import LARGEST, RecordsError
from firstflight.study import compared_runs, registry
from tests.programs.inputs import stored
from tests.programs.stored_commands import FACTS, packets


pytestmark = pytest.mark.usefixtures("few_dots")
DEEP = "[" * 100_000
# Values that are not what a fact has to be.
WRONG: list[Any] = [5, "x", [5], {"a": {"b": {}}}, True, [[[[[[[[[[1]]]]]]]]]], 1e400]


def ended(main: Any, words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit status, and standard error without the notes on a missing seal."""
    status = main(words)
    return status, "".join(line for line in capsys.readouterr().err.splitlines(keepends=True)
                           if "run.json has no seal of" not in line)


@pytest.mark.parametrize("content", [DEEP, '{"command": 5}', '{"virtual_s": 1e400}', "{", "[]",
                                     '{"command": [[]]}', '{"left": ' + "[" * 50 + "]" * 50 + "}",
                                     "\udcff", '{"wall_s": ' + "9" * 9999 + "}"], ids=range(9))
def test_a_damaged_command_json_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "capture.pcapng").write_bytes(packets())
    (tmp_path / "command.json").write_text(content, errors="surrogateescape")
    with pytest.raises(RecordsError, match=r"command\.json: is damaged \("):
        captured.run(["--report", str(tmp_path)])


def test_a_command_of_another_version_is_read(tmp_path: Path) -> None:
    (tmp_path / "command.json").write_text(json.dumps({**FACTS, "more": [1], "wall_s": None}))
    read = read_facts_file(tmp_path / "command.json", COMMAND)
    assert read["command"] == FACTS["command"] and read["more"] == [1] and "wall_s" not in read


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_a_fact_of_a_run_in_a_wrong_shape_is_refused_in_one_line_or_read(
        wrong: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home, known = stored("packetdrill", tmp_path)
    names = {*known, "trials", "partial", "first_record_after_s", "resumed", "asked", "systems"}
    refused = 0
    for name in sorted(names - {"scenario", "scenario_file"}):
        (home / "run.json").write_text(json.dumps({**known, name: wrong}))
        status, said = ended(plot.main, ["--run", str(home), "--figures", str(tmp_path / "f")],
                             capsys)
        assert status in (OK, FAILED) and said.count("\n") == (status == FAILED), (name, said)
        refused += status == FAILED
        assert runs.read_facts(home) == {} or status == OK
    assert refused > 9


def test_a_run_json_nested_too_deep_is_refused_in_one_line(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home, _ = stored("zhao2019", tmp_path)
    (home / "run.json").write_text(DEEP)
    assert ended(plot.main, ["--run", str(home)], capsys) == (
        FAILED, f"plot.py: {home / 'run.json'}: is damaged (its lists and tables are nested too"
        " deep)\n")
    with pytest.raises(RecordsError, match="nested too deep"):
        compare_runs.run(parse(["--compare", str(home), str(home)]))


def with_column(home: Path, column: str, value: str) -> None:
    """Gives all rows of a run this value in a column, which is added where it is missing."""
    path = home / "trials.csv"
    head, *rows = csv.reader(path.read_text().splitlines())
    place = head.index(column) if column in head else len(head)
    with path.open("w") as file:
        csv.writer(file, lineterminator="\n").writerows(
            [[*row[:place], cell, *row[place + 1:]] for row, cell in zip(
                (head, *rows), (column, *[value] * len(rows)))])


@pytest.mark.parametrize(("name", "column", "value"), [
    ("tselentis2013", "response_flights", "1e308"), ("zhao2019", "response_flights", "3+x"),
    ("zhao2019", "response_flights", "9" * 5000), ("zhao2019", "total_ms", ""),
    ("zhao2019", "weight", "-1"),
    ("zhao2019", "own_server", "5"), ("zhao2019", "own_server", DEEP), ("small", "window", "1e15"),
    ("small", "window", ""), ("small", "clients", "iw3"), ("packetdrill", "sysctls", "x")],
    ids=range(11))
def test_a_stored_value_that_no_trial_can_have_is_refused_in_one_line(
        name: str, column: str, value: str, tmp_path: Path,
        capsys: pytest.CaptureFixture[str]) -> None:
    home, _ = stored(name, tmp_path)
    with_column(home, column, value)
    status, said = ended(plot.main, ["--run", str(home)], capsys)
    assert status == FAILED and said.count("\n") == 1 and "trials.csv, " in said, said
    with pytest.raises(RecordsError, match="trials.csv, "):
        compare_runs.run(parse(["--compare", str(home), str(home)]))


def test_stored_values_that_break_a_program_are_reported_in_one_line(
        tmp_path: Path, capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch) -> None:
    """Here they break it in the middle of drawing and comparing, behind all checks."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    home, _ = stored("zhao2019", tmp_path)

    def nonsense(folder: Path, *_: object) -> None:
        raise KeyError(10)

    monkeypatch.setattr(plot, "draw_run", nonsense)
    monkeypatch.setattr(compared_runs, "report", nonsense)
    status, said = ended(plot.main, ["--run", str(home), "--figures", str(tmp_path / "f")], capsys)
    assert status == FAILED and "its files contradict each other (KeyError: 10)" in said
    with pytest.raises(FirstFlightError, match="its files contradict each other"):
        compare_runs.run(parse(["--compare", str(home), str(home)]))


def test_an_axis_up_to_the_largest_number_of_a_record_has_two_to_ten_ticks() -> None:
    assert 2 <= len(even_ticks(0, LARGEST)) <= 10 and 2 <= len(even_ticks(0, 5 * LARGEST)) <= 10


def test_a_whole_run_json_is_read(tmp_path: Path) -> None:
    home, known = stored("zhao2019", tmp_path)
    assert read_facts_file(home / "run.json", RUN) == known


# Facts on project, machine and tools --------------------------------------------------

def git(folder: Path, *words: str) -> str:
    """What git prints."""
    return subprocess.run(["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=b",
                           *words], check=True, capture_output=True, text=True).stdout.strip()


def test_a_runs_facts_have_the_projects_commit_and_whether_it_was_changed(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "file").write_text("one")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-qm", "first")
    (tmp_path / "untracked").write_text("")
    os.utime(tmp_path / "file", (9, 9))  # `git status` would refresh its index for this
    index = (tmp_path / ".git" / "index").read_bytes()
    project = provenance.of_this_machine(tmp_path)["project"]
    assert (tmp_path / ".git" / "index").read_bytes() == index, "under sudo root would own it"
    assert project == {"version": __version__, "commit": git(tmp_path, "rev-parse", "HEAD"),
                       "changed": False}
    (tmp_path / "file").write_text("two")
    assert provenance.of_this_machine(tmp_path)["project"]["changed"] is True


def test_a_runs_facts_have_the_machine_and_its_tools(tmp_path: Path) -> None:
    facts = provenance.of_this_machine(tmp_path)
    machine, tools = facts["machine"], facts["tools"]
    assert machine == {"kernel": platform.release(), "cpus": os.cpu_count(),
                       "processor": provenance.processor(), "system": provenance.system()}
    assert machine["system"] == platform.freedesktop_os_release()["PRETTY_NAME"]
    assert machine["processor"] in Path("/proc/cpuinfo").read_text()
    assert tools["python"] == ".".join(map(str, sys.version_info[:3]))
    assert tools["curl"].startswith("curl ") and "\n" not in tools["curl"]
    assert tools["iproute2"].startswith("ip utility, iproute2")
    assert tools["openssl"].startswith("OpenSSL ")
    installed = shutil.which("nginx", path=f"{os.defpath}:/usr/sbin:/sbin")
    assert tools["nginx"].startswith("nginx") == bool(installed)
    assert facts["project"] == {"version": __version__, "commit": "", "changed": False}


@pytest.mark.parametrize("printed, version", [
    ("echo nginx version: nginx/1.22.1; echo built by gcc; echo 'built with OpenSSL 3.0.11 19 Sep"
     " 2023 (running with OpenSSL 3.0.17 1 Jul 2025)'; echo --with-openssl",
     "nginx/1.22.1, OpenSSL 3.0.17 1 Jul 2025"),
    ("echo nginx version: nginx/1.26.3; echo built with OpenSSL 3.5.1 1 Jul 2025",
     "nginx/1.26.3, built with OpenSSL 3.5.1 1 Jul 2025"),
    ("echo nginx version: nginx/1.22.1", "nginx/1.22.1"), ("true", ""),
    ("echo 'nginx: error: a library is missing'; exit 127", "")])
def test_a_runs_facts_have_nginx_and_the_library_that_it_runs_with(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str, version: str) -> None:
    """nginx prints its versions to standard error. An nginx that does not start has none."""
    (tmp_path / "nginx").write_text(
        f"#!/bin/sh\nexec >&2\n[ $# = 1 ] && [ $1 = -V ] || exit 9\n{printed}\n")
    (tmp_path / "nginx").chmod(0o755)
    monkeypatch.setattr(os, "defpath", str(tmp_path))
    assert provenance.nginx() == version


def test_the_first_line_of_a_command_is_empty_unless_it_succeeds() -> None:
    assert provenance.first_line(["printf", " a b \nc\n"]) == "a b"
    assert provenance.first_line(["sh", "-c", "echo said; exit 3"]) == ""
    assert provenance.first_line(["no-such-command"]) == ""


@pytest.mark.parametrize("content, value", [
    ("other: 1\nmodel name\t: A CPU: 2 GHz \nmodel name: B\n", "A CPU: 2 GHz"),
    ("model names: A\nmodel name\n", ""), ("", "")])
def test_a_value_is_found_by_its_key_and_an_absent_file_has_none(tmp_path: Path, content: str,
                                                                 value: str) -> None:
    (tmp_path / "file").write_text(content)
    assert provenance.value_of(tmp_path / "file", "model name", ":") == value
    assert provenance.value_of(tmp_path / "none", "model name", ":") == ""


# The expected time of a run -----------------------------------------------------------

def study_of(name: str, **lists: Any) -> Any:
    return registry.study_of(scenario_file.find(name), Overrides(
        {key: (value,) for key, value in lists.items()}))


@pytest.mark.parametrize("client, guest_s", [("curl", 0.025), ("wget", 0.014), ("libcurl", 0.006)])
def test_the_time_of_a_fetch_in_a_guest_depends_on_its_client_and_size(
        client: str, guest_s: float) -> None:
    study = study_of("zhao2019")
    small = replace(study.trials[0], client=client, response_bytes=1)
    assert study.kind.guest_s(small) == pytest.approx(guest_s, abs=1e-6)
    large = replace(small, response_bytes=10_000_000)
    assert study.kind.guest_s(large) == pytest.approx(guest_s + 0.6, abs=1e-6)


def test_the_expected_time_of_a_run_is_what_the_last_run_of_its_scenario_took(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = study_of("ietf78_connections")
    count = len(study.trials)
    monkeypatch.setattr(expected, "KEPT", tmp_path)
    assert expected_time(study, "uml", 2, tmp_path).startswith("unknown, since no such run")

    def stored(name: str, wall_s: float, rows: int, **facts: Any) -> None:
        files.write(tmp_path / study.head.name / name / "run.json", json.dumps({
            "state": "complete", "engine": "uml", "scenario_file": study.head.text, "jobs": 2,
            "wall_s": wall_s, "trials": {"rows": rows}} | facts))
    stored("20260101T000000.000Z-uml", 9, count, engine="host")
    stored("20260102T000000.000Z-uml", 9, count, state="running")
    stored("20260104T000000.000Z-uml", 9, 1)
    assert expected_time(study, "uml", 2, tmp_path).startswith("unknown, since no such run")
    stored("20260105T000000.000Z-uml", 2100, count, scenario_file="with another comment")
    stored("20260106T000000.000Z-uml", 2, 2 * count)
    assert expected_time(study, "uml", 2, tmp_path) == "about 2100 s, as the last such run took"
    assert expected_time(study, "uml", 4, tmp_path).startswith("about 1050 s")
    half = replace(study, trials=study.trials[:count // 2])
    assert expected_time(half, "uml", 2, tmp_path).startswith(
        f"about {2100 * (count // 2) / count:.0f} s")
    monkeypatch.setattr(scenario_file, "names", list)
    # Of a user's file or a question, only a run of the same text counts.
    assert expected_time(study, "uml", 2, tmp_path).startswith("about 1 s")


@pytest.mark.parametrize("name", scenario_file.names())
def test_the_expected_time_in_a_fresh_clone_is_that_of_the_run_in_docs_results(
        name: str, tmp_path: Path) -> None:
    study = study_of(name)
    wall_s = json.loads((expected.KEPT / f"{name}.json").read_text())["facts"]["wall_s"]
    assert expected_time(study, "uml", 2, tmp_path).startswith(
        f"about {wall_s:.0f} s, as the run of docs/results took on ")
    for not_kept in (expected_time(study, "host", 2, tmp_path),
                     expected_time(replace(study, whole=False), "uml", 2, tmp_path)):
        assert not_kept.startswith("unknown, since no such run")


def test_minutes_after_a_command_in_questions_are_those_of_the_run_in_docs_results() -> None:
    text = (PROJECT / "docs" / "QUESTIONS.md").read_text(encoding="utf-8")
    promised = re.findall(r"\./run\.sh (\w+)(?: --full)?\n(?:(?!    \./run).*\n)*?"
                          r"(\w+) minutes?\. ", text)
    assert promised
    for name, word in promised:
        wall_s = json.loads((expected.KEPT / f"{name}.json").read_text())["facts"]["wall_s"]
        assert ("Zero", "One", "Two", "Three", "Four", "Five")[round(wall_s / 60)] == word, name
