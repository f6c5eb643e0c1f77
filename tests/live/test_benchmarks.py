"""The benchmarks run: nothing is said of how fast anything is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks import processor
from benchmarks.faults import mutants
from tests.live.conftest import PROJECT


def test_the_table_of_performance_has_its_rows(kernel: Path) -> None:
    done = subprocess.run(["/usr/bin/python3", "-m", "benchmarks.speed.performance", "--quick"],
                          cwd=PROJECT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for row in ("zhao2019, whole command", "one bucket, whole command", "two guests against one",
                "memory while ten times as many", "20 stored trials: memory", "resume, analyse, draw"):
        assert row in done.stdout
    assert "ratio" in done.stdout and "∝ N^" in done.stdout
    with processor.group() as group:
        if group is None:
            assert "parts: not measured: no control group" in done.stdout
            return
    # A guest's parts are some hundredths of a second long. The sampler may wait longer for a
    # processor, so that no single part is sure to be met, but of a whole guest one is.
    table = done.stdout[done.stdout.index("processor time by part"):]
    for part in ("check", "start", "all"):
        assert f"\n  {part} " in table
    assert any(f"\n  {part} " in table for part in (
        "boot", "network", "shape", "server", "client", "packets", "worker"))


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


@pytest.mark.skipif(not mutants.VENV.exists(), reason=mutants.COMMAND)
def test_survivors_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                            capsys: pytest.CaptureFixture[str]) -> None:
    tree = tmp_path / "tree"
    for name, content in (("tests/unit/test_sums.py", TESTS), ("tests/golden/kept", ""),
                          ("tests/programs/kept", ""),
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
