"""Runs the steps of action.yml under bash, as GitHub's runner does."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.running import PROJECT, run_program

yaml = pytest.importorskip("yaml")
ACTION = yaml.safe_load((PROJECT / "action.yml").read_text())


def step(name: str) -> Any:
    """The step of the action that has this name."""
    (found,) = [known for known in ACTION["runs"]["steps"] if known.get("name") == name]
    return found


def measured(workspace: Path, **given: str) -> subprocess.CompletedProcess[str]:
    """Run the step that measures. given: its inputs; the others have their defaults."""
    inputs = {name: given.pop(name.replace("-", "_"), declared["default"])
              for name, declared in ACTION["inputs"].items()}
    assert not given, "the action has no such input"
    measuring = step("Measure")
    values = {name: inputs[value.removeprefix("${{ inputs.").removesuffix(" }}")]
              for name, value in measuring["env"].items()}
    assert measuring["shell"] == "bash" and "${{" not in measuring["run"]
    return run_program(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", measuring["run"]],
        cwd=workspace, env={**os.environ, **values, "GITHUB_ACTION_PATH": str(PROJECT),
                            "GITHUB_OUTPUT": str(workspace / "output"),
                            "GITHUB_STEP_SUMMARY": str(workspace / "summary.md")})


def outputs(workspace: Path) -> dict[str, str]:
    """The outputs of the step that measures, by name."""
    lines = (workspace / "output").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines)
