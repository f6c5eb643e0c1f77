"""./test.sh runs tests without guests while it builds missing kernels, and ends with its status.

What pyflakes found nothing in is not checked again.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests import flakes
from tests.conftest import PROJECT
from tests.programs.installing import stubs
from tests.running import run_program

# In the place of install.sh: --check has the status of what exists. A build waits until a fast test
# has run.
INSTALL = """#!/bin/bash
echo "$*" >>asked
case " $* " in
*" --check "*) [[ -e kernels && ( " $* " != *" --with-pq "* || -e newer ) ]] ;;
*" --no-kernel "*) ;;
*)  until [[ -e fast ]]; do sleep 0.05; done
    echo "progress" >&2
    BUILD ;;
esac
"""
FAST = """
from pathlib import Path
def test_fast():
    assert not Path("kernels").exists()
    Path("fast").touch()
"""
LIVE = """
from pathlib import Path
KERNELS = Path("kernels").exists()
def test_live():
    assert KERNELS
    Path("live").touch()
"""
BUILT, NOT_BUILT = "touch kernels newer", "echo 'install: no guest kernel' >&2; exit 4"


@pytest.fixture(name="place")
def _place(tmp_path: Path) -> Path:
    """A project with a fast and a live test. mypy, pyflakes and shellcheck do nothing in it."""
    place = tmp_path / "place"
    for room, text in (("unit", FAST), ("golden", ""), ("programs", ""), ("live", LIVE)):
        (place / "tests" / room).mkdir(parents=True)
        (place / "tests" / room / f"test_{room}.py").write_text(text)
    shutil.copy(PROJECT / "test.sh", place)
    stubs(place / "bin", nproc="echo 0", shellcheck=":")
    for module in ("mypy", "tests/flakes"):
        (place / f"{module}.py").touch()
    return place


def run_tests(place: Path, build: str, *words: str) -> tuple[int, str]:
    """The status of ./test.sh and its standard error. build: commands that build the kernels."""
    (place / "install.sh").write_text(INSTALL.replace("BUILD", build))
    (place / "install.sh").chmod(0o755)
    done = run_program([place / "test.sh", *words],
                       env={**os.environ, "PATH": f"{place / 'bin'}:{os.environ['PATH']}"})
    return done.returncode, done.stderr


def test_tests_without_guests_run_during_the_build(place: Path) -> None:
    status, said = run_tests(place, BUILT)
    assert status == 0 and (place / "live").exists(), said
    assert "== pytest tests/live" in said and "progress" not in said.splitlines()[-1]


def test_without_missing_kernels_all_tests_run_together(place: Path) -> None:
    for name in ("kernels", "newer"):
        (place / name).touch()
    (place / "tests" / "unit" / "test_unit.py").write_text(FAST.replace("not ", ""))
    (place / "fast").touch()
    status, said = run_tests(place, BUILT, "--with-pq")
    assert status == 0 and (place / "live").exists() and "tests/live" not in said, said


def test_a_failed_build_is_the_last_line_and_its_status(place: Path) -> None:
    status, said = run_tests(place, NOT_BUILT)
    assert status == 4 and said.splitlines()[-1] == "install: no guest kernel", said
    assert (place / "fast").exists() and not (place / "live").exists()


@pytest.mark.parametrize(("flag", "status"), [("--with-pq", 1), ("--try-pq", 0)])
def test_programs_that_are_only_tried_may_be_missing_and_kernels_may_not(place: Path, flag: str,
                                                                         status: int) -> None:
    """The programs that are only tried are Debian 13's, for post-quantum algorithms."""
    assert run_tests(place, "touch kernels; exit 1", flag)[0] == status
    assert (place / "live").exists() == (not status)
    assert "--test --with-pq" in (place / "asked").read_text().splitlines()
    for name in ("kernels", "fast"):
        (place / name).unlink()
    assert run_tests(place, NOT_BUILT, flag)[0] == 4


def test_pyflakes_checks_what_has_changed_and_what_was_wrong(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong, right, known = tmp_path / "wrong.py", tmp_path / "right.py", tmp_path / "cache" / "known"
    wrong.write_text("import os\n")
    right.write_text("import os\nos.getpid()\n")
    for _ in range(2):
        assert flakes.main([str(known), str(tmp_path)]) == 1
        assert "wrong.py:1" in capsys.readouterr().out
    assert len(known.read_text().split()) == 1
    wrong.write_text("")
    assert flakes.main([str(known), str(tmp_path)]) == 0
    assert len(known.read_text().split()) == 2
    right.write_text("import os\n")
    assert flakes.main([str(known), str(tmp_path)]) == 1
