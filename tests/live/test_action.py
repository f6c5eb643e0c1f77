"""action.yml: its steps, run as GitHub's runner runs them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.live.conftest import PROJECT
from vtime.uml import find_kernel

yaml = pytest.importorskip("yaml")
ACTION = yaml.safe_load((PROJECT / "action.yml").read_text())
QUESTION = "--rtt 50ms\n--bw 10M\n\n--iw 3,10 --quiet\n"  # as YAML's | has it, several lines


def runs(workspace: Path, **given: str) -> subprocess.CompletedProcess[str]:
    """The step that measures; given: inputs, the others have their defaults."""
    inputs = {name: given.pop(name.replace("-", "_"), each["default"])
              for name, each in ACTION["inputs"].items()}
    assert not given
    (step,) = [step for step in ACTION["runs"]["steps"] if step.get("name") == "Measure"]
    environment = {name: inputs[value.removeprefix("${{ inputs.").removesuffix(" }}")]
                   for name, value in step["env"].items()}
    assert step["shell"] == "bash" and "${{" not in step["run"]
    return subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                          cwd=workspace, capture_output=True, text=True, timeout=300, check=False,
                          env={**os.environ, **environment, "GITHUB_ACTION_PATH": str(PROJECT)})


@pytest.mark.parametrize(("condition", "status"), [
    ("", 0), ("total_ms(3) - total_ms(10) < 1", 0), ("total_ms(10) > 1", 5)])
def test_a_question_and_its_condition(kernel: Path, tmp_path: Path, condition: str,
                                      status: int) -> None:
    done = runs(tmp_path, question=QUESTION, fail_if=condition)
    assert done.returncode == status, done.stdout + done.stderr
    assert condition in done.stdout
    assert (tmp_path / "first-flight/results/own/latest/trials.csv").is_file()


@pytest.mark.skipif(find_kernel("--mininet") is None, reason="./install.sh --with-mininet")
def test_a_command_runs_and_no_input_is_a_script(tmp_path: Path) -> None:
    done = runs(tmp_path, command='test "$(sleep 1000; echo "a  b")" = "a  b" && exit 7')
    assert done.returncode == 7, done.stdout + done.stderr
    assert runs(tmp_path, question="--rtt $(touch${IFS}made)").returncode == 2
    assert not (tmp_path / "made").exists()


def test_the_cache_is_of_these_kernels(tmp_path: Path) -> None:
    step, cache, _ = ACTION["runs"]["steps"]
    environment = {**os.environ, "GITHUB_ACTION_PATH": str(PROJECT), "HOME": str(tmp_path),
                   "GITHUB_ENV": str(tmp_path / "env"), "GITHUB_OUTPUT": str(tmp_path / "output")}
    subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                   check=True, env=environment)
    assert re.fullmatch(r"digest=[0-9a-f]{16}\n", (tmp_path / "output").read_text())
    assert (tmp_path / "env").read_text() == f"XDG_CACHE_HOME={tmp_path}/.cache\n"
    assert cache["with"]["key"].endswith(f"steps.{step['id']}.outputs.digest }}}}")


@pytest.mark.parametrize(("given", "said"), [
    ({}, "give one of"), ({"question": " \n "}, "give one of"), ({"command": "\t\n"}, "give one of"),
    ({"fail_if": "total_ms > 1"}, "fail-if is about what a question measures")])
def test_nothing_to_measure_is_told(tmp_path: Path, given: dict[str, str], said: str) -> None:
    done = runs(tmp_path, **given)
    assert done.returncode == 2 and done.stdout.startswith(f"::error::first-flight: {said}")
