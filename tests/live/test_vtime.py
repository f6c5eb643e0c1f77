"""vtime as a library: its README's example runs as it is written, and a result says what was."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import vtime
from tests.conftest import PROJECT


@pytest.fixture(params=["the project's folder", "an installed package"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Where Python finds vtime. A package is built from a copy: building leaves folders behind."""
    if request.param == "the project's folder":
        return PROJECT
    pytest.importorskip("setuptools", reason="no setuptools to install with")
    source, target = tmp_path / "source", tmp_path / "installed"
    for name in ("firstflight", "vtime"):
        shutil.copytree(PROJECT / name, source / name,
                        ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(PROJECT / name, source)
    done = subprocess.run(
        ["/usr/bin/python3", "-m", "pip", "install", "--quiet", "--no-deps", "--no-index",
         "--no-build-isolation", "--target", str(target), str(source)],
        capture_output=True, text=True, check=False, timeout=300)
    if "No module named pip" in done.stderr:
        pytest.skip("no pip to install with")
    assert done.returncode == 0, done.stderr
    shutil.rmtree(source)
    return target


def test_the_example_of_the_readme(place: Path, tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", (PROJECT / "vtime/README.md").read_text(),
                            re.DOTALL)
    done = subprocess.run(["/usr/bin/python3", "-c", example], cwd=tmp_path, check=False,
                          env={**os.environ, "PYTHONPATH": str(place)}, capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr
    first, second, told, answer = filter(None, done.stdout.splitlines())
    assert "00:00:00" in first and "01:00:00" in second and answer == "done"
    clock_s, wall_s, status = re.findall(r"[\d.]+", told)
    assert 3600 <= float(clock_s) <= 3601 and float(wall_s) < 60 and status == "0"


def test_limits_status_and_what_is_left_out(tmp_path: Path) -> None:
    into, folder = tmp_path / "kept", tmp_path / "work"
    into.mkdir()
    folder.mkdir()
    ended = vtime.run(["sh", "-c", "echo a > a; echo b > b; echo $SAID >&2; sleep 9999"], folder,
                      into, environment={"SAID": "words"}, clock_limit_s=100, most_files=1)
    assert ended.status == 124 and ended.clock_s >= 100 and not ended.is_whole
    assert ended.output.read_text().endswith(" err words\n")
    assert [path.name for path in ended.files.iterdir()] == ["a"] and ended.file_count == 1
    assert any(line.startswith("b: ") for line in ended.troubles) and ended.capture is None
    assert not list(folder.iterdir())
