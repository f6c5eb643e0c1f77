"""install.sh and the kernel's build script: what they say and how they end, without building."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
GUEST = PROJECT / "engines" / "guest"


def run(script: Path, *arguments: str, cache: Path,
        **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script with an empty cache of its own, as a user without sudo's variables would."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("SUDO_", "FIRST_FLIGHT_"))}
    return subprocess.run([str(script), *arguments], capture_output=True, text=True, check=False,
                          timeout=60, env={**kept, "XDG_CACHE_HOME": str(cache), **environment})


@pytest.fixture
def guest(tmp_path: Path) -> Path:
    """A copy of the kernel's recipe that a test may change."""
    return Path(shutil.copytree(GUEST, tmp_path / "guest"))


@pytest.fixture
def old_kernel(tmp_path: Path) -> Path:
    """What looks like the source of a kernel that is too old."""
    tree = tmp_path / "linux-6.12"
    (tree / "arch" / "um").mkdir(parents=True)
    (tree / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 9\n")
    return tree


def test_path_names_the_cache_and_says_whether_the_kernel_is_there(tmp_path: Path) -> None:
    absent = run(GUEST / "build.sh", "--path", cache=tmp_path)
    kernel = Path(absent.stdout.strip())
    assert (absent.returncode, absent.stderr) == (1, "")
    assert kernel.is_relative_to(tmp_path / "first-flight" / "kernel") and kernel.name == "linux"

    kernel.parent.mkdir(parents=True)
    kernel.touch(mode=0o755)
    present = run(GUEST / "build.sh", "--path", cache=tmp_path)
    assert (present.returncode, present.stdout) == (0, f"{kernel}\n")
    built = run(GUEST / "build.sh", cache=tmp_path)
    assert (built.returncode, built.stdout) == (0, f"{kernel}\n"), "it is there: nothing to build"


@pytest.mark.parametrize("name", ["kernel.config", "clock.sed", "tcp_mine.c"])
def test_every_ingredient_changes_the_path(guest: Path, tmp_path: Path, name: str) -> None:
    before = run(guest / "build.sh", "--path", cache=tmp_path).stdout
    with (guest / name).open("a") as file:
        file.write("# changed\n")
    assert run(guest / "build.sh", "--path", cache=tmp_path).stdout != before


def test_no_absolute_path_of_the_project_is_in_the_key(guest: Path, tmp_path: Path) -> None:
    assert (run(guest / "build.sh", "--path", cache=tmp_path).stdout
            == run(GUEST / "build.sh", "--path", cache=tmp_path).stdout)


@pytest.mark.parametrize(("source", "complaint"), [
    ("nowhere", "there is no"),
    (".", "it has no arch/um"),
    ("notes.txt", "holds no kernel source"),
    ("linux-6.12", "Linux 6.12.9; the guest needs 6.13 or newer"),
    ("linux-6.12.tar.gz", "Linux 6.12.9; the guest needs 6.13 or newer"),
])
def test_a_named_source_that_will_not_do_is_refused_at_once(
        old_kernel: Path, tmp_path: Path, source: str, complaint: str) -> None:
    (tmp_path / "notes.txt").write_text("VERSION = 7\n")
    with tarfile.open(tmp_path / "linux-6.12.tar.gz", "w:gz") as archive:
        archive.add(old_kernel, old_kernel.name)
    for arguments, environment in ((["--source", str(tmp_path / source)], {}),
                                   ([], {"FIRST_FLIGHT_KERNEL_SOURCE": str(tmp_path / source)})):
        done = run(GUEST / "build.sh", *arguments, cache=tmp_path / "cache", **environment)
        assert (done.returncode, done.stdout) == (2, "")
        assert complaint in done.stderr and done.stderr.count("\n") == 1


def test_another_kind_of_machine_is_told_so(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "uname").write_text("#!/bin/sh\necho Linux riscv64\n")
    (programs / "uname").chmod(0o755)
    done = run(GUEST / "build.sh", cache=tmp_path, PATH=f"{programs}:{os.environ['PATH']}")
    assert done.returncode == 4 and "riscv64" in done.stderr


@pytest.mark.parametrize("script", [PROJECT / "install.sh", GUEST / "build.sh"])
def test_help_and_usage_errors(script: Path, tmp_path: Path) -> None:
    helped = run(script, "--help", cache=tmp_path)
    assert helped.returncode == 0 and helped.stdout.startswith(f"usage: {script.name}")
    refused = run(script, "--nonsense", cache=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "") and "--nonsense" in refused.stderr


def test_check_reports_a_missing_kernel_and_installs_nothing(tmp_path: Path) -> None:
    done = run(PROJECT / "install.sh", "--check", cache=tmp_path)
    assert done.returncode == 1 and "missing: the guest kernel" in done.stderr
    assert not list(tmp_path.iterdir())
