"""install.sh and the kernel's build script print the right lines and status, without a build."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.conftest import PROJECT
from tests.programs.installing import GUEST, builders, changed, deaf, packed, run, stubs
from tests.running import run_program, wait_until


@pytest.fixture
def guest(tmp_path: Path) -> Path:
    """A copy of the kernel's recipe that a test may change."""
    shutil.copytree(PROJECT / "vtime", tmp_path / "project" / "vtime")
    return tmp_path / "project" / "vtime" / "kernel"


@pytest.fixture
def old_kernel(tmp_path: Path) -> Path:
    """A folder that looks like the source of a kernel that is too old."""
    tree = tmp_path / "linux-6.11"
    (tree / "arch" / "um").mkdir(parents=True)
    (tree / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 11\nSUBLEVEL = 9\n")
    return tree


def stored(cache: Path, source: str, origin: str = "linux-source-7.2 7.2.1-1") -> Path:
    """A folder like that of a kernel from a source with this digest, which runs do not use yet."""
    absent = Path(run(GUEST / "build.sh", "--path", cache=cache).stdout.strip()).parent
    folder = absent.with_name(f"{absent.name.partition('-')[0]}-{source[:16]}")
    fill(folder, source, origin)
    return folder


def fill(folder: Path, source: str, origin: str) -> None:
    """Fill a folder as a build would. source: the digest of its source; origin: its name."""
    folder.mkdir(parents=True)
    (folder / "linux").touch(mode=0o755)
    for name, text in (("version", "7.2.1"), ("source", origin), ("inputs", f"source {source}")):
        (folder / name).write_text(f"{text}\n")


def test_without_home_the_cache_is_in_the_home_of_passwd() -> None:
    """Python's Path.home(), by which others find the cache, does the same."""
    done = run_program([str(GUEST / "build.sh"), "--path"], env={})
    assert done.stdout.startswith(
        f"{pwd.getpwuid(os.geteuid()).pw_dir}/.cache/first-flight/kernel/"), done


def test_the_flag_path_prints_the_kernels_path_and_whether_it_exists(tmp_path: Path) -> None:
    absent = run(GUEST / "build.sh", "--path", cache=tmp_path)
    kernel = Path(absent.stdout.strip())
    assert (absent.returncode, absent.stderr) == (1, "")
    assert kernel.is_relative_to(tmp_path / "first-flight" / "kernel") and kernel.name == "linux"

    folder = stored(tmp_path, "ab" * 32)
    unchosen = run(GUEST / "build.sh", "--path", cache=tmp_path)
    assert unchosen.returncode == 1, "no link leads to this kernel"
    kernel.parent.symlink_to(folder.name)
    present = run(GUEST / "build.sh", "--path", cache=tmp_path)
    assert (present.returncode, present.stdout) == (0, f"{folder}/linux\n")
    built = run(GUEST / "build.sh", cache=tmp_path)
    assert (built.returncode, built.stdout) == (0, f"{folder}/linux\n"), "there is nothing to build"


@pytest.mark.parametrize("inputs", [True, False])
def test_a_kernel_of_an_earlier_version_is_kept_if_it_names_its_source(inputs: bool,
                                                                       tmp_path: Path) -> None:
    """Its folder had no digest in its name. A link of that name leads to the new folder."""
    kernel = Path(run(GUEST / "build.sh", "--path", cache=tmp_path).stdout.strip())
    fill(kernel.parent, "ab" * 32, "linux-source-7.2 7.2.1-1")
    if not inputs:
        (kernel.parent / "inputs").unlink()
    done = run(GUEST / "build.sh", "--path", cache=tmp_path)
    assert done.returncode == (not inputs)
    if inputs:
        assert done.stdout == f"{kernel.parent}-{'ab' * 8}/linux\n" and kernel.is_file()
    else:
        assert not kernel.exists()


def test_kernels_of_one_version_and_two_sources_are_kept_apart(old_kernel: Path,
                                                               tmp_path: Path) -> None:
    """There is no compiler here, so a kernel that is not in the cache cannot be built."""
    cache, source = tmp_path / "cache", {"FIRST_FLIGHT_KERNEL_SOURCE": str(old_kernel)}
    (old_kernel / "Makefile").write_text("VERSION = 7\nPATCHLEVEL = 2\nSUBLEVEL = 1\n")
    (old_kernel / "tcp.c").write_text("plain")
    broken = builders(tmp_path / "bin", gcc="exit 1")
    default = stored(cache, "ab" * 32)

    def built(**more: str) -> tuple[int, str]:
        done = run(GUEST / "build.sh", cache=cache, PATH=broken, **more)
        return done.returncode, done.stdout.strip()

    assert built(**source) == (4, "")
    digest = (cache / "first-flight" / "kernel" / "source-digest").read_text().split()[1]
    plain = stored(cache, digest, str(old_kernel))
    assert built(**source) == (0, f"{plain}/linux")
    assert run(GUEST / "build.sh", "--path", cache=cache).stdout == f"{plain}/linux\n"
    changed(old_kernel)
    assert built(**source) == (4, "")
    assert built() == (0, f"{plain}/linux"), "runs still use the kernel of the source as it was"
    assert built(FIRST_FLIGHT_KERNEL_SOURCE="default") == (0, f"{default}/linux")
    assert built() == (0, f"{default}/linux")


@pytest.mark.parametrize("name", ["kernel.config", "clock.sed", "clock.c", "vdso.c", "headers.h",
                                  "cc.sh", "tcp_mine.c"])
def test_a_change_of_any_ingredient_changes_the_kernels_path(guest: Path, tmp_path: Path,
                                                             name: str) -> None:
    before = run(guest / "build.sh", "--path", cache=tmp_path).stdout
    with (guest / name).open("a") as file:
        file.write("# changed\n")
    assert run(guest / "build.sh", "--path", cache=tmp_path).stdout != before


def test_exporting_a_kernel_that_is_not_built_is_refused(tmp_path: Path) -> None:
    absent = run(PROJECT / "install.sh", "--export-kernel", str(tmp_path / "file"), cache=tmp_path)
    assert absent.returncode == 1 and "no kernel of this configuration" in absent.stderr
    assert not (tmp_path / "file").exists()


@pytest.mark.parametrize("place", [0, 2])
def test_exporting_the_kernel_for_commands_does_not_export_the_one_for_trials(
        place: int, tmp_path: Path) -> None:
    """The flag for commands may stand before or behind the flag that exports."""
    words = ["--export-kernel", str(tmp_path / "file")]
    words.insert(place, "--with-mininet")
    absent = run(PROJECT / "install.sh", *words, cache=tmp_path)
    assert absent.returncode == 1 and "./install.sh --with-mininet builds it" in absent.stderr


@pytest.mark.parametrize(("changes", "why"), [
    ({"version": ".*\n"}, "its version is not one line"),
    ({"version": "7.2.1\n7.3.1\n"}, "its version is not"),
    ({"version": "7.2\n"}, "its version is not"),
    ({"origin": "a\x1b[2Jb\n"}, "its source is not one line"),
    ({"source": "../../x"}, "no source as a build writes it"),
    ({"source": "AB" * 32}, "no source as a build writes it")])
def test_an_imported_kernel_with_a_forged_version_or_source_is_refused(
        changes: dict[str, str], why: str, tmp_path: Path) -> None:
    """A version could be a pattern that any boot matches. The source becomes a folder's name."""
    folder = tmp_path / "taken"
    folder.mkdir()
    words = [sys.executable, GUEST / "exchange.py", "import",
             packed(tmp_path / "file", **changes), folder]
    done = run_program(words)
    assert done.returncode == 2 and why in done.stderr and not list(folder.iterdir())
    words[3] = packed(tmp_path / "sound")
    assert subprocess.run(words, check=False).returncode == 0
    assert (folder / "source").read_text() == "linux-source-7.2 7.2.1-1, imported\n"


@pytest.mark.parametrize(("file", "why"), [
    ("notes", "it is not a whole tar file"), ("cut", "it is not a whole tar file"),
    ("changed", "its linux is damaged"), ("absent", "No such file or directory"),
    (".", "it is no regular file")])
def test_a_file_that_is_not_a_kernel_is_refused(file: str, why: str, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    key = Path(run(GUEST / "build.sh", "--path", cache=cache).stdout).parent.name.partition("-")[0]
    compiler = run_program(["gcc", "--version"]).stdout
    sound = packed(tmp_path / "sound", configuration=key,
                   compiler=compiler.partition("\n")[0] or "gcc 12")
    (tmp_path / "notes").write_text("no tar")
    (tmp_path / "cut").write_bytes(sound.read_bytes()[:700])
    (tmp_path / "changed").write_bytes(sound.read_bytes().replace(b"#!/bin/sh", b"#!/bin/ls"))
    done = run(PROJECT / "install.sh", "--import-kernel", str(tmp_path / file), cache=cache)
    refusal = f"guest kernel: {(tmp_path / file).resolve()} is not taken: {why}"
    assert done.returncode == 2 and done.stderr.startswith(refusal), done.stderr
    assert done.stderr.count("\n") == 1
    assert run(GUEST / "build.sh", "--path", cache=cache).returncode == 1


def test_an_imported_kernel_is_refused_where_it_cannot_be_confined(tmp_path: Path) -> None:
    """The machine's kernel answers that it has no Landlock."""
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
    ("linux-6.11", "Linux 6.11.9; the guest needs 6.12 or newer"),
    ("linux-6.11.tar.gz", "Linux 6.11.9; the guest needs 6.12 or newer"),
])
def test_a_named_source_without_a_usable_kernel_is_refused_in_one_line(
        old_kernel: Path, tmp_path: Path, source: str, complaint: str) -> None:
    (tmp_path / "notes.txt").write_text("VERSION = 7\n")
    with tarfile.open(tmp_path / "linux-6.11.tar.gz", "w:gz") as archive:
        archive.add(old_kernel, old_kernel.name)
    for arguments, environment in ((["--source", str(tmp_path / source)], {}),
                                   ([], {"FIRST_FLIGHT_KERNEL_SOURCE": str(tmp_path / source)})):
        done = run(GUEST / "build.sh", *arguments, cache=tmp_path / "cache", **environment)
        assert (done.returncode, done.stdout) == (2, "")
        assert complaint in done.stderr and done.stderr.count("\n") == 1


def test_a_machine_of_another_architecture_is_refused_by_its_name(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "uname").write_text("#!/bin/sh\necho Linux riscv64\n")
    (programs / "uname").chmod(0o755)
    done = run(GUEST / "build.sh", cache=tmp_path, PATH=f"{programs}:{os.environ['PATH']}")
    assert done.returncode == 4 and "riscv64" in done.stderr


# Stubs of dpkg-query, sudo and apt-cache on a machine that has no package yet.
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
def test_a_failed_apt_is_reported_with_its_own_reason(tmp_path: Path, apt_get: str,
                                                      reason: str) -> None:
    path = stubs(tmp_path / "bin", apt_get=apt_get, **BARE)
    done = run(PROJECT / "install.sh", "--no-kernel", cache=tmp_path / "cache", PATH=path,
               TMPDIR=str(tmp_path))
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 4 and reason in last, done.stderr
    assert "run ./install.sh again" in last
    log = Path(last.rpartition("its log is ")[2].rstrip(")"))
    assert log.is_file() and log.stat().st_mode & 0o077 == 0


def test_a_package_that_is_not_offered_is_reported_with_the_failed_update(tmp_path: Path) -> None:
    path = stubs(tmp_path / "bin", **{**BARE, "apt_cache": "exit 0"},
                 apt_get='echo "E: Could not resolve a name"; exit 100')
    done = run(PROJECT / "install.sh", "--no-kernel", cache=tmp_path / "cache", PATH=path,
               TMPDIR=str(tmp_path))
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 4 and "no package source offers" in last
    assert "apt-get update failed: E: Could not resolve a name" in last


def test_a_machine_without_room_for_the_build_is_refused_with_what_it_needs(tmp_path: Path) -> None:
    full = builders(tmp_path / "full", df="echo Avail; echo 10")
    done = run(GUEST / "build.sh", cache=tmp_path / "cache", PATH=full)
    assert done.returncode == 4, done.stderr
    assert "10 MB free, the build needs 600" in done.stderr and "XDG_CACHE_HOME" in done.stderr
    few = builders(tmp_path / "few", df=(
        'case "$*" in *iavail*) echo IFree; echo 5;; *itotal*) echo Inodes; echo 100;;'
        " *) echo Avail; echo 9999;; esac"))
    done = run(GUEST / "build.sh", cache=tmp_path / "cache", PATH=few)
    assert done.returncode == 4
    assert "has room for 5 more files, the build needs 26000" in done.stderr
    assert not (tmp_path / "cache" / "first-flight" / "kernel" / ".build").exists()
    done = run(GUEST / "build.sh", cache=Path("/proc/none"), PATH=builders(tmp_path / "bin"))
    assert done.returncode == 4, done.stderr
    assert "cannot write to the cache" in done.stderr and "XDG_CACHE_HOME" in done.stderr


def test_a_disk_that_fills_up_while_building_is_reported(guest: Path, tmp_path: Path) -> None:
    """A stub of tar ends as tar does on a full disk."""
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
def test_a_script_prints_its_help_and_refuses_unknown_flags(script: Path, tmp_path: Path) -> None:
    helped = run(script, "--help", cache=tmp_path)
    assert helped.returncode == 0 and helped.stdout.startswith(f"usage: {script.name}")
    refused = run(script, "--nonsense", cache=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "") and "--nonsense" in refused.stderr


def test_check_reports_a_missing_kernel_and_installs_nothing(tmp_path: Path) -> None:
    done = run(PROJECT / "install.sh", "--check", cache=tmp_path)
    assert done.returncode == 1 and "missing: the guest kernel" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("flag", ["-h", "--help", "--list", "--probe", "--probe=http://192.0.2.7/"])
def test_a_machine_without_python_is_refused_with_what_installs_it(tmp_path: Path,
                                                                   flag: str) -> None:
    """The driver itself runs without a Python, as in a new Debian container."""
    driver = tmp_path / "run.sh"
    driver.write_text(
        (PROJECT / "run.sh").read_text().replace("=/usr/bin/python3\n", "=/none/python3\n"))
    driver.chmod(0o755)
    done = run(driver, flag, cache=tmp_path / "cache")
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == (f"run.sh: {flag.split('=', maxsplit=1)[0]} needs /none/python3, and"
                           " there is none; ./install.sh installs it\n")


@pytest.fixture
def driver(tmp_path: Path) -> Path:
    """The driver, with programs that note in the file `called` how they are called.

    "bad" is a wrong flag. The file `missing` has the status of install.sh --check.
    """
    shutil.copy(PROJECT / "run.sh", tmp_path)
    (tmp_path / "install.sh").write_text(f"""#!/bin/sh
cd {tmp_path}; echo "install $*" >>called
[ "$1" != --check ] || exit $(cat missing)
[ ! -e slow ] || {{
    trap "echo ended >>called; exit" TERM; echo >alive; while :; do sleep 0.1; done; }}
""")
    (tmp_path / "install.sh").chmod(0o755)
    (tmp_path / "experiment.py").write_text(f"""import sys
read = sys.argv[1:2] == ['--only-read-flags']
called = ('read' if read else 'measure') + ' ' + ' '.join(sys.argv[1 + read:])
open('{tmp_path}/called', 'a').write(called + chr(10))
sys.exit(2 if 'bad' in sys.argv else 0)
""")
    (tmp_path / "missing").write_text("1")
    return tmp_path / "run.sh"


@pytest.mark.parametrize(("flags", "missing", "status", "called"), [
    ("--rtt 5", 1, 0, "install --check|read --rtt 5|install |measure --rtt 5"),
    ("--rtt bad", 1, 2, "install --check|read --rtt bad"),
    ("--rtt 5", 0, 0, "install --check|measure --rtt 5"),
    ("--rtt bad", 0, 2, "install --check|measure --rtt bad"),
    ("--engine host", 1, 0,
     "install --check --no-kernel|read --engine host|install --no-kernel|measure --engine host"),
    ("--rtt 5", 4, 0,
     "install --check|install |measure --rtt 5"),  # a real install.sh says why, and ends with 4
    *((f"{flag} x", 1, 0, f"measure {flag} x")
      for flag in ("--version", "--new", "--check", "--dry-run"))])
def test_wrong_flags_are_refused_before_anything_is_installed(flags: str, missing: int, status: int,
                                                              called: str, driver: Path) -> None:
    (driver.parent / "missing").write_text(str(missing))
    done = run(driver, *flags.split(), cache=driver.parent / "cache")
    assert (done.returncode, done.stderr) == (status, "")
    assert (driver.parent / "called").read_text().splitlines() == called.split("|")


def test_without_python_it_alone_is_installed_before_the_flags_are_read(driver: Path) -> None:
    driver.write_text(
        driver.read_text().replace("=/usr/bin/python3\n", f"={driver.parent}/python3\n"))
    done = run(driver, "--rtt", "5", cache=driver.parent / "cache")
    assert done.returncode != 0, "this install.sh brings none"
    assert (driver.parent / "called").read_text().splitlines() == [
        "install --check", "install --only-python"]


def test_an_installation_ends_with_the_driver_that_began_it(driver: Path) -> None:
    home = driver.parent
    (home / "slow").touch()
    os.mkfifo(home / "alive")
    with subprocess.Popen([driver, "--rtt", "5"], start_new_session=True,
                          preexec_fn=deaf) as process:
        (home / "alive").read_text()  # until it installs
        process.kill()
    wait_until(lambda: "ended" in (home / "called").read_text(), "the end of the installation")


def test_an_installation_first_says_what_it_is_going_to_do(tmp_path: Path) -> None:
    """It says how long it takes and how much room, here on a machine with eight processors."""
    path = builders(tmp_path / "bin", **BARE, nproc="echo 8", uname="echo Linux x86_64",
                    apt_get="echo E: none; exit 100")
    for flags, words in (
            (["--no-kernel"], r"\d+ packages by apt \(a minute or two\);"),
            ([], r"\d+ packages by apt .*, and the guest kernel from source"
                 r" \(about 2 minutes, 600 MB")):
        done = run(PROJECT / "install.sh", *flags, cache=tmp_path / "cache", PATH=path,
                   TMPDIR=str(tmp_path))
        assert re.match(f"install: going to install {words}", done.stderr), done.stderr


@pytest.mark.parametrize("flag", ["--list", "--probe=http://192.0.2.7/"])
@pytest.mark.parametrize(("sudo", "cached"), [({}, "True"), ({"SUDO_UID": "1000"}, "False")])
def test_after_sudo_python_leaves_no_cache_in_the_users_folder(
        tmp_path: Path, flag: str, sudo: dict[str, str], cached: str) -> None:
    """The user could not remove a cache that root has made."""
    shutil.copy(PROJECT / "run.sh", tmp_path)
    (tmp_path / "experiment.py").write_text(
        "import os, sys\nprint(not sys.dont_write_bytecode, os.environ.get('MPLCONFIGDIR'))\n")
    environment = {"PYTHONDONTWRITEBYTECODE": "", **sudo}
    done = run(tmp_path / "run.sh", flag, cache=tmp_path / "cache", **environment)
    fonts = None if cached == "True" else f"{Path('~root').expanduser()}/.cache/matplotlib"
    assert (done.returncode, done.stdout) == (0, f"{cached} {fonts}\n")
