"""What every command does with what goes wrong."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from lab.core.command_line import run_main, write_crash
from lab.core.errors import FAILED


def failing(argv: Sequence[str]) -> int:
    raise ZeroDivisionError("a mistake")


def test_a_crash_is_written_for_its_user_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                              capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "argv", ["plot.py"])
    before = os.umask(0)
    try:
        for _ in range(2):
            with pytest.raises(SystemExit) as ended:
                run_main("plot.py", failing)
            assert ended.value.code == FAILED
    finally:
        os.umask(before)
    said = capsys.readouterr().err.splitlines()
    crashes = sorted((tmp_path / "cache" / "first-flight").iterdir())
    assert len(said) == len(crashes) == 2 and {str(path) for path in crashes} == {
        line.split(" with ")[1] for line in said}
    for path in crashes:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600 and str(os.getpid()) not in path.name
        assert "ZeroDivisionError: a mistake" in path.read_text()


def test_where_the_cache_cannot_be_written_it_is_a_folder_of_its_own(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = write_crash("a crash \udc80")
    assert path.read_text() == "a crash \\udc80" and path.parent.parent == tmp_path
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
