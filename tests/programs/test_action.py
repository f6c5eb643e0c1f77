"""The steps of action.yml under bash pass on words, write outputs and a summary, and keep files."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.programs.action import ACTION, measured, outputs, step
from tests.running import PROJECT

SCENARIO = (PROJECT / "docs/examples/question.toml").read_text(encoding="utf-8")


def action() -> Any:
    """The program of the step that measures, as a module."""
    spec = importlib.util.spec_from_file_location("action", PROJECT / ".ci/action.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("folder", [
    "with spaces", "it's", "$(touch made)", "`touch made`", "a;touch made", "ü ${IFS}", "*", "~"])
def test_a_word_in_quotes_arrives_whole_and_nothing_is_evaluated(folder: str,
                                                                 tmp_path: Path) -> None:
    for name in (folder, "another"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.toml").write_text(SCENARIO, encoding="utf-8")
    done = measured(tmp_path, question=f'--check\n  "{folder}/mine.toml"\n')
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"{folder}/mine.toml: ")
    assert not (tmp_path / "made").exists()


def test_a_value_in_quotes_is_one_word_of_the_question(tmp_path: Path) -> None:
    question = ("--rtt 50 --dry-run --server-command 'python3 -m http.server {p}'"
                ' --name "my question"')
    done = measured(tmp_path, question=question)
    assert done.returncode == 2 and "'my question'" in done.stderr, done.stderr


@pytest.mark.parametrize(("given", "words"), [
    ({}, "give one of"), ({"question": " \n "}, "give one of"),
    ({"command": "\t\n"}, "give one of"), ({"packetdrill": " "}, "give one of"),
    ({"fail_if": "total_ms > 1"}, "fail-if is about what a question measures"),
    ({"question": "--rtt '50"}, "question: No closing quotation: close each quote")])
def test_a_step_with_nothing_to_measure_is_refused(tmp_path: Path, given: dict[str, str],
                                                   words: str) -> None:
    done = measured(tmp_path, **given)
    assert done.returncode == 2 and done.stdout.startswith(f"::error::first-flight: {words}")


def test_a_question_that_is_refused_has_its_status_and_its_line_in_the_summary(
        tmp_path: Path) -> None:
    done = measured(tmp_path, question="--rtt fast")
    assert done.returncode == 2
    assert outputs(tmp_path) == {"status": "2", "findings": "", "answer": "", "recommended-iw": "",
                                 "iw": "", "at-least": "", "report": ""}
    summary = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert summary.startswith("### First Flight: not understood") and "'fast'" in summary


def test_fail_ifs_condition_is_passed_on_as_one_word(tmp_path: Path) -> None:
    done = measured(tmp_path, question="--rtt 50 --dry-run", fail_if=" total_ms(99) > 300\n")
    assert done.returncode == 2 and "'total_ms(99) > 300'" in done.stderr


# Outputs and the summary --------------------------------------------------------------

USERS = {"recommended_iw": 20, "answer": "Set 20\nfor=all.", "run": "users_of_x/1"}
PROBE = {"iw": 10, "at_least": True, "answer": "first flight: 10 segments", "run": ""}


@pytest.mark.parametrize(("findings", "values"), [
    (USERS, {"recommended-iw": "20", "iw": "", "answer": "Set 20 for=all."}),
    ({**USERS, "recommended_iw": None}, {"recommended-iw": "", "status": "5"}),
    (PROBE, {"iw": "10", "at-least": "true", "recommended-iw": ""}),
    ({**PROBE, "at_least": False}, {"at-least": "false"})])
def test_fields_of_the_findings_are_outputs_of_one_line(findings: dict[str, object],
                                                        values: dict[str, str]) -> None:
    found = action().outputs(5, [findings])
    assert {name: found[name] for name in values} == values
    assert not any("\n" in value for value in found.values())
    assert set(found) == {name for name, output in ACTION["outputs"].items()
                          if output["value"] == f"${{{{ steps.measure.outputs.{name} }}}}"}


def test_the_report_output_is_a_path_only_where_the_page_exists(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert action().outputs(0, [USERS])["report"] == ""
    page = Path("first-flight/results/users_of_x/1/report.html")
    page.parent.mkdir(parents=True)
    page.write_text("", encoding="utf-8")
    assert action().outputs(0, [USERS])["report"] == str(page)


def test_backquotes_in_the_output_do_not_end_the_summarys_block() -> None:
    text = action().summary(0, ["a ```` b\n`````\n"], ["# Chapter"])
    fence = re.search(r"^(`+)text$", text, re.MULTILINE)
    assert fence is not None and text.count(fence[1]) == 2
    assert text.count("<details>") == 1 and "# Chapter" in text


def test_a_summary_is_cut_to_what_github_accepts() -> None:
    module = action()
    assert "Chapter" not in module.summary(0, ["short"], ["Chapter " * 200_000])
    cut = module.summary(0, ["ü" * 1_000_000], [])
    assert len(cut.encode()) <= module.MOST_SUMMARY_BYTES + 1


def test_findings_of_an_earlier_step_are_no_outputs_of_this_one(tmp_path: Path) -> None:
    folder = tmp_path / "first-flight/findings"
    folder.mkdir(parents=True)
    (folder / "users_of_x.json").write_text(json.dumps(USERS), encoding="utf-8")
    assert measured(tmp_path, question="--list").returncode == 0
    assert outputs(tmp_path)["recommended-iw"] == ""


# The other steps ----------------------------------------------------------------------

def test_the_caches_key_is_the_digest_of_the_kernels(tmp_path: Path) -> None:
    kernels = step("Which kernels, and where they are kept")
    (cache,) = [known for known in ACTION["runs"]["steps"]
                if known.get("uses", "").startswith("actions/cache@")]
    environment = {**os.environ, "GITHUB_ACTION_PATH": str(PROJECT), "HOME": str(tmp_path),
                   "GITHUB_ENV": str(tmp_path / "env"), "GITHUB_OUTPUT": str(tmp_path / "output")}
    subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", kernels["run"]],
                   check=True, env=environment)
    assert re.fullmatch(r"digest=[0-9a-f]{16}\n", (tmp_path / "output").read_text())
    assert (tmp_path / "env").read_text() == f"XDG_CACHE_HOME={tmp_path}/.cache\n"
    assert cache["with"]["key"].endswith(f"steps.{kernels['id']}.outputs.digest }}}}")


def test_the_artifact_has_the_steps_whole_folder_and_is_kept_after_a_failure() -> None:
    keeping = step("Keep results, figures and findings")
    assert keeping["with"]["path"] == str(action().FOLDER)
    assert keeping["if"] == "always() && inputs.artifact != ''"
    assert keeping["with"]["name"] == "${{ inputs.artifact }}"
    assert step("Measure")["id"] == "measure"
