"""Uses from outside: comparison with a stock kernel, vtime as a library, and action.yml.

Other programs that tests need may be missing: ./test.sh installs none of them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest

import vtime
from tests.conftest import PROJECT
from tests.programs.action import measured, outputs
from tests.running import run_program
from vtime.uml import find_kernel


@pytest.mark.skipif(shutil.which("qemu-system-x86_64") is None,
                    reason="no QEMU: apt-get install qemu-system-x86")
def test_a_stock_kernel_has_the_same_windows_and_flights(kernel: Path) -> None:
    said = run("benchmarks/outside/stock_kernel.sh", "--rtt", "20", "--bw", "56,1000",
               "--iw", "3,10")
    *rows, count = said.splitlines()[2:]
    assert len(rows) == 4 and count.startswith("4 of 4 cells")
    for row in rows:  # at 56 kbit/s one foreign packet on the link would take 10 ms
        more_ms = float(row.split("│")[5].split()[2])
        assert abs(more_ms) < 5, row


def run(*command: str) -> str:
    """The standard output of a command, which has to end with status 0."""
    done = run_program(command)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    return done.stdout


# vtime as a library -------------------------------------------------------------------

@pytest.fixture(params=["the project's folder", "an installed package"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The folder where Python finds vtime.

    A package is built from a copy, since building leaves folders behind.
    """
    if request.param == "the project's folder":
        return PROJECT
    pytest.importorskip("setuptools", reason="no setuptools to install with")
    source, target = tmp_path / "source", tmp_path / "installed"
    for name in ("firstflight", "vtime"):
        shutil.copytree(PROJECT / name, source / name,
                        ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(PROJECT / name, source)
    done = run_program(
        ["/usr/bin/python3", "-m", "pip", "install", "--quiet", "--no-deps", "--no-index",
         "--no-build-isolation", "--target", str(target), str(source)])
    if "No module named pip" in done.stderr:
        pytest.skip("no pip to install with")
    assert done.returncode == 0, done.stderr
    shutil.rmtree(source)
    return target


def test_the_readmes_example_prints_two_times_an_hour_apart(place: Path, tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", (PROJECT / "vtime/README.md").read_text(),
                            re.DOTALL)
    done = run_program(["/usr/bin/python3", "-c", example], cwd=tmp_path,
                       env={**os.environ, "PYTHONPATH": str(place)})
    assert done.returncode == 0, done.stderr
    first, second, numbers, answer = filter(None, done.stdout.splitlines())
    assert "00:00:00" in first and "01:00:00" in second and answer == "done"
    clock_s, wall_s, status = re.findall(r"[\d.]+", numbers)
    assert 3600 <= float(clock_s) <= 3601 and float(wall_s) < 60 and status == "0"


def test_a_command_of_the_library_has_its_limits_status_and_excluded_files(tmp_path: Path) -> None:
    into, folder = tmp_path / "kept", tmp_path / "work"
    into.mkdir()
    folder.mkdir()
    ended = vtime.run(vtime.CommandRequest(
        ["sh", "-c", "echo a > a; echo b > b; echo $SAID >&2; sleep 9999"], folder,
        environment={"SAID": "words"}, clock_limit_s=100, most_files=1), into)
    assert ended.status == 124 and ended.clock_s >= 100 and not ended.is_whole
    assert ended.output.read_text().endswith(" err words\n")
    assert [path.name for path in ended.files.iterdir()] == ["a"] and ended.file_count == 1
    assert any(line.startswith("b: ") for line in ended.troubles) and ended.capture is None
    assert not list(folder.iterdir())


# action.yml ---------------------------------------------------------------------------

QUESTION = "--rtt 50ms\n--bw 10M\n\n--iw 3,10 --quiet --no-reasons\n"  # several lines of YAML


@pytest.mark.parametrize(("condition", "status"), [
    ("total_ms(3) - total_ms(10) < 1", 0), ("total_ms(10) > 1", 5)])
def test_a_questions_condition_decides_the_actions_status(kernel: Path, tmp_path: Path,
                                                          condition: str, status: int) -> None:
    done = measured(tmp_path, question=QUESTION, fail_if=condition)
    assert done.returncode == status, done.stdout + done.stderr
    assert condition in done.stdout
    found = outputs(tmp_path)
    assert found["status"] == str(status) and (tmp_path / found["report"]).is_file()
    assert found["answer"] in (tmp_path / "summary.md").read_text().replace("\n    ", " ")
    assert json.loads((tmp_path / found["findings"] / "own.json").read_text())["trials"] == 2
    assert (tmp_path / "first-flight/results/own/latest/trials.csv").is_file()


@pytest.mark.skipif(find_kernel("--mininet") is None, reason="./install.sh --with-mininet")
def test_the_actions_command_is_run_by_a_shell_in_the_guest(tmp_path: Path) -> None:
    done = measured(tmp_path, command='test "$(sleep 1000; echo "a  b")" = "a  b" && exit 7')
    assert done.returncode == 7, done.stdout + done.stderr
