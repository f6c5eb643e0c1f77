"""docs/completion.bash completes what run.sh takes today."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from firstflight.findings.quantities import FLAGS
from firstflight.runs import scenario_file

PROJECT = Path(__file__).resolve().parent.parent.parent


def completed(word: str, before: str = "./run.sh") -> set[str]:
    script = ('source docs/completion.bash; _first_flight ./run.sh "$1" "$2";'
              ' printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-c", script, "bash", word, before], cwd=PROJECT, text=True,
                          stdout=subprocess.PIPE, check=True)
    return set(done.stdout.split())


def test_flags_are_those_of_help() -> None:
    found = completed("--")
    assert {quantity.flag for quantity in FLAGS.values()} <= found
    assert {"--users", "--compare", "--dry-run", "--version"} <= found
    assert completed("--dry") == {"--dry-run"}


def test_scenarios() -> None:
    assert completed("") == set(scenario_file.names())
    assert completed("zhao", "--scenario") == {"zhao2019", "zhao2019_as_published"}


@pytest.mark.parametrize(("flag", "word", "found"), [
    ("--engine", "u", {"uml"}), ("--client", "w", {"wget"}), ("--results", "REA", {"README.md"})])
def test_values(flag: str, word: str, found: set[str]) -> None:
    assert completed(word, flag) == found
