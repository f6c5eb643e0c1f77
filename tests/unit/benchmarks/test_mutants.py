"""Changes of the code that tests have to notice: what is told of them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks.faults import mutants
from lab.core.errors import CannotError

SUMS = """LIMIT = 3
def limited(a):
    return a if a <= LIMIT else LIMIT
def unused():
    return 1
"""
TESTS = """from lab.sums import limited
def test_limited():
    assert (limited(2), limited(5)) == (2, 3)
"""


def test_the_score_is_told_by_file_and_folder() -> None:
    lines = mutants.table([("lab/core/stats.py", True), ("lab/core/stats.py", False),
                           ("lab/registry.py", True), ("report.py", True)]).splitlines()
    assert [line.split() for line in lines] == [
        ["lab/", "2", "3", "67%"], ["lab/core/", "1", "2", "50%"],
        ["lab/core/stats.py", "1", "2", "50%"], ["lab/registry.py", "1", "1", "100%"],
        ["report.py", "1", "1", "100%"], ["all", "3", "4", "75%"]]


def test_without_mutmut_it_says_how_to_install_it(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutants, "VENV", tmp_path)
    with pytest.raises(CannotError, match="no mutmut: .* -m venv .*/pip install mutmut"):
        mutants.main([])


@pytest.mark.skipif(not mutants.VENV.exists(), reason=mutants.COMMAND)
def test_survivors_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                            capsys: pytest.CaptureFixture[str]) -> None:
    tree = tmp_path / "tree"
    for name, content in (("tests/unit/test_sums.py", TESTS), ("tests/golden/kept", ""),
                          ("lab/sums.py", SUMS), ("lab/__init__.py", "")):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(content)
    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    monkeypatch.setattr(mutants, "PROJECT", tree)
    monkeypatch.setattr(mutants, "SOURCES", ("lab",))
    assert mutants.main(["--jobs", "1"]) == 0
    told = capsys.readouterr().out
    assert told.count("survived:") == 1 and told.count("no test:") == 1
    assert "-    return a if a <= LIMIT else LIMIT\n+    return a if a < LIMIT else" in told
    assert told.splitlines()[-1].split() == ["all", "2", "4", "50%"]
