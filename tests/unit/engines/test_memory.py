"""How many guests a machine has memory for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vtime.console import EngineCannot
from vtime.uml import MEMORY_MB, guests


def meminfo(folder: Path, available_mb: int) -> Path:
    path = folder / "meminfo"
    path.write_text(f"MemTotal: 999999999 kB\nMemAvailable:   {available_mb * 1024} kB\n")
    return path


def test_more_guests_than_memory_are_refused_with_the_most_that_fit(tmp_path: Path) -> None:
    path = meminfo(tmp_path, 3 * MEMORY_MB + 1)
    assert guests(3, path) == 3
    with pytest.raises(EngineCannot, match=f"--jobs 4: .* {4 * MEMORY_MB} MB, and"
                       f" {3 * MEMORY_MB + 1} MB are available; at most --jobs 3"):
        guests(4, path)


def test_by_default_one_a_core_as_far_as_memory_goes(tmp_path: Path) -> None:
    assert guests(None, meminfo(tmp_path, 10**6)) == os.cpu_count()
    assert guests(None, meminfo(tmp_path, 5)) == 1 == guests(1, meminfo(tmp_path, 5))
    assert guests(None, tmp_path / "none") == os.cpu_count() and guests(9, tmp_path / "none") == 9
