"""Changes of the code that tests have to notice: what is told of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.faults import mutants
from lab.core.errors import CannotError

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
