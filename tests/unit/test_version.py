"""One version: on every command line, and in the files that name it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import experiment
import plot
from docs import update
from firstflight.base import __version__

PROJECT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.parametrize("program", [experiment, plot, update],
                         ids=lambda module: module.__name__)
def test_every_command_says_it(program: object, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        program.main(["--version"])  # type: ignore[attr-defined]
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"First Flight {__version__}\n"


@pytest.mark.parametrize(("file", "line"), [("CITATION.cff", r"^version: (.*)$"),
                                            ("CHANGELOG.md", r"^## ([\d.]+), "),
                                            ("pyproject.toml", r"^version = \"(.*)\"$")])
def test_the_files_that_name_it_agree(file: str, line: str) -> None:
    found = re.search(line, (PROJECT / file).read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None and found[1] == __version__
