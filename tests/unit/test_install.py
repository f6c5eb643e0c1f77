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


@pytest.mark.parametrize("name", ["kernel.config", "clock.sed", "clock.c", "vdso.c", "headers.h", "cc.sh",
                                  "tcp_mine.c"])
def test_every_ingredient_changes_the_path(guest: Path, tmp_path: Path, name: str) -> None:
    before = run(guest / "build.sh", "--path", cache=tmp_path).stdout
    with (guest / name).open("a") as file:
        file.write("# changed\n")
    assert run(guest / "build.sh", "--path", cache=tmp_path).stdout != before


def test_install_exports_only_a_kernel_that_says_what_it_was_made_from(tmp_path: Path) -> None:
    absent = run(PROJECT / "install.sh", "--export-kernel", str(tmp_path / "file"), cache=tmp_path)
    assert absent.returncode == 1 and "no kernel of this configuration" in absent.stderr
    kernel = Path(run(GUEST / "build.sh", "--path", cache=tmp_path).stdout.strip())
    kernel.parent.mkdir(parents=True)
    kernel.touch(mode=0o755)
    old = run(PROJECT / "install.sh", "--export-kernel", str(tmp_path / "file"), cache=tmp_path)
    assert old.returncode == 1 and "build it with --force" in old.stderr
    assert not (tmp_path / "file").exists()


def test_a_file_that_is_no_kernel_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no tar")
    done = run(GUEST / "build.sh", "--import", str(tmp_path / "file"), cache=tmp_path / "cache")
    assert done.returncode != 0 and "is not taken: it is no whole tar file" in done.stderr
    assert run(GUEST / "build.sh", "--path", cache=tmp_path / "cache").returncode == 1


def test_a_kernel_from_elsewhere_is_not_taken_where_it_cannot_be_confined(tmp_path: Path) -> None:
    """A machine whose own kernel has no Landlock: it answers so, and nothing else of it changes."""
    old = stubs(tmp_path / "bin", python3='case "$*" in *confine.lacking*) exit 1;; esac\n'
                                          'exec /usr/bin/python3 "$@"')
    (tmp_path / "file").write_text("no tar")
    done = run(GUEST / "build.sh", "--import", str(tmp_path / "file"), cache=tmp_path / "cache",
               PATH=old)
    assert done.returncode == 4, done.stderr
    assert "runs only confined, and this machine has no Landlock" in done.stderr


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


def stubs(folder: Path, **scripts: str) -> str:
    """A PATH on which these programs come first; their text is that of shell scripts."""
    folder.mkdir()
    for name, text in scripts.items():
        (folder / name.replace("_", "-")).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name.replace("_", "-")).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def builders(folder: Path, **scripts: str) -> str:
    """The same, also where this machine has a kernel but not the programs that build one."""
    tools = ("gcc", "make", "flex", "bison", "bc", "ld", "xz")
    missing = {tool: "exit 0" for tool in tools if not shutil.which(tool)}
    return stubs(folder, **(missing | scripts))


# apt and what it is asked through, on a machine that has no package yet.
BARE = {"dpkg_query": 'case "$*" in *" python3") echo 3.11.2-1;; esac; exit 1',
        "sudo": '[ "$1" = -n ] || exec "$@"',
        "apt_cache": 'shift; for name; do echo "$name:"; echo "  Candidate: 1"; done'}


@pytest.mark.parametrize(("apt_get", "reason"), [
    ('echo "E: You don\'t have enough free space in /var/cache/apt/archives/."; exit 100',
     "apt-get install failed: E: You don't have enough free space in /var/cache/apt/archives/.;"),
    ('echo "dpkg: error processing package x"; echo "E: Sub-process returned 1"; exit 100',
     "apt-get install failed: dpkg: error processing package x;"),
    ('case "$*" in *update) echo "E: Could not reach it"; exit 1;; esac; echo "E: 404"; exit 100',
     "apt-get install failed: E: 404;"),
    ("echo you are not in the sudoers file; exit 1", "failed: you are not in the sudoers file;")])
def test_apts_own_reason_is_told(tmp_path: Path, apt_get: str, reason: str) -> None:
    path = stubs(tmp_path / "bin", apt_get=apt_get, **BARE)
    done = run(PROJECT / "install.sh", "--no-kernel", cache=tmp_path / "cache", PATH=path,
               TMPDIR=str(tmp_path))
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 4 and reason in last, done.stderr
    assert "run ./install.sh again" in last
    log = Path(last.rpartition("its log is ")[2].rstrip(")"))
    assert log.is_file() and log.stat().st_mode & 0o077 == 0


def test_a_package_that_no_source_offers_comes_with_why_the_lists_are_old(tmp_path: Path) -> None:
    path = stubs(tmp_path / "bin", **{**BARE, "apt_cache": "exit 0"},
                 apt_get='echo "E: Could not resolve a name"; exit 100')
    done = run(PROJECT / "install.sh", "--no-kernel", cache=tmp_path / "cache", PATH=path,
               TMPDIR=str(tmp_path))
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 4 and "no package source offers" in last
    assert "apt-get update failed: E: Could not resolve a name" in last


def test_a_machine_without_room_for_the_build_is_told_how_much_it_needs(tmp_path: Path) -> None:
    full = builders(tmp_path / "full", df="echo Avail; echo 10")
    done = run(GUEST / "build.sh", cache=tmp_path / "cache", PATH=full)
    assert done.returncode == 4, done.stderr
    assert "10 MB free, the build needs 600" in done.stderr and "XDG_CACHE_HOME" in done.stderr
    done = run(GUEST / "build.sh", cache=Path("/proc/none"), PATH=builders(tmp_path / "bin"))
    assert done.returncode == 4, done.stderr
    assert "cannot write to the cache" in done.stderr and "XDG_CACHE_HOME" in done.stderr


def test_a_disk_that_fills_up_while_building_is_told(guest: Path, tmp_path: Path) -> None:
    """tar, as it ends on a full disk."""
    source = tmp_path / "linux-7.2"
    (source / "arch" / "um").mkdir(parents=True)
    (source / "Makefile").write_text("VERSION = 7\nPATCHLEVEL = 2\nSUBLEVEL = 0\n")
    full = builders(tmp_path / "bin", tar='echo "tar: x: No space left on device" >&2; exit 2')
    done = run(guest / "build.sh", "--source", str(source), cache=tmp_path / "cache", PATH=full)
    assert done.returncode == 4, done.stderr
    assert "no space left" in done.stderr and "free 600 MB" in done.stderr


def test_without_a_compiler_the_kernel_cannot_be_built(tmp_path: Path) -> None:
    broken = builders(tmp_path / "bin", gcc="exit 1")
    done = run(GUEST / "build.sh", cache=tmp_path / "cache", PATH=broken)
    assert done.returncode == 4 and "./install.sh installs them" in done.stderr


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


@pytest.mark.parametrize("flag", ["-h", "--help", "--list", "--probe", "--probe=http://192.0.2.7/"])
def test_a_machine_without_python_is_told_what_brings_it(tmp_path: Path, flag: str) -> None:
    """As a new Debian container is: the driver itself, on a machine whose Python is elsewhere."""
    driver = tmp_path / "run.sh"
    driver.write_text((PROJECT / "run.sh").read_text().replace("=/usr/bin/python3\n", "=/none/python3\n"))
    driver.chmod(0o755)
    done = run(driver, flag, cache=tmp_path / "cache")
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == (f"run.sh: {flag.split('=', maxsplit=1)[0]} needs /none/python3, and there is none;"
                           " ./install.sh installs it\n")


@pytest.mark.parametrize("flag", ["--list", "--probe=http://192.0.2.7/"])
@pytest.mark.parametrize(("sudo", "cached"), [({}, "True"), ({"SUDO_UID": "1000"}, "False")])
def test_after_sudo_python_leaves_no_cache_in_the_users_folder(
        tmp_path: Path, flag: str, sudo: dict[str, str], cached: str) -> None:
    """The driver itself; a cache that root has made cannot be removed by the user."""
    shutil.copy(PROJECT / "run.sh", tmp_path)
    (tmp_path / "experiment.py").write_text("import sys\nprint(not sys.dont_write_bytecode)\n")
    environment = {"PYTHONDONTWRITEBYTECODE": "", **sudo}
    done = run(tmp_path / "run.sh", flag, cache=tmp_path / "cache", **environment)
    assert (done.returncode, done.stdout) == (0, f"{cached}\n")
