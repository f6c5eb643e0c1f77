"""A build of the guest kernel that is interrupted is continued, or started again.

A stub of make compiles nothing, so that a build takes a second.
"""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import PROJECT
from tests.programs.installing import builders, changed, deaf, packed
from tests.running import HANGS_S, run_program, wait_until

# The stub of make. It logs its target and makes it. It runs behind the wall, so files that it reads
# are in the same folder, `bin`:
#   hang: while it exists, make waits with a child, as it waits for gcc; the child keeps the FIFO
# open
#     that this file names.
#   names.sed: the names that this Linux has for options of other names.
#   compiles: how many objects are compiled. broken: the linker fails with objects of an old build.
MAKE = """for word; do
    case $word in O=*) objects=${word#O=} ;; KCONFIG_ALLCONFIG=*) wanted=${word#*=} ;; esac
    last=$word
done
bin=${0%/*}
echo "asked: $last"
case $last in
allnoconfig)
    { grep ^CONFIG_ $wanted; echo CONFIG_HZ=1000; } >$objects/.config
    [ ! -e $bin/names.sed ] || sed -i -f $bin/names.sed $objects/.config ;;
linux)
    for number in $(seq "$(cat $bin/compiles 2>/dev/null || echo 0)"); do
        echo "  CC      $number.o"
    done
    if [ -e $bin/hang ]; then
        alive=$objects/$(cat $bin/hang)
        mkfifo $alive
        sh -c "trap '' TERM; exec 5>$alive; sleep 1000; :"; exit 1
    fi
    if [ -e $bin/broken ] && [ -e $objects/old ]; then
        echo "x.o: error: not recognized" >&2; exit 2
    fi
    printf '#!/bin/sh\\necho trial: Linux 7.2.1 slept 100 s\\n' >$objects/linux
    chmod +x $objects/linux ;;
*) exit 1 ;;
esac"""
# The files of a source of Linux 7.2.1 that the build needs.
TINY = {"Makefile": "VERSION = 7\nPATCHLEVEL = 2\nSUBLEVEL = 1\n", "arch/um/Kconfig": "",
        "net/sched/sch_netem.c": "", "net/ipv4/Makefile": "", "fs/hostfs/hostfs_kern.c": "",
        "tcp.c": "plain",
        "arch/um/os-Linux/skas/process.c": "", "arch/um/os-Linux/mem.c": ""}

TAR = shutil.which("tar")


class Building:
    """A machine on which a kernel is built in a second."""

    def __init__(self, home: Path) -> None:
        self.home, self.cache, self.guest = home, home / "cache", home / "tree" / "vtime" / "kernel"
        self.bin = home / "bin"
        self.asked: list[str] = []
        self.root, self.source = self.cache / "first-flight" / "kernel", home / "linux-7.2.1"
        for name, text in TINY.items():
            (self.source / name).parent.mkdir(parents=True, exist_ok=True)
            (self.source / name).write_text(text)
        path = builders(self.bin, make=MAKE,
                        # Unpacks all of an archive: this source lacks most folders of a kernel's.
                        tar=f'[ "$1" != -xf ] || exec {TAR} -xf - -C "$4" --strip-components=1\n'
                            f'exec {TAR} "$@"',
                        dpkg_query='case "$*" in *" python3") echo 3.11.2-1; exit;; esac\n'
                                   'shift 3; for name; do echo "ii  $name"; done')
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SUDO_")}
        self.environment = {**kept, "XDG_CACHE_HOME": str(self.cache), "PATH": path,
                            "FIRST_FLIGHT_KERNEL_SOURCE": str(self.source)}

    def built(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        """Run build.sh to its end."""
        (self.bin / "hang").unlink(missing_ok=True)
        self._forget_logs()
        done = run_program([self.guest / "build.sh", *words], env=self.environment)
        self._read_logs()
        return done

    def made(self, target: str) -> int:
        """How often all builds together have called make for a target."""
        return self.asked.count(target)

    def _forget_logs(self) -> None:
        for log in self.root.glob("*.log"):
            log.unlink()

    def _read_logs(self) -> None:
        for log in self.root.glob("*.log"):
            self.asked += [line.removeprefix("asked: ") for line in log.read_text().splitlines()
                           if line.startswith("asked: ")]

    def compiling(self, script: str,
                  caller: Callable[[], None] | None) -> tuple[subprocess.Popen[str], int]:
        """A build that is compiling, and a FIFO that one of its compilers keeps open.

        caller: is called in the new process before the script, None for nothing.
        """
        name = f"alive-{len(self.asked)}"
        (self.bin / "hang").write_text(name)
        self._forget_logs()
        process = subprocess.Popen([self.home / "tree" / script], env=self.environment, text=True,
                                   start_new_session=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, preexec_fn=caller)

        def is_running() -> None:
            assert process.poll() is None, process.communicate()

        def compiles() -> bool:
            is_running()
            return pipe.exists()
        pipe = self.root / ".build" / "built" / "objects" / name
        wait_until(compiles, "the compiler")
        alive = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

        def has_opened() -> bool:
            is_running()
            return has_writer(alive)
        wait_until(has_opened, "the compiler")
        return process, alive

    def struck(self, script: str, way: signal.Signals,
               caller: Callable[[], None] | None = None) -> tuple[int, str]:
        """Send a compiling build a signal; return its status and standard error.

        Asserts that no compiler is left.
        """
        process, alive = self.compiling(script, caller)
        process.send_signal(way)
        _, printed = process.communicate(timeout=HANGS_S)
        os.set_blocking(alive, True)
        assert select.select([alive], [], [], HANGS_S)[0], "a compiler is left"
        os.close(alive)
        self._read_logs()
        return process.returncode, printed


def has_writer(fifo: int) -> bool:
    """Whether a process has a FIFO open for writing: a read would block then, not be at its end."""
    try:
        return os.read(fifo, 1) != b""
    except BlockingIOError:
        return True


@pytest.fixture
def building(tmp_path: Path) -> Building:
    """A machine with a copy of the project, which also has the parts that try a new kernel."""
    for name in ("firstflight/base", "vtime"):
        shutil.copytree(PROJECT / name, tmp_path / "tree" / name)
    shutil.copy(PROJECT / "firstflight" / "__init__.py", tmp_path / "tree" / "firstflight")
    shutil.copy(PROJECT / "install.sh", tmp_path / "tree")
    return Building(tmp_path)


def test_a_built_kernels_folder_has_the_digest_of_its_source(building: Building) -> None:
    done = building.built()
    assert done.returncode == 0, done.stderr
    kernel = Path(done.stdout.strip())
    inputs = dict(line.split(" ", 1)
                  for line in (kernel.parent / "inputs").read_text().splitlines())
    assert kernel.parent.name == f"{inputs['configuration']}-{inputs['source'][:16]}"
    key = inputs["configuration"]
    assert {path.name for path in building.root.iterdir()} == {
        key, kernel.parent.name, f"{key}.log", "lock", "source-digest"}
    changed(building.source)
    other = building.built()
    assert other.returncode == 0 and kernel.exists()
    assert Path(other.stdout.strip()).parent != kernel.parent


def test_a_build_that_is_struck_takes_its_compilers_with_it_and_is_continued(
        building: Building) -> None:
    """Each build continues the one that was struck before it."""
    strikes = [("vtime/kernel/build.sh", signal.SIGKILL), *(("install.sh", way) for way in (
        signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT))]
    continuing = "continuing an interrupted build of Linux 7.2.1"
    for number, (script, way) in enumerate(strikes):
        status, printed = building.struck(script, way)
        assert status == {signal.SIGKILL: -9, signal.SIGINT: 130}.get(way, 143), printed
        assert way == signal.SIGKILL or "interrupted" in printed and "continues" in printed
        assert (continuing in printed) == (number > 0), printed
    done = building.built()
    assert done.returncode == 0, done.stderr
    assert continuing in done.stderr
    assert building.made("linux") == len(strikes) + 1
    assert not (building.root / ".build").exists()


@pytest.mark.parametrize(("files", "bar", "left"), [
    (15, "[....................]", None), (155, "[#####...............]", 3)])
def test_a_terminal_shows_how_far_compiling_is(files: int, bar: str, left: int | None,
                                               building: Building) -> None:
    """files: how many objects of 620 are compiled.

    left: the time that is left, as a multiple of the time so far; None if that is not shown yet.
    """
    (building.bin / "compiles").write_text(str(files))
    (building.bin / "hang").write_text("alive")
    terminal, slave = pty.openpty()
    with subprocess.Popen([building.guest / "build.sh"], env=building.environment, stderr=slave,
                          stdout=subprocess.PIPE) as process:
        os.close(slave)
        printed, told = "", None
        line = re.compile(rf": (\S+) {files} of about 620 objects, ([1-9]\d*) s"
                          r"(, about (\d+) s left)?\r")
        while not told:  # each line is written again five times a second
            assert process.poll() is None, printed
            printed += os.read(terminal, 1 << 16).decode()
            told = line.search(printed)
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(OSError):  # nobody has the terminal any more
            while os.read(terminal, 1 << 16):
                pass
    os.close(terminal)
    assert (told[1], told[4]) == (bar, str(left * int(told[2])) if left else None)


def test_a_killed_installation_leaves_no_compiler_even_with_signals_ignored(
        building: Building) -> None:
    assert building.struck("install.sh", signal.SIGKILL, deaf)[0] == -signal.SIGKILL


def test_an_imported_kernel_does_not_replace_a_built_one_of_the_same_claims(
        building: Building) -> None:
    """Nobody knows who made it, so it gets another folder."""
    built = Path(building.built().stdout.strip())
    inputs = dict(line.split(" ", 1) for line in (built.parent / "inputs").read_text().splitlines())
    origin = {name: inputs[name] for name in ("configuration", "source", "compiler")}
    forged = packed(building.home / "file", **origin,
                    kernel="#!/bin/sh\necho trial: Linux 7.2.1 slept 100 s\n:\n")
    done = building.built("--import", forged)
    if "no Landlock" in done.stderr:
        pytest.skip("kernels from elsewhere run confined only")
    assert done.returncode == 0, done.stderr
    taken = Path(done.stdout.strip())
    assert taken.parent.name.startswith(
        f"{built.parent.name}-") and built.exists() and taken.exists()
    again = building.built()
    # It says that it is of the source that is named.
    assert (again.returncode, again.stdout.strip()) == (0, str(taken))


def test_a_build_of_another_source_is_not_continued(building: Building) -> None:
    building.struck("vtime/kernel/build.sh", signal.SIGKILL)
    changed(building.source)
    done = building.built()
    assert done.returncode == 0 and "continuing" not in done.stderr
    assert building.made("allnoconfig") == 2


def test_the_version_of_a_source_is_read_from_a_slow_makefile() -> None:
    """A reader that ends early would end the program that writes to it by SIGPIPE."""
    makefile = b"VERSION = 7\nPATCHLEVEL = 2\nSUBLEVEL = 1\n" + b"# no more of it\n" * 600
    inside = PROJECT / "vtime" / "kernel" / "inside.sh"
    with subprocess.Popen(["bash", inside, "makefile_version"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as reading:
        assert reading.stdin is not None and reading.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            for place in range(0, len(makefile), 500):
                reading.stdin.write(makefile[place:place + 500])
                reading.stdin.flush()
                time.sleep(0.02)
            reading.stdin.close()
        assert reading.stdout.read() == b"7.2.1\n"
    assert reading.returncode == 0


def test_an_option_under_its_new_name_in_a_newer_linux_is_accepted(building: Building) -> None:
    (building.bin / "names.sed").write_text("s/^CONFIG_PROC_SYSCTL=/CONFIG_SYSCTL=/")
    refused = building.built()
    assert refused.returncode == 1 and "does not take CONFIG_PROC_SYSCTL=y" in refused.stderr
    names = building.source / "fs" / "proc" / "Kconfig"
    names.parent.mkdir(parents=True)
    names.write_text('config SYSCTL\n\tbool "Sysctl support (/proc/sys)" if EXPERT\n')
    done = building.built()
    assert done.returncode == 0, done.stderr


def test_damaged_objects_of_an_earlier_build_are_built_again(building: Building) -> None:
    """A power failure may have cut them short."""
    building.struck("vtime/kernel/build.sh", signal.SIGKILL)
    (building.bin / "broken").touch()
    (building.root / ".build" / "built" / "objects" / "old").touch()
    done = building.built()
    assert done.returncode == 0, done.stderr
    assert "cannot be used, building anew" in done.stderr
    assert not (building.root / ".build").exists()


def test_a_kernel_without_its_objects_is_built_again_where_these_are_needed(
        building: Building) -> None:
    """./run.sh keeps none, and tests compile kernels of a patch from them (./install.sh --test)."""
    assert building.built().returncode == 0 == building.built("--path").returncode
    assert building.built("--keep-objects", "--path").returncode == 1

    again = building.built("--keep-objects")
    assert again.returncode == 0 and " built in " in again.stderr, again.stderr
    assert building.built("--keep-objects", "--path").returncode == 0
    assert " built in " not in building.built("--keep-objects").stderr


@pytest.mark.parametrize(("flags", "kernels", "status"), [
    (["--test"], ["--keep-objects", "--mininet --keep-objects"], 0),
    (["--test", "--with-mininet"], ["--keep-objects", "--mininet --keep-objects"], 0),
    ([], [""], 0), (["--with-mininet"], ["--mininet"], 0), (["--no-kernel"], [], 0),
    (["--test"], ["--keep-objects"], 5)])
def test_each_missing_kernel_that_the_flags_need_is_built(flags: list[str], kernels: list[str],
                                                          status: int, building: Building) -> None:
    """Tests need both kernels and their objects. If one cannot be built, the other is ended."""
    (building.guest / "build.sh").write_text(
        f'#!/bin/sh\ncase "$*" in *--path) exit 1;; esac\necho "[$*]" >>{building.home}/called\n'
        f'[ {status} = 0 ] || case "$*" in *--mininet*) exec sleep 1000;; esac\nexit {status}\n')
    del building.environment["FIRST_FLIGHT_KERNEL_SOURCE"]
    done = run_program([building.home / "tree" / "install.sh", *flags], env=building.environment)
    assert done.returncode == status, done.stderr
    called = building.home / "called"
    builds = called.read_text().splitlines() if called.exists() else []
    assert {*builds} >= {f"[{flags}]" for flags in kernels}
    assert status or len(builds) == len(kernels)


def test_a_source_is_fetched_while_the_compiler_is_installed(building: Building) -> None:
    """Each build is told once that it may go on, and apt waits here until the builds have begun."""
    called = building.home / "called"
    (building.guest / "build.sh").write_text(
        f'#!/bin/sh\ncase "$*" in *--path) exit 1;; esac\necho "[$*]" >>{called}\n'
        f'read line\necho told >>{called}\n')
    for name, text in {
            "dpkg-query": 'case "$*" in *" python3") echo 3.11.2-1;; esac; exit 1',
            "apt-cache": 'shift; for name; do echo "$name:"; echo "  Candidate: 1"; done',
            "sudo": 'exec "$@"',
            "apt-get": f'until [ "$(grep -cs await {called})" = 2 ]; do sleep 0.05; done; '
                       f"echo installed >>{called}"}.items():
        (building.bin / name).write_text(f"#!/bin/sh\n{text}\n")
        (building.bin / name).chmod(0o755)
    del building.environment["FIRST_FLIGHT_KERNEL_SOURCE"]
    done = run_program([building.home / "tree" / "install.sh", "--test"], env=building.environment)
    assert done.returncode == 0, done.stderr
    lines = called.read_text().splitlines()
    assert {*lines[:2]} == {
        "[--await-tools --keep-objects]", "[--mininet --await-tools --keep-objects]"}
    assert lines[2] == "installed" and lines.count("told") == 2


def test_a_build_awaits_its_tools_and_does_not_look_for_them_before(building: Building) -> None:
    flex = building.bin / "flex"
    flex.unlink(missing_ok=True)
    building.environment["PATH"] = str(building.bin)
    for folder in ("/usr/sbin", "/usr/bin", "/sbin", "/bin"):
        for program in Path(folder).iterdir():
            if program.name != "flex" and not (building.bin / program.name).exists():
                (building.bin / program.name).symlink_to(program)
    build = subprocess.Popen([building.guest / "build.sh", "--await-tools"], text=True,
                             env=building.environment, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: building.root.parent.exists() or build.poll() is not None, "the build")
    flex.write_text("#!/bin/sh\n")
    flex.chmod(0o755)
    printed, errors = build.communicate("\n", timeout=HANGS_S)
    assert build.returncode == 0 and Path(printed.strip()).exists(), errors


def test_make_does_not_read_folders_of_drivers_that_have_no_source(building: Building) -> None:
    """Where an option is requested make reads them, and reports what is missing."""
    makefile = "obj-y += base/ media/\tchar/ipmi/ nfc/\nobj-y += clk/\nobj-$(CONFIG_PNP) += pnp/\n"
    for name, text in {"Makefile": makefile, "base/core.c": "", "char/ipmi/Makefile": "",
                       "char/mem.c": "", "nfc/nci/uart.c": "", "media/Makefile": ""}.items():
        (building.source / "drivers" / name).parent.mkdir(parents=True, exist_ok=True)
        (building.source / "drivers" / name).write_text(text)
    assert building.built("--keep-objects").returncode == 0
    trees = building.root / "trees"
    kept = (trees / "trials-of-default" / "tree" / "drivers" / "Makefile").read_text()
    assert [line.split() for line in kept.splitlines()] == [
        ["obj-y", "+=", "base/", "nfc/"], ["obj-y", "+="], ["obj-$(CONFIG_PNP)", "+=", "pnp/"]]
    done = building.built("--name", "mine", "--config", "MEDIA=y")
    assert done.returncode == 0, done.stderr
    assert (trees / "trials-of-mine" / "tree" / "drivers" / "Makefile").read_text() == makefile
