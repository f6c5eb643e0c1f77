"""A guest gets the walls that the machine can build, and none of its processes outlives a run.

tests/live tries each system call from inside.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from firstflight.testbed.guests import UmlEngine
from tests.conftest import PROJECT
from tests.live.conftest import processes_with
from tests.running import run_program, wait_until
from vtime import confine, uml
from vtime.console import EngineError

TRIAL = {"id": "t", "kind": "fetch", "network": {}}
# A program in the place of a kernel. It starts processes that want to stay: in another session, in
# another group, and in its own.
LEAVING = f"""#!{sys.executable} -IS
import os, signal, sys, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
for leave in (os.setsid, lambda: os.setpgid(0, 0), lambda: None):
    if os.fork() == 0:
        try:
            leave()
        except OSError:
            pass
        if os.fork() == 0:
            time.sleep(1000)
        os._exit(0)
open("left", "w").close()
if SLEEPS:
    time.sleep(1000)
"""


@pytest.fixture(autouse=True)
def tried_anew() -> Iterator[None]:
    """Each test tries again which namespaces this machine has."""
    uml.namespaces.cache_clear()
    yield
    uml.namespaces.cache_clear()


def kernel(folder: Path, sleeps: bool) -> Path:
    """The program LEAVING. sleeps: whether it goes on when it has started its processes."""
    path = folder / "linux"
    path.write_text(LEAVING.replace("SLEEPS", str(sleeps)))
    path.chmod(0o755)
    return path


def wait_until_gone(folder: Path) -> None:
    """Wait until no process runs in a folder."""
    wait_until(lambda: not processes_with(str(folder)), f"the end of what runs in {folder}")


@pytest.mark.skipif(bool(confine.lacking()), reason=f"lacks {confine.lacking()}")
@pytest.mark.parametrize("around", [None, ()])
def test_every_process_of_a_guest_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                               around: tuple[str, ...] | None) -> None:
    """It does so in namespaces and without them, since it cannot leave its process group."""
    if around is not None:
        monkeypatch.setattr(uml, "namespaces", lambda: around)
    with pytest.raises(EngineError, match="status 0"):
        list(UmlEngine(kernel(tmp_path, False), 1).run([TRIAL], {}, tmp_path / "work"))
    wait_until_gone(tmp_path / "work")


@pytest.mark.skipif("pid" not in uml.namespaces(), reason="this user may have no PID namespace")
def test_every_process_of_a_guest_ends_when_the_engine_is_killed(tmp_path: Path) -> None:
    run = ("import sys; from pathlib import Path; from firstflight.testbed.guests import UmlEngine;"
           f" list(UmlEngine(Path(sys.argv[1]), 1).run([{TRIAL}], {{}}, Path(sys.argv[2])))")
    work = tmp_path / "work"
    with subprocess.Popen([sys.executable, "-c", run, str(kernel(tmp_path, True)), str(work)],
                          cwd=PROJECT) as engine:
        wait_until(lambda: (work / "guest0" / "left").exists()
                   and len(processes_with(str(work / "guest0"))) > 3, "a guest and its processes")
        engine.send_signal(signal.SIGKILL)
    wait_until_gone(work / "guest0")


def test_a_guest_that_begins_after_its_engine_was_killed_ends_at_once(tmp_path: Path) -> None:
    """The parent that it was started for is not its parent any more, as with the shell here."""
    begun = tmp_path / "begun"
    run_program(["sh", "-c", '"$@"; true', "sh", *uml.ending_with_us(["touch", str(begun)])])
    assert not begun.exists()
    run_program(uml.ending_with_us(["touch", str(begun)]))
    assert begun.exists()


@pytest.mark.skipif("pid" not in uml.namespaces(), reason="this user may have no PID namespace")
def test_a_kernel_from_elsewhere_leaves_no_process_when_it_is_tried(tmp_path: Path) -> None:
    build, cache = PROJECT / "vtime" / "kernel" / "build.sh", tmp_path / "cache"

    def ran(*words: str) -> subprocess.CompletedProcess[str]:
        return run_program([str(build), *words], env={**os.environ, "XDG_CACHE_HOME": str(cache)})

    files = {"linux": LEAVING.replace("SLEEPS", "False"), "config": "", "version": "7.2.0\n",
             "source": "elsewhere\n"}
    compiler = subprocess.run(["gcc", "--version"], capture_output=True, text=True,
                              check=True).stdout.splitlines()[0]
    hashes = {name: hashlib.sha256(files[name].encode()).hexdigest()
              for name in ("linux", "config")}
    files["inputs"] = (f"configuration {Path(ran('--path').stdout.strip()).parent.name}\n"
                       f"source {'0' * 64}\ncompiler {compiler}\n"
                       f"linux {hashes['linux']}\nconfig {hashes['config']}\n")
    with tarfile.open(tmp_path / "file", "w") as tar:
        for name, text in files.items():
            (tmp_path / name).write_text(text)
            (tmp_path / name).chmod(0o755)
            tar.add(tmp_path / name, name)
    done = ran("--import", str(tmp_path / "file"))
    assert done.returncode == 4 and "does not run here" in done.stderr, done.stderr
    wait_until_gone(cache)


@pytest.mark.parametrize(("refused", "stand"), [
    ("--none", ("pid", "ipc", "net")), ("--net", ("pid", "ipc")), ("--fork", ())])
def test_a_machine_without_some_namespaces_gets_the_others(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str,
        stand: tuple[str, ...]) -> None:
    """A container or the kernel's settings may refuse some. run.json names the others."""
    script = tmp_path / "unshare"
    script.write_text(f'#!/bin/sh\nfor word; do [ "$word" = {refused} ] && exit 1; done; exit 0\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(confine, "lacking", lambda: "")
    assert uml.namespaces() == stand
    words = uml.confining()
    assert (words[0] == "unshare") is bool(stand)
    assert [word[2:] for word in words if word[2:] in uml.NAMESPACES] == list(stand)
    assert ("--user" in words) is (os.geteuid() != 0 and bool(stand))
    report = uml.walls()
    assert isinstance(report, dict) and report["namespaces"] == list(stand)


def test_a_machine_without_unshare_has_no_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert uml.namespaces() == ()


def test_a_machine_that_cannot_confine_has_no_walls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confine, "lacking", lambda: "Landlock")
    assert uml.confining() == [] and uml.walls() is False
